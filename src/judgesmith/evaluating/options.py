"""Options of `judgesmith evaluate` beside rows and judges."""

from __future__ import annotations

from pathlib import Path

from ..agreement.meta.inputs import EvaluationOptions
from ..parts import option
from ..running.limits import Limits


class EvaluateOptions(Limits, EvaluationOptions):
    """Options of `judgesmith evaluate`."""

    without_system: tuple[str, ...] = option(
        (), "Systems to leave out (e.g. a human reference)."
    )
    markdown: Path | None = option(
        None,
        "File for the agreement, and the result of --fail-under, as a comment for a pull request.",
    )
    figures: Path | None = option(
        None, "Folder for the report's figures, as SVG and PDF."
    )
    slices: tuple[str, ...] = option(
        (),
        "Columns to split the agreement by (e.g. language); each value is compared with all other rows.",
    )
    table: Path | None = option(
        None, "File for the agreement, judges against coefficients, as .tex or .csv."
    )
    rows: Path | None = option(
        None,
        "File for every row with human ratings and every judge's scores, as .csv or .tex.",
    )
    epsilon: float = option(
        0.15,
        "How much worse than a rater a judge may be to replace one, in the alternative annotator test: 0.2 for "
        "experts, 0.15 for skilled raters, 0.1 for crowd workers.",
        ge=0,
        lt=1,
    )
    min_coverage: float = option(
        0.95, "Share of rows that need a score to pass --fail-under.", ge=0, le=1
    )
