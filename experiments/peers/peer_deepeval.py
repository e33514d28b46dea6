"""DeepEval's G-Eval: evaluation steps from a criterion, a score from 0 to 10 weighted by token probabilities.

It learns nothing from labels, so its search makes the evaluation steps only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def compile_judge(job: dict[str, Any]) -> Callable[[dict[str, Any]], float]:
    # Read when the package is imported.
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_DISABLE_TIMEOUTS": "1", "ERROR_REPORTING": "NO"}
    from deepeval.metrics import GEval  # type: ignore[import-not-found,unused-ignore]
    from deepeval.models import GPTModel  # type: ignore[import-not-found,unused-ignore]
    from deepeval.test_case import LLMTestCase, SingleTurnParams  # type: ignore[import-not-found,unused-ignore]

    model = GPTModel(
        model="judge-model",
        api_key=job["key"],
        base_url=job["base"],
        temperature=0,
        cost_per_input_token=0,
        cost_per_output_token=0,
    )
    # A name that it does not know is taken for a model without probabilities.
    model.model_data.supports_log_probs = True
    metric = GEval(
        name=job["aspect"],
        criteria=f"Score the {job['aspect']} of the actual output, which was made from the input.",
        evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
        model=model,
        async_mode=False,
    )
    metric.evaluation_cost = metric.input_tokens = metric.output_tokens = 0
    metric.evaluation_steps = metric._generate_evaluation_steps(False)
    job["settings"] = {"labels used": 0, "steps": metric.evaluation_steps}

    def score(row: dict[str, Any]) -> float:
        case = LLMTestCase(input=row["input"], actual_output=row["output"])
        return 100.0 * float(metric.measure(case, _show_indicator=False))

    return score
