"""Weights of criterion scores, fitted to human ratings and measured on rows that they were not fitted to."""

import json
import math
import random
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgesmith as js
from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.objectives import Q
from judgesmith.optimizers.fitting import combiner
from judgesmith.optimizers.fitting.annotators import weighted_mean
from judgesmith.optimizers.fitting.combiner import choose, criterion_matrix, fit_weights
from judgesmith.programs.active_critic.combination import Combination
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models.lm import Connection
from judgesmith.signatures.values import CriterionScore, Verdict

NAMES = ("Truth", "Style", "Length")


def examples(human: Any, per_group: int = 2) -> list[dspy.Example]:
    return [
        dspy.Example(
            source="", output=f"o{i}", score=float(h), group=f"g{i // per_group}", document=f"g{i // per_group}",
            system=f"s{i % per_group}",
        )
        for i, h in enumerate(human)
    ]  # fmt: skip


def verdicts(scores: Any, overall: Any) -> list[Verdict]:
    return [
        Verdict(
            math.nan,
            percent=float(o),
            criteria={name: CriterionScore(float(s)) for name, s in zip(NAMES, row, strict=False)},
            failure="no" if math.isnan(o) else None,
        )
        for row, o in zip(scores, overall, strict=True)
    ]


def noisy(rng: np.random.Generator, truth: Any, spread: float) -> Any:
    return np.clip(truth + rng.normal(0, spread, len(truth)), 0, 100)


def one_good_criterion(seed: int = 0, n: int = 60) -> tuple[Any, Any]:
    """Human ratings, and criteria of which only the first has to do with them."""
    rng = np.random.default_rng(seed)
    human = rng.uniform(0, 100, n)
    return human, np.stack([noisy(rng, human, 15), rng.uniform(0, 100, n), rng.uniform(0, 100, n)], axis=1)


# -- the fit


def test_a_fit_by_hand() -> None:
    scores = np.array([[10.0, 30.0], [30.0, 10.0], [10.0, 10.0], [30.0, 30.0]])
    human = np.array([20.0, 50.0, 10.0, 60.0])
    # Centred: x1 = (-10, 10, -10, 10), x2 = (10, -10, -10, 10), y = (-15, 15, -25, 25).
    # x1 and x2 do not overlap, sums of squares 400 each, mean 400: w = x'y / (400 + penalty * 400).
    # x1'y = 150 + 150 + 250 + 250 = 800, x2'y = -150 - 150 + 250 + 250 = 200: shares 800/1000 and 200/1000.
    assert fit_weights(scores, human, 0.1).tolist() == pytest.approx([0.8, 0.2])
    assert fit_weights(scores, human, 10.0).tolist() == pytest.approx([0.8, 0.2])
    # A criterion that falls with human ratings gets nothing, and is not turned round.
    assert fit_weights(np.stack([scores[:, 0], 100 - scores[:, 1]], axis=1), human, 0.1).tolist() == [1.0, 0.0]
    assert fit_weights(100 - scores, human, 0.1).tolist() == [0.0, 0.0]
    assert fit_weights(np.full((4, 2), 50.0), human, 0.1).tolist() == [0.0, 0.0]
    assert fit_weights(np.full((4, 2), math.nan), human, 0.1).tolist() == [0.0, 0.0]


def test_the_penalty_shares_out_what_equal_criteria_say() -> None:
    rng = np.random.default_rng(0)
    human = rng.uniform(0, 100, 40)
    first = noisy(rng, human, 10)
    twins = np.stack([first, noisy(rng, first, 1)], axis=1)
    free, bound = fit_weights(twins, human, 1e-6), fit_weights(twins, human, 10.0)
    assert abs(bound[0] - 0.5) < 0.01
    assert abs(free[0] - 0.5) > 0.1


def test_within_documents_only_their_differences_count() -> None:
    # The first criterion tells documents apart, the second orders each document's rows.
    scores = np.array([[10.0, 10.0], [10.0, 20.0], [90.0, 10.0], [90.0, 20.0]])
    human = np.array([10.0, 20.0, 80.0, 90.0])
    assert fit_weights(scores, human, 0.01, within=["a", "a", "b", "b"]).tolist() == [0.0, 1.0]
    assert fit_weights(scores, human, 0.01)[0] > 0.2


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(0.01, 10))
def test_weights_are_shares_and_people_may_use_any_scale(seed: int, count: int, penalty: float) -> None:
    rng = np.random.default_rng(seed)
    scores, human = rng.uniform(0, 100, (12, count)), rng.uniform(0, 100, 12)
    scores[rng.random(scores.shape) < 0.2] = math.nan
    found = fit_weights(scores, human, penalty)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0) or not found.any()
    assert fit_weights(scores, 3 + human / 50, penalty) == pytest.approx(found, abs=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_a_judge_scores_as_the_fit_thought_it_would(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0, 100, (6, 3))
    scores[rng.random(scores.shape) < 0.4] = math.nan
    weights = rng.integers(0, 4, 3) / 4
    weights[0] += 0.25 if not weights.any() else 0
    rule = Combination(dict(zip(NAMES, weights.tolist(), strict=True)))
    applied = [rule(v.criteria) for v in verdicts(scores, np.zeros(6))]
    np.testing.assert_allclose(applied, weighted_mean(scores, weights), atol=1e-9)


def test_criteria_of_verdicts() -> None:
    made = [Verdict(1.0, criteria={"Style": CriterionScore(20.0)}), Verdict.failed("no")]
    found = criterion_matrix(made, NAMES)
    assert found.shape == (2, 3)
    assert found[0, 1] == 20.0
    assert np.isnan(found).sum() == 5
    assert criterion_matrix([], NAMES).shape == (0, 3)


# -- the choice


def test_weights_replace_an_overall_score_that_guesses() -> None:
    human, scores = one_good_criterion()
    guess = np.random.default_rng(9).uniform(0, 100, 60)
    found = choose(verdicts(scores, guess), examples(human), NAMES, overall=True)
    assert found.way == "fitted"
    assert found.reason is None
    assert found.combination is not None
    assert found.combination.overall == 0.0
    assert found.combination.criteria["Truth"] > 0.7
    assert found.found["fitted"].q > found.found["both"].q > found.found["plain"].q + 0.5
    again = choose(verdicts(scores, guess), examples(human), NAMES, overall=True)
    assert again == found  # the same seed, the same weights
    assert json.loads(json.dumps(found.to_dict()))["weights"]["Truth"] == found.combination.criteria["Truth"]


def test_the_mean_of_both_wins_where_each_knows_something_else() -> None:
    rng = np.random.default_rng(1)
    human = rng.uniform(20, 80, 80)
    scores = np.stack([noisy(rng, human, 18), rng.uniform(0, 100, 80)], axis=1)
    timid = 50 + (noisy(rng, human, 18) - 50) / 10  # as good, with a tenth of the spread
    found = choose(verdicts(scores, timid), examples(human), NAMES[:2], overall=True)
    assert found.way == "both"
    assert found.combination is not None
    # A plain mean of percents would leave the timid one a tenth of a say.
    assert found.combination.overall > 0.8


@pytest.mark.parametrize("level", ["pooled", "sample", "system"])
def test_the_plain_way_stays_where_the_criteria_know_nothing(level: Any) -> None:
    rng = np.random.default_rng(2)
    human = rng.uniform(0, 100, 60)
    told = verdicts(rng.uniform(0, 100, (60, 3)), noisy(rng, human, 15))
    found = choose(told, examples(human, 6), NAMES, overall=True, objective=Q(level))
    assert (found.way, found.combination, found.penalty) == ("plain", None, None)
    assert found.reason is not None
    assert "did not clearly beat OS-E" in found.reason
    assert set(found.found) == {"plain", "fitted", "both"}
    assert found.found["plain"].objective.level == level


def test_without_os_e_the_weights_stand_against_the_mean() -> None:
    human, scores = one_good_criterion(3)
    found = choose(verdicts(scores, scores.mean(axis=1)), examples(human), NAMES, overall=False)
    assert found.way == "fitted"
    assert set(found.found) == {"plain", "fitted"}
    alike = np.random.default_rng(0).normal(human[:, None], 30, (60, 3)).clip(0, 100)
    plain = choose(verdicts(alike, alike.mean(axis=1)), examples(human), NAMES, overall=False, sure=0.95)
    assert plain.reason is not None
    assert "did not clearly beat the mean of the criteria" in plain.reason


def test_a_constant_overall_score_is_beaten() -> None:
    human, scores = one_good_criterion()
    found = choose(verdicts(scores, np.full(60, 75.0)), examples(human), NAMES, overall=True)
    assert found.combination is not None
    assert found.found["plain"].q == 0.0


def test_rows_whose_second_step_failed_are_scored_by_weights_alone() -> None:
    human, scores = one_good_criterion()
    overall = np.where(np.arange(60) % 3 == 0, math.nan, 100 - human)
    scores[5] = math.nan
    found = choose(verdicts(scores, overall), examples(human), NAMES, overall=True)
    assert found.way == "fitted"
    assert found.found["plain"].objective.failed == 20
    assert found.found["fitted"].objective.failed == 1


def test_too_few_rows_or_documents_are_said() -> None:
    human, scores = one_good_criterion()
    guess = np.full(60, 50.0)
    few = choose(verdicts(scores, guess), examples(human, 20), NAMES, overall=True)  # three documents
    assert few.reason == "60 rows of 3 documents are too few to fit weights to"
    assert few.combination is None
    short = choose(verdicts(scores[:8], guess[:8]), examples(human[:8], 1), NAMES, overall=True)
    assert short.reason == "8 rows of 8 documents are too few to fit weights to"
    lost = choose([Verdict.failed("no")] * 60, examples(human), NAMES, overall=True)
    assert lost.reason == "0 rows of 0 documents are too few to fit weights to"


def test_scores_that_mean_nothing_gain_nothing_out_of_fold() -> None:
    """With ten guessing criteria for 30 rows a fit to the rows themselves would look good; on average over draws the
    scores of rows that were left out must not."""
    inside, outside = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        human, scores = rng.uniform(0, 100, 30), rng.uniform(0, 100, (30, 10))
        names = [f"c{i}" for i in range(10)]
        made = [
            Verdict(math.nan, percent=50.0, criteria={n: CriterionScore(s) for n, s in zip(names, row, strict=True)})
            for row in scores.tolist()
        ]
        outside.append(choose(made, examples(human), names, overall=False, seed=seed).found["fitted"].q)
        own = weighted_mean(scores, fit_weights(scores, human, 0.01))
        inside.append(CorrelationSum()(own, human).q)
    assert np.mean(inside) > 0.8
    assert np.mean(outside) < 0.25


def test_no_row_is_scored_by_weights_that_its_own_group_was_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    human, scores = one_good_criterion()
    whole = combiner._Rows(
        scores, human, None, [e.group for e in examples(human)], [e.group for e in examples(human)], None, Q(), 0
    )
    before = combiner._out_of_fold(whole)["fitted"]
    folds = whole.folds()
    changed = human.copy()
    changed[folds == 0] = changed[folds == 0][::-1]  # other labels of the first fold …
    other = combiner._Rows(scores, changed, None, whole.group, whole.document, None, Q(), 0)
    after = combiner._out_of_fold(other)["fitted"]
    assert before[folds == 0].tolist() == after[folds == 0].tolist()  # … change nothing in its own scores
    assert before[folds != 0].tolist() != after[folds != 0].tolist()


# -- in the whole run


def said_by(truth: dict[str, float], ask: Any, *, knows: bool) -> str:
    """Truth knows human ratings with some noise, the other criteria and OS-E (unless it `knows`) guess."""
    draw = random.Random(ask.mark)
    right = min(100, max(0, round(truth[ask.mark] + draw.gauss(0, 12))))
    if ask.step == "score":
        return f"Explanation: It is so.\nScore: {right if knows else draw.randint(0, 100)}"
    return "\n".join(
        f"{name}: It is so. Score: {right if name == 'Accuracy' else draw.randint(0, 100)}"
        for name in ("Accuracy", "Fluency", "Coverage", "Brevity")
    )


@pytest.mark.parametrize("combine", ["os-e", "mean"])
def test_a_compiled_judge_keeps_its_weights_and_says_where_from(
    combine: Any, server: Any, fake: Any, labels_of: Any, tmp_path: Path
) -> None:
    draw = random.Random(1)
    labels = labels_of(20, 4, lambda n: draw.randint(0, 100))
    truth = {row.id: row.scores["overall"] for row in labels.rows}
    server.answer = lambda ask: (
        said_by(truth, ask, knows=False) if ask.step in ("score", "criteria") else fake.sensible(ask)
    )
    given: dict[str, Any] = {"lm": "openai/fake", "connection": Connection(api_base=server.base)}
    student = ActiveCritic("fine", explain="before", reading="said", combine=combine)
    made = js.compile(student, labels, optimizer="labeled-few-shot", **given)
    found = made.provenance["combination"]
    assert found["chosen"] == "fitted"
    assert found["reason"] is None
    assert made.combination.criteria == found["weights"]  # type: ignore[attr-defined]
    assert found["weights"]["Accuracy"] > 0.7
    assert student.combination is None
    assert made.report.heldout.q > made.report.zero_shot.q + 0.5
    made.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", connection=given["connection"])
    assert loaded.combination == made.combination  # type: ignore[attr-defined]
    row = labels.rows[7]
    assert loaded.score(row.source, row.output).to_dict() == made.score(row.source, row.output).to_dict()
    # Compiled again, it starts from OS-E (or the mean), not from weights of another search.
    again = js.compile(loaded, labels, optimizer="labeled-few-shot", **given)
    assert again.provenance["combination"] == found
    assert again.report.zero_shot == made.report.zero_shot


def test_a_judge_whose_overall_score_is_good_stays_as_it_is(server: Any, fake: Any, labels_of: Any) -> None:
    draw = random.Random(1)
    labels = labels_of(20, 3, lambda n: draw.randint(0, 100))
    truth = {row.id: row.scores["overall"] for row in labels.rows}
    server.answer = lambda ask: (
        said_by(truth, ask, knows=True) if ask.step in ("score", "criteria") else fake.sensible(ask)
    )
    made = js.compile(
        ActiveCritic("fine", explain="before", reading="said"), labels, optimizer="labeled-few-shot",
        lm="openai/fake", connection=Connection(api_base=server.base),
    )  # fmt: skip
    assert made.combination is None  # type: ignore[attr-defined]
    assert made.provenance["combination"]["chosen"] == "plain"
    assert any(note.startswith("combination: ") for note in made.report.notes)
