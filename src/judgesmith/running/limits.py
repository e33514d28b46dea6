"""The options of a run over rows that say what it may spend, and how many of its rows may fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from judgesmith.errors import BudgetError
from judgesmith.parts import EVERYWHERE, Effect, Options, option
from judgesmith.running.settings import BATCH, RAY

if TYPE_CHECKING:
    from judgesmith.programs.models.lm import LanguageModel

#: The fewest rows by which a share is judged before the end, and how often a run whose rows fail at just that share
#: may be stopped by chance, however often it is looked at.
ENOUGH = 20
BY_CHANCE = 0.01
_SPENT = Effect(
    "nothing",
    (RAY,),
    {
        BATCH: f"cannot stop the requests of {BATCH}, which are sent at once; use --limit"
    },
)
GO_ON = "what is finished is kept, the same command resumes from there"


class Limits(Options):
    """Budget of a run over rows."""

    max_calls: int | None = option(
        None,
        "Maximum number of model calls in this run. Default: no limit.",
        effect=_SPENT,
        ge=1,
    )
    max_cost: float | None = option(
        None,
        "Maximum cost of this run, in US dollars. Calls in flight still complete. Default: no limit.",
        effect=_SPENT,
        gt=0,
    )
    max_failed: str | None = option(
        None,
        "Maximum number of rows without a score before the run stops, or a share of its rows (5%). A share is judged "
        "by all rows of the run. Default: no limit.",
        effect=Effect("nothing", (RAY, BATCH)),
        pattern=r"^ *\d+(\.\d+)? *%? *$",
    )
    dry_run: bool = option(
        False,
        "Print the number of calls and the estimated cost, and stop.",
        effect=Effect("nothing", EVERYWHERE),
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
        from judgesmith.programs.models.price import Meter, check_priced

        if self.max_cost is not None:
            check_priced(*(model.name for model in models))
        before = [model.meter for model in models]
        if len(models) > 1 and (self.max_calls or self.max_cost):
            shared = Meter()
            for model in models:
                model.meter = shared
        meters = [model.meter for model in models]
        for meter in meters:
            if self.max_calls is None:
                meter.max_calls = None
            else:
                meter.max_calls = meter.logical + self.max_calls
            if self.max_cost is None:
                meter.max_cost = None
            else:
                meter.max_cost = meter.cost + self.max_cost
        try:
            yield
        except BudgetError as error:
            raise BudgetError(f"{error}; {GO_ON}") from None
        finally:
            for model, meter in zip(models, before, strict=True):
                model.meter.max_calls = model.meter.max_cost = None
                model.meter = meter

    def check(
        self, failed: int, rows: int, last: str | None, total: int | None = None
    ) -> None:
        """Check the number of failed rows after each row, or some rows.

        Args:
            failed: Rows of this run without a score.
            rows: Rows of this run so far.
            last: Why the last of these rows has no score; None where it has one, when nothing new can be known.
            total: Rows that this run will have; None where that is not known.

        Raises:
            BudgetError: If more rows of this run have failed than may, or their share is surely above the limit.
        """
        if self.max_failed is None or last is None:
            return
        number, percent, _ = self.max_failed.partition("%")
        most = float(number)
        if percent:
            share = most / 100
            most = share * total if total else math.inf
            if surely_above(share, failed, rows):
                most = share * rows
        if failed > most:
            raise BudgetError(
                f"{failed} of {rows} rows have no score (--max-failed), the last: {last}"
            )


def surely_above(share: float, failed: int, rows: int) -> bool:
    """Return whether rows fail at a larger share than this one.

    With a share of just that size the answer is ever True with a probability of at most BY_CHANCE, though it is asked
    after every row: the likelihood of all larger shares, taken equally, relative to that of this one is a martingale.

    >>> surely_above(0.05, 2, 20), surely_above(0.05, 12, 60)
    (False, True)
    """
    from scipy.special import betainc, betaln

    if rows < ENOUGH or failed <= share * rows:
        return False
    if share == 0:
        return True
    scored = rows - failed
    larger = float(betainc(scored + 1, failed + 1, 1 - share))
    evidence = betaln(failed + 1, scored + 1) + math.log(larger) - math.log1p(-share)
    evidence -= failed * math.log(share) + scored * math.log1p(-share)
    return bool(evidence >= -math.log(BY_CHANCE))
