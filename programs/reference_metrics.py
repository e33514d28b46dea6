"""What a user had before: metrics that compare an output with its reference, as judges that call no language model.

rouge-score and sacrebleu are imported when a metric is first used; they come with `pip install 'judgesmith[metrics]'`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import MissingExtraError, OptionError
from ..signatures.values import Verdict

PREFIX = "metric/"
INSTALL = "pip install 'judgesmith[metrics]'"
Measure = Callable[[str, Sequence[str]], float]  # output, references -> share of the best value, in [0, 1]


def _rouge(kind: str) -> Measure:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError(f"metric/{kind} needs rouge-score ({error}): {INSTALL}") from None
    logging.getLogger("absl").setLevel(logging.ERROR)
    scorer = RougeScorer([kind], use_stemmer=True)

    def measure(output: str, references: Sequence[str]) -> float:
        return max(float(scorer.score(reference, output)[kind].fmeasure) for reference in references)

    return measure


def _sacrebleu(name: str) -> Measure:
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError as error:
        raise MissingExtraError(f"metric/{name} needs sacrebleu ({error}): {INSTALL}") from None
    # Of one sentence: smoothed, and up to the longest n-gram that it has, as sacrebleu's own sentence scores are.
    metric = BLEU(effective_order=True) if name == "bleu" else CHRF()

    def measure(output: str, references: Sequence[str]) -> float:
        return min(float(metric.sentence_score(output, list(references)).score) / 100.0, 1.0)

    return measure


#: Name -> what it is, and how its measure is made.
METRICS: Mapping[str, tuple[str, Callable[[], Measure]]] = {
    "rouge1": ("ROUGE-1 F, Porter stemming, best reference (rouge-score)", lambda: _rouge("rouge1")),
    "rouge2": ("ROUGE-2 F, Porter stemming, best reference (rouge-score)", lambda: _rouge("rouge2")),
    "rougeL": ("ROUGE-L F, Porter stemming, best reference (rouge-score)", lambda: _rouge("rougeL")),
    "bleu": (
        "sentence BLEU, 13a tokens, exponential smoothing, all references (sacrebleu)",
        lambda: _sacrebleu("bleu"),
    ),
    "chrf": ("sentence chrF2, best reference (sacrebleu)", lambda: _sacrebleu("chrf")),
}


@dataclass(frozen=True)
class ReferenceMetric:
    """A metric with a judge's `score` and `score_many`: values in [0, 1], 1 = equal to the reference.

    A row without a reference has no score and says so. Texts are compared with all of a row's `references` if it has
    them, or with its `reference`.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in METRICS:
            raise OptionError(
                f"there is no metric {PREFIX}{self.name}; there are {', '.join(PREFIX + m for m in METRICS)}"
            )

    @property
    def description(self) -> str:
        return METRICS[self.name][0]

    @cached_property
    def _measure(self) -> Measure:
        return METRICS[self.name][1]()

    def score(
        self,
        output: str,
        reference: str | Sequence[str] | None = None,
        *,
        source: str = "",
        context: str | None = None,
    ) -> Verdict:
        """One output. `source` and `context` are taken as a judge takes them and not looked at."""
        references = [reference] if isinstance(reference, str) else list(reference or ())
        references = [text for text in references if text.strip()]
        if not references:
            return Verdict.failed("no reference to compare with")
        value = self._measure(output, references)
        return (
            Verdict(score=value, percent=100.0 * value) if math.isfinite(value) else Verdict.failed("no finite value")
        )

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """One verdict per row, in order. rows: mappings or objects with output and reference (or references).

        Raises MissingExtraError where the package is not installed, OptionError for a row without a text `output`.
        """
        self._measure  # noqa: B018  what is not installed is said before the first row
        for row in rows:
            output = _of(row, "output")
            if not isinstance(output, str):
                raise OptionError(f"a row to be judged needs a text 'output'; got {type(output).__name__}")
            yield self.score(output, _of(row, "references") or _of(row, "reference"))


def reference_metric(name: str) -> ReferenceMetric:
    """A metric by its name, with or without `metric/`; ROUGE-L is also found as `rougel`. Raises OptionError."""
    plain = name.removeprefix(PREFIX)
    return ReferenceMetric(next((m for m in METRICS if m.casefold() == plain.casefold()), plain))


def _of(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)
