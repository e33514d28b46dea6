"""DSPy's optimizers on the evaluators alone, on every judge and on a parent program; the table of programs/DSPY.md."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from every_optimizer import (
    EVALUATORS,
    METHOD,
    OPTIMIZERS,
    PAGE,
    SHOWING,
    SUBJECTS,
    found,
    quiet,
    with_table,
)
from judges import PROMPTED

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.optimizers.search.through_dspy import installed
from judgesmith.programs.active_critic.scoring import OverallScorer
from judgesmith.programs.comparing.comparison import PairwiseComparer
from judgesmith.programs.prompting.saved import signature_hash
from judgesmith.testing.scripted import MakeScripted

#: What has no merged list in its rows has nothing to show of them.
UNLABELLED = {("supervisor", "LabeledFewShot"), ("supervisor", "Ensemble")}
#: What cannot work, and the words of the reason.
REFUSED = {
    "BootstrapFinetune": "`judgesmith distill`",
    "GRPO": "`judgesmith distill`",
    "ReAnchor": "decision output",
    "AvatarOptimizer": "TypedPredictor",  # DSPy has it no more
    "SignatureOptimizer": "COPRO",  # which it calls with an argument too many
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_compiled_is_called_saved_loaded_and_gives_the_same(
    subject: str, optimizer: str
) -> None:
    cell = found(subject, optimizer)
    if optimizer in REFUSED:
        assert REFUSED[optimizer] in cell.problem
        assert "\n" not in cell.problem
        return
    assert not cell.problem
    assert cell.saved == (optimizer not in ("KNNFewShot", "Ensemble"))
    if (subject, optimizer) == ("supervisor", "BootstrapFewShotWithOptuna"):
        return  # it chooses one row, which may have nothing to show
    taught = subject != "pairs" and (subject, optimizer) not in UNLABELLED
    shows = 1 if optimizer == "BootstrapFewShotWithOptuna" else 2
    assert (cell.shown >= shows) == (taught and optimizer in SHOWING)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", PROMPTED)
def test_a_method_alone_is_compiled_as_in_a_judge(kind: str, optimizer: str) -> None:
    assert str(found(f"{METHOD}{kind}", optimizer)) == str(found(kind, optimizer))


def test_every_optimizer_of_this_dspy_is_in_the_table() -> None:
    assert set(OPTIMIZERS) == set(installed())


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text


ROW = {"source": "A notice.", "output": "A text.", "rating": 4}


@pytest.mark.parametrize(
    "make",
    [
        lambda: OverallScorer("before", "said"),
        lambda: js.ActiveCritic("coarse", explain="before", reading="said"),
    ],
)
@pytest.mark.parametrize(
    "optimizer",
    [
        dspy.LabeledFewShot(k=1),
        dspy.BootstrapFewShotWithRandomSearch(
            lambda *_: 1.0, num_candidate_programs=1, num_threads=1
        ),
    ],
)
def test_a_rating_on_an_unknown_scale_is_no_percent(
    make: Any, optimizer: Any, scripted: MakeScripted
) -> None:
    lm, transport = scripted(lambda _: "Explanation: It is fine.\nScore: 70")
    shown = [dspy.Example(**ROW).with_inputs("source", "output")] * 2
    with dspy.context(lm=lm):
        module = make()
        # Said by `compile`, and not by a call within it, which DSPy would only count.
        with pytest.raises(OptionError, match="human score 4 of a row: on which scale"):
            optimizer.compile(module, trainset=shown)
        module.scale = js.Scale(1, 5)
        made = dspy.LabeledFewShot(k=1).compile(module, trainset=shown)
        assert made(source="Another notice.", output="Another text.").score == 70
        assert transport.requests[-1].messages[2]["content"] == "Score: 75"
        with pytest.raises(OptionError, match=r"it is 1\.\.5 now"):
            made.predictors()[0].demos = [dspy.Example(**ROW | {"rating": 9})]
        # In a program of a user's own it is said at the call.
        parent = dspy.ChainOfThought("a -> b")
        parent.inner = make()
        parent.inner.predictors()[0].demos = [dspy.Example(**ROW)]
        with pytest.raises(OptionError, match="on which scale"):
            parent.inner(source="Another notice.", output="Another text.")


@pytest.mark.parametrize("subject", EVALUATORS)
def test_a_stock_predict_loads_the_file_of_an_evaluator(
    subject: str, tmp_path: Path
) -> None:
    case = EVALUATORS[subject]
    made = case.made()
    with quiet():
        made = dspy.LabeledFewShot(k=2).compile(made, trainset=case.rows)
    made.predictors()[0].signature = made.predictors()[0].signature.with_instructions(
        "Other words."
    )
    made.save(tmp_path / "module.json")
    state = json.loads((tmp_path / "module.json").read_text(encoding="utf-8"))
    for name, predictor in made.named_predictors():
        if name not in state:  # a judge's, in the parent program
            continue
        stock = dspy.Predict(predictor.signature.with_instructions("None yet."))
        stock.load_state(state[name])
        assert stock.signature.instructions == predictor.signature.instructions
        assert stock.fields == {}
        assert len(stock.demos) == len(predictor.demos)
        for demo, own in zip(stock.demos, predictor.demos, strict=True):
            fields = [*predictor.signature.fields]
            assert {n for n in fields if isinstance(own.get(n), str) and own[n]} <= {
                *demo
            }


def test_a_state_that_was_saved_before_is_read(tmp_path: Path) -> None:
    old = {
        "instructions": "Other words.",
        "demos": [{"output": "A text.", "score": 75.0}],
        "fields": signature_hash(OverallScorer("none", "said").predict.signature),
    }
    scorer = OverallScorer("none", "said")
    scorer.predict.load_state(old)
    assert scorer.predict.signature.instructions == "Other words."
    assert scorer.predict.demos[0]["turn"] is False
    with pytest.raises(ArtifactError, match="other prompt fields"):
        scorer.predict.load_state(old | {"fields": "another"})


@pytest.mark.parametrize(
    ("form", "order", "word"),
    [
        ("better-worse", "other-first", "Better"),
        ("better-worse", "output-first", "Worse"),
        ("yes-no", "other-first", "Yes"),
        ("yes-no", "output-first", "No"),
        ("yes-no-first", "other-first", "No"),
        ("yes-no-first", "output-first", "Yes"),
    ],
)
def test_a_labelled_pair_is_shown_as_a_comparison_in_the_asked_order(
    form: Any, order: Any, word: str, scripted: MakeScripted
) -> None:
    lm, transport = scripted(lambda _: word)
    pair = dspy.Example(
        source="A notice.",
        output="The good text.",
        other="The bad text.",
        winner="output",
    )
    comparer = dspy.LabeledFewShot(k=1).compile(
        PairwiseComparer(form, order=order), trainset=[pair]
    )
    with dspy.context(lm=lm):
        compared = comparer(source="S.", output="One text.", other="Two texts.")
        assert compared.word == "better"
        _, asked, answered, _ = transport.requests[-1].messages
        assert answered["content"] == word
        first = "The bad text." if order == "other-first" else "The good text."
        assert asked["content"].index(first) < asked["content"].index("Output 2")
        # a pair that holds a judged text is not shown
        comparer(source="S.", output="One text.", other="The good text.")
        assert len(transport.requests[-1].messages) == 2
        with pytest.raises(OptionError, match="say better, worse or similar"):
            comparer.predict.demos = [pair.copy(winner="the first")]


def test_an_evaluator_whose_forward_was_replaced_is_not_saved(tmp_path: Any) -> None:
    made = OverallScorer("before", "said")
    made.forward = lambda **_: None
    with pytest.raises(ArtifactError, match="KNNFewShot"):
        made.save(tmp_path / "module.json")


def test_our_searches_compile_judges_and_say_so() -> None:
    with pytest.raises(
        OptionError,
        match=r"LabeledFewShot compiles judges, and this is a OverallScorer; DSPy's own",
    ):
        js.LabeledFewShot().compile(OverallScorer("before", "said"), trainset=[])
