"""BERTScore by the package of its authors, bert-score. Extra: `bertscore`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from ... import parts
from ...parts import option
from ..registry import metrics
from .compared import Against, Compared, ComparedMetric, against, needed, opening


@metrics.register
class BertScore(ComparedMetric):
    """BERTScore, not rescaled with its baselines: the best of a row's references, or its source. See `Options`."""

    name = "bertscore"
    about = "BERTScore: tokens matched by their vectors in an encoder, not rescaled (bert-score, weights needed)"
    paper = "BERTScore: Evaluating Text Generation with BERT (Zhang et al. 2020)"
    extra = "bertscore"
    at_once = 64

    class Options(parts.Options):
        model: str = option("roberta-large", "An encoder of transformers: its name on the hub.", min_length=1)
        of: Literal["f1", "precision", "recall"] = option("f1", "F1, precision or recall.")
        layer: int | None = option(
            None, "Layer whose vectors are taken; none takes the one that BERTScore's authors found best.", ge=1
        )
        against: Against = against()

    def ready(self) -> None:
        self._scorer  # noqa: B018

    @cached_property
    def _scorer(self) -> Any:
        chosen: Any = self.chosen
        package = needed("bert_score", BertScore)
        with opening(BertScore, chosen.model):
            return package.BERTScorer(model_type=chosen.model, num_layers=chosen.layer)

    def values(self, rows: Sequence[Compared]) -> list[float]:
        chosen: Any = self.chosen
        scored = self._scorer.score([output for output, _ in rows], [others for _, (others,) in rows])
        values: list[float] = scored[("precision", "recall", "f1").index(chosen.of)].tolist()
        return values
