"""Fixed words that an answer begins with: sent as its beginning, with the tokens that models know."""

import json
import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from judgesmith.errors import ModelError
from judgesmith.programs.answers.likely import expectation
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.models import engine
from judgesmith.programs.models.begun import Begun
from judgesmith.programs.models.files import installed
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.refusals import Unanswered
from judgesmith.programs.models.transport import Request
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Item, Scale

ASKED = {"role": "user", "content": "Rate it."}
DIGITS = ("Score: ", ("1", "2", "3", "4", "5"))


@dataclass
class Server:
    """Answers with " 4", after the words that it was given where `repeats`."""

    repeats: bool = True
    asked: list[Request] = field(default_factory=list)

    async def send(self, request: Request) -> Reply:
        self.asked.append(request)
        likely = (("4", -0.5), ("2", -1.5))
        tokens = (TokenChoice(" ", ()), TokenChoice("4", likely))
        words = request.messages[-1]["content"] if self.repeats else ""
        return Reply(f"{words} 4", tokens)


def request(*choices: Any, messages: Any = (ASKED,)) -> Request:
    return Request(messages, 8, top_logprobs=5, grammar="root ::= x", choices=choices)


@pytest.mark.parametrize("repeats", [True, False])
def test_the_words_are_sent_and_stand_in_the_answer_once(repeats: bool) -> None:
    server = Server(repeats)
    reply = engine.run(Begun(server).send(request(DIGITS)))
    sent = server.asked[0]
    assert sent.messages == [ASKED, {"role": "assistant", "content": "Score:"}]
    assert sent.grammar == 'root ::= " 1" | " 2" | " 3" | " 4" | " 5"'
    assert reply.text == "Score: 4"
    # (4 - 1) of 4 steps with e^-.5, (2 - 1) with e^-1.5: (.75 * .6065 + .25 * .2231) / .8296
    assert expectation(reply, 7, Scale(1, 5))[0] == pytest.approx(61.55, abs=0.01)


@pytest.mark.parametrize(
    ("choices", "messages"),
    [
        ((), (ASKED,)),
        ((("", ("Better", "Worse")),), (ASKED,)),
        ((DIGITS, ("\nTone: ", ("1", "2"))), (ASKED,)),
        ((DIGITS,), (ASKED, {"role": "assistant", "content": "Well,"})),
    ],
)
def test_other_answers_are_asked_as_they_were(choices: Any, messages: Any) -> None:
    server, asked = Server(), request(*choices, messages=messages)
    engine.run(Begun(server).send(asked))
    assert server.asked == [asked]


@pytest.mark.parametrize(
    "refusal", [ModelError("thinking"), Unanswered("thinking", again=False)]
)
def test_a_model_that_takes_no_beginning_is_asked_without(refusal: Exception) -> None:
    server = Server()
    taken = server.send

    async def send(sent: Request) -> Reply:
        if sent.messages[-1]["role"] == "assistant":
            raise refusal
        return await taken(sent)

    server.send = send  # type: ignore[method-assign]
    begun, asked = Begun(server), request(DIGITS)
    assert engine.run(begun.send(asked)).text.endswith("4")
    engine.run(begun.send(asked))
    assert server.asked == [asked, asked]


def test_a_busy_server_is_not_asked_in_another_way() -> None:
    async def send(_: Request) -> Reply:
        raise Unanswered("busy", again=True)

    server = Server()
    server.send = send  # type: ignore[method-assign]
    with pytest.raises(Unanswered, match="busy"):
        engine.run(Begun(server).send(request(DIGITS)))


def test_a_literal_is_written_as_gbnf_has_it() -> None:
    server = Server()
    engine.run(Begun(server).send(request(("A:\n", ('"x"', "y\\z", "😀")))))
    (grammar,) = (one.grammar or "" for one in server.asked)
    literals = grammar.removeprefix("root ::= ").split(" | ")
    assert [json.loads(one) for one in literals] == ['\n"x"', "\ny\\z", "\n😀"]
    assert "😀" in grammar  # half of an escaped pair is no character


@pytest.mark.model
@pytest.mark.slow
def test_both_engines_read_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the beginning, the 135M's scores differed by five of 100 and more: it spelled S, co, re."""
    if not installed("smollm2-135m"):
        pytest.skip("smollm2-135m is not on this machine")
    for package in ("xllamacpp", "openvino"):
        pytest.importorskip(package)
    source = "The committee decided to postpone the meeting until all could attend."
    items = [
        Item("The committee put off the meeting until everyone could come.", source),
        Item("It meeting later all.", source),
        Item("The museum is open from nine to five on weekdays.", source),
    ]
    found = []
    for way in ("openvino", "llama.cpp"):
        monkeypatch.setitem(os.environ, "JUDGESMITH_READER", way)
        lm = language_model("local/smollm2-135m", connection=Connection(cache=False))
        method = DirectScorer("simplification/meaning preservation")
        method.choose(reading="expected")
        verdicts = [engine.run(method.judge(item, lm)) for item in items]
        found.append([one.percent for one in verdicts])
    assert found[0] == pytest.approx(found[1], abs=3.5)
