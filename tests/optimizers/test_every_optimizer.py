"""DSPy's optimizers on the evaluators alone, on every judge and on a parent program; the table of programs/DSPY.md."""

from typing import Any

import dspy
import pytest
from every_optimizer import OPTIMIZERS, PAGE, SHOWING, SUBJECTS, found, with_table

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs.active_critic.scoring import OverallScorer
from judgesmith.programs.comparing.comparison import PairwiseComparer
from judgesmith.testing.scripted import MakeScripted

#: What has no merged list in its rows has nothing to show of them.
UNLABELLED = {("supervisor", "LabeledFewShot"), ("supervisor", "Ensemble")}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_compiled_is_called_saved_loaded_and_gives_the_same(
    subject: str, optimizer: str
) -> None:
    cell = found(subject, optimizer)
    assert bool(cell.problem) == (optimizer == "BootstrapFinetune")
    if cell.problem and subject != "task inference":
        assert "`judgesmith distill`" in cell.problem
        assert "\n" not in cell.problem
    assert cell.saved == (optimizer not in ("KNNFewShot", "Ensemble"))
    taught = subject != "pairs" and (subject, optimizer) not in UNLABELLED
    assert (cell.shown > 1) == (taught and optimizer in SHOWING)


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text


ROW = {"source": "A notice.", "output": "A text.", "rating": 4}


def test_a_rating_on_an_unknown_scale_is_no_percent(scripted: MakeScripted) -> None:
    lm, transport = scripted(lambda _: "Explanation: It is fine.\nScore: 70")
    shown = [dspy.Example(**ROW).with_inputs("source", "output")]
    made = dspy.LabeledFewShot(k=1).compile(
        OverallScorer("before", "said"), trainset=shown
    )
    with dspy.context(lm=lm):
        with pytest.raises(OptionError, match="human score 4 of a row: on which scale"):
            made(source="Another notice.", output="Another text.")
        made.scale = js.Scale(1, 5)
        made(source="Another notice.", output="Another text.")
        assert "Score: 75" in transport.requests[-1].messages[0]["content"]
        made.predict.demos, made.scale = (
            [dspy.Example(**ROW | {"rating": 9})],
            js.Scale(1, 5),
        )
        with pytest.raises(OptionError, match=r"it is 1\.\.5 now"):
            made(source="Another notice.", output="Another text.")


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
        comparer.predict.demos = [pair.copy(winner="the first")]
        with pytest.raises(OptionError, match="say better, worse or similar"):
            comparer(source="S.", output="One text.", other="Two texts.")


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
