"""Weighted coefficients against rows written out, and intervals with their coverage."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.agreement import resampling
from judgesmith.agreement.correlation import PARTS, CorrelationSum, correlate
from judgesmith.agreement.decisions import (
    accuracy_when_drawn,
    auc_when_drawn,
    f1_when_drawn,
)
from judgesmith.agreement.meta.agreement import agreements
from judgesmith.agreement.meta.inputs import (
    Beside,
    EvaluationOptions,
    aspects_of,
)
from judgesmith.agreement.resampling import (
    Agreement,
    Measure,
    WeightedRows,
    bootstrap_q,
    interval_of,
)
from judgesmith.errors import OptionError

pytestmark = pytest.mark.filterwarnings("error")


def example(
    seed: int = 0,
    documents: int = 12,
    systems: int = 5,
    steps: int = 5,
    noise: float = 1.0,
):
    rng = np.random.default_rng(seed)
    doc, sys_ = (
        np.repeat(np.arange(documents), systems),
        np.tile(np.arange(systems), documents),
    )
    human = np.round(
        rng.normal(size=documents)[doc] + sys_ / 4 + rng.normal(size=len(doc)), 1
    )
    predicted = np.clip(
        np.round(human + noise * rng.normal(size=len(doc))) + 3, 1, steps
    ).astype(float)
    return predicted, human, doc, sys_


def written_out(doc: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a resample, and a fresh document id for every time a document was drawn."""
    rows, ids = [], []
    for d, times in enumerate(counts.astype(int)):
        for time_ in range(times):
            rows.extend(np.flatnonzero(doc == d))
            ids.extend([(d, time_)] * int((doc == d).sum()))
    return np.array(rows, dtype=int), np.array([hash(i) for i in ids])


def percentile_interval(
    x, measure: Measure, rounds: int, seed: int = 0
) -> tuple[float, float]:
    """The plain quantiles of the resamples that `bootstrap_q` draws."""
    return resampling.percentiles(
        resampling.Agreement.of([x], measure).resample(rounds, seed)[0][0], 0.95
    )


# Weighted coefficients -----------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_weighted_equals_written_out(seed):
    rng = np.random.default_rng(seed)
    n, documents = int(rng.integers(2, 40)), int(rng.integers(1, 12))
    doc = np.unique(rng.integers(0, documents, n), return_inverse=True)[1]
    x = rng.integers(0, rng.integers(1, 9), n).astype(float)
    y = np.round(rng.normal(size=n), int(rng.integers(0, 3)))
    count = int(doc.max()) + 1
    counts = rng.multinomial(count, np.full(count, 1 / count), size=5).astype(float)
    names = (*PARTS, "somers")
    found = WeightedRows(x, y, doc, names)(counts)
    for i in range(5):
        rows, _ = written_out(doc, counts[i])
        for j, name in enumerate(names):
            expected = correlate(
                x[rows], y[rows], coefficient=name, level="pooled"
            ).value
            assert found[i, j] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_an_outlier_that_was_not_drawn_costs_no_precision():
    x, y = np.array([1e9, 1.0, 2.0, 4.0]), np.array([0.0, 1.0, 3.0, 3.0])
    found = WeightedRows(x, y, np.arange(4), ("pearson",))(np.array([[0.0, 2, 1, 1]]))[
        0, 0
    ]
    assert found == pytest.approx(
        correlate(
            [1, 1, 2, 4], [1, 1, 3, 3], coefficient="pearson", level="pooled"
        ).value
    )


def test_a_resample_of_equal_scores_is_undefined_on_either_side():
    # rows 0 and 1 differ by rounding alone, row 2 truly; drawn without it there is nothing to correlate
    equal, other = np.array([0.1 + 0.2, 0.3, 5.0]), np.array([1.0, 2.0, 4.0])
    assert equal[0] != equal[1]
    counts = np.array([[2.0, 1, 0], [1, 1, 1]])
    for x, y in ((equal, other), (other, equal)):
        found = WeightedRows(x, y, np.arange(3), PARTS)(counts)
        assert np.isnan(found).tolist() == [[True] * 3, [False] * 3]


def test_kendall_beyond_the_sign_matrix_is_the_same(monkeypatch):
    x, y, doc, _ = example(3)
    names = ("kendall",)
    counts = (
        np.random.default_rng(0)
        .multinomial(12, np.full(12, 1 / 12), size=20)
        .astype(float)
    )
    at_once, alone, looped = (WeightedRows(x, y, doc, names) for _ in range(3))
    expected = at_once(counts)
    monkeypatch.setattr(resampling, "SIGNS_AT_ONCE", 10)
    each = [alone(one[None]) for one in counts]
    assert (np.concatenate(each) == expected).all()
    monkeypatch.setattr(resampling, "PAIRS_AT_ONCE", 10)
    np.testing.assert_allclose(looped(counts), expected, atol=1e-12)
    held = ["signs" in vars(one) for one in (at_once, alone, looped)]
    assert held == [True, False, False]
    flat = looped(
        np.eye(12)[:1] * 3 * (np.arange(12) == 0)
    )  # a document alone may be flat, and warns of nothing
    assert flat.shape == (1, 1)


# Values and resamples at each level ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["pooled", "sample", "system"])
@pytest.mark.parametrize("coefficient", [*PARTS, "sum"])
def test_value_is_the_plain_coefficient(level, coefficient):
    x, y, doc, sys_ = example(1)
    x[[3, 17, 40]] = np.nan
    ids = {"documents": doc, "systems": sys_}
    found = bootstrap_q(
        x, Measure(y, level=level, coefficient=coefficient, **ids), rounds=50
    )
    if coefficient == "sum":
        expected = CorrelationSum(level)(x, y, **ids).q
    else:
        expected = correlate(x, y, coefficient=coefficient, level=level, **ids).value
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.low < found.value < found.high
    assert (found.rounds, found.documents, found.reason) == (50, 12, None)


def test_systems_missing_from_a_resample_are_left_out():
    # system C only appears in document 2; drawn without it, the correlation is over A and B
    x, y = np.array([1.0, 2, 1, 2, 9]), np.array([2.0, 1, 2, 1, 5])
    agreement = resampling.Agreement.of(
        [x],
        Measure(
            y,
            documents=[0, 0, 1, 1, 2],
            systems=["A", "B", "A", "B", "C"],
            level="system",
            coefficient="kendall",
        ),
    )
    # without C: A-B discordant -> -1; with C (9, 5): A-B discordant, A-C and B-C concordant -> (2-1)/3
    found = agreement.statistics[0](np.array([[2.0, 1, 0], [1, 1, 1]]))[:, 0]
    assert found.tolist() == pytest.approx([-1, 1 / 3])


@pytest.mark.parametrize("level", ["pooled", "sample", "system"])
@pytest.mark.parametrize(
    ("coefficient", "judges"), [*((name, 1) for name in PARTS), ("kendall", 2)]
)
def test_resamples_equal_written_out_rows(level, coefficient, judges):
    # two judges with gaps of their own on the same documents: the mean of their agreements, resample by resample
    x, y, doc, sys_ = example(2, documents=6, systems=4)
    rng = np.random.default_rng(1)
    masks = [rng.random(len(x)) < 0.8 for _ in range(judges)]
    sets = [(x[m], y[m], doc[m], sys_[m]) for m in masks]
    if judges == 1:
        ((px, py, pdoc, psys),) = sets
        measure = Measure(
            py, documents=pdoc, systems=psys, level=level, coefficient=coefficient
        )
        agreement = resampling.Agreement.of([px], measure)
    else:
        agreement = resampling.Agreement.of_mean(sets, 6, level, coefficient)
    counts = (
        np.random.default_rng(7)
        .multinomial(6, np.full(6, 1 / 6), size=40)
        .astype(float)
    )
    for c, value in zip(counts, agreement.statistics[0](counts)[:, 0], strict=True):
        each = []
        for px, py, pdoc, psys in sets:
            rows, ids = written_out(pdoc, c)
            options = {
                "coefficient": coefficient,
                "level": level,
                "documents": ids,
                "systems": psys[rows],
            }
            each.append(correlate(px[rows], py[rows], **options).value)
        defined = [v for v in each if not math.isnan(v)]
        assert value == pytest.approx(
            np.mean(defined) if defined else math.nan, abs=1e-9, nan_ok=True
        )


def test_fisher_interval_by_its_formula():
    x, y, doc, _ = example(4, documents=9)
    measure = Measure(y, documents=doc, coefficient="spearman")
    low, high = percentile_interval(x, measure, 300)
    # half the percentile interval on the atanh scale, times t(.975, 8) / z(.975) and sqrt(9 / 8), about the value
    half = (
        (math.atanh(high) - math.atanh(low))
        / 2
        * 2.306004
        / 1.959964
        * math.sqrt(9 / 8)
    )
    found = bootstrap_q(x, measure, rounds=300)
    assert math.atanh(found.low) == pytest.approx(
        math.atanh(found.value) - half, abs=1e-5
    )
    assert math.atanh(found.high) == pytest.approx(
        math.atanh(found.value) + half, abs=1e-5
    )


def test_fisher_interval_where_resamples_agree_perfectly():
    # 8 documents of 3 rows, tau 1 in six and 1/3 in two: the upper quantile is 1, infinitely far on the atanh scale, so
    # the lower one counts for both sides; it does not make the interval all of -1..1
    x = [1, 2, 3] * 8
    y = [1, 2, 3] * 6 + [1, 3, 2] * 2
    measure = Measure(
        y, documents=np.repeat(range(8), 3), level="sample", coefficient="kendall"
    )
    low, high = percentile_interval(x, measure, 400)
    found = bootstrap_q(x, measure, rounds=400)
    assert found.value == pytest.approx((6 + 2 / 3) / 8)
    assert high == 1
    half = (
        (math.atanh(found.value) - math.atanh(low))
        * 2.364624
        / 1.959964
        * math.sqrt(8 / 7)
    )
    assert math.atanh(found.low) == pytest.approx(
        math.atanh(found.value) - half, abs=1e-4
    )
    assert 0 < found.low < low < found.value < found.high < 1
    turned = bootstrap_q([-v for v in x], measure, rounds=400)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_decisions_that_are_all_right_have_an_interval_with_a_width():
    right = np.arange(10) % 2
    for documents, low in (
        (10, 10 / (10 + 1.959964**2)),
        (5, 5 / (5 + 1.959964**2)),
    ):  # Wilson's; documents count
        units = np.arange(10) * documents // 10
        found = interval_of(
            Agreement.of_share(accuracy_when_drawn(right, right, units), documents, 10),
            rounds=50,
        )
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), 1)
    low = interval_of(
        Agreement.of_share(auc_when_drawn(right, right, np.arange(10)), 10, 10),
        rounds=50,
    ).low
    # Newcombe's fifth: 5 failed and 5 passed rows, (5 + 5) / 2 - 1 = 4
    variance = (
        low * (1 - low) * (1 + 4 * ((1 - low) / (2 - low) + low / (1 + low))) / (5 * 5)
    )
    assert 1 - low == pytest.approx(1.959964 * math.sqrt(variance), abs=1e-3)


def test_chunks_do_not_change_anything(monkeypatch):
    x, y, doc, _ = example(5)
    whole = bootstrap_q(x, Measure(y, documents=doc), rounds=300)
    monkeypatch.setattr(resampling, "_CELLS", 7 * len(x))
    pieces = bootstrap_q(x, Measure(y, documents=doc), rounds=300)
    assert (pieces.low, pieces.high) == pytest.approx(
        (whole.low, whole.high), abs=1e-12
    )


# Intervals -----------------------------------------------------------------------------------------------------------


def test_interval_holds_the_value_and_is_reproducible():
    x, y, doc, _ = example(6, documents=40)
    found = bootstrap_q(x, Measure(y, documents=doc), rounds=500)
    assert -3 <= found.low < found.value < found.high <= 3
    assert bootstrap_q(x, Measure(y, documents=doc), rounds=500) == found
    assert bootstrap_q(x, Measure(y, documents=doc), rounds=500, seed=1) != found
    wider = bootstrap_q(x, Measure(y, documents=doc), rounds=500, confidence=0.99)
    assert wider.low < found.low
    assert wider.high > found.high


def test_documents_are_drawn_whole():
    # ten copies of every row are no more evidence: the same interval as without, and much wider than as separate rows
    x, y, _, _ = example(8, documents=20, systems=1)
    one = bootstrap_q(x, Measure(y, documents=None), rounds=400)
    ids = np.repeat(np.arange(20), 10)
    copies = bootstrap_q(
        np.repeat(x, 10), Measure(np.repeat(y, 10), documents=ids), rounds=400
    )
    rows = bootstrap_q(
        np.repeat(x, 10), Measure(np.repeat(y, 10), documents=None), rounds=400
    )
    assert (copies.low, copies.high) == pytest.approx((one.low, one.high), abs=1e-9)
    assert rows.high - rows.low < (copies.high - copies.low) / 2


def test_undefined_resamples_are_counted():
    # one row of 5 differs: a resample without it has constant predictions, probability (4/5)^5 = .33
    x, y = [1, 1, 1, 1, 2], [1, 2, 3, 4, 5]
    found = bootstrap_q(x, Measure(y, documents=None), rounds=2000)
    assert found.undefined / 2000 == pytest.approx(0.8**5, abs=0.04)
    assert (
        percentile_interval(x, Measure(y, documents=None), 2000)[0] == 0
    )  # they count 0 in the sum …
    single = Measure(y, documents=None, coefficient="pearson")
    assert bootstrap_q(x, single, rounds=2000).undefined == found.undefined
    assert (
        percentile_interval(x, single, 2000)[0] > 0
    )  # … and a single coefficient is left out


@pytest.mark.parametrize(
    ("predicted", "human", "documents", "value", "reason"),
    [
        ([1, 2, 3], [1, 2, 3], "aaa", 3, "one document"),
        ([2, 2, 2], [1, 2, 3], "abc", 0, "undefined"),
        ([None] * 3, [1, 2, 3], "abc", 0, "failed on every row"),
        ([], [], "", 0, "failed on every row, or there are none"),
        ([1], [1], "a", 0, "one document"),
    ],
)
def test_no_interval_has_a_reason(predicted, human, documents, value, reason):
    found = bootstrap_q(predicted, Measure(human, documents=documents))
    assert found.value == pytest.approx(value)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert reason in (found.reason or "")


def test_mostly_undefined_is_no_interval():
    # a single coefficient, one row of 50 differs and it is the only one of its document: P(not drawn) = .36; with the
    # human side likewise, P(both drawn) = .40 < half
    x, y = np.zeros(50), np.zeros(50)
    x[0], y[1] = 1, 1
    found = bootstrap_q(
        x, Measure(y, documents=None, coefficient="pearson"), rounds=1000
    )
    assert math.isnan(found.low)
    assert "resamples" in (found.reason or "")
    assert 0.5 < found.undefined / 1000 < 0.7


@pytest.mark.parametrize(
    ("measure", "options", "message"),
    [
        ({"documents": None, "level": "sample"}, {}, "pass documents"),
        ({"documents": None, "level": "system", "systems": "AB"}, {}, "pass documents"),
        ({"documents": "ab", "level": "system"}, {}, "pass systems"),
        ({"documents": None}, {"rounds": 0}, "rounds: 0"),
        ({"documents": None}, {"confidence": 95}, "confidence: 95"),
        ({"documents": None, "coefficient": "tau"}, {}, "coefficient 'tau'"),
    ],
)
def test_senseless_options_are_refused(measure, options, message):
    with pytest.raises(OptionError, match=message):
        bootstrap_q([1, 2], Measure([1, 2], **measure), **options)


# Speed and coverage --------------------------------------------------------------------------------------------------


def test_coverage_of_pearson_at_50():
    """Share of intervals that hold the true value, for independent bivariate normal rows."""
    rng, rho, hits = np.random.default_rng(0), 0.6, 0
    for i in range(1000):
        x = rng.normal(size=50)
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=50)
        found = bootstrap_q(
            x, Measure(y, documents=None, coefficient="pearson"), rounds=300, seed=i
        )
        hits += found.low <= rho <= found.high
    # the standard error of a coverage of .945 is .007, so the bounds are more than 3 of them away
    assert 920 <= hits <= 980


def test_coverage_of_auc_of_15_rows():
    """A true AUC of .8, 5 of 15 rows failed: percentiles of the resamples hold it in 84 %."""
    rng, passed, hits = np.random.default_rng(0), np.arange(15) >= 5, 0
    for i in range(500):
        scores = (
            rng.normal(size=15) + passed * 1.19023
        )  # sqrt(2) times the normal quantile of .8
        drawn = auc_when_drawn(scores, passed.astype(int), np.arange(15))
        found = interval_of(Agreement.of_share(drawn, 15, 15), rounds=200, seed=i)
        hits += found.low <= 0.8 <= found.high
    assert 465 <= hits <= 495


@pytest.mark.parametrize(
    ("level", "least"), [("pooled", 1.24), ("sample", 1.23), ("system", 1.44)]
)
def test_intervals_for_other_systems_hold_the_value_of_systems_at_large(level, least):
    """8 systems, some of which the judge favours, on 20 documents; the value of 2,400 systems is in the parameters."""
    held, (doc, sys) = [], (codes.ravel() for codes in np.indices((20, 8)))
    for seed in range(60):
        rng = np.random.default_rng([seed, 8])
        quality, hard, own = (
            rng.normal(size=8) / 2,
            rng.normal(size=20) / 2,
            rng.normal(size=160),
        )
        human = quality[sys] + hard[doc] + own
        judge = (
            0.8 * quality[sys]
            + 0.6 * rng.normal(size=8)[sys]
            + 0.5 * (hard[doc] + own)
            + rng.normal(size=160)
        )
        judge += 0.4 * rng.normal(size=20)[doc]
        judged = aspects_of({"j": judge}, {"overall": human}, doc, sys, Beside(), [])
        for wide in (False, True):
            options = EvaluationOptions(rounds=200, new_systems=wide)
            whole = {"overall": []}
            (cell,) = agreements(["j"], judged, [level], ["q"], options, whole, [])
            held.append(cell["low"] <= least <= cell["high"])
    documents, systems = np.reshape(held, (-1, 2)).mean(axis=0)
    assert documents < 0.9 < 0.93 <= systems
    assert cell["interval"] == "fisher, other systems"


def test_f1_has_no_interval_where_people_failed_none() -> None:
    decided, human, units = np.array([0, 1, 1, 1]), np.ones(4, int), np.arange(4)
    found = interval_of(
        Agreement.of_share(f1_when_drawn(decided, human, units), 4, 4),
        rounds=200,
        seed=0,
    )
    assert found.value == 0
    assert math.isnan(found.low)
    assert math.isnan(found.high)
