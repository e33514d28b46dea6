"""`judgesmith demo`: see it work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from .options import Json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `demo` to the command line."""
    app.command(name="demo")(demo)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the judge is saved.")] = Path("demo-judge.json"),
    lm: Annotated[str, typer.Option("--lm", help="Another model to try it with.")] = "local/smollm2-135m",
    as_json: Json = False,
) -> None:
    """See it work: compile a judge from 48 labelled sentences on a small model inside this process, then score."""
    from importlib.resources import as_file, files

    from ..experiments.compile_run import READ, CompileRun, Setup
    from ..experiments.console import out
    from .compile import compile_judge

    with as_file(files("judgesmith.datasets.demo")) as folder:
        if not as_json:
            out.print(
                "[bold]48 simplified sentences[/bold], written and rated 1-5 (is it fluent?) by the makers of "
                "judgesmith for this demo (see datasets/demo/CARD.md): demonstration ratings, no benchmark."
            )
        # Half of the documents held out: an interval over six would say nothing.
        setup = Setup.choose(None, None, lm)
        found = setup.resolve({"heldout": 0.5}.items())
        run = CompileRun.of(
            setup, found, labels=folder / "labels.jsonl", lm=lm, output=output, scale=(1, 5),
            library_aspect="simplification/fluency" if setup.method == READ else None,
        )  # fmt: skip
        code = compile_judge(run, as_json=as_json)
        if as_json or code:
            raise typer.Exit(code)
        _score(folder / "new_outputs.jsonl", output, lm)
    out.print(f"\nLook inside with: judgesmith show {escape(str(output))}")


def _score(rows: Path, judge_file: Path, lm: str) -> None:
    from ..datasets.loading import iter_rows
    from ..experiments.console import out
    from ..experiments.opening import open_judge, quiet
    from .rendering import show_verdict

    with quiet():
        judge = open_judge(judge_file, lm)
        out.rule("New outputs, judged by the saved file")
        for row, _ in iter_rows(rows):
            show_verdict(row.id, row.output, judge.score(row.source, row.output), str(judge.scale))
