"""The Ollama client against a small server on loopback that speaks as Ollama does, and one that does not."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from misbehaving_server import MakeServer, Say

from judgesmith.errors import ModelError
from judgesmith.programs.models.ollama import check_ollama, list_ollama, ollama_host, ollama_weights, pull_ollama

DIGEST = "sha256:" + "ab" * 32


@dataclass
class FakeOllama:
    models: list[str] = field(default_factory=lambda: ["qwen2.5:latest", "llama3.1:8b"])
    pulled: list[str] = field(default_factory=list)
    pull_breaks_off: bool = False
    tags_body: bytes | None = None
    url: str = ""

    def answer(self, path: str, body: dict[str, Any]) -> Say:
        if path == "/api/tags":
            models = [{"name": name, "model": name, "size": 4_900_000_000} for name in self.models]
            return Say(body=self.tags_body or json.dumps({"models": models}).encode())
        if path != "/api/pull":
            return Say(404, b"404 page not found")
        name = body["model"]
        self.pulled.append(name)
        steps: list[dict[str, Any]] = [{"status": "pulling manifest"}]
        if name == "nosuch":
            steps.append({"error": "pull model manifest: file does not exist"})
        else:
            for done in (0, 40, 100):
                steps.append({"status": "pulling abab", "digest": DIGEST, "total": 100, "completed": done})
            steps.append({"status": "pulling cdcd", "digest": "sha256:" + "cd" * 32, "total": 20, "completed": 20})
            if not self.pull_breaks_off:
                steps += [{"status": "verifying sha256 digest"}, {"status": "success"}]
                self.models.append(name if ":" in name else name + ":latest")
        return Say(body=b"".join(json.dumps(step).encode() + b"\n" for step in steps))


@pytest.fixture
def server(serve: MakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeOllama:
    fake = FakeOllama()
    running = serve(lambda _, body: fake.answer(running.headers[-1].split()[1], body))
    fake.url = running.base.removesuffix("/v1")
    monkeypatch.setenv("OLLAMA_HOST", fake.url)
    return fake


@pytest.fixture
def closed_port() -> Iterator[str]:
    with socket.socket() as held:  # bound, so that nobody else gets it, and not listening, so that it refuses
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_the_host_argument_wins_over_the_environment(server: FakeOllama, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.url
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    assert list(list_ollama(url).items()) == [("llama3.1:8b", 4_900_000_000), ("qwen2.5:latest", 4_900_000_000)]
    with pytest.raises(ModelError, match=r"404 page not found \(HTTP 404\)"):
        list_ollama(url + "/elsewhere")


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
    bare = name.removeprefix("ollama_chat/")
    with pytest.raises(ModelError) as failure:
        check_ollama(name)
    for said in (
        f"`judgesmith get ollama_chat/{bare}`",
        f"`ollama pull {bare}`",
        server.url,
        "did you mean 'llama3.1:8b'?",
    ):
        assert said in str(failure.value)


def test_a_server_that_is_down_and_an_address_that_is_none_are_said(closed_port: str) -> None:
    with pytest.raises(ModelError, match=f"Ollama does not answer at {closed_port}.*`ollama serve`"):
        list_ollama(closed_port)
    with pytest.raises(ModelError, match="is not an address"):
        list_ollama("http://127.0.0.1:port")


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


@pytest.mark.parametrize(("name", "why"), [("nosuch", "file does not exist"), ("gemma", "broke off the pull of gemma")])
def test_a_pull_that_ends_without_success_is_no_success(server: FakeOllama, name: str, why: str) -> None:
    server.pull_breaks_off = True
    with pytest.raises(ModelError, match=why):
        pull_ollama(name)


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"models": [{"size": "no number"}]}', b"[1]", b"{}"])
def test_another_server_at_the_address_is_said(server: FakeOllama, body: bytes) -> None:
    server.tags_body = body
    with pytest.raises(ModelError, match="not as Ollama does"):
        list_ollama()


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
