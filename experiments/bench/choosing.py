"""How well a search chooses, by simulation: synthetic judges of known quality. No model is called.

    python experiments/bench/choosing.py racing [--json] [--repeats 200]
    python experiments/bench/choosing.py selection [--json] [--repeats 400]
    python experiments/bench/choosing.py sureness [--json] [--repeats 400]

A judge's score of a row is a part of the human score and noise, `common` of which all candidates share: they are one
model with different prompts. A judge's true quality is the Q that it would have on endless rows.

racing: what a race saves and costs against a plain search over the same scores. selection: reported minus true Q of the
chosen candidate ("bias" ± standard error, root mean square error), for the highest Q and for the rule of the searches
(fewer demonstrations unless clearly beaten), before and after correction; "any" is the mean of all candidates, where
nothing is chosen. Groups of two rows share half of everything. sureness: the true Q that is gained over zero-shot
(r = 0.5, Q 1.32) by the rule, where the candidates' r are normal around it, moved by `shift` with standard deviation
`spread`, by the share of paired resamples that a candidate must win; "best": what knowing the truth would gain.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import dspy
import numpy as np

from judgesmith.agreement.objectives import Q
from judgesmith.agreement.significance import Difference
from judgesmith.experiments.bench.figures import add_save, save, show_table
from judgesmith.optimizers.examples import Scored, Vector, clearly, difference
from judgesmith.optimizers.search.racing import Racing, race, value_of
from judgesmith.optimizers.search.selection import ROUNDS, Contest, Entrant, corrected
from judgesmith.signatures.values import Verdict

#: Pearson's r of the candidates with people, drawn again in each repeat: the first is zero-shot.
CASES = {"spread": (0.25, 0.60), "close": (0.40, 0.50), "one good": None, "equal": (0.45, 0.45)}
#: Of `selection`: case, rows, candidates, share of the noise in common, rows of a group.
CELLS: tuple[tuple[str, int, int, float, int], ...] = (
    ("equal", 40, 16, 0.0, 1), ("equal", 40, 16, 0.6, 1), ("equal", 40, 16, 0.6, 2), ("one good", 40, 16, 0.0, 1),
    ("one good", 40, 16, 0.6, 1), ("equal", 80, 8, 0.0, 1), ("equal", 80, 8, 0.6, 1), ("equal", 80, 8, 0.6, 2),
    ("one good", 80, 8, 0.6, 1), ("spread", 40, 16, 0.6, 1),
)  # fmt: skip
SHIFTS, SPREADS, SURE = (-0.15, -0.08, 0.0, 0.08), (0.03, 0.1), (0.0, 0.6, 0.7, 0.8, 0.9)
ZERO_SHOT = 0.5
COMMON = 0.6

#: Columns with their formats, rows, and figures of all rows together.
Outcome = tuple[dict[str, str], list[list[Any]], dict[str, Any]]


def qualities(case: str, candidates: int, rng: np.random.Generator) -> Vector:
    limits = CASES[case]
    if limits is None:
        r = np.full(candidates, 0.35)
        r[rng.integers(candidates)] = 0.6
        return r
    return rng.uniform(*limits, candidates)


def true_q(r: Vector) -> Vector:
    """Q of bivariate normal scores on endless rows: r + (6/pi) asin(r/2) + (2/pi) asin(r)."""
    return np.asarray(r + 6 / np.pi * np.arcsin(r / 2) + 2 / np.pi * np.arcsin(r))


def scores(r: Vector, human: Vector, noise: Vector) -> Vector:
    """Candidates × rows, in percent."""
    return np.asarray(50 + 15 * (r[:, None] * human + np.sqrt(1 - r[:, None] ** 2) * noise))


def shared_noise(shape: tuple[int, int], common: float, rng: np.random.Generator) -> Vector:
    """Standard normal; `common` is the share of the variance that all candidates have alike."""
    return np.asarray(np.sqrt(common) * rng.normal(size=shape[1]) + np.sqrt(1 - common) * rng.normal(size=shape))


def examples_of(human: Vector, per_document: int) -> list[dspy.Example]:
    return [
        dspy.Example(score=50 + 15 * h, group=f"d{i // per_document}", document=f"d{i // per_document}", system=None)
        for i, h in enumerate(human.tolist())
    ]


def race_once(size: int, case: str, candidates: int, seed: int) -> tuple[float, ...]:
    """True Q of the best candidate, of the plain choice and of the raced one; the share of calls that the race took."""
    rng = np.random.default_rng([seed, size, list(CASES).index(case)])
    human, r = rng.normal(size=size), qualities(case, candidates, rng)
    percents, examples = scores(r, human, shared_noise((len(r), size), COMMON, rng)), examples_of(human, 2)
    calls = [size]  # zero-shot is judged on all rows

    def score(i: int, block: Any) -> Scored:
        calls.append(len(block))
        judged = percents[i + 1, block]
        return Scored(tuple(Verdict(score=p, percent=p) for p in judged.tolist()), judged)

    runners, _ = race(
        [str(i) for i in range(1, candidates)], score, examples, favourite=("zero-shot", percents[0]), rules=Racing(),
        seed=seed,
    )  # fmt: skip
    q = np.array([value_of(s, examples, Q()) for s in percents])
    finished = [0] + [i for i, runner in enumerate(runners, start=1) if runner.dropped is None]
    raced = max(finished, key=lambda i: q[i])
    truth = true_q(r)
    return float(truth.max()), float(truth[q.argmax()]), float(truth[raced]), sum(calls) / (size * candidates)


def racing(repeats: int) -> Outcome:
    columns = {"rows": "{}", "candidates": "", "calls": "{:.0%}", "true Q, raced − plain": "{:+.3f} ± {:.3f}",
               "within .05 of the best, plain": "{:.0%}", "raced": "{:.0%}"}  # fmt: skip
    rows: list[list[Any]] = []
    for size, case in product((30, 60, 120, 300), CASES):
        best, plain, raced, calls = np.array([race_once(size, case, 11, seed) for seed in range(repeats)]).T
        gap = raced - plain
        rows.append([
            size, case, float(calls.mean()), [float(gap.mean()), float(gap.std() / np.sqrt(repeats))],
            float((best - plain <= 0.05).mean()), float((best - raced <= 0.05).mean()),
        ])  # fmt: skip
    means = {"calls_ratio": np.mean([row[2] for row in rows]), "q_difference": np.mean([row[3][0] for row in rows])}
    return columns, rows, {name: round(float(value), 4) for name, value in means.items()}


def select_once(case: str, rows: int, candidates: int, common: float, per_group: int, seed: int) -> dict[str, float]:
    """What is reported less the truth, by way of choosing; "any": without choosing.

    Two seeds share their draws, the noise with the other sign, so that luck which all candidates share cancels.
    """
    rng, sign = np.random.default_rng([seed // 2, rows, candidates]), 1 - 2 * (seed % 2)

    def normal() -> Vector:
        """Standard normal, half of the variance shared within groups of two or more."""
        shared = 0.5 if per_group > 1 else 0.0
        group = np.repeat(rng.normal(size=-(-rows // per_group)), per_group)[:rows]
        return np.asarray(np.sqrt(shared) * group + np.sqrt(1 - shared) * rng.normal(size=rows))

    r = qualities(case, candidates, rng)
    truth, human, alike = true_q(r), normal(), normal()
    own = np.array([normal() for _ in r])
    percents = scores(r, human, sign * (np.sqrt(common) * alike + np.sqrt(1 - common) * own))
    examples = examples_of(human, per_group)
    entrants = [Entrant(s, value_of(s, examples, Q())) for s in percents]
    contest = Contest([(d, 0) for d in (0, *rng.integers(1, 5, candidates - 1).tolist())], [True] * candidates)
    off = {"any": float(np.mean([e.value for e in entrants] - truth))}
    for how, sure in (("highest Q", 0.0), ("rule", 0.7)):
        outcome = corrected(entrants, contest, examples, sure=sure, seed=seed, rounds=ROUNDS)
        assert outcome is not None
        chosen, correction = outcome
        off[f"{how}, as it is"] = correction.naive - float(truth[chosen])
        off[f"{how}, corrected"] = correction.value - float(truth[chosen])
    return off


def selection(repeats: int) -> Outcome:
    columns = {"candidates": "{}", "rows, K": "{}, {}", "shared error": "{:.1f}", "rows a group": "{}"}
    rows: list[list[Any]] = []
    names: Sequence[str] = ()
    for cell in CELLS:
        drawn = [select_once(*cell, seed) for seed in range(2 * (repeats // 2))]
        names = list(drawn[0])
        figures = []
        for name in names:
            values = np.array([d[name] for d in drawn])
            pairs = values.reshape(-1, 2).mean(axis=1)
            rmse = np.sqrt((values**2).mean())
            figures.append([float(values.mean()), float(pairs.std() / np.sqrt(len(pairs))), float(rmse)])
        case, size, candidates, common, per_group = cell
        rows.append([case, [size, candidates], common, per_group, *figures])
    worst = {
        f"worst_bias, {kind}": max(
            abs(row[4 + place][0]) for row in rows if row[0] != "spread" for place, n in enumerate(names) if kind in n
        )
        for kind in ("as it is", "corrected")
    }
    return columns | dict.fromkeys(names, "{:+.3f} ± {:.3f} ({:.2f})"), rows, worst


def gain_once(size: int, shift: float, spread: float, seed: int, candidates: int = 6) -> list[float]:
    """The true Q gained over zero-shot: by knowing the truth, then at each value of SURE."""
    rng = np.random.default_rng([seed, size, round(1000 * (1 + shift)), round(1000 * spread)])
    r = np.append(ZERO_SHOT, np.clip(ZERO_SHOT + shift + spread * rng.normal(size=candidates), -0.95, 0.95))
    human = rng.normal(size=size)
    percents, examples = scores(r, human, shared_noise((len(r), size), COMMON, rng)), examples_of(human, 2)
    q = [value_of(s, examples, Q()) for s in percents]
    contest = Contest([(d, 0) for d in (0, *rng.integers(1, 9, candidates).tolist())], [True] * len(q))

    @cache
    def gap(first: int, second: int) -> Difference:
        return difference(percents[first], percents[second], examples, objective=Q(), seed=seed, rounds=500)

    def chosen(sure: float) -> int:
        return contest.chosen(q, (lambda first, second: clearly(gap(first, second), sure)) if sure else None)

    gained = true_q(r) - true_q(r)[0]
    return [float(gained.max()), *(float(gained[chosen(sure)]) for sure in SURE)]


def sureness(repeats: int) -> Outcome:
    columns = {"rows": "{}", "candidates on average (of r)": "{:+.2f}", "spread": "{:.2f}", "best possible": "{:.3f}"}
    columns |= {"highest Q" if sure == 0 else f"{100 * sure:.0f} %": "{:+.3f} ({:.3f})" for sure in SURE}
    rows: list[list[Any]] = []
    for size, shift, spread in product((40, 80), SHIFTS, SPREADS):
        drawn = np.array([gain_once(size, shift, spread, i) for i in range(repeats)])
        mean, error = drawn.mean(axis=0).tolist(), (drawn.std(axis=0) / np.sqrt(len(drawn))).tolist()
        rows.append([size, shift, spread, mean[0], *map(list, zip(mean[1:], error[1:], strict=True))])
    gains = np.array([row[4:] for row in rows])
    means, errors = (
        gains[..., 0].mean(axis=0).tolist(),
        (np.sqrt((gains[..., 1] ** 2).sum(axis=0)) / len(rows)).tolist(),
    )
    best = float(np.mean([row[3] for row in rows]))
    rows.append(["mean of all", None, None, best, *map(list, zip(means, errors, strict=True))])
    return columns, rows, {f"mean gained at {sure:g}": mean for sure, mean in zip(SURE, means, strict=True)}


BENCHES: dict[str, tuple[Callable[[int], Outcome], int, str]] = {
    "racing": (racing, 200, "± standard error"),
    "selection": (selection, 400, "± standard error, root mean square error in brackets"),
    "sureness": (sureness, 400, "standard error in brackets"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=list(BENCHES))
    parser.add_argument("--repeats", type=int, help="an even number; by default 200 for racing and 400 for the others")
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    options = parser.parse_args()
    bench, usual, notes = BENCHES[options.bench]
    repeats = options.repeats or usual
    columns, rows, summary = bench(repeats)
    if not options.json:
        show_table(columns, rows)
    print(json.dumps(summary | ({"columns": list(columns), "rows": rows} if options.json else {})))
    save(options.save, options.bench, columns, rows, notes=f"{repeats} repeats, {notes}")


if __name__ == "__main__":
    main()
