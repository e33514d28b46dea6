"""A saved judge as a metric of DeepEval."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..programs.judge import Judge
from ..programs.models import engine
from ..programs.models.lm import Connection
from ..signatures.values import Item, Verdict
from .saved import LM, framework, opened, passages, scored


def deepeval_metric(
    judge: str | Path | Judge, *, threshold: float | None = None, lm: LM = None, connection: Connection | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A judge as a DeepEval metric: `assert_test(test_case, [js.deepeval_metric("judge.json", threshold=3.5)])`.

    judge: a Judge, or the file of a saved one. threshold: the lowest score that passes, on the judge's scale; may be
    left out where the judge was compiled from pass and fail. lm, connection: as for `load`. name: default the aspect
    that the judge was compiled for. Judged is a test case's `actual_output`, with `input` as the source,
    `expected_output` as the reference, and `context`, else `retrieval_context`, as the context.

    Returns: a `BaseMetric`; its score is a float on the judge's scale, its reason the explanation. For a row without a
    score `measure` raises NoScoreError, which DeepEval shows as the metric's error, or raises itself.

    Raises: MissingExtraError without DeepEval; OptionError without a threshold; ArtifactError, ModelError.
    """
    made, title = opened(judge, lm, connection, name)
    if threshold is None and made.decision is None:
        raise OptionError(f"say which scores pass: threshold=…, on the judge's scale, {made.scale}")
    return _kind()(made, title, threshold)


@cache
def _kind() -> Any:
    base = framework("deepeval.metrics", "deepeval_metric", "deepeval").BaseMetric

    class JudgesmithMetric(base):  # type: ignore[misc,valid-type]
        def __init__(self, judge: Judge, title: str, threshold: float | None) -> None:
            self.judge, self.title, self.threshold = judge, title, threshold
            self.evaluation_model = judge.lm.name
            self.include_reason = self.async_mode = True

        @property
        def __name__(self) -> str:
            return self.title

        def measure(self, test_case: Any, *given: Any, **more: Any) -> float:
            item = self._begin(test_case)
            return self._keep(engine.run(self.judge.averdict(item)))

        async def a_measure(self, test_case: Any, *given: Any, **more: Any) -> float:
            return self._keep(await self.judge.averdict(self._begin(test_case)))

        def is_successful(self) -> bool:
            return bool(self.success)

        def _begin(self, case: Any) -> Item:
            """The row. What the last one left is forgotten: a row that fails must not seem to have its score."""
            self.score: float | None = None
            self.reason: str | None = None
            self.success: bool | None = None
            self.error: str | None = None
            context = passages(case.context or case.retrieval_context)
            return Item(case.actual_output or "", case.input or "", context, case.expected_output)

        def _keep(self, verdict: Verdict) -> float:
            score = float(scored(verdict).score)
            self.score, self.reason = score, verdict.explanation
            self.success = bool(verdict.passed) if self.threshold is None else score >= self.threshold
            return score

    return JudgesmithMetric
