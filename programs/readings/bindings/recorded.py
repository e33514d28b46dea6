"""A model that is not there: `recorded:FILE#COLUMN`.

It repeats another judge's scores of the same rows, so that a judge can be studied on a strong model without calling it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from judgesmith.errors import JudgesmithError, ModelError, OptionError
from judgesmith.likeness import folded
from judgesmith.lines import json_lines
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models import row_context
from judgesmith.programs.models.connection import Connection
from judgesmith.programs.models.provider import RECORDED, Provider, Reached
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.signatures.values import Item


class RecordedScores:
    """A model that answers for every row with a number of a file, from 0 to 100.

    FILE has a row as JSON in every line, and COLUMN is written as in `--signal`, by default `verdict.score`, as
    `judgesmith score` writes it. A row is found by its texts. Only methods that ask for one number can be studied with
    it: `direct`, and `readings` with a reader. A second prompt for the same row is refused: its answer would be the
    first one's. Raises OptionError for a file that cannot be read, or a row without the column.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        file, _, column = name.removeprefix(RECORDED).partition("#")
        wanted = Column.of(column or "verdict.score")
        scores = dict[tuple[str, str], float]()
        try:
            data = Path(file).read_bytes()
        except OSError as error:
            raise OptionError(f"{name}: {file} cannot be read ({error})") from None
        for number, line in json_lines(data):
            try:
                record = json.loads(line)
                scores[_key(Item.of(record))] = wanted.value(record)
            except (ValueError, JudgesmithError) as error:
                raise OptionError(
                    f"{file}, line {number}: {error}; a recorded model, {RECORDED}FILE#COLUMN, repeats a column of "
                    "lines of JSON"
                ) from None
        self._scores = scores
        self._column = wanted.with_ends(scores.values())

    async def send(self, request: Request) -> Reply:
        """Return the recorded score of the row under judgement."""
        item = row_context.current()
        if item is None:
            raise ModelError(
                "a recorded model answers nothing but rows under judgement"
            )
        prompts = row_context.prompts()
        prompts.add(json.dumps(request.messages))
        if len(prompts) > 1:
            raise ModelError(
                f"{self._name} has one number for a row, and this judge asks for several, in different prompts; take a "
                "method that asks for one, such as --method direct"
            )
        score = self._scores.get(_key(item), math.nan)
        if math.isnan(score):
            raise Unanswered("nothing was recorded of this row", again=False)
        return Reply(f"Score: {self._column.percent(score):.10g}", completion_tokens=1)


class Recorded(Provider):
    """Scores of another judge."""

    name = RECORDED
    about = "Scores that are in a file: recorded:FILE#COLUMN."
    probed = False
    free = True
    absent = True

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Read the file. Raises OptionError for one that cannot be read."""
        return Reached(
            name=name,
            transport=RecordedScores(name),
            identity="",
            kept=False,
        )


def _key(item: Item) -> tuple[str, str]:
    return folded(item.source).key, folded(item.output).key
