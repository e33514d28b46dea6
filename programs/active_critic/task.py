"""Task inference (Active-Critic §4.1): what is being judged, and by which criteria, from labelled examples alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import dspy
from dspy.predict.parameter import Parameter

from judgesmith.disarming import disarm
from judgesmith.errors import CallError
from judgesmith.programs.answers.criteria import Drawn
from judgesmith.programs.models.as_dspy import Result
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.prompting.layouts import (
    CriteriaListLayout,
    Laid,
    TextLayout,
    block,
)
from judgesmith.programs.prompting.predict import Evaluator, JudgePredict, called
from judgesmith.signatures.task import (
    DescribeTask,
    MergeCriteria,
    MergeDescriptions,
    ObserveBatch,
    ProposeCriteria,
)
from judgesmith.signatures.values import Criterion, Usage
from judgesmith.tables import shortened

FEWEST = 4
MOST = 10


class TaskKnowledge(Parameter):  # type: ignore[misc]
    """A judge's knowledge of its task: a description and criteria.

    A leaf of the DSPy state: it survives save, load, deepcopy and `reset_copy`.
    """

    def __init__(
        self, description: str = "", criteria: Sequence[Criterion] = ()
    ) -> None:
        self.description = description
        self.criteria = tuple(criteria)

    def reset(self) -> None:
        """Nothing: it is learnt once, before demonstrations are searched."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return description and criteria as JSON values."""
        return {
            "description": self.description,
            "criteria": [
                {"name": c.name, "definition": c.definition} for c in self.criteria
            ],
        }

    def load_state(self, state: Mapping[str, Any]) -> TaskKnowledge:
        """Take description and criteria from JSON values."""
        self.description = str(state["description"])
        self.criteria = tuple(
            Criterion(str(c["name"]), str(c["definition"])) for c in state["criteria"]
        )
        return self


@dataclass(frozen=True, slots=True)
class Labelled:
    """One labelled example as task inference sees it.

    why: the reasons that people gave. scores: by aspect, where several are shown in place of the one.
    """

    source: str
    output: str
    score: float
    id: str = ""
    why: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comment:
    """A person's reason for the score of a row, by the row's id."""

    row: str
    text: str


@dataclass(frozen=True, slots=True)
class Inference:
    """The outcome of task inference.

    It has a description, criteria, the number of batches read, a flag for the model's COMPLETE, and notes for the
    reader (a step that failed). drawn_from: by criterion, the comments that the model names as its origin, without
    those that it made up; empty without comments.
    """

    description: str
    criteria: tuple[Criterion, ...]
    batches: int
    complete: bool
    notes: tuple[str, ...]
    usage: Usage
    drawn_from: Mapping[str, tuple[Comment, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is to be inferred from labelled rows."""

    aspect: str = ""
    """The aspect that people scored, if the labels name it."""
    described: bool = True
    """False is the ablation without T, in which criteria come from observations alone."""


class TaskInference(Evaluator):
    """Reads labelled examples in mini-batches.

    batches: mini-batches at most (paper: 25). batch_size: examples in each (paper: 5). keep: descriptions and criteria
    sets at most (paper: 5), written at equal distances from all that was observed by then. text_limit: characters of a
    source or an output that are shown, the rest is cut with "…"; of a comment, a quarter of that.
    """

    def __init__(
        self,
        *,
        batches: int = 25,
        batch_size: int = 5,
        keep: int = 5,
        text_limit: int = 1200,
    ) -> None:
        super().__init__()
        self.batches = batches
        self.batch_size = batch_size
        self.keep = keep
        self.text_limit = text_limit
        self.observe = JudgePredict(
            ObserveBatch,
            TextLayout(
                "observations",
                "Answer with at most five short sentences, or with COMPLETE.",
                tokens=220,
            ),
        )
        description = "Answer with one to three sentences and nothing else."
        self.describe = JudgePredict(
            DescribeTask, TextLayout("description", description, tokens=140)
        )
        self.propose = JudgePredict(ProposeCriteria, CriteriaListLayout())
        self.merge_descriptions = JudgePredict(
            MergeDescriptions, TextLayout("description", description, tokens=140)
        )
        self.merge_criteria = JudgePredict(MergeCriteria, CriteriaListLayout())

    def calls(self, rows: int) -> int:
        """Return the calls at most for this number of rows, retries not counted."""
        batches = min(self.batches, -(-rows // self.batch_size))
        written = -(-batches // self._distance(batches))
        return batches + 2 * written + (2 if written > 1 else 0)

    def _distance(self, batches: int) -> int:
        """After how many batches a description and criteria are written."""
        return max(1, -(-batches // self.keep))

    async def aforward(
        self,
        examples: Sequence[Labelled],
        *,
        aspect: str = "",
        described: bool = True,
        lm: str | LanguageModel | Any | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> dspy.Prediction:
        """Return `description`, `criteria` and `notes`.

        Args:
            examples: Rows in reading order (shuffled by the caller).
            aspect: The aspect that people scored, if the labels name it.
            described: False is the ablation without T, in which criteria come from observations alone.
            lm: The model.
            progress: Called with a title for each step.
        """
        run = _Reading(
            self, called(lm if lm is not None else self.observe.lm), progress, described
        )
        starts = range(0, len(examples), self.batch_size)[: self.batches]
        for start in starts:
            batch = examples[start : start + self.batch_size]
            await run.observe(self._show(batch, aspect), self._comments(batch))
            last = run.complete or run.batches == len(starts)
            if last or run.batches % self._distance(len(starts)) == 0:
                await run.write()
            if run.complete:
                break
        description = await run.description()
        drawn = (await run.criteria(description))[:MOST]
        criteria = [Criterion(c.name, c.definition) for c in drawn]
        run.note(sum(len(example.why) for example in examples), len(criteria))
        sources = {c.name: run.drawn_from(c) for c in drawn if run.comments}
        result = Inference(
            description,
            tuple(criteria),
            run.batches,
            run.complete,
            tuple(run.notes),
            run.usage,
            sources,
        )
        return Result(
            result,
            description=description,
            criteria=list(criteria),
            notes=list(run.notes),
        )

    def _comments(self, batch: Sequence[Labelled]) -> list[Comment]:
        most = self.text_limit // 4
        return [Comment(e.id, shortened(text, most)) for e in batch for text in e.why]

    def _show(self, batch: Sequence[Labelled], aspect: str) -> str:
        return Laid(
            "\n\n".join(
                f"Example {i}\n{self._shown(example, aspect)}"
                for i, example in enumerate(batch, 1)
            )
        )

    def _shown(self, example: Labelled, aspect: str) -> str:
        """Return a row's texts, the scores that people gave it, and their comments."""
        parts = [
            block("source", self._cut(example.source) or "(none)"),
            block("output", self._cut(example.output)),
        ]
        for name, score in (example.scores or {aspect: example.score}).items():
            of_aspect = f" for {disarm(name)}" if name else ""
            parts.append(f"score given by people{of_aspect}: {score:g} of 100")
        parts += [block("comment", c.text) for c in self._comments([example])]
        return "\n".join(parts)

    def _cut(self, text: str) -> str:
        most = self.text_limit
        return text if len(text) <= most else f"{text[: most - 1]}…"


class _Reading:
    """The knowledge read from the examples so far, and its cost."""

    def __init__(
        self,
        inference: TaskInference,
        lm: LanguageModel,
        progress: Callable[[str], None] | None,
        described: bool,
    ) -> None:
        self.steps = inference
        self.lm = lm
        self.progress = progress
        self.described = described
        self.usage = Usage()
        self.notes = list[str]()
        self.observations: list[str] = []
        self.written_from = (
            0  # how many of them the last description and criteria rest on
        )
        self.descriptions: list[str] = []
        self.sets: list[list[Drawn]] = []
        self.batches = 0
        self.complete = False
        self.comments: list[Comment] = []  # numbered from 1
        self.listed = self.made_up = (
            0  # comments that criteria were asked for; those cited that are not there
        )

    async def ask(self, step: JudgePredict, title: str, **inputs: Any) -> Any | None:
        """The answer; None, and a note, where the call fails."""
        if self.progress is not None:
            self.progress(title)
        try:
            answer = await step.ask(self.lm, inputs)
        except CallError as error:
            self.usage += getattr(error, "usage", Usage())
            self.notes.append(f"{title}: {error}")
            return None
        self.usage += answer.usage
        (value,) = answer.read.values.values()
        return value

    async def observe(self, batch: str, comments: Sequence[Comment]) -> None:
        """Add the observations of one mini-batch."""
        self.batches += 1
        self.comments += comments
        seen = "\n".join(self.observations)
        title = f"reading examples, batch {self.batches}"
        new = await self.ask(
            self.steps.observe, title, earlier_observations=seen, examples=batch
        )
        self.complete = (
            bool(self.observations)
            and (new or "").strip(" .!\"'*`\n").upper() == "COMPLETE"
        )
        if new is not None and not self.complete:
            self.observations.append(new.replace("COMPLETE", "").strip())

    async def write(self) -> None:
        """A description and criteria from all that was observed, and from the comments since the last ones."""
        new = range(self.listed + 1, len(self.comments) + 1)
        self.listed = len(self.comments)
        if self.written_from == len(self.observations) and not new:
            return
        self.written_from = len(self.observations)
        steps = self.steps
        where = f"batch {self.batches}"
        seen = "\n".join(self.observations)
        earlier = self.descriptions[-1] if self.descriptions else ""
        description = None
        if self.described:
            title = f"describing the task, {where}"
            description = await self.ask(
                steps.describe, title, observations=seen, earlier_description=earlier
            )
        if description is not None:
            self.descriptions.append(description)
        title = f"naming criteria, {where}"
        cited = {
            "comments": "\n".join(f"{n}. {self.comments[n - 1].text}" for n in new),
            "cites": bool(new),
        }
        named = await self.ask(
            steps.propose,
            title,
            description=description or earlier,
            observations=seen,
            **cited,
        )
        if named is not None:
            self.sets.append(self.checked(named, new))

    def note(self, comments: int, criteria: int) -> None:
        """Note what a person should know of the inference.

        Args:
            comments: Comments of all examples.
            criteria: Criteria that were inferred.
        """
        if unread := comments - len(self.comments):
            self.notes.append(
                f"it ended without having read all comments ({unread} left)"
            )
        if self.made_up:
            self.notes.append(
                f"the model cited comments that do not exist ({self.made_up}); they are left out"
            )
        if criteria < FEWEST:
            self.notes.append(
                f"only {criteria} criteria were inferred; {FEWEST} to {MOST} were asked for"
            )

    def checked(self, named: Sequence[Drawn], there: Container[int]) -> list[Drawn]:
        """The criteria without the numbers of comments that the model was not shown."""
        criteria = list[Drawn]()
        for criterion in named:
            real = tuple(n for n in criterion.comments if n in there)
            self.made_up += len(criterion.comments) - len(real)
            criteria.append(Drawn(criterion.name, criterion.definition, real))
        return criteria

    def drawn_from(self, criterion: Drawn) -> tuple[Comment, ...]:
        """The comments that a criterion comes from: what merging said, and what was said of that name before."""
        numbers = set(criterion.comments)
        name = criterion.name.casefold()
        for proposed in chain.from_iterable(self.sets):
            if proposed.name.casefold() == name:
                numbers.update(proposed.comments)
        return tuple(self.comments[n - 1] for n in sorted(numbers))

    async def description(self) -> str:
        """The descriptions as one."""
        if len(self.descriptions) < 2:
            return "".join(self.descriptions)
        listed = "\n".join(f"{i}. {d}" for i, d in enumerate(self.descriptions, 1))
        merged = await self.ask(
            self.steps.merge_descriptions, "merging descriptions", descriptions=listed
        )
        return merged or self.descriptions[-1]

    async def criteria(self, description: str) -> list[Drawn]:
        """The sets of criteria as one."""
        proposed = list(chain.from_iterable(self.sets))
        if len(self.sets) < 2:
            return proposed
        cited = set(chain.from_iterable(criterion.comments for criterion in proposed))
        request = {
            "description": description,
            "criteria_lists": "\n\n".join(map(_listed, self.sets)),
            "cites": bool(cited),
        }
        merged = await self.ask(
            self.steps.merge_criteria, "merging criteria", **request
        )
        return _merged(merged and self.checked(merged, cited), self.sets)


def _in_brackets(criterion: Drawn) -> str:
    if criterion.comments:
        return f" (comments {', '.join(map(str, criterion.comments))})"
    return ""


def _listed(criteria: Sequence[Drawn]) -> str:
    """A set of criteria as lines of a prompt."""
    return "\n".join(f"- {c.name}: {c.definition}{_in_brackets(c)}" for c in criteria)


def _merged(answer: list[Drawn] | None, sets: Sequence[Sequence[Drawn]]) -> list[Drawn]:
    """The model's merged list, filled up to the fewest allowed with the criteria most sets agree on."""
    merged = {criterion.name.casefold(): criterion for criterion in answer or ()}
    votes = Counter[str]()
    first = dict[str, Drawn]()
    for criterion in chain.from_iterable(sets):
        name = criterion.name.casefold()
        votes[name] += 1
        first.setdefault(name, criterion)
    for name, _ in votes.most_common():  # equal votes keep the order of appearance
        if len(merged) >= FEWEST:
            break
        merged.setdefault(name, first[name])
    return list(merged.values())
