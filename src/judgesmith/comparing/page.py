"""The page of `judgesmith compare -o page.html`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from judgesmith.agreement.comparison import Comparison
from judgesmith.comparing.reading import Versions
from judgesmith.comparing.telling import following, lines, means
from judgesmith.figures import OF_JUDGES, PEOPLE, Dot, Dots, Estimate, forest, plot
from judgesmith.pages import Figures, Fold, Section
from judgesmith.pages import render as render_page
from judgesmith.tables import Column, Table


def render(found: Comparison, versions: Versions, notes: Sequence[str]) -> str:
    """Return the page."""
    told = [*lines(found, gate=True), following(found)]
    sections = [
        Section("Means", [means(found, versions), *told]),
        Section("The difference", _difference(found)),
        Section("Versions", _versions(found)),
        Section("Notes", [list(notes)]),
    ]
    about = [f"{versions.origin} · {versions.aspect or 'no human ratings'}"]
    if versions.mark:
        about.append(f"scored by {versions.mark}")
    return render_page(
        f"{found.new} beside {found.base}",
        sections,
        lead=str(found),
        about=about,
        warn=found.verdict == "worse",
    )


def _difference(found: Comparison) -> list[object]:
    """Return the difference by people and by the judge, as intervals on one axis."""
    judge = found.judge
    estimates = [
        Estimate("the judge's scores", judge.difference, judge.low, judge.high)
    ]
    if not math.isnan(found.difference):
        people = Estimate("people", found.difference, found.low, found.high)
        estimates.insert(0, people)
    text = (
        f"{found.new} less {found.base}. A line is the interval, a dot the value, the thin line no difference. The "
        "judge's scores may be on another scale than people's, and favour a version."
    )
    return [
        text,
        Figures([("Differences", forest([("", estimates)], salt="difference"))]),
    ]


def _versions(found: Comparison) -> list[object]:
    """Return all versions, people's mean by the judge's."""
    rated = [one for one in found.versions if not math.isnan(one.human)]
    if len(rated) < 3:
        return []
    pair = (found.base, found.new)
    earlier = [
        Dot(one.judge, one.human, title=one.name)
        for one in rated
        if one.name not in pair
    ]
    series = [Dots(earlier, PEOPLE, name="other versions")]
    for colour, name in zip(OF_JUDGES, pair, strict=False):
        own = [
            Dot(one.judge, one.human, title=name) for one in rated if one.name == name
        ]
        if own:
            series.append(Dots(own, colour, name=name))
    table = Table(
        [
            "version",
            Column("people", ".3f"),
            Column("judge", ".3f"),
            Column("labelled", "d"),
        ]
    )
    for one in found.versions:
        table.add(one.name, one.human, one.judge, one.labelled)
    drawn = plot(series, "judge's mean", "people's mean", salt="versions")
    return [
        "Each dot is a version that people rated. Versions near one line are those of which the judge's mean tells "
        "people's.",
        Figures([(f"{len(rated)} rated versions", drawn)]),
        Fold(f"{len(found.versions)} versions", [table]),
    ]
