"""What compiling one aspect and compiling several have in common on the command line."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.markup import escape

from ..errors import OptionError

if TYPE_CHECKING:
    from ..datasets.records import Labels
    from ..optimizers.report import CompileReport, Plan
    from ..programs.judge import Judge
    from ..programs.models.lm import LanguageModel
    from ..programs.progress import Progress
    from .run import CompileRun

T = TypeVar("T")


def tell_labels(labels: Sequence[Labels]) -> None:
    """What was understood of a file, for one aspect or for several of its aspects; what they share is shown once."""
    from ..running.console import out
    from ..signatures.values import Scale

    for one in labels:
        out.print(
            f"{len(one)} rows of {escape(one.origin)}, {escape(one.aspect)} on {Scale(*one.scale)} ({_whence(one)})"
        )
    for line in dict.fromkeys(line for one in labels for line in _understood(one, several=len(labels) > 1)):
        out.print(line, style="dim", markup=False)
    for warning in dict.fromkeys(warning for one in labels for warning in one.warnings):
        out.print(f"note: {warning}", style="yellow", markup=False)


def _whence(labels: Labels) -> str:
    """Where the scale is from."""
    if not labels.scale_given:
        return "inferred"
    where = labels.account.scale_from if labels.account is not None else None
    return f"said by {where}" if where else "given"


def _understood(labels: Labels, *, several: bool) -> list[str]:
    """How the file's rows and columns were read, a line each, where it is not as usual."""
    from ..datasets.loading import rows_in_words

    account = labels.account
    parts: list[str] = []
    if account is None:
        return parts
    if labels.kind != "score":
        words = f": {' < '.join(labels.categories)}" if labels.categories else ""
        of = f" of {labels.aspect}" if several else ""
        parts.append(f"  kind{of}: {labels.kind}{words}")
    if account.skipped or account.labelled != len(labels):
        outputs = "" if account.labelled == len(labels) else f" of {len(labels)} outputs"
        parts.append(f"  {account.rows} rows in the file, {account.labelled} of them labels{outputs}")
    parts += [f"  left out, {reason}: {rows_in_words(lines)}" for reason, lines in account.reasons().items()]
    if account.raters > 1:
        parts.append(f"  {account.raters} raters")
    columns = {role: name for role, name in account.columns.items() if not (several and role == "score")}
    parts.append("  columns: " + ", ".join(f"{role} = {column!r}" for role, column in columns.items()))
    if account.unused:
        parts.append(
            f"  texts without a role, which the judge is not shown: {', '.join(map(repr, account.unused))} (--columns "
            "ROLE=NAME gives one)"
        )
    return parts


def carry_out(
    run: CompileRun,
    judge: Judge,
    plan: Callable[[LanguageModel, LanguageModel | None], Collection[Plan]],
    compiled: Callable[[LanguageModel, LanguageModel | None, Progress], tuple[Judge, T]],
    *,
    as_json: bool,
) -> tuple[Judge, T, LanguageModel]:
    """Open the models that the run names, compile with them, and save the judge. plan, compiled: by the model, a
    teacher or None, and a watcher. What cannot be written is refused before anything is spent."""
    from ..programs.models.names import check_listed
    from ..running.console import Watch, err
    from ..running.opening import check_writable, open_model, open_others

    check_writable(run.output, run.labels, run.heldout_file, *run.files())
    plots = run.run.plots
    if plots is not None and plots.exists() and not plots.is_dir():
        raise OptionError(f"--plots {plots} is not a folder; name one; it is created if it is missing")
    check_listed(judge.models())
    where = run.connection()
    lm = open_model(run.lm, where, run.sampling())
    teacher = open_model(run.run.teacher, where) if run.run.teacher else None
    open_others(judge, where)
    plans = plan(lm, teacher)
    if not as_json:
        calls = sum(one.calls for one in plans)
        err.print(f"at most {calls:,} calls to {escape(lm.name)}; Ctrl-C loses nothing", style="dim")
    with Watch("compiling", sum(one.steps for one in plans)) as watch:
        made, report = compiled(lm, teacher, watch)
    made.save(run.output)
    return made, report, lm


def tell_saved(run: CompileRun, drawn: Sequence[str]) -> None:
    from ..running.console import out

    saved = escape(str(run.output))
    out.print(f"\nSaved {saved}. Next: judgesmith score OUTPUTS.jsonl --judge {saved}")
    if drawn:
        out.print(f"Drawn: {', '.join(drawn)}", markup=False)


def exit_code(reports: Mapping[str, CompileReport], problems: Sequence[str]) -> int:
    """0, or 1 where MLflow failed or no held-out row got a score, with a message. reports: by aspect, "" for the only
    one."""
    from ..running.console import err

    for problem in problems:
        err.print(
            f"the judge is saved, but MLflow has not logged it: {problem}; the same command tries again, with finished "
            "calls from the disk",
            markup=False, style="red",
        )  # fmt: skip
    nothing = [name for name, one in reports.items() if one.heldout.reached.failed == one.heldout_rows]
    for name in nothing:
        of = f"{name}: " if name else ""
        err.print(f"{of}no held-out row got a score: see the notes for the reasons", markup=False, style="red")
    return 1 if nothing or problems else 0


def draw_study(report: CompileReport, folder: Path | None) -> list[str]:
    """Optuna's plots of the last search, where they were asked for: `history.svg`, and `importance.svg` where at least
    4 trials were finished and did not all come out the same. The files drawn.

    Importance is PED-ANOVA's, of the parameters that every finished trial has. Source: Watanabe et al. 2023.
    """
    study = None if report.record is None else report.record.study
    if folder is None or study is None:
        return []
    from matplotlib import rc_context
    from optuna.exceptions import ExperimentalWarning
    from optuna.importance import PedAnovaImportanceEvaluator
    from optuna.trial import TrialState
    from optuna.visualization import matplotlib as plots

    from ..figures import write_figure
    from ..optimizers.fitting.weights import quiet_optuna

    folder.mkdir(parents=True, exist_ok=True)
    values = [t.value for t in study.trials if t.state == TrialState.COMPLETE]
    paths = []

    def keep(axes: Any, name: str) -> None:
        axes.figure.set_layout_engine("constrained")
        write_figure(folder / name, axes.figure)
        paths.append(str(folder / name))

    with quiet_optuna(), warnings.catch_warnings(), rc_context({"backend": "agg"}):
        warnings.simplefilter("ignore", ExperimentalWarning)  # these plots have been experimental since 2020
        warnings.simplefilter("ignore", UserWarning)  # of each parameter with few trials; the title says it
        keep(plots.plot_optimization_history(study, target_name="Q on the validation rows"), "history.svg")
        if len(values) >= 4 and len(set(values)) > 1:
            axes = plots.plot_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
            axes.set_title(
                f"What Q depended on (PED-ANOVA, {len(values)} trials; rough below about 50)", loc="left", fontsize=10
            )
            keep(axes, "importance.svg")
    return paths
