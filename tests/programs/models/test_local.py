"""The embedded llama.cpp: what is refused before it starts, and, with a small real model, what it does."""

import asyncio
import concurrent.futures
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from judgesmith.errors import MissingExtraError, ModelError, OptionError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine, local
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.files import CATALOG, installed, model_path
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.local import (
    EmbeddedEndpoint,
    SharedMemory,
    close_all,
    embedded,
    thread_count,
)
from judgesmith.programs.models.providers.openai import OpenAIStyle
from judgesmith.programs.models.transport import Request
from judgesmith.programs.pointwise.direct import DirectScorer

NAME = "smollm2-135m"
SLOTS = 2


# Without a model


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("gguf:", "needs a path"),
        ("gguf:missing.gguf", "no such file"),
        ("gguf:.", "cannot be read"),
        ("gguf:text.gguf", "no GGUF file"),
        ("gguf:empty.gguf", "no GGUF file"),
        ("local/nosuch", "The catalog has smollm2-135m"),
        ("openai/gpt", "local/NAME or gguf:PATH"),
    ],
)
def test_what_is_no_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, why: str
) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.chdir(tmp_path)
    Path("text.gguf").write_text("a text")
    Path("empty.gguf").write_bytes(b"")
    with pytest.raises(ModelError, match=why):
        embedded(spec)


def test_without_llama_cpp_the_extra_is_named_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr(
        local, "model_path", lambda *_, **__: pytest.fail("fetched for nothing")
    )
    with pytest.raises(MissingExtraError, match=r"pip install 'judgesmith\[local\]'"):
        embedded(f"local/{NAME}")


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGESMITH_THREADS", raising=False)
    assert 1 <= thread_count() <= (os.cpu_count() or 1)
    monkeypatch.setenv("JUDGESMITH_THREADS", "7")
    assert thread_count() == 7
    for wrong in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("JUDGESMITH_THREADS", wrong)
        with pytest.raises(OptionError, match="JUDGESMITH_THREADS"):
            thread_count()


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(EmbeddedEndpoint("http://127.0.0.1:1", "secret", "m"))


def test_a_forked_worker_is_told_to_spawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path))
    monkeypatch.setattr(
        local, "_home_process", os.getpid() + 1
    )  # as in the child of a process that runs llama.cpp
    with pytest.raises(ModelError, match="spawn"):
        embedded(f"gguf:{path}")


def test_what_llama_cpp_cannot_load_is_said_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "cut.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 5))
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path))
    with pytest.raises(
        ModelError, match=r"llama\.cpp cannot start this model"
    ) as failure:
        embedded(f"gguf:{path}")
    assert str(path) in str(failure.value)
    assert capfd.readouterr() == ("", "")


# With a model


@pytest.fixture(scope="module")
def model() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra 'local' is not installed")
    if not installed(NAME):
        pytest.skip(
            f"{NAME} is not here: judgesmith get local/{NAME} fetches {CATALOG[NAME].bytes:,} bytes"
        )
    return model_path(NAME)


@pytest.fixture(scope="module")
def endpoint(model: Path) -> Iterator[EmbeddedEndpoint]:
    close_all()  # a server of the same file that another test started is larger
    with pytest.MonkeyPatch.context() as small:
        small.setattr(local, "SLOTS", SLOTS)
        small.setattr(local, "CONTEXT", 512)
        small.setenv("JUDGESMITH_THREADS", "1")
        yield embedded(f"local/{NAME}")
    close_all()


def ask(endpoint: EmbeddedEndpoint, user: str, **options: Any) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": options.pop("system", "You judge.")},
        {"role": "user", "content": user},
    ]
    body = {
        "model": endpoint.model_id,
        "messages": messages,
        "max_tokens": 4,
        "temperature": 0,
        **options,
    }
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    with httpx.Client(trust_env=False, timeout=300) as client:
        answer = client.post(
            f"{endpoint.base_url}/v1/chat/completions", json=body, headers=headers
        )
    return dict(answer.raise_for_status().json())


@pytest.mark.model
def test_the_id_names_the_file_by_its_hash_and_shows_no_path(
    endpoint: EmbeddedEndpoint, model: Path
) -> None:
    assert endpoint.model_id == f"local/{NAME}@{CATALOG[NAME].sha256[:12]}"
    assert embedded(f"local/{NAME}") == endpoint
    answer = ask(endpoint, "Is this good?")
    assert answer["model"] == endpoint.model_id
    assert str(model.parent) not in json.dumps(answer)


@pytest.mark.model
def test_it_gives_log_probabilities_and_keeps_to_a_json_schema(
    endpoint: EmbeddedEndpoint,
) -> None:
    style = OpenAIStyle(
        f"{endpoint.base_url}/v1",
        endpoint.model_id,
        key=endpoint.api_key,
        timeout=300,
        label=NAME,
    )
    lm = LanguageModel(
        f"local/{NAME}",
        style,
        identity="test",
        connection=Connection(cache=False),
        knows_grammar=True,
    )
    assert engine.run(lm.capabilities()) == Capabilities(True, True, True, True)


@pytest.mark.model
@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/completion", "/slots", "/props", "/v1/models"]
)
def test_nobody_gets_in_without_the_key_or_sees_the_prompts_of_others(
    endpoint: EmbeddedEndpoint, path: str
) -> None:
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "prompt": "hi",
        "max_tokens": 1,
    }
    method, sent = ("POST", body) if "complet" in path else ("GET", None)
    with httpx.Client(
        trust_env=False, timeout=30, base_url=endpoint.base_url
    ) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert (
                client.request(method, path, headers=headers, json=sent).status_code
                == 401
            )
        if path == "/slots":
            assert (
                client.get(
                    path, headers={"Authorization": f"Bearer {endpoint.api_key}"}
                ).status_code
                != 200
            )


@pytest.mark.model
@pytest.mark.slow
def test_a_beginning_that_prompts_share_is_computed_once_for_each_slot(
    endpoint: EmbeddedEndpoint,
) -> None:
    shared = "A good summary is short, true and clear. " * 15
    with concurrent.futures.ThreadPoolExecutor(SLOTS) as pool:
        answers = list(
            pool.map(
                lambda number: ask(endpoint, f"Text {number}.", system=shared), range(8)
            )
        )
    usage = [answer["usage"] for answer in answers]
    cold = [
        u
        for u in usage
        if u["prompt_tokens_details"]["cached_tokens"] < u["prompt_tokens"] / 2
    ]
    assert len(cold) <= SLOTS
    assert all(u["prompt_tokens"] > 100 for u in usage)


@pytest.mark.model
@pytest.mark.slow
def test_prompts_are_answered_whole_and_too_long_ones_refused(
    endpoint: EmbeddedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several long prompts do not fit into the server's memory together: they wait for each other."""
    monkeypatch.setenv(local.READER_VARIABLE, local.LLAMA_CPP)
    lm = language_model(f"local/{NAME}", connection=Connection(cache=False))
    judge, room = Judge(DirectScorer("fluency"), lm=lm), 512 * SLOTS
    words = [room // 2, room // 2 + 1, room // 2 + 2, 4 * room]
    rows = [
        {"source": "A source.", "output": f"Text {n}: " + "river " * n} for n in words
    ]
    *some, last = judge.score_many(rows, concurrency=len(rows), progress=False)
    limit = (
        rf"request \(\d+ tokens\) exceeds the available context size \({room} tokens\)"
    )
    assert re.search(limit, last.failure or "")
    for count, verdict in zip(words, some, strict=False):
        assert "HTTP" not in (verdict.failure or "")
        assert verdict.usage.prompt_tokens > count


def test_calls_wait_for_memory_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    # The server of other tests here is smaller, and a call's template would fill it.
    monkeypatch.setattr(local, "SLOTS", 4)
    monkeypatch.setattr(local, "CONTEXT", 4096)
    order = list[str]()

    async def every() -> None:
        sizes = {"a": 0.6, "b": 0.6, "c": 0.1, "d": 3.0}  # shares of the memory
        ends = {name: asyncio.Event() for name in sizes}

        class Slow:
            async def send(self, request: Request) -> Reply:
                name = request.messages[0]["content"][0]
                order.append(f"+{name}")
                await ends[name].wait()
                order.append(f"-{name}")
                return Reply(name)

        async def reaches(wanted: list[str]) -> None:
            for _ in range(5000):
                if order[: len(wanted)] == wanted:
                    break
                await asyncio.sleep(0.001)
            for _ in range(20):  # nobody else is let in
                await asyncio.sleep(0)
            assert order == wanted

        memory = SharedMemory(
            Slow(), EmbeddedEndpoint("http://127.0.0.1:1", "key", "m")
        )
        texts = [
            name * int(share * local.SLOTS * local.CONTEXT * 3)
            for name, share in sizes.items()
        ]
        calls = asyncio.gather(
            *(
                memory.send(Request([{"role": "user", "content": text}], 1))
                for text in texts
            )
        )
        async with asyncio.timeout(60):
            await reaches(["+a"])  # c fits beside a, but b came first
            ends["a"].set()
            await reaches(["+a", "-a", "+b", "+c"])
            ends["b"].set()
            await reaches(["+a", "-a", "+b", "+c", "-b"])
            ends["c"].set()
            await reaches(["+a", "-a", "+b", "+c", "-b", "-c", "+d"])
            ends["d"].set()
            await calls

    engine.run(every())
    assert order[-1] == "-d"


SCRIPT = """
import json, os, sys, urllib.request
from judgesmith.programs.models import local
from judgesmith.programs.models.local import close_all, embedded
local.SLOTS, local.CONTEXT = 1, 512
endpoint = embedded("gguf:" + sys.argv[1])
def ask(tokens=2):
    messages = [{"role": "user", "content": "Tell a story."}]
    body = json.dumps({"messages": messages, "max_tokens": tokens, "ignore_eos": tokens > 2}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + endpoint.api_key}
    request = urllib.request.Request(endpoint.base_url + "/v1/chat/completions", body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.load(opener.open(request, timeout=60))["usage"]["completion_tokens"]
ask()
"""


def run(script: str, model: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + script, str(model)],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.model
@pytest.mark.parametrize(
    "end", ["", "close_all()", "close_all(); close_all()", "sys.exit(0)"]
)
@pytest.mark.slow
def test_a_process_ends_in_order_and_in_silence_and_an_id_shows_the_files_name_only(
    model: Path, end: str
) -> None:
    done = run(f"print(endpoint.model_id); {end}", model)
    said = f"gguf:{model.name}@{CATALOG[NAME].sha256[:12]}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


@pytest.mark.model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.slow
def test_a_forked_worker_calls_its_parents_server_and_leaves_it_alone(
    model: Path,
) -> None:
    script = """
child = os.fork()
if child == 0:
    again = embedded("gguf:" + sys.argv[1])
    close_all()
    print("child", again == endpoint and ask() > 0, flush=True)
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("parent", status, ask() > 0)
"""
    done = run(script, model)
    assert (done.stdout.split("\n"), done.returncode) == (
        ["child True", "parent 0 True", ""],
        0,
    )


CALLS = """
import threading, time
def long():
    try:
        while True: ask(400)
    except Exception as error: print("call ended")
thread = threading.Thread(target=long, daemon=True); thread.start()
time.sleep(0.5)
"""


@pytest.mark.model
@pytest.mark.slow
def test_closing_or_ending_a_process_under_a_call_ends_the_call(model: Path) -> None:
    # Once a deadlock: the server waited for its client to hang up, and held Python's lock, which the client needed.
    done = run(
        CALLS + 'close_all(); thread.join(60); print("over", not thread.is_alive())',
        model,
    )
    assert done.stdout.split("\n") == ["call ended", "over True", ""]
    assert run(CALLS + "sys.exit(3)", model).returncode == 3
