"""The file of rated versions: what people rated of earlier versions, beside the judge's scores of the same answers.

`compare --keep` appends to it, `--history` reads it. A line holds one answer without its texts, so that the file can
stand in a repository.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from judgesmith.errors import LabelsError, OptionError
from judgesmith.programs.atomic import write_whole

FORMAT = "judgesmith.version/1"


@dataclass(frozen=True)
class Kept:
    """One answer of a version. judge: what tells its judge from others. score, human: None where there is none."""

    version: str
    id: str
    document: str
    judge: str
    score: float | None
    human: float | None

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells the answer from others."""
        return self.version, self.document, self.id

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"format": FORMAT} | asdict(self)


def number(value: float) -> float | None:
    """Return a score as the file has it."""
    return None if math.isnan(value) else value


def is_kept(path: Path) -> bool:
    """Return whether a file holds kept versions."""
    try:
        with path.open(encoding="utf-8") as lines:
            return f'"{FORMAT}"' in next(lines, "")
    except (OSError, UnicodeDecodeError):
        return False


def read_kept(path: Path) -> list[Kept]:
    """Read the answers of a file.

    Raises:
        LabelsError: If a line is no answer, with the line.
    """
    found = []
    with path.open(encoding="utf-8") as lines:
        for place, line in enumerate(lines, 1):
            if line.strip():
                found.append(_read(line, f"{path.name}, line {place}"))
    return found


def _read(line: str, where: str) -> Kept:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise LabelsError(f"{where}: this is no line that `compare --keep` wrote")
    texts = dict[str, str]()
    for name in ("version", "id", "document", "judge"):
        if not isinstance(record.get(name), str):
            raise LabelsError(f"{where}: {name!r} is missing, or no text")
        texts[name] = record[name]
    numbers = dict[str, float | None]()
    for name in ("score", "human"):
        value = record.get(name)
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (plain and math.isfinite(value)):
            raise LabelsError(f"{where}: {name!r} is {value!r}, and no number")
        numbers[name] = None if value is None else float(value)
    return Kept(
        texts["version"],
        texts["id"],
        texts["document"],
        texts["judge"],
        numbers["score"],
        numbers["human"],
    )


def keep(path: Path, answers: Iterable[Kept]) -> int:
    """Write answers beside those of the file, in the place of the same ones; return how many answers it holds.

    Raises:
        LabelsError: If the file holds something else.
        OptionError: If it cannot be written.
    """
    every = {one.key: one for one in read_kept(path)} if path.exists() else {}
    for one in answers:
        before = every.get(one.key)
        if one.human is None and before is not None and before.human is not None:
            continue  # a rating is not lost when its row is scored again
        every[one.key] = one
    lines = [json.dumps(one.to_dict(), ensure_ascii=False) for one in every.values()]
    try:
        write_whole(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise OptionError(
            f"--keep {path} cannot be written: {error.strerror or error}"
        ) from None
    return len(lines)
