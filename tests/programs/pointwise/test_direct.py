"""The plain baseline: one short answer, both readings, demonstrations, failures, saving, compiling."""

from collections.abc import Callable
from typing import Any

import pytest

import judgesmith as js
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Scale


def is_score(messages: Any) -> bool:
    system = messages[0]["content"]
    return (
        "Judge fluency of the output. Answer with one line:\nScore: <number>" in system
    )


def test_the_expected_digit_in_one_call(
    scripted: Any, with_digits: Callable[..., Reply]
) -> None:
    answer = with_digits("Score: 4", "4", {"4": 0.5, "5": 0.25, "1": 0.25})
    lm, transport = scripted([(is_score, answer)], logprobs=True)
    judge = js.Judge(js.DirectScorer("fluency"), lm=lm, scale=Scale(1, 5))
    verdict = judge.score("s", "o")
    # .5·4 + .25·5 + .25·1 = 3.5 of 1..5 → 62.5
    assert (verdict.percent, verdict.score) == (
        pytest.approx(62.5, abs=1e-9),
        pytest.approx(3.5),
    )
    assert (verdict.explanation, verdict.notes, verdict.usage.calls) == ("", (), 1)
    assert judge.method.cost().calls_per_row == 1
    assert judge.method.brief
    assert judge.method.saved_options() == {
        "aspect": "fluency",
        "material": "output",
        "reading": "expected",
    }
    (request,) = transport.requests
    assert request.max_tokens <= 12
    assert request.top_logprobs > 0


def test_without_log_probabilities_the_number_said(scripted: Any) -> None:
    lm, _ = scripted([(is_score, "Score: 73"), (is_score, "It is a 40.\nScore: 40")])
    judge = Judge(DirectScorer("fluency"), lm=lm)
    one, two = judge.score_many([{"output": "One."}, {"output": "Two."}])
    assert (one.percent, one.repaired) == (73.0, False)
    assert (two.percent, two.repaired) == (40.0, True)
    assert judge.method.options.reading == "said"
