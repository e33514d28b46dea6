"""Ways to judge with few labels, ours and others', behind one interface: `fit(labels) → score(rows)`.

Each is written from its paper, in our own words, for scores that are recorded; nothing here asks a model. A learner
sees what was recorded of the labelled rows (`Recorded`) with people's ratings, and returns a function that scores other
rows. What it may look at is what its paper has: one judge, a judge by several criteria, several judges, a bank of
metrics, the text, or a local model's readings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy

from judgesmith.agreement.objectives import Q, Rows
from judgesmith.optimizers.fitting.curve import OWN, with_counts
from judgesmith.optimizers.fitting.folds import fold_numbers
from judgesmith.optimizers.fitting.gaussian import gaussian
from judgesmith.optimizers.fitting.readings import agreement, ahead, beside, weigh
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Matrix, Readings, Vector
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.programs.readings.kinds import SIGNAL

PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
#: AutoMetrics keeps this many metrics of its bank.
KEPT = 5
#: MemAlign's retrieved cases.
NEAREST = 5


@dataclass(frozen=True)
class Recorded:
    """What is known of some rows, without people's ratings.

    judge: the judge's score; criteria: the same judge's scores by several criteria; panel: several judges or prompts of
    this aspect; bank: metrics -> (rows, k) each, k may be 0. texts: likeness of texts, rows of unit length. counted:
    counts of words and facts. readings: of a local model. groups: rows that are kept together.
    """

    judge: Vector
    criteria: Matrix
    panel: Matrix
    bank: Matrix
    texts: Matrix
    counted: Readings
    readings: Readings | None
    groups: tuple[str, ...]
    experience: Experience

    def __len__(self) -> int:
        return len(self.groups)

    def rows(self, at: Sequence[int] | np.ndarray) -> Recorded:
        """Return some of the rows."""
        index = np.asarray(at, dtype=np.intp)
        return replace(
            self,
            judge=self.judge[index],
            criteria=self.criteria[index],
            panel=self.panel[index],
            bank=self.bank[index],
            texts=self.texts[index],
            counted=self.counted.rows(index),
            readings=None if self.readings is None else self.readings.rows(index),
            groups=tuple(self.groups[i] for i in index.tolist()),
        )


Score = Callable[[Recorded], Vector]


class Learner:
    """A way to judge. name: in tables; paper: whose; fewest: labels that it needs; learns: False if it uses none."""

    name: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    fewest: ClassVar[int] = 8
    learns: ClassVar[bool] = True

    def can(self, rows: Recorded) -> bool:
        """Return True if what it looks at was recorded."""
        raise NotImplementedError

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Learn from labelled rows; none where `fewest` is 0."""
        raise NotImplementedError


class Judged(Learner):
    """Base of those that look at one judge's score."""

    def can(self, rows: Recorded) -> bool:
        """Return True where a judge was recorded."""
        return bool(np.isfinite(rows.judge).any())


class Read(Learner):
    """Base of those that are measured where a local model's readings were kept, so that all share their rows."""

    def can(self, rows: Recorded) -> bool:
        """Return True where a local model's readings were kept."""
        return rows.readings is not None


class AsItIs(Learner):
    """Base of those that use no label."""

    fewest = 0
    learns = False

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Learn nothing."""
        del rows, ratings
        return self.score

    def score(self, rows: Recorded) -> Vector:
        """Return the scores of rows."""
        raise NotImplementedError


# Common --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standard:
    """Columns by their mean and spread among the labelled rows; gaps count as the mean."""

    means: Vector
    spreads: Vector

    @classmethod
    def of(cls, values: Matrix) -> Standard:
        """Take means and spreads of columns."""
        some = np.isfinite(values)
        counts = np.maximum(some.sum(axis=0), 1)
        means = np.where(some, values, 0.0).sum(axis=0) / counts
        away = np.where(some, values - means, 0.0)
        spreads = np.sqrt((away**2).sum(axis=0) / counts)
        return cls(means, np.where(spreads > 1e-9, spreads, np.inf))

    def __call__(self, values: Matrix) -> Matrix:
        """Return standardised columns."""
        z = (np.where(np.isfinite(values), values, self.means) - self.means) / (
            self.spreads
        )
        return np.asarray(np.clip(z, -5, 5))


def target(ratings: Vector) -> Vector:
    """Return ratings with mean 0 and spread 1."""
    return np.asarray((ratings - ratings.mean()) / max(float(ratings.std()), 1e-9))


def ridge(z: Matrix, y: Vector, groups: Sequence[str]) -> Vector:
    """Return ridge weights; the penalty with the least squared error on folds of groups."""
    folds = fold_numbers(groups, seed=0)
    errors = np.zeros(len(PENALTIES))
    for fold in np.unique(folds):
        inside = folds != fold
        left, values, right = _spectrum(z[inside])
        turned = left.T @ (y[inside] - y[inside].mean())
        over = z[~inside] @ right.T
        for k, penalty in enumerate(PENALTIES):
            predicted = over @ (values / (values**2 + penalty) * turned)
            errors[k] += ((y[~inside] - y[inside].mean() - predicted) ** 2).sum()
    left, values, right = _spectrum(z)
    penalty = PENALTIES[int(errors.argmin())]
    return np.asarray(right.T @ (values / (values**2 + penalty) * (left.T @ y)))


def _spectrum(z: Matrix) -> tuple[Matrix, Vector, Matrix]:
    left, values, right = np.linalg.svd(z, full_matrices=False)
    return left, values, right


def filled(values: Vector) -> Vector:
    """Return scores with gaps at the mean."""
    some = values[np.isfinite(values)]
    return np.where(np.isfinite(values), values, some.mean() if len(some) else 0.0)


def near(like: Matrix, values: Vector, held_back: float) -> Vector:
    """Return the mean value of the nearest labelled cases, each counting by its likeness.

    like: likeness of rows to cases, (rows, cases). held_back: the likeness with which 0 counts beside them.
    """
    nearest = min(NEAREST, len(values))
    at = np.argsort(-like, axis=1)[:, :nearest]
    weights = np.maximum(np.take_along_axis(like, at, axis=1), 0.0)
    summed = (weights * values[at]).sum(axis=1)
    return np.asarray(summed / (weights.sum(axis=1) + held_back))


# Beside a recorded judge ---------------------------------------------------------------------------------------------


class Alone(AsItIs, Judged):
    """The judge's own score."""

    name = "the judge alone"

    def score(self, rows: Recorded) -> Vector:
        """Return the judge's scores."""
        return filled(rows.judge)


class Isotonic(Judged):
    """A rising step function from the judge's score to ratings."""

    name = "isotonic calibration"
    paper = "Zadrozny & Elkan 2002"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit by pooled adjacent violators."""
        own = filled(rows.judge)
        values = np.unique(own)
        means = np.array([ratings[own == value].mean() for value in values])
        weights = np.array([(own == value).sum() for value in values], dtype=float)
        steps = scipy.optimize.isotonic_regression(means, weights=weights).x
        return lambda others: np.interp(filled(others.judge), values, steps)


class Several(Learner):
    """Base of those that look at several judges' or prompts' scores."""

    def can(self, rows: Recorded) -> bool:
        """Return True where several judges were recorded."""
        return len(rows.panel.T) > 1


class Panel(AsItIs, Several):
    """The mean of several judges' standardised scores, each counting the same."""

    name = "equal panel"
    paper = "Verga et al. 2024"

    def score(self, rows: Recorded) -> Vector:
        """Return the mean, standardised over the rows that are scored."""
        return np.asarray(Standard.of(rows.panel)(rows.panel).mean(axis=1))


class Choice(Several):
    """Of several prompts or judges, the one that agrees best with the labels: what a prompt search comes down to."""

    name = "best of the recorded prompts"
    paper = "stands for GEPA, MIPROv2"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Choose by Q."""
        reached = [agreement(filled(column), ratings) for column in rows.panel.T]
        best = int(np.argmax(reached))
        return lambda others: filled(others.panel[:, best])


class Criteria(Learner):
    """Ridge regression over one judge's scores by several criteria."""

    name = "ridge over criteria"
    paper = "SAJA"

    def can(self, rows: Recorded) -> bool:
        """Return True where several criteria were recorded."""
        return len(rows.criteria.T) > 1

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit the penalty by folds of groups."""
        standard = Standard.of(rows.criteria)
        weights = ridge(standard(rows.criteria), target(ratings), rows.groups)
        return lambda others: standard(others.criteria) @ weights


class Quantitative(Judged):
    """Ridge regression of ratings on the judge's score and on an embedding of the text."""

    name = "regression on score and text"
    paper = "Quantitative LLM judges (LS)"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit the penalty by folds; the score's column stands for the judge, those of the text are many and small."""
        standard = Standard.of(rows.judge[:, None])

        def columns(of: Recorded) -> Matrix:
            return np.hstack([standard(of.judge[:, None]), of.texts])

        weights = ridge(columns(rows), target(ratings), rows.groups)
        return lambda others: columns(others) @ weights


class Memory(Judged):
    """The judge's score, corrected by what it missed in the labelled cases nearest to the text."""

    name = "nearest labelled cases"
    paper = "MemAlign"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Keep the cases with the judge's residuals."""
        standard = Standard.of(rows.judge[:, None])
        own = standard(rows.judge[:, None])[:, 0]
        y = target(ratings)
        slope = max(0.0, float(own @ y) / max(float(own @ own), 1e-9))
        missed = y - slope * own

        def score(others: Recorded) -> Vector:
            told = near(others.texts @ rows.texts.T, missed, 1.0)
            return np.asarray(slope * standard(others.judge[:, None])[:, 0] + told)

        return score


class Bank(Learner):
    """Partial least squares over a bank of metrics: the five with most weight, then their first component."""

    name = "bank of metrics, PLS"
    paper = "AutoMetrics"

    def can(self, rows: Recorded) -> bool:
        """Return True where several metrics were recorded."""
        return len(rows.bank.T) > 1

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Choose metrics by their weight in the first component, and weigh these again."""
        standard = Standard.of(rows.bank)
        z = standard(rows.bank)
        y = target(ratings)
        first = z.T @ y
        kept = np.argsort(-np.abs(first))[:KEPT]
        weights = np.zeros(len(first))
        weights[kept] = z[:, kept].T @ y
        return lambda others: standard(others.bank) @ weights


class Beside(Judged):
    """judgesmith beside a judge: `compile --signal`."""

    name = "judgesmith beside the judge"
    paper = "this package"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit the head, and take it where it is ahead of the judge alone."""
        head, taken = beside(self.table(rows), ratings, OWN)
        if not taken:
            return lambda others: filled(others.judge)
        return lambda others: head(self.table(others))

    def table(self, rows: Recorded) -> Readings:
        """Return what the head looks at: the judge's score and counts."""
        return with_counts(filled(rows.judge), rows.counted)


class Everything(Beside):
    """judgesmith beside the judge, with all else that was recorded as further signals."""

    name = "judgesmith, all columns as signals"

    def can(self, rows: Recorded) -> bool:
        """Return True where further columns were recorded."""
        return super().can(rows) and len(_others(rows).T) > 0

    def table(self, rows: Recorded) -> Readings:
        """Return the judge's score, the other columns and counts."""
        more = _others(rows)
        names = [f"{SIGNAL}.{k}" for k in range(more.shape[1])]
        own = filled(rows.judge)[:, None]
        values = np.hstack([own, more, rows.counted.values])
        return Readings((OWN, *names, *rows.counted.names), values, rows.groups)


def _others(rows: Recorded) -> Matrix:
    """Return the columns of the bank that are no counts."""
    return rows.bank[:, : rows.bank.shape[1] - len(rows.counted.names)]


# With a small model or none ------------------------------------------------------------------------------------------


class Plain(AsItIs, Read):
    """The small model's own score by one prompt."""

    name = "the 0.5B, asked directly"

    def can(self, rows: Recorded) -> bool:
        """Return True where it was asked."""
        return rows.readings is not None and DIRECT in rows.readings.names

    def score(self, rows: Recorded) -> Vector:
        """Return its answers."""
        return filled(_readings(rows).columns([DIRECT])[:, 0])


class Likely(AsItIs, Read):
    """The text's mean log-probability."""

    name = "log p of the 0.5B"
    paper = "GPTScore"

    def score(self, rows: Recorded) -> Vector:
        """Return log-probabilities."""
        return filled(_readings(rows).columns(["assistant.mean"])[:, 0])


class Counted(Read):
    """Counts of words and facts, weighed by the labels; no model."""

    name = "counts of words and facts"
    paper = "this package's baseline"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit the head without experience."""
        head = gaussian(rows.counted, ratings, Experience(), own=None).head
        return lambda others: head(others.counted)


class Probe(Read):
    """Ridge regression on the hidden states of the small model."""

    name = "regression on the 0.5B's states"
    paper = "Quantitative LLM judges, on states"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit the penalty by folds of groups."""
        standard = Standard.of(_states(rows))
        z = standard(_states(rows)) / np.sqrt(_states(rows).shape[1])
        weights = ridge(30 * z, target(ratings), rows.groups)
        scale = 30 / np.sqrt(_states(rows).shape[1])
        return lambda others: scale * standard(_states(others)) @ weights


class NearStates(Read):
    """The mean rating of the labelled cases nearest in the small model's states."""

    name = "nearest cases by the 0.5B's states"
    paper = "MemAlign, on states"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Keep the cases."""
        standard = Standard.of(_states(rows))
        known = _unit(standard(_states(rows)))
        y = target(ratings)
        return lambda others: near(_unit(standard(_states(others))) @ known.T, y, 0.1)


class SmallBank(Read, Bank):
    """The same bank without large judges, with the small model's numbers."""

    name = "bank of small metrics, PLS"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Add readings and counts to the bank."""
        fitted = super().fit(_with_numbers(rows), ratings)
        return lambda others: fitted(_with_numbers(others))


class Unlabelled(Read):
    """judgesmith without a label: experience of other families."""

    name = "judgesmith"
    paper = "this package; its family left out"
    fewest = 0

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Start from experience, and learn from labels where there are some."""
        if not len(rows):

            def expected(others: Recorded) -> Vector:
                table = _joined(others)
                names = set(table.names) - {DIRECT}
                return np.asarray(others.experience.head(names, table.states)(table))

            return expected
        table = _joined(rows)
        fit = weigh(table, ratings, rows.experience)
        if DIRECT not in table.names:
            return lambda others: fit.head(_joined(others))
        own = filled(table.columns([DIRECT])[:, 0])
        of_rows = Rows(ratings, rows.groups, rows.groups)
        if not ahead(fit.left_out, own, of_rows, Q(), strong=False):
            return Plain().score
        return lambda others: fit.head(_joined(others))


class Fresh(Read):
    """judgesmith's readings without experience."""

    name = "judgesmith without experience"
    paper = "this package"

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit the head to the labels alone."""
        head = weigh(_joined(rows), ratings, Experience()).head
        return lambda others: head(_joined(others))


class WithMetrics(Read):
    """judgesmith's readings with the bank's metrics as further signals."""

    name = "judgesmith, metrics as signals"
    paper = "this package; its family left out"

    def can(self, rows: Recorded) -> bool:
        """Return True where readings were kept and metrics were recorded."""
        return rows.readings is not None and len(_others(rows).T) > 0

    def fit(self, rows: Recorded, ratings: Vector) -> Score:
        """Fit the head with experience."""

        def table(of: Recorded) -> Readings:
            read = _joined(of)
            more = _others(of)
            names = [f"{SIGNAL}.{k}" for k in range(more.shape[1])]
            values = np.hstack([read.values, more])
            return Readings((*read.names, *names), values, read.groups, read.states)

        head = weigh(table(rows), ratings, rows.experience).head
        return lambda others: head(table(others))


def _readings(rows: Recorded) -> Readings:
    if rows.readings is None:
        raise ValueError("no readings were kept of these rows")
    return rows.readings


def _states(rows: Recorded) -> Matrix:
    blocks = [block.astype(np.float64) for block in _readings(rows).states.values()]
    return np.hstack(blocks)


def _unit(values: Matrix) -> Matrix:
    return np.asarray(
        values / np.maximum(np.linalg.norm(values, axis=1), 1e-9)[:, None]
    )


def _joined(rows: Recorded) -> Readings:
    """Return readings with the counts of facts that earlier tables lack."""
    table = _readings(rows)
    more = [name for name in rows.counted.names if name not in table.names]
    values = np.hstack([table.values, rows.counted.columns(more)])
    return Readings((*table.names, *more), values, rows.groups, table.states)


def _with_numbers(rows: Recorded) -> Recorded:
    table = _joined(rows)
    names = [name for name in table.names if name != DIRECT]
    return replace(rows, bank=np.hstack([rows.bank, table.columns(names)]))


BESIDE: tuple[Learner, ...] = (
    Alone(),
    Isotonic(),
    Panel(),
    Choice(),
    Criteria(),
    Quantitative(),
    Memory(),
    Bank(),
    Beside(),
    Everything(),
)
SMALL: tuple[Learner, ...] = (
    Plain(),
    Likely(),
    Counted(),
    Probe(),
    NearStates(),
    SmallBank(),
    Fresh(),
    Unlabelled(),
    WithMetrics(),
)
