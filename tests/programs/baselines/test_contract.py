"""What holds for every metric, here with stand-ins for the models that some of them run."""

from typing import Any

import pytest
from reading_stand_ins import Copyist

from judgesmith.programs.baselines.metrics import Metric
from judgesmith.programs.registry import metrics
from judgesmith.testing import MetricContract


class TestEveryMetric(MetricContract):
    @pytest.fixture(params=metrics.parts())
    def metric(
        self, request: pytest.FixtureRequest, copyist: Copyist, bert_score: Any
    ) -> Metric:
        if request.param.startswith(("rouge", "bleu", "chrf", "sari")):
            pytest.importorskip(
                "rouge_score" if request.param.startswith("rouge") else "sacrebleu"
            )
        made: Metric = metrics.get(request.param)()
        return made
