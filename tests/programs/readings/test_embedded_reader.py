"""A model inside this process by llama.cpp's own functions: the layout of its parameters, and a real small model."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny_model import write_tiny_model

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs.models.files import installed, model_path
from judgesmith.programs.readings.bindings import llama
from judgesmith.programs.readings.bindings.embedded_reader import EmbeddedReader
from judgesmith.programs.readings.passages import Passage, Piece, Text, passage

NAME = "smollm2-135m"
TEXT = Text(
    "The committee decided to postpone the vote.",
    "The committee put off the vote.",
    instruction="Rewrite it.",
)


def parameters(
    *, types: tuple[int, int] = (1, 1), pointers: bytes = bytes(16)
) -> bytes:
    """Context parameters as llama.cpp 11549 lays them out: counts, rope numbers, callback and its data, types."""
    counts = np.array(
        [
            512,
            2048,
            512,
            1,
            0,
            0,
            0,
            4,
            4,
            0,
            2**32 - 1,
            2**32 - 1,
            2**32 - 1,
            2**32 - 1,
        ],
        np.uint32,
    )
    numbers = np.array([0, 0, -1, 1, 32, 1, 0, -1], np.float32)
    return (
        counts.tobytes()
        + numbers.tobytes()
        + pointers
        + np.array(types, np.int32).tobytes()
        + bytes(900)
    )


def test_the_callbacks_place_is_found() -> None:
    assert (
        llama._callback_place(parameters(), "x") == 88
    )  # 14 counts and 8 numbers of 4 bytes


@pytest.mark.parametrize(
    "unknown",
    [
        parameters(types=(8, 8)),
        parameters(pointers=bytes(range(1, 17))),
        parameters()[:100] + parameters(),
    ],
    ids=["other types", "no empty pointers", "two places"],
)
def test_an_unknown_layout_is_refused(unknown: bytes) -> None:
    with pytest.raises(ModelError, match="not known here"):
        llama._callback_place(unknown, "xllamacpp 1")


@pytest.fixture(scope="module")
def model() -> Path:
    if not installed(NAME):
        pytest.skip(f"{NAME} is not on this machine")
    return model_path(NAME)


@pytest.fixture(scope="module")
def reader(model: Path) -> Iterator[EmbeddedReader]:
    one = EmbeddedReader(model, context=512)
    yield one
    one.close()


@pytest.mark.model
def test_a_row_is_read(reader: EmbeddedReader) -> None:
    layers = [1, 10, reader.ability.layers]
    read = reader.read(passage(TEXT, reader.chat), layers=layers)
    assert len(read.logp) == len(read.ends)
    assert (read.logp <= read.top + 1e-4).all()
    assert (read.entropy > 0).all()
    assert read.ends[-1] == len(TEXT.judged)
    assert {layer: state.shape for layer, state in read.means.items()} == dict.fromkeys(
        layers, read.means[1].shape
    )


@pytest.mark.model
def test_what_was_read_before_changes_nothing(
    model: Path, reader: EmbeddedReader
) -> None:
    others = [
        Text(f"{TEXT.source} Number {i}.", f"{TEXT.output} {i}") for i in range(4)
    ]
    wanted = passage(TEXT, reader.chat)
    fresh = EmbeddedReader(model, context=512)
    first = fresh.read(wanted, layers=[10])
    fresh.close()
    for other in others:
        reader.read(passage(other, reader.chat))
    computed = reader.computed
    again = reader.read(wanted, layers=[10])
    assert again.logp == pytest.approx(
        first.logp, abs=0.02
    )  # other batch sizes add in another order
    assert np.corrcoef(again.means[10], first.means[10])[0, 1] > 0.9999
    reader.read(wanted)
    assert (
        reader.computed - computed < 2 * len(first.logp) + 60
    )  # the beginning is not computed twice


@pytest.mark.model
def test_a_likely_text_is_likelier(reader: EmbeddedReader) -> None:
    def mean(output: str) -> float:
        return float(
            reader.read(passage(Text(TEXT.source, output), reader.chat)).logp.mean()
        )

    assert mean(TEXT.output) > mean("Vote the off put committee the.")


@pytest.mark.model
def test_a_rows_marks_stay_text(reader: EmbeddedReader) -> None:
    assert len(reader.tokens(Piece("<|im_end|>", mark=True))) == 1
    assert len(reader.tokens(Piece("<|im_end|>"))) > 1


def test_long_texts_go_in_steps_and_too_long_ones_are_refused(tmp_path: Path) -> None:
    for package in ("xllamacpp", "gguf", "tokenizers"):
        pytest.importorskip(package)
    tiny = write_tiny_model(tmp_path / "tiny.gguf", ["many a word" * 3])
    reader = EmbeddedReader(tiny, context=600)
    try:
        long = Passage((Piece("a b c " * 5), Piece(" word" * 530)), 1)
        assert (
            len(reader.read(long, layers=[2]).logp) == 530
        )  # two steps of at most 512 tokens
        with pytest.raises(OptionError, match="more than the 600"):
            reader.read(Passage((Piece("a"), Piece(" word" * 2000)), 1))
        assert (
            len(reader.read(long).logp) == 530
        )  # a refusal leaves the reader as it was
    finally:
        reader.close()


@pytest.mark.model
def test_threads_take_turns(reader: EmbeddedReader) -> None:
    found: dict[int, float] = {}
    texts = [Text(TEXT.source, f"{TEXT.output} {i % 2}") for i in range(6)]

    def read(place: int) -> None:
        found[place] = float(
            reader.read(passage(texts[place], reader.chat)).logp.mean()
        )

    for place in (0, 1):
        read(place)
    alone = found[0], found[1]
    assert abs(alone[0] - alone[1]) > 0.15
    threads = [threading.Thread(target=read, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(abs(value - alone[place % 2]) < 0.07 for place, value in found.items())


@pytest.mark.model
def test_what_it_cannot_do_is_said(
    reader: EmbeddedReader, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match="has 1 to 30"):
        reader.read(passage(TEXT, reader.chat), layers=[31])
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(model.read_bytes()[:5000])
    with pytest.raises(ModelError, match="cannot load"):
        EmbeddedReader(broken)
    closed = EmbeddedReader(model, context=256)
    closed.close()
    closed.close()
    with pytest.raises(ModelError, match="closed"):
        closed.read(passage(TEXT, closed.chat))
