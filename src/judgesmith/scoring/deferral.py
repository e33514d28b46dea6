"""Rows of a scored file that are left to a person: those whose scores are least sure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..agreement.conformal import deferred
from ..errors import OptionError
from ..running.alone import alone
from ..running.plain import finite
from .scoring import SURROGATES

__all__ = ["mark_deferred", "refuse_deferring"]


def refuse_deferring(output: Path, sure: bool) -> None:
    """Raises OptionError for what `mark_deferred` could not do, before anything is spent. sure: whether the judge knows
    how sure its scores are."""
    if output.suffix.lower() != ".jsonl":
        raise OptionError("--defer works on .jsonl outputs; name the output .jsonl")
    if not sure:
        raise OptionError(
            "--defer needs a judge that knows how sure its scores are; compile it from labels with this version, and "
            "for one aspect"
        )


def mark_deferred(output: Path, share: float) -> int:
    """Write `"defer": true` or false into every row of a scored .jsonl file and return how many rows are to be left to
    a person: the share (rounded up) with the largest expected errors, rows without a score before all others."""
    with alone(output):
        chosen = deferred([_error(row) for row in _rows(output)], share)
        beside = output.with_name(f".{output.stem}.deferring{output.suffix}")
        try:
            with beside.open("w", encoding="utf-8", errors=SURROGATES) as file:
                for row, left in zip(_rows(output), chosen.tolist(), strict=True):
                    line = json.dumps(finite(row | {"defer": left}), ensure_ascii=False, allow_nan=False)
                    file.write(line + "\n")
            beside.replace(output)
        except OSError as error:
            raise OptionError(f"{output} cannot be written: {error.strerror or error}; its rows are kept") from None
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
    return int(chosen.sum())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _error(row: dict[str, Any]) -> float:
    verdict = row["verdict"]
    interval = verdict.get("interval")
    if verdict["failure"] or not isinstance(interval, dict) or not isinstance(interval.get("error"), float | int):
        return math.nan
    return float(interval["error"])
