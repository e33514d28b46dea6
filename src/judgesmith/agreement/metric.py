"""Agreement over a whole set of rows as a metric of DSPy's, in any program and any optimizer.

DSPy averages a metric over rows, and agreement belongs to all of them together. So a row's score here is a number that
remembers its row, and the sum of such scores, divided by how many there are, is the agreement of the rows: whatever
averages the metric maximises it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, total_ordering
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.correlation import Level, Vector
from judgesmith.agreement.correlation import Objective as Correlated
from judgesmith.agreement.fields import Field, json_values, number, text_of
from judgesmith.agreement.objectives import Objective, Reached, Rows, objectives
from judgesmith.agreement.resampling import (
    Range,
    for_other_systems,
    interval_of,
    too_few_systems,
)
from judgesmith.disarming import disarm
from judgesmith.errors import OptionError
from judgesmith.rows import human_score, roles_of
from judgesmith.tables import facts, shortened, with_interval

#: With fewer rows a metric's mean is that of the rows' own scores.
FEWEST = 8
#: Rows of a panel at most; rows that feedback quotes, and characters of each.
PANEL = 60
QUOTED = 3
LONGEST = 160


@dataclass(frozen=True, slots=True, repr=False)
class AgreementValue:
    """Agreement of scores with human ratings by an objective, with a 95 % interval over documents (groups).

    It holds Q and its parts on the same rows, for any objective. new_systems: the interval covers other systems, too.
    """

    by: Objective
    reached: Reached
    low: float
    high: float
    seed: int
    objective: Correlated
    new_systems: bool = False
    why: str | None = None
    """Why there is no interval; None where there is one."""

    @classmethod
    def of(
        cls,
        percents: Vector,
        rows: Rows,
        by: Objective,
        *,
        seed: int = 0,
        rounds: int = 2000,
        new_systems: bool = False,
    ) -> AgreementValue:
        """Return what an objective reaches, with its interval (NaN with no rounds).

        Whole groups are resampled, or the documents that the objective is made of; for new systems each is left out in
        turn (NaN for fewer than 3).
        """
        ends = (math.nan, math.nan)
        (reached, q) = by.measured(percents, rows)
        why: str | None = "no resamples were drawn"
        if rounds:
            interval = interval_of(
                by.resampled([percents], rows), rounds=rounds, seed=seed
            )
            ends = (interval.low, interval.high)
            why = interval.reason
            if new_systems:
                parts = map(rows.without, dict.fromkeys(rows.systems or ()))
                left_out = [by.reached(percents[at], rest).value for at, rest in parts]
                whole = Range(by.worst, by.chance + by.reach)
                larger = by.level == "within"
                ends = for_other_systems(
                    ends, reached.value, left_out, whole, 0.95, larger=larger
                )
                if math.isnan(ends[0]):
                    why = why or too_few_systems(len(left_out))
        return cls(by, reached, *ends, seed, q, new_systems, why)

    @property
    def value(self) -> float:
        """The objective's value."""
        return self.reached.value

    @property
    def reason(self) -> str | None:
        """The reason if the value is undefined, else None."""
        return self.reached.reason

    @property
    def q(self) -> float:
        """Q on the same rows, in [-3, 3]."""
        return self.objective.q

    @property
    def span(self) -> str:
        """The value with its interval, or with the reason why there is none."""
        if math.isnan(self.low):
            return f"{self.value:.2f} (no interval: {self.why or 'undefined'})"
        return with_interval(self.value, self.low, self.high)

    def __str__(self) -> str:
        told = self.by.signature(self.span, self.reached, self.seed)
        return f"{told}|new-systems" if self.new_systems else told

    def __repr__(self) -> str:
        return f"Agreement({self})"

    def _repr_html_(self) -> str:
        """Render the objective with its interval, and the parts of Q, for notebooks."""
        o = self.objective
        rows: list[tuple[str, Any]] = [(self.by.label, self.span)]
        rows += [
            ("Pearson r", f"{o.pearson:.2f}"),
            ("Spearman ρ", f"{o.spearman:.2f}"),
            ("Kendall τ", f"{o.kendall:.2f}"),
        ]
        rows += [("rows", self.reached.n), ("failed", self.reached.failed)]
        rows += [("undefined", self.reason)] if self.reason else []
        return facts(rows)

    def to_dict(self) -> dict[str, float | int | str | None]:
        """Return plain JSON types; the interval is that of `value`."""
        o = self.objective
        values = {
            "objective": self.by.name,
            "value": self.value,
            "q": o.q,
            "low": self.low,
            "high": self.high,
            "n": self.reached.n,
            "failed": self.reached.failed,
            "pearson": o.pearson,
            "spearman": o.spearman,
            "kendall": o.kendall,
            "reason": self.reason,
            "signature": str(self),
        }
        return {name: json_values(value) for name, value in values.items()}


class Agreement:
    """Agreement with human ratings as a DSPy metric, for `dspy.Evaluate` and any optimizer.

    `dspy.Evaluate(devset=rows, metric=js.Agreement("q"))(program).score` is 100 times the agreement of all rows: a Q of
    1.2 is a score of 120. Undefined agreement (constant scores, say) counts as the lowest value. Agreement of fewer
    than 8 rows says nothing: of so few, such as GEPA's small batches, the rows' own scores are averaged.

    A judge's rows that are among its demonstrations are judged without themselves, by prompts that are tilted against
    their own labels. So a judge is measured on its other rows (`left_out` of their predictions), if they are 8 or more.

    One row's score, for optimizers that look at single rows, is its closeness: 1 - |predicted - human| in shares of the
    scale; with a panel, the share of panel rows on whose right side the program puts it. As a boolean, which
    `BootstrapFewShot` needs, it is true from `close` upward. GEPA gets feedback with it.

    Args:
        objective: "q" (Pearson + Spearman + Kendall), "kappa", "auc", "pairwise" or "closeness", or an `Objective`.
        level: "pooled", "sample" for Q within documents, "system" for Q of the means of systems (an example's
            `system`).
        score_of: field or function that gives a prediction's score.
        human_of: field or function that gives an example's human score; by default the only field that can be meant.
        group_of: field or function that gives a row's document; by default its group or source under any of their
            names, else each row is its own document.
        scale: lowest and highest score; by default the range of the human scores at hand.
        close: closeness in [0, 1] from which a single row counts as right.
        panel: result of `dspy.Evaluate` for the unoptimized program on the training rows, or (example, prediction)
            pairs.

    Raises:
        OptionError: If the objective is unknown or a field cannot be read.
    """

    def __init__(
        self,
        objective: str | Objective = "q",
        *,
        level: Level = "pooled",
        score_of: Field = "score",
        human_of: Field = human_score,
        group_of: Field | None = None,
        scale: tuple[float, float] | None = None,
        close: float = 0.8,
        panel: Any = None,
    ) -> None:
        if isinstance(objective, Objective):
            self.by = objective
        else:
            self.by = objectives.get(objective)(level)
        self.close = close
        self._score_of = score_of
        self._human_of = human_of
        self._group_of = group_of
        self._pairs = [tuple(row[:2]) for row in getattr(panel, "results", panel) or ()]
        seen = [self.human(example) for example, _ in self._pairs]
        self.scale = scale or ((min(seen), max(seen)) if seen else None)

    def __call__(
        self,
        example: Any,
        prediction: Any,
        trace: Any = None,
        pred_name: Any = None,
        pred_trace: Any = None,
    ) -> Any:
        """Return one row's score, which remembers its row; with feedback if `pred_name` asks for it (GEPA)."""
        row = RowScore.of(self, example, prediction)
        if pred_name is None:
            return row
        import dspy

        return dspy.Prediction(
            score=float(row), feedback=self.feedback(example, prediction)
        )

    def over(self, result: Any, *, rounds: int = 2000) -> AgreementValue:
        """Compute agreement over a whole set, with a 95 % interval.

        Args:
            result: result of `dspy.Evaluate`, or (example, prediction) pairs; a prediction without a number is a failed
                row.
            rounds: resamples of documents; 0 for no interval.

        Returns:
            The value, its interval, and Q on the same rows.

        Raises:
            OptionError: If a field is missing, or documents are needed and unknown.
        """
        pairs = map(_pair, getattr(result, "results", result))
        return AgreementValue.of(*self._measurable(pairs), self.by, rounds=rounds)

    def value_of(self, pairs: Iterable[tuple[Any, Any]]) -> Reached:
        """Return the agreement over (example, prediction) pairs without an interval."""
        return self.by.reached(*self._measurable(pairs))

    def _measurable(self, pairs: Iterable[tuple[Any, Any]]) -> tuple[Vector, Rows]:
        """Return predictions in percent of the scale, and the human ratings of the same rows."""
        scores = list[tuple[float, float]]()
        groups = list[str]()
        named = list[Any]()
        for example, prediction in _fair(list(pairs)):
            scores.append(self.both(example, prediction))
            groups.append(self.group(example) or f"row {len(groups)}")
            named.append(example.get("system") if hasattr(example, "get") else None)
        human, predicted = np.array(scores, dtype=np.float64).T
        low, high = self.scale or (float(human.min()), float(human.max()))
        human, predicted = (
            100 * (values - low) / ((high - low) or 1.0)
            for values in (human, predicted)
        )
        systems = list(map(str, named)) if all(named) else None
        return predicted, Rows(human, groups, groups, systems)

    def both(self, example: Any, prediction: Any) -> tuple[float, float]:
        """Return the human score, and the predicted one: NaN where there is none."""
        failed = getattr(prediction, "failure", None)
        return self.human(example), math.nan if failed else number(
            self._score_of, prediction
        )

    def human(self, example: Any) -> float:
        """Return the human score of a row.

        Raises:
            OptionError: If it cannot be read.
        """
        return number(self._human_of, example, "human")

    def group(self, example: Any) -> str | None:
        """Return the document of a row; None where it is for itself."""
        if self._group_of is not None:
            return text_of(self._group_of, example)
        with suppress(
            OptionError, AttributeError
        ):  # of columns that could each be the source, or not of a mapping
            roles = roles_of(tuple(map(str, example.keys())))
            columns = [
                roles[role] for role in ("group", "doc_id", "source") if role in roles
            ]
            return next(
                (str(example[column]) for column in columns if example[column]), None
            )
        return None

    def row(self, example: Any, prediction: Any) -> float:
        """Return one row's score, in [0, 1].

        A failed row is worth 0 or, with a panel, an answer drawn at random from it.
        """
        human, predicted = self.both(example, prediction)
        if self._panel:
            return self._panel.concordance(self.name(example), human, predicted)
        if math.isnan(predicted):
            return 0.0
        if self.scale is None:
            return 1 / (1 + abs(predicted - human))
        return max(
            0.0, 1 - abs(predicted - human) / ((self.scale[1] - self.scale[0]) or 1.0)
        )

    def feedback(self, example: Any, prediction: Any) -> str:
        """Return the text that a reflection model reads about one answer.

        It holds human scores, so these can find their way into the instructions that the model writes.
        """
        human, predicted = self.both(example, prediction)
        if math.isnan(predicted):
            why = getattr(prediction, "failure", None) or "no score could be read"
            return f"People gave this output {human:g}; the judge gave no score ({_quote(str(why))})."
        line = f"People gave this output {human:g}, the judge {predicted:g}."
        return "\n".join(
            [
                line,
                *(
                    self._panel.contradictions(self.name(example), human, predicted)
                    if self._panel
                    else ()
                ),
            ]
        )

    def name(self, example: Any) -> str:
        """Return the row's document, or else its text."""
        return self.group(example) or _text(example)

    @cached_property
    def _panel(self) -> Panel | None:
        rows = [
            (*self.both(*pair), self.name(pair[0]), _text(pair[0]))
            for pair in self._pairs
        ]
        answered = [row for row in rows if math.isfinite(row[1])]
        drawn = np.sort(np.random.default_rng(3).permutation(len(answered))[:PANEL])
        if answered:
            return Panel(*zip(*(answered[i] for i in drawn), strict=True))
        return None


class Panel:
    """Reference rows that an answer is compared with.

    They hold human scores, the unoptimized program's scores, documents and texts. An answer's concordance is the mean
    over the rows of other documents of (1 + sign(p - p_j) sign(h - h_j)) / 2: 1 where judge and people order two rows
    alike, 0 where they order them the other way round, 0.5 where either sees a tie, or where there is no such row. Its
    mean over rows is (1 + tau-a) / 2 with one side of each pair held fixed.
    """

    def __init__(
        self,
        human: Sequence[float],
        predicted: Sequence[float],
        names: Sequence[str],
        texts: Sequence[str],
    ) -> None:
        self.human = np.array(human)
        self.predicted = np.array(predicted)
        self.names = names
        self.texts = texts

    def others(self, name: str) -> NDArray[np.intp]:
        """Return the places of the rows of other documents."""
        return np.flatnonzero([other != name for other in self.names])

    def concordance(self, name: str, human: float, predicted: float) -> float:
        """Return an answer's concordance with the rows of other documents, in [0, 1]."""
        others = self.others(name)
        if not len(others):
            return 0.5
        if math.isnan(predicted):
            drawn = self.predicted[others]
        else:
            drawn = np.array([predicted])
        judge = np.sign(drawn[:, None] - self.predicted[others][None, :])
        return float(
            np.mean((1 + judge * np.sign(human - self.human[others])[None, :]) / 2)
        )

    def contradictions(self, name: str, human: float, predicted: float) -> list[str]:
        """Return feedback: how often the judge orders rows as people do, and rows where it clearly does not."""
        others = self.others(name)
        if not len(others):
            return []
        sides = np.sign(predicted - self.predicted[others]) * np.sign(
            human - self.human[others]
        )
        wrong = sorted(
            others[sides < 0].tolist(), key=lambda i: (-abs(human - self.human[i]), i)
        )
        lines = [
            f"Compared with {len(others)} other outputs, the judge puts it on the same side as people do "
            f"{int((sides > 0).sum())} times and on the other side {len(wrong)} times."
        ]
        for i in wrong[:QUOTED]:
            below = self.human[i] > human
            lines.append(
                f"People rate this other output {'higher' if below else 'lower'} ({self.human[i]:g}), the judge "
                f'{"lower" if below else "higher"} ({self.predicted[i]:g}): "{_quote(self.texts[i])}"'
            )
        return lines


def _fair(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the rows whose prompts showed all demonstrations; all rows where these are too few."""
    whole = [pair for pair in pairs if not getattr(pair[1], "left_out", 0)]
    return whole if len(whole) >= FEWEST else pairs


def _pair(row: Sequence[Any]) -> tuple[Any, Any]:
    """Return example and prediction of a row of `dspy.Evaluate`'s results."""
    example, prediction, *_ = row
    return example, prediction


def _text(example: Any) -> str:
    return str(example.get("output") or "\n".join(map(str, example.inputs().values())))


def _quote(text: str) -> str:
    return shortened(disarm(text), LONGEST)


class RowScore(float, Enum):
    """A row's own score, which remembers its row.

    It has no members. It is an Enum since orjson, with which DSPy writes scores into prompts (SIMBA's rules), writes
    one as its value and refuses any other float than a plain one.
    """

    metric: Agreement
    pair: tuple[Any, Any]

    @classmethod
    def of(cls, metric: Agreement, example: Any, prediction: Any) -> RowScore:
        """Return the score of one row by a metric."""
        score = float(metric.row(example, prediction))
        result = float.__new__(cls, score)
        result._value_ = score
        result.metric = metric
        result.pair = (example, prediction)
        return result

    __repr__ = float.__repr__
    __str__ = float.__repr__
    __hash__ = float.__hash__

    def __format__(self, form: str) -> str:
        return format(float(self), form)

    def __bool__(self) -> bool:
        return float(self) >= self.metric.close

    def __add__(self, other: Any) -> Any:
        return Total(self.metric, Together((self,))) + other

    __radd__ = __add__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return float, (float(self),)


class Together(tuple[RowScore, ...]):
    """Rows that are measured together, once: DSPy looks at a sum twice after each row, for its line of progress."""

    @cached_property
    def reached(self) -> Reached:
        """Return the agreement over the rows."""
        return self[0].metric.value_of([row.pair for row in self])


@total_ordering
@dataclass(frozen=True, eq=False)
class Total:
    """The sum of some `RowScore`s: their number times their agreement, and `times` that."""

    metric: Agreement
    rows: Together
    times: float = 1.0

    def __add__(self, other: Any) -> Any:
        if isinstance(other, RowScore | Total):
            rows = Together((*self.rows, *getattr(other, "rows", (other,))))
            return replace(self, rows=rows)
        # What DSPy counts for a row whose program raised is a plain 0: the row is missing here, see `mean`.
        return self if other == 0 else float(self) + other

    __radd__ = __add__

    def __mul__(self, factor: float) -> Total:
        return replace(self, times=self.times * factor)

    __rmul__ = __mul__

    def __truediv__(self, count: float) -> float:
        return self.times * self.mean(count)

    def mean(self, count: float) -> float:
        """Return the agreement of the rows, of which there should be `count`.

        If some are missing, its lead over chance shrinks to the share that is there. Of fewer than 8 different rows
        their own scores are averaged.
        """
        if len({id(row.pair[0]) for row in self.rows}) < FEWEST:
            return math.fsum(self.rows) / count
        by = self.metric.by
        reached = self.rows.reached
        if reached.reason is not None:
            return by.worst
        lead = reached.value - by.chance
        return by.chance + lead * (len(self.rows) / count if lead > 0 else 1.0)

    def __float__(self) -> float:
        return self.times * self.mean(len(self.rows)) * len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Total | float | int) and float(self) == float(other)

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __round__(self, digits: int = 0) -> float:
        return round(float(self), digits)

    def __format__(self, form: str) -> str:
        return format(float(self), form)

    def __str__(self) -> str:
        return str(float(self))
