"""Presets: the papers' numbers, each preset on a command line, and what wins over them."""

from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows
from tables import cases

import judgesmith as js
from judgesmith import presets
from judgesmith.compiling.run import Setup
from judgesmith.datasets.perturbations.base import PAPER
from judgesmith.datasets.perturbations.dhp import TASKS
from judgesmith.errors import OptionError
from judgesmith.experiments.studies.config import StudyRequest
from judgesmith.experiments.studies.run import Study
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rooms.training import distill_run, synthesizing

CASES = cases(__file__)
NUMBERS, STUDIES, TRAINING, DISCERN, TABLE_1 = (
    CASES[name] for name in ("numbers", "studies", "training", "discern", "table_1")
)
#: What reads a preset of training.
CATALOGUES = {
    "openlgauge/distilled": distill_run.catalogue(),
    "openlgauge/synthetic": synthesizing.catalogue(),
}


def test_every_preset_is_held_to_its_paper() -> None:
    assert presets.names() == sorted([*NUMBERS, *STUDIES, *TRAINING, *DISCERN])


@pytest.mark.parametrize("name", DISCERN)
def test_a_preset_of_perturbations_has_the_papers_numbers(name: str) -> None:
    found = presets.read(name)
    assert found == DISCERN[name]
    how = DiscernOptions(
        **{key: value for key, value in found.items() if key not in ("n", "perturb")}
    )
    task = TASKS[how.task()]
    assert (list(how.metrics), how.metrics) == (found["metrics"], task.metrics)
    # its page names every perturbation, and what is not as in the paper
    text = presets.text(name)
    assert all(perturbation in text for perturbation in task.perturbations)
    assert "# What differs from the paper\n# - " in text


@pytest.mark.parametrize("task", TABLE_1)
def test_tasks_have_the_perturbations_of_table_1(task: str) -> None:
    two, one = TABLE_1[task]
    found = {name: len(degrees) for name, degrees in TASKS[task].perturbations.items()}
    assert found == dict.fromkeys(two, 2) | dict.fromkeys(one, 1)


def test_amounts_are_those_of_table_2() -> None:
    assert {task: list(PAPER[task][0]) for task in CASES["table_2"]} == CASES["table_2"]
    assert PAPER["story"][0][0] == 5  # "Delete 5 alphanumeric characters"
    assert PAPER["translation"][1] == (5, 25)  # "Delete k continuous words"


@pytest.mark.parametrize("name", TRAINING)
def test_a_preset_of_training_has_the_papers_numbers(name: str) -> None:
    assert (
        CATALOGUES[name].resolve(presets.read(name))["run"]
        == presets.read(name)
        == TRAINING[name]
    )


@pytest.mark.parametrize("name", NUMBERS)
def test_a_preset_has_the_papers_numbers(name: str) -> None:
    assert presets.read(name) == NUMBERS[name]
    found = presets.read(name)
    everyday = ("method", "optimizer", "lm", "aspect", "as", "scale", "heldout")
    setup = Setup(found["method"], found.get("optimizer", "zero-shot"))
    chosen = setup.catalogue().resolve(
        {key: value for key, value in found.items() if key not in everyday}
    )
    assert sum(map(len, chosen.values())) == len(found.keys() - set(everyday))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_the_arms_of_its_table(name: str) -> None:
    shared, arms = STUDIES[name]
    found = presets.read(name)
    assert {key: value for key, value in found.items() if key != "arms"} == shared
    given = {"labels": "rows.jsonl", "library_aspect": "summarization/coherence"}
    own = {"criteria": "own.txt"} if name == "active-critic/table-4" else {}
    config = StudyRequest.read("ablation", None, given | own, [name]).config()
    assert [arm.settings for arm in config.arms] == arms


def planned(cli: Any, *arguments: object) -> tuple[Any, ...]:
    told = cli(
        "compile",
        *arguments,
        "--lm",
        "openai/fake",
        "--scale",
        0,
        100,
        "--dry-run",
        "--json",
    ).told
    optimizer, method = told["optimizer"], told["method"]
    return (
        optimizer["max_demos"],
        optimizer["candidates"],
        method["variant"],
        told["heldout"],
    )


def test_a_file_wins_over_presets_and_the_command_line_over_both(
    cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows, config = rows_file(48), tmp_path / "run.yaml"
    sfres, topical = (
        ("--preset", "active-critic/sfres"),
        ("--preset", "active-critic/topical-chat"),
    )
    assert planned(cli, rows, *sfres) == (8, 11, "fine", 36)
    assert planned(cli, rows, *sfres, *topical) == (3, 11, "fine", 36)
    config.write_text("max_demos: 5\nheldout: 0.5\n")  # another name of max_demos
    assert planned(cli, rows, *sfres, "--config", config) == (5, 11, "fine", 24)
    told = ("--max-demos", 2, "--variant", "coarse", "--heldout", 0.25)
    assert planned(cli, rows, *sfres, "--config", config, *told) == (
        2,
        11,
        "coarse",
        12,
    )
    config.write_text("preset: active-critic/sfres\ncandidates: 4\n")
    assert planned(cli, rows, "--config", config) == (8, 4, "fine", 36)
    assert planned(cli, rows, "--config", config, *topical) == (3, 4, "fine", 36)


@pytest.mark.parametrize(
    "name", [name for name in NUMBERS if not name.startswith("active-critic")]
)
def test_a_judge_without_labels_takes_a_preset(
    name: str, cli: Any, tmp_path: Path
) -> None:
    path = tmp_path / "judge.json"
    aspect = "story/coherence" if name.endswith("hanna") else "summarization/coherence"
    named, own = (
        ("--as", aspect) if "as" not in NUMBERS[name] else (),
        NUMBERS[name].get("as", aspect),
    )
    done = cli("new", "--preset", name, *named, "--lm", "openai/fake", "-o", path)
    assert done.code == 0, done.err
    judge = js.load(path, lm="openai/fake")
    asked = {
        k: v
        for k, v in NUMBERS[name].items()
        if k not in ("method", "lm", "annotators", "as")
    }
    assert judge.method.saved_options()["aspect"] == own.partition("/")[2]
    assert judge.method.saved_options().items() >= asked.items()
    if isinstance(judge, OpeNLGauge):
        assert [(m.model, m.temperature) for m in judge.annotators] == [
            (a, 0.0) for a in NUMBERS[name].get("annotators", ())
        ]


def test_a_preset_in_a_file_is_a_name_or_a_list() -> None:
    both = {"preset": ["active-critic/sfres", "active-critic/vanilla"], "seed": 3}
    assert presets.layered((), both) == NUMBERS["active-critic/vanilla"] | {
        "max_demos": 8,
        "scale": [1, 6],
        "aspect": "overall",
        "seed": 3,
    }
    with pytest.raises(
        OptionError, match="a name or a list of names is expected; got 3"
    ):
        presets.layered((), {"preset": 3})


def test_presets_are_listed_and_shown(cli: Any) -> None:
    every = cli("list", "presets", "--json").json["presets"]
    listed = {preset["name"]: preset["about"] for preset in every}
    assert all(10 < len(line) <= 100 for line in listed.values())
    kinds = (
        dict.fromkeys(DISCERN, "discern")
        | dict.fromkeys(STUDIES, "study")
        | dict.fromkeys(NUMBERS, "compile")
    )
    kinds |= {"openlgauge/distilled": "distill", "openlgauge/synthetic": "synthesize"}
    assert {preset["name"]: preset["kind"] for preset in every} == kinds
    assert {name for name, line in listed.items() if line.startswith("study: ")} == set(
        STUDIES
    )
    assert all(name in cli("list", "presets").out for name in listed)
    shown = cli("list", "presets", "active-critic").out
    assert shown == presets.text("active-critic")  # to begin a file of one's own with
    assert "candidates: 11 # App. B" in shown
    assert (
        cli("list", "presets", "active-critic/sfres", "--json").json["max_demos"] == 8
    )


def test_a_seed_is_a_trial_of_drawn_answers(rows_file: Rows) -> None:
    given = {
        "labels": str(rows_file(120)),
        "scale": (0, 100),
        "library_aspect": "summarization/coherence",
        "train": 4,
    }
    study = Study.prepare(
        StudyRequest.read("ablation", None, given, ["pairwise/table-2"])
    )
    judges = {cell: study.compiler(cell)[0] for cell in study.cells()}
    assert {judge.method.options.trial for judge in judges.values()} == {
        0,
        1,
        2,
        3,
        4,
    }  # the paper's five trials
    assert all(
        judge.method.options.trial == cell.seed for cell, judge in judges.items()
    )
    assert {
        judge.method.options.samples
        for judge in judges.values()
        if judge.method.options.reading == "drawn"
    } == {
        1,
        3,
        10,
        100,
        1000,
    }
