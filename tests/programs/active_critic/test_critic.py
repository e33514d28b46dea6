"""ActiveCritic with a scripted model: calls, ablations, retries, failures, order, and life as a DSPy module."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest

from judgesmith.errors import OptionError
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Sampling
from judgesmith.programs.prompting.predict import AGAIN
from judgesmith.signatures.values import Criterion, Item, Scale, Verdict

TASK = "Summaries of news are judged."
CRITERIA = (Criterion("Fluency", "It reads well."), Criterion("Truth", "It is true."))
LINES = "Fluency: Reads well. Score: 80\nTruth: One error. Score: 40"
OVERALL = "Explanation: It is dull.\nScore: 60"
LINE_DIGITS = "Fluency: Reads well. Score: 4\nTruth: One error. Score: 2"


def is_criteria(messages: Any) -> bool:
    return "Judge the output on each criterion" in messages[0]["content"]


def is_overall(messages: Any) -> bool:
    return "Judge the output. Answer with" in messages[0]["content"]


def is_again(messages: Any) -> bool:
    return messages[-1]["content"].startswith(AGAIN)


def critic(
    variant: Any = "coarse", lm: Any = None, scale: Scale | None = None, **options: Any
) -> Judge:
    settled: dict[str, Any] = {
        "explain": "before",
        "reading": "said",
        "task": TASK,
        "criteria": CRITERIA,
    }
    return Judge(ActiveCritic(variant, **settled | options), lm=lm, scale=scale)


# Variants and ablations


@pytest.mark.parametrize(
    ("variant", "steps"), [("vanilla", 1), ("coarse", 1), ("fine", 2)]
)
def test_each_variant_makes_its_calls(scripted: Any, variant: str, steps: int) -> None:
    lm, transport = scripted([(is_criteria, LINES), (is_overall, OVERALL)][2 - steps :])
    judge = critic(variant, lm)
    verdict = judge.score("The source.", "The output.")
    assert (verdict.score, verdict.percent, verdict.explanation) == (
        60.0,
        60.0,
        "It is dull.",
    )
    assert (verdict.failure, verdict.repaired, verdict.notes) == (None, False, ())
    assert (
        len(transport.requests)
        == judge.method.cost().calls_per_row
        == steps
        == verdict.usage.calls
        == len(verdict.raw)
    )
    assert verdict.usage.prompt_tokens == 10 * steps
    if variant == "fine":
        assert {n: (c.score, c.explanation) for n, c in verdict.criteria.items()} == {
            "Fluency": (80.0, "Reads well."),
            "Truth": (40.0, "One error."),
        }
        assert (
            "Truth: One error. Score: 40/100"
            in transport.requests[1].messages[-1]["content"]
        )


@pytest.mark.parametrize(
    ("variant", "options", "shown"),
    [
        ("vanilla", {}, [(False, False)]),
        ("coarse", {}, [(True, True)]),
        (
            "fine",
            {},
            [(True, True), (True, False)],
        ),  # in the second step the criterion scores stand for them
        ("coarse", {"use_task": False}, [(False, True)]),
        ("coarse", {"use_criteria": False}, [(True, False)]),
    ],
)
def test_which_steps_tell_the_task_and_the_criteria(
    variant: str,
    options: dict[str, Any],
    shown: list[tuple[bool, bool]],
    texts_of: Callable[[Any], str],
) -> None:
    prompts = map(
        texts_of, critic(variant, **options).previews(Item("o", "s")).values()
    )
    assert [(TASK in prompt, "It reads well." in prompt) for prompt in prompts] == shown


def test_the_mean_of_the_criteria_replaces_the_second_step(scripted: Any) -> None:
    lm, _ = scripted(
        [(is_criteria, LINES), (is_criteria, "Fluency: Reads well. Score: 80")]
    )
    judge = critic("fine", lm, combine="mean")
    assert judge.method.cost().calls_per_row == 1
    assert judge.score("s", "o").score == 60.0  # (80+40)/2
    assert list(judge.previews(Item("o"))) == ["criteria_scorer"]
    partly = judge.score("s", "o")
    assert partly.score == 80.0  # Truth could not be read and does not count as 0
    assert math.isnan(partly.criteria["Truth"].score)
    assert partly.repaired


def test_brief_asks_the_same_and_stops_early(scripted: Any) -> None:
    lm, transport = scripted(
        [(is_overall, "Score: 60\nExplanation: It is dull."), (is_overall, "Score: 60")]
    )
    judge = critic(lm=lm, explain="after")
    assert judge.score("s", "o").explanation == "It is dull."
    judge.method.set_brief(True)
    assert judge.method.brief
    verdict = judge.score("s", "o")
    full, brief = transport.requests
    assert full.messages == brief.messages
    assert brief.max_tokens < full.max_tokens
    assert (verdict.score, verdict.notes) == (
        60.0,
        (),
    )  # a missing explanation was asked for
    judge.method.set_brief(False)
    assert not judge.method.brief
    before = critic(explain="before")
    before.method.set_brief(True)
    assert (
        not before.method.brief
    )  # there the explanation comes first and cannot be left out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"variant": "medium"}, "variant"),
        ({"explain": "during"}, "explain"),
        ({"reading": "guessed"}, "reading"),
        ({"variant": "fine", "combine": "median"}, "combine"),
        ({"variant": "fine", "use_criteria": False}, "criteria"),
        ({"variant": "coarse", "combine": "mean"}, "combine"),
        # What no artifact can hold.
        (
            {"criteria": [Criterion("c" * 81, "a name that is too long")]},
            r"1 to 80 characters \(here 81\)",
        ),
        ({"criteria": [Criterion("long", "d" * 2001)]}, r"at most 2,000 \(here 2001\)"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(OptionError, match=says):
        ActiveCritic(**options)


def test_fine_without_criteria_says_what_to_do(scripted: Any) -> None:
    lm, _ = scripted([])
    with pytest.raises(OptionError, match="compile it from labels"):
        Judge(ActiveCritic("fine"), lm=lm).score("s", "o")


# Reading


@pytest.mark.parametrize(
    ("logprobs", "score", "reading"), [(True, 4.5, "expected"), (False, 4.0, "said")]
)
def test_auto_takes_the_expectation_where_there_are_log_probabilities(
    scripted: Any,
    with_digits: Callable[..., Reply],
    logprobs: bool,
    score: float,
    reading: str,
) -> None:
    text = "Explanation: It is dull.\nScore: 4"
    answer = (
        with_digits(text, "4", {"4": 0.5, "5": 0.5})
        if logprobs
        else text.replace("4", "75")
    )  # 75 of 100
    lm, transport = scripted([(is_overall, answer)], logprobs=logprobs)
    judge = critic(lm=lm, explain="auto", reading="auto", scale=Scale(1, 5))
    assert judge.score("s", "o").score == pytest.approx(score)
    assert (judge.method.options.explain, judge.method.options.reading) == (
        "before",
        reading,
    )
    assert (transport.requests[0].top_logprobs > 0) == logprobs


def test_missing_log_probabilities_are_noted(
    scripted: Any, with_digits: Callable[..., Reply]
) -> None:
    text = "Explanation: It is dull.\nScore: 4"
    never, _ = scripted([(is_overall, text)])
    verdict = critic(lm=never, reading="expected").score("s", "o")
    assert verdict.percent == 75.0
    assert any(
        "this model gives no log-probabilities" in note for note in verdict.notes
    )
    few = with_digits(text, "4", {"4": 0.3, "x": 0.7})
    lm, _ = scripted([(is_overall, text), (is_overall, few)], logprobs=True)
    judge = critic(lm=lm, reading="expected")
    assert judge.score("s", "o").notes == (
        "no log-probabilities at the score; the stated number was taken",
    )
    assert judge.score("s", "o").notes == (
        "only 30% of the probability was on the scale's digits",
    )


def test_criterion_expectations_are_used(
    scripted: Any, with_digits: Callable[..., Reply]
) -> None:
    lm, _ = scripted(
        [(is_criteria, with_digits(LINE_DIGITS, "2", {"1": 0.5, "2": 0.5}))],
        logprobs=True,
    )
    verdict = critic("fine", lm, reading="expected", combine="mean").score("s", "o")
    # Fluency: no alternatives but 4 → 75; Truth: 1.5 → 12.5; mean 43.75
    assert verdict.percent == pytest.approx(43.75)


# Failures


def test_an_unreadable_answer_is_asked_for_once_more(scripted: Any) -> None:
    lm, transport = scripted([(is_overall, "I would rather not."), (is_again, OVERALL)])
    verdict = critic(lm=lm).score("s", "o")
    assert verdict.score == 60.0
    assert verdict.notes == ("answered at the second request",)
    assert verdict.raw == ("I would rather not.", OVERALL)
    assert verdict.usage.calls == 2
    first, second = transport.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-2] == {
        "role": "assistant",
        "content": "I would rather not.",
    }
    assert "Score: <number>" in second.messages[-1]["content"]


@pytest.mark.parametrize("answer", ["I would rather not.", ""])
@pytest.mark.parametrize(
    ("variant", "first"), [("coarse", []), ("fine", [(is_criteria, LINES)])]
)
def test_two_unreadable_answers_are_nan_with_a_reason(
    scripted: Any, variant: str, first: list[Any], answer: str
) -> None:
    lm, _ = scripted([*first, (is_overall, answer), (is_again, answer)])
    verdict = critic(variant, lm).score("s", "o")
    assert math.isnan(verdict.score)
    assert math.isnan(verdict.percent)
    assert "asked twice" in (verdict.failure or "")
    # The first step's scores are kept, and all were paid for.
    assert [c.score for c in verdict.criteria.values()] == [80.0, 40.0][
        : 2 * len(first)
    ]
    assert verdict.raw == (*(text for _, text in first), answer, answer)
    assert verdict.usage.calls == 2 + len(first)


def test_a_judge_that_gives_no_percent_fails(scripted: Any) -> None:
    class Mute(ActiveCritic):
        async def prepare(self, lm: Any) -> None:
            return None

        async def judge(self, item: Item, lm: Any) -> Verdict:
            return Verdict()

    assert (
        Judge(Mute(), lm=scripted([])[0]).score("s", "o").failure
        == "the judge gave no score"
    )


def test_models_without_a_system_role_get_its_text_in_the_first_turn(
    scripted: Any,
) -> None:
    lm, transport = scripted(
        [(lambda m: m[0]["role"] == "user", OVERALL)], system_prompt=False
    )
    assert critic(lm=lm).score("The source.", "o").score == 60.0
    (request,) = transport.requests
    assert len(request.messages) == 1
    assert "You rate texts" in request.messages[0]["content"]
    assert request.messages[0]["content"].endswith("<output>\no\n</output>")


def test_sampling_caps_the_answer(scripted: Any) -> None:
    lm, transport = scripted([(is_overall, OVERALL)], sampling=Sampling(0.7, 33))
    critic(lm=lm).score("s", "o")
    assert (transport.requests[0].temperature, transport.requests[0].max_tokens) == (
        0.7,
        33,
    )


# Many rows


def test_score_many_is_lazy(scripted: Any) -> None:
    lm, transport = scripted(lambda _: OVERALL)
    taken = 0

    def rows() -> Iterator[dict[str, str]]:
        nonlocal taken
        for i in itertools.count():  # it never ends
            taken += 1
            yield {"output": f"row {i}."}

    verdicts = critic(lm=lm).score_many(rows(), concurrency=2)
    assert taken == 0
    assert [v.score for v in itertools.islice(verdicts, 3)] == [60.0] * 3
    verdicts.close()  # type: ignore[attr-defined]
    assert 3 <= taken < 60
    assert len(transport.requests) < 60


# As a DSPy module


def test_it_is_a_dspy_module_that_uses_the_models_of_its_context(scripted: Any) -> None:
    judge = critic(scale=Scale(1, 5))
    fine, bad = (
        scripted(lambda _: "Explanation: Fine.\nScore: 75")[0],
        scripted(lambda _: "Score: 0")[0],
    )
    with dspy.context(lm=fine):
        prediction = judge(source="s", output="o")
    assert isinstance(prediction, dspy.Prediction)
    assert (prediction.score, prediction.percent, prediction.explanation) == (
        4.0,
        75.0,
        "Fine.",
    )
    assert prediction.failure is None
    with dspy.context(lm=bad):  # another context, another model
        assert judge(source="s", output="o").score == 1.0


def test_traces_name_the_predictors(scripted: Any) -> None:
    lm, _ = scripted([(is_criteria, LINES), (is_overall, OVERALL)])
    judge = critic("fine", lm)
    with dspy.context(trace=[]):
        judge(source="s", output="o")
        trace = list(dspy.settings.trace)
    assert [t[0] for t in trace] == [
        judge.method.criteria_scorer.predict,
        judge.method.overall_scorer.predict,
    ]
    assert trace[1][1]["output"] == "o"
    assert trace[1][2].score == 60.0


def test_copies_keep_the_task_and_share_the_model(scripted: Any) -> None:
    judge = critic("fine", scripted([])[0])
    judge.method.overall_scorer.predict.demos = [{"output": "x", "score": 1.0}]
    for copied, demos in (
        (judge.deepcopy(), judge.method.overall_scorer.predict.demos),
        (judge.reset_copy(), []),
    ):
        assert (
            copied.method.knowledge.description,
            copied.method.knowledge.criteria,
        ) == (TASK, CRITERIA)
        assert copied.method.knowledge is not judge.method.knowledge
        assert copied.lm is judge.lm
        assert copied.method.overall_scorer.predict.demos == demos
        assert (
            copied.method.overall_scorer.predict.demos
            is not judge.method.overall_scorer.predict.demos
        )
