"""Slices, raters one by one, and tables for a paper."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write

from judgesmith.evaluating.raters import Persons, warnings

PAGE = Path(__file__).parents[2] / "docs/pages/howto/evaluate.md"


def sliced(tmp_path: Path, *, spoilt: str = "de") -> Path:
    """240 rows in three languages; in one the judge guesses."""
    rng, rows = random.Random(0), []
    for i in range(240):
        language, truth = ("en", "de", "fr")[i % 3], rng.gauss(0, 1)
        judge = rng.gauss(0, 1) if language == spoilt else truth + rng.gauss(0, 0.4)
        text = {
            "id": f"r{i}",
            "source": f"question {i * 7919}",
            "output": f"answer {i * i} of {i}",
        }
        rows.append(
            text
            | {"score": round(3 + truth, 3), "j_1%": round(judge, 3), "lang": language}
        )
    return write(tmp_path / "rows.jsonl", rows)


def test_a_slice_where_the_judge_fails_stands_out(cli: Any, tmp_path: Path) -> None:
    path = sliced(tmp_path)
    words = (
        "evaluate",
        path,
        "--judge",
        "J=j_1%",
        "--slices",
        "lang",
        "--scale",
        -9,
        9,
    )
    found = {one["value"]: one for one in cli(*words, "--json").told["slices"]}
    assert set(found) == {"en", "de", "fr"}
    assert all(one["n"] == 80 for one in found.values())
    assert found["de"]["holm"] < 0.001
    assert found["de"]["difference"] < -0.5
    assert all(one["p"] <= one["bh"] <= one["holm"] for one in found.values())
    assert "By lang: Spearman" in cli(*words, "-o", tmp_path / "page.html").said
    assert "By lang" in (tmp_path / "page.html").read_text(encoding="utf-8")
    cli("evaluate", path, "--judge", "j_1%", "--slices", "colour").refused_at_once(
        "--slices colour: no row has it"
    )
    cli("evaluate", path, "--judge", "j_1%", "--slices", "id").refused_at_once(
        "it has 240 values"
    )


def test_one_column_of_languages_splits_the_agreement_unasked(
    cli: Any, tmp_path: Path
) -> None:
    path = sliced(tmp_path)
    words = ("check", path, "--judge", "j_1%", "--scale", -9, 9)
    told = cli(*words, "--json").told
    assert told["slices"] == cli(*words, "--slices", "lang", "--json").told["slices"]
    assert told["read"]["split"] == ["lang"]
    said = cli(*words).said
    assert "Agreement is split by 'lang' at the end" in said
    assert "By lang: Spearman" in said
    none = cli(*words, "--slices", "none").said
    assert "Not used: 'lang'." in none
    assert "By lang" not in none


@pytest.mark.parametrize(
    ("name", "value"), [("lang", "en"), ("lang", 7), ("locale", "{i}"), ("topic", "{}")]
)
def test_columns_without_several_languages_split_nothing(
    cli: Any, tmp_path: Path, name: str, value: Any
) -> None:
    """One language, numbers, a word of each row's own, and words of another column."""
    rows = [json.loads(line) for line in sliced(tmp_path).open(encoding="utf-8")]
    for i, row in enumerate(rows):
        own = row.pop("lang")
        row[name] = value
        if isinstance(value, str):
            row[name] = value.replace("{}", own).replace("{i}", f"lang {i}")
    path = write(tmp_path / "other.jsonl", rows)
    told = cli("check", path, "--judge", "j_1%", "--scale", -9, 9, "--json").told
    assert told["slices"] == told["read"]["split"] == told["read"]["languages"] == []
    assert name in told["read"]["not_used"]


def test_two_columns_of_languages_are_named_and_none_is_taken(
    cli: Any, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in sliced(tmp_path).open(encoding="utf-8")]
    for row in rows:
        row["Sprache"] = {"en": "Englisch", "de": "Deutsch"}.get(row["lang"], "Latein")
    path = write(tmp_path / "two.jsonl", rows)
    words = ("check", path, "--judge", "j_1%", "--scale", -9, 9)
    said = cli(*words).said
    assert "May be languages: 'lang', 'Sprache'; --slices splits" in said
    assert "By lang" not in said
    said = cli(*words, "--slices", "Sprache").said
    assert "Not used: 'lang'." in said
    assert "By Sprache: Spearman" in said


def test_many_slices_do_not_come_unasked(cli: Any, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in sliced(tmp_path).open(encoding="utf-8")]
    for i, row in enumerate(rows):
        row["lang"] = f"l{'abcdefghijklmnopqrstuvwxyz'[i % 26]}"
    path = write(tmp_path / "many.jsonl", rows)
    words = ("check", path, "--judge", "j_1%", "--scale", -9, 9)
    told = cli(*words, "--json").told
    assert told["slices"] == []
    assert told["read"]["languages"] == ["lang"]
    assert "May be languages: 'lang'" in cli(*words).said


def test_equal_slices_are_called_different_as_often_as_they_may(
    cli: Any, tmp_path: Path
) -> None:
    found = cli(
        "evaluate",
        sliced(tmp_path, spoilt=""),
        "--judge",
        "j_1%",
        "--slices",
        "lang",
        "--json",
    ).told["slices"]
    assert all(one["holm"] > 0.05 for one in found)


def test_tables_for_a_paper(cli: Any, tmp_path: Path) -> None:
    path = sliced(tmp_path)
    tex, table, rows = tmp_path / "t.tex", tmp_path / "t.csv", tmp_path / "rows.csv"
    told = cli(
        "evaluate", path, "--judge", "j_1%", "--table", tex, "--rows", rows, "--json"
    ).told
    cell = told["judges"]["j_1%"]["overall"]["pooled"]["spearman"]
    text = tex.read_text(encoding="utf-8")
    assert r"j\_1\%" in text
    assert text.count(r"\\") == 2
    assert r"\toprule" in text
    assert f"{cell['value']:.2f} [{cell['low']:.2f}, {cell['high']:.2f}]" in text
    assert cli("evaluate", path, "--judge", "j_1%", "--table", table).code == 0
    (line,) = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    assert float(line["pooled Spearman ρ"]) == pytest.approx(cell["value"], abs=1e-5)
    assert float(line["pooled Spearman ρ low"]) == pytest.approx(cell["low"], abs=1e-5)
    lines = list(csv.DictReader(rows.read_text(encoding="utf-8").splitlines()))
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert len(lines) == 240
    assert float(lines[0]["j_1%"]) == first["j_1%"]
    assert float(lines[0]["people: overall"]) == first["score"]
    cli("evaluate", path, "--judge", "j_1%", "--table", "t.docx").refused_at_once(
        "write .tex or .csv"
    )


def rated(tmp_path: Path, *, severity: float = 0.0, guessing: bool = False) -> Path:
    """120 rows of three named raters; the last may guess."""
    rng, rows = random.Random(2), []
    for i in range(120):
        truth = rng.gauss(3, 0.8)
        given = {
            name: truth + rng.gauss(0, 0.5) + severity * k
            for k, name in enumerate(("ann", "bo", "cy"))
        }
        given |= {"cy": rng.uniform(1, 5)} if guessing else {}
        about = {
            "id": f"r{i}",
            "source": f"question {i * 7919}",
            "output": f"answer {i * i} of {i}",
        }
        rows.append(
            about
            | {
                "score": {n: round(v, 2) for n, v in given.items()},
                "j": round(truth, 3),
            }
        )
    return write(tmp_path / "rated.jsonl", rows)


def test_a_judge_near_the_truth_may_replace_raters(cli: Any, tmp_path: Path) -> None:
    told = cli(
        "evaluate", rated(tmp_path), "--judge", "j", "--scale", -2, 8, "--json"
    ).told
    row, constant = told["replacement"]
    assert row["passes"]
    assert constant["judge"].startswith("always ")
    assert not constant["passes"]
    assert row["winning"] == 1
    assert set(row["p"]) == {"ann", "bo", "cy"}
    assert row["epsilon"] == 0.15
    assert (
        "May it replace a rater?"
        in cli("evaluate", rated(tmp_path), "--judge", "j", "--scale", -2, 8).said
    )


def test_agreement_within_raters_stands_beside_where_they_differ(
    cli: Any, tmp_path: Path
) -> None:
    assert (
        cli("evaluate", rated(tmp_path), "--judge", "j", "--json").told["within_raters"]
        == []
    )
    (row,) = cli(
        "evaluate", rated(tmp_path, severity=1.0), "--judge", "j", "--json"
    ).told["within_raters"]
    assert row["between"] > 0.3
    assert row["raters"] == 3
    assert 0.6 < row["within"] < 0.95


def test_a_rater_who_guesses_is_named(cli: Any, tmp_path: Path) -> None:
    notes = cli(
        "evaluate", rated(tmp_path, guessing=True), "--judge", "j", "--json"
    ).told["notes"]
    assert [
        note
        for note in notes
        if "as if answering at random" in note and "cy agrees" in note
    ]
    notes = cli("evaluate", rated(tmp_path), "--judge", "j", "--json").told["notes"]
    assert not any("at random" in note for note in notes)


def test_a_rater_who_gave_most_labels_or_always_the_same_is_named() -> None:
    table = np.full((60, 3), np.nan)
    table[:, 0], table[:12, 1], table[:12, 2] = (
        np.arange(60) % 5,
        np.arange(12) % 5,
        3.0,
    )
    said = list(warnings([Persons("overall", ("ann", "bo", "cy"), table)]))
    assert (
        "overall: ann gave 60 of 84 labels; agreement is mostly with this one person"
        in said
    )
    assert "overall: cy gave 12 rows the same label, 3" in said


def test_the_commands_of_the_page_run(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (
        PAGE.read_text(encoding="utf-8")
        .split("## Slices, and tables for a paper")[1]
        .split("\nWilliams")[0]
    )
    rng, rows = random.Random(0), []
    for i in range(80):
        truth, about = (
            rng.gauss(0, 1),
            {"id": f"r{i}", "doc_id": f"d{i // 4}", "system": "abcd"[i % 4]},
        )
        texts = {
            "source": f"question {i // 4 * 7919}",
            "output": f"answer {i * i} of {i}",
        }
        judges = {
            "gpt4": round(truth + rng.gauss(0, 1), 3),
            "other": round(truth + rng.gauss(0, 1), 3),
        }
        rows.append(
            about
            | texts
            | judges
            | {"language": ("en", "de")[i // 4 % 2], "chance": 0.2 + 0.1 * (i % 3)}
        )
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "unrated.jsonl", rows)
    write(
        tmp_path / "rated.jsonl",
        [row | {"score": round(3 + rng.gauss(row["gpt4"], 1), 2)} for row in rows],
    )
    for command in re.findall(r"^\$ judgesmith (.*)$", section, re.MULTILINE):
        done = cli(*shlex.split(command))
        assert done.code == 0, f"{command}: {done.err}"
    assert (tmp_path / "agreement.tex").exists()
    assert (tmp_path / "rows.csv").exists()
