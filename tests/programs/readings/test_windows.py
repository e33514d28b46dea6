"""Long rows: in which passages they are read, and what becomes of the readings."""

import math
import random
from collections.abc import Sequence
from importlib.resources import as_file, files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import PlantedReader

import judgesmith as js
from judgesmith.datasets.loading import read_labels
from judgesmith.errors import OptionError
from judgesmith.programs.models.files import installed
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.programs.readings.kinds import _longest_common, read_row, surface
from judgesmith.programs.readings.passages import Passage, Piece, Text, passage
from judgesmith.programs.readings.reader import Ability, TokenReading
from judgesmith.programs.readings.trained import BASE
from judgesmith.programs.readings.windows import (
    Room,
    Window,
    expected_passes,
    read_windows,
    stretches,
    windows,
)


class Narrow(PlantedReader):
    """A planted reader that holds a number of words, and remembers what it read."""

    def __init__(self, context: int) -> None:
        super().__init__()
        self.ability = Ability(layers=12, context=context)
        self.passages: list[Passage] = []

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        assert self.size(passage.pieces) <= self.ability.context
        self.passages.append(passage)
        return super().read(passage, layers=layers)


def words(count: int, seed: int = 0) -> str:
    draw = random.Random(seed)
    return " ".join(
        f"{draw.choice('wxyz')}{draw.randrange(3000)}{draw.choice(['', '', '.'])}"
        for _ in range(count)
    )


def targets(made: Sequence[Window]) -> list[str]:
    return [window.passage.pieces[window.passage.target].text for window in made]


def test_a_row_that_fits_is_one_passage_and_nothing_else_is_measured() -> None:
    text = Text(words(100), words(50))
    for reader in (PlantedReader(), Narrow(400)):
        read = windows(text, reader)
        assert read.each == (Window(passage(text, reader.chat), 0),)
        assert read.source == 1
    assert len(windows(text, Narrow(160)).each) == 1  # its source in part


@given(
    st.integers(1, 900), st.integers(0, 900), st.integers(0, 5), st.integers(130, 400)
)
def test_every_word_of_an_output_stands_in_one_window(
    made: int, source: int, seed: int, context: int
) -> None:
    text, reader = Text(words(source, seed), words(made, seed + 1)), Narrow(context)
    read = windows(text, reader)
    assert "".join(targets(read.each)) == text.judged
    assert all(
        text.judged.startswith(of, one.start)
        for one, of in zip(read.each, targets(read.each), strict=True)
    )
    row = read_row(reader, text, layers=2, counted=False)
    assert len(row.tokens.logp) >= made
    assert row.tokens.ends[-1] == len(text.judged)
    assert 0 <= row.source <= 1


@given(st.text(max_size=300), st.integers(1, 40))
def test_stretches_hold_all_of_a_text(text: str, longest: int) -> None:
    parts = list(stretches(text, longest))
    assert "".join(text[a:b] for a, b in parts) == text
    assert all(0 < b - a <= longest for a, b in parts)


def test_stretches_end_with_sentences_or_words_where_they_can() -> None:
    assert [("One two. Three"[a:b]) for a, b in stretches("One two. Three", 12)] == [
        "One two.",
        " Three",
    ]
    assert [b - a for a, b in stretches("東京都は新しい計画。" * 3, 12)] == [10, 10, 10]
    assert [b - a for a, b in stretches("a" * 30, 12)] == [12, 12, 6]


def test_a_window_has_the_words_before_it_and_its_part_of_the_source() -> None:
    facts = [f"Fact f{n} says that g{n} is h{n}. " + words(30, n) for n in range(60)]
    text = Text(
        ". ".join(facts),
        ". ".join(f"It says f{n} g{n} h{n} " + words(20, 900 + n) for n in range(60)),
    )
    read = windows(text, Narrow(300))
    assert (
        0.15 < read.source < 0.5
    )  # a quarter of the room, for windows of two quarters
    for number, window in enumerate(read.each):
        shown = "".join(
            piece.text for piece in window.passage.pieces[: window.passage.target]
        )
        own = window.passage.pieces[window.passage.target].text
        if number:
            assert text.judged[: window.start].endswith(
                window.passage.pieces[window.passage.target - 1].text
            )
        named = [word for word in own.split() if word.startswith("f")]
        assert (
            sum(f"Fact {word} " in shown for word in named) >= len(named) / 2
        )  # of any place of the source


def test_an_output_that_is_short_is_read_once_beside_what_it_shares_with_a_long_source() -> (
    None
):
    source = (
        words(4000) + " The treaty of 1885 was signed in Zanzibar. " + words(4000, 1)
    )
    reader = Narrow(400)
    row = read_row(
        reader, Text(source, "The treaty of Zanzibar."), layers=0, counted=True
    )
    (read,) = reader.passages
    shown = "".join(piece.text for piece in read.pieces)
    assert "1885 was signed in Zanzibar" in shown
    assert "[…]" in shown
    assert row.source == pytest.approx(350 / 8000, rel=0.25)
    assert row.numbers["surface.from_source"] == 1  # counts see all of it


def test_readings_of_windows_are_those_of_all_tokens() -> None:
    class Two(PlantedReader):
        def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
            n = len(passage.pieces[passage.target].text)
            vector = np.full(n, -float(n), np.float32)
            return TokenReading(
                vector,
                vector,
                vector,
                tuple(range(1, n + 1)),
                {1: np.array([n], np.float32)},
            )

    def window(text: str, start: int) -> Window:
        return Window(Passage((Piece("."), Piece(text)), 1), start)

    read = read_windows(Two(), [window("a", 0), window("bcd", 1)], layers=[1])
    assert read.logp.tolist() == [-1, -3, -3, -3]
    assert read.ends == (1, 2, 3, 4)
    assert read.means[1].tolist() == [2.5]  # (1 x 1 + 3 x 3) / 4


def test_passes_and_tokens_grow_as_the_text_does() -> None:
    counted = []
    for size in (2_000, 20_000, 100_000):
        reader = Narrow(1000)
        read_row(reader, Text(words(size, 3), words(size, 4)), layers=0, counted=False)
        counted.append(
            (reader.reads, sum(reader.size(one.pieces) for one in reader.passages))
        )
    per_thousand = [
        tokens / size
        for (_, tokens), size in zip(counted, (2_000, 20_000, 100_000), strict=True)
    ]
    assert max(per_thousand) < 2.4
    assert max(per_thousand) < 1.5 * min(per_thousand)
    assert counted[2][0] == pytest.approx(5 * counted[1][0], rel=0.05)


@pytest.mark.parametrize(
    ("source", "output"), [(300, 40), (60_000, 40), (60_000, 9_000), (0, 30_000)]
)
def test_the_expected_cost_is_near_the_true_one(source: int, output: int) -> None:
    text = Text(
        "word " * source, "text " * output
    )  # five bytes a word: 1.4 tokens, by the estimate
    reader = Narrow(round(4096 / 1.43))
    read_row(reader, text, layers=0, counted=False)
    expected = expected_passes(text)
    assert expected.count == pytest.approx(reader.reads, abs=1 + reader.reads // 10)
    tokens = 1.43 * sum(reader.size(one.pieces) for one in reader.passages)
    assert expected.tokens == pytest.approx(tokens, rel=0.25, abs=60)


def test_rooms_are_those_of_the_rule() -> None:
    assert Room.of(1000, 10_000, 700) == Room(
        300, 0, 700
    )  # at most three quarters: at once
    assert Room.of(1000, 10_000, 800) == Room(250, 250, 500)
    assert Room.of(1000, 40, 5000) == Room(40, 320, 640)
    assert Room.of(1000, 10_000, 5000).windows(5000) == 1 + math.ceil(
        (5000 - 750) / 500
    )


def test_a_context_that_holds_only_the_instruction_is_refused() -> None:
    with pytest.raises(
        OptionError,
        match=r"planted holds 60 tokens, of which the instruction takes \d+",
    ):
        windows(Text("", words(500), instruction=words(40)), Narrow(60))


def test_the_surprise_of_a_long_text_is_that_of_its_words() -> None:
    text = Text("", words(800, 7) + " xstrange " + words(800, 8))
    row = read_row(Narrow(300), text, layers=0, counted=False)
    place = text.judged.index("xstrange")
    assert (place, place + len("xstrange"), 6.0) in row.surprise(text.judged)
    assert len(row.surprise(text.judged)) == 1601


# Counts


def test_counts_see_the_end_of_a_long_text() -> None:
    one = words(5000)
    assert surface(one, one)["order"] == surface(one, one)["copied"] == 1
    other = surface(one, one[: len(one) // 2] + words(2500, 9))
    assert other["copied"] < 0.8
    assert other["words"] == pytest.approx(surface(one, one)["words"], abs=0.1)


@given(
    st.lists(st.sampled_from("abcdef"), max_size=40),
    st.lists(st.sampled_from("abcdef"), max_size=40),
)
def test_parts_of_very_long_texts_are_a_lower_bound(
    one: list[str], other: list[str]
) -> None:
    from judgesmith.programs.readings import kinds

    exact = _longest_common(one, other)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kinds, "_AT_ONCE", 60)
        assert 0 <= _longest_common(one, other) <= exact
        assert _longest_common(one, one) == len(one)


# With a model

SENTENCES = (
    "The council met on Monday to talk about the old bridge.",
    "Engineers had measured the river every morning for three weeks.",
    "They found that the northern pillar had moved by two centimetres.",
    "Farmers who bring milk to the valley now drive an hour longer.",
    "The mayor promised that small cars could cross again by May.",
    "Repairs will cost four million euros, half of it paid by the state.",
    "A second bridge was discussed, but nobody asked for money for it.",
    "Children reach the school on the other side by boat until then.",
)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.skipif(not installed(BASE), reason="the model is not on this machine")
def test_word_salad_behind_a_good_text_is_not_overlooked_by_the_demos_judge() -> None:
    with as_file(files("judgesmith.datasets.demo")) as folder:
        labels = read_labels(folder / "labels.jsonl", scale=(1, 5))
    lm = language_model(BASE, connection=Connection(cache=False))
    judge = js.compile(ModelReadings("fluency"), labels, lm=lm, heldout=0.5)
    assert judge.method.head is not None
    source = "What did the council say of the bridge?"
    good = " ".join(
        sentence.replace("three", f"{n}") for n in range(8) for sentence in SENTENCES
    )[:3660]
    salad = f"{good} {' '.join(random.Random(3).choices(good.split(), k=4000))}"[
        : 3660 + 16_600
    ]
    assert (len(good), len(salad)) == (3660, 20_260)
    one, two = (judge.score(source, output) for output in (good, salad))
    assert one.failure is two.failure is None
    assert one.partly == two.partly == {}
    assert one.percent > two.percent + 1
    assert two.details.surprise[-1][0] > 19_000  # words of the end are looked at
    long = judge.score(good * 30, good)
    assert 0 < long.partly["source"] < 0.2
    assert "parts that share most words with the output" in " ".join(long.notes)
