"""The common part of metrics that compare an output with other texts, and turn a value into a percent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, ClassVar, Literal

from judgesmith.errors import CallError, OptionError
from judgesmith.extras import from_extra
from judgesmith.programs.baselines.metrics import PREFIX, Metric, cell, output_of
from judgesmith.signatures.values import Verdict

Against = Literal["reference", "source"]
#: An output, and the texts that it is compared with: one list for each of the metric's `needs`, none of them empty.
Compared = tuple[str, list[list[str]]]


class ComparedMetric(Metric):
    """Base of the metrics that compare an output with its references, its source or both.

    A row without such a text has no score, with a reason. A subclass gives `values` of some rows together. Texts hold
    no lone surrogates, which broken JSON holds and no tokenizer takes; a blank output is "".
    """

    at_once: ClassVar[int] = 1

    def needs(self) -> tuple[str, ...]:
        """Return the kinds of texts that are compared with: source, reference."""
        return (getattr(self.chosen, "against", "reference"),)

    def ready(self) -> None:
        """Load models and packages, before the first row.

        Raises:
            MissingExtraError: For a missing package.
            ModelError: For an unusable model.
            OptionError: For unusable options.
        """

    def values(self, rows: Sequence[Compared]) -> Iterable[float | str]:
        """Return a value for each row, higher is better, or the reason for its absence."""
        raise NotImplementedError

    def partly(self, output: str, others: Sequence[str]) -> Mapping[str, float]:
        """Return the share of each of a row's texts that is read, if not all of it is; see `Verdict.partly`."""
        return {}

    def percent(self, value: float) -> float:
        """Return a value on [0, 100]."""
        return min(100.0, max(0.0, 100.0 * value))

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """Yield one verdict per row, in order.

        Args:
            rows: Mappings or objects with output and reference (or references) or source.

        Raises:
            MissingExtraError: For a missing package.
            ModelError: For an unusable model.
            OptionError: For a row without a text `output`.
        """
        self.ready()
        needs = self.needs()
        coming = iter(rows)
        while some := list(islice(coming, self.at_once)):
            batch = []
            for row in some:
                texts = {need: _texts(row, need) for need in needs}
                batch.append((_clean(output_of(row)), texts))
            whole = [
                (output, list(texts.values()))
                for output, texts in batch
                if all(texts.values())
            ]
            values = iter(self.values(whole)) if whole else iter(())
            for output, texts in batch:
                lacking = [need for need in needs if not texts[need]]
                if lacking:
                    yield Verdict.failed(f"no {lacking[0]} to compare with")
                else:
                    yield self._verdict(next(values), output, texts.values())

    def _verdict(
        self, value: float | str, output: str, texts: Iterable[Sequence[str]]
    ) -> Verdict:
        """Return the verdict of a value, or of the reason why there is none."""
        if isinstance(value, str):
            return Verdict.failed(value)
        if not math.isfinite(value):
            return Verdict.failed("no finite value")
        partly = self.partly(output, list(chain.from_iterable(texts)))
        notes = tuple(
            f"{share:.1%} of the {name} was read" for name, share in partly.items()
        )
        percent = self.percent(value)
        return Verdict(score=value, percent=percent, partly=partly, notes=notes)


class PairMetric(ComparedMetric):
    """Base of the metrics that compare an output with one text after the other and take the best value."""

    #: What an empty output gets: it is a bad text, not a failure.
    empty: ClassVar[float | str] = 0.0

    def value(self, output: str, other: str) -> float:
        """Compare an output with a reference, or its source: higher is better, NaN for no value. Neither is blank."""
        raise NotImplementedError

    def values(self, rows: Sequence[Compared]) -> Iterator[float | str]:
        """Yield the best value of each row's output over its texts."""
        return (self._best(output, others) for output, (others,) in rows)

    def _best(self, output: str, others: Sequence[str]) -> float | str:
        if not output:
            return self.empty
        try:
            values = [self.value(output, other) for other in others]
        except (
            CallError,
            OptionError,
        ) as error:  # a text that the model cannot take, such as one that is too long
            return str(error)
        return max(filter(math.isfinite, values), default=math.nan)


def _texts(row: Any, need: str) -> list[str]:
    """All references of a row, or its source. Blank ones are left out."""
    if need == "source":
        sources = cell(row, "source")
    else:
        sources = cell(row, "references") or cell(row, "reference")
    return [
        _clean(text)
        for text in ([sources] if isinstance(sources, str) else sources or ())
        if text.strip()
    ]


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode() if text.strip() else ""


def needed(module: str, metric: type[Metric]) -> Any:
    """Import a module that a metric runs on.

    Raises:
        MissingExtraError: If it is missing; names the metric's extra.
    """
    return from_extra(metric.extra, f"{PREFIX}{metric.name}", module)
