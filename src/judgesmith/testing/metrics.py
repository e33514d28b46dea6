"""Contract of every metric that compares an output with references."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest

from judgesmith.errors import OptionError
from judgesmith.programs.baselines.metrics import Metric
from judgesmith.programs.registry import metrics

REFERENCE = "The town council has agreed to repair the old bridge in spring."
OUTPUTS = (
    REFERENCE,
    "The council will repair the bridge.",
    "Nobody came.",
    "?!",
    "😀",
    "x" * 5000,
)


class MetricContract:
    """Subclass it in a test module, name the `part`, and pytest runs all of this over it."""

    part: ClassVar[type[Metric]]

    def new(self) -> Metric:
        """Return the metric to test."""
        return self.part()

    @pytest.fixture
    def metric(self) -> Metric:
        """Provide the metric to test."""
        return self.new()

    def test_it_is_registered_and_says_what_it_is(self, metric: Metric) -> None:
        assert metrics.get(metric.name) is type(metric)
        assert metric.about
        assert "\n" not in metric.about

    def test_an_equal_text_is_the_best_and_equal_rows_get_equal_scores(
        self, metric: Metric
    ) -> None:
        rows = [
            {"source": REFERENCE, "output": output, "reference": REFERENCE}
            for output in OUTPUTS
        ]
        verdicts = list(metric.score_many(rows))
        assert [v.to_dict() for v in verdicts] == [
            v.to_dict() for v in metric.score_many(rows)
        ]
        assert all(math.isfinite(v.score) != bool(v.failure) for v in verdicts)
        assert (
            verdicts[0].score
            == max(v.score for v in verdicts if not v.failure)
            > verdicts[2].score
        )

    def test_with_nothing_to_compare_there_is_no_score_but_a_reason(
        self, metric: Metric
    ) -> None:
        (verdict,) = metric.score_many([{"source": "", "output": "An output."}])
        assert math.isnan(verdict.score)
        assert verdict.failure
        with pytest.raises(OptionError, match="output"):
            list(metric.score_many([{"source": "s", "reference": "r"}]))
