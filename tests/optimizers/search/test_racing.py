"""Races between candidates whose scores are known beforehand: who is dropped, when, and what it costs."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rated import rated

from judgesmith.agreement.objectives import Q
from judgesmith.errors import BudgetError, OptionError
from judgesmith.optimizers.examples import Scored, examples_of
from judgesmith.optimizers.search.racing import Racing, blocks, chances, race
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.signatures.values import Verdict


def judging(table: np.ndarray[Any, Any], calls: list[tuple[int, int]]) -> Callable[[int, Any], Scored]:
    """Candidates × rows: percents, NaN for a failure. `calls` gets (candidate, rows) of each block."""

    def score(number: int, block: Any) -> Scored:
        percents = table[number, block]
        calls.append((number, len(block)))
        verdicts = tuple(
            Verdict.failed("no") if math.isnan(p) else Verdict(score=p, percent=p) for p in percents.tolist()
        )
        return Scored(verdicts, percents)

    return score


def noisy(human: np.ndarray[Any, Any], weights: Sequence[float], seed: int = 0) -> np.ndarray[Any, Any]:
    noise = np.random.default_rng(seed).uniform(0, 100, (len(weights), len(human)))
    return np.array([w * human + (1 - w) * n for w, n in zip(weights, noise, strict=True)])


HUMAN = np.random.default_rng(3).uniform(0, 100, 60)


@settings(deadline=None, max_examples=60)
@given(
    scores=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    per_document=st.integers(1, 9),
    level=st.sampled_from(["pooled", "sample"]),
    seed=st.integers(0, 5),
)
def test_blocks_hold_every_row_once(scores: list[int], per_document: int, level: Any, seed: int) -> None:
    examples = rated(scores, per_document)
    found = blocks(examples, objective=Q(level), seed=seed)
    assert sorted(i for block in found for i in block.tolist()) == list(range(len(scores)))
    assert all(len(block) for block in found)
    assert [b.tolist() for b in found] == [b.tolist() for b in blocks(examples, objective=Q(level), seed=seed)]
    if level == "sample":  # whole documents
        where = {i: n for n, block in enumerate(found) for i in block.tolist()}
        assert all(len({where[i] for i in where if examples[i].group == e.group}) == 1 for e in examples)


def test_blocks_grow_and_have_the_whole_range_of_scores() -> None:
    found = blocks(rated(HUMAN))
    assert [len(b) for b in found] == [15, 15, 15, 15]  # 60 rows after 25, 50 and 75 %
    for block in found:
        quartiles = np.searchsorted(np.quantile(HUMAN, [0.25, 0.5, 0.75]), HUMAN[block])
        assert np.bincount(quartiles, minlength=4).min() >= 2, block
    assert [len(b) for b in blocks(rated(HUMAN[:12]))] == [10, 2]  # at least 10 first: 3, 6 and 9 are too few
    assert [len(b) for b in blocks(rated(HUMAN[:8]))] == [8]


def test_the_chance_counts_only_what_the_rows_to_come_can_change() -> None:
    good, bad = noisy(HUMAN, [0.5, 0.35], seed=1)
    seen = rated(HUMAN[:30])
    found = [chances([bad[:30], good[:30]], 1, seen, total)[0] for total in (30, 40, 60, 6000)]
    assert found[0] == 0.0  # nothing is to come: what is behind stays behind
    assert found == sorted(found)
    assert found[-1] > 0
    assert chances([good[:30], good[:30]], 0, seen, 60).tolist() == [1.0, 0.5]  # neither ahead nor behind
    assert chances([bad[:8], good[:8]], 1, rated(HUMAN[:8]), 60).tolist() == [1.0, 1.0]  # four documents tell nothing
    nothing = np.full(30, np.nan)
    assert chances([nothing, good[:30]], 1, seen, 60).tolist() == [0.0, 1.0]


def test_those_that_fall_behind_are_dropped_and_the_best_is_judged_on_all_rows() -> None:
    weights = [0.1, 0.9, 0.1, 0.15, 0.05]
    calls: list[tuple[int, int]] = []
    runners, ran_out = race(list("abcde"), judging(noisy(HUMAN, weights), calls), rated(HUMAN))
    assert not ran_out
    assert runners[1].dropped is None
    assert len(runners[1].verdicts) == 60
    for runner in (runners[0], *runners[2:]):
        assert runner.dropped is not None
        assert runner.dropped.startswith(f"after {len(runner.verdicts)} of 60 rows: a chance of ")
        assert runner.dropped.endswith("% of reaching b")
        assert len(runner.verdicts) < 60
    assert sum(n for _, n in calls) == sum(len(r.verdicts) for r in runners) < 0.6 * 5 * 60
    # All see the same rows first.
    assert set(runners[0].verdicts) <= set(runners[1].verdicts)


def test_a_favourite_is_not_judged_again_and_drops_others() -> None:
    calls: list[tuple[int, int]] = []
    table = noisy(HUMAN, [0.1, 0.1])
    runners, _ = race(list("ab"), judging(table, calls), rated(HUMAN), favourite=("zero-shot", HUMAN.copy()))
    assert [r.dropped and r.dropped.split("reaching ")[1] for r in runners] == ["zero-shot", "zero-shot"]
    assert calls == [(0, 15), (1, 15)]


def test_nobody_is_dropped_where_chance_is_0_and_constant_scores_never_lead() -> None:
    table = np.vstack([noisy(HUMAN, [0.5, 0.3]), np.full((1, 60), 50.0), 100 - HUMAN])
    runners, _ = race(list("abcd"), judging(table, []), rated(HUMAN), rules=Racing(chance=0.0))
    assert [r.dropped for r in runners] == [None] * 4
    table = np.vstack([np.full((1, 60), 50.0), 60 - HUMAN / 10 + noisy(HUMAN, [0.0])[0] / 50])
    runners, _ = race(list("ab"), judging(table, []), rated(HUMAN))
    assert runners[1].dropped is None  # Q near -3, but a Q: the constant one's 0 is a convention
    runners, _ = race(["a"], judging(np.full((1, 60), np.nan), []), rated(HUMAN), max_failed=0.99)
    assert runners[0].scored().failed == 60


def test_one_that_fails_too_often_is_dropped_as_soon_as_that_is_certain() -> None:
    table = noisy(HUMAN, [0.6, 0.6])
    table[0, ::3] = np.nan
    runners, _ = race(list("ab"), judging(table, []), rated(HUMAN), max_failed=0.1)
    failed = runners[0].scored().failed
    assert failed > 6  # a tenth of all 60 rows
    assert runners[0].dropped == f"after {len(runners[0].verdicts)} of 60 rows: {failed} rows failed already"
    assert runners[1].dropped is None


@pytest.mark.parametrize("after", [0, 1, 4, 5, 9])
def test_a_race_that_the_budget_ends_says_who_got_how_far(after: int) -> None:
    left = [after]
    inner = judging(noisy(HUMAN, [0.6, 0.55, 0.6]), [])

    def score(number: int, block: Any) -> Scored:
        if not left[0]:
            raise BudgetError("spent")
        left[0] -= 1
        return inner(number, block)

    runners, ran_out = race(list("abc"), score, rated(HUMAN), rules=Racing(chance=0.0))
    assert ran_out
    for runner in runners:
        assert runner.dropped == f"the budget ran out after {len(runner.verdicts)} of 60 rows"
    assert sum(len(r.verdicts) for r in runners) == after * 15


@pytest.mark.parametrize(
    "wrong", [{"chance": 0.5}, {"chance": -0.1}, {"shares": (0.5, 0.25)}, {"shares": (1.0,)}, {"least": 1}]
)
def test_senseless_rules_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Racing(**wrong)


# -- in the search ----------------------------------------------------------------------------------------------------


def test_a_raced_search_chooses_what_the_plain_one_does_for_fewer_calls(server: Any, fake: Any, labels_of: Any) -> None:
    """Zero-shot and one demonstration guess, more demonstrations know."""
    draw = np.random.default_rng(4)
    labels = labels_of(20, 3, lambda n: int(draw.integers(0, 101)))
    human = {row.id: row.scores["overall"] for row in labels.rows}
    server.answer = fake.judging(
        lambda ask: human[ask.mark] if len(ask.shown) >= 4 else (int(ask.mark[1:]) * 37 + 11 * len(ask.shown)) % 101
    )
    lm = language_model("openai/fake", connection=Connection(api_base=server.base, cache=False))
    student = ActiveCritic("vanilla", explain="before", reading="said", lm=lm)
    found = {}
    for racing in (False, True):
        server.forget()
        search = CorrelationRandomSearch(candidates=8, max_demos=6, racing=racing, anchor="gold")
        judge = search.compile(student, trainset=examples_of(labels))
        assert search.record is not None
        found[racing] = (search.record, len(server.judged), judge.predictors()[0].demos)
    plain, raced = found[False], found[True]
    assert raced[0].selected.to_dict() == plain[0].selected.to_dict()
    assert raced[2] == plain[2]
    assert raced[0].selected.agreement.q == pytest.approx(3.0)
    assert raced[1] < 0.8 * plain[1]
    assert [c.name for c in raced[0].candidates] == [c.name for c in plain[0].candidates]
    dropped = [c for c in raced[0].candidates if c.dropped]
    assert dropped
    for c in dropped:
        assert c.rows is not None
        assert c.rows == c.agreement.objective.n < 60
        assert f"after {c.rows} of 60 rows" in (c.dropped or "")
        assert c.to_dict()["dropped"] == c.dropped
    assert all(c.rows == 60 for c in plain[0].candidates)
    assert raced[1] == sum(c.rows or 0 for c in raced[0].candidates)
