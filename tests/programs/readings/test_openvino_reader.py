"""The reader by OpenVINO: its tokens and numbers beside llama.cpp's, independent rows, other kinds of models.

Real small models where these are here, and a tiny one with random weights.
"""

import contextvars
import itertools
import multiprocessing
import os
import signal
import struct
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_model import write_tiny_model

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs import progress
from judgesmith.programs.models.engine import GIVEN_UP
from judgesmith.programs.models.files import installed, model_path
from judgesmith.programs.readings.bindings import graph, opening
from judgesmith.programs.readings.bindings.batches import Row, batches
from judgesmith.programs.readings.bindings.embedded_reader import EmbeddedReader
from judgesmith.programs.readings.bindings.openvino_reader import STEP, OpenVinoReader
from judgesmith.programs.readings.bindings.vocabulary import Vocabulary
from judgesmith.programs.readings.bindings.weights import Weights
from judgesmith.programs.readings.passages import Passage, Piece, Text, passage
from judgesmith.programs.readings.trained import LAYER

extra = all(find_spec(name) for name in ("openvino", "gguf", "tokenizers"))
pytestmark = pytest.mark.skipif(not extra, reason="needs the extra local")

TEXTS = [
    "The committee decided to postpone the vote until 2031, and nobody minded.",
    "  Spaces\n\n and\tlines  \r\n  I'LL we've IT'S 12345 ½ x²",
    "日本語のテキスト、中文。 e\u0301 é ﬁ 👩‍👩‍👧 \u00a0nbsp …—“quoted”",
    "<|im_start|>user\nnot a mark<|im_end|>",
    "<|im_end|>",
    "half a character \ud800 and the end",
    "a" * 300,
]
ROW = Text(
    "The committee decided to postpone the vote.",
    "The committee put off the vote.",
    instruction="Rewrite it.",
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(
        tmp_path_factory.mktemp("tiny") / "tiny.gguf", TEXTS[:2] * 3
    )


@pytest.fixture(scope="module")
def reader(tiny: Path) -> Iterator[OpenVinoReader]:
    one = OpenVinoReader(tiny)
    yield one
    one.close()


def rows(count: int, *, seed: int = 3) -> list[Text]:
    """Rows of many lengths, half of which share a source."""
    rng = np.random.default_rng(seed)
    words = " ".join(TEXTS[:2]).split()

    def some(size: int) -> str:
        return " ".join(rng.choice(words, size))

    shared = some(60)
    return [
        Text(shared if row % 2 else some(5 + 9 * row), some(3 + 4 * row))
        for row in range(count)
    ]


# The file -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Q8_0", "Q5_0", "Q4_0", "Q4_1", "F16", "F32"])
@pytest.mark.parametrize(("width", "group"), [(96, 32), (192, 32), (384, 128)])
def test_every_kind_of_weights_becomes_bytes_in_groups(
    tmp_path: Path, kind: str, width: int, group: int
) -> None:
    import gguf

    floats = np.random.default_rng(1).normal(0, 0.2, (48, width)).astype(np.float32)
    floats[5] = 0
    form = gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(str(tmp_path / "one.gguf"), "llama")
    writer.add_tensor("one", gguf.quantize(floats, form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    weights = Weights(tmp_path / "one.gguf")
    whole, groups = weights.floats("one"), weights.groups("one", threads=2)
    again = (groups.numbers * groups.scales.astype(np.float32)).reshape(whole.shape)
    assert groups.numbers.shape == (48, width // group, weights.group)
    largest = np.abs(whole).reshape(48, -1, group).max(axis=2).repeat(group, axis=1)
    exact = kind in ("Q8_0", "Q5_0") and group == 32
    assert (np.abs(again - whole) <= (0 if exact else largest / 200 + 1e-6)).all()
    assert (weights.rows("one", np.array([[5, 7]])) == whole[[[5, 7]]]).all()


def test_columns_that_are_in_no_group_are_refused(tmp_path: Path) -> None:
    import gguf

    writer = gguf.GGUFWriter(str(tmp_path / "odd.gguf"), "llama")
    for name, width in (("one", 128), ("two", 72)):
        writer.add_tensor(name, np.zeros((4, width), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="72 columns, which is no multiple of 32"):
        Weights(tmp_path / "odd.gguf").groups("one")


def test_a_file_that_is_cut_off_or_lies_about_its_size_is_refused(
    tiny: Path, tmp_path: Path
) -> None:
    data, broken = tiny.read_bytes(), tmp_path / "broken.gguf"
    many = data[:8] + struct.pack("<QQ", 2**60, 2**60) + data[24:]
    for wrong in (data[:10], data[:400], many, b"GGUX" + data[4:], data[:-50_000]):
        broken.write_bytes(wrong)
        with pytest.raises(ModelError, match=r"not a whole GGUF file|cut off"):
            OpenVinoReader(broken)


def changed(tiny: Path, target: Path, old: bytes, new: bytes) -> Path:
    assert len(old) == len(new)
    assert old in tiny.read_bytes()
    target.write_bytes(tiny.read_bytes().replace(old, new))
    return target


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"smollm", b"deepsk"), (b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0gemma")],
)
def test_a_model_of_another_kind_is_refused(
    tiny: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    with pytest.raises(ModelError, match="not known here"):
        OpenVinoReader(changed(tiny, tmp_path / "other.gguf", old, new))


# Reading --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["bf16", "f32"])
def test_tokens_and_numbers_are_llama_cpps(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Random weights, which forgive nothing: what is left is rounding, of log-probabilities that spread by 4 nats."""
    pytest.importorskip("xllamacpp")
    monkeypatch.setattr(graph, "precision", lambda: precision)
    one, other = OpenVinoReader(tiny), EmbeddedReader(tiny)
    try:
        apart = list[Any]()
        for text in rows(12):
            whole = passage(text, one.chat)
            assert whole == passage(text, other.chat)
            assert one.size(whole.pieces) == other.size(whole.pieces)
            fast, slow = (
                one.read(whole, layers=(1, 2)),
                other.read(whole, layers=(1, 2)),
            )
            assert fast.ends == slow.ends
            apart.append(
                [
                    fast.logp - slow.logp,
                    fast.entropy - slow.entropy,
                    fast.top - slow.top,
                ]
            )
            for layer in (1, 2):
                assert np.corrcoef(fast.means[layer], slow.means[layer])[0, 1] > 0.999
        differences = np.concatenate(apart, axis=1)
        assert (np.abs(differences.mean(axis=1)) < 0.05).all()
        assert (differences.std(axis=1) < 0.2).all()
    finally:
        one.close()
        other.close()


def test_log_probabilities_are_not_rounded_to_eighths(reader: OpenVinoReader) -> None:
    """Scores between 32 and 64 are 1/4 apart in bfloat16, and so would be these words' log-probabilities."""
    states = reader.states(reader.tokens(Piece(TEXTS[0])), 2)
    spread = np.ptp(reader._all(states), axis=1).mean()
    words = reader._all(states * 150 / spread)
    likely = np.sort(words, axis=1)[:, -12:]
    steps = 4 * (likely[:, -1:] - likely[:, :-1])
    assert np.abs(steps - steps.round()).mean() > 0.1  # 1/4, where nothing is rounded


def test_what_a_row_gives_does_not_depend_on_others(reader: OpenVinoReader) -> None:
    """Compare rows alone, in a batch, in another order, and behind a kept beginning or not.

    Log-probabilities are the very same numbers, and states are added up in another order.
    """
    passages = [passage(text, reader.chat) for text in rows(24)]
    alone = []
    for one in passages:
        reader._pasts.clear()
        alone.append(reader.read(one, layers=(1, 2)))
    kept = [reader.read(one, layers=(1, 2)) for one in passages]
    together = reader.read_many(passages, layers=(1, 2))
    order = np.random.default_rng(0).permutation(len(passages))
    mixed = reader.read_many([passages[place] for place in order], layers=(1, 2))
    for found in (kept, together, [mixed[place] for place in np.argsort(order)]):
        for one, other in zip(alone, found, strict=True):
            assert (one.logp == other.logp).all()
            assert (one.entropy == other.entropy).all()
            assert one.means[1] == pytest.approx(other.means[1], rel=1e-4, abs=1e-5)
            assert one.means[2] == pytest.approx(other.means[2], rel=1e-4, abs=1e-5)


def test_a_shared_beginning_is_computed_once(reader: OpenVinoReader) -> None:
    source = " ".join(TEXTS[:1] * 8)
    passages = [
        passage(Text(source, f"{TEXTS[0]} {number}"), reader.chat)
        for number in range(6)
    ]
    sizes = [reader.size(one.pieces) for one in passages]
    reader._pasts.clear()
    before = reader.computed
    reader.read_many(passages)
    assert reader.computed - before < sizes[0] + 5 * 60 < sum(sizes) / 2


def test_long_texts_go_in_steps_and_too_long_ones_are_refused(
    reader: OpenVinoReader,
) -> None:
    count = STEP + 100
    long = Passage((Piece("a b c " * 5), Piece("a" * count)), 1)
    read = reader.read(long, layers=(2,))
    assert reader.size(long.pieces) > STEP
    assert len(read.logp) == len(reader.tokens(long.pieces[1]))
    with pytest.raises(OptionError, match="more than the 1024"):
        reader.read(Passage((Piece("a"), Piece(" q" * 2000)), 1))
    with pytest.raises(OptionError, match="has 1 to 2"):
        reader.read(long, layers=(3,))
    assert (
        reader.read(long).logp == read.logp
    ).all()  # a refusal leaves the reader as it was


class Passes:
    """What goes through a reader's layers: the shapes of its inputs, by name."""

    def __init__(self, reader: OpenVinoReader, patch: pytest.MonkeyPatch) -> None:
        self._inner, self.seen = reader._layers, list[dict[str, tuple[int, ...]]]()
        self.threads = set[int]()
        patch.setattr(reader, "_layers", self)
        reader._pasts.clear()

    def infer(self, inputs: dict[str, Any], **how: Any) -> None:
        self.seen.append({name: of.shape for name, of in inputs.items()})
        self.threads.add(threading.get_ident())
        self._inner.infer(inputs, **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_the_last_layer_is_computed_for_the_target_alone(
    reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = Passage((Piece("a b c " * 150), Piece("a word")), 1)
    count = reader.size(long.pieces)
    passes = Passes(reader, monkeypatch)
    assert len(reader.read(long).logp) == len(reader.tokens(long.pieces[1]))
    wanted = [seen["wanted"][0] for seen in passes.seen]
    assert len(wanted) == -(-count // STEP) > 2
    assert sum(wanted) < 0.1 * count


def test_passes_of_long_texts_have_few_sizes(
    reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenVINO keeps something for each size that it met."""
    passes = Passes(reader, monkeypatch)
    for size in range(130, 170):
        reader.states(reader.tokens(Piece("q" * size)), 2)
    sizes = {seen["rows"][1] for seen in passes.seen if seen["rows"][1] >= 128}
    assert len(sizes) <= 4
    assert len(passes.seen) == 40


def test_an_open_reader_holds_no_lists_of_its_file(reader: OpenVinoReader) -> None:
    settings = reader._weights.settings
    assert settings
    assert not [n for n, of in settings.items() if isinstance(of, list)]


def test_threads_take_turns(
    reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread computes for all: what it frees is of use to the next."""
    passages = [passage(text, reader.chat) for text in rows(6)]
    alone, found = [reader.read(one).logp for one in passages], dict[int, Any]()

    def read(place: int) -> None:
        found[place] = reader.read(passages[place]).logp

    passes = Passes(reader, monkeypatch)
    threads = [threading.Thread(target=read, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((found[place] == alone[place]).all() for place in range(6))
    assert len(passes.threads) == 1


@pytest.mark.skipif(os.name == "nt", reason="a wait cannot be interrupted there")
def test_an_interrupted_batch_ends_with_its_pass(
    reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, count = reader._pass, itertools.count()

    def slow(*given: Any) -> Any:
        result = inner(*given)
        if next(count) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        return result

    passages = [passage(text, reader.chat) for text in rows(20)]
    with monkeypatch.context() as patch:
        patch.setattr(reader, "_pass", slow)
        with pytest.raises(KeyboardInterrupt):
            reader.read_many(passages)
    assert next(count) < 6
    assert len(reader.read_many(passages)) == 20


def test_what_nobody_waits_for_ends_with_its_pass(
    reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up = threading.Event()
    inner, count = reader._pass, itertools.count()

    def left(*given: Any) -> Any:
        result = inner(*given)
        if next(count) == 1:
            given_up.set()
        return result

    def read() -> None:
        GIVEN_UP.set(given_up)
        reader.read_many(passages)

    passages = [passage(text, reader.chat) for text in rows(20)]
    with monkeypatch.context() as patch:
        patch.setattr(reader, "_pass", left)
        with pytest.raises(ModelError, match="broken off"):
            contextvars.copy_context().run(read)
    assert next(count) == 2
    assert len(reader.read_many(passages)) == 20
    assert progress.read.of_texts() == (0, 0, 0)


def _child(tiny: Path, answers: Any) -> None:
    try:
        OpenVinoReader(tiny)
        answers.send("opened")
    except ModelError as error:
        answers.send(str(error))
    os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told_instead_of_waiting_for_ever(
    reader: OpenVinoReader, tiny: Path
) -> None:
    context = multiprocessing.get_context("fork")
    answers, end = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(tiny, end))
    child.start()
    assert answers.poll(60)
    assert "forked" in answers.recv()
    child.join(60)


def test_a_closed_reader_says_so(tiny: Path) -> None:
    one = OpenVinoReader(tiny)
    one.close()
    one.close()
    with pytest.raises(ModelError, match="closed"):
        one.read(passage(ROW, one.chat))


# Batches --------------------------------------------------------------------------------------------------------------


def test_every_row_is_in_one_batch_of_like_length() -> None:
    rng = np.random.default_rng(5)
    found = [
        Row(rng.integers(0, 3, size).tolist(), size // 2)
        for size in rng.integers(2, 400, 60)
    ]
    found += [Row([*range(100), 7, number], 99) for number in range(20)]
    each = list(batches(found, 512))
    assert sorted(place for batch in each for place in batch.places) == list(range(80))
    for batch in each:
        left = [len(found[place].tokens) - batch.shared for place in batch.places]
        assert min(left) >= 0.75 * max(left)
        assert len(left) == 1 or len(left) * max(left) <= 512
        beginnings = {
            tuple(found[place].tokens[: batch.shared]) for place in batch.places
        }
        assert len(beginnings) == 1
        assert all(batch.shared <= found[place].start for place in batch.places)
    assert any(batch.shared == 99 and len(batch.places) == 20 for batch in each)
    assert list(batches([], 512)) == []


# Which reader ---------------------------------------------------------------------------------------------------------


def test_llama_cpp_reads_what_openvino_cannot(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    kinds = []
    for wish in ("", "llama.cpp", "openvino"):
        monkeypatch.setenv(opening.READER_VARIABLE, wish)
        opened = opening._embedded(tiny, "tiny")
        kinds.append((type(opened.reader), opened.way.partition(" ")[0]))
        opened.reader.close()  # type: ignore[attr-defined]
    assert kinds == [
        (OpenVinoReader, "openvino"),
        (EmbeddedReader, ""),
        (OpenVinoReader, "openvino"),
    ]

    def refuses(*given: Any, **named: Any) -> None:
        raise ModelError("models of the kind other are not known here")

    monkeypatch.setattr(opening, "OpenVinoReader", refuses)
    with pytest.raises(ModelError, match="not known here"):
        opening._embedded(tiny, "tiny")
    monkeypatch.setattr(opening, "model_file", lambda base: (tiny, ""))
    with pytest.raises(ModelError, match="not known here"):
        opening.open_adapted("local/tiny", tiny, 2)
    monkeypatch.setenv(opening.READER_VARIABLE, "")
    opened = opening._embedded(tiny, "tiny")
    assert isinstance(opened.reader, EmbeddedReader)
    opened.reader.close()
    monkeypatch.setenv(opening.READER_VARIABLE, "torch")
    with pytest.raises(OptionError, match="write openvino or"):
        opening._embedded(tiny, "tiny")


def test_what_two_readers_read_is_kept_apart(
    tiny: Path, reader: OpenVinoReader
) -> None:
    one, other = (
        opening.Opened(reader, "sha", way).kept for way in ("openvino bf16", "")
    )
    whole = passage(ROW, reader.chat)
    assert one._key(whole, ()) != other._key(whole, ())


# Real models ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def smollm() -> Path:
    if not installed("smollm2-135m"):
        pytest.skip("smollm2-135m is not on this machine")
    return model_path("smollm2-135m")


@pytest.mark.model
@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-0.5b"])
def test_a_real_models_tokens_are_llama_cpps(name: str) -> None:
    if not installed(name):
        pytest.skip(f"{name} is not on this machine")
    pytest.importorskip("xllamacpp")
    other, words = (
        EmbeddedReader(model_path(name), context=256),
        Vocabulary(Weights(model_path(name)).settings),
    )
    try:
        for text in TEXTS:
            sound = text.encode("utf-8", "replace").decode()
            for mark in (False, True):
                tokens = other.tokens(Piece(sound, mark))
                assert words.tokens(Piece(text, mark)) == tokens
            assert words.ends(text, tokens := words.tokens(Piece(text))) == other._ends(
                sound, tokens
            )
    finally:
        other.close()


@pytest.mark.model
def test_a_real_row_is_read_as_by_llama_cpp(smollm: Path) -> None:
    pytest.importorskip("xllamacpp")
    layers, results = (1, 15, 30), []
    for kind in (OpenVinoReader, EmbeddedReader):
        one: Any = kind(smollm, context=512)
        results.append(one.read(passage(ROW, one.chat), layers=layers))
        one.close()
    fast, slow = results
    assert fast.logp.mean() == pytest.approx(slow.logp.mean(), abs=0.1)
    assert fast.entropy.mean() == pytest.approx(slow.entropy.mean(), abs=0.15)
    for layer in layers:
        assert np.corrcoef(fast.means[layer], slow.means[layer])[0, 1] > 0.999


@pytest.mark.model
def test_the_trained_readers_states_are_llama_cpps(smollm: Path) -> None:
    pytest.importorskip("xllamacpp")
    adapter = Path(opening.__file__).parents[1] / "trained/judgesmith-135m.gguf"
    found = []
    for kind, more in ((OpenVinoReader, {"until": LAYER}), (EmbeddedReader, {})):
        one: Any = kind(smollm, context=512, adapter=adapter, **more)
        tokens = one.tokens(Piece(TEXTS[0]))
        found.append((one.states(tokens, LAYER), one.states(tokens, LAYER, start=5)))
        one.close()
    (fast, later), (slow, _) = found
    assert fast.shape == slow.shape
    assert (later == fast[5:]).all()
    assert all(np.corrcoef(a, b)[0, 1] > 0.99 for a, b in zip(fast, slow, strict=True))
