"""Map a judge's raw percent to the score on the user's scale, its interval, a category, and preferences.

The fits for these come from `optimizers.fitting`.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, Field

from judgesmith.errors import ArtifactError
from judgesmith.signatures.values import (
    CLOSED,
    Details,
    Item,
    Scale,
    ScoreInterval,
    Verdict,
)
from judgesmith.wording import word_count

#: The scale of raw scores.
PERCENT = Scale(0, 100)
#: Share of the plain linear map that is mixed in; it makes the isotonic steps strictly increasing.
SLOPE = 0.05
#: Rows without which no map is learnt.
FEWEST = 5


def significant(number: float) -> float:
    """Return a number as a saved judge keeps it: seven digits, however small it is, so that none above 0 becomes 0."""
    return float(f"{number:.7g}")


@dataclass(frozen=True, slots=True)
class Calibration:
    """A piecewise linear map through knots, raw percent → score.

    Both sequences strictly increase; outside the first and last knot (0 and 100) values are clipped.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    percent: Annotated[tuple[float, ...], Field(max_length=64)]
    score: Annotated[tuple[float, ...], Field(max_length=64)]

    def __post_init__(self) -> None:
        if len(self.percent) != len(self.score) or len(self.percent) < 2:
            raise ArtifactError(
                "a calibration needs two or more knots, as many percents as scores"
            )
        both = (self.percent, self.score)
        if not all(math.isfinite(x) for knots in both for x in knots):
            raise ArtifactError("a calibration's knots must be finite numbers")
        if not all(map(_increases, both)):
            raise ArtifactError("a calibration's knots must strictly increase")

    def __call__(self, percent: float) -> float:
        """Map a raw percent to a score; linear between the points, constant outside."""
        return _interpolated(percent, self.percent, self.score)

    @classmethod
    def linear(cls, scale: Scale) -> Self:
        """Return the straight line from 0..100 to a scale."""
        return cls((0.0, 100.0), (scale.low, scale.high))

    @classmethod
    def line(cls, percent: ArrayLike, human: ArrayLike, scale: Scale) -> Self:
        """Learn a straight line, under which no agreement changes, from raw and human scores (1-D; NaN rows left out).

        It is the least-squares line, turned about its middle as far as it has to be to stay on the scale. Beyond the
        rows' raw scores it bends towards the scale's ends. Where raw scores do not rise with people's, or with fewer
        than five usable rows, the plain linear map.
        """
        x, y = _usable(percent, human)
        if len(x) < FEWEST or np.var(x) == 0:
            return cls.linear(scale)
        slope = float(np.cov(x, y)[0, 1] / np.var(x, ddof=1))
        low = float(x.min())
        high = float(x.max())
        # Room is left for raw scores that no row has.
        shares = np.array([SLOPE * low, 100 - SLOPE * (100 - high)]) / 100
        ends = scale.low + (scale.high - scale.low) * shares
        middle = float(np.clip(y.mean(), *ends))
        away = np.array([low, high]) - x.mean()
        slope = min(slope, *((ends - middle) / away).tolist())
        if slope <= 0:
            return cls.linear(scale)
        first, last = (middle + slope * away).tolist()
        line = {0.0: (scale.low + first) / 2, 100.0: (last + scale.high) / 2}
        line |= {low: first, high: last}
        percents = sorted(line)
        scores = [round(line[place], 10) for place in percents]
        rising = _increases(percents) and _increases(scores)
        return cls(tuple(percents), tuple(scores)) if rising else cls.linear(scale)

    @classmethod
    def fit(cls, percent: ArrayLike, human: ArrayLike, scale: Scale) -> Self:
        """Learn the map from raw scores and human scores of the same rows (1-D, equal length; NaN rows left out).

        Isotonic regression on the means of up to six equally filled bins, mixed with the plain linear map. With fewer
        than five usable rows, or constant raw scores, the plain linear map.
        """
        x, y = _usable(percent, human)
        if len(x) < FEWEST or np.ptp(x) == 0:
            return cls.linear(scale)
        order = np.argsort(x, kind="stable")
        x = x[order]
        y = y[order]
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
        fitted = np.maximum.accumulate(
            np.concatenate([[levels[0] / 2], levels[inside], [(levels[-1] + 1) / 2]])
        )
        mixed = np.round((1 - SLOPE) * fitted + SLOPE * knots / 100.0, 10)
        scores = np.clip(
            scale.low + (scale.high - scale.low) * mixed, scale.low, scale.high
        )
        # On a narrow scale far from 0 floats are too coarse for all knots.
        rising = np.append(True, scores[1:] > np.maximum.accumulate(scores)[:-1])
        if rising.sum() < 2:
            return cls.linear(scale)
        return cls(tuple(knots[rising].tolist()), tuple(scores[rising].tolist()))


#: Raw scores, human scores and the scale -> the map.
CalibrationFit = Callable[[ArrayLike, ArrayLike, Scale], Calibration]


def _usable(
    percent: ArrayLike, human: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the raw and the human scores of the rows that have both."""
    x = np.asarray(percent, float)
    y = np.asarray(human, float)
    usable = np.isfinite(x) & np.isfinite(y)
    return x[usable], y[usable]


def _increases(knots: Sequence[float]) -> bool:
    """Return True if the numbers strictly increase."""
    return all(a < b for a, b in itertools.pairwise(knots))


def _interpolated(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return `np.interp(x, xs, ys)`, which takes ten times as long for one number."""
    place = bisect_right(xs, x) - 1
    if math.isnan(x) or place < 0:
        return x if math.isnan(x) else float(ys[0])
    if place == len(xs) - 1 or xs[place] == x:
        return float(ys[place])
    slope = (ys[place + 1] - ys[place]) / (xs[place + 1] - xs[place])
    return float(slope * (x - xs[place]) + ys[place])


@lru_cache(maxsize=64)
def _linear(scale: Scale) -> Calibration:
    return Calibration.linear(scale)


#: Categories of a decision at most.
MOST_CATEGORIES = 20


@dataclass(frozen=True, slots=True)
class Decision:
    """Categories, worst first, and where each after the first begins, in raw percent.

    The cuts increase, not always strictly: a category that no score reaches is one with the next one that a score does.
    binary: the two categories are fail and pass, whatever they are called.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    names: tuple[Annotated[str, Field(max_length=200)], ...]
    cuts: tuple[float, ...]
    binary: bool = False

    def __post_init__(self) -> None:
        if (
            not 2 <= len(self.names) <= MOST_CATEGORIES
            or len(self.cuts) != len(self.names) - 1
        ):
            raise ArtifactError(
                f"a decision needs 2 to {MOST_CATEGORIES} categories and one cut less"
            )
        if len(set(self.names)) < len(self.names) or not all(self.names):
            raise ArtifactError("a decision's categories must be different words")
        if not all(math.isfinite(cut) for cut in self.cuts) or any(
            b < a for a, b in itertools.pairwise(self.cuts)
        ):
            raise ArtifactError(
                "a decision's cuts must be finite numbers that do not decrease"
            )
        if self.binary and len(self.names) != 2:
            raise ArtifactError("a decision between pass and fail has two categories")

    def place(self, percent: float) -> int:
        """Return the category's place, from 0."""
        return bisect_right(self.cuts, percent)

    def category(self, percent: float) -> str:
        """Return the category's name, or the names of all that are one with it: "4 stars or 5 stars"."""
        return " or ".join(
            next(names for last, names in self.merged() if self.place(percent) <= last)
        )

    def merged(self) -> list[tuple[int, list[str]]]:
        """(last place, names) of what scores tell apart, worst first; fail and pass stay apart."""
        merged = list[tuple[int, list[str]]]()
        names = list[str]()
        ends = (*self.cuts, math.inf)
        for place, (name, end) in enumerate(zip(self.names, ends, strict=True)):
            begin = max(0.0, ends[place - 1]) if place else 0.0
            names = [*names, name]
            if self.binary or (begin < end and begin <= 100):
                merged = [*merged, (place, names)]
                names = []
        return [*merged[:-1], (len(self.names) - 1, merged[-1][1] + names)]

    def passed(self, percent: float) -> bool | None:
        """Return whether it passes; None for categories other than pass and fail."""
        return bool(self.place(percent)) if self.binary else None

    def __str__(self) -> str:
        (first, worst), *others = merged = self.merged()
        parts = [" or ".join(worst)]
        before = first
        for last, names in others:
            cut = self.cuts[before]
            parts.append(
                f"{' or '.join(names)} "
                + (f"from {cut:.1f}" if cut <= 100 else "never")
            )
            before = last
        joined = [names for _, names in merged if len(names) > 1]
        if joined:
            note = f" (no score tells apart {'; '.join(map(', '.join, joined))})"
        else:
            note = ""
        return f"{', '.join(parts)} of 100{note}"


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """Probabilities of a preference by the lead of one output over the other.

    The lead in raw percent over `width` is the log-odds that people who prefer one prefer the one that leads. tie: how
    likely a tie is beside either, if neither leads; 0 if people gave none. Source: Bradley & Terry 1952; ties as in
    Davidson 1970.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    width: float
    tie: float = 0.0

    def __post_init__(self) -> None:
        if not (
            math.isfinite(self.width)
            and self.width > 0
            and math.isfinite(self.tie)
            and self.tie >= 0
        ):
            raise ArtifactError(
                "a preference needs a finite width above 0 and a tie of 0 or more"
            )

    def chances(self, a: float, b: float) -> tuple[float, float, float]:
        """(first preferred, tie, second preferred), which sum to 1, from raw percents; NaN where one is."""
        if math.isnan(a) or math.isnan(b):
            return math.nan, math.nan, math.nan
        lead = min(100.0, max(-100.0, (a - b) / self.width)) / 2
        parts = math.exp(lead), self.tie, math.exp(-lead)
        return parts[0] / sum(parts), parts[1] / sum(parts), parts[2] / sum(parts)

    def preferred(self, a: Verdict, b: Verdict) -> Preference:
        """Return people's likely preference between two judged outputs."""
        return Preference(*self.chances(a.percent, b.percent), (a, b))

    def __str__(self) -> str:
        return f"a lead of {self.width * math.log(3):.1f} of 100 is right in three of four preferences"


@dataclass(frozen=True, slots=True)
class Preference:
    """People's likely preference between two outputs.

    a, tie, b: probabilities, NaN if an output has no score; verdicts: on each.
    """

    a: float
    tie: float
    b: float
    verdicts: tuple[Verdict, Verdict]

    @property
    def winner(self) -> Literal["a", "b", "tie"] | None:
        """Return the likeliest; None if an output has no score."""
        if math.isnan(self.a):
            return None
        if self.tie >= max(self.a, self.b) or self.a == self.b:
            return "tie"
        return "a" if self.a > self.b else "b"

    def verdict(self) -> Verdict:
        """Return the preference as one verdict, with the verdicts on both in its details.

        Its score is the probability of a, a tie counting half, its category the winner. If an output has no score, the
        failure names it.
        """
        first, second = self.verdicts
        usage = first.usage + second.usage
        both = Sides(first.to_dict(), second.to_dict())
        failed = [
            f"output {name}: {verdict.failure}"
            for name, verdict in zip("ab", self.verdicts, strict=True)
            if verdict.failure
        ]
        suspicious = [
            f"output {name}: {verdict.suspicious}"
            for name, verdict in zip("ab", self.verdicts, strict=True)
            if verdict.suspicious
        ]
        if failed or self.winner is None:
            return Verdict.failed(
                "; ".join(failed) or "an output has no score", usage=usage
            )
        return Verdict(
            score=self.a + self.tie / 2,
            percent=100 * (self.a + self.tie / 2),
            category=self.winner,
            details=both,
            explanation=f"A is preferred with {self.a:.0%}, B with {self.b:.0%}"
            + (f", neither with {self.tie:.0%}" if self.tie else ""),
            repaired=first.repaired or second.repaired,
            suspicious="; ".join(suspicious) or None,
            partly={**first.partly, **second.partly},
            usage=usage,
        )


@dataclass(frozen=True, slots=True)
class Sides(Details):
    """The verdicts on two outputs that were compared, as JSON values."""

    a: dict[str, Any]
    b: dict[str, Any]


#: The coverage of a verdict's interval.
COVERAGE = 0.9
#: How many times as long as the longest labelled text, or as short as the shortest, a text is another kind of text,
#: beside some words that are no matter where all are short.
TIMES = 2
SOME = 10
#: What a note begins with, and ends in, on a row that is unlike all labelled ones.
FAR = "far from the rows that the judge learnt from"
NOT_MEASURED = "the score has no interval, and the judge's agreement with people does not hold for it"


@dataclass(frozen=True, slots=True)
class Sureness:
    """Intervals of scores, by conformal prediction from errors on rows that the judge had not learnt from.

    error: the expected distance from human ratings at these raw percents (strictly increasing), on the user's scale and
    above 0; linear between, constant outside. times: for each coverage (strictly increasing, in 0..1) how many times
    that distance the interval reaches to either side; None: there are too few documents to promise so much, and the
    interval is the whole scale. rows, documents: the numbers it rests on.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    percent: Annotated[
        tuple[Annotated[float, Field(ge=0, le=100)], ...],
        Field(min_length=1, max_length=64),
    ]
    error: Annotated[tuple[float, ...], Field(max_length=64)]
    coverage: Annotated[tuple[float, ...], Field(min_length=1, max_length=64)]
    times: Annotated[tuple[float | None, ...], Field(max_length=64)]
    rows: Annotated[int, Field(ge=1)]
    documents: Annotated[int, Field(ge=1)]
    seen: tuple[float, float] | None = None
    """The lowest and the highest raw percent of these rows; None in judges of earlier versions."""
    words: Mapping[Literal["output", "source"], tuple[int, int]] | None = None
    """The words of their shortest and longest text; None in judges of earlier versions."""

    def __post_init__(self) -> None:
        if len(self.percent) != len(self.error) or len(self.coverage) != len(
            self.times
        ):
            raise ArtifactError(
                "the sureness needs an error for each percent, and a multiple for each coverage"
            )
        if not all(math.isfinite(e) and e > 0 for e in self.error):
            raise ArtifactError("the sureness needs errors above 0")
        if not all(t is None or (math.isfinite(t) and t >= 0) for t in self.times):
            raise ArtifactError("the sureness needs multiples of 0 or more, or none")
        if not all(0 < c < 1 for c in self.coverage):
            raise ArtifactError("the sureness needs coverages between 0 and 1")
        if not _increases(self.percent) or not _increases(self.coverage):
            raise ArtifactError(
                "the sureness's percents and coverages must strictly increase"
            )
        if self.seen is not None and not 0 <= self.seen[0] <= self.seen[1] <= 100:
            raise ArtifactError("the sureness's range of percents leaves 0..100")

    def unlike(self, item: Item) -> str | None:
        """Return a note on a row with a text of another length than all labelled ones; None where there is none."""
        for name, (least, most) in (self.words or {}).items():
            count = word_count(getattr(item, name))
            if least - SOME <= TIMES * count and count <= TIMES * most + SOME:
                continue
            return (
                f"{FAR}: its {name} has {count:,} words, theirs have "
                f"{least:,} to {most:,}; {NOT_MEASURED}"
            )
        return None

    def beyond(self, percent: float) -> str | None:
        """Return a note on a raw percent outside those of the labelled rows, for which no interval was tested."""
        if self.seen is None or self.seen[0] <= percent <= self.seen[1]:
            return None
        low, high = self.seen
        return (
            f"its raw score, {percent:.3g}, is outside those of the labelled rows, {low:.3g} to {high:.3g}: "
            "the interval may be too narrow"
        )

    def expected_error(self, percent: float) -> float:
        """Return the expected distance from the human rating, on the user's scale."""
        return _interpolated(percent, self.percent, self.error)

    def interval(
        self, percent: float, score: float, scale: Scale, coverage: float = COVERAGE
    ) -> ScoreInterval | None:
        """Return the interval around a score, cut at the ends of the scale; None for an unprepared coverage."""
        if coverage not in self.coverage:
            return None
        error = self.expected_error(percent)
        times = self.times[self.coverage.index(coverage)]
        half = math.inf if times is None else times * error
        return ScoreInterval(
            max(scale.low, score - half), min(scale.high, score + half), coverage, error
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is made of a raw percent: a value, of which a judge holds one."""

    scale: Scale = PERCENT
    """The user's scale of scores."""
    calibration: Calibration | None = None
    """The map from raw percent to the scale; None: linear."""
    decision: Decision | None = None
    """Where categories, or pass and fail, begin; None unless the labels had such."""
    preference: BradleyTerry | None = None
    """How likely people prefer one of two outputs; None unless the labels were preferences."""
    sureness: Sureness | None = None
    """How sure a score is; None: unknown."""

    def __post_init__(self) -> None:
        knots = self.calibration
        scale = self.scale
        if knots is None:
            return
        slack = 1e-6 * (scale.high - scale.low)
        if knots.percent[0] < 0 or knots.percent[-1] > 100:
            raise ArtifactError("the calibration's percents leave 0..100")
        if knots.score[0] < scale.low - slack or knots.score[-1] > scale.high + slack:
            raise ArtifactError(f"the calibration's scores leave the scale {scale}")

    def _whole(self, interval: ScoreInterval) -> bool:
        """Return True if an interval promises nothing, since it is the whole scale."""
        return interval.low <= self.scale.low and interval.high >= self.scale.high

    def score(self, percent: float) -> float:
        """Return the score on the user's scale."""
        return (self.calibration or _linear(self.scale))(percent)

    def __call__(self, verdict: Verdict, item: Item | None = None) -> Verdict:
        """Complete a verdict that has a percent: score, interval, category, and pass or fail.

        Args:
            verdict: The verdict.
            item: The row, if it may be unlike the labelled ones, so that its score has no interval.
        """
        percent = verdict.percent
        score = self.score(percent)
        decided: dict[str, Any] = {"score": score}
        far = verdict.details is not None and verdict.details.is_far()
        if self.sureness is not None and item is not None and not far:
            note = self.sureness.unlike(item)
            if note is not None:
                far = True
                decided["notes"] = (*verdict.notes, note)
        if self.sureness is not None and not far:
            interval = self.sureness.interval(percent, score, self.scale)
            decided["interval"] = interval
            note = self.sureness.beyond(percent)
            if note is not None and interval is not None and not self._whole(interval):
                decided["notes"] = (*verdict.notes, note)
        if self.decision is not None:
            decided |= {
                "category": self.decision.category(percent),
                "passed": self.decision.passed(percent),
            }
        if verdict.details is not None:
            decided["details"] = verdict.details.on(self.scale)
        if not math.isnan(verdict.spread):
            decided["spread"] = (
                verdict.spread * (self.scale.high - self.scale.low) / 100
            )
        return verdict.model_copy(update=decided)
