"""Numbers from the log-probabilities of a text's tokens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .reader import TokenReading

__all__ = ["LIKELIER_IS_BETTER", "lift", "likelihoods"]

#: The likelihoods whose direction is known without labels: a likelier text is a better one.
LIKELIER_IS_BETTER = ("mean", "min", "q10", "q25", "q50")


def likelihoods(reading: TokenReading) -> dict[str, float]:
    """A passage's numbers, in nats.

    mean, min, sum, q10, q25, q50: of log p over the target's tokens. excess: the mean of -log p - entropy, how much
    more surprising the tokens were than the model itself expected. gap: the mean of top - log p, how far the tokens lie
    behind the likeliest ones. tokens: log of their number. excess and gap are NaN where the reader cannot give them.
    """
    logp = reading.logp.astype(np.float64)
    low, lower, middle = np.quantile(logp, (0.1, 0.25, 0.5))
    return {
        "mean": float(logp.mean()),
        "min": float(logp.min()),
        "sum": float(logp.sum()),
        "q10": float(low),
        "q25": float(lower),
        "q50": float(middle),
        "excess": float((-logp - reading.entropy).mean()),
        "gap": float((reading.top - logp).mean()),
        "tokens": float(np.log(len(logp))),
    }


def lift(given: Mapping[str, float], bare: Mapping[str, float]) -> float:
    """How much the source and the instruction make the text likelier: the difference of the means (pointwise mutual
    information a token)."""
    return given["mean"] - bare["mean"]
