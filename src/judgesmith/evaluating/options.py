"""Options of `judgesmith check` beside rows and judges."""

from __future__ import annotations

from pathlib import Path

from judgesmith.agreement.meta.inputs import EvaluationOptions
from judgesmith.agreement.paired import LOOKS
from judgesmith.parts import option
from judgesmith.running.limits import Limits


class EvaluateOptions(Limits, EvaluationOptions):
    """Options of `judgesmith check`."""

    without_system: tuple[str, ...] = option(
        (), "Systems to leave out, e.g. a human reference."
    )
    markdown: Path | None = option(
        None,
        "Markdown file of the agreement and the result of --fail-under, for a pull request comment.",
    )
    figures: Path | None = option(
        None, "Folder for the figures of the report, as SVG and PDF."
    )
    slices: tuple[str, ...] = option(
        (),
        "Columns to split the agreement by, e.g. topic. Each value is compared with all other rows. Default: a column "
        "of languages, such as `lang`, if there is one; none: no column.",
    )
    table: Path | None = option(
        None, "Table of judges by coefficients, as .tex or .csv."
    )
    rows: Path | None = option(
        None,
        "Table of all rows with the human ratings and the scores of every judge, as .csv or .tex.",
    )
    epsilon: float = option(
        0.15,
        "Margin of the alternative annotator test: by how much a judge may be worse than a rater. The test's authors "
        "use 0.2 for experts, 0.15 for skilled raters, 0.1 for crowd workers.",
        ge=0,
        lt=1,
    )
    bar: float = option(
        0.8,
        "Share of fails that a judge has to find, and of passes to pass, to decide alone. Of categories and "
        "preferences: the share of people's.",
        gt=0.5,
        lt=1,
    )
    looks: int = option(
        LOOKS,
        "Number of runs with --baseline, e.g. commits, that share one error of 5 %.",
        ge=1,
    )
    anytime: bool = option(
        False,
        "Test gates so that they may be looked at after every label, and stop when decided.",
    )
    probability: str | None = option(
        None,
        "Column with the probability, in (0, 1], that a row was drawn for labelling. Default: label_chance, as "
        "`judgesmith label` writes it, else equal probabilities.",
    )
    min_coverage: float = option(
        0.95, "Minimum share of rows with a score to pass --fail-under.", ge=0, le=1
    )
