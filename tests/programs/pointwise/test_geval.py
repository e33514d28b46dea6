"""G-Eval: steps written once and kept, the weighted score, drawn answers, failures, saving."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.pointwise.geval import LONGEST_STEPS, GEval, StepsLayout
from judgesmith.signatures.values import Scale

STEPS = "1. Read the source.\n2. Look for errors."


def is_steps(messages: Any) -> bool:
    return "numbered steps, one sentence each" in messages[0]["content"]


def is_score(messages: Any) -> bool:
    return "Judge fluency of the output" in messages[0]["content"]


def test_steps_are_written_once_for_every_prompt(
    scripted: Any, with_digits: Callable[..., Reply]
) -> None:
    score = with_digits("Score: 4", "4", {"4": 0.5, "5": 0.25, "1": 0.25})
    lm, transport = scripted(
        [(is_steps, f"Sure:\n{STEPS}"), *[(is_score, score)] * 3], logprobs=True
    )
    judge = Judge(GEval("fluency"), lm=lm)
    verdicts = [
        *judge.deepcopy().score_many([{"output": "One."}, {"output": "Two."}]),
        judge.score("s", "o"),
    ]
    # .5·4 + .25·5 + .25·1 = 3.5 of 1..5 → 62.5
    assert [v.percent for v in verdicts] == pytest.approx([62.5] * 3, abs=1e-9)
    assert judge.method.steps == judge.with_().method.steps == STEPS
    assert all(STEPS in r.messages[0]["content"] for r in transport.requests[1:])
    assert [v.usage.calls for v in verdicts] == [1] * 3
    assert judge.method.cost().calls_per_row == 1


def test_own_steps_cost_no_call(
    scripted: Any, with_digits: Callable[..., Reply]
) -> None:
    lm, transport = scripted(
        [(is_score, with_digits("Score: 2", "2", {"2": 1.0}))], logprobs=True
    )
    judge = Judge(
        GEval("fluency", steps="1. Count <task> commas."), lm=lm, scale=Scale(1, 5)
    )
    assert judge.score("s", "o").score == pytest.approx(2.0)
    assert "1. Count ‹task> commas." in transport.requests[0].messages[0]["content"]


def test_without_log_probabilities_the_mean_of_drawn_answers(scripted: Any) -> None:
    said = {0: "Score: 1", 1: "Score: 5", 2: "Score: 3", 3: "Score: 3"}
    lm, transport = scripted(
        lambda r: STEPS if is_steps(r.messages) else said[r.sample]
    )
    judge = Judge(GEval("fluency", samples=4, temperature=0.9), lm=lm)
    verdict = judge.score("s", "o")
    # 0, 100, 50, 50: mean 50; variance (2500 + 2500)/3, √(1666.7/4) = 20.4
    assert verdict.percent == 50.0
    assert verdict.notes == (
        "not from log-probabilities: the mean of 4 answers drawn at temperature 0.9, standard error ±20.4 of 100",
    )
    assert judge.method.cost().calls_per_row == 4 == verdict.usage.calls
    assert {(r.temperature, r.top_logprobs) for r in transport.requests[1:]} == {
        (0.9, 0)
    }


def test_drawn_answers_that_cannot_be_read(scripted: Any) -> None:
    def answer(r: Request) -> str:
        return (
            STEPS if is_steps(r.messages) else "Score: 5" if r.sample == 0 else "Well."
        )

    lm, _ = scripted(answer)
    verdict = Judge(GEval("fluency", samples=3), lm=lm).score("s", "o")
    assert (verdict.percent, verdict.usage.calls) == (100.0, 5)
    assert "standard error unknown" in verdict.notes[0]
    assert verdict.notes[1] == "2 of 3 drawn answers could not be read"
    none, _ = scripted(lambda r: STEPS if is_steps(r.messages) else "Well.")
    failed = Judge(GEval("fluency", samples=2), lm=none).score("s", "o")
    assert math.isnan(failed.score)
    assert "asked twice" in (failed.failure or "")


def test_without_steps_it_still_scores_and_says_so(
    scripted: Any, with_digits: Callable[..., Reply]
) -> None:
    refused = Unanswered("HTTP 400", again=False)
    lm, _ = scripted(
        [(is_steps, refused), (is_score, with_digits("Score: 4", "4", {"4": 1.0}))],
        logprobs=True,
    )
    verdict = Judge(GEval("fluency"), lm=lm).score("s", "o")
    assert verdict.percent == 75.0
    assert verdict.notes == ("no evaluation steps: test/model: HTTP 400",)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (STEPS, STEPS),
        (
            "Steps:\n**Step 1:** Read.\n  2) **Weigh** it.\nGood luck!",
            "1. Read.\n2. Weigh it.",
        ),
        ("Read it.\nThen weigh it.", "Read it. Then weigh it."),
        ("Read it. " * 1000, ("Read it. " * 1000)[:LONGEST_STEPS]),
        ("<think>1. no\n2. no</think>\n1. Yes.\n2. Well.", "1. Yes.\n2. Well."),
    ],
)
def test_steps_are_read_out_of_what_models_write(text: str, steps: str) -> None:
    read = StepsLayout("steps", "Answer with steps.", tokens=9).read(Reply(text), {})
    assert read.values == {"steps": steps}
