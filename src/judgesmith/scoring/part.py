"""A share of a file's rows, so that several machines score one file: `--part 3/8`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from ..datasets.records import Row
from ..errors import OptionError

#: Neighbouring rows of one document that stay in one part, where they share what the model has read before.
TOGETHER = 16
#: The column by which joined parts are sorted: the row's number in the input, from 1.
NUMBER = "input_row"


class Part(NamedTuple):
    """One of `parts` parts, which have each row of a file once; `number` is from 1."""

    number: int
    parts: int

    @classmethod
    def read(cls, text: str) -> Self:
        """The part of `I/N`. Raises OptionError."""
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise OptionError(f"--part {text} is not I/N with I from 1 to N; for the third of eight parts give 3/8")
        return cls(int(match[1]), int(match[2]))

    def output(self, path: str) -> str:
        """The file of this part alone: scores.3-of-8.jsonl of scores.jsonl. Raises OptionError for another kind."""
        if not path.lower().endswith(".jsonl"):
            raise OptionError(f"{path}: parts are joined as lines of JSON; with --part name the output .jsonl")
        return f"{path[:-6]}.{self.number}-of-{self.parts}{path[-6:]}"

    def of(self, rows: Iterator[tuple[Row, dict[str, Any]]]) -> Iterator[tuple[Row, dict[str, Any]]]:
        """Its rows, numbered. Only the rows before decide on a row, so that all machines split a file alike."""
        block, size, document = -1, 0, ""
        for row, record in rows:
            if row.doc_id != document or size == TOGETHER:
                block, size, document = block + 1, 0, row.doc_id
            size += 1
            if block % self.parts == self.number - 1:
                yield row, {NUMBER: row.line} | record | {NUMBER: row.line}
