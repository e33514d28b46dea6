"""`judgesmith demo`: what it leaves behind and says, without a model, and with one that answers from a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgesmith.reports.rows import read_scored


def test_the_demo_writes_judge_scores_and_report_flags_the_injection_and_says_what_is_next(
    server: Any, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", server.base)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    judge = tmp_path / "demo.json"
    said = cli("demo", "--live", "--lm", "openai/fake", "-o", judge).said
    rows = read_scored(tmp_path / "demo.scored.jsonl").rows
    assert [row.row.id for row in rows] == ["n01", "n02", "n03", "n04"]
    assert [bool(row.verdict.suspicious) for row in rows] == [False, False, False, True]
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "<strong>Suspicious:</strong>" in page
    assert "1 suspicious" in page
    end = said[said.index("n04 addresses the judge") :]
    assert "demo.html" in end.replace("\n", "")
    assert [
        line.split()[1] for line in end.splitlines() if line.startswith("  judgesmith ")
    ] == [
        "show",
        "score",
        "compile",
    ]


def test_the_demo_asks_no_model_and_its_commands_say_the_same_of_its_rows(
    server: Any, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = " ".join(cli("demo").said.split())
    assert server.asks == []
    for command in ("check", "compare"):
        first = cli(command, "qwen.jsonl").out.partition("\n")[0]
        assert " ".join(first.split()) in said
    told = cli("demo", "--json").json
    assert told["check"]["found"] in said
    assert told["compare"] in said
    assert len(read_scored(tmp_path / "qwen.jsonl").rows) == 72
    assert (tmp_path / "qwen.html").is_file()
