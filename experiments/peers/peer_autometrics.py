"""autometrics' LLM judge with examples: of five draws of demonstrations, the best by closeness on the training rows.

The package's other metrics need PyTorch and models from a hub; this judge needs neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WORST, BEST = 1.0, 5.0


def compile_judge(job: dict[str, Any]) -> Callable[[dict[str, Any]], float]:
    import dspy
    import pandas as pd
    from autometrics.dataset.Dataset import Dataset  # type: ignore[import-not-found,unused-ignore]
    from autometrics.generator.LLMJudgeExampleProposer import (  # type: ignore[import-not-found,unused-ignore]
        LLMJudgeExampleProposer,
    )

    lm = dspy.LM("openai/judge-model", api_base=job["base"], api_key=job["key"], temperature=0.0, num_retries=0)
    dspy.configure(lm=lm, max_errors=10**9)
    aspect = job["aspect"]
    # Its closeness, 1 / (1 + distance), is made for scales of about five steps.
    table = pd.DataFrame(
        [
            {
                "source": row["input"],
                "output": row["output"],
                aspect: round(WORST + (BEST - WORST) * row["percent"] / 100, 1),
            }
            for row in job["train"]
        ]
    )
    data = Dataset(
        dataframe=table,
        target_columns=[aspect],
        ignore_columns=[],
        metric_columns=[],
        name="rows",
        input_column="source",
        output_column="output",
        reference_columns=[],
        task_description=f"Score the {aspect} of the output.",
    )
    proposer = LLMJudgeExampleProposer(
        generator_llm=lm,
        # A card about the metric is text for people and would cost a call.
        executor_kwargs={"model": lm, "metric_card": "none", "max_workers": 1},
        seed=job["seed"] + 1,  # a temperature of 0.0001 for each, to get past caches
        max_workers=1,
    )
    (metric,) = proposer.generate(data, target_measure=aspect, n_metrics=1)
    job["settings"] = {"attempts": 5, "demonstrations": len(metric.optimized_examples)}

    def score(row: dict[str, Any]) -> float:
        result = metric.calculate(row["input"], row["output"])
        value = float(getattr(result, "score", result))
        return 100.0 * (value - WORST) / (BEST - WORST)

    return score
