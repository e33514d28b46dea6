"""`judgesmith evaluate`: how far do judges agree with people? Parsing, tables and files; `meta` has the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.markup import escape

from ..errors import OptionError
from ..programs.atomic import write_whole
from .options import LM, ApiBase, Columns, Concurrency, Json, NoCache, Rpm, Timeout

#: What papers call our levels. "Summary level" means two different things.
PAPER_NAMES: Mapping[str, Mapping[str, str]] = {
    "judgesmith": {"pooled": "pooled", "sample": "sample", "system": "system"},
    "active-critic": {"pooled": "summary-level", "sample": "sample", "system": "system-level"},
    "g-eval": {"pooled": "dataset-level", "sample": "summary-level", "system": "system-level"},
    "usr": {"pooled": "turn-level", "sample": "within context", "system": "system-level"},
    "nlpstats": {"pooled": "global-level", "sample": "input-level", "system": "system-level"},
    "wmt": {"pooled": "segment-level, no grouping", "sample": "segment-level, group-by-item", "system": "system-level"},
    "shared-data": {"pooled": "pooled", "sample": "per_doc_mean", "system": "system"},
}


class Names(StrEnum):
    judgesmith = "judgesmith"
    active_critic = "active-critic"
    g_eval = "g-eval"
    usr = "usr"
    nlpstats = "nlpstats"
    wmt = "wmt"
    shared_data = "shared-data"


class EvalLevel(StrEnum):
    pooled = "pooled"
    sample = "sample"
    system = "system"


class EvalCoefficient(StrEnum):
    pearson = "pearson"
    spearman = "spearman"
    kendall = "kendall"
    kendall_c = "kendall_c"
    q = "q"
    accuracy = "accuracy"
    accuracy_cross = "accuracy_cross"


class IntervalMethod(StrEnum):
    fisher = "fisher"
    percentile = "percentile"
    bca = "bca"


class BootstrapOver(StrEnum):
    documents = "documents"
    systems = "systems"
    both = "both"


class Swapped(StrEnum):
    documents = "documents"
    systems = "systems"
    rows = "rows"


HELP = """How far do judges agree with people?

Rows come from a scored file, any file with score columns, or a benchmark (bench/summeval). Every number has an
interval over resampled documents and says what it rests on. With --judge judge.json a saved judge judges the rows
first; its calls are kept on disk, and the same command goes on after Ctrl-C.

Levels: pooled, one correlation over all rows (Active-Critic's summary level, UniEval's and USR's turn level, nlpstats'
global level); sample, within each document and then the mean (G-Eval's and UniEval's summary level on SummEval,
per_doc_mean, nlpstats' input level; constant documents are left out and counted); system, of the systems' means.
--names prints the names of a paper.

Intervals: documents are drawn again because rows of one document are no independent evidence. That speaks of these
very systems on other documents (at system level, even of these too narrowly: 75-90 % instead of 95 % in a simulation).
To speak of other systems, draw both: with 16 systems that differ, 91-97 % held in a simulation, over documents 33-46 %.

Tests between judges: paired permutation (whole documents swapped), paired bootstrap, Williams (of Pearson's r); all
corrected by Holm over the pairs of judges.

In CI: judgesmith evaluate scored.jsonl --fail-under 'spearman>=0.4' exits with 1 unless the lower end of the first
judge's interval is at least 0.4, for every aspect, and 95 % of the rows have a score.
"""


def register(app: typer.Typer) -> None:
    """Add `evaluate` to the command line."""
    paragraphs = (" ".join(part.split()) for part in HELP.split("\n\n"))
    app.command(name="evaluate", help="\n\n".join(paragraphs))(evaluate)


def evaluate(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files with scores (joined by id), bench/NAME, metric/NAME. The first file's people are the standard.",
        ),
    ],
    human: Annotated[
        list[str] | None,
        typer.Option(
            "--human",
            metavar="COLUMN",
            help="People's scores: an aspect (coherence), a column, a path (zscores.simplicity), or all. Repeatable; "
            "found by name where not given.",
            rich_help_panel="Data",
        ),
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            metavar="[NAME=]COLUMN|FILE.json",
            help="A judge: a file that `compile` saved, which judges the rows now; or scores: a column, a path "
            "(verdict.criteria.fluency.score), a metric of the .metrics.jsonl, metric/rouge1 rouge2 rougeL bleu chrf, "
            "metric/embedding or embedding-source, each with :MODEL or without. {aspect} stands for the aspect: "
            "UniEval=unieval_{aspect}. Repeatable; the verdicts of `judgesmith score` are found where not given.",
            rich_help_panel="Data",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Take people's scores from this file, joined by id.", rich_help_panel="Data"),
    ] = None,
    metrics: Annotated[
        list[Path] | None,
        typer.Option(
            help='More judges: lines {"id", "metrics": {name: value}}; SET.metrics.jsonl beside SET.jsonl is found.',
            rich_help_panel="Data",
        ),
    ] = None,
    columns: Columns = None,
    without_system: Annotated[
        list[str] | None,
        typer.Option(help="Leave a system's rows out (a human reference, say). Repeatable.", rich_help_panel="Data"),
    ] = None,
    spans: Annotated[
        str | None,
        typer.Option(
            "--spans",
            metavar="FILE|bench/NAME",
            help="`judgesmith spans` in older versions: compare error spans instead of scores.",
            hidden=True,
        ),
    ] = None,
    unlisted_clean: Annotated[
        bool,
        typer.Option(
            "--unlisted-clean",
            help="With --spans: outputs that the file does not list were read and are without errors.",
            hidden=True,
        ),
    ] = False,
    ungrounded_against: Annotated[
        bool,
        typer.Option(
            "--ungrounded-against",
            help="With --spans: errors that were not found in the text count against precision.",
            hidden=True,
        ),
    ] = False,
    scale: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Lowest and highest score of people; inferred if not given.", rich_help_panel="Data"),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first rows.", min=1, rich_help_panel="Data")] = None,
    unseen: Annotated[
        bool,
        typer.Option(
            "--unseen",
            help="Leave out, for all judges, the rows that one of them was compiled from.",
            rich_help_panel="Data",
        ),
    ] = False,
    level: Annotated[
        list[EvalLevel] | None,
        typer.Option(help="Repeatable; all that the rows allow where not given.", rich_help_panel="Measures"),
    ] = None,
    coefficient: Annotated[
        list[EvalCoefficient] | None,
        typer.Option(
            help="Repeatable; default Pearson, Spearman, Kendall tau-b. q is their sum; accuracy counts ties (acc_eq) "
            "with epsilon chosen on the same rows, accuracy_cross with epsilon chosen on other documents.",
            rich_help_panel="Measures",
        ),
    ] = None,
    absolute: Annotated[
        bool,
        typer.Option(
            "--absolute",
            help="Report |r| and friends, for metrics of which lower is better.",
            rich_help_panel="Measures",
        ),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Also precision, recall and kappa of accepting what scores at least this.", rich_help_panel="Measures"
        ),
    ] = None,
    names: Annotated[
        Names, typer.Option(help="Call the levels as this paper does.", rich_help_panel="Measures")
    ] = Names.judgesmith,
    rounds: Annotated[
        int,
        typer.Option(help="Of bootstrap and permutation; 0 for values alone.", min=0, rich_help_panel="Uncertainty"),
    ] = 1000,
    confidence: Annotated[float, typer.Option(rich_help_panel="Uncertainty")] = 0.95,
    interval: Annotated[IntervalMethod, typer.Option(rich_help_panel="Uncertainty")] = IntervalMethod.fisher,
    bootstrap_over: Annotated[
        BootstrapOver, typer.Option(help="What is drawn again.", rich_help_panel="Uncertainty")
    ] = BootstrapOver.documents,
    compare_by: Annotated[
        EvalCoefficient,
        typer.Option(help="The coefficient that judges are compared by.", rich_help_panel="Uncertainty"),
    ] = EvalCoefficient.spearman,
    swap: Annotated[
        Swapped | None, typer.Option(help="What the permutation test swaps.", rich_help_panel="Uncertainty")
    ] = None,
    no_tests: Annotated[
        bool, typer.Option("--no-tests", help="Do not compare judges.", rich_help_panel="Uncertainty")
    ] = False,
    seed: Annotated[int, typer.Option(rich_help_panel="Uncertainty")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A report: one .html file, no network.", rich_help_panel="Output"),
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", help="The agreement as CSV.", rich_help_panel="Output")
    ] = None,
    latex: Annotated[
        Path | None, typer.Option("--latex", help="The agreement as a LaTeX table.", rich_help_panel="Output")
    ] = None,
    fail_under: Annotated[
        str | None,
        typer.Option(
            metavar="[LEVEL.]COEFFICIENT>=X",
            help="Exit with 1 if the lower end of the first judge's interval is below X.",
            rich_help_panel="Gate",
        ),
    ] = None,
    min_coverage: Annotated[
        float,
        typer.Option(help="Share of rows that need a score to pass.", min=0, max=1, rich_help_panel="Gate"),
    ] = 0.95,
    lm: LM = None,
    api_base: ApiBase = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    from ..experiments.console import err, out, print_json
    from ..experiments.evaluation.gate import Gate
    from ..experiments.evaluation.judges import read_judged
    from ..experiments.evaluation.live import judge_live
    from ..experiments.evaluation.tables import agreement_csv, agreement_latex, show
    from ..experiments.opening import column_roles, connection
    from ..experiments.plain import clean
    from ..optimizers.agreement.meta.evaluation import meta_evaluate

    if spans is not None:
        from .spans import spans as compare_spans

        if len(sources) != 1:
            raise OptionError(f"--spans compares one scored file with people's spans; got {len(sources)} files")
        if fail_under or output or csv_file or latex:
            raise OptionError("--spans prints a table or --json; --fail-under, -o, --csv and --latex are for scores")
        err.print("note: this is `judgesmith spans ROWS TRUTH` now", style="dim", markup=False)
        compare_spans(
            sources[0], spans, unlisted_clean=unlisted_clean, ungrounded_against=ungrounded_against, rounds=rounds,
            confidence=confidence, seed=seed, as_json=as_json,
        )  # fmt: skip
        raise typer.Exit(0)
    gate = Gate.parse(fail_under) if fail_under else None
    asked = [
        c.value for c in coefficient or (EvalCoefficient.pearson, EvalCoefficient.spearman, EvalCoefficient.kendall)
    ]
    if gate is not None:
        asked = list(dict.fromkeys([*asked, gate.coefficient]))
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"-o {output}: the report is HTML; name it .html (numbers go to --csv, --json, --latex)")
    data = read_judged(
        sources, human=human or (), judges=judge or (), labels=labels, metrics=metrics or (),
        columns=column_roles(columns or []), without_systems=without_system or (), scale=scale, limit=limit,
        unseen=unseen,
    )  # fmt: skip
    chosen = [lv.value for lv in level] if level else None
    if gate is not None and gate.level and chosen is not None and gate.level not in chosen:
        chosen.append(gate.level)
    live = []
    if data.live:
        # People as their own judge: what cannot be evaluated at all is said before a call is paid for.
        meta_evaluate(
            {"people": data.human}, data.human, documents=data.documents, systems=data.systems,
            levels=cast(Any, chosen), coefficients=asked, confidence=confidence, rounds=0, interval=interval.value,
            over=bootstrap_over.value, compare_by=compare_by.value,
        )  # fmt: skip
        live = judge_live(
            data, lm, connection(api_base, timeout, concurrency, rpm, no_cache),
            say=lambda line: None if as_json else err.print(clean(line), style="dim", markup=False),
        )  # fmt: skip
    result = meta_evaluate(
        data.judges, data.human, documents=data.documents, systems=data.systems, levels=cast(Any, chosen),
        coefficients=asked, uncalibrated=data.uncalibrated, ratings=data.ratings, lengths=data.lengths,
        scale=data.scales, threshold=threshold, rounds=rounds, confidence=confidence, seed=seed,
        interval=interval.value, over=bootstrap_over.value, compare=not no_tests, compare_by=compare_by.value,
        swap=None if swap is None else swap.value, positions=data.positions, on_scale=data.on_scale or None,
    )  # fmt: skip
    if absolute:
        result = result.absolute()
    notes = [*data.notes, *result.notes]
    reasons = gate.judge(result, min_coverage) if gate is not None else []
    levels = PAPER_NAMES[names.value]
    if csv_file is not None:
        _write(csv_file, agreement_csv(result, levels))
    if latex is not None:
        _write(latex, agreement_latex(result, levels))
    if output is not None:
        from ..experiments.reports.evaluation import render

        _write(output, render(data, result, notes, levels))
    if as_json:
        verdict = None if gate is None else {"gate": gate.text, "passed": not reasons, "reasons": reasons}
        print_json(
            result.to_dict()
            | {
                "notes": notes,
                "origin": data.origin,
                "rows": len(data.rows),
                "live": [run.to_dict() for run in live],
                "gate": verdict,
                "level_names": dict(levels),
            }
        )
    else:
        for run in live:
            out.print(clean(str(run)), markup=False, soft_wrap=True)
            for identity, reason in run.summary.failures[:5]:
                out.print(clean(f"  no score for {identity}: {reason}"), markup=False, style="red")
            if run.summary.failed > 5:
                out.print(f"  … and {run.summary.failed - 5} more; --json has their reasons")
        show(result, data.origin, len(data.rows), notes, levels)
        for path in (output, csv_file, latex):
            if path is not None:
                out.print(f"Wrote {escape(str(path))}")
    if gate is not None:
        line = f"FAILED {gate.text}: {'; '.join(reasons)}" if reasons else f"passed {gate.text}"
        err.print(clean(line), markup=False, soft_wrap=True, style="red" if reasons else "green")
    raise typer.Exit(1 if reasons else 0)


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from None
