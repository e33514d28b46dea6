"""`judgesmith score --otel`, with a module that stands in for OpenTelemetry's."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from json_lines import write


def test_each_verdict_is_an_event(
    cli: Any,
    judge_file: Path,
    server: Any,
    fake: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = write(
        tmp_path / "rows.jsonl",
        [
            {
                "id": f"tr-{'ab' * 16}",
                "span_id": "cd" * 8,
                "source": "S",
                "output": "Summary r001.",
            },
            {"id": "2", "source": "S", "output": "Summary r002."},
        ],
    )
    server.answer = lambda ask: (
        "No." if "r002" in str(ask.body) else fake.judging(lambda ask: 70)(ask)
    )
    score = ("score", rows, "--judge", judge_file, "--api-base", server.base, "--otel")
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", None)
    cli(*score).refused("pip install opentelemetry-distro")
    events: list[Any] = []
    api = SimpleNamespace(
        LogRecord=SimpleNamespace,
        get_logger=lambda name: SimpleNamespace(emit=events.append),
    )
    api.get_logger_provider = lambda: api
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", api)
    cli(*score).refused("no exporter of OpenTelemetry is set up")
    api.force_flush = None
    assert (cli(*score).code, [one.event_name for one in events]) == (
        1,
        ["gen_ai.evaluation.result"] * 2,
    )
    judged, failed = events
    assert (judged.trace_id, judged.span_id, failed.trace_id) == (
        int("ab" * 16, 16),
        int("cd" * 8, 16),
        None,
    )
    assert judged.attributes["gen_ai.evaluation.score.value"] == 70
    assert judged.attributes["judgesmith.scale.high"] == 100
    assert "error.type" not in judged.attributes
    assert len(judged.attributes["judgesmith.judge"]) == 12
    assert failed.attributes["error.type"] == "no_score"
    assert "gen_ai.evaluation.score.value" not in failed.attributes
    assert cli(*score).code == 1
    assert len(events) == 2
