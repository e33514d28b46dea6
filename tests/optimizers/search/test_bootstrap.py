"""Bootstrapped demonstrations: they exist in the search of every method that can have them, and are whole."""

import random
import re
from typing import Any

import pytest

import judgesmith as js
from judgesmith.datasets.records import Labels
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.options import CompileOptions, Compiler
from judgesmith.optimizers.planning import plan as planned
from judgesmith.optimizers.search.few_shot import NoSearch
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.models.transport import Request
from judgesmith.programs.prompting.layouts import CUT, Explain
from judgesmith.signatures.values import Criterion
from judgesmith.testing.scripted import MakeScripted

CRITERIA = (
    Criterion("Clarity", "It is easy to follow."),
    Criterion("Truth", "It is true."),
)
WHY = "The date is wrong. It should be named."


@pytest.fixture
def labels(labels_of: Any) -> Labels:
    draw = random.Random(3)
    return labels_of(8, 3, lambda n: draw.randint(0, 100))


def answers(request: Request) -> Reply:
    """A model that stops where it is told to stop, by its limit of tokens."""
    said, system = number_or_none(request), request.messages[0]["content"]
    if "criterion by itself" in system:
        lines = [f"{c.name}: Score: {said}" for c in CRITERIA]
        text = "\n".join(
            [*lines, *(f"Why {c.name}: {WHY.split('. ')[0]}." for c in CRITERIA)]
        )
        short = "\n".join(lines)
    elif "errors of one kind" in system:
        text = short = (
            f'Error 1\nLocation: "Summary"\nExplanation: It is short.\nSeverity: 2\n\nOverall: '
            f"{('Unacceptable', 'Poor', 'Fair', 'Good')[(said or 0) // 26]}\nReason: It is short."
        )
    elif "compare two outputs" in system:
        text = short = "Better" if (said or 0) > 50 else "Worse"
    elif "outputs of a wanted quality" in system:
        words = sum(map(ord, request.messages[-1]["content"])) % 9973
        text = short = f"The hall is closed for number {words} of reasons."
    elif "goes about judging" in system:
        text = short = "1. Read it.\n2. Weigh it."
    else:
        text, short = f"Score: {said}\nExplanation: {WHY}", f"Score: {said}"
        if "Explanation:" not in system:
            text = short
        if "a digit from 1" in system:
            text = short = f"Score: {1 + (said or 0) * 4 // 100}"
    whole = request.max_tokens >= 100
    return Reply(
        text if whole else short,
        None,
        10,
        5,
        finish="stop" if whole or text == short else "length",
    )


def number_or_none(request: Request) -> int | None:
    marks = re.findall(r"\br(\d{3})\b", request.messages[-1]["content"])
    return int(marks[-1]) * 37 % 101 if marks else None


def judges() -> list[Any]:
    def critic(variant: Any, explain: Explain) -> Any:
        method = {
            "explain": explain,
            "reading": "said",
            "task": "Notices.",
            "criteria": CRITERIA,
        }
        return lambda: js.Judge(js.ActiveCritic(variant, **method))

    return [
        pytest.param(critic("coarse", "after"), id="coarse, after"),
        pytest.param(critic("coarse", "before"), id="coarse, before"),
        pytest.param(critic("fine", "after"), id="fine, after"),
        pytest.param(
            lambda: js.Judge(js.ActiveCritic("vanilla", reading="said")), id="vanilla"
        ),
        pytest.param(
            lambda: js.Judge(
                js.DirectScorer("fluency", criteria=CRITERIA[:1], reading="said")
            ),
            id="direct",
        ),
        pytest.param(
            lambda: js.Judge(js.GEval("fluency", criteria=CRITERIA[:1], samples=1)),
            id="g-eval",
        ),
        pytest.param(
            lambda: js.Judge(js.OpeNLGauge("summarization/coherence", reading="said")),
            id="openlgauge",
        ),
        pytest.param(
            lambda: js.Judge(
                js.PairwiseDirectScorer("summarization/coherence", levels=2, samples=1)
            ),
            id="pairwise-direct",
        ),
    ]


@pytest.mark.parametrize("make", judges())
def test_the_bootstrapped_candidate_exists_and_its_demonstrations_are_whole(
    make: Any, scripted: MakeScripted, labels: Labels
) -> None:
    lm, _ = scripted(answers)
    student = make()
    student.set_lm(lm)
    search = js.CorrelationRandomSearch(candidates=2, max_demos=3, sure=0.0)
    search.compile(student, trainset=examples_of(labels))
    assert search.record is not None
    (found,) = (t for t in search.record.tried if t.candidate.name == "bootstrapped")
    assert found.candidate.kind in ("gold", "predicted")
    assert found.candidate.demos == 3
    for predictor in found.program.method.taught():
        assert len(predictor.demos) == 3
        assert all(demo["augmented"] for demo in predictor.demos)
        if getattr(student, "explain", "") in ("before", "after"):
            assert {demo["explanation"] for demo in predictor.demos} == {WHY}
    if getattr(student, "variant", "") == "fine":
        (said, *_) = found.program.method.criteria_scorer.predict.demos
        assert {c.explanation for c in said["criteria_scores"].values()} == {
            "The date is wrong."
        }


def test_the_plan_counts_the_teachers_pass_and_says_what_cannot_be_bootstrapped(
    labels: Labels,
) -> None:
    search = js.CorrelationRandomSearch(candidates=2, sizes=[])
    compiler = Compiler(search, CompileOptions(cv=4))
    before, after = (
        planned(
            compiler,
            js.Judge(
                js.ActiveCritic(
                    "coarse", explain=e, reading="said", task="N.", criteria=CRITERIA
                )
            ),
            labels,
            None,
        )
        for e in ("before", "after")
    )
    # 24 rows in four folds: 4·18 training rows and all 24 once more, each judged once more.
    assert after.calls - before.calls == 4 * 18 + 24
    assert before.notes == after.notes == ()
    ranking = js.Judge(PairS("summarization/coherence"))
    plan = planned(compiler, ranking, labels, None)
    assert "no bootstrapped demonstrations: a rank" in plan.notes[0]
    assert planned(Compiler(NoSearch()), ranking, labels, None).notes == ()


def test_an_explanation_that_the_limit_ended_is_shown_up_to_its_last_sentence(
    scripted: MakeScripted,
) -> None:
    def cut(text: str) -> Any:
        lm, _ = scripted(lambda _: Reply(text, None, 1, 1, finish="length"))
        return js.Judge(
            js.ActiveCritic("coarse", explain="after", reading="said"), lm=lm
        ).score("s", "o")

    verdict = cut("Score: 40\nExplanation: The date is wrong. It should be na")
    assert (verdict.explanation, CUT in verdict.notes) == ("The date is wrong.", True)
    assert cut("Score: 40\nExplanation: The date is wr").explanation == ""
