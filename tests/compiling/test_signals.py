"""Columns of the rows as signals: a judge that needs no model, and one whose strong signal has the first word."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.cli.main import app
from judgesmith.errors import LabelsError, ModelError, OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.pipeline import numbers_of
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.rooms.serving.forms import RowIn


def written(
    path: Path, rows: int, *, strong: float, binary: bool = False, lengthy: float = 0.0
) -> Path:
    """Rows whose column gpt4 is people's score with noise (r = strong); lengthy: how much people like long outputs."""
    rng, lines = np.random.default_rng(0), []
    for i in range(rows):
        words, (quality, noise) = int(rng.integers(3, 60)), rng.normal(size=2)
        liked, gpt4 = (
            quality + lengthy * (words - 30) / 15,
            strong * quality + math.sqrt(1 - strong**2) * noise,
        )
        text = " ".join(f"w{rng.integers(9999)}" for _ in range(words))
        said = {
            "gpt4": int(gpt4 > 0) if binary else round(3 + gpt4, 3),
            "ter": round(50 - 10 * noise, 2),
        }
        lines.append(
            json.dumps(
                {
                    "source": f"Source {i}",
                    "output": text,
                    "score": round(liked, 3),
                    **said,
                }
            )
        )
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def compiled(labels: Path, *more: str) -> tuple[Any, js.Judge]:
    judge = labels.with_name("judge.json")
    done = run(
        "compile",
        labels,
        "--signal",
        "gpt4",
        *more,
        "--scale",
        "-6",
        "6",
        "--json",
        "-o",
        judge,
    )
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1]), js.load(judge)


def test_labels_that_fall_with_length_are_asked_about(tmp_path: Path) -> None:
    labels = written(tmp_path / "labels.jsonl", 40, strong=0.9, lengthy=-2.0)
    said, _ = compiled(labels)
    (note,) = [n for n in said["notes"] if "the longer an output" in n]
    assert "if the lowest number is the best one, reverse the labels" in note
    said, _ = compiled(written(tmp_path / "labels.jsonl", 40, strong=0.9))
    assert not any("lowest number" in n for n in said["notes"])


def test_a_model_whose_own_scores_run_against_the_labels_is_named(
    tmp_path: Path,
) -> None:
    labels = written(tmp_path / "labels.jsonl", 40, strong=0.95)
    for low, high, warned in ((-6, 6, False), (6, -6, True)):
        lines = [json.loads(line) for line in labels.read_text().splitlines()]
        for line in lines:
            line["score"] = line["score"] if low < high else -line["score"]
            line["own"] = round(50 + 10 * (line["gpt4"] - 3))
        path = tmp_path / f"{high}.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        model = [
            "--method",
            "direct",
            "--lm",
            f"recorded:{path}#own",
            "--heldout",
            "0.5",
        ]
        done = run(
            "compile",
            path,
            *model,
            "--scale",
            -6,
            6,
            "--json",
            "-o",
            tmp_path / "own.json",
        )
        assert done.exit_code == int(warned), done.output  # 1: against people
        notes = json.loads(done.stdout.splitlines()[-1])["notes"]
        assert (
            any("own scores, before it learnt anything" in n for n in notes) == warned
        )


def test_a_strong_signal_judges_alone_where_nothing_is_clearly_ahead(
    tmp_path: Path,
) -> None:
    said, judge = compiled(
        written(tmp_path / "labels.jsonl", 60, strong=0.9, binary=True)
    )
    assert said["calls"] == 0
    # In a fold a mixture may be ahead by chance; ties that it breaks cost Q there.
    assert said["heldout"]["q"] > said["zero_shot"]["q"] - 0.3
    assert any("gpt4 is used alone: a combination" in note for note in said["notes"])
    assert any("`judgesmith check FILE --plan`" in note for note in said["notes"])
    assert len(judge.outcome.calibration.percent) <= 4  # a line, not six bins
    verdicts = [judge.score(output=f"Text {n}.", gpt4=n % 2) for n in range(6)]
    assert {verdict.percent for verdict in verdicts} == {0.0, 100.0}  # ties and all
    turned = run(
        "compile",
        tmp_path / "labels.jsonl",
        "--signal",
        "gpt4=1..0",
        "-o",
        tmp_path / "turned.json",
    )
    assert "if lower is better, say so: --signal gpt4=0..1" in " ".join(
        turned.output.split()
    )


def test_score_says_that_a_judge_without_labels_may_rank_in_reverse(
    tmp_path: Path,
) -> None:
    rows = written(tmp_path / "labels.jsonl", 40, strong=0.9)
    untaught = ModelReadings("overall", reader="none", signals=("gpt4=0..6",))
    Judge(untaught, lm="none").save(tmp_path / "untaught.json")
    compiled(rows)  # writes judge.json
    for name, told in (("untaught", True), ("judge", False)):
        judge = tmp_path / f"{name}.json"
        done = run("score", rows, "--judge", judge, "-o", tmp_path / f"{name}.jsonl")
        said = " ".join(done.output.split())
        assert ("may even rank texts in reverse" in said) == told, said


def test_what_runs_against_people_is_said_in_every_case(tmp_path: Path) -> None:
    labels = written(tmp_path / "labels.jsonl", 40, strong=0.9)
    said, _ = compiled(labels)
    assert not any(note.startswith("WARNING") for note in said["notes"])
    assert (said["folds"], said["runs"], said["heldout_rows"]) == (4, 5, 40)
    for signals in (
        ["gpt4=3..-3", "--take", "zero-shot"],
        ["ter=100..0", "--signal", "gpt4=3..-3"],
    ):
        done = run(
            "compile",
            labels,
            "--signal",
            *signals,
            "--scale",
            "-6",
            "6",
            "-o",
            tmp_path / "turned.json",
        )
        shown = " ".join(done.output.split())
        assert "WARNING: signal gpt4 runs against people: Q -2." in shown
        assert "if lower is better, say so: --signal gpt4=-3..3" in shown
        assert ("WARNING: this judge runs against people" in shown) == (
            "--take" in signals
        )
        assert "distinguished from one that guesses" not in shown


def test_what_people_like_beside_it_is_learnt_and_the_judge_needs_its_columns(
    tmp_path: Path,
) -> None:
    labels = written(tmp_path / "labels.jsonl", 80, strong=0.7, lengthy=1.0)
    alone, _ = compiled(labels, "--signal", "ter=100..0", "--take", "zero-shot")
    said, judge = compiled(labels, "--signal", "ter=100..0")
    assert said["heldout"]["q"] > said["zero_shot"]["q"] + 0.5
    assert alone["heldout"] == said["zero_shot"]
    (more,) = (note for note in said["notes"] if note.startswith("Beside this judge"))
    assert "cannot tell it from nothing" not in more
    data = json.loads((tmp_path / "judge.json").read_text(encoding="utf-8"))
    assert data["lm"]["model"] == "none"
    assert data["program"]["options"]["signals"][1] == "ter=100..0"
    assert run("score", labels, "--judge", tmp_path / "judge.json").exit_code == 0
    (lacking := tmp_path / "lacking.jsonl").write_text(
        '{"output": "A text.", "gpt4": 3}\n', encoding="utf-8"
    )
    refused = run("score", lacking, "--judge", tmp_path / "judge.json").exception
    assert "lacking.jsonl, row 1: there is no column 'ter'" in str(refused)
    item = RowIn.model_validate(
        {"output": "A text.", "columns": {"gpt4": 3, "ter": "41.5"}}
    ).item()
    assert numbers_of(judge.method, item.columns) == {"gpt4": 3.0, "ter": 41.5}
    with pytest.raises(TypeError, match="gtp4"):
        judge.score(output="A text.", gtp4=3)


def test_an_empty_cell_is_a_failure_and_a_missing_column_stops_compiling(
    tmp_path: Path,
) -> None:
    labels = js.read_labels(
        written(tmp_path / "labels.jsonl", 40, strong=0.9), scale=(-6, 6)
    )
    (verdict,) = js.compile(js.ModelReadings(signals=["gpt4"]), labels).score_many(
        [{"output": "A text.", "gpt4": ""}]
    )
    assert math.isnan(verdict.score)
    assert verdict.failure == "column 'gpt4' is empty in this row"
    with pytest.raises(
        LabelsError, match=r"labels.jsonl, row 1: there is no column 'gpt5'"
    ):
        js.compile(js.ModelReadings(signals=["gpt5"]), labels)
    with pytest.raises(ModelError, match="no language model"):
        js.compile(js.DirectScorer("fluency"), labels)


def test_columns() -> None:
    record = {
        "verdict": {"score": 4},
        "judges": '{"gpt-4.geval": 2.5}',
        "n": "1e3",
        "word": "good",
    }
    names = ("verdict.score", "judges.gpt-4.geval", "n", "judges.other")
    assert [str(Column.of(name).value(record)) for name in names] == [
        "4.0",
        "2.5",
        "1000.0",
        "nan",
    ]
    for name, wrong in (
        ("word", "'good' is not a number"),
        ("score", "there is no column 'score'"),
    ):
        with pytest.raises(OptionError, match=wrong):
            Column.of(name).value(record)
    assert [Column.of("ter=100..0").percent(v) for v in (100, 25, 0, -5)] == [
        0,
        75,
        100,
        100,
    ]
    known = [
        str(Column.of("c").with_ends(values))
        for values in ([0, 1], [2, 4, 5.0], [-8, 0, math.nan])
    ]
    assert known == ["c=0..1", "c=1..5", "c=-10..2"]
    for wrong in ("", "=1..5", "c=5..5"):
        with pytest.raises(OptionError, match="signal"):
            Column.of(wrong)


def test_a_recorded_judge_is_asked_instead_of_a_model(tmp_path: Path) -> None:
    said = written(tmp_path / "said.jsonl", 40, strong=0.9)
    rows = js.read_labels(said, scale=(-6, 6)).rows
    judge = js.Judge(js.DirectScorer("fluency"), lm=f"recorded:{said}#gpt4=0..6")
    *verdicts, other = judge.score_many([*rows, {"output": "Another."}])
    assert [v.percent for v in verdicts] == pytest.approx(
        [r.columns["gpt4"] / 6 * 100 for r in rows], abs=1e-6
    )
    assert "nothing was recorded of this row" in str(other.failure)
    with pytest.raises(OptionError, match="line 1: there is no column 'gpt5'"):
        js.Judge(js.DirectScorer("fluency"), lm=f"recorded:{said}#gpt5")


def test_a_study_says_what_labels_add_to_a_signal(tmp_path: Path) -> None:
    labels, folder = (
        written(tmp_path / "labels.jsonl", 60, strong=0.9),
        tmp_path / "study",
    )
    arm = (
        "--lm",
        "none",
        "--arm",
        "readings+signals=gpt4+optimizer=zero-shot",
        "--seeds",
        "1",
        "--train",
        "8,20",
    )
    done = run(
        "study", "labels", labels, *arm, "--scale", "-6", "6", "-o", folder, "--json"
    )
    assert done.exit_code == 0, done.output
    lines = json.loads(done.stdout.splitlines()[-1])["lines"]
    assert len(lines) == 2
    assert all(line["q"] > 2 for line in lines)
