"""How `--judge` and `discern` name a metric with options of its own."""

from typing import Any

import pytest

from judgesmith.discerning.contenders import open_contenders
from judgesmith.discerning.options import DiscernOptions
from judgesmith.evaluating.judges import Spec
from judgesmith.programs.models.lm import Connection


@pytest.mark.parametrize(
    ("text", "name", "column"),
    [
        ("metric/meteor:source,alpha=0.5", "metric/meteor:source,alpha=0.5", "metric/meteor:source,alpha=0.5"),
        ("mine=metric/meteor:source,alpha=0.5", "mine", "metric/meteor:source,alpha=0.5"),
        ("mine=verdict.score", "mine", "verdict.score"),
    ],
)
def test_signs_in_a_metrics_options_are_its_own(text: str, name: str, column: str) -> None:
    assert Spec.parse(text) == Spec(name, column)


@pytest.mark.parametrize(
    ("text", "name", "metric"),
    [
        ("metric/meteor:source,alpha=0.5", "metric/meteor:source,alpha=0.5", "score"),
        ("mine=metric/meteor:source,alpha=0.5", "mine", "score"),
        ("mine/order=metric/meteor:source,alpha=0.5", "mine", "order"),
    ],
)
def test_a_contender_may_be_a_metric_with_options(text: str, name: str, metric: str) -> None:
    (contender,) = open_contenders([text], None, Connection(), DiscernOptions())
    assert contender.name == name
    made: Any = contender.scorers[metric]
    assert made.chosen.settings() == {"against": "source", "alpha": 0.5, "beta": 3.0, "gamma": 0.5}
