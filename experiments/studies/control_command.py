"""`judgesmith study control`: whether a model learns a private rule from labelled examples."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.cli.commands import Command, Json, argument, flag

if TYPE_CHECKING:
    from judgesmith.experiments.studies.control import Reached, Verdict
    from judgesmith.tables import Table

COLUMNS = {
    "rule": "",
    "examples": "{:.0f}",
    "scores": "",
    "Q": "{:.2f}",
    "draws": "",
    "failed": "{:.0f}",
}


class Control(Command, Json):
    """Test whether a model learns a private rule from labelled examples.

    The rule says which topic of a reply is good; nothing else tells it. A model fails where right scores do not beat
    none and turned-round ones. A search over examples cannot help it then, and `compile` says so. The same command
    resumes in the folder -o.
    """

    model: str = argument(..., "Language model, as in `judgesmith compile --lm`.")
    sizes: str = flag("4,8,16", "Numbers of examples, at most 24.", metavar="N,N,…")
    draws: int = flag(3, "Sets of examples of each size.", ge=1)
    api_base: str | None = flag(
        None,
        "URL of an OpenAI-compatible server or of Ollama. Default: the provider's own.",
    )
    output: Path = flag(
        Path("control"), "Folder of the results.", "-o", "--output", metavar="FOLDER"
    )

    def run(self) -> None:
        """Ask what is left, then write and print the table."""
        from judgesmith.experiments.studies import control
        from judgesmith.experiments.studies.saving import save
        from judgesmith.programs import controls
        from judgesmith.programs.models.lm import Connection, language_model
        from judgesmith.running.console import Watch, out, print_json, wide
        from judgesmith.running.journal import alone

        asked = control.cells(self._sizes(), self.draws)
        self.output.mkdir(parents=True, exist_ok=True)
        name = "".join(
            one if one.isalnum() or one in ".-" else "-" for one in self.model
        )
        with alone(self.output, folder=True):
            answers = control.Answers(self.output / f"{name}.jsonl")
            left = sum(len(answers.left(cell)) for cell in asked)
            lm = language_model(
                self.model, connection=Connection(api_base=self.api_base)
            )
            with Watch("asking", left) as watch:
                for cell in asked:
                    control.ask(lm, cell, answers, watch)
        reached = control.table(asked, answers)
        said = control.verdict(asked, answers)
        controls.keep(self.model, said.passed, said.sentence(self.model))
        rows = [_row(one) for one in reached]
        command = f"judgesmith study control {self.model} --sizes {self.sizes} --draws {self.draws}"
        save(
            self.output,
            f"control-{name}",
            COLUMNS,
            rows,
            commands=[command],
            model=self.model,
            seed=0,
        )
        if self.as_json:
            print_json(_found(self.model, reached, said))
            return
        _show(rows).show(wide())
        out.print(said.sentence(self.model), markup=False)

    def _sizes(self) -> list[int]:
        from judgesmith.errors import OptionError
        from judgesmith.experiments.studies.control import POOL

        parts = self.sizes.split(",")
        if not all(
            part.strip().isdecimal() and 0 < int(part) <= POOL for part in parts
        ):
            raise OptionError(
                f"--sizes {self.sizes}: give whole numbers from 1 to {POOL}, such as 4,8,16"
            )
        return sorted({int(part) for part in parts})


def _row(one: Reached) -> list[Any]:
    mean = sum(one.draws) / len(one.draws)
    each = " ".join(f"{value:.2f}" for value in one.draws)
    scores = one.labels if one.shown else "none"
    return [one.rule, one.shown, scores, mean, each, one.failed]


def _found(model: str, reached: list[Reached], said: Verdict) -> dict[str, Any]:
    return {
        "model": model,
        "passed": said.passed,
        "sentence": said.sentence(model),
        "against_none": asdict(said.against_none),
        "against_turned": asdict(said.against_turned),
        "cells": [asdict(one) for one in reached],
    }


def _show(rows: list[list[Any]]) -> Table:
    from judgesmith.tables import Table

    table = Table(
        list(COLUMNS), "Q: agreement with a private rule that only examples tell"
    )
    for row in rows:
        cells = zip(row, COLUMNS.values(), strict=True)
        table.add(*(form.format(cell) if form else str(cell) for cell, form in cells))
    return table
