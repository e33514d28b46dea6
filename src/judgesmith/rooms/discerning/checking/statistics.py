"""Changes of a judge's scores although nothing relevant has changed, as numbers with intervals. No labels, no calls.

A check compares the scores of the same rows before and after a change: the mean change says whether the judge leans,
the share of flips whether its decisions can be trusted. Intervals resample documents. Scores are shares of the scale.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.resampling import (
    SHARE,
    Estimate,
    Range,
    estimates_of,
    sums_by,
)
from judgesmith.errors import OptionError
from judgesmith.parts import nearest

#: Check -> what is done.
CHECKS: Mapping[str, str] = {
    "repeat": "the same rows again, without the cache of calls",
    "reworded": "the rubric in other words",
    "swapped": "the two outputs of each comparison in the other order",
    "length": "sentences behind the output that say nothing",
    "style": "typographic quotes and dashes, other spaces before marks; or no full stop at the end",
    "layout": "every sentence of the output on a line of its own, as a list",
    "own": "outputs of the judge's own model family beside those of other systems",
}
GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": tuple(CHECKS),
    "padded": ("length", "style", "layout"),
}
PADDED = GROUPS["padded"]
_CHANGE = Range(-1.0, 1.0)
NO_ESTIMATE = Estimate(math.nan)
#: Words in names of systems and models -> the family they belong to, where it is not the word itself.
_FAMILIES: Mapping[str, str] = {
    "chatgpt": "gpt",
    "davinci": "gpt",
    "bard": "gemini",
    "palm": "gemini",
    "mixtral": "mistral",
    "ministral": "mistral",
    "codestral": "mistral",
    "qwq": "qwen",
}
_WORD = re.compile(r"[^\W\d_]+")


def chosen_checks(names: Sequence[str]) -> dict[str, bool]:
    """Check -> whether it was named itself, and not by a group. Raises OptionError for an unknown name."""
    result: dict[str, bool] = {}
    for name in names:
        if name not in CHECKS and name not in GROUPS:
            known = [*CHECKS, *GROUPS]
            raise OptionError(
                f"--check {name}: there is no such check{nearest(name, known)}; there are {', '.join(known)}"
            )
        for check in GROUPS.get(name, (name,)):
            result[check] = result.get(check, False) or name in CHECKS
    return {check: result[check] for check in CHECKS if check in result}


@dataclass(frozen=True)
class Scored:
    """Scores of some rows as shares of the scale, NaN where there is none.

    sides: each row's decision (a category, or which side of the bar), None without a score.
    """

    values: Vector
    sides: Sequence[str | None]


@dataclass(frozen=True)
class Resampling:
    """Settings of the intervals; documents: of each row."""

    documents: Sequence[str]
    rounds: int = 1000
    seed: int = 0

    def estimates(
        self,
        rows: npt.NDArray[np.bool_],
        columns: Sequence[Vector],
        within: Sequence[Range],
    ) -> list[Estimate]:
        """Means of columns over some rows, with intervals."""
        if not rows.any():
            return [NO_ESTIMATE] * len(columns)
        names = np.array(self.documents, dtype=object)[rows].astype(str)
        units = np.unique(names, return_inverse=True)[1]
        chosen = [column[rows] for column in columns]
        sums = sums_by(units, *chosen, np.ones(len(units)))

        def means(counts: Vector) -> Vector:
            total = counts @ sums
            return np.asarray(total[:, :-1] / total[:, -1:])

        return estimates_of(
            means,
            len(sums),
            within,
            rounds=self.rounds,
            confidence=0.95,
            seed=self.seed,
        )


@dataclass(frozen=True)
class Shift:
    """Effect of a check on the scores.

    change: mean of after − before. moved: mean size of the change. flips: share of rows whose decision is another.
    left: rows that could not be changed or have no score.
    """

    check: str
    rows: int
    left: int
    change: Estimate
    moved: Estimate
    flips: Estimate

    @property
    def lean(self) -> str:
        """Direction of the mean change, if it is beyond chance."""
        if math.isnan(self.change.low):
            return "unknown"
        if self.change.low > 0:
            return "raises"
        return "lowers" if self.change.high < 0 else "neither"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self) | {"about": CHECKS[self.check], "lean": self.lean}


def shift(check: str, before: Scored, after: Scored, how: Resampling) -> Shift:
    """Return the effect of a check, with intervals over documents."""
    change = after.values - before.values
    usable = ~np.isnan(change)
    pairs = zip(before.sides, after.sides, strict=True)
    flipped = np.array([one != other for one, other in pairs], dtype=np.float64)
    rows = int(usable.sum())
    decided = Range(sizes=(rows,), low=SHARE.low, high=SHARE.high)
    filled = np.where(usable, change, 0.0)
    shifts = how.estimates(
        usable, [filled, np.abs(filled), flipped], [_CHANGE, SHARE, decided]
    )
    return Shift(check, rows, len(change) - rows, *shifts)


def middle(values: Vector) -> float:
    """Return the median, or if no score lies below it the next higher score: a bar with rows on both sides."""
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return math.nan
    bar = float(np.median(ordered))
    higher = ordered[ordered > bar]
    return float(higher[0]) if bar <= ordered[0] and len(higher) else bar


def sides_of(values: Vector, bar: float) -> list[str | None]:
    """Return the side of a bar that each score lies on; a score at the bar passes."""
    sides = np.where(values >= bar, "pass", "fail").astype(object)
    sides[np.isnan(values)] = None
    return list(sides)


# Own writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lead:
    """Lead of the judge's own family over others in the same document, by its scores.

    own: the systems that count as its own. documents: those with both. wins: share of documents in which they are
    ahead, ties half. beside: another judge's column, "" without; over: the lead less that by the other judge.
    """

    own: tuple[str, ...]
    documents: int
    lead: Estimate
    wins: Estimate
    beside: str = ""
    over: Estimate = NO_ESTIMATE

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def families(name: str) -> list[str]:
    """Return the families that the words of a name belong to."""
    return [_FAMILIES.get(word, word) for word in _WORD.findall(name.casefold())]


def own_systems(systems: Sequence[str], model: str) -> list[str]:
    """The systems of the family of a model: that of the first word of its own name, such as gpt, claude or qwen."""
    family = families(model.rpartition("/")[2])[:1]
    names = dict.fromkeys(systems)
    return [name for name in names if family and family[0] in families(name)]


def leads(
    values: Vector, own: npt.NDArray[np.bool_], documents: Sequence[str]
) -> dict[str, float]:
    """Document -> mean score of the judge's own systems less that of the others, where it has both."""
    of_own = dict[str, list[float]]()
    of_others = dict[str, list[float]]()
    for name, value, mine in zip(documents, values.tolist(), own.tolist(), strict=True):
        if not math.isnan(value):
            (of_own if mine else of_others).setdefault(name, []).append(value)
    return {
        name: fmean(of_own[name]) - fmean(of_others[name])
        for name in dict.fromkeys(documents)
        if name in of_own and name in of_others
    }


def lead(
    found: Mapping[str, float],
    own: Sequence[str],
    how: Resampling,
    beside: str = "",
    other: Mapping[str, float] | None = None,
) -> Lead:
    """found, other: leads by document, by the judge and by another one."""
    both = {name: found[name] - x for name, x in (other or {}).items() if name in found}
    value, wins = _over_documents(found, how, wins=True)
    over = _over_documents(both, how)[0] if beside else NO_ESTIMATE
    return Lead(tuple(own), len(found), value, wins, beside, over)


def _over_documents(
    found: Mapping[str, float], how: Resampling, *, wins: bool = False
) -> list[Estimate]:
    """Return the mean over documents, and the share of them above 0."""
    drawn = Resampling(list(found), how.rounds, how.seed)
    values = np.array(list(found.values()), dtype=np.float64)
    reach = Range(-2.0, 2.0) if not wins else _CHANGE
    above = (np.sign(values) + 1) / 2
    share = Range(sizes=(len(values),), low=SHARE.low, high=SHARE.high)
    return drawn.estimates(
        np.ones(len(values), dtype=np.bool_), [values, above], [reach, share]
    )
