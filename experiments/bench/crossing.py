"""Measure how often the interval of `compile`'s agreement holds the agreement of the saved judge.

    python experiments/bench/crossing.py simulated [--repeats 200] [--output DIR]
    python experiments/bench/crossing.py tables READINGS [--draws 25] [--output DIR]
    python experiments/bench/crossing.py scores READINGS [--draws 60] [--output DIR]

simulated: 20 signals of a text's quality, three strengths, documents of two rows; the judge's weights are learnt from
some labels, and its Q is taken on 1,500 other rows. Three ways: a quarter of the documents is held out, every row is
judged by folds once, or five times over (`optimizers.crossing`).

tables: readings of rows that people rated (a folder of .npz files: names, values, groups, scores, states/NAME). Labels
are whole documents drawn at random, the other rows tell the judge's Q; since these are few, an interval counts as right
where its end and theirs, added as errors are, hold the difference.

scores: the interval that a judge states of its own scores, for few labels, on the same tables.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.objectives import Q
from judgesmith.agreement.resampling import Estimate, Range
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import Split, group_folds, holdout_split
from judgesmith.errors import JudgesmithError
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.crossing import FOLDS, RUNS, crossed, on_one_scale
from judgesmith.optimizers.examples import agreement, examples_of
from judgesmith.optimizers.fitting.outcome import COVERAGES, fit_sureness
from judgesmith.optimizers.fitting.readings import nested, weigh
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import LinearHead, Readings
from judgesmith.signatures.values import Scale

Vector = NDArray[np.float64]
SIGNALS = 20
NEW = 1500
#: How much of a text's quality each signal has.
LOADS = np.array([0.7, 0.6, 0.5, 0.4, 0.3] + [0.1] * 5 + [0.0] * 10)
STRENGTHS = {"strong": 1.0, "weak": 0.4, "none": 0.0}
SCALE = Scale(0, 100)
WAYS = ("held out", "folds", "folds, five times")


def labelled(groups: Sequence[Any], scores: Vector) -> Labels:
    """Return labels with made-up texts for these groups and scores."""
    rows = tuple(
        Row(
            id=str(n),
            output=f"Output {n}.",
            source=f"Source {group}.",
            doc_id=str(group),
            group=str(group),
            scores={"": float(score)},
        )
        for n, (group, score) in enumerate(zip(groups, scores, strict=True))
    )
    return Labels(rows, "", (SCALE.low, SCALE.high))


def fitted(table: Readings, scores: Vector) -> LinearHead:
    """Fit a head without experience."""
    return weigh(table, scores, Experience()).head


def reached(percents: Vector, labels: Labels, seed: int) -> Estimate:
    """Return the Q of scores with its interval, from 300 resamples."""
    found = agreement(
        percents, examples_of(labels), objective=Q(), seed=seed, rounds=300
    )
    return Estimate(found.value, found.low, found.high)


def part(
    table: Readings, split: Split
) -> tuple[LinearHead, NDArray[np.intp], NDArray[np.intp]]:
    """Return the head fitted to the training rows, and the places of both sides."""
    train, held = (
        np.array([int(row.id) for row in side.rows])
        for side in (split.train, split.heldout)
    )
    return fitted(table.rows(train), split.train.scores), train, held


def by_folds(table: Readings, labels: Labels, seed: int) -> Estimate:
    """Return the estimate of one run of folds."""
    splits = group_folds(labels, k=FOLDS, seed=seed)
    sides = []
    for split in splits:
        head, train, held = part(table, split)
        sides.append(
            (head(table.rows(train)), np.clip(head(table.rows(held)), 0.0, 100.0))
        )
    rows = tuple(row for split in splits for row in split.heldout.rows)
    return reached(on_one_scale(sides), Labels(rows, "", labels.scale), seed)


def estimated(
    table: Readings, labels: Labels, seed: int
) -> list[tuple[Estimate, LinearHead]]:
    """By each way an estimate, and the judge that it is of."""
    split = holdout_split(labels, share=0.25, seed=seed)
    head, _, held = part(table, split)
    runs = [by_folds(table, labels, seed + 1_000_003 * run) for run in range(RUNS)]
    whole = fitted(table, labels.scores)
    return [
        (
            reached(np.clip(head(table.rows(held)), 0.0, 100.0), split.heldout, seed),
            head,
        ),
        (crossed(runs[:1], Range.of("q")), whole),
        (crossed(runs, Range.of("q")), whole),
    ]


def z(value: float) -> float:
    """Return a Q on the scale of atanh, where its spread hardly depends on its value."""
    return float(np.arctanh(np.clip(value / 3, -0.995, 0.995)))


def held(estimate: Estimate, truth: Estimate) -> bool:
    """Return True if the interval holds the truth, which is an estimate itself; a missing interval does not."""
    if np.isnan(estimate.low):
        return False
    below = z(truth.value) < z(estimate.value)
    ends = (estimate.low, truth.high) if below else (estimate.high, truth.low)
    own, other = (
        abs(z(end) - z(one.value))
        for end, one in zip(ends, (estimate, truth), strict=True)
    )
    return abs(z(truth.value) - z(estimate.value)) <= math.hypot(own, other) + 1e-9


def world(rng: np.random.Generator, rows: int, load: Vector) -> tuple[Readings, Vector]:
    """Signals and human scores of rows, two a document."""
    document = np.repeat(np.arange(rows // 2 + 1), 2)[:rows]
    quality = (
        np.sqrt(0.7) * rng.normal(size=rows)
        + np.sqrt(0.3) * rng.normal(size=rows)[document]
    )
    own = np.sqrt(0.3) * rng.normal(size=(rows, SIGNALS))[document] + np.sqrt(
        0.7
    ) * rng.normal(size=(rows, SIGNALS))
    rated = np.clip(
        np.round(3 + 1.2 * (0.8 * quality + 0.6 * rng.normal(size=rows))), 1, 5
    )
    names = tuple(f"surface.{n}" for n in range(SIGNALS))
    return Readings(
        names, load * quality[:, None] + own, tuple(document.tolist())
    ), 25.0 * (rated - 1)


Figures = list[tuple[float, float, float, float]]  # covered, width, estimate, truth


def row_of(figures: Figures) -> list[Any]:
    """Return the means of truth, cover, width and bias, and the root mean square error."""
    covered, width, estimate, truth = np.array(figures).T
    off = float(np.sqrt(np.mean((estimate - truth) ** 2)))
    return [
        float(truth.mean()),
        float(covered.mean()),
        float(np.nanmean(width)),
        float((estimate - truth).mean()),
        off,
    ]


def simulated(repeats: int) -> list[list[Any]]:
    """Return the table of simulated signals, by number of labels, strength and way."""
    table = []
    for count in (8, 12, 20, 40, 80, 160):
        for name, strength in STRENGTHS.items():
            found: dict[str, Figures] = {way: [] for way in WAYS}
            for repeat in range(min(repeats, repeats * 40 // count)):
                rng = np.random.default_rng([repeat, count, int(10 * strength)])
                signals, scores = world(rng, count, LOADS * strength)
                new, others = world(rng, NEW, LOADS * strength)
                try:
                    estimates = estimated(
                        signals, labelled(signals.groups, scores), repeat
                    )
                except JudgesmithError:  # all labels alike
                    continue
                for way, (estimate, head) in zip(WAYS, estimates, strict=True):
                    truth = agreement(
                        head(new),
                        examples_of(labelled(new.groups, others)),
                        objective=Q(),
                        seed=0,
                        rounds=0,
                    )
                    exact = Estimate(truth.value, truth.value, truth.value)
                    inside = held(estimate, exact)
                    found[way].append(
                        (
                            inside,
                            estimate.high - estimate.low,
                            estimate.value,
                            truth.value,
                        )
                    )
            for way, figures in found.items():
                table.append([count, name, way, len(figures), *row_of(figures)])
                print(*table[-1][:4], *(f"{x:.3f}" for x in table[-1][4:]), flush=True)
    return table


def tables_in(folder: Path) -> list[tuple[str, Readings, Vector]]:
    """Return the tables of readings in a folder, with human scores in percent."""
    found = []
    for path in sorted(folder.glob("*.npz")):
        data = np.load(path)
        states = {
            name.removeprefix("states/"): data[name]
            for name in data.files
            if name.startswith("states/")
        }
        names = tuple(data["names"].tolist())
        groups = tuple(data["groups"].tolist())
        scores = data["scores"].astype(float)
        scores = 100 * (scores - scores.min()) / np.ptp(scores)
        found.append(
            (
                path.name.split(".qwen")[0],
                Readings(names, data["values"], groups, states),
                scores,
            )
        )
    return found


def drawn(
    groups: Sequence[Any], count: int, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of documents drawn until there are enough of them, and the others."""
    names = list(dict.fromkeys(groups))
    rows = list[int]()
    for place in np.random.default_rng([seed, count]).permutation(len(names)):
        if len(rows) < count:
            rows += [n for n, group in enumerate(groups) if group == names[place]]
    return np.array(rows), np.setdiff1d(np.arange(len(groups)), rows)


def one_each(
    groups: Sequence[Any], count: int, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw one row of each of some documents; return it with all rows of the others."""
    rng = np.random.default_rng([seed, count])
    codes = np.unique(np.array(groups), return_inverse=True)[1]
    chosen = rng.permutation(codes.max() + 1)[:count]
    rows = np.array([rng.choice(np.flatnonzero(codes == code)) for code in chosen])
    return rows, np.flatnonzero(~np.isin(codes, chosen))


def on_tables(folder: Path, draws: int) -> list[list[Any]]:
    """Return the table of recorded readings, by set, number of labels and way."""
    table = []
    for name, readings, scores in tables_in(folder):
        if (
            len(set(readings.groups)) < 30
        ):  # too few documents to draw from, and to tell the truth by
            continue
        for count in (20, 40):
            found: dict[str, Figures] = {way: [] for way in WAYS}
            for draw in range(draws):
                rows, others = drawn(readings.groups, count, draw)
                some = readings.rows(rows)
                rest = readings.rows(others)
                try:
                    estimates = estimated(
                        some, labelled(some.groups, scores[rows]), draw
                    )
                except JudgesmithError:
                    continue
                for way, (estimate, head) in zip(WAYS, estimates, strict=True):
                    truth = reached(
                        np.clip(head(rest), 0.0, 100.0),
                        labelled(rest.groups, scores[others]),
                        draw,
                    )
                    inside = held(estimate, truth)
                    found[way].append(
                        (
                            inside,
                            estimate.high - estimate.low,
                            estimate.value,
                            truth.value,
                        )
                    )
            for way, figures in found.items():
                if figures:
                    table.append([name, count, way, len(figures), *row_of(figures)])
                    print(
                        *table[-1][:4], *(f"{x:.3f}" for x in table[-1][4:]), flush=True
                    )
    return table


def together(rows: list[list[Any]]) -> list[list[Any]]:
    """Return the means over all sets, each by its draws, and below them the sets with 40 labels by the last way."""
    means = list[list[Any]]()
    for count, way in ((count, way) for count in (20, 40) for way in WAYS):
        some = [row for row in rows if row[1:3] == [count, way]]
        draws = np.array([row[3] for row in some])
        figures = np.array([row[4:] for row in some], float)
        figures[:, -1] **= 2
        weighted = np.where(np.isnan(figures), 0.0, draws[:, None])
        mean = (np.nan_to_num(figures) * weighted).sum(axis=0) / weighted.sum(axis=0)
        means.append(
            [
                f"all {len(some)}",
                count,
                way,
                int(draws.sum()),
                *mean[:-1].tolist(),
                float(mean[-1] ** 0.5),
            ]
        )
    return means + [row for row in rows if row[1:3] == [40, WAYS[-1]]]


def own_intervals(folder: Path, draws: int) -> list[list[Any]]:
    """Over all tables: the share of other rows whose human score the judge's own interval holds."""
    table = []
    for count in (3, 5, 8, 12, 20, 40):
        found = []
        for _, readings, scores in tables_in(folder):
            for draw in range(draws if len(set(readings.groups)) >= count + 10 else 0):
                rows, others = one_each(readings.groups, count, draw)
                found.append(
                    held_scores(
                        readings.rows(rows),
                        scores[rows],
                        readings.rows(others),
                        scores[others],
                    )
                )
        covered, width = np.array(found).transpose(1, 0, 2)
        cells = [
            [float(c), float(w)]
            for c, w in zip(covered.mean(axis=0), width.mean(axis=0), strict=True)
        ]
        table.append([count, len(found), *cells])
        print(count, len(found), cells, flush=True)
    return table


def held_scores(
    some: Readings, scores: Vector, rest: Readings, others: Vector
) -> tuple[list[float], list[float]]:
    """By coverage, the share of the other rows that the intervals hold, and their width as a share of the scale."""
    labels = labelled(some.groups, scores)
    sides = list[tuple[Vector, Vector, Vector, list[str]]]()
    for split in group_folds(labels, k=FOLDS, seed=0):
        percents, held_percents, calibration = scored(some, split)
        mapped = np.array([calibration(p) for p in held_percents.tolist()])
        sides.append(
            (held_percents, mapped, split.heldout.scores, split.heldout.groups)
        )
    percents, mapped, people = (
        np.concatenate([side[k] for side in sides]) for k in range(3)
    )
    sure = fit_sureness(
        percents, mapped, people, [group for side in sides for group in side[3]], SCALE
    )
    assert sure is not None
    head = whole_head(some, scores)
    percents = np.clip(head(rest), 0.0, 100.0)
    calibration = Calibration.fit(out_of_fold(some, scores), scores, SCALE)
    shares = []
    widths = []
    for coverage in COVERAGES:
        ends = [
            sure.interval(p, calibration(p), SCALE, coverage) for p in percents.tolist()
        ]
        inside = [
            i is not None and i.low - 1e-9 <= y <= i.high + 1e-9
            for i, y in zip(ends, others.tolist(), strict=True)
        ]
        shares.append(float(np.mean(inside)))
        widths.append(
            float(np.mean([i.high - i.low for i in ends if i is not None])) / 100
        )
    return shares, widths


def scored(table: Readings, split: Split) -> tuple[Vector, Vector, Calibration]:
    """Training rows' scores out of fold, held-out rows' scores, and the map that the training rows give."""
    train, held = (
        np.array([int(row.id) for row in side.rows])
        for side in (split.train, split.heldout)
    )
    head = whole_head(table.rows(train), split.train.scores)
    percents = out_of_fold(table.rows(train), split.train.scores)
    return (
        percents,
        np.clip(head(table.rows(held)), 0.0, 100.0),
        Calibration.fit(percents, split.train.scores, SCALE),
    )


def whole_head(table: Readings, scores: Vector) -> LinearHead:
    """Fit a head as compiling does: below three groups nothing is learnt, and the direct score stays."""
    if len(set(table.groups)) < 3 or len(table) < 3:
        return LinearHead(0.0, {"direct": (0.0, 1.0)})
    return fitted(table, scores)


def out_of_fold(table: Readings, scores: Vector) -> Vector:
    """Score each row by a head fitted without its fold; by the direct score below three groups."""
    if len(set(table.groups)) < 3 or len(table) < 3:
        return np.nan_to_num(table.columns(["direct"])[:, 0], nan=50.0)
    return np.clip(nested(fitted, table, scores), 0.0, 100.0)


FIGURES = {
    "draws": "{:d}",
    "Q": "{:.2f}",
    "covered": "{:.3f}",
    "width": "{:.2f}",
    "bias": "{:+.2f}",
    "error": "{:.2f}",
}
COLUMNS: dict[str, dict[str, str]] = {
    "simulated": {"labels": "{:d}", "signals": "{}", "way": "{}", **FIGURES},
    "tables": {"set": "{}", "labels": "{:d}", "way": "{}", **FIGURES},
    "scores": {
        "labels": "{:d}",
        "draws": "{:d}",
        **{
            f"{coverage:.0%}: covered, width": "{:.2f}, {:.2f}"
            for coverage in COVERAGES
        },
    },
}
NAMES = {
    "simulated": "crossing-simulated",
    "tables": "crossing-tables",
    "scores": "crossing-scores",
}


def main(arguments: Sequence[str]) -> None:
    """Run one of the three parts and save its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=list(NAMES))
    parser.add_argument("readings", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--draws", type=int, default=25)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    runs: dict[str, Callable[[], list[list[Any]]]] = {
        "simulated": lambda: simulated(options.repeats),
        "tables": lambda: together(on_tables(options.readings, options.draws)),
        "scores": lambda: own_intervals(options.readings, options.draws),
    }
    rows = runs[options.what]()
    if options.what == "simulated":
        settings = f"--repeats {options.repeats}"
    else:
        settings = f"READINGS --draws {options.draws}"
    command = f"python experiments/bench/crossing.py {options.what} {settings}"
    save(
        options.output,
        NAMES[options.what],
        COLUMNS[options.what],
        rows,
        commands=[command],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
