"""What holds for every metric, here with stand-ins for the models that some of them run."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from reading_stand_ins import Copyist, Letters

from judgesmith.programs.baselines import vectors
from judgesmith.programs.baselines.likelihood import BartScore, BartScoreLM
from judgesmith.programs.metrics import Metric
from judgesmith.programs.registry import metrics
from judgesmith.testing import MetricContract

OWN_TESTS = ".baselines.embedding"  # test_embedding.py
NAMES = [
    name
    for name, part in metrics.parts().items()
    if ".baselines." in part.__module__ and not part.__module__.endswith(OWN_TESTS)
]


def shared(row: dict[str, str]) -> float:
    """The share of words that both texts have."""
    made, wanted = (set(row[name].split()) for name in ("mt", "ref"))
    return len(made & wanted) / len(made | wanted)


class TestEveryMetric(MetricContract):
    @pytest.fixture(params=NAMES)
    def metric(
        self, request: pytest.FixtureRequest, copyist: Copyist, letters: Letters, monkeypatch: pytest.MonkeyPatch
    ) -> Metric:
        for package in {"meteor": ["nltk"], "sari": ["sacrebleu"]}.get(request.param, []):
            pytest.importorskip(package)
        comet: Any = ModuleType("comet")
        comet.download_model = str
        comet.load_from_checkpoint = lambda path: SimpleNamespace(
            predict=lambda rows, **options: {"scores": [shared(row) for row in rows]}
        )
        monkeypatch.setitem(sys.modules, "comet", comet)
        monkeypatch.setattr(vectors, "encoder_embed", vectors.lm_embed)
        monkeypatch.setattr(BartScore, "ready", lambda self: None)
        monkeypatch.setattr(BartScore, "logp", lambda self, given, target: BartScoreLM().logp(given, target))
        made: Metric = metrics.get(request.param)()
        return made
