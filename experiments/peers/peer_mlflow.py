"""MLflow's `make_judge` and `judge.align`: by default (MemAlign) or by GEPA, as the job's `variant` says.

Its optimizers compare a judge's answer with people's as labels that are equal or not, so human ratings become five
levels. MemAlign looks for similar training rows with an embedding model; where there is none, hashed words stand in.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

MODEL = "openai:/judge-model"
NAME = "quality"


def level(percent: float) -> int:
    """One of five equal parts of [0, 100], 1 (worst) to 5 (best)."""
    return 1 + min(4, max(0, int(percent // 20)))


def gepa_calls(max_calls: int, rows: int) -> int:
    """Calls for the metric: about one in seven is a reflection, and a last look at all rows may go over the limit."""
    return max(2 * rows, max_calls * 6 // 7 - rows)


def optimizer_for(variant: str, job: dict[str, Any]) -> Any:
    from mlflow.genai.judges.optimizers import (  # type: ignore[import-not-found,unused-ignore]
        GEPAAlignmentOptimizer,
        MemAlignOptimizer,
    )

    if variant == "gepa":
        calls = gepa_calls(job["max_calls"], len(job["train"]))
        job["settings"] = {"optimizer": "GEPA", "max_metric_calls": calls}
        return GEPAAlignmentOptimizer(MODEL, max_metric_calls=calls, gepa_kwargs={"seed": job["seed"]})
    job["settings"] = {"optimizer": "MemAlign (the default)", "embeddings": "hashed words"}
    return MemAlignOptimizer(reflection_lm=MODEL)


def compile_judge(job: dict[str, Any]) -> Callable[[dict[str, Any]], float]:
    folder = Path(job["folder"])
    os.environ |= {"OPENAI_API_KEY": job["key"], "OPENAI_API_BASE": job["base"], "OPENAI_BASE_URL": job["base"]}
    import mlflow  # type: ignore[import-not-found,unused-ignore]
    from mlflow.entities import AssessmentSource  # type: ignore[import-not-found,unused-ignore]
    from mlflow.genai.judges import make_judge  # type: ignore[import-not-found,unused-ignore]

    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_experiment("rows")
    judge = make_judge(
        name=NAME,
        instructions=(
            f"Score the {job['aspect']} of the output from 1 (worst) to 5 (best).\n\n"
            "Input: {{ inputs }}\n\nOutput: {{ outputs }}"
        ),
        model=MODEL,
        feedback_value_type=Literal[1, 2, 3, 4, 5],
    )
    traces = []
    for row in job["train"]:
        with mlflow.start_span(name="row") as span:
            span.set_inputs({"source": row["input"]})
            span.set_outputs(row["output"])
        mlflow.log_feedback(
            trace_id=span.trace_id,
            name=NAME,
            value=level(row["percent"]),
            source=AssessmentSource(source_type="HUMAN", source_id="people"),
        )
        traces.append(mlflow.get_trace(span.trace_id))
    aligned = judge.align(traces, optimizer_for(job["variant"], job))
    job["settings"]["instructions"] = aligned.instructions[:2000]

    def score(row: dict[str, Any]) -> float:
        feedback = aligned(inputs={"source": row["input"]}, outputs=row["output"])
        if feedback.value is None:
            raise ValueError(f"no value; {feedback.error}")
        return 25.0 * (float(feedback.value) - 1.0)

    return score
