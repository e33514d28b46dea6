"""Arrays whose memory is given back, and weights that are read through them."""

import gc
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_model import write_tiny_model

from judgesmith.programs.readings.bindings import spilled
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.bindings.spilled import Spilled
from judgesmith.programs.readings.passages import Text, passage
from judgesmith.testing.fake import own_environment

linux = pytest.mark.skipif(sys.platform != "linux", reason="is done on Linux alone")


def resident() -> int:
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20


@linux
def test_memory_is_given_back_and_what_was_there_is_read_again(tmp_path: Path) -> None:
    arrays = Spilled(tmp_path)
    before = resident()
    some = [arrays.empty((1 << 10, 40, 1 << 10), np.int8) for _ in range(3)]
    small = arrays.empty((3, 1), np.float16)
    small[:] = 7
    for number, array in enumerate(some):
        array[:] = number + 1
    assert list(tmp_path.iterdir()) == []  # it has no name
    arrays.give_back()
    assert resident() < before + 20
    assert [int(array.min()) for array in some] == [1, 2, 3]
    assert [int(array.max()) for array in some] == [1, 2, 3]
    with arrays.giving_back():
        assert int(some[2].sum(dtype=np.int64)) == 3 * some[2].size
    assert resident() < before + 20
    assert (small == 7).all()


@linux
@pytest.mark.parametrize("folder", ["", "missing"])
def test_arrays_do_not_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setattr(spilled, "TOGETHER", 1 << 17)
    arrays = Spilled(tmp_path / folder)
    shapes = [(n * 977, 33) for n in range(2, 14)]
    some = [arrays.empty(shape, np.float16) for shape in shapes]
    for number, array in enumerate(some):
        array[:] = number
    arrays.give_back()
    assert [array.shape for array in some] == shapes
    for number, array in enumerate(some):
        assert (array == number).all()


def test_without_room_on_the_disk_arrays_are_usual_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    if sys.platform == "linux":
        monkeypatch.setattr(spilled.os, "posix_fallocate", full)
    arrays = Spilled(tmp_path)
    array = arrays.empty((1 << 10, 1 << 10), np.int8)
    array[:] = 5
    arrays.give_back()
    assert (array == 5).all()


@pytest.mark.skipif(
    not all(find_spec(name) for name in ("openvino", "gguf", "tokenizers")),
    reason="needs the extra local",
)
def test_a_reader_gives_the_same_from_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_environment(monkeypatch, tmp_path)
    words = "The committee put off the vote until March."
    path = write_tiny_model(tmp_path / "tiny.gguf", [words] * 3)
    row, numbers = Text("It met.", words), list[Any]()
    for least in (0, 1 << 40):
        monkeypatch.setattr(spilled, "LEAST", least)
        reader = OpenVinoReader(path)
        gc.collect()
        read = reader.read(passage(row, reader.chat), layers=(1,))
        numbers.append((read.logp, read.entropy, read.means[1]))
        assert reader.computed == reader.size(passage(row, reader.chat).pieces)
        reader.close()
    for one, other in zip(*numbers, strict=True):
        assert (one == other).all()
