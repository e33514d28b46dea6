"""Synthetic examples: outputs that a judge scored, as chats in JSON lines, which other trainers read, too.

One object a line: `messages` (the prompt's turns and the answer, as chat trainers take them), and what our own training
reads: `source`, `output`, `context`, `reference`, `system`, `doc_id`, `group`, `aspect`, `percent` (0 to 100), `judge`
(its fingerprint), `made` (where the output is from), `definition` of the aspect and `task`, and `errors` (spans) and
`explanation` where the judge gave them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judgesmith.datasets.row import Row
from judgesmith.errors import LabelsError
from judgesmith.lines import json_lines

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
    """An error of a verdict, without what a verdict holds beside it.

    how: "omission", "ungrounded" or the way in which its words were found. severity: from 1 to 5.
    """

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
        """Return the row, with its score in percent under its aspect."""
        return Row(
            self.output,
            self.source,
            self.context,
            self.reference,
            id=self.id,
            system=self.system,
            doc_id=self.doc_id or self.id,
            group=self.group or self.doc_id or self.id,
            scores={self.aspect: self.percent},
            line=line,
        )


def read_synthetic(path: Path) -> list[tuple[SyntheticRow, Row]]:
    """Return every line, checked: types, sizes, the scale of scores, no unknown key. Nothing is left out quietly.

    Raises:
        LabelsError: If lines are invalid; the message has the first twenty.
    """
    result: dict[str, tuple[SyntheticRow, Row]] = {}
    problems: list[str] = []
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LabelsError(
            f"{path.name} cannot be read: {error.strerror or error}"
        ) from None
    for number, line in json_lines(data):
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError(f"the line has more than {LONGEST_LINE:,} bytes")
            example = SyntheticRow.model_validate_json(line)
            if example.id in result:
                raise ValueError(
                    f"the id {example.id[:40]!r} is also in line {result[example.id][1].line}"
                )
            result[example.id] = example, example.row(number)
        except ValueError as error:
            problems.append(f"{path.name}, line {number}: {_first(error)}")
    if problems:
        if len(problems) > _PROBLEMS_SHOWN:
            more = f" (and {len(problems) - _PROBLEMS_SHOWN} more lines)"
        else:
            more = ""
        shown = problems[:_PROBLEMS_SHOWN]
        shown[-1] += (
            f"{more}; correct or remove such lines, or write the file again with `judgesmith synthesize`"
        )
        raise LabelsError(*shown)
    if not result:
        raise LabelsError(
            f"{path.name}: no example in it; `judgesmith synthesize` writes some"
        )
    return list(result.values())


def _first(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))[:80]
    text = f"{where}: {first['msg']}" if where else first["msg"]
    text += "; scores are percent, 0 to 100" if where == "percent" else ""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split())[:200])
