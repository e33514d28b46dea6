"""`judgesmith estimate`, `suggest` and `score --defer` as a user runs them."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write

from judgesmith.scoring.scoring import mark_deferred

HOSTILE = "s\x1b[31m[/red]"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Forty documents of two systems with verdicts, and the human scores of ten of them."""
    rng, scored, labels = random.Random(0), [], []
    for d in range(40):
        for k, system in enumerate((HOSTILE, "b")):
            human = min(5.0, max(1.0, 2.5 + k + rng.gauss(0, 0.8)))
            row = {
                "id": f"{d}{system}",
                "source": f"document {d}",
                "output": f"text {d} of {k}",
                "system": system,
            }
            interval = {"low": 1.0, "high": 5.0, "coverage": 0.9, "error": d / 10}
            verdict = {
                "score": human - 1,
                "failure": None,
                "repaired": False,
                "interval": interval,
            }
            scored.append(row | {"verdict": verdict, "judge": "x", "seen": d == 0})
            labels += [
                row
                | {
                    "score": human,
                    "score_1": human,
                    "score_2": human,
                    "score_3": human + 0.1,
                }
            ] * (d < 10)
    return write(tmp_path / "scored.jsonl", scored), write(
        tmp_path / "labels.jsonl", labels
    )


def test_estimate_gives_every_system(
    cli: Callable[..., Any], files: tuple[Path, Path]
) -> None:
    told = cli("estimate", files[0], "--human", files[1], "--json").told
    systems = told["systems"]
    assert list(systems) == ["b", HOSTILE]
    for system in systems.values():
        assert system["low"] <= system["mean"] <= system["high"]
        assert (
            system["n_human"],
            system["n_judge"],
        ) == (10, 40)
        assert system["mean"] - system["naive"] == pytest.approx(
            1, abs=0.05
        )  # the judge is one below people
    assert any("used to compile" in note for note in told["notes"])
    unseen = cli("estimate", files[0], "--human", files[1], "--unseen", "--json").json
    assert unseen["systems"]["b"]["n_human"] == 9
    chosen = [
        label | {"chosen_by": "suggest" if i < 6 else "random"}
        for i, label in enumerate(lines(files[1]))
    ]
    drawn = cli("estimate", files[0], "--human", write(files[1], chosen), "--json").json
    assert "6 of the rows were chosen by" in cli(
        "evaluate", files[1], files[0], "--rounds", 0
    ).out.replace("\n", " ")
    assert drawn["systems"]["b"]["n_human"] == 7
    assert any("6 human scores of rows" in note for note in drawn["notes"])
    assert "\x1b" not in cli("estimate", files[0], "--human", files[1]).out


def test_estimate_says_what_is_wrong(
    cli: Callable[..., Any], files: tuple[Path, Path], tmp_path: Path
) -> None:
    other = write(
        tmp_path / "other.jsonl",
        [{"id": f"x{i}", "output": f"o {i}", "score": i} for i in range(9)],
    )
    for arguments, message in (
        ((files[0], "--human", "none.csv"), "none.csv: no such file"),
        ((files[0], "--human", "none.xlsx"), "none.xlsx: no such file"),
        ((files[0], "--human", "none.csv.gz"), "none.csv.gz: no such file"),
        ((files[0], "--human", other), "no id of other.jsonl is in scored.jsonl"),
        ((files[0], "--human", files[1], "--judge", "nothing"), "no column 'nothing'"),
        ((files[1], "--human", files[1]), "no row has a verdict"),
    ):
        done = cli("estimate", *arguments)
        assert done.code == 2
        assert message in done.err
        assert "Traceback" not in done.err


def test_suggest_gives_ids_without_labels(
    cli: Callable[..., Any], files: tuple[Path, Path]
) -> None:
    done = cli("suggest", files[0], "--labels", files[1], "--n", 5, "--json")
    assert done.code == 0
    assert len(set(done.json["ids"])) == 5
    labels = lines(files[1])
    assert not {label["id"] for label in labels} & set(done.json["ids"])
    assert done.json["labelled"] == 20
    assert all(
        found["why"] and found["chosen_by"] == "suggest"
        for found in done.json["suggestions"]
    )
    # Labels whose ids are others: the texts are the same.
    renamed = [label | {"id": str(i)} for i, label in enumerate(labels)]
    again = cli(
        "suggest",
        files[0],
        "--labels",
        write(files[1].with_name("n.jsonl"), renamed),
        "--n",
        5,
        "--json",
    )
    assert again.json["ids"] == done.json["ids"]
    assert "\x1b" not in cli("suggest", files[0], "--n", 5).out


def test_the_least_sure_rows_are_left_to_a_person(
    cli: Callable[..., Any], files: tuple[Path, Path]
) -> None:
    assert mark_deferred(files[0], 0.1) == 8
    assert [i for i, row in enumerate(lines(files[0])) if row["defer"]] == list(
        range(72, 80)
    )
    assert mark_deferred(files[1].with_name("scored.jsonl"), 0.0) == 0
