"""Estimates of systems' quality from many judge scores and few human ones: prediction-powered inference.

A judge's mean over all outputs is precise and may be wrong; the mean of a few human scores is right and imprecise. The
estimate is the human mean, corrected by how the judge's mean over all outputs departs from its mean over the labelled
ones. The judge may be biased, on another scale or useless: the interval stays valid and is then merely no narrower.

Sources: Angelopoulos et al. 2023, Prediction-powered inference (Science 382); Angelopoulos, Duchi and Zrnic 2023, PPI++
(arXiv:2311.01453), for the weight of the judge. `ppi-python` has the same mean estimator, but brings numba and
scikit-learn with it, and knows no documents. Pass rates are estimated in strata of verdicts instead (`rates`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Codes, Vector, id_codes, vector
from judgesmith.agreement.fields import json_values
from judgesmith.agreement.rates import Rate, rate, strata, together
from judgesmith.agreement.resampling import FEWEST_SYSTEMS
from judgesmith.agreement.significance import holm
from judgesmith.agreement.versions import (
    FEWEST_DOCUMENTS,
    FEWEST_SHRUNK,
    Belief,
    Line,
    Version,
    independent_variances,
    line_through,
    stretch,
)
from judgesmith.errors import LabelsError, OptionError
from judgesmith.tables import p_in_words

ALL = "all rows"
#: With fewer labelled documents the interval is wide and hardly to be trusted.
FEW_DOCUMENTS = 10


@dataclass(frozen=True, slots=True)
class SystemEstimate:
    """Estimated mean human rating of one system's outputs.

    mean, low, high: the estimate and its interval, on people's scale; NaN with a `reason` if there is none. naive: the
    judge's mean, as if it were people. human, human_low, human_high: from the labelled rows alone. effective: how many
    labels alone would give so narrow an interval, with an 80 % interval. rank_low, rank_high: ranks that the systems'
    differences leave open, 1 is best; 0 without an interval. n_human, n_judge: rows with a human score, and with a
    judge's.
    """

    system: str
    mean: float
    low: float
    high: float
    naive: float
    n_human: int
    n_judge: int
    human: float
    human_low: float
    human_high: float
    effective: float
    effective_low: float = math.nan
    effective_high: float = math.nan
    rank_low: int = 0
    rank_high: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """Mean of `a` less mean of `b`, with its interval. p: two-sided, after Holm over all pairs."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Estimates:
    """Systems from the best to the worst, and their differences.

    weight: weight of the judge (lambda of PPI++; 0: ignored; NaN for pass rates, which have strata). documents: of all
    rows. labelled_documents: those with a human score. at_large: the mean of systems like these, with an interval over
    systems (each counts once), while all other intervals cover these systems; NaN for fewer than 3. on_line: systems
    whose means are drawn to the line of people's means by the judge's; 0 if none are.
    """

    systems: tuple[SystemEstimate, ...]
    differences: tuple[SystemDifference, ...]
    weight: float
    confidence: float
    documents: int
    labelled_documents: int
    notes: tuple[str, ...] = ()
    at_large: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    on_line: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; the systems by their names."""
        result: dict[str, Any] = json_values(asdict(self))
        return result | {
            "systems": {system.pop("system"): system for system in result["systems"]}
        }


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of one system.

    spread: range of its human scores. human, judge: means over its labelled rows. naive: of the judge over all. a, b,
    c: each document's share in the error of the human mean, of the judge's correction, and of the judge's mean over
    all.
    """

    rows: int
    labels: int
    clusters: int
    spread: float
    human: float
    judge: float
    naive: float
    a: Vector
    b: Vector
    c: Vector

    @property
    def reason(self) -> str | None:
        """The reason if there is no interval, else None."""
        if not self.labels:
            return "no row has a human score"
        if self.clusters < 2:
            return "human scores of one document only: no interval"
        if self.spread > 0:
            return None
        return "all human scores are equal: how far others may be from them is unknown"

    def mean(self, weight: float) -> float:
        if self.labels:
            return self.human + weight * (self.naive - self.judge)
        return math.nan


def estimate(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    systems: Iterable[Hashable] | None = None,
    documents: Iterable[Hashable] | None = None,
    probabilities: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    decisions: tuple[float, float] | None = None,
    others: Mapping[str, npt.ArrayLike] | None = None,
    seed: int = 0,
) -> Estimates:
    """Estimate means, differences and ranks of systems from all judge scores and a few human ones.

    The method is PPI++ with power tuning. Intervals cover other documents drawn like these, by Student's t over
    labelled documents. Labels of pass and fail have Jeffreys' posterior in each stratum of verdicts (`rates`). The
    means of five systems or more are drawn to the line of people's means by the judge's (`versions`), if they lie on
    one: a label is then worth about two.

    Args:
        judge: one score per row, on any scale; NaN where it failed (the system's mean takes its place).
        human: one score per row; NaN for rows without a human score. The scored rows have to be a random sample, best
            of whole documents.
        systems: system of each row; None: all rows are of one.
        documents: document of each row, as rows of one are no independent evidence; None: each row is one.
        probabilities: probability of each labelled row to be labelled, if these differ (Hájek's weights); any value for
            rows without a human score.
        confidence: level of the intervals, between 0 and 1.
        decisions: human scores of fail and pass; None: 0 and 1, if labels or the judge's scores are these.
        others: further numbers of each row (length, date, …), by name, to compare labelled rows with the rest by.
        seed: seed of the draws of pass rates.

    Returns:
        `Estimates`: systems from the best to the worst on people's scale, with intervals, differences and ranks.

    Raises:
        LabelsError: If scores do not fit each other, or there is no human score.

    >>> estimate([1, 2, 3, 4, 1, 2, 3, 4], [2, 3, 4, 5] + [np.nan] * 4).systems[0].naive
    2.5
    """
    if not 0 < confidence < 1:
        raise OptionError(
            f"confidence: {confidence} is not between 0 and 1; pass for example 0.95"
        )
    f, y = _vectors(judge, human)
    w = _weights(probabilities, y)
    if documents is None:
        doc = np.arange(len(f))
    else:
        doc = id_codes(documents, len(f), "documents")
    names, sys = _systems(systems, len(f))
    notes = []
    if failed := int(np.isnan(f).sum()):
        notes.append(
            f"the judge has no score for {failed} of {len(f)} rows; its mean for the system takes their place"
        )
    count = int(doc.max()) + 1
    sums = []
    for s in range(len(names)):
        own = sys == s
        sums.append(_sums(f[own], y[own], w[own], doc[own], count))
    weight, lost = _common_weight(sums)
    common = weight
    labelled = len(np.unique(doc[~np.isnan(y)]))
    if labelled < FEW_DOCUMENTS:
        notes.append(
            f"only {labelled} documents have human scores: the intervals are wide, and approximate at best"
        )
    if probabilities is None:
        compared = {"judge scores": f, "place in the file": np.arange(len(f))}
        notes += _unlike_the_rest(compared | dict(others or {}), y, sys, doc)
    decisions = decisions or _decisions(f, y)
    if decisions is not None and set(y[~np.isnan(y)]) <= set(decisions):
        low, high = decisions
        passed = (y - low) / (high - low)
        found = _rates(f, passed, w, doc, sys, len(names), seed)
        result = [
            _rate_estimate(name, s, one, decisions, confidence)
            for name, s, one in zip(names, sums, found, strict=True)
        ]
        differences = _rate_differences(
            names, sums, found, weight, high - low, confidence
        )
        weight = math.nan
    else:
        result = [
            _estimate(name, s, weight, confidence, lost)
            for name, s in zip(names, sums, strict=True)
        ]
        differences = _differences(names, sums, weight, confidence)
    drawn, told = _drawn(names, sums, common)
    notes += filter(None, [told])
    on_line = 0
    if drawn is not None:
        on_line = len(drawn.versions)
        result = [drawn.estimate(one, confidence) for one in result]
        differences = drawn.differences(differences, confidence)
    ranked = _ranked(result, differences, 1 - confidence)
    labelled_means = [s.mean for s in result if s.n_human]
    at_large = _at_large(labelled_means, confidence)
    return Estimates(
        ranked,
        differences,
        weight,
        confidence,
        count,
        labelled,
        tuple(notes),
        at_large,
        on_line,
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Systems' means drawn to a line.

    versions: by name. together: the variance that all means share, as some documents are hard for all systems. alone:
    by name, the variance of the human mean by the labels alone. judge: by name, each document's share in the error of
    the judge's mean. wider: what makes intervals wider than normal ones.
    """

    line: Line
    versions: Mapping[str, Version]
    together: float
    alone: Mapping[str, float]
    judge: Mapping[str, Vector]
    wider: float

    def estimate(self, one: SystemEstimate, confidence: float) -> SystemEstimate:
        """Return a system's estimate by the line; as it was without labels that place it there."""
        version = self.versions.get(one.system)
        if version is None:
            return one
        judge_error = float(np.linalg.norm(self.judge[one.system]))
        belief = self.line.mean(version, judge_error).wider(1.0, self.together)
        low, high = belief.wider(self.wider).interval(confidence)
        gain = self.alone[one.system] / belief.deviation**2
        if one.reason is not None:  # equal labels do not tell what one is worth
            gain = math.nan
        return replace(
            one,
            mean=belief.mean,
            low=low,
            high=high,
            effective=one.n_human * gain,
            effective_low=math.nan,
            effective_high=math.nan,
            reason=None,
        )

    def differences(
        self, known: Sequence[SystemDifference], confidence: float
    ) -> tuple[SystemDifference, ...]:
        """Return all differences: of systems on the line by it, of others as they are known."""
        kept = [d for d in known if not {d.a, d.b} <= self.versions.keys()]
        pairs = list(itertools.combinations(self.versions, 2))
        beliefs = [self._between(*pair).wider(self.wider) for pair in pairs]
        raw = [min(1.0, 2 * belief.wrong) for belief in beliefs]
        adjusted = holm([*raw, *(d.p for d in kept)]).tolist()
        found = []
        for (a, b), belief, p in zip(pairs, beliefs, adjusted, strict=False):
            low, high = belief.interval(confidence)
            found.append(SystemDifference(a, b, belief.mean, low, high, p))
        rest = zip(kept, adjusted[len(pairs) :], strict=True)
        return *found, *(replace(d, p=p) for d, p in rest)

    def _between(self, a: str, b: str) -> Belief:
        error = float(np.linalg.norm(self.judge[a] - self.judge[b]))
        return self.line.difference(self.versions[b], self.versions[a], error)


def _drawn(
    names: Sequence[str], sums: Sequence[_Sums], weight: float
) -> tuple[_Drawn | None, str]:
    """Return the means of systems drawn to a line, or why not."""
    able = [
        (name, s)
        for name, s in zip(names, sums, strict=True)
        if s.clusters >= FEWEST_DOCUMENTS and not math.isnan(s.naive)
    ]
    if len(able) < FEWEST_SHRUNK:
        return None, ""
    errors = np.stack([s.a - weight * s.b for _, s in able])
    own = (errors**2).sum(axis=1)
    variances = independent_variances(errors)
    versions = {
        name: Version(s.naive, s.mean(weight), float(variance))
        for (name, s), variance in zip(able, variances, strict=True)
    }
    line, reason = line_through([*versions.values()], own)
    if line is None:
        return None, reason
    mean = errors.mean(axis=0)
    together = max(0.0, float(mean @ mean - variances.mean() / len(able)))
    return _Drawn(
        line,
        versions,
        together,
        {name: float(s.a @ s.a) for name, s in able},
        {name: s.c for name, s in able},
        stretch(min(s.clusters for _, s in able)),
    ), ""


@dataclass(frozen=True, slots=True)
class Corrected:
    """Human means of systems, corrected by the judge as in `estimate`.

    names: of the systems. human: their means, NaN without a human score. judge: the judge's means over all rows.
    errors: each document's share in the error of `human` -> (systems, documents). clusters: documents with a human
    score.
    """

    names: tuple[str, ...]
    human: Vector
    judge: Vector
    errors: npt.NDArray[np.float64]
    clusters: Codes

    def error_between(self, one: str, other: str) -> float:
        """Return the standard error of the difference of two systems' means: what is hard for both leaves it."""
        both = [self.errors[self.names.index(name)] for name in (one, other)]
        return float(np.linalg.norm(both[0] - both[1]))


def corrected_means(
    judge: Vector,
    human: Vector,
    systems: Sequence[str],
    documents: Codes,
    probabilities: Vector | None = None,
) -> Corrected:
    """Return the corrected means of systems, in the order in which they first stand.

    Args:
        judge: one score per row; NaN where it failed.
        human: one score per row; NaN without one.
        systems: system of each row.
        documents: number of each row's document, from 0.
        probabilities: as of `estimate`.
    """
    names, sys = _systems(systems, len(judge))
    count = int(documents.max()) + 1
    w = _weights(probabilities, human)
    sums = []
    for s in range(len(names)):
        own = sys == s
        sums.append(_sums(judge[own], human[own], w[own], documents[own], count))
    weight, _ = _common_weight(sums)
    return Corrected(
        tuple(names),
        np.array([one.mean(weight) for one in sums]),
        np.array([one.naive for one in sums]),
        np.stack([one.a - weight * one.b for one in sums]),
        np.array([one.clusters for one in sums]),
    )


def _decisions(f: Vector, y: Vector) -> tuple[float, float] | None:
    """Return (0, 1) if scores are of pass and fail: labels of both kinds, or equal ones and verdicts of both."""
    labels = set(y[~np.isnan(y)])
    verdicts = set(f[~np.isnan(f)])
    both = {0.0, 1.0}
    return (0.0, 1.0) if labels <= both and both in (labels, verdicts) else None


# Pass rates ----------------------------------------------------------------------------------------------------------


def _rates(
    f: Vector,
    passed: Vector,
    w: Vector,
    doc: Codes,
    sys: Codes,
    systems: int,
    seed: int,
) -> list[Rate | None]:
    """Return the pass rate of each system; None without a label."""
    rng = np.random.default_rng(seed)
    stratum = strata(f)
    found = list[Rate | None]()
    for own in (sys == s for s in range(systems)):
        some = not np.isnan(passed[own]).all()
        of = (stratum[own], passed[own], w[own], doc[own])
        found.append(rate(*of, rng) if some else None)
    return found


def _rate_estimate(
    name: str,
    s: _Sums,
    found: Rate | None,
    decisions: tuple[float, float],
    confidence: float,
) -> SystemEstimate:
    if found is None:
        return _estimate(name, s, 0.0, confidence, 0)
    fail, passed = decisions

    def scaled(share: float) -> float:
        return fail + (passed - fail) * share

    low, high = map(scaled, found.interval(confidence))
    alone_low, alone_high = map(scaled, found.interval_alone(confidence))
    gain = float(found.alone_drawn.var() / found.drawn.var())
    return SystemEstimate(
        name,
        scaled(found.mean),
        low,
        high,
        s.naive,
        s.labels,
        s.rows,
        s.human,
        alone_low,
        alone_high,
        s.labels * gain,
        *_worth(s.labels, s.clusters, gain),
    )


def _rate_differences(
    names: Sequence[str],
    sums: Sequence[_Sums],
    found: Sequence[Rate | None],
    weight: float,
    reach: float,
    confidence: float,
) -> tuple[SystemDifference, ...]:
    """Return differences of pass rates, whose errors go together as those of the scores do."""
    usable = [
        (name, s, one)
        for name, s, one in zip(names, sums, found, strict=True)
        if one is not None
    ]
    if len(usable) < 2:
        return ()
    errors = np.stack([s.a - weight * s.b for _, s, _ in usable])
    common = errors @ errors.T
    size = np.linalg.norm(errors, axis=1)
    apart = np.outer(size, size)
    correlation = np.divide(common, apart, np.zeros_like(common), where=apart > 0)
    np.fill_diagonal(correlation, 1.0)
    drawn = together([one for _, _, one in usable], correlation)
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    pairs = list[SystemDifference]()
    raw = list[float]()
    for one, other in zip(*np.triu_indices(len(usable), 1), strict=True):
        gap = drawn[:, one] - drawn[:, other]
        value = float(usable[one][2].mean - usable[other][2].mean)
        low, high = np.quantile(gap, ends).tolist()
        beyond = min(float(np.mean(gap <= 0)), float(np.mean(gap >= 0)))
        raw.append(min(1.0, max(2 * beyond, 2 / len(gap))))
        names_of = usable[one][0], usable[other][0]
        low = reach * min(low, value)
        high = reach * max(high, value)
        pairs.append(SystemDifference(*names_of, reach * value, low, high, math.nan))
    adjusted = holm(raw).tolist()
    return tuple(replace(d, p=p) for d, p in zip(pairs, adjusted, strict=True))


def _worth(labels: int, clusters: int, gain: float) -> tuple[float, float]:
    """Return an 80 % interval of how many labels a judge is worth, from that of its correlation with people.

    gain: how many times as many labels alone would be needed, 1 / (1 - r²).
    """
    if clusters < 5 or not 0 < gain < math.inf:
        return math.nan, math.nan
    r = math.sqrt(max(0.0, 1 - 1 / gain))
    reach = float(scipy.special.ndtri(0.9)) / math.sqrt(clusters - 3)
    z = math.atanh(min(r, 1 - 1e-9)) + np.array([-reach, reach])
    low, high = 1 / (1 - np.tanh(np.maximum(z, 0.0)) ** 2)
    return labels * float(low), labels * float(high)


def _at_large(means: Sequence[float], confidence: float) -> tuple[float, float, float]:
    if len(means) < FEWEST_SYSTEMS:
        return math.nan, math.nan, math.nan
    mean = float(np.mean(means))
    half = float(
        scipy.special.stdtrit(len(means) - 1, (1 + confidence) / 2)
        * np.std(means, ddof=1)
        / len(means) ** 0.5
    )
    return mean, mean - half, mean + half


def _vectors(judge: npt.ArrayLike, human: npt.ArrayLike) -> tuple[Vector, Vector]:
    f = vector(judge, "judge", missing=True)
    y = vector(human, "human", missing=True)
    if len(f) != len(y):
        raise LabelsError(
            f"the judge has {len(f)} scores and people {len(y)}; give one per row, NaN where there is none"
        )
    if np.isnan(y).all():
        raise LabelsError(
            "no row has a human score; without any, the judge cannot be checked"
        )
    if np.isnan(f).all():
        raise LabelsError("no row has a judge's score; name the column with --judge")
    return f, y


def _weights(probabilities: npt.ArrayLike | None, y: Vector) -> Vector:
    """Return one over the probability that a row was labelled; 1 throughout if these are equal.

    Raises:
        LabelsError: If a probability is outside (0, 1].
    """
    if probabilities is None:
        return np.ones(len(y))
    chance = vector(probabilities, "probabilities", missing=True)
    labelled = ~np.isnan(y)
    if len(chance) != len(y):
        raise LabelsError(
            f"there are {len(chance)} probabilities for {len(y)} rows; give one per row"
        )
    wrong = labelled & ~((chance > 0) & (chance <= 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise LabelsError(
            f"row {row + 1}: probability {chance[row]:g} of being labelled is not in (0, 1]; correct it"
        )
    return np.where(labelled, 1 / np.where(labelled, chance, 1.0), 1.0)


def _systems(systems: Iterable[Hashable] | None, rows: int) -> tuple[list[str], Codes]:
    if systems is None:
        return [ALL], np.zeros(rows, dtype=np.intp)
    names = list(systems)
    code = id_codes(names, rows, "systems")
    return [str(name) for name in dict.fromkeys(names)], code


def _sums(f: Vector, y: Vector, w: Vector, doc: Codes, documents: int) -> _Sums:
    scored = ~np.isnan(f)
    labelled = ~np.isnan(y)
    naive = float(f[scored].mean()) if scored.any() else math.nan
    f = np.where(scored, f, naive if scored.any() else 0.0)
    n = int(labelled.sum())
    rows = int(scored.sum())
    a = np.zeros(documents)
    b = np.zeros(documents)
    every = len(np.unique(doc))
    c = _unbiased(every) * np.bincount(doc, f - f.mean(), documents) / len(f)
    if not n:
        return _Sums(rows, 0, 0, 0.0, math.nan, math.nan, naive, a, b, c)
    share = w[labelled] / w[labelled].sum()
    human = float(share @ y[labelled])
    judge = float(share @ f[labelled])
    centred = share * (y[labelled] - human)
    own = share * (f[labelled] - judge)
    where = doc[labelled]
    clusters = len(np.unique(where))
    small = _unbiased(clusters)
    a += small * np.bincount(where, centred, documents)
    b += small * np.bincount(where, own, documents) - c
    if n == len(f) and np.ptp(share) == 0:
        b[:] = 0.0
    means = human, judge, float(f.mean())
    return _Sums(rows, n, clusters, float(np.ptp(y[labelled])), *means, a, b, c)


def _unbiased(count: int) -> float:
    """Return what shares of so many documents are multiplied by, so that their squares sum to a variance."""
    return math.sqrt(count / (count - 1)) if count > 1 else 1.0


def _half(errors: Vector, df: int, confidence: float) -> float:
    """Return half the width of an interval."""
    return float(
        scipy.special.stdtrit(df, (1 + confidence) / 2)
        * math.sqrt(float(errors @ errors))
    )


def _estimate(
    name: str, s: _Sums, weight: float, confidence: float, lost: int
) -> SystemEstimate:
    """Return the estimate of one system.

    lost: degrees of freedom that the weight took from this system.
    """
    mean = s.mean(weight)
    df = s.clusters - 1
    half = alone = effective = math.nan
    if s.reason is None:
        errors = (s.a - weight * s.b) * math.sqrt(df / (df - lost))
        half = _half(errors, df - lost, confidence)
        alone = _half(s.a, df, confidence)
        size = float(errors @ errors)
        effective = s.labels * float(s.a @ s.a) / size if size > 0 else math.inf
    return SystemEstimate(
        name,
        mean,
        mean - half,
        mean + half,
        s.naive,
        s.labels,
        s.rows,
        s.human,
        s.human - alone,
        s.human + alone,
        effective,
        *_worth(s.labels, s.clusters, effective / s.labels if s.labels else math.nan),
        reason=s.reason,
    )


def _differences(
    names: Sequence[str], sums: Sequence[_Sums], weight: float, confidence: float
) -> tuple[SystemDifference, ...]:
    usable = [pair for pair in zip(names, sums, strict=True) if pair[1].reason is None]
    if len(usable) < 2:
        return ()
    one, other = np.triu_indices(len(usable), 1)
    means, clusters = np.array([(s.mean(weight), s.clusters) for _, s in usable]).T
    # Errors of one document go together: what both systems found hard leaves the difference.
    errors = np.stack([s.a - weight * s.b for _, s in usable])
    common = errors @ errors.T
    variance = common[one, one] + common[other, other] - 2 * common[one, other]
    size = np.sqrt(np.maximum(variance, 0.0))
    gap = means[one] - means[other]
    df = np.minimum(clusters[one], clusters[other]) - 1
    half = scipy.special.stdtrit(df, (1 + confidence) / 2) * size
    statistic = np.abs(gap) / np.where(size > 0, size, 1.0)
    raw = np.where(size > 0, 2 * scipy.special.stdtr(df, -statistic), gap == 0)
    p = holm(raw)
    differences = []
    for k in range(len(gap)):
        a = usable[one[k]][0]
        b = usable[other[k]][0]
        low = float(gap[k] - half[k])
        high = float(gap[k] + half[k])
        differences.append(
            SystemDifference(a, b, float(gap[k]), low, high, float(p[k]))
        )
    return tuple(differences)


def _common_weight(sums: Sequence[_Sums]) -> tuple[float, int]:
    """Return the judge's weight, and the degrees of freedom that it takes.

    One weight serves all systems: with a handful of labels each, a weight of its own would fit their noise. Of one
    system's documents it takes a degree of freedom; three have none to spare.
    """
    size = sum(float(s.b @ s.b) for s in sums)
    if size == 0 or (len(sums) == 1 and sums[0].clusters <= 3):
        return 0.0, 0
    weight = sum(float(s.a @ s.b) for s in sums) / size
    return weight, int(len(sums) == 1)


def _ranked(
    systems: Sequence[SystemEstimate],
    differences: Sequence[SystemDifference],
    alpha: float,
) -> tuple[SystemEstimate, ...]:
    """Return the estimates, the best first.

    A rank is left open by every system that is not certainly better or worse, at `alpha` for all pairs together.
    Source: Mogstad et al. 2024, with Holm's correction in place of their simulated bound.
    """
    better = dict.fromkeys((s.system for s in systems), 0)
    worse = dict(better)
    for d in differences:
        if d.p < alpha:
            winner, loser = (d.a, d.b) if d.difference > 0 else (d.b, d.a)
            better[loser] += 1
            worse[winner] += 1
    count = sum(s.reason is None for s in systems)
    ranked = [
        replace(s, rank_low=1 + better[s.system], rank_high=count - worse[s.system])
        if s.reason is None
        else s
        for s in systems
    ]
    return tuple(
        sorted(
            ranked,
            key=lambda s: (
                math.isnan(s.mean),
                -s.mean if not math.isnan(s.mean) else 0.0,
            ),
        )
    )


def _unlike_the_rest(
    compared: Mapping[str, npt.ArrayLike], y: Vector, sys: Codes, doc: Codes
) -> list[str]:
    """Return a note on numbers that differ between labelled documents and the rest; Bonferroni counts the numbers."""
    found = []
    for name, values in compared.items():
        p = _apart(np.asarray(values, dtype=np.float64), y, sys, doc)
        if p * len(compared) < 0.01:
            found.append(f"{name}, {p_in_words(p)}")
    if not found:
        return []
    return [
        f"labelled rows are not like the others ({'; '.join(found)}): if they were not drawn at random, the estimates "
        "may be off"
    ]


def _apart(f: Vector, y: Vector, sys: Codes, doc: Codes) -> float:
    """Return P of labelled documents having other values than the rest; the systems' own means are taken away."""
    f = f.copy()
    for s in np.unique(sys):
        own = sys == s
        if (~np.isnan(f[own])).any():
            f[own] -= np.nanmean(f[own])
    labelled = ~np.isnan(y)
    judged = ~np.isnan(f)
    parts = [
        (f[k], np.unique(doc[k], return_inverse=True)[1])
        for k in (labelled & judged, ~labelled & judged)
    ]
    one, rest = (
        np.bincount(codes, values) / np.bincount(codes) for values, codes in parts
    )
    if min(len(one), len(rest)) < 5 or np.ptp(one) == 0 or np.ptp(rest) == 0:
        return 1.0
    return float(scipy.stats.ttest_ind(one, rest, equal_var=False).pvalue)
