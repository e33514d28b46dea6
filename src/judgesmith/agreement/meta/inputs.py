"""Inputs of a meta-evaluation: checked vectors for each aspect, and the settings of its intervals."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator

from judgesmith.agreement.coefficients import (
    ALL_LEVELS,
    coefficient_of,
    known,
    known_of_scores,
    of_scores,
    title_of,
)
from judgesmith.agreement.correlation import (
    LARGEST,
    Codes,
    Level,
    Vector,
    flat,
    id_codes,
)
from judgesmith.errors import LabelsError, OptionError
from judgesmith.parts import Options, option
from judgesmith.tables import counted

#: The name of a coefficient.
Named = Annotated[str, AfterValidator(known)]
#: A coefficient that judges are compared by: of scores, or a sum of these.
ComparedBy = Annotated[str, AfterValidator(known_of_scores)]
AVERAGE = "average"
#: Coefficients that are reported where none is asked for, and the one of them that judges are compared by.
USUAL = ("pearson", "spearman", "kendall")
COMPARED_BY = "spearman"
#: With fewer documents an interval over documents says next to nothing.
FEW_DOCUMENTS = 8
LEAST_ROWS = 4  # fewer rows have no agreement worth a number
# more rows than `MANY` are resampled only `FEWER` times
MANY = 20_000
FEWER = 200

Scores = npt.ArrayLike | Mapping[str, npt.ArrayLike]


@dataclass(frozen=True)
class Aspect:
    """Rows that people scored for one aspect, with all judges' scores of them.

    kind: kind of human ratings. levels: scores of their categories. decided: the number of each row's category, from 0,
    by judges that have categories.
    """

    name: str
    y: Vector
    x: dict[str, Vector]
    rows: npt.NDArray[np.bool_]  # of all rows
    doc: Codes | None
    sys: Codes | None
    kind: str = "score"
    levels: tuple[float, ...] = ()
    decided: Mapping[str, Vector] = field(default_factory=dict)
    off_scale: Mapping[str, str] = field(default_factory=dict)
    """Why scores are not known to be on the scale of people's, by judge; a judge on it is not named."""

    def unfit(self, judge: str, coefficient: str) -> str | None:
        """Return why a coefficient has no value for a judge's scores, for all that they are there; None if it has."""
        if coefficient_of(coefficient).on_scale and judge in self.off_scale:
            title = title_of(coefficient)
            return f"{title} needs scores on people's scale: {self.off_scale[judge]}"
        return None

    @property
    def units(self) -> Codes:
        """The unit of each row that is resampled: its document, or else the row itself."""
        return np.arange(len(self.y)) if self.doc is None else self.doc

    @property
    def systems(self) -> int:
        """The number of systems; 0 if the rows name none."""
        return 0 if self.sys is None else len(np.unique(self.sys))

    def repeated(self) -> bool:
        """Return whether rows share a document."""
        return self.doc is not None and len(np.unique(self.doc)) < len(self.doc)

    def only(self, rows: npt.NDArray[np.bool_]) -> Units:
        """Return the documents and systems of some of the rows, numbered without gaps."""
        doc = np.unique(self.units[rows], return_inverse=True)[1]
        if self.sys is None:
            sys = None
        else:
            sys = np.unique(self.sys[rows], return_inverse=True)[1]
        return Units(doc, sys)


@dataclass(frozen=True)
class Units:
    """Units that can be resampled: the document and the system of each row, each numbered from 0 without gaps."""

    doc: Codes
    sys: Codes | None

    @property
    def documents(self) -> int:
        """The number of documents."""
        return int(self.doc.max(initial=-1)) + 1

    @property
    def systems(self) -> int:
        """The number of systems; 0 if the rows name none."""
        return 0 if self.sys is None else int(self.sys.max(initial=-1)) + 1


class EvaluationOptions(Options):
    """Settings of a meta-evaluation: levels, coefficients, intervals and tests."""

    levels: tuple[Level, ...] | None = option(
        None,
        "Levels: pooled, within (systems), sample (of documents with several rows), system (of 3 or more). none: all "
        "that the rows allow.",
    )
    coefficients: tuple[Named, ...] | None = option(
        None,
        "Coefficients; `judgesmith list coefficients` describes them. Those of categories, of pass or fail, and of "
        "preferences are added where they apply. none: pearson, spearman and kendall.",
    )
    rounds: int = option(
        1000, "Number of bootstrap resamples of documents. 0: no intervals.", ge=0
    )
    confidence: float = option(0.95, "Confidence level of the intervals.", gt=0, lt=1)
    seed: int = option(0, "Random seed for the resamples.")
    new_systems: bool = option(
        False,
        "Make intervals and tests of correlations hold for other systems, too.",
        added=True,
    )
    absolute: bool = option(
        False, "Report absolute correlations, for metrics of which lower is better."
    )
    compare: bool = option(
        True,
        "Test all pairs of judges against each other. Above 8 judges: each against the first.",
    )
    compare_by: ComparedBy | None = option(
        None,
        "Coefficient to compare judges by. none: the first of those asked for, or of the gates', that is computed from "
        "scores; spearman if none is.",
    )

    @property
    def compared_by(self) -> str:
        """The coefficient that judges are compared by."""
        asked = (name for name in self.coefficients or () if name in of_scores())
        return self.compare_by or next(asked, COMPARED_BY)

    @property
    def reported(self) -> list[str]:
        """The coefficients to report, each with those that always come with it.

        Alone acc*_eq would flatter a judge by an epsilon chosen on the rows that it is reported on.
        """
        reported: dict[str, None] = {}
        for name in self.coefficients or USUAL:
            reported |= dict.fromkeys((name, *coefficient_of(name).brings))
        return list(reported)

    def rounds_of(self, rows: int) -> int:
        """Return the number of resamples for that number of rows."""
        return self.rounds if rows <= MANY else min(self.rounds, FEWER)


@dataclass(frozen=True)
class Beside:
    """Optional data beside the scores.

    ratings: {aspect: table (rows, raters)} for the human ceiling. kinds, categories: {aspect: kind of human ratings,
    scores of their categories}. decided: {judge: number of each row's category from 0, NaN without one}, for judges
    that have categories. lengths: words of each output. saved: the judges that were compiled or made here, whose higher
    scores are better ones.
    """

    ratings: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, Sequence[float]] = field(default_factory=dict)
    decided: Mapping[str, Scores] = field(default_factory=dict)
    lengths: npt.ArrayLike | None = None
    saved: Collection[str] = ()


def aspects_of(
    judges: Mapping[str, Scores],
    people: Mapping[str, npt.ArrayLike],
    documents: Iterable[Hashable] | None,
    systems: Iterable[Hashable] | None,
    beside: Beside,
    notes: list[str],
) -> list[Aspect]:
    """Return everything checked, by aspect; what rows have no human score is left out and noted."""
    everything = {
        name: scores_of(f"human score {name!r}", values)
        for name, values in people.items()
    }
    rows = len(next(iter(everything.values())))
    doc = None if documents is None else id_codes(documents, rows, "documents")
    sys = None if systems is None else id_codes(systems, rows, "systems")
    result = []
    for name, y in everything.items():
        labelled = ~np.isnan(y)
        _scorable(name, y[labelled], rows)
        if not labelled.all():
            notes.append(
                f"{name}: {int((~labelled).sum())} of {rows} rows have no human score and are left out"
            )
        x = _of_judges("judge", judges, name, labelled)
        places = _of_judges("categories of judge", beside.decided, name, labelled)
        docs, systems_ = (
            None if code is None else code[labelled] for code in (doc, sys)
        )
        kind = beside.kinds.get(name, "score")
        marks = tuple(beside.categories.get(name, ()))
        result.append(
            Aspect(name, y[labelled], x, labelled, docs, systems_, kind, marks, places)
        )
    for judge in judges:
        if not any(judge in aspect.x for aspect in result):
            raise OptionError(f"judge {judge!r} has no scores for {', '.join(people)}")
    return result


def _of_judges(
    kind: str,
    judges: Mapping[str, Scores],
    aspect: str,
    labelled: npt.NDArray[np.bool_],
) -> dict[str, Vector]:
    """Return every judge's scores of the labelled rows of an aspect."""
    result = {}
    for judge, scores in judges.items():
        own = scores.get(aspect) if isinstance(scores, Mapping) else scores
        if own is not None:
            values = scores_of(f"{kind} {judge!r}", own)
            if len(values) != len(labelled):
                raise LabelsError(
                    f"{kind} {judge!r} has {len(values)} scores for {len(labelled)} rows; give one per row"
                )
            result[judge] = values[labelled]
    return result


def scores_of(label: str, values: npt.ArrayLike) -> Vector:
    """Return one number per row as a checked vector; NaN is a missing score.

    Raises:
        LabelsError: If values are not one number per row, or too large for a score.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise LabelsError(f"{label}: expected one number per row ({error})") from None
    if array.ndim != 1:
        raise LabelsError(
            f"{label}: expected one number per row, got an array of shape {array.shape}"
        )
    wrong = np.abs(array) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        raise LabelsError(
            f"{label}: row {row + 1} is {array[row]:g}, not a score; correct it, or leave it empty"
        )
    return array


def _scorable(name: str, y: Vector, rows: int) -> None:
    if not len(y):
        raise LabelsError(
            f"human score {name!r}: all {rows} values are missing; there is nothing to agree with"
        )
    if len(y) < LEAST_ROWS:
        raise LabelsError(
            f"human score {name!r}: {len(y)} rows have one; at least {LEAST_ROWS} are needed, 50 for a useful interval"
        )
    if flat(y[None])[0]:
        raise LabelsError(
            f"human score {name!r}: all {len(y)} values are {y[0]:g}, so there is nothing to agree with; "
            "add rows with other scores"
        )


def levels_of(
    requested: Sequence[Level] | None, aspects: Sequence[Aspect], notes: list[str]
) -> tuple[Level, ...]:
    """Return the levels asked for, or all that the rows allow.

    Raises:
        OptionError: If the rows do not allow one.
    """
    first = aspects[0]
    repeated = first.repeated()
    systems = first.systems
    if "sample" in (requested or ()) and not repeated:
        if first.doc is None:
            why = "there are no document ids"
        else:
            why = "every document has one row"
        raise OptionError(
            f"level sample: {why}; give a doc_id that the systems' outputs share, or "
            "use level pooled"
        )
    if "system" in (requested or ()) and systems < 3:
        named = "1 system" if systems == 1 else f"{systems} systems"
        raise OptionError(f"level system: the rows name {named}; at least 3 are needed")
    if "within" in (requested or ()) and systems < 2:
        raise OptionError(
            f"level within compares the rows of one system, apart from the others, but the rows name "
            f"{counted(systems, 'system')}; use level pooled"
        )
    if first.doc is not None and len(np.unique(first.doc)) < 2:
        notes.append(
            "there is one document only: documents cannot be resampled, so nothing here has an interval"
        )
    allowed: dict[Level, bool] = {
        "pooled": True,
        "within": 2 <= systems < len(first.y),
        "sample": repeated,
        "system": systems >= 3,
    }
    return tuple(
        dict.fromkeys(requested or (level for level in ALL_LEVELS if allowed[level]))
    )


def scale_of(scale: Any, aspect: str) -> tuple[float, float] | None:
    """Return the scale of an aspect as (worst, best); None if there is none."""
    ends = scale.get(aspect) if isinstance(scale, Mapping) else scale
    return None if ends is None else (float(ends[0]), float(ends[1]))
