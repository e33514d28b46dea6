"""Typed decisions of DSPy as ratings of a signature: their probabilities, and what ReAnchor fits to them."""

from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.experimental import Choice, Noul, ReAnchor, Score

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.optimizers.registry import optimizers
from judgesmith.optimizers.search.through_dspy import installed, search_through
from judgesmith.programs.registry import methods
from judgesmith.programs.simple import judge
from judgesmith.testing.scripted import MakeScripted

LEVELS = Choice[("bad", "It fails."), ("fair", "It passes."), ("good", "It shines.")]


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    for kind in [name for name in methods.names() if name.startswith("typed-")]:
        methods._parts.pop(kind)


def rated(kind: Any, name: str = "typed-one") -> Any:
    signature = dspy.Signature(
        {
            "output": (str, dspy.InputField()),
            "rating": (kind, dspy.OutputField(desc="How good the output is.")),
        },
        "Judge the output.",
    )
    return judge(name, about="a typed question")(signature)


class Backend:
    """A decision backend in DSPy's form; the probability that a text is good is its length in percent."""

    supports_decision_requests = True
    model, cache, callbacks = "scripted/decisions", True, ()

    def __init__(self) -> None:
        self.history: list[Any] = []

    async def acall(self, state: Any, questions: Any) -> Any:
        good = len(state["inputs"]["output"]) / 100
        labels = [*(questions["rating"].get("criteria") or ())]
        if isinstance(questions["rating"].get("criteria"), list):
            labels = [str(place) for place in range(len(labels))]
        shares = dict.fromkeys(labels, 0.0)
        if labels:
            shares |= {labels[0]: 1 - good, labels[-1]: good}
        return {"rating": {"noul": good, "probabilities": shares, "confidence": good}}

    def __call__(self, state: Any, questions: Any) -> Any:
        import asyncio

        return asyncio.run(self.acall(state, questions))


@pytest.mark.parametrize(
    "kind",
    [Noul, Noul[(True, "good"), (False, "bad")], Score["bad", "so", "good"], LEVELS],
)
def test_a_decision_is_a_rating_by_its_probabilities(kind: Any) -> None:
    method = rated(kind)()
    with dspy.context(lm=Backend()):
        assert method(output="x" * 30).score == pytest.approx(30)
        assert js.Judge(method, scale=js.Scale(0, 10)).score(
            output="x" * 75
        ).score == pytest.approx(7.5)


def test_a_model_that_writes_answers_the_same_signature(scripted: MakeScripted) -> None:
    lm, _ = scripted(
        lambda _: '[[ ## rating ## ]]\n{"noul": 0.8}\n\n[[ ## completed ## ]]'
    )
    with dspy.context(lm=lm):
        assert rated(Noul)()(output="A text.").score == pytest.approx(80)


@pytest.mark.parametrize("kind", [Noul, Score["bad", "so", "good"]])
def test_reanchor_compiles_it_and_what_it_fitted_decides(
    kind: Any, tmp_path: Path
) -> None:
    make = rated(kind)
    # People call a text good from 20 characters on, and the backend from 50.
    rows = [
        dspy.Example(output="x" * n, good=100.0 * (n >= 20)).with_inputs("output")
        for n in range(2, 60, 3)
    ]

    def near(row: Any, said: Any, trace: Any = None) -> float:
        return 1.0 - abs(row.good - said.score) / 100

    with dspy.context(lm=Backend()):
        search = ReAnchor(near, num_threads=1)
        made = search.compile(make(), trainset=rows)
        assert search.report["train_score"] > search.report["train_score_before"]
        assert made.predict.fields
        assert made(output="x" * 30).score == 100.0
        assert made(output="x" * 10).score == 0.0
        made.save(tmp_path / "method.json")
        again = make()
        again.load(tmp_path / "method.json")
        assert [again(**row.inputs()).score for row in rows] == [
            made(**row.inputs()).score for row in rows
        ]
        with pytest.raises(ArtifactError, match="fitted decisions"):
            js.Judge(made).save(tmp_path / "judge.json")


def test_every_optimizer_of_this_dspy_is_listed_or_refused_with_a_reason() -> None:
    usable = {n for n in optimizers.every() if n.startswith("dspy:")}
    refused = optimizers.refused()
    assert {f"dspy:{name}" for name in installed()} == usable | set(refused)
    assert not usable & set(refused)
    for name, reason in refused.items():
        with pytest.raises(OptionError, match=name):
            search_through(name)
        assert reason
    assert "dspy:ReAnchor" in refused
    with pytest.raises(OptionError, match="DSPy has no optimizer 'Reanchr'"):
        search_through("dspy:Reanchr")
