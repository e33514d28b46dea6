"""`judgesmith estimate`: means of systems from many judge scores and few human ratings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from judgesmith.cli.commands import Command, Json, Rows, Worded, argument, flag
from judgesmith.errors import OptionError

if TYPE_CHECKING:
    from judgesmith.agreement.correlation import Vector
    from judgesmith.agreement.estimation import (
        Estimates,
        SystemDifference,
        SystemEstimate,
    )
    from judgesmith.evaluating.few import Scored

#: So few differences are all listed; of more, the significant ones, up to that many.
FEW = 3
LISTED = 10


class Estimate(Command, Rows, Worded, Json):
    """Estimate each system's mean human rating from judge scores and a few labels.

    The judge scores all rows; raters label a random sample of them, preferably whole documents. Prediction-powered
    inference (PPI++) corrects the human mean by the judge's scores of the other rows. The interval is valid for any
    judge, and narrower for a judge that agrees better. With five systems or more, the means are drawn to the line of
    people's means by the judge's (Fay-Herriot). Means that lie on no line stay. The judge's uncorrected mean is shown
    for comparison.
    """

    example: ClassVar[str] = "judgesmith estimate scored.jsonl --human labels.csv"

    scored: str = argument(
        ...,
        "All rows with the judge's scores: an output file of `judgesmith score`, or bench/NAME.",
    )
    human: list[str] = flag(
        [],
        "Human ratings of some rows: a file (joined by id), or a column of SCORED. Default: the column of SCORED "
        "with a usual name. Repeatable.",
        metavar="FILE|COLUMN",
    )
    judge: str | None = flag(
        None,
        "Scores of the judge: a column, a path, or a name in SET.metrics.jsonl. Default: the verdicts of `judgesmith "
        "score`.",
        metavar="COLUMN",
    )
    aspect: str | None = flag(
        None, "Name of the human rating to estimate. Required if there are several."
    )
    probability: str | None = flag(
        None,
        "Column with the probability, in (0, 1], that a row was drawn for labelling. Default: label_chance, as "
        "`judgesmith label` writes it, else equal probabilities.",
        metavar="COLUMN",
    )
    unseen: bool = flag(
        False, "Leave out the human ratings that the judge was compiled from."
    )
    confidence: float = flag(
        0.95, "Confidence level of the intervals, between 0 and 1."
    )

    def run(self) -> None:
        """Print the estimate of each system, with intervals."""
        import numpy as np

        from judgesmith.agreement.estimation import estimate
        from judgesmith.evaluating.few import read_few
        from judgesmith.running.console import print_json

        judges = [self.judge] if self.judge else ()
        options: dict[str, Any] = {
            "aspect": self.aspect,
            "columns": self.roles(),
            "orders": self.orders(),
        }
        scored = read_few(self.scored, human=self.human, judges=judges, **options)
        if not scored.judges:
            raise OptionError(
                f"{scored.origin}: no row has a verdict; name the judge's scores with --judge COLUMN"
            )
        learnt = [i for i in sorted(scored.seen) if not np.isnan(scored.human[i])]
        if learnt and self.unseen:
            scored.human[learnt] = np.nan
            scored.notes.append(
                f"{len(learnt)} human scores that the judge was compiled from are not used"
            )
        elif learnt:
            scored.notes.append(
                f"{len(learnt)} of the rows with human scores were used to compile the judge, which is more right "
                "there than elsewhere: the estimates can be off; --unseen leaves their human scores out"
            )
        chosen = [
            i
            for i, row in enumerate(scored.rows)
            if row.suggested and not np.isnan(scored.human[i])
        ]
        if 0 < len(chosen) < np.isfinite(scored.human).sum():
            scored.human[chosen] = np.nan
            scored.notes.append(
                f"{len(chosen)} human scores of rows that `suggest` chose, which are no random part, are not used"
            )
        name, scores = next(iter(scored.judges.items()))
        estimates = estimate(
            scores,
            scored.human,
            systems=scored.systems,
            documents=scored.documents,
            probabilities=scored.chances(self.probability),
            confidence=self.confidence,
            decisions=scored.decisions,
            others=_numbers_of(scored),
        )
        notes = [*scored.notes, *estimates.notes]
        if scored.systems is None:
            notes.append("not every row has a system: all rows are taken together")
        if self.as_json:
            about = {
                "notes": notes,
                "origin": scored.origin,
                "judge": name,
                "aspect": scored.aspect,
            }
            print_json(estimates.to_dict() | about)
        else:
            _show(estimates, f"{scored.origin}, {scored.aspect}, judge {name}", notes)


def _show(estimates: Estimates, title: str, notes: list[str]) -> None:
    from judgesmith.running.console import wide
    from judgesmith.running.plain import clean
    from judgesmith.tables import Column, Table, p_in_words

    out = wide()
    columns: list[Column | str] = [
        "system",
        Column("mean", ".3f"),
        "rank",
        Column("judge only", ".3f"),
        Column("labels only", ".3f"),
        Column("human", "d"),
        Column("judge", "d"),
        "as precise as",
    ]
    table = Table(
        columns,
        f"How good the systems are ({estimates.confidence:.0%} intervals): {title}",
    )
    for system in estimates.systems:
        table.add(*_cells(system))
    table.show(out)
    mean, low, high = estimates.at_large
    if not math.isnan(mean):
        out.print(f"Systems like these at large: {mean:.3f} [{low:.3f}, {high:.3f}].")
    sure = [d for d in estimates.differences if d.p < 1 - estimates.confidence]
    if estimates.on_line:
        line = "the line of people's means by the judge's"
        out.print(f"Means of {estimates.on_line} systems are drawn to {line}.")
    if estimates.differences:
        out.print(_decided(len(sure), estimates.differences))
    few = len(estimates.differences) <= FEW
    told = estimates.differences if few else sure
    for d in sorted(told, key=lambda d: d.p)[:LISTED]:
        sign = 1 if d.difference > 0 else -1
        better, worse = (d.a, d.b) if sign > 0 else (d.b, d.a)
        low, high = sorted((sign * d.low, sign * d.high))
        text = f"  {better} − {worse}: {abs(d.difference):+.3f} [{low:+.3f}, {high:+.3f}], {p_in_words(d.p)}"
        out.print(
            clean(text + ("" if d in sure else "; not significant")), markup=False
        )
    for system in estimates.systems:
        if system.reason:
            out.print(
                clean(f"note: {system.system}: {system.reason}"),
                style="yellow",
                markup=False,
            )
    for note in notes:
        out.print(f"note: {clean(note)}", style="yellow", markup=False)


def _decided(sure: int, differences: Sequence[SystemDifference]) -> str:
    """Return how many differences are more than chance, and what the others leave open."""
    text = f"{sure} of {len(differences)} differences are significant (p after Holm)."
    open_ends = [max(abs(d.low), abs(d.high)) for d in differences]
    if sure == 0:
        text += (
            f" They may be up to {max(open_ends):.3f}, either way; `judgesmith compare` says how many more labels "
            "would decide."
        )
    return text


def _numbers_of(scored: Scored) -> dict[str, Vector]:
    """Return what labelled rows can be compared with the rest by: lengths, and columns of ISO dates."""
    import numpy as np

    rows = scored.rows
    result = {
        "length of outputs": np.array([float(len(row.output)) for row in rows]),
        "length of sources": np.array([float(len(row.source)) for row in rows]),
    }
    for name in dict.fromkeys(name for row in rows for name in row.columns):
        times = np.array([_time(row.columns.get(name)) for row in rows])
        if np.isfinite(times).mean() > 0.9:
            result[f"column {name!r}"] = times
    return result


def _time(cell: Any) -> float:
    """Return an ISO date or time as seconds; NaN for anything else."""
    if not isinstance(cell, str):
        return math.nan
    try:
        time = datetime.fromisoformat(cell.strip())
    except ValueError:
        return math.nan
    return time.replace(tzinfo=time.tzinfo or UTC).timestamp()


def _cells(system: SystemEstimate) -> tuple[Any, ...]:
    """Return a system's line of the table."""
    from judgesmith.tables import Cell

    rank = "–"
    if not system.reason:
        rank = str(system.rank_low)
        if system.rank_high != system.rank_low:
            rank += f"–{system.rank_high}"
    worth = "–"
    if not math.isnan(system.effective_low):
        ends = f"{system.effective_low:.0f}–{system.effective_high:.0f}"
        worth = f"{ends} labels"
    elif math.isfinite(system.effective):
        worth = f"about {system.effective:.0f} labels"
    return (
        system.system,
        Cell(system.mean, system.low, system.high),
        rank,
        system.naive,
        Cell(system.human, system.human_low, system.human_high),
        system.n_human,
        system.n_judge,
        worth,
    )
