"""A judge remembers the columns that it was compiled from, and what it scored remembers how it was read."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.cli.main import app
from judgesmith.rooms.adapters.asserting import assert_judged

OWN = {"output": "Réponse", "source": "Demande", "score": "Note"}
NAMED = [word for role, name in OWN.items() for word in ("--columns", f"{role}={name}")]


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def rows(count: int = 30, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    made = []
    for n in range(count):
        quality, noise = rng.normal(size=2)
        words = " ".join(f"w{rng.integers(9999)}" for _ in range(12))
        texts = {"Demande": f"Question {seed}.{n}", "Réponse": words}
        made.append(
            {
                "id": f"r{n}",
                **texts,
                "Note": round(quality, 3),
                "gpt4": round(quality + 0.2 * noise, 3),
            }
        )
    return made


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A judge that was compiled from columns of other names, and further rows with these."""
    labels, judge = write(tmp_path / "labels.jsonl", rows()), tmp_path / "judge.json"
    done = run(
        "compile", labels, *NAMED, "--signal", "gpt4", "--scale", "-6", "6", "-o", judge
    )
    assert done.exit_code == 0, done.output
    return judge, write(tmp_path / "rows.jsonl", rows(seed=1))


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_what_was_scored_is_read_as_it_was(
    files: tuple[Path, Path], ending: str, tmp_path: Path
) -> None:
    judge, file = files
    scored = tmp_path / f"scored.{ending}"
    done = run("score", file, "--judge", judge, "-o", scored)
    assert done.exit_code == 0, done.output
    for command in (
        ("report", scored),
        ("evaluate", scored),
        ("evaluate", scored, "--human", "Note"),
    ):
        done = run(*command, "--json")
        assert done.exit_code == 0, (command, done.output)
    if ending == "csv":
        with scored.open(encoding="utf-8-sig", newline="") as cells:
            assert json.loads(next(csv.DictReader(cells))["judge_columns"]) == OWN
    else:
        assert (
            json.loads(scored.read_text().splitlines()[0])["verdict"]["columns"] == OWN
        )
    again = run("score", file, "--judge", judge, "-o", scored, "--json")
    assert json.loads(again.stdout.splitlines()[-1])["resumed"] == 30


def test_an_export_that_was_scored_as_csv_is_evaluated(tmp_path: Path) -> None:
    tasks = []
    for row in rows():
        given = {
            "from_name": "quality",
            "type": "number",
            "value": {"number": row["Note"]},
        }
        data = {
            "question": row["Demande"],
            "answer": row["Réponse"],
            "gpt4": row["gpt4"],
        }
        tasks.append(
            {
                "id": row["id"],
                "data": data,
                "annotations": [{"completed_by": 7, "result": [given]}],
            }
        )
    file, judge, scored = (
        tmp_path / "tasks.json",
        tmp_path / "judge.json",
        tmp_path / "scored.csv",
    )
    file.write_text(json.dumps(tasks), encoding="utf-8")
    labels = write(tmp_path / "labels.jsonl", rows())
    assert (
        run(
            "compile",
            labels,
            *NAMED,
            "--signal",
            "gpt4",
            "--scale",
            "-6",
            "6",
            "-o",
            judge,
        ).exit_code
        == 0
    )
    done = run("score", file, "--judge", judge, "-o", scored)
    assert done.exit_code == 0, done.output
    done = run("evaluate", scored, "--human", "quality", "--json")
    assert done.exit_code == 0, done.output or done.exception


def test_every_command_with_a_judge_finds_them(files: tuple[Path, Path]) -> None:
    judge, file = files
    done = run("evaluate", file, "--judge", judge, "--json")
    assert done.exit_code == 0, done.output


def test_assert_judged_finds_them(
    judge_file: Path, server: Any, tmp_path: Path
) -> None:
    server.answer = lambda ask: (
        "4" if ask.step == "probe" else "Explanation: Fine.\nScore: 4"
    )
    judge = js.load(judge_file, api_base=server.base)
    judge.provenance = {"labels": {"columns": OWN}}
    table = rows(3)
    for outputs in (
        write(tmp_path / "rows.jsonl", table),
        table,
        [{"output": "As ever."}],
        ["As ever."],
    ):
        assert assert_judged(outputs, judge=judge, at_least="mean>=4")["failed"] == 0
    arrow = pytest.importorskip("pyarrow").Table.from_pylist(
        [{"output": row["Réponse"]} for row in table]
    )
    assert assert_judged(arrow, judge=judge, at_least="mean>=4")["rows"] == 3
    assert [verdict.score for verdict in judge.score_many(arrow)] == [4.0] * 3


def test_a_scale_that_was_inferred_is_widened_by_held_out_rows(tmp_path: Path) -> None:
    labels = write(
        tmp_path / "labels.jsonl",
        [row | {"Note": -n % 17 - 16} for n, row in enumerate(rows())],
    )
    held = write(
        tmp_path / "held.jsonl",
        [row | {"Note": -25 + n % 20} for n, row in enumerate(rows(seed=2))],
    )
    call = (
        "compile",
        labels,
        *NAMED,
        "--signal",
        "gpt4",
        "--heldout",
        held,
        "-o",
        tmp_path / "judge.json",
    )
    done = run(*call)
    assert done.exit_code == 0, done.output
    assert "the scale is -25..0, as held-out scores lie between -25 and -6" in " ".join(
        done.output.split()
    )
    refused = run(*call, "--scale", "-16", "0")
    assert refused.exit_code != 0
    assert "-25 is outside -16..0" in str(refused.exception or refused.output)


def test_a_scale_that_was_inferred_is_widened_in_python_too() -> None:
    def read(first: int, seed: int = 0, **how: Any) -> js.Labels:
        made = [row | {"Note": first + n % 17} for n, row in enumerate(rows(seed=seed))]
        return js.read_labels(made, columns=OWN, **how)

    labels, held = read(-16), read(-25, seed=2)
    judge = js.compile(js.ModelReadings(signals=["gpt4"]), labels, heldout=held, seed=0)
    assert (judge.scale.low, judge.scale.high) == (-25, 0)
    assert any("the scale is -25..0" in note for note in judge.report.notes)
    stated = read(-16, scale=(-16, 0))
    with pytest.raises(js.OptionError, match="read both with the same scale"):
        js.compile(js.ModelReadings(signals=["gpt4"]), stated, heldout=held, seed=0)
    inside = js.compile(
        js.ModelReadings(signals=["gpt4"]),
        read(-30, scale=(-30, 0)),
        heldout=held,
        seed=0,
    )
    assert (inside.scale.low, inside.scale.high) == (-30, 0)


def test_a_template_s_share_is_an_option_of_compiling(tmp_path: Path) -> None:
    asked = "Please tell me what you know about topic number {} in our manual"
    reply = "We do not know anything about topic number {}, so please ask again later."
    made = [row | {"doc_id": f"d{n}"} for n, row in enumerate(rows(40))]
    made = [
        row | {"Demande": asked.format(n), "Réponse": reply.format(n)} if n < 4 else row
        for n, row in enumerate(made)
    ]
    labels = write(tmp_path / "labels.jsonl", made)
    call = (
        "compile",
        labels,
        *NAMED,
        "--signal",
        "gpt4",
        "--scale",
        "-6",
        "6",
        "-o",
        tmp_path / "judge.json",
        "--json",
    )
    for more, groups in (((), 37), (("--template-share", 0.02), 40)):
        done = run(*call, *more)
        assert done.exit_code == 0, done.output
        notes = " ".join(json.loads(done.stdout)["notes"])
        assert f"the 40 rows are {groups} groups" in notes, notes
    judge = js.ModelReadings(signals=["gpt4"])
    read = js.read_labels(made, columns=OWN, scale=(-6, 6))
    compiled = js.compile(judge, read, template_share=0.02, seed=0)
    assert any("the 40 rows are 40 groups" in note for note in compiled.report.notes)
    with pytest.raises(js.OptionError, match="template_share"):
        js.compile(judge, read, template_share=0)
