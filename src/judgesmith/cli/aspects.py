"""`judgesmith aspects`: which aspects of quality there are, by task, and what one of them means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError

if TYPE_CHECKING:
    from ..programs.aspects import Aspect, AspectLibrary, Task

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `aspects` to a command line."""
    app.command("aspects")(show_aspects)


def show_aspects(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[TASK|ASPECT]", help="A task, an aspect, or TASK/ASPECT; all tasks where not given."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="MY.yaml", help="Add the aspects of this file, or change some by it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout, for machines.")] = False,
) -> None:
    """The aspects of quality that a judge can be asked for: by task, or one in full."""
    from ..programs.aspects import aspects
    from ..running.console import print_json

    library = aspects(file)
    task = None if name is None else _task(library, name)
    if name is not None and task is None:
        aspect = _aspect(library, name)
        if as_json:
            print_json({"aspect": _aspect_data(aspect), "task": _task_data(library.tasks[aspect.task])})
        else:
            _show_aspect(library, aspect)
        return
    tasks = list(library.tasks.values()) if task is None else [task]
    if as_json:
        print_json(
            {"tasks": [_task_data(one) | {"aspects": [_aspect_data(a) for a in one.aspects.values()]} for one in tasks]}
        )
    else:
        _show_tasks(tasks)


def _task(library: AspectLibrary, name: str) -> Task | None:
    try:
        return library.task(name)
    except OptionError:
        return None  # then it is an aspect's name


def _aspect(library: AspectLibrary, name: str) -> Aspect:
    try:
        return library.find(name)
    except OptionError as error:
        if "/" in name:
            raise
        raise OptionError(f"{error}. The tasks are: {', '.join(library.tasks)}") from None


def _task_data(task: Task) -> dict[str, Any]:
    return task.model_dump(mode="json", exclude={"aspects"})


def _aspect_data(aspect: Aspect) -> dict[str, Any]:
    return aspect.model_dump(mode="json") | {"scoring": aspect.scoring}


def _show_tasks(tasks: list[Task]) -> None:
    from rich.table import Table

    from ..evaluating.tables import escape
    from ..running.console import out
    from ..running.plain import clean

    for task in tasks:
        table = Table(
            title=f"[bold]{escape(task.name)}[/bold]: {escape(task.description)}", title_style="", title_justify="left",
            box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False,
        )  # fmt: skip
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for aspect in task.aspects.values():
            marks = " [yellow](more is worse)[/yellow]" if aspect.negative else ""
            table.add_row(escape(aspect.name), escape(aspect.definition) + marks)
        out.print(table)
        inputs = task.source if task.context is None else f"{task.source}, {task.context}"
        out.print(f"from: {clean(inputs)}; to: {clean(task.output)}\n", style="dim", markup=False)
    out.print("`judgesmith aspects TASK/ASPECT` prints one in full.", style="dim")


def _show_aspect(library: AspectLibrary, aspect: Aspect) -> None:
    from rich.table import Table

    from ..evaluating.tables import escape
    from ..running.console import out

    task = library.tasks[aspect.task]
    table = Table(title=escape(f"{aspect.task}/{aspect.name}"), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    judged = task.output
    if aspect.needs_source:
        judged += f", beside the {task.source}" + (f" and the {task.context}" if task.context else "")
    lines = {
        "what counts": aspect.definition,
        "leave aside": "; ".join(aspect.leave_aside) or "nothing",
        "Unacceptable": aspect.low,
        "Excellent": aspect.high,
        "judged": judged,
        "scores": aspect.scoring,
        "also called": ", ".join(aspect.aliases) or "–",
        "task": task.description,
    }
    for title, text in lines.items():
        table.add_row(title, escape(text))
    out.print(table)
    same = [t.name for t in library.tasks.values() if t.name != aspect.task and aspect.name in t.aspects]
    if same:
        out.print(f"It means something else in: {escape(', '.join(same))}", style="dim")
