"""Agreement within systems and documents stands beside the pooled one, and the systems' means as a baseline."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from planted import guessing, planted_labels
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.agreement.differences import Difference
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Q, Rows
from judgesmith.agreement.raters import gave_most
from judgesmith.cli.main import app
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import group_folds
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.findings import on_folds
from judgesmith.optimizers.levels import Levels, levels_of, system_means
from judgesmith.optimizers.measuring import lead, of_system_means
from judgesmith.optimizers.report import tested as shown
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.testing.scripted import scripted_models


@pytest.fixture
def lm() -> Iterator[Any]:
    with scripted_models() as make:
        yield make(guessing())[0]


def of_systems(number: int) -> js.Labels:
    """Scores that follow from the system, and a little from the row."""
    plain = planted_labels(24, 3)
    rows = [
        replace(
            row,
            system=f"s{n % number}",
            scores={"overall": 20.0 * (n % number) + row.scores["overall"] / 10},
        )
        for n, row in enumerate(plain.rows)
    ]
    return replace(plain, rows=tuple(rows))


def test_the_systems_mean_labels_are_a_judge() -> None:
    train, heldout = (
        examples_of(of_systems(3))[part] for part in (slice(0, 30), slice(30, 36))
    )
    found = system_means(train, heldout)
    assert found.argmax() == 2
    assert found[0] == found[3]
    assert found[0] == pytest.approx(sum(e.score for e in train[::3]) / 10)
    other = [example.copy(system="new") for example in heldout]
    assert system_means(train, other)[0] == pytest.approx(
        sum(e.score for e in train) / 30
    )


def test_a_report_says_what_is_left_within_systems(lm: Any) -> None:
    report = js.compile(
        DirectScorer("fluency"), of_systems(3), lm=lm, optimizer="none", heldout=0.5
    ).report
    assert report.levels.system_means is not None
    assert report.levels.system_means.value > 2 > report.heldout.value
    said = " ".join(report.notes)
    assert "reads no text" in said
    assert "no better than that" in said
    assert "within systems" in said
    assert {"within_systems", "within_documents", "system_means"} <= set(
        report.to_dict()
    )
    assert "mean labels" in report._repr_html_()
    assert "within systems" in report._repr_html_()


def test_rows_of_one_system_have_no_such_level(lm: Any) -> None:
    report = js.compile(
        DirectScorer("fluency"), of_systems(1), lm=lm, optimizer="none", heldout=0.5
    ).report
    assert report.levels.system_means is None
    assert "within" not in report.levels.inside


def test_levels_are_those_that_rows_have() -> None:
    from judgesmith.agreement.objectives import Q, objectives

    rows = examples_of(of_systems(3))
    assert levels_of(Q(), rows) == ["within", "sample"]
    assert (
        levels_of(Q("sample"), rows) == [] == levels_of(objectives.get("auc")(), rows)
    )


def test_a_pair_of_rows_is_no_level() -> None:
    from judgesmith.agreement.objectives import Q

    rows = examples_of(of_systems(3))
    apart = rows[::3]
    pairs = rows[1::3]
    assert levels_of(Q(), [*apart, *pairs[:5]]) == ["within", "sample"]
    assert levels_of(Q(), [*apart, *pairs[:4]]) == ["within"]
    assert levels_of(Q(), [*apart, *pairs[:1]]) == ["within"]
    alone = [row.copy(system=f"of {n}") for n, row in enumerate(apart)]
    assert levels_of(Q(), [*alone, pairs[0].copy(system="of 1")]) == []


def test_a_saved_judge_shows_its_levels(
    lm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    judge = js.compile(
        DirectScorer("fluency"), of_systems(3), lm=lm, optimizer="none", heldout=0.5
    )
    judge.save(tmp_path / "judge.json")
    saved = json.loads((tmp_path / "judge.json").read_text(encoding="utf-8"))
    within = saved["provenance"]["within_systems"]
    assert within["value"] == judge.report.to_dict()["within_systems"]["value"]
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "judge.json")])
    assert shown.exit_code == 0, shown.output
    lines = {line.strip()[:20].strip(): line for line in shown.stdout.splitlines()}
    assert within["signature"].split(",")[0] in lines["within systems"]
    assert {"within documents", "systems' mean labels"} <= set(lines)


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (-2.64, -1.81, "lies below 0"),
        (-0.4, 0.6, "holds 0"),
        (0.2, 0.6, None),
        (float("nan"), float("nan"), "no interval: too few"),
    ],
)
def test_what_an_interval_says_of_rows_inside_a_level(
    low: float, high: float, says: str | None
) -> None:
    rows = Rows(np.arange(8.0), list("abcdefgh"), list("abcdefgh"))
    plain = AgreementValue.of(np.arange(8.0), rows, Q(), rounds=0)
    value = replace(plain, low=low, high=high, why="too few")
    (note,) = Levels({"within": value}).notes(value)
    assert "nan" not in note
    assert (says or "compared: Q 3.00 [0.20, 0.60]") in note
    assert ("holds 0" in note) == (says == "holds 0")
    assert "nan" not in str(value)
    assert "nan" not in value._repr_html_()


@pytest.mark.parametrize(
    ("counts", "most"),
    [([39, 38], False), ([60, 17], True), ([9], False), ([4, 4, 40], True)],
)
def test_one_of_two_raters_did_not_give_most(counts: list[int], most: bool) -> None:
    assert gave_most(np.array(counts)) == most


def test_folds_that_chose_otherwise_than_the_saved_judge_are_named() -> None:
    def fit(way: str) -> Any:
        return SimpleNamespace(fitted=SimpleNamespace(way=way))

    found: Any = SimpleNamespace(
        folds=4,
        runs=[None],
        again=False,
        labels=SimpleNamespace(count="40 labels"),
        final=SimpleNamespace(way="a mixture (readings)"),
        parts=[fit("one score alone")] * 4,
    )
    _, note = on_folds(found)
    assert note.startswith(
        "4 of 4 folds chose one score alone, the saved judge is a mixture (readings)"
    )
    found.parts = [fit("a mixture (readings)")] * 4
    assert len(list(on_folds(found))) == 1


def test_a_difference_that_is_always_the_same_has_no_interval() -> None:
    assert shown(*lead(Difference(0.0, 0.0, 0.0, 1.0, 9, 0, 9))[1:]) == (
        "(no interval: both gave the same scores, or their agreement is undefined)"
    )
    assert shown(*lead(Difference(0.3, 0.1, 0.5, 0.0004, 9, 0, 9))[1:]) == (
        "[0.10, 0.50], p < .001"
    )


def test_preferences_are_counted_and_not_their_outputs() -> None:
    plain = planted_labels(4, 2)
    assert plain.count == "8 labels"
    assert replace(plain, kind="preference").count == "4 preferences"


def folds_of(rows: list[Row], seed: int) -> list[Any]:
    """Four folds of whole documents, as far as a baseline without a judge needs them."""
    labels = replace(planted_labels(4, 2), rows=tuple(rows))
    return [SimpleNamespace(split=split) for split in group_folds(labels, seed=seed)]


def rated_systems(seed: int, apart: float) -> list[Row]:
    """40 rows of 20 documents by two systems, whose labels differ by `apart` times their spread."""
    draw = np.random.default_rng(seed)
    rows = []
    for n, row in enumerate(planted_labels(20, 2).rows):
        score = 50 + 10 * draw.normal() + 10 * apart * (n % 2)
        rows.append(replace(row, system=f"s{n % 2}", scores={"overall": score}))
    return rows


def test_the_mean_labels_of_equal_systems_agree_with_nothing() -> None:
    values = list[float]()
    equal = list[float]()
    for seed in range(60):
        run = folds_of(rated_systems(seed, 0), seed)
        found = of_system_means(run, Q(), seed=0, new_systems=False)
        values.append(found.objective.pearson)
        equal.append(found.low <= 0 <= found.high)
    # The error of one run is about .2, of the mean of 60 .03. Over all folds together the mean was -.09.
    assert abs(np.mean(values)) < 0.05
    assert np.mean(equal) > 0.8


def test_the_mean_labels_of_unlike_systems_are_a_judge_inside_folds() -> None:
    run = folds_of(rated_systems(1, 3), 1)
    found = of_system_means(run, Q(), seed=0, new_systems=False)
    # 0 and 1 against two normals 3 apart: r = 1.5 / sqrt(1 + 1.5²) = .83 where means are told apart.
    assert found.objective.pearson == pytest.approx(0.83, abs=0.1)
    assert found.low < found.value < found.high
    assert found.reached.n == 40


def test_mean_labels_that_are_constant_in_each_fold_have_no_agreement() -> None:
    rows = [replace(row, system="s") for row in rated_systems(1, 0)]
    found = of_system_means(folds_of(rows, 1), Q(), seed=0, new_systems=False)
    assert found.value == 0
    assert found.reason == "system means or labels are constant in each fold"
    assert np.isnan(found.low)
