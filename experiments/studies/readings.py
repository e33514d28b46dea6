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

from ...agreement.replacement import way_to_rater
from ...agreement.resampling import Agreement, Measure
from ...agreement.significance import Difference, difference_of, holm
from ...datasets.loading import read_labels
from ...datasets.records import Labels
from ...errors import OptionError
from ...optimizers.examples import examples_of, groups, humans, item_of, score_rows
from ...optimizers.fitting.readings import agreement, nested, weigh
from ...programs.models.lm import LanguageModel
from ...programs.progress import Progress
from ...programs.readings.experience import Experience
from ...programs.readings.head import LinearHead, Matrix, Readings, Vector
from ...programs.readings.judge import DIRECT, FEWEST_GROUPS, ReadingsJudge, table_of

#: Fewer rows to measure on say nothing.
FEWEST_LEFT = 20
#: Draws for which the nested Q, which takes five choices more, is computed.
NESTED_DRAWS = 10
#: Resamples of groups, shared out among the draws.
ROUNDS = 2000


@dataclass(frozen=True)
class Draws:
    """Q on the rows that a draw left over, by draw. chosen: of the judge that compiling would make. plain: of the same
    without experience. gap: of one judge, its Q less zero-shot's; the interval and p are of a judge from other labels
    on other groups, since each resample of groups (`drawn`) is of one draw. within: (zero-shot, chosen), the
    mean Pearson correlation within groups, means over draws. below: share of draws below zero-shot. told: the Q that
    compiling would report from the labels alone (nested), less the one on the rows left over, by draw; of the first
    draws only. way: how far zero-shot and the judge are on the way from guessing to one human rater, means over draws;
    None where rows have one rating."""

    labels: int
    zero_shot: Vector
    chosen: Vector
    plain: Vector
    gap: Difference
    drawn: Vector
    within: tuple[float, float]
    told: Vector
    way: tuple[float, float] | None = None

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
            "difference": _told(self.gap),
            "within_groups": [_short(r) for r in self.within],
            "way": self.way and [_short(share) for share in self.way],
            "nested_less_fresh": told(self.told),
            "without_experience": told(self.plain),
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
            "sizes": [d.to_dict() for d in self.draws],
        }


@dataclass(frozen=True)
class Found:
    """All sets of a study."""

    sets: tuple[SetFound, ...]
    model: str

    def families(self, labels: int = 40) -> dict[str, tuple[Difference, float]]:
        """One judge's mean gain over the aspects of each file, which share rows and raters, and its p, Holm-corrected
        over the files: what is certain is so of one of these, not of an aspect."""
        members: dict[str, list[tuple[SetFound, Draws]]] = {}
        for one in self.sets:
            if main := one.at(labels):
                members.setdefault(one.name.split("/")[0], []).append((one, main))
        gaps = {
            name: difference_of(
                float(np.mean([draws.gap.value for _, draws in of])), np.mean([draws.drawn for _, draws in of], axis=0),
                min(one.groups for one, _ in of), 0, 0.95,
            )
            for name, of in members.items()
        }  # fmt: skip
        return dict(
            zip(gaps, zip(gaps.values(), holm([g.p for g in gaps.values()]).tolist(), strict=True), strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        families = {name: _told(gap) | {"p_holm": _short(p)} for name, (gap, p) in self.families().items()}
        return {"model": self.model, "sets": {one.name: one.to_dict() for one in self.sets}, "families": families}

    def write(self, folder: Path) -> list[Path]:
        """`readings.svg`: zero-shot against the judge from 40 labels, with the spread over draws."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "readings.svg"
        _draw(self.sets, path)
        return [path]


@dataclass(frozen=True)
class Known:
    """Labelled rows as they were read: the table, human scores in percent, how many other rows could not be read, and
    single ratings, (rows, raters), where rows have several."""

    table: Readings
    scores: Vector
    failed: int = 0
    ratings: Matrix | None = None


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
    singles = [labels.rows[i].ratings.get(labels.aspect, ()) for i in present]
    width = max(map(len, singles))
    ratings = np.array([[*given, *[math.nan] * (width - len(given))] for given in singles]) if width > 1 else None
    return Known(table, humans(examples)[present], len(examples) - len(present), ratings)


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
    measured = [_draws(known, experience, size, draws, step) for size in sizes]
    done = tuple(one for one in measured if one is not None)
    return SetFound(name, len(table), len(set(table.groups)), alone, within, done)


def _draws(known: Known, experience: Experience, labels: int, draws: int, step: Callable[[], None]) -> Draws | None:
    table, scores, ratings = known.table, known.scores, known.ratings
    zero_shot, chosen, plain, reported, ways, within = [], [], [], [], [], []

    def fitted(rows: Readings, y: Vector) -> LinearHead:
        return weigh(rows, y, experience).head

    direct, rounds, drawn = np.nan_to_num(table.columns([DIRECT])[:, 0]), -(-ROUNDS // draws), list[Vector]()
    for draw in range(draws):
        train, left = draw_labels(table.groups, labels, draw)
        step()
        if len(train) < labels or len(left) < FEWEST_LEFT or len({table.groups[i] for i in train}) < FEWEST_GROUPS:
            return None
        seen, rest = table.rows(train), table.rows(left)
        given = fitted(seen, scores[train])(rest)
        members, both = [str(table.groups[i]) for i in left], (direct[left], given)
        resampled = Agreement.of(both, Measure(scores[left], documents=members)).resample(rounds, draw)[0]
        drawn.append(resampled[1] - resampled[0])
        within.append((_within(both[0], scores[left], members), _within(given, scores[left], members)))
        if ratings is not None:
            shares = [way_to_rater(side, ratings[left], rounds=0).value for side in both]
            ways.append((shares[0], shares[1]))
        zero_shot.append(agreement(direct[left], scores[left]))
        chosen.append(agreement(given, scores[left]))
        plain.append(agreement(weigh(seen, scores[train], Experience()).head(rest), scores[left]))
        if draw < NESTED_DRAWS:
            own = nested(fitted, seen, scores[train], seed=draw)
            reported.append(agreement(own, scores[train]) - chosen[-1])
    gaps, every = np.array(chosen) - np.array(zero_shot), np.concatenate(drawn)
    return Draws(
        labels,
        np.array(zero_shot),
        np.array(chosen),
        np.array(plain),
        difference_of(float(gaps.mean()), every, len(set(table.groups)), 0, 0.95),
        every,
        _means(within),
        np.array(reported),
        _means(ways) if ways else None,
    )


def _means(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return float(np.mean([a for a, _ in pairs])), float(np.mean([b for _, b in pairs]))


def _within(values: Vector, scores: Vector, members: Sequence[Any]) -> float:
    result = []
    codes = np.unique([str(member) for member in members], return_inverse=True)[1]
    for group in range(int(codes.max()) + 1):
        rows = codes == group
        if rows.sum() > 2 and np.ptp(values[rows]) > 0 and np.ptp(scores[rows]) > 0:
            result.append(float(np.corrcoef(values[rows], scores[rows])[0, 1]))
    return float(np.mean(result)) if result else math.nan


def _told(gap: Difference) -> dict[str, float | None]:
    return {name: _short(getattr(gap, name)) for name in ("value", "low", "high", "p")}


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
