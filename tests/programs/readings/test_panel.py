"""What is read of a row, and kept: with a reader whose every answer is known, and that counts what it reads."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from planted import PlantedReader

from judgesmith.programs.readings.bindings.kept import KeptReader
from judgesmith.programs.readings.kinds import RowReadings, middle, read_row
from judgesmith.programs.readings.passages import Text
from judgesmith.programs.readings.reader import Ability

TEXT = Text(
    "The cat sat on the mat.", "A xcat sat there.", instruction="Rewrite it."
)  # -1, -6, -1, -1


def test_one_pass_gives_everything() -> None:
    reader, stateless = PlantedReader(), PlantedReader()
    stateless.ability = Ability(layers=0)
    row = read_row(reader, TEXT, layers=3, counted=True)
    assert reader.reads == 1
    assert {"assistant.mean", "surface.words"} <= set(row.numbers)
    assert set(row.states) == {"assistant.mean5", "assistant.mean6", "assistant.mean7"}
    for bare in (
        read_row(reader, TEXT, layers=0, counted=False),
        read_row(stateless, TEXT, layers=3, counted=False),
    ):
        assert bare.states == {}
        assert all(name.startswith("assistant.") for name in bare.numbers)


def test_surprise_is_of_words() -> None:
    row = read_row(PlantedReader(), TEXT, layers=0, counted=False)
    assert row.surprise(TEXT.judged) == [
        (0, 1, 1.0),
        (2, 6, 6.0),
        (7, 10, 1.0),
        (11, 16, 1.0),
    ]  # without the full stop
    assert row.numbers["assistant.mean"] == -2.25  # -9/4


@pytest.mark.parametrize(
    ("layers", "count", "found"),
    [(24, 3, (10, 12, 14)), (30, 3, (13, 15, 17)), (28, 1, (14,)), (2, 9, (1, 2))],
)
def test_the_middle_of_a_model(layers: int, count: int, found: tuple[int, ...]) -> None:
    assert middle(layers, count) == found


# Keeping


def kept(
    path: Path, model: str = "a", text: Text = TEXT
) -> tuple[PlantedReader, RowReadings]:
    """What a reader with a memory at `path` is asked, and what it reads of a row."""
    reader = PlantedReader()
    remembering = KeptReader(reader, path, model=model)
    row = read_row(remembering, text, layers=3, counted=True)
    remembering.close()
    return reader, row


def test_nothing_is_read_twice_even_in_another_run(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "readings.sqlite"
    (_, row), (second, same) = kept(path), kept(path)
    assert second.reads == 0
    assert same.numbers == row.numbers
    assert all(
        np.array_equal(same.states[block], state) for block, state in row.states.items()
    )
    assert same.surprise(TEXT.judged) == row.surprise(TEXT.judged)
    assert b"cat" not in path.read_bytes()


def test_another_model_or_text_is_read_anew(tmp_path: Path) -> None:
    other = Text(TEXT.source, "Other.")
    for model, text, reads in (
        ("a", TEXT, 1),
        ("b", TEXT, 1),
        ("a", other, 1),
        ("a", TEXT, 0),
    ):
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
