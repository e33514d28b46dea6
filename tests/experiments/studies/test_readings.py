"""The study of readings: a reader that knows what the labels follow from, and one that knows nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
from planted import PlantedReader, guessing, planted_labels
from typer.testing import CliRunner

from judgesmith.cli.main import app
from judgesmith.experiments.studies.readings import FEWEST_LEFT, Found, Known, draw_labels, study_table
from judgesmith.programs.readings import opening
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Readings
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.programs.readings.opening import Opened
from judgesmith.testing.scripted import scripted_models


def known(worth: float, *, rows: int = 120, seed: int = 0) -> Known:
    """Four rows a group; a likelihood whose correlation with the scores is `worth`, and a direct score of noise."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(50, 15, rows)
    noise = rng.normal(size=(rows, 2))
    likely = worth * (scores - 50) / 15 + np.sqrt(1 - worth**2) * noise[:, 0]
    table = Readings(
        (DIRECT, "assistant.mean"), np.column_stack([noise[:, 1], likely]), tuple(i // 4 for i in range(rows)), {}
    )
    return Known(table, scores)


def test_a_draw_takes_whole_groups_and_leaves_whole_groups() -> None:
    members = [i // 4 for i in range(40)]
    train, left = draw_labels(members, 10, draw=3)
    assert len(train) == 10  # two groups of four, and two rows of a third, whose others are in neither part
    assert len(left) == 40 - 12
    assert not {members[i] for i in train} & {members[i] for i in left}


def test_a_reading_that_knows_gains_and_one_that_does_not_gains_nothing() -> None:
    good, none = (study_table("t", known(worth), Experience(), sizes=(40,), draws=10) for worth in (0.8, 0.0))
    main, empty = good.at(40), none.at(40)
    assert main is not None and empty is not None
    assert main.chosen.mean() > 1.8 and main.below == 0  # r .8, so about .8 + .79 + .6
    assert main.gap.low > 0
    assert abs(empty.chosen.mean()) < 0.3
    assert len(main.told) == 10
    # The standard error of Q from 40 rows is .4, of the mean of ten draws about .13.
    assert abs(main.told.mean()) < 0.35


def test_sizes_that_leave_too_few_rows_are_left_out() -> None:
    found = study_table("t", known(0.8, rows=48), Experience(), sizes=(20, 48 - FEWEST_LEFT + 1), draws=2)
    assert [draw.labels for draw in found.draws] == [20]


def test_what_is_certain_is_so_of_one_judge_and_of_a_file() -> None:
    weak, strong = (study_table(name, known(0.45, seed=2), Experience(), draws=20) for name in ("f/a", "f/b"))
    found = Found((weak, strong, study_table("g/a", known(0.8), Experience(), draws=20)), "m")
    main = weak.at(40)
    assert main is not None and len(main.drawn) == 2000
    assert main.gap.value == pytest.approx(np.mean(main.chosen - main.zero_shot))
    assert main.gap.high - main.gap.low > 4 * (main.chosen - main.zero_shot).std()  # the draws' spread is part of it
    families = found.families()
    assert list(families) == ["f", "g"] and families["f"][0].value == pytest.approx(main.gap.value)
    assert families["f"][0].p <= families["f"][1] <= 2 * families["f"][0].p and families["g"][1] < 0.01


def test_the_command_ends_with_what_anyone_can_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = planted_labels(documents=30)
    file = tmp_path / "planted.jsonl"
    rows = [
        {"id": r.id, "source": r.source, "output": r.output, "doc_id": r.doc_id, "overall": r.scores["overall"]}
        for r in labels.rows
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    monkeypatch.setitem(opening._opened, "test/model at None", Opened(PlantedReader(), "a1b2" * 16))
    with scripted_models() as make:
        lm = make(guessing())[0]
        monkeypatch.setattr("judgesmith.running.opening.open_model", lambda *_: lm)
        result = CliRunner().invoke(
            app,
            ["study", "readings", str(file), "--lm", "test/model", "--size", "40", "--draws", "4", "--aspect",
             "overall", "-o", str(tmp_path / "out"), "--json"],
        )  # fmt: skip
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout.splitlines()[-1])
    (one,) = said["sets"].values()
    assert one["default_40"] > 2 > one["zero_shot"]
    assert one["below_share"] == 0
    assert (tmp_path / "out" / "readings.svg").exists()
