"""The run of `judgesmith evaluate`: read, judge, measure, write and print; `agreement.meta` has the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape

from ..agreement.meta.evaluation import MetaEvaluation, meta_evaluate
from ..agreement.meta.inputs import COEFFICIENTS, DECIDED
from ..errors import OptionError
from ..running.console import err, out, print_json, wide
from ..running.opening import connection_of, write_output
from ..running.plain import clean, finite
from ..tables import Table
from .decided import Decided, decisions
from .export import agreement_table, check_kind, row_table
from .gate import Gate, Gated, check_aspects
from .judges import Wanted, read_judged
from .live import LiveRun, judge_live, plan_live
from .options import EvaluateOptions
from .page import render, write_figures
from .raters import persons, replacements, warnings, within_raters
from .raters import tables as rater_tables
from .request import EvaluateRequest
from .slices import Slice, slices
from .slices import tables as slice_tables
from .sources import Judged
from .spans import evaluate_spans
from .tables import agreement_markdown, show


def run(request: EvaluateRequest) -> int:
    """Return the exit code: 1 where the gate fails."""
    how = request.options
    if request.spans is not None:
        return _spans(request, how)
    gates = [Gate.parse(text) for text in request.fail_under]
    for gate in gates:
        how = _with_gate(how, gate)
    data = read_judged(request.sources, _wanted(request, how))
    kinds = (
        set(data.kinds.values()) if data.kinds.keys() == data.human.keys() else set()
    )
    together = len(set(data.documents)) < len(data.rows)
    if how.levels is None and (
        kinds == {"binary"} or (kinds == {"preference"} and together)
    ):
        # Pass and fail are not ordered within documents, and preferences not between them.
        how = how.model_copy(
            update={"levels": ("pooled" if kinds == {"binary"} else "sample",)}
        )
    where = connection_of(request.reach, request.api_base)
    if how.dry_run:
        planned = plan_live(data, request.lm, where)
        print_json(planned.to_dict()) if request.as_json else out.print(
            str(planned), markup=False, soft_wrap=True
        )
        return 0
    live: list[LiveRun] = []
    if data.live:
        check_aspects(gates, data.human)
        # People as their own judge: what cannot be evaluated is refused before a call is paid for.
        free = how.model_copy(update={"rounds": 0})
        meta_evaluate(
            {"people": data.human},
            data.human,
            documents=data.documents,
            systems=data.systems,
            options=free,
        )
        live = judge_live(
            data, request.lm, where, limits=how.limits(), quietly=request.as_json
        )
    result = meta_evaluate(
        data.judges,
        data.human,
        documents=data.documents,
        systems=data.systems,
        scale=data.scales,
        on_scale=data.on_scale or None,
        ratings=data.ratings,
        kinds=data.kinds,
        categories={aspect: marks.levels for aspect, marks in data.marks.items()},
        decided=data.decided,
        lengths=data.lengths,
        options=how,
    )
    gated = Gated.of(gates, lambda gate: gate.judge(result, how.min_coverage))
    decided = decisions(data, how)
    people = persons(data)
    notes = [
        *data.notes,
        *result.notes,
        *(note for one in decided for note in one.note()),
        *warnings(people),
    ]
    beside = Beside(
        slices(data, how.slices, how),
        replacements(data, people, how.epsilon),
        within_raters(data, people),
    )
    made = {
        request.output: lambda: render(data, result, notes, decided, beside.tables()),
        how.markdown: lambda: agreement_markdown(result, gated.headline, gated.reasons),
        how.table: lambda: agreement_table(result, how.table or Path()),
        how.rows: lambda: row_table(data, how.rows or Path()),
    }
    written = [path for path in made if path is not None]
    for path in written:
        write_output(path, made[path]())
    drawn = write_figures(how.figures, data, result) if how.figures is not None else []
    if request.as_json:
        print_json(
            result.to_dict()
            | {
                "notes": notes,
                "origin": data.origin,
                "rows": len(data.rows),
                "gate": gated.to_dict(),
            }
            | {"decisions": [one.to_dict() for one in decided]}
            | beside.to_dict()
            | {
                "figures": list(map(str, drawn)),
                "live": [one.to_dict() for one in live],
            }
        )
    else:
        _tell(data, result, notes, live, decided)
        beside.show()
        for path in written:
            out.print(f"Wrote {escape(str(path))}")
        if how.figures is not None:
            out.print(
                f"Wrote {len(drawn)} files of figures to {escape(str(how.figures))}"
            )
    return _leave(gated)


def _wanted(request: EvaluateRequest, how: EvaluateOptions) -> Wanted:
    """Return the scores and rows to read.

    Raises:
        OptionError: If a file would be written in no known form.
    """
    if request.output is not None and request.output.suffix.lower() not in (
        ".html",
        ".htm",
    ):
        raise OptionError(
            f"-o {request.output}: the report is HTML; name it .html (numbers go to --json)"
        )
    check_kind("table", how.table)
    check_kind("rows", how.rows)
    return Wanted(
        human=request.human,
        judges=request.judges,
        columns=request.columns,
        without_systems=how.without_system,
        scale=request.scale,
        limit=request.limit,
        unseen=request.unseen,
        orders=request.orders,
    )


@dataclass(frozen=True)
class Beside:
    """Results for slices of the rows and for single raters."""

    slices: Sequence[Slice]
    replaced: Sequence[dict[str, Any]]
    within: Sequence[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        raters = {
            "replacement": list(self.replaced),
            "within_raters": list(self.within),
        }
        return {"slices": [one.to_dict() for one in self.slices], **finite(raters)}

    def tables(self) -> list[tuple[str, Table]]:
        """Return the tables that have rows, each with its title."""
        made = [*rater_tables(self.replaced, self.within), *slice_tables(self.slices)]
        return [(about, table) for about, table in made if len(table)]

    def show(self) -> None:
        """Print the tables."""
        printer = wide()
        for about, table in self.tables():
            table.show(printer)
            printer.print(about, markup=False, style="dim")


def _spans(request: EvaluateRequest, how: EvaluateOptions) -> int:
    if len(request.sources) != 1:
        raise OptionError("--spans compares one scored file with TRUTH; name one file")
    report = evaluate_spans(
        request.sources[0],
        str(request.spans),
        rounds=how.rounds,
        confidence=how.confidence,
        seed=how.seed,
    )
    gates = [Gate.parse(text) for text in request.fail_under]
    gated = Gated.of(gates, lambda gate: report.gated(gate, how.min_coverage))
    if request.as_json:
        print_json(report.to_dict() | {"gate": gated.to_dict()})
    else:
        report.show()
    return _leave(gated)


def _leave(gated: Gated) -> int:
    """Print whether the gates were passed, and return the exit code."""
    style = "red" if gated.reasons else "green"
    if line := gated.in_words():
        err.print(clean(line), markup=False, soft_wrap=True, style=style)
    return 1 if gated.reasons else 0


def _with_gate(how: EvaluateOptions, gate: Gate) -> EvaluateOptions:
    """Return the options with the coefficients and levels that the gate needs."""
    levels: tuple[str, ...] | None = how.levels
    if (
        levels is not None
        and gate.level is not None
        and gate.coefficient not in DECIDED
    ):
        levels = tuple(dict.fromkeys((*levels, gate.level)))
    measured = (gate.coefficient,) if gate.coefficient in COEFFICIENTS else ()
    coefficients = tuple(dict.fromkeys((*how.coefficients, *measured)))
    return how.model_copy(update={"levels": levels, "coefficients": coefficients})


def _tell(
    data: Judged,
    result: MetaEvaluation,
    notes: Sequence[str],
    live: Sequence[LiveRun],
    decided: Sequence[Decided],
) -> None:
    for run in live:
        out.print(clean(str(run)), markup=False, soft_wrap=True)
        for identity, reason in run.summary.failures[:5]:
            out.print(
                clean(f"  no score for {identity}: {reason}"), markup=False, style="red"
            )
        if run.summary.failed > 5:
            out.print(
                f"  … and {run.summary.failed - 5} more; --json has their reasons"
            )
    show(result, data.origin, len(data.rows), notes, decided)
