"""OpenTelemetry spans of a server, where they are asked for."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


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
    running: Any, collector: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("exporter.otlp.proto.http", "instrumentation.asgi", "instrumentation.aiohttp_client"):
        pytest.importorskip(f"opentelemetry.{name}")
    address, taken = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    at = running("--otel")
    at.http.headers["traceparent"] = f"00-{TRACE}-{PARENT}-01"
    assert at.score("r042 secret").status_code == 200
    at.process.terminate()
    assert at.process.wait(60) == 0
    sent = b"".join(taken)
    assert b"POST /v1/score" in sent and bytes.fromhex(TRACE) in sent
    assert f"{server.base}/chat/completions".encode() in sent
    assert b"secret" not in sent and b"It says" not in sent


def test_nothing_of_it_is_imported_unasked() -> None:
    code = (
        "import json, sys; import judgesmith.serving.workers; "
        "print(json.dumps([name for name in sys.modules if name.startswith('opentelemetry.sdk')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert json.loads(done.stdout) == []
