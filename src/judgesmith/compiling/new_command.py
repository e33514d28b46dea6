"""`judgesmith new`: a judge that has learnt from no labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..cli.options import LM, LibraryAspect, complete_method
from ..cli.settings import Config, Presets, Settings, settings_of, with_settings

if TYPE_CHECKING:
    from ..running.settings import Catalogue

__all__ = ["register"]

#: What needs no labels to tell good from bad.
COMPARING = "pairwise-direct"


def register(app: typer.Typer) -> None:
    """Add `new` to the command line."""
    app.command(name="new", cls=with_settings(_catalogue))(new)


def _catalogue(given: Mapping[str, Any]) -> Catalogue:
    from .run import Setup

    return Setup(given.get("method") or COMPARING, None).catalogue()


def new(
    context: typer.Context,
    lm: LM = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the judge is saved.")] = Path("judge.json"),
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="Lowest and highest score; 0 to 100 if not given.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="How it judges: see `judgesmith methods`.", autocompletion=complete_method),
    ] = COMPARING,
    library_aspect: LibraryAspect = None,
    settings: Settings = None,
    preset: Presets = None,
    config: Config = None,
) -> None:
    """Save a judge that has learnt from no labels, for when there are none yet.

    How far to trust it is not known yet: `judgesmith evaluate` measures that with a few human scores, `judgesmith
    discern` shows which perturbations it notices without any, and `judgesmith compile` makes a better one.
    """
    from ..programs.models.names import check_listed
    from ..running.console import out
    from ..running.opening import check_writable, make_room, open_model, quiet
    from ..running.settings import JudgeInWords
    from ..signatures.values import Scale
    from .run import Setup, judge_in_words

    method = method or COMPARING
    found = Setup(method, None).resolve(*settings_of(context, settings))
    words = JudgeInWords(**found["run"])
    with quiet():
        judge = judge_in_words(method, found["method"], words, None, library_aspect)
        if scale is not None:
            judge.scale = Scale(*scale)
        check_writable(output, words.criteria)
        check_listed(judge.models())
        judge.set_lm(open_model(lm))
        make_room(output, judge)
        judge.save(output)
        out.print(
            f"Saved {escape(str(output))}: {judge.kind}, {judge.scale}, learnt from no labels. Next: "
            f"judgesmith score OUTPUTS.jsonl --judge {escape(str(output))}"
        )
