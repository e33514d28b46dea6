"""Meta-evaluation: how far do judges and metrics agree with people, how surely, and how far do people themselves?

`meta_evaluate` is a computation from vectors to data frames. What reads files is in `evaluation_sources`, what draws is
in `evaluation_report`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from ..errors import LabelsError, OptionError
from ..optimizers.agreement_scale import (
    calibration_curve,
    decisions,
    length_bias,
    rank_systems,
    scale_agreement,
)
from ..optimizers.correlation import (
    LARGEST,
    PARTS,
    Coefficient,
    CorrelationSum,
    Level,
    Vector,
    correlate,
    flat,
    id_codes,
    rowwise,
    system_means,
    within_documents,
)
from ..optimizers.resampling import Agreement, Method, WeightedRows, limits, width_against_n
from ..optimizers.significance import (
    Swap,
    holm,
    krippendorff_alpha,
    paired_bootstrap,
    pairwise_accuracy,
    permutation_test,
    rater_ceiling,
    williams_test,
)

Over = Literal["documents", "systems", "both"]
LEVELS: tuple[Level, ...] = ("pooled", "sample", "system")
COEFFICIENTS = ("pearson", "spearman", "kendall", "kendall_c", "q", "accuracy")
AVERAGE = "average"
LEAST_ROWS = 4  # fewer rows have no agreement worth a number
MANY = 20_000  # units (rows, documents) above which batches of documents take the place of resamples
BATCHES = 50
ALL_PAIRS = 8  # judges up to which all pairs are tested, beyond it each against the first
SIZES = (25, 50, 100, 200, 400, 800)
SYSTEM_NOTE = (
    "intervals over documents speak of these very systems on other documents. For other systems draw both: where a "
    "judge's quality varied between 16 systems, intervals over documents held the value of the systems at large in "
    "33-46 % of simulated cases, over both in 91-97 %. At system level they are too narrow even for these systems "
    "(75-90 %); with fewer than about 10 systems no method is to be trusted."
)

Scores = npt.ArrayLike | Mapping[str, npt.ArrayLike]


@dataclass(frozen=True)
class MetaEvaluation:
    """Data frames; a frame is empty where there was nothing to compute it from.

    agreement: judge, aspect, level, coefficient, value, low, high, n, skipped, failed, rows, interval, reason. n: rows
        (pooled), documents (sample) or systems (system) that the value rests on; of an average, the fewest of its
        aspects. coefficient "q" is r + rho + tau-b in [-3, 3], failed rows imputed; "accuracy" is acc*_eq in [0, 1].
    comparisons: a, b, aspect, level, coefficient, difference, low, high, and for each test p_… and p_…_holm, corrected
        over the pairs of one aspect and level. p_williams is that of Pearson's r, whatever the coefficient.
    ceiling: aspect, level, coefficient, value (a rater with the mean of the others, averaged), raters, alpha, reason.
    scale: judge, aspect, stage, mae, bias, rmse (each with _low, _high), n, failed, reason; stage "uncalibrated" is the
        same judge before its calibration.
    calibration: judge, aspect, stage, bin, low, high, n, predicted, human.
    decisions: judge, aspect, threshold, precision, recall, accuracy, kappa (each with _low, _high), accepted, n,
        failed, reason.
    length: judge, aspect, judge_length, human_length, bias, agreement, n, failed.
    ranks: aspect, system, rows, human, human_rank, judge, predicted, predicted_rank.
    widths: judge, aspect, level, coefficient, documents, width, extrapolated.
    """

    agreement: pd.DataFrame
    comparisons: pd.DataFrame
    ceiling: pd.DataFrame
    scale: pd.DataFrame
    calibration: pd.DataFrame
    decisions: pd.DataFrame
    length: pd.DataFrame
    ranks: pd.DataFrame
    widths: pd.DataFrame
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def cell(self, judge: str, aspect: str, level: str, coefficient: str) -> Mapping[str, Any]:
        """One row of `agreement` as a mapping. Raises OptionError if it was not computed."""
        t = self.agreement
        found = t[
            (t["judge"] == judge) & (t["aspect"] == aspect) & (t["level"] == level) & (t["coefficient"] == coefficient)
        ]
        if not len(found):
            raise OptionError(f"there is no {level} {coefficient} of {judge!r} for {aspect!r}")
        return dict(found.iloc[0].items())  # type: ignore[arg-type]

    def absolute(self) -> MetaEvaluation:
        """The same with the signs of negative agreements turned, as tables of lower-is-better metrics have it."""
        table = self.agreement.copy()
        turned = table["value"] < 0
        value, low, high = (table[name].where(~turned, -table[name]) for name in ("value", "low", "high"))
        table["value"], table["low"], table["high"] = value, low.where(~turned, high), high.where(~turned, low)
        return dataclasses.replace(self, agreement=table)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, NaN as None: {"judges": {judge: {aspect: {level: {coefficient: {value, …}}}}}, …}."""
        judges: dict[str, Any] = {}
        for row in _records(self.agreement):
            place = judges.setdefault(row.pop("judge"), {}).setdefault(row.pop("aspect"), {})
            place.setdefault(row.pop("level"), {})[row.pop("coefficient")] = row
        ceiling: dict[str, Any] = {}
        for row in _records(self.ceiling):
            place = ceiling.setdefault(row.pop("aspect"), {"alpha": row["alpha"], "raters": row["raters"]})
            row.pop("alpha"), row.pop("raters")
            place.setdefault(row.pop("level"), {})[row.pop("coefficient")] = row
        frames = ("comparisons", "scale", "calibration", "decisions", "length", "ranks", "widths")
        return (
            {"judges": judges, "ceiling": ceiling}
            | {name: _records(getattr(self, name)) for name in frames}
            | {"notes": list(self.notes), "settings": dict(self.settings)}
        )


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a data frame as mappings."""
    return cast(list[dict[str, Any]], frame.to_dict("records"))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): _plain(v) for k, v in row.items()} for row in rows_of(frame)]


def text(value: Any) -> str:
    """A cell of a data frame as text, "" where it is missing."""
    return value if isinstance(value, str) else ""


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)) else value


@dataclass(frozen=True)
class _Aspect:
    """The rows that people scored for one aspect, and all judges' scores of them."""

    name: str
    y: Vector
    x: dict[str, Vector]
    rows: npt.NDArray[np.bool_]  # of all rows
    doc: npt.NDArray[np.intp] | None
    sys: npt.NDArray[np.intp] | None

    @property
    def units(self) -> npt.NDArray[np.intp]:
        return np.arange(len(self.y)) if self.doc is None else self.doc


@dataclass(frozen=True)
class _How:
    rounds: int
    confidence: float
    seed: int
    interval: Method
    over: Over


def meta_evaluate(
    judges: Mapping[str, Scores],
    human: Scores,
    *,
    documents: Iterable[Hashable] | None = None,
    systems: Iterable[Hashable] | None = None,
    levels: Sequence[Level] | None = None,
    coefficients: Sequence[str] = PARTS,
    uncalibrated: Mapping[str, Scores] | None = None,
    ratings: Mapping[str, npt.ArrayLike] | None = None,
    lengths: npt.ArrayLike | None = None,
    scale: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    threshold: float | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    interval: Method = "fisher",
    over: Over = "documents",
    compare: bool = True,
    compare_by: str = "spearman",
    swap: Swap | None = None,
    sizes: Sequence[int] = SIZES,
) -> MetaEvaluation:
    """How far each judge agrees with people, at every level that the data have, with intervals and tests.

    judges: name -> one score per row, or {aspect: scores} where a judge has one for each aspect; NaN is a failed row.
    human: one score per row, or {aspect: scores}; rows without one (NaN) are left out and counted.
    documents, systems: ids, one per row. levels: None takes pooled, sample (if documents repeat) and system (if there
        are 3 or more). coefficients: pearson, spearman, kendall (tau-b), kendall_c, q (their sum), accuracy.
    uncalibrated: the judges' scores before calibration. ratings: {aspect: table (rows, raters)} for the human ceiling.
    scale: (worst, best) of people's scores, or one per aspect; judges that leave it have no error on the scale.
    rounds: of bootstrap and permutation, 0 for values alone. over: what the bootstrap draws. interval: see
        `resampling.bootstrap_q`; above 20,000 rows 50 batches of documents take the place of resamples.
    compare: test judges pairwise by `compare_by`; above 8 judges each against the first.
    Raises LabelsError for scores that cannot be correlated (fewer than 4 rows, constant human scores, infinite values),
    OptionError for arguments that do not fit.
    """
    how = _How(rounds, confidence, seed, interval, over)
    _check(how, coefficients, levels, compare_by)
    people = {"overall": human} if not isinstance(human, Mapping) else dict(human)
    if not judges or not people:
        raise OptionError("there is no judge to evaluate" if not judges else "there are no human scores")
    notes: list[str] = []
    aspects = _aspects(judges, people, documents, systems, notes)
    chosen = _levels(levels, aspects, notes)
    names = list(dict.fromkeys(coefficients))
    by = "q" if compare_by == "sum" else compare_by
    limits = {a.name: _scale_of(scale, a.name) for a in aspects}
    agreement = _agreement(list(judges), aspects, chosen, names, how)
    return MetaEvaluation(
        agreement=_frame(
            agreement, "judge aspect level coefficient value low high n skipped failed rows interval reason"
        ),
        comparisons=_frame(
            _comparisons(list(judges), aspects, chosen, by, how, swap, notes) if compare and rounds else [],
            "a b aspect level coefficient difference low high n p_permutation p_permutation_holm p_bootstrap "
            "p_bootstrap_holm p_williams p_williams_holm reason",
        ),
        ceiling=_frame(
            _ceilings(ratings or {}, aspects, chosen, names), "aspect level coefficient value raters alpha reason"
        ),
        scale=_frame(
            _scales(judges, uncalibrated or {}, aspects, limits, how),
            "judge aspect stage mae mae_low mae_high bias bias_low bias_high rmse rmse_low rmse_high n failed reason",
        ),
        calibration=_frame(
            _calibrations(judges, uncalibrated or {}, aspects),
            "judge aspect stage bin low high n predicted human",
        ),
        decisions=_frame(
            _decisions(judges, aspects, limits, threshold, how) if threshold is not None else [],
            "judge aspect threshold precision precision_low precision_high recall recall_low recall_high accuracy "
            "accuracy_low accuracy_high kappa kappa_low kappa_high accepted n failed reason",
        ),
        length=_frame(
            _lengths(judges, aspects, lengths) if lengths is not None else [],
            "judge aspect judge_length human_length bias agreement n failed",
        ),
        ranks=_frame(
            _ranks(judges, aspects, systems), "aspect system rows human human_rank judge predicted predicted_rank"
        ),
        widths=_frame(
            _widths(next(iter(judges)), aspects, chosen[0], by, how, sizes) if rounds else [],
            "judge aspect level coefficient documents width extrapolated",
        ),
        notes=tuple(
            dict.fromkeys(notes + ([SYSTEM_NOTE] if _several(aspects) and rounds and over == "documents" else []))
        ),
        settings=dataclasses.asdict(how) | {"levels": list(chosen), "coefficients": names, "compare_by": by},
    )


# Input ---------------------------------------------------------------------------------------------------------------


def _check(how: _How, coefficients: Sequence[str], levels: Sequence[str] | None, by: str) -> None:
    for name in [*coefficients, by]:
        if name not in (*COEFFICIENTS, "sum"):
            raise OptionError(f"coefficient {name!r} is none of {', '.join(COEFFICIENTS)}")
    if by == "accuracy":
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


def _aspects(
    judges: Mapping[str, Scores],
    people: Mapping[str, npt.ArrayLike],
    documents: Iterable[Hashable] | None,
    systems: Iterable[Hashable] | None,
    notes: list[str],
) -> list[_Aspect]:
    everything = {name: _scores(f"human score {name!r}", values) for name, values in people.items()}
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
            values = _scores(f"judge {judge!r}", given)
            if len(values) != len(y):
                raise LabelsError(f"judge {judge!r} has {len(values)} scores for {len(y)} rows; give one per row")
            x[judge] = values[labelled]
        found.append(
            _Aspect(
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


def _scores(what: str, values: npt.ArrayLike) -> Vector:
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


def _levels(asked: Sequence[Level] | None, aspects: Sequence[_Aspect], notes: list[str]) -> tuple[Level, ...]:
    first = aspects[0]
    repeated = first.doc is not None and len(np.unique(first.doc)) < len(first.doc)
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


def _several(aspects: Sequence[_Aspect]) -> bool:
    return any(aspect.sys is not None and len(np.unique(aspect.sys)) > 2 for aspect in aspects)


def _frame(rows: Sequence[Mapping[str, Any]], columns: str) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=columns.split())


def _scale_of(scale: Any, aspect: str) -> tuple[float, float] | None:
    found = scale.get(aspect) if isinstance(scale, Mapping) else scale
    return None if found is None else (float(found[0]), float(found[1]))


# Agreement -----------------------------------------------------------------------------------------------------------


@dataclass
class _Cell:
    """A coefficient and its resamples; `agreement` is what its interval is computed from."""

    value: float
    n: int
    skipped: int
    failed: int
    rows: int
    reason: str | None
    low: float = math.nan
    high: float = math.nan
    interval: str = ""
    drawn: Vector | None = None
    key: Any = None
    agreement: Agreement | None = None

    def row(self) -> dict[str, Any]:
        names = ("value", "low", "high", "n", "skipped", "failed", "rows", "interval", "reason")
        return {name: getattr(self, name) for name in names}


def _agreement(
    judges: Sequence[str], aspects: Sequence[_Aspect], levels: Sequence[Level], names: Sequence[str], how: _How
) -> list[dict[str, Any]]:
    found = []
    for judge, level, name in itertools.product(judges, levels, names):
        if name == "accuracy" and level == "system":
            continue
        cells = []
        for aspect in aspects:
            if judge in aspect.x:
                cell = _cell(aspect, judge, level, name, how)
                cells.append(cell)
                found.append({"judge": judge, "aspect": aspect.name, "level": level, "coefficient": name} | cell.row())
        if len(cells) > 1 and len(cells) == len(aspects):
            mean = _average(cells, name, how)
            found.append({"judge": judge, "aspect": AVERAGE, "level": level, "coefficient": name} | mean.row())
    order = {judge: i for i, judge in enumerate(judges)}
    place = {a.name: i for i, a in enumerate(aspects)}
    return sorted(found, key=lambda r: (order[r["judge"]], place.get(r["aspect"], len(place))))


def _cell(aspect: _Aspect, judge: str, level: Level, name: str, how: _How) -> _Cell:
    x, y, doc, sys = aspect.x[judge], aspect.y, aspect.doc, aspect.sys
    if name == "accuracy":
        return _accuracy(x, y, doc if level == "sample" else None, aspect.units, how)
    coefficient = cast(Coefficient, "sum" if name == "q" else name)
    plain = correlate(x, y, coefficient=coefficient, level=level, documents=doc, systems=sys)
    cell = _Cell(plain.value, plain.n, plain.skipped, plain.failed, len(y), plain.reason)
    if coefficient == "sum" and not np.isnan(x).all():
        objective = CorrelationSum(level)(x, y, doc, sys)
        cell.value, cell.n, cell.reason = objective.q, objective.n, objective.reason
    if how.rounds and not math.isnan(cell.value):
        _bound(cell, aspect, x, level, coefficient, how)
    return cell


def _bound(cell: _Cell, aspect: _Aspect, x: Vector, level: Level, coefficient: Coefficient, how: _How) -> None:
    """Give the cell its interval, or the reason why it has none."""
    y, doc, sys = aspect.y, aspect.units, aspect.sys
    usable = ~np.isnan(x)
    documents = len(np.unique(doc[usable]))
    if how.over != "documents":
        if sys is None:
            raise OptionError(f"systems are to be resampled, but no system is named; take over={'documents'!r}")
        systems = len(np.unique(sys[usable]))
        if systems < 3 or (how.over == "both" and documents < 2):
            cell.reason = f"{systems} systems and {documents} documents are too few to be resampled"
            return
        drawn = _drawn_systems(x[usable], y[usable], doc[usable], sys[usable], level, coefficient, how)
        units = systems if how.over == "systems" else min(systems, documents)
        cell.agreement = Agreement([], [cell.value], units, int(usable.sum()), coefficient == "sum", None)
        cell.key = (how.over, usable.tobytes())
        _limit(cell, drawn, how)
        return
    if documents < 2:
        cell.reason = "one document cannot be resampled: no interval"
        return
    if (len(y) if level == "pooled" else documents) > MANY:
        _batches(cell, aspect, x, level, coefficient, how)
        return
    cell.agreement = Agreement.of([x], y, doc, sys, level, coefficient)
    if cell.agreement.reason:
        cell.reason = cell.agreement.reason
        return
    cell.key = aspect.rows.tobytes() + (b"" if coefficient == "sum" else usable.tobytes())
    _limit(cell, cell.agreement.resample(how.rounds, how.seed)[0][0], how)


def _limit(cell: _Cell, drawn: Vector, how: _How) -> None:
    assert cell.agreement is not None
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < how.rounds / 2:
        cell.reason = f"undefined in {len(drawn) - len(defined)} of {how.rounds} resamples: scores too often constant"
        return
    cell.drawn, cell.interval = drawn, how.interval
    cell.low, cell.high = limits(defined, cell.agreement, how.confidence, how.interval)
    if cell.high - cell.low < 1e-9:
        cell.reason = "the same in every resample: an interval of no width, which is no certainty"


def _drawn_systems(
    x: Vector, y: Vector, doc: Any, sys: Any, level: Level, coefficient: Coefficient, how: _How
) -> Vector:
    """Agreement in resamples of the systems, or of systems and documents, drawn independently. Source: Deutsch et al.
    2021 (boot-systems, boot-both). -> (rounds,), NaN where undefined."""
    names = PARTS if coefficient == "sum" else (coefficient,)
    doc, sys = (np.unique(codes, return_inverse=True)[1] for codes in (doc, sys))
    documents, systems = int(doc.max()) + 1, int(sys.max()) + 1
    rng = np.random.default_rng(how.seed)
    times_doc = np.ones((how.rounds, documents))
    if how.over == "both":
        times_doc = rng.multinomial(documents, np.full(documents, 1 / documents), size=how.rounds).astype(np.float64)
    picked = rng.integers(systems, size=(how.rounds, systems))
    parts = []
    if level == "pooled":
        weighted = WeightedRows(x, y, np.arange(len(x)), names)
        step = max(1, 1_000_000 // len(x))
        for start in range(0, how.rounds, step):
            chosen = picked[start : start + step]
            times = np.stack([np.bincount(row, minlength=systems) for row in chosen]).astype(np.float64)
            weights = times[:, sys] * times_doc[start : start + step][:, doc]
            alive = weights.sum(axis=1) > 0
            value = np.full((len(weights), len(names)), np.nan)
            value[alive] = weighted(weights[alive])
            parts.append(value)
    elif level == "system":
        cell = doc * systems + sys
        tables = [
            np.bincount(cell, weights=w, minlength=documents * systems).reshape(documents, systems)
            for w in (x, y, np.ones(len(x)))
        ]
        sum_x, sum_y, rows = (times_doc @ table for table in tables)
        rows[rows == 0] = np.nan
        mean_x, mean_y = (np.take_along_axis(s / rows, picked, axis=1) for s in (sum_x, sum_y))
        whole = ~np.isnan(mean_x).any(axis=1)
        value = np.full((how.rounds, len(names)), np.nan)
        for column, name in enumerate(names):
            value[whole, column] = rowwise(mean_x[whole], mean_y[whole], name)
        parts.append(value)
    else:
        order = np.argsort(sys, kind="stable")
        rows_of = np.split(order, np.cumsum(np.bincount(sys))[:-1])
        step = max(1, 1_000_000 // len(x))
        for start in range(0, how.rounds, step):
            chosen = picked[start : start + step]
            drawn = [np.concatenate([rows_of[s] for s in row]) for row in chosen]
            code = np.concatenate([doc[r] + documents * i for i, r in enumerate(drawn)])
            every = np.concatenate(drawn)
            table = within_documents(x[every], y[every], code, documents * len(chosen), names)
            table = table.reshape(len(chosen), documents, len(names))
            times = times_doc[start : start + step][:, :, None] * ~np.isnan(table)
            total = times.sum(axis=1)
            total[total == 0] = np.nan
            parts.append(np.nansum(times * np.nan_to_num(table), axis=1) / total)
    every_part = np.concatenate(parts)
    return np.asarray(np.nansum(every_part, axis=1) if coefficient == "sum" else every_part[:, 0])


def _batches(cell: _Cell, aspect: _Aspect, x: Vector, level: Level, coefficient: Coefficient, how: _How) -> None:
    """Interval from the spread over batches of documents, which many rows make as good as resamples and which cost one
    pass: sd over 50 batches / sqrt(50) on the scale of atanh, Student's t. Source: batch means, Schmeiser 1982."""
    documents = np.unique(aspect.units, return_inverse=True)[1]
    place = np.random.default_rng(how.seed).permutation(int(documents.max()) + 1) % BATCHES
    bound = 3.0 if coefficient == "sum" else 1.0
    values = []
    for number in range(BATCHES):
        rows = place[documents] == number
        doc, sys = (None if codes is None else codes[rows] for codes in (aspect.doc, aspect.sys))
        if coefficient == "sum":
            values.append(CorrelationSum(level)(x[rows], aspect.y[rows], doc, sys).q)
        else:
            found = correlate(x[rows], aspect.y[rows], coefficient=coefficient, level=level, documents=doc, systems=sys)
            values.append(found.value)
    defined = np.array([v for v in values if not math.isnan(v)])
    if len(defined) < BATCHES / 2:
        cell.reason = f"undefined in {BATCHES - len(defined)} of {BATCHES} batches: scores too often constant"
        return
    z = np.arctanh(np.clip(np.append(defined, cell.value) / bound, -1 + 1e-9, 1 - 1e-9))
    tail = (1 + how.confidence) / 2
    half = float(z[:-1].std(ddof=1) / np.sqrt(len(defined)) * stats.t.ppf(tail, len(defined) - 1))
    cell.low, cell.high = float(np.tanh(z[-1] - half) * bound), float(np.tanh(z[-1] + half) * bound)
    cell.interval = "batches"


def _accuracy(x: Vector, y: Vector, doc: Any, units: Any, how: _How) -> _Cell:
    """acc*_eq with its interval over documents, at the epsilon that fits all rows. Pooled: all rows with each other."""
    usable = ~np.isnan(x)
    failed = int((~usable).sum())
    everything = len(np.unique(units)) if doc is not None else len(y)
    if doc is None and len(y) > 4000:
        why = f"{len(y)} rows make too many pairs; take level sample"
        return _Cell(math.nan, 0, everything, failed, len(y), why)
    found = pairwise_accuracy(x, y, documents=doc)
    n = found.n if doc is not None else int(usable.sum())
    cell = _Cell(found.value, n, everything - n, failed, len(y), found.reason)
    if not how.rounds or math.isnan(found.value):
        return cell
    if how.over != "documents":
        cell.reason = "no interval: of accuracy, documents alone are resampled"
        return cell
    x, y, units = x[usable], y[usable], np.unique(units[usable], return_inverse=True)[1]
    documents = int(units.max()) + 1
    if documents < 2:
        cell.reason = "one document cannot be resampled: no interval"
        return cell
    counts = (
        np.random.default_rng(how.seed)
        .multinomial(documents, np.full(documents, 1 / documents), size=how.rounds)
        .astype(np.float64)
    )
    with np.errstate(invalid="ignore"):  # a resample of one document has no pairs: NaN, left out
        drawn = (_shares if doc is not None else _all_pairs)(x, y, units, counts, found.epsilon)
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, [(1 - how.confidence) / 2, (1 + how.confidence) / 2])
    cell.low, cell.high, cell.interval = float(low), float(high), "percentile"
    return cell


def _alike(x: Vector, y: Vector, epsilon: float) -> Any:
    dx, dy = x[:, None] - x, y[:, None] - y
    tied = np.abs(dx) <= epsilon
    return np.where(tied, dy == 0, dx * dy > 0)


def _shares(x: Vector, y: Vector, doc: Any, counts: Vector, epsilon: float) -> Vector:
    order = np.argsort(doc, kind="stable")
    share = np.full(counts.shape[1], np.nan)
    for rows in np.split(order, np.cumsum(np.bincount(doc))[:-1]):
        if len(rows) > 1:
            upper = np.triu_indices(len(rows), 1)
            share[doc[rows[0]]] = _alike(x[rows], y[rows], epsilon)[upper].mean()
    used = ~np.isnan(share)
    return np.asarray(counts[:, used] @ share[used] / counts[:, used].sum(axis=1))


def _all_pairs(x: Vector, y: Vector, doc: Any, counts: Vector, epsilon: float) -> Vector:
    """Pairs of a row with its own copies are left out: they are tied by construction."""
    alike = _alike(x, y, epsilon).astype(np.float32)
    np.fill_diagonal(alike, 0.0)
    w = counts[:, doc]
    total, own = w.sum(axis=1), (w * w).sum(axis=1)
    return np.asarray(np.einsum("ij,ij->i", w, (w.astype(np.float32) @ alike).astype(np.float64)) / (total**2 - own))


def _average(cells: Sequence[_Cell], name: str, how: _How) -> _Cell:
    """Plain mean over the aspects, as the papers form it, with an interval if all rest on the same rows."""
    value = float(np.mean([c.value for c in cells]))
    mean = _Cell(
        value,
        min(c.n for c in cells),
        sum(c.skipped for c in cells),
        max(c.failed for c in cells),
        min(c.rows for c in cells),
        next((c.reason for c in cells if c.reason), None),
    )
    if not how.rounds or math.isnan(value):
        return mean
    if any(c.drawn is None for c in cells) or len({c.key for c in cells}) > 1:
        mean.reason = "no interval: the aspects do not rest on the same resamples"
        return mean
    first = cells[0].agreement
    assert first is not None
    functions = [f for c in cells if c.agreement is not None for f in c.agreement.statistics]
    total = first.total

    def statistic(counts: Vector) -> Vector:
        return np.asarray(np.mean([f(counts) for f in functions], axis=0))

    mean.agreement = Agreement([statistic], [value], first.documents, first.rows, total, None)
    drawn = np.mean([c.drawn for c in cells if c.drawn is not None], axis=0)
    _limit(mean, drawn, how)
    return mean


# Between judges ------------------------------------------------------------------------------------------------------


def _comparisons(
    judges: Sequence[str],
    aspects: Sequence[_Aspect],
    levels: Sequence[Level],
    by: str,
    how: _How,
    swap: Swap | None,
    notes: list[str],
) -> list[dict[str, Any]]:
    if len(judges) < 2:
        return []
    coefficient = cast(Coefficient, "sum" if by == "q" else by)
    found: list[dict[str, Any]] = []
    for aspect, level in itertools.product(aspects, levels):
        if len(aspect.y) > MANY:
            notes.append(f"judges are not compared above {MANY:,} rows; every difference that matters is significant")
            continue
        here = [judge for judge in judges if judge in aspect.x]
        pairs = list(itertools.combinations(here, 2))
        if len(here) > ALL_PAIRS:
            pairs = [(here[0], other) for other in here[1:]]
            notes.append(f"{len(here)} judges: each is tested against the first, {here[0]!r}, not every pair")
        family = [_compare(aspect, a, b, level, coefficient, by, how, swap) for a, b in pairs]
        for test in ("p_permutation", "p_bootstrap", "p_williams"):
            for row, p in zip(family, holm([row[test] for row in family]), strict=True):
                row[f"{test}_holm"] = float(p)
        found += family
    return found


def _compare(
    aspect: _Aspect, a: str, b: str, level: Level, coefficient: Coefficient, by: str, how: _How, swap: Swap | None
) -> dict[str, Any]:
    x_a, x_b, y = aspect.x[a], aspect.x[b], aspect.y
    shared: Any = {
        "documents": aspect.doc if level != "system" else aspect.units,
        "systems": aspect.sys,
        "level": level,
        "coefficient": coefficient,
        "rounds": how.rounds,
        "seed": how.seed,
    }
    drawn = paired_bootstrap(x_a, x_b, y, confidence=how.confidence, **shared)
    permuted = permutation_test(x_a, x_b, y, swap=swap, **shared)
    return {
        "a": a,
        "b": b,
        "aspect": aspect.name,
        "level": level,
        "coefficient": by,
        "difference": drawn.value,
        "low": drawn.low,
        "high": drawn.high,
        "n": drawn.documents,
        "p_permutation": permuted.p,
        "p_bootstrap": drawn.p,
        "p_williams": _williams(aspect, x_a, x_b, level),
        "reason": drawn.reason or permuted.reason,
    }


def _williams(aspect: _Aspect, x_a: Vector, x_b: Vector, level: Level) -> float:
    """The formula is about rows, or systems, that are independent: there is none within documents."""
    if level == "sample":
        return math.nan
    both = ~(np.isnan(x_a) | np.isnan(x_b))
    a, b, y = x_a[both], x_b[both], aspect.y[both]
    if level == "system":
        assert aspect.sys is not None
        sys = aspect.sys[both]
        count = int(sys.max(initial=-1)) + 1
        (a, y_means), (b, _) = system_means(a, y, sys, count), system_means(b, y, sys, count)
        there = ~np.isnan(a)
        a, b, y = a[there], b[there], y_means[there]
    r_a, r_b, r_ab = (float(rowwise(u[None], v[None], "pearson")[0]) for u, v in ((a, y), (b, y), (a, b)))
    return williams_test(r_a, r_b, r_ab, len(y)).p


# People --------------------------------------------------------------------------------------------------------------


def _ceilings(
    ratings: Mapping[str, npt.ArrayLike], aspects: Sequence[_Aspect], levels: Sequence[Level], names: Sequence[str]
) -> list[dict[str, Any]]:
    found = []
    for aspect in aspects:
        if aspect.name not in ratings:
            continue
        table = np.asarray(ratings[aspect.name], dtype=np.float64)
        if table.ndim != 2 or len(table) != len(aspect.rows):
            raise LabelsError(
                f"ratings of {aspect.name!r}: expected {len(aspect.rows)} rows of raters, got {table.shape}"
            )
        if (np.abs(table) > LARGEST).any():
            raise LabelsError(f"ratings of {aspect.name!r}: a rating is infinite; mend it, or leave it empty")
        table = table[aspect.rows]
        raters = int(np.count_nonzero(~np.isnan(table), axis=1).max(initial=0))
        if raters < 2:
            continue
        alpha = krippendorff_alpha(table)
        for level, name in itertools.product(levels, names):
            if name == "accuracy":
                continue
            coefficient = cast(Coefficient, "sum" if name == "q" else name)
            ceiling = rater_ceiling(
                table, coefficient=coefficient, level=level, documents=aspect.doc, systems=aspect.sys
            )
            found.append(
                {
                    "aspect": aspect.name,
                    "level": level,
                    "coefficient": name,
                    "value": ceiling.value,
                    "raters": raters,
                    "alpha": alpha,
                    "reason": ceiling.reason,
                }
            )
    return found


# Other agreement -----------------------------------------------------------------------------------------------------


def _stages(
    judges: Mapping[str, Scores], before: Mapping[str, Scores], aspect: _Aspect
) -> list[tuple[str, str, Vector]]:
    found = []
    for judge in judges:
        if judge in aspect.x:
            found.append((judge, "", aspect.x[judge]))
            raw = before.get(judge)
            raw = raw.get(aspect.name) if isinstance(raw, Mapping) else raw
            if raw is not None:
                found.append((judge, "uncalibrated", _scores(f"judge {judge!r}", raw)[aspect.rows]))
    return found


def _off_scale(x: Vector, limits: tuple[float, float] | None) -> str | None:
    x = x[~np.isnan(x)]
    if not len(x):
        return "no row has a prediction"
    if limits is None:
        return "the scale of people's scores is not known"
    low, high = limits
    slack = 1e-9 * max(abs(low), abs(high))
    if x.min() < low - slack or x.max() > high + slack:
        return f"scores from {x.min():.4g} to {x.max():.4g} are not on people's scale {low:g}..{high:g}"
    return None


def _flatten(found: Any, names: Sequence[str]) -> dict[str, float]:
    row: dict[str, float] = {}
    for name in names:
        estimate = getattr(found, name)
        row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return row


def _scales(
    judges: Mapping[str, Scores],
    before: Mapping[str, Scores],
    aspects: Sequence[_Aspect],
    limits: Mapping[str, tuple[float, float] | None],
    how: _How,
) -> list[dict[str, Any]]:
    rows = []
    for aspect in aspects:
        for judge, stage, x in _stages(judges, before, aspect):
            row: dict[str, Any] = {"judge": judge, "aspect": aspect.name, "stage": stage}
            reason = _off_scale(x, limits[aspect.name])
            if reason is None:
                found = scale_agreement(
                    x, aspect.y, documents=aspect.units, rounds=_rounds(aspect, how), confidence=how.confidence,
                    seed=how.seed,
                )  # fmt: skip
                row |= _flatten(found, ("mae", "bias", "rmse")) | {"n": found.n, "failed": found.failed}
            else:
                row |= {"n": int((~np.isnan(x)).sum()), "failed": int(np.isnan(x).sum()), "reason": reason}
            rows.append(row)
    return rows


def _rounds(aspect: _Aspect, how: _How) -> int:
    return how.rounds if len(aspect.y) <= MANY else min(how.rounds, 200)


def _calibrations(
    judges: Mapping[str, Scores], before: Mapping[str, Scores], aspects: Sequence[_Aspect]
) -> list[dict[str, Any]]:
    return [
        {"judge": judge, "aspect": aspect.name, "stage": stage, "bin": number} | dataclasses.asdict(part)
        for aspect in aspects
        for judge, stage, x in _stages(judges, before, aspect)
        for number, part in enumerate(calibration_curve(x, aspect.y))
    ]


def _decisions(
    judges: Mapping[str, Scores],
    aspects: Sequence[_Aspect],
    limits: Mapping[str, tuple[float, float] | None],
    threshold: float,
    how: _How,
) -> list[dict[str, Any]]:
    rows = []
    for aspect in aspects:
        for judge, _, x in _stages(judges, {}, aspect):
            row: dict[str, Any] = {"judge": judge, "aspect": aspect.name, "threshold": threshold}
            reason = _off_scale(x, limits[aspect.name])
            if reason is None:
                found = decisions(
                    x, aspect.y, threshold=threshold, documents=aspect.units, rounds=_rounds(aspect, how),
                    confidence=how.confidence, seed=how.seed,
                )  # fmt: skip
                row |= _flatten(found, ("precision", "recall", "accuracy", "kappa"))
                row |= {"accepted": found.accepted, "n": found.n, "failed": found.failed}
            else:
                row |= {"n": int((~np.isnan(x)).sum()), "failed": int(np.isnan(x).sum()), "reason": reason}
            rows.append(row)
    return rows


def _lengths(judges: Mapping[str, Scores], aspects: Sequence[_Aspect], lengths: npt.ArrayLike) -> list[dict[str, Any]]:
    every = _scores("lengths", lengths)
    rows = []
    for aspect in aspects:
        for judge, _, x in _stages(judges, {}, aspect):
            found = length_bias(x, aspect.y, every[aspect.rows])
            rows.append(
                {
                    "judge": judge,
                    "aspect": aspect.name,
                    "judge_length": found.judge,
                    "human_length": found.human,
                    "bias": found.bias,
                    "agreement": found.agreement,
                    "n": found.n,
                    "failed": found.failed,
                }
            )
    return rows


def _ranks(
    judges: Mapping[str, Scores], aspects: Sequence[_Aspect], systems: Iterable[Hashable] | None
) -> list[dict[str, Any]]:
    if systems is None:
        return []
    names = np.array([str(s) for s in systems], dtype=object)
    return [
        {"aspect": aspect.name, "judge": judge} | dataclasses.asdict(place)
        for aspect in aspects
        for judge, _, x in _stages(judges, {}, aspect)
        for place in rank_systems(x, aspect.y, names[aspect.rows])
    ]


def _widths(
    judge: str, aspects: Sequence[_Aspect], level: Level, by: str, how: _How, sizes: Sequence[int]
) -> list[dict[str, Any]]:
    """Of the first judge at the first level: what more labels would buy."""
    rows = []
    for aspect in aspects:
        if judge not in aspect.x or len(aspect.y) > MANY:
            continue
        found = width_against_n(
            aspect.x[judge],
            aspect.y,
            sizes=sizes,
            documents=aspect.units,
            systems=aspect.sys,
            level=level,
            coefficient=cast(Coefficient, "sum" if by == "q" else by),
            rounds=min(how.rounds, 500),
            confidence=how.confidence,
            seed=how.seed,
        )
        shared = {"judge": judge, "aspect": aspect.name, "level": level, "coefficient": by}
        rows += [shared | dataclasses.asdict(width) for width in found]
    return rows
