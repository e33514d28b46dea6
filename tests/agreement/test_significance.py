"""Tests between judges, and people's own agreement: by hand and against published figures."""

import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.agreement import significance
from judgesmith.agreement.correlation import CorrelationSum, correlate
from judgesmith.agreement.differences import paired_bootstrap
from judgesmith.agreement.resampling import Agreement, Measure
from judgesmith.agreement.significance import (
    against_others,
    false_discovery,
    holm,
    krippendorff_alpha,
    permutation_test,
    williams,
    williams_test,
)
from judgesmith.errors import OptionError

pytestmark = pytest.mark.filterwarnings("error")

LEVELS = ("pooled", "sample", "system")


def pooled(x, y, coefficient="pearson"):
    return correlate(x, y, coefficient=coefficient, level="pooled").value


def example(seed: int = 0, documents: int = 15, systems: int = 6, noise_b: float = 1.0):
    rng = np.random.default_rng(seed)
    doc, sys_ = (
        np.repeat(np.arange(documents), systems),
        np.tile(np.arange(systems), documents),
    )
    human = rng.normal(size=documents)[doc] + sys_ / 3 + rng.normal(size=len(doc))
    a = human + rng.normal(size=len(doc))
    b = human + noise_b * rng.normal(size=len(doc))
    return a, b, human, {"documents": doc, "systems": sys_}


def agreement(predicted, human, level, coefficient, ids):
    if coefficient == "sum":
        return CorrelationSum(level)(predicted, human, **ids).q
    return correlate(
        predicted, human, level=level, coefficient=coefficient, **ids
    ).value


# Bootstrap and permutation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", [paired_bootstrap, permutation_test])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall", "sum"])
def test_value_is_the_difference(test, level, coefficient):
    a, b, human, ids = example(1)
    a[4] = b[50] = np.nan
    found = test(
        a, b, Measure(human, level=level, coefficient=coefficient, **ids), rounds=20
    )
    if coefficient != "sum":  # single coefficients: the rows that both scored
        a, b = a + 0 * b, b + 0 * a
    expected = agreement(a, human, level, coefficient, ids) - agreement(
        b, human, level, coefficient, ids
    )
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert 0 < found.p <= 1


@pytest.mark.parametrize("test", [paired_bootstrap, permutation_test])
@pytest.mark.parametrize("level", LEVELS)
def test_a_judge_does_not_differ_from_itself(test, level):
    a, _, human, ids = example(3)
    for twin in (a, 5 * a - 2):  # nor from itself on another scale
        found = test(a, twin, Measure(human, level=level, **ids), rounds=200)
        assert found.value == pytest.approx(0, abs=1e-9)
        assert found.p == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", ["pearson", "kendall", "sum"])
def test_permutation_approaches_all_swaps(level, coefficient):
    a, b, human, ids = example(5, documents=5, systems=4, noise_b=2.0)
    za, zb = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    value = agreement(a, human, level, coefficient, ids) - agreement(
        b, human, level, coefficient, ids
    )
    extreme = 0
    for choice in itertools.product(
        [False, True], repeat=5
    ):  # all 32 ways to swap 5 documents
        mask = np.array(choice)[ids["documents"]]
        null = agreement(
            np.where(mask, zb, za), human, level, coefficient, ids
        ) - agreement(np.where(mask, za, zb), human, level, coefficient, ids)
        extreme += abs(null) >= abs(value) - 1e-12
    found = permutation_test(
        a, b, Measure(human, level=level, coefficient=coefficient, **ids), rounds=4000
    )
    assert found.p == pytest.approx(extreme / 32, abs=0.04)  # 5 standard errors of .008


def test_permutation_swaps_documents_where_they_are_given():
    a, b, human, ids = example(6)
    assert permutation_test(a, b, Measure(human, documents=None), rounds=5).n == 90
    assert (
        permutation_test(a, b, Measure(human, documents=ids["documents"]), rounds=5).n
        == 15
    )


def test_permutation_does_not_depend_on_chunks(monkeypatch):
    a, b, human, ids = example(7)
    whole = [
        permutation_test(a, b, Measure(human, level=level, **ids), rounds=100)
        for level in LEVELS
    ]
    monkeypatch.setattr(significance, "_CELLS", 90 * 7)
    assert [
        permutation_test(a, b, Measure(human, level=level, **ids), rounds=100)
        for level in LEVELS
    ] == whole


@pytest.mark.parametrize("test", [paired_bootstrap, permutation_test])
@pytest.mark.parametrize(
    ("a", "b", "human", "coefficient"),
    [
        ([None] * 4, [1, 2, 3, 4], [1, 2, 3, 4], "sum"),
        ([1, 1, 1, 1], [1, 2, 3, 4], [1, 2, 3, 4], "spearman"),
        ([], [], [], "sum"),
        ([1], [2], [3], "kendall"),
        ([1, None, 2, None], [None, 1, None, 2], [1, 2, 3, 4], "pearson"),
    ],
)
def test_no_test_has_a_reason(test, a, b, human, coefficient):
    found = test(a, b, Measure(human, documents=None, coefficient=coefficient))
    assert math.isnan(found.value)
    assert math.isnan(found.p)
    assert found.reason


def test_senseless_options_are_refused():
    with pytest.raises(OptionError, match="rounds: 0"):
        permutation_test([1, 2], [1, 2], Measure([1, 2], documents=None), rounds=0)
    with pytest.raises(OptionError, match="pass documents"):
        paired_bootstrap(
            [1, 2], [1, 2], Measure([1, 2], documents=None, level="sample")
        )
    with pytest.raises(OptionError, match="1 rows and human 2"):
        paired_bootstrap([1, 2], [1], Measure([1, 2], documents=None))


# Formulas ------------------------------------------------------------------------------------------------------------


def test_holm_by_hand():
    # sorted .01 .03 .04 times 3, 2, 1 -> .03 .06 .04, and no smaller than the one before: .03 .06 .06
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]).tolist() == pytest.approx([1.0, 1.0])  # 1.2 is cut to 1
    assert holm([]).tolist() == []
    with_nan = holm([0.01, math.nan, 0.04])  # two tests, not three
    assert with_nan[[0, 2]].tolist() == pytest.approx([0.02, 0.04])
    assert math.isnan(with_nan[1])
    with pytest.raises(OptionError, match=r"numbers in 0\.\.1"):
        holm([0.5, 1.5])


# Raters --------------------------------------------------------------------------------------------------------------

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability": 4 observers, 12 units
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ],
    dtype=float,
).T


def test_alpha_of_the_published_example():
    assert krippendorff_alpha(KRIPPENDORFF) == pytest.approx(0.849, abs=5e-4)
    assert krippendorff_alpha(KRIPPENDORFF, nominal=True) == pytest.approx(
        0.743, abs=5e-4
    )


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 9), st.floats(-50, 50))
def test_alpha_ignores_scale_order_and_single_ratings(seed, scale, shift):
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 6, (10, 4)).astype(float)
    table[rng.random((10, 4)) < 0.3] = np.nan
    alpha = krippendorff_alpha(table)
    same = pytest.approx(alpha, abs=1e-9, nan_ok=True)
    assert krippendorff_alpha(scale * table + shift) == same
    assert krippendorff_alpha(table[rng.permutation(10)][:, rng.permutation(4)]) == same
    assert krippendorff_alpha(np.vstack([table, [9, np.nan, np.nan, np.nan]])) == same
    assert not alpha > 1


def test_alpha_at_its_ends():
    assert krippendorff_alpha([[1, 1], [2, 2], [5, 5]]) == pytest.approx(1)
    assert krippendorff_alpha([[1, 5], [5, 1], [1, 5], [5, 1]]) < 0
    noise = np.random.default_rng(0).normal(size=(2000, 3))
    assert abs(krippendorff_alpha(noise)) < 0.05
    for table in ([[3, 3], [3, 3]], [[1, None], [None, 2]], np.zeros((0, 2))):
        assert math.isnan(krippendorff_alpha(table))


def ceiling(table):
    sets = [
        (own, others, np.flatnonzero(rows), None)
        for rows, own, others in against_others(table)
    ]
    return Agreement.of_mean(sets, len(table), "pooled", "pearson").values[0]


def test_ceilings():
    # raters 1 2 3, 1 2 3 and 3 2 1: the first against the mean 2 2 2 of the others is undefined, so is the second;
    # the third against 1 2 3 is -1
    assert ceiling([[1, 1, 3], [2, 2, 2], [3, 3, 1]]) == pytest.approx(-1)
    expected = []  # with missing ratings: on the rows that another rater saw, too
    for j in range(4):
        others = np.delete(KRIPPENDORFF, j, axis=1)
        rows = ~np.isnan(KRIPPENDORFF[:, j]) & (~np.isnan(others)).any(axis=1)
        expected.append(pooled(KRIPPENDORFF[rows, j], np.nanmean(others[rows], axis=1)))
    assert ceiling(KRIPPENDORFF) == pytest.approx(np.mean(expected))
    for table in (
        [[1], [2]],
        [[1, None], [2, None], [None, 3]],
        [[2, 2], [2, 2]],
    ):  # alone, strangers, constant
        assert math.isnan(ceiling(table))


def test_means_of_raters_tie_whatever_the_order_of_summation():
    # rows 0 and 1: the others' ratings are the same three in another order, and sum to .6 and .6000000000000001
    (_, _, others), *_ = against_others(
        [[1, 0.1, 0.2, 0.3], [2, 0.3, 0.2, 0.1], [3, 1, 1, 1]]
    )
    assert others[0] == others[1]
    for table, why in (([1, 2, 3], "shape"), ([[1, math.inf]], "infinite")):
        with pytest.raises(OptionError, match=why):
            against_others(table)


# Williams ------------------------------------------------------------------------------------------------------------


def test_williams_has_the_figures_of_steigers_example():
    # Steiger 1980, n = 103: r(1, 2) = .4 and r(1, 3) = .5, r(2, 3) = .1; t = -0.89, p = .37 (as psych's r.test says).
    found = williams(0.4, 0.5, 0.1, 103)
    assert found.p == pytest.approx(0.37, abs=0.005)
    assert found.n == 103
    # By hand: K = 1 - .16 - .25 - .01 + .04 = .62; t = -.1 √(102 · 1.1 / (2 · .62 · 102/100 + .2025 · .729)) = -.8914
    t = -0.1 * math.sqrt(102 * 1.1 / (2 * 0.62 * 1.02 + 0.2025 * 0.9**3))
    assert t == pytest.approx(-0.8914, abs=2e-4)
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), 100))


def test_williams_and_permutation_find_the_same_on_independent_rows():
    rng = np.random.default_rng(4)
    human = rng.normal(size=80)
    a, b = human + rng.normal(size=80), human + 1.6 * rng.normal(size=80)
    measure = Measure(
        human,
        documents=np.arange(80),
        systems=None,
        level="pooled",
        coefficient="pearson",
    )
    one, other = (
        williams_test(a, b, human),
        permutation_test(a, b, measure, rounds=2000),
    )
    assert one.value == pytest.approx(other.value)
    assert one.p == pytest.approx(other.p, abs=0.06)
    a[3] = np.nan
    assert williams_test(a, b, human).n == 79
    assert math.isnan(williams_test(a, a, human).p)
    assert "constant" in str(williams_test(np.ones(80), b, human).reason)


def test_williams_rejects_equal_judges_as_often_as_it_says():
    rng, rejected = np.random.default_rng(0), 0
    for _ in range(400):
        human = rng.normal(size=40)
        a, b = (human + rng.normal(size=40) for _ in range(2))
        rejected += williams_test(a, b, human).p < 0.05
    assert rejected / 400 == pytest.approx(0.05, abs=0.03)


def test_false_discoveries_by_hand():
    # BH: p · 4 / rank, smallest from behind: .01·4/1, .02·4/2, .03·4/3, .5 → .04, .04, .04, .5
    assert false_discovery([0.01, 0.02, 0.03, 0.5]) == pytest.approx(
        [0.04, 0.04, 0.04, 0.5]
    )
    # BY: times 1 + 1/2 + 1/3 of three
    assert false_discovery([0.01, np.nan, 0.02, 0.03], dependent=True) == pytest.approx(
        [0.03 * 11 / 6, np.nan, 0.03 * 11 / 6, 0.03 * 11 / 6], nan_ok=True
    )
