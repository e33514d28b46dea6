"""The page that `judgesmith evaluate -o report.html` writes: what people see of it."""

from __future__ import annotations

import html
import random
import re
from pathlib import Path
from typing import Any

import pytest
from json_lines import write
from parsed import Page, check_that_nothing_runs
from typer.testing import CliRunner

from judgesmith.cli.main import app
from judgesmith.figures import OF_PAGE, Dot, Dots, plot

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)> {{ 7 * 7 }} $\\frac{1}{2}$ \x1b[31m \u202e [/red]'


def rows(n: int = 60) -> list[dict[str, Any]]:
    """Rows with two judges: one on people's scale, one far off it."""
    rng = random.Random(0)
    return [
        {
            "id": f"r{k}",
            "source": f"document {k % 12}",
            "output": "word " * rng.randint(3, 30),
            "system": f"s{k // 12}",
            "score": human,
            "far": 100 * human + rng.gauss(0, 90),
            "verdict": {
                "score": min(5, max(1, human + rng.choice((-1, 0, 0, 1)))),
                "explanation": f"because {k}",
            },
        }
        for k in range(n)
        for human in [rng.randint(1, 5)]
    ]


def written(folder: Path, records: list[dict[str, Any]], *options: str) -> str:
    """The page of some rows."""
    path, report = write(folder / "mine.jsonl", records), folder / "r.html"
    result = CliRunner().invoke(
        app, ["evaluate", str(path), "--rounds", "60", *options, "-o", str(report)]
    )
    assert result.exit_code == 0, result.output
    assert "\x1b[31m" not in result.stdout, result.output
    return report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    options = ["--judge", "mine=verdict.score", "--judge", "far"]
    return written(tmp_path_factory.mktemp("report"), rows(), *options)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_figures_have_words_and_tables_have_headers(page: Page) -> None:
    figures = [
        given for tag, given in page.tags if tag == "div" and given.get("role") == "img"
    ]
    assert (
        len(figures) == 4
    )  # intervals; systems of two judges, calibration of the one on people's scale
    labels = [given["aria-label"] or "" for given in figures]
    assert len([label for label in labels if "mine, overall" in label]) == 2
    assert len([label for label in labels if "far, overall" in label]) == 1
    assert all(
        given.get("scope") in ("row", "col", "rowgroup")
        for tag, given in page.tags
        if tag == "th"
    )


def test_a_judge_off_the_scale_has_a_reason_in_place_of_numbers(page: Page) -> None:
    table = next(
        table for table in page.tables if "mean error" in [cell[2] for cell in table[0]]
    )
    mine, far = table[1:]
    assert len(mine) == len(table[0])
    assert not any("colspan" in given for _, given, _ in mine)
    assert far[0][2] == "far"
    assert "not known to score on the human ratings' scale" in far[-1][2]
    assert len(far) == len(table[0])
    assert {cell[2] for cell in far[3:-1]} == {"–"}


def test_figures_take_their_colours_from_the_page(text: str) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    used = set(re.findall(r"(?:fill|stroke): ([^;\"]*)", drawn))
    assert used <= {"none", *OF_PAGE}
    assert {"currentColor", "var(--accent)"} <= used
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', drawn)) <= set(ids)


def test_the_forest_has_every_judge_of_every_coefficient(text: str) -> None:
    (forest,) = re.findall(
        r'<div role="img" aria-label="Intervals: [^"]*">(<svg.*?</svg>)',
        text,
        re.DOTALL,
    )
    names = re.findall(r"<text[^>]*>([^<]*)</text>", forest)
    assert names.count("mine") == names.count("far") == 3
    assert {
        "Pearson r",
        "Spearman ρ",
        "Kendall τ-b",
    } <= set(names)


def test_texts_in_a_figure_are_escaped() -> None:
    hostile = "</title></svg><script>1</script>$x$\x1b"
    drawn = str(
        plot([Dots([Dot(0, 1, title=hostile), Dot(1, 1)])], hostile, "y", salt=hostile)
    )
    assert "<script" not in drawn
    assert drawn.count("</svg>") == 1
    assert "\x1b" not in drawn
    assert f"<title>{html.escape(hostile)[:-1]}" in drawn
    assert "&lt;script&gt;1&lt;/script&gt;$x$" in drawn


def test_calls_from_ten_to_a_million_are_read_on_powers_of_ten() -> None:
    drawn = str(
        plot([Dots([Dot(10, 0), Dot(1_000_000, 1)])], "calls", "Q", logarithmic=True)
    )
    assert {"10", "100", "1000", "10k", "100k", "1000k"} <= set(
        re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    )


def test_every_text_is_escaped(tmp_path: Path) -> None:
    records = [
        row
        | {
            "id": f"{HOSTILE} {k}",
            "system": f"{HOSTILE} {k % 4}",
            "output": f"{HOSTILE} {k}",
            HOSTILE: row["score"],
        }
        | {"verdict": row["verdict"] | {"explanation": HOSTILE}}
        for k, row in enumerate(rows())
    ]
    for record in records:
        del record["score"]
    judge = f"{HOSTILE[:8]}=verdict.score"
    page = Page(written(tmp_path, records, "--human", HOSTILE, "--judge", judge))
    check_that_nothing_runs(page)
    tags = [tag for tag, _ in page.tags]
    assert "script" not in tags
    assert tags.count("svg") == 3
    assert '<script>alert("x")</script>' in page.text
    assert "{{ 7 * 7 }}" in page.text
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_same_input_gives_the_same_page(text: str, tmp_path: Path) -> None:
    assert (
        written(tmp_path, rows(), "--judge", "mine=verdict.score", "--judge", "far")
        == text
    )


def test_figures_are_written_as_svg_and_pdf_in_colours_of_paper(tmp_path: Path) -> None:
    kept = []
    for name in ("one", "two"):
        written(
            tmp_path,
            rows(),
            "--judge",
            "mine=verdict.score",
            "--figures",
            str(tmp_path / name),
        )
        kept.append(
            {
                path.name: path.read_bytes()
                for path in sorted((tmp_path / name).iterdir())
            }
        )
    assert kept[0] == kept[1]
    assert [name for name in kept[0] if name.endswith(".svg")] == [
        "01-intervals.svg",
        "02-calibration-mine-overall.svg",
        "03-systems-mine-overall.svg",
    ]
    for name, data in kept[0].items():
        assert (
            data.startswith(b"%PDF-")
            if name.endswith(".pdf")
            else b"#1f5fa8" in data and b"var(" not in data
        )


def test_preferences_are_compared_within_their_pairs(tmp_path: Path) -> None:
    pairs = [
        {
            "id": f"p{k}",
            "output_a": f"One thing of {k}",
            "output_b": f"Another {k}",
            "winner": "ab"[k % 2],
            "verdict": {"details": {"a": {"score": 3.0 + k % 3}, "b": {"score": 3.5}}},
        }
        for k in range(12)
    ]
    page = written(tmp_path, pairs)
    assert "12 comparisons that people decided" in page[: page.index("<h2")]
    assert ">pooled<" not in page
