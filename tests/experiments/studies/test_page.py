"""The page of a study: the result first, figures that hold every line, every text escaped."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

from pages import gap, line

from judgesmith.experiments.studies.analysis import Analysis, Line
from judgesmith.experiments.studies.page import lead, render

HOSTILE = "</title><script>alert(1)</script> \x1b[31m"


def analysis(*lines: Line, sizes: tuple[int, ...] = (10, 40)) -> Analysis:
    config: Any = SimpleNamespace(
        baseline="none",
        train=sizes,
        study="labels",
        lm=[HOSTILE],
        seeds=[0, 1],
        aspect=HOSTILE,
        labels="l.csv",
    )
    return Analysis(config, list(lines), [], notes=[HOSTILE])


LINES = (
    line("none", 0.5, 10, 20),
    line("none", 0.6, 40, 80),
    line("search", 0.4, 10, 400, gap(-0.1, 0.4)),
    line("search", 1.1, 40, 1600, gap(0.5, 0.004)),
)


def test_the_best_line_comes_first_with_its_lead_and_certainty() -> None:
    sentence = lead(analysis(*LINES))
    assert sentence.startswith(
        "search agrees best with people: Q 1.10 [0.95, 1.25] on held-out rows with 40 labels"
    )
    assert (
        "That is +0.50 [0.30, 0.70] against none, beyond chance (p = 0.004," in sentence
    )
    chance = line("search", 1.1, 40, 1600, gap(0.5, 0.2))
    assert "which may be chance" in lead(analysis(chance))
    assert lead(analysis(Line("x", "m", "x", 10, {}, 2))) == "No cell is done yet."


def test_every_line_is_in_the_table_and_in_every_figure() -> None:
    page = render(analysis(*LINES))
    assert page.index('class="lead"') < page.index("<table") < page.index("<svg")
    figures = dict(
        re.findall(
            r'<div role="img" aria-label="([^":]*)[^"]*">(<svg.*?</svg>)',
            page,
            re.DOTALL,
        )
    )
    assert [name.partition(" of ")[0] for name in figures] == [
        "Q",
        "Q against calls",
        "Q against labels",
        "Candidates",
    ]
    assert (
        figures["Q against calls"].count("<title>")
        == figures["Q against labels"].count("<title>")
        == 4
    )
    assert (
        figures["Candidates"].count("fill-opacity: 0.6") == 56
    )  # seven usable candidates a seed and line
    assert page.count('<th scope="row"') == 4


def test_one_number_of_labels_has_no_curve_over_them_and_every_text_is_escaped() -> (
    None
):
    page = render(analysis(line(HOSTILE, math.nan, 40, 5), *LINES[1::2], sizes=(40,)))
    assert "Q against calls" in page
    assert "Q against labels" not in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
