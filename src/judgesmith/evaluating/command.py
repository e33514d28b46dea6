"""`judgesmith evaluate`: how far do judges agree with people? Parsing, tables and files; `meta` has the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.markup import escape

from ..cli.commands import Command, Config, Json, Model, Rows, argument, flag
from ..errors import OptionError

if TYPE_CHECKING:
    from ..agreement.meta.evaluation import MetaEvaluation
    from ..agreement.replacement import Replacement
    from ..programs.models.lm import Connection
    from ..running.limits import Limits
    from ..running.settings import Catalogue
    from .gate import Gate
    from .live import LiveRun
    from .options import EvaluateOptions
    from .sources import Judged

__all__ = ["Evaluate"]


class Evaluate(Command, Config, Model, Rows, Json):
    """How far do judges agree with people?

    Rows come from a scored file, any file with score columns, or a benchmark (bench/summeval). Every number has an
    interval over resampled documents and says what it rests on. With --judge judge.json a saved judge judges the rows
    first; its calls are kept on disk, and the same command resumes after Ctrl-C.

    Levels: pooled, one correlation over all rows (Active-Critic's summary level, UniEval's and USR's turn level,
    nlpstats' global level); sample, within each document and then the mean (G-Eval's and UniEval's summary level on
    SummEval, per_doc_mean, nlpstats' input level; constant documents are left out and counted); system, of the systems'
    means. `--names …` prints the names of a paper.

    Intervals: documents are drawn again because rows of one document are no independent evidence. That speaks of these
    very systems on other documents (at system level, even of these too narrowly: 75-90 % instead of 95 % in a
    simulation). To speak of other systems, draw both: with 16 systems that differ, 91-97 % held in a simulation, over
    documents 33-46 %.

    Tests between judges: paired permutation (whole documents swapped), paired bootstrap, Williams (of Pearson's r); all
    corrected by Holm over the pairs of judges.

    In CI: judgesmith evaluate scored.jsonl --fail-under 'spearman>=0.4' exits with 1 unless the lower end of the first
    judge's interval is at least 0.4, for every aspect, and 95 % of the rows have a score. Where people gave categories,
    pass or fail, or preferences: 'kappa>=0.5', 'auc>=0.8', 'balanced-accuracy>=0.7', 'pairwise>=0.6'. kappa and
    balanced accuracy take the judge's own categories where scored rows carry them.

    With --spans TRUTH: does a judge mark the errors that people marked? Precision, recall and F1 of the spans of a
    scored file. `judgesmith list options evaluate` has further options.
    """

    panel: ClassVar[str] = "Trust"

    sources: list[str] = argument(
        ...,
        "Files with scores (joined by id), bench/NAME, metric/NAME. The first file's people are the standard.",
        "SOURCE...",
    )
    human: list[str] = flag(
        [],
        "Human ratings: an aspect (coherence), a column, a path (zscores.simplicity), or all. Repeatable; found by "
        "name where not given.",
        metavar="COLUMN",
    )
    judge: list[str] = flag(
        [],
        "A judge: a file that `compile` saved, which judges the rows now; or scores: a column, a path "
        "(verdict.criteria.fluency.score), a metric of the .metrics.jsonl, metric/NAME (`judgesmith list metrics`). "
        "{aspect} stands for the aspect: UniEval=unieval_{aspect}. Repeatable; the verdicts of `judgesmith score` "
        "are found where not given.",
        metavar="[NAME=]COLUMN|FILE.json",
    )
    labels: str | None = flag(None, "Take human ratings from this file, joined by id.")
    scale: tuple[float, float] | None = flag(None, "Lowest and highest score of people; inferred if not given.")
    limit: int | None = flag(None, "Only the first rows.", ge=1)
    unseen: bool = flag(False, "Leave out, for all judges, the rows that one of them was compiled from.")
    level: list[str] = flag([], "pooled, sample or system. Repeatable; all that the rows allow where not given.")
    coefficient: list[str] = flag(
        [],
        "pearson, spearman, kendall (these by default), kendall_c, q (their sum), accuracy, accuracy_cross; kappa, "
        "auc, balanced-accuracy, pairwise (by default where they fit). Repeatable.",
    )
    spans: str | None = flag(
        None, "Compare error spans with those that people marked: a file, or bench/NAME.", metavar="TRUTH"
    )
    output: Path | None = flag(None, "A report: one .html file, no network.", "-o", "--output")
    fail_under: str | None = flag(
        None,
        "Exit with 1 if the lower end of the first judge's interval is below X.",
        metavar="[LEVEL.]COEFFICIENT>=X",
    )

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        from ..running.settings import Catalogue, Owner, ReachOptions
        from .options import EvaluateOptions

        owners = (Owner("run", "evaluate", EvaluateOptions), Owner("lm", "the language model", ReachOptions))
        return Catalogue(owners, "evaluate", more="; see `judgesmith list options evaluate`")

    def run(self) -> int:
        from ..parts import read_options
        from ..running.console import out, print_json
        from ..running.opening import connection_of
        from ..running.settings import ReachOptions
        from .deferral import on_the_rest, told
        from .gate import Gate
        from .judges import Wanted, read_judged
        from .live import plan_live
        from .options import EvaluateOptions
        from .replacement import may_replace

        everyday = {"levels": self.level, "coefficients": self.coefficient}
        chosen = self.more("run") | {name: value for name, value in everyday.items() if value}
        how = read_options(EvaluateOptions, chosen, "evaluate")
        if self.spans is not None:
            return self._spans(how)
        gate = Gate.parse(self.fail_under) if self.fail_under else None
        how = how if gate is None else _with_gate(how, gate)
        if self.output is not None and self.output.suffix.lower() not in (".html", ".htm"):
            raise OptionError(
                f"-o {self.output}: the report is HTML; name it .html (numbers go to --csv, --json, --latex)"
            )
        wanted = Wanted(
            human=self.human, judges=self.judge, labels=self.labels, metrics=how.metrics, columns=self.roles(),
            without_systems=how.without_system, scale=self.scale, limit=self.limit, unseen=self.unseen,
        )  # fmt: skip
        data = read_judged(self.sources, wanted)
        where, limits = connection_of(ReachOptions(**self.more("lm")), self.api_base), how.limits()
        if how.dry_run:
            planned = plan_live(data, self.lm, where)
            print_json(planned.to_dict()) if self.as_json else out.print(str(planned), markup=False, soft_wrap=True)
            return 0
        live = _judge_live(data, how, self.lm, where, limits, quietly=self.as_json)
        result = _measure(data, how)
        reasons = gate.judge(result, how.min_coverage) if gate is not None else []
        beside = _Beside(live, on_the_rest(data), may_replace(data, how.epsilon) if how.alt_test else {})
        notes = [*data.notes, *result.notes, *told(beside.rest)]
        written = _write_all(data, result, notes, how, self.output)
        if how.markdown is not None:
            written.append(_write_markdown(how.markdown, result, how, gate, reasons))
        if self.as_json:
            _print_result(data, result, notes, how, beside, gate, reasons)
        else:
            _tell_result(data, result, notes, how, beside, written)
        if gate is not None:
            _tell_gate(gate, reasons)
        return 1 if reasons else 0

    def _spans(self, how: EvaluateOptions) -> int:
        from ..running.console import print_json
        from .spans import evaluate_spans

        unused = ("human", "judge", "labels", "level", "coefficient", "output", "fail_under", "lm", "limit", "unseen")
        if wrong := next((name for name in unused if getattr(self, name)), None):
            raise OptionError(f"--{wrong.replace('_', '-')} does nothing with --spans")
        if len(self.sources) != 1:
            raise OptionError("--spans compares one scored file with TRUTH; name one file")
        report = evaluate_spans(
            self.sources[0], str(self.spans), unlisted="clean" if how.unlisted_clean else None,
            ungrounded_against=how.ungrounded_against, rounds=how.rounds, confidence=how.confidence, seed=how.seed,
        )  # fmt: skip
        print_json(report.to_dict()) if self.as_json else report.show()
        return 0


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is shown beside agreement: what judging cost, agreement without deferred rows, and whether a judge may take
    a rater's place, by judge."""

    live: Sequence[LiveRun]
    rest: list[dict[str, Any]]
    replacing: dict[tuple[str, str], tuple[Replacement, bool]]


def _with_gate(how: EvaluateOptions, gate: Gate) -> EvaluateOptions:
    """With what the gate asks about."""
    from ..agreement.meta.inputs import DECIDED

    levels: tuple[str, ...] | None = how.levels
    if levels is not None and gate.level is not None and gate.coefficient not in DECIDED:
        levels = tuple(dict.fromkeys((*levels, gate.level)))
    coefficients = tuple(dict.fromkeys((*how.coefficients, gate.coefficient)))
    return how.model_copy(update={"levels": levels, "coefficients": coefficients})


def _judge_live(
    data: Judged, how: EvaluateOptions, lm: str | None, where: Connection, limits: Limits, *, quietly: bool
) -> list[LiveRun]:
    """Let the saved judges judge the rows."""
    from ..agreement.meta.evaluation import meta_evaluate
    from ..running.console import err
    from ..running.plain import clean
    from .live import judge_live

    if not data.live:
        return []
    # People as their own judge: what cannot be evaluated is refused before a call is paid for.
    meta_evaluate(
        {"people": data.human}, data.human, documents=data.documents, systems=data.systems,
        options=how.model_copy(update={"rounds": 0, "threshold": None}),
    )  # fmt: skip
    say = (lambda line: None) if quietly else (lambda line: err.print(clean(line), style="dim", markup=False))
    return judge_live(data, lm, where, say=say, limits=limits)


def _measure(data: Judged, how: EvaluateOptions) -> MetaEvaluation:
    from ..agreement.meta.evaluation import meta_evaluate

    result = meta_evaluate(
        data.judges, data.human, documents=data.documents, systems=data.systems, scale=data.scales,
        on_scale=data.on_scale or None, uncalibrated=data.uncalibrated, ratings=data.ratings, kinds=data.kinds,
        categories={aspect: marks.levels for aspect, marks in data.marks.items()}, decided=data.decided,
        lengths=data.lengths, positions=data.positions, options=how,
    )  # fmt: skip
    return result.absolute() if how.absolute else result


def _write_all(
    data: Judged, result: MetaEvaluation, notes: Sequence[str], how: EvaluateOptions, report: Path | None
) -> list[Path]:
    """The files that were asked for."""
    from ..running.opening import write_output
    from .options import PAPER_NAMES
    from .page import render
    from .tables import agreement_csv, agreement_latex

    levels = PAPER_NAMES[how.names]
    made = {
        report: lambda: render(data, result, notes, levels),
        how.csv: lambda: agreement_csv(result, levels),
        how.latex: lambda: agreement_latex(result, levels),
    }
    written = [path for path in made if path is not None]
    for path in written:
        write_output(path, made[path]())
    return written


def _write_markdown(
    path: Path, result: MetaEvaluation, how: EvaluateOptions, gate: Gate | None, reasons: Sequence[str]
) -> Path:
    from ..running.opening import write_output
    from .options import PAPER_NAMES
    from .tables import agreement_markdown

    write_output(path, agreement_markdown(result, PAPER_NAMES[how.names], None if gate is None else gate.text, reasons))
    return path


def _print_result(
    data: Judged, result: MetaEvaluation, notes: Sequence[str], how: EvaluateOptions, beside: _Beside,
    gate: Gate | None, reasons: Sequence[str],
) -> None:  # fmt: skip
    from ..running.console import print_json
    from .options import PAPER_NAMES
    from .replacement import as_json

    print_json(
        result.to_dict()
        | {
            "notes": notes, "origin": data.origin, "rows": len(data.rows),
            "live": [run.to_dict() for run in beside.live], "deferred": beside.rest,
            "alternative_annotator_test": as_json(beside.replacing),
            "gate": None if gate is None else {"gate": gate.text, "passed": not reasons, "reasons": reasons},
            "level_names": dict(PAPER_NAMES[how.names]),
        }
    )  # fmt: skip


def _tell_result(
    data: Judged, result: MetaEvaluation, notes: Sequence[str], how: EvaluateOptions, beside: _Beside,
    written: Sequence[Path],
) -> None:  # fmt: skip
    from ..running.console import out
    from ..running.plain import clean
    from .options import PAPER_NAMES
    from .replacement import told
    from .tables import show

    for run in beside.live:
        out.print(clean(str(run)), markup=False, soft_wrap=True)
        for identity, reason in run.summary.failures[:5]:
            out.print(clean(f"  no score for {identity}: {reason}"), markup=False, style="red")
        if run.summary.failed > 5:
            out.print(f"  … and {run.summary.failed - 5} more; --json has their reasons")
    show(result, data.origin, len(data.rows), notes, PAPER_NAMES[how.names])
    for line in told(beside.replacing):
        out.print(clean(line), markup=False, soft_wrap=True)
    for path in written:
        out.print(f"Wrote {escape(str(path))}")


def _tell_gate(gate: Gate, reasons: Sequence[str]) -> None:
    from ..running.console import err
    from ..running.plain import clean

    line = f"FAILED {gate.text}: {'; '.join(reasons)}" if reasons else f"passed {gate.text}"
    err.print(clean(line), markup=False, soft_wrap=True, style="red" if reasons else "green")
