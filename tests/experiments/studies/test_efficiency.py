"""The label-efficiency benchmark: learners find what they should, splits keep documents apart, the command resumes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from judgesmith.cli.main import app
from judgesmith.experiments.studies import efficiency
from judgesmith.experiments.studies.efficiency import (
    Problem,
    over_sets,
    problems,
    read_sets,
    split,
)
from judgesmith.experiments.studies.experience import read_specs
from judgesmith.experiments.studies.learners import (
    BESIDE,
    SMALL,
    Bank,
    Isotonic,
    Learner,
    ridge,
)
from judgesmith.optimizers.fitting.readings import agreement

SETS = """
sets:
  - {labels: one.jsonl, family: notes, aspects: [quality], judge: gpt, criteria: [gpt, gpt.length],
     panel: [mini], large: ".*"}
  - {labels: two.jsonl, family: letters, aspects: [quality], judge: gpt}
"""


def written(folder: Path) -> Path:
    """Two sets, whose judge sees the quality through noise, and a criterion sees the noise alone."""
    for name, seed in (("one", 1), ("two", 2)):
        rng = np.random.default_rng(seed)
        lines = []
        for n in range(300):
            quality = rng.normal()
            noise = rng.normal()
            judges = {"gpt": quality + noise, "mini": quality + 2 * rng.normal()}
            words = " ".join(["word"] * int(rng.integers(3, 9)))
            row = {
                "id": f"{name}{n}",
                "doc_id": f"d{n // 5}",
                "system": f"s{n % 5}",
                "source": f"Source {n // 5}.",
                "output": f"Output {n} {words}.",
                "scores": {"quality": round(50 + 10 * quality, 2)},
                "judges": judges | {"gpt.length": noise},
            }
            lines.append(json.dumps(row))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    path = folder / "sets.yaml"
    path.write_text(SETS)
    return path


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    """The first set, beside its judge."""
    path = written(tmp_path)
    return next(problems(read_sets(path), path, [], "beside"))


def reached(problem: Problem, learner: Learner, labels: int) -> float:
    """Return Q on test rows, mean of three draws."""
    found = []
    for draw in range(3):
        order, test = split(problem, draw)
        at = order[:labels]
        score = learner.fit(problem.rows.rows(at), problem.ratings[at])
        found.append(agreement(score(problem.rows.rows(test)), problem.ratings[test]))
    return float(np.mean(found))


def test_test_rows_are_of_other_documents_and_smaller_samples_lie_in_larger(
    problem: Problem,
) -> None:
    order, test = split(problem, 3)
    groups = problem.rows.groups
    assert {groups[i] for i in order}.isdisjoint({groups[i] for i in test})
    assert len(order) + len(test) == len(groups)
    assert len({groups[i] for i in order[:30]}) == 30  # spread over documents
    again, _ = split(problem, 3)
    assert order.tolist() == again.tolist()


@pytest.mark.parametrize("learner", BESIDE, ids=lambda learner: learner.name)
def test_every_way_beside_a_judge_agrees_with_people(
    problem: Problem, learner: Learner
) -> None:
    assert learner.can(problem.rows)
    assert reached(problem, learner, 80) > 1


def test_a_ridge_over_criteria_takes_the_noise_off(problem: Problem) -> None:
    by_name: dict[str, Callable[[int], float]] = {
        learner.name: lambda labels, learner=learner: reached(problem, learner, labels)
        for learner in BESIDE
    }
    assert by_name["ridge over criteria"](30) > by_name["the judge alone"](0) + 0.3


def test_calibration_never_turns_an_order_around(problem: Problem) -> None:
    order, test = split(problem, 0)
    at = order[:80]
    score = Isotonic().fit(problem.rows.rows(at), problem.ratings[at])
    rest = problem.rows.rows(test)
    by_judge = np.argsort(rest.judge)
    assert (np.diff(score(rest)[by_judge]) >= 0).all()


def test_partial_least_squares_keeps_five_metrics(problem: Problem) -> None:
    order, test = split(problem, 0)
    at = order[:80]
    rows = problem.rows.rows(at)
    score = Bank().fit(rows, problem.ratings[at])
    rest = problem.rows.rows(test)
    moved = 0
    for column in range(rest.bank.shape[1]):
        bank = rest.bank.copy()
        bank[:, column] += 1
        other = type(rest)(**{**vars(rest), "bank": bank})
        moved += bool(np.abs(score(other) - score(rest)).max() > 1e-9)
    assert moved <= 5


def test_ridge_weights_are_those_of_the_normal_equations() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 3))
    y = z @ np.array([1.0, -2.0, 0.0])
    weights = ridge(z, y, [str(n) for n in range(60)])
    assert weights == pytest.approx([1, -2, 0], abs=0.02)  # the least penalty, 0.3


def test_a_mean_over_sets_counts_sets_and_not_tasks() -> None:
    found = over_sets({"a x": 1.0, "a y": 3.0, "b x": 4.0, "c x": 6.0, "d x": np.nan})
    # set means 2, 4, 6: mean 4, error 2 / √3, t(2) 4.3027
    assert found.value == pytest.approx(4)
    assert found.high - found.value == pytest.approx(4.302653 * 2 / 3**0.5)
    assert found.sets == 3


def test_what_is_read_for_the_small_part_are_tasks_of_the_benchmark() -> None:
    listed = {
        (spec.labels, aspect): spec.family
        for spec in read_sets(None)
        for aspect in spec.aspects
    }
    path = Path(efficiency.__file__).with_name("efficiency-readings.yaml")
    tasks = read_specs(path).tasks
    assert len({task.labels for task in tasks}) == 16
    for task in tasks:
        assert listed[task.labels, task.aspect or ""] == task.family


def test_without_tables_of_readings_there_is_no_small_part(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert list(problems(read_sets(path), path, [tmp_path], "small")) == []
    assert len({learner.name for learner in (*BESIDE, *SMALL)}) == len(BESIDE + SMALL)


def test_the_command_writes_its_tables_and_resumes(tmp_path: Path) -> None:
    path = written(tmp_path)
    folder = tmp_path / "out"
    words = ["study", "efficiency", str(path), "--draws", "2", "-o", str(folder)]
    words += ["--tables", str(tmp_path), "--json"]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    journal = (folder / "reached.jsonl").read_text()
    told = json.loads((folder / "efficiency.json").read_text())
    assert {row[0] for row in told["rows"]} == {"beside"}
    ways = [row[1] for row in told["rows"]]
    assert ways.index("ridge over criteria") < ways.index("the judge alone")
    CliRunner().invoke(app, words)
    assert (folder / "reached.jsonl").read_text() == journal
