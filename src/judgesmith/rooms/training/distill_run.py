"""A student to be trained: labels, base model, and what was set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Level
from judgesmith.compiling.run import method_in_words
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import Split
from judgesmith.errors import OptionError
from judgesmith.optimizers.options import level_for
from judgesmith.parts import option
from judgesmith.programs.artifact import save_or_keep
from judgesmith.programs.models.provider import is_local
from judgesmith.rooms.training.distilled.judge import Distilled
from judgesmith.rooms.training.distilled.student import training_modules
from judgesmith.rooms.training.distilling import (
    CHECKPOINT,
    Distillation,
    DistillReport,
    split_of,
    synthetic_rows,
)
from judgesmith.rooms.training.loop import TrainOptions
from judgesmith.rooms.training.synthetic import SyntheticRow
from judgesmith.running.console import Watch
from judgesmith.running.opening import (
    benchmark_scale,
    check_writable,
    open_judge,
    open_model,
    rows_file,
)
from judgesmith.running.settings import Catalogue, JudgeInWords, Owner

#: Characters of a token, and tokens of a prompt beside the row's own.
_CHARACTERS = 4.0
_PROMPT = 170


class RunOptions(JudgeInWords, TrainOptions):
    """Settings of training a student, and its aspect."""

    level: Level | None = option(
        None,
        "Level of agreement: pooled, sample or system. none: pooled, and sample for preferences.",
    )


def catalogue() -> Catalogue:
    """Return the options of a run."""
    return Catalogue(
        (Owner("run", "distill", RunOptions),),
        "distill",
        more="; see `judgesmith list options distill`",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillRequest:
    """The files, model and options of one training run."""

    labels: Path
    base: str
    output: Path
    synthetic: Path | None = None
    aspect: str | None = None
    scale: tuple[float, float] | None = None
    heldout: str = "0.25"
    """Share of the rows, or a file of other labels."""
    library_aspect: str | None = None
    teacher: Path | None = None
    seed: int = 0
    overwrite: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column names by role."""
    options: RunOptions = field(default_factory=RunOptions)


class DistillRun:
    """One run of the command."""

    def __init__(self, request: DistillRequest) -> None:
        self.request = request
        self.options = request.options
        self.folder = request.output.with_name(f"{request.output.stem}.student")
        """Folder of the weights."""

    @cached_property
    def split(self) -> Split:
        """The labels, split into training and held-out rows."""
        train = self._read(self.request.labels)
        try:
            share: float | Labels = float(self.request.heldout)
        except ValueError:
            share = self._read(Path(self.request.heldout), train)
        return split_of(train, share, self.request.seed)

    def _read(self, path: Path, like: Labels | None = None) -> Labels:
        aspect = self.request.aspect
        scale = self.request.scale
        if like is not None:
            aspect = aspect or like.aspect
            scale = scale or like.scale
        scale = scale or benchmark_scale(str(path), aspect)
        return read_labels(
            rows_file(str(path)),
            aspect=aspect,
            scale=scale,
            columns=self.request.columns,
        )

    @cached_property
    def method(self) -> Distilled:
        """The method of the aspect, before it is trained.

        Raises:
            OptionError: If it cannot be built.
        """
        aspect = self.split.train.aspect
        library_aspect = self.request.library_aspect
        method = method_in_words(
            Distilled.kind, {}, self.options, aspect, library_aspect
        )
        assert isinstance(method, Distilled)
        return method

    @cached_property
    def examples(self) -> list[tuple[SyntheticRow, Row]]:
        """Synthetic examples with their rows.

        Raises:
            LabelsError: If a line is invalid.
        """
        return synthetic_rows(self.request.synthetic)

    def plan(self) -> dict[str, Any]:
        """Return the estimated cost of training, without a model."""
        split = self.split
        options = self.options
        extra = [row for _, row in self.examples]
        rows = [*split.train.rows, *extra]
        tokens = (
            int(np.mean([len(r.source) + len(r.output) for r in rows]) / _CHARACTERS)
            + _PROMPT
        )
        if options.target == "annotation":
            human = 0.0
        else:
            human = len(split.train) * (1 - options.stop_share)
        steps = int(np.ceil((human + len(extra)) / options.batch)) * options.epochs
        return {
            "labels": len(split.train) + len(split.heldout),
            "training rows": len(split.train),
            "synthetic rows": len(extra),
            "held-out rows": len(split.heldout),
            "tokens a row": tokens,
            "steps at most": steps,
            "tokens to train on at most": int(steps * options.batch * tokens),
            "aspect": self.method.options.aspect,
        }

    def run(self) -> DistillReport:
        """Train, save and measure.

        Raises:
            JudgesmithError: If a step fails.
        """
        if not is_local(self.request.base):
            raise OptionError(
                f"--base {self.request.base}: a student is trained on local/NAME or gguf:PATH"
            )
        check_writable(
            self.request.output,
            self.request.labels,
            self.request.synthetic,
            self.request.teacher,
        )
        training_modules()  # before a download that would be for nothing
        if self.request.overwrite:
            (self.folder / CHECKPOINT).unlink(missing_ok=True)
        lm = open_model(self.request.base)
        if self.request.teacher is None:
            teacher = None
        else:
            teacher = open_judge(self.request.teacher, None)
        options = TrainOptions(
            **{name: getattr(self.options, name) for name in TrainOptions.model_fields}
        )
        steps = int(self.plan()["steps at most"]) + len(self.split.heldout) * (
            2 if teacher is None else 3
        )
        with Watch("training", steps) as watch:
            judge, report = Distillation(
                self.method,
                self.split,
                lm,
                self.folder,
                options,
                self.examples,
                teacher,
                self.options.level or level_for(self.split.train),
                self.request.seed,
                watch,
            ).run()
        save_or_keep(judge, self.request.output)
        return report
