"""An estimate of what a run over rows would take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.capabilities import answering, passes_over, read_by
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import pace
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.models.price import shared_price
from judgesmith.programs.models.provider import is_local
from judgesmith.running.opening import expected_seconds, reading_seconds
from judgesmith.signatures.values import Item

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
    method = judge.method
    own = method.cost().calls_per_row
    calls = own + judge.explains
    sizes = list(_prompt_tokens(judge, sample))
    tokens = round(sum(size for size, _ in sizes) / max(1, len(sizes)))
    prompt = rows * calls * tokens
    completion = rows * calls * ANSWER_TOKENS
    reply = Reply("", None, prompt, completion)
    if model is None:
        cost = None
    else:
        cost = shared_price(answering(method, model), reply)
    each = rows / max(1, len(sample))
    read = passes_over(method, sample)
    passes = round(each * read.count)
    read_tokens = round(each * read.tokens)
    here = each * read.work
    seconds = 0.0
    if model and is_local(model):
        written = 0 if method.brief else ANSWER_TOKENS
        for size, fresh in sizes:
            here += each * own * pace.of_call(size, fresh, written)
            here += each * judge.explains * pace.of_call(size, fresh, ANSWER_TOKENS)
    else:
        seconds = expected_seconds(rows * calls, model, where)
    seconds += reading_seconds(here, [model or "", *read_by(method)])
    return Estimate(
        rows, rows * calls, prompt, completion, cost, seconds, passes, read_tokens
    )


def _prompt_tokens(
    judge: Judge, sample: Sequence[Item]
) -> Iterator[tuple[float, float]]:
    """Yield about the tokens of a call for each row, and those behind what the prompt before begins with, too."""
    last: list[str] = []
    for item in sample:
        try:
            sent = judge.previews(item).values()
            texts = ["".join(one["content"] for one in messages) for messages in sent]
        except NotImplementedError:  # a method that has no prompt of its own
            texts = []
        if not texts:
            parts = (item.source, item.output, item.context, item.reference)
            texts = [" " * 900 + "".join(part or "" for part in parts)]
        size = sum(map(len, texts))
        same = sum(map(_beginning, texts, last))
        last = texts
        count = len(texts) * CHARACTERS_A_TOKEN
        yield size / count, (size - same) / count


def _beginning(one: str, other: str) -> int:
    """Return the number of characters that both texts begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
