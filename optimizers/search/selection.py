"""The choice among the candidates of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

#: (one, other): whether candidate `one` clearly beats candidate `other`.
Beats = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class Contest:
    """The rule by which one candidate is chosen by their Qs. Candidate 0 is the model alone.

    parts: how far each is from the model alone (demonstrations, then changes of form). qualified: whether it may be
    chosen.
    """

    parts: Sequence[tuple[int, int]]
    qualified: Sequence[bool]

    def better(self, q: Sequence[float], one: int, other: int) -> bool:
        """Return True if `one` is to be preferred: qualified first, then Q, then fewer demonstrations and changes."""
        if self.qualified[one] != self.qualified[other]:
            return self.qualified[one]
        difference = q[one] - q[other]
        if abs(difference) > 1e-9:
            return difference > 0
        return self.parts[one] < self.parts[other]

    def best(self, q: Sequence[float]) -> int:
        """Return the preferred candidate of all, the earlier of two equal ones."""
        return reduce(
            lambda best, i: i if self.better(q, i, best) else best, range(len(q))
        )

    def chosen(self, q: Sequence[float], beats: Beats | None) -> int:
        """Return the candidate with the fewest demonstrations among those that the best one does not clearly beat.

        Demonstrations can harm a small model, so that the best by Q wins outright only over candidates that it clearly
        beats; the others tie. Whatever takes the place of the model alone has itself to beat it so. beats None: the
        best.
        """
        best = self.best(q)
        if beats is None:
            return best
        for i in sorted(range(len(q)), key=lambda i: self.parts[i]):
            if self.parts[i] >= self.parts[best]:
                break
            if self.qualified[best] and not self.qualified[i]:
                continue
            if i and (self.better(q, 0, i) or not beats(i, 0)):
                continue
            if not beats(best, i):
                return i
        return best
