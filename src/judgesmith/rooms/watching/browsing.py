"""The page of `judgesmith browse`: a folder's judges, watched judges, labels, scored files and studies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from judgesmith.cli.rendering import objective_label
from judgesmith.figures import Estimate, forest
from judgesmith.pages import Figures, Fold, Section, moment
from judgesmith.pages import render as render_page
from judgesmith.rooms.watching.folder import Browsed, SavedJudge, StudyFolder
from judgesmith.rooms.watching.judges import JudgeDiff, shown
from judgesmith.tables import Cell, Column, Table


def look(at: str, **parameters: str) -> str:
    """Return the address of another look of the live page."""
    return f"?{urlencode({'at': at} | parameters)}"


def render(contents: Browsed, target: Path | None = None) -> str:
    """Return the page as HTML.

    target: the file that it will be, whose links lead to the reports beside it; None: the live page, whose numbers lead
    to their rows.
    """
    live = target is None
    base = Path()
    if target is not None:
        folder = contents.folder.resolve()
        parent = target.resolve().parent
        base = Path(os.path.relpath(folder, parent))

    def link(page: str | None) -> str:
        return quote((base / page).as_posix()) if page and not live else ""

    def to(at: str, **parameters: str) -> str:
        return look(at, **parameters) if live else ""

    counts = {
        "judges": len(contents.judges),
        "labels": len(contents.labels),
        "scored files": len(contents.scored),
        "studies": len(contents.studies),
        "watched judges": len(contents.watched),
        "damaged files": len(contents.damaged),
    }
    about = ", ".join(f"{name}: {count}" for name, count in counts.items())
    studies: list[Any] = []
    for study in contents.studies:
        studies += _study(study, link)
    damaged = [f"{path}: {reason}" for path, reason in contents.damaged]
    sections = [
        *_of_judges(contents, to),
        Section("Differences", _differences(contents, to)),
        Section("Labels", [_labels(contents, to)]),
        Section("Scored files", [_scored(contents, link, to)]),
        Section("Studies", studies),
        Section("Damaged files", [damaged]),
    ]
    lead = ""
    if not any(count for name, count in counts.items() if name != "damaged files"):
        lead = (
            "There is no saved judge, watched judge, label, scored file or study here."
        )
    title = f"Judges and runs in {contents.folder.resolve().name or '/'}"
    return render_page(title, sections, about=[about], notes=contents.notes, lead=lead)


def _of_judges(contents: Browsed, to: Callable[..., str]) -> list[Section]:
    """Return the sections on judges, their lineage and those that are watched; empty ones without any."""
    judges: list[Any] = []
    lineage: list[Any] = []
    watched: list[Any] = []
    if contents.judges:
        judges = [
            "Agreement with people on held-out rows as each judge's file says it, by its own objective: numbers of "
            "different labels or objectives do not compare.",
            _judges(contents, to),
            _forests(contents),
        ]
        lineage = [
            "From labels to judge to the files that it scored, by the fingerprint in their rows.",
            _lineage(contents, to),
        ]
    if contents.watched:
        watched = [
            "The newest run of each history: the same sentinel rows scored again and compared with the baseline.",
            _watched(contents),
        ]
    return [
        Section("Judges", judges),
        Section("Lineage", lineage),
        Section("Watched judges", watched),
    ]


def _forests(contents: Browsed) -> Figures | str:
    """Return the agreement of the judges as intervals, a figure for each measure; "" without any."""
    drawn: dict[str, list[Estimate]] = {}
    for judge in contents.judges:
        agreement = judge.agreement()
        if not math.isnan(agreement[0]):
            zero_shot = judge.agreement("zero_shot")[0]
            estimate = Estimate(judge.path, *agreement, zero_shot)
            drawn.setdefault(_measure(judge), []).append(estimate)
    figures = []
    for name, estimates in drawn.items():
        caption = f"{name} of each judge with its interval; ring: zero-shot"
        figures.append((caption, forest([("", estimates)], salt=name)))
    return Figures(figures) if figures else ""


def _measure(judge: SavedJudge) -> str:
    """Return the label of a judge's agreement: Q, AUC, kappa by rank."""
    return objective_label(judge.value("provenance", "objective"))


def _cost(one: SavedJudge) -> tuple[str, str]:
    """Return calls and tokens of compiling, in words."""
    keys = ("calls", "prompt_tokens", "completion_tokens")
    calls, *tokens = (_count(one.value("provenance", "cost", key)) for key in keys)
    return calls, " + ".join(tokens) if one.value("provenance", "cost") else "–"


def _watches(contents: Browsed, one: SavedJudge) -> list[str]:
    """Return state and time of the newest run of each history of a judge."""
    return [
        f"{watched.state}, {moment(watched.last.time)}"
        for watched in contents.watched
        if watched.last.judge == one.mark
    ]


def _judges(contents: Browsed, to: Callable[..., str]) -> Table:
    before = {other.path: one.path for one, other, _ in contents.diffs()}
    numbers = [Column("agreement", ".2f"), Column("zero-shot", ".2f")]
    numbers += [Column(name, "s") for name in ("calls", "tokens in + out")]
    table = Table(
        ["judge", "method", "model", "aspect", *numbers, "created", "watched"]
    )
    for one in contents.judges:
        watched = _watches(contents, one)
        signature = _in_words(one.value("provenance", "heldout", "signature") or "")
        table.add(
            Cell(
                one.path,
                note=one.mark,
                href=to("judges", a=before.get(one.path, one.path), b=one.path),
            ),
            _in_words(one.value("program", "kind")),
            _in_words(one.value("lm", "model") or "–"),
            _in_words(one.value("provenance", "labels", "aspect") or "–"),
            Cell(
                *one.agreement(),
                note=_measure(one),
                title=signature,
                href=_labels_of(contents, one, to),
            ),
            one.agreement("zero_shot")[0],
            *_cost(one),
            moment(_in_words(one.value("provenance", "created"))),
            Cell(
                "; ".join(watched),
                warn=any(line.startswith("alarm") for line in watched),
                href="#watched-judges" if watched else "",
            ),
        )
    return table


def _labels_of(contents: Browsed, judge: SavedJudge, to: Callable[..., str]) -> str:
    """Return a link to the labels that a judge was compiled from, if they are here."""
    name = judge.value("provenance", "labels", "origin")
    labels = next(
        (one.path for one in contents.labels if Path(one.path).name == name), None
    )
    return to("labels", file=labels, judge=judge.path) if labels else ""


def _lineage(contents: Browsed, to: Callable[..., str]) -> Table:
    table = Table(["judge", "labels", "optimizer", "scored files"])
    for one in contents.judges:
        named = [
            _in_words(one.value("provenance", "labels", key))
            for key in ("rows", "origin")
        ]
        labels = " rows of ".join(named) if one.value("provenance", "labels") else "–"
        optimizer = (
            one.value("provenance", "optimizer", "name")
            or one.value("provenance", "optimizer")
            or "–"
        )
        scored = [file.path for file in contents.scored if one.mark in file.judges]
        labelled = Cell(labels, href=_labels_of(contents, one, to))
        table.add(
            one.path,
            labelled,
            _in_words(optimizer),
            Cell(", ".join(scored) or "–", href="#scored-files" * bool(scored)),
        )
    return table


def _watched(contents: Browsed) -> Table:
    numbers = (
        Column("rows scored", "s"),
        Column("Spearman ρ with people", ".2f"),
        Column("runs", "d"),
        Column("alarms", "d"),
    )
    table = Table(["history", "judge", "state", "last run", *numbers])
    marks = {one.mark for one in contents.judges}
    for one in contents.watched:
        last = one.last
        a = one.last.agreement
        scored = f"{sum(score is not None for score in last.scores)} of {len(last.ids)}"
        agreed = Cell(a.value, a.low, a.high) if a else None
        state = f"alarm: {'; '.join(last.alarms)}" if last.alarms else one.state
        table.add(
            one.path,
            Cell(
                last.judge,
                note=last.model,
                href="#judges" if last.judge in marks else "",
            ),
            Cell(state, warn=bool(last.alarms)),
            moment(last.time),
            scored,
            agreed,
            len(one.runs),
            sum(bool(run.alarms) for run in one.runs),
        )
    return table


def _differences(contents: Browsed, to: Callable[..., str]) -> list[Any]:
    folds: list[Any] = []
    for one, other, diff in contents.diffs():
        table = Table(["what", "before", "after"])
        for name, before, after in diff.changes:
            table.add(name, _in_words(before), _in_words(after))
        parts: list[Any] = [table]
        if href := to("judges", a=one.path, b=other.path):
            beside = Markup(
                '<p><a href="{}">Side by side, with the rows that both judged</a></p>'
            )
            parts.insert(0, beside.format(href))
        folds.append(Fold(f"{one.path} → {other.path}: {_difference(diff)}", parts))
    if folds:
        folds.insert(
            0, "Each judge against the one made before it from the same labels."
        )
    return folds


def _difference(diff: JudgeDiff) -> str:
    """Return a difference in a few words."""
    if diff.same:
        return "the same verdicts"
    changes = "change" if len(diff.changes) == 1 else "changes"
    comparable = "scores comparable"
    if diff.parts:
        comparable = f"scores not comparable: other {', '.join(diff.parts)}"
    return f"{len(diff.changes)} {changes}; {comparable}"


def _labels(contents: Browsed, to: Callable[..., str]) -> Table:
    table = Table(
        [
            "file",
            "kind",
            Column("rows", "d"),
            Column("rated", "d"),
            "by rater or aspect",
            "judges from it",
        ]
    )
    by_origin: dict[str, list[str]] = {}
    for judge in contents.judges:
        origin = judge.value("provenance", "labels", "origin")
        if isinstance(origin, str):
            by_origin.setdefault(origin, []).append(judge.path)
    for one in contents.labels:
        counts = dict.fromkeys(one.people, 0)
        rated = 0
        for *_, ratings in one.rows:
            rated += bool(ratings)
            for name in ratings:
                counts[name] += 1
        table.add(
            Cell(one.path, href=to("labels", file=one.path)),
            one.kind,
            len(one.rows),
            Cell(rated, href=to("labels", file=one.path, only="rated")),
            ", ".join(f"{name}: {n}" for name, n in counts.items()) or "–",
            ", ".join(by_origin.get(Path(one.path).name, ())) or "–",
        )
    return table


def _scored(
    contents: Browsed, link: Callable[[str | None], str], to: Callable[..., str]
) -> Table:
    numbers = [Column(name, "d") for name in ("rows", "without score")]
    numbers += [
        Column("mean score", ".2f"),
        Column("Spearman ρ with people", ".2f"),
        Column("on rows", "d"),
    ]
    table = Table(["file", *numbers, "judge"])
    for one in contents.scored:

        def rows(value: Any, path: str = one.path, **parameters: str) -> Cell:
            return Cell(
                value, href=to("rows", file=path, **parameters) if value else ""
            )

        table.add(
            Cell(one.path, href=link(one.page) or to("rows", file=one.path)),
            rows(one.summary["rows"]),
            rows(one.summary["failures"], only="failed"),
            rows(one.summary["mean_score"]["value"], order="low"),
            rows(one.spearman, order="apart", only="people"),
            rows(one.both or None, only="people"),
            ", ".join(one.judges[:5]) or "–",
        )
    return table


def _study(one: StudyFolder, link: Callable[[str | None], str]) -> list[Any]:
    numbers = (
        Column("Q, mean of cells", ".2f"),
        Column("cells", "d"),
        Column("calls", ".0f"),
    )
    table = Table([Column("arm"), *numbers], one.path)
    best_first = sorted(
        one.arms.items(),
        key=lambda arm: math.inf if math.isnan(arm[1][0]) else -arm[1][0],
    )
    for title, (q, cells, calls) in best_first:
        table.add(title, q, cells, calls)
    page: str
    if link(one.page):
        page = Markup('<p><a href="{}">page</a></p>').format(link(one.page))
    else:
        page = ""
    failed = f"{one.failed} cell{'s'[: one.failed != 1]} failed." if one.failed else ""
    return [table, page, failed]


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else _in_words(value)


def _in_words(value: Any) -> str:
    return shown(value, 300)
