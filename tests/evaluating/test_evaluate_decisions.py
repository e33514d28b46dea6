"""`judgesmith evaluate` on categories, and on pass and fail: measures, the judge's own decisions, gates."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgesmith.agreement.decisions import (
    auc_when_drawn,
    balanced_when_drawn,
    kappa_when_drawn,
    on_all,
)
from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.datasets.loading import read_labels
from judgesmith.errors import OptionError
from judgesmith.evaluating.gate import Gate
from judgesmith.optimizers.fitting.outcome import cheapest
from judgesmith.programs.outcome import Decision

WORDS = ("bad", "ok", "good")


def categories(
    tmp_path: Path, *, own: bool = True
) -> tuple[Path, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """60 rows, two a document; the judge's scores know nothing of its categories."""
    rng, human, decided, lines = random.Random(0), [], [], []
    for i in range(60):
        human.append(rng.randint(0, 2))
        decided.append(min(2, max(0, human[-1] + rng.choice([0, 0, 0, 0, 1, -1]))))
        verdict = {"score": 1 + 2 * rng.random(), "percent": 50.0} | (
            {"category": WORDS[decided[-1]]} if own else {}
        )
        row = {"id": f"r{i}", "source": f"document {i // 2}", "output": f"text {i}"}
        lines.append(json.dumps(row | {"rating": WORDS[human[-1]], "verdict": verdict}))
    path = tmp_path / "scored.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path, np.array(human), np.array(decided)


def test_a_judges_own_categories_are_compared(cli: Any, tmp_path: Path) -> None:
    path, human, decided = categories(tmp_path)
    done = cli(
        "evaluate", path, "--human", "rating", "--json", "--fail-under", "kappa>=0.5"
    )
    assert done.code == 0, done.err
    assert "passed kappa>=0.5" in done.err
    cell = done.json["judges"]["scored"]["rating"]["pooled"]["kappa"]
    assert cell["value"] == pytest.approx(on_all(kappa_when_drawn, decided, human))
    assert 0.5 < cell["low"] < cell["value"] < cell["high"] < 1
    done = cli("evaluate", path, "--human", "rating", "--fail-under", "kappa>=0.9")
    assert done.code == 1
    assert "FAILED kappa>=0.9" in done.err


def test_without_categories_scores_on_the_scale_are_cut_between_them(
    cli: Any, tmp_path: Path
) -> None:
    path, human, _ = categories(tmp_path, own=False)
    scores = [
        json.loads(line)["verdict"]["score"] for line in path.read_text().splitlines()
    ]
    done = cli("evaluate", path, "--human", "rating", "--json")
    nearest = np.array([0 if s < 1.5 else 1 if s < 2.5 else 2 for s in scores])
    cell = done.json["judges"]["scored"]["rating"]["pooled"]["kappa"]
    assert cell["value"] == pytest.approx(on_all(kappa_when_drawn, nearest, human))


def test_a_measure_that_does_not_fit_is_said_in_one_line(
    cli: Any, tmp_path: Path
) -> None:
    done = cli(
        "evaluate",
        categories(tmp_path)[0],
        "--human",
        "rating",
        "--fail-under",
        "auc>=0.8",
    )
    said = "auc does not fit the human 'rating': it is for pass and fail, and they have 3 different values"
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def passing(tmp_path: Path) -> Path:
    """40 answers of two systems; of 20 fails the judge misses 4, of 20 passes it fails 2."""
    rows = []
    for i in range(40):
        people, wrong = i % 2 == 0, i in (1, 3, 5, 7, 10, 20)
        judge = people != wrong
        verdict = {
            "score": 0.9 if judge else 0.1,
            "failure": None,
            "category": "pass" if judge else "fail",
            "passed": judge,
        }
        row = {
            "id": f"r{i}",
            "question": f"{'abcdefghij'[i % 10] * 5} {i * i} ?",
            "bot answer": f"{i * 7919} is it",
        }
        rows.append(
            row
            | {
                "model": "ab"[i // 20],
                "QA result": "Pass" if people else "Fail",
                "verdict": verdict,
            }
        )
    path = tmp_path / "set.scored.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_pass_and_fail_is_told_in_the_words_of_a_team(cli: Any, tmp_path: Path) -> None:
    path = passing(tmp_path)
    told = cli("evaluate", path, "--json", "--fail-under", "accuracy>=0.6").told
    (found,) = told["decisions"]
    assert found["counts"] == [[16, 4, 0], [2, 18, 0]]
    assert "from the column 'QA result'" in told["notes"][0]
    value = {name: figure[0] for name, figure in found["figures"].items()}
    assert (
        value
        == pytest.approx(
            {
                "agreement": 34 / 40,
                "balanced": (16 / 20 + 18 / 20) / 2,
                "precision": 16 / 18,
                "recall": 16 / 20,
                "tpr": 18 / 20,
                "f1": 2 * 16 / (2 * 16 + 2 + 4),
                "judge": 22 / 40,
                "people": 0.5,
                "kappa": 0.7,  # (34/40 - 1/2) / (1 - 1/2); by chance (22 * 20 + 18 * 20) / 40²
                "constant": 0.5,
            }
        )
    )
    assert all(low <= value <= high for value, low, high in found["figures"].values())
    cells = told["judges"]["set"]["overall"]["pooled"]
    for name, figure in (
        ("accuracy", "agreement"),
        ("balanced-accuracy", "balanced"),
        ("f1", "f1"),
    ):
        assert [cells[name][key] for key in ("value", "low", "high")] == pytest.approx(
            found["figures"][figure]
        )
    assert found["systems"]["a"]["people"][0] == 0.5
    assert found["systems"]["b"]["rows"] == 20
    assert [one["id"] for one in found["worst"]] == [
        "r1",
        "r3",
        "r5",
        "r7",
        "r10",
        "r20",
    ]
    said = cli("evaluate", path).said
    assert "agrees with people on 85%" in said
    assert "judge: pass" in said
    assert "TNR (recall for fail) 80%" in said
    assert cli("evaluate", path, "--fail-under", "accuracy>=0.85").code == 1


def test_the_report_passes_and_fails_too(cli: Any, tmp_path: Path) -> None:
    told = cli("report", passing(tmp_path), "--json").told
    assert (
        told["passed"]["value"],
        told["passed_by_people"]["value"],
        told["agreement"]["value"],
    ) == (0.55, 0.5, 0.85)
    # 20 fails and 20 passes: 16 fails are found, 18 passes pass; kappa (0.85 - 0.5) / (1 - 0.5)
    assert (told["tnr"]["value"], told["tpr"]["value"], told["kappa"]["value"]) == (
        0.8,
        0.9,
        0.7,
    )
    page = (tmp_path / "set.scored.html").read_text(encoding="utf-8")
    for words in (
        "TNR <strong>80%</strong>",
        "κ <strong>0.70</strong>",
        "Passed <strong>55%</strong>",
        "on these rows, which people rated",
        "people <strong>fail</strong>",
        ">people and judge decide differently<",
    ):
        assert words in page


def test_the_cut_is_where_mistakes_cost_least() -> None:
    rows = [
        {"output": f"text {n} {n * n}", "score": ("pass", "fail")[n in (0, 1, 6)]}
        for n in range(8)
    ]
    percents, decision = (
        [float(10 * n) for n in range(8)],
        Decision(("fail", "pass"), (50.0,), True),
    )
    assert [
        cheapest(decision, percents, read_labels(rows), cost).cuts[0]
        for cost in (1.5, 9)
    ] == [15, 65]


def test_gates_are_read() -> None:
    gate = Gate.parse("balanced_accuracy >= 0.7")
    assert (gate.coefficient, gate.level, gate.bar) == ("balanced-accuracy", None, 0.7)
    assert Gate.parse("sample.pairwise>=0.6").coefficient == "pairwise"
    assert Gate.parse("MAE <= 0.5").coefficient == "mae"
    assert Gate.parse("way>=1.1").bar == 1.1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mae>=0.5", "of an error the upper end counts: write <="),
        ("recall<=0.5", "more is better: write >="),
        (
            "sample.recall>=0.5",
            "recall is measured over all rows together; leave sample out",
        ),
        ("sample.mae<=0.5", "mae is measured over all rows together; leave sample out"),
        ("recall>=1.5", "recall lies in 0..1"),
        ("rmse<=-1", "rmse lies in 0..inf"),
        ("precision", "not of the form"),
        ("specificity>=0.5", "the coefficients are pearson"),
        ("recall>=nan", "not of the form"),
    ],
)
def test_gates_that_no_number_has(text: str, says: str) -> None:
    with pytest.raises(OptionError, match=re.escape(says)):
        Gate.parse(text)


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("agreement", "agreement"),
        ("balanced-accuracy", "balanced"),
        ("precision", "precision"),
        ("recall", "recall"),
        ("f1", "f1"),
    ],
)
def test_every_printed_figure_gates_by_its_printed_interval(
    name: str, figure: str, cli: Any, tmp_path: Path
) -> None:
    path = passing(tmp_path)
    (found,) = cli("evaluate", path, "--json").told["decisions"]
    low = found["figures"][figure][1]
    assert cli("evaluate", path, "--fail-under", f"{name}>={low - 1e-6:.7f}").code == 0
    failed = cli("evaluate", path, "--fail-under", f"{name}>={low + 1e-6:.7f}")
    assert failed.code == 1
    assert f"the lower end of its interval, {low:.3f}, is not at least" in failed.err


def test_kappa_and_asked_figures_of_pass_and_fail(cli: Any, tmp_path: Path) -> None:
    path = passing(tmp_path)
    told = cli(
        "evaluate",
        path,
        "--json",
        "--coefficient",
        "recall",
        "--fail-under",
        "kappa>=0.3",
    ).told
    assert told["gate"]["passed"]
    assert told["judges"]["set"]["overall"]["pooled"]["recall"]["n"] == 20


def test_precision_of_a_judge_that_fails_nothing_has_a_reason(
    cli: Any, tmp_path: Path
) -> None:
    path = passing(tmp_path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["verdict"] |= {"category": "pass", "passed": True}
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    failed = cli("evaluate", path, "--fail-under", "precision>=0.1")
    assert failed.code == 1
    assert "has no interval (the judge fails no row)" in failed.err


def test_errors_and_the_way_to_a_rater_gate(cli: Any, tmp_path: Path) -> None:
    rng, rows = random.Random(1), []
    for i in range(60):
        truth = rng.randint(2, 4)
        raters = [truth + rng.choice([-1, 0, 0, 1]) for _ in "ab"]
        about = {
            "id": f"r{i}",
            "source": f"about {i * 7919}",
            "output": f"{i * i} words {i}",
        }
        rows.append(
            about
            | {"verdict": {"score": float(truth), "failure": None}, "score": raters}
        )
    path = tmp_path / "rated.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    told = cli("evaluate", path, "--scale", "1", "5", "--json").told
    (way,), (errors,) = told["way"], told["scale"]
    for gate, passes in (
        (f"way>={way['low'] - 0.001:.4f}", True),
        (f"way>={way['low'] + 0.001:.4f}", False),
        (f"mae<={errors['mae_high'] + 0.001:.4f}", True),
        (f"mae<={errors['mae_high'] - 0.001:.4f}", False),
        (f"rmse<={errors['rmse_high'] + 0.001:.4f}", True),
    ):
        done = cli("evaluate", path, "--scale", "1", "5", "--fail-under", gate)
        assert done.code == (0 if passes else 1), (gate, done.err)
    assert "the lower end" not in done.err


def test_f1_of_few_fails_is_not_as_sure_as_the_passes_are_many() -> None:
    human = np.r_[np.zeros(10), np.ones(190)]
    found = meta_evaluate(
        {"judge": human},
        human,
        kinds={"overall": "binary"},
        categories={"overall": (0.0, 1.0)},
        rounds=100,
    )
    cell = found.cell("judge", "overall", "pooled", "f1")
    assert cell["value"] == 1
    assert cell["low"] == pytest.approx(10 / (10 + 1.96**2), abs=1e-3)


def test_pass_and_fail_from_vectors() -> None:
    rng = np.random.default_rng(0)
    human = rng.integers(0, 2, 40)
    said = human + rng.normal(size=40)
    place = (said > 0.5).astype(int)
    found = meta_evaluate(
        {"judge": said},
        human,
        kinds={"overall": "binary"},
        categories={"overall": (0.0, 1.0)},
        decided={"judge": {"overall": np.where(np.arange(40) == 3, np.nan, place)}},
        rounds=50,
    )
    cell = found.cell("judge", "overall", "pooled", "auc")
    assert cell["value"] == pytest.approx(on_all(auc_when_drawn, said, human))
    assert cell["interval"] == "newcombe"
    some = np.arange(40) != 3
    cell = found.cell("judge", "overall", "pooled", "balanced-accuracy")
    assert cell["value"] == pytest.approx(
        on_all(balanced_when_drawn, place[some], human[some])
    )
    assert (cell["n"], cell["failed"]) == (39, 1)
    assert Gate.parse("balanced_accuracy >= 0.3").judge(found, 0.9) == []
    with pytest.raises(OptionError, match="pairwise does not fit the human 'overall'"):
        meta_evaluate({"judge": said}, human, coefficients=["pairwise"])


def test_scores_off_the_scale_are_cut_by_rank_and_that_is_said() -> None:
    human = np.array([1.0, 1, 2, 2, 3, 3] * 3)
    found = meta_evaluate(
        {"judge": human * 10}, human, coefficients=["kappa"], rounds=0
    )
    assert found.cell("judge", "overall", "pooled", "kappa")["value"] == 1.0
    assert any("each category has as many rows" in note for note in found.notes)
