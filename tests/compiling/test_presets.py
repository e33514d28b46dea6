"""Presets: the papers' numbers, each preset on a command line, and what wins over them."""

from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows

import judgesmith as js
from judgesmith import presets
from judgesmith.compiling.run import Setup
from judgesmith.datasets.perturbations.base import PAPER
from judgesmith.datasets.perturbations.dhp import TASKS
from judgesmith.discerning.options import DiscernOptions
from judgesmith.errors import OptionError
from judgesmith.experiments.studies.config import Given
from judgesmith.experiments.studies.run import Study
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.running.settings import Catalogue
from judgesmith.training import distill_run, synthesizing

#: Active-Critic, appendix B: 25 batches of 5, at most 5 descriptions, 11 epochs, 25 % of the data for tuning.
TUNING = {"batches": 25, "batch_size": 5, "keep": 5, "candidates": 11, "heldout": 0.75, "optimizer": "random-search"}
#: §5 and Tables 11 and 12: fine, the explanation before a number from 0 to 100; eq. 4: the highest Q; nothing beside.
CRITIC = {"method": "active-critic", "variant": "fine", "explain": "before", "reading": "said", "sure": 0}
CRITIC |= TUNING | {"refine": False, "level": "pooled"}
#: Table 11.
ANNOTATORS = [
    "ollama_chat/command-r-plus:104b-08-2024-q5_K_M", "ollama_chat/gemma2:27b-instruct-q8_0",
    "ollama_chat/nemotron:70b-instruct-q8_0", "ollama_chat/mistral-large:123b-instruct-2407-q4_K_M",
    "ollama_chat/qwen2.5:72b-instruct-q8_0",
]  # fmt: skip
#: §4, §6.1, listings 1 and 2.
GAUGE = {"method": "openlgauge", "lm": "ollama_chat/llama3.3:70b", "annotators": ANNOTATORS, "supervisor": "lm"}
GAUGE |= {"drop_outliers": True, "reading": "said", "overall": "labels", "severity": "integers", "rules": True}
GAUGE |= {"forced_most": 8, "show_data": False}
#: §2 and Tables 13 to 15.
PAIRS = {"method": "pairwise-direct", "levels": 5, "form": "better-worse", "order": "other-first"}
PAIRS |= {"reading": "probabilities"}
NUMBERS: dict[str, dict[str, Any]] = {
    "active-critic": CRITIC,
    # Appendix B: 3 demonstrations for long texts, 8 for short ones.
    "active-critic/summeval": CRITIC
    | {"max_demos": 3, "scale": [1, 5], "aspect": "mean:coherence,consistency,fluency,relevance"},
    "active-critic/topical-chat": CRITIC | {"max_demos": 3, "scale": [1, 5], "aspect": "overall"},
    "active-critic/sfres": CRITIC | {"max_demos": 8, "scale": [1, 6], "aspect": "overall"},
    "active-critic/openmeva": CRITIC | {"max_demos": 8, "scale": [1, 5], "aspect": "overall"},
    "active-critic/vanilla": CRITIC | {"variant": "vanilla", "explain": "none"},
    "openlgauge": GAUGE,
    # §7.3, ablations 1 to 4
    "openlgauge/integer-integer": GAUGE | {"overall": "integers"},
    "openlgauge/integer-categorical": GAUGE | {"overall": "integers", "severity": "categories"},
    "openlgauge/categorical-categorical": GAUGE | {"severity": "categories"},
    "openlgauge/no-rules": GAUGE | {"rules": False},
    "pairwise": PAIRS,
    "pairwise/summeval": PAIRS | {"family": "summarization"},
    "pairwise/topical-chat": PAIRS | {"family": "dialogue"},
    "pairwise/hanna": PAIRS | {"family": "story"},
    "pairwise/yes-no": PAIRS | {"form": "yes-no-first", "order": "output-first"},  # Tables 16 to 18
    "pairwise/samples": PAIRS | {"reading": "samples", "samples": 1000},
}
VANILLA, COARSE, FINE = {"variant": "vanilla", "explain": "none"}, {"variant": "coarse"}, {"variant": "fine"}
ZERO_SHOT = {"optimizer": "zero-shot"}
UNSEARCHED = ZERO_SHOT | {"train": 8, "heldout": 0.9}
STUDIES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "active-critic/table-1": (CRITIC, [VANILLA, COARSE, FINE]),
    "active-critic/table-2": (CRITIC | {"lm": "openai/gpt-3.5-turbo-1106"}, [VANILLA, COARSE, FINE]),
    "active-critic/table-4": (
        CRITIC,
        [FINE, FINE | {"use_task": False}, FINE | {"criteria": "own.txt"}, COARSE, FINE | {"combine": "mean"}],
    ),
    "active-critic/figure-2": (CRITIC, [v | more for v in (FINE, COARSE) for more in ({}, {"explain": "none"})]),
    "active-critic/figure-3": (
        CRITIC,
        [v | m for v in (FINE, COARSE) for m in ({}, ZERO_SHOT, ZERO_SHOT | {"batches": 1})],
    ),
    "active-critic/factorial": (
        {"method": "active-critic", "variant": "vanilla", "explain": "after", "reading": "expected", "refine": False,
         "candidates": 2, "max_demos": 3, "sure": 0, "anchor": "predicted", "heldout": 60, "train": 40, "seeds": 3},
        [{"optimizer": "zero-shot"}] + [
            {"optimizer": "random-search", "objective": objective, "leave_out": left,
             "max_bootstrapped_demos": bootstrapped, "max_labeled_demos": labelled}
            for bootstrapped, labelled in ((3, 0), (0, 3), (3, 3))
            for objective in ("q", "closeness")
            for left in ("document", "nothing")
        ],
    ),
    "openlgauge/ablations": (
        GAUGE | UNSEARCHED | {"level": "pooled", "seeds": 1},
        [{"overall": "labels"}, {"overall": "integers"}, {"overall": "integers", "severity": "categories"},
         {"severity": "categories"}, {"rules": False}],
    ),
    "openlgauge/ensemble": (GAUGE | UNSEARCHED | {"level": "pooled", "seeds": 1}, [{"overall": "labels"}]),
    # Tables 1 and 4: four methods, each by its own reading.
    "pairwise/table-1": (
        PAIRS | UNSEARCHED | {"level": "sample"},
        [{"method": "pairwise-direct"}, {"method": "direct", "reading": "expected"},
         {"method": "g-eval", "reading": "probabilities"}, {"method": "pairs"}],
    ),
    # Table 2: probabilities; n = 1, 3, 10, 100, 1000 over 5 trials; Yes and No; N = 2, 3, 9 beside 5.
    "pairwise/table-2": (
        PAIRS | UNSEARCHED | {"family": "summarization", "level": "sample", "seeds": 5},
        [{"reading": "probabilities"}, *({"reading": "drawn", "samples": n} for n in (1, 3, 10, 100, 1000)),
         {"form": "yes-no-first", "order": "output-first"}, *({"levels": n} for n in (2, 3, 9))],
    ),
}  # fmt: skip


#: OpeNLGauge, §5.1, §5.2 and §6.1.
TRAINING: dict[str, tuple[Catalogue, dict[str, Any]]] = {
    "openlgauge/distilled": (
        distill_run.catalogue(),
        {"rank": 16, "alpha": 32, "learning_rate": 2e-4, "weight_decay": 0.01, "warmup": 0.05, "epochs": 1, "batch": 16,
         "loss": "cross-entropy"},
    ),
    "openlgauge/synthetic": (
        synthesizing.catalogue(),
        {"outputs": 4, "aspects": 3, "perturbed": 0, "answer": "annotation", "step": 5},
    ),
}  # fmt: skip


#: DHP, §3.2, §3.3.2, §4 and appendices E and F: what its six data sets share.
DHP = {"n": 100, "perturb": "paper", "scale": [1, 5], "repeat": 5, "show_reference": False, "form": "paper"}
SUMMARY = [f"summarization/{name}" for name in ("coherence", "consistency", "fluency", "relevance")]
STORY = [f"story completion/{name}" for name in ("coherence", "consistency", "fluency")]
LONG_TRANSLATION = DHP | {
    "good": "output", "longer_than": 300, "amount": "translation",
    "metrics": ["translation/accuracy", "translation/fluency"],
}  # fmt: skip
#: Appendix B and Table 2.
DISCERN: dict[str, dict[str, Any]] = {
    "dhp/summeval": DHP
    | {"texts": "bench/summeval", "good": "reference", "pick": "most-sentences", "amount": "summarization",
       "metrics": SUMMARY},
    "dhp/sumpubmed": DHP
    | {"texts": "bench/dhp_sumpubmed", "good": "output", "amount": "scientific", "metrics": SUMMARY},
    "dhp/story": DHP | {"texts": "bench/dhp_story", "good": "output", "amount": "story", "metrics": STORY},
    "dhp/answer-equivalence": DHP
    | {"texts": "bench/dhp_answer_equivalence", "good": "output", "longer_than": 150, "amount": "answer",
       "metrics": ["question-answering/answer quality"]},
    "dhp/wmt22-de-en": LONG_TRANSLATION | {"texts": "bench/dhp_wmt22_deen"},
    "dhp/wmt22-zh-en": LONG_TRANSLATION | {"texts": "bench/dhp_wmt22_zhen"},
}  # fmt: skip
#: Table 1: perturbations of each task, minor and major where they are marked (M). Table 2: k of characters and words.
CHARACTERS = ["deletions", "typos"]
BY_MODEL = ["entities-lm", "grammar-lm"]
TABLE_1: dict[str, tuple[list[str], list[str]]] = {
    "summarization": ([*CHARACTERS, *BY_MODEL, "shuffle", "rewrite-lm"], []),
    "scientific": ([*CHARACTERS, *BY_MODEL, "shuffle", "rewrite-lm"], []),
    "story": ([], [*CHARACTERS, *BY_MODEL, "random-ending", "wrong-ending"]),
    "answer": ([*CHARACTERS, *BY_MODEL], ["random-answer"]),
    "translation": ([*CHARACTERS, "word-deletion", *BY_MODEL], []),
}
TABLE_2 = {"summarization": (10, 50), "scientific": (20, 100), "answer": (5, 25), "translation": (10, 50)}


def test_every_preset_is_held_to_its_paper() -> None:
    assert presets.names() == sorted([*NUMBERS, *STUDIES, *TRAINING, *DISCERN])


@pytest.mark.parametrize("name", DISCERN)
def test_a_preset_of_perturbations_has_the_papers_numbers(name: str) -> None:
    found = presets.read(name)
    assert found == DISCERN[name]
    how = DiscernOptions(**{key: value for key, value in found.items() if key not in ("n", "perturb")})
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
    assert {task: PAPER[task][0] for task in TABLE_2} == TABLE_2
    assert PAPER["story"][0][0] == 5  # "Delete 5 alphanumeric characters"
    assert PAPER["translation"][1] == (5, 25)  # "Delete k continuous words"


@pytest.mark.parametrize("name", TRAINING)
def test_a_preset_of_training_has_the_papers_numbers(name: str) -> None:
    catalogue, numbers = TRAINING[name]
    assert catalogue.resolve(presets.read(name))["run"] == presets.read(name) == numbers


@pytest.mark.parametrize("name", NUMBERS)
def test_a_preset_has_the_papers_numbers(name: str) -> None:
    assert presets.read(name) == NUMBERS[name]
    found = presets.read(name)
    everyday = ("method", "optimizer", "lm", "aspect", "scale", "heldout")
    setup = Setup(found["method"], found.get("optimizer", "zero-shot"))
    chosen = setup.resolve({key: value for key, value in found.items() if key not in everyday})
    assert sum(map(len, chosen.values())) == len(found.keys() - set(everyday))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_the_arms_of_its_table(name: str) -> None:
    shared, arms = STUDIES[name]
    found = presets.read(name)
    assert {key: value for key, value in found.items() if key != "arms"} == shared
    given = {"labels": "rows.jsonl", "library_aspect": "summarization/coherence"}
    own = {"criteria": "own.txt"} if name == "active-critic/table-4" else {}
    config = Given.read("ablation", None, given | own, [name]).config()
    assert [arm.settings for arm in config.arms] == arms


def planned(cli: Any, *arguments: object) -> tuple[Any, ...]:
    told = cli("compile", *arguments, "--lm", "openai/fake", "--scale", 0, 100, "--dry-run", "--json").told
    optimizer, method = told["optimizer"], told["method"]
    return optimizer["max_demos"], optimizer["candidates"], method["variant"], told["heldout"]


def test_a_file_wins_over_presets_and_the_command_line_over_both(cli: Any, rows_file: Rows, tmp_path: Path) -> None:
    rows, config = rows_file(48), tmp_path / "run.yaml"
    sfres, topical = ("--preset", "active-critic/sfres"), ("--preset", "active-critic/topical-chat")
    assert planned(cli, rows, *sfres) == (8, 11, "fine", 36)
    assert planned(cli, rows, *sfres, *topical) == (3, 11, "fine", 36)
    config.write_text("max_demos: 5\nheldout: 0.5\n")  # another name of max_demos
    assert planned(cli, rows, *sfres, "--config", config) == (5, 11, "fine", 24)
    told = ("--max-demos", 2, "--variant", "coarse", "--heldout", 0.25)
    assert planned(cli, rows, *sfres, "--config", config, *told) == (2, 11, "coarse", 12)
    config.write_text("preset: active-critic/sfres\ncandidates: 4\n")
    assert planned(cli, rows, "--config", config) == (8, 4, "fine", 36)
    assert planned(cli, rows, "--config", config, *topical) == (3, 4, "fine", 36)


@pytest.mark.parametrize("name", [name for name in NUMBERS if not name.startswith("active-critic")])
def test_a_judge_without_labels_takes_a_preset(name: str, cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    aspect = "story/coherence" if name.endswith("hanna") else "summarization/coherence"
    done = cli("new", "--preset", name, "--as", aspect, "--lm", "openai/fake", "-o", path)
    assert done.code == 0, done.err
    judge = js.load(path, lm="openai/fake")
    asked = {k: v for k, v in NUMBERS[name].items() if k not in ("method", "lm", "annotators")}
    assert judge.options().items() >= asked.items()
    if isinstance(judge, OpeNLGauge):
        assert [(member.model, member.temperature) for member in judge.annotators] == [(a, 0.0) for a in ANNOTATORS]


def test_a_preset_in_a_file_is_a_name_or_a_list() -> None:
    both = {"preset": ["active-critic/sfres", "active-critic/vanilla"], "seed": 3}
    assert presets.layered((), both) == NUMBERS["active-critic/vanilla"] | {
        "max_demos": 8, "scale": [1, 6], "aspect": "overall", "seed": 3
    }  # fmt: skip
    with pytest.raises(OptionError, match="a name or a list of names is expected; got 3"):
        presets.layered((), {"preset": 3})


def test_presets_are_listed_and_shown(cli: Any) -> None:
    every = cli("list", "presets", "--json").json["presets"]
    listed = {preset["name"]: preset["about"] for preset in every}
    assert all(10 < len(line) <= 100 for line in listed.values())
    kinds = dict.fromkeys(DISCERN, "discern") | dict.fromkeys(STUDIES, "study") | dict.fromkeys(NUMBERS, "compile")
    kinds |= {"openlgauge/distilled": "distill", "openlgauge/synthetic": "synthesize"}
    assert {preset["name"]: preset["kind"] for preset in every} == kinds
    assert {name for name, line in listed.items() if line.startswith("study: ")} == set(STUDIES)
    assert all(name in cli("list", "presets").out for name in listed)
    shown = cli("list", "presets", "active-critic").out
    assert shown == presets.text("active-critic")  # to begin a file of one's own with
    assert "candidates: 11 # App. B" in shown
    assert cli("list", "presets", "active-critic/sfres", "--json").json["max_demos"] == 8


def test_a_seed_is_a_trial_of_drawn_answers(rows_file: Rows) -> None:
    given = {"labels": str(rows_file(120)), "scale": (0, 100), "library_aspect": "summarization/coherence", "train": 4}
    study = Study.prepare(Given.read("ablation", None, given, ["pairwise/table-2"]))
    judges = {cell: study.compiler(cell)[0] for cell in study.cells()}
    assert {judge.trial for judge in judges.values()} == {0, 1, 2, 3, 4}  # the paper's five trials
    assert all(judge.trial == cell.seed for cell, judge in judges.items())
    assert {judge.samples for judge in judges.values() if judge.reading == "drawn"} == {1, 3, 10, 100, 1000}
