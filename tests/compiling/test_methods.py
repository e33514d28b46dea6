"""`judgesmith compile --method …` for judges of one aspect, over HTTP: what is saved scores new rows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Rows = Callable[..., Path]


def annotated(label: str, words: str) -> str:
    return f"Error 1\nLocation: {words}\nExplanation: it is wrong\nSeverity: 3\n\nOverall: {label}\nReason: that is why"


def test_error_spans_from_labels_to_a_report(
    server: Any, fake: Any, cli: Any, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    labels = ("Unacceptable", "Poor", "Fair", "Good")

    def answer(ask: Any) -> Any:
        if "Location:" not in ask.text:
            return fake.judging(lambda ask: 50)(ask)  # the probe
        return annotated(labels[int(ask.mark[1:]) % 4], ask.mark)

    server.answer = answer
    rows = rows_file(40)
    done = compile_(rows, "--method", "openlgauge", "--as", "summarization/fluency", "--json")
    assert done.code == 0, done.err
    assert done.json["heldout"]["failed"] == 0
    saved = json.loads((tmp_path / "made.json").read_text())
    assert (saved["program"]["kind"], saved["criteria"][0]["name"]) == ("openlgauge", "fluency")
    out = tmp_path / "scored.jsonl"
    scored = cli("score", rows, "--judge", tmp_path / "made.json", "--api-base", server.base, "-o", out, "--json")
    assert (scored.code, scored.json["scored"]) == (0, 40)
    for line in out.read_text().splitlines():
        row = json.loads(line)
        (error,) = row["verdict"]["errors"]
        assert row["output"][error["start"] : error["end"]] == error["text"] == row["id"]
    report = cli("report", out, "-o", tmp_path / "report.html")
    assert report.code == 0, report.err
    assert "it is wrong" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--as", "fluency"), "--as is for the other methods"),
        (("--method", "openlgauge", "--as", "flunecy"), "did you mean"),
        (("--method", "openlgauge", "--as", "fluency", "--annotators", "a@9"), "between 0 and 2"),
        (("--method", "openlgauge", "--as", "fluency", "--annotators", "my model"), "cannot be saved"),
    ],
)
def test_what_does_not_fit_is_one_line(
    arguments: tuple[object, ...], part: str, server: Any, compile_: Any, rows_file: Rows
) -> None:
    done = compile_(rows_file(40), *arguments)
    assert done.code == 2, done.out
    assert part in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert server.judged == []
