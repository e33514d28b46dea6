"""Weights of the levels of a pairwise scorer, from what its comparisons said."""

import json
import math
import random
from types import SimpleNamespace

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgesmith as js
from judgesmith.agreement.objectives import Q
from judgesmith.optimizers.examples import folds_of
from judgesmith.optimizers.fitting.levels import (
    filled,
    fit_levels,
    fit_weights,
    lead_matrix,
    out_of_fold,
    weighted_percents,
)
from judgesmith.optimizers.fitting.refinement import refine
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer, pairwise_percent, pairwise_score
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.transport import Reply, TokenChoice
from judgesmith.signatures.values import Verdict

PAPER = (1, 2, 3, 4, 5)


def verdict(better, worse, levels=PAPER):
    data = {"levels": list(levels), "better": list(better), "worse": list(worse), "flipped": []}
    score = pairwise_score(better, worse, levels=levels)
    return Verdict(1.0, percent=pairwise_percent(score, levels), notes=("comparisons: " + json.dumps(data),))


def rows(human, groups=None):
    names = groups or [f"g{i // 3}" for i in range(len(human))]
    return [
        dspy.Example(source="", output=f"o{i}", score=float(h), group=g, document=g, system=None)
        for i, (h, g) in enumerate(zip(human, names, strict=True))
    ]


def made(informative, seed=0, n=90):
    """Human scores, and verdicts of which the levels named say something; the others are noise."""
    rng = np.random.default_rng(seed)
    human = rng.uniform(0, 100, n)
    verdicts = []
    for h in human:
        signal = np.array([(h - 25 * (level - 1)) / 50 if level in informative else 0.0 for level in PAPER])
        lead = np.tanh(signal + rng.normal(0, 0.6, 5))
        verdicts.append(verdict(np.round((1 + lead) / 2, 6).tolist(), np.round((1 - lead) / 2, 6).tolist()))
    return human, verdicts


def test_leads_and_scores_by_hand():
    verdicts = [
        verdict([0.9, 0.5, 0.1, 0.0, 0.0], [0.0, 0.3, 0.4, 0.8, 1.0]),
        verdict([1.0, 0.5], [0.0, 0.5], levels=(4, 5)),
        Verdict.failed("no references"),
    ]
    leads = lead_matrix(verdicts, 5)
    assert leads[0].tolist() == pytest.approx([0.9, 0.2, -0.3, -0.8, -1.0])
    assert np.isnan(leads[1]).tolist() == [True, True, True, False, False]
    assert np.isnan(leads[2]).all()
    # the paper's weights: (.9 + .4 − .9 − 3.2 − 5)/15; levels 4 and 5 alone: (4·1 + 5·0)/9
    found = weighted_percents(leads, PAPER)
    assert found[:2].tolist() == pytest.approx([50 * (1 - 7.8 / 15), 50 * (1 + 4 / 9)])
    assert found[:2].tolist() == pytest.approx([v.percent for v in verdicts[:2]])
    # (2·.9 − 1·.3)/3; levels 4 and 5 have no weight at all, and a score cannot rest on them
    other = weighted_percents(leads, [2, 0, 1, 0, 0])
    assert other[0] == pytest.approx(50 * (1 + 1.5 / 3))
    assert np.isnan(other[1:]).all()
    # a missing level counts as the mean of the others: 1·4/9 + 0·5/9
    assert filled(leads[:2], PAPER)[1].tolist() == pytest.approx([4 / 9, 4 / 9, 4 / 9, 1.0, 0.0])
    assert filled(leads[1:2], [1, 0, 0, 0, 0])[0].tolist() == pytest.approx([0.5, 0.5, 0.5, 1.0, 0.0])


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=6, max_size=20),
    st.integers(0, 2),
    st.floats(0, 1),
    st.integers(0, 1000),
)
def test_being_better_than_a_level_never_lowers_a_fitted_score(leads, level, more, seed):
    human = np.random.default_rng(seed).uniform(0, 100, len(leads))
    fitted = fit_weights(np.array(leads), human, [1, 2, 3])
    if fitted is None:
        return
    weights, _ = fitted
    assert (weights >= 0).all()
    before = np.array(leads[0])
    after = before.copy()
    after[level] = min(1.0, after[level] + more)
    low, high = weighted_percents(np.array([before, after]), weights)
    assert 0.0 <= low <= high + 1e-9 <= 100.0 + 1e-9


def test_weights_and_intercept_are_found_again():
    rng = np.random.default_rng(1)
    leads = rng.uniform(-1, 1, (50, 3))
    human = 50 + leads @ np.array([20.0, 0.0, 10.0])
    weights, intercept = fit_weights(leads, human, [1, 2, 3])
    assert weights.tolist() == pytest.approx([20.0, 0.0, 10.0], abs=1e-6)
    assert intercept == pytest.approx(50.0)
    # within documents what differs between them is left aside
    documents = [f"d{i % 5}" for i in range(50)]
    shifted = human + np.array([10.0 * (i % 5) for i in range(50)])
    weights, intercept = fit_weights(leads, shifted, [1, 2, 3], documents)
    assert weights.tolist() == pytest.approx([20.0, 0.0, 10.0], abs=1e-6)
    assert intercept == 0.0
    assert fit_weights(leads, -leads.sum(axis=1), [1, 2, 3]) is None  # the wrong way round is not a weight
    assert fit_weights(np.full((4, 3), math.nan), human[:4], [1, 2, 3]) is None


def test_folds_keep_groups_whole_and_none_scores_its_own_rows():
    names = [f"g{i // 4}" for i in range(40)]
    folds = folds_of(names, 5, seed=3)
    assert np.bincount(folds).tolist() == [8] * 5
    for name in set(names):
        assert len({int(f) for f, n in zip(folds, names, strict=True) if n == name}) == 1
    rng = np.random.default_rng(0)
    leads, human = rng.uniform(-1, 1, (40, 2)), rng.uniform(0, 100, 40)
    before = out_of_fold(leads, human + 30 * leads[:, 0], names, [1, 2], seed=3)
    assert before is not None
    mine = folds == folds[0]
    changed = np.where(mine, rng.uniform(0, 100, 40), human + 30 * leads[:, 0])
    after = out_of_fold(leads, changed, names, [1, 2], seed=3)
    assert after[mine].tolist() == before[mine].tolist()  # a fold's own scores do not reach it
    assert after[~mine].tolist() != before[~mine].tolist()


def test_levels_that_say_nothing_are_weighed_down():
    human, verdicts = made({1, 2})
    found = fit_levels(verdicts, rows(human), PAPER, seed=0)
    assert found.reason is None
    assert sum(found.weights) == pytest.approx(1.0, abs=1e-5)
    assert sum(found.weights[:2]) > 0.75  # the paper's: 3 of 15
    assert found.found is not None
    assert found.found.q > found.plain.q + 0.3
    assert fit_levels(verdicts, rows(human), PAPER, seed=0).weights == found.weights


@pytest.mark.parametrize("seed", range(3))
def test_the_formula_stays_where_labels_are_noise(seed):
    _, verdicts = made({1, 2, 3, 4, 5}, seed)
    human = np.random.default_rng(seed + 50).uniform(0, 100, 90)
    found = fit_levels(verdicts, rows(human), PAPER, seed=seed, sure=0.9)
    assert found.reason is not None
    assert "do not clearly beat" in found.reason or "no weights to take" in found.reason
    assert found.weights == pytest.approx([n / 15 for n in PAPER])


def test_the_formula_stays_where_it_is_right():
    rng = np.random.default_rng(2)
    leads = rng.uniform(-1, 1, (60, 5))
    human = 50 * (1 + leads @ np.array(PAPER) / 15)
    verdicts = [verdict(np.round((1 + d) / 2, 6).tolist(), np.round((1 - d) / 2, 6).tolist()) for d in leads]
    found = fit_levels(verdicts, rows(human), PAPER)
    assert "do not clearly beat those it has (3.00)" in found.reason
    assert found.to_dict()["q"] == pytest.approx(3.0, abs=1e-3)


def test_few_rows_and_failures():
    human, verdicts = made({1, 2}, n=15)
    assert "15 judged rows of 5 documents are too few" in fit_levels(verdicts, rows(human), PAPER).reason
    human, verdicts = made({1, 2}, n=60)
    one = rows(human, ["same"] * 60)
    assert "60 judged rows of 1 documents are too few" in fit_levels(verdicts, one, PAPER).reason
    half = [v if i % 5 else Verdict.failed("no answer") for i, v in enumerate(verdicts)]
    found = fit_levels(half, rows(human), PAPER)
    assert found.plain.objective.failed == 12
    assert found.found is not None
    assert found.found.objective.failed == 12  # the same rows on both sides


@pytest.mark.parametrize("level", ["pooled", "sample"])
def test_the_refiner_changes_the_judge_where_weights_win(level):
    human, verdicts = made({1, 2}, n=120)
    judge = PairwiseDirectScorer("fluency")
    record = SimpleNamespace(
        scored=SimpleNamespace(verdicts=verdicts, percents=np.array([v.percent for v in verdicts]))
    )
    found = refine(judge, record, rows(human), objective=Q(level), seed=0)
    assert found.name == "levels"
    assert found.reason is None
    assert judge.level_weights == tuple(found.details["weights"])
    assert len(set(judge.level_weights)) > 1
    assert found.percents.tolist() == pytest.approx(
        weighted_percents(lead_matrix(verdicts, 5), judge.level_weights).tolist()
    )
    assert found.percents.min() >= 0
    assert found.percents.max() <= 100
    json.dumps(found.details, allow_nan=False)
    # what it has now is what other weights would have to beat
    again = refine(judge, record, rows(human), objective=Q(level), seed=0)
    assert "do not clearly beat those it has" in again.reason
    assert judge.level_weights == tuple(found.details["weights"])


def test_other_judges_are_left_alone():
    record = SimpleNamespace(scored=SimpleNamespace(verdicts=(), percents=np.array([])))
    assert refine(ActiveCritic("vanilla"), record, [], objective=Q(), seed=0) is None


class Model:
    """Writes references, and knows how an output compares with the lower levels; of the others it says anything."""

    async def send(self, request):
        system, last = request.messages[0]["content"], request.messages[-1]["content"]
        if "2 + 2 =" in last:
            return Reply("4", (TokenChoice("4", (("4", -0.1), ("5", -3.0))),))
        if "Aim at about" in last:
            shown = [int(part[0]) for part in last.split("of level ")[1:]]
            level = sum(shown) // 2 if shown else 1 if "as bad as" in last else 5
            return Reply(f"A text of level {level} about {last[9:30].split(':')[0]}.")
        assert "compare two outputs" in system
        reference, output = (part.split("\n</output>")[0] for part in last.split("<output>\n")[1:3])
        level, number = int(reference.split("level ")[1][0]), int(output.split(" r")[1][:3])
        rng = random.Random(number * 10 + level)
        lead = (number * 37 % 101 - 25 * (level - 1)) / 60 if level < 3 else 0.0
        better = 1 / (1 + math.exp(-2 * (lead + rng.gauss(0, 0.7))))
        odds = (("Better", math.log(better)), ("Worse", math.log(1 - better)), ("Similar", -6.0))
        return Reply("Better", (TokenChoice("Better", odds),))

    async def close(self):
        return None


def test_compiling_fits_the_levels_and_saves_them(labels_of, tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "references.sqlite"))
    labels = labels_of(30, 4, lambda n: n * 37 % 101)

    def lm():
        return LanguageModel("test/model", Model(), identity="test", connection=Connection(cache=False, attempts=1))

    search = CorrelationRandomSearch(candidates=0)
    made = js.compile(PairwiseDirectScorer("fluency"), labels, lm=lm(), optimizer=search)
    told = made.provenance["levels"]
    assert told["reason"] is None
    assert told["q"] > told["plain_q"]
    assert sum(made.level_weights[:2]) > 0.75
    assert made.report.heldout.q > made.report.zero_shot.q  # of rows that neither search nor fit saw
    made.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", lm=lm())
    assert loaded.level_weights == made.level_weights
    row = labels.rows[0]
    one, other = loaded.score(row.source, row.output), made.score(row.source, row.output)
    assert (one.score, one.percent) == (other.score, other.percent)
