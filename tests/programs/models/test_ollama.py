"""The Ollama client against a small server on loopback that speaks as Ollama does, and one that does not."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from misbehaving_server import MakeServer, Say

from judgesmith.errors import CallError, ModelError
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.models import engine
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.ollama import (
    check_ollama,
    list_ollama,
    ollama_host,
    ollama_weights,
    pull_ollama,
)
from judgesmith.programs.models.transport import Request

DIGEST = "sha256:" + "ab" * 32


@dataclass
class FakeOllama:
    models: list[str] = field(default_factory=lambda: ["qwen2.5:latest", "llama3.1:8b"])
    pulled: list[str] = field(default_factory=list)
    pull_breaks_off: bool = False
    tags_body: bytes | None = None
    url: str = ""
    longest: int = 8192
    token: int = 4  # bytes
    new: bool = (
        True  # it refuses a prompt that may not be cut, and gives log-probabilities
    )
    trouble: Say | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, path: str, body: dict[str, Any]) -> Say:
        if path == "/api/tags":
            models = [
                {"name": name, "model": name, "size": 4_900_000_000}
                for name in self.models
            ]
            return Say(body=self.tags_body or json.dumps({"models": models}).encode())
        if path == "/api/show":
            info = {
                "general.architecture": "llama",
                "llama.context_length": self.longest,
            }
            return Say(body=json.dumps({"model_info": info}).encode())
        if path == "/api/chat":
            self.asked.append(body)
            return self.trouble or self.chat(body)
        if path != "/api/pull":
            return Say(404, b"404 page not found")
        name = body["model"]
        self.pulled.append(name)
        steps: list[dict[str, Any]] = [{"status": "pulling manifest"}]
        if name == "nosuch":
            steps.append({"error": "pull model manifest: file does not exist"})
        else:
            for done in (0, 40, 100):
                steps.append(
                    {
                        "status": "pulling abab",
                        "digest": DIGEST,
                        "total": 100,
                        "completed": done,
                    }
                )
            steps.append(
                {
                    "status": "pulling cdcd",
                    "digest": "sha256:" + "cd" * 32,
                    "total": 20,
                    "completed": 20,
                }
            )
            if not self.pull_breaks_off:
                steps += [{"status": "verifying sha256 digest"}, {"status": "success"}]
                self.models.append(name if ":" in name else name + ":latest")
        return Say(body=b"".join(json.dumps(step).encode() + b"\n" for step in steps))

    def chat(self, body: dict[str, Any]) -> Say:
        """As the runner does it: a prompt that is too long is cut to the context, unless that is forbidden."""
        tokens = (
            sum(len(message["content"].encode()) for message in body["messages"])
            // self.token
        )
        context = body["options"]["num_ctx"]
        if tokens > context and self.new and not body["truncate"]:
            words = f"request ({tokens} tokens) exceeds the available context size ({context} tokens)"
            return Say(400, json.dumps({"error": words}).encode())
        text = '{"digit": 4}' if "format" in body else "4"
        answer = {
            "message": {"role": "assistant", "content": text},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": min(tokens, context),
            "eval_count": 3,
        }
        if self.new and body.get("logprobs"):
            likely = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -3.0}]
            answer["logprobs"] = [
                {"token": "4", "logprob": -0.1, "bytes": [52], "top_logprobs": likely}
            ]
        return Say(body=json.dumps(answer).encode())


@pytest.fixture
def server(serve: MakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeOllama:
    fake = FakeOllama()
    running = serve(lambda _, body: fake.answer(running.headers[-1].split()[1], body))
    fake.url = running.base.removesuffix("/v1")
    monkeypatch.setenv("OLLAMA_HOST", fake.url)
    return fake


@pytest.fixture
def closed_port() -> Iterator[str]:
    with (
        socket.socket() as held
    ):  # bound, so that nobody else gets it, and not listening, so that it refuses
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_the_host_argument_wins_over_the_environment(
    server: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.url
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    assert list(list_ollama(url).items()) == [
        ("llama3.1:8b", 4_900_000_000),
        ("qwen2.5:latest", 4_900_000_000),
    ]
    with pytest.raises(ModelError, match=r"404 page not found \(HTTP 404\)"):
        list_ollama(url + "/elsewhere")


def test_no_proxy_for_this_machine(
    server: FakeOllama, closed_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", closed_port)
    monkeypatch.setenv("http_proxy", closed_port)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert len(list_ollama()) == 2


@pytest.mark.parametrize(
    "name", ["llama3.1:8b", "ollama_chat/llama3.1:8b", "ollama/llama3.1:8b", "qwen2.5"]
)
def test_a_model_that_is_there_is_found(server: FakeOllama, name: str) -> None:
    check_ollama(name)


@pytest.mark.parametrize("name", ["llama3.1", "ollama_chat/llama3.1:70b"])
def test_a_model_that_is_not_pulled_names_both_commands(
    server: FakeOllama, name: str
) -> None:
    bare = name.removeprefix("ollama_chat/")
    with pytest.raises(ModelError) as failure:
        check_ollama(name)
    for said in (
        f"`judgesmith get ollama_chat/{bare}`",
        f"`ollama pull {bare}`",
        server.url,
    ):
        assert said in str(failure.value)
    assert "did you mean 'llama3.1:8b'?" in str(failure.value)


# Asking it


def model(**connection: Any) -> LanguageModel:
    return language_model(
        "ollama_chat/llama3.1:8b",
        connection=Connection(attempts=2, cache=False, **connection),
    )


def ask(lm: LanguageModel, size: int, text: str = "x", **given: Any) -> Reply:
    return engine.run(
        lm.complete(Request([{"role": "user", "content": text * size}], 12, **given))
    )


def test_the_request_is_what_ollama_documents(server: FakeOllama) -> None:
    reply = ask(model(), 400, temperature=0.7, top_logprobs=5, sample=3)
    assert reply == Reply(
        "4", (TokenChoice("4", (("4", -0.1), ("5", -3.0))),), 100, 3, 0, "stop"
    )
    options = {
        "num_ctx": 4096,
        "num_predict": 12,
        "temperature": 0.7,
        "top_p": 1.0,
        "seed": 3,
    }
    message = {"role": "user", "content": "x" * 400}
    assert server.asked == [
        {
            "model": "llama3.1:8b",
            "messages": [message],
            "tools": [],
            "stream": False,
            "truncate": False,
            "logprobs": True,
            "top_logprobs": 5,
            "options": options,
        }
    ]


@pytest.mark.parametrize("new", [True, False])
def test_what_the_server_can_do_is_probed(new: bool, server: FakeOllama) -> None:
    server.new, lm = new, model()
    assert engine.run(lm.capabilities()) == Capabilities(logprobs=new, json_schema=True)
    assert server.asked[-1]["format"]["required"] == ["digit"]
    assert (lm.meter.usage.calls, *lm.meter.logical_tokens) == (
        2,
        14,
        6,
    )  # twice 29 bytes
    assert lm.identity == server.url


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize(
    ("size", "token", "longest", "contexts", "problem"),
    [
        (400, 4, 131072, [4096], None),
        (20000, 4, 131072, [8192], None),
        (20000, 1, 131072, [8192, 16384, 32768], None),
        (30000, 4, 8192, [8192], None),
        (
            40000,
            4,
            8192,
            [8192],
            (
                "has (some )?10,000 tokens.* up to 12 does not fit into the 8,192 "
                ".*longer context"
            ),
        ),
        (32752, 4, 8192, [8192], None),
        (32756, 4, 8192, [8192], "does not fit"),
        (60000, 4, 8192, [], "has some 15,000 tokens"),
    ],
)
def test_a_prompt_gets_a_context_that_holds_it_or_an_error(
    size: int,
    token: int,
    longest: int,
    contexts: list[int],
    problem: str | None,
    new: bool,
    server: FakeOllama,
) -> None:
    server.new, server.token, server.longest = new, token, longest
    lm = model()
    if problem is None:
        assert ask(lm, size).prompt_tokens == size // token
    else:
        with pytest.raises(CallError, match=problem):
            ask(lm, size)
    assert [body["options"]["num_ctx"] for body in server.asked] == contexts
    if problem is None:
        assert ask(lm, 400)
        assert server.asked[-1]["options"]["num_ctx"] == contexts[-1]


def test_a_prompt_whose_demonstrations_an_old_server_left_out_is_no_answer(
    server: FakeOllama,
) -> None:
    answer = {
        "message": {"role": "assistant", "content": "4"},
        "prompt_eval_count": 900,
        "eval_count": 3,
    }
    server.trouble = Say(body=json.dumps(answer).encode())
    assert ask(model(), 6_000).text == "4"
    with pytest.raises(CallError, match="some 10,000 tokens"):
        ask(model(), 40_000)


@pytest.mark.parametrize(
    ("trouble", "error", "words", "waits"),
    [
        (
            Say(503, b'{"error": "busy"}', headers={"Retry-After": "9"}),
            CallError,
            r"busy .*503\) after 2 tries",
            [9.0],
        ),
        (Say(400, b'{"error": "invalid format"}'), CallError, "invalid format", []),
        (Say(hang_up=True), CallError, "the connection failed: ", [None]),
        (Say(body=b"<html>"), CallError, "the answer is not Ollama's", [None]),
        (Say(wait=1.0), CallError, "connection failed: ReadTimeout", [None]),
        (Say(401, b"{}"), ModelError, "key was refused", []),
        (
            Say(307, headers={"Location": "http://evil.example"}),
            ModelError,
            "has moved to http://evil",
            [],
        ),
    ],
)
def test_failures_are_said_and_tried_again_where_that_can_help(
    trouble: Say,
    error: type[Exception],
    words: str,
    waits: list[Any],
    server: FakeOllama,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float | None] = []
    monkeypatch.setattr(
        "judgesmith.programs.models.sending._patience",
        lambda error, _: asked.append(error.after) or 0.0,
    )
    server.trouble = trouble
    with pytest.raises(error, match=words):
        ask(model(timeout=0.3), 400)
    assert (asked, len(server.asked)) == (waits, len(waits) + 1)


def test_half_a_character_of_broken_json_is_sent_as_the_sign_for_one(
    server: FakeOllama,
) -> None:
    ask(model(), 1, text="\ud800")
    assert server.asked[-1]["messages"][0]["content"] == "\ufffd"


# Finding and fetching


def test_a_server_that_is_down_and_an_address_that_is_none_are_said(
    closed_port: str,
) -> None:
    with pytest.raises(
        ModelError, match=f"Ollama does not answer at {closed_port}.*`ollama serve`"
    ):
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


@pytest.mark.parametrize(
    ("name", "why"),
    [("nosuch", "file does not exist"), ("gemma", "broke off the pull of gemma")],
)
def test_a_pull_that_ends_without_success_is_no_success(
    server: FakeOllama, name: str, why: str
) -> None:
    server.pull_breaks_off = True
    with pytest.raises(ModelError, match=why):
        pull_ollama(name)


@pytest.mark.parametrize(
    "body",
    [b"<html>hello</html>", b'{"models": [{"size": "no number"}]}', b"[1]", b"{}"],
)
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
def test_addresses(
    given: str | None, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    manifest = (
        tmp_path / "manifests" / "registry.ollama.ai" / "library" / "qwen2.5" / "0.5b"
    )
    manifest.parent.mkdir(parents=True)
    layers = [
        {
            "mediaType": "application/vnd.ollama.image.template",
            "digest": "sha256:" + "cd" * 32,
        },
        {"mediaType": "application/vnd.ollama.image.model", "digest": DIGEST},
    ]
    manifest.write_text(json.dumps({"layers": layers}), encoding="utf-8")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["ollama_chat/qwen2.5:0.5b", "ollama/qwen2.5:0.5b", "ollama/library/qwen2.5:0.5b"],
)
def test_weights_are_found_in_this_machines_store(
    store: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ollama_weights(name) == store / "blobs" / ("sha256-" + "ab" * 32)
    monkeypatch.setenv("OLLAMA_HOST", "http://gpu.example:11434")
    assert ollama_weights(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "ollama/llama3",
        "ollama/qwen2.5",
        "ollama/../../secret:x",
        "ollama/qwen2.5:../0.5b",
        "ollama/",
        "ollama/:",
    ],
)
def test_no_weights_for_a_name_that_the_store_does_not_have(
    store: Path, name: str
) -> None:
    assert ollama_weights(name) is None


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        '{"layers": 3}',
        '{"layers": [{"mediaType": "application/vnd.ollama.image.model"}]}',
        '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "../../etc/passwd"}]}',
    ],
)
def test_a_manifest_of_another_kind_is_no_model(store: Path, manifest: str) -> None:
    file = store / "manifests" / "registry.ollama.ai" / "library" / "qwen2.5" / "0.5b"
    file.write_text(manifest, encoding="utf-8")
    assert ollama_weights("ollama/qwen2.5:0.5b") is None
