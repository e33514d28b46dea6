"""OpenTelemetry spans of a server: who asked, which judge, what it cost, and no text of a row."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection
from judgesmith.running.opening import open_judge
from judgesmith.serving.app import application
from judgesmith.serving.jobs import Jobs
from judgesmith.serving.service import Service
from judgesmith.serving.spans import Spans

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_a_request_its_rows_and_their_calls_are_one_trace_without_a_text(
    server: Any, fake: Any, judge_file: Path, tmp_path: Path
) -> None:
    server.answer = fake.judging(lambda ask: int(ask.mark[1:]) % 101)
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    judge = open_judge(judge_file, None, Connection(server.base, cache=False))
    service = Service({"judge": judge}, spans=Spans(provider))
    app = application(service, Jobs(service, tmp_path), log=False)
    given = {"traceparent": f"00-{TRACE}-{PARENT}-01"}

    async def ask() -> list[httpx.Response]:
        await service.judges["judge"].judge.prepare(judge.lm)
        service.judges["judge"].problem = None
        kept.clear()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://judges") as http:
            return [
                await http.post("/v1/score", json={"output": "r042 secret"}, headers=given),
                await http.post("/v1/score/many", json={"rows": [{"output": "r001 secret"}, {"output": " "}]}),
                await http.get("/secret"),
            ]

    assert [answer.status_code for answer in engine.run(ask())] == [200, 200, 404]
    spans = kept.get_finished_spans()
    named = {span.name: span for span in spans}
    one, many = named["POST /v1/score"], named["POST /v1/score/many"]
    assert (f"{one.context.trace_id:032x}", f"{one.parent.span_id:016x}") == (TRACE, PARENT)
    assert (one.attributes["http.response.status_code"], one.attributes["judgesmith.judge"]) == (200, "judge")
    assert (many.parent, many.attributes["judgesmith.rows"]) == (None, 2)

    rows = [span for span in spans if span.name == "judge judge"]
    assert [row.parent.span_id for row in rows] == [s.context.span_id for s in (one, many, many)]
    mark = service.judges["judge"].mark
    assert {row.attributes["judgesmith.fingerprint"] for row in rows} == {mark}
    assert sorted(row.attributes.get("judgesmith.failure", "") for row in rows) == ["", "", "empty"]
    calls = [span for span in spans if span.name == "chat openai/fake"]
    judged = [row for row in rows if row.attributes["judgesmith.calls"]]
    assert [call.parent.span_id for call in calls] == [row.context.span_id for row in judged]
    for call, row in zip(calls, judged, strict=True):
        for name in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
            assert call.attributes[name] == row.attributes[name] > 0
    assert "GET other" in named
    assert not any("secret" in span.to_json() or "It says" in span.to_json() for span in spans)


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """The address of something that takes OTLP over HTTP, and what it was sent."""
    taken: list[bytes] = []

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    http = HTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", taken
    http.shutdown()
    http.server_close()


def test_spans_are_sent_where_the_environment_says_before_the_server_ends(
    running: Any, collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    address, taken = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    at = running("--otel")
    assert at.score("r042 secret").status_code == 200
    at.process.terminate()
    assert at.process.wait(60) == 0
    sent = b"".join(taken)
    assert b"POST /v1/score" in sent
    assert b"judgesmith.fingerprint" in sent
    assert b"secret" not in sent


def test_nothing_of_it_is_imported_unasked() -> None:
    code = (
        "import json, sys; import judgesmith.serving.workers; "
        "print(json.dumps([name for name in sys.modules if name.startswith('opentelemetry.sdk')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert json.loads(done.stdout) == []
