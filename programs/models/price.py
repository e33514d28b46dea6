"""What calls cost and how long models' contexts are, by LiteLLM's table; the meter of calls, and its budget."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from judgesmith.errors import BudgetError, OptionError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.provider import provider_of
from judgesmith.signatures.values import Usage

#: The table, beside LiteLLM's own modules.
TABLE = "model_prices_and_context_window_backup.json"


class Rates(NamedTuple):
    """Dollars for a token.

    kept, written: for one of the prompt that the provider took from its prefix cache, and that it put there.
    """

    prompt: float
    completion: float
    kept: float
    written: float


def price(name: str, reply: Reply) -> float | None:
    """Dollars for one call by LiteLLM's price table; 0 for models on this machine; None where the price is unknown."""
    rates = _rates(name)
    if rates is None:
        return None
    kept = reply.prefix_tokens
    written = reply.written_tokens
    plain = max(0, reply.prompt_tokens - kept - written)
    prompt = plain * rates.prompt + kept * rates.kept + written * rates.written
    full = prompt + reply.completion_tokens * rates.completion
    return full * (1.0 - reply.discount)


def shared_price(names: Sequence[str], reply: Reply) -> float | None:
    """Return the dollars for calls that these models share in equal parts; None where a price is unknown."""
    amounts = list[float]()
    for name in names:
        amount = price(name, reply)
        if amount is None:
            return None
        amounts.append(amount)
    return math.fsum(amounts) / len(amounts) if amounts else None


def check_priced(*names: str) -> None:
    """Check that the price of every model is known, without which no limit of cost can be kept.

    Raises:
        OptionError: For a model whose price is unknown.
    """
    for name in names:
        if price(name, Reply("")) is None:
            raise OptionError(
                f"the price of {name} is unknown, so a cost cannot be kept to; use --max-calls"
            )


def listed_context(name: str) -> int | None:
    """Return the tokens that a model reads at once; None where that is not known."""
    own = provider_of(name).context()
    if own is not None:
        return own
    entry = _listed(name) or _listed(name.partition("/")[2]) or {}
    most = entry.get("max_input_tokens")
    return most if isinstance(most, int) else None


@cache
def _listed(name: str) -> dict[str, Any] | None:
    # Unless LiteLLM is loaded anyway, its table is read from the file: importing the library takes seconds, and a model
    # behind our own connection needs nothing else of it.
    if "litellm" in sys.modules:
        table = sys.modules["litellm"].model_cost
    else:
        folder = importlib.util.find_spec("litellm").submodule_search_locations[0]  # type: ignore[union-attr,index]
        table = orjson.loads(Path(folder, TABLE).read_bytes())
    entry: Any = table.get(name)
    return entry if isinstance(entry, dict) else None


def _sold(name: str) -> dict[str, Any] | None:
    """Return what a provider asks for a model: under the whole name, or under the model's where that is its own."""
    provider, _, model = name.partition("/")
    entry = _listed(name)
    if entry is None and model:
        entry = _listed(model)
        seller = (entry or {}).get("litellm_provider") or provider
        if provider not in re.split("[_-]", seller) and provider != seller:
            return None
    return entry


@cache
def _rates(name: str) -> Rates | None:
    if provider_of(name).free:
        return Rates(0.0, 0.0, 0.0, 0.0)
    entry = _sold(name)
    if entry is None or "input_cost_per_token" not in entry:
        return None
    prompt = entry["input_cost_per_token"]
    return Rates(
        prompt,
        entry.get("output_cost_per_token") or 0.0,
        entry.get("cache_read_input_token_cost") or prompt,
        entry.get("cache_creation_input_token_cost") or prompt,
    )


@dataclass(slots=True)
class Meter:
    """Counts what a model was used for.

    `logical` and `cost` count calls whether or not the disk answered them, so that a resumed run stops at the same
    place as one that was never interrupted; `paid` is what calls that were sent cost, None from the first one on whose
    price is unknown.
    """

    usage: Usage = field(default_factory=Usage)
    logical: int = 0
    logical_tokens: tuple[int, int] = (0, 0)
    cost: float = 0.0
    paid: float | None = 0.0
    max_calls: int | None = None
    max_cost: float | None = None

    def admit(self) -> None:
        """Count a call that is about to be made.

        Raises:
            BudgetError: If the limit of calls or of cost is reached.
        """
        if self.max_calls is not None and self.logical >= self.max_calls:
            raise BudgetError(f"the budget of {self.max_calls} calls is used up")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetError(f"the budget of ${self.max_cost:g} is used up")
        self.logical += 1

    def count(self, reply: Reply, usage: Usage, cost: float | None) -> None:
        """Count a call that was answered.

        Args:
            reply: The answer.
            usage: What the call used; no call if the answer was kept.
            cost: The price of the answer in dollars; None if it is unknown.
        """
        self.usage += usage
        sent, got = self.logical_tokens
        self.logical_tokens = (
            sent + reply.prompt_tokens,
            got + reply.completion_tokens,
        )
        self.cost += cost or 0.0
        if not usage.calls:
            return
        if cost is None or self.paid is None:
            self.paid = None
        else:
            self.paid += cost
