"""`judgesmith study`: parsing, progress and the order of things; `study` runs the cells."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judgesmith.cli.commands import Command, Group, Json, Preset, Rows, argument, flag
from judgesmith.errors import OptionError
from judgesmith.experiments.studies.running import NO_MODEL, plan_of, run_one, show_plan

if TYPE_CHECKING:
    from judgesmith.experiments.studies.config import StudyRequest
    from judgesmith.running.settings import Catalogue

STUDIES = Group(
    "Compare optimizers, variants, numbers of labels, models or readings; run a paper's table."
)
MORE = """

Every seed draws held-out rows (whole documents), which no arm learns from, then an order of the labels. The folder -o
has config.yaml, results.jsonl (with every candidate of a search), predictions.jsonl, study.html, tables.md, tables.tex,
figure.svg and figure.pdf. Results are written as cells finish. The same command resumes, and adds further arms, models
or seeds.

A --config file has the same options by name (lm, train, seeds, arms, …), and all of `judgesmith compile`. The command
line takes precedence. A --preset has the arms of a paper's table, or its settings for a data set. Both can be combined.
Exit code 0: all cells finished; 1: some failed (with the reasons); 2: an error.
"""


class _Study(Command, Preset, Rows, Json):
    kind: ClassVar[Any]

    labels: Path | None = argument(
        None,
        "Rows with human ratings: {formats}, or bench/NAME.",
    )
    output: Path | None = flag(
        None,
        "Folder of the results. Default: study-KIND.",
        "-o",
        "--output",
        metavar="FOLDER",
    )
    lm: list[str] = flag(
        [],
        "Language model, as in `judgesmith compile`. Repeatable. Default: the variable JUDGESMITH_LM.",
    )
    arms: list[Any] | None = flag(
        None,
        "Arm to compare, instead of the usual ones: parts joined by +, e.g. fine+no-task or "
        "random-search+max_demos=8. Parts: an optimizer (also dspy:NAME), a variant, a method, racing, no-task, "
        "no-criteria, no-os-e, no-explanations, no-search, one-batch, own-criteria, OPTION=VALUE. Repeatable.",
        "--arm",
        metavar="PART+PART…",
    )
    seeds: str | None = flag(
        None,
        "Number of seeds, or the seeds themselves (1,2,5). Default: 3.",
        metavar="N|A,B,…",
    )
    train: list[str] | None = flag(
        None,
        "Number of labels to learn from. Several numbers give a learning curve. Default: all that are not held out. "
        "For `study labels`: 10,20,40,…,all. Repeatable.",
        metavar="N,N,…|all",
    )
    heldout: str | None = flag(
        None,
        "Share or number of held-out rows, on which the arms are compared, or a file. Default: 0.5.",
    )
    max_calls: int | None = flag(
        None,
        "Maximum number of calls to compile one cell, without its held-out rows. Default: no limit.",
        ge=1,
    )
    dry_run: bool = flag(
        False, "Print the number of calls and the estimated cost, and stop."
    )
    overwrite: bool = flag(False, "Start over instead of resuming.")
    aspect: str | None = flag(
        None,
        "Name of the human rating to learn. Required if rows have several. mean:A,B,… averages ratings.",
    )
    library_aspect: str | None = flag(
        None,
        "Library aspect that the score measures (`judgesmith list aspects`).",
        "--as",
        metavar="[TASK/]ASPECT",
    )
    scale: tuple[float, float] | None = flag(
        None, "Lowest and highest score. Default: inferred from the labels."
    )
    api_base: str | None = flag(
        None,
        "URL of an OpenAI-compatible server or of Ollama. Default: the provider's own.",
    )

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        from judgesmith.experiments.studies.config import catalogue

        return catalogue()

    @classmethod
    def start(cls, given: Mapping[str, Any]) -> int:
        """Start a study, which resolves its settings itself: those of its arms depend on the parts of each."""
        from judgesmith.experiments.studies.config import StudyRequest

        own = ("config", "preset", "output", "dry_run", "overwrite", "as_json")
        flags = {name: value for name, value in given.items() if name not in own}
        if "train" in flags:
            flags["train"] = ",".join(flags["train"])
        flags = {
            name: value for name, value in flags.items() if value not in (None, [])
        }
        if "labels" in flags:
            flags["labels"] = str(flags["labels"])
        read = StudyRequest.read(
            cls.kind, given.get("config"), flags, given.get("preset") or ()
        )
        if not read.has("lm") and os.environ.get("JUDGESMITH_LM"):
            read = replace(
                read, flags={**read.flags, "lm": os.environ["JUDGESMITH_LM"]}
            )
        return _run(read, given)


def _explained(command: type[_Study]) -> type[_Study]:
    """Add to a command's help what all studies share."""
    command.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}{MORE}"
    return command


@_explained
class Optimizers(_Study):
    """Compare optimizers on your labels.

    All learn from the same rows with the same budget of candidates. All are compared on the same held-out rows.
    """

    kind: ClassVar[Any] = "optimizers"


@_explained
class Ablation(_Study):
    """Measure the contribution of each part of Active-Critic.

    The arms are its variants (Table 1 of the paper). Each leaves out task, OS-E, explanations, search or mini-batches
    (Table 4, Figures 2 and 3). --criteria FILE adds an arm with your own criteria. --preset selects the arms of one
    table or figure, also of OpeNLGauge and direct scoring.
    """

    kind: ClassVar[Any] = "ablation"


@_explained
class Labels(_Study):
    """Measure agreement against the number of labels.

    The numbers are 10, 20, 40 … all. Larger samples contain the smaller ones.
    """

    kind: ClassVar[Any] = "labels"


@_explained
class Models(_Study):
    """Compare language models: the same study for each --lm."""

    kind: ClassVar[Any] = "models"


def _run(read: StudyRequest, given: Mapping[str, Any]) -> int:
    from judgesmith.experiments.studies import tables
    from judgesmith.experiments.studies.run import Study
    from judgesmith.running.console import out, print_json
    from judgesmith.running.journal import alone
    from judgesmith.running.opening import quiet
    from judgesmith.running.plain import clean

    output = given.get("output") or read.folder()
    where = read.connection()
    as_json = bool(given.get("as_json"))
    with quiet(), ExitStack() as lock:
        study = Study.prepare(read)
        if given.get("dry_run"):
            if as_json:
                print_json(
                    {
                        "dry_run": True,
                        "study": study.config.study,
                        **plan_of(study, where),
                    }
                )
            else:
                show_plan(study, where)
            return 0
        if not study.config.lm:
            raise OptionError(NO_MODEL)
        lock.enter_context(alone(output, folder=True))
        overwrite = bool(given.get("overwrite"))
        analysis, written, counts = run_one(
            study, output, where, overwrite=overwrite, heading=None if as_json else ""
        )
        if as_json:
            print_json(
                {
                    "study": read.kind,
                    "output": str(output),
                    **counts,
                    "lines": [line.to_dict() for line in analysis.lines],
                    "failures": [
                        {**cell._asdict(), "reason": reason}
                        for cell, reason in analysis.failures
                    ],
                    "notes": analysis.notes,
                    "files": [path.name for path in written],
                }
            )
        else:
            tables.show(analysis)
            out.print(
                f"Wrote {clean(str(output))}: {', '.join(path.name for path in written)}",
                markup=False,
                soft_wrap=True,
            )
    return 1 if analysis.failures else 0
