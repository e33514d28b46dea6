"""What `judgesmith discern` prints: tables by origin and level, false alarms, attacks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from ..datasets.perturbations.base import Origin
from ..evaluating.pivot import plain_number
from ..evaluating.tables import escape, p_value
from ..running.console import wide
from ..running.plain import clean
from .comparison import Comparison
from .plots import LEVELS, mark
from .run import HEADINGS, JudgeResult

SEES = {"yes": "yes", "alone": "doubtful", "no": "NO", "unknown": "too few"}


def show(result: JudgeResult, *, rounds: int) -> None:
    """The tables of one judge."""
    out = wide()
    for origin in HEADINGS:
        _show_origin(result, origin, out, rounds=rounds)
    floors = [line.test.tests[0].floor for line in result.of("degradation") if line.enough]
    if floors:
        out.print(
            f"The smallest p that these texts can give is {min(floors):.1e} to {max(floors):.1e}: D grows with the "
            "number of texts, the effect (rank-biserial, 1 = every text lost score) does not.",
            markup=False, style="dim", soft_wrap=True,
        )  # fmt: skip
    _others(result, "invariance", "Changes without harm: a good judge does not react", "mean drop", "dropped", "reacts")
    if result.of("invariance"):
        out.print(f"False alarms: {share_text(result.false_alarms)} of these texts lost score.", markup=False)
    attacks = "Attacks: wrong texts that address the judge, before and after"
    _others(result, "attack", attacks, "mean rise", "risen", "gives in")
    for line in result.lines:
        reasons = dict.fromkeys(test.reason for test in line.test.tests if test.reason)
        if reasons and line.test.n:
            out.print(f"note: {line.name}: {', '.join(map(str, reasons))}, so p = 1", style="yellow", markup=False)
    if result.failed:
        out.print(f"note: {result.failed} texts have no score; their pairs are left out", style="yellow", markup=False)
    out.print(clean(result.conclusion()), markup=False, style="bold", soft_wrap=True)


def _show_origin(result: JudgeResult, origin: Origin, out: Console, *, rounds: int) -> None:
    """The perturbations of one origin, and D_avg and D_min over them alone."""
    harmful = [line for line in result.of("degradation", origin) if line.test.n]
    if not harmful:
        if origin == "paper" and result.of("degradation"):
            out.print(f"D_avg and D_min undefined: {result.coverage()}", markup=False, soft_wrap=True)
        return
    several = len(result.metrics) > 1
    how = "95 % intervals over texts" if rounds else "no intervals"
    of = f", metrics {escape(', '.join(result.metrics))}" if several else ""
    title = f"What {escape(result.judge)} discerns: {HEADINGS[origin]} (D >= 1: p <= 0.05; {how}{of})"
    table = _table(title, "level")
    table.add_column("perturbation", no_wrap=True)
    other = "D 1/M" if result.form == "paper" else "D paper"
    titles = ["texts", "left out", "D", "p", "p Holm", "effect", "mean drop", "dropped", "sees it"]
    for name in [*titles[:3], *([other, "D expert"] if several else []), *titles[3:]]:
        table.add_column(name, justify="right", no_wrap=True)
    previous = ""
    for line in sorted(harmful, key=lambda line: LEVELS.index(line.level)):
        if previous and previous != line.level:
            table.add_section()
        t = line.test
        second = t.d_normalised if result.form == "paper" else t.d_paper
        more = [plain_number(second, 2), plain_number(t.d_expert, 2)] if several else []
        table.add_row(
            line.level if line.level != previous else "", escape(line.name) + mark(line), str(t.n),
            str(line.left or ""), _with_limits(t.d, t.low, t.high), *more, p_text(t.p), p_text(line.p_holm),
            _with_limits(t.effect, t.effect_low, t.effect_high), plain_number(t.drop), share_text(t.dropped),
            SEES[line.sees],
        )  # fmt: skip
        previous = line.level
    out.print(table)
    _say_summary(result, origin, out)


def show_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Which judge discerns more, and of what."""
    if not comparisons:
        return
    out = wide()
    over = "the paper's perturbations" if all(one.of_paper for one in comparisons) else "all perturbations"
    table = _table(
        f"Does one judge discern more? Differences of the mean effect over {over} of the same texts (95 % intervals); "
        "p of swapping the judges text by text, corrected by Holm over their pairs",
        "judge", "less judge",
    )  # fmt: skip
    for name in ("texts", "difference", "p", "p Holm", "of D_avg"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in comparisons:
        g = one.gap
        table.add_row(
            escape(one.a), escape(one.b), str(g.texts), _with_limits(g.value, g.low, g.high), p_text(g.p),
            p_text(one.p_holm), plain_number(g.d, 2),
        )  # fmt: skip
    out.print(table)
    for one in comparisons:
        out.print(clean(difference_in_words(one)), markup=False, soft_wrap=True)


def difference_in_words(one: Comparison) -> str:
    """Which of two judges discerns more, in one line."""
    if one.gap.reason:
        return f"{one.a} and {one.b}: {one.gap.reason}."
    if one.p_holm <= 0.05:
        better, other = (one.a, one.b) if one.gap.value > 0 else (one.b, one.a)
        said = f"{better} discerns more than {other}"
    else:
        over = "the paper's" if one.of_paper else "all"
        said = f"{one.a} and {one.b} cannot be told apart over {over} perturbations"
    parts = []
    for judge, sign in ((one.a, 1), (one.b, -1)):
        names = [name for name, value, _ in one.differing() if value * sign > 0]
        if names:
            parts.append(f"{judge} sees more of {', '.join(names)}")
    return f"{said}{'; ' if parts else ''}{'; '.join(parts)}."


def _say_summary(result: JudgeResult, origin: Origin, out: Console) -> None:
    few = [line for line in result.of("degradation", origin) if line.test.n and not line.enough]
    for how, avg, least, worst, note in summaries(result, origin):
        start = f"{how}: " if how else ""
        out.print(
            f"{start}D_avg {avg} (levels weigh the same), D_min {least} ({worst or 'undefined'}){note}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    if len(result.metrics) > 1 and result.overall[origin].expert is None:
        out.print("No expert weight fits these metrics; give --weights", markup=False)
    if origin == "paper":
        out.print(f"Both rest on {result.coverage()}.", markup=False, soft_wrap=True)
    if few:
        out.print(
            f"Left out of both, with fewer than {few[0].fewest} texts: {', '.join(x.name for x in few)}.", markup=False
        )


def summaries(result: JudgeResult, origin: Origin) -> list[tuple[str, str, str, str, str]]:
    """(how metrics are combined, D_avg, D_min, its perturbation, note) of one origin, the form asked for first."""
    overall = result.overall[origin]
    several = len(result.metrics) > 1
    forms = [("Normalised (1/M)" if several else "", overall.normalised, "")]
    if several:
        forms.append(("As the paper prints it, without 1/M", overall.paper, ""))
        if result.form == "paper":
            forms.reverse()
    if overall.expert is not None and (several or origin == "paper"):
        n = overall.expert.undefined
        note = f"; {n} perturbation{'s have' if n > 1 else ' has'} no weight for these metrics" if n else ""
        forms.append(("With expert weights", overall.expert, note))
    return [(how, plain_number(s.d_avg, 2), plain_number(s.d_min, 2), s.worst, note) for how, s, note in forms]


def _others(result: JudgeResult, kind: str, title: str, change: str, share: str, reacts: str) -> None:
    lines = [line for line in result.of(kind) if line.test.n]
    if not lines:
        return
    table = _table(f"{title} ({escape(result.judge)})", kind)
    for name in ("texts", "left out", change, share, "effect", "p", "p Holm", reacts):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        t = line.test
        table.add_row(
            escape(line.name), str(t.n), str(line.left or ""), plain_number(t.drop), share_text(t.dropped),
            _with_limits(t.effect, t.effect_low, t.effect_high), p_text(t.p), p_text(line.p_holm),
            {"yes": "YES", "alone": "doubtful", "no": "no", "unknown": "too few"}[line.sees],
        )  # fmt: skip
    wide().print(table)


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def p_text(value: float) -> str:
    return "–" if math.isnan(value) else p_value(value)


def _with_limits(value: float, low: float, high: float) -> str:
    found = plain_number(value, 2)
    return found if math.isnan(low) else escape(f"{found} [{plain_number(low, 2)}, {plain_number(high, 2)}]")


def share_text(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0%}"
