"""What compiling one aspect and compiling several have in common on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from ..errors import OptionError

if TYPE_CHECKING:
    from ..datasets.records import Labels
    from ..optimizers.report import CompileReport
    from .run import CompileRun


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
    told: list[str] = []
    if account is None:
        return told
    if labels.kind != "score":
        words = f": {' < '.join(labels.categories)}" if labels.categories else ""
        of = f" of {labels.aspect}" if several else ""
        told.append(f"  kind{of}: {labels.kind}{words}")
    if account.skipped or account.labelled != len(labels):
        outputs = "" if account.labelled == len(labels) else f" of {len(labels)} outputs"
        told.append(f"  {account.rows} rows in the file, {account.labelled} of them labels{outputs}")
    told += [f"  left out, {reason}: {rows_in_words(lines)}" for reason, lines in account.reasons().items()]
    if account.raters > 1:
        told.append(f"  {account.raters} raters")
    columns = {role: name for role, name in account.columns.items() if not (several and role == "score")}
    told.append("  columns: " + ", ".join(f"{role} = {column!r}" for role, column in columns.items()))
    if account.unused:
        told.append(
            f"  texts without a role, which the judge is not shown: {', '.join(map(repr, account.unused))} (--columns "
            "ROLE=NAME gives one)"
        )
    return told


def check_output(run: CompileRun) -> None:
    """Before anything is spent: can all that comes of it be written?"""
    from ..running.opening import check_writable

    check_writable(run.output, run.labels, run.heldout_file, *run.files())
    plots = run.run.plots
    if plots is not None and plots.exists() and not plots.is_dir():
        raise OptionError(f"--plots {plots} is not a folder; name one; it is created if it is missing")


def draw_study(report: CompileReport, folder: Path | None) -> list[str]:
    """Optuna's plots of the last search, where they were asked for; the files drawn."""
    study = None if report.record is None else report.record.study
    if folder is None or study is None:
        return []
    from .optuna_plots import draw

    return [str(path) for path in draw(study, folder)]
