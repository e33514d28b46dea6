"""A comparison in words and tables, for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from judgesmith.agreement.comparison import ASKED, Comparison
from judgesmith.agreement.paired import FOUND
from judgesmith.agreement.versions import FEWEST_EARLIER
from judgesmith.comparing.reading import Versions
from judgesmith.comparing.run import worse
from judgesmith.running.console import wide
from judgesmith.running.plain import clean
from judgesmith.tables import Cell, Column, Table, p_in_words


def show(
    found: Comparison, versions: Versions, notes: Sequence[str], *, gate: bool = False
) -> None:
    """Print the answer, its table, and what to do next."""
    out = wide()
    out.print(clean(str(found)), markup=False, style="bold")
    means(found, versions).show(out)
    for line in lines(found, gate=gate):
        out.print(clean(line), markup=False)
    if gate:
        out.print(clean(verdict_of_gate(found)), markup=False, style="bold")
    for note in notes:
        out.print(f"note: {clean(note)}", style="yellow", markup=False)
    if step := following(found):
        out.print(clean(step), markup=False)


def means(found: Comparison, versions: Versions) -> Table:
    """Return the means of both versions, and their difference."""
    judge_column = [Column("judge", ".3f")] if versions.judged else []
    columns: list[Column | str] = [
        "version",
        Column("people", ".3f"),
        *judge_column,
        Column("labelled", "d"),
    ]
    about = f", {versions.aspect}" if versions.aspect else ""
    table = Table(columns, f"Means on {found.judge.documents} common documents{about}")
    own = {one.name: one for one in found.versions}
    labelled = dict(zip((found.base, found.new), found.labelled, strict=True))
    for name in (found.base, found.new):
        one = own[name]
        scores = [one.judge] if versions.judged else []
        table.add(name, one.human, *scores, labelled[name])
    people = Cell(found.difference, found.low, found.high)
    judge = Cell(found.judge.difference, found.judge.low, found.judge.high)
    ends = [judge] if versions.judged else []
    table.add("difference", people, *ends, "")
    return table


def lines(found: Comparison, *, gate: bool = False) -> list[str]:
    """Return what the verdict rests on, in lines."""
    told = []
    if not math.isnan(found.p):
        what = f"People: {p_in_words(found.p)} of no difference"
        if found.basis == "other versions":
            what = (
                f"The judge's scores: a wrong sign has a probability of {found.p / 2:.1%} for versions that differ as "
                f"the rated ones do, {found.reverse / 2:.1%} however little they differ"
            )
        told.append(f"{what}. Level {found.level:.3g}, interval {1 - found.level:.4g}.")
    if found.changed < 1:
        told.append(f"The outputs differ on {found.changed:.0%} of the documents.")
    if gate:
        told.append(f"The judge alone: {found.judge}.")
    elif not math.isnan(found.judge.finds):
        told.append(
            f"The judge's own scores would find a loss of {found.judge.finds:.2f} in {FOUND:.0%} of cases."
        )
    told += [f"Undecided, as {reason}." for reason in found.reasons]
    return told


def verdict_of_gate(found: Comparison) -> str:
    """Return whether `--fail-if-worse` passes, and by what."""
    by = "people's ratings" if found.basis != "nothing" else "the judge's scores"
    if worse(found):
        return f"Failed: {found.new} is worse than {found.base} by {by}."
    return f"Passed: {found.new} is not found to be worse than {found.base} by {by}."


def following(found: Comparison) -> str:
    """Return what to do next; "" where it is decided."""
    if found.verdict != "undecided":
        return ""
    if max(found.labelled):
        return ""
    text = f"Next: let people rate {ASKED} documents of {found.base}, drawn at random (`judgesmith label`)."
    if found.others + 1 < FEWEST_EARLIER:
        text += (
            f" `compare --keep versions.jsonl` keeps them: once {FEWEST_EARLIER} versions are rated, a new one can be "
            "judged without labels of its own."
        )
    return text
