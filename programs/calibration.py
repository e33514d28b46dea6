"""From a judge's raw 0–100 to the user's scale: a strictly increasing map, so that ranks never change."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike
from pydantic import ConfigDict, Field

from ..errors import ArtifactError
from ..signatures.values import CLOSED, Scale

#: Share of the plain linear map that is mixed in; it makes the isotonic steps strictly increasing.
SLOPE = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """A piecewise linear map through knots, raw percent → score. Both sequences strictly increase; outside the first
    and last knot (0 and 100) values are clipped."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    percent: Annotated[tuple[float, ...], Field(max_length=64)]
    score: Annotated[tuple[float, ...], Field(max_length=64)]

    def __post_init__(self) -> None:
        if len(self.percent) != len(self.score) or len(self.percent) < 2:
            raise ArtifactError("a calibration needs two or more knots, as many percents as scores")
        both = (self.percent, self.score)
        if not all(math.isfinite(x) for knots in both for x in knots):
            raise ArtifactError("a calibration's knots must be finite numbers")
        if any(b <= a for knots in both for a, b in itertools.pairwise(knots)):
            raise ArtifactError("a calibration's knots must strictly increase")

    def __call__(self, percent: float) -> float:
        return float(np.interp(percent, self.percent, self.score))

    @classmethod
    def linear(cls, scale: Scale) -> Self:
        return cls((0.0, 100.0), (scale.low, scale.high))

    @classmethod
    def fit(cls, percent: ArrayLike, human: ArrayLike, scale: Scale) -> Self:
        """Learn the map from raw scores and human scores of the same rows (1-D, equal length; NaN rows left out).

        Isotonic regression on the means of up to six equally filled bins, mixed with the plain linear map. With fewer
        than five usable rows, or constant raw scores, the plain linear map.
        """
        x, y = np.asarray(percent, float), np.asarray(human, float)
        usable = np.isfinite(x) & np.isfinite(y)
        x, y = x[usable], y[usable]
        if len(x) < 5 or np.ptp(x) == 0:
            return cls.linear(scale)
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        bins = np.array_split(np.arange(len(x)), min(6, max(2, len(x) // 5)))
        centres = np.array([x[b].mean() for b in bins])
        levels = np.array([y[b].mean() for b in bins])
        weights = np.array([len(b) for b in bins], float)
        # Coarse enough that knots still differ after rounding, whatever the scale's extent.
        centres, same = np.unique(np.round(centres, 3), return_inverse=True)
        levels = np.bincount(same, weights * levels) / np.bincount(same, weights)
        weights = np.bincount(same, weights)
        levels = scipy.optimize.isotonic_regression(levels, weights=weights).x
        inside = (centres > 0.5) & (centres < 99.5)
        if not inside.any():
            return cls.linear(scale)
        levels = np.clip((levels - scale.low) / (scale.high - scale.low), 0.0, 1.0)
        # The ends keep the outermost levels' distance, pulled to the scale's own ends.
        knots = np.concatenate([[0.0], centres[inside], [100.0]])
        fitted = np.maximum.accumulate(np.concatenate([[levels[0] / 2], levels[inside], [(levels[-1] + 1) / 2]]))
        mixed = np.round((1 - SLOPE) * fitted + SLOPE * knots / 100.0, 10)
        return cls(tuple(knots.tolist()), tuple((scale.low + (scale.high - scale.low) * mixed).tolist()))
