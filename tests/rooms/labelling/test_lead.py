"""What the lead of several raters sees and does: who is strict or answers at random, and rows that are settled."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import needs_browser
from json_lines import lines, write
from labelling import Labelling, rows_to_label

from judgesmith import read_labels
from judgesmith.agreement.raters import alpha_interval, beside_others
from judgesmith.agreement.significance import krippendorff_alpha
from judgesmith.rooms.labelling.agreement import RaterAnswers, enough, summary
from judgesmith.rooms.labelling.app import Desk, Event
from judgesmith.rooms.labelling.command import Label
from judgesmith.rooms.labelling.run import LabelSession, open_store

RATERS = ("Anna", "Ben", "Cora", "Dirk", "Eva")


def said(desk: Desk, rater: str, score: float, reason: str = "") -> None:
    """Answer the next row."""
    unit = desk.next(rater)["unit"]
    answer: dict[str, Any] = {"score": score}
    if reason:
        answer["why"] = {"score": reason}
    where = {"unit": unit["key"], "turn": unit["turn"], "after": unit["after"]}
    request = f"{rater}-{unit['key']}-{unit['turn']}".ljust(16)
    desk.take(
        Event(action="answer", rater=rater, request=request, answer=answer, **where)
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Twelve rows of five raters: Cora gives one more, Dirk draws, the others agree."""
    rows = rows_to_label(tmp_path / "rows.jsonl", 12, language="de", tries=3)
    path = tmp_path / "s.sqlite"
    opened = open_store(Label(rows=str(rows), store=path, repeats=0.25).request())
    desk = Desk(opened.store, opened.task)
    chance = random.Random(4)
    for n in range(15):
        drawn = chance.choice([1, 2, 3, 4])
        key = desk.next("Anna")["unit"]["key"]
        right = {0: 1, 1: 2, 2: 3, 3: 4}[int(key[:6], 16) % 4]
        for rater in RATERS:
            given = {"Cora": right + 1, "Dirk": 5 - drawn}.get(rater, right)
            said(desk, rater, float(given), "rude" if n == 0 else "")
    opened.store.close()
    return path


def again(path: Path, **options: Any) -> LabelSession:
    """Open a store that is there."""
    return open_store(Label(store=path, export_only=True, **options).request())


def test_a_rater_stands_beside_the_others() -> None:
    # the others' means are 2, 2, 4; leads 1, 2, 0: mean 1, SD 1, t(2) = 4.303, margin 4.303 / 3 ** .5
    table = np.array([[3.0, 2.0, 2.0], [4.0, 1.0, 3.0], [4.0, 4.0, np.nan]])
    one = beside_others(table)[0]
    assert (one.n, one.lead) == (3, pytest.approx(1))
    margin = 4.302653 / 3**0.5
    assert (one.low, one.high) == pytest.approx((1 - margin, 1 + margin))
    assert one.doubt("Ann") is None  # three rows say nothing of that
    alone = beside_others(np.array([[1.0, np.nan], [2.0, np.nan]]))
    assert [rater.n for rater in alone] == [0, 0]
    flat = np.column_stack([np.full(12, 3.0), np.arange(12) % 5, np.arange(12) % 5])
    assert beside_others(flat)[0].doubt("Ann") == "Ann gave 12 rows the same label, 3"


def test_alpha_has_an_interval_that_holds_it() -> None:
    chance = np.random.default_rng(0)
    right = chance.integers(1, 6, 40)
    table = np.column_stack([right, right + chance.integers(-1, 2, 40), right])
    table = table.astype(float)
    table[::3, 1] = np.nan
    alpha, low, high = alpha_interval(table)
    assert alpha == pytest.approx(krippendorff_alpha(table))
    assert low < alpha < high
    assert high - low < 0.3
    twice = alpha_interval(np.vstack([table, table]))
    assert twice[2] - twice[1] == pytest.approx((high - low) / 2**0.5, rel=0.2)


def test_the_table_of_raters_and_who_answers_at_random(store: Path, cli: Any) -> None:
    told = cli("label", "--store", store, "--export-only", "--json").told
    raters = {one["rater"]: one for one in told["raters"]}
    assert tuple(raters) == RATERS
    assert all(one["twice"] == 3 for one in told["raters"])  # a quarter of 12
    (cora,), (dirk,), (eva,) = (
        raters[who]["beside"] for who in ("Cora", "Dirk", "Eva")
    )
    assert cora["low"] > 0.4
    assert cora["r"] > 0.9
    assert eva["doubt"] is cora["doubt"] is None
    assert "as if answering at random" in dirk["doubt"]
    assert told["agreement"][0]["alpha_of"] == "interval"
    shown = cli("label", "--store", store, "--export-only").said
    assert "above others" in shown
    assert "Dirk agrees with the other raters" in shown
    assert "alpha (interval)" in shown
    assert "with 20 more rows about ±" in shown


def test_who_still_rates_sees_no_answer_of_others(tmp_path: Path) -> None:
    rows = rows_to_label(tmp_path / "rows.jsonl", 4)
    opened = open_store(Label(rows=str(rows), store=tmp_path / "s").request())
    desk = Desk(opened.store, opened.task)
    for _ in range(4):
        said(desk, "Ada", 1.0)
    said(desk, "Bo", 5.0)
    answers = RaterAnswers.of(opened.store, opened.task)
    found = summary(answers, ["Ada", "Bo"], "Bo", blind=True)
    assert [one["rater"] for one in found["raters"]] == ["Bo"]
    assert found["splits"] == found["confused"] == []
    assert "Ada" not in str(found)
    assert found["split_rows"] == 1


def test_a_row_is_settled_once_and_keeps_its_history(
    store: Path, tmp_path: Path
) -> None:
    opened = again(store, settle=True)
    desk = Desk(opened.store, opened.task, settling=True)
    first = desk.next("Lea")
    assert first["total"] == opened.rows > 3
    assert {name for name, _ in first["unit"]["said"]} == set(RATERS)
    said(desk, "Lea", 2.0)
    assert desk.next("Max")["done"] == 1  # one decision, whoever takes it
    said(desk, "Max", 1.0)
    desk.take(Event(action="undo", rater="Max", request="undo".ljust(16)))
    said_at_first = len([one for one in opened.store.answers() if one.turn < 2])
    assert said_at_first == 75  # nothing that raters said is taken back
    result = opened.result(tmp_path / "labels.jsonl")
    assert (result["settled_rows"], result["rows"]) == (1, 12)
    assert "Lea" not in [one["rater"] for one in result["raters"]]
    (settled,) = [one["settled"] for one in result["splits"] if one["settled"]]
    assert settled == {"by": "Lea", "answer": "2"}
    exported = lines(tmp_path / "labels.jsonl")
    assert len(exported) == 61
    (decided,) = [one for one in exported if "settled_by" in one]
    assert (decided["settled_by"], decided["score (1-5)"]) == ("Lea", 2.0)
    labels = read_labels(tmp_path / "labels.jsonl")
    (row,) = [row for row in labels.rows if row.settled]
    assert row.scores["overall"] == 2
    assert len(row.ratings["overall"]) == 5  # of its raters, and no sixth
    assert any("1 of 12 outputs have a settled score" in one for one in labels.warnings)
    assert labels.account is not None
    assert labels.account.raters == 5


@needs_browser
def test_the_page_settles_by_keys(
    store: Path, browser: Any, spawn: Any, tmp_path: Path
) -> None:
    pytest.importorskip("uvicorn")
    at = Labelling(spawn("label", "--store", store, "--settle", "--no-browser"))
    tab = browser.tab(at.address)
    tab.until("!document.getElementById('who').hidden")
    tab.type("Lea")
    tab.press("Enter")
    tab.until("!document.getElementById('desk').hidden")
    assert "What raters said" in tab.text()
    tab.press("4")
    tab.until("document.getElementById('count').textContent.startsWith('1 of')")
    tab.press("d")
    tab.until("document.getElementById('agreement').open")
    assert "Lea: 4" in tab.text()
    assert "as if answering at random" in tab.text()
    assert browser.errors == []


def test_other_columns_are_exported_and_possible_ratings_are_not(
    store: Path, tmp_path: Path
) -> None:
    again(store).result(tmp_path / "labels.jsonl")
    one = lines(tmp_path / "labels.jsonl")[0]
    assert (one["language"], one["system"]) == ("de", "a")
    rows = tmp_path / "rated.jsonl"
    made = [
        {"output": f"a {n * 7919}", "Rating Ann": n % 5 + 1, "Thumbs": "👍👎"[n % 2]}
        for n in range(12)
    ]
    write(rows, made)
    opened = open_store(Label(rows=str(rows), store=tmp_path / "r").request())
    desk = Desk(opened.store, opened.task)
    for n in range(12):
        said(desk, "Ada", float(n % 3 + 1))
    opened.result(tmp_path / "labels.jsonl")
    assert not {"Rating Ann", "Thumbs"} & set(lines(tmp_path / "labels.jsonl")[0])
    assert read_labels(tmp_path / "labels.jsonl").aspect == "overall"


def test_more_rows_hardly_change_a_narrow_interval(tmp_path: Path) -> None:
    rows = rows_to_label(tmp_path / "rows.jsonl", 30)
    opened = open_store(Label(rows=str(rows), store=tmp_path / "s").request())
    desk = Desk(opened.store, opened.task)
    for n in range(30):
        for rater in ("Ada", "Bo"):
            said(desk, rater, float(n % 5 + 1))
    (told,) = enough(RaterAnswers.of(opened.store, opened.task))
    assert told.startswith(
        "Raters agree by alpha 1.00 [1.00, 1.00] on 30 rows; that is"
    )


@pytest.mark.parametrize("kind", ["preference", "spans"])
def test_what_has_no_mean_is_not_settled(tmp_path: Path, kind: str, cli: Any) -> None:
    rows = rows_to_label(tmp_path / "rows.jsonl", 4)
    store = tmp_path / "s.sqlite"
    open_store(Label(rows=str(rows), store=store, kind=kind).request()).store.close()
    cli("label", "--store", store, "--settle").refused("have no mean")


def test_rows_that_nobody_splits_are_not_settled(tmp_path: Path, cli: Any) -> None:
    rows = rows_to_label(tmp_path / "rows.jsonl", 4)
    store = tmp_path / "s.sqlite"
    open_store(Label(rows=str(rows), store=store).request()).store.close()
    cli("label", "--store", store, "--settle").refused("no row of", "splits its raters")
