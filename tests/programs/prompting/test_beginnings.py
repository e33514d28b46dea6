"""What prompts of many rows share is written once, and never stale."""

from collections.abc import Callable, Mapping
from typing import Any

import dspy
import pytest

from judgesmith.programs.models.as_dspy import Quiet, predictors_of
from judgesmith.programs.prompting.layouts import CriteriaLayout, OverallLayout
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.signatures.judging import ScoreCriteria, ScoreOverall
from judgesmith.signatures.values import Criterion, CriterionScore

CRITERIA = (Criterion("tone", "it is polite"), Criterion("facts", "they are right"))


class Counting(CriteriaLayout):
    """A layout that counts how often its rules are written."""

    def __init__(self) -> None:
        super().__init__("before", "said")
        self.written = Count()

    def rules(self, inputs: Mapping[str, Any]) -> str:
        self.written.count += 1
        return super().rules(inputs)


class Count:
    """A count that is a value to a layout, whatever it has reached."""

    count = 0

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 1


def demo(text: str) -> dict[str, Any]:
    scores = {c.name: CriterionScore(75.0, f"{c.name} of {text}") for c in CRITERIA}
    return {
        "source": f"source of {text}",
        "output": f"output of {text}",
        "score": 75.0,
        "gold": True,
        "criteria_scores": scores,
    }


def asked(row: int, **more: Any) -> dict[str, Any]:
    texts = {"source": f"source {row}", "output": f"output {row}"}
    return {"task": "Replies.", "criteria": CRITERIA, **texts, **more}


def predict(layout: Any = None) -> JudgePredict:
    made = JudgePredict(ScoreCriteria, layout or CriteriaLayout("before", "said"))
    made.demos = [demo("one long text"), demo("quite another one")]
    return made


def test_the_rules_are_written_once_for_many_rows() -> None:
    layout = Counting()
    predictor = predict(layout)
    sent = [predictor.messages(asked(row)) for row in range(20)]
    assert layout.written.count == 1
    assert sent[3][-1]["content"].endswith("<output>\noutput 3\n</output>")
    for row, messages in enumerate(sent):
        demos = predictor.demos_for(asked(row))
        assert messages == layout.format(predictor.signature, demos, asked(row))


def instructed(predictor: JudgePredict) -> None:
    predictor.signature = predictor.signature.with_instructions("Look twice.")


def instructed_in_place(predictor: JudgePredict) -> None:
    predictor.signature = predictor.signature.with_instructions("Look once.")
    predictor.messages(asked(0))
    predictor.signature.__doc__ = "Look twice."


def rescored(predictor: JudgePredict) -> None:
    predictor.demos[1]["criteria_scores"]["tone"] = CriterionScore(0.0, "Look twice.")


def rewritten(predictor: JudgePredict) -> None:
    predictor.demos[0]["output"] = "Look twice."


def added(predictor: JudgePredict) -> None:
    predictor.demos.append(demo("Look twice."))


@pytest.mark.parametrize(
    "change", [instructed, instructed_in_place, rescored, rewritten, added]
)
def test_what_changes_is_in_the_next_prompt(
    change: Callable[[JudgePredict], None],
) -> None:
    predictor = predict()
    before = predictor.messages(asked(0))
    change(predictor)
    after = predictor.messages(asked(0))
    assert "Look twice." not in str(before)
    assert "Look twice." in str(after)


def test_other_inputs_give_another_beginning() -> None:
    predictor = predict()
    predictor.messages(asked(0))
    other = (Criterion("style", "it reads well"),)
    assert "style" in predictor.messages(asked(1, criteria=other))[0]["content"]
    assert "Mails." in predictor.messages(asked(1, task="Mails."))[0]["content"]
    assert "Replies." in predictor.messages(asked(1))[0]["content"]


def test_another_layout_gives_another_beginning() -> None:
    predictor = JudgePredict(ScoreOverall, OverallLayout("before", "said"))
    first = predictor.messages(asked(0))
    predictor.layout.explain = "none"
    second = predictor.messages(asked(0))
    assert "Explanation" in first[0]["content"]
    assert "Explanation" not in second[0]["content"]


def test_what_a_caller_does_to_messages_stays_with_it() -> None:
    predictor = predict()
    sent = predictor.messages(asked(0))
    sent[0]["content"] = "Something else."
    assert "Replies." in predictor.messages(asked(1))[0]["content"]


def test_a_copy_has_its_own_demonstrations() -> None:
    predictor = predict()
    predictor.messages(asked(0))
    copied = predictor.deepcopy()
    copied.demos = []
    assert len(copied.messages(asked(0))) == 2
    assert len(predictor.messages(asked(0))) == 6


class Tree(Quiet):
    """A module with predictors in each place where DSPy finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.own = predict()
        self.listed = [predict()]
        self.named = {"one": predict()}


def replaced(tree: Tree) -> None:
    tree.own = predict()


def extended(tree: Tree) -> None:
    tree.listed.append(predict())


def named(tree: Tree) -> None:
    tree.named["one"] = predict()


def nested(tree: Tree) -> None:
    tree.listed[0] = Tree()  # type: ignore[assignment]


@pytest.mark.parametrize("change", [replaced, extended, named, nested])
def test_predictors_are_those_that_a_module_has_now(
    change: Callable[[Tree], None],
) -> None:
    tree = Tree()
    assert predictors_of(tree) == tree.predictors() == predictors_of(tree)
    change(tree)
    assert predictors_of(tree) == tree.predictors()
    assert len(predictors_of(dspy.Predict("a -> b"))) == 1
