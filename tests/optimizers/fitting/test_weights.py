"""Weights of criteria and annotators: fitted to training rows, and measured on rows they were not fitted to."""

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rated import rated

import judgesmith as js
from judgesmith.agreement.objectives import Q
from judgesmith.optimizers.examples import percents_of
from judgesmith.optimizers.fitting.weights import (
    Training,
    fit_weights,
    refine,
    ridge_out_of_fold,
)
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.active_critic.scoring import Combination
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.refining import (
    Fit,
    Refinement,
    TrainingRows,
    score_matrix,
    weighted_mean,
)
from judgesmith.signatures.values import Criterion, CriterionScore, Opinion, Verdict

NAMES = ("Truth", "Style", "Length")


def training(
    human: Any, verdicts: Sequence[Verdict] = (), per_group: int = 2, **given_: Any
) -> Training:
    examples = rated(human, per_group)
    percents = percents_of(verdicts) if verdicts else np.full(len(examples), math.nan)
    return Training(
        examples,
        verdicts,
        given_.pop("percents", percents),
        given_.pop("objective", Q()),
        **given_,
    )


def noisy(rng: np.random.Generator, truth: Any, spread: float) -> Any:
    return np.clip(truth + rng.normal(0, spread, len(truth)), 0, 100)


def one_good_column(seed: int = 0, n: int = 60) -> tuple[Any, Any]:
    """Human ratings, and columns of scores of which only the first has to do with them."""
    rng = np.random.default_rng(seed)
    human = rng.uniform(0, 100, n)
    return human, np.stack(
        [noisy(rng, human, 15), rng.uniform(0, 100, n), rng.uniform(0, 100, n)], axis=1
    )


def of_criteria(
    scores: Any, overall: Any, names: Sequence[str] = NAMES
) -> list[Verdict]:
    return [
        Verdict(
            math.nan,
            percent=float(o),
            criteria={
                name: CriterionScore(float(s))
                for name, s in zip(names, row, strict=False)
            },
            failure="no" if math.isnan(o) else None,
        )
        for row, o in zip(scores, overall, strict=True)
    ]


def ridge(
    scores: Any,
    overall: Any,
    human: Any,
    *,
    own: bool = True,
    per_group: int = 2,
    **given_: Any,
) -> Fit:
    rows = training(human, of_criteria(scores, overall), per_group, **given_)
    return rows.ridge_weights(
        np.asarray(scores), own=own, parts="criteria", plain="OS-E"
    )


# -- the fit


def test_a_ridge_by_hand() -> None:
    scores = np.array([[10.0, 30.0], [30.0, 10.0], [10.0, 10.0], [30.0, 30.0]])
    human = np.array([20.0, 50.0, 10.0, 60.0])
    # Centred: x1 = (-10, 10, -10, 10), x2 = (10, -10, -10, 10), y = (-15, 15, -25, 25).
    # x1 and x2 do not overlap, sums of squares 400 each, mean 400: w = x'y / (400 + penalty * 400).
    # x1'y = 150 + 150 + 250 + 250 = 800, x2'y = -150 - 150 + 250 + 250 = 200.
    for penalty in (0.1, 10.0):
        weights = fit_weights(scores, human, penalty=penalty)
        assert weights is not None
        assert weights.tolist() == pytest.approx(
            [800 / (400 + 400 * penalty), 200 / (400 + 400 * penalty)]
        )
    # A criterion that falls with human ratings gets nothing, and is not turned round.
    falling = fit_weights(
        np.stack([scores[:, 0], 100 - scores[:, 1]], axis=1), human, penalty=0.1
    )
    assert falling is not None
    assert falling[0] > 0
    assert falling[1] == 0
    for useless in (100 - scores, np.full((4, 2), 50.0), np.full((4, 2), math.nan)):
        assert fit_weights(useless, human, penalty=0.1) is None


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(0.01, 10))
def test_weights_are_positive_and_people_may_use_any_scale(
    seed: int, count: int, penalty: float
) -> None:
    rng = np.random.default_rng(seed)
    scores, human = rng.uniform(0, 100, (12, count)), rng.uniform(0, 100, 12)
    scores[rng.random(scores.shape) < 0.2] = math.nan
    fit, other = (
        fit_weights(scores, people, penalty=penalty)
        for people in (human, 3 + human / 50)
    )
    if fit is not None and other is not None:
        assert (fit >= 0).all()
        assert other / other.sum() == pytest.approx(fit / fit.sum(), abs=1e-6)


def test_means_and_gaps_by_hand() -> None:
    nan = math.nan
    opinions = np.array(
        [[10.0, 20.0, 60.0], [nan, 20.0, 60.0], [nan, nan, 60.0], [nan, nan, nan]]
    )
    # Row 1: (1 * 10 + 2 * 20 + 1 * 60) / 4; row 2: (2 * 20 + 60) / 3
    assert weighted_mean(opinions, [1, 2, 1])[:3].tolist() == pytest.approx(
        [27.5, 100 / 3, 60.0]
    )
    assert np.isnan(weighted_mean(opinions, [1, 2, 1])[3])
    assert np.isnan(
        weighted_mean(opinions, [1, 1, 0])[2]
    )  # only one that weighs nothing is left
    made = [{"Style": CriterionScore(20.0)}, {}]
    matrix = score_matrix(made, NAMES, lambda criterion: criterion.score)
    assert (matrix.shape, matrix[0, 1], np.isnan(matrix).sum()) == ((2, 3), 20.0, 5)
    assert score_matrix([], NAMES, lambda criterion: criterion.score).shape == (0, 3)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_a_judge_scores_as_the_fit_expects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0, 100, (6, 3))
    scores[rng.random(scores.shape) < 0.4] = math.nan
    weights = rng.integers(0, 4, 3) / 4
    weights[0] += 0.25 if not weights.any() else 0
    rule = Combination(criteria=dict(zip(NAMES, weights.tolist(), strict=True)))
    applied = [rule(v.criteria) for v in of_criteria(scores, np.zeros(6))]
    np.testing.assert_allclose(applied, weighted_mean(scores, weights), atol=1e-9)


def test_no_row_is_scored_by_weights_that_its_own_group_was_fitted_to() -> None:
    human, scores = one_good_column()
    rows = training(human)
    first = rows.folds() == 0
    changed = human.copy()
    changed[first] = changed[first][::-1]
    other = training(changed)
    before, after = (
        ridge_out_of_fold(some, scores, own=False)[0] for some in (rows, other)
    )
    assert (
        before[first].tolist() == after[first].tolist()
    )  # other labels of the fold do not reach its scores
    assert before[~first].tolist() != after[~first].tolist()


# -- criteria


def test_criterion_weights_replace_an_overall_score_that_guesses() -> None:
    human, scores = one_good_column()
    guess = np.random.default_rng(9).uniform(0, 100, 60)
    fit = ridge(scores, guess, human)
    assert (fit.reason, fit.own) == (None, 0.0)
    assert fit.weights[0] > 0.7
    assert sum(fit.weights) == pytest.approx(1.0, abs=1e-5)
    assert fit.found is not None
    assert fit.found > fit.plain + 0.5
    assert ridge(scores, guess, human) == fit  # the same seed, the same weights
    assert json.loads(json.dumps(fit.to_dict()))["weights"] == list(fit.weights)
    constant = ridge(
        scores, np.full(60, 75.0), human
    )  # which has no resamples to be beaten in
    assert (constant.reason, constant.plain) == (None, 0.0)


def test_the_mean_of_both_wins_where_each_knows_something_else() -> None:
    rng = np.random.default_rng(1)
    human = rng.uniform(20, 80, 80)
    scores = np.stack([noisy(rng, human, 18), rng.uniform(0, 100, 80)], axis=1)
    timid = (
        50 + (noisy(rng, human, 18) - 50) / 10
    )  # as good, with a tenth of the spread
    # A plain mean of percents would leave the timid one a tenth of a say.
    assert ridge(scores, timid, human).own > 0.8


@pytest.mark.parametrize("level", ["pooled", "sample", "system"])
def test_the_plain_way_stays_where_the_criteria_know_nothing(level: Any) -> None:
    rng = np.random.default_rng(2)
    human = rng.uniform(0, 100, 60)
    scores, overall = rng.uniform(0, 100, (60, 3)), noisy(rng, human, 15)
    fit = ridge(scores, overall, human, per_group=6, objective=Q(level))
    assert (fit.weights, fit.own, fit.penalty) == ((), 0.0, None)
    assert "do not clearly beat OS-E" in (fit.reason or "")
    human, _ = one_good_column(3)
    alike = np.random.default_rng(0).normal(human[:, None], 30, (60, 3)).clip(0, 100)
    assert ridge(alike, alike.mean(axis=1), human, own=False, sure=0.95).reason


def test_rows_whose_second_step_failed_are_scored_by_weights_alone() -> None:
    human, scores = one_good_column()
    overall = np.where(np.arange(60) % 3 == 0, math.nan, 100 - human)
    scores[5] = math.nan
    fit = ridge(scores, overall, human)
    assert (fit.reason, fit.own) == (None, 0.0)


def test_too_few_rows_or_documents_are_reported() -> None:
    human, scores = one_good_column()
    guess = np.full(60, 50.0)
    few = "are too few to fit weights to"
    assert (
        ridge(scores, guess, human, per_group=20).reason
        == f"60 rows of 3 documents {few}"
    )
    assert (
        ridge(scores[:8], guess[:8], human[:8], per_group=1).reason
        == f"8 rows of 8 documents {few}"
    )
    assert (
        ridge(np.full((60, 3), math.nan), guess, human).reason
        == f"0 rows of 0 documents {few}"
    )


# -- what a judge declares


@pytest.mark.parametrize("level", ["pooled", "sample"])
def test_a_refiner_changes_the_judge_where_weights_win(level: Any) -> None:
    critic = Judge(
        ActiveCritic("fine", criteria=[Criterion(name, "") for name in NAMES])
    )
    good, scores = one_good_column()
    rows = training(good, of_criteria(scores, np.full(60, 50.0)), 6, objective=Q(level))
    (outcome,) = refine(critic, rows)
    json.dumps(outcome.details, allow_nan=False)
    assert critic.method.combination is not None
    assert critic.method.combination.criteria == outcome.details["weights"]
    assert refine(critic, rows) == []  # its weights stay until it is compiled again
    gauge = Judge(OpeNLGauge("fluency", annotators=("a/x", "b/x", "c/x")))
    names = [member.name for member in gauge.method.options.annotators]
    heard = [
        Verdict(
            1.0,
            percent=sum(row) / 3,
            opinions={n: Opinion(p) for n, p in zip(names, row, strict=True)},
        )
        for row in scores.tolist()
    ]
    (outcome,) = refine(gauge, training(good, heard))
    assert [m.weight for m in gauge.method.options.annotators] == outcome.details[
        "weights"
    ]
    assert gauge.method.options.annotators[0].weight > 0.6
    assert outcome.details["q"] > outcome.details["plain_q"] + 0.3
    assert (
        refine(Judge(ActiveCritic("vanilla")), rows)
        == refine(Judge(DirectScorer("fluency")), rows)
        == []
    )


class TwiceRefined(DirectScorer):
    """A judge of another package: it fits two things, and no file of `optimizers` knows of it."""

    fitted_always = False

    def refiners(self) -> list[Any]:
        return [self._double, self._shift]

    def _double(self, rows: TrainingRows) -> Refinement:
        self.doubled = rows.value(rows.percents)
        return Refinement("double", 2 * rows.percents, changed="doubled")

    def _shift(self, rows: TrainingRows) -> Refinement:
        return Refinement("shift", rows.percents + 1, reason="the shift stays")


def test_every_refiner_of_any_judge_runs_on_what_the_one_before_left() -> None:
    human, scores = one_good_column(n=12)
    rows = training(human, percents=scores[:, 0])
    judge = Judge(TwiceRefined("fluency"))
    outcomes = refine(judge, rows)
    assert [outcome.name for outcome in outcomes] == ["double", "shift"]
    assert outcomes[-1].percents.tolist() == pytest.approx(
        (2 * rows.percents + 1).tolist()
    )
    assert judge.method.doubled == rows.value(rows.percents)


# -- in a whole run


def answers(truth: dict[str, float], ask: Any, *, knows: bool) -> str:
    """Accuracy knows human ratings with some noise, the other criteria and OS-E (unless it `knows`) guess."""
    draw = random.Random(ask.mark)
    right = min(100, max(0, round(truth[ask.mark] + draw.gauss(0, 12))))
    if ask.step == "score":
        return (
            f"Explanation: It is so.\nScore: {right if knows else draw.randint(0, 100)}"
        )
    return "\n".join(
        f"{name}: It is so. Score: {right if name == 'Accuracy' else draw.randint(0, 100)}"
        for name in ("Accuracy", "Fluency", "Coverage", "Brevity")
    )


@pytest.mark.parametrize(
    ("combine", "knows"), [("os-e", False), ("mean", False), ("os-e", True)]
)
def test_compiling_keeps_the_weights_of_criteria_where_they_help(
    combine: Any, knows: bool, server: Any, fake: Any, labels_of: Any, tmp_path: Path
) -> None:
    draw = random.Random(1)
    labels = labels_of(20, 4, lambda n: draw.randint(0, 100))
    truth = {row.id: row.scores["overall"] for row in labels.rows}
    server.answer = lambda ask: (
        answers(truth, ask, knows=knows)
        if ask.step in ("score", "criteria")
        else fake.sensible(ask)
    )
    given_: dict[str, Any] = {
        "lm": "openai/fake",
        "connection": Connection(api_base=server.base),
    }
    student = ActiveCritic("fine", explain="before", reading="said", combine=combine)
    made = js.compile(student, labels, optimizer="labeled-few-shot", **given_)
    assert isinstance(made.method, ActiveCritic)
    details = made.provenance["combination"]
    assert any(note.startswith("combination: ") for note in made.report.notes)
    if knows:
        assert made.method.combination is None
        assert details["reason"]
        return
    assert details["reason"] is None
    assert made.method.combination is not None
    assert made.method.combination.criteria == details["weights"]
    assert details["weights"]["Accuracy"] > 0.7
    assert student.combination is None
    assert made.report.heldout.q > made.report.zero_shot.q + 0.5
    made.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", connection=given_["connection"])
    assert loaded.method.combination == made.method.combination
    row = labels.rows[7]
    assert (
        loaded.score(row.source, row.output).to_dict()
        == made.score(row.source, row.output).to_dict()
    )
    # Compiled again, it starts from OS-E (or the mean), not from weights of another search.
    again = js.compile(loaded, labels, optimizer="labeled-few-shot", **given_)
    assert again.provenance["combination"] == details
    assert again.report.zero_shot == made.report.zero_shot
