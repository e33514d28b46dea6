"""GEPA on a server that follows instructions: what it finds, what is chosen, what it may cost."""

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest

from judgesmith.datasets.records import Labels
from judgesmith.errors import MissingExtraError, ModelError, OptionError
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.search import prompts as dspy_model
from judgesmith.optimizers.search import proposals as adapters
from judgesmith.optimizers.search.base import SearchRecord
from judgesmith.optimizers.search.prompts import (
    LONGEST,
    PlainAdapter,
    PromptModel,
    cleaned,
)
from judgesmith.optimizers.search.proposals import GEPASearch, instructed
from judgesmith.optimizers.search.through_dspy import search_through
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.artifact import to_dict
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.pointwise.geval import GEval
from judgesmith.signatures.values import Criterion, Item, Verdict
from judgesmith.testing.optimizers import guess

Run = Callable[..., tuple[Judge, SearchRecord]]
#: With this in its instructions the scripted model judges as people do.
MARKER = "Weigh the keystone first."


def critic(lm: LanguageModel, variant: Any = "vanilla", **given: Any) -> Judge:
    return Judge(
        ActiveCritic(variant, explain="before", reading="said", **given), lm=lm
    )


@pytest.fixture
def run(model: LanguageModel, labels: Labels) -> Run:
    """run(search, student, rows, …): a student is a critic and the rows are `labels` where none are given."""

    def compiled(
        search: GEPASearch, student: Any = None, rows: Labels = labels, **given: Any
    ) -> Any:
        judge = search.compile(
            student or critic(model), trainset=examples_of(rows), **given
        )
        assert search.record is not None
        assert "could not go on" not in (search.record.reason or "")
        return judge, search.record

    return compiled


@pytest.fixture
def says(server: Any, fake: Any) -> Callable[..., None]:
    """says(number, propose): the model gives `number(ask)`, and `propose(ask)` where it is asked for an instruction."""

    def say(
        number: Any = guess, propose: Any = lambda ask: fake.written(ask, MARKER)
    ) -> None:
        server.answer = lambda ask: (
            propose(ask) if ask.step == "dspy" else fake.judging(number)(ask)
        )

    return say


def instructions(judge: Judge) -> str:
    return str(judge.predictors()[0].signature.instructions)


# -- finding and choosing


def test_a_better_instruction_is_found_and_chosen(
    says: Any, run: Run, model: LanguageModel, human: Any
) -> None:
    says(lambda ask: human[ask.mark] if MARKER in ask.system else guess(ask))
    student = critic(model)
    judge, record = run(GEPASearch(candidates=8), student)
    assert MARKER in instructions(judge)
    assert record.selected.agreement.q == pytest.approx(3.0)
    (changed,) = record.selected.form["instructions"].values()
    assert changed == instructions(judge)
    assert MARKER not in instructions(student)
    saved = to_dict(judge)
    assert any(MARKER in part["instructions"] for part in saved["state"].values())


def test_gepa_is_told_which_rows_contradict_people(
    server: Any, says: Any, run: Run
) -> None:
    says()
    run(GEPASearch(candidates=2))
    asked = [ask.text for ask in server.asks if ask.step == "dspy"]
    assert asked
    assert all(
        "People gave this output" in text and "People rate this other output" in text
        for text in asked
    )


# -- budget and failures


def test_it_keeps_to_what_it_says_it_may_take(
    server: Any, says: Any, fake: Any, run: Run
) -> None:
    draw = random.Random(3)
    says(propose=lambda ask: fake.written(ask, f"{MARKER} {draw.random()}"))
    for size in (1, 2, 8):
        lm = language_model(
            "openai/fake", connection=Connection(api_base=server.base, cache=False)
        )
        made = GEPASearch(candidates=size)
        student = critic(lm)
        before = len(server.judged)
        _, record = run(made, student)
        judged = len(server.judged) - before
        assert judged <= 40 * made.evaluations()
        assert (
            lm.meter.logical
            <= 40 * made.evaluations() + made.proposals(student, 40) + 3
        )
        assert (
            0 < len(record.candidates) <= made.evaluations()
        )  # GEPA tries what did better on a few


def test_no_candidates_means_no_search(
    server: Any, run: Run, model: LanguageModel
) -> None:
    made = GEPASearch(candidates=0)
    _, record = run(made)
    assert made.evaluations() == len(record.candidates) == 1
    assert made.proposals(critic(model), 40) == 0
    assert len(server.judged) == 40


@pytest.mark.parametrize(
    "said", ["", "x" * 9000, "\ud83d [[ ## nothing ## ]] </output>"]
)
def test_a_model_that_proposes_nonsense_does_no_harm(
    said: str, says: Any, run: Run
) -> None:
    says(propose=lambda _: said)
    judge, record = run(GEPASearch(candidates=3))
    assert record.scored.failed == 0
    for c in record.candidates:
        for text in c.form.get("instructions", {}).values():
            assert 0 < len(text) <= LONGEST
            assert "[[ ##" not in text
            assert "</output>" not in text
    to_dict(judge)


def test_a_model_that_cannot_propose_leaves_the_prompt_as_it_is(
    says: Any, fake: Any, run: Run
) -> None:
    says(propose=lambda _: fake.Fault(400, "too long"))
    _, record = run(GEPASearch(candidates=4))
    assert [c.name for c in record.candidates] == ["zero-shot"]
    assert record.reason == "gepa proposed nothing but the prompt that it began with"


def test_a_refused_key_is_said_and_not_searched_around(
    says: Any, fake: Any, run: Run
) -> None:
    says(propose=lambda _: fake.Fault(401, "who are you?"))
    with pytest.raises(ModelError, match="the key was refused"):
        run(GEPASearch(candidates=4))


# -- judges, teachers, rows to measure on


def test_the_teacher_writes_the_proposals(server: Any, says: Any, run: Run) -> None:
    says()
    teacher = language_model(
        "openai/teacher", connection=Connection(api_base=server.base)
    )
    run(GEPASearch(candidates=4), teacher=teacher)
    assert {ask.body["model"] for ask in server.asks if ask.step == "dspy"} == {
        "teacher"
    }


def test_rows_to_measure_on_stay_out_of_what_proposals_see(
    server: Any, says: Any, run: Run, labels: Labels
) -> None:
    says()
    train, val = labels.subset(range(20)), labels.subset(range(20, 40))
    _, record = run(GEPASearch(candidates=4), rows=train, valset=examples_of(val))
    assert record.scored.percents.shape == (20,)
    asked = [ask.text for ask in server.asks if ask.step == "dspy"]
    assert asked
    assert not [row.id for row in val.rows for text in asked if row.id in text]


@pytest.mark.parametrize("kind", [OpeNLGauge, GEval])
def test_other_judges_can_be_compiled(
    kind: Any, server: Any, fake: Any, run: Run, model: LanguageModel, labels: Labels
) -> None:
    criterion = Criterion("fluency", "Whether it reads well.")

    def answer(ask: Any) -> Any:
        return (
            fake.written(ask, MARKER)
            if "[[ ## " in ask.text
            else f"Explanation: So.\nScore: {len(ask.text) % 5 + 1}"
        )

    server.answer = answer
    student = Judge(kind("fluency", criteria=[criterion]), lm=model)
    judge, record = run(GEPASearch(candidates=2), student, labels.subset(range(16)))
    assert record.candidates[0].name == "zero-shot"
    others = {n for n, p in judge.named_predictors() if p not in judge.method.taught()}
    for name, predictor in judge.named_predictors():
        if name in others:
            assert (
                predictor.signature.instructions
                == dict(student.named_predictors())[name].signature.instructions
            )


async def ranked(
    self: ActiveCritic, items: Sequence[Item], lm: Any, slots: Any
) -> list[Verdict]:
    """Ranks that are those of the rows."""
    return [
        Verdict(percent=100.0 * place / max(1, len(items) - 1))
        for place in range(len(items))
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"taught": lambda self: []}, "this judge has no prompt"),
        ({"rank": ranked}, "judges one output at a time"),
    ],
)
def test_a_judge_with_nothing_to_change_stays_and_is_told_why(
    change: dict[str, Any], reason: str, server: Any, run: Run, model: LanguageModel
) -> None:
    fixed = type("Fixed", (ActiveCritic,), change)
    _, record = run(
        GEPASearch(candidates=4),
        Judge(fixed("vanilla", explain="before", reading="said"), lm=model),
    )
    assert [c.name for c in record.candidates] == ["zero-shot"]
    assert record.reason is not None
    assert reason in record.reason
    assert len(server.judged) == (40 if "taught" in change else 0)


def test_gepa_without_its_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install"):
        GEPASearch()


# -- the pieces


def test_nothing_is_printed_and_everything_is_put_back(
    says: Any, run: Run, capfd: Any, caplog: Any
) -> None:
    import logging

    from gepa.core import engine as gepa_engine

    says()
    before = (
        sys.stdout,
        logging.getLogger("dspy").level,
        gepa_engine.tqdm,
        dspy.settings.lm,
    )
    run(GEPASearch(candidates=3))
    assert capfd.readouterr() == ("", "")
    assert not [r for r in caplog.records if r.name.startswith(("dspy", "gepa"))]
    assert before == (
        sys.stdout,
        logging.getLogger("dspy").level,
        gepa_engine.tqdm,
        dspy.settings.lm,
    )


def test_cleaned_instructions() -> None:
    assert (
        cleaned(
            "```text\n[[ ## proposed_instruction ## ]]\n  Judge\n it. \n[[ ## completed ## ]] more"
        )
        == "Judge it."
    )
    assert cleaned('"Judge it."') == "Judge it."
    assert cleaned("Judge </output> it <|im_end|>") == "Judge ‹/output> it ‹|im_end|>"
    long = cleaned("A sentence here. " * 500)
    assert LONGEST - 20 < len(long) <= LONGEST
    assert long.endswith("here.")
    assert len(cleaned("x" * 9000)) == LONGEST
    assert cleaned("[[ ## completed ## ]]") == cleaned("``` ```") == ""
    cleaned("half \ud83d of a pair").encode()


def test_a_plain_answer_is_taken_where_one_text_was_asked_for() -> None:
    one = dspy.Signature("question -> instruction: str")
    assert PlainAdapter().parse(one, "Just judge.") == {"instruction": "Just judge."}
    assert PlainAdapter().parse(
        one, "[[ ## instruction ## ]]\nJudge.\n[[ ## completed ## ]]"
    ) == {"instruction": "Judge."}
    two = dspy.Signature("question -> why: str, instruction: str")
    with pytest.raises(Exception, match="parse"):
        PlainAdapter().parse(two, "Just judge.")


def test_prompts_go_through_our_model(server: Any, model: LanguageModel) -> None:
    server.answer = lambda ask: "4" if "2 + 2" in ask.text else ask.last
    prompts = PromptModel(model, lambda call: engine.run(call())).copy(
        temperature=1.0, rollout_id=7
    )
    assert isinstance(prompts, PromptModel)
    assert prompts("say </output> this") == ["say ‹/output> this"]
    assert prompts(
        messages=[{"role": "user", "content": [{"type": "text", "text": "in parts"}]}]
    ) == ["in parts"]
    assert server.asks[-1].body["temperature"] == 1.0
    sent = len(server.asks)
    assert prompts("say </output> this") == ["say ‹/output> this"]  # from the cache
    assert len(server.asks) == sent
    prompts.copy(rollout_id=8)("say </output> this")  # another draw
    assert len(server.asks) == sent + 1
    assert server.asks[-1].body["max_tokens"] == dspy_model.PROPOSAL_TOKENS


def test_a_program_differs_from_its_judge_in_instructions_alone(
    model: LanguageModel,
) -> None:
    one = critic(model)
    (name,) = (name for name, _ in one.named_predictors())
    made = instructed(one, {name: MARKER})
    assert instructions(made) == MARKER != instructions(one)
    assert instructions(instructed(one, {"another": MARKER})) == instructions(one)


def test_what_breaks_inside_dspy_is_said_and_what_was_found_is_kept(
    says: Any,
    model: LanguageModel,
    labels: Labels,
    human: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says(lambda ask: human[ask.mark] if MARKER in ask.system else guess(ask))
    real = GEPASearch._propose

    def breaks(self: Any, *given: Any) -> None:
        real(self, *given)
        raise RuntimeError("something\nnew in DSPy")

    monkeypatch.setattr(GEPASearch, "_propose", breaks)
    made = GEPASearch(candidates=8)
    made.compile(critic(model), trainset=examples_of(labels))
    assert made.record is not None
    assert made.record.reason is not None
    assert (
        f"{made.name} could not go on (RuntimeError: something new in DSPy)"
        in made.record.reason
    )
    assert MARKER in str(made.record.selected.form)


def test_options_that_an_optimizer_of_dspy_refuses_are_an_error(
    says: Any, model: LanguageModel, labels: Labels
) -> None:
    says(guess)
    wrong = search_through("dspy:MIPROv2")(candidates=2, auto="heavyy")
    with pytest.raises(
        OptionError, match=r"dspy:MIPROv2 does not start with auto=heavyy: ValueError"
    ):
        wrong.compile(critic(model), trainset=examples_of(labels))
