"""Columns of judges' scores as people's files have them, through the command."""

import random
from pathlib import Path
from typing import Any

import pytest
from json_lines import write


def scored(**columns: Any) -> list[dict[str, Any]]:
    """40 rows that people rated 1 to 5; each column is a function of a row's number and a judge's score of it."""
    rng = random.Random(0)
    rows = []
    for n in range(40):
        human = rng.randint(1, 5)
        judge = min(5, max(1, human + rng.choice((-1, 0, 0, 1))))
        row: dict[str, Any] = {"doc_id": f"d{n // 4}", "source": f"notice {n // 4}"}
        row |= {"output": f"text {n}", "human": human}
        rows.append(row | {name: of(n, judge) for name, of in columns.items()})
    return rows


def evaluated(cli: Any, path: Path, judge: str, rows: list[dict[str, Any]]) -> Any:
    return cli(
        "evaluate", write(path, rows), "--human", "human", "--judge", judge, "--json"
    ).json


def pooled(found: Any, judge: str) -> tuple[int, float]:
    spearman = found["judges"][judge]["human"]["pooled"]["spearman"]
    return spearman["n"], spearman["value"]


@pytest.mark.parametrize(
    "written", [lambda j: f"{j}/5", lambda j: f"{20 * j}%", lambda j: f"{j} points"]
)
def test_marks_with_a_scale_of_their_own_are_scores(
    written: Any, cli: Any, tmp_path: Path
) -> None:
    rows = scored(plain=lambda _, j: j, marked=lambda _, j: written(j))
    plain = evaluated(cli, tmp_path / "plain.jsonl", "plain", rows)
    marked = evaluated(cli, tmp_path / "marked.jsonl", "marked", rows)
    assert pooled(marked, "marked") == pooled(plain, "plain")


@pytest.mark.parametrize("code", [-1, 0, 99])
def test_a_number_that_may_stand_for_failures_is_noted(
    code: int, cli: Any, tmp_path: Path
) -> None:
    rows = scored(j=lambda n, j: code if n % 5 == 0 else j, k=lambda _, j: j)
    notes = evaluated(cli, tmp_path / "rows.jsonl", "j", rows)["notes"]
    said = f"j: 8 scores of {code} are outside the scale 1..5 of 'human'"
    assert [said in note for note in notes].count(True) == 1
    notes = evaluated(cli, tmp_path / "rows.jsonl", "k", rows)["notes"]
    assert not any("outside the scale" in note for note in notes)


@pytest.mark.parametrize(("code", "times"), [(-1, 20), (999, 40), (-1, 3), (0, 12)])
def test_a_number_far_from_all_others_of_a_judge_is_noted(
    code: int, times: int, cli: Any, tmp_path: Path
) -> None:
    rows = scored(j=lambda n, j: code if n % times == 0 else 40 + 11 * j)
    count = len(range(0, 40, times))
    found = evaluated(cli, tmp_path / "rows.jsonl", "j", rows)["notes"]
    assert any(
        f"j: {count} scores of {code} are far from all others" in note for note in found
    )
    rows = scored(j=lambda n, j: 20 * j if n % 7 else 0)
    found = evaluated(cli, tmp_path / "plain.jsonl", "j", rows)["notes"]
    assert not any("far from all others" in note for note in found)


def test_ratings_that_could_be_meant_as_well_are_asked_about(
    cli: Any, tmp_path: Path
) -> None:
    rows = [
        {k: v for k, v in row.items() if k != "human"}
        | {"thumbs": ("👍", "👎")[row["human"] < 3], "Rating Ann": row["human"]}
        for row in scored(j=lambda _, j: j)
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    done = cli("evaluate", path, "--judge", "j")
    done.refused("'thumbs' and 'Rating Ann' could each be the score")
    assert '--human "Rating Ann"' in " ".join(done.err.split())


def test_a_column_with_a_sign_in_its_name_is_found(cli: Any, tmp_path: Path) -> None:
    name = "score (1=bad)"
    found = evaluated(
        cli, tmp_path / "rows.jsonl", name, scored(**{name: lambda _, j: j})
    )
    assert pooled(found, name)[0] == 40
    named = evaluated(cli, tmp_path / "rows.jsonl", "mine=k", scored(k=lambda _, j: j))
    assert list(named["judges"]) == ["mine"]


def test_ratings_that_were_rejected_are_no_human_scores(
    cli: Any, tmp_path: Path
) -> None:
    rows = scored(status=lambda n, _: ("rejected", "approved")[n % 4 > 0])
    for row in rows:
        row["j"] = row["human"]
        if row["status"] == "rejected":
            row["human"] = 6 - row["human"]
    found = evaluated(cli, tmp_path / "rows.jsonl", "j", rows)
    assert pooled(found, "j") == (30, pytest.approx(1.0))
    assert any(
        "ratings of 10 rows are left out, marked 'rejected'" in n
        for n in found["notes"]
    )


def test_the_decisions_of_a_judge_reject_no_human_rating(
    cli: Any, tmp_path: Path
) -> None:
    rows = scored(review_status=lambda _, j: ("rejected", "approved")[j > 2])
    found = evaluated(cli, tmp_path / "rows.jsonl", "review_status", rows)
    assert pooled(found, "review_status")[0] == 40
    found = evaluated(cli, tmp_path / "rows.jsonl", "mine=review_status", rows)
    assert pooled(found, "mine")[0] == 40
