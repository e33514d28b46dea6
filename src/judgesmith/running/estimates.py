"""An estimate of what a run over rows would take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.capabilities import answering, passes_of, read_by
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.models.price import shared_price
from judgesmith.running.opening import expected_seconds, reading_seconds
from judgesmith.signatures.values import Item, Passes

#: Rows whose prompts an estimate is made from.
SAMPLED = 50
#: As in the plan of compiling: characters and answer tokens.
CHARACTERS_A_TOKEN = 3.5
ANSWER_TOKENS = 45


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated cost of judging: calls (an upper bound), tokens, dollars (None: price unknown) and seconds.

    Passes of a model that reads the rows beside the calls are counted with their tokens; they cost time alone.
    """

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
        """Return plain JSON types."""
        return {"dry_run": True} | asdict(self) | {"seconds": round(self.seconds)}

    def __str__(self) -> str:
        from judgesmith.running.console import duration

        cost = "price unknown" if self.cost is None else f"about ${self.cost:.2f}"
        if self.passes:
            read = f"; {self.passes:,} passes of about {self.read_tokens:,} tokens read the rows"
        else:
            read = ""
        return (
            f"{self.rows:,} rows to judge: at most {self.calls:,} calls, about {self.prompt_tokens:,} + "
            f"{self.completion_tokens:,} tokens, {cost}, about {duration(self.seconds)}{read}. Nothing was spent."
        )


def estimate(
    judge: Judge,
    model: str | None,
    rows: int,
    sample: Sequence[Item],
    where: Connection | None,
) -> Estimate:
    """Estimate the cost of `rows` rows from a sample, without calling a model."""
    calls = judge.method.cost().calls_per_row + judge.explains
    if sample:
        tokens = round(
            sum(_prompt_tokens(judge, item) for item in sample) / len(sample)
        )
    else:
        tokens = 0
    prompt = rows * calls * tokens
    completion = rows * calls * ANSWER_TOKENS
    reply = Reply("", None, prompt, completion)
    if model is None:
        cost = None
    else:
        cost = shared_price(answering(judge.method, model), reply)
    each = rows / max(1, len(sample))
    read = sum((passes_of(judge.method, item) for item in sample), Passes())
    passes = round(each * read.count)
    read_tokens = round(each * read.tokens)
    seconds = expected_seconds(rows * calls, model, where)
    seconds += reading_seconds(read_tokens, [model or "", *read_by(judge.method)])
    return Estimate(
        rows, rows * calls, prompt, completion, cost, seconds, passes, read_tokens
    )


def _prompt_tokens(judge: Judge, item: Item) -> float:
    """Return the approximate number of tokens of one call."""
    try:
        sent = list(judge.previews(item).values())
    except NotImplementedError:  # a method that has no prompt of its own
        sent = []
    characters = 0
    for messages in sent:
        characters += sum(len(message["content"]) for message in messages)
    if not sent:
        texts = (item.source, item.output, item.context, item.reference)
        characters = 900 + sum(len(text or "") for text in texts)
    return characters / max(1, len(sent)) / CHARACTERS_A_TOKEN
