"""What is written whole is there whole, or the old file is as it was."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgesmith.errors import OptionError
from judgesmith.programs import atomic
from judgesmith.programs.atomic import write_whole, written_whole
from judgesmith.programs.models.locking import locked
from judgesmith.running.journal import alone, replacing
from judgesmith.scoring.tables import write_table


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file grows past `size` bytes: the operating system's own fault, at a place of one's choice."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are POSIX only")
@pytest.mark.parametrize("room", [0, 1, 50, 99])
def test_a_full_disk_leaves_the_old_file(room: int, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"old")
    with largest_file(room), pytest.raises(OSError):
        write_whole(path, "x" * 100)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with largest_file(100):
        write_whole(path, "x" * 100)
    assert path.read_bytes() == b"x" * 100


def test_a_new_file_is_as_open_as_any_other_and_an_old_one_stays_as_it_is(
    tmp_path: Path,
) -> None:
    plain, path, secret = (
        tmp_path / "plain",
        tmp_path / "in" / "a" / "folder",
        tmp_path / "secret",
    )
    plain.touch()
    write_whole(path, "é")
    assert path.read_bytes() == "é".encode()
    assert path.stat().st_mode == plain.stat().st_mode
    secret.touch(0o600)
    write_whole(secret, b"new")
    assert secret.stat().st_mode & 0o777 == 0o600


def test_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    device = tmp_path / "null"
    device.symlink_to(os.devnull)
    write_whole(device, "gone")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("what", ["replacing", "table"])
def test_what_is_written_again_keeps_its_mode_and_follows_no_link(
    what: str, tmp_path: Path
) -> None:
    """Whatever fixed name a temporary file might have: a link lies there, to a file that must stay."""
    path, victim = tmp_path / "o.csv", tmp_path / "victim"
    scored = tmp_path / "o.csv.jsonl"
    scored.touch()
    path.write_text("old")
    path.chmod(0o600)
    victim.write_text("mine")
    for name in (".o.again.csv", ".o.csv.new", ".new", ".o.csv..new", ".o.csv.tmp"):
        (tmp_path / name).symlink_to(victim)
    if what == "replacing":
        with replacing(path) as journal:
            journal.write({"a": 1})
    else:
        write_table(scored, path)
    assert path.read_text() != "old"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (path.is_symlink(), victim.read_text()) == (False, "mine")


def test_the_new_file_is_closed_to_others_before_anything_is_in_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "secret"
    path.touch(0o600)
    with written_whole(path) as beside:
        assert beside.stat().st_mode & 0o777 == 0o600


def test_a_lock_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".o.jsonl.lock").symlink_to(tmp_path / "made")
    with (
        pytest.raises(OptionError, match="cannot be written"),
        alone(tmp_path / "o.jsonl"),
    ):
        pass
    with pytest.raises(OSError), locked(tmp_path / ".o.jsonl.lock"):
        pass
    assert not (tmp_path / "made").exists()


def test_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    path, other = tmp_path / "o.jsonl", tmp_path / ".other.0123456789abcdef.new"
    left = tmp_path / ".o.jsonl.0123456789abcdef.new"
    for one in (path, left, other):
        one.write_text("{}")
    assert atomic.left_beside(path) == [left]
    with alone(path):
        pass
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_half_a_character_is_written_as_its_escape(tmp_path: Path) -> None:
    write_whole(tmp_path / "text", "a\ud800b")
    assert (tmp_path / "text").read_bytes() == rb"a\ud800b"
