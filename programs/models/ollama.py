"""The models of an Ollama server: which it has, fetching one, and clear words when it is not there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.errors import ModelError
from judgesmith.parts import nearest
from judgesmith.programs.models.reaching import check_trusted, is_loopback

if TYPE_CHECKING:
    import ollama


_WEIGHTS = "application/vnd.ollama.image.model"
_STORES = (
    "~/.ollama/models",
    "/usr/share/ollama/.ollama/models",
    "/var/lib/ollama/models",
)
_NAME_PART = re.compile(r"[A-Za-z0-9_][\w.-]*")

_LONGEST = 1 << 20  # tokens that a model is taken to hold where the server does not say
_ANSWER_WITHIN = 10.0  # seconds until the server starts to answer
_STALLED_AFTER = 120.0  # seconds a pull may say nothing; checking a large layer's hash takes that long on a slow disk


def ollama_host(host: str | None = None) -> str:
    """Return the server's address, with scheme, without a last slash.

    It is the argument, else `OLLAMA_HOST`, else this machine. `0.0.0.0`, which tells a server to listen everywhere,
    means this machine to a client, and the `/v1` of an OpenAI-style address is left out.
    """
    text = (
        (host or os.environ.get("OLLAMA_HOST") or "127.0.0.1")
        .strip()
        .rstrip("/")
        .removesuffix("/v1")
    )
    scheme, separator, rest = text.rpartition("://")
    address, slash, path = rest.partition("/")
    address = re.sub(r"^(0\.0\.0\.0)?(?=:|$)", "127.0.0.1", address)
    if not separator and not re.search(r":\w+$", address):
        address += ":11434"
    return f"{scheme or 'http'}://{address}{slash}{path}"


def list_ollama(host: str | None = None) -> dict[str, int]:
    """Return the size in bytes of each model that the server has, by name.

    Raises:
        ModelError: If it does not answer.
    """
    with _client(host) as client:
        models = client.list().models
    return {
        model.model or "": int(model.size or 0)
        for model in sorted(models, key=lambda model: model.model or "")
    }


def check_ollama(model: str, host: str | None = None) -> int:
    """Return the tokens of prompt and answer that a model takes.

    A name without a tag means `:latest`, as Ollama itself takes it, with or without `ollama_chat/` or `ollama/` before
    it.

    Raises:
        ModelError: If the server does not answer or does not have the model.
    """
    name = _bare(model)
    installed = list_ollama(host)
    if _tagged(name).lower() not in map(str.lower, installed):
        raise ModelError(
            f"Ollama at {ollama_host(host)} does not have the model {name}{nearest(name, installed)}; fetch it with "
            f"`judgesmith get ollama_chat/{name}` or `ollama pull {name}`"
        )
    with _client(host) as client:
        about = client.show(name).modelinfo or {}
        return int(
            about.get(f"{about.get('general.architecture')}.context_length") or _LONGEST
        )


def pull_ollama(
    name: str,
    host: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> None:
    """Let the server fetch a model. A pull that broke off goes on where it was.

    `progress(done_bytes, total_bytes, what)` counts all layers together, as far as they are known.

    Raises: ModelError if the server does not answer, knows no such model or cannot fetch it.
    """
    name = _bare(name)
    finished = False
    layers: dict[str, tuple[int, int]] = {}
    with _client(host, read_timeout=_STALLED_AFTER) as client:
        for step in client.pull(name, stream=True):
            status = step.status or ""
            finished = status == "success"
            if step.digest:
                done, total = layers.get(step.digest, (0, 0))
                layers[step.digest] = (
                    max(done, step.completed or 0),
                    max(total, step.total or 0),
                )
            if progress is not None:
                done_bytes = sum(done for done, _ in layers.values())
                total_bytes = sum(total for _, total in layers.values())
                progress(
                    done_bytes, total_bytes, f"{name}: {status}" if status else name
                )
    if not finished:
        raise ModelError(
            f"Ollama at {ollama_host(host)} broke off the pull of {name}; run `judgesmith get "
            f"ollama_chat/{name}` again, it goes on where it was"
        )


def is_ollama(model: str) -> bool:
    """Return True if a model's name states that an Ollama server runs it."""
    return model.startswith(("ollama_chat/", "ollama/"))


def ollama_weights(model: str) -> Path | None:
    """Return the GGUF file of a model in the store of the Ollama server on this machine, found through its manifest.

    None for a server elsewhere, and for a model or a store that is not there. The store is `OLLAMA_MODELS`, else the
    server's usual folders. The server is not called.
    """
    if not is_loopback(ollama_host()):
        return None
    name, _, tag = _tagged(_bare(model)).rpartition(":")
    parts = name.split("/")
    if not all(_NAME_PART.fullmatch(part) for part in (*parts, tag)):
        return None
    parts = [*("registry.ollama.ai", "library")[: max(0, 3 - len(parts))], *parts]
    own = os.environ.get("OLLAMA_MODELS")
    for store in (own,) if own else _STORES:
        folder = Path(store).expanduser()
        try:
            layers = json.loads(
                (folder / "manifests").joinpath(*parts, tag).read_bytes()
            )["layers"]
            digest = next(
                str(layer["digest"])
                for layer in layers
                if layer["mediaType"] == _WEIGHTS
            )
            file = (
                folder
                / "blobs"
                / f"sha256-{int(digest.removeprefix('sha256:'), 16):064x}"
            )
            if file.is_file():
                return file
        except (OSError, ValueError, LookupError, TypeError, StopIteration):
            continue  # no such model in this store, or a manifest of a kind that is not known here
    return None


def reaching(address: str, timeout: float) -> dict[str, Any]:
    """Return a client's options for a server.

    Args:
        address: The server's address.
        timeout: Seconds without an answer.
    """
    import httpx

    return {
        "timeout": httpx.Timeout(timeout, connect=min(timeout, _ANSWER_WITHIN)),
        "trust_env": not is_loopback(
            address
        ),  # a proxy cannot reach a server on this machine
        "follow_redirects": False,  # to a server that the user did not name
        "headers": {
            "Accept-Encoding": "identity"
        },  # compressed, a short answer can unpack to any length
    }


@contextmanager
def _client(
    host: str | None, read_timeout: float = _ANSWER_WITHIN
) -> Iterator[ollama.Client]:
    """A client whose every failure comes out as a ModelError."""
    import httpx
    import ollama

    address = ollama_host(host)
    try:
        client = ollama.Client(address, **reaching(address, read_timeout))
    except ValueError as error:
        raise ModelError(
            f"{address} is not an address of an Ollama server ({error}); correct OLLAMA_HOST"
        ) from error
    try:
        with client:
            yield client
    except ollama.ResponseError as error:
        status = f" (HTTP {error.status_code})" if error.status_code > 0 else ""
        raise ModelError(f"Ollama at {address} says: {error.error}{status}") from error
    except (ConnectionError, httpx.TransportError) as error:
        check_trusted(f"Ollama at {address}", error)
        raise ModelError(
            f"Ollama does not answer at {address}; start it with `ollama serve`, or name another server with "
            "OLLAMA_HOST (it is installed from https://ollama.com/download)"
        ) from error
    except (
        ValueError,
        TypeError,
        AttributeError,
    ) as error:  # what the client makes of JSON it does not expect
        raise ModelError(
            f"{address} answers, but not as Ollama does; check OLLAMA_HOST (got: {str(error).splitlines()[0]})"
        ) from error


def _bare(model: str) -> str:
    return model.removeprefix("ollama_chat/").removeprefix("ollama/")


def _tagged(name: str) -> str:
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"
