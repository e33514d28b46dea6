"""A saved judge as a metric of Ragas."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..programs.judge import Judge
from ..programs.models.lm import Connection
from ..signatures.values import Item
from .saved import LM, framework, opened, passages, scored


def ragas_metric(
    judge: str | Path | Judge, *, lm: LM = None, connection: Connection | None = None, name: str | None = None
) -> Any:
    """A judge as a Ragas metric: `metric = js.ragas_metric("judge.json")`, then, in an `@experiment`,
    `await metric.single_turn_ascore(sample)`, or `ragas.evaluate(dataset, metrics=[metric])`.

    judge: a Judge, or the file of a saved one. lm, connection: as for `load`. name: of the column of scores; default
    the aspect that the judge was compiled for. Judged is a sample's `response`, with `user_input` as the source,
    `retrieved_contexts` as the context and `reference` as the reference, where they are there.

    Returns: a `SingleTurnMetric`; a score is a float on the judge's scale. A row without a score raises NoScoreError:
    `evaluate` stops, or, with `raise_exceptions=False` (its default), logs it and has NaN there, which its means leave
    out.

    Raises: MissingExtraError without Ragas; OptionError, ArtifactError, ModelError as opening the judge does.
    """
    return _kind()(*opened(judge, lm, connection, name))


@cache
def _kind() -> Any:
    base = framework("ragas.metrics.base", "ragas_metric", "ragas")

    class JudgesmithMetric(base.SingleTurnMetric):  # type: ignore[misc,name-defined]
        def __init__(self, judge: Judge, name: str) -> None:
            self.judge, self.name = judge, name
            optional = {f"{column}:optional" for column in ("user_input", "retrieved_contexts", "reference")}
            self._required_columns = {base.MetricType.SINGLE_TURN: {"response", *optional}}

        def init(self, run_config: Any) -> None:
            """Retries and limits are the judge's own."""

        async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
            context = passages(sample.retrieved_contexts)
            item = Item(sample.response or "", sample.user_input or "", context, sample.reference)
            return float(scored(await self.judge.averdict(item)).score)

    return JudgesmithMetric
