"""A judge as a DSPy metric: 0 to 1, a bool while bootstrapping, feedback for GEPA; a failure is no bad text."""

from typing import Any

import dspy
import pytest
from parrot import Forward

import judgesmith as js
from judgesmith.errors import NoScoreError, OptionError
from judgesmith.programs.as_metric import as_metric

ROW = dspy.Example(question="Why?", hint="none").with_inputs("question")
SAID = dspy.Prediction(answer="Because.", notes="n")


def judged(answer: str) -> js.Judge:
    return js.judge("The answer is polite.", lm=Forward(lambda messages: answer))


def test_a_score_a_bool_or_feedback_as_dspy_asks() -> None:
    metric = as_metric(
        judged("Explanation: Too short.\nScore: 75"),
        source="question",
        output="answer",
        threshold=0.8,
    )
    assert metric(ROW, SAID) == pytest.approx(0.75)
    assert metric(ROW, SAID, trace=[]) is False
    told = metric(ROW, SAID, [], "answer", [])
    assert told.score == pytest.approx(0.75)
    assert told.feedback == "Score 4 on a scale of 1..5.\nToo short."
    assert (
        as_metric(judged("Explanation: x\nScore: 75"), output="answer")(
            ROW, SAID, trace=[]
        )
        is True
    )  # the only input
    passes = js.judge(
        "It is polite.",
        pass_fail=True,
        lm=Forward(lambda _: "Explanation: x\nScore: 40"),
    )
    assert as_metric(passes, output="answer")(ROW, SAID, trace=[]) is False
    assert passes.passed("Why?", "Because.") is False
    assert (
        dspy.Evaluate(devset=[ROW] * 3, metric=metric, display_progress=False)(
            lambda **_: SAID
        ).score
        == 75
    )


def test_feedback_of_a_number_alone_has_reasons_that_are_asked_for() -> None:
    asked = []

    def answer(messages: Any) -> str:
        asked.append(messages[0]["content"])
        explains = "explain to the writer" in asked[-1]
        return "The output is too short." if explains else "Score: 75"

    method = js.DirectScorer("fluency", reading="said")
    judge = js.Judge(method, lm=Forward(answer), scale=js.Scale(1, 5))
    metric = as_metric(judge, source="question", output="answer")
    assert metric(ROW, SAID) == pytest.approx(0.75)
    assert len(asked) == 1  # a score alone needs no reason
    told = metric(ROW, SAID, [], "answer", [])
    assert told.feedback.startswith("Score 4 on a scale of 1..5.\n")
    assert told.feedback.endswith("The output is too short.")


def test_a_failed_call_is_no_bad_answer() -> None:
    answers = iter(["Explanation: x\nScore: 80", *["I cannot say."] * 40])
    judge = js.judge("The answer is polite.", lm=Forward(lambda _: next(answers)))
    metric = as_metric(judge, source="question", output="answer")
    assert [
        metric(ROW, dspy.Prediction(answer=text)) for text in ("a", "b")
    ] == pytest.approx([0.8, 0.8])
    assert (metric.calls, len(metric.failures)) == (2, 1)
    assert metric(ROW, dspy.Prediction(answer="c"), trace=[]) is False
    assert (
        "gave no score" in metric(ROW, dspy.Prediction(answer="d"), None, "p").feedback
    )
    assert (
        as_metric(judge, output="answer", failed=0.3)(ROW, dspy.Prediction(answer="e"))
        == 0.3
    )
    fails = js.judge(
        "It is polite.", pass_fail=True, lm=Forward(lambda _: "I cannot say.")
    )
    with pytest.raises(NoScoreError):  # a failed call is no fail
        fails.passed(output="f")
    with pytest.raises(OptionError, match="not compiled from pass and fail"):
        judge.passed(output="f")
    with pytest.raises(NoScoreError):
        as_metric(judge, output="answer", failed="raise")(
            ROW, dspy.Prediction(answer="f")
        )


def test_what_cannot_be_is_said() -> None:
    judge = judged("Explanation: x\nScore: 75")
    with pytest.raises(
        OptionError,
        match="the prediction has no 'reply' for the output; it has answer, notes",
    ):
        as_metric(judge, output="reply")(ROW, SAID)
    with pytest.raises(
        OptionError,
        match="neither example nor prediction has 'paper' for the reference",
    ):
        as_metric(judge, output="answer", reference="paper")(ROW, SAID)
    two = dspy.Example(question="Why?", hint="none").with_inputs("question", "hint")
    with pytest.raises(OptionError, match="the inputs question, hint; name one"):
        as_metric(judge, output="answer")(two, SAID)
    for wrong in ({"threshold": 3}, {"failed": "skip"}):
        with pytest.raises(OptionError, match="between 0 and 1"):
            as_metric(judge, output="answer", **wrong)


@pytest.mark.parametrize(
    "said",
    [dspy.Prediction(), dspy.Prediction(reply="Poor."), dspy.Prediction(answer=None)],
)
def test_what_is_judged_is_the_prediction_s_and_never_the_gold_answer(
    said: dspy.Prediction,
) -> None:
    gold = dspy.Example(question="Why?", answer="GOLD").with_inputs("question")
    judge = js.judge(
        "It is polite.",
        lm=Forward(
            lambda m: f"Explanation: x\nScore: {95 if 'GOLD' in str(m) else 10}"
        ),
    )
    for failed in ("mean", "raise"):
        with pytest.raises(OptionError, match="no 'answer' for the output"):
            as_metric(judge, output="answer", failed=failed)(gold, said)
    metric = as_metric(judge, output="answer", failed=0)
    assert (metric(gold, said), metric(gold, said, trace=[])) == (0.0, False)
    assert "no 'answer'" in metric(gold, said, None, "predict").feedback
    assert metric(gold, dspy.Prediction(answer="Poor.")) == pytest.approx(0.1)
    assert type(metric(gold, dspy.Prediction(answer="Fair."))) is float
