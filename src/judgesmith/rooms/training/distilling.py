"""The whole run: a student trained on labels and synthetic examples, and what it is worth on rows that it never saw."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import CorrelationSum, Level
from judgesmith.agreement.differences import Difference
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Q
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import Split, assert_disjoint, holdout_split
from judgesmith.errors import LabelsError, OptionError
from judgesmith.optimizers.examples import (
    Scored,
    agreement,
    difference,
    documents,
    examples_of,
    humans,
    item_of,
    scale_of,
    score_rows,
)
from judgesmith.optimizers.findings import contract_of, origin_of
from judgesmith.optimizers.fitting.outcome import fit_decision
from judgesmith.optimizers.fitting.readings import surface_percents
from judgesmith.optimizers.options import level_for
from judgesmith.optimizers.seen import marks
from judgesmith.parts import read_options
from judgesmith.programs.aspects import OVERALL
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.files import file_sha256
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.programs.progress import Progress, Silent, watching
from judgesmith.programs.prompting.suspicion import guarded
from judgesmith.rooms.training.distilled.gguf_adapter import (
    GGUF_ADAPTER,
    write_gguf_adapter,
)
from judgesmith.rooms.training.distilled.judge import Distilled, StudentData
from judgesmith.rooms.training.distilled.marking import MOST_TOKENS, error_text
from judgesmith.rooms.training.distilled.student import Shape, Student, training_modules
from judgesmith.rooms.training.loop import Example, Trained, Training, TrainOptions
from judgesmith.rooms.training.synthesizing import apart_from
from judgesmith.rooms.training.synthetic import SyntheticRow, read_synthetic
from judgesmith.signatures.values import Criterion, Item, json_number

#: Fewer rows, or rows of fewer groups, tell nothing about which epoch is best.
FEWEST_TO_STOP = 6
CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, slots=True)
class Contender:
    """Agreement and cost of one judge on the held-out rows.

    calls, seconds: of a row; seconds depend on this machine and its load.
    """

    name: str
    agreement: AgreementValue
    calls: float
    seconds: float
    against: Difference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        gap = self.against
        names = () if gap is None else ("value", "low", "high", "p")
        lead = {name: json_number(getattr(gap, name)) for name in names} or None
        return {
            "name": self.name,
            **self.agreement.to_dict(),
            "calls_per_row": round(self.calls, 3),
            "seconds_per_row": round(self.seconds, 4),
            "student_less_this": lead,
        }


@dataclass(frozen=True, slots=True)
class DistillReport:
    """Result of training.

    contenders: the student first, then what it is compared with, on the same held-out rows. rows: of training, by their
    kind. trained: losses and Q by epoch.
    """

    contenders: tuple[Contender, ...]
    trained: Trained
    rows: Mapping[str, int]
    notes: tuple[str, ...]
    seconds: float
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def heldout(self) -> AgreementValue:
        """The student's agreement on held-out rows."""
        return self.contenders[0].agreement

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "contenders": [one.to_dict() for one in self.contenders],
            "epochs": [
                {"epoch": e.epoch, "loss": json_number(e.loss), "q": json_number(e.q)}
                for e in self.trained.epochs
            ],
            "best_epoch": self.trained.best,
            "rows": dict(self.rows),
            "bytes": dict(self.sizes),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True)
class Learnt:
    """A training row with its score in [0, 100].

    made: the synthetic example that it is from, None if people rated it.
    """

    row: Row
    percent: float
    example: SyntheticRow | None = None


@dataclass(frozen=True, slots=True)
class Distillation:
    """One run, before anything is computed.

    folder: of weights and checkpoints. synthetic: examples with their rows, which count less than human ratings.
    teacher: a judge that is measured beside the student.
    """

    method: Distilled
    split: Split
    lm: LanguageModel
    folder: Path
    options: TrainOptions
    synthetic: Sequence[tuple[SyntheticRow, Row]] = ()
    teacher: Judge | None = None
    level: Level = "pooled"
    seed: int = 0
    progress: Progress = field(default_factory=Silent)

    def __post_init__(self) -> None:
        if not self.synthetic and self.options.target != "score":
            raise OptionError(
                f"target={self.options.target} needs annotated examples; give --synthetic"
            )
        if not self.synthetic and not self.options.human_weight:
            raise OptionError(
                "human_weight=0 leaves nothing to train on; give --synthetic"
            )
        if self.options.target == "annotation":
            object.__setattr__(self, "method", self.method.with_(answer="annotation"))

    def run(self) -> tuple[Judge, DistillReport]:
        """Train, write the weights and measure.

        Raises:
            OptionError: If an option is invalid, or a checkpoint of another run.
            ModelError: If the base model cannot be trained.
            MissingExtraError: If torch or peft is not installed.
        """
        started = time.monotonic()
        if self.lm.weights is None:
            raise OptionError(
                f"{self.lm.name} is a server; a student is trained on local/NAME or gguf:PATH"
            )
        shape = Shape(self.options.rank, self.options.alpha, self.options.dropout)
        training_modules()
        student = Student(
            self.lm.weights,
            shape,
            dtype=self.options.dtype,
            threads=self.options.threads,
            seed=self.seed,
        )
        with (
            TemporaryDirectory() as folder
        ):  # before hours of training that llama.cpp could not run
            self._write_gguf(student, shape, Path(folder))
        learnt, stopping, notes = self.rows()
        examples = self._examples(student, learnt, notes)
        trained = Training(
            student,
            examples,
            self.options,
            seed=self.seed,
            checkpoint=self.folder / CHECKPOINT,
            judged=self._judged(student, stopping),
            progress=self.progress,
        ).run()
        judge = self._saved(student, shape)
        judge.outcome = replace(judge.outcome, decision=self._decision(student))
        report = self._report(judge, trained, examples, notes, started)
        judge.provenance = self._provenance(report, judge)
        judge.report = report
        return judge, report

    # -- rows

    def rows(self) -> tuple[list[Learnt], Labels | None, list[str]]:
        """Return the rows to be trained on, the labels that training stops by, and notes on them.

        Nothing of a held-out document, and nothing of those that it stops by, is trained on.
        """
        train = self.split.train
        notes = []
        training = train
        stopping = None
        if self.options.stop_share:
            try:
                parts = holdout_split(
                    train, share=self.options.stop_share, seed=self.seed
                )
                training = parts.train
                stopping = parts.heldout
            except LabelsError as error:
                notes.append(f"no rows to stop by ({error}); the last epoch is taken")
        if stopping is not None and (
            len(stopping) < FEWEST_TO_STOP or len(set(stopping.groups)) < FEWEST_TO_STOP
        ):
            notes.append(
                f"{len(stopping)} rows are too few to stop by; all are trained on, the last epoch is taken"
            )
            training = train
            stopping = None
        scale = scale_of(train)
        result = [
            Learnt(row, scale.to_percent(s))
            for row, s in zip(training.rows, training.scores.tolist(), strict=True)
        ]
        apart = [
            *self.split.heldout.rows,
            *(stopping.rows if stopping is not None else ()),
        ]
        synthetic = {row.id: example for example, row in self.synthetic}
        extra = apart_from([row for _, row in self.synthetic], apart)
        if len(extra) < len(self.synthetic):
            notes.append(
                f"{len(self.synthetic) - len(extra)} synthetic rows share a document or a text with rows that are held "
                "out, or that training stops by, and are left out"
            )
        result += [
            Learnt(row, synthetic[row.id].percent, synthetic[row.id]) for row in extra
        ]
        return result, stopping, notes

    def _examples(
        self, student: Student, rows: Sequence[Learnt], notes: list[str]
    ) -> list[Example]:
        """Return the training examples of the rows; rows left out are added to the notes."""
        result: list[Example] = []
        spanless = longer = 0
        for row in rows:
            if row.example is None and self.method.options.answer == "annotation":
                spanless += 1
            elif row.example is not None or self.options.human_weight:
                example = self._example(student, row)
                if len(example.prompt) > self.options.longest:
                    longer += 1
                else:
                    result.append(example)
        if spanless:
            notes.append(
                f"{spanless} human ratings have no error spans and are not trained on"
            )
        if longer:
            notes.append(
                f"{longer} prompts have more than {self.options.longest:,} tokens and are left out"
            )
        if not result:
            raise OptionError(
                f"every prompt has more than {self.options.longest:,} tokens; raise --longest"
            )
        return result

    def _example(self, student: Student, row: Learnt) -> Example:
        method = self.method
        aspect = ""
        written = ""
        if row.example is not None:
            aspect = row.example.aspect
            if aspect != method.options.aspect:
                criterion = Criterion(aspect[:80], row.example.definition)
                method = Distilled(
                    aspect,
                    task=row.example.task,
                    criteria=(criterion,),
                    answer=method.options.answer,
                )
            if method.options.answer == "annotation":
                written = error_text([e.model_dump() for e in row.example.errors])
        prompt = student.tokens(
            method.messages(guarded(row.row.unlabelled())[0]), written
        )
        if row.example is None and self.synthetic:
            weight = self.options.human_weight
        else:
            weight = 1.0
        # Rows are compared within a document and an aspect.
        document = f"{row.row.doc_id}|{aspect}"
        return Example(
            tuple(prompt),
            row.percent,
            document,
            weight,
            row.example is None,
            len(student.annotation_tokens(written)),
        )

    def _percents(self, student: Student, items: Sequence[Item]) -> list[float]:
        """Return the student's scores in percent, NaN where its answer comes to none."""
        prompts = [self.method.messages(guarded(item)[0]) for item in items]
        if self.method.options.answer == "annotation":
            return [student.write(messages, MOST_TOKENS)[1] for messages in prompts]
        return student.percents(
            [student.tokens(messages) for messages in prompts],
            self.options.tokens_at_once,
        )

    def _judged(
        self, student: Student, stopping: Labels | None
    ) -> Callable[[Student], float] | None:
        if stopping is None:
            return None
        examples = examples_of(stopping)
        items = [item_of(e) for e in examples]
        measure = CorrelationSum(self.level)
        systems = [e.system for e in examples]

        def q(now: Student) -> float:
            percents = np.array(self._percents(now, items))
            return measure(
                percents,
                humans(examples),
                documents(examples),
                systems if all(systems) else None,
            ).q

        return q

    # -- the judge

    def _saved(self, student: Student, shape: Shape) -> Judge:
        """Return the judge, with its weights written as peft and as llama.cpp read them."""
        adapter = student.save(self.folder, self.lm.name)
        gguf = self._write_gguf(student, shape, self.folder)
        data = StudentData(
            base=student.base,
            adapter=file_sha256(adapter),
            gguf=file_sha256(gguf),
            rank=shape.rank,
            alpha=shape.alpha,
        )
        method = self.method.with_()
        method.take(data)
        method.located(self.folder)
        return Judge(method, lm=self.lm, scale=scale_of(self.split.train))

    def _write_gguf(self, student: Student, shape: Shape, folder: Path) -> Path:
        """Write the weights in llama.cpp's format.

        Raises:
            ModelError: If llama.cpp has no name for a layer.
        """
        assert self.lm.weights is not None
        arrays = {name: p.numpy() for name, p in student.weights().items()}
        write_gguf_adapter(folder / GGUF_ADAPTER, arrays, self.lm.weights, shape)
        return folder / GGUF_ADAPTER

    def _decision(self, student: Student) -> Any:
        """Return the cut points of categories, by the student's scores of all training rows."""
        train = self.split.train
        if not train.levels:
            return None
        return fit_decision(
            self._percents(student, [item_of(e) for e in examples_of(train)]), train
        )

    # -- what it is worth

    def _report(
        self,
        judge: Judge,
        trained: Trained,
        examples: Sequence[Example],
        notes: list[str],
        started: float,
    ) -> DistillReport:
        plain = Judge(self.method, lm=self.lm, scale=judge.scale)
        judges: list[tuple[str, Judge]] = [
            ("student", judge),
            ("student alone", plain),
        ]
        if self.teacher is not None:
            judges.append(("teacher", self.teacher))
        held = examples_of(self.split.heldout)
        by = Q(self.level)
        scored = [(name, *self._scored(name, judge, held)) for name, judge in judges]
        counted = surface_percents(examples_of(self.split.train), held)
        student = scored[0][1].percents
        result = [
            Contender(
                name,
                agreement(one.percents, held, objective=by, seed=self.seed),
                calls,
                seconds,
                difference(student, one.percents, held, objective=by, seed=self.seed)
                if place
                else None,
            )
            for place, (name, one, calls, seconds) in enumerate(scored)
        ]
        surface = Contender(
            "length, overlap, repetition",
            agreement(counted, held, objective=by, seed=self.seed),
            0.0,
            0.0,
            difference(student, counted, held, objective=by, seed=self.seed),
        )
        contenders = (*result, surface)
        rows = {
            "human": sum(e.human for e in examples),
            "synthetic": sum(not e.human for e in examples),
            "heldout": len(held),
        }
        files = [
            path
            for path in sorted(self.folder.iterdir())
            if path.is_file() and path.name != CHECKPOINT
        ]
        sizes = {path.name: path.stat().st_size for path in files}
        messages = (*self.split.train.warnings, *notes, *_worth(contenders))
        return DistillReport(
            contenders, trained, rows, messages, time.monotonic() - started, sizes
        )

    def _scored(
        self, name: str, judge: Judge, held: Sequence[Any]
    ) -> tuple[Scored, float, float]:
        """Return a judge's scores of the held-out rows, with calls and seconds of a row; cached answers take less."""
        self.progress.stage(f"held-out rows, {name}", len(held))
        started = time.monotonic()
        scored = score_rows(judge, held, self.progress)
        calls = sum(v.usage.calls + v.usage.cached for v in scored.verdicts)
        return scored, calls / len(held), (time.monotonic() - started) / len(held)

    def _provenance(self, report: DistillReport, judge: Judge) -> dict[str, Any]:
        train = self.split.train
        held = self.split.heldout
        student = report.contenders[0]
        zero = report.contenders[1]
        return {
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "versions": {
                name: version(name)
                for name in ("judgesmith", "torch", "transformers", "peft")
            },
            "contract": contract_of(train, judge.lm),
            "labels": origin_of(train)
            | {
                "rows": len(train) + len(held),
                "train": len(train),
                "heldout": len(held),
            },
            "training": self.options.settings()
            | {"synthetic": report.rows["synthetic"]},
            "seed": self.seed,
            "heldout": student.agreement.to_dict()
            | {"cross_validated": False, "folds": 0},
            "zero_shot": zero.agreement.to_dict(),
            "difference": zero.to_dict()["student_less_this"],
            "report": report.to_dict(),
            "notes": list(report.notes),
            **marks([*train.rows, *(row for _, row in self.synthetic)]),
        }


def _worth(contenders: Sequence[Contender]) -> list[str]:
    """Return reasons against the student, in sentences."""
    student = contenders[0].agreement
    lines = []
    if student.high < 0:
        lines.append(
            "the interval of the student's agreement lies below 0: it runs against people; do not use it"
        )
    elif student.low <= 0:
        lines.append(
            "the interval of the student's agreement holds 0: it cannot be distinguished from a judge that guesses; "
            "do not use it"
        )
    for other in contenders[1:]:
        gap = other.against
        if gap is None or math.isnan(gap.value):
            continue
        lead = f"difference {gap.value:.2f} [{gap.low:.2f}, {gap.high:.2f}]"
        text = f"Q {student.q:.2f} against {other.agreement.q:.2f}, {lead}"
        if gap.value <= 0:
            lines.append(
                f"the student is not worth it: no better than the {other.name} ({text})"
            )
        elif gap.low <= 0 and other.name != "teacher":
            lines.append(
                f"it is not sure that the student is better than the {other.name} ({text})"
            )
    return lines


def distill(
    labels: Labels | Any,
    *,
    base: str | LanguageModel,
    folder: str | Path,
    method: Distilled | None = None,
    heldout: float | Labels = 0.25,
    synthetic: str | Path | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Judge:
    """Train a small model to judge: `distill(labels, base="local/qwen2.5-0.5b", folder="judge.student")`.

    After an interruption the same call resumes where it stopped.

    Args:
        labels: human ratings, as for `compile`.
        base: model to train: `local/NAME` or `gguf:PATH`.
        folder: folder of the weights; save the judge beside it.
        method: aspect to judge; by default the labels' own.
        heldout: share of the rows in (0, 1), or other labels, to measure agreement on.
        synthetic: a file that `judgesmith synthesize` wrote.
        progress: as for `compile`.
        **options: fields of `TrainOptions`, seed, level, and teacher, a judge to be measured beside the student.

    Returns:
        The judge; its `report` has its agreement with people, the plain model's and the teacher's.

    Raises:
        LabelsError: If labels cannot be used.
        LeakError: If training and held-out rows share a document or a text.
        OptionError: If an option is invalid.
        ModelError: If the base model cannot be trained.
        MissingExtraError: If torch or peft is not installed.
    """
    labels = labels if isinstance(labels, Labels) else read_labels(labels)
    seed = int(options.pop("seed", 0))
    level: Level = options.pop("level", None) or level_for(labels)
    teacher = options.pop("teacher", None)
    if method is None:
        method = Distilled.from_options(
            {}, labels_aspect=None if labels.aspect in OVERALL else labels.aspect
        )
    extra = synthetic_rows(synthetic)
    with watching(progress, "training") as watcher:
        return Distillation(
            method,
            split_of(labels, heldout, seed),
            language_model(base),
            Path(folder),
            read_options(TrainOptions, options, "distill"),
            extra,
            teacher,
            level,
            seed,
            watcher,
        ).run()[0]


def split_of(labels: Labels, heldout: float | Labels, seed: int) -> Split:
    """Return training and held-out rows, which share no document and no text.

    Raises:
        LabelsError: If a side has too few rows.
        LeakError: If rows of both sides share a document or a text.
        OptionError: If the share is no share.
    """
    if not isinstance(heldout, Labels):
        return holdout_split(labels, share=heldout, seed=seed)
    if heldout.scale != labels.scale:
        raise OptionError("labels and held-out rows are on two scales; give --scale")
    assert_disjoint(labels, heldout)
    return Split(labels, heldout)


def synthetic_rows(path: str | Path | None) -> list[tuple[SyntheticRow, Row]]:
    """Return the examples of a synthetic file, without those whose texts address a judge.

    Raises:
        LabelsError: If a line is invalid.
    """
    result = [] if path is None else read_synthetic(Path(path))
    return [(example, row) for example, row in result if not guarded(row)[1]]
