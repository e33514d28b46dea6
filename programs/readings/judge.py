"""The judge that reads: what a model knows of a row (how likely it finds the text, its hidden states), and what it says
when asked for a score, weighed by the labels.

Source: GPTScore (Fu et al. 2023) and BARTScore (Yuan et al. 2021) for likelihoods; BoRP and INSPECTOR for hidden
states; LLM-Rubric (Hashemi et al. 2024) for a fitted combination. The weighing is ours.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ... import parts
from ...errors import CallError, ModelError, OptionError
from ...parts import option
from ...signatures.values import Details, Item, Verdict
from ..aspects import Aspect, Task
from ..models.lm import LanguageModel
from ..pointwise.direct import DirectScorer
from ..refining import Refinement, Refiner, TrainingRows
from ..registry import judges
from .experience import Experience, experience_of
from .head import HeadData, LinearHead, Readings
from .kinds import RowReadings, group_of, read_row
from .opening import Opened, open_reader
from .passages import INSTRUCTIONS, Text

#: The reading that is the model's own answer when it is asked for a score.
DIRECT = "direct"
_WORDS_SHOWN = 3
#: With fewer rows, or fewer groups, no head is fitted.
FEWEST_ROWS, FEWEST_GROUPS = 3, 3
GENERAL = INSTRUCTIONS["general"]


@dataclass(frozen=True, slots=True)
class Contributions(Details):
    """How a score came about. base: the mean training row's score on the user's scale. readings: what each group of
    readings adds to it, in points of that scale, before the score is held to the scale and calibrated. improbable: the
    words that the model expected least, with their surprise in nats (-log p)."""

    base: float
    readings: Mapping[str, float]
    improbable: tuple[tuple[str, float], ...]


@judges.register
class ReadingsJudge(DirectScorer):
    """What the model knows of a row, weighed by experience and labels; until it is compiled, the plain direct score.

    Reading costs no generated token: one pass over the row as the assistant's reply to the task's instruction.
    Options: `judgesmith list methods readings`.

    Sources: GPTScore (Fu et al. 2023); BARTScore (Yuan et al. 2021); LLM-Rubric (Hashemi et al. 2024).
    """

    kind: ClassVar[str] = "readings"
    about: ClassVar[str] = "likelihoods, hidden states and the model's own score, weighed by the labels"
    paper: ClassVar[str] = "GPTScore (Fu et al. 2023); BARTScore (Yuan et al. 2021); LLM-Rubric (Hashemi et al. 2024)"
    takes_any_name: ClassVar[bool] = True
    fitted_always: ClassVar[bool] = True

    class Options(DirectScorer.Options):
        reader: str = option(
            "",
            "Model that reads the rows: local/NAME, gguf:PATH, or ollama/NAME from Ollama's store on this machine; "
            "empty: the judge's own, where it can be read.",
            max_length=400,
        )
        instruction: str = option(
            "",
            "What the judged systems were asked to do, as one would ask an assistant; empty: the task's, from the "
            "aspect library.",
            max_length=2000,
        )
        layers: int = option(3, "Middle layers whose hidden states are read; 0: none.", ge=0, le=9)
        surface: bool = option(True, "Length, overlap and repetition may have a weight, too; their share is shown.")
        experience: str = option(
            "",
            "Experience to start from: a file that `judgesmith study experience` wrote, or none; empty: the one that "
            "judgesmith brings, learnt from public ratings.",
            added=True,
            max_length=400,
        )

    class Fitted(DirectScorer.Fitted):
        head: HeadData | None = None

    def __init__(self, aspect: str | Aspect = "overall", **given: Any) -> None:
        super().__init__(aspect, **given)
        self.head: LinearHead | None = None
        self.head_model = ""
        #: Whether what was read is kept on disk: while compiling, never where rows are scored by the million.
        self.keeps = False

    @classmethod
    def told(cls, known: Aspect, task: Task | None) -> dict[str, str]:
        instruction = INSTRUCTIONS.get(task.name) if task else None
        return {**super().told(known, task), **({"instruction": instruction} if instruction else {})}

    # -- reading

    def calls_per_row(self) -> int:
        return 0 if self.head is not None and DIRECT not in self.head.weights else super().calls_per_row()

    def passages(self) -> int:
        return 1

    def models(self) -> tuple[str, ...]:
        return (self.reader,) if self.reader else ()

    def reads(self) -> tuple[str, ...]:
        return self.models()

    async def prepare(self, lm: LanguageModel) -> None:
        await super().prepare(lm)
        if self.head is not None:
            await asyncio.to_thread(self.opened, lm)

    def opened(self, lm: LanguageModel) -> Opened:
        """The reader of its rows. Raises ModelError."""
        opened = open_reader(self.reader, lm)
        if self.head is not None and opened.model != self.head_model:
            raise ModelError(
                f"this judge was fitted to the readings of another model (its SHA-256 begins {self.head_model[:12]}) "
                f"than {opened.reader.name} ({opened.model[:12]}); use that model (--reader …), or compile again"
            )
        return opened

    def read(self, item: Item, lm: LanguageModel) -> RowReadings:
        """What the model knows of one row, without its direct score. Raises CallError for a row that cannot be read,
        ModelError for a model that cannot."""
        opened = self.opened(lm)
        reader = opened.kept if self.keeps and lm.connection.cache else opened.reader
        asked = self.instruction or GENERAL
        text = Text(item.source or "", item.output, item.context or "", asked, item.reference or "")
        try:
            return read_row(reader, text, layers=self.layers, counted=self.surface)
        except OptionError as error:
            raise CallError(str(error)) from None

    def read_many(
        self, items: Sequence[Item], lm: LanguageModel, progress: Callable[[], None]
    ) -> list[RowReadings | None]:
        """`read` of each row, None for one that cannot be read."""
        result: list[RowReadings | None] = []
        for item in items:
            try:
                result.append(self.read(item, lm))
            except CallError:
                result.append(None)
            progress()
        return result

    def experience_with(self, lm: LanguageModel) -> Experience:
        """What is known of its reader's readings before labels. Raises ModelError, OptionError."""
        return experience_of(self.opened(lm).model, self.experience)

    def begin(self) -> None:
        """Score by experience alone, which needs no call. Raises ModelError."""
        known = self.experience_with(self.lm)
        if known.numbers:
            row = self.read(Item(source="A source.", output="An output."), self.lm)  # what it has readings of
            self.take(known.head(row.numbers, row.states), self.opened(self.lm).model)

    # -- judging

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        if self.head is None:
            return await super().ajudge(item, lm)
        asked = await super().ajudge(item, lm) if DIRECT in self.head.weights else None
        row = await asyncio.to_thread(self.read, item, lm)
        table = table_of([row], [math.nan if asked is None else asked.percent], [0])
        added = {name: float(values[0]) for name, values in self.head.contributions(table).items()}
        percent = min(100.0, max(0.0, self.head.base + sum(added.values())))
        details = self._details(added, row, item)
        notes = () if asked is None else asked.notes
        if far := self.head.unlike(table):
            notes = (*notes, f"unlike the rows that its weights were learnt from: {', '.join(far)}")
        verdict = Verdict(
            score=math.nan, percent=percent, explanation=_explained(details), details=details, notes=notes
        )
        if asked is None:
            return verdict
        return verdict.model_copy(update={"usage": asked.usage, "raw": asked.raw, "repaired": asked.repaired})

    def _details(self, added: Mapping[str, float], row: RowReadings, item: Item) -> Contributions:
        assert self.head is not None
        points = (self.scale.high - self.scale.low) / 100
        groups = {group: percent * points for group, percent in _by_group(added).items()}
        words = sorted(row.surprise(item.output), key=lambda pair: -pair[1])[:_WORDS_SHOWN]
        return Contributions(
            round(self.scale.low + self.head.base * points, 4),
            {name: round(value, 4) for name, value in sorted(groups.items(), key=lambda pair: -abs(pair[1]))},
            tuple((word.strip(), round(nats, 2)) for word, nats in words),
        )

    # -- what compiling fits

    def meet(self, aspect: str, outputs: Sequence[str]) -> None:
        super().meet(aspect, outputs)
        self.opened(self.lm)  # a model that cannot be read is known before anything is spent

    def refiners(self) -> list[Refiner]:
        """The fit of the head."""
        return [self._weigh_readings]

    def _weigh_readings(self, rows: TrainingRows) -> Refinement:
        """Read the training rows and take the head that is fitted to what was read, by Q."""
        self.keeps = True
        rows.progress.stage("readings", len(rows.items))
        read = self.read_many(rows.items, self.lm, rows.progress.step)
        known = np.array([row is not None for row in read])
        groups = [group for group, ok in zip(rows.groups, known, strict=True) if ok]
        if known.sum() < FEWEST_ROWS or len(set(groups)) < FEWEST_GROUPS:
            few = (
                f"{known.sum()} rows of {len(set(groups))} groups could be read, and {FEWEST_ROWS} of {FEWEST_GROUPS} "
                "are the fewest that weights can be learnt from; the direct score stays"
            )
            return Refinement(self.kind, rows.percents, reason=few)
        table = table_of([row for row in read if row is not None], rows.percents[known].tolist(), groups)
        fit = rows.fit_head(table, rows.human[known], self.experience_with(self.lm))
        percents = np.full(len(read), np.nan)
        percents[known] = fit.percents
        self.take(fit.head, self.opened(self.lm).model)
        added = _by_group(fit.head.contributions(table))
        moved = {name: round(float(np.std(values)), 4) for name, values in added.items()}
        moved = dict(sorted(moved.items(), key=lambda pair: -pair[1]))
        rest = ", the rest from experience with other tasks" if fit.learnt < 1 else ""
        changed = (
            f"Q {fit.q:.2f} on training rows by weights that were learnt without them, against {fit.direct:.2f} for "
            f"the direct score alone; {fit.learnt:.0%} of what moves a score comes from these labels{rest}; how far it "
            "is moved, in percent (standard deviation): "
            + ", ".join(f"{name} {points:.1f}" for name, points in moved.items())
        )
        details = {"q": round(fit.q, 6), "readings": list(fit.parts), "influence": moved}
        return Refinement(self.kind, percents, details, changed=changed, candidate=self.kind, weights=fit.parts)

    def take(self, head: LinearHead, model: str) -> None:
        """Score by this head from now on. model: whose readings it was fitted to (`Opened.model`)."""
        self.choose(experience="")
        self.load_fitted("head", head.data(model).model_dump(mode="json"))

    def fitted(self) -> dict[str, Any]:
        return {} if self.head is None else {"head": self.head.data(self.head_model).model_dump(mode="json")}

    def load_fitted(self, name: str, data: Any) -> None:
        if name != "head":
            super().load_fitted(name, data)
        held = parts.read_options(HeadData, data, "the head")
        self.head, self.head_model = LinearHead.of(held), held.model

    def facts(self) -> dict[str, str]:
        """Its readings: what each group's weights move a score by is in the verdicts (`details`)."""
        if self.head is None:
            return super().facts()
        groups = dict.fromkeys(group_of(name) for name in (*self.head.weights, *self.head.states))
        return {**super().facts(), "readings": ", ".join(groups)}


def _by_group(contributions: Mapping[str, Any]) -> dict[str, Any]:
    """What each group of readings adds to a score, or to each row's."""
    groups: dict[str, Any] = {}
    for name, added in contributions.items():
        groups[group_of(name)] = groups.get(group_of(name), 0.0) + added
    return groups


def table_of(rows: Sequence[RowReadings], direct: Sequence[float], groups: Sequence[Any]) -> Readings:
    """Rows' readings as a table, with the model's own score (percent, NaN where it gave none) as the first."""
    names = tuple(rows[0].numbers)
    values = np.array(
        [[value, *(row.numbers[name] for name in names)] for row, value in zip(rows, direct, strict=True)]
    )
    states = {block: np.stack([row.states[block] for row in rows]) for block in rows[0].states}
    return Readings((DIRECT, *names), values, tuple(groups), states)


def _explained(details: Contributions) -> str:
    parts = ", ".join(f"{name} {value:+.2f}" for name, value in details.readings.items())
    words = ", ".join(f'"{word}"' for word, _ in details.improbable if word)
    return f"{details.base:.2f} on average; {parts}." + (f" Least expected: {words}." if words else "")
