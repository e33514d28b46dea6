"""Synthetic examples: outputs that a judge scored, as chats in JSON lines, which other trainers read, too.

One object a line: `messages` (the prompt's turns and the answer, as chat trainers take them), and what our own training
reads: `source`, `output`, `context`, `reference`, `system`, `doc_id`, `group`, `aspect`, `percent` (0 to 100), `judge`
(its fingerprint), `made` (where the output is from), `definition` of the aspect and `task`, and `errors` (spans) and
`explanation` where the judge gave them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import LabelsError
from .records import Row

__all__ = ["LONGEST_LINE", "SyntheticError", "SyntheticRow", "read_synthetic"]

#: Bytes of a line at most: far more than any text that a small model reads.
LONGEST_LINE = 1 << 20
_PROBLEMS_SHOWN = 20
Text = Annotated[str, Field(max_length=400_000)]
#: Names go into tables and pages: nothing in them may be markup.
Name = Annotated[str, Field(max_length=400, pattern=r"^[^<>\x00-\x1f]*$")]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["system", "user", "assistant"]
    content: Text


class SyntheticError(BaseModel):
    """An error as a verdict has it; what else a verdict says of it is left out. how: "omission", "ungrounded" or the
    way in which its words were found. severity: from 1 to 5."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    text: Text = ""
    explanation: Text = ""
    severity: Annotated[float, Field(ge=1, le=5)] | None = None
    start: int | None = None
    end: int | None = None
    how: Name | None = None


class SyntheticRow(BaseModel):
    """One line of such a file."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    format: Literal["judgesmith.synthetic/1"] = "judgesmith.synthetic/1"
    id: Name
    source: Text = ""
    output: Annotated[Text, Field(min_length=1)]
    context: Text | None = None
    reference: Text | None = None
    system: Name | None = None
    doc_id: Name = ""
    group: Name = ""
    aspect: Name
    percent: Annotated[float, Field(ge=0, le=100)]
    judge: Name
    made: Name = "given"
    explanation: Text = ""
    errors: Annotated[list[SyntheticError], Field(max_length=64)] = []
    definition: Annotated[Text, Field(max_length=20_000)] = ""
    task: Annotated[Text, Field(max_length=20_000)] = ""
    messages: Annotated[list[_Message], Field(min_length=2, max_length=8)]

    def row(self, line: int) -> Row:
        """The row, with its score in percent under its aspect."""
        return Row(
            self.id, self.output, self.source, self.context, self.reference, self.system, self.doc_id or self.id,
            self.group or self.doc_id or self.id, {self.aspect: self.percent}, line=line,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Problem:
    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def read_synthetic(path: Path) -> list[tuple[SyntheticRow, Row]]:
    """Every line, checked: types, sizes, the scale of scores, no unknown key. Nothing is left out quietly.

    Raises LabelsError with each line that cannot be taken, the first twenty of them.
    """
    found: list[tuple[SyntheticRow, Row]] = []
    problems: list[_Problem] = []
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        if isinstance(line, str):
            problems.append(_Problem(number, line))
            continue
        try:
            made = SyntheticRow.model_validate(_json(line))
        except (ValidationError, ValueError, RecursionError) as error:
            problems.append(_Problem(number, _first(error)))
            continue
        if made.id in seen:
            problems.append(_Problem(number, f"the id {made.id[:40]!r} is also in line {seen[made.id]}"))
            continue
        seen[made.id] = number
        found.append((made, made.row(number)))
    if problems:
        more = f" (and {len(problems) - _PROBLEMS_SHOWN} more lines)" if len(problems) > _PROBLEMS_SHOWN else ""
        told = [f"{path.name}, {problem}" for problem in problems[:_PROBLEMS_SHOWN]]
        told[-1] += f"{more}; correct or remove such lines, or write the file again with `judgesmith synthesize`"
        raise LabelsError(*told)
    if not found:
        raise LabelsError(f"{path.name}: no example in it; `judgesmith synthesize` writes some")
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes | str]]:
    """Each line with its number from 1, or why it is not read: a line that is too long is never held as a whole."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                    yield number, f"the line has more than {LONGEST_LINE:,} bytes"
                elif line.strip():
                    yield number, line
    except OSError as error:
        raise LabelsError(f"{path.name} cannot be read: {error.strerror or error}") from None


def _json(line: bytes) -> Any:
    def refuse(name: str) -> float:
        raise ValueError(f"{name} is not a JSON number")

    def finite(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refuse(digits[:40])

    text = line.decode("utf-8")
    text.encode("utf-8")
    return json.loads(text, parse_constant=refuse, parse_float=finite)


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        said = f"{where}: {first['msg']}" if where else first["msg"]
        if where == "percent":
            said += "; scores are percent, 0 to 100"
        return _plain(said)
    return _plain(f"no JSON object ({error})")


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split())[:200])
