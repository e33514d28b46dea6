"""What would more labels gain beside this judge? A learning curve from the labels at hand.

Labels are split by documents again and again. Parts of one side weigh the judge's score and counts of the text, as
compiling does, and the other side says what that gained. Gains with m labels are taken to follow a · m / (m + b): b is
the same for all judges, and how a differs between judges was learnt from recorded ones. The labels at hand move the
usual a as far as they are certain; with few of them they hardly do, and the interval says so.

Source: of the form, the learning curve of a linear model with a Gaussian prior (Rasmussen and Williams 2006, §7.3); the
composition is ours (experiments/results/advice.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.versions import Belief
from judgesmith.optimizers.fitting.folds import numbered
from judgesmith.optimizers.fitting.readings import agreement, beside
from judgesmith.programs.readings.facts import facts
from judgesmith.programs.readings.head import Readings, Vector
from judgesmith.programs.readings.kinds import SIGNAL, reference, surface
from judgesmith.programs.readings.passages import Text

#: The judge's own score among the readings.
OWN = f"{SIGNAL}.own"
#: Numbers of labels that are spoken of.
SPOKEN = (20, 40, 100, 200)
#: With fewer labels, or documents, nothing is said.
FEWEST = 24
FEWEST_GROUPS = 8
#: Of more labels so many are used, of whole documents.
MOST_ROWS = 400
#: Splits of the labels, the share that is tested on, and shares of the rest that are learnt from.
SPLITS = 8
TESTED = 0.35
LEARNT = (0.5, 1.0)
#: Parts of the documents that are left out of the test in turn, for the error.
BLOCKS = 8
FEWEST_LEARNT = 8
#: A gain is never known better: where the judge was kept throughout, resampling says nothing of the next labels.
LEAST_ERROR = 0.04
#: What luck with the labels adds to half the width of an 80 % interval, however few they are.
LUCK = 0.08


@dataclass(frozen=True)
class Usual:
    """What gains look like beside recorded judges.

    half: so many labels reach half of what any number could gain. That is `most` on average, with this spread between
    judges; a share of them, `odd`, misses what labels mend: it gains `far`, with as large a spread.
    """

    half: float
    most: float
    spread: float
    odd: float
    far: float

    def share(self, labels: float) -> float:
        """Return the share of a that so many labels gain."""
        return labels / (labels + self.half)

    @property
    def mean(self) -> float:
        """The mean a of all judges."""
        return (1 - self.odd) * self.most + self.odd * self.far

    def told(self, alone: float, error: float) -> Belief:
        """Return what is known of a, by labels that tell it with this error."""
        centres = np.array([self.most, self.far])
        before = np.array([self.spread, self.far]) ** 2
        square = error**2
        seen = before + square
        apart = alone - centres
        misfit = apart**2 / seen
        fits = np.exp(-(misfit - misfit.min()) / 2) / np.sqrt(seen)
        weights = np.array([1 - self.odd, self.odd]) * fits
        means = centres + before / seen * apart
        deviations = np.sqrt(before * square / seen)
        return Belief(means, deviations, weights / weights.sum())


#: Learnt from the recorded judges of experiments/results/advice.md.
USUAL = Usual(200.0, 0.07, 0.2, 0.12, 1.27)


@dataclass(frozen=True)
class Curve:
    """What labels gain in Q beside a judge.

    labels: at hand. own: the judge's Q on them. alone: a by these labels alone, with its error. most: what is known of
    it, with what is usual.
    """

    labels: int
    own: float
    alone: tuple[float, float]
    usual: Usual
    most: Belief

    @classmethod
    def of(
        cls, labels: int, own: float, alone: tuple[float, float], usual: Usual
    ) -> Curve:
        """Return the curve by a and its error as the labels tell it."""
        return cls(labels, own, alone, usual, usual.told(*alone))

    def gain(self, labels: int) -> tuple[float, float, float]:
        """Return the gain of so many labels, with an 80 % interval."""
        low, high = self.most.interval(0.8)
        mean = self.most.mean
        share = self.usual.share(labels)
        below = math.hypot(share * (mean - low), LUCK)
        above = math.hypot(share * (high - mean), LUCK)
        return share * mean, share * mean - below, share * mean + above

    @property
    def certain(self) -> bool:
        """True where the interval of `most` leaves 0 out; those of gains also hold luck with the labels."""
        return self.most.interval(0.8)[0] > 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        gains = dict[str, dict[str, float]]()
        for labels in SPOKEN:
            value, low, high = self.gain(labels)
            gains[str(labels)] = {"value": value, "low": low, "high": high}
        return {
            "labels": self.labels,
            "q": self.own,
            "gains": gains,
            "certain": self.certain,
        }

    def __str__(self) -> str:
        said = []
        for labels in SPOKEN:
            value, low, high = self.gain(labels)
            said.append(f"{labels} labels {value:+.2f} [{low:+.2f}, {high:+.2f}]")
        gains = ", ".join(said)
        told = f"Beside this judge (Q {self.own:.2f}), weighing it by labels gains about: {gains} (80 % intervals)."
        if not self.certain:
            told += f" These {self.labels} labels cannot tell it from nothing."
        return told


def curve(
    own: Vector,
    texts: Sequence[Text],
    scores: Vector,
    groups: Sequence[str],
    *,
    usual: Usual = USUAL,
    seed: int = 0,
) -> Curve | None:
    """Return the learning curve beside a judge; None for too few labels or documents, or where nothing varies.

    Args:
        own: the judge's score of each labelled row; NaN where it failed.
        texts: the texts of each row.
        scores: people's ratings, in percent.
        groups: rows that are kept on one side.
        usual: what gains look like elsewhere.
        seed: of the splits.
    """
    at = _some(np.flatnonzero(np.isfinite(own)), groups, seed)
    rows = [texts[i] for i in at.tolist()]
    members = [groups[i] for i in at.tolist()]
    few = len(at) < FEWEST or len(set(members)) < FEWEST_GROUPS
    if few or np.ptp(own[at]) == 0 or np.ptp(scores[at]) == 0:
        return None
    table = with_counts(own[at], counts_of(rows, members))
    return curve_of(table, scores[at], usual=usual, seed=seed)


def _some(
    known: NDArray[np.intp], groups: Sequence[str], seed: int
) -> NDArray[np.intp]:
    """Return rows of whole groups, drawn until there are enough."""
    members = np.array([groups[i] for i in known.tolist()], dtype=object)
    names = np.random.default_rng(seed).permutation(sorted(set(members.tolist())))
    taken: list[int] = []
    for name in names.tolist():
        if len(taken) < MOST_ROWS:
            taken += known[members == name].tolist()
    return np.array(sorted(taken), dtype=np.intp)


def curve_of(
    table: Readings, scores: Vector, *, usual: Usual = USUAL, seed: int = 0
) -> Curve:
    """Return the learning curve of a table whose first reading is the judge's score."""
    own = table.columns([OWN])[:, 0]
    splits = [_split(table, scores, own, [seed, k]) for k in range(SPLITS)]
    x = np.array([usual.share(size) for split in splits for size in split.sizes])

    def most(left_out: int) -> float:
        gains = np.array([gain for one in splits for gain in one.gains(left_out)])
        some = np.isfinite(gains)
        return float(x[some] @ gains[some] / max(x[some] @ x[some], 1e-9))

    alone = most(-1)
    parts = np.array([most(block) for block in range(BLOCKS)])
    square = float(((parts - parts.mean()) ** 2).sum())
    error = math.sqrt((BLOCKS - 1) / BLOCKS * square)
    error = max(error, LEAST_ERROR / float(x.max()))
    return Curve.of(len(table), agreement(own, scores), (alone, error), usual)


def curve_of_lead(
    labels: int,
    learnt: float,
    own: float,
    lead: tuple[float, float],
    usual: Usual = USUAL,
) -> Curve:
    """Return the learning curve by one lead that was measured.

    Args:
        labels: at hand.
        learnt: how many of them a judge learnt from when it was measured.
        own: the Q of the judge beside which they are weighed.
        lead: the gain in Q, and its standard error.
        usual: what gains look like elsewhere.
    """
    share = usual.share(learnt)
    error = max(lead[1], LEAST_ERROR) / share
    return Curve.of(labels, own, (lead[0] / share, error), usual)


def with_counts(own: Vector, counted: Readings) -> Readings:
    """Return the judge's score beside what is counted in the texts, as compiling beside a judge weighs them."""
    values = np.column_stack([own, counted.values])
    return Readings((OWN, *counted.names), values, counted.groups)


def counts_of(texts: Sequence[Text], groups: Sequence[str]) -> Readings:
    """Count words and facts of texts; no model reads them."""
    found = []
    for text in texts:
        words = surface(text.material, text.judged)
        overlap = reference(text.reference, text.judged)
        of_surface = {f"surface.{name}": v for name, v in (words | overlap).items()}
        of_facts = {f"facts.{name}": v for name, v in facts(text).items()}
        found.append(of_surface | of_facts)
    values = np.array([list(row.values()) for row in found], dtype=np.float64)
    return Readings(tuple(found[0]), values, tuple(groups))


@dataclass(frozen=True)
class _Split:
    """One split: numbers of labels, the test rows' scores by each, by the judge alone, by people, and their blocks."""

    sizes: tuple[int, ...]
    mixed: tuple[Vector, ...]
    own: Vector
    human: Vector
    blocks: NDArray[np.intp]

    def gains(self, left_out: int) -> list[float]:
        """Return the gain with each number of labels, without a block of the test's documents; NaN of too few rows."""
        at = self.blocks != left_out
        if at.sum() < FEWEST_LEARNT or np.ptp(self.human[at]) == 0:
            return [math.nan] * len(self.sizes)
        before = agreement(self.own[at], self.human[at])
        return [agreement(one[at], self.human[at]) - before for one in self.mixed]


def _split(table: Readings, scores: Vector, own: Vector, seed: Sequence[int]) -> _Split:
    """Learn from parts of one side, and score the other."""
    rng = np.random.default_rng(seed)
    group = numbered(table.groups)
    order = rng.permutation(int(group.max()) + 1)
    place = np.argsort(order)[group]
    by_place = np.sort(place)
    edge = by_place[round(TESTED * len(place))]
    test = np.flatnonzero(place < max(1, edge))
    rest = np.flatnonzero(place >= max(1, edge))
    rest = rest[np.argsort(place[rest], kind="stable")]
    sizes = []
    mixed = []
    for share in LEARNT:
        size = round(share * len(rest))
        at = rest[:size]
        if size < FEWEST_LEARNT or len(set(group[at].tolist())) < 2:
            continue
        sizes.append(size)
        head, taken = beside(table.rows(at), scores[at], OWN)
        mixed.append(head(table.rows(test)) if taken else own[test])
    # Blocks are of all documents, so that one that is left out is left out of every split.
    return _Split(
        tuple(sizes), tuple(mixed), own[test], scores[test], group[test] % BLOCKS
    )
