"""Agreement of raters, and rows that split them."""

from pathlib import Path
from typing import Any

import pytest

from judgesmith.rooms.labelling.agreement import RaterAnswers, summary
from judgesmith.rooms.labelling.store import Store
from judgesmith.rooms.labelling.task import Task, Unit


def said(
    folder: Path,
    task: Task,
    units: list[Unit],
    answers: list[tuple[str, str, int, Any]],
) -> RaterAnswers:
    """answers: (rater, unit, turn, answer), a reason where it was skipped."""
    at = Store(folder / "s.sqlite")
    at.add(units)
    for n, (rater, unit, turn, answer) in enumerate(answers):
        skip = isinstance(answer, str)
        at.say(
            rater,
            unit,
            turn,
            "skip" if skip else "answer",
            {"reason": answer} if skip else answer,
            after=None,
            request=str(n),
        )
    return RaterAnswers.of(at, task)


def rows(n: int) -> list[Unit]:
    return [Unit(f"u{i}", {"id": f"row {i}", "output": "ten letter"}) for i in range(n)]


def scores(rater: str, values: str, turn: int = 0) -> list[tuple[str, str, int, Any]]:
    return [
        (rater, f"u{i}", turn, {"score": float(v)})
        for i, v in enumerate(values)
        if v != "-"
    ]


def test_scores(tmp_path: Path) -> None:
    given = [
        *scores("Ada", "1234-"),
        *scores("Bo", "1532-"),
        *scores("Ada", "5-3--", 1),
        ("Bo", "u4", 0, "I cannot tell"),
    ]
    found = summary(said(tmp_path, Task(), rows(5), given), ["Ada", "Bo"])
    ada, bo = found["raters"]
    assert (ada["rated"], ada["skipped"], ada["twice"], ada["same"]) == (4, 0, 2, 0.5)
    assert (bo["rated"], bo["skipped"], bo["twice"], bo["same"]) == (4, 1, 0, None)
    # Squared differences 0, 9, 0, 4: D_o = 2 * 13 / 8; values 1 1 2 5 3 3 4 2: sum 21, squares 69, so that
    # D_e = 2 * (69 - 21 * 21 / 8) / 7 = 3.964; alpha = 1 - 3.25 / 3.964
    (one,) = found["agreement"]
    assert one["alpha"] == pytest.approx(1 - 3.25 / (2 * (69 - 441 / 8) / 7), abs=1e-4)
    assert (one["equal"], one["rows"], one["raters"]) == (0.5, 4, 2)
    assert [(split["id"], split["apart"]) for split in found["splits"]] == [
        ("row 1", 0.75),
        ("row 3", 0.5),
    ]
    assert found["splits"][0]["answers"] == {"Ada": "2", "Bo": "5"}
    assert found["contradictions"] == [
        {"unit": "u0", "id": "row 0", "rater": "Ada", "first": "1", "second": "5"}
    ]
    assert found["confused"][0]["rows"] == 1
    assert found["skipped"] == [
        {"id": "row 4", "rater": "Bo", "reason": "I cannot tell"}
    ]


def test_a_rater_sees_only_rows_of_their_own(tmp_path: Path) -> None:
    given = [
        *scores("Ada", "15"),
        *scores("Bo", "51"),
        *scores("Cy", "1"),
        *scores("Bo", "1", 1),
        ("Bo", "u2", 0, "x"),
    ]
    found = summary(said(tmp_path, Task(), rows(3), given), ["Ada", "Bo", "Cy"], "Cy")
    assert [one["id"] for one in found["splits"]] == ["row 0"]
    assert found["split_rows"] == 2
    assert found["contradictions"] == found["skipped"] == []


def test_categories_that_are_confused(tmp_path: Path) -> None:
    task = Task("category", categories=("bad", "ok", "good"))
    pairs = [
        ("ok", "good"),
        ("ok", "good"),
        ("good", "ok"),
        ("bad", "ok"),
        ("good", "good"),
    ]
    given = [
        (who, f"u{i}", 0, {"category": pair[k]})
        for i, pair in enumerate(pairs)
        for k, who in enumerate("AB")
    ]
    found = summary(said(tmp_path, task, rows(5), given), ["A", "B"])
    assert [(one["between"], one["rows"]) for one in found["confused"]] == [
        (["ok", "good"], 3),
        (["bad", "ok"], 1),
    ]
    assert found["agreement"][0]["equal"] == 0.2


def test_one_rater_alone(tmp_path: Path) -> None:
    for task, answer in ((Task(), {"score": 3.0}), (Task("spans"), {"errors": []})):
        folder = tmp_path / task.kind
        folder.mkdir()
        found = summary(
            said(folder, task, rows(1), [("Ada", "u0", 0, answer)]), ["Ada"]
        )
        assert found["agreement"][0]["rows"] == 0
        assert found["splits"] == []


def test_spans(tmp_path: Path) -> None:
    def errors(*places: tuple[int, int, int]) -> dict[str, Any]:
        return {
            "errors": [
                {"text": "", "start": a, "end": b, "severity": s, "explanation": ""}
                for a, b, s in places
            ]
        }

    given = [
        ("Ada", "u0", 0, errors((0, 4, 2))),
        ("Bo", "u0", 0, errors((0, 6, 4))),
        ("Ada", "u1", 0, errors()),
        ("Bo", "u1", 0, errors((0, 3, 5))),
        ("Ada", "u2", 0, errors()),
        ("Bo", "u2", 0, errors()),
    ]
    found = summary(said(tmp_path, Task("spans"), rows(3), given), ["Ada", "Bo"])
    (one,) = found["agreement"]
    # 4 shared characters of 4 + 6 + 3 marked ones; minor against major is worth half of each
    assert (one["f1"], one["weighted_f1"]) == (
        pytest.approx(8 / 13, abs=1e-4),
        pytest.approx(4 / 13, abs=1e-4),
    )
    assert [(split["id"], split["apart"]) for split in found["splits"]] == [
        ("row 1", 1.0)
    ]
