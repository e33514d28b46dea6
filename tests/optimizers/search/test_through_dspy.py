"""DSPy's optimizers by name: their options, what is refused, and what a run records."""

from typing import Any

import pytest

import judgesmith as js
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.optimizers.search.through_dspy import REFUSED, names
from judgesmith.testing.fake import FakeModel, judging


def test_every_optimizer_of_dspy_is_there_or_says_why_not() -> None:
    assert {
        "MIPROv2",
        "SIMBA",
        "COPRO",
        "BootstrapFewShotWithRandomSearch",
        "LabeledFewShot",
    } <= set(names())
    assert {f"dspy:{name}" for name in names()} <= set(optimizers.every())
    for name, why in REFUSED.items():
        with pytest.raises(OptionError, match=f"optimizer dspy:{name}: {why[:20]}"):
            build_optimizer(f"dspy:{name}")
    with pytest.raises(
        OptionError,
        match=r"DSPy has no optimizer 'MIPROv3' \(did you mean 'MIPROv2'\?\)",
    ):
        build_optimizer("dspy:MIPROv3")


def test_options_are_dspys_arguments_with_its_defaults() -> None:
    search = build_optimizer(
        "dspy:MIPROv2", {"auto": None, "num_candidates": "4", "minibatch": "no"}
    )
    assert (search.auto, search.num_candidates, search.minibatch) == (None, 4, False)
    assert (search.max_bootstrapped_demos, search.name) == (4, "dspy:MIPROv2")
    with pytest.raises(OptionError, match="no option 'num_candidate'"):
        build_optimizer("dspy:MIPROv2", {"num_candidate": 4})
    assert not {"metric", "prompt_model", "trainset"} & set(search.Options.model_fields)


def test_it_runs_from_the_command_line_and_its_candidates_are_recorded(
    server: Any, fake: Any, cli: Any, compile_: Any, rows_file: Any
) -> None:
    server.answer = fake.judging(
        lambda ask: (int(ask.mark[1:]) * 37 + 20 * len(ask.shown)) % 101
    )
    rows = rows_file(40)
    given = (
        "--optimizer",
        "dspy:BootstrapFewShotWithRandomSearch",
        "--num-candidate-programs",
        1,
    )
    more = (
        "--optimizer.max-labeled-demos",
        3,
        "--method",
        "direct",
        "--as",
        "general/fluency",
        "--heldout",
        0.25,
    )
    told = compile_(rows, *given, *more, "--json").told
    assert told["heldout"]["failed"] == 0
    tried = [one["candidate"] for one in told["candidates"]]
    assert tried[0] == "zero-shot"
    assert "BootstrapFewShotWithRandomSearch 1" in tried
    assert all(one["demos"] <= 4 for one in told["candidates"])
    listed = cli("list", "optimizers", "dspy:SIMBA").said
    assert "bsize" in listed
    cli("compile", rows, "--bsize", 4, "--lm", "openai/x", "--dry-run").refused(
        "dspy:SIMBA"
    )


@pytest.mark.parametrize(
    ("name", "given", "size"),
    [
        ("BootstrapFewShotWithRandomSearch", {}, 32),
        ("BootstrapFewShotWithRandomSearch", {"num_candidate_programs": 5}, 10),
        ("BootstrapFewShotWithRandomSearch", {"candidates": 5}, 5),
        ("MIPROv2", {}, 16),
        ("MIPROv2", {"auto": None, "num_candidates": 3, "num_trials": 7}, 10),
        ("COPRO", {"breadth": 4, "depth": 2}, 8),
        ("SIMBA", {"num_candidates": 2, "max_steps": 3}, 12),
        ("LabeledFewShot", {}, 8),
    ],
)
def test_the_size_is_the_optimizers_own(
    name: str, given: dict[str, Any], size: int
) -> None:
    search = build_optimizer(f"dspy:{name}", given)
    assert search.evaluations() == size + 3
    assert search.settings()["candidates"] == size


def test_dspys_random_search_tries_all_its_sets(labels_of: Any) -> None:
    model = FakeModel()
    model.answer = judging(
        lambda ask: (int(ask.mark[1:]) * 37 + 20 * len(ask.shown)) % 101
    )
    search = build_optimizer("dspy:BootstrapFewShotWithRandomSearch")
    method = js.ActiveCritic("vanilla", explain="none", reading="said")
    labels = labels_of(10, 4, lambda n: n * 37 % 101)
    search.compile(js.Judge(method, lm=model.lm), trainset=examples_of(labels))
    assert search.record is not None
    assert "ended at" not in str(search.record.reason)
    assert len(search.record.tried) > 12
