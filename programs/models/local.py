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

import atexit
import contextlib
import os
import re
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from ...errors import MissingExtraError, ModelError, OptionError
from .files import file_sha256, find_model, model_path

_READY_WITHIN = 120.0  # seconds from the start of a server until it answers


@dataclass(frozen=True, kw_only=True)
class EmbeddedOptions:
    """How llama.cpp runs a model.

    Args:
        slots: calls answered at the same time; further ones wait.
        context: tokens of prompt and answer together for each slot; llama.cpp takes no more than what the model was
            trained for.
        threads: threads that compute; None takes `thread_count()`.
        adapter: a GGUF file of low-rank weights (LoRA) that are added to the model's.
    """

    slots: int = 4
    context: int = 4096
    threads: int | None = None
    adapter: Path | None = None


@dataclass(frozen=True)
class EmbeddedEndpoint:
    """Where an embedded model answers.

    `base_url` has no `/v1`. The key is new for each server and keeps other users of this machine off it. `model_id`
    holds the beginning of the file's SHA-256, so that answers of two files are never taken for each other in a cache.
    """

    base_url: str
    api_key: str = field(repr=False)
    model_id: str


class EmbeddedServer:
    """One llama.cpp server in this process. `embedded` shares one among all callers; make your own only to own its end.

    Args:
        path: a GGUF file.
        model_id: the name under which the server answers.

    Raises: ModelError if there is no such file, it is no GGUF file, or llama.cpp cannot load it; MissingExtraError
    without `xllamacpp`.
    """

    def __init__(self, path: Path, model_id: str, options: EmbeddedOptions | None = None) -> None:
        global _home_process
        self.path = path
        self.options = options or EmbeddedOptions()
        _check_gguf(path)
        _check_memory(path)
        if _home_process not in (None, os.getpid()):
            raise ModelError(
                f"{path}: this process was forked from one that runs llama.cpp and cannot start another model; start "
                "the model in the parent, or the workers with multiprocessing's 'spawn' method"
            )
        xllamacpp = _xllamacpp()
        key = secrets.token_urlsafe(24)
        params = _parameters(xllamacpp, path, model_id, self.options, key)
        try:
            self._server: Any = xllamacpp.Server(params)
        except Exception as error:  # a RuntimeError that says little, whatever the cause
            raise ModelError(
                f"{path}: llama.cpp cannot start this model ({error}); the file may be cut off, of a kind that "
                f"xllamacpp {getattr(xllamacpp, '__version__', '?')} does not know, or too large for the free memory "
                f"with {self.options.slots} slots of {self.options.context} tokens"
            ) from error
        _home_process = os.getpid()
        self.endpoint = EmbeddedEndpoint(str(self._server.listening_address), key, model_id)
        self._wait_until_ready()

    def close(self) -> None:
        """Stop the server and free its memory; again does nothing. Calls that are under way fail."""
        if self._server is None or _home_process != os.getpid():
            return  # in a forked child the server is the parent's, and its destructor would never return
        # The destructor waits until every client has its answer or has hung up, and holds Python's lock meanwhile: a
        # client in this process can do neither, and both would wait forever.
        _hang_up(urlsplit(self.endpoint.base_url).port or 0)
        self._server = None  # the last reference: its destructor ends llama.cpp's threads

    def _wait_until_ready(self) -> None:
        # Not only for the callers' sake: a server that is closed before its loop runs hangs.
        end = time.monotonic() + _READY_WITHIN
        headers = {"Authorization": f"Bearer {self.endpoint.api_key}"}
        with httpx.Client(trust_env=False, timeout=10.0, headers=headers) as client:
            while time.monotonic() < end:
                with contextlib.suppress(httpx.TransportError):
                    if client.get(self.endpoint.base_url + "/v1/models").status_code == 200:
                        return
                time.sleep(0.05)
        raise ModelError(f"{self.path}: llama.cpp does not answer after {_READY_WITHIN:g} s")


_servers: dict[tuple[Path, str, EmbeddedOptions], EmbeddedServer] = {}
_lock = threading.Lock()
_home_process: int | None = None  # the process that started llama.cpp


def embedded(spec: str, *, options: EmbeddedOptions | None = None) -> EmbeddedEndpoint:
    """The endpoint of `local/NAME` (fetched first if it is not here) or `gguf:PATH`, started if it does not run yet.

    One server per file and options lives in this process, until `close_all` or the end of the process.

    Args:
        spec: `local/NAME` with a name of the catalog, or `gguf:PATH`.

    Raises: ModelError if the model is unknown, cannot be fetched or cannot be started; MissingExtraError without
    `xllamacpp`.
    """
    options = options or EmbeddedOptions()
    _xllamacpp()  # before a download that would be for nothing
    path, label = model_file(spec)
    try:
        digest = file_sha256(path)
    except OSError as error:
        raise ModelError(f"{spec}: cannot read {path}: {error}") from error
    model_id = f"{label}@{digest[:12]}"
    if options.adapter is not None:
        added = file_sha256(options.adapter)
        digest, model_id = f"{digest}+{added}", f"{model_id}+{added[:12]}"
    key = (path, digest, options)
    with _lock:
        if key not in _servers:
            _servers[key] = EmbeddedServer(path, model_id, options)
        return _servers[key].endpoint


def close_all() -> None:
    """Stop every server that `embedded` started in this process. Calls that are under way fail."""
    if _home_process != os.getpid():
        return  # in a forked child they are the parent's
    with _lock:
        while _servers:
            _servers.popitem()[1].close()


def _after_fork_in_child() -> None:
    # Another thread may have held the lock at the moment of the fork; it does not exist here and will never let go.
    global _lock
    _lock = threading.Lock()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def thread_count() -> int:
    """Threads for an embedded model: `JUDGESMITH_THREADS`, else the processor cores this process may use.

    On a machine that is busy with other work, one thread less is often faster: llama.cpp's threads wait for each other.

    Raises: OptionError if `JUDGESMITH_THREADS` is not a number of at least 1.
    """
    if wish := os.environ.get("JUDGESMITH_THREADS", "").strip():
        if not wish.isascii() or not wish.isdigit() or int(wish) < 1:
            raise OptionError(f"JUDGESMITH_THREADS={wish!r}: give a number of at least 1, or unset it")
        return int(wish)
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    usable = os.sched_getaffinity(0)
    cores = set()
    for cpu in usable:
        # Two hardware threads of one core count once: they share the units that llama.cpp keeps busy.
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text(encoding="ascii").strip())
        except OSError:
            return len(usable)
    return len(cores) or 1


def _check_gguf(path: Path) -> None:
    """Raises ModelError if there is no such file or it is no GGUF file."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file; give the path of a GGUF model, or use local/NAME") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if magic != b"GGUF":
        raise ModelError(
            f"{path} is no GGUF file (it begins with {magic!r}); give the path of a model in llama.cpp's format"
        )


def _parameters(xllamacpp: Any, path: Path, model_id: str, options: EmbeddedOptions, key: str) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {model_id}  # else the answers carry the path
    if options.adapter is not None:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(options.adapter), 1.0)]
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    # One memory for all slots: as many prompt tokens from the cache as with separate ones (85 % with four calls in
    # flight that share 700 tokens, 92 % with one) for 60 to 85 % of the process's memory.
    params.kv_unified = True
    # Beginnings that no slot holds at the moment, for prompts that take turns: with three beginnings and four slots
    # 80 % of the prompt tokens came from the cache, 59 % without it. llama.cpp itself would take up to 8 GiB.
    params.cache_ram_mib = 1024
    threads = options.threads or thread_count()
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
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
        with contextlib.suppress(OSError):  # no longer open, or no socket, or not connected
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
    """The model's file (fetched first if it is not here), and the part of its id that people read: no folder of this
    machine in it. Raises: ModelError."""
    if spec.startswith("local/"):
        name = find_model(spec).name
        return model_path(name).resolve(), f"local/{name}"
    if spec.startswith("gguf:"):
        written = spec.removeprefix("gguf:")
        if not written:
            raise ModelError("gguf: needs a path after the colon, for example gguf:models/judge.gguf")
        path = Path(written).expanduser()
        _check_gguf(path)  # before the whole file is read for its hash
        return path.resolve(), "gguf:" + re.sub(r"[^\w.+-]", "_", path.name)
    raise ModelError(f"{spec}: an embedded model is local/NAME or gguf:PATH")


def _check_memory(path: Path) -> None:
    # Otherwise the operating system ends the whole process, without a word, as soon as the weights are read.
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return  # an operating system that does not say
    size = path.stat().st_size
    if size > memory > 0:
        raise ModelError(
            f"{path}: the model needs {size / 1e9:.1f} GB of memory and this machine has {memory / 1e9:.1f} GB; take a "
            "smaller model or a stronger quantisation"
        )


def _xllamacpp() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingExtraError(
            "an embedded model (local/NAME or gguf:PATH) needs llama.cpp: pip install 'judgesmith[local]'"
        ) from error
    return xllamacpp
