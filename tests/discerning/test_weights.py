"""Experts' weights: what is wrong with a table of them. `test_run.py` has what a right one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgesmith.datasets.perturbations.registry import PERTURBATIONS
from judgesmith.discerning.weights import read_weights
from judgesmith.errors import OptionError


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("perturbation,accuracy,fluency\ntypo,1,\n", "line 2: there is no perturbation 'typo'.*'typos'"),
        ("perturbation,accuracy,fluncy\ntypos,,1\n", "column 'fluncy': the metrics are.*'fluency'"),
        ("perturbation,accuracy,fluency\ntypos,1,\ndeletions,,\n", "line 3: no metric has a weight for 'del"),
        ("perturbation,accuracy,fluency\ntypos,1,\ntypos,,1\n", "line 3: 'typos' appears twice"),
        ("perturbation,accuracy,fluency\ntypos,maybe,\n", "column 'accuracy': 'maybe' is not a weight"),
        ("perturbation,accuracy,fluency\ntypos,nan,1\n", "line 2, column 'accuracy': 'nan' is not a weight"),
        ("perturbation,accuracy,fluency\ntypos,-1,1\n", "'-1' is not a weight"),
        ("perturbation,accuracy,fluency\ntypos,1,2,3\n", "line 2: more cells than columns"),
        ("perturbation,accuracy\ntypos,0\n", "no metric has a weight for 'typos'"),
        ("accuracy\n1\n", "no column 'perturbation'"),
        ("perturbation,accuracy\n", "no weight in it"),
        ("", "no column 'perturbation'"),
    ],
)
def test_what_is_wrong_is_said_by_row_and_column(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises(OptionError, match=problem):
        read_weights(tmp_path / "w.csv", list(PERTURBATIONS), ("accuracy", "fluency"))
