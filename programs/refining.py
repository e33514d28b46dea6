"""Fits of a judge to its own verdicts on the training rows, when a search is over and without a further call.

A judge with something to fit is `Refinable`: it names its refiners, and compiling runs all of them. A refiner is given
`TrainingRows`, whose tools fit weights and measure them; it changes the judge (never its prompts) or leaves it as it
is, and returns a `Refinement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from judgesmith.programs.progress import Progress
from judgesmith.signatures.values import Item, Verdict, json_number

if TYPE_CHECKING:
    from judgesmith.programs.models.lm import LanguageModel
    from judgesmith.programs.readings.experience import Experience
    from judgesmith.programs.readings.head import LinearHead, Readings

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Refinement:
    """The result of a refiner: `changed` or `reason`, one of which is set."""

    name: str
    """Its key in the provenance of a saved judge, and the beginning of its note in the report."""
    percents: Vector
    """The judge's scores on the training rows as they are now, NaN where it failed."""
    details: dict[str, Any] = field(default_factory=dict)
    """JSON values for the provenance."""
    reason: str | None = None
    """Why the judge stays as it was."""
    changed: str | None = None
    """What was changed, with the agreement before and after."""
    candidate: str | None = None
    """What the report calls the judge, where what was fitted took the place of the search's candidate."""
    weights: tuple[dict[str, Any], ...] = ()
    """What the judge is made of now, for the report's table: name, weight and Q of each part."""
    alone: bool = False
    """Whether a score that has the first word judges alone; it is mapped to people's scale by a line."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights of the columns of a matrix of scores."""

    weights: tuple[float, ...]
    """They sum to 1; none where `reason` is set."""
    plain: float
    """The agreement of the judge's scores as they were."""
    found: float | None = None
    """The agreement of scores by weights that were fitted without the rows' folds; None where nothing was fitted."""
    reason: str | None = None
    """Why the judge should stay as it was."""
    own: float = 0.0
    """The share of the judge's own score beside the columns, in [0, 1)."""
    penalty: float | None = None
    """The ridge penalty of the weights."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as JSON values, weights to six digits."""
        return {
            "weights": [round(w, 6) for w in self.weights],
            "own": self.own,
            "penalty": self.penalty,
            "q": None if self.found is None else json_number(self.found),
            "plain_q": json_number(self.plain),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class HeadFit:
    """A head over readings."""

    head: LinearHead
    percents: Vector
    """The rows' scores by heads that were chosen and fitted without their fold."""
    q: float
    """Their Q."""
    direct: float
    """Q of the own score alone."""
    learnt: float
    """The share of the scores' movement that these rows taught; the rest is experience."""
    parts: tuple[dict[str, Any], ...]
    """Name, share and Q of what the head is made of."""
    left_out: Vector
    """The rows' scores by what the rows of other groups say, in any unit."""
    ahead: bool = True
    """Whether it takes the place of the own score alone."""


class TrainingRows(Protocol):
    """The training rows of a compile run, as a refiner sees them, and tools that fit weights to them.

    Every row was judged without its own group in the prompt.
    """

    @property
    def items(self) -> Sequence[Item]:
        """Return the texts of each row."""

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """Return the judge's verdicts on the rows."""

    @property
    def percents(self) -> Vector:
        """Return the judge's raw scores, NaN for failed rows."""

    @property
    def human(self) -> Vector:
        """Human scores in percent."""

    @property
    def groups(self) -> Sequence[str]:
        """Rows of one group never stand on both sides of a fold."""

    @property
    def label(self) -> str:
        """Return the name of the run's objective, for messages (Q)."""

    @property
    def seed(self) -> int:
        """Return the run's seed."""

    @property
    def lm(self) -> LanguageModel:
        """Return the judge's model.

        Raises:
            ModelError: Without one.
        """

    @property
    def progress(self) -> Progress:
        """Return the run's watcher."""

    def value(self, percents: Vector) -> float:
        """Return the objective reached by these scores of all rows."""

    def clearly_better(self, one: Vector, other: Vector) -> bool:
        """Return True if the first scores agree better with people in most paired resamples of whole groups."""

    def ridge_weights(
        self, scores: Matrix, *, own: bool, parts: str, plain: str
    ) -> Fit:
        """Fit non-negative ridge weights of the columns, alone or (own) beside the judge's score.

        They are kept if they clearly beat the judge's score out of fold. parts, plain: the names of columns and score,
        for messages.
        """

    def fit_head(
        self,
        table: Readings,
        readable: NDArray[np.bool_],
        experience: Experience,
        own: str,
        *,
        strong: bool,
    ) -> HeadFit:
        """Fit the head over the readings of some rows (known).

        Args:
            table: The readings.
            readable: A mask of the rows.
            experience: The prior from other data sets.
            own: The reading that is the judge's own score.
            strong: True if that has the first word, so that a mixture has to be clearly ahead of it.
        """


Refiner = Callable[[TrainingRows], Refinement]


@runtime_checkable
class Refinable(Protocol):
    """A method with something to fit after a search."""

    #: Whether that is fitted without a search, too.
    fitted_always: ClassVar[bool]

    def refiners(self) -> Sequence[Refiner]:
        """Return the fits to make now, in this order; none if its options leave nothing to fit."""


def fitted_always(method: Any) -> bool:
    """Return whether a method, or a kind of methods, is fitted without a search, too."""
    return bool(getattr(method, "fitted_always", False))


def weighted_mean(scores: Matrix, weights: Sequence[float] | Vector) -> Vector:
    """Return the mean over the columns that have a score, shape (rows,); NaN if none with a weight has."""
    finite = np.isfinite(scores)
    share = np.where(finite, np.asarray(weights, dtype=float), 0.0)
    total = share.sum(axis=1)
    sums = (np.where(finite, scores, 0.0) * share).sum(axis=1)
    mean: Vector = np.divide(
        sums, total, out=np.full(len(scores), np.nan), where=total > 0
    )
    return mean


def score_matrix(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], of: Callable[[Any], float]
) -> Matrix:
    """Rows × names: what `of` gives for the entry of that name, NaN where a row has none."""
    matrix = np.full((len(rows), len(names)), np.nan)
    for place, row in enumerate(rows):
        for column, name in enumerate(names):
            if name in row:
                matrix[place, column] = of(row[name])
    return matrix
