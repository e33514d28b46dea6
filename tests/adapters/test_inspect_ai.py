"""A saved judge in Inspect itself."""

import math
from pathlib import Path
from typing import Any

import pytest

import judgesmith as js

inspect_ai = pytest.importorskip("inspect_ai")


def evaluated(outputs: list[str], scorer: Any, folder: Path, **given: Any) -> Any:
    """The log of a task whose model says these outputs."""
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import generate

    samples = [Sample(input=f"question {n}", target=f"target {n}") for n in range(len(outputs))]
    said = [ModelOutput.from_content("mockllm/model", text) for text in outputs]
    for output in said:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or a tokenizer would be fetched
    model = get_model("mockllm/model", custom_outputs=said)
    task = inspect_ai.Task(dataset=MemoryDataset(samples), solver=generate(), scorer=scorer)
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", max_samples=1, **given)
    return log


def test_scores_and_their_mean(saved: dict[str, Any], server: Any, tmp_path: Path) -> None:
    log = evaluated(["good 40", "good 80"], js.inspect_scorer(**saved), tmp_path)
    assert log.status == "success"
    (first, second) = (sample.scores["judgesmith"] for sample in log.samples)
    assert (first.value, first.explanation, first.answer) == (40.0, "It says 40.", "good 40")
    assert (second.value, second.metadata["name"], second.metadata["model"]) == (80.0, "truth", "openai/fake")
    assert log.results.scores[0].metrics["mean"].value == 60.0
    prompt = server.judged[0].text
    assert "question 0" in prompt
    assert "target 0" in prompt


def test_a_sample_without_a_score_is_an_error_and_not_in_the_mean(saved: dict[str, Any], tmp_path: Path) -> None:
    log = evaluated(["good 40", "bad"], js.inspect_scorer(**saved), tmp_path, fail_on_error=False)
    assert [sample.error is not None for sample in log.samples] == [False, True]
    assert "NoScoreError" in log.samples[1].error.traceback
    assert not log.samples[1].scores
    assert log.results.scores[0].metrics["mean"].value == 40.0
    strict = evaluated(["bad"], js.inspect_scorer(**saved), tmp_path)
    assert strict.status == "error"


def test_source_and_context_of_ones_own(saved: dict[str, Any], server: Any, tmp_path: Path) -> None:
    scorer = js.inspect_scorer(
        **saved, source_from=lambda state: "an article", context_from=lambda state: f"seen by {state.model}"
    )
    log = evaluated(["good 40"], scorer, tmp_path)
    assert not math.isnan(log.results.scores[0].metrics["mean"].value)
    prompt = server.judged[0].text
    assert "an article" in prompt
    assert "seen by mockllm/model" in prompt
    assert "question 0" not in prompt
