"""What searches maximise: Q, kappa, AUC, balanced accuracy, pairwise accuracy."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rated import rated

from judgesmith.agreement.decisions import (
    auc_when_drawn,
    kappa_when_drawn,
    on_all,
    pairwise_when_drawn,
)
from judgesmith.agreement.objectives import (
    AUC,
    Closeness,
    Kappa,
    Objective,
    PairwiseAccuracy,
    Q,
    Reached,
    Rows,
    chosen_objective,
    objectives,
)
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import Scored, agreement, difference, rows_of
from judgesmith.optimizers.search.base import Candidate, Trial, unfit
from judgesmith.optimizers.search.racing import CHANCE, chance
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.signatures.values import Verdict

ALL = [part() for part in objectives.parts().values()]


def told(human: Any) -> Rows:
    return rows_of(rated(human))


def test_by_hand() -> None:
    human = [0, 100, 0, 100]
    # Pairs of a passed and a failed row: 20 > 10 and 20 < 30, 40 > 10 and 40 > 30: three of four.
    assert AUC().reached(np.array([10.0, 20, 30, 40]), told(human)).value == 0.75
    # 3 > 1, 2 > 1 and 3 > 2 are right, 2 = 2 half: 3.5 of four.
    assert (
        AUC().reached(np.array([1.0, 2, 3, 2]), told([0, 0, 100, 100])).value == 0.875
    )
    # Documents (10, 20), (30, 40): both ordered as people did; (30, 20) is not, (10, 10) is half.
    assert (
        PairwiseAccuracy().reached(np.array([10.0, 20, 30, 40]), told(human)).value
        == 1.0
    )
    assert (
        PairwiseAccuracy().reached(np.array([10.0, 10, 30, 20]), told(human)).value
        == 0.25
    )
    # A document whose outputs people say are equal is left out.
    assert (
        PairwiseAccuracy()
        .reached(np.array([2.0, 1, 5, 1, 3, 3]), told([100, 0, 50, 50, 100, 0]))
        .value
        == 0.75
    )
    # People: 2 bad, 1 ok, 1 good; by rank 10, 20 are bad, 30 ok, 40 good. Squared distances 0, 1, 1, 0 of people's
    # bad, ok, bad, good; expected: sum over pairs of decisions / 4 = 22 / 4. Kappa = 1 - 2 / (22 / 4).
    found = Kappa().reached(np.array([10.0, 20, 30, 40]), told([0, 50, 0, 100]))
    assert found.value == pytest.approx(1 - 2 / 5.5)


def test_signature() -> None:
    found = Q().signature("1.31 [0.92, 1.63]", Reached(1.3149, 60, 2), 0)
    assert found == "Q=1.31 [0.92, 1.63] r+rho+tau|pooled|n:60|failed:2|seed:0"


@pytest.mark.parametrize(
    "objective", [o for o in ALL if o.name != "closeness"], ids=lambda o: o.name
)
def test_a_constant_judge_is_at_chance_and_cannot_be_chosen(
    objective: Objective,
) -> None:
    rows = told([0, 100, 100, 0, 100, 0, 0, 0])
    found = objective.reached(np.full(8, 62.0), rows)
    assert (found.value, found.reason) == (
        objective.chance,
        "the predictions are constant",
    )
    nothing = objective.reached(np.full(8, np.nan), rows)
    assert (nothing.value, nothing.failed) == (objective.chance, 8)
    same = np.full(8, 62.0)
    measured = agreement(same, rated(rows.human), objective=objective, seed=0)
    assert unfit(Scored((), same), measured, 0.1) == "the predictions are constant"
    assert objective.reached(rows.human, rows).value == pytest.approx(
        objective.chance + objective.reach
    )
    assert objective.reached(100 - rows.human, rows).value < objective.chance
    assert objective.reached(rows.human, told([100] * 8)).reason


def test_own_labels_do_not_choose_the_cuts() -> None:
    """Over all orders of the labels, that is where scores know nothing, the mean is exactly that of chance."""
    orders, x = (
        set(itertools.permutations([0, 50, 50, 100, 100])),
        np.array([1.0, 2, 3, 4, 5]),
    )
    assert np.mean(
        [Kappa().reached(x, told(o)).value for o in orders]
    ) == pytest.approx(0)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_drawn_documents_count_as_rows_written_out(data: st.DataObject) -> None:
    n = 8
    human = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 100.0]), min_size=n, max_size=n))
    )
    x = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), float)
    times = data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    rows, objective = told(human), data.draw(st.sampled_from(ALL[1:]))
    found = objective.resampled([x], rows)
    if found.reason:
        return
    value = found.statistics[0](np.array([times], float))[0, 0]
    written = np.repeat(np.arange(n), np.repeat(times, 2))
    if not len(written):
        assert np.isnan(value)
        return
    decides = objective.name == "kappa"
    people, own = (
        (human > 0).astype(int),
        objective._decided(x, rows)[0] if decides else None,
    )  # type: ignore[attr-defined]
    with np.errstate(all="ignore"):
        copies = [f"{i // 2}-{k}" for i in range(n) for k in range(times[i // 2])]
        expected = {
            "kappa": lambda i: on_all(kappa_when_drawn, own[i], people[i]),
            "auc": lambda i: on_all(auc_when_drawn, x[i], people[i]),
            "pairwise": lambda i: pairwise_when_drawn(x[i], human[i], copies)(
                np.ones((1, len(set(copies))))
            )[0, 0],
            "closeness": lambda i: np.mean(1 - np.abs(x[i] - human[i]) / 100),
        }[objective.name](written)
    assert value == pytest.approx(expected, nan_ok=True)


def test_closeness_rewards_the_middle_of_the_scale() -> None:
    rows, middle, order = (
        told([45, 55] * 10),
        np.full(20, 50.0),
        np.tile([5.0, 95.0], 10),
    )
    assert Closeness().reached(middle, rows) == Reached(pytest.approx(0.95), 20, 0)
    assert Closeness().reached(order, rows) == Reached(pytest.approx(0.6), 20, 0)
    assert Q().reached(order, rows).value == pytest.approx(3)
    assert Q().reached(middle, rows).reason


def test_failed_rows_are_imputed_and_counted() -> None:
    rows, x = told([0, 100] * 10), np.tile([10.0, 90.0], 10)
    for objective in ALL:
        holes = np.where(np.arange(20) % 5 == 0, np.nan, x)
        found = objective.reached(holes, rows)
        assert found.failed == 4
        assert found.reason is None
        assert objective.chance < found.value < objective.reached(x, rows).value


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("score", "q"),
        ("category", "kappa"),
        ("binary", "auc"),
        ("preference", "pairwise"),
    ],
)
def test_the_kind_of_labels_has_its_objective(kind: str, name: str) -> None:
    assert chosen_objective(kind, None).name == name
    assert chosen_objective(kind, "q", "sample") == Q("sample")


def test_one_that_does_not_fit_is_refused() -> None:
    with pytest.raises(
        OptionError,
        match="--objective auc is for labels of kind binary, not category",
    ):
        chosen_objective("category", "auc")
    with pytest.raises(OptionError, match="did you mean 'kappa'"):
        chosen_objective("category", "kapa")
    with pytest.raises(OptionError, match="did you mean 'auc'"):
        CorrelationRandomSearch(objective="acu")


def test_a_search_chooses_by_its_objective() -> None:
    """The last candidate ranks a little better; bent as it is, its correlation is lower by far."""
    human = np.tile([0.0, 100.0], 20)
    rows, noise = told(human), np.random.default_rng(1).normal(size=40)
    plain = human / 80 + noise
    better = np.exp(3 * (human / 65 + noise))
    table, examples = [np.full(40, 50.0), plain, better], rated(rows.human)
    found = {}
    for objective in (Q(), AUC()):
        tried = []
        for i, said in enumerate(table):
            reached = agreement(said, examples, objective=objective, seed=0, rounds=20)
            scored = Scored.of([Verdict(score=s, percent=s) for s in said.tolist()])
            tried.append(
                Trial(
                    Candidate(
                        str(i), "labels", i, reached, unfit(scored, reached, 0.1)
                    ),
                    None,
                    scored,
                )
            )  # type: ignore[arg-type]
        search = CorrelationRandomSearch(objective=objective, sure=0.0)
        found[objective.name] = search.choose(tried, examples)[0].candidate.name
    assert found == {"q": "1", "auc": "2"}
    assert AUC().reached(better, rows).value > AUC().reached(plain, rows).value
    assert Q().reached(better, rows).value < Q().reached(plain, rows).value


def test_differences_and_races_are_of_the_objective() -> None:
    rng = np.random.default_rng(2)
    human = rng.integers(0, 2, 60) * 100.0
    examples = rated(human)
    table = np.array(
        [w * human + (1 - w) * rng.uniform(0, 100, 60) for w in (0.05, 0.1, 0.6)]
    )
    values = [AUC().reached(x, told(human)).value for x in table]
    gap = difference(table[2], table[0], examples, objective=AUC(), seed=0, rounds=300)
    assert gap.value == pytest.approx(values[2] - values[0])
    assert gap.p < 0.05
    assert gap.low < gap.value < gap.high <= 1
    found = agreement(table[1], examples, objective=AUC(), seed=0, rounds=300)
    assert 0 <= found.low < found.value == values[1] < found.high <= 1
    assert str(found).startswith(f"AUC={values[1]:.2f} [")
    assert found.to_dict()["objective"] == "auc"
    assert found.to_dict()["q"] == pytest.approx(found.q, abs=1e-6)

    seen = np.arange(0, 60, 2)
    chances = [
        chance(x[seen], table[2, seen], [examples[i] for i in seen], 60, AUC())
        for x in table
    ]
    assert max(chances[:2]) < CHANCE < chances[2] == 0.5
