"""Experts' weights: the form, what is filled into it, and what is wrong with what comes back."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from judgesmith.datasets.perturbations.dhp import TASKS
from judgesmith.datasets.perturbations.registry import PERTURBATIONS
from judgesmith.discerning.weights import read_weights, write_form
from judgesmith.errors import OptionError

METRICS = ("translation/accuracy", "translation/fluency")
NAMES = ("accuracy", "fluency")
ISSUES = [PERTURBATIONS[name] for name in ("deletions", "typos", "word-deletion")]


def filled(path: Path, marks: dict[str, str]) -> Path:
    """The form with an x for each perturbation."""
    write_form(path, METRICS, ISSUES)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    for row in rows[1:]:
        row[2 + NAMES.index(marks[row[0]])] = "x"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_votes_of_several_experts_become_shares(tmp_path: Path) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    for n in range(4):
        of = "accuracy" if n == 0 else "fluency"
        filled(folder / f"{n}.csv", {"deletions": "fluency", "typos": "fluency", "word-deletion": of})
    (folder / "notes.txt").write_text("no form")
    # another form, in numbers: each expert has one vote for each perturbation, however it is split
    (folder / "4.csv").write_text("perturbation,accuracy,fluency\ntypos,30,10\n")
    found = read_weights(folder, list(PERTURBATIONS), NAMES)
    assert found == {
        "deletions": {"fluency": 4.0},
        "typos": {"fluency": 4.25, "accuracy": 0.75},
        "word-deletion": {"accuracy": 1.0, "fluency": 3.0},
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("perturbation,accuracy,fluency\ntypo,x,\n", "line 2: there is no perturbation 'typo'.*'typos'"),
        ("perturbation,accuracy,fluncy\ntypos,,x\n", "column 'fluncy': the metrics are.*'fluency'"),
        ("perturbation,accuracy,fluency\ntypos,x,\ndeletions,,\n", "line 3: no metric is marked for 'del"),
        ("perturbation,accuracy,fluency\ntypos,x,\ntypos,,x\n", "line 3: 'typos' appears twice"),
        ("perturbation,accuracy,fluency\ntypos,maybe,\n", "column 'accuracy': 'maybe' is not a weight"),
        ("perturbation,accuracy,fluency\ntypos,nan,1\n", "line 2, column 'accuracy': 'nan' is not a weight"),
        ("perturbation,accuracy,fluency\ntypos,-1,1\n", "'-1' is not a weight"),
        ("perturbation,accuracy,fluency\ntypos,1,2,3\n", "line 2: more cells than columns"),
        ("perturbation,accuracy\ntypos,0\n", "no metric is marked for 'typos'"),
        ("accuracy\n1\n", "no column 'perturbation'"),
        ("perturbation,accuracy\n", "no weight in it"),
        ("", "no column 'perturbation'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_by_row_and_column(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises(OptionError, match=problem):
        read_weights(tmp_path / "w.csv", list(PERTURBATIONS), NAMES)


def test_a_folder_without_forms_and_a_form_that_is_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no \.csv form"):
        read_weights(tmp_path)
    write_form(tmp_path / "form.csv", METRICS, ISSUES)
    with pytest.raises(OptionError, match="exists already"):
        write_form(tmp_path / "form.csv", METRICS, ISSUES)
    with pytest.raises(OptionError, match=r"a form is \.csv"):
        write_form(tmp_path / "form.pdf", METRICS, ISSUES)
    with pytest.raises(OptionError, match="fewer than two metrics"):
        write_form(tmp_path / "one.csv", METRICS[:1], ISSUES)


def test_the_command_writes_a_form_and_takes_it_back(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "form.csv"
    done = cli("discern", "--preset", "dhp/story", "--weights-form", path)
    assert done.code == 0, done.err
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0] == ["perturbation", "quality issue", "coherence", "consistency", "fluency"]
    assert {row[0] for row in rows[1:]} == set(TASKS["story"].perturbations)
    assert rows[1] == ["deletions", PERTURBATIONS["deletions"].about, "", "", ""]
    again = cli("discern", "metric/chrf", "x.jsonl", "--preset", "dhp/story", "--weights", path)
    assert again.code == 2 and "form.csv, line 2: no metric is marked for 'deletions'" in again.err
