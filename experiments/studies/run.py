"""`judgesmith study`: arms fitted on the same labels, scored on the same held-out rows; it resumes from its journal.

A cell is one arm with one model, one number of labels and one seed. The seed draws the held-out rows (whole groups)
first, then an order of the others, of which a cell learns from the first ones: more labels contain the fewer.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from judgesmith.agreement.correlation import Level
from judgesmith.agreement.objectives import Q
from judgesmith.compiling.run import CompileRun, RunOptions
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.datasets.splits import assert_disjoint, holdout_split
from judgesmith.errors import BudgetError, JudgesmithError, ModelError, OptionError
from judgesmith.experiments.studies.config import (
    Size,
    StudyConfig,
    StudyRequest,
    changes,
)
from judgesmith.optimizers.examples import agreement, examples_of, score_rows
from judgesmith.optimizers.learning import Job, fit
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.planning import plan as planned
from judgesmith.optimizers.report import Fitted, Plan
from judgesmith.optimizers.search.base import brief
from judgesmith.programs.atomic import write_whole
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel, Sampling
from judgesmith.programs.progress import Progress
from judgesmith.running.journal import Journal as LineJournal
from judgesmith.running.journal import read_journal
from judgesmith.running.opening import column_roles, model_for, open_model, open_others
from judgesmith.running.settings import ModelOptions, read_yaml
from judgesmith.signatures.values import json_number

#: What a study leaves in its folder.
FILES = (
    "config.yaml",
    "results.jsonl",
    "predictions.jsonl",
    "study.html",
    "tables.md",
    "tables.tex",
    "figure.svg",
    "figure.pdf",
)


class Cell(NamedTuple):
    """One compile run of a study."""

    model: str
    arm: str
    train: Size
    seed: int

    def __str__(self) -> str:
        labels = "all labels" if self.train == "all" else f"{self.train} labels"
        return f"{self.arm}, {self.model}, {labels}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Part:
    """A seed's draw: the held-out rows, and the others in the order they are learnt from."""

    heldout: Labels
    pool: Labels
    order: tuple[int, ...]

    def train(self, size: Size) -> Labels:
        """Return the first rows of the pool, in the order of the file."""
        return self.pool.subset(
            sorted(self.order[: len(self.pool) if size == "all" else size])
        )


def draw(
    labels: Labels, heldout: float | Labels, seed: int, level: Level = "pooled"
) -> Part:
    """Draw held-out rows (a share of 0 to 1, a number from 1 on, or other labels), then the order of the rest.

    Rows to learn from come from all over the pool, as when a user labels some outputs; at level "sample", which
    correlates within documents, those of a group stay together.

    Raises:
        LabelsError: For too few rows.
        LeakError: For held-out labels that share groups or texts with the others.
        OptionError: For a share or number that cannot be held out.
    """
    if isinstance(heldout, Labels):
        assert_disjoint(labels, heldout)
        pool = labels
        held = heldout
    else:
        split = holdout_split(
            labels, share=heldout if heldout < 1 else heldout / len(labels), seed=seed
        )
        pool = split.train
        held = split.heldout
    rng = np.random.default_rng([seed, 31])
    order = rng.permutation(len(pool)).tolist()
    if level == "sample":
        names = pool.groups
        rank = {
            name: place
            for place, name in enumerate(dict.fromkeys(names[i] for i in order))
        }
        order.sort(key=lambda i: rank[names[i]])
    return Part(held, pool, tuple(order))


@dataclass(frozen=True, slots=True)
class Study:
    """A study with its labels read and its parts drawn. Nothing was spent yet."""

    config: StudyConfig
    labels: Labels
    parts: Mapping[int, Part]

    @classmethod
    def prepare(cls, request: StudyRequest) -> Study:
        """Read, draw and check all arms.

        Raises:
            LabelsError: For labels that cannot be read or split.
            LeakError: For held-out labels that share groups or texts with the others.
            OptionError: For arms that do not fit.
        """
        config = request.config()
        labels = read_labels(
            Path(config.labels),
            aspect=config.aspect,
            scale=config.scale,
            columns=column_roles(config.columns),
        )
        config = config.model_copy(
            update={"aspect": config.aspect or labels.aspect, "scale": labels.scale}
        )
        other = _heldout(config, labels)
        parts = {seed: draw(labels, other, seed, config.level) for seed in config.seeds}
        pool = min(len(part.pool) for part in parts.values())
        if config.study == "labels" and not request.has("train"):
            config = config.model_copy(update={"train": _doubling(pool)})
        too_many = [n for n in config.train if n != "all" and n > pool]
        if too_many:
            raise OptionError(
                f"train: {too_many[0]} labels are asked for, but beside the held-out rows there are only {pool}; hold "
                "out fewer (--heldout), or write all"
            )
        study = cls(config, labels, parts)
        for arm in config.arms:
            try:
                study.compiler(Cell("", arm.name, config.train[0], config.seeds[0]))
            except OptionError as error:
                raise OptionError(f"arm {arm.name!r}: {error}") from None
        return study

    def title(self, cell: Cell) -> str:
        """Return a cell's title, in as few words as tell it from the others."""
        c = self.config
        labels = "all labels" if cell.train == "all" else f"{cell.train} labels"
        parts = [
            cell.arm,
            *([cell.model] if len(c.lm) > 1 else []),
            *([labels] if len(c.train) > 1 else []),
        ]
        return ", ".join([*parts, f"seed {cell.seed}"])

    def cells(self) -> list[Cell]:
        """Return all cells: models outermost, since changing them is slow, then seeds.

        So the first results are whole.
        """
        c = self.config
        return [
            Cell(model, arm.name, size, seed)
            for model in c.lm or ("",)
            for seed in c.seeds
            for size in c.train
            for arm in c.arms
        ]

    def compile_run(self, cell: Cell) -> CompileRun:
        """Return the options of `judgesmith compile` for a cell."""
        c = self.config
        arm = c.arm(cell.arm)
        setup = c.setup(arm)
        own = dict(arm.settings)
        library_aspect = own.pop("library_aspect", c.settings.get("library_aspect"))
        own = {
            name: value
            for name, value in own.items()
            if name not in ("method", "optimizer")
        }
        # of drawn answers
        catalogue = setup.catalogue()
        if catalogue.takes("method.trial"):
            trial = {"method.trial": cell.seed}
        else:
            trial = {}
        settings = (
            trial | c.shared(arm) | own | {"run.level": c.level, "run.seed": cell.seed}
        )
        chosen = catalogue.resolve(settings, source="settings")
        return CompileRun(
            setup=setup,
            run=RunOptions(**chosen["run"]),
            model=ModelOptions(**chosen["lm"]),
            of_method=chosen["method"],
            of_optimizer=chosen["optimizer"],
            labels=Path(c.labels),
            lm=cell.model or None,
            output=Path(),
            aspect=c.aspect,
            scale=c.scale,
            columns=c.columns,
            library_aspect=library_aspect,
        )

    def compiler(self, cell: Cell) -> tuple[Judge, Compiler, Labels]:
        """Return the judge to be fitted, its compiler, and the labels to learn from."""
        run = self.compile_run(cell)
        part = self.parts[cell.seed]
        train = part.train(cell.train)
        compiler = run.compiler(train)
        options = compiler.options.model_copy(
            update={"max_calls": self.config.max_calls}
        )
        return (
            run.judge(train.aspect),
            replace(compiler, heldout=part.heldout, options=options),
            train,
        )

    def plan(self, cell: Cell) -> Plan:
        """Return an upper bound of a cell's calls, repeats of unreadable answers left aside. No model is called."""
        judge, compiler, train = self.compiler(cell)
        teacher = bool(self.compile_run(cell).run.teacher)
        lm = cell.model or None
        plan = planned(compiler, judge, train, lm, teacher=teacher)
        fitting = plan.calls - plan.heldout_calls
        if self.config.max_calls is not None:
            fitting = min(fitting, self.config.max_calls)
        # Zero-shot, by which the compiler judges them too, is an arm of its own here.
        judging = plan.heldout_calls - plan.heldout * judge.method.cost().calls_per_row
        return replace(
            plan,
            calls=fitting + judging,
            heldout_calls=judging,
            steps=max(1, plan.steps - plan.heldout),
        )

    def facts(self) -> dict[str, Any]:
        """Return the facts that config.yaml keeps beside the options."""
        c = self.config
        result: dict[str, Any] = {
            "rows": len(self.labels),
            "fingerprint": self.labels.fingerprint(),
            "files": c.files(),
            "judgesmith": version("judgesmith"),
            "dspy": version("dspy"),
        }
        if not _is_number(c.heldout):
            result["heldout_fingerprint"] = self.parts[c.seeds[0]].heldout.fingerprint()
        return result


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _heldout(config: StudyConfig, labels: Labels) -> float | Labels:
    if not _is_number(config.heldout):
        return read_labels(
            Path(config.heldout),
            aspect=config.aspect,
            scale=labels.scale,
            columns=column_roles(config.columns),
        )
    share = float(config.heldout)
    if not 0 < share < len(labels) or (share >= 1 and share != int(share)):
        raise OptionError(
            f"heldout {config.heldout}: a share lies between 0 and 1, a number of rows below the {len(labels)} there "
            "are; or name a file of labels"
        )
    return share


def _doubling(pool: int) -> tuple[Size, ...]:
    """10, then twice as many, below the whole pool; then all of it."""
    sizes = itertools.takewhile(
        lambda size: size < pool, (10 * 2**step for step in itertools.count())
    )
    return (*sizes, "all")


# The journal ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Journal:
    """The folder of a study. results: the last record of every cell. predictions: of the cells that are done.

    A cell's predictions are written before its record, so that a record without them cannot be.
    """

    folder: Path
    results: dict[Cell, dict[str, Any]] = field(default_factory=dict)
    predictions: dict[Cell, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, study: Study, *, overwrite: bool) -> Journal:
        """Begin a folder, or resume it.

        Raises:
            OptionError: If another study is in it, with the differences.
        """
        journal = cls(folder)
        config = folder / "config.yaml"
        results = folder / "results.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if overwrite:
                for name in FILES:
                    (folder / name).unlink(missing_ok=True)
            if config.exists():
                journal._compare(config, study)
                journal._read()
            elif results.exists():
                raise OptionError(
                    f"{folder} has results but no config.yaml; name another folder, or give --overwrite"
                )
            write_whole(config, study.config.to_yaml(study.facts()))
        except OSError as error:
            raise OptionError(
                f"-o {folder} cannot be written: {error.strerror or error}"
            ) from None
        return journal

    def _compare(self, path: Path, study: Study) -> None:
        data = read_yaml(path)
        facts = data.get("resolved") if isinstance(data.get("resolved"), dict) else {}
        assert isinstance(facts, dict)
        try:
            old = StudyRequest(study.config.study, data, origin=str(path)).config()
        except OptionError as error:
            raise OptionError(
                f"{error}; name another folder, or give --overwrite"
            ) from None
        differences = changes(old, study.config)
        now = study.facts()
        for name, subject in (
            ("fingerprint", "the labels"),
            ("heldout_fingerprint", "the held-out labels"),
        ):
            if facts.get(name) != now.get(name):
                differences.append(f"{subject} have changed")
        hashes = facts.get("files") or {}
        differences += [
            f"{name} has changed"
            for name, mark in now["files"].items()
            if hashes.get(name, mark) != mark
        ]
        if differences:
            more = f" (and {len(differences) - 4} more)" if len(differences) > 4 else ""
            raise OptionError(
                f"{self.folder} holds another study: {'; '.join(differences[:4])}{more}. Name another folder, or give "
                "--overwrite to start over"
            )

    def _read(self) -> None:
        for cell, line in _lines(self.folder / "results.jsonl"):
            self.results[cell] = line
        for cell, line in _lines(self.folder / "predictions.jsonl"):
            self.predictions.setdefault(cell, []).append(line)
        for cell in list(self.predictions):
            record = self.results.get(cell)
            if record is None or record["status"] != "done":
                del self.predictions[cell]
            else:  # a cell that was cut off between its predictions and its record has them twice
                self.predictions[cell] = self.predictions[cell][-record["heldout"] :]

    def done(self, cell: Cell) -> bool:
        """Return True if the cell is done."""
        return self.results.get(cell, {}).get("status") == "done"

    def add(
        self,
        cell: Cell,
        record: Mapping[str, Any],
        predictions: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Record a cell's result and its predictions, durably."""
        where = cell._asdict()
        rows = [{**where, **row} for row in predictions]
        self.results[cell] = {**where, **record}
        if rows:
            self.predictions[cell] = rows
        for name, written in (
            ("predictions.jsonl", rows),
            ("results.jsonl", [self.results[cell]]),
        ):
            with LineJournal(self.folder / name, durable=True) as file:
                file.write(*written)


def _lines(path: Path) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """The lines of a file of ours, without half a line that a kill leaves."""
    for number, line in read_journal(path) if path.exists() else ():
        try:
            cell = Cell(*(line[name] for name in Cell._fields))
        except KeyError:
            raise OptionError(
                f"{path}, line {number} is damaged; remove it, or give --overwrite"
            ) from None
        yield cell, line


# Running -------------------------------------------------------------------------------------------------------------


def run_cell(
    study: Study,
    cell: Cell,
    lm: LanguageModel,
    where: Connection | None,
    progress: Progress,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Fit a cell's arm and score the held-out rows: its record, and a line for each of these rows.

    Calls and tokens of the record count what the disk answered, too, as a budget does: arms share what was asked
    before, and each is charged for all that it asks for. `sent` calls and seconds are what they were.
    """
    judge, compiler, train = study.compiler(cell)
    model_for(judge, cell.model)  # one of signals is told that there is no model
    open_others(judge, where)
    engine.run(lm.capabilities())  # a model is probed once: that is no arm's cost
    teacher = study.compile_run(cell).run.teacher
    meter = lm.meter
    limit = study.config.max_calls
    if teacher:
        compiler = replace(compiler, teacher=open_model(teacher, where))
        assert compiler.teacher is not None
        compiler.teacher.meter = meter  # paid for from the same budget
    compiler = replace(compiler, progress=progress)
    started = time.monotonic()
    calls = meter.logical
    tokens = meter.logical_tokens
    sent = meter.usage.calls
    meter.max_calls = None if limit is None else meter.logical + limit
    try:
        plan = planned(compiler, judge, train, lm)
        fitted = fit(Job(compiler, judge, lm, plan), train)
    except BudgetError:
        raise BudgetError(
            f"the budget of {limit:,} calls was used up before there was a judge"
        ) from None
    finally:
        engine.run(
            asyncio.sleep(0)
        )  # calls that are being cancelled must not spend what is set free here
        meter.max_calls = None
    seconds = time.monotonic() - started
    fitting = {
        "calls": meter.logical - calls,
        "sent": meter.usage.calls - sent,
        "prompt_tokens": meter.logical_tokens[0] - tokens[0],
        "completion_tokens": meter.logical_tokens[1] - tokens[1],
        "seconds": round(seconds, 2),
    }
    if why := untried(compiler, fitted):
        # What is left is the zero-shot judge: as a result of this arm it would pass for a tie.
        return {"status": "failed", "reason": why, **fitting}, []
    heldout = study.parts[cell.seed].heldout
    examples = examples_of(heldout, fitted.judge)
    progress.stage("held-out rows", len(examples))
    calls = meter.logical
    scored = score_rows(
        brief(fitted.judge), examples, progress
    )  # the score without what comes after it
    if scored.failed == len(examples):
        raise ModelError(f"no held-out row got a score: {scored.verdicts[0].failure}")
    measured = agreement(
        scored.percents, examples, objective=Q(study.config.level), seed=cell.seed
    )
    record = fitted.record
    selected = fitted.record.selected
    options = fitted.judge.method.saved_options()
    kept = ("variant", "explain", "reading", "use_task", "use_criteria", "combine")
    result = {
        "status": "done",
        "labels": len(train),
        "heldout": len(examples),
        **measured.to_dict(),
        **fitting,
        "heldout_calls": meter.logical - calls,
        "selected": selected.name,
        "demos": selected.demos,
        "train_q": json_number(selected.agreement.q),
        "candidates": [c.to_dict() for c in record.candidates],
        "form": {name: options[name] for name in kept if name in options},
        "choice": record.reason,
        "stopped": record.stopped,
        "tried": fitted.tried(),
    }
    rows = [
        {
            "id": row.id,
            "group": row.group,
            "doc_id": row.doc_id,
            "system": row.system,
            "human": round(float(human), 6),
            "percent": json_number(float(percent)),
            "failure": verdict.failure,
        }
        for row, human, percent, verdict in zip(
            heldout.rows,
            heldout.scores.tolist(),
            scored.percents.tolist(),
            scored.verdicts,
            strict=True,
        )
    ]
    return result, rows


def untried(compiler: Compiler, fitted: Fitted) -> str | None:
    """Return why a search has no candidate beside zero-shot that could be chosen; None where it has one, or needs none.

    A method without prompts that can be taught needs none, unless its optimizer says that it failed.
    """
    record = fitted.record
    others = record.candidates[1:]
    taught = bool(fitted.judge.method.taught())
    if compiler.search.evaluations() <= 1 or not (taught or record.reason or others):
        return None
    if any(
        c.disqualified is None and "budget" not in (c.dropped or "") for c in others
    ):
        return None
    failed = [c.disqualified or c.dropped for c in others]
    told = [record.reason, record.stopped, *dict.fromkeys(filter(None, failed))]
    why = "; ".join(filter(None, told)) or "the search proposed none"
    return f"no candidate was {'judged whole' if others else 'tried'}: {why}"


class Follower(Progress, Protocol):
    """Watches a study."""

    def begin(self, cell: Cell) -> None:
        """Take note that a cell is about to run."""

    def end(
        self, cell: Cell, record: Mapping[str, Any], seconds_left: float | None
    ) -> None:
        """Take note that a cell is finished, or failed.

        Args:
            cell: The cell.
            record: Its result.
            seconds_left: Time for the other cells, from their calls; None for the last.
        """


def run_study(
    study: Study, journal: Journal, where: Connection | None, follower: Follower
) -> None:
    """Run the cells that are not done.

    What fails is recorded with its reason, and the study goes on; the next run tries it again. Ctrl-C keeps what is
    finished.
    """
    todo = [cell for cell in study.cells() if not journal.done(cell)]
    weights = [study.plan(cell).calls for cell in todo]
    started = time.monotonic()
    sampling = Sampling(study.config.temperature, study.config.max_tokens)
    models: dict[str, LanguageModel] = {}
    for number, cell in enumerate(todo):
        follower.begin(cell)
        rows: list[dict[str, Any]] = []
        try:
            if cell.model not in models:
                models[cell.model] = open_model(cell.model, where, sampling)
            record, rows = run_cell(study, cell, models[cell.model], where, follower)
        except Exception as error:
            # An optimizer of another library may raise anything; a night's other cells must not be lost for it.
            if os.environ.get("JUDGESMITH_DEBUG") and not isinstance(
                error, JudgesmithError
            ):
                raise
            record = {
                "status": "failed",
                "reason": f"{type(error).__name__}: {' '.join(str(error).split())}",
            }
        journal.add(cell, record, rows)
        done = sum(weights[: number + 1])
        left = sum(weights[number + 1 :])
        follower.end(
            cell, record, (time.monotonic() - started) * left / done if left else None
        )
