"""What a rater term in the head is worth: labels of strict and mild people, with and without the term.

    python experiments/bench/raters.py [--data FOLDER] [--repeats 100] [--results FOLDER]

Simulated: 40 labels by 8 raters, 20 readings of which 5 say something; ICC is the raters' share of the variance of
single ratings, and agreement is with quality, which has no severity in it, on 400 other rows. "own material": each
rater rates texts that differ from the others' by a shift of all readings and of quality.

LLM-Rubric: 40 labels of 223 dialogues by half of the raters, drawn at random; the readings are GPT-3.5's nine recorded
scores and the output's length. Agreement is with the ratings of other raters, with other rows of the same raters, and
within raters (the mean over raters by their rows). No rater's name is used where a row is scored.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.raters import between_raters, by_person
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.gaussian import gaussian
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Readings

Vector = NDArray[np.float64]
LABELS = 40
RATERS = 8
ROWS = 400
READINGS = 20
TELLING = 5
CONDITIONS = (
    (0.0, False),
    (0.2, False),
    (0.4, False),
    (0.57, False),
    (0.0, True),
    (0.2, True),
    (0.4, True),
)


def q(scores: Vector, human: Vector) -> float:
    """Return Q."""
    return float(CorrelationSum()(scores, human).q)


def table(values: Vector, raters: Sequence[tuple[str, ...]]) -> Readings:
    """Return readings of rows of different documents."""
    names = tuple(f"r.{i}" for i in range(values.shape[1]))
    return Readings(names, values, tuple(range(len(values))), raters=tuple(raters))


def both(train: Readings, labels: Vector, rows: Readings) -> list[Vector]:
    """Scores of some rows by a head without the term, and with it."""
    plain = Readings(train.names, train.values, train.groups)
    fits = (
        gaussian(one, labels, Experience(), own=None).head for one in (plain, train)
    )
    return [head(rows) for head in fits]


def simulated(
    rng: np.random.Generator, icc: float, *, own: bool
) -> tuple[float, float]:
    """Q without the term and with it."""
    rater = rng.permutation(np.arange(LABELS) % RATERS)
    x = rng.normal(size=(LABELS + ROWS, READINGS))
    material = 0.7 * rng.normal(size=(RATERS, READINGS))
    if own:
        x[:LABELS] += material[rater]
    weights = np.zeros(READINGS)
    weights[:TELLING] = rng.normal(size=TELLING) / np.sqrt(TELLING)
    quality = x @ weights + 0.7 * rng.normal(size=len(x))
    spread = np.sqrt(icc / (1 - icc) * 1.5)  # ratings vary by 1.5 within a rater
    labels = quality[:LABELS] + spread * rng.normal(size=RATERS)[rater]
    names = [(f"p{one}",) for one in rater]
    rows = table(x[LABELS:], [])
    scores = both(table(x[:LABELS], names), labels, rows)
    return q(scores[0], quality[LABELS:]), q(scores[1], quality[LABELS:])


def within(scores: Vector, human: Vector, raters: Vector) -> float:
    """Q within single raters, averaged by their rows."""
    found = [
        (q(scores[raters == one], human[raters == one]), int((raters == one).sum()))
        for one in np.unique(raters)
        if (raters == one).sum() > 3
    ]
    values, sizes = np.array(found).T
    return float(np.average(values, weights=sizes))


def spoken(gains: Vector) -> list[float]:
    """The mean and its 95 % interval over repeats."""
    half = 1.96 * float(np.std(gains, ddof=1)) / np.sqrt(len(gains))
    mean = float(gains.mean())
    return [mean, mean - half, mean + half]


def of_simulation(repeats: int) -> list[list[object]]:
    """Return a line for each condition."""
    rows: list[list[object]] = []
    for icc, own in CONDITIONS:
        rng = np.random.default_rng([int(100 * icc), own])
        found = np.array([simulated(rng, icc, own=own) for _ in range(repeats)])
        gains = spoken(found[:, 1] - found[:, 0])
        material = "own" if own else "the same"
        rows.append([icc, material, *found.mean(axis=0).tolist(), gains])
        print(rows[-1], flush=True)
    return rows


def rubric(records: list[dict[str, Any]]) -> Vector:
    """GPT-3.5's recorded scores of each row, NaN where there is none, and the output's length."""
    judges = sorted({name for record in records for name in record["judges"]})
    values = []
    for record in records:
        row = [record["judges"].get(name, math.nan) for name in judges]
        values.append([*row, math.log1p(len(record["output"].split()))])
    return np.array(values, float)


def gains(
    values: Vector, human: Vector, raters: Vector, repeats: int, seed: int
) -> Vector:
    """Return Q without and with the term for each draw of labels by half of the raters.

    It is that on rows of the other raters, on other rows of the same raters, and within all raters.
    """
    rated = np.flatnonzero(~np.isnan(human))
    found = []
    rng = np.random.default_rng(seed)
    people = np.unique(raters)
    for _ in range(repeats):
        half = rng.permutation(people)[: len(people) // 2 + 1]
        order = rng.permutation(rated)
        ours = np.isin(raters[order], half)
        some = order[ours][:LABELS]
        same = order[ours][LABELS:]
        new = order[~ours]
        names = [(str(name),) for name in raters[some]]
        train = table(values[some], names)
        line = list[float]()
        for rows in (new, same):
            scores = both(train, human[some], table(values[rows], []))
            line += [q(one, human[rows]) for one in scores]
        rest = np.concatenate([same, new])
        scores = both(train, human[some], table(values[rest], []))
        line += [within(one, human[rest], raters[rest]) for one in scores]
        found.append(line)
    return np.array(found)


def of_rubric(path: Path, repeats: int) -> list[list[object]]:
    """Return a line for each aspect."""
    records = list(map(json.loads, path.read_text("utf-8").splitlines()))
    raters = np.array([record["group"] for record in records])
    values = rubric(records)
    rows = list[list[object]]()
    for number in range(9):
        human = np.array([r["scores"].get(f"q{number}", math.nan) for r in records])
        found = gains(values, human, raters, repeats, number)
        _, by = by_person(human[:, None].tolist(), raters[:, None].tolist())
        new, same, inside = (spoken(found[:, k + 1] - found[:, k]) for k in (0, 2, 4))
        means = found.mean(axis=0).tolist()
        icc = between_raters(by)
        without = [means[0], means[2], means[4]]
        line = [f"q{number}", icc, without[0], new, without[1], same, without[2]]
        rows.append([*line, inside])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run both parts, or one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", choices=("simulated", "llm_rubric"))
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    command = f"python experiments/bench/raters.py --repeats {options.repeats} --only"
    gain = "{:+.3f} [{:+.3f}, {:+.3f}]"
    if options.only != "llm_rubric":
        save(
            options.results,
            "raters_simulated",
            {
                "ICC": "{:.2f}",
                "raters' material": "",
                "without": "{:.2f}",
                "with": "{:.2f}",
                "gain in Q": gain,
            },
            of_simulation(options.repeats),
            commands=[f"{command} simulated"],
            repeats=options.repeats,
        )
    if options.data is None or options.only == "simulated":
        return
    save(
        options.results,
        "raters_llm_rubric",
        {
            "aspect": "",
            "ICC": "{:.2f}",
            "other raters": "{:.2f}",
            "gain": gain,
            "the same raters": "{:.2f}",
            "gain ": gain,
            "within raters": "{:.2f}",
            "gain  ": gain,
        },
        of_rubric(options.data / "strong/llm_rubric.jsonl", options.repeats),
        commands=[f"{command} llm_rubric --data data/"],
        repeats=options.repeats,
    )


if __name__ == "__main__":
    main()
