"""What is written whole is there whole, or the old file is as it was."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgesmith.programs.atomic import write_whole


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


def test_half_a_character_is_written_as_its_escape(tmp_path: Path) -> None:
    write_whole(tmp_path / "text", "a\ud800b")
    assert (tmp_path / "text").read_bytes() == rb"a\ud800b"
