"""Ensembles of a search's best candidates: when they take the place of a single one, and when they do not."""

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rated import rated

import judgesmith as js
from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.objectives import Q
from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.optimizers.budget import Budget
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.examples import Scored, agreement, examples_of, score_rows
from judgesmith.optimizers.fitting.ensemble import form_ensemble
from judgesmith.optimizers.search.base import Candidate, SearchRecord, Trial, unfit
from judgesmith.programs.ensemble import Ensemble
from judgesmith.programs.progress import Silent
from judgesmith.programs.refining import Refinement
from judgesmith.testing.optimizers import truth

Table = NDArray[np.float64]


def record_of(table: Table, examples: Sequence[dspy.Example], **changes: dict[str, Any]) -> SearchRecord:
    """A search's record with one candidate a row of the table, zero-shot first. changes: of candidates by name."""
    tried = []
    for i, said in enumerate(table):
        found = agreement(said, examples, objective=Q(), seed=0, rounds=20)
        scored = Scored((), said)
        name = f"c{i}"
        given_ = {"name": name, "kind": "labels", "demos": i, "agreement": found, **changes.get(name, {})}
        given_.setdefault("disqualified", unfit(scored, found, 0.1))
        tried.append(Trial(Candidate(**given_), js.ActiveCritic("vanilla"), scored))
    return SearchRecord(tuple(tried), tried[0])


def formed(record: SearchRecord, examples: Sequence[dspy.Example], top: int, **given_: Any) -> Any:
    return form_ensemble(record, examples, top, js.CorrelationRandomSearch(sure=0.0).choose, **given_)


def noisy(human: Table, count: int, spread: float, rng: np.random.Generator) -> Table:
    """Judges that err independently of each other, each with a mean and a spread of its own."""
    said = human + rng.normal(0, spread, (count, len(human)))
    return np.asarray(np.clip(said * rng.uniform(0.2, 0.6, (count, 1)) + rng.uniform(10, 30, (count, 1)), 0, 100))


# -- what is formed


def test_two_that_err_in_opposite_ways_by_hand() -> None:
    # Ten documents of two rows. One candidate errs by +d, the other by -d, so that their sum knows human ratings.
    human = np.arange(20.0) * 4
    error = 30.0 * np.tile([1, -1, -1, 1], 5)
    table = np.stack([np.full(20, 50.0), 50 + (human - 38 + error) / 2, 30 + (human - 38 - error) / 4])
    examples = rated(human)
    judge, found = formed(record_of(table, examples), examples, 2)
    assert isinstance(judge, Ensemble)
    first, second = judge.norms
    assert set(found.details["members"]) == {"c1", "c2"}  # zero-shot says the same of every row
    one, two = (table[1], table[2]) if found.details["members"][0] == "c1" else (table[2], table[1])
    assert (first.mean, first.sd) == pytest.approx((one.mean(), one.std()), abs=1e-6)
    assert (second.mean, second.sd) == pytest.approx((two.mean(), two.std()), abs=1e-6)
    z = ((one - one.mean()) / one.std() + (two - two.mean()) / two.std()) / 2
    assert found.percents == pytest.approx(one.mean() + one.std() * z, abs=1e-4)
    assert found.details["training_q"] > 2.9  # each alone: about 1.8
    assert found.details["demos"] == 3
    assert found.reason is None
    assert "takes the place of a single one" in found.changed
    assert "scoring takes 2 calls a row" in found.changed
    json.dumps(found.details, allow_nan=False)


def test_candidates_that_err_independently_are_averaged() -> None:
    rng = np.random.default_rng(0)
    human = rng.uniform(0, 100, 60)
    examples = rated(human)
    record = record_of(noisy(human, 6, 40, rng), examples)
    judge, found = formed(record, examples, 4)
    assert isinstance(judge, Ensemble)
    assert len(judge.members) == 4
    assert found.details["q"] > found.details["single_q"] + 0.2
    again, same = formed(record, examples, 4)
    assert same.details == found.details
    assert again.norms == judge.norms


def test_one_that_is_clearly_best_stays_alone() -> None:
    rng = np.random.default_rng(1)
    human = rng.uniform(0, 100, 60)
    table = noisy(human, 6, 300, rng)
    table[3] = np.clip(human + rng.normal(0, 5, 60), 0, 100)
    examples = rated(human)
    record = record_of(table, examples)
    judge, found = formed(record, examples, 4)
    assert judge is None
    assert found.changed is None
    assert "does not clearly beat a single one" in found.reason
    assert found.percents is record.scored.percents
    assert found.details["members"][0] == "c3"
    assert found.details["single_q"] > found.details["q"]
    alike = np.repeat(noisy(human, 1, 30, rng), 4, axis=0)
    judge, found = formed(record_of(alike, examples), examples, 3)
    assert judge is None
    assert found.details["q"] == pytest.approx(found.details["single_q"])


def test_what_is_measured_is_what_was_not_chosen_by() -> None:
    # 16 candidates that guess: the best of them agree with people on the rows they were picked on, and there alone.
    naive, apart = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        human, table = rng.uniform(0, 100, 40), rng.uniform(0, 100, (16, 40))
        examples = rated(human)
        record = record_of(table, examples)
        found: Refinement
        _, found = formed(record, examples, 3, seed=seed)
        apart.append(found.details["q"])
        best = [int(name[1:]) for name in found.details["members"]]
        z = (table - table.mean(axis=1, keepdims=True)) / table.std(axis=1, keepdims=True)
        naive.append(CorrelationSum()(z[best].mean(axis=0), human).q)
    assert float(np.mean(naive)) > 0.8
    assert abs(float(np.mean(apart))) < 0.2


def test_who_cannot_be_chosen_is_no_member() -> None:
    rng = np.random.default_rng(3)
    human = rng.uniform(0, 100, 60)
    table = noisy(human, 7, 40, rng)
    table[1] = 50.0 + 1e-5 * human  # hardly a difference between rows
    table[2, :20] = math.nan  # a third failed
    table[3, 4] = math.nan
    examples = rated(human)
    record = record_of(table, examples, c4={"dropped": "it fell behind", "rows": 20})
    whole = {t.candidate.name for t in record.tried}
    judge, found = formed(record, examples, 8, sure=0.0)
    assert whole - set(found.details["members"]) == {"c1", "c2", "c4"}
    assert judge is None or len(judge.members) == 4
    assert np.isfinite(found.percents).all()  # who failed on one row leaves that row's mean


def test_too_little_to_tell() -> None:
    human = np.arange(20.0)
    table = np.stack([human, human[::-1], human * 2])
    examples = rated(human, 5)
    judge, found = formed(record_of(table, examples), examples, 2)
    assert judge is None
    assert "training rows of 4 documents are too few" in found.reason
    examples = rated(human)
    judge, found = formed(record_of(table[:1], examples), examples, 2)
    assert judge is None
    assert "there are not 2 candidates" in found.reason


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(["pooled", "sample", "system"]), st.integers(2, 8), st.booleans())
def test_nothing_is_too_odd_for_it(seed: int, level: Any, top: int, spoilt: bool) -> None:
    rng = np.random.default_rng(seed)
    human = rng.uniform(0, 100, 24)
    table = noisy(human, 5, float(rng.uniform(5, 100)), rng)
    if spoilt:
        table[rng.random(table.shape) < 0.08] = math.nan
        table[rng.integers(5)] = 50.0
    examples = rated(human, 3)
    judge, found = formed(record_of(table, examples), examples, top, objective=Q(level), seed=seed)
    assert (judge is None) == (found.changed is None) == (found.reason is not None)
    assert len(found.percents) == 24
    assert judge is None or len(judge.members) <= min(top, 5)
    there = found.percents[np.isfinite(found.percents)]
    assert ((there >= 0) & (there <= 100)).all()
    json.dumps(found.details, allow_nan=False)


# -- compiled


@pytest.fixture
def labels(labels_of: Any) -> Labels:
    """96 rows of 32 documents, random scores."""
    draw = random.Random(5)
    return labels_of(32, 3, lambda n: draw.randint(0, 100))  # type: ignore[no-any-return]


@pytest.fixture
def compiled(server: Any) -> Callable[..., js.Judge]:
    def run(labels: Labels, judge: js.Judge | None = None, **options: Any) -> js.Judge:
        options.setdefault("optimizer", js.CorrelationRandomSearch(candidates=options.pop("candidates", 5)))
        connection = js.Connection(api_base=server.base)
        student = judge or js.ActiveCritic("vanilla", explain="before", reading="said")
        return js.compile(student, labels, lm="openai/fake", connection=connection, **options)

    return run


def noise_of(ask: Any) -> float:
    """An error that is another one for other demonstrations."""
    return random.Random(f"{ask.mark} {sorted(ask.shown)}").gauss(0, 1)


def independent(labels: Labels, fake: Any) -> Any:
    human = truth(labels)
    return fake.judging(lambda ask: min(100, max(0, 25 + human.get(ask.mark, 50) / 2 + 30 * noise_of(ask))))


def test_an_ensemble_is_compiled_where_candidates_err_independently(
    server: Any, fake: Any, compiled: Callable[..., js.Judge], labels: Labels, tmp_path: Path
) -> None:
    server.answer = independent(labels, fake)
    judge = compiled(labels, ensemble_top=4)
    report, told = judge.report, judge.provenance["committee"]
    assert isinstance(judge, Ensemble)
    assert len(judge.members) == 4
    assert report.heldout.q > report.zero_shot.q + 0.2
    assert report.heldout.objective.failed == 0
    assert report.selected["kind"] == "committee"
    assert report.selected["candidate"] == "the mean of " + ", ".join(told["members"])
    assert report.selected["q"] == told["training_q"]
    (note,) = [n for n in report.notes if n.startswith("committee: ")]
    assert f"Q {told['q']:.2f} against {told['single_q']:.2f}" in note
    assert "scoring takes 4 calls a row" in note
    assert judge.calibration is not None
    assert len(report.candidates) == 8  # all that was tried is told as ever
    assert sum(p["percent"] is not None for p in report.heldout_predictions) == report.heldout_rows == 24
    judge.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", connection=js.Connection(api_base=server.base))
    some = [{"source": r.source, "output": r.output} for r in labels.rows[:8]]
    assert [v.to_dict() for v in loaded.score_many(some)] == [v.to_dict() for v in judge.score_many(some)]
    verdict = judge.score(labels.rows[0].source, labels.rows[0].output)
    assert len(verdict.opinions) == 4
    assert verdict.spread > 0
    with pytest.raises(OptionError, match="give one of its members"):
        compiled(labels, judge)


def test_the_training_scores_are_those_of_the_ensemble(
    server: Any, fake: Any, labels: Labels
) -> None:  # so that the calibration fits
    server.answer = independent(labels, fake)
    lm = js.language_model("openai/fake", connection=js.Connection(api_base=server.base))
    compiler = Compiler(search=js.CorrelationRandomSearch(candidates=5), ensemble_top=3)
    fitted = compiler.fit(js.ActiveCritic("vanilla", explain="before", reading="said"), labels, lm)
    (outcome,) = [r for r in fitted.refined if r.name == Ensemble.kind]
    assert isinstance(fitted.judge, Ensemble)
    server.forget()
    scored = score_rows(fitted.judge, examples_of(labels), Silent())
    np.testing.assert_allclose(scored.percents, outcome.percents, atol=1e-4)
    # No row was judged with its own document among the demonstrations, by any member.
    documents = {row.id: row.doc_id for row in labels.rows}
    assert all(documents[ask.mark] not in {documents[m] for m in ask.shown} for ask in server.judged)


def test_a_single_candidate_stays_where_demonstrations_do_harm(
    server: Any, fake: Any, compiled: Callable[..., js.Judge], labels: Labels
) -> None:
    human = truth(labels)
    server.answer = fake.judging(lambda ask: 50 + 25 * noise_of(ask) if ask.shown else human[ask.mark])
    plain, judge = compiled(labels), compiled(labels, ensemble_top=3)
    assert isinstance(judge, js.ActiveCritic)
    assert judge.calibration == plain.calibration
    assert judge.report.selected == plain.report.selected
    assert "committee" not in plain.provenance
    assert judge.provenance["committee"]["reason"]
    (note,) = [n for n in judge.report.notes if n.startswith("committee: ")]
    assert "does not clearly beat a single one" in note


def test_the_plan_knows_what_an_ensemble_costs(
    server: Any, fake: Any, compiled: Callable[..., js.Judge], labels: Labels
) -> None:
    search = js.CorrelationRandomSearch(candidates=9)
    student = js.ActiveCritic("vanilla", explain="before", reading="said")
    plain, several = (Compiler(search=search, ensemble_top=m).plan(student, labels, None) for m in (None, 8))
    assert several.calls - plain.calls == 7 * plain.heldout == 7 * 24
    server.answer = independent(labels, fake)
    assert compiled(labels, optimizer=search, ensemble_top=8).provenance["cost"]["calls"] <= several.calls
    # There are no more members than candidates.
    two = [Compiler(search=js.LabeledFewShot(), ensemble_top=m).plan(student, labels, None).calls for m in (None, 2, 8)]
    assert [n - two[0] for n in two] == [0, 24, 24]


def test_held_out_rows_are_paid_for_before_the_search(
    server: Any, fake: Any, compiled: Callable[..., js.Judge], labels: Labels
) -> None:
    server.answer = independent(labels, fake)
    # Ten candidates on 72 rows would leave what a single judge needs for 24 rows; eight members need more.
    calls = 3 + 10 * 72 + 24 * (1 + 1) * 2
    search = js.CorrelationRandomSearch(candidates=9)
    judge = compiled(labels, ensemble_top=8, optimizer=search, budget=Budget(max_calls=calls))
    assert isinstance(judge, Ensemble)
    assert judge.report.stopped is not None
    assert judge.report.heldout.objective.failed == 0
    assert len(server.asks) <= calls


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ensemble_top": 1}, "ensemble_top is 1; an ensemble has 2 to 8 members"),
        ({"ensemble_top": 9}, "ensemble_top is 9"),
        ({"optimizer": "knn"}, "optimizer knn: its candidates show more or fewer rows of the same pool"),
        ({"optimizer": "none"}, "optimizer none: it tries nothing but"),
        ({"candidates": 0}, "random-search: it tries nothing but"),
        ({"judge": js.PairS("fluency")}, "cannot be used with pairs"),
    ],
)
def test_what_cannot_become_an_ensemble_is_refused_before_a_call(
    options: dict[str, Any], said: str, server: Any, compiled: Callable[..., js.Judge], labels: Labels
) -> None:
    given_ = {"ensemble_top": 3, **options}
    with pytest.raises(OptionError, match=said):
        compiled(labels, given_.pop("judge", None), **given_)
    assert server.asks == []


@pytest.mark.parametrize("options", [{"cv": 3}, {"racing": True}], ids=["cv", "racing"])
def test_it_goes_with_the_other_ways_of_compiling(
    options: dict[str, Any], server: Any, fake: Any, compiled: Callable[..., js.Judge], labels_of: Any
) -> None:
    draw = random.Random(6)
    labels = labels_of(12, 3, lambda n: draw.randint(0, 100))
    server.answer = independent(labels, fake)
    racing = options.pop("racing", False)
    search = js.CorrelationRandomSearch(candidates=1, racing=racing)
    student = js.ActiveCritic("vanilla", explain="before", reading="said")
    plan = Compiler(search=search, ensemble_top=5, **options).plan(student, labels, None)
    judge = compiled(labels, optimizer=search, ensemble_top=5, **options)
    assert judge.provenance["cost"]["calls"] <= plan.calls
    assert isinstance(judge, Ensemble) == (judge.provenance["committee"]["reason"] is None)
    assert judge.report.heldout.objective.failed == 0
