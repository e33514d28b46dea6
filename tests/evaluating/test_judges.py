"""How `--judge` and `discern` name a metric with options of its own."""

from typing import Any

import pytest

from judgesmith.discerning.judging import open_subject
from judgesmith.discerning.options import DiscernOptions
from judgesmith.evaluating.judges import Spec
from judgesmith.programs.models.lm import Connection


@pytest.mark.parametrize(
    ("text", "name", "column"),
    [
        ("metric/meteor:source", "metric/meteor:source", "metric/meteor:source"),
        ("mine=metric/meteor:source,alpha=0.5", "mine", "metric/meteor:source"),
        ("mine=verdict.score", "mine", "verdict.score"),
    ],
)
def test_signs_in_a_metrics_options_are_its_own(text: str, name: str, column: str) -> None:
    assert Spec.parse(text) == Spec(name, column)


def test_discern_takes_a_metric_with_options() -> None:
    text = "metric/meteor:source"
    subject = open_subject(text, None, Connection(), DiscernOptions())
    assert subject.name == text
    made: Any = subject.scorers["score"]
    assert made.chosen.settings() == {"against": "source"}
