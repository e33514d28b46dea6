"""`judgesmith spans`: does a judge mark the errors that people marked?"""

from __future__ import annotations

from typing import Annotated

import typer

from ..cli.options import Json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `spans` to the command line."""
    app.command(name="spans")(spans)


def spans(
    rows: Annotated[str, typer.Argument(metavar="ROWS", help="A .jsonl that `judgesmith score` wrote.")],
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="The spans that people marked: a file, or bench/NAME.")],
    unlisted_clean: Annotated[
        bool,
        typer.Option("--unlisted-clean", help="Outputs that TRUTH does not list were read and are without errors."),
    ] = False,
    ungrounded_against: Annotated[
        bool,
        typer.Option("--ungrounded-against", help="Errors that were not found in the text count against precision."),
    ] = False,
    rounds: Annotated[int, typer.Option(help="Resamples of the bootstrap; 0: values alone.", min=0)] = 1000,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Decides the resamples.")] = 0,
    as_json: Json = False,
) -> None:
    """Compare the error spans of a scored file with those that people marked: precision, recall and F1."""
    from ..running.console import print_json
    from .spans import evaluate_spans

    report = evaluate_spans(
        rows, truth, unlisted="clean" if unlisted_clean else None, ungrounded_against=ungrounded_against,
        rounds=rounds, confidence=confidence, seed=seed,
    )  # fmt: skip
    if as_json:
        print_json(report.to_dict())
    else:
        report.show()
