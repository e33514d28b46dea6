"""What is read of a row, and kept: with a reader whose every answer is known, and that counts what it reads."""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from judgesmith.programs.readings.kinds import RowReadings, middle, read_row
from judgesmith.programs.readings.passages import PLAIN_TURNS, JinjaChat, Passage, Text
from judgesmith.programs.readings.reader import Ability, KeptReader, TokenReading

TEXT = Text("The cat sat on the mat.", "A cat sat there.", instruction="Rewrite it.")


class WordReader:
    """Words are tokens; a word's log-probability follows from its letters and from nothing else."""

    name = "words"

    def __init__(self, layers: int = 24) -> None:
        self.chat = JinjaChat(PLAIN_TURNS)
        self.ability = Ability(layers=layers)
        self.reads = 0

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        self.reads += 1
        target = passage.pieces[passage.target].text
        words = target.split(" ")
        numbers = [int.from_bytes(hashlib.sha256(word.encode()).digest()[:2], "big") for word in words]
        logp = -np.array(numbers, dtype=np.float32) / 2**15
        ends = np.cumsum([len(word) + 1 for word in words])
        ends[-1] = len(target)
        states = {layer: np.full(4, layer + float(logp.mean()), dtype=np.float32) for layer in layers}
        return TokenReading(logp, logp * 0 + 1, logp * 0, tuple(ends.tolist()), states)


def test_one_pass_gives_everything() -> None:
    reader = WordReader()
    row = read_row(reader, TEXT, layers=3, counted=True)
    assert reader.reads == 1
    assert {"assistant.mean", "surface.words"} <= set(row.numbers)
    assert set(row.states) == {"assistant.mean10", "assistant.mean12", "assistant.mean14"}
    for given in ({"layers": 0, "counted": False}, {"reader": WordReader(layers=0), "layers": 3, "counted": False}):
        bare = read_row(**{"reader": reader, "text": TEXT} | given)
        assert bare.states == {} and all(name.startswith("assistant.") for name in bare.numbers)


def test_surprise_covers_the_text() -> None:
    row = read_row(WordReader(), TEXT, layers=0, counted=False)
    words = row.surprise(TEXT.made)
    assert "".join(word for word, _ in words) == TEXT.made
    assert [word for word, _ in words] == ["A ", "cat ", "sat ", "there."]
    assert np.mean([bits for _, bits in words]) == pytest.approx(-row.numbers["assistant.mean"], abs=1e-6)


@pytest.mark.parametrize(
    ("layers", "count", "found"),
    [(24, 3, (10, 12, 14)), (30, 3, (13, 15, 17)), (28, 1, (14,)), (2, 9, (1, 2))],
)
def test_the_middle_of_a_model(layers: int, count: int, found: tuple[int, ...]) -> None:
    assert middle(layers, count) == found


# Keeping


def kept(path: Path, model: str = "a", text: Text = TEXT) -> tuple[WordReader, RowReadings]:
    """What a reader with a memory at `path` is asked, and what it reads of a row."""
    reader = WordReader()
    remembering = KeptReader(reader, path, model=model)
    row = read_row(remembering, text, layers=3, counted=True)
    remembering.close()
    return reader, row


def test_nothing_is_read_twice_even_in_another_run(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "readings.sqlite"
    (_, row), (second, same) = kept(path), kept(path)
    assert second.reads == 0
    assert same.numbers == row.numbers
    assert all(np.array_equal(same.states[block], state) for block, state in row.states.items())
    assert same.surprise(TEXT.made) == row.surprise(TEXT.made)
    assert b"cat" not in path.read_bytes()


def test_another_model_or_text_is_read_anew(tmp_path: Path) -> None:
    other = Text(TEXT.source, "Other.")
    for model, text, reads in (("a", TEXT, 1), ("b", TEXT, 1), ("a", other, 1), ("a", TEXT, 0)):
        reader, _ = kept(tmp_path / "readings.sqlite", model, text)
        assert reader.reads == reads


def test_a_torn_entry_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "readings.sqlite"
    _, row = kept(path)
    with sqlite3.connect(path) as store:
        store.execute("UPDATE readings SET value = substr(value, 1, 40)")
    reader, again = kept(path)
    assert again.numbers == row.numbers
    assert reader.reads == 1
