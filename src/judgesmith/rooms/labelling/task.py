"""Questions about a row, and their answers."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, assert_never, get_args

from judgesmith.datasets.spans import SEVERITIES
from judgesmith.errors import OptionError

Kind = Literal["score", "category", "binary", "preference", "spans"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Answers of one question that have a key of their own; of a longer scale people type the number.
MOST_CHOICES = 10
MOST_ERRORS = 500
LONGEST_NOTE = 2000
#: Where an answer has its reasons.
WHY = "why"


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer. key: what is pressed for it."""

    value: str | float
    label: str
    key: str


@dataclass(frozen=True, slots=True)
class Question:
    """Something asked of a row. choices: the answers, worst first; none: a number from low to high is typed."""

    name: str
    text: str
    choices: tuple[Choice, ...] = ()
    low: float = math.nan
    high: float = math.nan

    def read(self, value: Any) -> str | float:
        """Return a checked answer of unknown origin.

        Raises:
            ValueError: If the question has no such answer.
        """
        if not self.choices:
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not self.low <= value <= self.high
            ):
                raise ValueError(
                    f"{self.name}: give a number from {self.low:g} to {self.high:g}"
                )
            return float(value)
        for choice in self.choices:
            if type(value) is not bool and value == choice.value:
                return choice.value
        raise ValueError(
            f"{self.name}: choose one of {', '.join(choice.label for choice in self.choices)}"
        )

    def number(self, value: str | float) -> float:
        """Return an answer as a number: its place from 0 to 1."""
        if not self.choices or isinstance(value, int | float):
            return (float(value) - self.low) / (self.high - self.low)
        return [choice.value for choice in self.choices].index(value) / (
            len(self.choices) - 1
        )

    def level(self, value: str | float) -> float:
        """Return an answer on people's scale: the score, or the place of the word from 0."""
        if isinstance(value, int | float):
            return float(value)
        return self.number(value) * (len(self.choices) - 1)

    def apart(self, one: str | float, other: str | float) -> float:
        """Return the distance of two answers: 0 for equal ones, 1 for the ends of the scale."""
        return abs(self.number(one) - self.number(other))

    def shown(self, value: str | float) -> str:
        """Return an answer in words."""
        return next(
            (choice.label for choice in self.choices if choice.value == value),
            f"{value:g}" if isinstance(value, float) else str(value),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the question for the page."""
        number = {} if self.choices else {"low": self.low, "high": self.high}
        return {
            "name": self.name,
            "text": self.text,
            "choices": [asdict(choice) for choice in self.choices],
            **number,
        }


@dataclass(frozen=True)
class Unit:
    """A row, or a pair of rows, that gets one answer.

    row: the texts and names of the row. line: line of the file, from 1, if the unit is one row of it. extra: columns
    without a role, which go into the export.
    """

    key: str
    row: Mapping[str, Any]
    line: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """The task of all raters of a store.

    aspects: a question each, if there are several. scale: of scores. categories: worst first. repeats: the share of
    rows that each rater is shown twice. why: ask for a reason after every answer; else it is optional.
    """

    kind: Kind = "score"
    aspects: tuple[str, ...] = ()
    scale: tuple[float, float] = (1.0, 5.0)
    categories: tuple[str, ...] = ()
    repeats: float = 0.0
    why: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(
                f"--kind {self.kind}: unknown kind; use one of {', '.join(KINDS)}"
            )
        low, high = self.scale
        if not -1e12 <= low < high <= 1e12:
            raise OptionError(
                f"--scale {low:g} {high:g}: give two numbers, the worst score first and lower"
            )
        wanted = {"category": "two to ten", "binary": "two"}
        if self.categories and self.kind not in wanted:
            raise OptionError(
                f"--categories: labels of kind {self.kind} have none; pass --kind category"
            )
        needed = self.kind == "category" or self.categories
        count = len(self.categories)
        if needed and (
            not 2 <= count <= MOST_CHOICES or (self.kind == "binary" and count > 2)
        ):
            raise OptionError(
                f"--categories: {count} given, {wanted[self.kind]} are needed, worst first: --categories bad,ok,good"
            )
        if len({word.casefold() for word in self.categories}) < count or not all(
            self.categories
        ):
            raise OptionError(
                "--categories: the words must differ from each other, and none may be empty"
            )
        if len(self.aspects) > 1 and self.kind not in ("score", "category", "binary"):
            raise OptionError(
                f"--aspect: labels of kind {self.kind} are of one aspect; give one"
            )
        if len({aspect.casefold() for aspect in (*self.aspects, WHY)}) <= len(
            self.aspects
        ) or not all(self.aspects):
            raise OptionError(
                f"--aspect: the names must differ, from {WHY!r} too, and none may be empty"
            )
        if self.why and not self.takes_why:
            raise OptionError(
                f"--why: labels of kind {self.kind} have no reasons; leave it out"
            )
        if not 0 <= self.repeats <= 1:
            raise OptionError(
                f"--repeats {self.repeats:g}: give a share from 0 to 1, for example 0.1"
            )

    @property
    def title(self) -> str:
        """The aspects, or a title of the kind of labels."""
        kinds = {"preference": "Which is better?", "spans": "Errors"}
        return ", ".join(self.aspects) or kinds.get(self.kind, "Quality")

    @property
    def takes_why(self) -> bool:
        """True if answers have a reason; errors marked in a text have one each."""
        return self.kind != "spans"

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions about a row; none if errors are marked in the text."""
        match self.kind:
            case "spans":
                return ()
            case "preference":
                sides = (
                    Choice("b", "B is better", "b"),
                    Choice("tie", "Equally good", "t"),
                    Choice("a", "A is better", "a"),
                )
                text = self._text("Which output is better?")
                return (Question("preference", text, sides),)
            case "score":
                low, high = self.scale
                ends = f"{low:g} is the worst, {high:g} the best."
                if len(self.aspects) < 2:
                    ends = self._text(f"How good is the output? {ends}")
                scale = _scale(self.kind, ends, float(low), float(high))
                return self._of_aspects(scale)
            case "category" | "binary":
                text = self._text("How good is the output?")
                return self._of_aspects(Question(self.kind, text, self._words()))
            case never:
                assert_never(never)

    def _words(self) -> tuple[Choice, ...]:
        """Return the categories as answers by digits; fail and pass by their letters, where none are named."""
        if not self.categories:
            return (Choice("fail", "fail", "f"), Choice("pass", "pass", "p"))
        return tuple(
            Choice(word, word, _digit(place))
            for place, word in enumerate(self.categories, 1)
        )

    def _text(self, otherwise: str) -> str:
        if len(self.aspects) == 1:
            return f"{self.aspects[0]}: {otherwise}"
        return otherwise

    def _of_aspects(self, question: Question) -> tuple[Question, ...]:
        several = self.aspects if len(self.aspects) > 1 else ()
        return tuple(replace(question, name=aspect) for aspect in several) or (
            question,
        )

    def read(self, unit: Unit, answer: Any) -> dict[str, Any]:
        """Return a checked answer of unknown origin.

        It is {question: value}, perhaps with {"why": {question: text}}, or {"errors": [...]}.

        Raises:
            ValueError: If it does not fit the task.
        """
        if not isinstance(answer, Mapping):
            raise ValueError("an answer must be an object")
        if self.kind == "spans":
            return {"errors": _errors(answer.get("errors"), unit.row["output"])}
        values: dict[str, Any] = {
            q.name: q.read(answer.get(q.name)) for q in self.questions
        }
        reasons = _reasons(answer.get(WHY) or {}, values) if self.takes_why else {}
        return values | ({WHY: reasons} if reasons else {})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Task:
        """Return the task from its saved form."""
        old = {
            name: value for name, value in data.items() if name != "aspect"
        }  # of stores with one aspect
        aspects = data.get("aspects") or filter(None, [data.get("aspect")])
        lists = {
            "scale": data["scale"],
            "categories": data["categories"],
            "aspects": aspects,
        }
        return cls(**old | {name: tuple(values) for name, values in lists.items()})


def _digit(place: int) -> str:
    return str(place % 10)


def _scale(name: str, text: str, low: float, high: float) -> Question:
    steps = high - low
    if not (low.is_integer() and steps.is_integer() and steps < MOST_CHOICES):
        return Question(name, text, (), low, high)
    own = low >= 0 and high <= 9  # else the first has the key 1, the tenth 0
    choices = []
    for step in range(int(steps) + 1):
        value = low + step
        label = f"{value:g}"
        choices.append(Choice(value, label, label if own else _digit(step + 1)))
    return Question(name, text, tuple(choices), low, high)


def _reasons(value: Any, questions: Container[str]) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(
        q in questions and _is_note(text) for q, text in value.items()
    ):
        raise ValueError(
            f"{WHY}: give a text of {LONGEST_NOTE} characters at most for each question"
        )
    return {question: text.strip() for question, text in value.items() if text.strip()}


def _is_note(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST_NOTE


def _errors(value: Any, output: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > MOST_ERRORS:
        raise ValueError(f"errors: give a list of {MOST_ERRORS} at most")
    errors = [_error(one, output) for one in value]
    return sorted(
        errors,
        key=lambda error: (
            error["start"] is None,
            error["start"] or 0,
            error["end"] or 0,
        ),
    )


def _error(value: Any, output: str) -> dict[str, Any]:
    """Return an error as `judgesmith check --spans` reads it. Offsets count code points."""
    if not isinstance(value, Mapping):
        raise ValueError("errors: each must be an object")
    start: Any = value.get("start")
    end: Any = value.get("end")
    severity = value.get("severity")
    note = value.get("explanation")
    nowhere = start is None and end is None
    if not nowhere and not (
        type(start) is int and type(end) is int and 0 <= start < end <= len(output)
    ):
        raise ValueError(
            f"errors: characters {start} to {end} do not lie in the {len(output)} of the text"
        )
    if type(severity) is not int or not 1 <= severity <= len(SEVERITIES):
        raise ValueError(f"errors: severity is a number from 1 to {len(SEVERITIES)}")
    if note is not None and not _is_note(note):
        raise ValueError(
            f"errors: an explanation is a text of {LONGEST_NOTE} characters at most"
        )
    words = "" if nowhere else output[start:end]
    return {
        "text": words,
        "start": start,
        "end": end,
        "severity": severity,
        "explanation": (note or "").strip(),
    }
