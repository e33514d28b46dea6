"""Objectives that a search maximises, one for each kind of labels.

Q for scores, quadratic-weighted kappa for ordered categories, AUC for pass and fail, pairwise accuracy for preferences.
Closeness, which is a mean over rows, is there for comparison.

An objective is a part: it declares its name, label, paper, the kinds of labels that it fits and those that it is the
default of. All are measured over a whole set of rows, with failed rows imputed (as in `CorrelationSum`) and counted; a
judge that scores every row alike comes out at chance, with a reason, and cannot be chosen.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from judgesmith.agreement.correlation import (
    Codes,
    CorrelationSum,
    Level,
    Vector,
    flat,
    id_codes,
    impute,
)
from judgesmith.agreement.correlation import Objective as Correlated
from judgesmith.agreement.decisions import (
    auc_when_drawn,
    kappa_when_drawn,
    mean_when_drawn,
    nearest_places,
    ordered_pairs,
    pairwise_when_drawn,
    places_by_rank,
)
from judgesmith.agreement.differences import OtherSystems
from judgesmith.agreement.resampling import Agreement, Bounded, Measure
from judgesmith.errors import OptionError
from judgesmith.parts import Registry

objectives: Registry[type[Objective]] = Registry(
    "objective",
    packages=("judgesmith.agreement.objectives",),
    group="judgesmith.objectives",
)


@dataclass(frozen=True)
class Rows:
    """Human ratings of some rows: scores in percent, with the document, group and system of each row.

    A group is of documents that belong together. systems is None if a row has none.
    """

    human: Vector
    documents: Sequence[str]
    groups: Sequence[str]
    systems: Sequence[str] | None = None

    def without(self, system: str) -> tuple[Codes, Rows]:
        """Return the places of the other systems' rows, and these rows."""
        systems = self.systems or ()
        others = [name != system for name in systems]
        columns = (self.documents, self.groups, systems)
        ids = (list(itertools.compress(column, others)) for column in columns)
        at = np.flatnonzero(others)
        return at, Rows(self.human[at], *ids)


@dataclass(frozen=True, slots=True)
class Reached:
    """An objective's value for one judge.

    n: rows (for pairwise accuracy, pairs) that it rests on, imputed ones included. failed: rows without a score.
    reason: why it is undefined; `value` is then that of chance.
    """

    value: float
    n: int
    failed: int
    reason: str | None = None


@dataclass(frozen=True)
class Objective(ABC):
    """Something to maximise. Values lie in chance ± reach; `chance` is what a judge that knows nothing reaches.

    kinds: of labels that it is taken for where none is asked for; fits: those that it can be measured on.
    level: that Q is measured at (Q is reported with every objective). levels: people's categories in percent, worst
    first; by default the different scores in the rows.
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ()
    fits: ClassVar[tuple[str, ...]] = ()
    chance: ClassVar[float] = 0.0
    reach: ClassVar[float] = 1.0

    level: Level = "pooled"
    levels: tuple[float, ...] = ()

    @property
    def worst(self) -> float:
        """The lowest value there is."""
        return self.chance - self.reach

    @property
    def within(self) -> bool:
        """True if rows are compared within documents only."""
        return False

    @property
    def of_rows(self) -> bool:
        """True if any set of rows can be measured; else only whole documents (groups) can."""
        return not self.within

    def units(self, rows: Rows) -> Sequence[str]:
        """Return the unit of each row that intervals and tests resample."""
        return rows.documents if self.within else rows.groups

    @abstractmethod
    def reached(self, percents: Vector, rows: Rows) -> Reached:
        """Return the value for these scores; NaN is a row on which the judge failed."""

    def measured(self, percents: Vector, rows: Rows) -> tuple[Reached, Correlated]:
        """Return the value for these scores, and Q of them."""
        return self.reached(percents, rows), self.q(percents, rows)

    @abstractmethod
    def resampled(self, predictions: Sequence[Vector], rows: Rows) -> Agreement:
        """Return the values of one or more judges as functions of how often each unit is drawn."""

    def compared(self, predictions: Sequence[Vector], rows: Rows) -> Agreement:
        """Return what two ways to judge the same rows are compared by: the value, unless ties of a judge move it."""
        return self.resampled(predictions, rows)

    def on_other_systems(
        self, predictions: Sequence[Vector], rows: Rows
    ) -> OtherSystems:
        """Return the agreements that extend differences between judges to other systems."""
        left_out = []
        for at, rest in map(rows.without, dict.fromkeys(rows.systems or ())):
            for percents in predictions:
                left_out.append(self.reached(percents[at], rest).value)
        apart = replace(rows, groups=[str(place) for place in range(len(rows.human))])
        by_row = self.resampled(predictions, apart) if self.of_rows else None
        return OtherSystems(
            np.reshape(left_out, (-1, len(predictions))), by_row, self.level == "within"
        )

    def q(self, percents: Vector, rows: Rows) -> Correlated:
        """Return Q of the scores at this objective's level."""
        return CorrelationSum(self.level)(
            percents, rows.human, rows.documents, rows.systems
        )

    def signature(self, span: str, reached: Reached, seed: int) -> str:
        """Return one line that says what a value is: `AUC=0.81 [0.70, 0.90] auc|pooled|n:60|failed:2|seed:0`.

        Args:
            span: The value with its interval.
            reached: The value, with what it rests on.
            seed: Seed of the interval.
        """
        return (
            f"{self.label}={span} {self._measured}"
            f"|n:{reached.n}|failed:{reached.failed}|seed:{seed}"
        )

    @property
    def _measured(self) -> str:
        return f"{self.name}|{'sample' if self.within else 'pooled'}"


@objectives.register
class Q(Objective):
    """Pearson + Spearman + Kendall tau-b at a level, in [-3, 3]: see `CorrelationSum`."""

    name = "q"
    label = "Q"
    about = "Pearson + Spearman + Kendall tau-b"
    paper = "Active-Critic, eq. 3"
    kinds = ("score",)
    fits = ("score", "category", "binary", "preference")
    reach = 3.0

    @property
    def within(self) -> bool:
        """True at level "sample"."""
        return self.level == "sample"

    @property
    def of_rows(self) -> bool:
        """True at level "pooled"."""
        return self.level == "pooled"

    def reached(self, percents: Vector, rows: Rows) -> Reached:
        """Return Q of these scores; NaN is a row on which the judge failed."""
        return self.measured(percents, rows)[0]

    def measured(self, percents: Vector, rows: Rows) -> tuple[Reached, Correlated]:
        """Return Q as the value and as itself, computed once."""
        total = self.q(percents, rows)
        return Reached(total.q, total.n, total.failed, total.reason), total

    def resampled(self, predictions: Sequence[Vector], rows: Rows) -> Agreement:
        """Return Q of one or more judges as functions of how often each unit is drawn."""
        return Agreement.of(predictions, self._measure(rows))

    def compared(self, predictions: Sequence[Vector], rows: Rows) -> Agreement:
        """Return r + Somers' d: Q falls where ties are broken by anything, since tau-b and rho reward them."""
        measure = replace(self._measure(rows), coefficient="pearson-somers")
        return Agreement.of(predictions, measure)

    def _measure(self, rows: Rows) -> Measure:
        return Measure(
            rows.human,
            documents=self.units(rows),
            systems=rows.systems,
            level=self.level,
        )

    @property
    def _measured(self) -> str:
        return f"r+rho+tau|{self.level}"


class OfRows(Objective):
    """Base of the objectives that are not sums of correlations: a subclass has `statistic`.

    undefined: reason for a missing value.
    """

    undefined: ClassVar[str] = "no rows"

    def reached(self, percents: Vector, rows: Rows) -> Reached:
        """Return the value for these scores, failed rows imputed; chance with a reason where there is none."""
        failed = int(np.isnan(percents).sum())
        if failed == len(percents):
            return Reached(
                self.chance,
                0,
                failed,
                f"all {failed} rows failed" if failed else "no rows",
            )
        if self.within:
            doc = id_codes(rows.documents, len(percents), "documents")
        else:
            doc = None
        x = impute(np.asarray(percents, float), doc)
        units = id_codes(self.units(rows), len(x), "groups")
        n = self._rests_on(rows)
        value = float(
            self.statistic(x, rows, units)(np.ones((1, int(units.max()) + 1)))[0, 0]
        )
        if math.isnan(value):
            return Reached(self.chance, n, failed, self.undefined)
        constant = bool(flat(x[None])[0])
        return Reached(
            value, n, failed, "the predictions are constant" if constant else None
        )

    def resampled(self, predictions: Sequence[Vector], rows: Rows) -> Agreement:
        """Return the values of one or more judges as functions of how often each unit is drawn."""
        units = id_codes(self.units(rows), len(rows.human), "groups")
        count = int(units.max(initial=-1)) + 1
        reason = None
        values = []
        for predicted in predictions:
            reached = self.reached(predicted, rows)
            values.append(reached.value)
            reason = reason or reached.reason
        if reason is None and count < 2:
            reason = "one document cannot be resampled"
        statistics = []
        if not reason:
            doc = None
            if self.within:
                doc = id_codes(rows.documents, len(rows.human), "documents")
            for predicted in predictions:
                imputed = impute(np.asarray(predicted, float), doc)
                statistics.append(self.statistic(imputed, rows, units))
        within = [statistic.within for statistic in statistics[:1]]
        return Agreement(
            statistics, values, count, len(rows.human), True, reason, *within
        )

    def _rests_on(self, rows: Rows) -> int:
        return len(rows.human)

    @abstractmethod
    def statistic(self, x: Vector, rows: Rows, units: Codes) -> Bounded:
        """Return the value as a function of how often each unit counts, NaN where undefined."""


class _OfDecisions(OfRows):
    undefined = "people put all rows into one category"

    def _people(self, rows: Rows) -> tuple[Codes, int]:
        """Return the category of each row, from 0, and how many there are."""
        levels = self.levels or tuple(np.unique(rows.human).tolist())
        return nearest_places(rows.human, levels), len(levels)

    def _decided(self, x: Vector, rows: Rows) -> tuple[Codes, Codes]:
        """Return the judge's categories and people's."""
        people, categories = self._people(rows)
        return places_by_rank(x, people, categories), people


@objectives.register
class Kappa(_OfDecisions):
    """Quadratic-weighted kappa between people's categories and those that a judge's ranking gives.

    Cut points that are fitted to the very rows they are judged on flatter a judge, more the more categories and the
    fewer rows there are. So no cut is fitted: as many rows (by rank) fall into each category as people put there, equal
    scores together. A row's own label has a part in that only by how often its category occurs, which no reordering of
    labels changes: for scores that know nothing the expected kappa is exactly 0. Cut points that were fitted to other
    folds are as fair, but differ from fold to fold: in a simulation they chose worse judges with 40 and with 100 labels
    (`experiments/results/objectives.md`). Resamples keep the cuts.
    """

    name = "kappa"
    label = "kappa by rank"
    about = (
        "quadratic-weighted kappa, as many rows in each category as people put there"
    )
    paper = "Cohen 1968"
    kinds = ("category",)
    fits = ("category", "binary")

    def statistic(self, x: Vector, rows: Rows, units: Codes) -> Bounded:
        """Return the value as a function of how often each unit counts."""
        return kappa_when_drawn(*self._decided(x, rows), units)


@objectives.register
class AUC(_OfDecisions):
    """The probability that an output that people passed scores higher than one that they failed; no threshold."""

    name = "auc"
    label = "AUC"
    about = "how surely a passed output scores above a failed one (area under the ROC curve)"
    paper = "Hanley & McNeil 1982"
    kinds = ("binary",)
    fits = ("binary",)
    chance = reach = 0.5

    def statistic(self, x: Vector, rows: Rows, units: Codes) -> Bounded:
        """Return the value as a function of how often each unit counts."""
        return auc_when_drawn(x, self._people(rows)[0], units)


@objectives.register
class PairwiseAccuracy(OfRows):
    """Share of one document's untied pairs of outputs that the judge orders as people did; equal scores count half.

    Untied are pairs that people rated differently. The likelihood of a Bradley-Terry model would be the other natural
    form. It weighs a pair by how far apart the judge's scores are, on a scale that has to be fitted first; what a
    search compares is the order alone, which every rising map of the scores leaves as it is.
    """

    name = "pairwise"
    label = "pairwise accuracy"
    about = (
        "share of a document's pairs of outputs that are ordered as people ordered them"
    )
    kinds = ("preference",)
    fits = ("score", "category", "binary", "preference")
    chance = reach = 0.5
    undefined = "no document has two outputs of which people preferred one"

    @property
    def within(self) -> bool:
        """True: pairs are of one document."""
        return True

    def _rests_on(self, rows: Rows) -> int:
        return int(ordered_pairs(rows.human, rows.human, rows.documents)[2].sum())

    def statistic(self, x: Vector, rows: Rows, units: Codes) -> Bounded:
        """Return the value as a function of how often each unit counts."""
        return pairwise_when_drawn(x, rows.human, rows.documents)


@objectives.register
class Closeness(OfRows):
    """Mean over rows of 1 - |judge - people|, in shares of the scale, in [0, 1].

    An optimizer that averages a metric over rows maximises it. Unlike the others it rewards a judge that gives every
    row the middle of the scale.
    """

    name = "closeness"
    label = "closeness"
    about = "mean of 1 - |judge - people|, in shares of the scale"
    fits = ("score", "category", "binary")
    chance = reach = 0.5

    def reached(self, percents: Vector, rows: Rows) -> Reached:
        """Return the mean closeness; constant scores have one, too."""
        result = super().reached(percents, rows)
        # constant scores are close to something, too
        if result.n:
            return replace(result, reason=None)
        return result

    def statistic(self, x: Vector, rows: Rows, units: Codes) -> Bounded:
        """Return the value as a function of how often each unit counts."""
        return mean_when_drawn(
            1 - np.minimum(np.abs(x - rows.human), 100.0) / 100, units
        )


def chosen_objective(
    kind: str, name: str | None, level: Level = "pooled", levels: Sequence[float] = ()
) -> Objective:
    """Return the objective of that name, or the default one of the kind of labels.

    Args:
        kind: kind of labels: "score", "category", "binary" or "preference".
        name: name of an objective; None: the default of the kind.
        level: level that Q is measured at.
        levels: people's categories in percent, worst first.

    Returns:
        The objective.

    Raises:
        OptionError: If the name is unknown, or the objective does not fit the kind.
    """
    parts = objectives.parts()
    if name is None:
        return next(part for part in parts.values() if kind in part.kinds)(
            level, tuple(levels)
        )
    part = objectives.get(name)
    if kind not in part.fits:
        others = ", ".join(n for n, other in parts.items() if kind in other.fits)
        raise OptionError(
            f"--objective {name} is for labels of kind {' or '.join(part.fits)}, not {kind}; "
            f"use {others}, or set --kind"
        )
    return part(level, tuple(levels))
