"""`judgesmith distill`: a small model trained to judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ..cli.options import Columns, Json, LibraryAspect
from ..cli.settings import Config, Presets, Settings, settings_of, with_settings

if TYPE_CHECKING:
    from ..running.settings import Catalogue
    from .distilling import DistillReport

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `distill` to the command line."""
    app.command(name="distill", cls=with_settings(_catalogue))(distill)


def _catalogue(given: Mapping[str, Any]) -> Catalogue:
    from .distill_run import catalogue

    return catalogue()


def distill(
    context: typer.Context,
    labels: Annotated[
        Path, typer.Argument(help="Rows with human scores: .csv .tsv .json .jsonl .parquet .xlsx, or bench/NAME")
    ],
    base: Annotated[
        str,
        typer.Option(
            help="The model that is trained: local/NAME (`judgesmith models list`), gguf:PATH, or hf:FOLDER for a "
            "causal model in Hugging Face's format."
        ),
    ] = "local/qwen2.5-0.5b",
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where the judge is saved; its weights go into NAME.student beside.")
    ] = Path("judge.json"),
    synthetic: Annotated[
        Path | None, typer.Option(help="Examples that `judgesmith synthesize` wrote; human ratings count more.")
    ] = None,
    aspect: Annotated[str | None, typer.Option(help="Which score, where rows have several.")] = None,
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="Lowest and highest score; inferred if not given.")
    ] = None,
    columns: Columns = None,
    heldout: Annotated[str, typer.Option(help="Share of rows held out, or a file of other labels.")] = "0.25",
    library_aspect: LibraryAspect = None,
    teacher: Annotated[
        Path | None, typer.Option(help="A saved judge that is measured beside the student, on the same rows.")
    ] = None,
    settings: Settings = None,
    preset: Presets = None,
    config: Config = None,
    seed: Annotated[int, typer.Option(help="Seed of splits, batches and first weights.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start over instead of resuming from a checkpoint.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what the run would take, train nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Train a small model to judge, from human ratings and synthetic examples.

    After Ctrl-C, a crash or a kill the same command resumes from its last checkpoint. The report compares the student
    with the plain model (and a teacher) on rows that it never saw. Needs: pip install 'judgesmith[local,train]'.
    """
    from ..cli.rendering import show_dry_run
    from ..running.console import print_json
    from ..running.opening import quiet
    from .distill_run import DistillRun

    found = _catalogue({}).resolve(*settings_of(context, settings))
    run = DistillRun(
        labels=labels, base=base, output=output, synthetic=synthetic, aspect=aspect, scale=scale,
        columns=columns or (), heldout=heldout, library_aspect=library_aspect, teacher=teacher, seed=seed,
        overwrite=overwrite, settings=found,
    )  # fmt: skip
    with quiet():
        if dry_run:
            show_dry_run(run.plan(), as_json=as_json)
            return
        report = run.run()
        if as_json:
            print_json(report.to_dict() | {"output": str(output)})
        else:
            _show(report, output)
    raise typer.Exit(1 if report.heldout.objective.failed == report.heldout.objective.n else 0)


def _show(report: DistillReport, output: Path) -> None:
    from ..running.console import duration, number, wide
    from ..running.console import out as plain

    table = Table(title="On the held-out rows", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("", "Q", "95 %", "r", "rho", "tau", "student's lead", "p", "calls/row", "s/row"):
        table.add_column(name, justify="left" if not name else "right")
    for one in report.contenders:
        found, gap = one.agreement, one.against
        table.add_row(
            escape(one.name), number(found.q), f"{number(found.low)} to {number(found.high)}",
            number(found.objective.pearson), number(found.objective.spearman), number(found.objective.kendall),
            "" if gap is None else f"{gap.value:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]",
            "" if gap is None else number(gap.p, 3), f"{one.calls:.1f}", number(one.seconds),
        )  # fmt: skip
    wide().print(table)
    rows = report.rows
    plain.print(
        f"{rows['heldout']} held-out rows; trained on {rows['human']} human ratings and {rows['synthetic']} "
        f"synthetic examples, {report.trained.ended} epochs, the best was {report.trained.best}; "
        f"{duration(report.seconds)}"
    )
    for note in report.notes:
        plain.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
    size = sum(report.sizes.values()) / 1e6
    saved = escape(str(output))
    plain.print(f"\nSaved {saved}, weights of {size:.0f} MB beside it.")
    plain.print(f"Next: judgesmith score OUTPUTS.jsonl --judge {saved}", soft_wrap=True)
