"""What a model was used for, and the budget that it keeps to."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgesmith.errors import BudgetError
from judgesmith.programs.answers.reply import Reply
from judgesmith.signatures.values import Usage


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
