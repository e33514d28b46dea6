"""A coefficient is one class, whatever asks for it; an unknown name computes nothing."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from judgesmith.agreement.coefficients import (
    ALL_LEVELS,
    Correlation,
    coefficients,
    correlation,
    decision_of,
    parts_of,
)
from judgesmith.agreement.correlation import (
    CorrelationSum,
    correlate,
    imputed_by,
    rowwise,
    within_systems,
)
from judgesmith.agreement.differences import paired_bootstrap
from judgesmith.agreement.levels import LEVELS, level_of
from judgesmith.agreement.meta.evaluation import meta_evaluate, rows_of
from judgesmith.agreement.meta.inputs import EvaluationOptions
from judgesmith.agreement.resampling import Agreement, Measure, Range, bootstrap_q
from judgesmith.agreement.significance import permutation_test
from judgesmith.errors import JudgesmithError, OptionError
from judgesmith.evaluating.gate import Gate
from judgesmith.evaluating.pivot import headline, pivots
from judgesmith.evaluating.tables import agreement_table


class Concordance(Correlation):
    """Lin's concordance: 1 only where scores are equal, not where they are shifted."""

    name = "ccc"
    title = "Lin's ccc"
    about = "Lin's concordance correlation."

    def of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return twice the covariance over the variances and the squared distance of the means."""
        apart = (x.mean(axis=1) - y.mean(axis=1)) ** 2
        together = ((x.T - x.mean(axis=1)) * (y.T - y.mean(axis=1))).mean(axis=0)
        return 2 * together / (x.var(axis=1) + y.var(axis=1) + apart)


@pytest.fixture
def ccc() -> Iterator[str]:
    coefficients.names()  # the others are registered first
    coefficients.register(Concordance)
    yield "ccc"
    del coefficients._parts["ccc"]


def example() -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, list[int]]]:
    rng = np.random.default_rng(0)
    doc, sys = (codes.ravel() for codes in np.indices((20, 4)))
    human = 0.5 * sys + rng.normal(size=80)
    judges = {"shifted": human + 1.5 + 0.1 * rng.normal(size=80)}
    judges["noisy"] = human + 0.8 * rng.normal(size=80)
    return human, judges, {"documents": doc.tolist(), "systems": sys.tolist()}


def test_a_new_coefficient_works_at_every_level_and_in_every_table(ccc: str) -> None:
    human, judges, ids = example()
    found = meta_evaluate(
        judges,
        human,
        coefficients=(ccc, "spearman"),
        compare_by=ccc,
        rounds=60,
        ratings={"overall": np.column_stack([human, human + 1, human - 1])},
        **ids,
    )
    assert found.settings["levels"] == list(ALL_LEVELS)
    for row in rows_of(found.agreement):
        assert row["low"] <= row["value"] <= row["high"], row
        if row["coefficient"] == ccc:
            assert row["low"] < row["value"] < row["high"]
    own = found.cell("shifted", "overall", "pooled", ccc)
    x = judges["shifted"]
    by_hand = 2 * np.cov(x, human, bias=True)[0, 1]
    by_hand /= x.var() + human.var() + (x.mean() - human.mean()) ** 2
    assert own["value"] == pytest.approx(by_hand)
    assert found.cell("noisy", "overall", "pooled", ccc)["value"] > own["value"]
    for row in rows_of(found.comparisons):  # .306 and .886 differed by 0 with p = 1
        ours = {j: found.cell(j, "overall", row["level"], ccc)["value"] for j in judges}
        assert row["difference"] == pytest.approx(ours[row["a"]] - ours[row["b"]])
        assert row["low"] <= row["difference"] <= row["high"]
        assert row["difference"] != 0
    (pooled,) = (row for row in rows_of(found.comparisons) if row["level"] == "pooled")
    assert pooled["p"] < 0.05
    for frame in (found.ceiling, found.by_system):
        assert ccc in set(frame["coefficient"])
    assert "Lin's ccc" in headline(found)
    assert "Lin's ccc" in pivots(found)[0].columns
    assert "Lin's ccc" in agreement_table(found).markdown()
    (why,) = Gate.parse("ccc>=0.9").judge(found, 0.9)
    assert why.startswith("shifted, overall: pooled ccc is ")
    assert Gate.parse("within.ccc>=-1").judge(found, 0.9) == []
    with pytest.raises(OptionError, match=r"ccc lies in -1\.\.1"):
        Gate.parse("ccc>=1.5")


@pytest.mark.parametrize("level", ALL_LEVELS)
def test_resamples_of_a_new_coefficient_are_rows_written_out(
    ccc: str, level: str
) -> None:
    human, judges, ids = example()
    measure = Measure(human, level=level, coefficient=ccc, **ids)
    agreement = Agreement.of([judges["noisy"]], measure)
    counts = np.random.default_rng(1).multinomial(20, [1 / 20] * 20, size=3)
    for times, (found,) in zip(
        counts, agreement.statistics[0](counts.astype(float)), strict=True
    ):
        rows = np.repeat(np.arange(80), times[ids["documents"]])
        twice = np.concatenate([np.arange(n) for n in times[ids["documents"]]])
        documents = [(ids["documents"][i], n) for i, n in zip(rows, twice, strict=True)]
        plain = correlate(
            judges["noisy"][rows],
            human[rows],
            coefficient=ccc,
            level=level,
            documents=documents,
            systems=np.array(ids["systems"])[rows].tolist(),
        )
        assert found == pytest.approx(plain.value)
    interval = bootstrap_q(judges["noisy"], measure, rounds=60)
    assert interval.low < interval.value < interval.high
    other = paired_bootstrap(judges["noisy"], judges["shifted"], measure, rounds=60)
    assert other.value != 0
    assert not math.isnan(other.p)


def test_what_is_declared_is_whole() -> None:
    for name, one in coefficients.parts().items():
        assert one.name == name
        assert one.title
        assert one.about.endswith(".")
        assert one.low < one.high
        assert set(one.levels) <= set(ALL_LEVELS)
        assert one.chance is None or one.low < one.chance < one.high
        Range.of(name)
    assert tuple(LEVELS) == ALL_LEVELS


def test_an_unknown_coefficient_is_refused_everywhere() -> None:
    human, judges, ids = example()
    x, both = judges["noisy"], np.stack([human, human])
    measure = Measure(human, coefficient="pearsn", **ids)
    asked = (
        lambda: correlate(x, human, coefficient="pearsn", level="pooled"),
        lambda: rowwise(both, both, ["pearsn"]),
        lambda: within_systems(x, human, np.array(ids["systems"]), ["pearsn"]),
        lambda: bootstrap_q(x, measure, rounds=9),
        lambda: paired_bootstrap(x, x, measure, rounds=9),
        lambda: permutation_test(x, x, measure, rounds=9),
        lambda: Agreement.of([x], measure),
        lambda: Agreement.of_mean([], 3, "pooled", "pearsn"),
        lambda: Range.of("pearsn"),
        lambda: parts_of("pearsn"),
        lambda: correlation("kappa"),
        lambda: parts_of("kappa"),
        lambda: decision_of("spearman"),
        lambda: Gate.parse("pearsn>=0.2"),
        lambda: meta_evaluate(judges, human, coefficients=("pearsn",), rounds=0),
        lambda: meta_evaluate(judges, human, compare_by="pearsn", rounds=0),
        lambda: meta_evaluate(judges, human, compare_by="kappa", rounds=0),
    )
    for ask in asked:
        with pytest.raises(JudgesmithError):
            ask()


def test_an_unknown_level_is_refused_everywhere() -> None:
    human, judges, ids = example()
    x = judges["noisy"]
    measure = Measure(human, level="rater", **ids)
    asked = (
        lambda: correlate(x, human, level="rater", **ids),
        lambda: CorrelationSum("rater")(x, human, *ids.values()),
        lambda: bootstrap_q(x, measure, rounds=9),
        lambda: paired_bootstrap(x, x, measure, rounds=9),
        lambda: permutation_test(x, x, measure, rounds=9),
        lambda: level_of("rater"),
        lambda: Gate.parse("rater.q>=0.2"),
        lambda: EvaluationOptions(levels=("rater",)),
    )
    for ask in asked:
        with pytest.raises((JudgesmithError, ValueError)):
            ask()
    for falls in (
        lambda: imputed_by("rater", None, None),
        lambda: Agreement.of_mean([(x, human, np.arange(80), None)], 80, "rater", "q"),
    ):
        with pytest.raises(AssertionError, match="rater"):
            falls()
