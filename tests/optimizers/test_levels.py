"""Agreement within systems and documents stands beside the pooled one, and the systems' means as a baseline."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planted import guessing, planted_labels
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.cli.main import app
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.levels import levels_of, system_means
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
    apart, pairs = rows[::3], rows[1::3]
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
