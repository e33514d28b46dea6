"""Is the new version better than the one before? A decision with its error rate, or how many labels it would take.

The road depends on what people rated:

- **both versions**: their difference, paired by document and assisted by the judge's scores of the other rows
  (`estimation`), drawn to the line of `versions` where five or more versions are rated;
- **one of them, or none**, with eight or more earlier versions that people rated: what the judge's scores say, as far
  as they were right of the earlier ones (`versions`);
- **else**: nothing is decided, and labels of twenty documents are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Codes, Vector, id_codes, vector
from judgesmith.agreement.estimation import Corrected, corrected_means, estimate
from judgesmith.agreement.fields import json_values
from judgesmith.agreement.paired import Paired, level_of_look, paired
from judgesmith.agreement.versions import (
    FEWEST_DOCUMENTS,
    FEWEST_EARLIER,
    OUTLIER,
    Belief,
    Line,
    Version,
    independent_variances,
    line_through,
    stretch,
)
from judgesmith.errors import LabelsError, OptionError
from judgesmith.tables import counted

Verdict = Literal["better", "worse", "alike", "no worse", "undecided"]
Basis = Literal["labels", "labels and other versions", "other versions", "nothing"]
#: Documents to label where nobody has.
ASKED = 20
#: A new version farther outside the rated ones, as a share of their range, is like none of them.
FARTHEST = 0.5
#: How often so many more labels as are named decide a difference of the size that is named.
POWER = 0.8
#: More labelled documents than this are not worth a number.
MOST = 2000


@dataclass(frozen=True, slots=True)
class Means:
    """Means of one version.

    human: corrected by the judge's scores of the rows without a rating; NaN without ratings. labelled: its documents
    with a rating.
    """

    name: str
    judge: float
    human: float
    labelled: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is known of the mean human rating of `new` less that of `base`."""

    base: str
    new: str
    judge: Paired
    """The judge's own difference on the same documents."""
    labelled: tuple[int, int]
    """Documents with human ratings of base and new, of those that both answered."""
    others: int
    """Other versions that people rated, on `FEWEST_DOCUMENTS` documents or more."""
    level: float
    """The p up to which a difference is decided: shared over looks and candidates."""
    changed: float = 1.0
    """Share of the documents on which the two outputs differ."""
    margin: float | None = None
    """A smaller difference counts as none."""
    verdict: Verdict = "undecided"
    """Of `new`. alike: no difference larger than the margin. no worse: by no more than the margin."""
    basis: Basis = "nothing"
    """What the difference rests on."""
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """The interval at 1 - level."""
    p: float = math.nan
    """Two-sided, of no difference. Where people rated one version or none: twice the probability of a wrong sign."""
    reverse: float = math.nan
    """Where people rated one version or none: the same, however little the two differ; else NaN."""
    more: int | None = None
    """About how many more labelled documents of both it takes; None where it is decided, or nothing tells."""
    finds: float = math.nan
    """The difference that so many labels decide in `POWER` of cases."""
    wins: bool = False
    """Scores are shares of comparisons won, so that a difference of 0.2 is 60 % of wins."""
    reasons: tuple[str, ...] = ()
    """Why it is undecided."""
    versions: tuple[Means, ...] = ()
    """Means of every version."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, with the sentence."""
        result: dict[str, Any] = json_values(asdict(self))
        return result | {"sentence": str(self)}

    def __str__(self) -> str:
        return f"{self._found()}{self._rests()}.{self._wanting()}"

    @property
    def size(self) -> str:
        """The difference with its interval, in words; "" if nothing tells it."""
        ends = self.difference, self.low, self.high
        if math.isnan(self.difference):
            return ""
        if self.wins:
            middle, low, high = (50 * (1 + end) for end in ends)
            return f"it wins {middle:.0f}% [{low:.0f}, {high:.0f}] of comparisons"
        middle, low, high = ends
        return f"{middle:+.2f} [{low:+.2f}, {high:+.2f}]"

    def _found(self) -> str:
        size = self.size
        match self.verdict:
            case "better" | "worse":
                return f"{self.new} is {self.verdict} than {self.base}: {size}"
            case "alike":
                return f"{self.new} and {self.base} differ by no more than {self.margin:g}: {size}"
            case "no worse":
                return f"{self.new} is not worse than {self.base} by more than {self.margin:g}: {size}"
            case "undecided":
                found = f"Undecided whether {self.new} is better than {self.base}"
                return f"{found}: {size}" if size else found

    def _rests(self) -> str:
        base, new = self.labelled
        labels = (
            f", by {base} labelled documents of {self.base} and {new} of {self.new}"
        )
        match self.basis:
            case "labels":
                return labels
            case "labels and other versions":
                return f"{labels}, and {self.others} other rated versions"
            case "other versions":
                told = f", by the judge's scores, as far as they were right of {self.others} other rated versions"
                if self.verdict == "undecided":
                    return told
                return f"{told}; a wrong sign has a probability of {self.p / 2:.1%}"
            case "nothing":
                return ""

    def _wanting(self) -> str:
        if self.more is None:
            return ""
        if self.more > MOST:
            return (
                f" More than {MOST:,} more labelled documents of both would be needed."
            )
        many = f"{self.more} documents of both"
        if min(self.labelled):
            many = f"about {self.more} more documents of both"
        elif self.labelled[0]:
            many = f"the same {self.labelled[0]} documents of {self.new}"
        if math.isnan(self.finds):
            return f" Label {many}."
        return f" Label {many}: a difference of {self.finds:.2f} is then found in {POWER:.0%} of cases."


def compare(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    systems: Iterable[Hashable],
    documents: Iterable[Hashable],
    base: str,
    new: str,
    level: float = 0.05,
    looks: int = 1,
    candidates: int = 1,
    margin: float | None = None,
    outputs: Iterable[Hashable] | None = None,
    wins: bool = False,
    decisions: tuple[float, float] | None = None,
    others: Mapping[str, npt.ArrayLike] | None = None,
    probabilities: npt.ArrayLike | None = None,
) -> Comparison:
    """Decide whether a new version's outputs are better than those of the version before.

    Args:
        judge: one score per row, on any scale; NaN where it failed.
        human: one rating per row; NaN for rows that nobody rated. The rated rows have to be a random sample.
        systems: version of each row. All but two are earlier versions.
        documents: input of each row, by which versions are paired.
        base: the version to compare with.
        new: the new version.
        level: probability of deciding for a difference where there is none, by labels of both versions. By earlier
            versions alone it is the probability of a wrong sign.
        looks: how often this question is asked; the level is shared over them.
        candidates: versions of which this judge chose `new`; the level is shared over them, too.
        margin: the difference that matters, above 0: a smaller one counts as none.
        outputs: text of each row. Equal outputs of one document count as equally good; None: all differ.
        wins: scores are shares of comparisons won (1, 0.5, 0), as preferences give: the difference is told in wins.
        decisions: human ratings of fail and pass; None: 0 and 1, if ratings or the judge's scores are these.
        others: further numbers of each row, by name, to compare labelled rows with the rest by.
        probabilities: probability of each rated row to be drawn for rating, None: all alike. NaN for
            rows without a rating, and for all rows of a version whose rated rows were drawn alike.

    Returns:
        `Comparison`; its text is one sentence.

    Raises:
        LabelsError: If a version has no row, or both have no document in common.
        OptionError: If an option is out of its range.

    >>> ratings = [1, 2, 3, 4, 5] * 4 + [2, 3, 3, 4, 5] * 4
    >>> of = ["old"] * 20 + ["new"] * 20
    >>> found = compare(ratings, ratings, systems=of, documents=[*range(20)] * 2, base="old", new="new")
    >>> found.verdict, round(found.difference, 2)  # 8 of 20 documents are 1 better
    ('better', 0.4)
    """
    _check_options(level, looks, candidates, margin)
    table = _Table.of(judge, human, systems, documents, base, new, probabilities)
    changed = 1.0 if outputs is None else table.changed(list(outputs))
    share = level_of_look(level, looks, candidates)
    own = paired(*table.judged(), alpha=level, looks=looks * candidates)
    rated = table.rated(base), table.rated(new)
    corrected = table.corrected()
    every = _rated_versions(corrected)
    rivals = [name for name in every if name not in (base, new)]
    found = Comparison(
        base, new, own, rated, len(rivals), share, changed, margin, wins=wins
    )
    found = replace(found, versions=_means(corrected))
    if min(rated) >= 2:
        return _by_labels(found, table, corrected, every, decisions, others)
    return _by_earlier(found, table, corrected, every)


def _check_options(
    level: float, looks: int, candidates: int, margin: float | None
) -> None:
    if not 0 < level < 1:
        raise OptionError(f"level: {level:g} is not between 0 and 1; pass 0.05")
    if looks < 1 or candidates < 1:
        raise OptionError("looks and candidates are 1 or more")
    if margin is not None and not margin > 0:
        raise OptionError(
            f"margin: {margin:g} is not above 0; give the smallest difference that matters"
        )


# Rows ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows. pair: True for rows of base and new whose document both answered."""

    judge: Vector
    human: Vector
    systems: npt.NDArray[np.object_]
    documents: Codes
    base: str
    new: str
    pair: npt.NDArray[np.bool_]
    drawn: Vector | None = None
    """Probabilities of rated rows; None where all are alike."""

    @classmethod
    def of(
        cls,
        judge: npt.ArrayLike,
        human: npt.ArrayLike,
        systems: Iterable[Hashable],
        documents: Iterable[Hashable],
        base: str,
        new: str,
        probabilities: npt.ArrayLike | None,
    ) -> _Table:
        f = vector(judge, "judge", missing=True)
        y = vector(human, "human", missing=True)
        names = [str(name) for name in systems]
        if not len(f) == len(y) == len(names):
            raise LabelsError(
                f"there are {len(f)} judge scores, {len(y)} human ratings and {len(names)} systems; give one per row "
                "each"
            )
        doc = id_codes(list(documents), len(f), "documents")
        of = np.array(names, dtype=object)
        if base == new:
            raise OptionError(f"{base!r} is compared with itself; name two versions")
        of_pair = []
        for name in (base, new):
            mine = (of == name) & ~np.isnan(f)
            if not mine.any():
                there = ", ".join(dict.fromkeys(names))
                raise LabelsError(
                    f"no row of version {name!r} has a score of the judge; the versions are: {there}"
                )
            of_pair.append(np.unique(doc[mine]))
        common = np.intersect1d(of_pair[0], of_pair[1])
        if not len(common):
            raise LabelsError(
                f"{base!r} and {new!r} have no input in common: versions are compared on the same inputs (equal "
                "doc_id, or equal sources). Of different inputs `judgesmith estimate` gives the mean of each"
            )
        pair = np.isin(of, [base, new]) & np.isin(doc, common)
        drawn = None
        if probabilities is not None:
            drawn = vector(probabilities, "probabilities", missing=True)
            for name in dict.fromkeys(names):
                unknown = np.isnan(drawn[(of == name) & ~np.isnan(y)])
                if unknown.any() and not unknown.all():
                    raise LabelsError(
                        f"of version {name!r}, {unknown.sum()} of {len(unknown)} rated rows have no probability of "
                        "being drawn for rating (label_chance); give all of them one, or none"
                    )
            drawn = np.where(np.isnan(drawn), 1.0, drawn)
        return cls(f, y, of, doc, base, new, pair, drawn)

    def rated(self, name: str) -> int:
        """Return how many of the common documents people rated of a version."""
        mine = self.pair & (self.systems == name) & ~np.isnan(self.human)
        return len(np.unique(self.documents[mine]))

    def judged(self) -> tuple[Vector, Vector]:
        """Return the judge's mean of each common document: of new, and of base."""
        both = []
        for name in (self.new, self.base):
            mine = self.pair & (self.systems == name) & ~np.isnan(self.judge)
            sums = np.bincount(self.documents[mine], self.judge[mine], self.length)
            counts = np.bincount(self.documents[mine], minlength=self.length)
            with np.errstate(invalid="ignore"):
                both.append(sums / counts)
        return both[0], both[1]

    def changed(self, outputs: Sequence[Hashable]) -> float:
        """Return the share of the common documents on which base and new put out different texts.

        Raises:
            LabelsError: If there is not one output per row.
        """
        if len(outputs) != len(self.judge):
            raise LabelsError(
                f"there are {len(outputs)} outputs for {len(self.judge)} rows; give one per row"
            )
        texts: dict[int, dict[str, set[Hashable]]] = {}
        for k in np.flatnonzero(self.pair).tolist():
            of = texts.setdefault(int(self.documents[k]), {})
            of.setdefault(self.systems[k], set()).add(outputs[k])
        same = sum(of.get(self.base) == of.get(self.new) for of in texts.values())
        return 1 - same / len(texts)

    @property
    def length(self) -> int:
        """The number of documents."""
        return int(self.documents.max()) + 1

    def corrected(self) -> Corrected:
        """Return the corrected means: of base and new on common documents, of other versions on all of theirs."""
        used = self.pair | ~np.isin(self.systems, [self.base, self.new])
        used &= ~np.isnan(self.judge) | ~np.isnan(self.human)
        return corrected_means(
            self.judge[used],
            self.human[used],
            self.systems[used].tolist(),
            self.documents[used],
            None if self.drawn is None else self.drawn[used],
        )


def _means(corrected: Corrected) -> tuple[Means, ...]:
    """Return the means of all versions."""
    found = []
    for k, name in enumerate(corrected.names):
        judge = float(corrected.judge[k])
        human = float(corrected.human[k])
        found.append(Means(name, judge, human, int(corrected.clusters[k])))
    return tuple(found)


def _rated_versions(corrected: Corrected) -> dict[str, Version]:
    """Return the versions that people rated on enough documents, by name."""
    able = np.flatnonzero(corrected.clusters >= FEWEST_DOCUMENTS)
    able = able[np.linalg.norm(corrected.errors[able], axis=1) > 0]
    able = able[~np.isnan(corrected.judge[able])]
    if len(able) < 3:
        return {}
    variances = independent_variances(corrected.errors[able])
    result = {}
    for k, variance in zip(able, variances, strict=True):
        means = float(corrected.judge[k]), float(corrected.human[k])
        result[corrected.names[k]] = Version(*means, float(variance))
    return result


# People rated both ---------------------------------------------------------------------------------------------------


def _by_labels(
    found: Comparison,
    table: _Table,
    corrected: Corrected,
    every: Mapping[str, Version],
    decisions: tuple[float, float] | None,
    others: Mapping[str, npt.ArrayLike] | None,
) -> Comparison:
    """Return the comparison where people rated both versions."""
    rows = np.flatnonzero(table.pair)
    # By name, so that draws are the same whichever version stands first.
    rows = rows[np.argsort(table.systems[rows].astype(str), kind="stable")]
    more = {name: np.asarray(values)[rows] for name, values in (others or {}).items()}
    estimates = estimate(
        table.judge[rows],
        table.human[rows],
        systems=table.systems[rows].tolist(),
        documents=table.documents[rows].tolist(),
        probabilities=None if table.drawn is None else table.drawn[rows],
        confidence=1 - found.level,
        decisions=decisions,
        others=more,
    )
    notes = list(estimates.notes)
    if not estimates.differences:
        reasons = [
            f"{one.system}: {one.reason}" for one in estimates.systems if one.reason
        ]
        return replace(found, more=ASKED, reasons=tuple(reasons), notes=tuple(notes))
    (one,) = estimates.differences
    low = one.low
    gap = one.difference
    high = one.high
    if one.a != found.new:
        low, gap, high = -high, -gap, -low
    error = corrected.error_between(found.base, found.new)
    result = replace(
        found,
        basis="labels",
        difference=gap,
        low=low,
        high=high,
        p=one.p,
        notes=tuple(notes),
    )
    if {found.base, found.new} <= every.keys():
        result = _drawn_to_line(result, table, corrected, every, error)
    return _labels_wanted(_decided(result), error)


def _drawn_to_line(
    found: Comparison,
    table: _Table,
    corrected: Corrected,
    every: Mapping[str, Version],
    error: float,
) -> Comparison:
    """Return the comparison, its difference drawn to the line through all versions; as it was if they lie on none.

    error: standard error of the difference by labels of the two alone.
    """
    labelled = corrected.clusters >= FEWEST_DOCUMENTS
    alone = (corrected.errors[labelled] ** 2).sum(axis=1)
    line, reason = line_through([*every.values()], alone)
    if line is None:
        return replace(found, notes=(*found.notes, *filter(None, [reason])))
    base = every[found.base]
    new = every[found.new]
    # Half of what the two tell of their own difference, half of what all do: few documents tell little.
    own = (error**2 / 2 + found.changed * (base.variance + new.variance) / 2) / 2
    base = replace(base, variance=own)
    new = replace(new, variance=own)
    belief = line.difference(base, new, _judge_error(table), changed=found.changed)
    if belief.deviation >= error:  # the judge's means tell too little of people's
        return found
    belief = belief.wider(stretch(min(found.labelled)))
    low, high = belief.interval(1 - found.level)
    return replace(
        found,
        basis="labels and other versions",
        difference=belief.mean,
        low=low,
        high=high,
        p=min(1.0, 2 * belief.wrong),
    )


def _decided(found: Comparison) -> Comparison:
    """Return the comparison with what its p and its interval decide."""
    verdict: Verdict = "undecided"
    margin = found.margin
    if found.p <= found.level:
        verdict = "better" if found.difference > 0 else "worse"
    elif margin is not None and -margin < found.low and found.high < margin:
        verdict = "alike"
    elif margin is not None and -margin < found.low:
        verdict = "no worse"
    return replace(found, verdict=verdict)


def _labels_wanted(found: Comparison, error: float) -> Comparison:
    """Return an undecided comparison with how many more labelled documents it takes.

    error: standard error of the difference. They would decide a difference as large as the one found, or show that it
    is below the margin.
    """
    if found.verdict != "undecided":
        return found
    labels = min(found.labelled)
    target = abs(found.difference)
    if found.margin is not None:
        target = max(target, found.margin - target)
    reach = scipy.special.ndtri(1 - found.level / 2) + scipy.special.ndtri(POWER)
    size = reach * error
    reasons = (f"the interval holds 0, by {labels} labelled documents",)
    if target <= 0 or error == 0:
        return replace(found, more=MOST + 1, reasons=reasons)
    needed = labels * (size / target) ** 2 - labels
    more = max(5, 5 * math.ceil(min(needed, MOST + 5) / 5))
    finds = size * math.sqrt(labels / (labels + more))
    return replace(found, more=more, finds=finds, reasons=reasons)


# People rated one of them, or none -----------------------------------------------------------------------------------


def _by_earlier(
    found: Comparison,
    table: _Table,
    corrected: Corrected,
    every: Mapping[str, Version],
) -> Comparison:
    """Return the comparison by the judge's scores and the earlier versions; undecided where these are no ground."""
    judged = dict(zip(corrected.names, corrected.judge.tolist(), strict=True))
    base = every.get(found.base, Version(judged[found.base]))
    new = every.get(found.new, Version(judged[found.new]))
    if reasons := _refused(found, every, new):
        return replace(found, more=ASKED, reasons=tuple(reasons))
    line = _line(every.values())
    if line is None:
        reason = "the judge gives all rated versions the same mean"
        return replace(found, more=ASKED, reasons=(reason,))
    if line.outlier() < OUTLIER:
        reason = "one of the rated versions lies far off the line of the others"
        return replace(found, more=ASKED, reasons=(reason,))
    error = _judge_error(table)
    told: dict[str, Any] = {"judge_error": error, "changed": found.changed}
    belief = line.difference(base, new, **told)
    strict = line.difference(base, new, **told, however_alike=True)
    low, high = belief.interval(1 - found.level)
    slope = min(line.downhill, 1 - line.downhill)
    reverse = min(1.0, 2 * max(slope, _wrong(strict, belief)))
    result = replace(
        found,
        basis="other versions",
        difference=belief.mean,
        low=low,
        high=high,
        p=min(1.0, 2 * belief.wrong),
        reverse=reverse,
    )
    # With labels of the base, up to 5 % in one verdict is about 2 % in all that are decided. Without any, a probability
    # that is said comes out up to twice as large (experiments/results/versions.md).
    most = found.level * (2 if max(found.labelled) else 1)
    if max(result.p, reverse) <= most:
        return replace(result, verdict="better" if belief.mean > 0 else "worse")
    reason = f"the judge's scores leave a wrong sign with a probability of {max(result.p, reverse) / 2:.0%}"
    return replace(result, more=ASKED, reasons=(reason,))


def _wrong(strict: Belief, belief: Belief) -> float:
    """Return the probability of a wrong sign; 1 where the two beliefs have different signs."""
    return strict.wrong if strict.mean * belief.mean > 0 else 1.0


def _refused(
    found: Comparison, every: Mapping[str, Version], new: Version
) -> list[str]:
    """Return why the earlier versions are no ground for a verdict; [] if they are."""
    if len(every) < FEWEST_EARLIER:
        many = sum(one.labelled >= FEWEST_DOCUMENTS for one in found.versions)
        versions = counted(many, "version") if many else "no versions"
        told = (
            f"people rated {versions} on {FEWEST_DOCUMENTS} documents or more, and a "
            f"verdict without labels of both takes {FEWEST_EARLIER}"
        )
        return [told]
    means = [one.judge for one in every.values()]
    lowest = min(means)
    highest = max(means)
    beyond = FARTHEST * (highest - lowest)
    if not lowest - beyond <= new.judge <= highest + beyond:
        return [
            f"the judge's mean of {found.new}, {new.judge:.3f}, lies far outside those of the rated versions "
            f"({lowest:.3f} to {highest:.3f})"
        ]
    return []


def _line(versions: Iterable[Version]) -> Line | None:
    """Return the line through versions; None where the judge gives all of them one mean."""
    every = list(versions)
    if len({one.judge for one in every}) < 2:
        return None
    return Line(every)


def _judge_error(table: _Table) -> float:
    """Return the standard error of the judge's difference, over documents."""
    now, then = table.judged()
    change = now - then
    change = change[~np.isnan(change)]
    if len(change) < 2:
        return 0.0
    return float(change.std(ddof=1) / math.sqrt(len(change)))
