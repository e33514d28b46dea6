"""Measure how often audits of recorded judges pass a judge that is below the bar, and how many labels they take.

    python experiments/bench/audits.py [--audits 10000] [--data FOLDER] [--state FILE]

Every recorded judge of the sets in FOLDER/strong (JUDGESMITH_DATA) on every aspect that it judged: people's ratings are
cut into fail and pass where the fails are nearest a third, the judge's scores where it passes as many. All its rows are
the population, of which labels are drawn with replacement. The bar stands beside the judge's own true rate, so that
each judge is asked a hard question.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.decisions import places_by_rank
from judgesmith.agreement.sequential import ShareTest, labels_for
from judgesmith.experiments.bench.kept import Kept
from judgesmith.experiments.studies.saving import save

RESULTS = Path(__file__).parents[1] / "results" / "data"
Mask = npt.NDArray[np.bool_]
Vector = npt.NDArray[np.float64]
#: Fewest rows, and the least rarer answers of people, of a judge and task.
ROWS = 150
RARER = 30
#: How far a good judge is hoped to be above the bar.
AHEAD = 0.1
POINTS = (20, 40, 100)
SITUATIONS = {
    "0.05 below the bar": -0.05,
    "at the bar": 0.0,
    "0.1 above the bar": 0.1,
    "0.15 above the bar": 0.15,
}
QUESTIONS = ("fails found (TNR)", "passes passed (TPR)", "agreement", "TPR and TNR")


@dataclass(frozen=True)
class Recorded:
    """A judge and a task: what people and the judge decided of each row (True: pass)."""

    name: str
    people: Mask
    judge: Mask

    @property
    def draws(self) -> int:
        """Return how many rows are drawn at most, so that the rarer answer of people comes 1,000 times."""
        rarer = min(self.people.mean(), 1 - self.people.mean())
        return int(1000 / rarer)

    def truth(self, question: str) -> float:
        """Return the judge's rate over all rows."""
        rows = self.asked(question)
        return float((self.people == self.judge)[rows].mean())

    def asked(self, question: str) -> Mask:
        """Return the rows that a question is about."""
        if question.startswith("fails"):
            return ~self.people
        if question.startswith("passes"):
            return self.people
        return np.ones(len(self.people), dtype=bool)


def recorded(folder: Path) -> Iterator[Recorded]:
    """Yield what people and every recorded judge decided."""
    for name, human, scores in scored(folder):
        pair = decided(human, scores)
        if pair is not None:
            yield Recorded(name, *pair)


def scored(folder: Path) -> Iterator[tuple[str, Vector, Vector]]:
    """Yield people's ratings and the scores of every recorded judge of every set and aspect that it judged."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem.count("."):
            continue
        rows = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
        if path.stem in ("llmbar", "ragchecker"):
            rows = [row for row in rows if str(row["id"]).endswith("/a")]
        aspects = list(dict.fromkeys(name for row in rows for name in row["scores"]))
        judges = list(dict.fromkeys(name for row in rows for name in row["judges"]))
        for aspect in aspects:
            for judge in judges:
                own = judge.rpartition(".")[2]
                if own in aspects and own != aspect:
                    continue
                both = [
                    (row["scores"][aspect], row["judges"][judge])
                    for row in rows
                    if row["scores"].get(aspect) is not None
                    and row["judges"].get(judge) is not None
                ]
                if len(both) >= ROWS:
                    human, scores = np.array(both, dtype=np.float64).T
                    yield f"{path.stem} {aspect} {judge}", human, scores


def decided(human: Vector, scores: Vector) -> tuple[Mask, Mask] | None:
    """Return people's and the judge's decisions; None where one is too rare, or the judge's always the same."""
    cuts = np.unique(human)[1:]
    if not len(cuts) or np.ptp(scores) == 0:
        return None
    shares = np.array([(human < cut).mean() for cut in cuts])
    people = human >= cuts[np.argmin(np.abs(shares - 1 / 3))]
    ours = places_by_rank(scores, people.astype(np.intp), 2) == 1
    rarer = min(people.sum(), (~people).sum())
    if rarer < RARER or ours.all() or not ours.any():
        return None
    return people, ours


@dataclass
class Tally:
    """Passes and labels of audits in one situation."""

    audits: int = 0
    point: dict[int, int] = field(default_factory=lambda: dict.fromkeys(POINTS, 0))
    fixed: int = 0
    fixed_labels: float = 0.0
    same_labels: float = 0.0
    passed: int = 0
    labels: float = 0.0

    def row(self) -> list[Any]:
        """Return shares of passes, and mean labels."""
        n = max(self.audits, 1)
        points = [self.point[labels] / n for labels in POINTS]
        share = self.labels / self.same_labels if self.same_labels else None
        return [
            self.audits,
            *points,
            self.fixed / n,
            self.fixed_labels / n,
            self.passed / n,
            self.labels / n,
            share,
        ]


def audit(
    pair: Recorded, question: str, away: float, tally: Tally, rng: np.random.Generator
) -> None:
    """Draw labels one by one until each rule has decided, and count."""
    parts = QUESTIONS[:2] if question == "TPR and TNR" else (question,)
    tests = {}
    for part in parts:
        bar = pair.truth(part) - away
        hoped = bar + AHEAD
        if not (bar >= 0.1 and hoped <= 0.98):
            return
        tests[part] = ShareTest(bar, hoped)
    tally.audits += 1
    drawn = rng.integers(0, len(pair.people), size=pair.draws)
    right = (pair.people == pair.judge)[drawn]
    values = {}
    places = {}
    for part in parts:
        asked = pair.asked(part)[drawn]
        places[part] = np.flatnonzero(asked)
        values[part] = right[asked].astype(np.float64)
    for labels in POINTS:
        seen = {part: values[part][places[part] < labels] for part in parts}
        if all(_share(seen[part]) >= tests[part].bar for part in parts):
            tally.point[labels] += 1
    fixed = 0
    same = 0
    passes = True
    for part, test in tests.items():
        n = fixed_labels(round(test.bar, 3), round(test.hoped, 3), 0.9)
        needed = int(scipy.stats.binom.isf(test.alpha, n, test.bar)) + 1
        passes = passes and values[part][:n].sum() >= needed
        fixed = max(fixed, int(places[part][n - 1]) + 1)
        m = fixed_labels(round(test.bar, 3), round(test.hoped, 3), POWER)
        same = max(same, int(places[part][m - 1]) + 1)
    tally.fixed += int(passes)
    tally.fixed_labels += fixed
    tally.same_labels += same
    looks = {part: test.look(values[part]) for part, test in tests.items()}
    ends = {
        part: int(places[part][(look.sufficed or len(values[part])) - 1]) + 1
        for part, look in looks.items()
    }
    failed = [ends[part] for part, look in looks.items() if look.decision != "passed"]
    if failed:
        tally.labels += min(failed)
    else:
        tally.passed += 1
        tally.labels += max(ends.values())


#: The power of the sequential test at the hoped rate, which a fixed number of labels is compared at.
POWER = 0.92
_FIXED: dict[tuple[float, float, float], int] = {}


def fixed_labels(bar: float, hoped: float, wanted: float) -> int:
    """Return the labels that a test of a fixed number needs."""
    key = bar, hoped, wanted
    if key not in _FIXED:
        _FIXED[key] = labels_for(bar, hoped, wanted=wanted)
    return _FIXED[key]


def _share(values: Vector) -> float:
    """Return the share that a point rule sees; a rule without a label passes nothing."""
    return float(values.mean()) if len(values) else -1.0


def cell(pairs: list[Recorded], question: str, away: float, audits: int) -> list[Any]:
    """Return the numbers of one question in one situation."""
    rng = np.random.default_rng(0)
    tally = Tally()
    for number in range(audits * 10):
        if tally.audits >= audits:
            break
        audit(pairs[number % len(pairs)], question, away, tally, rng)
    return tally.row()


def options_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return what is on the command line; `data` is the folder of the recorded judges."""
    parser.add_argument("--data", type=Path, default=os.environ.get("JUDGESMITH_DATA"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the sets: --data or JUDGESMITH_DATA")
    options.data /= "strong"
    return options


def audits_parser(description: str | None, audits: int) -> argparse.ArgumentParser:
    """Return a parser for measurements of audits. audits: their number by default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--audits", type=int, default=audits)
    parser.add_argument("--state", type=Path, help="File of finished rows: resumes.")
    return parser


def measured(
    names: Iterable[str],
    situations: Mapping[str, float],
    numbers: Callable[[str, float], list[Any]],
    state: Path | None,
) -> list[list[Any]]:
    """Return a row for each name and situation, of which those in the file `state` are not measured again."""
    kept = Kept(state)
    done = {(name, situation): found for name, situation, *found in kept.lines}
    rows = []
    for name, situation in itertools.product(names, situations):
        if (name, situation) not in done:
            found = numbers(name, situations[situation])
            kept.add([name, situation, *found])
            done[name, situation] = found
        rows.append([name, situation, *done[name, situation]])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run the audits and save the table."""
    options = options_of(audits_parser(__doc__, 10_000))
    pairs = list(recorded(options.data))

    def numbers(question: str, away: float) -> list[Any]:
        return cell(pairs, question, away, options.audits)

    rows = measured(QUESTIONS, SITUATIONS, numbers, options.state)
    columns = {
        "the rate": "",
        "the judge is": "",
        "audits": "{:,.0f}",
        **{f"points, {labels} labels": "{:.1%}" for labels in POINTS},
        "fixed number passes": "{:.1%}",
        "its labels": "{:.0f}",
        "sequential passes": "{:.1%}",
        "labels": "{:.0f}",
        "of a fixed number's": "{:.0%}",
    }
    save(
        RESULTS,
        "audits",
        columns,
        rows,
        commands=[f"python experiments/bench/audits.py --audits {options.audits}"],
        seed=0,
        notes=f"{len(pairs)} recorded judges and tasks",
    )


if __name__ == "__main__":
    main()
