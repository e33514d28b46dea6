"""Overlap with references: ROUGE, BLEU and chrF by their usual packages, imported when a metric is first used.

Extra: `metrics`. Values are shares of the best one: in [0, 1], 1 = equal to the reference.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from judgesmith.programs.baselines.compared import (
    Compared,
    ComparedMetric,
    PairMetric,
    needed,
)
from judgesmith.programs.registry import metrics


class _Rouge(PairMetric):
    paper = "ROUGE: A Package for Automatic Evaluation of Summaries (Lin 2004)"
    extra = "metrics"

    def ready(self) -> None:
        self._scorer  # noqa: B018

    @cached_property
    def _scorer(self) -> Any:
        package = needed("rouge_score.rouge_scorer", type(self))
        logging.getLogger("absl").setLevel(logging.ERROR)
        return package.RougeScorer([self.name], use_stemmer=True)

    def value(self, output: str, other: str) -> float:
        return float(self._scorer.score(other, output)[self.name].fmeasure)


@metrics.register
class Rouge1(_Rouge):
    """ROUGE-1: F of single words."""

    name = "rouge1"
    about = "ROUGE-1 F, Porter stemming, best reference (rouge-score)"


@metrics.register
class Rouge2(_Rouge):
    """ROUGE-2: F of pairs of words."""

    name = "rouge2"
    about = "ROUGE-2 F, Porter stemming, best reference (rouge-score)"


@metrics.register
class RougeL(_Rouge):
    """ROUGE-L: F of the longest common subsequence."""

    name = "rougeL"
    about = "ROUGE-L F, Porter stemming, best reference (rouge-score)"


class _SacreBleu(ComparedMetric):
    extra = "metrics"

    def ready(self) -> None:
        self._metric  # noqa: B018

    @cached_property
    def _metric(self) -> Any:
        return self.of(needed("sacrebleu.metrics", type(self)))

    def of(self, package: Any) -> Any:
        """The metric of sacrebleu."""
        raise NotImplementedError

    def values(self, rows: Sequence[Compared]) -> Iterator[float]:
        for output, (references,) in rows:
            yield min(
                float(self._metric.sentence_score(output, references).score) / 100.0,
                1.0,
            )


@metrics.register
class Bleu(_SacreBleu):
    """BLEU of one sentence."""

    name = "bleu"
    about = (
        "sentence BLEU, 13a tokens, exponential smoothing, all references (sacrebleu)"
    )
    paper = "BLEU: a Method for Automatic Evaluation of Machine Translation (Papineni et al. 2002)"

    def of(self, package: Any) -> Any:
        """Return sacrebleu's metric for single sentences."""
        # Of one sentence: smoothed, and up to the longest n-gram that it has, as sacrebleu's own sentence scores are.
        return package.BLEU(effective_order=True)


@metrics.register
class Chrf(_SacreBleu):
    """The F-score of character n-grams."""

    name = "chrf"
    about = "sentence chrF2, best reference (sacrebleu)"
    paper = "chrF: character n-gram F-score for automatic MT evaluation (Popović 2015)"

    def of(self, package: Any) -> Any:
        """Return sacrebleu's metric."""
        return package.CHRF()
