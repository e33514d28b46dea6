"""DSPy's own optimizers on every judge: what they make is called on rows, saved, loaded, and scores the same."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.teleprompt import COPRO, SIMBA, BetterTogether, KNNFewShot, MIPROv2
from judges import JUDGES, PROMPTED

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import load
from judgesmith.programs.pipeline import teach
from judgesmith.testing.judges import obliging
from judgesmith.testing.scripted import MakeScripted

ROWS = [
    dspy.Example(
        source=f"Notice {i}: the hall is {w}.",
        output=f"The hall is {w}, text {i}.",
        rating=1 + i * 2 % 5,
    ).with_inputs("source", "output")
    for i, w in enumerate(
        ("closed", "open", "painted", "flooded", "for rent", "too small")
    )
]
METRIC = js.Agreement("q", scale=(1, 5), close=0.0)
Compile = Callable[[Judge, Any], Any]


def mipro(judge: Judge, lm: Any) -> Any:
    search = MIPROv2(
        METRIC,
        prompt_model=lm,
        task_model=lm,
        auto=None,
        num_candidates=2,
        max_bootstrapped_demos=1,
        max_labeled_demos=1,
        num_threads=1,
    )
    return search.compile(
        judge, trainset=ROWS, valset=ROWS, num_trials=1, minibatch=False
    )


def gepa(judge: Judge, lm: Any) -> Any:
    search = dspy.GEPA(
        METRIC,
        max_metric_calls=20,
        reflection_minibatch_size=2,
        reflection_lm=lm,
        num_threads=1,
    )
    return search.compile(judge, trainset=ROWS, valset=ROWS)


def simba(judge: Judge, lm: Any) -> Any:
    search = SIMBA(
        metric=METRIC,
        bsize=3,
        num_candidates=2,
        max_steps=1,
        max_demos=1,
        prompt_model=lm,
        num_threads=1,
    )
    return search.compile(judge, trainset=ROWS, seed=0)


def copro(judge: Judge, lm: Any) -> Any:
    search = COPRO(prompt_model=lm, metric=METRIC, breadth=2, depth=1)
    return search.compile(
        judge, trainset=ROWS, eval_kwargs={"num_threads": 1, "display_progress": False}
    )


def together(judge: Judge, lm: Any) -> Any:
    half = dspy.BootstrapFewShot(METRIC, max_bootstrapped_demos=1, max_labeled_demos=1)
    judge.set_lm(lm)
    with dspy.context(experimental=True):
        return BetterTogether(METRIC, p=half).compile(
            judge, trainset=ROWS, valset=ROWS, strategy="p", optimizer_compile_args={}
        )


STOCK: dict[str, Compile] = {
    "LabeledFewShot": lambda judge, lm: dspy.LabeledFewShot(k=2).compile(
        judge, trainset=ROWS
    ),
    "BootstrapFewShot": lambda judge, lm: dspy.BootstrapFewShot(
        METRIC, max_bootstrapped_demos=2, max_labeled_demos=3
    ).compile(judge, trainset=ROWS),
    "BootstrapFewShotWithRandomSearch": lambda judge, lm: (
        dspy.BootstrapFewShotWithRandomSearch(
            METRIC,
            max_bootstrapped_demos=1,
            max_labeled_demos=2,
            num_candidate_programs=1,
            num_threads=1,
        ).compile(judge, trainset=ROWS)
    ),
    "MIPROv2": mipro,
    "GEPA": gepa,
    "SIMBA": simba,
    "COPRO": copro,
    "BetterTogether": together,
}


@pytest.fixture
def model(scripted: MakeScripted) -> Any:
    """Return a model that gives every judge the form of its answer, with its requests.

    Its score depends on the whole prompt.
    """
    oblige = obliging()

    def answer(request: Any) -> str:
        digit = (
            1
            + sum(sum(map(ord, message["content"])) for message in request.messages) % 5
        )
        return re.sub(r"(Score: )\d+", rf"\g<1>{digit}", oblige(request))

    return scripted(answer, grammar=True)


def scores(judge: Any) -> list[float]:
    return [judge(**row.inputs()).score for row in ROWS]


@pytest.mark.parametrize("optimizer", STOCK)
@pytest.mark.parametrize("kind", PROMPTED)
def test_a_judge_compiled_by_dspy_is_called_saved_and_loaded(
    kind: str, optimizer: str, model: Any, tmp_path: Path
) -> None:
    lm, transport = model
    judge = JUDGES[kind](lm=lm, scale=js.Scale(1, 5))
    assert (
        judge(question="q", answer="a").score == judge(source="q", output="a").score
        or kind == "pairs"
    )
    with dspy.context(lm=lm):
        made = STOCK[optimizer](judge, lm)
    assert type(made) is type(judge)
    transport.requests.clear()
    mine = scores(made)
    assert np.isfinite(mine).any() or kind == "pairs"
    for request in (
        transport.requests
    ):  # no row is judged with its own document among the demonstrations
        *before, last = (message["content"] for message in request.messages)
        own = re.findall(r"<output>\n(.*?text \d)\.", last)
        assert not any(text in content for text in own for content in before)
    made.save(tmp_path / "judge.json")
    np.testing.assert_equal(scores(load(tmp_path / "judge.json", lm=lm)), mine)
    for predictor in made.method.taught():
        assert optimizer != "LabeledFewShot" or len(predictor.demos) == 2
        for demo in predictor.demos:
            row = next(row for row in ROWS if row.output == demo["output"])
            assert demo["augmented"] or demo["score"] == 25 * (row.rating - 1)


def test_knn_is_called_and_what_a_file_cannot_hold_is_not_saved(
    model: Any, tmp_path: Path
) -> None:
    def places(texts: list[str]) -> Any:
        return np.array([[len(text), sum(map(ord, text))] for text in texts], float)

    judge = js.Judge(js.DirectScorer("fluency"), lm=model[0], scale=js.Scale(1, 5))
    with dspy.context(lm=model[0]):
        near = KNNFewShot(2, ROWS, dspy.Embedder(places), metric=METRIC).compile(judge)
        assert np.isfinite(scores(near)).all()
    with pytest.raises(ArtifactError, match="KNNFewShot"):
        near.save(tmp_path / "judge.json")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"rating": 7}, "7 of a row is not on the judge's scale 1..5"),
        ({"a": 1, "b": 2}, "no field is clearly the human score"),
    ],
)
def test_rows_that_no_prompt_can_show_are_refused(
    row: dict[str, Any], problem: str, model: Any
) -> None:
    judge = js.Judge(js.DirectScorer("fluency"), lm=model[0], scale=js.Scale(1, 5))
    shown = [
        dspy.Example(source="s", output="o", **row).with_inputs("source", "output")
    ]
    made = dspy.LabeledFewShot(k=1).compile(judge, trainset=shown)
    with pytest.raises(OptionError, match=problem):
        made.score("another", "text")


def test_a_text_that_another_document_has_too_is_no_leak(model: Any) -> None:
    judge = js.Judge(js.DirectScorer("fluency"), lm=model[0])
    for group in "gh":
        teach(
            judge.method,
            {
                "source": f"Source {group}.",
                "output": "The same answer as elsewhere.",
                "group": group,
                "score": 50,
            },
        )
    (verdict,) = judge.score_many([{"source": "S.", "output": "Fine.", "group": "g"}])
    assert verdict.failure is None
    sent = "".join(message["content"] for message in model[1].requests[-1].messages)
    assert sent.count("The same answer as elsewhere.") == 1
    assert "Source g." not in sent
