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
from ..examples import rated

#: Where a demonstration's group stands while a search runs: no field of a signature can have this name.
GROUP = "group of the row"


@dataclass(frozen=True, slots=True)
class Fields:
    """How a prediction's score, an example's human score and what rows have in common are read: names or functions."""

    score_of: Field
    human_of: Field = "score"
    group_of: Field | None = None

    def human(self, example: dspy.Example) -> float:
        return number(self.human_of, example, "human")


@dataclass(slots=True)
class Task:
    """What all copies of a program share. Scores are on the scale of the training rows: `low` and its width are 0 and
    100 percent."""

    fields: Fields
    low: float
    width: float
    examples: dict[str, dspy.Example] = field(default_factory=dict)
    """By their texts."""
    steps: dict[str, list[tuple[str, dict[str, Any], dict[str, Any]]]] = field(default_factory=dict)
    """What the predictors were asked and answered without demonstrations, by the row's text."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def percent(self, score: float) -> float:
        return 100.0 * (score - self.low) / self.width

    def rows(self, examples: Sequence[dspy.Example]) -> list[dspy.Example]:
        """The rows of a search: the text of the inputs, the human score in percent, the group. Rows with equal or
        nearly equal texts share a group. Raises OptionError for an example without inputs or score."""
        rows: list[Row] = []
        for n, example in enumerate(examples):
            try:
                text = "\n".join(str(value) for value in example.inputs().values())
            except ValueError:
                raise OptionError(
                    f"row {n + 1} does not say its inputs; give them with .with_inputs('field', …)"
                ) from None
            group_of = self.fields.group_of
            name = f"row {n}: {text[:40]}" if group_of is None else text_of(group_of, example)
            self.examples[text] = example
            rows.append(Row(str(n), text, doc_id=name, group=name))
        return rated(merge(rows).applied(rows), (self.percent(self.fields.human(example)) for example in examples))


def as_judge(
    program: dspy.Module, fields: Fields, trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example] | None
) -> tuple[ProgramJudge, list[Any], list[Any] | None]:
    """A copy of the program as a judge, and the rows. Raises OptionError for rows that cannot be used."""
    if not trainset:
        raise OptionError("there are no training rows")
    human = np.array([fields.human(example) for example in trainset])
    task = Task(fields, float(human.min()), float(human.max() - human.min()) or 1.0)
    rows = task.rows([*trainset, *(valset or ())])
    judge = ProgramJudge(program.deepcopy(), task)
    return judge, rows[: len(trainset)], None if valset is None else rows[len(trainset) :]


class ProgramJudge(Judge):
    """A program as searches see a judge. Its verdicts' percent is the score it gave, on the scale of the rows."""

    kind: ClassVar[str] = ""

    def __init__(self, program: dspy.Module, task: Task) -> None:
        super().__init__()
        self.program = program
        self.program._compiled = False  # or DSPy would not show its predictors
        self.search_task = task

    def taught(self) -> list[Any]:
        return list(self.program.predictors())

    def set_lm(self, lm: Any) -> None:
        self.program.set_lm(language_model(lm).dspy)

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        return {}

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
        task, program = self.search_task, self._without(item.group)

        def run() -> Any:
            """A prediction; what each predictor was asked and answered is noted where it had no demonstrations."""
            with dspy.context(trace=[]):
                prediction = program(**task.examples[item.output].inputs())
                names = {id(p): name for name, p in program.named_predictors()}
                steps = [(names[id(p)], dict(i), dict(o)) for p, i, o in dspy.settings.trace if id(p) in names]
            return prediction, steps

        try:
            prediction, steps = await asyncio.to_thread(run)
            score = number(task.fields.score_of, prediction)
        except CallError as error:
            return Verdict.failed(str(error))
        except JudgesmithError:
            raise
        except Exception as error:
            return Verdict.failed(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        if math.isnan(score):
            return Verdict.failed("no score could be read from the prediction")
        if not any(p.demos for p in program.predictors()):
            task.steps[item.output] = steps
        return Verdict(score=score, percent=task.percent(score))

    def _without(self, group: str | None) -> dspy.Module:
        """The program without the demonstrations of a group."""
        if all(demo.get(GROUP) != group for p in self.program.predictors() for demo in p.demos):
            return self.program
        made = self.program.deepcopy()
        for predictor in made.predictors():
            predictor.demos = [demo for demo in predictor.demos if demo.get(GROUP) != group]
        return made

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        return {"output": item.output, "group": item.group}

    def teach(self, demo: Mapping[str, Any]) -> None:
        """A labelled row as it is, its human score in the output that is the score; or what the program itself
        answered."""
        task, text = self.search_task, demo["output"]
        if demo["augmented"]:
            named = dict(self.program.named_predictors())
            for name, inputs, outputs in task.steps.get(text, ()):
                named[name].demos.append({**inputs, **outputs, "augmented": True, GROUP: demo["group"]})
            return
        values, score_of = dict(task.examples[text].items()), task.fields.score_of
        if isinstance(score_of, str) and score_of not in values:
            values[score_of] = task.fields.human(task.examples[text])
        for predictor in self.taught():
            if any(name in values for name in predictor.signature.output_fields):
                known = {name: value for name, value in values.items() if name in predictor.signature.fields}
                predictor.demos.append({**known, GROUP: demo["group"]})

    def finished(self) -> dspy.Module:
        """The program with its demonstrations, as a teleprompter of DSPy's returns it."""
        for predictor in self.program.predictors():
            predictor.demos = [dspy.Example({k: v for k, v in d.items() if k != GROUP}) for d in predictor.demos]
        self.program._compiled = True
        self.program.candidate_programs = self.candidate_programs
        return self.program
