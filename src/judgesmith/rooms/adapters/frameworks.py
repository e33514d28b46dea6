"""A saved judge as a scorer, metric or evaluator of Inspect, DeepEval, Ragas, promptfoo, LangSmith and Langfuse.

MLflow's is in `mlflow.logging`. Each function takes a saved judge's file, or a judge. A row without a score is an error
there, with its reason, never 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.errors import MissingExtraError, NoScoreError

if TYPE_CHECKING:
    from judgesmith.programs.judge import Judge
    from judgesmith.signatures.values import Verdict


def inspect_scorer(judge: str | Path | Judge, *, name: str = "judgesmith") -> Any:
    """Return a scorer for Inspect: `Task(scorer=inspect_scorer("judge.json"))`.

    The sample's input is the source, its target the reference.

    Raises:
        MissingExtraError: If Inspect is not installed.
    """
    scoring = _needed("inspect_ai.scorer", "inspect-ai")
    opened = _opened(judge)

    def scorer_of() -> Any:
        async def score(state: Any, target: Any) -> Any:
            verdict = _checked(
                await opened.ascore(
                    state.input_text,
                    state.output.completion,
                    reference=target.text or None,
                )
            )
            about = {"passed": verdict.passed, "category": verdict.category}
            return scoring.Score(
                value=verdict.score, explanation=verdict.explanation, metadata=about
            )

        return score

    return scoring.scorer(name=name, metrics=[scoring.mean(), scoring.stderr()])(
        scorer_of
    )()


def deepeval_metric(
    judge: str | Path | Judge, *, threshold: float = 0.5, name: str = "judgesmith"
) -> Any:
    """Return a metric for `deepeval.evaluate` and `assert_test`.

    Its score lies in [0, 1], from the worst to the best end of the judge's scale.

    Raises:
        MissingExtraError: If DeepEval is not installed.
    """
    base = _needed("deepeval.metrics", "deepeval").BaseMetric
    opened = _opened(judge)

    class Metric(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.threshold = threshold
            self.async_mode = True
            self.include_reason = True
            self.score: float | None = None
            self.reason: str | None = None
            self.success: bool | None = None
            self.error: str | None = None

        def measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
            return asyncio.run(self.a_measure(test_case))

        async def a_measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
            context = (
                "\n".join(test_case.retrieval_context or test_case.context or ())
                or None
            )
            texts = {"context": context, "reference": test_case.expected_output}
            verdict = _checked(
                await opened.ascore(test_case.input, test_case.actual_output, **texts)
            )
            share = _share(opened, verdict)
            self.score = share
            self.reason = verdict.explanation
            if verdict.passed is None:
                self.success = share >= threshold
            else:
                self.success = verdict.passed
            return share

        def is_successful(self) -> bool:
            return bool(self.success)

        @property
        def __name__(self) -> str:
            return name

    return Metric()


def ragas_metric(judge: str | Path | Judge, *, name: str = "judgesmith") -> Any:
    """Return a metric for `ragas.evaluate` over single turns, on the judge's own scale.

    `user_input` is the source, `response` the output.

    Raises:
        MissingExtraError: If Ragas is not installed.
    """
    parts = _needed("ragas.metrics.base", "ragas")
    opened = _opened(judge)

    class Metric(parts.SingleTurnMetric):  # type: ignore[misc, name-defined]
        def init(self, run_config: Any) -> None: ...

        async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
            context = "\n".join(sample.retrieved_contexts or ()) or None
            texts = {"context": context, "reference": sample.reference}
            return _checked(
                await opened.ascore(sample.user_input, sample.response, **texts)
            ).score

    metric = Metric(
        _required_columns={parts.MetricType.SINGLE_TURN: {"user_input", "response"}}
    )
    metric.name = name
    return metric


def promptfoo_assert(
    output: str, context: Mapping[str, Any], *, judge: str | Path | Judge = ""
) -> dict[str, Any]:
    """Return the result of `get_assert`, a Python assertion of promptfoo.

    The judge's file is `config.judge` of the assertion, the source the variable `source`, or else the prompt. The score
    lies in [0, 1].
    """
    config = context.get("config") or {}
    variables = context.get("vars") or {}
    opened = _opened(judge or config["judge"])
    texts = {
        name: variables[name]
        for name in ("context", "reference")
        if variables.get(name)
    }
    verdict = _checked(
        opened.score(
            variables.get("source") or context.get("prompt") or "", output, **texts
        )
    )
    share = _share(opened, verdict)
    if verdict.passed is None:
        passed = share >= float(config.get("threshold", 0.5))
    else:
        passed = verdict.passed
    return {"pass": passed, "score": share, "reason": verdict.explanation}


def langsmith_evaluator(
    judge: str | Path | Judge,
    *,
    source: str = "input",
    output: str = "output",
    name: str = "judgesmith",
) -> Callable[..., dict[str, Any]]:
    """Return an evaluator for LangSmith: `Client().evaluate(…, evaluators=[…])`.

    source, output: keys of the inputs and outputs; a single one is taken under any key.
    """
    opened = _opened(judge)

    def judged(
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        reference_outputs: dict[str, Any] | None,
    ) -> dict[str, Any]:
        reference = _only(reference_outputs or {}, output, needed=False)
        verdict = _checked(
            opened.score(
                _only(inputs, source), _only(outputs, output), reference=reference
            )
        )
        return {
            "key": name,
            "score": verdict.score,
            "comment": verdict.explanation,
            "value": verdict.category,
        }

    judged.__name__ = name
    return judged


def langfuse_evaluator(
    judge: str | Path | Judge, *, name: str = "judgesmith"
) -> Callable[..., Any]:
    """Return an evaluator for Langfuse: `run_experiment(…, evaluators=[…])`.

    The item's input is the source, its expected output the reference.

    Raises:
        MissingExtraError: If Langfuse is not installed.
    """
    evaluation = _needed("langfuse", "langfuse").Evaluation
    opened = _opened(judge)

    async def judged(
        *, input: Any, output: Any, expected_output: Any = None, **more: Any
    ) -> Any:
        verdict = _checked(
            await opened.ascore(input, output, reference=expected_output)
        )
        return evaluation(name=name, value=verdict.score, comment=verdict.explanation)

    return judged


# What they share -----------------------------------------------------------------------------------------------------


def _opened(judge: str | Path | Judge) -> Judge:
    from judgesmith.programs import loading

    return loading.load(judge) if isinstance(judge, str | Path) else judge


def _checked(verdict: Verdict) -> Verdict:
    """Return the verdict.

    Raises:
        NoScoreError: If it is a failure.
    """
    if verdict.failure is not None:
        raise NoScoreError(verdict.failure)
    return verdict


def _share(judge: Judge, verdict: Verdict) -> float:
    return min(1.0, max(0.0, judge.scale.to_percent(verdict.score) / 100))


def _only(values: Mapping[str, Any], key: str, *, needed: bool = True) -> Any:
    """Return the value of a key, or the only one. Raises KeyError, with what is there."""
    if key in values or len(values) == 1:
        return values.get(key, next(iter(values.values())))
    if needed:
        raise KeyError(f"there is no {key!r}; there are {', '.join(values) or 'none'}")
    return None


def _needed(module: str, package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(
            f"{package} is not installed: pip install {package}"
        ) from None
