"""Measure how many labels a decision takes by the order in which rows are labelled.

    python experiments/bench/orders.py [--audits 600] [--data FOLDER] [--state FILE] [--without]

The judges, tasks and bars are those of `audits.py`. Rows come in four orders: at random (with the plain test, and with
the test in strata of the judge's verdicts), as planned for the bar, and all of the judge's fails with a fifth of its
passes. --without draws without replacement, as a file is labelled, until all rows are there.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.sequential import (
    Look,
    Share,
    ShareTest,
    Strata,
    StrataTest,
    outcome,
    planned,
)
from judgesmith.experiments.bench.audits import (
    AHEAD,
    RESULTS,
    SITUATIONS,
    Mask,
    Recorded,
    Vector,
    audits_parser,
    measured,
    options_of,
    recorded,
)
from judgesmith.experiments.studies.saving import save

SHARES: dict[str, Share] = {
    "fails found (TNR)": "tnr",
    "passes passed (TPR)": "tpr",
    "precision": "precision",
    "agreement": "accuracy",
    "pass rate": "rate",
}
#: Labels at most, and the numbers of them at which a test is asked whether it has decided.
MOST = 3000
STEPS = (60, 150, 400, 1000, MOST)
FIFTH = 0.2
ARMS = ("random, plain", "random, in strata", "planned", "all fails, a fifth of passes")


def rate(pair: Recorded, share: Share) -> float:
    """Return the true share of all rows."""
    values = outcomes(share, pair.judge, pair.people)
    return float(np.nanmean(values))


def outcomes(share: Share, judge: Mask, people: Mask) -> Vector:
    """Return whether each row is right; NaN where it does not count."""
    table = np.array(
        [[outcome(share, j, p) for p in (False, True)] for j in (False, True)]
    )
    return np.asarray(table[judge.astype(np.intp), people.astype(np.intp)])


def audit(
    pair: Recorded,
    share: Share,
    away: float,
    rng: np.random.Generator,
    *,
    without: bool,
) -> dict[str, tuple[bool, int]] | None:
    """Return of each order whether the judge passes, and the labels; None where the bar is out of range."""
    bar = rate(pair, share) - away
    hoped = bar + AHEAD
    if not (bar >= 0.1 and hoped <= 0.98):
        return None
    endless = 1.0 if without else 1e9
    failed = float((~pair.judge).sum())
    passed = float(pair.judge.sum())
    plan = planned(share, (endless * failed, endless * passed), bar, hoped)
    of_fifth = failed / (failed + FIFTH * passed)
    at_random = Strata(plan.rows, plan.sizes, plan.fails)
    fifth = Strata(plan.rows, (of_fifth, 1 - of_fifth), plan.fails)
    found = {}
    rows = drawn(pair, at_random, rng, without=without)
    values = outcomes(share, pair.judge[rows], pair.people[rows])
    counted = np.flatnonzero(~np.isnan(values))
    look = ShareTest(bar, hoped).look(values[counted])
    labels = len(rows) if look.sufficed is None else int(counted[look.sufficed - 1]) + 1
    found[ARMS[0]] = look.decision == "passed", labels
    for arm, strata in zip(ARMS[1:], (at_random, plan, fifth), strict=True):
        if arm != ARMS[1]:
            rows = drawn(pair, strata, rng, without=without)
        look = looked(StrataTest(share, bar, hoped, strata), pair, rows)
        found[arm] = look.decision == "passed", look.sufficed or len(rows)
    return found


def looked(test: StrataTest, pair: Recorded, rows: npt.NDArray[np.intp]) -> Look:
    """Return the decision after the rows, without computing what comes behind it."""
    look = None
    for labels in STEPS:
        some = rows[:labels]
        look = test.look(pair.judge[some].tolist(), pair.people[some].tolist())
        if look.decision != "open" or labels >= len(rows):
            break
    assert look is not None
    return look


def drawn(
    pair: Recorded, strata: Strata, rng: np.random.Generator, *, without: bool
) -> npt.NDArray[np.intp]:
    """Return rows in the order in which they are labelled."""
    places = [np.flatnonzero(~pair.judge), np.flatnonzero(pair.judge)]
    chosen = rng.choice(2, p=np.array(strata.drawn), size=MOST)
    if without:
        return _until_all(places, chosen, rng)
    rows = np.empty(MOST, dtype=np.intp)
    for stratum, own in enumerate(places):
        mine = np.flatnonzero(chosen == stratum)
        rows[mine] = own[rng.integers(0, len(own), size=len(mine))]
    return rows


def _until_all(
    places: list[npt.NDArray[np.intp]],
    chosen: npt.NDArray[np.intp],
    rng: np.random.Generator,
) -> npt.NDArray[np.intp]:
    """Return every row once: of the chosen stratum, or of the other one where none is left."""
    left = [rng.permutation(own).tolist() for own in places]
    rows = []
    for stratum in chosen.tolist():
        own = left[stratum] or left[1 - stratum]
        if not own:
            break
        rows.append(own.pop())
    return np.array(rows)


def cell(
    pairs: list[Recorded], share: Share, away: float, audits: int, *, without: bool
) -> list[Any]:
    """Return audits, and of each order the share that passes and the mean labels."""
    rng = np.random.default_rng(0)
    passed: dict[str, list[bool]] = defaultdict(list)
    labels: dict[str, list[int]] = defaultdict(list)
    for number in range(audits * 10):
        found = audit(pairs[number % len(pairs)], share, away, rng, without=without)
        for arm, (decision, count) in (found or {}).items():
            passed[arm].append(decision)
            labels[arm].append(count)
        if len(labels[ARMS[0]]) >= audits:
            break
    cells: list[Any] = [len(labels[ARMS[0]])]
    for arm in ARMS:
        cells += [float(np.mean(passed[arm])), float(np.mean(labels[arm]))]
    return cells


def main() -> None:
    """Run the audits and save the table."""
    parser = audits_parser(__doc__, 600)
    parser.add_argument("--without", action="store_true")
    options = options_of(parser)
    pairs = list(recorded(options.data))

    def numbers(question: str, away: float) -> list[Any]:
        share = SHARES[question]
        return cell(pairs, share, away, options.audits, without=options.without)

    rows = measured(SHARES, SITUATIONS, numbers, options.state)
    if options.without:
        return
    columns = {"the rate": "", "the judge is": "", "audits": "{:,.0f}"}
    for arm in ARMS:
        columns |= {f"{arm}: passes": "{:.1%}", f"{arm}: labels": "{:.0f}"}
    save(
        RESULTS,
        "audits-orders",
        columns,
        rows,
        commands=[f"python experiments/bench/orders.py --audits {options.audits}"],
        seed=0,
        notes=f"{len(pairs)} recorded judges and tasks",
    )


if __name__ == "__main__":
    main()
