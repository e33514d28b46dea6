"""A language model inside this process: llama.cpp through `xllamacpp`, reached over a port of this machine.

`embedded("local/qwen2.5-0.5b")` or `embedded("gguf:/path/model.gguf")` starts a llama.cpp server in this process, or
finds the one that runs already, and says where it answers. It speaks the OpenAI protocol, with log-probabilities, JSON
schemas and a cache of prompt beginnings.

Processes: a server belongs to the process that started it. A process forked from it may go on calling the server, as
long as its parent lives, but cannot start one of its own: llama.cpp's threads and locks do not survive a fork. Start
such workers with the `spawn` method. What `os.fork` alone makes must end with `os._exit`, as multiprocessing's workers
do: an ordinary exit runs llama.cpp's clean-up, which waits for threads that only the parent has.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.engine import PerLoop
from judgesmith.programs.models.files import file_sha256, find_model, model_path
from judgesmith.programs.models.threads import thread_count
from judgesmith.programs.models.transport import (
    DENSE,
    TEMPLATE,
    Request,
    Transport,
)

#: Calls answered at the same time, further ones wait; and tokens of prompt and answer together for each of them:
#: llama.cpp takes no more than what the model was trained for.
SLOTS = 4
CONTEXT = 4096
#: Tokens of prompts that llama.cpp reads at once.
BATCH = 512
#: The name of what runs here, and the environment's choice of what computes.
LLAMA_CPP = "llama.cpp"
READER_VARIABLE = "JUDGESMITH_READER"
_READY_WITHIN = 120.0  # seconds from the start of a server until it answers


_LOG = logging.getLogger("judgesmith.servers")


@cache
def note_engine(name: str, before: str, now: str) -> None:
    """Warn, once for each, that another engine computes a model than the one that a judge was compiled with.

    before, now: as `LanguageModel.computed_by` has it; which instructions of the processor an engine uses is no matter.
    """
    engines = [way.partition(" ")[0] for way in (before, now)]
    if all(engines) and engines[0] != engines[1]:
        _LOG.warning(
            "%s is computed by %s here, and this judge was compiled with %s: scores differ; %s=%s computes as "
            "then, or compile again",
            *(name, engines[1], engines[0], READER_VARIABLE, engines[0]),
        )


@dataclass(frozen=True)
class EmbeddedEndpoint:
    """The address at which an embedded model answers.

    `base_url` has no `/v1`. The key is new for each server and keeps other users of this machine off it. `model_id`
    holds the beginning of the file's SHA-256, so that answers of two files are never taken for each other in a cache.
    """

    base_url: str
    api_key: str = field(repr=False)
    model_id: str


class SharedMemory:
    """An embedded model whose calls share one memory.

    Calls that it does not hold together with those under way wait, in their order. llama.cpp would break off all of
    them instead. Tokens are estimated from bytes, rather too many. A call that is longer than the memory is sent alone;
    the server refuses it with its length.
    """

    def __init__(self, inner: Transport, endpoint: EmbeddedEndpoint) -> None:
        self._inner = inner
        self._memory = _memories.setdefault(endpoint.base_url, _Memory(SLOTS * CONTEXT))

    async def send(self, request: Request) -> Reply:
        """Send a request when the memory has room for it."""
        size = sum(
            len(message["content"].encode("utf-8", "replace"))
            for message in request.messages
        )
        async with self._memory.taken(size // DENSE + TEMPLATE + request.max_tokens):
            return await self._inner.send(request)


class _Memory:
    """Tokens that an embedded server has for all its calls."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._traffic = PerLoop(lambda: (asyncio.Lock(), asyncio.Event(), [tokens]))

    @contextlib.asynccontextmanager
    async def taken(self, tokens: int) -> AsyncIterator[None]:
        turn, given_back, free = self._traffic()
        needed = min(tokens, self._tokens)
        async with (
            turn
        ):  # whoever waits keeps those behind it waiting, however short they are
            while free[0] < needed:
                given_back.clear()
                await given_back.wait()
            free[0] -= needed
        try:
            yield
        finally:
            free[0] += needed
            given_back.set()


_memories: dict[str, _Memory] = {}
_servers: dict[tuple[Path, str], tuple[Any, EmbeddedEndpoint]] = {}
_lock = threading.Lock()
_home_process: int | None = None  # the process that started llama.cpp


def embedded(spec: str, adapter: Path | None = None) -> EmbeddedEndpoint:
    """Return the endpoint of `local/NAME` (fetched first if it is not here) or `gguf:PATH`, started if it does not run.

    One server per file lives in this process, until `close_all` or the end of the process.

    Args:
        spec: The model.
        adapter: A GGUF file of low-rank weights (LoRA) that are added to the model's.

    Raises:
        ModelError: If the model is unknown, cannot be fetched or cannot be started.
        MissingExtraError: Without `xllamacpp`.
    """
    path, digest, model_id = identified(spec, adapter)
    with _lock:
        if (path, digest) not in _servers:
            _servers[path, digest] = _started(path, model_id, adapter)
        return _servers[path, digest][1]


def identified(spec: str, adapter: Path | None = None) -> tuple[Path, str, str]:
    """The file of a model (fetched first if it is not here), its SHA-256 with the adapter's, and the id of both.

    Raises as `embedded`.
    """
    _xllamacpp()  # before a download that would be for nothing
    path, label = model_file(spec)
    try:
        digest = file_sha256(path)
    except OSError as error:
        raise ModelError(f"{spec}: cannot read {path}: {error}") from error
    model_id = f"{label}@{digest[:12]}"
    if adapter is not None:
        added = file_sha256(adapter)
        digest = f"{digest}+{added}"
        model_id = f"{model_id}+{added[:12]}"
    return path, digest, model_id


class Lazily:
    """A transport to llama.cpp that is opened by the first request, since many judges never need it.

    Requests are sent a few at a time, as many as the server answers at once.
    """

    def __init__(self, opens: Callable[[], Transport]) -> None:
        self._opens = opens
        self._inner: Transport | None = None
        self._traffic = PerLoop(lambda: (asyncio.Lock(), asyncio.Semaphore(SLOTS)))

    async def send(self, request: Request) -> Reply:
        """Start the model at the first request; send each when a place is free."""
        opening, slots = self._traffic()
        async with opening:
            if self._inner is None:
                self._inner = await asyncio.to_thread(self._opens)
        async with slots:
            return await self._inner.send(request)


def _started(
    path: Path, model_id: str, adapter: Path | None
) -> tuple[Any, EmbeddedEndpoint]:
    global _home_process
    if _home_process not in (None, os.getpid()):
        raise ModelError(
            f"{path}: this process was forked from one that runs llama.cpp and cannot start another model; start "
            "the model in the parent, or the workers with multiprocessing's 'spawn' method"
        )
    xllamacpp = _xllamacpp()
    key = secrets.token_urlsafe(24)
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, path, model_id, adapter, key))
    except Exception as error:  # a RuntimeError that says little, whatever the cause
        raise ModelError(
            f"{path}: llama.cpp cannot start this model ({error}); the file may be cut off, of a kind that "
            f"xllamacpp {getattr(xllamacpp, '__version__', '?')} does not know, or too large for the free memory "
            f"with {SLOTS} slots of {CONTEXT} tokens"
        ) from error
    _home_process = os.getpid()
    endpoint = EmbeddedEndpoint(str(server.listening_address), key, model_id)
    # Not only for the callers' sake: a server that is closed before its loop runs hangs.
    end = time.monotonic() + _READY_WITHIN
    with httpx.Client(
        trust_env=False, timeout=10.0, headers={"Authorization": f"Bearer {key}"}
    ) as client:
        while time.monotonic() < end:
            with contextlib.suppress(httpx.TransportError):
                if client.get(endpoint.base_url + "/v1/models").status_code == 200:
                    return server, endpoint
            time.sleep(0.05)
    raise ModelError(f"{path}: llama.cpp does not answer after {_READY_WITHIN:g} s")


def close_all() -> None:
    """Stop every server that `embedded` started in this process. Calls that are under way fail."""
    if _home_process != os.getpid():
        return  # in a forked child they are the parent's, and their destructors would never return
    with _lock:
        while _servers:
            # The destructor waits until every client has its answer or has hung up, and holds Python's lock meanwhile:
            # a client in this process can do neither, and both would wait forever.
            _, (server, endpoint) = _servers.popitem()
            _hang_up(urlsplit(endpoint.base_url).port or 0)
            del server  # the last reference: its destructor ends llama.cpp's threads


def _after_fork_in_child() -> None:
    # Another thread may have held the lock at the moment of the fork; it does not exist here and will never let go.
    global _lock
    _lock = threading.Lock()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _parameters(
    xllamacpp: Any, path: Path, model_id: str, adapter: Path | None, key: str
) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {model_id}  # else the answers carry the path
    if adapter is not None:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(adapter), 1.0)]
    params.n_parallel = SLOTS
    params.n_ctx = CONTEXT * SLOTS
    # It looks between batches whether anybody still waits: at 50 tokens a second, one of 2,048 would be 40 s.
    params.n_batch = params.n_ubatch = BATCH
    # One memory for all slots: as many prompt tokens from the cache as with separate ones (85 % with four calls in
    # flight that share 700 tokens, 92 % with one) for 60 to 85 % of the process's memory.
    params.kv_unified = True
    # Beginnings that no slot holds at the moment, for prompts that take turns: with three beginnings and four slots
    # 80 % of the prompt tokens came from the cache, 59 % without it. llama.cpp itself would take up to 8 GiB.
    params.cache_ram_mib = 1024
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = thread_count()
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.cache_prompt = True
    params.warmup = False
    params.fit_params = False  # else it quietly shrinks the context to what it takes to be the free memory
    params.verbosity = 0
    params.ui = False
    params.endpoint_slots = False  # it would show the prompts
    params.endpoint_metrics = False
    return params


def _hang_up(port: int) -> None:
    """End every connection of this process from or to a port of this machine, but not the port's own socket."""
    folder = Path("/dev/fd")
    if not folder.is_dir():
        return  # Windows, where closing waits for the calls that are under way
    for entry in list(folder.iterdir()):
        with contextlib.suppress(
            OSError
        ):  # no longer open, or no socket, or not connected
            duplicate = os.dup(int(entry.name))
            try:
                connection = socket.socket(fileno=duplicate)
            except OSError:
                os.close(duplicate)
                continue
            with connection:
                if connection.family == socket.AF_INET:
                    ends = (connection.getsockname(), connection.getpeername())
                    if ("127.0.0.1", port) in ends:
                        connection.shutdown(socket.SHUT_RDWR)


def model_file(spec: str) -> tuple[Path, str]:
    """Return the model's file (fetched first if it is not here), and the readable part of its id.

    That part has no folder of this machine in it.

    Raises:
        ModelError: If the file cannot be had.
    """
    if spec.startswith("local/"):
        name = find_model(spec).name
        return model_path(name).resolve(), f"local/{name}"
    if spec.startswith("gguf:"):
        written = spec.removeprefix("gguf:")
        if not written:
            raise ModelError(
                "gguf: needs a path after the colon, for example gguf:models/judge.gguf"
            )
        path = Path(written).expanduser()
        try:
            with path.open("rb") as file:
                magic = file.read(4)  # before the whole file is read for its hash
        except FileNotFoundError:
            raise ModelError(
                f"{path}: no such file; give the path of a GGUF model, or use local/NAME"
            ) from None
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error}") from error
        if magic != b"GGUF":
            raise ModelError(
                f"{path} is no GGUF file (it begins with {magic!r}); give the path of a model in llama.cpp's format"
            )
        return path.resolve(), "gguf:" + re.sub(r"[^\w.+-]", "_", path.name)
    raise ModelError(f"{spec}: an embedded model is local/NAME or gguf:PATH")


def _xllamacpp() -> Any:
    return from_extra(
        "local", "an embedded model (local/NAME or gguf:PATH)", "xllamacpp"
    )
