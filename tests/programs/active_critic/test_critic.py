"""ActiveCritic with a scripted model: calls, ablations, retries, failures, order, and life as a DSPy module."""

import asyncio
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest

from judgesmith.errors import CallError, OptionError
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Sampling
from judgesmith.programs.models.transport import Reply, Request
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.prompting.predict import AGAIN
from judgesmith.signatures.values import Criterion, Item, Scale, Verdict

TASK = "Summaries of news are judged."
CRITERIA = (Criterion("Fluency", "It reads well."), Criterion("Truth", "It is true."))
LINES = "Fluency: Reads well. Score: 80\nTruth: One error. Score: 40"
OVERALL = "Explanation: It is dull.\nScore: 60"
LINE_DIGITS = "Fluency: Reads well. Score: 4\nTruth: One error. Score: 2"

MakeScripted = Any  # the fixture of conftest.py, which tests cannot import


def is_criteria(messages: Any) -> bool:
    return "Judge the output on each criterion" in messages[0]["content"]


def is_overall(messages: Any) -> bool:
    return "Judge the output. Answer with" in messages[0]["content"]


def is_again(messages: Any) -> bool:
    return messages[-1]["content"].startswith(AGAIN)


def critic(variant: Any = "coarse", lm: Any = None, **options: Any) -> ActiveCritic:
    settled: dict[str, Any] = {"explain": "before", "reading": "said", "task": TASK, "criteria": CRITERIA}
    return ActiveCritic(variant, lm=lm, **(settled | options))


# Variants and ablations


@pytest.mark.parametrize(("variant", "steps"), [("vanilla", 1), ("coarse", 1), ("fine", 2)])
def test_each_variant_makes_its_calls(scripted: MakeScripted, variant: str, steps: int) -> None:
    script = [(is_criteria, LINES), (is_overall, OVERALL)] if variant == "fine" else [(is_overall, OVERALL)]
    lm, transport = scripted(script)
    judge = critic(variant, lm)
    verdict = judge.score("The source.", "The output.")
    assert (verdict.score, verdict.percent, verdict.explanation) == (60.0, 60.0, "It is dull.")
    assert (verdict.failure, verdict.repaired, verdict.notes) == (None, False, ())
    assert len(transport.requests) == judge.calls_per_row() == steps == verdict.usage.calls
    assert verdict.usage.prompt_tokens == 10 * steps
    assert len(verdict.raw) == steps


def test_what_each_variant_says_of_the_task(texts_of: Callable[[Any], str]) -> None:
    def said(variant: str, **options: Any) -> list[str]:
        return [texts_of(m) for m in critic(variant, **options).previews(Item("o", "s")).values()]

    (vanilla,) = said("vanilla")
    assert TASK not in vanilla
    assert "It reads well." not in vanilla
    (coarse,) = said("coarse")
    assert TASK in coarse
    assert "- Fluency: It reads well." in coarse
    first, second = said("fine")
    assert TASK in first and TASK in second
    assert "- Fluency: It reads well." in first
    assert "It reads well." not in second  # the criterion scores stand for it
    (no_task,) = said("coarse", use_task=False)
    assert TASK not in no_task
    assert "- Fluency: It reads well." in no_task
    (no_criteria,) = said("coarse", use_criteria=False)
    assert TASK in no_criteria
    assert "It reads well." not in no_criteria


def test_fine_hands_the_criterion_scores_to_the_second_step(scripted: MakeScripted) -> None:
    lm, transport = scripted([(is_criteria, LINES), (is_overall, OVERALL)])
    verdict = critic("fine", lm).score("s", "o")
    assert {n: (c.score, c.explanation) for n, c in verdict.criteria.items()} == {
        "Fluency": (80.0, "Reads well."),
        "Truth": (40.0, "One error."),
    }
    assert "Truth: One error. Score: 40/100" in transport.requests[1].messages[-1]["content"]


def test_the_mean_of_the_criteria_replaces_the_second_step(scripted: MakeScripted) -> None:
    lm, _ = scripted([(is_criteria, LINES), (is_criteria, "Fluency: Reads well. Score: 80")])
    judge = critic("fine", lm, combine="mean")
    assert judge.calls_per_row() == 1
    assert judge.score("s", "o").score == 60.0  # (80+40)/2
    assert list(judge.previews(Item("o"))) == ["criteria_scorer"]
    partly = judge.score("s", "o")
    assert partly.score == 80.0  # Truth could not be read and does not count as 0
    assert math.isnan(partly.criteria["Truth"].score)
    assert partly.repaired


@pytest.mark.parametrize(
    ("explain", "answer", "explanation"),
    [("none", "Score: 60", ""), ("after", "Score: 60\nExplanation: It is dull.", "It is dull.")],
)
def test_other_places_of_the_explanation(scripted: MakeScripted, explain: str, answer: str, explanation: str) -> None:
    lm, transport = scripted([(is_overall, answer)])
    verdict = critic(lm=lm, explain=explain).score("s", "o")
    assert (verdict.score, verdict.explanation, verdict.repaired) == (60.0, explanation, False)
    assert ("Explanation:" in transport.requests[0].messages[0]["content"]) == (explain == "after")


def test_brief_asks_the_same_and_stops_early(scripted: MakeScripted) -> None:
    lm, transport = scripted([(is_overall, "Score: 60\nExplanation: It is dull."), (is_overall, "Score: 60")])
    judge = critic(lm=lm, explain="after")
    judge.score("s", "o")
    judge.set_brief(True)
    assert judge.brief
    verdict = judge.score("s", "o")
    full, brief = transport.requests
    assert full.messages == brief.messages
    assert brief.max_tokens < full.max_tokens
    assert (verdict.score, verdict.notes) == (60.0, ())  # a missing explanation was asked for
    judge.set_brief(False)
    assert not judge.brief
    before = critic(explain="before")
    before.set_brief(True)
    assert not before.brief  # there the explanation comes first and cannot be left out


@pytest.mark.parametrize(
    "options",
    [
        {"variant": "medium"},
        {"explain": "during"},
        {"reading": "guessed"},
        {"variant": "fine", "combine": "median"},
        {"variant": "fine", "use_criteria": False},
        {"variant": "coarse", "combine": "mean"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        ActiveCritic(**options)


def test_criteria_that_no_artifact_can_hold_are_refused() -> None:
    with pytest.raises(OptionError, match=r"1 to 80 characters \(here 81\)"):
        ActiveCritic(criteria=[Criterion("c" * 81, "a name that is too long")])
    with pytest.raises(OptionError, match=r"at most 2,000 \(here 2001\)"):
        ActiveCritic(criteria=[Criterion("long", "d" * 2001)])


def test_fine_without_criteria_says_what_to_do(scripted: MakeScripted) -> None:
    lm, _ = scripted([])
    with pytest.raises(OptionError, match="compile it from labels"):
        ActiveCritic("fine", lm=lm).score("s", "o")


# Reading


def test_auto_takes_the_expectation_where_there_are_log_probabilities(
    scripted: MakeScripted, with_digits: Callable[..., Reply]
) -> None:
    answer = with_digits("Explanation: It is dull.\nScore: 4", "4", {"4": 0.5, "5": 0.5})
    lm, transport = scripted([(is_overall, answer)], logprobs=True)
    judge = critic(lm=lm, explain="auto", reading="auto", scale=Scale(1, 5))
    assert judge.score("s", "o").score == pytest.approx(4.5)
    assert (judge.explain, judge.reading) == ("before", "expected")
    assert transport.requests[0].top_logprobs > 0


def test_auto_takes_the_number_said_where_there_are_none(scripted: MakeScripted) -> None:
    lm, transport = scripted([(is_overall, OVERALL)])
    assert critic(lm=lm, reading="auto").score("s", "o").percent == 60.0
    assert transport.requests[0].top_logprobs == 0


def test_missing_log_probabilities_are_noted(scripted: MakeScripted) -> None:
    lm, _ = scripted([(is_overall, "Explanation: It is dull.\nScore: 4")])
    verdict = critic(lm=lm, reading="expected").score("s", "o")
    assert verdict.percent == 75.0
    assert any("this model gives no log-probabilities" in note for note in verdict.notes)


def test_log_probabilities_missing_at_the_score_alone_are_noted(
    scripted: MakeScripted, with_digits: Callable[..., Reply]
) -> None:
    lm, _ = scripted(
        [
            (is_overall, "Explanation: It is dull.\nScore: 4"),
            (is_overall, with_digits("Explanation: It is dull.\nScore: 4", "4", {"4": 0.3, "x": 0.7})),
        ],
        logprobs=True,
    )
    judge = critic(lm=lm, reading="expected")
    assert judge.score("s", "o").notes == ("no log-probabilities at the score; the stated number was taken",)
    assert judge.score("s", "o").notes == ("only 30% of the probability was on the scale's digits",)


def test_criterion_expectations_are_used(scripted: MakeScripted, with_digits: Callable[..., Reply]) -> None:
    lm, _ = scripted([(is_criteria, with_digits(LINE_DIGITS, "2", {"1": 0.5, "2": 0.5}))], logprobs=True)
    verdict = critic("fine", lm, reading="expected", combine="mean").score("s", "o")
    # Fluency: no alternatives but 4 → 75; Truth: 1.5 → 12.5; mean 43.75
    assert verdict.percent == pytest.approx(43.75)


# Failures


def test_an_unreadable_answer_is_asked_for_once_more(scripted: MakeScripted) -> None:
    lm, transport = scripted([(is_overall, "I would rather not."), (is_again, OVERALL)])
    verdict = critic(lm=lm).score("s", "o")
    assert verdict.score == 60.0
    assert verdict.notes == ("answered at the second request",)
    assert verdict.raw == ("I would rather not.", OVERALL)
    assert verdict.usage.calls == 2
    first, second = transport.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-2] == {"role": "assistant", "content": "I would rather not."}
    assert "Score: <number>" in second.messages[-1]["content"]


@pytest.mark.parametrize("answer", ["I would rather not.", ""])
def test_two_unreadable_answers_are_nan_with_a_reason(scripted: MakeScripted, answer: str) -> None:
    lm, _ = scripted([(is_overall, answer), (is_again, answer)])
    verdict = critic(lm=lm).score("s", "o")
    assert math.isnan(verdict.score)
    assert math.isnan(verdict.percent)
    assert "asked twice" in (verdict.failure or "")
    assert verdict.raw == (answer, answer)
    assert verdict.usage.calls == 2  # they were paid for


def test_a_second_step_that_fails_keeps_the_first_ones_scores_and_costs(scripted: MakeScripted) -> None:
    lm, _ = scripted([(is_criteria, LINES), (is_overall, "?"), (is_again, "?")])
    verdict = critic("fine", lm).score("s", "o")
    assert math.isnan(verdict.score)
    assert "asked twice" in (verdict.failure or "")
    assert verdict.criteria["Fluency"].score == 80.0
    assert verdict.usage.calls == 3
    assert verdict.raw == (LINES, "?", "?")


def test_a_judge_that_gives_no_percent_fails(scripted: MakeScripted) -> None:
    class Mute(ActiveCritic):
        async def prepare(self, lm: Any) -> None:
            return None

        async def ajudge(self, item: Item, lm: Any) -> Verdict:
            return Verdict(math.nan)

    assert Mute(lm=scripted([])[0]).score("s", "o").failure == "the judge gave no score"


def test_models_without_a_system_role_get_its_text_in_the_first_turn(scripted: MakeScripted) -> None:
    lm, transport = scripted([(lambda m: m[0]["role"] == "user", OVERALL)], system_prompt=False)
    assert critic(lm=lm).score("The source.", "o").score == 60.0
    (request,) = transport.requests
    assert len(request.messages) == 1
    assert "You rate texts" in request.messages[0]["content"]
    assert request.messages[0]["content"].endswith("<output>\no\n</output>")


def test_sampling_caps_the_answer(scripted: MakeScripted) -> None:
    lm, transport = scripted([(is_overall, OVERALL)], sampling=Sampling(0.7, 33))
    critic(lm=lm).score("s", "o")
    assert (transport.requests[0].temperature, transport.requests[0].max_tokens) == (0.7, 33)


# Scale and calibration


def test_scores_come_on_the_users_scale_and_through_the_calibration(scripted: MakeScripted) -> None:
    lm, _ = scripted(lambda _: OVERALL)
    judge = critic(lm=lm, scale=Scale(1, 5))
    assert judge.score("s", "o").score == pytest.approx(3.4)  # 1 + 4·0.6
    judge.calibration = Calibration((0.0, 60.0, 100.0), (1.0, 4.5, 5.0))
    verdict = judge.score("s", "o")
    assert (verdict.score, verdict.percent) == (4.5, 60.0)


# Many rows


def number_of(request: Request) -> int:
    return int(request.messages[-1]["content"].split("row ")[1].split(".")[0])


def test_score_many_keeps_the_order_of_slow_and_fast_rows(scripted: MakeScripted) -> None:
    lm, transport = scripted(lambda r: f"Explanation: It is so.\nScore: {number_of(r)}")
    send, finished = transport.send, list[int]()

    async def slowly(request: Request) -> Reply:
        reply: Reply = await send(request)
        if "row " in request.messages[-1]["content"]:
            await asyncio.sleep(0.05 if number_of(request) % 4 == 0 else 0.001)
            finished.append(number_of(request))
        return reply

    transport.send = slowly
    rows = [{"source": "s", "output": f"row {i}."} for i in range(24)]
    seen: list[int] = []
    scores = [v.score for v in critic(lm=lm).score_many(rows, concurrency=4, progress=seen.append)]
    assert scores == list(range(24))
    assert finished != sorted(finished)  # they did overtake one another
    assert seen == list(range(1, 25))


def test_score_many_is_lazy(scripted: MakeScripted) -> None:
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


def test_it_is_a_dspy_module_that_uses_the_models_of_its_context(scripted: MakeScripted) -> None:
    judge = critic(scale=Scale(1, 5))
    fine, bad = scripted(lambda _: "Explanation: Fine.\nScore: 75")[0], scripted(lambda _: "Score: 0")[0]
    with dspy.context(lm=fine):
        prediction = judge(source="s", output="o")
    assert isinstance(prediction, dspy.Prediction)
    assert (prediction.score, prediction.percent, prediction.explanation) == (4.0, 75.0, "Fine.")
    assert prediction.failure is None
    with dspy.context(lm=bad):  # another context, another model
        assert judge(source="s", output="o").score == 1.0


def test_traces_name_the_predictors(scripted: MakeScripted) -> None:
    lm, _ = scripted([(is_criteria, LINES), (is_overall, OVERALL)])
    judge = critic("fine", lm)
    with dspy.context(trace=[]):
        judge(source="s", output="o")
        trace = list(dspy.settings.trace)
    assert [t[0] for t in trace] == [judge.criteria_scorer.predict, judge.overall_scorer.predict]
    assert trace[1][1]["output"] == "o"
    assert trace[1][2].score == 60.0


def test_copies_keep_the_task_and_share_the_model(scripted: MakeScripted) -> None:
    judge = critic("fine", scripted([])[0])
    judge.overall_scorer.predict.demos = [{"output": "x", "score": 1.0}]
    for copied, demos in ((judge.deepcopy(), judge.overall_scorer.predict.demos), (judge.reset_copy(), [])):
        assert (copied.knowledge.description, copied.knowledge.criteria) == (TASK, CRITERIA)
        assert copied.knowledge is not judge.knowledge and copied.lm is judge.lm
        assert copied.overall_scorer.predict.demos == demos
        assert copied.overall_scorer.predict.demos is not judge.overall_scorer.predict.demos


def test_the_dspy_state_holds_the_task_knowledge() -> None:
    state = critic("fine").dump_state()
    assert state["knowledge"]["description"] == TASK
    fresh = ActiveCritic("fine", explain="before", reading="said")
    fresh.load_state(state)
    assert fresh.knowledge.criteria == CRITERIA


def test_one_predictor_alone_is_an_ordinary_dspy_predict(scripted: MakeScripted) -> None:
    judge = critic(lm=None)
    inputs = judge.overall_scorer.inputs(Item("o", "s"), judge.known())
    with dspy.context(lm=scripted([(is_overall, OVERALL)])[0]):
        assert judge.overall_scorer.predict(**inputs).score == 60.0
    lm, _ = scripted([(is_overall, "?"), (is_again, "?")])
    with pytest.raises(CallError, match="asked twice"):
        engine.run(judge.overall_scorer.predict.ask(lm, inputs))
