"""Synthetic examples: outputs of several systems, perturbed ones among them, that judges annotate.

Source: OpeNLGauge (§5.1): of each input the outputs of N systems, of each output M aspects, annotated by an ensemble.
Perturbing outputs for the lower end of the scale is ours.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgesmith.datasets.duplicates import shared
from judgesmith.datasets.loading import iter_rows
from judgesmith.datasets.perturbations.registry import (
    Pair,
    Perturbation,
    Text,
    find_perturbations,
    pairs_of,
)
from judgesmith.datasets.row import Row
from judgesmith.errors import BudgetError, OptionError
from judgesmith.likeness import folded
from judgesmith.parts import Options, option
from judgesmith.programs.active_critic.scoring import OverallScorer, TaskContext
from judgesmith.programs.artifact import fingerprint
from judgesmith.programs.atomic import write_whole
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.transport import Message
from judgesmith.programs.openlgauge.annotation import Annotator, Focus
from judgesmith.programs.prompting.layouts import DIGITS, HUNDRED, whole
from judgesmith.programs.prompting.suspicion import guarded
from judgesmith.rooms.training.distilled.marking import MarkedLayout, error_text
from judgesmith.rooms.training.synthetic import SyntheticRow, read_synthetic
from judgesmith.running.console import Watch
from judgesmith.running.journal import read_journal
from judgesmith.running.limits import Limits
from judgesmith.running.settings import Catalogue, Owner
from judgesmith.scoring.scoring import Run, score_rows
from judgesmith.signatures.values import Criterion, Item


class SynthesisOptions(Options):
    """Settings of annotating and of filtering."""

    outputs: int = option(
        4, "Maximum number of outputs per input, drawn at random.", ge=1
    )
    aspects: int = option(
        3,
        "Maximum number of aspects per output, drawn from the aspects of the judges.",
        ge=1,
    )
    perturbed: int = option(
        1,
        "Number of perturbed copies to add per input.",
        ge=0,
    )
    perturbations: tuple[str, ...] = option(
        ("degradation",),
        "Perturbations of the copies: names or groups as in `discern --perturb`, but only those that need no model.",
    )
    answer: Literal["digit", "percent", "annotation"] = option(
        "digit",
        "Answer in the chats: a digit 1-5, a number 0-100, or error spans and then that number. `judgesmith distill` "
        "always uses the exact score.",
    )
    step: int = option(
        1, "Rounding step of the scores, on the scale 0-100.", ge=1, le=50
    )


def catalogue() -> Catalogue:
    """Return the options of a run."""
    owner = Owner("run", "synthesize", SynthesisOptions)
    return Catalogue(
        (owner,), "synthesize", more="; see `judgesmith list options synthesize`"
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An output to be annotated, where it is from, and in which aspects."""

    row: Row
    origin: str
    aspects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Synthesized:
    """The result of a run. left: reason -> how many were left out. calls: that this run sent."""

    kept: int
    candidates: int
    left: Mapping[str, int]
    calls: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "kept": self.kept,
            "candidates": self.candidates,
            "left_out": dict(self.left),
            "calls": self.calls,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """A run of synthesis.

    judges: those of one aspect are annotators of it, whose mean counts. apart: rows (of labels) whose documents and
    texts must not be among the inputs.
    """

    rows: Path
    judges: Sequence[Judge]
    output: Path
    options: SynthesisOptions = field(default_factory=SynthesisOptions)
    apart: Sequence[Row] = ()
    columns: Mapping[str, str] | None = None
    limit: int | None = None
    seed: int = 0
    limits: Limits = field(default_factory=Limits)

    @cached_property
    def by_aspect(self) -> dict[str, list[Judge]]:
        """The judges by their aspect."""
        result: dict[str, list[Judge]] = defaultdict(list)
        for judge in self.judges:
            result[aspect_of(judge)].append(judge)
        return dict(result)

    @property
    def folder(self) -> Path:
        """Folder of finished parts, for the next run."""
        return self.output.with_name(f"{self.output.stem}.work")

    # -- inputs

    @cached_property
    def inputs(self) -> tuple[dict[str, list[Row]], int]:
        """The rows by document, without those that are held apart, and how many these are."""
        rows = [
            row
            for row, _ in iter_rows(self.rows, columns=self.columns)
            if row.output.strip()
        ][: self.limit]
        if not rows:
            raise OptionError(
                f"{self.rows.name}: no row has an output; name its column with --columns output=NAME"
            )
        allowed = apart_from(rows, self.apart)
        result: dict[str, list[Row]] = defaultdict(list)
        for row in allowed:
            result[row.doc_id].append(row)
        return dict(result), len(rows) - len(allowed)

    def plan(self) -> dict[str, Any]:
        """Return the largest possible cost of a run, without a call."""
        documents, apart = self.inputs
        o = self.options
        outputs = sum(
            min(o.outputs, len(rows)) + o.perturbed for rows in documents.values()
        )
        aspects = min(o.aspects, len(self.by_aspect))
        mean = sum(judge.method.cost().calls_per_row for judge in self.judges) / len(
            self.by_aspect
        )
        return {
            "inputs": len(documents),
            "rows held apart": apart,
            "outputs at most": outputs,
            "aspects": ", ".join(self.by_aspect),
            "examples at most": outputs * aspects,
            "calls to judges at most": math.ceil(outputs * aspects * mean),
        }

    def steps(self) -> int:
        """Examples to be annotated, at most."""
        return (
            int(self.plan()["examples at most"])
            * len(self.judges)
            // len(self.by_aspect)
        )

    def candidates(self) -> Iterator[Candidate]:
        """Yield every output to be annotated. The same rows, options and seed give the same ones."""
        documents, _ = self.inputs
        aspects = sorted(self.by_aspect)
        texts = [
            Text(row.id, row.output, row.source, row.context, group=row.group)
            for d in documents.values()
            for row in d
        ]
        ways = [
            way
            for way, _ in find_perturbations(self.options.perturbations)
            if not {"lm", "wrong"} & {*way.needs}
        ]
        for name, rows in documents.items():
            rng = random.Random(f"{self.seed}|{name}")
            drawn = [
                (row, "given")
                for row in rng.sample(rows, min(self.options.outputs, len(rows)))
            ]
            for _ in range(self.options.perturbed if ways else 0):
                copy = self._perturbed(rng.choice(rows), ways, texts, rng)
                drawn += [] if copy is None else [copy]
            seen: set[str] = set()
            for row, origin in drawn:
                key = folded(row.output).key
                if key in seen:
                    continue
                seen.add(key)
                chosen = rng.sample(aspects, min(self.options.aspects, len(aspects)))
                yield Candidate(row, origin, tuple(sorted(chosen)))

    def _perturbed(
        self,
        row: Row,
        ways: Sequence[Perturbation],
        texts: Sequence[Text],
        rng: random.Random,
    ) -> tuple[Row, str] | None:
        """Return a copy perturbed in the first way that this text allows; None where none does."""
        own = Text(row.id, row.output, row.source, row.context, group=row.group)
        others = [text for text in texts if text.group != own.group][:50]
        for way in rng.sample(list(ways), len(ways)):
            degree = rng.choice(list(way.degrees))
            pair = next(
                iter(pairs_of(way, [own, *others], degrees=[degree], seed=self.seed))
            )
            if isinstance(pair, Pair):
                name = f"{pair.perturbation}:{degree}"
                perturbed = replace(
                    row,
                    id=f"{row.id}+{name}",
                    output=pair.perturbed,
                    scores={},
                    ratings={},
                    raters={},
                )
                return perturbed, f"perturbed by {name}"
        return None

    # -- the run

    def run(self, watch: Watch) -> Synthesized:
        """Annotate, filter and write.

        What is finished stays in the work folder, from which the same command resumes.

        Raises:
            BudgetError: If a limit is reached.
            OptionError: If the output is another file.
        """
        self._refuse_other()
        candidates = list(self.candidates())
        watch.stage("annotating", len(candidates))
        self.folder.mkdir(parents=True, exist_ok=True)
        verdicts: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        calls = 0
        spent = 0
        paid = 0.0
        for aspect, judges in self.by_aspect.items():
            rows = [c.row for c in candidates if aspect in c.aspects]
            for judge in judges:
                path = self.folder / f"{fingerprint(judge)}-{self._mark(rows)}.jsonl"
                before = judge.lm.meter.logical, judge.lm.meter.cost
                run = Run(judge, path, False, watch, self._rest(spent, paid))
                calls += score_rows(
                    run,
                    iter([(row, {"id": row.id, "output": row.output}) for row in rows]),
                ).calls
                spent += judge.lm.meter.logical - before[0]
                paid += judge.lm.meter.cost - before[1]
                for _, data in read_journal(path):
                    verdicts[aspect, data["id"]].append(data["verdict"])
        return self._written_out(candidates, verdicts, calls)

    def _rest(self, spent: int, paid: float) -> Limits:
        """Return the rest of the run's limits.

        Raises:
            BudgetError: If nothing is left.
        """
        limits = self.limits
        calls = None if limits.max_calls is None else limits.max_calls - spent
        cost = None if limits.max_cost is None else limits.max_cost - paid
        if (calls is not None and calls < 1) or (cost is not None and cost <= 0):
            raise BudgetError(
                "the budget is used up; what is finished is kept, and the same command resumes from there"
            )
        return limits.model_copy(update={"max_calls": calls, "max_cost": cost})

    def _refuse_other(self) -> None:
        if self.output.exists() and not self.output.read_bytes()[:60].startswith(
            b'{"format":"judgesmith.synthetic/'
        ):
            raise OptionError(
                f"-o {self.output} exists and holds no synthetic examples; name another file"
            )

    def _mark(self, rows: Sequence[Row]) -> str:
        key = json.dumps([[row.id, row.source, row.output] for row in rows])
        return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def _written_out(
        self,
        candidates: Sequence[Candidate],
        verdicts: Mapping[tuple[str, str], Sequence[dict[str, Any]]],
        calls: int,
    ) -> Synthesized:
        left: Counter[str] = Counter()
        finished: list[SyntheticRow] = []
        for aspect in self.by_aspect:
            for candidate in candidates:
                if aspect in candidate.aspects:
                    example = self._example(
                        candidate, aspect, verdicts.get((aspect, candidate.row.id), ())
                    )
                    if isinstance(example, str):
                        left[example] += 1
                    else:
                        finished.append(example)
        if not finished:
            raise OptionError(
                f"no example is left: {', '.join(f'{n} {why}' for why, n in left.items())}"
            )
        write_whole(
            self.output,
            "".join(e.model_dump_json(exclude_none=True) + "\n" for e in finished),
        )
        read_synthetic(self.output)
        apart = self.inputs[1]
        if not apart:
            notes = []
        else:
            notes = [
                f"{apart} rows share documents or texts with rows held apart and were not used"
            ]
        return Synthesized(len(finished), len(candidates), left, calls, tuple(notes))

    def _example(
        self, candidate: Candidate, aspect: str, verdicts: Sequence[dict[str, Any]]
    ) -> SyntheticRow | str:
        """Return the example, or why it is none."""
        percents = []
        errors = []
        explanation = ""
        for verdict in verdicts:
            if not verdict["failure"] and verdict["percent"] is not None:
                percents.append(verdict["percent"])
            errors += verdict["errors"]
            explanation = explanation or verdict["explanation"]
        if not percents:
            return "no score"
        errors = errors[:64]
        row = candidate.row
        item, suspicious = guarded(Item.of(row))
        if suspicious:
            return "the text addresses a judge"
        step = self.options.step
        percent = float(np.mean(percents))
        if step > 1:
            percent = min(100.0, step * round(percent / step))
        learnt = self.by_aspect[aspect][0].method.knowledge
        criterion = next(
            (c for c in learnt.criteria if c.name == aspect), Criterion(aspect[:80], "")
        )
        knowledge = TaskContext(learnt.description, (criterion,), aspect)
        answer = {"role": "assistant", "content": self._answer(percent, errors)}
        return SyntheticRow.model_validate(
            {
                "id": f"{row.id}|{aspect}",
                "source": row.source,
                "output": row.output,
                "context": row.context,
                "reference": row.reference,
                "system": row.system,
                "doc_id": row.doc_id,
                "group": row.group,
                "aspect": aspect,
                "percent": round(percent, 4),
                "judge": "+".join(fingerprint(j) for j in self.by_aspect[aspect])[:400],
                "made": candidate.origin,
                "definition": criterion.definition,
                "task": knowledge.task,
                "explanation": explanation or "",
                "errors": errors,
                "messages": [*self._prompt(item, knowledge), answer],
            }
        )

    def _prompt(self, item: Item, knowledge: TaskContext) -> list[Message]:
        """Return a prompt that asks for an answer in the chosen form."""
        if self.options.answer == "annotation":
            marker = Annotator(MarkedLayout(HUNDRED))
            focus = Focus(
                knowledge.aspect, knowledge.criteria[0].definition, knowledge.task
            )
            return marker.predict.messages(marker.inputs(item, focus))
        scorer = OverallScorer(
            "none", "expected" if self.options.answer == "digit" else "said"
        )
        return scorer.predict.messages(scorer.inputs(item, knowledge))

    def _answer(self, percent: float, errors: Sequence[Mapping[str, Any]]) -> str:
        score = f"Score: {whole(DIGITS.from_percent(percent) if self.options.answer == 'digit' else percent)}"
        if self.options.answer == "annotation":
            return f"{error_text(errors)}\n\n{score}"
        return score


def apart_from(rows: Sequence[Row], held: Sequence[Row]) -> list[Row]:
    """Return the rows that have no document, group or text in common with those held apart."""
    names = set[str]()
    for row in held:
        names |= {row.group, row.doc_id}
    left = [row for row in rows if names.isdisjoint((row.group, row.doc_id))]
    while left and held:
        met = {pair.one for pair in shared(left, held)}
        if not met:
            break
        left = [row for number, row in enumerate(left) if number not in met]
    return left


def aspect_of(judge: Judge) -> str:
    """Return a judge's aspect, or that of the labels that it learnt from."""
    named = judge.method.saved_options().get("aspect") or (
        judge.provenance.get("labels") or {}
    ).get("aspect")
    return str(named or "overall")
