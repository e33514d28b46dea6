"""What a run over rows may spend, how many of its rows may fail, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import BudgetError
from ..parts import Options, option
from ..programs.capabilities import passes_of
from ..programs.judge import Judge
from ..programs.models.lm import Connection, LanguageModel, Meter, check_priced, price
from ..programs.models.transport import Reply
from ..signatures.values import Item, Passes
from .opening import expected_seconds

#: The fewest rows for a meaningful share of failed ones.
ENOUGH = 20
GO_ON = "what is finished is kept, the same command resumes from there"
#: Rows whose prompts an estimate is made from.
SAMPLED = 50
#: As in the plan of compiling: characters and answer tokens.
CHARACTERS_A_TOKEN, ANSWER_TOKENS = 3.5, 45


class Limits(Options):
    """What a run over rows may spend."""

    max_calls: int | None = option(None, "Calls at most in this run.", ge=1)
    max_cost: float | None = option(None, "Dollars at most in this run; what is in flight is still paid.", gt=0)
    max_failed: str | None = option(
        None,
        "Stop when more rows than this have no score: a number, or a share of those judged in this run (5%).",
        pattern=r"^ *\d+(\.\d+)? *%? *$",
    )
    dry_run: bool = option(False, "Show what the run would take, spend nothing.")

    def limits(self) -> Limits:
        """These alone, of the options of a command."""
        return Limits(**{name: getattr(self, name) for name in Limits.model_fields})

    @contextmanager
    def spending(self, *models: LanguageModel) -> Iterator[None]:
        """The models pay from one budget while the block lasts. Raises OptionError where a price is not known."""
        if self.max_cost is not None:
            check_priced(*models)
        before = [model.meter for model in models]
        if len(models) > 1 and (self.max_calls or self.max_cost):
            shared = Meter()
            for model in models:
                model.meter = shared
        meters = [model.meter for model in models]
        for meter in meters:
            meter.max_calls = None if self.max_calls is None else meter.logical + self.max_calls
            meter.max_cost = None if self.max_cost is None else meter.cost + self.max_cost
        try:
            yield
        except BudgetError as error:
            raise BudgetError(f"{error}; {GO_ON}") from None
        finally:
            for model, meter in zip(models, before, strict=True):
                model.meter.max_calls = model.meter.max_cost = None
                model.meter = meter

    def check(self, failed: int, rows: int, last: str | None) -> None:
        """Raises BudgetError where more rows of this run have failed than may."""
        if self.max_failed is None or not failed:
            return
        number, share, _ = self.max_failed.partition("%")
        if failed > (float(number) / 100 * max(rows, ENOUGH) if share else float(number)):
            raise BudgetError(f"{failed} of {rows} rows have no score (--max-failed), the last: {last}")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What judging would take: calls at most, and about how many tokens, dollars (None: price unknown) and seconds; and
    passes of a model that reads the rows beside the calls, with their tokens, which cost time alone."""

    rows: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float
    passes: int = 0
    read_tokens: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        costs = (self.cost, other.cost)
        return Estimate(
            self.rows + other.rows,
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            None if None in costs else math.fsum(cost or 0.0 for cost in costs),
            self.seconds + other.seconds,
            self.passes + other.passes,
            self.read_tokens + other.read_tokens,
        )

    def to_dict(self) -> dict[str, Any]:
        return {"dry_run": True} | asdict(self) | {"seconds": round(self.seconds)}

    def __str__(self) -> str:
        from .console import duration

        cost = "price unknown" if self.cost is None else f"about ${self.cost:.2f}"
        read = f"; {self.passes:,} passes of about {self.read_tokens:,} tokens read the rows" if self.passes else ""
        return (
            f"{self.rows:,} rows to judge: at most {self.calls:,} calls, about {self.prompt_tokens:,} + "
            f"{self.completion_tokens:,} tokens, {cost}, about {duration(self.seconds)}{read}. Nothing was spent."
        )


def estimate(judge: Judge, model: str | None, rows: int, sample: Sequence[Item], where: Connection | None) -> Estimate:
    """What `rows` rows would take, judged by some of them. Calls no model."""
    calls = judge.method.cost().calls_per_row + judge.explains
    tokens = round(sum(_prompt_tokens(judge, item) for item in sample) / len(sample)) if sample else 0
    prompt, completion = rows * calls * tokens, rows * calls * ANSWER_TOKENS
    cost = None if model is None else price(model, Reply("", None, prompt, completion))
    seconds, each = expected_seconds(rows * calls, model, where), rows / max(1, len(sample))
    read = sum((passes_of(judge.method, item) for item in sample), Passes())
    passes, read_tokens = round(each * read.count), round(each * read.tokens)
    return Estimate(rows, rows * calls, prompt, completion, cost, seconds, passes, read_tokens)


def _prompt_tokens(judge: Judge, item: Item) -> float:
    """Of one call, about."""
    try:
        sent = list(judge.previews(item).values())
    except NotImplementedError:  # a method that has no prompt of its own
        sent = []
    texts = [sum(len(message["content"]) for message in messages) for messages in sent]
    if not texts:
        texts = [len(item.source) + len(item.output) + len(item.context or "") + len(item.reference or "") + 900]
    return sum(texts) / len(texts) / CHARACTERS_A_TOKEN
