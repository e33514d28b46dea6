"""The judges of `judgesmith check`: columns, verdicts of scored files, reference metrics, and saved judges.

`live` lets the saved judges judge the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.datasets.exports import JUDGES as RESULTS
from judgesmith.datasets.formats import of_name
from judgesmith.datasets.orders import check_orders
from judgesmith.datasets.row import OVERALL
from judgesmith.datasets.scales import CODES
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import ArtifactError, LabelsError, OptionError
from judgesmith.evaluating.columns import column_reasons, column_scores, places_like
from judgesmith.evaluating.reading import reading
from judgesmith.evaluating.sources import (
    VERDICTS,
    Judged,
    aspects_of,
    grouped,
    has_column,
    joined_by_id,
    marked,
    matched,
    own_categories,
    plain_name,
    read_file,
    read_number,
    read_people,
    read_raters,
    references_beside,
    score_column,
    several_of,
    some,
    speaking_of,
    verdict_of,
    verdict_on,
    with_metrics,
    with_ratings,
)
from judgesmith.programs.baselines.metrics import PREFIX, reference_metric
from judgesmith.programs.contract import ratings_of
from judgesmith.rows import as_text
from judgesmith.running.contracts import held_by, held_in
from judgesmith.running.opening import roles_for, rows_file
from judgesmith.wording import folded

ASPECT = "{aspect}"  # in a judge's column: one for each aspect


@dataclass(frozen=True)
class Spec:
    """`NAME=COLUMN` or `COLUMN` of `--judge`; a column may also be a reference metric or a saved judge's file."""

    name: str
    column: str

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Parse a `--judge` argument: a column, NAME=COLUMN, a metric or a saved judge."""
        name, equals, column = text.partition("=")
        if not equals or text.startswith(
            PREFIX
        ):  # a metric's options have signs of their own
            name = column = text
        if not name.strip() or not column.strip():
            raise OptionError(
                f"--judge {text!r} is not of the form COLUMN or NAME=COLUMN"
            )
        return cls(name.strip(), column.strip())


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The scores to compare, and the rows to compare them on.

    human: aspects, columns or paths of human ratings. judges: as `--judge` names them; none: those of the files.
    without_systems: systems whose rows are left out. limit: only the first rows. unseen: leave out the rows that any
    judge was compiled from. orders: the words of columns, worst first, by the name of a column or a
    judge.
    """

    human: Sequence[str] = ()
    judges: Sequence[str] = ()
    columns: Mapping[str, Any] | None = None
    without_systems: Sequence[str] = ()
    scale: tuple[float, float] | None = None
    limit: int | None = None
    unseen: bool = False
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)


#: Different scores of a judge by which the range of all is known.
_SOME = 3


def read_judged(sources: Sequence[str], selection: Selection) -> Judged:
    """Read and join everything by id; the first file gives the rows and human ratings.

    Saved judges are checked and wait in `live` for `judge_live`.

    Raises:
        LabelsError: If there is no such file, column or id; the message names those there are.
        OptionError: If an option is invalid.
        ArtifactError: If the file is not a judge.
    """
    metrics = [source for source in sources if source.startswith(PREFIX)]
    selection = replace(selection, judges=(*selection.judges, *metrics))
    paths = [source for source in sources if not source.startswith(PREFIX)]
    beside = [name for name in selection.human if _is_file(name)]
    if len(beside) > 1:
        raise OptionError(
            f"--human {' '.join(beside)}: give one file of labels; put the rows of all of them into one"
        )
    columns = [name for name in selection.human if name not in beside]
    selection = replace(selection, human=columns)
    files = _read_files(paths, selection, _judge_files(_specs(selection)))
    notes = list[str]()
    if beside:
        (name,) = beside
        roles = roles_for(rows_file(name), selection.columns)
        labels = read_file(name, roles, texts_needed=False, orders=selection.orders)
        files[0], notes = with_ratings(files[0], labels)
        named = [OVERALL] if OVERALL in labels.aspects() else labels.aspects()
        selection = replace(selection, human=columns or named)
    joined = judged(files, selection)
    joined.notes += notes
    return joined


def _is_file(name: str) -> bool:
    """Return whether a human rating is named by a file, and not by a column."""
    path = Path(name)
    return of_name(path) is not None and path.is_file()


def _specs(selection: Selection) -> list[Spec]:
    return [Spec.parse(text) for text in selection.judges]


def judged(files: Sequence[File], selection: Selection) -> Judged:
    """Join files that are read; the first one gives the rows and human ratings. Raises: as `read_judged`."""
    named = selection.judges
    specs = _specs(selection)
    base = files[0]
    columns = {name for file in files for name in file.names()}
    for place, text in enumerate(named):
        if text in columns:  # which may have a sign of its own: "score (1=bad)"
            specs[place] = Spec(text, text)
    specs = specs or _of_results(files)
    joined = Judged(base.origin, grouped(base.rows))
    human = selection.human or _judged_aspects(files, specs)
    chosen = bool(selection.human or ratings_of(selection.columns or {}))
    held = held_by(*_judge_files(specs))
    for file in files if not specs else ():
        held += held_in(file)
    scored = [spec.column for spec in specs]
    read_people(joined, base, human, selection.scale, scored, held=held, chosen=chosen)
    read_raters(joined, base)
    for spec in specs:
        _judge(joined, files, spec)
    for file in files:
        _verdicts(joined, files, file, specs)
    _check_columns(joined, files, selection)
    own = {name for name in base.names() if has_column(base, name)}
    taken = {spec.name: spec.column for spec in specs if spec.column in own}
    joined.reading = reading(base, list(joined.human), list(joined.judges), taken)
    _note_failures(joined)
    _mark_seen(joined, unseen=selection.unseen)
    return joined


def _note_failures(joined: Judged) -> None:
    """Note a number that may stand for calls that failed, and counts as a score.

    It is outside people's scale, all other scores being inside; or far from all others, whatever scale they are on.
    """
    for judge, by_aspect in joined.judges.items():
        for aspect, scores in by_aspect.items():
            low, high = joined.scales.get(aspect, (-np.inf, np.inf))
            outside = scores[(scores < low) | (scores > high)]
            inside = np.sum((low <= scores) & (scores <= high))
            if len(set(outside.tolist())) == 1 and inside > len(outside):
                note = (
                    f"{judge}: {len(outside)} scores of {outside[0]:g} are outside the scale {low:g}..{high:g} of "
                    f"{aspect!r}, and all others inside it; if they stand for failures, empty these cells"
                )
            else:
                note = _far_from_others(judge, scores)
            if note and note not in joined.notes:
                joined.notes.append(note)


def _far_from_others(judge: str, scores: Vector) -> str:
    """Return a note on one number far from a judge's others: the only one below 0, or further off than they differ."""
    values = scores[~np.isnan(scores)]
    for code in set(values.tolist()) and (values.min(), values.max()):
        others = values[values != code]
        times = len(values) - len(others)
        if len(set(others.tolist())) < _SOME or times > len(others):
            continue
        least = others.min()
        most = others.max()
        away = max(least - code, code - most)
        far = away >= most - least or code < 0 <= least
        if far and (times > 1 or code in CODES):
            return (
                f"{judge}: {times} scores of {code:g} are far from all others, which are {least:g} to {most:g}; if "
                "they stand for failures, empty these cells"
            )
    return ""


def _recall(joined: Judged) -> None:
    """Find the rows that a saved judge was compiled from, and their near-duplicates."""
    from judgesmith.optimizers.seen import Seen
    from judgesmith.programs import artifact

    seen = Seen(*(artifact.read(path).provenance for path in joined.live.values()))
    for i, row in enumerate(joined.rows):
        known = seen.recall(row.source, row.output)
        if known == "row":
            joined.seen.add(i)
        elif known == "reply":
            joined.resembling.add(i)


def _mark_seen(joined: Judged, *, unseen: bool) -> None:
    """Leave the rows out that a saved judge was compiled from, or note them, and those that resemble them."""
    if joined.live:
        _recall(joined)
    if joined.resembling - joined.seen:
        joined.notes.append(
            f"{len(joined.resembling - joined.seen)} of the rows have an output that is nearly equal to a labelled one "
            "of another source (a template's?); they are rows of their own, and stay with --unseen"
        )
    if unseen:
        _leave_out(joined)
    elif joined.seen:
        joined.notes.append(
            f"{len(joined.seen)} of the rows were used to compile the judge; agreement on them says little. Leave them "
            "out with --unseen"
        )
    suggested = sum(row.suggested for row in joined.rows)
    if suggested:
        joined.notes.append(
            f"{suggested} of the rows were chosen by `suggest`: agreement on them is not that on rows drawn at random"
        )


def _read_files(
    paths: Sequence[str], selection: Selection, saved: Sequence[Path]
) -> list[File]:
    """Return the files with scores, the first one without the systems that are left out.

    Raises:
        OptionError: If no file is named.
        LabelsError: If the first one has no row.
    """
    files = []
    texts_needed = len(paths) == 1 or bool(saved)
    for path in paths:
        roles = roles_for(rows_file(path), selection.columns, *saved)
        file = _read(path, selection, roles, saved, texts_needed=texts_needed)
        files.append(file)
    if not files:
        raise OptionError(
            "name a file with scores, or a benchmark such as bench/summeval"
        )
    files[0] = _without(files[0], selection.without_systems)
    if not files[0].rows:
        raise LabelsError(
            f"{files[0].origin}: there are no rows in it; name a file with rows"
        )
    return files


def _check_columns(joined: Judged, files: Sequence[File], selection: Selection) -> None:
    """Raise OptionError if no judge has a score, or if the words of an unknown column are in order."""
    columns = [*joined.human, *joined.judges]
    for file in files:
        columns += file.names()
    check_orders(selection.orders, columns)
    if not joined.judges:
        raise OptionError(
            f"{joined.origin}: there is no judge's score in it; name one with --judge COLUMN, --judge metric/rougeL"
        )


def _of_results(files: Sequence[File]) -> list[Spec]:
    """Return the scorers of result files of other tools; they count if no judge is named."""
    names: dict[str, None] = {}
    for file in files:
        for record in file.records:
            results = record.get(RESULTS)
            if isinstance(results, Mapping):
                names.update(dict.fromkeys(map(str, results)))
    return [Spec(name, f"{RESULTS}.{name}") for name in names]


def _read(
    name: str,
    selection: Selection,
    roles: Mapping[str, Any],
    saved: Sequence[Path],
    *,
    texts_needed: bool = True,
) -> File:
    """Return a file of scores or ratings.

    If the order of people's two words is unknown, a judge's own decisions give it.
    """
    # A column's name may have a sign of its own.
    judges = [*selection.judges, *(Spec.parse(of).column for of in selection.judges)]

    def read(orders: Mapping[str, Sequence[str]]) -> File:
        file = read_file(
            name,
            roles,
            selection.limit,
            selection.human,
            judges=judges,
            texts_needed=texts_needed,
            orders=orders,
        )
        return with_metrics(file)

    file = read(selection.orders)
    unordered = {
        aspect: set(map(folded, marks.unknown))
        for aspect, marks in file.columns.marks.items()
        if marks.unknown
    }
    if not unordered:
        return file
    orders: dict[str, Sequence[str]] = {}
    for order in decided_orders(file, saved):
        for aspect, words in unordered.items():
            if set(map(folded, order)) >= words:
                orders[aspect] = order
    return read({**orders, **selection.orders}) if orders else file


def decided_orders(file: File, saved: Sequence[Path]) -> list[tuple[str, ...]]:
    """Return the words of judges' decisions, worst first: of saved ones, and of verdicts of pass and fail."""
    orders = list[tuple[str, ...]]()
    for path in saved:
        from judgesmith.programs import artifact

        decision = artifact.read(path).decision
        if decision is not None:
            orders.append(decision.names)
    words = {}
    for record in file.records:
        verdict = verdict_of(record) or {}
        if verdict.get("category"):
            words[str(verdict.get("passed")).lower()] = str(verdict["category"])
    if "true" in words and "false" in words:
        orders.append((words["false"], words["true"]))
    return orders


def _without(file: File, systems: Sequence[str]) -> File:
    in_file = dict.fromkeys(row.system for row in file.rows if row.system)
    for name in systems:
        if name not in in_file:
            raise OptionError(
                f"--without-system {name!r}: the systems of {file.origin} are {some(in_file)}"
            )
    rows = []
    records = []
    for row, record in zip(file.rows, file.records, strict=True):
        if row.system not in systems:
            rows.append(row)
            records.append(record)
    return replace(file, rows=rows, records=records)


def _leave_out(joined: Judged) -> None:
    """Drop the rows that a judge was compiled from, for people and all judges alike."""
    if not joined.seen:
        joined.notes.append(
            "--unseen: no row is known to have been used to compile a judge, and none is left out"
        )
        return
    unseen = [i for i in range(len(joined.rows)) if i not in joined.seen]
    if not unseen:
        raise LabelsError(
            f"{joined.origin}: --unseen leaves no row, since a judge was compiled from every one of them; rate new "
            "rows, or compile with `--heldout 0.5`, which keeps half of the rows back. What `judgesmith show JUDGE` "
            "says of its agreement comes from rows that were held out in turn"
        )
    joined.notes.append(
        f"--unseen: {len(joined.seen)} of {len(joined.rows)} rows were used to compile a judge and are left out"
    )
    joined.rows = [joined.rows[i] for i in unseen]
    by_aspect = [joined.human, joined.ratings]
    by_aspect += [*joined.judges.values(), *joined.decided.values()]
    for arrays in by_aspect:
        for aspect, array in arrays.items():
            arrays[aspect] = array[unseen]
    for name, reasons in joined.reasons.items():
        joined.reasons[name] = [reasons[i] for i in unseen]
    joined.seen = set()
    joined.resembling = set()


# Judges' scores ------------------------------------------------------------------------------------------------------


def _judge(joined: Judged, files: Sequence[File], spec: Spec) -> None:
    """Find the scores that `--judge` names: a saved judge, a reference metric, or a column of a file."""
    base = files[0]
    path = _artifact(spec, base.names())
    name = path.stem if path is not None and spec.name == spec.column else spec.name
    if name in joined.judges:
        raise OptionError(
            f"--judge {name!r} is named twice; tell them apart with NAME=COLUMN"
        )
    if path is not None:
        joined.live[name] = path
        joined.judges[name] = {}
        return
    if spec.column.startswith(PREFIX):
        scores = _metric_scores(joined, base, spec.column)
        joined.judges[spec.name] = dict.fromkeys(joined.human, scores)
        return
    result: dict[str, Vector] = {}
    for aspect in joined.human:
        column = spec.column.replace(ASPECT, aspect.removeprefix("zscores."))
        holder = next((file for file in files if has_column(file, column)), None)
        if holder is not None:
            result[aspect] = _read_column(joined, holder, spec, column, aspect)
    _has_numbers(joined, files, spec, result)
    joined.judges[spec.name] = result
    if spec.column in VERDICTS:
        joined.on_scale.add(spec.name)


def _metric_scores(joined: Judged, base: File, column: str) -> Vector:
    """Return the scores of a reference metric.

    Raises:
        LabelsError: If it has a score for no row.
    """
    references = references_beside(base)
    items = [
        {
            "output": row.output,
            "source": row.source,
            "reference": row.reference,
            "references": references.get(row.doc_id),
        }
        for row in joined.rows
    ]
    verdicts = list(reference_metric(column).score_many(items))
    scores = np.array([verdict.score for verdict in verdicts])
    if np.isnan(scores).all():
        raise LabelsError(
            f"{base.origin}: {column} has a score for no row ({verdicts[0].failure})"
        )
    return scores


def _read_column(
    joined: Judged, holder: File, spec: Spec, column: str, aspect: str
) -> Vector:
    """Return a judge's scores in one column, and note its decisions in words and its reasons beside them."""
    people = joined.words.get(aspect)
    like = None if people is None else (aspect, people)
    values, marks, reading = column_scores(holder, column, [spec.name], like)
    places = places_like(values, marks, people)
    texts = column_reasons(holder.records, holder.names(), column)
    rows = len(joined.rows)
    scores = np.full(rows, np.nan)
    decided = np.full(rows, np.nan)
    reasons = [""] * rows
    for i, j in _pairs(joined, holder):
        scores[i] = values[j]
        reasons[i] = texts[j]
        decided[i] = math.nan if places is None else places[j]
    if places is not None:
        joined.decided.setdefault(spec.name, {})[aspect] = decided
    if any(reasons):
        joined.reasons[spec.name] = reasons
    note = f"{spec.name}: column {column!r} is read as {reading}"
    if reading and note not in joined.notes:
        joined.notes.append(note)
    return scores


def _has_numbers(
    joined: Judged, files: Sequence[File], spec: Spec, result: Mapping[str, Vector]
) -> None:
    """Raise LabelsError for a column that is not there, or that is there and empty."""
    for scores in result.values():
        if not np.isnan(scores).all():
            return
    names = set[str]().union(*(file.names() for file in files))
    columns = {spec.column.replace(ASPECT, aspect) for aspect in joined.human}
    if result or any(column.split(".")[0] in names for column in columns):
        raise LabelsError(
            f"{joined.origin}: column {spec.column!r} has no number in any of {len(joined.rows)} rows; name a column "
            "with a judge's scores"
        )
    raise LabelsError(
        f"there is no column {spec.column!r}; there are {some(files[0].names())}"
    )


def _artifact(spec: Spec, columns: Sequence[str]) -> Path | None:
    """The saved judge's file, None where `--judge` names a column.

    Raises ArtifactError for a .json file that is not there or is not a judge.
    """
    if not spec.column.lower().endswith(".json") or spec.column in columns:
        return None
    path = Path(spec.column)
    if not path.is_file():
        raise ArtifactError(
            f"--judge {path}: there is no such file, and no column of that name; `judgesmith compile LABELS -o "
            f"{path.name}` makes a judge"
        )
    from judgesmith.programs import artifact

    artifact.read(path)
    return path


def _judge_files(specs: Sequence[Spec]) -> list[Path]:
    paths = (
        Path(spec.column) for spec in specs if spec.column.lower().endswith(".json")
    )
    return [path for path in paths if path.is_file()]


def _pairs(joined: Judged, file: File) -> list[tuple[int, int]]:
    """Return (row here, row there) of equal ids, and a note on those on one side only."""
    origin = joined.origin
    rows = joined.rows
    note = []
    pairs, missing, extra = joined_by_id(origin, rows, file)
    if missing:
        note.append(
            f"{len(missing)} of {len(rows)} rows of {origin} are not in {file.origin} (first: {rows[missing[0]].id!r}) "
            "and count as failed"
        )
    if extra:
        note.append(
            f"{extra} rows of {file.origin} are not in {origin} and are left out"
        )
    if note and "; ".join(note) not in joined.notes:
        joined.notes.append("; ".join(note))
    return pairs


def _verdicts(
    joined: Judged, files: Sequence[File], file: File, specs: Sequence[Spec]
) -> None:
    """Add the verdicts of `judgesmith score`: {"verdict": {"score", …}} of JSON lines, judge_score of CSV."""
    nested = any(isinstance(record.get("verdict"), Mapping) for record in file.records)
    if not nested and "judge_score" not in file.names():
        if file is not files[0] and not specs:
            raise LabelsError(
                f"{file.origin}: no row has a verdict; name the judge's column with --judge"
            )
        return
    if any(spec.column in VERDICTS for spec in specs) and len(files) == 1:
        return
    pairs = _pairs(joined, file)
    name = _new_name(joined, file)
    verdicts = [verdict_of(record) or {} for record in file.records]
    reasons = [""] * len(joined.rows)
    for i, j in pairs:
        record = file.records[j]
        if marked(record, "seen"):
            joined.seen.add(i)
        if marked(record, "resembles"):
            joined.resembling.add(i)
        reasons[i] = as_text(verdicts[j].get("explanation")) or ""
    joined.judges[name] = {}
    joined.reasons[name] = reasons
    for own, compared in _compared_with(joined, name, verdicts).items():
        column = score_column(own, nested=nested)
        scores = np.full(len(joined.rows), np.nan)
        categories: list[tuple[Any, Any]] = [(None, None)] * len(joined.rows)
        for i, j in pairs:
            part = verdict_on(verdicts[j], own)
            scores[i] = read_number(file, file.rows[j], column, part.get("score"))
            categories[i] = part.get("category"), part.get("passed")
        own_categories(joined, name, categories, compared)
        joined.judges[name] |= dict.fromkeys(compared, scores)
    joined.on_scale.add(name)


def _compared_with(
    joined: Judged, name: str, verdicts: Sequence[Mapping[str, Any]]
) -> dict[str | None, list[str]]:
    """Return the human ratings that each aspect of a judge's verdicts is compared with; None: the whole verdict."""
    several = several_of(verdicts)
    if not several:
        return {None: list(matched(joined, name, aspects_of(verdicts)))}
    compared: dict[str | None, list[str]] = {}
    for human, aspect in speaking_of(joined, name, several).items():
        compared.setdefault(aspect, []).append(human)
    return compared


def _new_name(joined: Judged, file: File) -> str:
    """Return a file's name as that of a judge, with a number if there is one of the name."""
    stem = name = file.origin.split(".")[0] or "judge"
    number = 2
    while name in joined.judges:
        name = f"{stem} ({number})"
        number = number + 1
    return name


def _judged_aspects(files: Sequence[File], specs: Sequence[Spec]) -> list[str]:
    """The aspects of human ratings that the judges say they judge: those are compared where none is named."""
    judged: set[str] = set()
    for path in _judge_files(specs):
        from judgesmith.programs import artifact, loading
        from judgesmith.programs.several.judge import scales_of

        judge = loading.build(artifact.read(path))
        judged |= {plain_name(judge.judges_aspect)} - {""}
        judged |= _plain_names(scales_of(judge.method))
    for file in files if not specs else ():
        verdicts = [verdict_of(record) or {} for record in file.records]
        judged |= _plain_names(several_of(verdicts))
        judged |= set(map(plain_name, aspects_of(verdicts)))
    rated = dict.fromkeys(name for row in files[0].rows for name in row.scores)
    return [name for name in rated if plain_name(name) in judged]


def _plain_names(several: Iterable[str]) -> set[str]:
    """Return the plain names of a judge's aspects, with that of the overall score if there are any."""
    names = {plain_name(name) for name in several}
    return names | {OVERALL} if names else names
