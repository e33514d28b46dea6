"""Every evaluator is a DSPy module: called, traced, configured, copied, saved and loaded as DSPy's own are."""

import asyncio
import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.clients.base_lm import GLOBAL_HISTORY
from dspy.utils import DummyLM
from dspy.utils.callback import BaseCallback
from parrot import Forward

import judgesmith as js
from judgesmith.errors import ArtifactError, ModelError, OptionError
from judgesmith.programs.active_critic.scoring import MultiCriteriaScorer, OverallScorer
from judgesmith.programs.active_critic.task import Labelled, TaskInference
from judgesmith.programs.comparing.comparison import PairwiseComparer
from judgesmith.programs.comparing.synthesis import ReferenceWriter, Target
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.openlgauge.annotation import (
    AnnotationLayout,
    Annotator,
    Focus,
    Supervisor,
)
from judgesmith.programs.outcome import Calibration, Decision, Sureness
from judgesmith.signatures.values import Criterion, ErrorSpan, Scale
from judgesmith.testing.scripted import MakeScripted

CRITERIA = (
    Criterion("Clarity", "It is easy to follow."),
    Criterion("Truth", "It is true."),
)
LINES = "Clarity: Short words. Score: 80\nTruth: One slip. Score: 60"
OVERALL = "Explanation: A date is wrong; correct it.\nScore: 70"
ANNOTATION = 'Error 1\nLocation: "wrong"\nExplanation: It is wrong.\nSeverity: 3\n\nOverall: Fair\nReason: One error.'


def answers(request: Any) -> str:
    """What a model says to any prompt of these modules."""
    said = request.messages[0]["content"]
    for words, answer in (
        ("make one list out of theirs", ANNOTATION.split("\n\nOverall")[0]),
        ("errors of one kind", ANNOTATION),
        ("compare two outputs", "Better"),
        (
            "outputs of a wanted quality",
            f"A text number {len(request.messages[-1]['content'])}.",
        ),
        ("Take each criterion by itself", LINES),
        ("goes about judging", "1. Read it.\n2. Weigh it."),
        ("Find out what is going on", "The outputs are summaries."),
        ("Name the task", "Summaries of the news are judged."),
        (
            "about ten qualities",
            '{"criteria": [{"name": "Truth", "definition": "It says what the source says."}]}',
        ),
        ("step by step", "Score: 4"),
    ):
        if words in said:
            return answer
    return OVERALL


class Heard(BaseCallback):
    """The tree of calls, as callbacks tell it: (kind, class) by call, children after their parent."""

    def __init__(self) -> None:
        self.tree: list[str] = []
        self.depth = 0

    def _start(self, what: str) -> None:
        self.tree.append("  " * self.depth + what)
        self.depth += 1

    def _end(self, **_: Any) -> None:
        self.depth -= 1

    on_module_end = on_lm_end = on_adapter_format_end = on_adapter_parse_end = _end

    def on_module_start(
        self, call_id: str, instance: Any, inputs: dict[str, Any]
    ) -> None:
        self._start(type(instance).__name__)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        assert isinstance(inputs["messages"], list)
        self._start(f"lm {instance.model}")

    def on_adapter_format_start(
        self, call_id: str, instance: Any, inputs: dict[str, Any]
    ) -> None:
        self._start("format")

    def on_adapter_parse_start(
        self, call_id: str, instance: Any, inputs: dict[str, Any]
    ) -> None:
        self._start("parse")


@pytest.fixture
def lm(scripted: MakeScripted) -> Any:
    return scripted(answers)[0]


def fine(**given: Any) -> js.Judge:
    method = js.ActiveCritic(
        "fine",
        task="Summaries are judged.",
        criteria=CRITERIA,
        explain="before",
        reading="said",
    )
    return js.Judge(method, **given)


# Called


def calls() -> Iterator[Any]:
    text = {"source": "A source.", "output": "A wrong text."}
    yield pytest.param(
        lambda: MultiCriteriaScorer("before", "said"),
        text | {"criteria": CRITERIA},
        id="McS-E",
    )
    yield pytest.param(lambda: OverallScorer("before", "said"), text, id="OS-E")
    yield pytest.param(
        lambda: Annotator(AnnotationLayout()),
        text | {"focus": Focus("accuracy", "It is right.")},
        id="annotator",
    )
    reported = {"one": (ErrorSpan("wrong", "It is wrong.", 3.0, 2, 7, "exact"),)}
    yield pytest.param(
        Supervisor, {"output": "A wrong text.", "reported": reported}, id="supervisor"
    )
    yield pytest.param(
        PairwiseComparer, text | {"other": "Another.", "name": "fluency"}, id="comparer"
    )
    yield pytest.param(
        ReferenceWriter,
        {"source": "A source.", "target": Target(levels=2)},
        id="writer",
    )
    rows = [Labelled("A source.", f"Output {i}.", 10.0 * i) for i in range(5)]
    yield pytest.param(TaskInference, {"examples": rows}, id="task inference")
    geval = js.GEval("summarization/coherence")
    yield pytest.param(
        lambda: geval.planner,
        {"task": "Summaries.", "criteria": CRITERIA[:1]},
        id="G-Eval's planner",
    )
    yield pytest.param(
        lambda: geval.scorer, text | {"aspect": "Clarity"}, id="G-Eval's scorer"
    )


class Parent(dspy.Module):  # type: ignore[misc]
    def __init__(self, inner: dspy.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, **inputs: Any) -> dspy.Prediction:
        return self.inner(**inputs)


@pytest.mark.parametrize(("make", "given"), list(calls()))
def test_every_evaluator_is_called_alone_and_asynchronously_and_inside_a_parent(
    make: Any, given: Any, lm: Any
) -> None:
    with dspy.context(lm=lm):
        alone = make()(**given)
        assert isinstance(alone, dspy.Prediction)
        assert len(alone) > 0
        assert asyncio.run(make().acall(**given)).toDict() == alone.toDict()
        heard = Heard()
        with dspy.context(callbacks=[heard]):
            assert Parent(make())(**given).toDict() == alone.toDict()
    assert heard.tree[0] == "Parent"
    assert any(line.strip().startswith("lm test/model") for line in heard.tree)
    assert any(line.strip() == "parse" for line in heard.tree)


def test_without_a_model_an_evaluator_says_what_to_do() -> None:
    with pytest.raises(ModelError, match="lm="):
        OverallScorer("none", "said")(output="o")
    with pytest.raises(OptionError, match="criteria="):
        MultiCriteriaScorer("none", "said")(output="o")


# Traced

CALL = ["    JudgePredict", "      format", "      lm test/model", "      parse"]
TREE = ["Judge", "  MultiCriteriaScorer", *CALL, "  OverallScorer", *CALL]


def test_callbacks_show_the_tree_of_a_judge(lm: Any) -> None:
    judge, heard = fine(lm=lm), Heard()
    with dspy.context(callbacks=[heard]):
        judge.score("A source.", "An output.")
        assert heard.tree == TREE
        heard.tree.clear()
        list(
            judge.score_many(
                [{"source": "s", "output": f"o{i}"} for i in range(2)], concurrency=1
            )
        )
        assert heard.tree == TREE + TREE
        heard.tree.clear()
        judge(source="s", output="o")
        assert heard.tree == TREE


def test_callbacks_on_one_module_and_on_the_model_alone(lm: Any) -> None:
    judge, heard = fine(lm=lm), Heard()
    judge.method.overall_scorer.callbacks = [heard]
    judge.score("s", "o")
    assert heard.tree == ["OverallScorer"]
    other = Heard()
    lm.dspy.callbacks = [other]
    judge.score("s", "o")
    assert other.tree == ["lm test/model"] * 2


def test_the_history_of_modules_the_model_and_dspy_holds_the_calls_but_no_probe(
    lm: Any,
) -> None:
    judge = fine(lm=lm)
    judge.score("A source.", "An output.")
    assert [
        len(h)
        for h in (judge.history, judge.method.overall_scorer.history, lm.dspy.history)
    ] == [2, 1, 2]
    assert GLOBAL_HISTORY[-2:] == lm.dspy.history
    entry = judge.method.overall_scorer.predict.history[0]
    assert entry["outputs"] == [OVERALL]
    assert entry["model"] == "test/model"
    assert "An output." in entry["messages"][-1]["content"]
    assert entry["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
    }
    assert judge.deepcopy().history == []
    with dspy.context(disable_history=True):
        judge.score("A source.", "Another output.")
    assert len(judge.history) == 2


def test_what_stands_in_a_history_is_no_part_of_the_judge(lm: Any) -> None:
    judge = fine(lm=lm)
    names = [name for name, _ in judge.named_parameters()]
    judge.history.append(
        dspy.Predict("a -> b")
    )  # DSPy's own walk would take it for one of the judge's
    judge.method.overall_scorer.history.append(dspy.Predict("a -> b"))
    assert [name for name, _ in judge.named_parameters()] == names
    assert len(judge.predictors()) == 2


def test_rows_scored_in_bulk_are_in_no_history_and_callbacks_and_usage_see_them(
    lm: Any,
) -> None:
    judge, heard = (
        js.Judge(js.ActiveCritic("vanilla", explain="none", reading="said"), lm=lm),
        Heard(),
    )
    before = list(GLOBAL_HISTORY)
    for _ in judge.score_many([{"output": f"o{i}"} for i in range(3)], progress=False):
        pass
    assert (judge.history, lm.dspy.history, GLOBAL_HISTORY) == ([], [], before)
    with dspy.context(callbacks=[heard]), dspy.track_usage() as used:
        list(judge.score_many([{"output": f"p{i}"} for i in range(3)], progress=False))
    assert [name.strip() for name in heard.tree].count(
        "Judge"
    ) == 3  # rows are under way together
    assert used.get_total_tokens()["test/model"]["total_tokens"] == 45


# Models


def test_a_model_with_forward_alone_works_and_is_not_probed() -> None:
    mine, judge = Forward(lambda _: OVERALL), js.Judge(js.ActiveCritic())
    with dspy.context(lm=mine):
        assert judge.score("s", "o").score == 70.0
    assert len(mine.history) == len(judge.history) == 1


def test_a_dummy_gives_the_lines_of_criteria() -> None:
    dummy = DummyLM(
        [{"criteria_scores": LINES}, {"explanation": "Fine.", "score": "70"}]
    )
    with dspy.context(lm=dummy):
        verdict = fine().score("s", "o")
    assert (verdict.score, {name: c.score for name, c in verdict.criteria.items()}) == (
        70.0,
        {"Clarity": 80.0, "Truth": 60.0},
    )


def test_the_model_that_was_set_is_the_one_that_is_got(scripted: MakeScripted) -> None:
    judge, dummy = js.Judge(js.ActiveCritic()), DummyLM([{"score": "80"}])
    assert judge.get_lm() is None
    judge.set_lm(dummy)
    assert judge.get_lm() is dummy
    assert judge.deepcopy().get_lm() is dummy
    own, _ = scripted(answers, name="openai/one")
    judge.set_lm(own)
    assert isinstance(judge.get_lm(), dspy.BaseLM)
    assert judge.get_lm().model == "openai/one"
    assert js.language_model(judge.get_lm()) is own
    parent = Parent(judge)
    parent.set_lm(dummy)
    assert parent.get_lm() is dummy
    assert judge.get_lm() is dummy
    assert parent.inner.score("s", "o").score == 80.0


def test_a_model_by_name_serves_stock_modules(scripted: MakeScripted) -> None:
    own, transport = scripted(
        lambda _: "[[ ## answer ## ]]\nBlue.\n\n[[ ## completed ## ]]"
    )
    with dspy.context(lm=own.dspy):
        assert (
            dspy.Predict("question -> answer")(question="Which colour?").answer
            == "Blue."
        )
    assert own.dspy is own
    assert "Which colour?" in transport.requests[0].messages[-1]["content"]


def test_an_adapter_that_is_set_changes_no_prompt_and_no_reading(
    scripted: MakeScripted,
) -> None:
    lm, transport = scripted(answers)
    judge = fine(lm=lm)
    plain = judge.score("s", "o")
    with dspy.context(adapter=dspy.JSONAdapter()):
        assert judge.score("s", "o").score == plain.score
    prompts = [r.messages for r in transport.requests]
    assert prompts[:2] == prompts[2:]


# Saved and loaded


def compiled(lm: Any = None) -> js.Judge:
    judge = fine(lm=lm, scale=Scale(1, 5))
    judge.outcome = replace(
        judge.outcome, calibration=Calibration((0.0, 50.0, 100.0), (1.0, 2.0, 5.0))
    )
    for predictor in judge.method.taught():
        predictor.demos = [
            {
                "source": "A source.",
                "output": "An output.",
                "group": "g",
                "score": 30.0,
                "explanation": "So.",
            }
            | {"augmented": False, "gold": True, "annotation": ""}
        ]
    return judge


def test_a_judge_loads_its_own_file_in_place(lm: Any, tmp_path: Path) -> None:
    judge = compiled(lm)
    judge.save(tmp_path / "judge.json")
    fresh = js.Judge(js.ActiveCritic(), lm=lm)  # another variant: the file says which
    heard = Heard()
    fresh.callbacks = [heard]
    fresh.load(tmp_path / "judge.json")
    assert fresh.save(tmp_path / "again.json") is None
    one, two = (
        json.loads((tmp_path / name).read_text())
        for name in ("judge.json", "again.json")
    )
    assert one == two
    assert repr(fresh.score("s", "o").criteria) == repr(judge.score("s", "o").criteria)
    assert (
        fresh.score("s", "o").score == judge.score("s", "o").score == pytest.approx(3.2)
    )  # 2 + 3·(70 − 50)/50
    assert fresh.get_lm() is judge.get_lm()
    assert heard.tree[0] == "Judge"
    with pytest.raises(ArtifactError, match=r"active-critic judge; js.load"):
        js.Judge(js.DirectScorer("fluency")).load(tmp_path / "judge.json")


def test_what_is_pickled_is_refused_by_name_with_what_to_do(
    tmp_path: Path, lm: Any
) -> None:
    judge = compiled()
    for refused in (
        lambda: judge.save(tmp_path / "folder", save_program=True),
        lambda: judge.save(tmp_path / "judge.pkl"),
        lambda: judge.load(tmp_path / "judge.pkl", allow_pickle=True),
    ):
        with pytest.raises(ArtifactError, match=r"never pickled.*js\.load"):
            refused()
    assert list(tmp_path.iterdir()) == []
    import pickle

    with pytest.raises(ModelError, match=r"save\('judge\.json'\)"):
        pickle.dumps(compiled(lm))


def test_the_state_goes_through_dump_and_load_and_a_parents_file(
    tmp_path: Path, lm: Any
) -> None:
    program = Parent(compiled())
    decision = Decision(("fail", "pass"), (55.0,), binary=True)
    sureness = Sureness((0.0, 100.0), (0.5, 0.2), (0.9,), (None,), 40, 20)
    program.inner.outcome = replace(
        program.inner.outcome, decision=decision, sureness=sureness
    )
    state = json.loads(json.dumps(program.inner.dump_state()))
    fresh = js.Judge(js.ActiveCritic("fine", explain="before", reading="said"))
    fresh.load_state(state)
    program.save(tmp_path / "program.json")
    parent = Parent(fine())
    parent.load(tmp_path / "program.json")
    for judge in (fresh, parent.inner):
        judge.set_lm(lm)
        assert judge.scale == Scale(1, 5)
        assert judge.outcome.calibration == compiled().outcome.calibration
        assert (
            judge.method.knowledge.description,
            judge.method.knowledge.criteria,
        ) == (
            "Summaries are judged.",
            CRITERIA,
        )
        assert (judge.outcome.decision, judge.outcome.sureness) == (decision, sureness)
        assert (
            judge.method.overall_scorer.predict.demos
            == compiled().method.overall_scorer.predict.demos
        )
        assert judge.score("s", "o").score == compiled(lm).score("s", "o").score
        judge.load_state(
            compiled().dump_state()
        )  # of a judge that decides nothing and is not sure
        assert (judge.outcome.decision, judge.outcome.sureness) == (None, None)


def test_a_state_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    state = fine().dump_state()
    with pytest.raises((ArtifactError, KeyError)):
        js.Judge(js.DirectScorer("fluency")).load_state(state)
    forged = json.loads(json.dumps(state))
    forged["method.overall_scorer.predict"]["lm"] = {
        "model": "openai/x",
        "api_base": "http://elsewhere",
    }
    with pytest.raises(ArtifactError, match="not a state"):
        fine().load_state(forged)
    other = json.loads(json.dumps(state))
    other["settled"]["program"]["options"]["variant"] = "coarse"
    with pytest.raises(ArtifactError, match="variant='coarse'"):
        fine().load_state(other)


def test_our_models_use_nothing_that_dspy_deprecates(server: Any) -> None:
    """DSPy 3.5 has no `BaseLM.forward` and no messages as dictionaries from outside its adapters."""
    lm = language_model("openai/fake", connection=Connection(server.base))
    judge = js.Judge(js.DirectScorer("fluency"), lm=lm)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        verdict = judge.score("Where?", "r004 of the notice.")
    assert verdict.failure is None
