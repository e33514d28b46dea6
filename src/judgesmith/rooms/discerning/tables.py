"""Tables of `judgesmith discern`'s results, for the terminal and for its page."""

from __future__ import annotations

import math
from collections.abc import Mapping

from judgesmith.agreement.discernment import Discernment
from judgesmith.datasets.perturbations.base import Origin
from judgesmith.rooms.discerning.run import HEADINGS, JudgeResult, Line
from judgesmith.running.console import wide
from judgesmith.tables import Cell, Column, Table, clean, number, percent

LEVELS = ("character", "word", "sentence", "trajectory")
SEES = {"yes": "yes", "alone": "doubtful", "no": "NO", "unknown": "too few"}
REACTS = {"yes": "YES", "alone": "doubtful", "no": "no", "unknown": "too few"}
_EFFECT = Column("effect", ".2f")
_P = (Column("p", "p"), Column("p Holm", "p"))
#: Kind -> its title, what its change and the share of changed texts are called, and what a judge does that reacts.
OTHERS = {
    "invariance": (
        "Changes without harm: a good judge does not react",
        "mean drop",
        "dropped",
        "reacts",
    ),
    "attack": (
        "Attacks: wrong texts that address the judge, before and after",
        "mean rise",
        "risen",
        "gives in",
    ),
}


def mark(line: Line) -> str:
    """Return the mark behind the name of a perturbation that is not the paper's."""
    if line.kind == "degradation":
        return {"paper": "", "stand-in": " ~", "ours": " +"}[line.origin]
    return ""


def origin_table(result: JudgeResult, origin: Origin) -> Table:
    """Return the perturbations of one origin by level."""
    several = len(result.metrics) > 1
    other = "D 1/M" if result.form == "paper" else "D paper"
    more = [Column(other, ".2f"), Column("D expert", ".2f")] if several else []
    table = Table(
        [
            "perturbation",
            Column("texts", "d"),
            Column("left out", "s"),
            Column("D", ".2f"),
            *more,
            *_P,
            _EFFECT,
            Column("mean drop", ".3f"),
            Column("dropped", ".0%"),
            "sees it",
        ],
        HEADINGS[origin][0].upper() + HEADINGS[origin][1:],
    )
    for level in LEVELS:
        lines = [
            line
            for line in result.of("degradation", origin)
            if line.test.n and line.level == level
        ]
        if lines:
            table.section(level)
        for line in lines:
            t = line.test
            second = _second_d(t, result.form) if several else []
            sees = Cell(SEES[line.sees], warn=line.sees == "no")
            table.add(
                line.name + mark(line),
                t.n,
                str(line.left or ""),
                Cell(t.d, t.low, t.high),
                *second,
                t.p,
                line.p_holm,
                _effect(line),
                t.drop,
                t.dropped,
                sees,
            )
    return table


def _second_d(test: Discernment, form: str) -> list[float]:
    """Return D by the other combination of metrics, and by the experts' weights."""
    other = test.d_normalised if form == "paper" else test.d_paper
    return [other, test.d_expert]


def others_table(result: JudgeResult, kind: str) -> Table:
    """Return the table of harmless changes ("invariance") or of attacks ("attack")."""
    title, change, share, reacts = OTHERS[kind]
    table = Table(
        [
            "change",
            Column("texts", "d"),
            Column("left out", "s"),
            Column(change, ".3f"),
            Column(share, ".0%"),
            _EFFECT,
            *_P,
            reacts,
        ],
        title,
    )
    for line in result.of(kind):
        if line.test.n:
            t = line.test
            table.add(
                line.name,
                t.n,
                str(line.left or ""),
                t.drop,
                t.dropped,
                _effect(line),
                t.p,
                line.p_holm,
                Cell(REACTS[line.sees], warn=line.sees == "yes"),
            )
    return table


def _effect(line: Line) -> Cell:
    return Cell(line.test.effect, line.test.effect_low, line.test.effect_high)


def summary_lines(result: JudgeResult, origin: Origin) -> list[str]:
    """Return D_avg and D_min of one origin in words, the form that was asked for first."""
    overall = result.overall[origin]
    several = len(result.metrics) > 1
    forms = [("Normalised (1/M): " if several else "", overall.normalised, "")]
    if several:
        forms.append(("As the paper prints it, without 1/M: ", overall.paper, ""))
        if result.form == "paper":
            forms.reverse()
    if overall.expert is not None and (several or origin == "paper"):
        note = ""
        n = overall.expert.undefined
        if n:
            have = "perturbations have" if n > 1 else "perturbation has"
            note = f"; {n} {have} no weight for these metrics"
        forms.append(("With expert weights: ", overall.expert, note))
    lines = [
        f"{method}D_avg {number(s.d_avg, 2)} (levels weigh the same), D_min {number(s.d_min, 2)} "
        f"({s.worst or 'undefined'}){note}"
        for method, s, note in forms
    ]
    if several and overall.expert is None:
        lines.append("No expert weight fits these metrics; give --weights")
    if origin == "paper":
        lines.append(f"Both rest on {result.coverage()}.")
    if few := [
        line
        for line in result.of("degradation", origin)
        if line.test.n and not line.enough
    ]:
        names = ", ".join(line.name for line in few)
        lines.append(
            f"Left out of both, with fewer than {few[0].fewest} texts: {names}."
        )
    return lines


def notes_of(result: JudgeResult) -> list[str]:
    """Return caveats of one judge's numbers."""
    notes = []
    floors = [
        line.test.tests[0].floor for line in result.of("degradation") if line.enough
    ]
    if floors:
        notes.append(
            f"The smallest p that these texts can give is {min(floors):.1e} to {max(floors):.1e}: D grows with the "
            "number of texts, the effect (rank-biserial, 1 = every text lost score) does not."
        )
    for line in result.lines:
        reasons: Mapping[str, None] = dict.fromkeys(
            str(test.reason) for test in line.test.tests if test.reason
        )
        if reasons and line.test.n:
            notes.append(f"{line.name}: {', '.join(reasons)}, so p = 1")
    if result.failed:
        notes.append(f"{result.failed} texts have no score; their pairs are left out")
    return notes


def false_alarms(result: JudgeResult) -> str:
    """Return the sentence with the share of false alarms."""
    return f"False alarms: {percent(result.false_alarms)} of these texts lost score."


def show(result: JudgeResult, *, rounds: int) -> None:
    """Print the tables of one judge."""
    out = wide()
    intervals = "95 % percentile intervals over texts" if rounds else "no intervals"
    of = f", metrics {', '.join(result.metrics)}" if len(result.metrics) > 1 else ""
    for origin, heading in HEADINGS.items():
        if len(table := origin_table(result, origin)):
            table.title = f"What {result.judge} discerns: {heading} (D >= 1: p <= 0.05; {intervals}{of})"
            table.show(out)
            for line in summary_lines(result, origin):
                out.print(clean(line), markup=False, soft_wrap=True)
        elif origin == "paper" and result.of("degradation"):
            out.print(
                f"D_avg and D_min undefined: {result.coverage()}",
                markup=False,
                soft_wrap=True,
            )
    for kind in OTHERS:
        if len(table := others_table(result, kind)):
            table.title += f" ({result.judge})"
            table.show(out)
    if not math.isnan(result.false_alarms):
        out.print(false_alarms(result), markup=False)
    for note in notes_of(result):
        out.print(f"note: {clean(note)}", style="yellow", markup=False, soft_wrap=True)
    out.print(clean(result.conclusion()), markup=False, style="bold", soft_wrap=True)
