"""What a meta-evaluation computes from: checked vectors for each aspect, and the settings of its intervals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ....errors import LabelsError, OptionError
from ..correlation import LARGEST, Codes, Level, Vector, flat, id_codes
from ..resampling import Method

Over = Literal["documents", "systems", "both"]
LEVELS: tuple[Level, ...] = ("pooled", "sample", "system")
COEFFICIENTS = ("pearson", "spearman", "kendall", "kendall_c", "q", "accuracy", "accuracy_cross")
AVERAGE = "average"
LEAST_ROWS = 4  # fewer rows have no agreement worth a number
MANY = 20_000  # units (rows, documents) above which batches of documents take the place of resamples

Scores = npt.ArrayLike | Mapping[str, npt.ArrayLike]


@dataclass(frozen=True)
class Aspect:
    """The rows that people scored for one aspect, and all judges' scores of them."""

    name: str
    y: Vector
    x: dict[str, Vector]
    rows: npt.NDArray[np.bool_]  # of all rows
    doc: Codes | None
    sys: Codes | None

    @property
    def units(self) -> Codes:
        return np.arange(len(self.y)) if self.doc is None else self.doc

    def repeated(self) -> bool:
        """Do rows share a document?"""
        return self.doc is not None and len(np.unique(self.doc)) < len(self.doc)

    def only(self, rows: npt.NDArray[np.bool_]) -> Units:
        """The documents and systems of some of the rows, numbered without gaps."""
        doc = np.unique(self.units[rows], return_inverse=True)[1]
        sys = None if self.sys is None else np.unique(self.sys[rows], return_inverse=True)[1]
        return Units(doc, sys)


@dataclass(frozen=True)
class Units:
    """What can be drawn again: for each row its document and its system, each numbered from 0 without gaps."""

    doc: Codes
    sys: Codes | None

    @property
    def rows(self) -> int:
        return len(self.doc)

    @property
    def documents(self) -> int:
        return int(self.doc.max(initial=-1)) + 1

    @property
    def systems(self) -> int:
        return 0 if self.sys is None else int(self.sys.max(initial=-1)) + 1


@dataclass(frozen=True)
class How:
    rounds: int
    confidence: float
    seed: int
    interval: Method
    over: Over


def check(how: How, coefficients: Sequence[str], levels: Sequence[str] | None, by: str) -> None:
    for name in [*coefficients, by]:
        if name not in (*COEFFICIENTS, "sum"):
            raise OptionError(f"coefficient {name!r} is none of {', '.join(COEFFICIENTS)}")
    if by.startswith("accuracy"):
        raise OptionError("judges are not compared by accuracy; compare them by a correlation or by q")
    for level in levels or ():
        if level not in LEVELS:
            raise OptionError(f"level {level!r} is none of {', '.join(LEVELS)}")
    if how.over not in get_args(Over):
        raise OptionError(f"the bootstrap draws {', '.join(get_args(Over))}, not {how.over!r}")
    if how.interval not in get_args(Method):
        raise OptionError(f"interval {how.interval!r} is none of {', '.join(get_args(Method))}")
    if how.over != "documents" and how.interval == "bca":
        raise OptionError('the BCa interval needs over="documents"; take "fisher" or "percentile" for systems')
    if how.rounds < 0 or not 0 < how.confidence < 1:
        raise OptionError(f"rounds is {how.rounds}, confidence {how.confidence}: rounds >= 0, confidence in 0..1")


def aspects_of(
    judges: Mapping[str, Scores],
    people: Mapping[str, npt.ArrayLike],
    documents: Iterable[Hashable] | None,
    systems: Iterable[Hashable] | None,
    notes: list[str],
) -> list[Aspect]:
    everything = {name: scores_of(f"human score {name!r}", values) for name, values in people.items()}
    rows = len(next(iter(everything.values())))
    doc = None if documents is None else id_codes(documents, rows, "documents")
    sys = None if systems is None else id_codes(systems, rows, "systems")
    found = []
    for name, y in everything.items():
        labelled = ~np.isnan(y)
        _scorable(name, y[labelled], rows)
        if not labelled.all():
            notes.append(f"{name}: {int((~labelled).sum())} of {rows} rows have no human score and are left out")
        x = {}
        for judge, scores in judges.items():
            given = scores.get(name) if isinstance(scores, Mapping) else scores
            if given is None:
                continue
            values = scores_of(f"judge {judge!r}", given)
            if len(values) != len(y):
                raise LabelsError(f"judge {judge!r} has {len(values)} scores for {len(y)} rows; give one per row")
            x[judge] = values[labelled]
        found.append(
            Aspect(
                name,
                y[labelled],
                x,
                labelled,
                None if doc is None else doc[labelled],
                None if sys is None else sys[labelled],
            )
        )
    for judge in judges:
        if not any(judge in aspect.x for aspect in found):
            raise OptionError(f"judge {judge!r} has no scores for {', '.join(people)}")
    return found


def scores_of(what: str, values: npt.ArrayLike) -> Vector:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise LabelsError(f"{what}: expected one number per row ({error})") from None
    if array.ndim != 1:
        raise LabelsError(f"{what}: expected one number per row, got an array of shape {array.shape}")
    wrong = np.abs(array) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        raise LabelsError(f"{what}: row {row + 1} is {array[row]:g}, which is no score; mend it, or leave it empty")
    return array


def _scorable(name: str, y: Vector, rows: int) -> None:
    if not len(y):
        raise LabelsError(f"human score {name!r}: all {rows} values are missing; there is nothing to agree with")
    if len(y) < LEAST_ROWS:
        raise LabelsError(
            f"human score {name!r}: {len(y)} rows have one; at least {LEAST_ROWS} are needed, 50 for a useful interval"
        )
    if flat(y[None])[0]:
        raise LabelsError(
            f"human score {name!r}: all {len(y)} values are {y[0]:g}, so there is nothing to agree with; "
            "add rows with other scores"
        )


def levels_of(asked: Sequence[Level] | None, aspects: Sequence[Aspect], notes: list[str]) -> tuple[Level, ...]:
    first = aspects[0]
    repeated = first.repeated()
    systems = 0 if first.sys is None else len(np.unique(first.sys))
    if asked:
        if "sample" in asked and not repeated:
            raise OptionError(
                "level sample correlates within documents, but "
                + ("there are no document ids" if first.doc is None else "every document has one row")
                + "; give a doc_id that the systems' outputs share, or take level pooled"
            )
        if "sample" in asked and first.doc is not None and len(np.unique(first.doc)) < 2:
            notes.append("there is one document only: the sample level rests on it alone and has no interval")
        if "system" in asked and systems < 3:
            raise OptionError(
                f"level system correlates the systems' means, but there {'is' if systems == 1 else 'are'} {systems} "
                f"system{'' if systems == 1 else 's'}; at least 3 are needed"
            )
        return tuple(dict.fromkeys(asked))
    if first.doc is not None and len(np.unique(first.doc)) < 2:
        notes.append("there is one document only: documents cannot be resampled, so nothing here has an interval")
    found: list[Level] = ["pooled"]
    if repeated:
        found.append("sample")
    if systems >= 3:
        found.append("system")
    return tuple(found)


def several(aspects: Sequence[Aspect]) -> bool:
    return any(aspect.sys is not None and len(np.unique(aspect.sys)) > 2 for aspect in aspects)


def scale_of(scale: Any, aspect: str) -> tuple[float, float] | None:
    found = scale.get(aspect) if isinstance(scale, Mapping) else scale
    return None if found is None else (float(found[0]), float(found[1]))
