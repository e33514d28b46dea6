"""What holds for every metric that compares an output with references."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pytest

from ..programs.registry import metrics

__all__ = ["MetricContract"]

REFERENCE = "The town council has agreed to repair the old bridge in spring."
OUTPUTS = (REFERENCE, "The council will repair the bridge.", "Nobody came.", "?!", "😀", "x" * 5000)


class MetricContract:
    """Subclass it in a test module, name the `part`, and pytest runs all of this over it."""

    part: ClassVar[type[Any]]

    @pytest.fixture
    def metric(self) -> Any:
        return self.part()

    def test_it_is_registered_and_says_what_it_is(self) -> None:
        assert metrics.get(self.part.name) is self.part
        assert self.part.about and "\n" not in self.part.about

    def test_scores_are_shares_of_the_best_and_an_equal_text_is_the_best(self, metric: Any) -> None:
        rows = [{"source": "", "output": output, "reference": REFERENCE} for output in OUTPUTS]
        first = [verdict.score for verdict in metric.score_many(rows)]
        assert all(math.isfinite(score) for score in first)
        assert first == [verdict.score for verdict in metric.score_many(rows)]
        assert max(first) == first[0] > first[2]

    def test_without_a_reference_there_is_no_score_but_a_reason(self, metric: Any) -> None:
        (verdict,) = metric.score_many([{"source": "", "output": "An output."}])
        assert math.isnan(verdict.score) and verdict.failure
