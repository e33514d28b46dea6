"""The values that judges exchange: scales, criteria, error spans, verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
)
from pydantic_core import to_jsonable_python

from judgesmith.errors import OptionError
from judgesmith.rows import Item as Item
from judgesmith.tables import counted, facts, shortened


def json_number(value: float, digits: int = 6) -> float | None:
    """Return a number for JSON: None if it is NaN or infinite."""
    return round(float(value), digits) if math.isfinite(value) else None


#: A number that may be absent: NaN in Python, null in JSON.
Number = Annotated[
    float,
    BeforeValidator(lambda value: math.nan if value is None else value),
    PlainSerializer(json_number, return_type=float | None),
]

#: How a value is read from JSON: no key that it does not have.
CLOSED = ConfigDict(extra="forbid")
#: The ends of a scale lie within ± this.
FARTHEST = 1e12


@dataclass(frozen=True, slots=True)
class Scale:
    """A closed interval of scores, higher is better.

    Inside judgesmith every raw score is a *percent* in [0, 100]; a scale translates from and to the numbers of a user
    or of a prompt. Raises OptionError unless low < high and both lie within ±1e12, where sums and differences of scores
    stay finite.

    >>> Scale(1, 5).to_percent(4), Scale(1, 5).from_percent(50)
    (75.0, 3.0)
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if not -FARTHEST <= self.low < self.high <= FARTHEST:  # NaN is refused, too
            raise OptionError(
                f"a scale needs low < high, both within ±{FARTHEST:g}; got {self.low:g}..{self.high:g}"
            )

    def to_percent(self, value: float) -> float:
        """Return a score on this scale as a percent: 0 at `low`, 100 at `high`.

        It is outside 0..100 only for a score off the scale.

        >>> Scale(0, 0.07).to_percent(0.07)
        100.0
        """
        percent = (value - self.low) * 100.0 / (self.high - self.low)
        return min(100.0, percent) if value <= self.high else percent

    def from_percent(self, percent: float) -> float:
        """Return a percent as a score on this scale; NaN stays NaN."""
        return self.low + (self.high - self.low) * percent / 100.0

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One part of what an aspect means: a name of 1 to 80 characters and a definition of at most 2,000.

    >>> Criterion("Grammar", "Sentences are complete and free of errors.").name
    'Grammar'
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    name: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    definition: Annotated[str, StringConstraints(max_length=2000)]


@dataclass(frozen=True, slots=True)
class CriterionScore:
    """A criterion's score in [0, 100] (NaN where it could not be read) and the explanation written before it."""

    score: Number
    explanation: str = ""


#: How the place of an error was found in the judged output; "omission" and "ungrounded" have no offsets.
How = Literal["exact", "normalised", "fuzzy", "omission", "ungrounded"]


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """An error in the judged output.

    text: output[start:end], or what the model said where it could not be found (the place of an omission, say).
    severity: from 1 (hardly matters) to 5 (critical); NaN where the model gave none. start, end: code-point offsets
    into the output, both None where `how` is "omission" or "ungrounded". annotators: who reported it, in an ensemble.
    notes: what a reader should know (merged from several, flagged as invented).
    """

    text: str
    explanation: str
    severity: Number
    start: int | None = None
    end: int | None = None
    how: How | None = None
    annotators: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opinion:
    """The answer of one annotator of an ensemble about an output.

    percent: in [0, 100], NaN if the annotator failed (`failure` has the reason). outlier: its score is far from the
    others', and its errors were kept from the supervisor.
    """

    percent: Number
    label: str = ""
    explanation: str = ""
    errors: tuple[ErrorSpan, ...] = ()
    failure: str | None = None
    outlier: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of some calls.

    `calls` were sent to the model, `cached` were answered from the disk; tokens and seconds count sent calls only.
    `prefix_tokens` is the part of `prompt_tokens` that the server took from its prefix cache.
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prefix_tokens: int = 0
    seconds: float = 0.0
    retries: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.prefix_tokens + other.prefix_tokens,
            self.seconds + other.seconds,
            self.retries + other.retries,
        )

    @staticmethod
    def total(parts: Sequence[Usage]) -> Usage:
        """Return the sum of usages, none of them for none."""
        return parts[0] if len(parts) == 1 else sum(parts, Usage())

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            *(getattr(self, name) - getattr(other, name) for name in self.__slots__)
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


#: What a token's probability takes, among those of all words, where its way through the layers takes 1 (the 0.5B).
NUMBER = 0.5


@dataclass(frozen=True, slots=True)
class Passes:
    """The cost of reading beside calls: passes through a model, and about how many tokens they have together."""

    count: int = 0
    tokens: int = 0
    judged: int = 0
    """Those of them whose probabilities are wanted, which takes half as long again."""

    @property
    def work(self) -> float:
        """Return what reading takes, in tokens of which no probability is wanted."""
        return self.tokens + NUMBER * self.judged

    def __add__(self, other: Passes) -> Passes:
        return Passes(
            self.count + other.count,
            self.tokens + other.tokens,
            self.judged + other.judged,
        )


@dataclass(frozen=True, slots=True)
class Details:
    """Details of a verdict that only one method has.

    A subclass for each such method; its fields are JSON values or tuples of them.
    """

    def on(self, scale: Scale) -> Details:
        """Return the same with its amounts, which a method gives in percent, in points of the user's scale."""
        return self

    def is_far(self) -> bool:
        """Return whether the row is so unlike those that the judge learnt from that nothing measured on them holds."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return the details as JSON values; NaN and infinity become null."""
        data: dict[str, Any] = to_jsonable_python(self, inf_nan_mode="null")
        return data


@dataclass(frozen=True, slots=True)
class ReadDetails(Details):
    """Details read from JSON, where the method's own type is not known."""

    values: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the details as they were read from JSON."""
        return dict(self.values)


@dataclass(frozen=True, slots=True)
class ScoreInterval:
    """The interval that holds the human rating for a share `coverage` of outputs of new documents, on the user's scale.

    error: the expected distance of the judge's score from the human rating.
    """

    low: Number
    high: Number
    coverage: Number
    error: Number

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} ({self.coverage:.0%})"


class Verdict(BaseModel):
    """A judge's verdict on one output: a pydantic model, whose JSON has null for an absent number.

    Return it from FastAPI; read it again with `Verdict.model_validate_json`; a copy with changes is
    `verdict.model_copy(update=…)`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: Number = math.nan
    """On the user's scale; NaN where there is none, then `failure` says why. A failure is never a low score."""
    explanation: str = ""
    percent: Number = math.nan
    """The judge's raw score in [0, 100], before calibration."""
    criteria: Mapping[str, CriterionScore] = Field(default_factory=dict)
    """By name, where the method scores criteria."""
    errors: tuple[ErrorSpan, ...] = ()
    """Error spans, where the method marks errors."""
    failure: str | None = None
    repaired: bool = False
    """The answer was not in the form asked for but was unambiguous."""
    notes: tuple[str, ...] = ()
    """What else a reader should know: a fallback taken, a missing explanation."""
    suspicious: str | None = None
    """What in the output, or in what was shown with it, addresses a judge and could have moved the score."""
    interval: ScoreInterval | None = None
    """How sure the score is, where the judge was compiled from labels; None for a row far from them, with a note."""
    spread: Number = math.nan
    """The standard deviation of the opinions' scores on the user's scale, NaN for fewer than two."""
    opinions: Mapping[str, Opinion] = Field(default_factory=dict)
    """By annotator, where several judged."""
    category: str | None = None
    """What was decided, by a judge compiled from categories."""
    passed: bool | None = None
    """What was decided, by a judge compiled from pass and fail."""
    partly: Mapping[str, float] = Field(default_factory=dict)
    """The share of a text that was read, where that is not all: `{"source": 0.12}`. For a model that reads the row, the
    context counts with the source. `notes` says which part it was."""
    details: Annotated[
        Details | None,
        BeforeValidator(
            lambda value: ReadDetails(value) if isinstance(value, Mapping) else value
        ),
        PlainSerializer(
            lambda value: value and value.to_dict(), return_type=dict[str, Any] | None
        ),
    ] = None
    """What only this method gives, typed by method."""
    raw: tuple[str, ...] = ()
    """The model's texts."""
    usage: Usage = Usage()
    aspects: Annotated[
        Mapping[str, Verdict],
        PlainSerializer(
            lambda verdicts: {name: one.to_dict() for name, one in verdicts.items()},
            return_type=dict[str, Any],
        ),
    ] = Field(default_factory=dict)
    """By aspect, where the judge has several: a verdict each, on a scale of its own. `score` is their overall."""

    if (
        not TYPE_CHECKING
    ):  # values may stand without their names, in the order of the fields

        def __init__(self, *values: Any, **fields: Any) -> None:
            if values:
                named = zip(type(self).model_fields, values, strict=False)
                super().__init__(**dict(named), **fields)
            else:
                super().__init__(**fields)

    @classmethod
    def failed(
        cls, reason: str, *, usage: Usage | None = None, raw: tuple[str, ...] = ()
    ) -> Self:
        """Return a verdict without a score, with the reason as its `failure`.

        >>> Verdict.failed("HTTP 500 after 5 attempts")
        Verdict(score=no score: HTTP 500 after 5 attempts)
        """
        return cls(score=math.nan, failure=reason, usage=usage or Usage(), raw=raw)

    def to_dict(self, *, raw: bool = False) -> dict[str, Any]:
        """Plain JSON types; NaN becomes None. The model's own texts only with `raw=True`.

        >>> Verdict(4.5, "Clear.").to_dict()["score"]
        4.5
        """
        absent = {
            name
            for name in _ABSENT
            if not getattr(self, name) and getattr(self, name) is not False
        }
        absent |= {"spread"} if not self.opinions else set()
        return self.model_dump(
            mode="json", exclude={"usage", *([] if raw else ["raw"]), *absent}
        )

    def _outcome(self) -> str:
        """The score, or why there is none."""
        score = "no score" if math.isnan(self.score) else f"{self.score:g}"
        return score if self.failure is None else f"{score}: {self.failure}"

    def _repr_html_(self) -> str:
        """For notebooks: score, explanation, criteria and errors. Nothing that a model or a row says is markup."""
        rows = [("score", self._outcome())]
        if self.interval is not None:
            rows.append(
                (
                    f"{self.interval.coverage:.0%} interval",
                    f"[{self.interval.low:g}, {self.interval.high:g}]",
                )
            )
        for name, verdict in self.aspects.items():
            rows.append((name, verdict._outcome()))
        rows += [
            (name, f"{_shown(c.score)} {c.explanation}")
            for name, c in self.criteria.items()
        ]
        rows += [
            (f"error, severity {_shown(e.severity)}", f"{e.text!r}: {e.explanation}")
            for e in self.errors
        ]
        rows += [("explanation", self.explanation)] if self.explanation else []
        rows += [("suspicious", self.suspicious)] if self.suspicious else []
        rows += [("note", note) for note in self.notes]
        return facts(rows)

    def __repr__(self) -> str:
        """On one line; `to_dict()` has everything."""
        parts = [f"score={self._outcome()}"]
        if self.interval is not None:
            parts[0] += f" [{self.interval.low:g}, {self.interval.high:g}]"
        if self.category is not None:
            parts.append(f"category={self.category!r}")
        for name, verdict in self.aspects.items():
            parts.append(f"{name}={_shown(verdict.score)}")
        if self.errors:
            parts.append(counted(len(self.errors), "error"))
        if self.suspicious:
            parts.append(f"suspicious={shortened(self.suspicious)!r}")
        if self.explanation:
            parts.append(repr(shortened(self.explanation)))
        return shortened(f"Verdict({', '.join(parts)})", 240)

    __str__ = __repr__


def _shown(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "–"


#: Fields that a verdict's JSON leaves out where they say nothing.
_ABSENT = (
    "partly",
    "interval",
    "opinions",
    "category",
    "passed",
    "details",
    "aspects",
)
