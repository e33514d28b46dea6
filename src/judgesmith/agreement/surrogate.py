"""What stands in for agreement while DSPy's own optimizers search: a row's part in it, measured against fixed rows.

DSPy's optimizers average a metric over examples; agreement belongs to the whole set and cannot be averaged. So each row
is compared with a fixed panel of other training rows, whose judge scores come from the zero-shot pass: does the new
score stand on the same side of each as the human score does? It is a surrogate: a prompt that shifts all scores alike
leaves true agreement alone but not this one, whose panel stays where it was. Nothing is chosen by it in the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from ..disarming import disarm

Vector = NDArray[np.float64]
#: Characters of a panel row's output that feedback quotes, and how many rows it quotes.
QUOTED, ROWS_QUOTED = 160, 3


class RankSurrogate:
    """A per-example DSPy metric in [0, 1]: concordance of one row with a panel of rows of other groups.

    For a row with human score h and predicted percent p, and panel rows j with human scores h_j and the zero-shot
    judge's percents p_j, the metric is the mean over j of (1 + sign(p - p_j) sign(h - h_j)) / 2: 1 where judge and
    people order the two rows alike, 0 where they order them the other way round, 0.5 where either sees a tie. With no
    panel row of another group it is 0.5. Its mean over rows is (1 + tau-a) / 2, with one side of each pair held fixed.

    A failed answer (NaN) is neither 0 nor the worst: it gets what the panel's own percents p_k, each put in the place
    of p, get on average, so that a failure is worth as much as an answer drawn at random from the judge's scores.

    examples: rows as `examples_of` makes them (`score` in percent, `group`). percents: the zero-shot judge's, in the
    same order; rows where it failed (NaN) are not on the panel. panel: rows on it at most, drawn by `seed`.
    """

    def __init__(
        self, examples: Sequence[dspy.Example], percents: Vector | Sequence[float], *, panel: int = 60, seed: int = 0
    ) -> None:
        scores = np.asarray(percents, dtype=float)
        answered = np.flatnonzero(np.isfinite(scores))
        if len(answered) > panel:
            drawn = np.random.default_rng([seed, 3]).permutation(answered)[:panel]
            answered = np.sort(drawn)
        self.rows = [examples[int(i)] for i in answered]
        self.percents: Vector = scores[answered]
        self.humans: Vector = np.array([e.score for e in self.rows], dtype=float)
        self._groups = np.array([e.group for e in self.rows], dtype=object)

    def __call__(self, example: dspy.Example, prediction: Any, trace: Any = None) -> float:
        """The metric; `prediction` needs a `percent`."""
        return self.concordance(example, _percent(prediction))

    def concordance(self, example: dspy.Example, percent: float) -> float:
        others = self._others(example)
        if not len(others):
            return 0.5
        people = np.sign(example.score - self.humans[others])
        panel = self.percents[others]
        drawn = panel if math.isnan(percent) else np.array([percent])
        judge = np.sign(drawn[:, None] - panel[None, :])
        return float(np.mean((1 + judge * people[None, :]) / 2))

    def feedback(self, example: dspy.Example, prediction: Any) -> str:
        """Feedback for a reflection model on one answer: where the judge's order contradicts people's. It holds human
        scores of the row and of panel rows, so these can find their way into the instructions it writes."""
        percent = _percent(prediction)
        people = f"People gave this output {example.score:.0f} of 100"
        if math.isnan(percent):
            why = getattr(prediction, "failure", None) or "no score could be read"
            return f"{people}; the judge gave no score ({_quote(str(why))})."
        others = self._others(example)
        judge = np.sign(percent - self.percents[others])
        human = np.sign(example.score - self.humans[others])
        wrong = [int(i) for i in others[judge * human < 0]]
        lines = [
            f"{people}, the judge {percent:.0f}. Compared with {len(others)} other outputs, the judge puts it on the "
            f"same side as people do {int(np.sum(judge * human > 0))} times and on the other side {len(wrong)} times."
        ]
        # The clearest contradictions first: people see the largest difference there.
        wrong.sort(key=lambda i: (-abs(example.score - self.humans[i]), i))
        for i in wrong[:ROWS_QUOTED]:
            below = self.humans[i] > example.score
            lines.append(
                f"People rate this other output {'higher' if below else 'lower'} ({self.humans[i]:.0f}), the judge "
                f'{"lower" if below else "higher"} ({self.percents[i]:.0f}): "{_quote(self.rows[i].output)}"'
            )
        return "\n".join(lines)

    def _others(self, example: dspy.Example) -> np.ndarray[Any, Any]:
        return np.flatnonzero(self._groups != example.group)


def _percent(prediction: Any) -> float:
    """The predicted percent; NaN for a failed answer or none at all."""
    value = getattr(prediction, "percent", None)
    return math.nan if value is None or getattr(prediction, "failure", None) else float(value)


def _quote(text: str) -> str:
    flat = " ".join(disarm(text).split())
    return flat if len(flat) <= QUOTED else flat[: QUOTED - 1] + "…"
