"""A panel of readings: what is read of a row, in the order that computes least, and the table of many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import OptionError
from .forms import Text, about, after_reply, passage
from .kinds import Asked, Read, Reading, Wants
from .reader import Floats, Reader, TokenReading

__all__ = ["Panel", "RowReadings"]


@dataclass(frozen=True)
class RowReadings:
    """One row's numbers and states by name, and how the model took each token in the first form that was read."""

    numbers: dict[str, float]
    states: dict[str, Floats]
    tokens: TokenReading | None = None

    def surprise(self, text: str) -> list[tuple[str, float]]:
        """The text cut into the model's tokens, each with -log p in nats: a heat map of what is improbable."""
        if self.tokens is None:
            return []
        starts = (0, *self.tokens.ends)
        spans = zip(starts, self.tokens.ends, self.tokens.logp, strict=False)
        return [(text[start:end], -float(logp)) for start, end, logp in spans]


class Panel:
    """Readings that are taken together.

    Raises: OptionError without readings, if the reader cannot give what one of them needs, or if two of them give
    numbers of one name.
    """

    def __init__(self, readings: Sequence[Reading], reader: Reader) -> None:
        if not readings:
            raise OptionError("a panel needs at least one reading")
        self.readings = tuple(readings)
        self.reader = reader
        wants = [reading.wants(reader.ability) for reading in readings]
        self._forms: dict[str, set[int]] = {}
        for want in wants:
            for form, layers in want.forms.items():
                self._forms.setdefault(form, set()).update(layers)
        self._questions = _joined(wants)

    @property
    def cost(self) -> dict[str, int]:
        """What a row costs: passages (prefills of the whole row) and questions (a few tokens each, on one of them)."""
        return {"passages": len(self._forms), "questions": len(self._questions)}

    def read(self, text: Text) -> RowReadings:
        """One row's readings. Raises: what the reader raises; OptionError for a row without an output."""
        reader, chat = self.reader, self.reader.chat
        passages, answers = {}, {}
        for form in dict.fromkeys([*self._forms, *(asked.on for asked in self._questions.values())]):
            if form in self._forms:
                passages[form] = reader.read(passage(form, text, chat), layers=sorted(self._forms[form]))
            ask = about if form == "tags" else after_reply
            for name, asked in self._questions.items():
                if asked.on == form:
                    answers[name] = reader.answer(ask(text, chat, asked.text, asked.answers))
        read = Read(text, passages, answers)
        numbers: dict[str, float] = {}
        states: dict[str, Floats] = {}
        for reading in self.readings:
            numbers |= reading.numbers(read)
            states |= reading.states(read)
        return RowReadings(numbers, states, next(iter(passages.values()), None))

    def table(self, rows: Iterable[Text], *, progress: Callable[[int], None] | None = None) -> list[RowReadings]:
        """Readings of many rows. Rows of one source next to each other share its computation."""
        found = []
        for number, text in enumerate(rows, start=1):
            found.append(self.read(text))
            if progress:
                progress(number)
        return found


def _joined(wants: Iterable[Wants]) -> dict[str, Asked]:
    questions: dict[str, Asked] = {}
    for want in wants:
        for name, asked in want.questions.items():
            if questions.setdefault(name, asked) != asked:
                raise OptionError(f"two readings ask different questions under the name {name!r}; rename one")
    return questions
