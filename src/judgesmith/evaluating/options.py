"""What `judgesmith evaluate` has to choose beside the rows and the judges."""

from __future__ import annotations

from pathlib import Path

from ..agreement.meta.inputs import EvaluationOptions
from ..parts import option
from ..running.limits import Limits


class EvaluateOptions(Limits, EvaluationOptions):
    """Options of `judgesmith evaluate`."""

    without_system: tuple[str, ...] = option((), "Leave these systems' rows out (a human reference, say).")
    markdown: Path | None = option(
        None, "Write the agreement, and whether --fail-under passed, as a comment for a pull request."
    )
    figures: Path | None = option(None, "Write the figures of the report into this folder, as SVG and PDF.")
    min_coverage: float = option(0.95, "Share of rows that need a score to pass --fail-under.", ge=0, le=1)
