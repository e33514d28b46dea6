"""Differences between judges have one standard error for interval and p-value.

It is of one pair and of many, for these systems and for others.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judgesmith.agreement.correlation import correlate
from judgesmith.agreement.differences import (
    Procedure,
    difference_of,
    differences_within,
    largest_of_all,
    paired_bootstrap,
)
from judgesmith.agreement.meta.evaluation import meta_evaluate, rows_of
from judgesmith.agreement.objectives import Q, Rows
from judgesmith.agreement.resampling import Agreement, Measure

pytestmark = pytest.mark.filterwarnings("error")

LEVELS = ("pooled", "sample", "system")


def example(
    seed: int,
    documents: int = 12,
    systems: int = 5,
    noise: tuple[float, ...] = (1.0, 1.0, 1.5),
):
    """Human scores, judges by name, and the ids of rows."""
    rng = np.random.default_rng(seed)
    doc, sys_ = (codes.ravel() for codes in np.indices((documents, systems)))
    human = rng.normal(size=documents)[doc] + 0.3 * sys_ + rng.normal(size=len(doc))
    judges = {
        name: human
        + 0.3 * rng.normal(size=systems)[sys_]
        + own * rng.normal(size=len(doc))
        for name, own in zip("abcdef", noise, strict=False)
    }
    return human, judges, {"documents": doc, "systems": sys_}


# One standard error --------------------------------------------------------------------------------------------------


def test_interval_and_p_by_hand() -> None:
    # Draws .1, .3, .5, .7: variance .05 about their mean, times 10 / 9 of ten units: SE .235702. For d = .4 and nine
    # degrees of freedom t is 1.697056 and p .12392; t(.975, 9) = 2.262157: the interval reaches .533195 to each side.
    found = difference_of(0.4, np.array([0.1, 0.3, 0.5, 0.7]), 10, 0, 0.95)
    assert found.error == pytest.approx(math.sqrt(0.05 * 10 / 9))
    assert found.freedom == 9
    assert (found.low, found.high) == pytest.approx(
        (0.4 - 0.533195, 0.4 + 0.533195), abs=1e-6
    )
    assert found.p == pytest.approx(0.12392, abs=1e-5)
    assert found.p == pytest.approx(2 * stats.t.sf(0.4 / found.error, 9))


def test_an_interval_ends_with_its_range() -> None:
    drawn = np.random.default_rng(0).normal(5, 1, 500)
    assert difference_of(5.0, drawn, 4, 0, 0.95, 6.0).high == 6
    assert difference_of(-5.0, -drawn, 4, 0, 0.95, 6.0).low == -6


def test_equal_in_every_resample_is_equal_and_ahead_in_every_one_is_no_test() -> None:
    same = difference_of(0.0, np.zeros(50), 6, 0, 0.95)
    assert (same.low, same.high, same.p, same.reason) == (0, 0, 1, None)
    ahead = difference_of(0.5, np.full(50, 0.5), 6, 0, 0.95)
    assert math.isnan(ahead.p)
    assert math.isnan(ahead.low)
    assert "no certainty" in str(ahead.reason)
    rare = difference_of(0.5, np.r_[np.full(30, np.nan), np.ones(20)], 6, 30, 0.95)
    assert math.isnan(rare.p)
    assert "undefined in 30 of 50 resamples" in str(rare.reason)


@pytest.mark.parametrize("level", LEVELS)
def test_a_better_judge_is_seen_from_both_sides(level: str) -> None:
    human, judges, ids = example(2, documents=60, systems=16, noise=(1.0, 20.0))
    measure = Measure(human, level=level, **ids)  # type: ignore[arg-type]
    found = paired_bootstrap(judges["a"], judges["b"], measure, rounds=500)
    assert found.low > 0
    assert found.p < 0.01
    back = paired_bootstrap(judges["b"], judges["a"], measure, rounds=500)
    assert (back.low, back.high, back.p) == pytest.approx(
        (-found.high, -found.low, found.p), abs=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    level=st.sampled_from(LEVELS),
    wide=st.booleans(),
    confidence=st.sampled_from([0.8, 0.9, 0.95, 0.99]),
    by=st.sampled_from(["pearson", "spearman", "kendall", "q"]),
    failed=st.sampled_from([0.0, 0.0, 0.15]),
    rounded=st.booleans(),
)
def test_p_is_small_just_where_the_interval_leaves_zero_out(
    seed, level, wide, confidence, by, failed, rounded
) -> None:
    rng = np.random.default_rng(seed)
    noise = tuple(rng.choice([0.3, 1.0, 4.0], rng.integers(2, 6)).tolist())
    human, judges, ids = example(
        seed, int(rng.integers(3, 12)), int(rng.integers(3, 7)), noise
    )
    for name, scores in judges.items():
        judges[name] = np.round(scores) if rounded else scores
        judges[name][rng.random(len(human)) < failed] = np.nan
    options = {
        "levels": [level],
        "coefficients": (by,),
        "compare_by": by,
        "rounds": 60,
        "seed": seed % 7,
    }
    found = meta_evaluate(
        judges, human, new_systems=wide, confidence=confidence, **options, **ids
    )
    assert len(found.comparisons) == math.comb(len(judges), 2)
    for row in rows_of(found.comparisons):
        if math.isnan(row["p"]):
            assert row["reason"]
            assert math.isnan(row["low"])
            assert math.isnan(row["high"])
        else:
            outside = row["low"] > 0 or row["high"] < 0
            assert (row["p"] < round(1 - confidence, 12)) == outside
            assert row["low"] <= row["difference"] <= row["high"]


# Several differences -------------------------------------------------------------------------------------------------


def test_one_difference_has_plain_student_t() -> None:
    p, reach = largest_of_all(np.array([2.0]), np.eye(1), 7, Procedure())
    assert (p[0], reach) == pytest.approx(
        (2 * stats.t.sf(2.0, 7), stats.t.isf(0.025, 7))
    )


def test_the_largest_of_several_is_multivariate_t() -> None:
    # Of two with correlation .8, from scipy's multivariate t: the square that holds 95 %.
    together, freedom = np.array([[4.0, 1.6], [1.6, 1.0]]), 12
    p, reach = largest_of_all(np.array([1.0, 2.5]), together, freedom, Procedure())
    shape = np.array([[1, 0.8], [0.8, 1]])
    for ratio, adjusted in zip((1.0, 2.5), p.tolist(), strict=True):
        square = stats.multivariate_t(shape=shape, df=freedom, seed=1)
        inside = square.cdf([ratio] * 2, lower_limit=[-ratio] * 2, random_state=1)
        assert adjusted == pytest.approx(
            1 - inside, abs=0.012
        )  # 3.5 standard errors of the draws
    assert (
        stats.t.isf(0.025, freedom) < reach < stats.t.isf(0.0125, freedom)
    )  # between one and Bonferroni
    alike, _ = largest_of_all(
        np.array([2.5, 2.5]), np.ones((2, 2)), freedom, Procedure()
    )
    assert alike == pytest.approx(
        2 * stats.t.sf(2.5, freedom), abs=0.005
    )  # two that are one cost nothing


def test_pairs_of_many_judges_are_less_sure_than_a_single_one() -> None:
    human, judges, ids = example(3, documents=40, noise=(1.0, 1.3, 1.0, 1.0, 1.0))
    options = {"levels": ["pooled"], "rounds": 200, **ids}
    many = rows_of(meta_evaluate(judges, human, **options).comparisons)
    (alone,) = rows_of(
        meta_evaluate({n: judges[n] for n in "ab"}, human, **options).comparisons
    )
    row = many[0]
    assert (row["a"], row["b"]) == ("a", "b")
    assert row["error"] == pytest.approx(alone["error"])
    assert row["difference"] == alone["difference"]
    assert alone["p"] < row["p"] < 10 * alone["p"]
    assert row["low"] < alone["low"]


def test_judges_that_failed_on_different_rows_are_compared_on_common_ones() -> None:
    human, judges, ids = example(4, documents=30)
    judges["a"][:10] = np.nan
    judges["c"][20:40] = np.nan
    found = meta_evaluate(judges, human, levels=["pooled"], rounds=100, **ids)
    for row in rows_of(found.comparisons):
        x, y = judges[row["a"]], judges[row["b"]]
        both = ~(np.isnan(x) | np.isnan(y))
        values = [
            correlate(one[both], human[both], level="pooled").value for one in (x, y)
        ]
        assert row["difference"] == pytest.approx(values[0] - values[1])
        measure = Measure(human, coefficient="spearman", **ids)
        alone = paired_bootstrap(x, y, measure, rounds=100)
        # The same documents are drawn for all pairs, so that how they vary together is known: max-t.
        assert 0.5 * alone.p <= row["p"] <= min(1.0, 3.3 * alone.p)
        assert row["n"] == len({ids["documents"][i] for i in np.flatnonzero(both)})


def test_one_judge_without_some_scores_costs_the_other_pairs_nothing() -> None:
    human, judges, ids = example(4, documents=40, noise=(1.0, 1.1, 1.2, 1.3, 1.4))
    options = {"levels": ["pooled"], "rounds": 300, **ids}
    whole = meta_evaluate(judges, human, **options)
    holed = {**judges, "e": np.where(np.arange(len(human)) < 3, np.nan, judges["e"])}
    found = meta_evaluate(holed, human, **options)
    for row, before in zip(
        rows_of(found.comparisons), rows_of(whole.comparisons), strict=True
    ):
        if "e" not in (row["a"], row["b"]):
            assert row["error"] == before["error"]
            assert row["p"] == pytest.approx(before["p"], rel=0.15, abs=0.003)
    (note,) = (note for note in found.notes if "rows without a score" in note)
    assert "e (3)" in note
    few = {**judges, "e": np.where(np.arange(len(human)) < 100, np.nan, judges["e"])}
    found = meta_evaluate(few, human, **options)
    (note,) = (note for note in found.notes if "tested alone" in note)
    assert "a and e" in note
    assert "a and b" not in note


def test_a_constant_judge_does_not_cost_the_others_their_test() -> None:
    human, judges, ids = example(5, documents=30)
    options = {"levels": ["pooled"], "rounds": 100, **ids}
    without = meta_evaluate(judges, human, **options).comparisons
    found = meta_evaluate(
        judges | {"flat": np.full(len(human), 3.0)}, human, **options
    ).comparisons
    rows = {(row["a"], row["b"]): row for row in rows_of(found)}
    for row in rows_of(without):
        assert rows[row["a"], row["b"]]["p"] == row["p"]
    for name in judges:
        assert math.isnan(rows[name, "flat"]["p"])
        assert "undefined" in rows[name, "flat"]["reason"]


def test_absolute_agreements_are_compared_as_absolute_ones() -> None:
    human, judges, ids = example(6, documents=30, noise=(1.0, 1.0))
    options = {"levels": ["pooled"], "rounds": 100, **ids}
    (plain,) = rows_of(meta_evaluate(judges, human, **options).comparisons)
    turned = judges | {"b": -judges["b"]}
    (row,) = rows_of(meta_evaluate(turned, human, absolute=True, **options).comparisons)
    for name in ("difference", "low", "high", "p"):
        assert row[name] == pytest.approx(plain[name])


# Other systems -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_other_systems_add_their_variance(level: str) -> None:
    human, judges, ids = example(7, documents=20, systems=6)
    a, b, doc, sys_ = judges["a"], judges["b"], ids["documents"], ids["systems"]
    measure = Measure(human, level=level, coefficient="pearson", **ids)  # type: ignore[arg-type]
    these = paired_bootstrap(a, b, measure, rounds=300)
    found = paired_bootstrap(a, b, measure, rounds=300, new_systems=True)

    def lead(rows) -> float:
        shared = {
            "coefficient": "pearson",
            "level": level,
            "documents": doc[rows],
            "systems": sys_[rows],
        }
        return (
            correlate(a[rows], human[rows], **shared).value
            - correlate(b[rows], human[rows], **shared).value
        )

    left_out = [lead(sys_ != system) for system in range(6)]
    over_systems, over_rows = (
        5 * np.var(left_out),
        0.0,
    )  # the jackknife: (S - 1) / S times the sum of squares
    if level == "pooled":
        apart = Measure(human, documents=None, coefficient="pearson")
        over_rows = paired_bootstrap(a, b, apart, rounds=300).error ** 2
    expected = max(
        these.error**2 + over_systems - over_rows, these.error**2, over_systems
    )
    assert found.error**2 == pytest.approx(expected)
    assert (found.value, found.freedom, these.freedom) == (these.value, 5, 19)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.value) / found.error, 5))


def test_few_systems_say_nothing_of_others() -> None:
    human, judges, ids = example(8, systems=2)
    measure = Measure(human, **ids)
    found = paired_bootstrap(
        judges["a"], judges["b"], measure, rounds=20, new_systems=True
    )
    assert math.isnan(found.p)
    assert math.isnan(found.low)
    assert "2 of 3" in str(found.reason)


def test_objectives_compare_for_other_systems_by_the_same_rule() -> None:
    human, judges, ids = example(9)
    names = {key: [str(code) for code in codes] for key, codes in ids.items()}
    rows = Rows(human, names["documents"], names["documents"], names["systems"])
    both = [judges["a"], judges["b"]]
    for level in LEVELS:
        objective = Q(level)
        others = objective.on_other_systems(both, rows)
        (found,) = differences_within(
            objective.resampled(both, rows),
            np.array([[1.0, -1.0]]),
            Procedure(100),
            others,
        )
        plain = paired_bootstrap(
            *both, Measure(human, level=level, **ids), rounds=100, new_systems=True
        )
        assert (found.value, found.error, found.p) == pytest.approx(
            (plain.value, plain.error, plain.p)
        )


def test_equal_judges_with_favourites_are_rarely_told_apart_on_other_systems() -> None:
    """System level, 16 systems of which each judge favours some: over documents alone, too many such pairs differ."""
    doc, sys_ = (codes.ravel() for codes in np.indices((60, 16)))
    alarms = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        human = 0.3 * rng.normal(size=16)[sys_] + rng.normal(size=len(doc))
        pair = [
            human + 0.4 * rng.normal(size=16)[sys_] + 0.5 * rng.normal(size=len(doc))
            for _ in "ab"
        ]
        measure = Measure(
            human, documents=doc, systems=sys_, level="system", coefficient="spearman"
        )
        found = [
            paired_bootstrap(*pair, measure, rounds=100, new_systems=wide).p < 0.05
            for wide in (False, True)
        ]
        alarms.append(found)
    here, elsewhere = np.mean(alarms, axis=0)
    assert elsewhere <= 0.05 < 0.15 < here


def test_all_judges_of_an_agreement_share_their_resamples() -> None:
    human, judges, ids = example(10)
    measure = Measure(human, **ids)
    contrasts = np.array([[1.0, -1, 0], [0, 1, -1]])
    found = differences_within(
        Agreement.of(list(judges.values()), measure), contrasts, Procedure(100)
    )
    for one, (a, b) in zip(found, itertools.pairwise(judges.values()), strict=True):
        assert one.error == pytest.approx(
            paired_bootstrap(a, b, measure, rounds=100).error
        )
