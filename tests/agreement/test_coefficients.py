"""A coefficient is one class, whatever asks for it; an unknown name computes nothing."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write

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

    name = "concordance-of-a-test"
    title = "Concordance of a test"
    about = "Lin's concordance correlation."
    on_scale = True

    def of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return twice the covariance over the variances and the squared distance of the means."""
        apart = (x.mean(axis=1) - y.mean(axis=1)) ** 2
        together = ((x.T - x.mean(axis=1)) * (y.T - y.mean(axis=1))).mean(axis=0)
        return 2 * together / (x.var(axis=1) + y.var(axis=1) + apart)


@pytest.fixture
def ccc() -> Iterator[str]:
    coefficients.names()  # the others are registered first
    coefficients.register(Concordance)
    yield Concordance.name
    del coefficients._parts[Concordance.name]


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
        scale=(-9, 9),
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
    assert Concordance.title in headline(found)
    assert Concordance.title in pivots(found)[0].columns
    assert Concordance.title in agreement_table(found).markdown()
    (why,) = Gate.parse(f"{ccc}>=0.9").judge(found, 0.9)
    assert why.startswith(f"shifted, overall: pooled {ccc} is ")
    assert Gate.parse(f"within.{ccc}>=-1").judge(found, 0.9) == []
    with pytest.raises(OptionError, match=r"lies in -1\.\.1"):
        Gate.parse(f"{ccc}>=1.5")


def test_a_coefficient_of_numbers_has_no_value_for_scores_on_another_scale(
    ccc: str,
) -> None:
    human, judges, ids = example()
    judges["hundreds"] = 100 * human
    asked = {"coefficients": (ccc, "pearson"), "rounds": 40, "levels": ("pooled",)}
    found = meta_evaluate(judges, human, scale=(-9, 9), **asked, **ids)
    off = found.cell("hundreds", "overall", "pooled", ccc)
    assert math.isnan(off["value"])
    assert "are not on the human ratings' scale -9..9" in off["reason"]
    assert found.cell("hundreds", "overall", "pooled", "pearson")["value"] > 0.99
    assert found.cell("noisy", "overall", "pooled", ccc)["value"] > 0.5
    tested = {(row["a"], row["b"]): row for row in rows_of(found.comparisons)}
    assert tested["shifted", "noisy"]["p"] < 0.05
    for pair in (("shifted", "hundreds"), ("noisy", "hundreds")):
        assert math.isnan(tested[pair]["difference"])
        assert Concordance.title in tested[pair]["reason"]
    (why,) = Gate.parse(f"{ccc}>=0.1").judge(
        meta_evaluate({"hundreds": 100 * human}, human, scale=(-9, 9), **asked), 0.9
    )
    assert "scale -9..9" in why
    # Without a scale nobody knows whether scores are on it.
    unknown = meta_evaluate(judges, human, **asked, **ids)
    assert "is not known" in unknown.cell("noisy", "overall", "pooled", ccc)["reason"]


@pytest.mark.parametrize(
    ("given", "by"),
    [
        ({}, "spearman"),
        ({"coefficients": ("kendall", "pearson")}, "kendall"),
        ({"coefficients": ("acc_eq", "pearson")}, "pearson"),
        ({"coefficients": ("pearson",), "compare_by": "q"}, "q"),
        ({"coefficients": ("acc_eq",)}, "spearman"),
    ],
)
def test_judges_are_tested_by_the_coefficient_that_was_asked_for(
    given: dict[str, Any], by: str
) -> None:
    human, judges, ids = example()
    found = meta_evaluate(judges, human, levels=("pooled",), rounds=40, **given, **ids)
    assert set(found.comparisons["coefficient"]) == {by}
    assert found.settings["compare_by"] == by
    said = [note for note in found.notes if "stands in no table of agreement" in note]
    assert bool(said) is (by not in set(found.agreement["coefficient"]))


@pytest.mark.parametrize(
    ("words", "by"),
    [
        (["--fail-under", "kendall>=0"], "kendall"),
        (["--fail-under", "kendall>=0", "--coefficient", "pearson"], "pearson"),
        (["--fail-under", "mae<=9", "--fail-under", "q>=-3"], "q"),
        (["--fail-under", "kendall>=0", "--compare-by", "spearman"], "spearman"),
        (["--fail-under", "acc_eq>=0"], "spearman"),
    ],
)
def test_a_command_tests_judges_by_its_gate_s_coefficient(
    words: list[str], by: str, cli: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"output": f"Text {n}.", "score": n % 5 + 1, "one": n % 5 + 1, "two": int(two)}
        for n, two in enumerate(rng.integers(1, 6, 30))
    ]
    file = write(tmp_path / "rows.jsonl", rows)
    told = cli("check", file, "--judge", "one", "--judge", "two", "--json", *words).json
    assert {row["coefficient"] for row in told["comparisons"]} == {by}
    (one,) = told["judges"]["one"].values()
    assert by in one["pooled"]


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
