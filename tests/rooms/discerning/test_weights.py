"""Experts' weights: what is wrong with a table of them. `test_run.py` has what a right one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import table

from judgesmith.datasets.perturbations.registry import PERTURBATIONS
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rooms.discerning.weights import read_weights


@pytest.mark.parametrize(
    ("text", "problem"),
    table(__file__, "weights_files"),
)
def test_what_is_wrong_is_said_by_row_and_column(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises((LabelsError, OptionError), match=problem):
        read_weights(tmp_path / "w.csv", list(PERTURBATIONS), ("accuracy", "fluency"))
