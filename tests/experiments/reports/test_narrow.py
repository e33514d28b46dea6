"""Pages on a telephone: no page scrolls sideways, wide tables do so in a box of their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from browser import Browser, browser, needs_browser

from judgesmith.datasets.records import Row
from judgesmith.experiments.evaluation.options import PAPER_NAMES
from judgesmith.experiments.evaluation.sources import Judged
from judgesmith.experiments.reports.browse import render as browse_page
from judgesmith.experiments.reports.evaluation import render as evaluation_page
from judgesmith.experiments.reports.folder import browse
from judgesmith.experiments.reports.rows import read_scored
from judgesmith.experiments.reports.spans import render as rows_page
from judgesmith.optimizers.agreement.meta.evaluation import meta_evaluate

__all__ = ["browser"]

ASPECTS = ("coherence", "consistency", "fluency", "informativeness", "naturalness")
LONG = "a_judge_with_a_name_that_no_telephone_has_room_for"


def pages(folder: Path) -> dict[str, str]:
    rng = np.random.default_rng(0)
    human = {aspect: rng.integers(1, 6, 40).astype(float) for aspect in ASPECTS}
    judges = {
        name: {aspect: np.clip(y + rng.normal(0, 1, 40), 1, 5) for aspect, y in human.items()} for name in (LONG, "b")
    }
    rows = [Row(id=f"{'0123456789abcdef' * 3}#{k}", output=LONG * 5, source="s", doc_id=str(k // 4)) for k in range(40)]
    data = Judged("rows.jsonl", rows, human, judges)
    result = meta_evaluate(judges, human, documents=data.documents, rounds=30)
    scored = folder / "rows.jsonl"
    records = [
        {"id": row.id, "output": row.output, "score": k % 5, "system": LONG, "verdict": {"score": k % 4}}
        for k, row in enumerate(rows)
    ]
    scored.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return {
        "evaluation": evaluation_page(data, result, [LONG], next(iter(PAPER_NAMES.values()))),
        "rows": rows_page(read_scored(scored)),
        "browse": browse_page(browse(folder), folder / "browse.html"),
    }


@needs_browser
def test_no_page_scrolls_sideways_at_390_pixels(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name, page in pages(tmp_path / "data").items():
        path = tmp_path / f"{name}.html"
        path.write_text(page, encoding="utf-8")
        tab = browser.tab(path.as_uri())
        tab.until("document.readyState === 'complete'")
        tab.look(width=390)
        tab.js("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert tab.js("document.documentElement.scrollWidth") == 390, name
    assert browser.errors == []
