"""OpenTelemetry spans of a server, where they are asked for."""

import json
import subprocess
import sys
from typing import Any

import pytest
from misbehaving_server import Say, Server

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_spans_are_sent_where_the_environment_says_before_the_server_ends(
    running: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("exporter.otlp.proto.http", "instrumentation.asgi", "instrumentation.aiohttp_client"):
        pytest.importorskip(f"opentelemetry.{name}")
    collector = Server(lambda *_: Say())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base)
    at = running("--otel")
    at.http.headers["traceparent"] = f"00-{TRACE}-{PARENT}-01"
    assert at.score("r042 secret").status_code == 200
    at.process.terminate()
    assert at.process.wait(60) == 0
    collector.close()
    sent = b"".join(body["form"].encode("latin-1") for body in collector.bodies)
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
