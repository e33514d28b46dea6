"""What the metrics here share: which texts an output is compared with, and what a value becomes."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from ...errors import CallError, MissingExtraError, OptionError
from ...parts import option
from ...signatures.values import Verdict
from ..metrics import PREFIX, Metric, cell, output_of

Against = Literal["reference", "source"]


def against() -> Any:
    """The option that says what outputs are compared with."""
    return option("reference", "What the output is compared with: its best reference, or the source.")


def others_of(row: Any, against: str) -> list[str]:
    """The texts that a row's output is compared with: all its references, or its source. Blank ones are left out."""
    given = cell(row, "source") if against == "source" else cell(row, "references") or cell(row, "reference")
    return [sendable(text) for text in ([given] if isinstance(given, str) else given or ()) if text.strip()]


def sendable(text: str) -> str:
    """A text without lone surrogates, which broken JSON holds and no tokenizer takes; "" where it is blank."""
    return text.encode("utf-8", "replace").decode() if text.strip() else ""


def needed(module: str, metric: type[Metric], install: str = "") -> Any:
    """A module that a metric runs on. install: the command; by default the metric's extra. Raises MissingExtraError."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        command = install or f"pip install 'judgesmith[{metric.extra}]'"
        raise MissingExtraError(f"{PREFIX}{metric.name} needs a package ({error}): {command}") from None


def one_line(error: BaseException) -> str:
    """What a package says went wrong."""
    return " ".join(str(error).split())[:300] or type(error).__name__


class ComparedMetric(Metric):
    """Base of the metrics that compare an output with one text after the other and take the best value.

    A row without such a text has no score, with a reason. A subclass has an option `against` or always compares with
    references, and gives `value`.
    """

    def value(self, output: str, other: str) -> float:
        """Higher is better; NaN where there is none. Both texts are not blank."""
        raise NotImplementedError

    def percent(self, value: float) -> float:
        """A value in [0, 100]."""
        return min(100.0, max(0.0, 100.0 * value))

    def ready(self) -> None:
        """Load what is needed, before the first row. Raises MissingExtraError, ModelError, OptionError."""

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """One verdict per row, in order. rows: mappings or objects with output and reference (or references) or source.

        Raises what `ready` raises, and OptionError for a row without a text `output`.
        """
        self.ready()
        for row in rows:
            yield self.verdict(output_of(row), others_of(row, getattr(self.chosen, "against", "reference")))

    def verdict(self, output: str, others: list[str]) -> Verdict:
        """The verdict of one row."""
        if not others:
            return Verdict.failed(f"no {getattr(self.chosen, 'against', 'reference')} to compare with")
        output = sendable(output)
        if not output:
            return self.empty()
        try:
            values = [self.value(output, other) for other in others]
        except (CallError, OptionError) as error:  # a text that the model cannot take, such as one that is too long
            return Verdict.failed(str(error))
        value = max(filter(math.isfinite, values), default=math.nan)
        if math.isnan(value):
            return Verdict.failed("no finite value")
        return Verdict(score=value, percent=self.percent(value))

    def empty(self) -> Verdict:
        """The verdict of an empty output: a bad text, not a failure."""
        return Verdict(score=0.0, percent=0.0)
