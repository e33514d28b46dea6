"""Results of `judgesmith discern --check` as tables, sentences and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from judgesmith.agreement.resampling import Estimate
from judgesmith.pages import Section
from judgesmith.pages import render as render_page
from judgesmith.rooms.discerning.checking.run import Checked
from judgesmith.rooms.discerning.checking.statistics import CHECKS, Lead, Shift
from judgesmith.tables import (
    Cell,
    Column,
    Table,
    number,
    percent,
    shortened,
    with_interval,
)

_LEANS: Mapping[str, str] = {
    "raises": "RAISES the score",
    "lowers": "LOWERS the score",
    "neither": "no lean",
    "unknown": "too few rows",
}
_ABOUT = (
    "Change: the mean of the scores after less those before, as a share of the scale; moved: its mean size; flips: the "
    "share of rows whose decision is another. Intervals: 95 %, over resampled documents. Scores that differ when the "
    "same rows are judged again (repeat) are noise: what other checks flip is to be read beside it. Whether a longer "
    "or otherwise styled output is as good is a matter of the rubric: one that asks for brevity may lower it."
)
_ABOUT_OWN = (
    "Own writing: mean score of the judge's own family less that of other systems, in the same documents. It may be "
    "deserved: only another judge's lead beside it, or people's, can tell."
)


def shifts_table(result: Checked) -> Table:
    """Return the effect of each check."""
    table = Table(
        [
            "check",
            Column("rows", "d"),
            Column("left out", "s"),
            Column("change", "+.3f"),
            Column("moved", ".3f"),
            Column("flips", ".0%"),
            "on average",
        ],
        "The same rows after a change that should not matter",
    )
    for one in result.shifts:
        table.add(
            one.check,
            one.rows,
            str(one.left or ""),
            _cell(one.change),
            _cell(one.moved),
            _cell(one.flips),
            Cell(_LEANS[one.lean], warn=one.lean in ("raises", "lowers")),
        )
    return table


def own_table(own: Lead) -> Table:
    """Return the lead of the judge's own family."""
    table = Table(
        [
            "own systems",
            Column("documents", "d"),
            Column("lead", "+.3f"),
            Column("ahead in", ".0%"),
            Column(f"lead less that by {own.beside}" if own.beside else "", "+.3f"),
        ],
        "Own writing",
    )
    beside = _cell(own.over) if own.beside else ""
    names = ", ".join(own.own)
    table.add(names, own.documents, _cell(own.lead), _cell(own.wins), beside)
    return table


def _cell(of: Estimate) -> Cell:
    return Cell(of.value, of.low, of.high)


def moves_table(result: Checked) -> Table:
    """Return the rows whose scores changed most."""
    table = Table(
        [
            "check",
            "row",
            Column("before", ".3f"),
            Column("after", ".3f"),
            "output after",
        ],
        "The largest changes",
    )
    for *scores, output in result.moves:
        table.add(*scores, shortened(output, 240))
    return table


def sentences_of(result: Checked) -> list[str]:
    """Return the findings, one a line: what flips, and where the judge leans."""
    lines = [_sentence(one) for one in result.shifts if one.rows]
    if (own := result.own) is not None:
        of = own.over if own.beside else own.lead
        over = f", beyond the lead that {own.beside} sees" if own.beside else ""
        ahead = with_interval(of.value, of.low, of.high, 3)
        lines.append(
            f"own writing ({', '.join(own.own)}): ahead by {ahead} of the scale in {own.documents} documents{over}"
        )
    return lines


def _sentence(one: Shift) -> str:
    flips = _percents(one.flips)
    change = with_interval(one.change.value, one.change.low, one.change.high, 3)
    if one.lean in ("raises", "lowers"):
        lean = f", and {one.lean} scores by {change}"
    else:
        lean = ""
    return f"{one.check}: flips {flips} of {one.rows} rows{lean}"


def _percents(of: Estimate) -> str:
    ends = "" if math.isnan(of.low) else f" [{percent(of.low)}, {percent(of.high)}]"
    return percent(of.value) + ends


def lead_of(result: Checked) -> str:
    """Return the result in a sentence."""
    leaning = [one.check for one in result.shifts if one.lean in ("raises", "lowers")]
    most = max(
        (one for one in result.shifts if one.rows),
        key=lambda one: one.flips.value,
        default=None,
    )
    parts = []
    if most is not None:
        parts.append(
            f"{result.judge}'s decisions flip most often with {most.check}: {percent(most.flips.value)}"
        )
        parts.append(
            f"scores lean with {', '.join(leaning)}"
            if leaning
            else "no check makes scores lean"
        )
    if result.own is not None:
        parts.append(f"own writing is ahead by {number(result.own.lead.value)}")
    return "; ".join(parts) or f"{result.judge}: no check could be made"


def left_out(result: Checked) -> list[str]:
    """Return the checks that were left out, with reasons."""
    return [f"{check} was left out: {reason}" for check, reason in result.left.items()]


def render(result: Checked, about: Mapping[str, Any]) -> str:
    """Return the page; about: settings to be named."""
    counted = f"{result.rows} rows of {result.documents} documents"
    settings = [f"{name} {value}" for name, value in about.items()]
    tables: list[Any] = [shifts_table(result)] if result.shifts else []
    tables += [] if result.own is None else [own_table(result.own), _ABOUT_OWN]
    done = [f"{one.check}: {CHECKS[one.check]}" for one in result.shifts]
    sections = [
        Section("Summary", [sentences_of(result), left_out(result), _ABOUT]),
        Section("Tables", [*tables, f"Decisions: {result.bar}."]),
        Section("What was done", [done, list(result.notes)]),
        Section("Rows", [moves_table(result)] if result.moves else []),
    ]
    return render_page(
        f"Checks without labels: {result.judge}",
        sections,
        lead=f"{lead_of(result)[0].upper()}{lead_of(result)[1:]}.",
        about=[" · ".join([result.origin, counted, *settings])],
    )
