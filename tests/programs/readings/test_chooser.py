"""Answers that are one of few texts: OpenVINO's probabilities of them, and what is left to llama.cpp."""

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import HANG
from tiny_model import write_tiny_model

from judgesmith.errors import MissingExtraError, ModelError
from judgesmith.programs import artifact, loading
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine, local
from judgesmith.programs.models.choosing import Choosing, chooser_of
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.local import READER_VARIABLE, note_engine
from judgesmith.programs.models.transport import Request
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.prompting.forms import Form, Line, choice, number
from judgesmith.programs.readings.bindings import graph, opening
from judgesmith.programs.readings.bindings.batches import Row
from judgesmith.programs.readings.bindings.chooser import OpenVinoChooser
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.passages import Passage, Piece
from judgesmith.signatures.values import Scale
from judgesmith.testing.fake import own_environment

extra = all(find_spec(name) for name in ("openvino", "gguf", "tokenizers"))
pytestmark = pytest.mark.skipif(not extra, reason="needs the extra local")

WORDS = "The committee decided to postpone the vote until 2031, and nobody minded."
DIGITS = Form(number(Scale(1, 5))).choices()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf", [WORDS] * 6)


@pytest.fixture(autouse=True)
def separate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("JUDGESMITH_THREADS", "1")


@pytest.fixture(scope="module")
def reader(tiny: Path) -> Iterator[OpenVinoReader]:
    one = opening.open_weights(tiny, "tiny").reader
    assert isinstance(one, OpenVinoReader)
    yield one
    opening.close_all()


def asked(text: str = WORDS, **given: Any) -> Request:
    turns = [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": text},
    ]
    return replace(Request(turns, 12, top_logprobs=20, choices=DIGITS), **given)


def answered(tiny: Path, *requests: Request) -> list[Reply]:
    found = chooser_of(tiny, "tiny")
    assert isinstance(found, OpenVinoChooser)
    answers = found.answers(requests)
    assert None not in answers
    return [one for one in answers if one is not None]


# What is one of few texts ---------------------------------------------------------------------------------------------


def test_a_form_says_its_few_texts_or_none() -> None:
    assert DIGITS == (("Score: ", ("1", "2", "3", "4", "5")),)
    several = Form(number(Scale(1, 5), "A: Score"), number(Scale(0, 100), "B: Score"))
    first, second = several.choices()
    assert first == ("A: Score: ", ("1", "2", "3", "4", "5"))
    assert second[0] == "\nB: Score: "
    assert second[1] == tuple(map(str, range(101)))
    assert Form(choice("", ("Yes", "No"))).choices() == (("", ("Yes", "No")),)
    assert Form(Line("Why", "one sentence"), number(Scale(1, 5))).choices() == ()


# Probabilities --------------------------------------------------------------------------------------------------------


def test_a_digit_has_the_probability_that_the_reader_gives_it(
    tiny: Path, reader: OpenVinoReader
) -> None:
    """The whole answer is read for each digit instead, and its last token's probability taken."""
    answer = answered(tiny, asked(top_logprobs=400))[0]
    assert answer.tokens is not None
    assert answer.text == f"Score: {answer.text[-1]}"
    assert "".join(token.text for token in answer.tokens) == answer.text
    last = dict(answer.tokens[-1].alternatives)
    prompt = reader.chat([("system", "You judge."), ("user", WORDS)], answer=True)
    for digit in "12345":
        pieces = (Piece(prompt, mark=True), Piece("Score: "), Piece(digit))
        read = reader.read(Passage(pieces, 2))
        assert last[digit] == pytest.approx(float(read.logp[-1]), abs=1e-3)
    assert answer.text[-1] == max("12345", key=last.__getitem__)
    assert sum(map(np.exp, last.values())) <= 1.01


def test_answers_do_not_depend_on_others(tiny: Path, reader: OpenVinoReader) -> None:
    """Alone, together, in another order, behind a kept beginning: the very same numbers."""
    some = [asked(f"{WORDS} " * (1 + place % 4) + str(place)) for place in range(9)]
    some[3] = replace(some[3], choices=(("", ("Better", "Worse", "Similar")),))
    alone = []
    for one in some:
        reader._pasts.clear()
        alone += answered(tiny, one)
    assert answered(tiny, *some) == alone
    assert answered(tiny, *some[::-1])[::-1] == alone


def likeliest(reader: OpenVinoReader, texts: Sequence[str], text: str) -> str:
    """The text that is reached by the likeliest next token each time, looked at one by one."""
    tokens = [reader.tokens(Piece(each)) for each in texts]
    prompt = reader.prompt([("system", "You judge."), ("user", text)])
    so_far = list[int]()
    while True:
        fitting = [one for one in tokens if one[: len(so_far)] == so_far]
        nexts = {one[len(so_far)] for one in fitting if len(one) > len(so_far)}
        whole = prompt + so_far
        logp = reader.following([Row(whole, len(whole) - 1)])[0][-1]
        odds = {each: float(logp[each]) for each in nexts}
        if so_far in tokens:
            odds[-1] = max(float(logp[stop]) for stop in reader.words.stops)
        best = max(odds, key=odds.__getitem__)
        if best == -1:
            return texts[tokens.index(so_far)]
        so_far.append(best)
        if len(fitting) == 1 and fitting[0] == so_far:
            return texts[tokens.index(so_far)]


@pytest.mark.parametrize("text", [WORDS, WORDS * 2, "Short.", "9 of 10"])
def test_a_number_of_several_digits_is_followed_to_its_end(
    tiny: Path, reader: OpenVinoReader, text: str
) -> None:
    form = Form(number(Scale(0, 100)))
    answer = answered(tiny, asked(text, choices=form.choices(), top_logprobs=0))[0]
    texts = [f"Score: {value}" for value in range(101)]
    assert answer.text == likeliest(reader, texts, text)
    assert answer.tokens is None
    assert form.fits(answer.text)


def test_several_criteria_are_answered_line_by_line(
    tiny: Path, reader: OpenVinoReader
) -> None:
    names = ("Fluency", "Éclat", "Facts")
    form = Form(*(number(Scale(1, 5), f"{name}: Score") for name in names))
    answer = answered(tiny, asked(choices=form.choices()))[0]
    assert form.fits(answer.text)
    assert answer.text.count("\n") == 2
    assert "Éclat" in answer.text
    assert answer.completion_tokens > 12


def test_the_only_answer_is_told_with_its_own_probability(
    tiny: Path, reader: OpenVinoReader
) -> None:
    answer = answered(tiny, asked(choices=(("", ("Similar",)),)))[0]
    assert answer.text == "Similar"
    assert answer.tokens is not None
    for token in answer.tokens:
        assert -50 < dict(token.alternatives)[token.text] <= 0


def test_a_text_cannot_hold_a_control_token(reader: OpenVinoReader) -> None:
    marked = reader.prompt([("user", "<|im_end|>")])
    plain = reader.prompt([("user", "x")])
    end = reader.words.stops[0]
    assert marked.count(end) == plain.count(end)


# What is left to the server -------------------------------------------------------------------------------------------


class Server:
    def __init__(self) -> None:
        self.asked = list[Request]()

    async def send(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply("by the server")


def test_free_text_drawn_answers_and_long_prompts_go_to_the_server(
    tiny: Path, reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, found = Server(), chooser_of(tiny, "tiny")
    assert found is not None
    transport = Choosing(found, server)

    async def every(*requests: Request) -> list[str]:
        replies = await asyncio.gather(*map(transport.send, requests))
        return [reply.text for reply in replies]

    left = [asked(choices=()), asked(temperature=1.0), asked(WORDS * 200)]
    texts = engine.run(every(asked(), *left, asked("Another.")))
    assert texts[1:4] == ["by the server"] * 3
    assert len(server.asked) == 3
    assert texts[0].startswith("Score: ")
    assert texts[4].startswith("Score: ")
    monkeypatch.setattr(reader, "_process", -1)  # as in a forked child
    assert engine.run(every(asked())) == ["by the server"]


def test_an_error_is_each_waiting_requests(tiny: Path) -> None:
    class Broken:
        way, system_prompt = "broken", True

        def answers(self, requests: Sequence[Request]) -> list[Reply | None]:
            raise ModelError("no memory")

    transport = Choosing(Broken(), Server())

    async def every() -> list[Any]:
        sends = (transport.send(asked()) for _ in range(3))
        return await asyncio.gather(*sends, return_exceptions=True)

    assert [str(error) for error in engine.run(every())] == ["no memory"] * 3


def test_answers_that_nobody_waits_for_are_given_up(tiny: Path) -> None:
    told = threading.Event()

    class Slow:
        way, system_prompt = "slow", True

        def answers(self, requests: Sequence[Request]) -> list[Reply | None]:
            given_up = engine.GIVEN_UP.get()
            assert given_up is not None
            begun.set()
            assert given_up.wait(HANG)
            told.set()
            raise ModelError("reading was broken off")

    begun = threading.Event()
    transport = Choosing(Slow(), Server())

    async def leave() -> None:
        sends = [asyncio.create_task(transport.send(asked())) for _ in range(3)]
        assert await asyncio.to_thread(begun.wait, HANG)
        for send in sends:
            assert not told.is_set()
            send.cancel()
        await asyncio.gather(*sends, return_exceptions=True)

    engine.run(leave())
    assert told.wait(HANG)


def test_a_direct_judge_starts_no_server(
    tiny: Path, reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setattr(local, "_started", _refuses)
    lm = language_model(f"gguf:{tiny}", connection=Connection(cache=False))
    assert lm.computed_by.startswith("openvino")
    assert not lm.one_by_one
    judge = Judge(DirectScorer("fluency"), lm=lm)
    verdicts = list(judge.score_many([{"output": WORDS}] * 3, progress=False))
    assert all(0 <= verdict.score <= 100 for verdict in verdicts)


def _refuses(*given: Any) -> None:
    raise AssertionError("llama.cpp was started")


# Which engine ---------------------------------------------------------------------------------------------------------


def test_the_environment_chooses_and_answers_are_kept_apart(
    tiny: Path, reader: OpenVinoReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    endpoint = local.EmbeddedEndpoint("http://127.0.0.1:9", "key", "m")
    monkeypatch.setattr(local, "_started", lambda *_: (None, endpoint))
    found = []
    for wish in ("openvino", "llama.cpp"):
        monkeypatch.setenv(READER_VARIABLE, wish)
        lm = language_model(f"gguf:{tiny}")
        found.append((lm.computed_by.partition(" ")[0], lm.identity))
    local._servers.clear()
    assert [one for one, _ in found] == ["openvino", "llama.cpp"]
    assert found[0][1] != found[1][1]


def test_a_missing_package_is_said_once_with_its_command(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> Any:
        raise MissingExtraError("reading needs it: pip install 'judgesmith[local]'")

    opening._say_slow.cache_clear()
    opening._looked_at.cache_clear()
    monkeypatch.setattr(graph, "openvino", missing)
    with caplog.at_level(logging.WARNING, "judgesmith.servers"):
        assert [chooser_of(tiny, "tiny") for _ in range(3)] == [None] * 3
    opening._looked_at.cache_clear()
    assert len(caplog.messages) == 1
    assert "three times slower" in caplog.text
    assert "pip install" in caplog.text


def test_another_engine_than_a_judge_was_compiled_with_is_said_once(
    tmp_path: Path,
    tiny: Path,
    reader: OpenVinoReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pytest.importorskip("xllamacpp")
    note_engine.cache_clear()
    lm = language_model(f"gguf:{tiny}")
    judge = Judge(DirectScorer("fluency"), lm=lm)
    with caplog.at_level(logging.WARNING, "judgesmith.servers"):
        for engine_name in ("", "openvino f32", "llama.cpp", "llama.cpp"):
            judge.provenance = {"computed_by": engine_name} if engine_name else {}
            artifact.save(judge, tmp_path / "judge.json")
            loading.load(tmp_path / "judge.json", lm=lm)
            # As the command line does.
            loading.build(artifact.read(tmp_path / "judge.json")).set_lm(lm)
    assert len(caplog.messages) == 1
    assert f"{READER_VARIABLE}=llama.cpp" in caplog.text
    note_engine.cache_clear()
    with caplog.at_level(logging.WARNING, "judgesmith.servers"):
        loading.build(artifact.read(tmp_path / "judge.json")).set_lm(lm)
    assert len(caplog.messages) == 2
