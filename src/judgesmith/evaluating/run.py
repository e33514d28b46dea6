"""What `judgesmith evaluate` does: read, judge, measure, write and tell; `agreement.meta` has the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.markup import escape

from ..agreement.correlation import Coefficient, Vector, correlate
from ..agreement.meta.evaluation import MetaEvaluation, meta_evaluate
from ..agreement.meta.inputs import DECIDED
from ..agreement.replacement import Replacement, alternative_annotator_test
from ..errors import OptionError
from ..optimizers.fitting.heads import folds
from ..parts import read_options
from ..programs.models.lm import Connection
from ..running.console import err, out, print_json
from ..running.limits import Limits
from ..running.opening import connection_of, write_output
from ..running.plain import clean
from ..running.settings import ReachOptions
from .gate import Gate
from .judges import Wanted, read_judged
from .live import LiveRun, judge_live, plan_live
from .options import EvaluateOptions
from .page import render
from .sources import Judged
from .spans import evaluate_spans
from .tables import agreement_latex, agreement_markdown, show

if TYPE_CHECKING:
    from .command import Evaluate


#: By judge and aspect: the alternative annotator test, and whether scores had to be mapped to the raters' scale.
Replacing = dict[tuple[str, str], tuple[Replacement, bool]]


def run(asked: Evaluate) -> int:
    """The exit code: 1 where the gate fails."""
    everyday = {"levels": asked.level, "coefficients": asked.coefficient}
    chosen = asked.more("run") | {name: value for name, value in everyday.items() if value}
    how = read_options(EvaluateOptions, chosen, "evaluate")
    if asked.spans is not None:
        return _spans(asked, how)
    gate = Gate.parse(asked.fail_under) if asked.fail_under else None
    how = how if gate is None else _with_gate(how, gate)
    if asked.output is not None and asked.output.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"-o {asked.output}: the report is HTML; name it .html (numbers go to --json, --latex)")
    wanted = Wanted(
        human=asked.human, judges=asked.judge, columns=asked.roles(),
        without_systems=how.without_system, scale=asked.scale, limit=asked.limit, unseen=asked.unseen,
    )  # fmt: skip
    data = read_judged(asked.sources, wanted)
    where, limits = connection_of(ReachOptions(**asked.more("lm")), asked.api_base), how.limits()
    if how.dry_run:
        planned = plan_live(data, asked.lm, where)
        print_json(planned.to_dict()) if asked.as_json else out.print(str(planned), markup=False, soft_wrap=True)
        return 0
    live = _judge_live(data, how, asked.lm, where, limits, quietly=asked.as_json)
    result = _measure(data, how)
    reasons = gate.judge(result, how.min_coverage) if gate is not None else []
    beside = _Beside(live, on_the_rest(data), _may_replace(data, how.epsilon) if how.alt_test else {})
    notes = [*data.notes, *result.notes, *_told_of_the_rest(beside.rest)]
    written = _write_all(data, result, notes, how, asked.output, gate, reasons)
    if asked.as_json:
        _print_result(data, result, notes, how, beside, gate, reasons)
    else:
        _tell_result(data, result, notes, how, beside, written)
    if gate is not None:
        line = f"FAILED {gate.text}: {'; '.join(reasons)}" if reasons else f"passed {gate.text}"
        err.print(clean(line), markup=False, soft_wrap=True, style="red" if reasons else "green")
    return 1 if reasons else 0


def _spans(asked: Evaluate, how: EvaluateOptions) -> int:
    unused = ("human", "judge", "level", "coefficient", "output", "fail_under", "lm", "limit", "unseen")
    if wrong := next((name for name in unused if getattr(asked, name)), None):
        raise OptionError(f"--{wrong.replace('_', '-')} does nothing with --spans")
    if len(asked.sources) != 1:
        raise OptionError("--spans compares one scored file with TRUTH; name one file")
    report = evaluate_spans(
        asked.sources[0], str(asked.spans), rounds=how.rounds, confidence=how.confidence, seed=how.seed,
    )  # fmt: skip
    print_json(report.to_dict()) if asked.as_json else report.show()
    return 0


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is shown beside agreement: what judging cost, agreement without deferred rows, and whether a judge may take
    a rater's place, by judge."""

    live: Sequence[LiveRun]
    rest: list[dict[str, Any]]
    replacing: Replacing


def _with_gate(how: EvaluateOptions, gate: Gate) -> EvaluateOptions:
    """With what the gate asks about."""
    levels: tuple[str, ...] | None = how.levels
    if levels is not None and gate.level is not None and gate.coefficient not in DECIDED:
        levels = tuple(dict.fromkeys((*levels, gate.level)))
    coefficients = tuple(dict.fromkeys((*how.coefficients, gate.coefficient)))
    return how.model_copy(update={"levels": levels, "coefficients": coefficients})


def _judge_live(
    data: Judged, how: EvaluateOptions, lm: str | None, where: Connection, limits: Limits, *, quietly: bool
) -> list[LiveRun]:
    """Let the saved judges judge the rows."""
    if not data.live:
        return []
    # People as their own judge: what cannot be evaluated is refused before a call is paid for.
    meta_evaluate(
        {"people": data.human}, data.human, documents=data.documents, systems=data.systems,
        options=how.model_copy(update={"rounds": 0}),
    )  # fmt: skip
    say = (lambda line: None) if quietly else (lambda line: err.print(clean(line), style="dim", markup=False))
    return judge_live(data, lm, where, say=say, limits=limits)


def _measure(data: Judged, how: EvaluateOptions) -> MetaEvaluation:
    result = meta_evaluate(
        data.judges, data.human, documents=data.documents, systems=data.systems, scale=data.scales,
        on_scale=data.on_scale or None, uncalibrated=data.uncalibrated, ratings=data.ratings, kinds=data.kinds,
        categories={aspect: marks.levels for aspect, marks in data.marks.items()}, decided=data.decided,
        lengths=data.lengths, options=how,
    )  # fmt: skip
    return result.absolute() if how.absolute else result


def _write_all(
    data: Judged, result: MetaEvaluation, notes: Sequence[str], how: EvaluateOptions, report: Path | None,
    gate: Gate | None, reasons: Sequence[str],
) -> list[Path]:  # fmt: skip
    """The files that were asked for."""
    made = {
        report: lambda: render(data, result, notes),
        how.latex: lambda: agreement_latex(result),
        how.markdown: lambda: agreement_markdown(result, None if gate is None else gate.text, reasons),
    }
    written = [path for path in made if path is not None]
    for path in written:
        write_output(path, made[path]())
    return written


def _print_result(
    data: Judged, result: MetaEvaluation, notes: Sequence[str], how: EvaluateOptions, beside: _Beside,
    gate: Gate | None, reasons: Sequence[str],
) -> None:  # fmt: skip
    print_json(
        result.to_dict()
        | {
            "notes": notes, "origin": data.origin, "rows": len(data.rows),
            "live": [run.to_dict() for run in beside.live], "deferred": beside.rest,
            "alternative_annotator_test": [
                {"judge": judge, "aspect": aspect, "mapped": mapped} | test.to_dict()
                for (judge, aspect), (test, mapped) in beside.replacing.items()
            ],
            "gate": None if gate is None else {"gate": gate.text, "passed": not reasons, "reasons": reasons},
        }
    )  # fmt: skip


def _tell_result(
    data: Judged, result: MetaEvaluation, notes: Sequence[str], how: EvaluateOptions, beside: _Beside,
    written: Sequence[Path],
) -> None:  # fmt: skip
    for run in beside.live:
        out.print(clean(str(run)), markup=False, soft_wrap=True)
        for identity, reason in run.summary.failures[:5]:
            out.print(clean(f"  no score for {identity}: {reason}"), markup=False, style="red")
        if run.summary.failed > 5:
            out.print(f"  … and {run.summary.failed - 5} more; --json has their reasons")
    show(result, data.origin, len(data.rows), notes)
    for line in _told_of_replacing(beside.replacing):
        out.print(clean(line), markup=False, soft_wrap=True)
    for path in written:
        out.print(f"Wrote {escape(str(path))}")


# What is not left to a person ----------------------------------------------------------------------------------------

MEASURES: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")


def on_the_rest(data: Judged) -> list[dict[str, Any]]:
    """By judge and aspect, pooled: rows left to a person, and each measure on all rows and on the rest, with the mean
    error on people's scale where the judge is on it. Nothing where no row is left to a person."""
    if not data.deferred or len(data.deferred) == len(data.rows):
        return []
    rest = np.array([i not in data.deferred for i in range(len(data.rows))])
    result = []
    for judge, by_aspect in data.judges.items():
        for aspect, scores in by_aspect.items():
            human = data.human[aspect]
            present = ~np.isnan(scores) & ~np.isnan(human)
            entry: dict[str, Any] = {"judge": judge, "aspect": aspect, "left_to_people": len(data.deferred)}
            for name, rows in (("all", present), ("rest", present & rest)):
                entry[name] = _measures(scores[rows], human[rows], judge in data.on_scale)
            result.append(entry)
    return result


def _measures(scores: Vector, human: Vector, on_scale: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"rows": len(scores)}
    for name in MEASURES:
        known = correlate(scores, human, coefficient=name, level="pooled").value if len(scores) > 2 else np.nan
        made[name] = float(known)
    if on_scale:
        made["mean_error"] = float(np.abs(scores - human).mean()) if len(scores) else np.nan
    return made


def _told_of_the_rest(found: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each judge and aspect."""
    lines = []
    for entry in found:
        every, rest = entry["all"], entry["rest"]
        parts = [
            f"{name} {rest[name]:.3f} (all {every[name]:.3f})" for name in (*MEASURES, "mean_error") if name in rest
        ]
        lines.append(
            f"{entry['judge']}, {entry['aspect']}: {entry['left_to_people']} rows are left to people; on the other "
            f"{rest['rows']} {', '.join(parts).replace('mean_error', 'mean error')}"
        )
    return lines


# In a rater's place --------------------------------------------------------------------------------------------------

FOLDS = 5


def _may_replace(data: Judged, epsilon: float) -> Replacing:
    """May a judge take a rater's place? The alternative annotator test on what was read.

    Scores that are known to be on people's scale are taken as they are. Others (metrics, columns) are mapped by a
    straight line that the other documents' rows teach. Raises OptionError where no aspect has several raters.
    """
    if not data.ratings:
        raise OptionError(
            f"--alt-test compares a judge with single raters, and {data.origin} has one score a row; give columns "
            "score_1, score_2, …, or an .annotators.jsonl beside the file"
        )
    result: Replacing = {}
    for judge, by_aspect in data.judges.items():
        for aspect, scores in by_aspect.items():
            if aspect in data.ratings:
                mapped = judge not in data.on_scale
                said = _mapped(scores, data.human[aspect], data.documents) if mapped else scores
                table = data.ratings[aspect]
                test = alternative_annotator_test(said, table, documents=data.documents, epsilon=epsilon)
                result[judge, aspect] = test, mapped
    return result


def _mapped(scores: Vector, human: Vector, documents: list[str]) -> Vector:
    made = np.full(len(scores), np.nan)
    known = ~np.isnan(scores) & ~np.isnan(human)
    for rows in folds(documents, FOLDS):
        rest = known.copy()
        rest[rows] = False
        if rest.sum() > 2 and np.ptp(scores[rest]) > 0:
            made[rows] = np.polyval(np.polyfit(scores[rest], human[rest], 1), scores[rows])
    return made


def _told_of_replacing(found: Replacing) -> list[str]:
    """A sentence for each judge and aspect, and its conditions."""
    lines = []
    for (judge, aspect), (test, mapped) in found.items():
        won = sum(one.won for one in test.raters)
        may = "may replace a rater" if test.passed else "may not replace a rater"
        lines.append(
            f"Alternative annotator test, {judge}, {aspect}: {may} (wins against {won} of {len(test.raters)} raters, "
            f"ω {test.omega:.2f}, 0.5 is needed; advantage ρ {test.rho:.2f}; ε {test.epsilon:g})"
            + ("; its scores were mapped to the raters' scale by a line from other documents" if mapped else "")
        )
        lines += [f"  condition not met: {condition}" for condition in test.conditions]
    return lines
