"""A saved judge as a metric of DeepEval."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..programs.judge import Judge
from ..programs.models.lm import Connection, LanguageModel
from ..signatures.values import Item, Verdict
from .saved import SavedJudge, framework, passages


def deepeval_metric(
    judge: str | Path | Judge,
    *,
    threshold: float | None = None,
    lm: str | LanguageModel | Any | None = None,
    connection: Connection | None = None,
    name: str | None = None,
) -> Any:
    """A judge as a DeepEval metric: `assert_test(test_case, [js.deepeval_metric("judge.json", threshold=3.5)])`.

    judge: a Judge, or the file of a saved one. threshold: the lowest score that passes, on the judge's scale; may be
    left out where the judge was compiled from pass and fail. lm, connection: as for `load`. name: default the aspect
    that the judge was compiled for. Judged is a test case's `actual_output`, with `input` as the source,
    `expected_output` as the reference, and `context`, else `retrieval_context`, as the context.

    Returns: a `BaseMetric`; its score is a float on the judge's scale, its reason the explanation. For a row without a
    score `measure` raises NoScoreError, which DeepEval shows as the metric's error, or raises itself.

    Raises: MissingExtraError without DeepEval; OptionError without a threshold; ArtifactError, ModelError.
    """
    made = SavedJudge.open(judge, lm=lm, connection=connection, name=name)
    if threshold is None and made.judge.decision is None:
        raise OptionError(f"say which scores pass: threshold=…, on the judge's scale, {made.judge.scale}")
    return _kind()(made, threshold)


@cache
def _kind() -> Any:
    base = framework("deepeval.metrics", "deepeval_metric", "deepeval").BaseMetric

    class JudgesmithMetric(base):  # type: ignore[misc,valid-type]
        def __init__(self, made: SavedJudge, threshold: float | None) -> None:
            self.made, self.threshold = made, threshold
            self.evaluation_model = made.judge.lm.name
            self.include_reason = True
            self.async_mode = True

        @property
        def __name__(self) -> str:
            return self.made.name

        def measure(self, test_case: Any, *given: Any, **more: Any) -> float:
            self._forget()
            return self._keep(self.made.score(_item(test_case)))

        async def a_measure(self, test_case: Any, *given: Any, **more: Any) -> float:
            self._forget()
            return self._keep(await self.made.ascore(_item(test_case)))

        def is_successful(self) -> bool:
            return bool(self.success)

        def _forget(self) -> None:
            """What the last row left: a row that fails must not seem to have its score."""
            self.score: float | None = None
            self.reason: str | None = None
            self.success: bool | None = None
            self.error: str | None = None

        def _keep(self, verdict: Verdict) -> float:
            score = float(verdict.score)
            self.score, self.reason = score, verdict.explanation
            self.success = bool(verdict.passed) if self.threshold is None else score >= self.threshold
            self.score_breakdown = {name: c.score for name, c in verdict.criteria.items()}
            return score

    return JudgesmithMetric


def _item(case: Any) -> Item:
    return Item(
        output=case.actual_output or "",
        source=case.input or "",
        context=passages(case.context or case.retrieval_context),
        reference=case.expected_output,
    )
