"""The run of `judgesmith check`: read, judge, measure, write and print; `agreement.meta` has the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from judgesmith.agreement.coefficients import coefficients
from judgesmith.agreement.coefficients import decided as of_decisions
from judgesmith.agreement.meta.evaluation import MetaEvaluation, meta_evaluate
from judgesmith.agreement.meta.inputs import USUAL
from judgesmith.errors import OptionError
from judgesmith.evaluating.answer import Answer, answers
from judgesmith.evaluating.anytime import check_looks, looked
from judgesmith.evaluating.baseline import Again, Retest
from judgesmith.evaluating.certificate import (
    certificate,
    check_certificate,
    error_of_rule,
)
from judgesmith.evaluating.claims import Claim, claims
from judgesmith.evaluating.decided import Decided, decisions
from judgesmith.evaluating.export import agreement_table, check_kind, row_table
from judgesmith.evaluating.gate import RATE, Gate, Gated, check_aspects
from judgesmith.evaluating.judges import Selection, read_judged
from judgesmith.evaluating.options import EvaluateOptions
from judgesmith.evaluating.page import render, write_figures
from judgesmith.evaluating.passrate import PassRate, chances_of, pass_rates
from judgesmith.evaluating.plan import Plan, gains_of, plan
from judgesmith.evaluating.raters import persons, replacements, warnings, within_raters
from judgesmith.evaluating.raters import tables as rater_tables
from judgesmith.evaluating.reading import Reading, left_out
from judgesmith.evaluating.request import EvaluateRequest
from judgesmith.evaluating.slices import Slice, slice_columns, slices
from judgesmith.evaluating.slices import tables as slice_tables
from judgesmith.evaluating.sources import Judged
from judgesmith.evaluating.spans import evaluate_spans
from judgesmith.evaluating.systems import Systems, systems_told
from judgesmith.evaluating.tables import Said, agreement_markdown, show, show_plan
from judgesmith.programs.models.connection import Connection
from judgesmith.running.console import err, out, print_json, wide
from judgesmith.running.opening import connection_of, write_output
from judgesmith.running.plain import clean, finite
from judgesmith.tables import Table

if TYPE_CHECKING:
    from judgesmith.evaluating.live import LiveRun


def run(request: EvaluateRequest) -> int:
    """Return the exit code: 1 where the gate fails."""
    options = request.options
    if request.spans is not None:
        return _spans(request, options)
    gates = [Gate.parse(text) for text in request.fail_under]
    if options.anytime:
        check_looks(gates)
    options = _with_gates(options, gates)
    data = read_judged(request.sources, _selection(request, options))
    options = _with_level(options, data)
    where = connection_of(request.reach, request.api_base)
    if options.dry_run:
        from judgesmith.evaluating.live import plan_live

        estimate = plan_live(data, request.lm, where)
        if request.as_json:
            print_json(estimate.to_dict())
        else:
            out.print(str(estimate), markup=False, soft_wrap=True)
        return 0
    live = _judge_live(request, options, data, gates, where)
    result = _agreement(data, live, options)
    decided = decisions(data, options)
    chances = chances_of(data, options.probability)
    rates = list(
        pass_rates(decided, chances, confidence=options.confidence, seed=options.seed)
    )
    retest = Retest(request.baseline, options, options.looks)

    def reasons(gate: Gate) -> list[str]:
        if options.anytime:
            looks = looked(gate, data, decided, chances)
            data.notes += [str(look) for look in looks]
            failed = [str(look) for look in looks if not look.passed]
            return [*gate.uncovered(result, options.min_coverage), *failed]
        if data.unequal and gate.coefficient != RATE:
            raise OptionError(
                f"--fail-under {gate.text!r}: rows were drawn with unequal probabilities ({data.unequal!r}), and of "
                "gates only rate, and those of --anytime, weigh them"
            )
        if retest.passed_before(gate):
            uncovered = gate.uncovered(result, options.min_coverage)
            return [*uncovered, *retest.reasons(gate, data, decided)]
        return gate.judge(result, options.min_coverage, rates)

    gated = Gated.of(gates, reasons)
    data.notes += filter(None, (gate.power(result) for gate in gates))
    people = persons(data)
    split = slice_columns(data, options.slices)
    rows_left_out = left_out(data.human, data.judges, [row.id for row in data.rows])
    results = _Results(
        data,
        result,
        gated,
        decided,
        Beside(
            slices(data, split, options),
            replacements(data, people, options.epsilon),
            within_raters(data, people),
        ),
        list(warnings(people)),
        live,
        claims(data, live, rounds=options.rounds, seed=options.seed),
        answers(data, result, decided, options.bar),
        replace(
            data.reading,
            left_out=rows_left_out,
            split=split,
            languages=() if options.slices else data.reading.languages,
        ),
        rates,
        _plan(request, data, result, decided, gates) if request.plan else None,
        retest.found,
        list(systems_told(data, chances, options)),
        drawn=chances is not None,
    )
    begun = None if gated.reasons else retest.begin(data, decided, gates)
    files = _write(request, options, results, begun)
    if request.as_json:
        print_json(results.to_dict() | {"figures": list(map(str, files.figures))})
    else:
        _print(results, files, options)
    return _leave(gated)


def first_answers(request: EvaluateRequest) -> list[Answer]:
    """Return what `check` says first of files whose scores are there."""
    data = read_judged(request.sources, _selection(request, request.options))
    options = _with_level(request.options, data)
    result = _agreement(data, [], options)
    return answers(data, result, decisions(data, options), options.bar)


def _agreement(
    data: Judged, live: Sequence[LiveRun], options: EvaluateOptions
) -> MetaEvaluation:
    return meta_evaluate(
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
        saved={run.judge for run in live} | data.on_scale,
        options=options,
    )


def _plan(
    request: EvaluateRequest,
    data: Judged,
    result: MetaEvaluation,
    decided: Sequence[Decided],
    gates: Sequence[Gate],
) -> Plan:
    """Return what more labels would buy: narrower intervals, power, and a better judge."""
    options = request.options
    gains = list(gains_of(data, options.seed))
    return plan(result, decided, gates, options.bar, gains)


def _with_level(options: EvaluateOptions, data: Judged) -> EvaluateOptions:
    """Return the options with the one level that decisions have, if none is named and there are only decisions.

    Pass and fail are not ordered within documents, and preferences not between them.
    """
    if options.levels is not None or data.kinds.keys() != data.human.keys():
        return options
    kinds = set(data.kinds.values())
    repeated = len(set(data.documents)) < len(data.rows)
    if kinds == {"binary"}:
        return options.model_copy(update={"levels": ("pooled",)})
    if kinds == {"preference"} and repeated:
        return options.model_copy(update={"levels": ("sample",)})
    return options


def _judge_live(
    request: EvaluateRequest,
    options: EvaluateOptions,
    data: Judged,
    gates: Sequence[Gate],
    where: Connection,
) -> list[LiveRun]:
    """Let saved judges score the rows. Data that cannot be evaluated are refused before a call is paid for."""
    if not data.live:
        return []
    from judgesmith.evaluating.live import judge_live

    check_aspects(gates, data.human)
    meta_evaluate(
        {"people": data.human},
        data.human,
        documents=data.documents,
        systems=data.systems,
        options=options.model_copy(update={"rounds": 0}),
    )
    return judge_live(
        data, request.lm, where, limits=options.limits(), quietly=request.as_json
    )


@dataclass(frozen=True)
class _Results:
    """The results of an evaluation, as they are printed and written."""

    data: Judged
    result: MetaEvaluation
    gated: Gated
    decided: Sequence[Decided]
    beside: Beside
    warnings: Sequence[str]
    live: Sequence[LiveRun]
    claims: Sequence[Claim] = ()
    answers: Sequence[Answer] = ()
    reading: Reading = field(default_factory=Reading)
    rates: Sequence[PassRate] = ()
    plan: Plan | None = None
    again: Sequence[Again] = ()
    systems: Sequence[Systems] = ()
    drawn: bool = False
    """The rows' probabilities to be labelled are known."""

    @property
    def notes(self) -> list[str]:
        """Notes on the rows, the agreement, the decisions and the raters."""
        notes = [*self.data.notes, *self.result.notes]
        for decided in self.decided:
            notes += decided.note()
        return [*notes, *self.warnings, *map(str, self.claims), *map(str, self.again)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        about = {
            "notes": self.notes,
            "origin": self.data.origin,
            "rows": len(self.data.rows),
            "gate": self.gated.to_dict(),
            "decisions": [decided.to_dict() for decided in self.decided],
            "answers": [answer.to_dict() for answer in self.answers],
            "read": self.reading.to_dict(),
            "pass_rates": [rate.to_dict() for rate in self.rates],
            "systems": [systems.to_dict() for systems in self.systems],
        }
        if self.plan is not None:
            about["plan"] = self.plan.to_dict()
        live = {
            "live": [run.to_dict() for run in self.live],
            "claims": [claim.to_dict() for claim in self.claims],
        }
        return self.result.to_dict() | about | self.beside.to_dict() | live


@dataclass(frozen=True)
class _Files:
    """The files that an evaluation wrote, and its figures."""

    written: Sequence[Path]
    figures: Sequence[Path]


def _write(
    request: EvaluateRequest,
    options: EvaluateOptions,
    results: _Results,
    begun: str | None,
) -> _Files:
    """Write the report, the tables and the figures that are named.

    begun: the text of a new baseline.
    """
    data = results.data
    result = results.result
    gated = results.gated
    texts: dict[Path, str] = {}
    if request.output is not None:
        tables = results.beside.tables()
        page = render(
            data, result, results.notes, results.decided, tables, results.answers
        )
        texts[request.output] = page
    if request.baseline is not None and begun is not None:
        texts[request.baseline] = begun
    if request.certificate is not None:
        asked = [gate for gate, _ in gated.found]
        page_of = certificate(
            data,
            result,
            results.decided,
            results.answers,
            results.reading,
            gated,
            results.live,
            plan(result, results.decided, asked, options.bar).gates,
            bar=options.bar,
            drawn=results.drawn,
            error=error_of_rule(
                options.confidence, anytime=options.anytime, again=bool(results.again)
            ),
        )
        texts[request.certificate] = page_of.text(request.certificate)
    if options.markdown is not None:
        comment = agreement_markdown(
            result, results.answers, gated.headline, gated.reasons
        )
        texts[options.markdown] = comment
    if options.table is not None:
        texts[options.table] = agreement_table(result, options.table)
    if options.rows is not None:
        texts[options.rows] = row_table(data, options.rows)
    for path, text in texts.items():
        write_output(path, text)
    figures: Sequence[Path] = ()
    if options.figures is not None:
        figures = write_figures(options.figures, data, result)
    return _Files(list(texts), figures)


def _print(results: _Results, files: _Files, options: EvaluateOptions) -> None:
    """Print the results, and the files that were written."""
    _print_live(results.live)
    if results.plan is not None:
        show_plan(results.answers, results.plan)
    else:
        show(
            results.result,
            results.data.origin,
            len(results.data.rows),
            results.notes,
            results.decided,
            Said(results.answers, results.reading, results.rates, results.systems),
        )
        results.beside.show()
    for path in files.written:
        out.print(f"Wrote {escape(str(path))}")
    if options.figures is not None:
        out.print(
            f"Wrote {len(files.figures)} files of figures to {escape(str(options.figures))}"
        )


def _selection(request: EvaluateRequest, how: EvaluateOptions) -> Selection:
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
    check_certificate(request.certificate)
    check_kind("table", how.table)
    check_kind("rows", how.rows)
    return Selection(
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
        return {"slices": [part.to_dict() for part in self.slices], **finite(raters)}

    def tables(self) -> list[tuple[str, Table]]:
        """Return the tables that have rows, each with its title."""
        tables = [*rater_tables(self.replaced, self.within), *slice_tables(self.slices)]
        return [(about, table) for about, table in tables if len(table)]

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


def _with_gates(how: EvaluateOptions, gates: Sequence[Gate]) -> EvaluateOptions:
    """Return the options with the coefficients and levels that the gates need.

    Judges are compared by what was asked for: by the first of the coefficients, then of the gates.
    """
    measured = [one.coefficient for one in gates if one.coefficient in coefficients]
    if not measured:
        return how
    levels: tuple[str, ...] | None = how.levels
    if levels is not None:
        own = (one for one in gates if one.coefficient not in of_decisions())
        needed = (one.level for one in own if one.level is not None)
        levels = tuple(dict.fromkeys((*levels, *needed)))
    asked = (*(how.coefficients or ()), *measured)
    by = how.model_copy(update={"coefficients": asked}).compared_by
    wanted = tuple(dict.fromkeys((*(how.coefficients or USUAL), *measured)))
    changed = {"levels": levels, "coefficients": wanted, "compare_by": by}
    return how.model_copy(update=changed)


def _print_live(live: Sequence[LiveRun]) -> None:
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
