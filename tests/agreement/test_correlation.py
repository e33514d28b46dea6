"""Coefficients, levels and the objective: arithmetic by hand, agreement with scipy, invariances, failed rows."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judgesmith.agreement.correlation import (
    PARTS,
    CorrelationSum,
    correlate,
    impute,
    midranks,
)
from judgesmith.errors import OptionError

pytestmark = pytest.mark.filterwarnings("error")  # no numpy or scipy warning may leak


def pooled(name: str) -> Callable[..., float]:
    def value(predicted, human):
        return correlate(predicted, human, coefficient=name, level="pooled").value

    value.__name__ = name
    return value


ALL = pearson, spearman, kendall = tuple(map(pooled, PARTS))
somers = pooled("somers")


def scipy_value(name: str, x: np.ndarray, y: np.ndarray) -> float:
    if name == "pearson":
        return float(stats.pearsonr(x, y).statistic)
    if name == "spearman":
        return float(stats.spearmanr(x, y).statistic)
    return float(stats.kendalltau(x, y).statistic)


@st.composite
def tied_data(
    draw: st.DrawFn, low: int = 2, high: int = 90
) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(low, high))
    steps = draw(st.integers(1, 8))
    column = st.lists(st.integers(0, steps), min_size=n, max_size=n)
    return np.array(draw(column), dtype=float), np.array(draw(column), dtype=float) / 3


@pytest.mark.parametrize(
    ("f", "x", "y", "value"),
    [
        # deviations (-1, 0, 1) and (-2, 1, 1): products 2 + 0 + 1 = 3; squares 2 and 6
        (pearson, [1, 2, 3], [0, 3, 3], 3 / math.sqrt(12)),
        (pearson, [1e-300, 2e-300, 4e-300], [1, 2, 4], 1),  # squares would vanish
        # midranks 1.5 1.5 3 4 against 1 2 3 4, mean 2.5: products 1.5 + .5 + .25 + 2.25 = 4.5; squares 4.5 and 5
        (spearman, [1, 1, 2, 3], [1, 2, 3, 4], 4.5 / math.sqrt(4.5 * 5)),
        (
            kendall,
            [1, 2, 3, 4, 5],
            [2, 1, 4, 3, 5],
            0.6,
        ),  # (1,2) and (3,4) are swapped: (8-2)/10 pairs
        (
            kendall,
            [1, 1, 2, 3],
            [1, 2, 3, 4],
            5 / math.sqrt(30),
        ),  # 1 pair tied in x only, the other 5 concordant
        # Of the same 6 pairs people tell all apart: 5 concordant, 1 tied by the judge.
        (somers, [1, 1, 2, 3], [1, 2, 3, 4], 5 / 6),
        # People tell 5 pairs apart: 4 concordant, 1 discordant. The judge's order of the pair that they tie is free.
        (somers, [1, 2, 3, 4], [1, 3, 2, 3], (4 - 1) / 5),
    ],
)
def test_by_hand(f, x, y, value):
    assert f(x, y) == pytest.approx(value)


# Against scipy -------------------------------------------------------------------------------------------------------


@given(tied_data())
def test_agrees_with_scipy_on_ties(data):
    x, y = data
    for f in ALL:
        value = f(x, y)
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            assert math.isnan(value)
        else:
            assert value == pytest.approx(scipy_value(f.__name__, x, y), abs=1e-12)


@given(tied_data(high=30))
def test_somers_d_is_scipys(data):
    x, y = data
    if np.ptp(x) and np.ptp(y):
        expected = stats.somersd(y, x).statistic  # of x given y
        assert somers(x, y) == pytest.approx(expected, abs=1e-12)


@given(tied_data())
def test_broken_ties_leave_somers_d_and_lower_tau(data):
    """Of an order of ties and the opposite one the mean is d of the ties; tau-b of either has a larger root."""
    x, y = data
    if not np.ptp(x) or not np.ptp(y):
        return
    order = np.random.default_rng(0).permutation(len(x)) / len(x) / 2
    broken = [x + order, x - order]
    mean = np.mean([somers(one, y) for one in broken])
    assert mean == pytest.approx(somers(x, y), abs=1e-12)
    apart = np.mean([kendall(one, y) for one in broken])
    assert abs(apart) <= abs(kendall(x, y)) + 1e-12


@pytest.mark.parametrize("rows", [64, 65, 300, 301])
def test_every_way_to_count_pairs_agrees_with_scipy(rows):
    rng = np.random.default_rng(rows)
    x = rng.integers(0, 9, rows).astype(float)
    y = x + rng.integers(0, 9, rows)
    assert kendall(x, y) == pytest.approx(scipy_value("kendall", x, y), abs=1e-12)
    assert math.isnan(kendall(x, np.ones(rows)))


@given(tied_data(low=0))
def test_midranks_are_scipys(data):
    for x in data:
        assert (midranks(x) == stats.rankdata(x)).all()


def test_a_million_rows():  # comparing all pairs would take hours
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_000_000)
    y = np.round(x + rng.normal(size=1_000_000))
    values = [f(x, y) for f in ALL]
    # var(y) = 2 and rounding adds 1/12 -> r = 1 / sqrt(2 + 1/12)
    assert values[0] == pytest.approx(1 / math.sqrt(2 + 1 / 12), abs=0.005)
    assert 0.5 < values[2] < values[1] < values[0]


# Invariances ---------------------------------------------------------------------------------------------------------


@given(
    tied_data(),
    st.floats(0.1, 50),
    st.floats(-100, 100),
    st.randoms(use_true_random=False),
)
def test_invariances(data, scale, shift, random):
    x, y = data
    order = list(range(len(x)))
    random.shuffle(order)
    for f in ALL:
        value = f(x, y)
        same = pytest.approx(value, abs=1e-9, nan_ok=True)
        assert f(y, x) == same
        assert f(scale * x + shift, y) == same
        assert f(-x, y) == pytest.approx(-value, abs=1e-9, nan_ok=True)
        assert f(x[order], y[order]) == same
        if f is not pearson:
            assert f(np.exp(x), y**3) == same  # monotone maps keep ranks
        assert math.isnan(value) or -1 <= value <= 1


@given(
    st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=20), st.sampled_from(ALL)
)
def test_any_floats_give_a_value_in_range_or_nan(values, f):
    value = f(values, list(range(len(values))))
    assert math.isnan(value) == (np.ptp(values) <= 1e-13 * np.abs(values).max())
    assert math.isnan(value) or -1 <= value <= 1


# Undefined, missing, refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "human", "message"),
    [
        ([1, 2], [1, 2, 3], "2 rows and human 3"),
        ([1, 2], [1, math.inf], "human: row 1 is inf"),
        ([1, 2], [math.nan, 2], "human: row 0 is nan"),
        ([1, -math.inf], [1, 2], "predicted: row 1 is -inf"),
        ([1, 1e101], [1, 2], "predicted: row 1"),
        (["a", "b"], [1, 2], "predicted: expected a list of numbers"),
        ([[1, 2]], [1, 2], "shape"),
    ],
)
def test_senseless_scores_are_refused(predicted, human, message):
    with pytest.raises(OptionError, match=message):
        correlate(predicted, human, level="pooled")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pass documents="),
        ({"level": "system"}, "pass systems="),
        (
            {"level": "corpus"},
            "level 'corpus' is not one of pooled, within, sample, system",
        ),
        (
            {"level": "pooled", "coefficient": "tau"},
            "coefficient 'tau' is unknown.*known: .*pearson",
        ),
        ({"documents": ["a", "a"]}, "documents has 2 ids for 3 rows"),
        ({"documents": ["a", None, "a"]}, "documents: row 1 has no id"),
        ({"documents": ["a", ["b"], "a"]}, "documents: expected one id per row"),
        ({"documents": 7}, "documents: expected one id per row"),
    ],
)
def test_senseless_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        correlate([1, 2, 3], [1, 2, 3], **options)


# Levels --------------------------------------------------------------------------------------------------------------

# Three systems on four documents. Within documents, predicted orders them: d1 as people do (tau 1), d2 the other way
# round (tau -1), d3 with one swap of three pairs (tau 1/3), d4 not at all (constant).
PREDICTED = [1, 2, 3, 3, 2, 1, 1, 3, 2, 2, 2, 2]
HUMAN = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]
DOCUMENTS = ["d1"] * 3 + ["d2"] * 3 + ["d3"] * 3 + ["d4"] * 3
SYSTEMS = ["A", "B", "C"] * 4


def test_sample_level_by_hand():
    found = correlate(PREDICTED, HUMAN, coefficient="kendall", documents=DOCUMENTS)
    assert found.value == pytest.approx((1 - 1 + 1 / 3) / 3)  # d4 is skipped
    assert (found.n, found.skipped, found.failed, found.reason) == (3, 1, 0, None)
    assert (found.level, found.coefficient) == ("sample", "kendall")
    # spearman unless asked: 1, -1, and ranks 1 3 2 against 1 2 3: 1 - 6*2/(3*8) = 1/2 -> mean 1/6
    assert correlate(PREDICTED, HUMAN, documents=DOCUMENTS).value == pytest.approx(
        1 / 6
    )


def test_system_level_by_hand():
    # means of A, B, C: predicted 7/4, 9/4, 8/4 -> ranks 1 3 2; human 1, 2, 3 -> 1 - 6*2/(3*8)
    found = correlate(PREDICTED, HUMAN, level="system", systems=SYSTEMS)
    assert found.value == pytest.approx(0.5)
    assert (found.n, found.skipped) == (3, 0)


def test_pooled_level_counts_rows():
    found = correlate(
        [*PREDICTED[:-1], None], HUMAN, coefficient="pearson", level="pooled"
    )
    assert found.value == pytest.approx(
        scipy_value("pearson", np.array(PREDICTED[:-1]), np.array(HUMAN[:-1]))
    )
    assert (found.n, found.skipped, found.failed) == (11, 1, 1)


def test_failed_rows_at_each_level():
    predicted = [1, 2, None, None, 2, None, 1, 3, 2, 2, 2, None]
    sample = correlate(predicted, HUMAN, coefficient="kendall", documents=DOCUMENTS)
    # d1: two rows, in order -> 1; d2: one row left -> skipped; d3: 1/3; d4: constant -> skipped
    assert sample.value == pytest.approx((1 + 1 / 3) / 2)
    assert (sample.n, sample.skipped, sample.failed) == (2, 2, 4)
    system = correlate(
        [1, 2, None, 1, 2, None, 1, 2, None, 1, 2, None],
        HUMAN,
        level="system",
        systems=SYSTEMS,
    )
    assert (system.value, system.n, system.skipped, system.failed) == (
        1,
        2,
        1,
        4,
    )  # C has no prediction at all


@pytest.mark.parametrize(
    ("predicted", "human", "options", "reason"),
    [
        ([None, None], [1, 2], {"level": "pooled"}, "no row has a prediction"),
        ([], [], {"level": "pooled"}, "no row has a prediction"),
        ([1, None], [1, 2], {"level": "pooled"}, "1 row, at least 2"),
        ([2, 2], [1, 2], {"level": "pooled"}, "the predictions are constant"),
        ([1, 2], [3, 3], {"level": "pooled"}, "the human scores are constant"),
        ([1, 2], [1, 2], {"documents": "ab"}, "in every document"),
        ([1, 2], [1, 2], {"level": "system", "systems": "AA"}, "1 system, at least 2"),
        (
            [1, 2, 2, 1],
            [1, 2, 3, 4],
            {"level": "system", "systems": "AABB"},
            "constant across systems",
        ),
    ],
)
def test_undefined_has_a_reason(predicted, human, options, reason):
    found = correlate(predicted, human, **options)
    assert math.isnan(found.value)
    assert reason in (found.reason or "")


def test_system_means_tie_whatever_the_order_of_summation():
    # A and B got the same three scores in another order; added as floats they differ in the last digit
    predicted = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 1, 1, 1]
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    human = [1] * 3 + [2] * 3 + [3] * 3
    found = correlate(
        predicted, human, coefficient="kendall", level="system", systems="AAABBBCCC"
    )
    assert found.value == pytest.approx(
        2 / math.sqrt(2 * 3)
    )  # 3 pairs, 1 tied in x, 2 concordant


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_sample_level_equals_a_loop_over_documents(seed):
    rng = np.random.default_rng(seed)
    doc = rng.integers(0, 8, 50)  # documents of different sizes, rows in any order
    x, y = rng.integers(0, 4, 50).astype(float), rng.integers(0, 4, 50).astype(float)
    x[rng.random(50) < 0.1] = np.nan
    for f in ALL:
        values = [f(x[doc == d], y[doc == d]) for d in np.unique(doc)]
        found = correlate(x, y, coefficient=f.__name__, documents=doc)
        assert found.value == pytest.approx(
            np.mean([v for v in values if not math.isnan(v)]), abs=1e-12
        )
        assert found.skipped == sum(math.isnan(v) for v in values)


def test_ids_may_be_an_iterator_or_an_array():
    as_list = correlate(PREDICTED, HUMAN, documents=DOCUMENTS)
    assert correlate(PREDICTED, HUMAN, documents=iter(DOCUMENTS)) == as_list
    assert (
        correlate(np.array(PREDICTED), np.array(HUMAN), documents=np.array(DOCUMENTS))
        == as_list
    )


# The objective -------------------------------------------------------------------------------------------------------


def test_objective_imputes_the_mean_not_zero():
    # usable 1 and 3, mean 2: predictions 1 2 3 against 1 2 3. With 0 for the failed row r would be below 1.
    found = CorrelationSum()([1, None, 3], [1, 2, 3])
    assert found.q == pytest.approx(3)
    assert (found.n, found.failed, found.reason) == (3, 1, None)


@pytest.mark.parametrize(
    ("predicted", "human", "reason"),
    [
        ([2, 2, 2], [1, 2, 3], "predictions are constant"),
        ([None, None, None], [1, 2, 3], "all 3 rows failed"),
        ([None, 4, None], [1, 2, 3], "predictions are constant"),
        ([1, 2, 3], [4, 4, 4], "human scores are constant"),
        ([], [], "no rows"),
        ([1], [1], "1 row"),
    ],
)
def test_undefined_counts_zero_with_nan_parts_and_a_reason(predicted, human, reason):
    found = CorrelationSum()(predicted, human)
    assert found.q == 0
    assert np.isnan([found.pearson, found.spearman, found.kendall]).all()
    assert reason in (found.reason or "")


def test_flat_documents_do_not_drop_out_of_the_objective():
    options = {"documents": DOCUMENTS}
    found = CorrelationSum("sample")(PREDICTED, HUMAN, **options)
    assert found.kendall == pytest.approx(
        (1 - 1 + 1 / 3 + 0) / 4
    )  # d4 counts 0 here, and is skipped by correlate
    assert found.n == 4
    # A judge that fails on the documents it is bad at does not rise to 1:
    dodging = [1, 2, 3, None, None, None, None, None, None, None, None, None]
    assert CorrelationSum("sample")(dodging, HUMAN, **options).kendall == pytest.approx(
        1 / 4
    )
    # a document without differences between people is left out for every candidate
    assert CorrelationSum("sample")(PREDICTED, [*HUMAN[:9], 2, 2, 2], **options).n == 3


def test_impute_within_documents():
    x = np.array([1, np.nan, 3, 10, np.nan, np.nan])
    doc = np.array([0, 0, 0, 1, 1, 2])
    # document 0: mean of 1 and 3; document 1: 10; document 2 has none: mean of 1, 3, 10
    assert impute(x, doc).tolist() == pytest.approx([1, 2, 3, 10, 10, 14 / 3])
    assert impute(x).tolist() == pytest.approx([1, 14 / 3, 3, 10, 14 / 3, 14 / 3])
    assert np.isnan(x).sum() == 3  # the input stays as it was
