"""The Optuna study: what it tries, that it prunes, that a killed run goes on where it was."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.trial import FixedTrial

from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.search.base import SearchContext, SearchRecord
from judgesmith.optimizers.search.optuna import OptunaSearch
from judgesmith.programs import loading
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.signatures.values import Criterion, Verdict
from judgesmith.testing.optimizers import guess, truth

NAMES = ("Accuracy", "Fluency", "Coverage", "Brevity")


def critic(variant: Any, lm: LanguageModel, **given: Any) -> Judge:
    told: dict[str, Any] = {}
    if variant != "vanilla":
        told = {
            "task": "Summaries of notices.",
            "criteria": [Criterion(n, f"How much {n}.") for n in NAMES],
        }
    return Judge(
        ActiveCritic(variant, explain="before", reading="said", **told, **given), lm=lm
    )


def guessed(ask: Any) -> str:
    """Scores of the criteria that are asked for, which mean nothing."""
    return "\n".join(
        f"{n}: So. Score: {guess(ask)}" for n in NAMES if f"- {n}: " in ask.system
    )


def run(
    search: OptunaSearch, student: Judge, labels: Labels
) -> tuple[Judge, SearchRecord]:
    judge = search.compile(student, trainset=examples_of(labels))
    assert search.record is not None
    return judge, search.record


def test_number_kind_and_order_of_demonstrations_vary(
    server: Any, model: LanguageModel, labels: Labels
) -> None:
    search = OptunaSearch(trials=12, startup=12, max_demos=5)
    _, record = run(search, critic("vanilla", model), labels)
    assert {c.kind for c in record.candidates} == {
        "none",
        "labels",
        "gold",
        "predicted",
    }
    assert len({c.demos for c in record.candidates}) > 3
    assert max(c.demos for c in record.candidates) <= 5
    assert search.study is not None
    assert len(search.study.trials) == 13
    assert (
        search.study.trials[0].params["demos"] == 0
    )  # zero-shot, which costs no call of its own
    assert search.study.trials[0].value == pytest.approx(
        record.candidates[0].agreement.q
    )
    orders = [t.params["order"] for t in search.study.trials if "order" in t.params]
    assert set(orders) == {"rising", "falling", "mixed"}
    # A row whose own document is the only demonstration has the zero-shot prompt, which was answered.
    assert (
        36 * len(record.candidates) < len(server.judged) <= 40 * len(record.candidates)
    )


@pytest.mark.parametrize(
    ("order", "reverse"), [("rising", False), ("falling", True), ("mixed", None)]
)
@pytest.mark.parametrize("kind", ["labels", "gold"])
def test_demonstrations_are_those_that_were_suggested(
    order: str, reverse: bool | None, kind: str, model: LanguageModel, labels: Labels
) -> None:
    examples = examples_of(labels)
    said = tuple(
        Verdict(score=e.score, percent=e.score, explanation="So.") for e in examples
    )
    context = SearchContext(critic("vanilla", model), examples, examples, lambda: said)
    params = {
        "demos": 4,
        "kind": kind,
        "order": order,
        "place 1": 0.0,
        "place 2": 1.0,
        "place 3": 0.5,
        "place 4": 1.0,
    }
    proposal = OptunaSearch(max_demos=4)._proposal(FixedTrial(params), 1, context)
    scores = [examples[i].score for i in proposal.picked]
    assert len({examples[i].group for i in proposal.picked}) == 4
    assert (
        scores[:: -1 if reverse else 1] == sorted(scores)
        if reverse is not None
        else scores != sorted(scores)
    )
    if kind == "labels":  # of the others only rows with a close answer may be shown
        assert min(scores) == min(
            e.score for e in examples
        )  # place 0 of the lowest stratum
    demos = proposal.program.predictors()[0].demos
    assert [d["score"] for d in demos] == [round(s, 6) for s in scores]
    assert all(("explanation" in d) == (kind == "gold") for d in demos)


def test_the_task_and_the_criteria_are_parts_of_the_study(
    server: Any, fake: Any, model: LanguageModel, labels: Labels, human: Any
) -> None:
    """Only a prompt with Fluency and without Accuracy is any good."""

    def number(ask: Any) -> float:
        wise = "- Fluency: " in ask.system and "- Accuracy: " not in ask.system
        return human[ask.mark] if wise else guess(ask)

    server.answer = fake.judging(number)
    student = critic("coarse", model)
    judge, record = run(
        OptunaSearch(trials=24, startup=12, max_demos=2), student, labels
    )
    assert isinstance(judge.method, ActiveCritic)
    assert record.selected.agreement.q == pytest.approx(3.0)
    names = [c.name for c in judge.method.knowledge.criteria]
    assert "Fluency" in names
    assert "Accuracy" not in names
    assert record.selected.form["criteria"] == names
    assert record.selected.to_dict()["form"] == dict(record.selected.form)
    assert [c.name for c in student.method.knowledge.criteria] == list(
        NAMES
    )  # the student stays as it was
    assert not any(c.form for c in record.candidates[:1])
    forms = [c.form for c in record.candidates]
    assert any("use_task" in f for f in forms)
    assert any("use_criteria" in f for f in forms)


def test_the_fine_variant_keeps_a_criterion(
    server: Any, fake: Any, model: LanguageModel, labels: Labels
) -> None:
    server.answer = lambda ask: (
        guessed(ask) if ask.step == "criteria" else fake.judging(guess)(ask)
    )
    _, record = run(
        OptunaSearch(trials=10, startup=10, max_demos=2), critic("fine", model), labels
    )
    assert len(record.candidates) > 5
    assert all(c.agreement.objective.failed == 0 for c in record.candidates)
    assert not any("use_criteria" in c.form for c in record.candidates)
    assert all(c.form.get("criteria", NAMES) for c in record.candidates)


def test_tpe_finds_what_random_draws_miss(
    server: Any, fake: Any, model: LanguageModel, labels_of: Any
) -> None:
    """Agreement rises with the number of demonstrations: later trials take more than the first."""
    draw = random.Random(4)
    labels = labels_of(10, 3, lambda n: draw.randint(0, 100))
    human = truth(labels)
    server.answer = fake.judging(
        lambda ask: (
            (
                len(set(ask.shown)) * human[ask.mark]
                + (8 - len(set(ask.shown))) * guess(ask)
            )
            / 8
        )
    )
    search = OptunaSearch(trials=30, startup=8, max_demos=8)
    run(search, critic("vanilla", model), labels)
    assert search.study is not None
    demos = [t.params["demos"] for t in search.study.trials]
    assert np.mean(demos[-10:]) > np.mean(demos[1:9]) + 1


def test_trials_that_fall_behind_are_pruned(
    server: Any, fake: Any, model: LanguageModel, labels_of: Any
) -> None:
    draw = random.Random(4)
    labels = labels_of(30, 2, lambda n: draw.randint(0, 100))
    human = truth(labels)
    server.answer = fake.judging(
        lambda ask: guess(ask) if ask.shown else human[ask.mark]
    )
    search = OptunaSearch(trials=8, max_demos=3, racing=True)
    _, record = run(search, critic("vanilla", model), labels)
    assert record.selected.name == "zero-shot"
    assert search.study is not None
    states = [t.state.name for t in search.study.trials if t.params["demos"]]
    assert set(states) == {"PRUNED"}
    for c in record.candidates[1:]:
        assert c.rows == 15  # a quarter of 60 rows was enough
        assert c.dropped is not None
        assert c.dropped.endswith("of reaching zero-shot")
    assert len(server.judged) <= 60 + 15 * (len(record.candidates) - 1)


# -- variants


def test_another_variant_is_tried_where_asked_for(
    server: Any,
    fake: Any,
    model: LanguageModel,
    labels: Labels,
    human: Any,
    tmp_path: Path,
) -> None:
    """Only the second step of the fine variant says what people said."""
    right = fake.judging(
        lambda ask: human[ask.mark] if "criteria_scores" in ask.text else guess(ask)
    )
    server.answer = lambda ask: guessed(ask) if ask.step == "criteria" else right(ask)
    search = OptunaSearch(
        trials=16, startup=8, max_demos=2, variants=["vanilla", "fine", "coarse"]
    )
    student = critic("coarse", model)
    assert search.calls_per_row(student) == 2
    assert OptunaSearch(variants=["vanilla"]).calls_per_row(student) == 1
    judge, record = run(search, student, labels)
    assert isinstance(judge.method, ActiveCritic)
    assert (judge.method.options.variant, student.method.options.variant) == (
        "fine",
        "coarse",
    )
    assert record.selected.form["variant"] == "fine"
    assert record.selected.agreement.q == pytest.approx(3.0)
    assert {c.form.get("variant") for c in record.candidates} == {
        None,
        "vanilla",
        "fine",
    }
    assert search.study is not None
    assert (
        search.study.trials[0].params["variant"] == "coarse"
    )  # trial 0 is zero-shot, which is judged already
    assert search.study.trials[0].value == pytest.approx(
        record.candidates[0].agreement.q
    )
    assert [name for name, _ in judge.method.named_predictors()] == [
        "criteria_scorer.predict",
        "overall_scorer.predict",
    ]
    judge.save(tmp_path / "judge.json")
    again = loading.load(tmp_path / "judge.json", lm=model)
    assert again.method.saved_options() == judge.method.saved_options()


def test_variants_need_something_to_differ_in(
    model: LanguageModel, server: Any, labels: Labels
) -> None:
    _, record = run(
        OptunaSearch(trials=8, variants=["coarse", "fine"]),
        critic("vanilla", model),
        labels,
    )
    assert not any("variant" in c.form for c in record.candidates)
    with pytest.raises(OptionError, match=r"variants.*got 'fines'"):
        OptunaSearch(variants=["fines"])  # type: ignore[list-item]
