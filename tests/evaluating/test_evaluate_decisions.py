"""`judgesmith evaluate` on categories, and on pass and fail: measures, the judge's own decisions, gates."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgesmith.agreement.decisions import auc_when_drawn, balanced_when_drawn, kappa_when_drawn, on_all
from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.errors import OptionError
from judgesmith.evaluating.gate import Gate

WORDS = ("bad", "ok", "good")


def categories(tmp_path: Path, *, own: bool = True) -> tuple[Path, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """60 rows, two a document; the judge's scores know nothing of its categories."""
    rng, human, decided, lines = random.Random(0), [], [], []
    for i in range(60):
        human.append(rng.randint(0, 2))
        decided.append(min(2, max(0, human[-1] + rng.choice([0, 0, 0, 0, 1, -1]))))
        verdict = {"score": 1 + 2 * rng.random(), "percent": 50.0} | ({"category": WORDS[decided[-1]]} if own else {})
        row = {"id": f"r{i}", "source": f"document {i // 2}", "output": f"text {i}"}
        lines.append(json.dumps(row | {"rating": WORDS[human[-1]], "verdict": verdict}))
    path = tmp_path / "scored.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path, np.array(human), np.array(decided)


def test_a_judges_own_categories_are_compared(cli: Any, tmp_path: Path) -> None:
    path, human, decided = categories(tmp_path)
    done = cli("evaluate", path, "--human", "rating", "--json", "--fail-under", "kappa>=0.5")
    assert done.code == 0, done.err
    assert "passed kappa>=0.5" in done.err
    cell = done.json["judges"]["scored"]["rating"]["pooled"]["kappa"]
    assert cell["value"] == pytest.approx(on_all(kappa_when_drawn, decided, human))
    assert 0.5 < cell["low"] < cell["value"] < cell["high"] < 1
    done = cli("evaluate", path, "--human", "rating", "--fail-under", "kappa>=0.9")
    assert done.code == 1 and "FAILED kappa>=0.9" in done.err


def test_without_categories_scores_on_the_scale_are_cut_between_them(cli: Any, tmp_path: Path) -> None:
    path, human, _ = categories(tmp_path, own=False)
    scores = [json.loads(line)["verdict"]["score"] for line in path.read_text().splitlines()]
    done = cli("evaluate", path, "--human", "rating", "--json")
    nearest = np.array([0 if s < 1.5 else 1 if s < 2.5 else 2 for s in scores])
    cell = done.json["judges"]["scored"]["rating"]["pooled"]["kappa"]
    assert cell["value"] == pytest.approx(on_all(kappa_when_drawn, nearest, human))


def test_a_measure_that_does_not_fit_is_said_in_one_line(cli: Any, tmp_path: Path) -> None:
    done = cli("evaluate", categories(tmp_path)[0], "--human", "rating", "--fail-under", "auc>=0.8")
    said = "auc does not fit the human 'rating': it is for pass and fail, and they have 3 different values"
    assert done.code == 2 and said in done.err and "Traceback" not in done.err


def test_pass_and_fail_from_vectors() -> None:
    rng = np.random.default_rng(0)
    human = rng.integers(0, 2, 40)
    said = human + rng.normal(size=40)
    place = (said > 0.5).astype(int)
    found = meta_evaluate(
        {"judge": said}, human, kinds={"overall": "binary"}, categories={"overall": (0.0, 1.0)},
        decided={"judge": {"overall": np.where(np.arange(40) == 3, np.nan, place)}}, rounds=50,
    )  # fmt: skip
    cell = found.cell("judge", "overall", "pooled", "auc")
    assert cell["value"] == pytest.approx(on_all(auc_when_drawn, said, human)) and cell["interval"] == "newcombe"
    some = np.arange(40) != 3
    cell = found.cell("judge", "overall", "pooled", "balanced-accuracy")
    assert cell["value"] == pytest.approx(on_all(balanced_when_drawn, place[some], human[some]))
    assert (cell["n"], cell["failed"]) == (39, 1)
    assert Gate.parse("balanced_accuracy >= 0.3").judge(found, 0.9) == []
    with pytest.raises(OptionError, match="pairwise does not fit the human 'overall'"):
        meta_evaluate({"judge": said}, human, coefficients=["pairwise"])


def test_scores_off_the_scale_are_cut_by_rank_and_that_is_said() -> None:
    human = np.array([1.0, 1, 2, 2, 3, 3] * 3)
    found = meta_evaluate({"judge": human * 10}, human, coefficients=["kappa"], rounds=0)
    assert found.cell("judge", "overall", "pooled", "kappa")["value"] == 1.0
    assert any("each category has as many rows" in note for note in found.notes)
