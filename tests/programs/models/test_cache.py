"""The call cache: what a key tells apart, damage, and several processes on one file."""

import logging
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import HANG

from judgesmith.errors import OptionError
from judgesmith.programs.comparing.references import ReferenceStore
from judgesmith.programs.models.cache import CallCache, SharedFile


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[CallCache]:
    opened = CallCache(tmp_path / "deep" / "er" / "calls.sqlite")
    yield opened
    opened.close()


def test_the_key_does_not_depend_on_the_order_of_fields() -> None:
    one = CallCache.key({"model": "m", "messages": [{"role": "user", "content": "é"}]})
    assert one == CallCache.key(
        {"messages": [{"content": "é", "role": "user"}], "model": "m"}
    )
    assert one != CallCache.key(
        {"messages": [{"content": "e", "role": "user"}], "model": "m"}
    )
    assert len(one) == 32


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"garbage",
        zlib.compress(b"{"),
        zlib.compress(b"[1, 2")[:-3],
        zlib.compress(b"\xff\xfe"),
        None,
        7,
        "text",
    ],
)
def test_a_damaged_entry_counts_as_absent(cache: CallCache, damage: Any) -> None:
    cache.put(b"k", {"text": "4"})
    with sqlite3.connect(cache.path) as other:
        other.execute("UPDATE calls SET value = ?", (damage,))
    other.close()
    assert cache.get(b"k") is None
    cache.put(b"k", {"text": "5"})
    assert cache.get(b"k") == {"text": "5"}


def test_a_path_that_cannot_hold_the_file_is_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    thesis = tmp_path / "thesis.doc"
    thesis.write_bytes(b"my thesis, the only copy\n" * 100)
    for path in (tmp_path, thesis, thesis / "calls.sqlite"):
        with pytest.raises(
            OptionError, match=rf"{path} cannot be used.*JUDGESMITH_CACHE.*--no-cache"
        ):
            CallCache(path)
    assert thesis.read_bytes().startswith(b"my thesis")  # and left as it was


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "mine.sqlite"))
    assert CallCache.default_path() == tmp_path / "mine.sqlite"
    monkeypatch.delenv("JUDGESMITH_CACHE")
    assert (
        CallCache.default_path()
        == Path.home() / ".cache" / "judgesmith" / "calls.sqlite"
    )


@pytest.fixture
def lax() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def rights(folder: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")
@pytest.mark.parametrize("kind", [CallCache, ReferenceStore])
def test_only_the_owner_may_read_what_is_kept(
    tmp_path: Path, lax: None, kind: type[SharedFile]
) -> None:
    path = tmp_path / "kept.sqlite"
    names = ["kept.sqlite", "kept.sqlite-wal", "kept.sqlite-shm"]
    opened = kind(path)
    opened._run("CREATE TABLE more (n)")
    assert rights(tmp_path) == dict.fromkeys(names, "0o600")
    opened.close()


def test_a_second_connection_takes_no_lock_from_the_first(tmp_path: Path) -> None:
    """POSIX ends a process's locks on a file when it closes any of its descriptors."""
    path = tmp_path / "calls.sqlite"
    first = CallCache(path)
    first._db.execute("BEGIN IMMEDIATE")
    first._db.execute("INSERT INTO calls VALUES (x'00', x'00')")
    CallCache(path).close()
    script = (
        "import sqlite3, sys\n"
        "try:\n"
        "    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.stdout == "database is locked\n"
    first._db.execute("ROLLBACK")
    first.close()


def test_a_failing_file_gives_one_warning_and_costs_the_cache(
    cache: CallCache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put(b"before", 1)
    pages = cache._db.execute("PRAGMA page_count").fetchone()[0]
    cache._db.execute(
        f"PRAGMA max_page_count = {pages}"
    )  # SQLite's own way to have no room
    with caplog.at_level(logging.WARNING):
        for number in range(50):
            cache.put(str(number).encode(), os.urandom(3000).hex())
        assert cache.get(b"before") == 1
        cache._db.execute("PRAGMA max_page_count = 100000")
        cache.put(b"after", 2)  # room was made
        assert cache.get(b"after") == 2
        cache._db.execute("DROP TABLE calls")
        assert cache.get(b"after") is None
    (warning,) = caplog.messages
    assert str(cache.path) in warning
    assert "full" in warning
    assert "calls go on without it" in warning


# Several processes


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_several_processes_share_a_file_from_its_first_moment(tmp_path: Path) -> None:
    path, fork = tmp_path / "calls.sqlite", multiprocessing.get_context("fork")
    start = fork.Barrier(4)

    def write(me: str) -> None:
        start.wait(HANG)  # all of them make the file at the same time
        cache = CallCache(path)
        for number in range(200):
            for key in (f"{me}-{number}", "shared"):
                cache.put(key.encode(), {"from": me, "number": number})
            assert cache.get(f"{me}-{number}".encode()) == {
                "from": me,
                "number": number,
            }

    writers = [fork.Process(target=write, args=(me,)) for me in "0123"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(HANG)
        assert writer.exitcode == 0
    cache = CallCache(path)
    for me in "0123":
        for number in range(200):
            assert cache.get(f"{me}-{number}".encode()) == {
                "from": me,
                "number": number,
            }
    cache.close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_opens_the_file_anew(cache: CallCache) -> None:
    def child() -> None:
        assert cache.get(b"parent") == 1
        cache.put(b"child", 2)

    cache.put(b"parent", 1)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(HANG)
    assert process.exitcode == 0
    assert cache.get(b"child") == 2


ENDING = """
import sys, threading
from pathlib import Path
from judgesmith.programs.models.cache import CallCache

class Counting(CallCache):
    def count(self):
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
        self._run(f"{numbers} SELECT max(i) FROM n")

def count(cache, begun):
    begun.set()
    for _ in range(3):
        cache.count()

for name in "abcd":
    begun = threading.Event()
    cache = Counting(Path(sys.argv[1], name))
    threading.Thread(target=count, args=(cache, begun), daemon=True).start()
    begun.wait()
"""


def test_the_interpreter_ends_while_other_threads_read(tmp_path: Path) -> None:
    # SQLite crashes (SIGSEGV) where a connection is closed during a statement.
    done = subprocess.run(
        [sys.executable, "-c", ENDING, tmp_path], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
