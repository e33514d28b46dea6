"""Verdicts in words: what stands for what, in every command that takes a judge's column, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import write

PAGE = Path(__file__).parents[2] / "docs/pages/howto/evaluate.md"
LIKERT = ("very poor", "poor", "fair", "good", "excellent")


def rows(
    verdict: Callable[[bool, random.Random], Any], *, wrong: float = 0.15, **more: Any
) -> list[dict[str, Any]]:
    """60 rows that people passed or failed, and a judge that is wrong on some."""
    rng, made = random.Random(0), []
    for i in range(60):
        people = rng.random() < 0.7
        judge = people != (rng.random() < wrong)
        row = {
            "id": f"r{i}",
            "source": f"question {i * 7919} about {i}?",
            "output": f"answer {i * i} {i}",
        }
        made.append(
            row | {"label": ("fail", "pass")[people], "j": verdict(judge, rng)} | more
        )
    return made


def saved(path: Path, made: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        return write(path, made)
    text = io.StringIO()
    table = csv.DictWriter(text, list(made[0]))
    table.writeheader()
    table.writerows(made)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
@pytest.mark.parametrize(
    ("said", "note"),
    [
        (lambda good, _: "Pass" if good else "FAIL", "fail = 0 < pass = 1"),
        (lambda good, _: "yes" if good else "no", "no = 0 < yes = 1"),
        (lambda good, _: good, "false = 0 < true = 1"),
        (lambda good, _: "👍" if good else "👎", "👎 = 0 < 👍 = 1"),
        (
            lambda good, rng: rng.choice(LIKERT[3:] if good else LIKERT[:3]),
            "very poor = 1 < poor = 2 < fair = 3 < good = 4 < excellent = 5",
        ),
        (
            lambda good, rng: rng.choice("AB" if good else "CDF"),
            "f = 1 < d = 2 < c = 3 < b = 4 < a = 5",
        ),
        (
            lambda good, rng: rng.choice(["★★★★", "★★★★★"] if good else ["★", "★★"]),
            "★★★★★ = 5",
        ),
        (lambda good, _: "5/5" if good else "1/5", "numbers"),
    ],
)
def test_a_judge_in_words_is_read_shown_and_compared(
    cli: Any, tmp_path: Path, name: str, said: Callable[..., Any], note: str
) -> None:
    path = saved(tmp_path / name, rows(said))
    told = cli("evaluate", path, "--judge", "j", "--json").told
    assert told["judges"]["j"]["overall"]["pooled"]["pearson"]["value"] > 0.4
    read = [one for one in told["notes"] if one.startswith("j: column 'j' is read as ")]
    assert len(read) == 1
    assert note in read[0] or note == "numbers"
    assert "human ratings of 'overall' are read as fail = 0 < pass = 1" in told["notes"]


def test_a_decision_in_words_is_the_judges_own(cli: Any, tmp_path: Path) -> None:
    made = rows(lambda good, _: "yes" if good else "no")
    path = saved(tmp_path / "rows.csv", made)
    (found,) = cli("evaluate", path, "--judge", "j", "--json").told["decisions"]
    pairs = [(row["label"] == "pass", row["j"] == "yes") for row in made]
    counts = [
        [pairs.count((people, judge)) for judge in (False, True)]
        for people in (False, True)
    ]
    assert [row[:2] for row in found["counts"]] == counts
    alike, n, passed = (
        counts[0][0] + counts[1][1],
        len(pairs),
        sum(people for people, _ in pairs),
    )
    told = sum(judge for _, judge in pairs)
    chance = (passed * told + (n - passed) * (n - told)) / n**2
    assert found["figures"]["kappa"][0] == pytest.approx(
        (alike / n - chance) / (1 - chance)
    )
    assert found["figures"]["constant"][0] == pytest.approx(passed / n)
    assert found["commonest"] == "pass"
    low = found["figures"]["recall"][1]
    assert (
        cli(
            "evaluate",
            path,
            "--judge",
            "j",
            "--fail-under",
            f"recall>={low - 0.001:.4f}",
        ).code
        == 0
    )
    assert (
        cli(
            "evaluate",
            path,
            "--judge",
            "j",
            "--fail-under",
            f"recall>={low + 0.001:.4f}",
        ).code
        == 1
    )


def test_the_said_order_goes_before_every_other(cli: Any, tmp_path: Path) -> None:
    path = saved(tmp_path / "rows.csv", rows(lambda good, _: "yes" if good else "no"))
    told = cli("evaluate", path, "--judge", "J=j", "--scale", "j=yes,no", "--json").told
    assert told["judges"]["J"]["overall"]["pooled"]["pearson"]["value"] < -0.4
    assert "J: column 'j' is read as yes = 0 < no = 1" in told["notes"]
    by_name = cli("evaluate", path, "--judge", "J=j", "--scale=J=yes,no", "--json").told
    assert by_name["judges"] == told["judges"]
    numbers = cli("evaluate", path, "--judge", "j", "--scale", 0, 1, "--json").told
    assert numbers["judges"]["j"]["overall"]["pooled"]["pearson"]["value"] > 0.4


def test_people_are_read_in_the_said_order_too(cli: Any, tmp_path: Path) -> None:
    words = {"fail": "meh", "pass": "wow"}
    made = [
        row | {"label": words[row["label"]]}
        for row in rows(lambda good, _: "wow" if good else "meh")
    ]
    path = saved(tmp_path / "rows.csv", made)
    cli("evaluate", path, "--human", "label", "--judge", "j").refused_at_once(
        '--scale "label=meh,wow"'
    )
    told = cli(
        "evaluate",
        path,
        "--human",
        "label",
        "--judge",
        "j",
        "--scale",
        "label=meh,wow",
        "--json",
    ).told
    assert (
        told["decisions"][0]["figures"]["kappa"][0] > 0.4
    )  # the judge is read as people are


@pytest.mark.parametrize(
    ("said", "column", "more", "parts"),
    [
        (
            lambda good, _: "blue" if good else "red",
            "j",
            (),
            ["words of no known scale", '--scale "j=blue,red"'],
        ),
        (
            lambda good, rng: rng.choice("AB" if good else "CD"),
            "j",
            (),
            ["words of no known scale"],
        ),
        (
            lambda good, _: "no" if good else "yes",
            "hallucination",
            (),
            ["'yes' may be the worse answer", '--scale "hallucination=yes,no"'],
        ),
        (
            lambda good, _: "yes" if good else "no",
            "j",
            ("--scale", "k=no,yes"),
            ["no such column or judge"],
        ),
        (
            lambda good, _: "yes" if good else "no",
            "j",
            ("--scale", "j=no"),
            ["two or more different words"],
        ),
        (
            lambda good, _: "yes" if good else "no",
            "j",
            ("--scale", "j=nope,yes"),
            ["'no' is not one of nope, yes"],
        ),
    ],
)
def test_two_readings_are_refused_with_the_way_out(
    cli: Any,
    tmp_path: Path,
    said: Callable[..., Any],
    column: str,
    more: tuple[str, ...],
    parts: list[str],
) -> None:
    made = [
        {name if name != "j" else column: cell for name, cell in row.items()}
        for row in rows(said)
    ]
    for command in ("evaluate", "estimate"):
        cli(
            command,
            saved(tmp_path / "rows.csv", made),
            "--human",
            "label",
            "--judge",
            column,
            *more,
        ).refused(*parts)


def test_a_faults_name_is_no_hindrance_where_the_order_is_known(
    cli: Any, tmp_path: Path
) -> None:
    made = rows(lambda good, _: "no" if good else "yes")
    path = saved(
        tmp_path / "rows.csv", [row | {"hallucination": row["j"]} for row in made]
    )
    told = cli(
        "evaluate",
        path,
        "--human",
        "label",
        "--judge",
        "hallucination",
        "--scale",
        "hallucination=yes,no",
    )
    assert "is read as yes = 0 < no = 1" in told.said
    # Where people speak of a fault, too, in the order that they were read in.
    both = [
        row
        | {
            "hallucination": "no" if row["label"] == "pass" else "yes",
            "error": row["j"],
        }
        for row in made
    ]
    path = saved(
        tmp_path / "both.csv",
        [{k: v for k, v in row.items() if k != "label"} for row in both],
    )
    words = (
        "--human",
        "hallucination",
        "--judge",
        "error",
        "--scale",
        "hallucination=yes,no",
        "--json",
    )
    assert (
        cli("evaluate", path, *words).told["decisions"][0]["figures"]["kappa"][0] > 0.4
    )


def test_verdicts_say_which_answer_to_a_fault_is_the_worse(
    cli: Any, tmp_path: Path
) -> None:
    made = []
    for row in rows(lambda good, _: good):
        verdict = {
            "score": float(row["j"]),
            "category": "no" if row["j"] else "yes",
            "passed": row["j"],
        }
        made.append(
            row
            | {
                "hallucination": "no" if row["label"] == "pass" else "yes",
                "verdict": verdict,
            }
        )
    path = saved(
        tmp_path / "scored.jsonl",
        [{k: v for k, v in row.items() if k not in ("label", "j")} for row in made],
    )
    (found,) = cli("evaluate", path, "--human", "hallucination", "--json").told[
        "decisions"
    ]
    assert found["names"] == ["yes", "no"]
    assert found["figures"]["kappa"][0] > 0.4


def test_words_that_are_better_here_and_worse_there_are_refused(
    cli: Any, tmp_path: Path
) -> None:
    made = rows(lambda good, _: "no" if good else "yes")
    path = saved(
        tmp_path / "rows.csv",
        [row | {"label": "no" if row["label"] == "pass" else "yes"} for row in made],
    )
    words = ("--human", "label", "--judge", "j", "--scale", "label=yes,no")
    cli("evaluate", path, *words).refused_at_once(
        "'no' is the better word in the ratings of 'label'"
    )
    assert cli("evaluate", path, *words, "--scale", "j=yes,no").code == 0


def test_a_constant_judge_stands_beside(cli: Any, tmp_path: Path) -> None:
    path = saved(tmp_path / "rows.csv", rows(lambda good, _: "pass"))
    told = cli("evaluate", path, "--judge", "j", "--json").told
    assert (
        told["decisions"][0]["figures"]["agreement"][0]
        == told["decisions"][0]["figures"]["constant"][0]
    )
    assert any(
        "not surely above that of a judge that always says 'pass'" in note
        for note in told["notes"]
    )


def test_more_categories_have_a_table_and_two_kappas(cli: Any, tmp_path: Path) -> None:
    rng, made = random.Random(3), []
    for i in range(60):
        people = rng.choice(["bad", "ok", "good"])
        judge = people if rng.random() < 0.7 else rng.choice(["bad", "ok"])
        about = {
            "id": f"r{i}",
            "source": f"question {i * 7919}",
            "output": f"answer {i * i}",
            "comment": f"mine {i}",
        }
        made.append(
            about
            | {
                "label": people,
                "judged": {"answer": judge, "reasoning": f"its own {i}"},
            }
        )
    path = write(tmp_path / "rows.jsonl", made)
    words = ("--judge", "judged.answer", "--coefficient", "cohen-kappa", "--json")
    told = cli("evaluate", path, *words, "--fail-under", "cohen-kappa>=0.1").told
    (found,) = told["decisions"]
    order = ["bad", "ok", "good"]
    counts = [
        [
            sum(r["label"] == a and r["judged"]["answer"] == b for r in made)
            for b in order
        ]
        for a in order
    ]
    assert [row[:3] for row in found["counts"]] == counts
    assert found["names"] == order
    sides = (
        [sum(row) for row in counts],
        [sum(column) for column in zip(*counts, strict=True)],
    )
    alike, chance = (
        sum(counts[k][k] for k in range(3)) / 60,
        sum(a * b for a, b in zip(*sides, strict=True)) / 3600,
    )
    kappa = (alike - chance) / (1 - chance)
    assert found["figures"]["kappa"][0] == pytest.approx(kappa)
    assert told["judges"]["judged.answer"]["overall"]["pooled"]["cohen-kappa"][
        "value"
    ] == pytest.approx(kappa)
    worst = found["worst"][0]
    assert (worst["people"], worst["judge"]) == ("good", "bad")  # two steps before one
    place = worst["id"].removeprefix("r")
    assert (worst["people_reason"], worst["judge_reason"]) == (
        f"mine {place}",
        f"its own {place}",
    )
    assert len(found["worst"]) == 60 - sum(counts[k][k] for k in range(3))


def comparisons(tmp_path: Path, **more: Any) -> Path:
    rng, made = random.Random(1), []
    for i in range(40):
        people = rng.choice(["A", "B", "A", "B", "tie"])
        judge = people if rng.random() < 0.8 else rng.choice(["A", "B", "tie"])
        texts = {
            "output_a": f"left answer {i * i} {i}",
            "output_b": f"right one {i * 31} of {i}",
        }
        made.append(
            {
                "id": f"r{i}",
                "prompt": f"question {i * 7919}?",
                **texts,
                "winner": people,
                "gpt4": judge,
            }
        )
    return write(tmp_path / "pairs.jsonl", [row | more for row in made])


def test_a_b_and_tie_count_for_each_side(cli: Any, tmp_path: Path) -> None:
    path = comparisons(tmp_path, other="B")
    rows_ = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    told = cli("evaluate", path, "--judge", "gpt4", "--json").told
    (found,) = told["decisions"]
    order = ("B", "tie", "A")
    expected = [
        [sum((r["winner"], r["gpt4"]) == (a, b) for r in rows_) for b in order]
        for a in order
    ]
    assert [row[:3] for row in found["counts"]] == expected
    right = {("A", "A"): 1.0, ("B", "B"): 1.0, ("A", "tie"): 0.5, ("B", "tie"): 0.5}
    decided = [
        right.get((r["winner"], r["gpt4"]), 0.0) for r in rows_ if r["winner"] != "tie"
    ]
    value = told["judges"]["gpt4"]["overall"]["sample"]["pairwise"]["value"]
    assert value == pytest.approx(sum(decided) / len(decided))
    cli("evaluate", path, "--judge", "other").refused_at_once(
        "name the column for a choice, such as other_winner"
    )
    assert (
        cli("compile", path, "--signal", "gpt4", "-o", tmp_path / "judge.json").code
        == 0
    )
    assert (
        cli(
            "score",
            path,
            "--judge",
            tmp_path / "judge.json",
            "-o",
            tmp_path / "scored.jsonl",
        ).code
        == 0
    )


def test_a_judge_keeps_the_words_of_its_signals(cli: Any, tmp_path: Path) -> None:
    made = rows(lambda good, rng: rng.choice(LIKERT[3:] if good else LIKERT[:3]))
    path, judge = saved(tmp_path / "rows.csv", made), tmp_path / "judge.json"
    said = " ".join(cli("compile", path, "--signal", "j", "-o", judge).said.split())
    assert (
        "the signal is read as very poor = 1 < poor = 2 < fair = 3 < good = 4 < excellent = 5"
        in said
    )
    other = saved(
        tmp_path / "new.csv",
        [made[0] | {"j": "Excellent"}, made[1] | {"j": "very poor"}],
    )
    cli("score", other, "--judge", judge, "-o", tmp_path / "scored.jsonl")
    scored = [
        json.loads(line)["verdict"]
        for line in (tmp_path / "scored.jsonl").read_text().splitlines()
    ]
    assert [one["percent"] for one in scored] == [100.0, 0.0]
    strange = saved(tmp_path / "strange.csv", [made[0] | {"j": "so la la"}])
    cli("score", strange, "--judge", judge, "-o", tmp_path / "no.jsonl").refused(
        "row 1: column 'j': 'so la la'"
    )
    other = saved(
        tmp_path / "fault.csv",
        [row | {"toxic": "no" if row["label"] == "pass" else "yes"} for row in made],
    )
    cli("compile", other, "--signal", "toxic", "-o", judge).refused(
        '--signal "toxic=yes,no"'
    )
    assert (
        cli(
            "compile",
            other,
            "--signal",
            "toxic",
            "--scale",
            "toxic=yes,no",
            "-o",
            judge,
        ).code
        == 0
    )
    assert json.loads(judge.read_text(encoding="utf-8"))["program"]["options"][
        "signals"
    ] == ["toxic=yes,no"]


def test_estimate_and_suggest_read_words(cli: Any, tmp_path: Path) -> None:
    made = rows(lambda good, _: "yes" if good else "no")
    for row in made[30:]:
        row["label"] = ""
    path = saved(tmp_path / "rows.csv", made)
    told = cli("estimate", path, "--human", "label", "--judge", "j", "--json").told
    assert "j is read as no = 0 < yes = 1" in told["notes"]
    assert told["systems"]["all rows"]["naive"] == pytest.approx(
        sum(row["j"] == "yes" for row in made) / 60
    )
    assert (
        cli(
            "suggest", path, "--judge", "j", "--scale", "j=no,yes", "-n", 3, "--json"
        ).code
        == 0
    )


def test_sentinels_of_unknown_words_are_refused(cli: Any, tmp_path: Path) -> None:
    path, judge = (
        saved(tmp_path / "rows.csv", rows(lambda good, _: "yes" if good else "no")),
        tmp_path / "judge.json",
    )
    assert cli("compile", path, "--signal", "j", "-o", judge).code == 0
    strange = [
        row | {"label": "wow" if row["label"] == "pass" else "meh"}
        for row in rows(lambda good, _: "yes")
    ]
    sentinels = saved(tmp_path / "sentinels.csv", strange[:12])
    words = ("watch", sentinels, "--judge", judge, "--human", "label")
    cli(*words).refused('--scale "label=meh,wow"')
    assert cli(*words, "--scale", "label=meh,wow").code == 0


def test_the_page_shows_what_happens(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (
        PAGE.read_text(encoding="utf-8")
        .split("## Verdicts in words")[1]
        .split("\n## ")[0]
    )
    name, table = re.findall(r'```csv title="(.+?)"\n(.*?)```', section, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(table, encoding="utf-8")
    commands = re.findall(r"^\$ judgesmith (.*)$", section, re.MULTILINE)
    done = [cli(*shlex.split(command)) for command in commands]
    assert [one.code for one in done] == [0, 0, 0], [one.err for one in done]
    assert "gpt4: column 'gpt4' is read as no = 0 < yes = 1" in done[0].out
    assert "The text speaks" not in done[0].out
    assert "The text does not say who." in done[0].out
    assert "It is in the last line." in done[0].out
