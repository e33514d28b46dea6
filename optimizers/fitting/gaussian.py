"""Turn readings into a score: one Gaussian model, linear in every reading, that starts from experience.

A row's human score is taken to be the sum of what experience expects of it (`programs.readings.experience`), of a
weight for the judge's own score, of small weights for all numbers and all dimensions of the states, of something that
its document's rows have in common, and of noise. Only the weights are learnt from the labels; how large each part may
be was learnt on other tasks. How far experience and the own score may be trusted differs most, and how much labels can
teach beside them, so that answers of several sizes are weighed by how well they explain the labels (their evidence).
Experience has two views, of what tells the texts of one system apart and of what tells all texts apart; two answers do
without it.

Beside a strong judge the prior is another: its score has a fixed weight, so that ranks follow it, and everything else
may only correct it, by answers of nine sizes (experiments/results/strong.md).

What is counted of facts in the source decides few tasks, so that its weight has a variance of its own: each answer
comes with it and without. Where the aspect's name says that facts are rated, more answers expect these counts to
decide, each more likely before the labels than all others together (experiments/results/facts.md). Where rows have a
reference, one answer expects it to be the right answer; how likely that is, the aspect's words say.

Source: Gaussian processes with linear kernels (Rasmussen and Williams 2006, §2.1 and §5.4); the composition is ours
(experiments/results/experience.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from judgesmith.agreement.correlation import Codes, midranks
from judgesmith.optimizers.fitting.folds import numbered
from judgesmith.programs.readings.experience import FACTS, RIGHT, Experience
from judgesmith.programs.readings.head import LinearHead, Matrix, Readings, Vector, over
from judgesmith.programs.readings.kinds import SIGNAL

#: A reading whose spread is below this share of its size is constant.
FLAT = 1e-9
#: As how many labelled rows experience counts for the spread of a reading, and for that of human scores.
SPREAD_ROWS = 15.0
SCORE_ROWS = 3.0
#: Variance of the level of scores.
LEVEL = 1.0
#: Variance of what rows of one document have in common, and beside a strong judge, who sees what documents are about;
#: where only rows of one document are compared, it may be large.
DOCUMENT = 0.1
DOCUMENT_BESIDE = 0.2
WITHIN = 5.0


@dataclass(frozen=True)
class Sizes:
    """The size of each part of a score, as standard deviations of the human scores (experience) or as variances.

    facts: of the counts of facts in the source, which are no part of `numbers`. log_prior: of these sizes, before the
    labels are seen. factual: of what ratings of facts reward, as a standard deviation.
    """

    experience: float
    own: float
    numbers: float
    states: float
    noise: float
    log_prior: float = 0.0
    facts: float = 0.0
    raters: float = 0.0
    factual: float = 0.0

    @property
    def covariance(self) -> Sizes:
        """Return the sizes on which the covariance of scores depends, with all others 0."""
        return replace(self, experience=0.0, factual=0.0, log_prior=0.0)

    def likelier(self, likely: float) -> Sizes:
        """Return the sizes with another log added to that of their prior."""
        return replace(self, log_prior=self.log_prior + likely) if likely else self


#: What facts may add, and how likely it is before the labels are seen (log): they decide some tasks, and are noise in
#: most.
OF_FACTS = ((0.0, 0.0), (0.1, -1.5))
#: Variance of what the ratings of one rater have in common, and how likely it is before the labels are seen (log):
#: none, up to more than half of all (experiments/results/raters.md).
OF_RATERS = ((0.0, 0.0), (0.05, -2.5), (0.2, -2.5), (0.6, -2.5))
#: Experience that fits; the same with labels that are mostly noise, so that they hardly move it; experience that fits
#: less; an own score that is one reading of many, up to one that says nearly all. Each of them with facts and without.
SIZES = tuple(
    replace(sizes, facts=facts).likelier(likely)
    for sizes in (
        Sizes(0.5, 0.02, 0.1, 0.2, 0.5),
        Sizes(0.5, 0.02, 0.03, 0.06, 0.75),
        Sizes(0.2, 0.02, 0.2, 0.2, 0.5, -1.0),
        Sizes(0.5, 0.5, 0.1, 0.2, 0.4, -3.0),
        Sizes(0.2, 1.0, 0.03, 0.05, 0.3, -3.0),
        Sizes(0.05, 1.0, 0.005, 0.005, 0.3, -3.0),
    )
    for facts, likely in OF_FACTS
)


#: Experience that misleads: labels alone, that teach much or are mostly noise.
GIVEN_UP = tuple(
    replace(sizes, facts=facts).likelier(likely)
    for sizes in (
        Sizes(0.0, 0.02, 0.1, 0.2, 0.5, -2.5),
        Sizes(0.0, 0.02, 0.03, 0.06, 0.75, -2.5),
    )
    for facts, likely in OF_FACTS
)
#: How likely it is before the labels are seen (log) that what tells all texts apart counts, and not what tells those of
#: one system apart.
OF_POOLED = -1.5
#: Where facts are rated: one of `experience.FACTUAL` decides, and little else is to be learnt.
OF_FACTUAL = Sizes(0.25, 0.02, 0.005, 0.01, 0.5, 1.7, facts=0.02, factual=0.5)
#: Where a reference is the right answer: likely where an aspect's words say so, else to be said by labels.
OF_RIGHT = Sizes(0.25, 0.02, 0.03, 0.06, 0.4, 1.7, facts=0.02, factual=0.5)
OF_MAYBE_RIGHT = replace(OF_RIGHT, log_prior=-2.0)
#: Beside a score that has the first word: its weight, and how much other judges and all other readings may correct it.
BESIDE = tuple(
    Sizes(first, others, numbers, numbers, max(0.2, 1 - first**2), facts=numbers / 3)
    for first in (0.3, 0.6, 0.9)
    for others, numbers in ((0.005, 0.002), (0.05, 0.02), (0.3, 0.1))
)


@dataclass(frozen=True)
class Fitted:
    """A fitted head with its left-out scores.

    head: for a row's score, on the scale of the labels. left_out: each training row's score by what the rows of other
    groups say, without the level. Since the sizes are weighed by all labels, its Q is -.01 to .31 on noise (8 or 40
    rows, documents alike or not; 150 repeats, ± .05 to .11), where that of `nested` is 0. deviation: the standard
    deviation of such a score's error, noise included, by the model itself. learnt: the part of the head that the labels
    taught; the rest is experience.
    """

    head: LinearHead
    left_out: Vector
    deviation: Vector
    learnt: LinearHead


@dataclass(frozen=True)
class _Block:
    """Standardised columns. expected: experience's weight for each."""

    means: Vector
    spreads: Vector
    z: Matrix
    expected: Vector

    @classmethod
    def of(cls, values: Matrix, spreads: Vector, expected: Vector) -> _Block:
        """spreads: what experience expects, 0 where it does not know. Gaps stand at the mean."""
        present = ~np.isnan(values)
        counts = np.maximum(present.sum(axis=0), 1)
        means = np.where(present, values, 0.0).sum(axis=0) / counts
        centred = np.where(present, values - means, 0.0)
        rows = np.where(spreads > 0, SPREAD_ROWS, 0.0)
        own = (centred**2).sum(axis=0)
        scales = np.sqrt((own + rows * spreads**2) / (counts + rows))
        scales = np.where(scales > FLAT * np.maximum(np.abs(means), 1e-3), scales, 0.0)
        return cls(means, scales, over(centred, scales), expected)


def gaussian(
    table: Readings,
    scores: Vector,
    experience: Experience,
    *,
    own: str | None,
    within: bool = False,
    first: bool = False,
) -> Fitted:
    """Fit the model to some rows.

    Args:
        table: The readings of the rows.
        scores: Their human scores, shape (rows,).
        experience: The prior from other data sets.
        own: The reading that is the judge's own score, if the table has it.
        within: True if only rows of one document are compared.
        first: True if `own` is a strong judge's score, which is only corrected; experience has nothing else then.

    Raises:
        OptionError: If all rows belong to one group.
    """
    groups = numbered(table.groups)
    if first:
        experience = Experience(numbers={str(own): (0.0, 0.0, 1.0)})
    experience = experience.of_seen(table)
    shares = _shares(table.names, own, first)
    numbers, states = _blocks(table, experience)
    wanted, unit = target(scores, 2 * experience.points)
    kernels = _kernels(shares, numbers, states)
    raters = same_rater(table.raters)
    of_raters = OF_RATERS[:1] if raters is None else OF_RATERS
    views = _views(table.names, numbers, states, experience)
    answers = [
        replace(answer, sizes=replace(answer.sizes, raters=size).likelier(likely))
        for answer in _answers(table.names, numbers, views, experience, first)
        for size, likely in of_raters
    ]
    document = _of_documents(within=within, first=first)
    shared = LEVEL + document * (groups[:, None] == groups)
    strict = np.zeros_like(shared) if raters is None else raters
    solved = dict[Sizes, _Solved]()
    fits = []
    for answer in answers:
        sizes = answer.sizes
        if sizes.covariance not in solved:
            linear = kernels.of(sizes)
            noise = sizes.noise * np.eye(len(wanted))
            whole = linear + shared + sizes.raters * strict + noise
            solved[sizes.covariance] = _Solved.of(linear, whole, groups)
        expected = sizes.experience * answer.view.scores
        if sizes.factual:
            expected = expected + sizes.factual * (numbers.z @ answer.rewarded)
        fits.append(solved[sizes.covariance].fit(expected, wanted, sizes.log_prior))
    evidence = np.array([fit.evidence for fit in fits])
    posterior = np.exp(evidence - evidence.max())  # of each answer
    posterior /= posterior.sum()
    learnt = _learnt(table.names, shares, numbers, states, answers, fits, posterior)
    learnt = learnt.scaled(unit)
    prior = _prior(table.names, numbers, states, answers, posterior)
    head = learnt + prior.scaled(unit)
    base = float(scores.mean() - head(table).mean())
    left_out = posterior @ np.array([fit.left_out for fit in fits])
    deviation = np.sqrt(posterior @ np.array([fit.variance for fit in fits]))
    return Fitted(
        head.scaled(1.0, base).held_to(table), unit * left_out, unit * deviation, learnt
    )


def same_rater(raters: Sequence[tuple[str, ...]]) -> Matrix | None:
    """Return by how much pairs of rows share who rated them, from 0 to 1; None where that tells no rows apart.

    How strict people are moves their ratings, and says nothing of a text: the part of a score that rows of one rater
    have in common is fitted, as what rows of one document have in common is, and left out of the head.
    """
    names = list(dict.fromkeys(name for row in raters for name in row))
    if not 2 <= len(names) < len(raters):
        return None
    share = np.zeros((len(raters), len(names)))
    for place, row in enumerate(raters):
        for name in row:
            share[place, names.index(name)] += 1 / len(row)
    return share @ share.T


# Its parts ------------------------------------------------------------------------------------------------------------


def _of_documents(*, within: bool, first: bool) -> float:
    """Return the variance of what rows of one document have in common."""
    if within:
        return WITHIN
    return DOCUMENT_BESIDE if first else DOCUMENT


def _blocks(
    table: Readings, experience: Experience
) -> tuple[_Block, dict[str, _Block]]:
    moments = [experience.numbers.get(name, (0.0, 0.0, 0.0)) for name in table.names]
    _, spreads, weights = np.array(moments).reshape(-1, 3).T
    numbers = _Block.of(table.values, spreads, weights)
    states = {}
    for block, values in table.states.items():
        learnt = experience.states.get(block)
        unknown = np.zeros(values.shape[1])
        if learnt is None:
            spread = unknown
            weight = unknown
        else:
            spread, weight = map(np.array, (learnt.spreads, learnt.weights))
        states[block] = _Block.of(values.astype(np.float64), spread, weight)
    return numbers, states


@dataclass(frozen=True, eq=False)
class _View:
    """What experience expects: weights of numbers and of states, and the scores of the rows by them.

    likely: the log of its prior.
    """

    numbers: Vector
    states: Mapping[str, Vector]
    scores: Vector
    likely: float = 0.0


@dataclass(frozen=True)
class _Answer:
    """One answer to how large each part of a score is. rewarded: the weights of what ratings may reward."""

    sizes: Sizes
    view: _View
    rewarded: Vector


def _views(
    names: Sequence[str],
    numbers: _Block,
    states: Mapping[str, _Block],
    experience: Experience,
) -> list[_View]:
    """Return the views of experience: of the texts of one system, and of all texts where that was learnt."""
    inner = {name: block.expected for name, block in states.items()}
    known = [(numbers.expected, inner, 0.0)]
    if (pooled := experience.pooled) is not None:
        of_names = np.array([pooled.numbers.get(name, 0.0) for name in names])
        inner = {}
        for name, block in states.items():
            unknown = (0.0,) * len(block.means)
            inner[name] = np.array(pooled.states.get(name, unknown))
        known.append((of_names, inner, OF_POOLED))
    views = []
    for of_names, of_states, likely in known:
        read = [states[name].z @ weights for name, weights in of_states.items()]
        scores = np.asarray(sum(read, numbers.z @ of_names))
        views.append(_View(of_names, of_states, scores, likely))
    return views


def _answers(
    names: Sequence[str],
    numbers: _Block,
    views: Sequence[_View],
    experience: Experience,
    first: bool,
) -> list[_Answer]:
    """Return the answers that are weighed: by each view, with what ratings may reward, and without experience."""
    nothing = np.zeros(len(names))
    if first:
        return [_Answer(sizes, views[0], nothing) for sizes in BESIDE]
    rewards = [(OF_FACTUAL, _rewarded(names, numbers, of)) for of in experience.factual]
    if experience.numbers:
        sizes = OF_RIGHT if experience.right else OF_MAYBE_RIGHT
        rewards.append((sizes, _right(names, numbers)))
    tried = [(sizes, nothing) for sizes in SIZES]
    tried += [(sizes, rewarded) for sizes, rewarded in rewards if rewarded.any()]
    answers = []
    for view in views:
        for sizes, rewarded in tried:
            answers.append(_Answer(sizes.likelier(view.likely), view, rewarded))
    if experience.numbers:
        answers += [_Answer(sizes, views[0], nothing) for sizes in GIVEN_UP]
    return answers


def _right(names: Sequence[str], numbers: _Block) -> Vector:
    """Return the weights that are expected where a reference is the right answer.

    They are smaller where the rows share about as much of their references: then a reference is one of many.
    """
    weights = np.zeros(len(names))
    for place, name in enumerate(names):
        if name in RIGHT:
            _, spread, weight = RIGHT[name]
            weights[place] = weight * min(1.0, numbers.spreads[place] / spread)
    return weights


def _rewarded(
    names: Sequence[str], numbers: _Block, factual: Mapping[str, tuple[float, ...]]
) -> Vector:
    """Return the weights that are expected of ratings of facts, for scores of unit spread; 0 if no count varies.

    factual: reading -> (mean, spread, weight).
    """
    nothing = (0.0, 0.0, 0.0)
    weights = np.array([factual.get(name, nothing)[2] for name in names])
    counted = np.array([name.startswith(FACTS) for name in names], bool)
    varies = float(np.std(numbers.z @ (weights * counted))) > FLAT
    spread = float(np.std(numbers.z @ weights))
    return weights / spread if varies and spread > FLAT else np.zeros(len(names))


def target(scores: Vector, expected: float = 0.0) -> tuple[Vector, float]:
    """Return the mean of standardised scores and standardised ranks, and its unit.

    Agreement is in both. The unit is the scores' spread, which few labels estimate together with the expected one.
    """
    spread = float(np.std(scores))
    rows = len(scores)
    prior_rows = SCORE_ROWS if expected > 0 else 0.0
    unit = float(
        np.sqrt((rows * spread**2 + prior_rows * expected**2) / (rows + prior_rows))
    )
    if spread <= 0:
        return np.zeros(rows), unit
    ranks = midranks(scores)
    standard = (scores - scores.mean()) / spread
    standard_ranks = (ranks - ranks.mean()) / ranks.std()
    return (standard + standard_ranks) / 2 * (spread / unit), unit


def _shares(
    names: Sequence[str], own: str | None, first: bool
) -> tuple[Vector, Vector, Vector]:
    """Return each number's share of three variances: the own score's, that of numbers but facts, and that of facts.

    Beside a strong own score, the first share goes to other judges, and the score with the first word has none.
    """
    is_own = np.array([name == own for name in names], bool)
    if first:
        stated = ~is_own & np.array([name.startswith(f"{SIGNAL}.") for name in names])
    else:
        stated = is_own
    of_facts = ~is_own & np.array([name.startswith(FACTS) for name in names], bool)
    every = ~(is_own | stated | of_facts) if first else ~of_facts
    return (
        stated / max(1, stated.sum()),
        every / max(1, every.sum()),
        of_facts / max(1, of_facts.sum()),
    )


@dataclass(frozen=True)
class _Kernels:
    own: Matrix
    numbers: Matrix
    facts: Matrix
    states: Matrix

    def of(self, sizes: Sizes) -> Matrix:
        stated = sizes.own * self.own + sizes.facts * self.facts
        return stated + sizes.numbers * self.numbers + sizes.states * self.states


def _kernels(
    shares: tuple[Vector, Vector, Vector], numbers: _Block, states: Mapping[str, _Block]
) -> _Kernels:
    rows = len(numbers.z)
    read = np.zeros((rows, rows))
    for block in states.values():
        read += block.z @ block.z.T / (block.z.shape[1] * len(states))
    stated, every, facts = ((numbers.z * share) @ numbers.z.T for share in shares)
    return _Kernels(stated, every, facts, read)


@dataclass(frozen=True)
class _Fit:
    dual: Vector
    evidence: float
    left_out: Vector
    variance: Vector


@dataclass(frozen=True)
class _Solved:
    """What fits of one covariance have in common.

    linear: the readings' part of the covariance. inverse: of all of it. spread: the logarithm of its determinant's
    root. apart: the rows of groups of one size, with what takes their labels out of their scores. variance: of the
    errors of rows whose group is left out.
    """

    linear: Matrix
    inverse: Matrix
    spread: float
    apart: Sequence[tuple[NDArray[np.intp], NDArray[np.float64]]]
    variance: Vector

    @classmethod
    def of(cls, linear: Matrix, whole: Matrix, groups: Codes) -> _Solved:
        factor = scipy.linalg.cho_factor(whole, lower=True)
        inverse = scipy.linalg.cho_solve(factor, np.eye(len(whole)))
        spread = float(np.log(np.diag(factor[0])).sum())
        weights = linear @ inverse
        variance = np.zeros(len(whole))
        apart = []
        # What a fit without each group gives, from the whole one's inverse.
        for at in _by_size(groups):
            pairs = at[:, :, None], at[:, None, :]
            own = np.linalg.inv(inverse[pairs])
            apart.append((at, weights[pairs] @ own))
            variance[at] = np.diagonal(own, axis1=1, axis2=2)
        return cls(linear, inverse, spread, apart, variance)

    def fit(self, expected: Vector, wanted: Vector, log_prior: float) -> _Fit:
        """Fit the labels. expected: the scores before the labels are seen."""
        rest = wanted - expected
        dual = self.inverse @ rest
        evidence = log_prior - 0.5 * float(rest @ dual) - self.spread
        left_out = expected + self.linear @ dual
        for at, taken in self.apart:
            left_out[at] -= (taken @ dual[at][:, :, None])[:, :, 0]
        return _Fit(dual, evidence, left_out, self.variance)


def _by_size(groups: Codes) -> list[NDArray[np.intp]]:
    """The rows of each group, groups of equally many rows together: shapes (groups, rows)."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    first = np.cumsum(counts) - counts
    return [
        order[first[counts == size][:, None] + np.arange(size)]
        for size in np.unique(counts)
    ]


def _prior(
    names: Sequence[str],
    numbers: _Block,
    states: Mapping[str, _Block],
    answers: Sequence[_Answer],
    posterior: Vector,
) -> LinearHead:
    """Return the head of what is expected before the labels, as far as they leave it."""
    weights = np.zeros(len(names))
    trust = defaultdict[_View, float](float)
    for share, answer in zip(posterior.tolist(), answers, strict=True):
        trust[answer.view] += share * answer.sizes.experience
        weights += share * answer.sizes.factual * answer.rewarded
    inner = {name: np.zeros(len(block.means)) for name, block in states.items()}
    for view, trusted in trust.items():
        weights += trusted * view.numbers
        for name, of in view.states.items():
            inner[name] += trusted * of
    return _head(names, numbers, states, weights, inner)


def _learnt(
    names: tuple[str, ...],
    shares: tuple[Vector, Vector, Vector],
    numbers: _Block,
    states: Mapping[str, _Block],
    answers: Sequence[_Answer],
    fits: Sequence[_Fit],
    posterior: Vector,
) -> LinearHead:
    """Return the head of what the labels taught, the mean over answers by their posterior."""
    duals = posterior[:, None] * np.array([fit.dual for fit in fits])
    sizes = [answer.sizes for answer in answers]
    own = np.array([one.own for one in sizes]) @ duals @ numbers.z
    every = np.array([one.numbers for one in sizes]) @ duals @ numbers.z
    facts = np.array([one.facts for one in sizes]) @ duals @ numbers.z
    weights = shares[0] * own + shares[1] * every + shares[2] * facts
    read = np.array([one.states for one in sizes]) @ duals
    inner = {
        name: (read @ block.z) / (block.z.shape[1] * len(states))
        for name, block in states.items()
    }
    return _head(names, numbers, states, weights, inner)


def _head(
    names: Sequence[str],
    numbers: _Block,
    states: Mapping[str, _Block],
    weights: Vector,
    inner: Mapping[str, Vector],
) -> LinearHead:
    of_numbers = zip(
        names,
        numbers.means.tolist(),
        numbers.spreads.tolist(),
        weights.tolist(),
        strict=True,
    )
    blocks = {
        name: (block.means, block.spreads, inner[name])
        for name, block in states.items()
    }
    return LinearHead.of_standardised(
        {name: (m, s, w) for name, m, s, w in of_numbers}, blocks
    )
