"""The options of a run over rows that say what it may spend, and how many of its rows may fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from judgesmith.errors import BudgetError
from judgesmith.parts import Options, option

if TYPE_CHECKING:
    from judgesmith.programs.models.lm import LanguageModel

#: The fewest rows for a meaningful share of failed ones.
ENOUGH = 20
GO_ON = "what is finished is kept, the same command resumes from there"


class Limits(Options):
    """Budget of a run over rows."""

    max_calls: int | None = option(
        None, "Maximum number of model calls in this run. Default: no limit.", ge=1
    )
    max_cost: float | None = option(
        None,
        "Maximum cost of this run, in US dollars. Calls in flight still complete. Default: no limit.",
        gt=0,
    )
    max_failed: str | None = option(
        None,
        "Maximum number of rows without a score before the run stops, or a share of this run's rows (5%). Default: "
        "no limit.",
        pattern=r"^ *\d+(\.\d+)? *%? *$",
    )
    dry_run: bool = option(
        False, "Print the number of calls and the estimated cost, and stop."
    )

    def limits(self) -> Limits:
        """Return these options alone, out of those of a command."""
        return Limits(**{name: getattr(self, name) for name in Limits.model_fields})

    @contextmanager
    def spending(self, *models: LanguageModel) -> Iterator[None]:
        """Let the models pay from one budget while the block lasts.

        Raises:
            OptionError: If a price is not known.
        """
        from judgesmith.programs.models.lm import (
            Meter,
            check_priced,
        )  # commands are shown without what they run

        if self.max_cost is not None:
            check_priced(*models)
        before = [model.meter for model in models]
        if len(models) > 1 and (self.max_calls or self.max_cost):
            shared = Meter()
            for model in models:
                model.meter = shared
        meters = [model.meter for model in models]
        for meter in meters:
            meter.max_calls = (
                None if self.max_calls is None else meter.logical + self.max_calls
            )
            meter.max_cost = (
                None if self.max_cost is None else meter.cost + self.max_cost
            )
        try:
            yield
        except BudgetError as error:
            raise BudgetError(f"{error}; {GO_ON}") from None
        finally:
            for model, meter in zip(models, before, strict=True):
                model.meter.max_calls = model.meter.max_cost = None
                model.meter = meter

    def check(self, failed: int, rows: int, last: str | None) -> None:
        """Check the number of failed rows.

        Raises:
            BudgetError: If more rows of this run have failed than may.
        """
        if self.max_failed is None or not failed:
            return
        number, share, _ = self.max_failed.partition("%")
        if failed > (
            float(number) / 100 * max(rows, ENOUGH) if share else float(number)
        ):
            raise BudgetError(
                f"{failed} of {rows} rows have no score (--max-failed), the last: {last}"
            )
