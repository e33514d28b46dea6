"""Every page of the project in Chromium.

On a telephone none scrolls sideways (wide tables do so in a box of their own), axe-core finds no serious violation in
light and dark, and the console stays empty.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Tab, needs_browser
from json_lines import write
from labelling import Labelling
from large_pages import large_report
from pages import FILES, OUTPUTS, SOURCE, evaluation_page

from judgesmith.reports.rows import read_scored
from judgesmith.reports.spans import render

WIDE, NARROW = 1280, 390
#: Everything unfolded and laid out, for axe-core takes the places of what is not for those of something else.
OPEN = """for (const fold of document.querySelectorAll('details')) fold.open = true;
for (const row of document.querySelectorAll('.row')) row.style.contentVisibility = 'visible'"""
AXE = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => `${one.id}: ${one.nodes.length} ${one.nodes[0].html.slice(0, 200)} ${one.nodes[0].failureSummary}`))"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core: of the file that JUDGESMITH_AXE names, or of the package for tests."""
    if named := os.environ.get("JUDGESMITH_AXE"):
        return Path(named).read_text(encoding="utf-8")
    package = pytest.importorskip("axe_core_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def check(tab: Tab, axe: str, name: str) -> None:
    tab.call("Log.enable")  # brings what was logged before, too
    tab.js(OPEN)
    for dark in (False, True):
        tab.look(dark=dark, width=NARROW)
        assert tab.js("document.documentElement.scrollWidth") == NARROW, name
        tab.look(dark=dark, width=WIDE)
        assert tab.js("document.documentElement.scrollWidth") == WIDE, name
        if not dark:
            tab.js(axe)
        assert tab.js(AXE) == [], (name, dark)
    assert tab.browser.errors == []


@needs_browser
@pytest.mark.parametrize("name", FILES)
def test_a_page_is_fit_to_be_shown(
    name: str, browser: Browser, axe: str, tmp_path: Path
) -> None:
    place, page = tmp_path / "runs", tmp_path / f"{name}.html"
    place.mkdir()
    page.write_text(FILES[name](page, place), encoding="utf-8")
    tab = browser.tab(page.as_uri())
    tab.until("location.protocol === 'file:' && document.readyState === 'complete'")
    tab.until(
        "!document.getElementById('data') || document.documentElement.className === 'live'"
    )  # it draws anew
    check(tab, axe, name)


@needs_browser
def test_a_source_stands_beside_its_output_where_there_is_room(
    browser: Browser, tmp_path: Path
) -> None:
    rows = [
        {
            "id": f"r{n}",
            "source": f"The source {n}.",
            "output": f"The output {n}.",
            "verdict": {"score": n, "failure": None},
        }
        for n in range(3)
    ]
    page = tmp_path / "page.html"
    page.write_text(render(read_scored(write(tmp_path / "x.jsonl", rows))))
    places = """[".output", ".material details"].map(name => {
      const box = document.querySelector(name).getBoundingClientRect(); return [box.left, box.top]; })"""
    opened = (
        "Array.from(document.querySelectorAll('.material details'), fold => fold.open)"
    )
    tab = browser.tab("about:blank")
    for width, beside in ((WIDE, True), (NARROW, False)):
        tab.look(width=width)
        tab.call("Page.navigate", url=page.as_uri())
        tab.until("document.documentElement.className === 'live'")
        (left, top), (source_left, source_top) = tab.js(places)
        assert tab.js(opened) == [beside] * 3, width
        assert (source_left > left + 300) is beside, (left, source_left)
        assert (source_top < top + 30) is beside, (top, source_top)


#: What the label page shows, and the keys that lead there from its first row.
LABELLING: dict[str, tuple[tuple[str, ...], str]] = {
    "scores": ((), "'desk'"),
    "spans": (("ArrowRight", "4"), "'desk'"),
    "preference": ((), "'desk'"),
    "aspects": (("4", "w"), "'desk'"),
    "why": (("4",), "'desk'"),
    "skip": (("s",), "'skipping'"),
    "keys": (("?",), "'keys'"),
    "agreement": (("4", "d"), "'agreement'"),
}


@needs_browser
@pytest.mark.parametrize("name", LABELLING)
def test_the_label_page_is_fit_to_be_shown(
    name: str, browser: Browser, axe: str, spawn: Any, tmp_path: Path
) -> None:
    keys, shown = LABELLING[name]
    (tmp_path / "guide.md").write_text(
        f"# Faithfulness\n\n5 says nothing that the source does not say\n{SOURCE}\n"
    )
    chat = [
        {"role": who, "content": text}
        for who, text in (("user", SOURCE), ("assistant", OUTPUTS[0]))
    ]
    made = [
        {
            "id": f"r{k}",
            "source": chat,
            "output": OUTPUTS[k],
            "doc_id": f"d{k // 2}",
            "system": "ab"[k % 2],
        }
        for k in range(len(OUTPUTS))
    ]
    rows = write(tmp_path / "rows.jsonl", made)
    kind = name if name in ("spans", "preference") else "score"
    store = (
        "--store",
        tmp_path / "s.sqlite",
        "--guidelines",
        tmp_path / "guide.md",
        "--no-browser",
        "--kind",
        kind,
    )
    store += {
        "aspects": ("--aspect", "tone", "--aspect", "truth"),
        "why": ("--why",),
    }.get(name, ())
    tab = browser.tab(Labelling(spawn("label", rows, *store)).address)
    tab.until("!document.getElementById('who').hidden")
    if name == "scores":
        check(tab, axe, "label-begin")
    tab.type("Ada")
    tab.press("Enter")
    tab.until("!document.getElementById('desk').hidden")
    for key in keys:
        tab.press(key)
        if key == "4" and name == "agreement":
            tab.until("document.getElementById('count').textContent.startsWith('1 of')")
    tab.until(f"(e => e.open ?? !e.hidden)(document.getElementById({shown}))")
    check(tab, axe, f"label-{name}")


@pytest.mark.slow
def test_sixteen_hundred_rows_and_five_judges_are_less_than_a_megabyte_and_a_half(
    tmp_path: Path,
) -> None:
    for page in (
        large_report(tmp_path, 1600),
        evaluation_page(tmp_path, tmp_path, 1600),
    ):
        assert len(page.encode()) < 1_500_000


#: The modules that make pages, and what their pages are called here.
MAKERS = {
    "checking/show.py": "checks",
    "comparing/page.py": "compare",
    "discerning/page.py": "discern",
    "evaluating/certificate.py": "certificate",
    "evaluating/page.py": "evaluation",
    "reports/spans.py": "report",
    "studies/page.py": "study",
    "watching/page.py": "watch",
}


def test_every_page_that_can_be_written_is_looked_at() -> None:
    """A new page fails here until it stands in `FILES`, or beside the one that a server sends."""
    root = Path(__file__).parents[2]
    paths = [
        path for room in ("src", "experiments") for path in (root / room).rglob("*.py")
    ]
    found = {
        f"{path.parent.name}/{path.name}"
        for path in paths
        if re.search(
            r"from judgesmith\.pages import (\([^)]*|.*)(render|environment)",
            path.read_text(encoding="utf-8"),
        )
    }
    assert found == MAKERS.keys()
    assert set(MAKERS.values()) == FILES.keys() - {"notebook"}
    assert {path.parent.name for path in (root / "src").rglob("*.html")} == {
        "labelling"
    }
