"""Meta-evaluation: levels, intervals, tests and ceilings."""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rated import table as table_of

from judgesmith.agreement.meta import inputs
from judgesmith.agreement.meta.evaluation import meta_evaluate, rows_of
from judgesmith.agreement.meta.inputs import FEWER, MANY
from judgesmith.agreement.resampling import Agreement, Measure, bootstrap_q
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.gate import Gate

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
OPTIONS: Any = [
    [{"levels": ["sample"], "documents": None}, "no document ids"],
    [{"levels": ["system"], "systems": None}, "0 systems; at least 3"],
    [
        {"levels": ["segment"]},
        "levels.0: .*'pooled', 'within', 'sample' or 'system'; got 'segment'",
    ],
    [{"coefficients": ["rho"]}, "coefficients.0: .*spearman.*; got 'rho'"],
    [{"rounds": -1}, "rounds: .*; got -1"],
    [{"confidence": 1.0}, "confidence: .*less than 1; got 1.0"],
    [{"compare_by": "accuracy"}, "compare_by: .*; got 'accuracy'"],
    [{"round": 10}, "no option 'round' .did you mean 'rounds'"],
]


def table(
    documents: int = 30, systems: int = 6, seed: int = 0, noise: float = 1.0
) -> dict[str, Any]:
    predicted, human, doc, sys = table_of(documents, systems, seed, noise)
    return {
        "predicted": predicted,
        "human": human,
        "documents": doc,
        "systems": [f"system {s}" for s in sys],
    }


def evaluate(data: dict[str, Any], **options: Any) -> Any:
    judges = {"judge": data["predicted"]}
    shared = {"documents": data["documents"], "systems": data["systems"], "rounds": 200}
    return meta_evaluate(judges, data["human"], **(shared | options))


# Values --------------------------------------------------------------------------------------------------------------


def test_rows_without_a_human_score_are_left_out_and_said() -> None:
    data = table()
    data["human"][:5] = np.nan
    result = evaluate(data)
    assert result.cell("judge", "overall", "pooled", "kendall")["rows"] == 175
    assert "overall: 5 of 180 rows have no human score and are left out" in result.notes


def test_interval_is_that_of_the_bootstrap() -> None:
    data = table()
    for level in ("pooled", "sample", "system"):
        ours = evaluate(data, seed=3).cell("judge", "overall", level, "spearman")
        theirs = bootstrap_q(
            data["predicted"],
            Measure(
                data["human"],
                documents=data["documents"],
                systems=data["systems"],
                level=level,
                coefficient="spearman",
            ),
            rounds=200,
            seed=3,
        )
        assert (ours["low"], ours["high"]) == (theirs.low, theirs.high)


def test_average_over_aspects_is_the_plain_mean_and_surer_than_its_parts() -> None:
    rng = np.random.default_rng(0)
    human = {name: rng.normal(size=300) for name in "abcd"}
    judge = {name: scores + rng.normal(size=300) for name, scores in human.items()}
    result = meta_evaluate({"j": judge}, human, rounds=400)
    parts = [result.cell("j", name, "pooled", "pearson") for name in "abcd"]
    mean = result.cell("j", "average", "pooled", "pearson")
    assert mean["value"] == pytest.approx(np.mean([p["value"] for p in parts]))
    # four independent aspects: half the width
    assert mean["high"] - mean["low"] == pytest.approx(
        np.mean([p["high"] - p["low"] for p in parts]) / 2, rel=0.25
    )


def test_an_average_of_aspects_on_different_rows_has_no_interval() -> None:
    rng = np.random.default_rng(0)
    human = {"a": rng.normal(size=60), "b": rng.normal(size=60)}
    human["b"][0] = np.nan
    cell = meta_evaluate({"j": rng.normal(size=60)}, human, rounds=50).cell(
        "j", "average", "pooled", "pearson"
    )
    assert math.isnan(cell["low"])
    assert "same resamples" in cell["reason"]
    assert not math.isnan(cell["value"])


def test_q_is_the_sum_and_accuracy_counts_ties() -> None:
    data = table()
    result = evaluate(
        data, coefficients=("pearson", "spearman", "kendall", "q", "acc_eq")
    )
    parts = [
        result.cell("judge", "overall", "pooled", n)["value"]
        for n in ("pearson", "spearman", "kendall")
    ]
    assert result.cell("judge", "overall", "pooled", "q")["value"] == pytest.approx(
        sum(parts)
    )
    for level, name in itertools.product(
        ("pooled", "sample"), ("acc_eq", "acc_eq_cross")
    ):
        cell = result.cell("judge", "overall", level, name)
        assert 0 < cell["low"] < cell["value"] < cell["high"] < 1


# Uncertainty ---------------------------------------------------------------------------------------------------------


def one_of_many(rows: int, seed: int) -> Any:
    """The cell of a judge that has the true correlation .6 with people."""
    rng = np.random.default_rng(seed)
    human = rng.normal(size=rows)
    predicted = 0.6 * human + 0.8 * rng.normal(size=len(human))
    result = meta_evaluate(
        {"j": predicted}, human, coefficients=("pearson",), seed=seed
    )
    return result.cell("j", "overall", "pooled", "pearson")


def test_many_rows_take_fewer_resamples_and_hold_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above 20,000 rows once, and then with fewer rows that count as many: sixty such tables take half a minute."""
    drawn: list[int] = []
    real = Agreement.resample

    def resample(self: Agreement, rounds: int, seed: int) -> Any:
        drawn.append(rounds)
        return real(self, rounds, seed)

    monkeypatch.setattr(Agreement, "resample", resample)
    many = one_of_many(MANY + 1, 0)
    assert many["low"] <= 0.6 <= many["high"] <= many["low"] + 0.05
    monkeypatch.setattr(inputs, "MANY", 1000)
    held = 0
    for seed in range(60):
        cell = one_of_many(inputs.MANY + 1, seed)
        held += cell["low"] <= 0.6 <= cell["high"]
    assert (
        held >= 52
    )  # of 60; binomial with p = .95 falls below in 1 of 200 cases, and the seeds are fixed
    assert drawn == [FEWER] * 61


def test_better_judges_are_told_from_worse_and_equal_ones_are_not() -> None:
    rng = np.random.default_rng(5)
    human = rng.normal(size=200)
    judges = {
        "good": human + rng.normal(size=200),
        "bad": human + 4 * rng.normal(size=200),
    }
    judges["like good"] = judges["good"] * 2 + 1
    table_of = meta_evaluate(judges, human, rounds=400).comparisons.set_index(
        ["a", "b"]
    )
    clear, none = table_of.loc[("good", "bad")], table_of.loc[("good", "like good")]
    assert clear["p"] < 0.05
    assert clear["low"] > 0
    assert none["p"] == 1
    assert none["low"] == none["high"] == 0


def test_every_judge_that_runs_against_people_is_named() -> None:
    rng = np.random.default_rng(5)
    human = {name: rng.normal(size=80) for name in ("fluency", "coherence")}
    judges = {
        "with": {name: scores + rng.normal(size=80) for name, scores in human.items()},
        "against one": human["fluency"] - 2 * human["coherence"],
        "nothing": rng.normal(size=80),
    }
    notes = meta_evaluate(judges, human, rounds=200).notes
    (note,) = (note for note in notes if "runs against people" in note)
    assert note.startswith("against one runs against people")
    assert "coherence (pooled pearson -0." in note
    assert "fluency" not in note
    assert "--absolute" in note
    assert not any(
        "runs against" in note
        for note in meta_evaluate(judges, human, rounds=200, absolute=True).notes
    )


def test_many_judges_are_tested_against_the_first() -> None:
    rng = np.random.default_rng(5)
    human = rng.normal(size=40)
    result = meta_evaluate(
        {f"j{i}": human + rng.normal(size=40) for i in range(10)}, human, rounds=20
    )
    assert set(result.comparisons["a"]) == {"j0"}
    assert len(result.comparisons) == 9
    assert any("tested against the first" in note for note in result.notes)


def test_people_s_own_agreement_is_the_ceiling() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=400)
    ratings = truth[:, None] + 0.5 * rng.normal(size=(400, 3))
    result = meta_evaluate(
        {"j": truth}, ratings.mean(axis=1), ratings={"overall": ratings}, rounds=0
    )
    row = result.ceiling.set_index("coefficient").loc["pearson"]
    # var 1 + .25 for one rater, 1 + .125 for the mean of two others, covariance 1: r = 1 / sqrt(1.25 * 1.125)
    assert row["value"] == pytest.approx(1 / math.sqrt(1.25 * 1.125), abs=0.03)
    assert row["alpha"] == pytest.approx(1 / 1.25, abs=0.04)
    assert row["raters"] == 3
    assert rows_of(result.way)[0]["value"] == pytest.approx(
        1.14, abs=0.02
    )  # of r √1.25, of tau more


def rated(
    documents: int = 40, systems: int = 5, raters: int = 3, seed: int = 0
) -> dict[str, Any]:
    data = table(documents, systems, seed)
    rng = np.random.default_rng(seed + 1)
    data["ratings"] = data["human"][:, None] + rng.normal(
        size=(len(data["human"]), raters)
    )
    return data


def test_the_ceiling_of_two_raters_is_a_judge_s_interval() -> None:
    # Two raters: each is measured against the other, so both have the agreement of a judge who is the second rater.
    data = rated(raters=2)
    one, other = data["ratings"].T
    shared = {
        "documents": data["documents"],
        "systems": data["systems"],
        "coefficients": ("kendall", "q"),
    }
    found = meta_evaluate(
        {"j": other}, one, ratings={"overall": data["ratings"]}, rounds=200, **shared
    )
    assert len(found.ceiling) == 8
    for _, row in found.ceiling.iterrows():
        cell = found.cell("j", "overall", row["level"], row["coefficient"])
        for name in ("value", "low", "high"):
            assert row[name] == pytest.approx(cell[name])
        assert row["low"] < row["value"] < row["high"]
        assert row["reason"] is None


def test_ceilings_where_raters_saw_few_rows() -> None:
    data = rated()
    ratings = data["ratings"].copy()
    ratings[5:] = np.nan  # one document of five rows
    result = evaluate(data, ratings={"overall": ratings}, levels=["pooled"])
    row = result.ceiling.iloc[0]
    assert not math.isnan(row["value"])
    assert math.isnan(row["low"])
    assert "one document" in row["reason"]


def test_many_rows_give_ceilings() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=MANY + 1)
    ratings = truth[:, None] + rng.normal(size=(len(truth), 2))
    row = meta_evaluate(
        {"j": truth},
        ratings.mean(axis=1),
        ratings={"overall": ratings},
        coefficients=("pearson",),
    ).ceiling.iloc[0]
    assert row["low"] < row["value"] < row["high"] < row["low"] + 0.05  # r = .5


# Other agreement -----------------------------------------------------------------------------------------------------


def test_a_metric_off_the_scale_has_no_error_on_it() -> None:
    data = table()
    human = np.clip(data["human"] + 3, 1, 5)
    judges = {
        "on": np.clip(data["predicted"] + 3, 1, 5),
        "off": data["predicted"] * 100,
    }
    frame = meta_evaluate(judges, human, scale=(1, 5), rounds=50)
    errors = frame.scale.set_index("judge")
    assert errors.loc["on", "mae"] > 0
    assert math.isnan(errors.loc["off", "mae"])
    assert "not on the human ratings' scale 1..5" in errors.loc["off", "reason"]


def test_only_judges_known_to_be_on_the_scale_have_an_error_on_it() -> None:
    data = table()
    human = np.clip(data["human"] + 3, 1, 5)
    judges = {
        "judge": np.clip(data["predicted"] + 3, 1, 5),
        "metric": np.clip(data["predicted"] / 9 + 3, 1, 5),
    }
    shared: dict[str, Any] = {"scale": (1, 5), "rounds": 20}
    known = meta_evaluate(judges, human, on_scale=["judge"], **shared)
    errors = known.scale.set_index("judge")
    assert errors.loc["judge", "mae"] > 0
    assert (
        errors.loc["metric", "reason"]
        == "not known to score on the human ratings' scale"
    )
    assert set(known.calibration["judge"]) == {"judge"}
    assert not any("the human ratings' scale" in note for note in known.notes)
    assumed = meta_evaluate(judges, human, **shared)
    assert assumed.scale["reason"].isna().all()
    assert any(
        "as their scores lie inside it: judge, metric" in note for note in assumed.notes
    )
    with pytest.raises(OptionError, match="'other', which is not a judge"):
        meta_evaluate(judges, human, on_scale=["other"], **shared)


def test_json_is_plain_and_has_no_nan() -> None:
    data = table()
    data["predicted"][:] = 3.0
    plain = evaluate(data, lengths=np.ones(180), scale=(-9, 9)).to_dict()
    cell = json.loads(json.dumps(plain, allow_nan=False))["judges"]["judge"]["overall"][
        "pooled"
    ]["spearman"]
    assert cell["value"] is None
    assert cell["reason"] == "the predictions are constant"


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "human", "says"),
    [
        (
            [1.0, 2.0, 3.0, 4.0, 5.0, 2.0],
            [3.0, 3.0, 3.0, 3.0, 3.0, 3.0],
            "all 6 values are 3",
        ),
        (
            [1.0, 2.0, 3.0, 4.0, 5.0, 2.0],
            [math.nan, math.nan, math.nan, math.nan, math.nan, math.nan],
            "all 6 values are missing",
        ),
        (
            [1.0, 2.0, 3.0, 4.0, 5.0, 2.0],
            [1.0, 2.0, 3.0, 4.0, 5.0, math.inf],
            "row 6 is inf",
        ),
        (
            [1.0, 2.0, 3.0, 4.0, 5.0, -math.inf],
            [1.0, 2.0, 3.0, 4.0, 5.0, 2.0],
            "row 6 is -inf",
        ),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "3 rows have one; at least 4 are needed"),
        (
            [1.0, 2.0, 3.0, 4.0, 5.0],
            [1.0, 2.0, 3.0, 4.0, 5.0, 2.0],
            "5 scores for 6 rows",
        ),
        (
            ["a", "a", "a", "a", "a", "a"],
            [1.0, 2.0, 3.0, 4.0, 5.0, 2.0],
            "expected one number per row",
        ),
        (
            [[1.0, 2.0, 3.0, 4.0, 5.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0, 2.0]],
            [1.0, 2.0, 3.0, 4.0, 5.0, 2.0],
            "shape",
        ),
    ],
)
def test_scores_that_cannot_be_correlated(
    predicted: Any, human: Any, says: str
) -> None:
    with pytest.raises(LabelsError, match=says):
        meta_evaluate({"j": predicted}, human)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *OPTIONS,
        ({"levels": ["sample"], "documents": range(180)}, "every document has one row"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        evaluate(table(), **options)


def test_one_document_has_values_and_says_that_it_has_no_interval() -> None:
    data = table(documents=1, systems=20)
    result = evaluate(data)
    cell = result.cell("judge", "overall", "pooled", "spearman")
    assert not math.isnan(cell["value"])
    assert math.isnan(cell["low"])
    assert cell["reason"].startswith("one document cannot be resampled")
    assert any("one document only" in note for note in result.notes)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(1, 4)),
            st.integers(1, 4),
            st.integers(0, 4),
            st.integers(0, 4),
        ),
        min_size=4,
        max_size=30,
    )
)
def test_any_small_table_gives_numbers_or_reasons_and_no_warning(
    rows: list[tuple[Any, int, int, int]],
) -> None:
    predicted, human, doc, sys = (list(column) for column in zip(*rows, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = meta_evaluate(
                {"j": predicted},
                human,
                documents=doc,
                systems=sys,
                rounds=20,
                lengths=human,
                scale=(1, 4),
                coefficients=("pearson", "kendall", "q", "acc_eq"),
            )
        except LabelsError as error:
            assert "nothing to agree with" in str(error)
            assert len(set(human)) == 1
            return
    for row in result.to_dict()["judges"]["j"]["overall"].values():
        for cell in row.values():
            assert (
                cell["reason"] is not None
                or cell["low"] - 1e-9 <= cell["value"] <= cell["high"] + 1e-9
            )


# The gate ------------------------------------------------------------------------------------------------------------


def test_the_gate_judges_the_lower_end() -> None:
    result = evaluate(table(noise=0.5))
    cell = result.cell("judge", "overall", "pooled", "spearman")
    below, above = cell["low"] - 0.001, cell["low"] + 0.001
    assert above < cell["value"]  # the value itself would pass both
    assert Gate.parse(f"spearman>={below}").judge(result, 0.95) == []
    (reason,) = Gate.parse(f"spearman>={above}").judge(result, 0.95)
    assert f"{cell['value']:.3f}" in reason
    assert "lower end" in reason


def test_the_gate_looks_at_the_first_judge_and_all_aspects() -> None:
    rng = np.random.default_rng(0)
    human = {"a": rng.normal(size=80), "b": rng.normal(size=80)}
    judges = {
        "good at a": human["a"] + 0.1 * rng.normal(size=80),
        "bad": rng.normal(size=80),
    }
    (reason,) = Gate.parse("pearson>=0.5").judge(
        meta_evaluate(judges, human, rounds=100), 0.95
    )
    assert reason.startswith("good at a, b:")


def test_without_an_interval_the_gate_fails() -> None:
    (reason,) = Gate.parse("spearman>=0.1").judge(
        evaluate(table(noise=0.1), rounds=0), 0.95
    )
    assert "has no interval" in reason
    assert Gate.parse("acc_eq>=0").judge(evaluate(table()), 0.95) == [
        "acc_eq was not computed for judge"
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spearman", "not of the form"),
        ("spearman>=", "not of the form"),
        ("kapa>=0.4", "not of the form"),
        ("a.b.spearman>=0.1", "not of the form"),
        ("spearman>=nan", "not of the form"),
        (">=1", "not of the form"),
        ("dialog.q>=1", "level 'dialog'"),
        (
            "sample.kappa>=0.5",
            "kappa is measured over all rows together; leave sample out",
        ),
        ("q>=3.1", "-3..3"),
        ("pearson>=2", "-1..1"),
        ("balanced-accuracy>=-0.1", "balanced-accuracy lies in 0..1"),
    ],
)
def test_a_gate_that_cannot_be_read_or_makes_no_sense(text: str, says: str) -> None:
    with pytest.raises(OptionError, match=re.escape(says)):
        Gate.parse(text)


def test_an_interval_of_no_width_is_not_sold_as_certainty() -> None:
    data = table()
    data["predicted"] = data["human"]
    cell = evaluate(data).cell("judge", "overall", "pooled", "spearman")
    assert cell["low"] == pytest.approx(1, abs=1e-8)
    assert "does not mean certainty" in cell["reason"]
