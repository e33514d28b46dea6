"""DSPy's own BootstrapFewShotWithRandomSearch with a closeness metric, validated on its training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dspy
import numpy as np


class PlainJudge(dspy.Signature):  # type: ignore[misc]
    """Score the quality of the output from 0 to 100."""

    source: str = dspy.InputField()
    output: str = dspy.InputField()
    score: float = dspy.OutputField(desc="0 (worst) to 100 (best)")


def closeness(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float | bool:
    """1 minus the distance on [0, 1]; a demonstration is kept when it is nearer than 20 of 100."""
    value = float(1 - abs(float(prediction.score) - example.score) / 100)
    return value > 0.8 if trace is not None else value


def plain_search(examples: Sequence[dspy.Example], aspect: str, candidates: int) -> dspy.Module:
    """The program that DSPy's search finds; `examples` have source, output and a score in percent."""
    search = dspy.BootstrapFewShotWithRandomSearch(
        metric=closeness,
        max_bootstrapped_demos=4,
        max_labeled_demos=4,
        num_candidate_programs=candidates,
        num_threads=1,
    )
    signature = PlainJudge.with_instructions(f"Score the {aspect} of the output from 0 to 100.")
    return search.compile(dspy.Predict(signature), trainset=list(examples))


def candidates_for(max_calls: int, rows: int) -> int:
    """How many random candidates fit: each is tried on every row, and zero-shot, labelled and unshuffled demonstrations
    come first. DSPy's default is 16. Calls that bootstrapping adds are cut off by the limit, not planned for."""
    return max(1, min(16, max_calls // max(rows, 1) - 3))


def compile_judge(job: dict[str, Any]) -> Callable[[dict[str, Any]], float]:
    lm = dspy.LM(
        "openai/judge-model",
        api_base=job["base"],
        api_key=job["key"],
        temperature=0.0,
        max_tokens=200,
        cache=False,
        num_retries=0,
    )
    examples = [
        dspy.Example(source=row["input"], output=row["output"], score=round(row["percent"], 1)).with_inputs(
            "source", "output"
        )
        for row in job["train"]
    ]
    examples = [examples[int(i)] for i in np.random.default_rng(job["seed"]).permutation(len(examples))]
    candidates = candidates_for(job["max_calls"], len(examples))
    # Calls that are refused at the end of the budget are errors to DSPy, and may not end its search.
    dspy.configure(lm=lm, max_errors=10**9)
    program = plain_search(examples, job["aspect"], candidates)
    job["settings"] = {
        "candidates": candidates,
        "train_closeness": max(c["score"] for c in program.candidate_programs),
        "demonstrations": len(program.demos),
    }

    def score(row: dict[str, Any]) -> float:
        value = float(program(source=row["input"], output=row["output"]).score)
        return min(100.0, max(0.0, value))

    return score
