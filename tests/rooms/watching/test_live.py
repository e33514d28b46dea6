"""`judgesmith browse --watch`: its looks, what it refuses, and the page in a browser."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_browser
from json_lines import write
from labelling import HOSTILE, Labelling

from judgesmith.datasets.row import Row
from judgesmith.optimizers.seen import marks
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.rooms.watching.folder import browse
from judgesmith.signatures.values import Scale

pytest.importorskip("uvicorn")
live = pytest.importorskip("judgesmith.rooms.watching.live")

TEXTS = [f"Output {k} of the town." for k in range(6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two judges from one file of labels, a file scored by each, and a store of `label`."""
    made = tmp_path / "runs"
    made.mkdir()
    (made / "labels.csv").write_text(
        "id,output,score\n"
        + "".join(f"l{k},{text},{k % 5 + 1}\n" for k, text in enumerate(TEXTS))
    )
    learnt = [
        Row(id=str(k), output=text, source="", doc_id=str(k))
        for k, text in enumerate(TEXTS[:4])
    ]
    for number, name in enumerate("ab"):
        judge = Judge(DirectScorer(task="Task. " * number), scale=Scale(1, 5))
        judge.provenance = {
            "labels": {"origin": "labels.csv", "fingerprint": "f"},
            "created": f"2026-01-0{number + 1}",
            "heldout": {"value": 0.5, "low": 0.1, "high": 0.9},
            **marks(learnt),
        }
        judge.save(str(made / f"{name}.json"))
    for number, one in enumerate(browse(made).judges):
        write(
            made / f"{one.path[0]}.scored.jsonl",
            [
                {
                    "id": f"r{k}",
                    "output": HOSTILE if k == 3 else text,
                    "score": k % 5 + 1,
                    "judge": one.mark,
                    "verdict": {"failure": "down"}
                    if k == 2
                    else {"score": 1 + (k * (number + 1)) % 5},
                }
                for k, text in enumerate(TEXTS)
            ],
        )
    with sqlite3.connect(made / "other.sqlite") as db:
        db.execute("CREATE TABLE meta (name)")
    return made


def test_numbers_lead_to_their_rows(folder: Path) -> None:
    page = live.Live(folder).page({})
    assert "?at=rows&amp;file=a.scored.jsonl&amp;only=failed" in page
    assert "?at=judges&amp;a=a.json&amp;b=b.json" in page
    rows = live.Live(folder).page(
        {"at": "rows", "file": "a.scored.jsonl", "only": "failed"}
    )
    assert rows.count("<article") == 1
    assert "No score: down" in rows
    assert "without score (1)" in rows
    ordered = live.Live(folder).page(
        {"at": "rows", "file": "a.scored.jsonl", "order": "high"}
    )
    assert ordered.index("Output 4") < ordered.index("Output 1")
    assert "<script" not in ordered
    assert "<img" not in ordered
    labels = live.Live(folder).page(
        {"at": "labels", "file": "labels.csv", "judge": "b.json"}
    )
    assert (labels.count("learnt from"), labels.count("held out")) == (4, 2)


def test_an_answer_of_a_store_is_shown_with_its_reason(
    spawn: Any, tmp_path: Path
) -> None:
    rows = write(tmp_path / "rows.jsonl", [{"id": "r0", "output": TEXTS[0]}])
    label = Labelling(
        spawn("label", rows, "--store", tmp_path / "l.sqlite", "--no-browser")
    )
    assert (
        label.answer("Ada", {"score": 4, "why": {"score": "too vague"}}).status_code
        == 200
    )
    (store,) = browse(tmp_path).labels
    assert [said for *_, said in store.rows] == [{"Ada": "4.0, why: too vague"}]


def test_two_judges_stand_side_by_side_with_the_rows_of_both(folder: Path) -> None:
    page = live.Live(folder).page({"at": "judges", "a": "a.json", "b": "b.json"})
    assert page.count("[0.10, 0.90]") == 2
    assert "Task." in page
    assert "6 rows by both" in page
    assert (
        page.index(">r3<") < page.index(">r1<") < page.index(">r0<")
    )  # 4 and 2; 2 and 3; 1 and 1
    same = live.Live(folder).page({"at": "judges", "a": "a.json", "b": "a.json"})
    assert "Both give the same verdicts." in same
    assert "rows by both" not in same


@pytest.mark.parametrize(
    "asked",
    [
        {"at": "rows", "file": "../secret.jsonl"},
        {"at": "rows", "file": "/etc/passwd"},
        {"at": "what"},
        {"at": "labels", "file": "a.json"},
        {"at": "judges", "a": "a.json"},
    ],
)
def test_only_what_was_found_is_shown_and_only_to_the_page(
    folder: Path, asked: dict[str, str]
) -> None:
    testing = pytest.importorskip("starlette.testclient")
    write(
        folder.parent / "secret.jsonl",
        [{"id": "s", "output": "secret", "verdict": {"score": 1}}],
    )
    app = live.application(live.Live(folder), "token", 5000)
    page = testing.TestClient(app, base_url="http://127.0.0.1:5000")
    assert page.get("/view").status_code == 401
    assert page.get("/").status_code == 200
    token = {"X-Token": "token"}
    assert (
        page.get("/view", headers=token | {"Host": "evil.example:5000"}).status_code
        == 421
    )
    assert (
        page.get("/view", headers=token | {"Origin": "http://evil.example"}).status_code
        == 403
    )
    refused = page.get("/view", params=asked, headers=token)
    assert refused.status_code == 404
    assert "go back" in refused.json()["error"]
    first = page.get("/view", headers=token)
    assert first.status_code == 200
    assert "script-src 'self';" in first.headers["content-security-policy"]
    known = token | {"If-None-Match": first.headers["etag"]}
    assert page.get("/view", headers=known).status_code == 304
    (folder / "b.scored.jsonl").unlink()
    assert "b.scored.jsonl" not in page.get("/view", headers=known).text


def test_options_that_would_do_nothing_are_refused(cli: Any, folder: Path) -> None:
    cli("browse", folder, "--watch", "-o", "x.html").refused("leave --output")
    cli("browse", folder, "--port", 3000).refused("are for --watch")


@needs_browser
def test_the_page_follows_the_files_and_leads_to_rows(
    folder: Path, browser: Browser, spawn: Any, tmp_path: Path
) -> None:
    write(
        tmp_path / "rows.jsonl",
        [{"id": f"r{k}", "output": text} for k, text in enumerate(TEXTS)],
    )
    label = Labelling(
        spawn(
            "label",
            tmp_path / "rows.jsonl",
            "--store",
            folder / "l.sqlite",
            "--no-browser",
        )
    )
    label.answer("Ada", {"score": 4})
    at = Labelling(spawn("browse", folder, "--watch", "--no-browser"))
    tab = browser.tab(at.address)
    tab.until("document.body.innerText.includes('Ada: 1')")
    label.answer("Ada", {"score": 2})
    tab.until(
        "document.body.innerText.includes('Ada: 2') && document.body.innerText.includes('Files changed')"
    )
    tab.js("document.querySelector('a[href*=\"a.scored\"][href*=failed]').click()")
    tab.until("document.body.innerText.includes('No score: down')")
    kept = json.loads((folder / "a.scored.jsonl").read_text().splitlines()[0])
    write(folder / "a.scored.jsonl", [kept])
    tab.until("document.body.innerText.includes('all (1)')")
    tab.js("history.back()")
    tab.until("document.body.innerText.includes('Lineage')")
    tab.reload()
    tab.until("document.body.innerText.includes('Lineage')")
    assert at.token in tab.js("location.hash")
    assert tab.browser.errors == []
