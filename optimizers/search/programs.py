"""Any DSPy program under a search of ours: its score is read from its predictions, its rows are plain examples.

A `ProgramJudge` is what the searches see of a program. What holds for judges holds for it: Q over the whole set, no row
run with its own group among the demonstrations, failures counted, zero-shot kept unless it is clearly beaten.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import dspy
import numpy as np

from ...agreement.fields import Field, number, text_of
from ...datasets.duplicates import merge
from ...datasets.records import Row
from ...errors import CallError, JudgesmithError, OptionError
from ...programs.judge import Judge
from ...programs.models import engine
from ...programs.models.lm import language_model
from ...programs.models.transport import Message
from ...programs.progress import counting
from ...signatures.values import Item, Verdict

#: Where a demonstration's group stands while a search runs: no field of a signature can have this name.
GROUP = "group of the row"

Step = tuple[str, dict[str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Fields:
    """How a prediction's score, an example's human score and what rows have in common are read: names or functions."""

    score_of: Field
    human_of: Field = "score"
    group_of: Field | None = None


@dataclass(slots=True)
class Known:
    """What all copies of a program share: its examples and what its predictors said, by the row's text."""

    examples: dict[str, dspy.Example] = field(default_factory=dict)
    steps: dict[str, list[Step]] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def text_in(example: dspy.Example) -> str:
    return "\n".join(str(value) for value in example.inputs().values())


def rows_of(examples: Sequence[dspy.Example], fields: Fields, known: Known, low: float, width: float) -> list[Any]:
    """The rows of a search: the text of the inputs, the human score in percent of the training rows' range, the group.
    Rows with equal or nearly equal texts share a group. Raises OptionError for an example without inputs or score."""
    rows: list[Row] = []
    for n, example in enumerate(examples):
        try:
            text = text_in(example)
        except ValueError:
            raise OptionError(f"row {n + 1} does not say its inputs; give them with .with_inputs('field', …)") from None
        name = f"row {n}: {text[:40]}" if fields.group_of is None else text_of(fields.group_of, example)
        known.examples[text] = example
        rows.append(Row(str(n), text, doc_id=name, group=name))
    return [
        dspy.Example(
            source="", output=row.output, context=None, reference=None, group=group, document=row.doc_id, system=None,
            score=100.0 * (number(fields.human_of, example, "human") - low) / width,
        ).with_inputs("output")
        for row, group, example in zip(rows, merge(rows).groups, examples, strict=True)
    ]  # fmt: skip


class ProgramJudge(Judge):
    """A program as searches see a judge. Its verdicts' percent is the score it gave, on the scale of the rows."""

    kind: ClassVar[str] = ""

    def __init__(self, program: dspy.Module, fields: Fields, known: Known, low: float, width: float) -> None:
        super().__init__()
        self.program = program
        self.program._compiled = False  # or DSPy would not show its predictors
        self.fields = fields
        self.seen = known
        self.low, self.width = low, width

    def taught(self) -> list[Any]:
        return list(self.program.predictors())

    def set_lm(self, lm: Any) -> None:
        self.program.set_lm(language_model(lm).dspy)

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        return {}

    # -- running

    def score_many(
        self,
        rows: Iterable[Any],
        *,
        concurrency: int | None = None,
        progress: bool | Callable[[int], None] | None = None,
    ) -> Iterator[Verdict]:
        at_once = concurrency or int(dspy.settings.num_threads or 1)
        with counting(progress, "judging", rows) as finished:
            for done, verdict in enumerate(engine.ordered_map(self._scored, rows, in_flight=at_once), start=1):
                yield verdict
                finished(done)

    async def _scored(self, item: Item) -> Verdict:
        example, program = self.seen.examples[item.output], self._without(item.group)
        try:
            prediction, steps = await asyncio.to_thread(_run, program, dict(example.inputs()))
            score = number(self.fields.score_of, prediction)
        except CallError as error:
            return Verdict.failed(str(error))
        except JudgesmithError:
            raise
        except Exception as error:
            return Verdict.failed(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        if math.isnan(score):
            return Verdict.failed("no score could be read from the prediction")
        if not any(p.demos for p in program.predictors()):
            self.seen.steps[item.output] = steps
        return Verdict(score=score, percent=100.0 * (score - self.low) / self.width)

    def _without(self, group: str | None) -> dspy.Module:
        """The program without the demonstrations of a group."""
        if all(_group(demo) != group for p in self.program.predictors() for demo in p.demos):
            return self.program
        made = self.program.deepcopy()
        for predictor in made.predictors():
            predictor.demos = [demo for demo in predictor.demos if _group(demo) != group]
        return made

    # -- demonstrations

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        return {"output": item.output, "group": item.group}

    def teach(self, demo: Mapping[str, Any]) -> None:
        """A labelled row as it is, its human score in the output that is the score; or what the program itself said."""
        text = demo["output"]
        if demo["augmented"]:
            named = dict(self.program.named_predictors())
            for name, inputs, said in self.seen.steps.get(text, ()):
                named[name].demos.append({**inputs, **said, "augmented": True, GROUP: demo["group"]})
            return
        example = self.seen.examples[text]
        values = dict(example.items())
        if isinstance(self.fields.score_of, str) and self.fields.score_of not in values:
            values[self.fields.score_of] = number(self.fields.human_of, example, "human")
        for predictor in self.taught():
            if any(name in values for name in predictor.signature.output_fields):
                known = {name: value for name, value in values.items() if name in predictor.signature.fields}
                predictor.demos.append({**known, GROUP: demo["group"]})

    def finished(self) -> dspy.Module:
        """The program with its demonstrations, as a teleprompter of DSPy's returns it."""
        for predictor in self.program.predictors():
            predictor.demos = [dspy.Example({k: v for k, v in d.items() if k != GROUP}) for d in predictor.demos]
        self.program._compiled = True
        return self.program


def _run(program: dspy.Module, inputs: Mapping[str, Any]) -> tuple[Any, list[Step]]:
    """A prediction, with what each predictor was asked and said."""
    with dspy.context(trace=[]):
        prediction = program(**inputs)
        names = {id(p): name for name, p in program.named_predictors()}
        steps = [(names[id(p)], dict(i), dict(said)) for p, i, said in dspy.settings.trace if id(p) in names]
    return prediction, steps


def _group(demo: Any) -> Any:
    return demo.get(GROUP)


def as_judge(
    program: dspy.Module,
    fields: Fields,
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example] | None,
) -> tuple[ProgramJudge, list[Any], list[Any] | None]:
    """A copy of the program as a judge, and the rows. Raises OptionError for rows that cannot be used."""
    if not trainset:
        raise OptionError("there are no training rows")
    human = np.array([number(fields.human_of, example, "human") for example in trainset])
    low, width = float(human.min()), float(human.max() - human.min()) or 1.0
    known = Known()
    everything = rows_of([*trainset, *(valset or ())], fields, known, low, width)
    judge = ProgramJudge(program.deepcopy(), fields, known, low, width)
    return judge, everything[: len(trainset)], None if valset is None else everything[len(trainset) :]
