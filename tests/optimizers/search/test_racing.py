"""Races between candidates whose scores are known beforehand: who is dropped, when, and what it costs."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rated import rated

from judgesmith.agreement.objectives import Q
from judgesmith.errors import BudgetError
from judgesmith.optimizers.examples import Scored, examples_of
from judgesmith.optimizers.search.base import Candidate, Proposal, SearchContext
from judgesmith.optimizers.search.racing import blocks, chance
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.signatures.values import Verdict


def noisy(
    human: np.ndarray[Any, Any], weights: Sequence[float], seed: int = 0
) -> np.ndarray[Any, Any]:
    noise = np.random.default_rng(seed).uniform(0, 100, (len(weights), len(human)))
    return np.array(
        [w * human + (1 - w) * n for w, n in zip(weights, noise, strict=True)]
    )


HUMAN = np.random.default_rng(3).uniform(0, 100, 60)


@settings(deadline=None, max_examples=60)
@given(
    scores=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    per_document=st.integers(1, 9),
    level=st.sampled_from(["pooled", "sample"]),
    seed=st.integers(0, 5),
)
def test_blocks_hold_every_row_once(
    scores: list[int], per_document: int, level: Any, seed: int
) -> None:
    examples = rated(scores, per_document)
    made = blocks(examples, Q(level), seed)
    assert sorted(i for block in made for i in block.tolist()) == list(
        range(len(scores))
    )
    assert all(len(block) for block in made)
    assert [b.tolist() for b in made] == [
        b.tolist() for b in blocks(examples, Q(level), seed)
    ]
    if level == "sample":  # whole documents
        where = {i: n for n, block in enumerate(made) for i in block.tolist()}
        assert all(
            len({where[i] for i in where if examples[i].group == e.group}) == 1
            for e in examples
        )


def test_blocks_grow_and_have_the_whole_range_of_scores() -> None:
    made = blocks(rated(HUMAN), Q())
    assert [len(b) for b in made] == [15, 15, 15, 15]  # 60 rows after 25, 50 and 75 %
    for block in made:
        quartiles = np.searchsorted(np.quantile(HUMAN, [0.25, 0.5, 0.75]), HUMAN[block])
        assert np.bincount(quartiles, minlength=4).min() >= 2, block
    assert [len(b) for b in blocks(rated(HUMAN[:12]), Q())] == [
        10,
        2,
    ]  # at least 10 first: 3, 6 and 9 are too few
    assert [len(b) for b in blocks(rated(HUMAN[:8]), Q())] == [8]


def test_the_chance_counts_only_what_the_rows_to_come_can_change() -> None:
    good, bad = noisy(HUMAN, [0.5, 0.35], seed=1)
    seen = rated(HUMAN[:30])
    chances = [
        chance(bad[:30], good[:30], seen, total, Q()) for total in (30, 40, 60, 6000)
    ]
    assert chances[0] == 0.0  # nothing is to come: what is behind stays behind
    assert chances == sorted(chances)
    assert chances[-1] > 0
    assert (
        chance(good[:30], good[:30], seen, 60, Q()) == 0.5
    )  # neither ahead nor behind
    assert (
        chance(bad[:8], good[:8], rated(HUMAN[:8]), 60, Q()) == 1.0
    )  # four documents tell nothing
    nothing, constant = np.full(30, np.nan), np.full(30, 50.0)
    assert chance(nothing, good[:30], seen, 60, Q()) == 0.0
    assert (
        chance(100 - HUMAN[:30], constant, seen, 60, Q()) == 1.0
    )  # Q near -3, but a Q: a constant's 0 is a convention


# -- in the search ----------------------------------------------------------------------------------------------------


def raced(
    table: np.ndarray[Any, Any], budget: int = 10_000, max_failed: float = 0.1
) -> tuple[list[Candidate], bool]:
    """Return each candidate after a race, zero-shot first, and whether the budget (in blocks of rows) ended it.

    table: candidates × rows of percents, NaN for a failure.
    """
    examples, blocks_left = rated(HUMAN), [budget]
    number = {id(example): i for i, example in enumerate(examples)}

    def score(program: int, rows: Sequence[Any], name: str) -> Scored:
        if not blocks_left[0]:
            raise BudgetError("spent")
        blocks_left[0] -= 1
        percents = table[int(name), [number[id(e)] for e in rows]].tolist()
        return Scored.of(
            [
                Verdict.failed("no") if math.isnan(p) else Verdict(score=p, percent=p)
                for p in percents
            ]
        )

    search = CorrelationRandomSearch(racing=True, max_failed=max_failed)
    search.score = score  # type: ignore[assignment, method-assign]
    judge = SimpleNamespace(whole_documents=False)
    context = SearchContext(judge, examples, examples, lambda: ())  # type: ignore[arg-type]
    search._consider(context, Proposal("0", "none", (), judge), score(0, examples, "0"))  # type: ignore[arg-type]
    ran_out = False
    try:
        for i in range(1, len(table)):
            search.judge(context, Proposal(str(i), "labels", (), judge))  # type: ignore[arg-type]
    except BudgetError:
        ran_out = True
    return [trial.candidate for trial in context.tried], ran_out


def test_those_that_fall_behind_are_dropped_and_the_best_is_judged_on_all_rows() -> (
    None
):
    candidates, ran_out = raced(noisy(HUMAN, [0.1, 0.9, 0.1, 0.15, 0.05]))
    assert not ran_out
    assert [(c.dropped, c.rows) for c in candidates[:2]] == [(None, 60), (None, 60)]
    for c in candidates[2:]:
        assert c.dropped is not None
        assert c.dropped.startswith(f"after {c.rows} of 60 rows: a chance of ")
        assert c.dropped.endswith("% of reaching 1")
        assert c.rows is not None
        assert c.rows < 60


def test_a_candidate_that_fails_too_often_is_dropped_as_soon_as_that_is_certain() -> (
    None
):
    table = noisy(HUMAN, [0.1, 0.6, 0.6])
    table[1, ::3] = np.nan
    _, failing, other = raced(table)[0]
    failed = failing.agreement.objective.failed
    assert failed > 6  # a tenth of all 60 rows
    assert (
        failing.dropped
        == f"after {failing.rows} of 60 rows: {failed} rows failed already"
    )
    assert other.dropped is None
    assert raced(table, max_failed=0.9)[0][1].dropped is None


@pytest.mark.parametrize("blocks_paid", [1, 2, 4, 5, 7])
def test_a_race_that_the_budget_ends_says_how_far_it_came(blocks_paid: int) -> None:
    candidates, ran_out = raced(
        noisy(HUMAN, [0.1, 0.6, 0.65]), budget=1 + blocks_paid
    )  # zero-shot's pass is the first
    assert ran_out
    assert [c.rows for c in candidates[1:]] == [60] * (blocks_paid // 4) + [
        15 * (blocks_paid % 4)
    ] * (blocks_paid % 4 > 0)
    for c in candidates[1:]:
        assert c.dropped == (
            None if c.rows == 60 else f"the budget ran out after {c.rows} of 60 rows"
        )


def test_a_raced_search_chooses_what_the_plain_one_does_for_fewer_calls(
    server: Any, fake: Any, labels_of: Any
) -> None:
    """Six demonstrations know, fewer guess."""
    draw = np.random.default_rng(4)
    labels = labels_of(20, 3, lambda n: int(draw.integers(0, 101)))
    human = {row.id: row.scores["overall"] for row in labels.rows}
    server.answer = fake.judging(
        lambda ask: (
            human[ask.mark]
            if len(ask.shown) >= 6
            else (int(ask.mark[1:]) * 37 + 11 * len(ask.shown)) % 101
        )
    )
    lm = language_model(
        "openai/fake", connection=Connection(api_base=server.base, cache=False)
    )
    student = Judge(ActiveCritic("vanilla", explain="before", reading="said"), lm=lm)
    outcomes = {}
    for racing in (False, True):
        server.forget()
        search = CorrelationRandomSearch(
            candidates=8,
            max_bootstrapped_demos=6,
            max_labeled_demos=0,
            racing=racing,
            anchor="gold",
            sure=0.0,
        )
        judge = search.compile(student, trainset=examples_of(labels))
        assert search.record is not None
        outcomes[racing] = (
            search.record,
            len(server.judged),
            judge.predictors()[0].demos,
        )
    plain, quick = outcomes[False], outcomes[True]
    assert quick[0].selected.to_dict() == plain[0].selected.to_dict()
    assert quick[2] == plain[2]
    assert quick[0].selected.agreement.q == pytest.approx(3.0)
    assert quick[1] < 0.8 * plain[1]
    assert [c.name for c in quick[0].candidates] == [
        c.name for c in plain[0].candidates
    ]
    dropped = [c for c in quick[0].candidates if c.dropped]
    assert dropped
    for c in dropped:
        assert c.rows is not None
        assert c.rows == c.agreement.objective.n < 60
        assert f"after {c.rows} of 60 rows" in (c.dropped or "")
        assert c.to_dict()["dropped"] == c.dropped
    assert all(c.rows == 60 for c in plain[0].candidates)
    assert quick[1] == sum(c.rows or 0 for c in quick[0].candidates)
