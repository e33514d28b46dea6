"""JSON and JSON lines, as programs, people and tools of evaluation write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgesmith.datasets.encoding import binary
from judgesmith.datasets.exports import row_reader, rows_of_results
from judgesmith.datasets.formats import Text, TextFormat, formats
from judgesmith.datasets.tables import Record, table_records
from judgesmith.errors import LabelsError


@formats.register
class Json(TextFormat):
    """One JSON value, or several after each other."""

    name = "json"
    about = "JSON: a list of objects, an object of columns, results of evaluation tools"
    suffixes = (".json",)

    def rows(self, text: Text, notes: list[str]) -> Iterator[Record]:
        content = text.read()
        if not content.strip():
            return
        try:
            data = json.loads(content)
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise _malformed(
                    text.name, error.lineno, _reason(error), _advice(content, error.pos)
                ) from None
            data = list(_objects(content, text.name))
        except (ValueError, RecursionError) as error:
            raise _malformed(text.name, 1, str(error)) from None
        if isinstance(data, dict):
            from judgesmith.datasets.json_shapes import rows_in

            data = rows_of_results(data, text.name) or rows_in(data, text.name)
        elif _is_list_of_lists(data):
            raise LabelsError(
                f"{text.name}: a list of lists, without names of columns; write a list of objects (pandas: "
                "to_json(orient='records'))"
            )
        yield from table_records(data, text.name)


@formats.register
class JsonLines(TextFormat):
    """A JSON object a line. `score` appends its rows to such a file."""

    name = "jsonl"
    about = "JSON lines: an object a line"
    suffixes = (".jsonl", ".ndjson")
    grows = True

    def rows(self, text: Text, notes: list[str]) -> Iterator[Record]:
        row_of = row_reader()
        first = True
        for number, line in enumerate(text.lines(), 1):
            if not line.strip():
                continue
            if first and _goes_on(line):
                yield from Json().rows(text, notes)
                return
            first = False
            record = _object(text.name, number, line)
            yield row_of(record, f"{text.name}, line {number}")

    def count(self, path: Path) -> int | None:
        with binary(path) as lines:
            return sum(1 for line in lines if line.strip())


def _object(origin: str, number: int, line: str) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        record = _without_comma(line)
        if record is None:
            raise _malformed(origin, number, _reason(error)) from None
    if not isinstance(record, dict):
        raise LabelsError(
            f"{origin}, line {number}: a JSON object is needed, not {type(record).__name__}"
        )
    return record


def _malformed(
    origin: str, line: int, why: str, advice: str = "correct the line"
) -> LabelsError:
    return LabelsError(f"{origin}, line {line}: malformed JSON ({why}); {advice}")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, character {error.colno}"
    return str(error)


def _goes_on(line: str) -> bool:
    """Return True if the first line opens one JSON array, or an object on several lines."""
    if line.lstrip().startswith("["):
        return True
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return error.pos >= len(line.rstrip())
    except (ValueError, RecursionError):
        pass
    return False


def _without_comma(line: str) -> Any:
    """The object of a line that ends with a comma, as one that was copied from an array does; None for any other."""
    try:
        return json.loads(line.rstrip().removesuffix(","))
    except (ValueError, RecursionError):
        return None


def _is_list_of_lists(data: Any) -> bool:
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(row, list) for row in data)
    )


def _advice(content: str, place: int) -> str:
    """Return advice for an error there. Versions of Python point to a comma too many, or behind it."""
    closing = re.compile(r",?\s*([\]}])").match(content, place)
    if closing is None or not content[: closing.end() - 1].rstrip().endswith(","):
        return "correct the line"
    return f"there is a comma before {closing[1]!r}; take it away"


def _objects(content: str, origin: str) -> Iterator[Any]:
    """JSON values one after the other, as JSON lines are; perhaps with commas between them."""
    decoder = json.JSONDecoder()
    between = re.compile(r"[\s,]*")
    place = 0
    while (place := between.match(content, place).end()) < len(content):  # type: ignore[union-attr]
        try:
            value, place = decoder.raw_decode(content, place)
        except (ValueError, RecursionError) as error:
            line = content.count("\n", 0, getattr(error, "pos", place)) + 1
            raise _malformed(origin, line, _reason(error)) from None
        yield value
