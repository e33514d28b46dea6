"""Meta-evaluation: how far do judges and metrics agree with people, how surely, and how far do people themselves?

`meta_evaluate` is a computation from vectors to data frames; `evaluating` reads files and draws.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from judgesmith.agreement.coefficients import decided
from judgesmith.agreement.meta.agreement import (
    against_people,
    agreements,
    ceilings,
    measures,
    ways,
)
from judgesmith.agreement.meta.comparisons import comparisons
from judgesmith.agreement.meta.inputs import (
    FEW_DOCUMENTS,
    Aspect,
    Beside,
    EvaluationOptions,
    Scores,
    aspects_of,
    levels_of,
    scale_of,
)
from judgesmith.agreement.meta.others import (
    assumed_on_scale,
    calibrations,
    judged,
    length_biases,
    off_scale,
    scales,
)
from judgesmith.agreement.meta.systems import by_system, no_better_than_systems
from judgesmith.errors import OptionError
from judgesmith.parts import read_options
from judgesmith.tables import Cell, Column, Table, facts, shortened

#: The columns of every data frame.
FRAMES = {
    "agreement": "judge aspect level coefficient value low high n skipped failed rows interval reason",
    "comparisons": "a b aspect level coefficient difference low high p error freedom n reason",
    "ceiling": "aspect level coefficient value low high raters alpha reason",
    "by_system": "aspect level coefficient value low high n reason",
    "way": "judge aspect raters value low high reason",
    "scale": "judge aspect mae mae_low mae_high bias bias_low bias_high rmse rmse_low rmse_high n failed reason",
    "calibration": "judge aspect bin low high n predicted human",
    "length": "judge aspect judge_length human_length bias agreement n failed",
}
SYSTEM_NOTE = (
    "intervals and tests speak of these very systems on as many other documents, not of other systems (--new-systems) "
    "or more documents, of which means agree better; at system level they are a little too narrow"
)
OTHERS_NOTE = "intervals and tests of correlations speak of other systems, too; all other intervals of these systems"


@dataclass(frozen=True, repr=False)
class MetaEvaluation:
    """Data frames of a meta-evaluation; one is empty if there was nothing to compute it from.

    agreement: n is what the value rests on, rows (pooled), documents (sample) or systems (system); of an average, the
    fewest of its aspects. coefficient "q" is r + rho + tau-b in [-3, 3], failed rows imputed; "acc_eq" is acc*_eq in
    [0, 1] (of systems: plain pairwise accuracy), with "acc_eq_cross", its epsilon from the other half of the documents;
    "kappa" (quadratic weights), "accuracy", "balanced-accuracy", "f1", "precision", "recall" (for fail) and "auc" are
    pooled, "pairwise" is of level sample.

    comparisons: a less b. The pairs of one aspect and level are tested together (max-t): with 95 % intervals, p is
    below .05 just where the interval leaves 0 out. error, freedom: the standard error of both, and Student's t's
    degrees of freedom.

    ceiling: value is that of a rater with the mean of the others, averaged.

    by_system: of the mean label of each row's system, from other documents, in place of a judge's score.

    way: from guessing (0) to one human rater (1), see `replacement.way_to_rater`.

    scale: in points of the scale; bias above 0: the judge is lenient.

    length: see `others.length_bias`.
    """

    agreement: pd.DataFrame
    comparisons: pd.DataFrame
    ceiling: pd.DataFrame
    by_system: pd.DataFrame
    way: pd.DataFrame
    scale: pd.DataFrame
    calibration: pd.DataFrame
    length: pd.DataFrame
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def __repr__(self) -> str:
        a = self.agreement
        judges, aspects = (
            ", ".join(map(str, dict.fromkeys(a[name]))) for name in ("judge", "aspect")
        )
        return shortened(
            f"MetaEvaluation(judges: {judges}; aspects: {aspects}; {len(a)} values)",
            240,
        )

    def _repr_html_(self) -> str:
        """Render judge, aspect and level against coefficients, with intervals, for notebooks."""
        names = list(dict.fromkeys(self.agreement["coefficient"]))
        table = Table(
            ("judge", "aspect", "level", *(Column(name, ".2f") for name in names)),
            "Agreement with people",
        )
        for key, group in self.agreement.groupby(
            ["judge", "aspect", "level"], sort=False
        ):
            cells = {
                row["coefficient"]: Cell(row["value"], row["low"], row["high"])
                for row in rows_of(group)
            }
            table.add(*key, *(cells.get(name) for name in names))
        return table.notebook() + facts(("note", note) for note in self.notes)

    def cell(
        self, judge: str, aspect: str, level: str, coefficient: str
    ) -> Mapping[str, Any]:
        """Return one row of `agreement` as a mapping.

        Raises:
            OptionError: If it was not computed.
        """
        t = self.agreement
        rows = t[
            (t["judge"] == judge)
            & (t["aspect"] == aspect)
            & (t["level"] == level)
            & (t["coefficient"] == coefficient)
        ]
        if not len(rows):
            raise OptionError(
                f"there is no {level} {coefficient} of {judge!r} for {aspect!r}"
            )
        return dict(rows.iloc[0].items())  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, NaN as None: {"judges": {judge: {aspect: {level: {coefficient: …}}}}, …}."""
        judges: dict[str, Any] = {}
        for row in _records(self.agreement):
            place = judges.setdefault(row.pop("judge"), {}).setdefault(
                row.pop("aspect"), {}
            )
            place.setdefault(row.pop("level"), {})[row.pop("coefficient")] = row
        ceiling: dict[str, Any] = {}
        for row in _records(self.ceiling):
            place = ceiling.setdefault(
                row.pop("aspect"), {"alpha": row["alpha"], "raters": row["raters"]}
            )
            row.pop("alpha"), row.pop("raters")
            place.setdefault(row.pop("level"), {})[row.pop("coefficient")] = row
        frames = ("comparisons", "by_system", "way", "scale", "calibration", "length")
        return (
            {"judges": judges, "ceiling": ceiling}
            | {name: _records(getattr(self, name)) for name in frames}
            | {"notes": list(self.notes), "settings": dict(self.settings)}
        )


def _absolute(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with negative agreements turned positive, as for lower-is-better metrics."""
    turned = table["value"] < 0
    value, low, high = (
        table[name].where(~turned, -table[name]) for name in ("value", "low", "high")
    )
    return table.assign(
        value=value, low=low.where(~turned, high), high=high.where(~turned, low)
    )


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a data frame as mappings."""
    return cast(list[dict[str, Any]], frame.to_dict("records"))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return list(map(_record, rows_of(frame)))


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): _plain(value) for name, value in row.items()}


def text(value: Any) -> str:
    """Return a cell of a data frame as text, "" where it is missing."""
    return value if isinstance(value, str) else ""


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value


def _few_documents(aspects: Sequence[Aspect]) -> list[str]:
    """Return a note where documents are too few to resample."""
    notes = []
    for aspect in aspects:
        documents = len(np.unique(aspect.units))
        if 1 < documents < FEW_DOCUMENTS:
            notes.append(
                f"{aspect.name}: the {len(aspect.y)} rows come from only {documents} documents: intervals, which "
                "resample documents, are wide, and hold the truth less often than they say; label more documents"
            )
    return notes


def meta_evaluate(
    judges: Mapping[str, Scores],
    human: Scores,
    *,
    documents: Iterable[Hashable] | None = None,
    systems: Iterable[Hashable] | None = None,
    scale: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    on_scale: Collection[str] | None = None,
    options: EvaluationOptions | None = None,
    **more: Any,
) -> MetaEvaluation:
    """Measure how far each judge agrees with people, at every level that the data have, with intervals and tests.

    More than 20,000 rows are resampled 200 times at most.

    Args:
        judges: name -> one score per row, or {aspect: scores} if a judge has one for each aspect; NaN is a failed row.
        human: one score per row, or {aspect: scores}; rows without one (NaN) are left out and counted.
        documents: document of each row; None: every row is a document of its own.
        systems: system of each row, if known.
        scale: (worst, best) of human ratings, or one per aspect; judges that leave it have no error on the scale.
        on_scale: the judges known to score on that scale; None takes all whose scores lie inside it, with a note.
        options: levels, coefficients, intervals and tests.
        **more: ratings, kinds, categories, decided, lengths and saved (see `Beside`), and the fields of
            `EvaluationOptions` by name in place of `options`.

    Returns:
        `MetaEvaluation`, a data frame per question.

    Raises:
        LabelsError: If scores cannot be correlated: fewer than 4 rows, constant human scores, infinite values.
        OptionError: If arguments do not fit each other.
    """
    extras = {f.name: more.pop(f.name, None) for f in dataclasses.fields(Beside)}
    beside = Beside(
        **{name: value for name, value in extras.items() if value is not None}
    )
    options = options or EvaluationOptions()
    options = read_options(type(options), dict(options) | more, "meta_evaluate")
    people = {"overall": human} if not isinstance(human, Mapping) else dict(human)
    if not judges or not people:
        raise OptionError(
            "judges: none given; pass the scores of at least one judge"
            if not judges
            else "human: no scores given; pass human ratings"
        )
    for name in on_scale or ():
        if name not in judges:
            raise OptionError(
                f"on_scale names {name!r}, which is not a judge; the judges are {', '.join(judges)}"
            )
    notes: list[str] = []
    aspects = aspects_of(judges, people, documents, systems, beside, notes)
    levels = levels_of(options.levels, aspects, notes)
    names = [name for name in options.reported if name not in decided()]
    by_aspect = measures(aspects, options.reported)
    every = judged(judges, aspects)
    on_the_scale = scales(
        every, {a.name: scale_of(scale, a.name) for a in aspects}, on_scale, options
    )
    aspects = [replace(one, off_scale=off_scale(one, on_the_scale)) for one in aspects]
    notes += assumed_on_scale(on_the_scale, on_scale)
    if options.rounds:
        notes += _few_documents(aspects)
    if options.rounds and any(aspect.systems > 2 for aspect in aspects):
        notes.append(OTHERS_NOTE if options.new_systems else SYSTEM_NOTE)
    tested = options.compare and options.rounds > 0
    frames = {
        "agreement": agreements(
            list(judges), aspects, levels, names, options, by_aspect, notes
        ),
        "comparisons": comparisons(list(judges), aspects, levels, options, notes)
        if tested
        else [],
        "ceiling": ceilings(beside.ratings, aspects, levels, names, options),
        "by_system": by_system(aspects, levels, names, options),
        "way": ways(beside.ratings, aspects, options),
        "scale": on_the_scale,
        "calibration": calibrations(every, on_scale),
        "length": length_biases(every, beside.lengths),
    }
    reported = [
        *names,
        *dict.fromkeys(name for own in by_aspect.values() for name in own),
    ]
    kept = {
        name: getattr(options, name)
        for name in ("rounds", "confidence", "seed", "new_systems")
    }
    if not options.absolute:
        notes += against_people(frames["agreement"], beside.saved)
        notes += no_better_than_systems(
            frames["agreement"], frames["by_system"], options.compared_by
        )
    tables = {
        name: pd.DataFrame(rows, columns=FRAMES[name].split())
        for name, rows in frames.items()
    }
    if options.absolute:
        tables["agreement"] = _absolute(tables["agreement"])
    return MetaEvaluation(
        **tables,
        notes=tuple(dict.fromkeys(notes)),
        settings=kept
        | {
            "levels": list(levels),
            "coefficients": reported,
            "compare_by": options.compared_by,
        },
    )
