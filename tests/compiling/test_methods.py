"""`judgesmith compile --method …` for judges of one aspect, over HTTP: what is saved scores new rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, lines


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
    told = compile_(
        rows, "--method", "openlgauge", "--as", "summarization/fluency", "--json"
    ).told
    assert told["heldout"]["failed"] == 0
    saved = json.loads((tmp_path / "made.json").read_text())
    assert (saved["program"]["kind"], saved["criteria"][0]["name"]) == (
        "openlgauge",
        "fluency",
    )
    out = tmp_path / "scored.jsonl"
    scored = cli(
        "score",
        rows,
        "--judge",
        tmp_path / "made.json",
        "--api-base",
        server.base,
        "-o",
        out,
        "--json",
    )
    assert (scored.code, scored.json["scored"]) == (0, 40)
    for row in lines(out):
        (error,) = row["verdict"]["errors"]
        assert (
            row["output"][error["start"] : error["end"]] == error["text"] == row["id"]
        )
    report = cli("report", out, "-o", tmp_path / "report.html")
    assert report.code == 0, report.err
    assert "it is wrong" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["compile", "ROWS", "--as", "fluency"], "--as is for the other methods"),
        (
            ["compile", "ROWS", "--method", "openlgauge", "--as", "flunecy"],
            "did you mean",
        ),
        (
            [
                "compile",
                "ROWS",
                "--method",
                "openlgauge",
                "--as",
                "fluency",
                "--annotators",
                "a@9",
            ],
            "between 0 and 2",
        ),
        (
            [
                "compile",
                "ROWS",
                "--method",
                "openlgauge",
                "--as",
                "fluency",
                "--annotators",
                "my model",
            ],
            "cannot be saved",
        ),
        (["new"], "which aspect is judged"),
        (["new", "--as", "summarization/beauty"], "beauty"),
        (["new", "--method", "active-critic"], "say what is judged"),
        (
            ["new", "--method", "active-critic", "--variant", "fine", "--task", "x"],
            "give --criteria",
        ),
        (
            [
                "new",
                "--method",
                "direct",
                "--as",
                "summarization/fluency",
                "--annotators",
                "m",
            ],
            "annotators=… has no effect with --method direct",
        ),
        (["new", "--as", "summarization/fluency", "--levels", "12"], "12"),
        (
            [
                "new",
                "--method",
                "g-eval",
                "--as",
                "summarization/fluency",
                "--form",
                "yes-no",
            ],
            (
                "form=… has no effect with --method g-eval; it is an option of pairs, "
                "pairwise-direct"
            ),
        ),
        (
            ["new", "--as", "summarization/fluency", "--writer", "http://elsewhere/m"],
            "address",
        ),
        (
            ["compile", "ROWS", "--preset", "active-critic/sumeval"],
            "(did you mean 'active-critic/summeval'?)",
        ),
        (["compile", "ROWS", "--preset", "../settings"], "there is no such preset"),
        (
            ["study", "labels", "ROWS", "--preset", "magic"],
            "--preset magic: there is no such preset",
        ),
        (
            ["compile", "ROWS", "--preset", "active-critic/table-1"],
            "arms: there is no option of that name",
        ),
        (["new", "--preset", "dhp/story"], "texts: there is no option of that name"),
        (
            ["new", "--preset", "active-critic/sfres"],
            "optimizer: there is no option of that name",
        ),
        (
            [
                "compile",
                "ROWS",
                "--preset",
                "active-critic/sfres",
                "--method",
                "direct",
            ],
            "--preset active-critic/sfres: variant=… has no effect with --method direct",
        ),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_asked_or_saved(
    arguments: list[str],
    part: str,
    server: Any,
    cli: Any,
    rows_file: Rows,
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [
        rows_file(48) if argument == "ROWS" else argument for argument in arguments
    ]
    done = cli(*given, "--lm", "openai/fake", "--api-base", server.base)
    assert (done.code, len(done.err.splitlines())) == (2, 1), done
    assert part in done.err
    assert server.asks == []
    assert not list(tmp_path.glob("*.json"))
