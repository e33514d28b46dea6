"""Which readings carry human ratings, and what a judge that weighs them gains from few labels.

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

from ...agreement.resampling import Measure
from ...agreement.significance import Difference, holm, paired_bootstrap
from ...datasets.loading import read_labels
from ...datasets.records import Labels
from ...errors import OptionError
from ...optimizers.examples import examples_of, groups, humans, item_of, score_rows
from ...optimizers.fitting.readings import agreement, nested, weigh
from ...programs.models.lm import LanguageModel
from ...programs.progress import Progress
from ...programs.readings.experience import Experience
from ...programs.readings.head import LinearHead, Readings, Vector
from ...programs.readings.judge import DIRECT, FEWEST_GROUPS, ReadingsJudge, table_of

#: Fewer rows to measure on say nothing.
FEWEST_LEFT = 20
#: Draws for which the nested Q, which takes five choices more, is computed, and draws of seen and unseen systems.
NESTED_DRAWS = 10
SYSTEM_DRAWS = 20


@dataclass(frozen=True)
class Draws:
    """Q on the rows that a draw left over, by draw. chosen: of the judge that compiling would make. plain: of the same
    without experience. gap: Q of the mean of each row's scores over the draws that left it, less zero-shot's, with the
    paired bootstrap over groups. within, without_length: (zero-shot, chosen), the mean Pearson correlation within
    groups, and that of what the number of words does not explain. below: share of draws below zero-shot. told: the Q
    that compiling would report from the labels alone (nested), less the one on the rows left over, by draw; of the
    first draws only."""

    labels: int
    zero_shot: Vector
    chosen: Vector
    plain: Vector
    gap: Difference
    within: tuple[float, float]
    without_length: tuple[float, float]
    told: Vector

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
            "nested_less_fresh": told(self.told),
            "without_experience": told(self.plain),
        }


@dataclass(frozen=True)
class Systems:
    """Labels drawn from half of the systems: Q on other groups' outputs of these systems (seen), and of the other half
    (unseen), of the weighed judge and of zero-shot on the unseen; means over draws."""

    labels: int
    seen: float
    unseen: float
    zero_shot: float

    def to_dict(self) -> dict[str, Any]:
        scores = {name: _short(getattr(self, name)) for name in ("seen", "unseen", "zero_shot")}
        return {"labels": self.labels} | scores


@dataclass(frozen=True)
class SetFound:
    """What was found for one set of labels. alone: reading -> Q over all rows, without a label; NaN where it is
    constant. within: the same within groups (the mean of the groups' Pearson correlations). systems: how it holds for
    systems without a label; None where rows name too few systems."""

    name: str
    rows: int
    groups: int
    alone: Mapping[str, float]
    within: Mapping[str, float]
    draws: tuple[Draws, ...]
    systems: Systems | None = None

    def at(self, labels: int) -> Draws | None:
        return next((d for d in self.draws if d.labels == labels), None)

    @property
    def main(self) -> Draws | None:
        """The draws of 40 labels, or of the largest number."""
        return self.at(40) or (self.draws[-1] if self.draws else None)

    def to_dict(self) -> dict[str, Any]:
        main, usual = self.main, self.at(40)
        return {
            "zero_shot": None if main is None else _short(main.zero_shot.mean()),
            "default_40": None if usual is None else _short(usual.chosen.mean()),
            "below_share": None if main is None else _short(main.below),
            "rows": self.rows,
            "groups": self.groups,
            "alone": {name: _short(q) for name, q in self.alone.items()},
            "within": {name: _short(q) for name, q in self.within.items()},
            "systems": None if self.systems is None else self.systems.to_dict(),
            "sizes": [d.to_dict() for d in self.draws],
        }


@dataclass(frozen=True)
class Found:
    """All sets of a study."""

    sets: tuple[SetFound, ...]
    model: str

    def p_values(self, labels: int = 40) -> dict[str, float]:
        """p of each set's gap at this number of labels, Holm-corrected over the sets."""
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


@dataclass(frozen=True)
class Known:
    """Labelled rows as they were read: the table, human scores in percent, each row's system ("" where it has none),
    and how many other rows could not be read."""

    table: Readings
    scores: Vector
    systems: tuple[str, ...]
    failed: int = 0


def read_table(judge: ReadingsJudge, labels: Labels, lm: LanguageModel, progress: Progress) -> Known:
    """Read labelled rows, each once. Raises OptionError where none can be read."""
    examples = examples_of(labels)
    judge.set_lm(lm)
    judge.keeps = True
    progress.stage(f"{labels.aspect}: direct scores", len(examples))
    direct = score_rows(judge, examples, progress).percents
    progress.stage(f"{labels.aspect}: readings", len(examples))
    read = judge.read_many([item_of(e) for e in examples], lm, progress.step)
    present = [i for i, row in enumerate(read) if row is not None]
    if not present:
        raise OptionError(f"no row of {labels.origin} could be read by {judge.opened(lm).reader.name}")
    members = groups(examples)
    table = table_of([row for row in read if row is not None], direct[present].tolist(), [members[i] for i in present])
    systems = tuple(labels.rows[i].system or "" for i in present)
    return Known(table, humans(examples)[present], systems, len(examples) - len(present))


def whole_groups(members: Sequence[Any], rows: int, seed: Sequence[int] | int) -> list[int]:
    """Numbers of the rows of whole groups in a random order, until there are enough."""
    codes = np.unique([str(member) for member in members], return_inverse=True)[1]
    taken: list[int] = []
    for group in np.random.default_rng(seed).permutation(int(codes.max()) + 1):
        if len(taken) >= rows:
            break
        taken += np.flatnonzero(codes == group).tolist()
    return taken


def draw_labels(members: Sequence[Any], labels: int, draw: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the rows that are learnt from and of those that are left: whole groups; of the last one only as many
    rows as are missing, its other rows are in neither part."""
    train = np.array(whole_groups(members, labels, [draw, 5])[:labels], dtype=np.intp)
    of_train = {str(members[i]) for i in train}
    return train, np.flatnonzero([str(member) not in of_train for member in members])


def study_table(
    name: str,
    known: Known,
    experience: Experience,
    *,
    sizes: Sequence[int] = (20, 40, 80),
    draws: int = 50,
    step: Callable[[], None] = lambda: None,
) -> SetFound:
    """Every reading alone, and what weighing them gains, for several numbers of labels. Sizes that leave too few rows,
    or whose labels are of too few groups, are left out."""
    table, scores = known.table, known.scores
    alone, within = {}, {}
    for column, reading in enumerate(table.names):
        values = np.nan_to_num(table.values[:, column])
        alone[reading] = agreement(values, scores)
        within[reading] = _within(values, scores, table.groups)
    measured = [_draws(table, scores, experience, size, draws, step) for size in sizes]
    done = tuple(one for one in measured if one is not None)
    labels = min((one.labels for one in done), key=lambda size: abs(size - 40), default=40)
    systems = _systems(known, experience, labels, min(draws, SYSTEM_DRAWS))
    return SetFound(name, len(table), len(set(table.groups)), alone, within, done, systems)


def _draws(
    table: Readings, scores: Vector, experience: Experience, labels: int, draws: int, step: Callable[[], None]
) -> Draws | None:
    zero_shot, chosen, plain, reported = [], [], [], []

    def fitted(rows: Readings, y: Vector) -> LinearHead:
        return weigh(rows, y, experience).head

    total, times = np.zeros(len(table)), np.zeros(len(table))
    direct = np.nan_to_num(table.columns([DIRECT])[:, 0])
    for draw in range(draws):
        train, left = draw_labels(table.groups, labels, draw)
        step()
        if len(train) < labels or len(left) < FEWEST_LEFT or len({table.groups[i] for i in train}) < FEWEST_GROUPS:
            return None
        known, rest = table.rows(train), table.rows(left)
        given = fitted(known, scores[train])(rest)
        total[left] += given
        times[left] += 1
        zero_shot.append(agreement(direct[left], scores[left]))
        chosen.append(agreement(given, scores[left]))
        plain.append(agreement(weigh(known, scores[train], Experience()).head(rest), scores[left]))
        if draw < NESTED_DRAWS:
            own = nested(fitted, known, scores[train], seed=draw)
            reported.append(agreement(own, scores[train]) - chosen[-1])
    seen = np.flatnonzero(times)
    mean, own_score, human = total[seen] / times[seen], direct[seen], scores[seen]
    members = [str(table.groups[i]) for i in seen]
    words = table.rows(seen).columns(["surface.words"])[:, 0] if "surface.words" in table.names else np.zeros(len(seen))
    gap = paired_bootstrap(mean, own_score, Measure(human, documents=members, level="pooled"), rounds=2000, seed=0)
    return Draws(
        labels,
        np.array(zero_shot),
        np.array(chosen),
        np.array(plain),
        gap,
        (_within(own_score, human, members), _within(mean, human, members)),
        (_without(own_score, human, words), _without(mean, human, words)),
        np.array(reported),
    )


def _systems(known: Known, experience: Experience, labels: int, draws: int) -> Systems | None:
    table, scores = known.table, known.scores
    of_row = np.array(known.systems)
    names = sorted(set(known.systems) - {""})
    if len(names) < 4 or len(set(table.groups)) < 4:
        return None
    direct = np.nan_to_num(table.columns([DIRECT])[:, 0])
    result = []
    for draw in range(draws):
        half = np.random.default_rng([draw, 9]).permutation(names)[: len(names) // 2]
        seen = np.flatnonzero(np.isin(of_row, half))
        train, left = draw_labels([table.groups[i] for i in seen], labels, draw)
        train, left = seen[train], seen[left]
        learnt_from = {table.groups[i] for i in train}
        rest = [i for i, group in enumerate(table.groups) if of_row[i] not in half and group not in learnt_from]
        enough = len(train) >= min(labels, FEWEST_LEFT) and len(learnt_from) >= FEWEST_GROUPS
        if not enough or min(len(left), len(rest)) < FEWEST_LEFT:
            continue
        head = weigh(table.rows(train), scores[train], experience).head
        result.append(
            [agreement(head(table.rows(rows)), scores[rows]) for rows in (left, np.array(rest))]
            + [agreement(direct[rest], scores[rest])]
        )
    return Systems(labels, *np.mean(result, axis=0).tolist()) if result else None


def _without(values: Vector, scores: Vector, words: Vector) -> float:
    """Pearson's correlation of what a straight line over `words` leaves."""
    line = np.column_stack([np.ones(len(words)), words])
    rest = [part - line @ np.linalg.lstsq(line, part, rcond=None)[0] for part in (values, scores)]
    return float(np.corrcoef(*rest)[0, 1]) if min(map(np.ptp, rest)) > 0 else math.nan


def _within(values: Vector, scores: Vector, members: Sequence[Any]) -> float:
    result = []
    codes = np.unique([str(member) for member in members], return_inverse=True)[1]
    for group in range(int(codes.max()) + 1):
        rows = codes == group
        if rows.sum() > 2 and np.ptp(values[rows]) > 0 and np.ptp(scores[rows]) > 0:
            result.append(float(np.corrcoef(values[rows], scores[rows])[0, 1]))
    return float(np.mean(result)) if result else math.nan


def _short(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def _draw(sets: Sequence[SetFound], path: Path) -> None:
    from ...figures import figure, literal, write_figure

    shown = [(one, main) for one in sets if (main := one.main)]
    with figure(7, 1.2 + 0.45 * max(1, len(shown))) as drawn:
        axes = drawn.subplots()
        for place, (_, found) in enumerate(shown):
            axes.plot([found.zero_shot.mean(), found.chosen.mean()], [place, place], color="0.7", zorder=1)
            axes.errorbar(found.chosen.mean(), place, xerr=found.chosen.std(), fmt="o")
            axes.plot(found.zero_shot.mean(), place, "o", mfc="white", color="0.3")
        axes.set_yticks(range(len(shown)), [literal(one.name) for one, _ in shown])
        axes.invert_yaxis()
        axes.set_xlabel(
            "Q on rows left over: zero-shot (open), readings weighed by 40 labels (filled, ± sd over draws)"
        )
        write_figure(path, drawn)


def gather(
    files: Sequence[Path], aspects: Sequence[str], *, columns: Mapping[str, str], rows: int | None
) -> list[tuple[str, Labels]]:
    """Sets of labels by name: each file with each aspect, at most `rows` rows of each in whole groups. Raises
    LabelsError, OptionError."""
    result = []
    for file in files:
        for aspect in aspects or (None,):
            labels = read_labels(file, aspect=aspect, columns=dict(columns))
            name = f"{file.stem}/{labels.aspect}" if aspects else file.stem
            kept = range(len(labels)) if rows is None else sorted(whole_groups(labels.groups, rows, 11))
            result.append((name, labels.subset(kept)))
    return result
