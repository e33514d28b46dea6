"""What a method reads of rows: by its model, in its columns, and by the trained reader where that has a weight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from judgesmith.errors import CallError, JudgesmithError, ModelError, OptionError
from judgesmith.programs.capabilities import TOGETHER
from judgesmith.programs.models.engine import PerLoop, in_thread
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.local import LLAMA_CPP, note_engine
from judgesmith.programs.progress import read as under_way
from judgesmith.programs.readings import trained
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.programs.readings.bindings.opening import Opened, open_reader
from judgesmith.programs.readings.experience import Experience, experience_of
from judgesmith.programs.readings.kinds import SIGNAL, TRAINED, RowReadings, read_rows
from judgesmith.programs.readings.passages import Text
from judgesmith.programs.readings.reader import Reader
from judgesmith.programs.sharing import each_once
from judgesmith.signatures.values import Item

#: Instead of a reader: no model reads the rows.
UNREAD = "none"
#: Rows that models of this process are given at a time: one that is read, and one whose texts are divided meanwhile.
#: Others wait in their order, so that rows end one after the other.
_TURNS = PerLoop(lambda: asyncio.Semaphore(2))


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows as a method's options say."""

    reader: str
    """The model that reads; "" is the judge's own, `UNREAD` none."""
    instruction: str
    """What the judged systems were asked to do."""
    aspect: str
    layers: int
    """Middle layers whose hidden states are read."""
    counted: bool
    """Whether length, overlap and repetition are read, too."""
    columns: tuple[Column, ...] = ()
    """Columns of the rows that are readings."""
    fitted_to: str | None = None
    """The model (`Opened.model`) whose readings the weights are of, None before there are weights."""
    fitted_way: str = ""
    """How that model was opened (`Opened.way`)."""
    asks_trained: bool = False
    """Whether the trained reader's score has a weight."""
    keeps: bool = False
    """Whether readings are kept on disk."""

    @property
    def reads_rows(self) -> bool:
        """Whether a model reads the rows."""
        return self.reader != UNREAD

    def opened(self, lm: LanguageModel) -> Opened:
        """Return the opened model that reads.

        Raises:
            ModelError: If it cannot be opened, or is another than the weights were fitted to.
        """
        opened = open_reader(self.reader, lm)
        if self.fitted_to is not None and opened.model != self.fitted_to:
            raise ModelError(
                f"this judge was fitted to the readings of another model (its SHA-256 begins {self.fitted_to[:12]}) "
                f"than {opened.reader.name} ({opened.model[:12]}); use that model (--reader …), or compile again"
            )
        if self.fitted_to is not None:
            before, now = (way or LLAMA_CPP for way in (self.fitted_way, opened.way))
            note_engine(opened.reader.name, before, now)
        return opened

    def text(self, item: Item) -> Text:
        """Return a row as it is read."""
        return Text(
            item.source or "",
            item.output,
            item.context or "",
            self.instruction,
            item.reference or "",
        )

    def experience(self, lm: LanguageModel, named: str) -> Experience:
        """Return what is known of the model's readings before labels.

        Raises:
            ModelError: If the model cannot be opened.
            OptionError: For `named` experience that is not there or not of this model.
        """
        if not self.reads_rows:
            return Experience()
        return experience_of(self.opened(lm).model, named)

    def read(self, item: Item, lm: LanguageModel) -> RowReadings:
        """Return what is read of one row: all but the model's own score.

        Raises:
            CallError: For a row that cannot be read.
            ModelError: For a model that cannot.
        """
        row = self._read([item], lm)[0]
        if isinstance(row, JudgesmithError):
            raise CallError(str(row)) from None
        return row

    async def aread(self, item: Item, lm: LanguageModel) -> RowReadings:
        """Read a row as `read` does, in a thread."""
        here = self.reads_rows and (self.reader != "" or lm.weights is not None)
        async with _TURNS() if here else nullcontext():
            return await in_thread(self.read, item, lm)

    def read_many(
        self, items: Sequence[Item], lm: LanguageModel, progress: Callable[[], None]
    ) -> list[RowReadings | None]:
        """Return what is read of each row, None for one that cannot be read.

        Args:
            items: The rows.
            lm: The judge's own model.
            progress: Called after each row.
        """
        result: list[RowReadings | None] = []
        for first in range(0, len(items), TOGETHER):
            for row in self._read(items[first : first + TOGETHER], lm):
                result.append(None if isinstance(row, JudgesmithError) else row)
                progress()
        return result

    def _read(
        self, items: Sequence[Item], lm: LanguageModel
    ) -> list[RowReadings | JudgesmithError]:
        """Return the readings of each row, or why it cannot be read."""
        reader: Reader | None = None
        if self.reads_rows:
            opened = self.opened(lm)
            keeps = self.keeps and lm.connection.cache
            reader = opened.kept if keeps else opened.reader
        texts = list(map(self.text, items))

        def read(places: Sequence[int]) -> list[RowReadings | JudgesmithError]:
            some = [texts[place] for place in places]
            with under_way.of_rows(len(some)):
                return read_rows(reader, some, layers=self.layers, counted=self.counted)

        keys = [(id(reader), text, self.layers, self.counted) for text in texts]
        rows = each_once(keys, read)
        return list(map(self._with_others, items, texts, rows))

    def _with_others(
        self, item: Item, text: Text, row: RowReadings | JudgesmithError
    ) -> RowReadings | JudgesmithError:
        """Return a row's readings with its columns, and the trained reader's score where that has a weight."""
        if isinstance(row, JudgesmithError):
            return row
        numbers: Mapping[str, float] = {
            f"{SIGNAL}.{column.name}": column.percent(column.value(item.columns))
            for column in self.columns
        }
        if not self.asks_trained:
            return replace(row, numbers={**numbers, **row.numbers})
        try:
            learnt = trained.trained_score(text, self.aspect)
        except OptionError as error:
            return error
        notes = tuple(
            f"the trained reader read {share:.0%} of the {of}"
            for of, share in learnt.shares.items()
        )
        numbers = {**numbers, TRAINED: learnt.score, **row.numbers}
        return replace(row, numbers=numbers, notes=notes)
