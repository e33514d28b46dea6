"""Rows of a scored file that are left to a person: those whose scores are least sure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..agreement.conformal import deferred
from ..errors import OptionError
from ..running.journal import alone, read_journal, replacing

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
        chosen = deferred([_error(row) for _, row in read_journal(output)], share)
        with replacing(output) as journal:
            for (_, row), left in zip(read_journal(output), chosen.tolist(), strict=True):
                journal.write(row | {"defer": left})
    return int(chosen.sum())


def _error(row: dict[str, Any]) -> float:
    verdict = row["verdict"]
    interval = verdict.get("interval")
    if verdict["failure"] or not isinstance(interval, dict) or not isinstance(interval.get("error"), float | int):
        return math.nan
    return float(interval["error"])
