"""Files of JSON lines: what commands read and wrote."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

#: The fixture rows_file: rows_file(48) makes a file of 48 rows.
Rows = Callable[..., Path]


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """The file, with a record a line."""
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
    )
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
