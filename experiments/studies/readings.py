"""Which readings carry people's scores, and what a judge that weighs them gains from few labels.

Everything is read once and kept; the draws of labels cost no call. A draw takes whole groups at random until there are
enough labels, fits on them what compiling fits, and measures it on all other groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...datasets.loading import read_labels
from ...datasets.records import Labels
from ...errors import OptionError
from ...optimizers.agreement.significance import Difference, holm, paired_bootstrap
from ...optimizers.examples import examples_of, groups, humans, item_of, score_rows
from ...optimizers.fitting.readings import weigh
from ...optimizers.fitting.validation import agreement
from ...optimizers.progress import Progress
from ...programs.models.lm import LanguageModel
from ...programs.readings.head import Readings, Vector
from ...programs.readings.judge import DIRECT, ReadingsJudge, table_of

__all__ = ["Draws", "Found", "SetFound", "draw_labels", "gather", "read_table", "study_table"]

#: Fewer rows to measure on say nothing.
FEWEST_LEFT = 20


@dataclass(frozen=True)
class Draws:
    """Q on the rows that a draw left over, by draw. chosen: of the judge that compiling would make. each: of every head
    that it is made of. gap: Q of the mean of each row's scores over the draws that left it, less zero-shot's, with the
    paired bootstrap over groups. within, without_length: (zero-shot, chosen), the mean Pearson correlation within
    groups, and that of what the number of words does not explain. below: share of draws below zero-shot."""

    labels: int
    zero_shot: Vector
    chosen: Vector
    each: Mapping[str, Vector]
    gap: Difference
    within: tuple[float, float]
    without_length: tuple[float, float]

    @property
    def below(self) -> float:
        return float(np.mean(self.chosen < self.zero_shot))

    def to_dict(self) -> dict[str, Any]:
        def told(values: Vector) -> dict[str, float | None]:
            return {"q": _short(values.mean()), "sd": _short(values.std())}

        return {
            "labels": self.labels,
            "draws": len(self.chosen),
            "zero_shot": told(self.zero_shot),
            "default": told(self.chosen),
            "below_share": _short(self.below),
            "difference": {name: _short(getattr(self.gap, name)) for name in ("value", "low", "high", "p")},
            "within_groups": [_short(r) for r in self.within],
            "without_length": [_short(r) for r in self.without_length],
            "each": {name: told(values) for name, values in self.each.items()},
        }


@dataclass(frozen=True)
class SetFound:
    """What was found for one set of labels. alone: reading -> Q over all rows, without a label; NaN where it is
    constant. within: the same within groups (the mean of the groups' Pearson correlations)."""

    name: str
    rows: int
    groups: int
    alone: Mapping[str, float]
    within: Mapping[str, float]
    draws: tuple[Draws, ...]

    def at(self, labels: int) -> Draws | None:
        return next((d for d in self.draws if d.labels == labels), None)

    def to_dict(self) -> dict[str, Any]:
        main = self.at(40) or (self.draws[-1] if self.draws else None)
        return {
            "zero_shot": None if main is None else _short(main.zero_shot.mean()),
            "default_40": None if self.at(40) is None or main is None else _short(main.chosen.mean()),
            "below_share": None if main is None else _short(main.below),
            "rows": self.rows,
            "groups": self.groups,
            "alone": {name: _short(q) for name, q in self.alone.items()},
            "within": {name: _short(q) for name, q in self.within.items()},
            "sizes": [d.to_dict() for d in self.draws],
        }


@dataclass(frozen=True)
class Found:
    """All sets of a study."""

    sets: tuple[SetFound, ...]
    model: str

    def p_values(self, labels: int = 40) -> dict[str, float]:
        """p of each set's gap with so many labels, Holm-corrected over the sets."""
        gaps = {one.name: main.gap.p for one in self.sets if (main := one.at(labels))}
        return dict(zip(gaps, holm(list(gaps.values())).tolist(), strict=True)) if gaps else {}

    def to_dict(self) -> dict[str, Any]:
        corrected = self.p_values()
        return {
            "model": self.model,
            "sets": {
                one.name: one.to_dict() | {"p_holm": _short(corrected.get(one.name, math.nan))} for one in self.sets
            },
        }

    def write(self, folder: Path) -> list[Path]:
        """`readings.svg`: zero-shot against the judge from 40 labels, with the spread over draws."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "readings.svg"
        _draw(self.sets, path)
        return [path]


def read_table(
    judge: ReadingsJudge, labels: Labels, lm: LanguageModel, progress: Progress
) -> tuple[Readings, Vector, int]:
    """The table of readings of labelled rows, their human scores in percent, and how many rows could not be read."""
    examples = examples_of(labels)
    judge.set_lm(lm)
    judge.keeps = True
    progress.stage(f"{labels.aspect}: direct scores", len(examples))
    direct = score_rows(judge, examples, progress).percents
    progress.stage(f"{labels.aspect}: readings", len(examples))
    read = judge.read_many([item_of(e) for e in examples], lm, progress.step)
    there = [i for i, row in enumerate(read) if row is not None]
    if not there:
        raise OptionError(f"no row of {labels.origin} could be read by {judge.opened(lm).reader.name}")
    members = groups(examples)
    table = table_of([row for row in read if row is not None], direct[there].tolist(), [members[i] for i in there])
    return table, humans(examples)[there], len(examples) - len(there)


def draw_labels(members: Sequence[Any], labels: int, draw: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the rows that are learnt from and of those that are left: whole groups in a random order until there
    are enough; of the last one only as many as are missing, its other rows are in neither part."""
    codes = np.unique([str(member) for member in members], return_inverse=True)[1]
    taken: list[int] = []
    for group in np.random.default_rng([draw, 5]).permutation(int(codes.max()) + 1):
        if len(taken) >= labels:
            break
        taken += np.flatnonzero(codes == group).tolist()
    train = np.array(taken[:labels], dtype=np.intp)
    return train, np.flatnonzero(~np.isin(codes, codes[train]))


def study_table(
    name: str,
    table: Readings,
    scores: Vector,
    *,
    sizes: Sequence[int] = (20, 40, 80),
    draws: int = 50,
    step: Callable[[], None] = lambda: None,
) -> SetFound:
    """Every reading alone, and what weighing them gains, for several numbers of labels. Sizes that leave too few rows
    are left out."""
    alone, within = {}, {}
    for column, reading in enumerate(table.names):
        values = np.nan_to_num(table.values[:, column])
        alone[reading] = agreement(values, scores)
        within[reading] = _within(values, scores, table.groups)
    measured = [_draws(table, scores, size, draws, step) for size in sizes]
    return SetFound(
        name, len(table), len(set(table.groups)), alone, within, tuple(one for one in measured if one is not None)
    )


def _draws(table: Readings, scores: Vector, labels: int, draws: int, step: Callable[[], None]) -> Draws | None:
    zero_shot, chosen = [], []
    each: dict[str, list[float]] = {}
    total, times = np.zeros(len(table)), np.zeros(len(table))
    direct = np.nan_to_num(table.columns([DIRECT])[:, 0])
    for draw in range(draws):
        train, left = draw_labels(table.groups, labels, draw)
        step()
        if len(train) < labels or len(left) < FEWEST_LEFT:
            return None
        known, rest = table.rows(train), table.rows(left)
        choice = weigh(known, scores[train], seed=draw)
        for trial in choice.trials:
            each.setdefault(trial.name, []).append(agreement(trial.head(rest), scores[left]))
        given = choice.head(rest)
        total[left] += given
        times[left] += 1
        zero_shot.append(agreement(direct[left], scores[left]))
        chosen.append(agreement(given, scores[left]))
    seen = np.flatnonzero(times)
    mean, plain, human = total[seen] / times[seen], direct[seen], scores[seen]
    members = [str(table.groups[i]) for i in seen]
    words = table.rows(seen).columns(["surface.words"])[:, 0] if "surface.words" in table.names else np.zeros(len(seen))
    gap = paired_bootstrap(mean, plain, human, documents=members, level="pooled", rounds=2000, seed=0)
    return Draws(
        labels,
        np.array(zero_shot),
        np.array(chosen),
        {name: np.array(values) for name, values in each.items()},
        gap,
        (_within(plain, human, members), _within(mean, human, members)),
        (_without(plain, human, words), _without(mean, human, words)),
    )


def _without(values: Vector, scores: Vector, words: Vector) -> float:
    """Pearson's correlation of what a straight line over `words` leaves."""
    line = np.column_stack([np.ones(len(words)), words])
    rest = [part - line @ np.linalg.lstsq(line, part, rcond=None)[0] for part in (values, scores)]
    return float(np.corrcoef(*rest)[0, 1]) if min(map(np.ptp, rest)) > 0 else math.nan


def _within(values: Vector, scores: Vector, members: Sequence[Any]) -> float:
    found = []
    codes = np.unique([str(member) for member in members], return_inverse=True)[1]
    for group in range(int(codes.max()) + 1):
        rows = codes == group
        if rows.sum() > 2 and np.ptp(values[rows]) > 0 and np.ptp(scores[rows]) > 0:
            found.append(float(np.corrcoef(values[rows], scores[rows])[0, 1]))
    return float(np.mean(found)) if found else math.nan


def _short(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def _draw(sets: Sequence[SetFound], path: Path) -> None:
    from matplotlib.figure import Figure

    from ..reports.page import write_figure
    from .tables import literal

    shown = [(one, main) for one in sets if (main := one.at(40) or (one.draws[-1] if one.draws else None))]
    figure = Figure(figsize=(7, 1.2 + 0.45 * max(1, len(shown))), layout="constrained")
    axes = figure.subplots()
    for place, (_, found) in enumerate(shown):
        axes.plot([found.zero_shot.mean(), found.chosen.mean()], [place, place], color="0.7", zorder=1)
        axes.errorbar(found.chosen.mean(), place, xerr=found.chosen.std(), fmt="o", color="C0", capsize=3)
        axes.plot(found.zero_shot.mean(), place, "o", mfc="white", color="0.3")
    axes.set_yticks(range(len(shown)), [literal(one.name) for one, _ in shown])
    axes.invert_yaxis()
    axes.set_xlabel("Q on rows left over: zero-shot (open), readings weighed by 40 labels (filled, ± sd over draws)")
    write_figure(path, figure)


def gather(
    files: Sequence[Path], aspects: Sequence[str], *, columns: Mapping[str, str], rows: int | None
) -> list[tuple[str, Labels]]:
    """Sets of labels by name: each file with each aspect, at most `rows` rows of each in whole groups. Raises
    LabelsError, OptionError."""
    found = []
    for file in files:
        for aspect in aspects or (None,):
            labels = read_labels(file, aspect=aspect, columns=dict(columns))
            name = f"{file.stem}/{labels.aspect}" if aspects else file.stem
            found.append((name, labels if rows is None else _fewer(labels, rows)))
    return found


def _fewer(labels: Labels, rows: int) -> Labels:
    codes = np.unique(labels.groups, return_inverse=True)[1]
    taken: list[int] = []
    for group in np.random.default_rng(11).permutation(int(codes.max()) + 1):
        if len(taken) >= rows:
            break
        taken += np.flatnonzero(codes == group).tolist()
    return labels.subset(sorted(taken))
