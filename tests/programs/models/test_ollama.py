"""The Ollama client against a small server on loopback that speaks as Ollama does, and one that does not."""

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgesmith.errors import ModelError
from judgesmith.programs.models.ollama import check_ollama, list_ollama, ollama_host, ollama_weights, pull_ollama

DIGEST = "sha256:" + "ab" * 32


class FakeOllama(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.models = ["llama3.1:8b", "qwen2.5:latest"]
        self.pulled: list[str] = []
        self.pull_breaks_off = False
        self.tags_body: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(http.server.BaseHTTPRequestHandler):
    server: FakeOllama
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path != "/api/tags":
            self._send(404, b"404 page not found")
            return
        models = [
            {
                "name": name,
                "model": name,
                "modified_at": "2025-01-02T03:04:05Z",
                "size": 4_900_000_000,
                "digest": "ab" * 32,
                "details": {"family": "x", "parameter_size": "8.0B", "quantization_level": "Q4_K_M"},
            }
            for name in self.server.models
        ]
        self._send(200, self.server.tags_body or json.dumps({"models": models}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/api/pull":
            self._send(404, json.dumps({"error": f"model '{body.get('model')}' not found"}).encode())
            return
        name = body["model"]
        self.server.pulled.append(name)
        steps: list[dict[str, Any]] = [{"status": "pulling manifest"}]
        if name == "nosuch":
            steps.append({"error": "pull model manifest: file does not exist"})
        else:
            for done in (0, 40, 100):
                steps.append({"status": "pulling abab", "digest": DIGEST, "total": 100, "completed": done})
            steps.append({"status": "pulling cdcd", "digest": "sha256:" + "cd" * 32, "total": 20, "completed": 20})
            if not self.server.pull_breaks_off:
                steps += [{"status": "verifying sha256 digest"}, {"status": "success"}]
                self.server.models.append(name if ":" in name else name + ":latest")
        self._send(200, b"".join(json.dumps(step).encode() + b"\n" for step in steps))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOllama]:
    fake = FakeOllama()
    thread = threading.Thread(target=fake.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("OLLAMA_HOST", fake.url)
    yield fake
    fake.shutdown()
    fake.server_close()
    thread.join()


@pytest.fixture
def closed_port() -> Iterator[str]:
    with socket.socket() as held:  # bound, so that nobody else gets it, and not listening, so that it refuses
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_the_list_has_names_and_sizes_in_order(server: FakeOllama) -> None:
    server.models.reverse()
    assert list(list_ollama().items()) == [("llama3.1:8b", 4_900_000_000), ("qwen2.5:latest", 4_900_000_000)]


def test_the_host_argument_wins_over_the_environment(server: FakeOllama, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.url
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    assert len(list_ollama(url)) == 2
    assert len(list_ollama(url + "/v1/")) == 2


def test_a_proxy_for_the_world_is_not_used_for_this_machine(
    server: FakeOllama, closed_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", closed_port)
    monkeypatch.setenv("http_proxy", closed_port)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert len(list_ollama()) == 2


@pytest.mark.parametrize("name", ["llama3.1:8b", "ollama_chat/llama3.1:8b", "ollama/llama3.1:8b", "qwen2.5"])
def test_a_model_that_is_there_is_found(server: FakeOllama, name: str) -> None:
    check_ollama(name)


@pytest.mark.parametrize("name", ["llama3.1", "ollama_chat/llama3.1:70b"])
def test_a_model_that_is_not_pulled_names_both_commands(server: FakeOllama, name: str) -> None:
    with pytest.raises(ModelError) as failure:
        check_ollama(name)
    bare = name.removeprefix("ollama_chat/")
    message = str(failure.value)
    assert f"`judgesmith get ollama_chat/{bare}`" in message
    assert f"`ollama pull {bare}`" in message
    assert server.url in message
    assert "did you mean 'llama3.1:8b'?" in message


@pytest.mark.parametrize(
    "call", [list_ollama, lambda host: check_ollama("x", host), lambda host: pull_ollama("x", host)]
)
def test_a_server_that_is_down_is_said(closed_port: str, call: Any) -> None:
    with pytest.raises(ModelError) as failure:
        call(closed_port)
    message = str(failure.value)
    assert f"Ollama does not answer at {closed_port}" in message
    assert "`ollama serve`" in message


def test_a_pull_counts_all_layers(server: FakeOllama) -> None:
    seen: list[tuple[int, int, str]] = []
    pull_ollama("ollama_chat/gemma", progress=lambda *step: seen.append(step))
    assert server.pulled == ["gemma"]
    assert seen == [
        (0, 0, "gemma: pulling manifest"),
        (0, 100, "gemma: pulling abab"),
        (40, 100, "gemma: pulling abab"),
        (100, 100, "gemma: pulling abab"),
        (120, 120, "gemma: pulling cdcd"),
        (120, 120, "gemma: verifying sha256 digest"),
        (120, 120, "gemma: success"),
    ]


def test_a_pull_of_what_does_not_exist_gives_the_servers_words(server: FakeOllama) -> None:
    with pytest.raises(ModelError, match="file does not exist"):
        pull_ollama("nosuch")


def test_a_pull_that_ends_without_success_is_no_success(server: FakeOllama) -> None:
    server.pull_breaks_off = True
    with pytest.raises(ModelError, match="broke off the pull of gemma"):
        pull_ollama("gemma")


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"models": [{"size": "no number"}]}', b"[1]", b"{}"])
def test_another_server_at_the_address_is_said(server: FakeOllama, body: bytes) -> None:
    server.tags_body = body
    with pytest.raises(ModelError, match="not as Ollama does"):
        list_ollama()


def test_an_error_status_gives_the_servers_words(server: FakeOllama) -> None:
    with pytest.raises(ModelError, match=r"404 page not found \(HTTP 404\)"):
        list_ollama(server.url + "/elsewhere")


def test_an_address_that_is_none_is_said() -> None:
    with pytest.raises(ModelError, match="is not an address"):
        list_ollama("http://127.0.0.1:port")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, "http://127.0.0.1:11434"),
        ("", "http://127.0.0.1:11434"),
        ("example.com", "http://example.com:11434"),
        ("example.com:99/", "http://example.com:99"),
        ("https://example.com/path/", "https://example.com/path"),
        ("http://example.com:99/v1", "http://example.com:99"),
        (":99", "http://127.0.0.1:99"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:99", "http://127.0.0.1:99"),
        ("http://0.0.0.0:99", "http://127.0.0.1:99"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:99", "http://[::1]:99"),
    ],
)
def test_addresses(given: str | None, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    assert ollama_host(given) == meant
    if given:
        monkeypatch.setenv("OLLAMA_HOST", given)
        assert ollama_host() == meant


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with qwen2.5:0.5b, as `ollama pull` leaves it."""
    blob = tmp_path / "blobs" / ("sha256-" + "ab" * 32)
    blob.parent.mkdir()
    blob.write_bytes(b"GGUF")
    manifest = tmp_path / "manifests" / "registry.ollama.ai" / "library" / "qwen2.5" / "0.5b"
    manifest.parent.mkdir(parents=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "cd" * 32},
        {"mediaType": "application/vnd.ollama.image.model", "digest": DIGEST},
    ]
    manifest.write_text(json.dumps({"layers": layers}), encoding="utf-8")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", ["ollama_chat/qwen2.5:0.5b", "ollama/qwen2.5:0.5b", "ollama/library/qwen2.5:0.5b"])
def test_weights_are_found_in_the_store_of_this_machine(store: Path, name: str) -> None:
    assert ollama_weights(name) == store / "blobs" / ("sha256-" + "ab" * 32)
    assert ollama_weights(name, "http://gpu.example:11434") is None


@pytest.mark.parametrize(
    "name",
    ["ollama/llama3", "ollama/qwen2.5", "ollama/../../secret:x", "ollama/qwen2.5:../0.5b", "ollama/", "ollama/:"],
)
def test_no_weights_for_a_name_that_the_store_does_not_have(store: Path, name: str) -> None:
    assert ollama_weights(name) is None


@pytest.mark.parametrize(
    "manifest", ["", "[]", '{"layers": 3}', '{"layers": [{"mediaType": "application/vnd.ollama.image.model"}]}',
                 '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "../../etc/passwd"}]}'],
)  # fmt: skip
def test_a_manifest_of_another_kind_is_no_model(store: Path, manifest: str) -> None:
    file = store / "manifests" / "registry.ollama.ai" / "library" / "qwen2.5" / "0.5b"
    file.write_text(manifest, encoding="utf-8")
    assert ollama_weights("ollama/qwen2.5:0.5b") is None
