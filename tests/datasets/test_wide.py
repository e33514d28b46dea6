"""Tables whose rows have several versions' outputs, each with its own ratings."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import judgesmith as js
from judgesmith.datasets.loading import count_rows

TEXTS = ("Press the button until it blinks.", "Wait for the green light, then retry.")


def table(folder: Path, names: Sequence[str], *rows: Sequence[Any]) -> Path:
    path = folder / "wide.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows([names, *rows])
    return path


def rows_of(count: int) -> list[tuple[Any, ...]]:
    """Rows: a question, two outputs, and their ratings 1..3 and 3..5."""
    return [
        (
            f"How do I reset item {i}?",
            *(f"{text} {i}" for text in TEXTS),
            1 + i % 3,
            3 + i % 3,
        )
        for i in range(count)
    ]


@pytest.mark.parametrize(
    ("names", "versions"),
    [
        (
            ("Question", "Answer v1", "Answer v2", "Rating v1", "Rating v2"),
            ["v1", "v2"],
        ),
        (
            (
                "Frage",
                "GPT-4 Antwort",
                "Llama_3 Antwort",
                "GPT-4 Bewertung",
                "Llama_3 Bewertung",
            ),
            ["GPT-4", "Llama_3"],
        ),
        (
            ("source", "output_base", "output_new", "score_base", "score_new"),
            ["base", "new"],
        ),
    ],
)
def test_each_version_is_a_row(
    names: Sequence[str], versions: list[str], tmp_path: Path
) -> None:
    labels = js.read_labels(table(tmp_path, names, *rows_of(9)))
    assert len(labels) == 18
    first, second = labels.rows[:2]
    assert [first.system, second.system] == versions
    assert [first.id, second.id] == [f"1-{version}" for version in versions]
    assert (first.output, second.output) == (f"{TEXTS[0]} 0", f"{TEXTS[1]} 0")
    assert first.group == second.group
    assert [row.scores[labels.aspect] for row in labels.rows[:4]] == [1, 3, 2, 4]
    assert any(
        f"the outputs of {', '.join(versions)}" in one for one in labels.warnings
    )


def test_sides_are_no_versions(tmp_path: Path) -> None:
    names = ("question", "answer_a", "answer_b", "rating_a", "rating_b")
    labels = js.read_labels(table(tmp_path, names, *rows_of(9)))
    assert len(labels) == 18
    assert {row.system for row in labels.rows} == {None}
    named = (*names, "model_a", "model_b")
    sides = [(*row, *("mo" if i % 2 else "om")) for i, row in enumerate(rows_of(9))]
    labels = js.read_labels(table(tmp_path, named, *sides))
    assert [row.system for row in labels.rows[:4]] == ["o", "m", "m", "o"]


def test_a_version_without_an_output_or_a_rating_is_left_out(tmp_path: Path) -> None:
    names = ("Question", "Answer v1", "Answer v2", "Rating v1", "Rating v2")
    rows = [list(row) for row in rows_of(9)]
    rows[0][1] = rows[1][4] = rows[2][1] = rows[2][2] = ""
    labels = js.read_labels(table(tmp_path, names, *rows))
    assert len(labels) == 14  # nine rows of two, less one, one, and both of the third
    assert labels.account is not None
    assert labels.account.rows == 9
    assert labels.account.skipped == ((3, "no output"),)


@pytest.mark.parametrize(
    "names",
    [
        # One version has no rating of its own; no name says output.
        ("question", "answer v1", "answer v2", "rating v1", "rating v3"),
        ("question", "length v1", "length v2", "rating v1", "rating v2"),
    ],
)
def test_what_is_not_certain_is_asked(names: Sequence[str], tmp_path: Path) -> None:
    with pytest.raises(js.LabelsError, match="no column for the output text"):
        js.read_labels(table(tmp_path, names, *rows_of(9)))


def test_people_who_compared_are_read_as_before(tmp_path: Path) -> None:
    names = ("question", "answer_a", "answer_b", "rating_a", "rating_b", "winner")
    rows = [(*row, "a" if i % 2 else "b") for i, row in enumerate(rows_of(9))]
    assert js.read_labels(table(tmp_path, names, *rows)).kind == "preference"


def test_an_output_by_its_name_is_the_output(tmp_path: Path) -> None:
    names = ("question", "answer", "answer new", "rating", "rating new")
    labels = js.read_labels(
        table(tmp_path, names, *rows_of(9)), columns={"score": "rating"}
    )
    assert len(labels) == 9


def test_versions_of_one_row_are_compared(cli: Any, tmp_path: Path) -> None:
    names = ("Question", "Answer v1", "Answer v2", "Rating v1", "Rating v2")
    told = cli("compare", table(tmp_path, names, *rows_of(30)), "--json").json
    assert told["verdict"] == "better"
    assert (told["base"], told["new"]) == ("v1", "v2")
    assert told["difference"] == 2  # 3 + i % 3 less 1 + i % 3
    sides = ("Question", "answer_a", "answer_b", "rating_a", "rating_b")
    cli("compare", table(tmp_path, sides, *rows_of(30))).refused(
        "which version", "answer v1"
    )


def test_a_judge_of_such_a_table_is_checked_on_another_one(
    cli: Any, server: Any, tmp_path: Path
) -> None:
    server.answer = lambda ask: f"Score: {len(ask.last) % 60}"
    names = ("Question", "Answer v1", "Answer v2", "Rating v1", "Rating v2")
    path, judge = table(tmp_path, names, *rows_of(12)), tmp_path / "judge.json"
    model = ("--lm", "openai/judge", "--api-base", server.base)
    how = ("--method", "direct", "--optimizer", "zero-shot", "-o", judge)
    assert cli("compile", path, *model, *how).code == 0
    told = cli("check", path, "--judge", judge, "--api-base", server.base, "--json")
    assert told.json["rows"] == 24


def test_each_version_is_scored(
    cli: Any, server: Any, judge_file: Path, tmp_path: Path
) -> None:
    names = ("Question", "Answer v1", "Answer v2")
    path = table(tmp_path, names, *(row[:3] for row in rows_of(5)))
    assert count_rows(path) == 10
    scored = tmp_path / "scored.jsonl"
    run = (
        "score",
        path,
        "--judge",
        judge_file,
        "--api-base",
        server.base,
        "-o",
        scored,
    )
    assert cli(*run).code == 0
    assert cli(*run).code == 0  # nothing is left to do
    rows = [json.loads(line) for line in scored.read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows[:3]] == ["1-v1", "1-v2", "2-v1"]
    assert [row["system"] for row in rows] == ["v1", "v2"] * 5
    assert all(row["verdict"]["score"] is not None for row in rows)
