"""Readings taken together, and kept: with a reader whose every answer is known, and that counts what it is asked."""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from judgesmith.errors import OptionError
from judgesmith.programs.readings.kinds import (
    Likelihood,
    Panel,
    Questions,
    Reading,
    RowReadings,
    States,
    Surface,
    expected_digit,
    middle,
)
from judgesmith.programs.readings.passages import FORMS, PLAIN_TURNS, JinjaChat, Passage, Question, Text
from judgesmith.programs.readings.reader import Ability, Floats, KeptReader, TokenReading
from judgesmith.programs.registry import readings

TEXT = Text("The cat sat on the mat.", "A cat sat there.", instruction="Rewrite it.")


class WordReader:
    """Words are tokens; a word's log-probability follows from its letters and from nothing else."""

    name = "words"

    def __init__(self, layers: int = 24) -> None:
        self.chat = JinjaChat(PLAIN_TURNS)
        self.ability = Ability(layers=layers)
        self.asked: list[str] = []

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        self.asked.append("read")
        target = passage.pieces[passage.target].text
        words = target.split(" ")
        numbers = [int.from_bytes(hashlib.sha256(word.encode()).digest()[:2], "big") for word in words]
        logp = -np.array(numbers, dtype=np.float32) / 2**15
        ends = np.cumsum([len(word) + 1 for word in words])
        ends[-1] = len(target)
        states = {layer: np.full(4, layer + float(logp.mean()), dtype=np.float32) for layer in layers}
        return TokenReading(logp, logp * 0 + 1, logp * 0, tuple(ends.tolist()), states, states)

    def answer(self, question: Question) -> Floats:
        self.asked.append(question.pieces[-2].text[-40:])
        return np.log(np.arange(1, len(question.answers) + 1, dtype=np.float32) / 20)


def panel(reader: WordReader | KeptReader) -> Panel:
    checks = Questions(checks={"true": "all of it is true", "short": "it is short"})
    return Panel([Likelihood(), States(), States(of="last", layers=1), checks, Surface()], reader)


def test_each_form_is_read_once_whatever_uses_it() -> None:
    reader = WordReader()
    row = panel(reader).read(TEXT)
    assert reader.asked.count("read") == 2 and len(reader.asked) == 4
    assert {"assistant.mean", "bare.mean", "assistant.lift", "check.true", "check.short"} <= set(row.numbers)
    assert set(row.states) == {"assistant.mean10", "assistant.mean12", "assistant.mean14", "assistant.last12"}
    assert row.numbers["check.true"] == pytest.approx(np.log(1 / 2))
    assert row.numbers["assistant.lift"] == 0.0  # a word's probability does not depend on what stands before it


def test_surprise_covers_the_text() -> None:
    row = panel(WordReader()).read(TEXT)
    words = row.surprise(TEXT.made)
    assert "".join(word for word, _ in words) == TEXT.made
    assert [word for word, _ in words] == ["A ", "cat ", "sat ", "there."]
    assert np.mean([bits for _, bits in words]) == pytest.approx(-row.numbers["assistant.mean"], abs=1e-6)


def test_what_a_panel_cannot_be() -> None:
    with pytest.raises(OptionError, match="at least one"):
        Panel([], WordReader())
    with pytest.raises(OptionError, match="gives no hidden states"):
        Panel([States()], WordReader(layers=0))
    one, other = (Questions(checks={"1": words}) for words in ("a", "b"))
    with pytest.raises(OptionError, match=r"different questions under the name 'check\.1'"):
        Panel([one, other], WordReader())


@pytest.mark.parametrize("kind", readings.names())
def test_options_are_checked(kind: str) -> None:
    part: type[Reading] = readings.get(kind)
    with pytest.raises(OptionError, match=f"reading {kind} .*'nonsense'"):
        part(nonsense=1)
    assert part().options == part.Options()


def test_a_form_is_one_of_those_that_exist() -> None:
    assert Likelihood(forms=tuple(FORMS)).options.forms == tuple(FORMS)
    with pytest.raises(OptionError, match="'essay' is no form to read a row in; there are assistant, tags"):
        Likelihood(forms=("essay",))


@pytest.mark.parametrize(
    ("layers", "depth", "count", "found"),
    [
        (24, 0.5, 3, (10, 12, 14)),
        (30, 0.5, 3, (13, 15, 17)),
        (28, 0.5, 1, (14,)),
        (4, 1.0, 3, (3, 4)),
        (2, 0.1, 9, (1, 2)),
    ],
)
def test_the_middle_of_a_model(layers: int, depth: float, count: int, found: tuple[int, ...]) -> None:
    assert set(middle(layers, depth, count)) == set(found)


def test_an_expected_digit_does_not_need_probabilities_that_sum_to_one() -> None:
    logp = np.log(np.array([0.1, 0.0001, 0.0001, 0.0001, 0.1], dtype=np.float32))
    assert expected_digit(logp) == pytest.approx(3.0)
    assert expected_digit(logp - 500) == pytest.approx(3.0, abs=1e-4)


# Keeping


def kept(path: Path, model: str = "a", text: Text = TEXT) -> tuple[WordReader, RowReadings]:
    """What a reader with a memory at `path` is asked, and what it reads of a row."""
    reader = WordReader()
    remembering = KeptReader(reader, path, model=model)
    row = panel(remembering).read(text)
    remembering.close()
    return reader, row


def test_nothing_is_read_twice_even_in_another_run(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "readings.sqlite"
    (_, row), (second, same) = kept(path), kept(path)
    assert second.asked == []
    assert same.numbers == row.numbers
    assert all(np.array_equal(same.states[block], state) for block, state in row.states.items())
    assert same.surprise(TEXT.made) == row.surprise(TEXT.made)
    assert b"cat" not in path.read_bytes()


def test_another_model_or_text_is_read_anew(tmp_path: Path) -> None:
    other = Text(TEXT.source, "Other.")
    for model, text, reads in (("a", TEXT, 2), ("b", TEXT, 2), ("a", other, 2), ("a", TEXT, 0)):
        reader, _ = kept(tmp_path / "readings.sqlite", model, text)
        assert reader.asked.count("read") == reads


def test_a_torn_entry_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "readings.sqlite"
    _, row = kept(path)
    with sqlite3.connect(path) as store:
        store.execute("UPDATE readings SET value = substr(value, 1, 40)")
    reader, again = kept(path)
    assert again.numbers == row.numbers
    assert len(reader.asked) == 4
