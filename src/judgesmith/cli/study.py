"""`judgesmith study`: parsing, progress and the order of things; `study` runs the cells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from ..experiments.settings import Catalogue, Owner, pairs_of
from . import study_paper, study_readings
from .options import ApiBase, Columns, Json
from .settings import Config, Presets, Settings, with_settings

if TYPE_CHECKING:
    from ..experiments.studies.analysis import Analysis
    from ..experiments.studies.config import Given
    from ..experiments.studies.run import Cell, Study
    from ..programs.models.lm import Connection

__all__ = ["register"]

HELP = {
    "optimizers": "Which optimizer is worth its calls on your labels? All learn from the same rows with the same "
    "budget of candidates and are compared on the same held-out rows.",
    "ablation": "What does each part of Active-Critic do? Its variants (Table 1 of the paper) without task, OS-E, "
    "explanations, search or mini-batches (Table 4, Figures 2 and 3); --criteria FILE adds the arm with your criteria "
    "in place of inferred ones. --preset has the arms of one table or figure, OpeNLGauge's and direct scoring's, too.",
    "labels": "How many labels are enough? Agreement against the number of labels, 10, 20, 40 … all; more labels "
    "contain the fewer.",
    "models": "Which model judges best? The same study over several --lm.",
}
MORE = (
    "Every seed draws held-out rows (whole documents), which no arm learns from, then an order of the labels. All is "
    "kept in the folder -o: config.yaml, results.jsonl (with every candidate of a search) and predictions.jsonl "
    "(written as cells finish; the same command goes on where it stopped, and more arms, models or seeds are added), "
    "study.html (a page to look at), tables.md, tables.tex, figure.png and .svg.",
    "A --config file has the same options by their names (lm, train, seeds, arms, …, and all of `judgesmith compile`); "
    "flags win. A --preset has the arms of a paper's table, or what it sets for a set of data; both can be given. Exit "
    "code 0: all cells are there; 1: some failed, with their reasons; 2: an error.",
)


NO_MODEL = "no language model: give --lm (or set JUDGESMITH_LM), or lm: in the --config file"


def register(app: typer.Typer) -> None:
    """Add `study optimizers`, `ablation`, `labels`, `models`, `readings` and `paper` to the command line."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Compare optimizers, variants, numbers of labels, models or readings; run a paper's table.",
    )
    settings = with_settings(_catalogue, reads_file=False)
    for kind, text in HELP.items():
        group.command(name=kind, cls=settings, help="\n\n".join((text, *MORE)))(study)
    study_readings.register(group)
    study_paper.register(group)
    app.add_typer(group, name="study")


def study(
    context: typer.Context,
    labels: Annotated[
        Path | None, typer.Argument(help="Rows with human scores: .csv .tsv .json .jsonl .parquet")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="All that comes of it; default study-KIND.")
    ] = None,
    lm: Annotated[
        list[str] | None,
        typer.Option(help="A model, as in `judgesmith compile`; repeatable. Default: JUDGESMITH_LM."),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART+PART…",
            help="What is compared, in place of the usual arms; repeatable. Parts: an optimizer, a variant, a method, "
            "racing, augment, no-task, no-criteria, no-os-e, no-explanations, no-search, one-batch, own-criteria, "
            "OPTION=VALUE. For example: fine+no-task, random-search+demos=8.",
        ),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="N|A,B,…", help="How many seeds, or which. Default 3.")] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,N,…|all",
            help="Labels to learn from; several make a curve; repeatable. Default all that are not held out; for "
            "`study labels` 10,20,40,…,all.",
        ),
    ] = None,
    heldout: Annotated[
        str | None, typer.Option(help="Share or number of rows to compare on, or a file. Default 0.5.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(help="Calls at most to fit one cell; held-out rows are not counted.", min=1)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, spend nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start the folder anew.")] = False,
    aspect: Annotated[
        str | None, typer.Option(help="Which score, where rows have several; mean:A,B,… is their mean.")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="Lowest and highest score; inferred if not given.")
    ] = None,
    columns: Columns = None,
    api_base: ApiBase = None,
    settings: Settings = None,
    preset: Presets = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    from ..experiments.studies.config import Given

    flags = {
        "labels": None if labels is None else str(labels), "lm": lm, "arms": arm, "seeds": seeds,
        "train": ",".join(train) if train else None, "heldout": heldout, "max_calls": max_calls, "aspect": aspect,
        "scale": scale, "columns": columns, "api_base": api_base, **pairs(settings or []),
    }  # fmt: skip
    kind: Any = context.info_name
    given = Given.read(kind, config, flags, preset or ())
    raise typer.Exit(_run(given, output, given.connection(), dry_run=dry_run, overwrite=overwrite, as_json=as_json))


def pairs(given: list[str]) -> dict[str, str]:
    """The settings by name; of what is given several times the last counts, but lists grow."""
    catalogue = _catalogue({})
    found: dict[str, str] = {}
    for name, value in pairs_of(given):
        known = name.replace("-", "_")
        found[known] = f"{found[known]},{value}" if known in found and catalogue.is_list(known) else value
    return found


def _catalogue(given: Mapping[str, Any]) -> Catalogue:
    from ..experiments.compile_run import Setup
    from ..experiments.studies.config import StudyOptions

    compiling = Setup().catalogue()
    return replace(compiling, owners=(Owner("study", "the study", StudyOptions), *compiling.owners))


def _run(given: Given, output: Path | None, where: Connection, *, dry_run: bool, overwrite: bool, as_json: bool) -> int:
    from ..experiments.alone import alone
    from ..experiments.console import out, print_json
    from ..experiments.opening import quiet
    from ..experiments.plain import clean
    from ..experiments.studies import tables as tables
    from ..experiments.studies.run import Study

    if not given.has("lm") and os.environ.get("JUDGESMITH_LM"):
        given = replace(given, flags={**given.flags, "lm": os.environ["JUDGESMITH_LM"]})
    output = output or given.folder()
    with quiet(), ExitStack() as lock:
        made = Study.prepare(given)
        if dry_run:
            if as_json:
                print_json({"dry_run": True, "study": made.config.study, **plan_of(made, where)})
            else:
                show_plan(made, where)
            return 0
        if not made.config.lm:
            raise OptionError(NO_MODEL)
        lock.enter_context(alone(output, folder=True))
        found, written, counts = run_one(made, output, where, overwrite=overwrite, said=None if as_json else "")
        if as_json:
            print_json(
                {
                    "study": given.kind, "output": str(output), **counts,
                    "lines": [line.to_dict() for line in found.lines],
                    "failures": [{**cell._asdict(), "reason": reason} for cell, reason in found.failures],
                    "notes": found.notes, "files": [path.name for path in written],
                }
            )  # fmt: skip
        else:
            tables.show(found)
            out.print(
                f"Wrote {clean(str(output))}: {', '.join(path.name for path in written)}", markup=False, soft_wrap=True
            )
    return 1 if found.failures else 0


def run_one(
    made: Study, output: Path, where: Connection, *, overwrite: bool, said: str | None
) -> tuple[Analysis, list[Path], dict[str, int]]:
    """Run what is left of a study in its folder: what was found, the files written, and how many cells there are, ran
    and are done. said: what progress is headed with; None is silent before the first cell."""
    from ..experiments.console import err, out
    from ..experiments.plain import clean
    from ..experiments.studies import tables as tables
    from ..experiments.studies.analysis import analyse
    from ..experiments.studies.run import Journal, run_study

    if not made.config.lm:
        raise OptionError(NO_MODEL)
    journal = Journal.open(output, made, overwrite=overwrite)
    cells = made.cells()
    todo = [cell for cell in cells if not journal.done(cell)]
    if said is not None:
        for warning in made.labels.warnings:
            out.print(f"note: {clean(warning)}", style="yellow", markup=False)
        there = f", {len(cells) - len(todo)} of them there" if len(todo) < len(cells) else ""
        calls = sum(made.plan(cell).calls for cell in todo)
        head = f"{clean(said)}: " if said else ""
        err.print(f"{head}{len(cells)} cells{there}; at most {calls:,} calls; Ctrl-C loses nothing", style="dim")
    if todo:
        with Show(made, todo) as show:
            run_study(made, journal, where, show)
    found = analyse(made.config, journal, [*cells, *journal.peers()])
    done = sum(journal.done(cell) for cell in cells)
    return found, tables.write(found, output), {"cells": len(cells), "ran": len(todo), "done": done}


def _groups(study: Study, where: Connection) -> tuple[dict[tuple[str, str, Any], list[int]], float]:
    """Calls of each cell by model, arm and size, and the seconds that all may take. Cells of one arm, model and size
    have as many, but for the size of the seeds' parts."""
    from ..experiments.opening import expected_seconds

    groups: dict[tuple[str, str, Any], list[int]] = {}
    seconds = 0.0
    for cell in study.cells():
        calls = study.plan(cell).calls
        groups.setdefault((cell.model, cell.arm, cell.train), []).append(calls)
        seconds += expected_seconds(calls, cell.model, where)
    return groups, seconds


def plan_of(study: Study, where: Connection) -> dict[str, Any]:
    """What a study would take at most, as JSON values."""
    groups, seconds = _groups(study, where)
    return {
        "cells": len(study.cells()), "calls": sum(map(sum, groups.values())),
        "seconds": round(seconds), "seeds": list(study.config.seeds),
        "parts": {
            str(seed): {"heldout": len(part.heldout), "to_learn_from": len(part.pool)}
            for seed, part in study.parts.items()
        },
        "lines": [
            {"model": model, "arm": arm, "train": size, "cells": len(each), "calls": sum(each)}
            for (model, arm, size), each in groups.items()
        ],
    }  # fmt: skip


def show_plan(study: Study, where: Connection, of: str = "the study") -> None:
    """What a study would take at most, on the screen."""
    from rich.table import Table

    from ..experiments.console import duration, out
    from ..experiments.evaluation.tables import escape

    groups, seconds = _groups(study, where)
    total = sum(map(sum, groups.values()))
    several = len(study.config.lm) > 1
    table = Table(title=escape(f"What {of} would take (at most)"), title_justify="left")
    for name in (*(["model"] if several else []), "arm", "labels", "cells", "calls a cell", "calls"):
        table.add_column(name, justify="left" if name in ("model", "arm") else "right", overflow="fold")
    for (model, arm, size), each in groups.items():
        named = [escape(model), escape(arm)] if several else [escape(arm)]
        table.add_row(*named, str(size), str(len(each)), f"{max(each):,}", f"{sum(each):,}")
    table.add_section()
    table.add_row("in all", *([""] if several else []), "", str(len(study.cells())), "", f"{total:,}")
    out.print(table)
    parts = [f"{len(part.pool)} + {len(part.heldout)}" for part in study.parts.values()]
    out.print(f"Rows to learn from + held out, by seed: {', '.join(parts)}.")
    out.print(f"About {duration(seconds)}. Arms share calls through the disk cache, so that it may be far less.")


class Show:
    """A study on the screen: a bar over all steps with the time left, and a line for every finished cell."""

    def __init__(self, study: Study, todo: list[Cell]) -> None:
        from ..experiments.console import Watch, err

        self.err, self.study = err, study
        self.planned = [study.plan(cell).steps for cell in todo]
        self.watch = Watch("study", sum(self.planned))
        self.number = 0
        self.steps = 0
        self.title = ""

    def __enter__(self) -> Show:
        self.watch.__enter__()
        return self

    def __exit__(self, *how: Any) -> None:
        self.watch.__exit__(*how)

    def begin(self, cell: Cell) -> None:
        self.title, self.steps = self.study.title(cell), 0
        self.stage("", 0)

    def stage(self, title: str, steps: int) -> None:
        if self.err.is_terminal:  # a log has a line for a cell, not for each of its stages
            self.watch.stage(f"{self.number + 1}/{len(self.planned)} {self.title}" + (f": {title}" if title else ""), 0)

    def step(self, title: str | None = None) -> None:
        if self.steps < self.planned[self.number]:
            self.steps += 1
            self.watch.step()

    def best(self, text: str) -> None:
        if self.err.is_terminal:
            self.watch.best(text)

    def end(self, cell: Cell, record: Mapping[str, Any], seconds_left: float | None) -> None:
        from ..experiments.console import duration
        from ..experiments.plain import clean

        while self.steps < self.planned[self.number]:  # plans are upper bounds
            self.step()
        self.number += 1
        what = (
            f"{record['signature']}, {record['calls']:,} calls, {duration(record['seconds'])}"
            if record["status"] == "done"
            else f"failed: {record['reason']}"
        )
        left = f"; about {duration(seconds_left)} left" if seconds_left is not None else ""
        style = None if record["status"] == "done" else "red"
        self.err.print(
            clean(f"[{self.number}/{len(self.planned)}] {self.title}: {what}{left}"),
            markup=False,
            style=style,
            soft_wrap=True,
        )
