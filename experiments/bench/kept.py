"""Keep what a measurement has found as it runs, so that the same command goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Kept:
    """Found values in a file of JSON lines.

    path: None for values that are not kept beyond the run.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.lines: list[Any] = []
        if path is not None:
            path.touch()
            lines = path.read_text(encoding="utf-8").splitlines()
            self.lines += map(json.loads, lines)

    def add(self, value: Any) -> Any:
        """Keep a value, and return it as the next run reads it."""
        line = json.dumps(value)
        self.lines.append(json.loads(line))
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                print(line, file=file)
        return self.lines[-1]
