"""Files of JSON lines for commands to read."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """The file, with a record a line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path
