"""A saved judge in Ragas itself."""

import asyncio
import math
from typing import Any

import pytest

import judgesmith as js
from judgesmith.errors import NoScoreError

ragas = pytest.importorskip("ragas")


def evaluated(rows: list[dict[str, Any]], metric: Any, **given: Any) -> Any:
    return ragas.evaluate(ragas.EvaluationDataset.from_list(rows), metrics=[metric], show_progress=False, **given)


def row(output: str) -> dict[str, Any]:
    return {
        "user_input": "a question",
        "response": output,
        "reference": "a reference",
        "retrieved_contexts": ["one", "two"],
    }


def test_scores_on_the_judges_scale(saved: dict[str, Any], server: Any) -> None:
    result = evaluated([row("good 40"), row("good 80")], js.ragas_metric(**saved))
    assert result["truth"] == [40.0, 80.0]
    prompt = server.judged[0].text
    for part in ("a question", "a reference", "one\n\ntwo"):
        assert part in prompt
    assert evaluated([{"response": "good 30"}], js.ragas_metric(**saved))["truth"] == [30.0]


def test_a_sample_alone_as_in_an_experiment(saved: dict[str, Any]) -> None:
    metric = js.ragas_metric(**saved)
    assert asyncio.run(metric.single_turn_ascore(ragas.SingleTurnSample(**row("good 40")))) == 40.0
    with pytest.raises(NoScoreError):
        asyncio.run(metric.single_turn_ascore(ragas.SingleTurnSample(**row("bad"))))


def test_a_row_without_a_score_is_nan_or_stops(saved: dict[str, Any]) -> None:
    metric = js.ragas_metric(**saved)
    first, second = evaluated([row("good 40"), row("bad")], metric)["truth"]
    assert first == 40.0
    assert math.isnan(second)
    with pytest.raises(NoScoreError):
        evaluated([row("bad")], metric, raise_exceptions=True)
