"""DSPy's optimizers by name: their options, what is refused, and what a run records."""

from typing import Any

import pytest

from judgesmith.errors import OptionError
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.optimizers.search.through_dspy import REFUSED, names


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
