"""Overlap with references: ROUGE, BLEU and chrF by their usual packages, imported when a metric is first used. Extra:
`metrics`."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from ...errors import MissingExtraError
from ...signatures.values import Verdict
from ..registry import metrics
from .metrics import PREFIX, Metric, cell, output_of

Measure = Callable[[str, Sequence[str]], float]  # output, references -> share of the best value, in [0, 1]


class ReferenceMetric(Metric):
    """A metric whose values are shares of the best one: in [0, 1], 1 = equal to the reference.

    A row without a reference has no score, with a reason. Texts are compared with all of a row's `references` if it has
    them, or with its `reference`. A subclass makes the measure.
    """

    extra = "metrics"

    def make(self) -> Measure:
        """The measure; its package is imported here. Raises ImportError."""
        raise NotImplementedError

    @cached_property
    def _measure(self) -> Measure:
        try:
            return self.make()
        except ImportError as error:
            raise MissingExtraError(
                f"{PREFIX}{self.name} needs a package ({error}): pip install 'judgesmith[{self.extra}]'"
            ) from None

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        measure = self._measure  # a missing package is reported before the first row
        for row in rows:
            output, given = output_of(row), cell(row, "references") or cell(row, "reference")
            references = [text for text in ([given] if isinstance(given, str) else given or ()) if text.strip()]
            if not references:
                yield Verdict.failed("no reference to compare with")
                continue
            value = measure(output, references)
            finite = math.isfinite(value)
            yield Verdict(score=value, percent=100.0 * value) if finite else Verdict.failed("no finite value")


class _Rouge(ReferenceMetric):
    paper = "ROUGE: A Package for Automatic Evaluation of Summaries (Lin 2004)"

    def make(self) -> Measure:
        from rouge_score.rouge_scorer import RougeScorer

        logging.getLogger("absl").setLevel(logging.ERROR)
        scorer = RougeScorer([self.name], use_stemmer=True)

        def measure(output: str, references: Sequence[str]) -> float:
            return max(float(scorer.score(reference, output)[self.name].fmeasure) for reference in references)

        return measure


@metrics.register
class Rouge1(_Rouge):
    name = "rouge1"
    about = "ROUGE-1 F, Porter stemming, best reference (rouge-score)"


@metrics.register
class Rouge2(_Rouge):
    name = "rouge2"
    about = "ROUGE-2 F, Porter stemming, best reference (rouge-score)"


@metrics.register
class RougeL(_Rouge):
    name = "rougeL"
    about = "ROUGE-L F, Porter stemming, best reference (rouge-score)"


class _SacreBleu(ReferenceMetric):
    def sentence(self) -> Any:
        """The metric of sacrebleu."""
        raise NotImplementedError

    def make(self) -> Measure:
        metric = self.sentence()

        def measure(output: str, references: Sequence[str]) -> float:
            return min(float(metric.sentence_score(output, list(references)).score) / 100.0, 1.0)

        return measure


@metrics.register
class Bleu(_SacreBleu):
    name = "bleu"
    about = "sentence BLEU, 13a tokens, exponential smoothing, all references (sacrebleu)"
    paper = "BLEU: a Method for Automatic Evaluation of Machine Translation (Papineni et al. 2002)"

    def sentence(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU

        # Of one sentence: smoothed, and up to the longest n-gram that it has, as sacrebleu's own sentence scores are.
        return BLEU(effective_order=True)


@metrics.register
class Chrf(_SacreBleu):
    name = "chrf"
    about = "sentence chrF2, best reference (sacrebleu)"
    paper = "chrF: character n-gram F-score for automatic MT evaluation (Popović 2015)"

    def sentence(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()
