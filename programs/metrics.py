"""What a user had before: metrics that compare an output with its reference, as judges that call no language model.

rouge-score and sacrebleu are imported when a metric is first used; they come with `pip install 'judgesmith[metrics]'`.
Those that run models of their own are in `baselines`.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from .. import parts
from ..errors import MissingExtraError, OptionError
from ..signatures.values import Verdict
from .registry import metrics

PREFIX = "metric/"
Measure = Callable[[str, Sequence[str]], float]  # output, references -> share of the best value, in [0, 1]


class Metric:
    """Base of all metrics: judges with `score` and `score_many` that call no language model. A subclass registers with
    `@metrics.register` and declares itself.

    Attributes: name, about, paper; Options and `chosen`, its options; extra, the extra of judgesmith that it needs, ""
    for none; description, what it is in one line.
    """

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    class Options(parts.Options):
        """None."""

    def __init__(self, **options: Any) -> None:
        self.chosen = parts.read_options(type(self).Options, options, f"{PREFIX}{self.name}")

    @property
    def description(self) -> str:
        return self.about

    def score(
        self,
        output: str,
        reference: str | Sequence[str] | None = None,
        *,
        source: str = "",
        context: str | None = None,
    ) -> Verdict:
        """One output. `context` is taken as a judge takes it and not looked at."""
        row = {"output": output, "reference": reference, "source": source}
        return next(iter(self.score_many([row])))

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """One verdict per row, in order. rows: mappings or objects with output and reference (or references) or source.

        Raises MissingExtraError where a package is not installed, OptionError for a row without a text `output`.
        """
        raise NotImplementedError


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


# By name -------------------------------------------------------------------------------------------------------------


def reference_metric(name: str) -> Metric:
    """A metric by its name, with or without `metric/`, whatever its case. After a colon stand its options: the first by
    its value alone, others as NAME=VALUE (`meteor:source`, `bertscore:roberta-large,of=recall`). Raises OptionError."""
    plain = name.removeprefix(PREFIX)
    kind, colon, value = plain.partition(":")
    known = {one.casefold(): part for one, part in metrics.parts().items()}
    part: type[Metric] | None = known.get(kind.casefold())
    if part is None or (colon and not part.Options.model_fields):
        names = ", ".join(PREFIX + one for one in metrics.names())
        raise OptionError(f"there is no metric {PREFIX}{plain}; there are {names}")
    if not colon:
        return part()
    fields = part.Options.model_fields
    first = next(iter(fields))
    if not value.strip():
        raise OptionError(f"{PREFIX}{plain} names no {first}; write {PREFIX}{kind}:{first.upper()}")
    chosen: dict[str, Any] = {}
    for text in _OPTION.split(value):
        option, equals, given = (piece.strip() for piece in text.partition("="))
        if not equals or (option not in fields and not chosen):
            option, given = first, text.strip()
        chosen[option] = parts.from_text(fields[option], given) if option in fields else given
    return part(**chosen)


#: The comma before the next NAME=VALUE.
_OPTION = re.compile(r",(?=\s*[a-z_]+\s*=)")


def cell(row: Any, name: str) -> Any:
    """A row's text by its name, whether the row is a mapping or an object; None where it has none."""
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)


def output_of(row: Any) -> str:
    """The text that is judged. Raises OptionError where there is none."""
    output = cell(row, "output")
    if not isinstance(output, str):
        raise OptionError(f"a row to be judged needs a text 'output'; got {type(output).__name__}")
    return output
