"""The method that reads: likelihoods, hidden states and a stated score of a row, weighed by the labels.

Source: GPTScore (Fu et al. 2023) and BARTScore (Yuan et al. 2021) for likelihoods; BoRP and INSPECTOR for hidden
states; LLM-Rubric (Hashemi et al. 2024) for a fitted combination. The weighing is ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from judgesmith import parts
from judgesmith.errors import (
    CallError,
    MissingExtraError,
    ModelError,
    OptionError,
)
from judgesmith.parts import option
from judgesmith.programs.aspects import Aspect, Task
from judgesmith.programs.method import Cost
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.outcome import FAR, NOT_MEASURED
from judgesmith.programs.panel.averaging import Standings
from judgesmith.programs.readings import saying, trained
from judgesmith.programs.readings.asking import AsksForms
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.programs.readings.bindings.opening import Opened
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import HeadData, LinearHead, Readings
from judgesmith.programs.readings.kinds import SIGNAL, TRAINED, RowReadings, group_of
from judgesmith.programs.readings.passages import INSTRUCTIONS, Text
from judgesmith.programs.readings.row_reader import UNREAD, RowReader
from judgesmith.programs.readings.windows import expected_passes
from judgesmith.programs.refining import HeadFit, Refinement, Refiner, TrainingRows
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Details, Item, Passes, Scale, Verdict
from judgesmith.tables import shortened

#: The reading that is the model's own answer when it is asked for a score.
DIRECT = "direct"
#: What a verdict has from the own score's.
OF_OWN = ("usage", "raw", "repaired", "criteria", "errors", "opinions", "spread")
#: With fewer rows, or fewer groups, no head is fitted.
FEWEST_ROWS = 3
FEWEST_GROUPS = 3
GENERAL = INSTRUCTIONS["general"]
#: Q from which on a signal seems to run the other way.
INVERSE = -0.3
#: How the part of a source is chosen that stands beside the output where both do not fit into the model's context.
CHOSEN = "the parts that share most words with the output"
#: Who has the first word, where it is the model's own score.
MODEL = "model"


@dataclass(frozen=True, slots=True)
class Contributions(Details):
    """The composition of a score.

    base: the mean training row's score on the user's scale. readings: each group's contribution, in points of that
    scale, before the score is held to the scale and calibrated. surprise: (start, end, grade) of unexpected words: 1,
    less expected than nine in ten words of a typical output; 2, than all of them; 3, clearly so. improbable: of the
    last, three at most with their surprise in nats (-log p). far: the readings that are far from all of the rows that
    the judge learnt from.
    """

    base: float
    readings: Mapping[str, float]
    improbable: tuple[tuple[str, float], ...] = ()
    surprise: tuple[tuple[int, int, int], ...] = ()
    far: tuple[str, ...] = ()

    def is_far(self) -> bool:
        """Return whether any reading is."""
        return bool(self.far)

    def on(self, scale: Scale) -> Contributions:
        """Return the contributions in points of a scale."""
        points = (scale.high - scale.low) / 100
        readings = {
            name: round(percent * points, 4) for name, percent in self.readings.items()
        }
        return replace(
            self, base=round(scale.low + self.base * points, 4), readings=readings
        )


@methods.register
class ModelReadings(AsksForms):
    """A model's readings of a row, weighed by experience and labels; until it is compiled, the plain direct score.

    Reading costs no generated token: one pass over the row as the assistant's reply to the task's instruction, or some
    over one that the model's context does not hold at once (`windows`).
    Options: `judgesmith list methods readings`.

    Sources: GPTScore (Fu et al. 2023); BARTScore (Yuan et al. 2021); LLM-Rubric (Hashemi et al. 2024).
    """

    kind: ClassVar[str] = "readings"
    about: ClassVar[str] = (
        "likelihoods, hidden states and the model's own score, weighed by the labels"
    )
    paper: ClassVar[str] = (
        "GPTScore (Fu et al. 2023); BARTScore (Yuan et al. 2021); LLM-Rubric (Hashemi et al. 2024)"
    )
    takes_any_name: ClassVar[bool] = True
    tells_by_numbers: ClassVar[bool] = True
    fitted_always: ClassVar[bool] = True

    class Options(AsksForms.Options):
        reader: str = option(
            "",
            "Model that reads the rows: local/NAME, gguf:PATH, or ollama/NAME from Ollama's store on this machine; "
            "empty: the judge's own, where it can be read; none: no model reads them.",
            max_length=400,
        )
        signals: tuple[str, ...] = option(
            (),
            "Columns of the rows that are weighed beside what is read, the most trusted one first: another judge's "
            "scores, a metric. NAME=WORST..BEST says the scale: gpt4=1..5, or ter=100..0 where lower is better; of "
            "words NAME=WORST,…,BEST the order: gpt4=fail,pass.",
            added=True,
            max_length=64,
        )
        first: str = option(
            "",
            "Score that is used alone unless a combination agrees clearly better: model, or one of the "
            "signals; empty: the model where it is a hosted one or there are no signals, else the first signal.",
            added=True,
            max_length=400,
        )
        instruction: str = option(
            "",
            "What the judged systems were asked to do, as one would ask an assistant; empty: the task's, from the "
            "aspect library.",
            max_length=2000,
        )
        layers: int = option(
            3, "Middle layers whose hidden states are read; 0: none.", ge=0, le=9
        )
        surface: bool = option(
            True,
            "Length, overlap, repetition and facts counted in the source may have a weight, too; their share is shown.",
        )
        experience: str = option(
            "",
            "Experience to start from: a file that `judgesmith study experience` wrote, or none; empty: the one that "
            "judgesmith brings, learnt from public ratings.",
            added=True,
            max_length=400,
        )

    options: Options

    class Fitted(parts.Options):
        head: HeadData | None = None
        panel: Standings | None = option(
            None, "How the percents of the forms are read beside each other."
        )

    def __init__(self, aspect: str | Aspect = "overall", **options: Any) -> None:
        super().__init__(aspect, **options)
        self.head: LinearHead | None = None
        self.head_model = self.head_way = ""
        #: Whether what was read is kept on disk: while compiling, never where rows are scored by the million.
        self.keeps = False

    @classmethod
    def aspect_options(cls, aspect: Aspect, task: Task | None) -> dict[str, str]:
        """Return the library's words, with the task's instruction."""
        instruction = INSTRUCTIONS.get(task.name) if task else None
        return {
            **super().aspect_options(aspect, task),
            **({"instruction": instruction} if instruction else {}),
        }

    # -- reading

    def cost(self) -> Cost:
        """Return the direct scorer's cost if its score has a weight, otherwise none."""
        return super().cost() if self._asks() else Cost(0)

    def _asks(self) -> bool:
        """Return True if the model is asked for its own score of a row."""
        if self.head is None:
            return self.options.first in ("", MODEL)
        return DIRECT in self.head.weights

    @property
    def rows(self) -> RowReader:
        """Return what reads its rows, by its options and weights as they are now."""
        options = self.options
        head = self.head
        return RowReader(
            reader=options.reader,
            instruction=options.instruction or GENERAL,
            aspect=options.aspect,
            layers=options.layers,
            counted=options.surface,
            columns=self.columns(),
            fitted_to=None if head is None else self.head_model,
            fitted_way=self.head_way,
            asks_trained=head is not None and TRAINED in head.weights,
            keeps=self.keeps,
        )

    def passes(self, item: Item) -> Passes:
        """Return what its model reads of a row, about."""
        rows = self.rows
        return expected_passes(rows.text(item)) if rows.reads_rows else Passes()

    def read_as(self, item: Item) -> tuple[Any, ...]:
        """Return what tells its reading of a row from another judge's: equal ones need one pass."""
        options = self.options
        text = self.rows.text(item)
        return (options.reader, options.layers, options.surface, text)

    def models(self) -> tuple[str, ...]:
        """Return the names of the models that read."""
        readers = (self.options.reader, trained.BASE if self.rows.asks_trained else "")
        return tuple(name for name in readers if name not in ("", UNREAD))

    def connect(self, connection: Connection | None) -> None:
        """Nothing: what reads is on this machine."""

    def reads(self) -> tuple[str, ...]:
        """Return the models whose weights are read in this process: all of them."""
        return self.models()

    def columns(self) -> tuple[Column, ...]:
        """Return the columns that are weighed."""
        return tuple(map(Column.of, self.options.signals))

    def take_columns(self, columns: Sequence[Column]) -> None:
        """Weigh the signals on these scales."""
        self.choose(signals=[str(column) for column in columns])

    def without_model(self) -> bool:
        """Judge by the signals alone where there are any; return whether that needs no model."""
        if self.options.signals:
            self.choose(
                reader=self.options.reader or UNREAD,
                first=self.options.first or self.columns()[0].name,
            )
        return bool(self.options.signals) and self.options.first != MODEL

    def _leader(self, lm: LanguageModel) -> Column | None:
        """Return the signal that has the first word; None for the model's own score.

        Raises:
            OptionError: For one that is no signal.
        """
        columns = {column.name: column for column in self.columns()}
        if self.options.first in (MODEL, "") and not (
            columns and lm.embedded and not self.options.first
        ):
            return None
        if self.options.first and self.options.first not in columns:
            raise OptionError(
                f"first={self.options.first!r} is neither model nor one of the signals: {', '.join(columns)}"
            )
        return columns[self.options.first or next(iter(columns))]

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle the direct score, and open the readers."""
        await super().prepare(lm)
        rows = self.rows
        if self.head is not None and rows.reads_rows:
            await asyncio.to_thread(rows.opened, lm)
        if rows.asks_trained:
            await asyncio.to_thread(trained.open_trained)

    def begin(self, lm: Callable[[], LanguageModel]) -> None:
        """Score by experience alone, which needs no call, or by the first signal.

        The trained reader is used if it can be had.

        Raises:
            ModelError: For a model that cannot be read.
            OptionError: For a signal whose scale is not stated.
        """
        if self.options.signals:
            self._settle_columns([], lm)
        elif (experience := self._experience(lm())).numbers:
            row = self.rows.read(
                Item(source="A source.", output="An output."), lm()
            )  # what it has readings of
            names = set(row.numbers)
            if experience.trained:
                with contextlib.suppress(
                    ModelError, MissingExtraError
                ):  # it does without
                    trained.open_trained()
                    names.add(TRAINED)
            opened = self.rows.opened(lm())
            self.take(experience.head(names, row.states), opened.model, opened.way)

    def _experience(self, lm: LanguageModel) -> Experience:
        experience = self.rows.experience(lm, self.options.experience)
        said = [self.knowledge.description or ""]
        said += [criterion.definition for criterion in self.knowledge.criteria or ()]
        return experience.of_aspect(self.options.aspect, " ".join(said))

    # -- judging

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Score a row by its head, by the first signal, or by the direct score."""
        leader = self._leader(lm)
        if leader is not None and math.isnan(leader.value(item.columns)):
            raise CallError(f"column {leader.name!r} is empty in this row")
        if self.head is not None:
            return await self._by_head(self.head, item, lm)
        if leader is None:
            return await self.own(item, lm)
        cell = leader.kept(item.columns)
        shown = cell if isinstance(cell, str) else format(cell, "g")
        return Verdict(
            explanation=f"{leader.name}: {shown}.",
            percent=leader.percent(leader.value(item.columns)),
        )

    async def _by_head(
        self, head: LinearHead, item: Item, lm: LanguageModel
    ) -> Verdict:
        """Return the verdict of the fitted head over all readings of a row."""
        direct = await self.own(item, lm) if DIRECT in head.weights else None
        if direct is not None and direct.failure is not None:
            return direct
        row = await self.rows.aread(item, lm)
        table = table_of([row], None if direct is None else [direct.percent], [0])
        added = _of_one_row(head.contributions(table))
        above = {
            name: table.columns([name])[0, 0] - mean
            for name, (mean, _) in head.weights.items()
        }
        unlike = {name: added[name] for name in head.unlike(table)}
        details = replace(self._details(added, row, item), far=tuple(unlike))
        notes = list(row.notes)
        partly = dict[str, float]()
        if row.source != 1:
            partly["source"] = round(row.source, 4)
            reader = self.rows.opened(lm).reader.name
            notes.append(f"{reader} read {row.source:.1%} of the source, {CHOSEN}")
        if far := saying.reasons(unlike, above):
            words = "; ".join(passage.words for passage in far)
            notes.append(f"{FAR}: {words}; {NOT_MEASURED}")
        improbable = [words for words, *_ in details.improbable]
        verdict = Verdict(
            score=math.nan,
            explanation=saying.explained(saying.reasons(added, above), improbable),
            percent=min(100.0, max(0.0, float(head.of_sum(sum(added.values()))))),
            notes=tuple(notes),
            partly=partly,
            details=details,
        )
        if direct is None:
            return verdict
        heard = {name: getattr(direct, name) for name in OF_OWN}
        heard["notes"] = (*direct.notes, *notes)
        return verdict.model_copy(update=heard)

    def _details(
        self, added: Mapping[str, float], row: RowReadings, item: Item
    ) -> Contributions:
        assert self.head is not None
        groups = _by_group(added)
        some, least = (
            -self.head.weights.get(f"assistant.{name}", (-math.inf,))[0]
            for name in ("q10", "min")
        )
        read = Text("", item.output).judged
        words = sorted(row.surprise(read), key=lambda word: -word[2])
        far = {
            shortened(read[a:b], 40): round(nats, 2)
            for a, b, nats in words
            if nats > least + saying.CLEARLY
        }
        # of a trajectory only the assistant's turns are read
        if not item.output.startswith(read):
            words = []
        return Contributions(
            self.head.base,
            dict(sorted(groups.items(), key=lambda pair: -abs(pair[1]))),
            tuple(far.items())[: saying.MOST],
            saying.shades(sorted(words), (some, least, least + saying.CLEARLY)),
        )

    # -- what compiling fits

    def meet(self, aspect: str, items: Sequence[Item], lm: LanguageModel) -> None:
        """Settle the scales of signals, and open the reader before anything is spent."""
        super().meet(aspect, items, lm)
        self.head = (
            None  # of a judge that is compiled again; its score is not the model's own
        )
        if self.options.signals:
            self._settle_columns(items, lambda: lm)
        if self.rows.reads_rows:
            self.rows.opened(
                lm
            )  # a model that cannot be read is known before anything is spent

    def _settle_columns(
        self, items: Sequence[Item], lm: Callable[[], LanguageModel]
    ) -> None:
        """Take the ends of the signals' scales from some rows, where they are not said, and fix who has the first word.

        Raises OptionError where they cannot be told.
        """
        signals = list[str]()
        for column in self.columns():
            values = [column.value(item.columns) for item in items]
            signals.append(str(column.with_ends(values)))
        leader = self._leader(lm())
        self.choose(signals=signals, first=MODEL if leader is None else leader.name)

    def refiners(self) -> list[Refiner]:
        """Return the fit of the head."""
        return [self._weigh_readings]

    def _weigh_readings(self, rows: TrainingRows) -> Refinement:
        """Read the training rows and take the head that is fitted to what was read, by Q."""
        self.keeps = True
        direct_scores, of_forms = self._settled(rows)
        rows.progress.stage("readings", len(rows.items))
        lm = rows.lm
        readings = self.rows.read_many(rows.items, lm, rows.progress.step)
        usable = np.array([row is not None for row in readings])
        groups = list(itertools.compress(rows.groups, usable))
        if usable.sum() < FEWEST_ROWS or len(set(groups)) < FEWEST_GROUPS:
            few = (
                f"{usable.sum()} rows of {len(set(groups))} groups could be read, and {FEWEST_ROWS} of {FEWEST_GROUPS} "
                f"are the fewest that weights can be learnt from; the direct score stays{of_forms}"
            )
            return Refinement(self.kind, direct_scores, reason=few)
        leader = self._leader(lm)
        # A hosted model beside which another one reads; of one that is read itself experience knows more than it says.
        strong = leader is not None or (not lm.embedded and self.options.reader != "")
        if leader is None:
            own = DIRECT
            alone = "the model's own score"
            direct = direct_scores[usable].tolist()
        else:
            own = f"{SIGNAL}.{leader.name}"
            alone = leader.name
            direct = None
        table = table_of([row for row in readings if row is not None], direct, groups)
        experience = self._experience(lm)
        fit = rows.fit_head(table, usable, experience, own, strong=strong)
        opened = self.rows.opened(lm) if self.rows.reads_rows else None
        details = _fit_details(fit, opened)
        if not fit.ahead:
            return Refinement(
                self.kind,
                direct_scores,
                details,
                reason=_why_alone(fit, leader, alone) + of_forms,
                weights=fit.parts,
                alone=strong,
            )
        percents = np.full(len(readings), np.nan)
        percents[usable] = fit.percents
        self.take(fit.head, *((opened.model, opened.way) if opened else ("",)))
        influence = _influence(fit, table)
        rest = "what was learnt on other tasks" if experience.numbers else alone
        return Refinement(
            self.kind,
            percents,
            details | {"influence": influence},
            changed=_why_mixed(fit, influence, alone, rest) + of_forms,
            candidate=self.kind,
            weights=fit.parts,
        )

    def _settled(self, rows: TrainingRows) -> tuple[Any, str]:
        """Return the own scores of the training rows, and what of its forms is to be told."""
        if not self.options.forms or self._leader(rows.lm) is not None:
            return rows.percents, ""
        (settle,) = self.panel.refiners()
        settled = settle(rows)
        return settled.percents, f"; the own score is {settled.changed}"

    def take(self, head: LinearHead, model: str, way: str = "") -> None:
        """Score by this head from now on.

        Args:
            head: The head.
            model: The model whose readings it was fitted to (`Opened.model`).
            way: The way of computing them (`Opened.way`).
        """
        self.choose(experience="")
        self.load_fitted("head", head.data(model, way).model_dump(mode="json"))

    def fitted(self) -> dict[str, Any]:
        """Return the head over its readings; see `capabilities.Learns`."""
        # Judges that were saved before there were limits keep their fingerprints.
        head = self.head
        whose = (self.head_model, self.head_way)
        fitted = self.panel.fitted() if self.options.forms else {}
        if head is not None:
            data = head.data(*whose)
            fitted["head"] = data.model_dump(mode="json", exclude_defaults=True)
        return fitted

    def load_fitted(self, name: str, data: Any) -> None:
        """Take the data that `fitted` gave.

        Raises:
            OptionError: For data that does not fit.
        """
        if name == "head":
            held = parts.read_options(HeadData, data, "the head")
            self.head = LinearHead.of(held)
            self.head_model = held.model
            self.head_way = held.way
        elif self.options.forms:
            self.panel.load_fitted(name, data)
        else:
            raise OptionError("members of a panel need forms, and there are none")

    def facts(self) -> dict[str, str]:
        """Return its readings; each group's contribution to a score is in the verdicts (`details`)."""
        facts = super().facts()
        if self.options.forms and self._asks():
            facts |= self.panel.facts()
        if self.head is None:
            return facts
        groups = dict.fromkeys(
            group_of(name) for name in (*self.head.weights, *self.head.states)
        )
        return {**facts, "readings": ", ".join(groups)}


def _fit_details(fit: HeadFit, opened: Opened | None) -> dict[str, Any]:
    details: dict[str, Any] = {
        "q": round(fit.q, 6),
        "readings": list(fit.parts),
        "ahead": fit.ahead,
    }
    if opened is not None and opened.way:
        details["reader"] = opened.way
    return details


def _why_alone(fit: HeadFit, leader: Column | None, alone: str) -> str:
    """Return why no mixture judges, in words."""
    why = (
        f"{alone} is used alone: a combination with other signals is not clearly better (cross-validated Q "
        f"{fit.q:.2f}, alone {fit.direct:.2f})"
    )
    if leader is not None and fit.direct < INVERSE:
        why += f"; if lower is better, say so: --signal {leader.turned}"
    return why


def _influence(fit: HeadFit, table: Readings) -> dict[str, float]:
    """Return how far each group of readings moves a score, in percent (standard deviation), the most first."""
    moved = dict[str, float]()
    for name, values in _by_group(fit.head.contributions(table)).items():
        moved[name] = round(float(np.std(values)), 4)
    return dict(sorted(moved.items(), key=lambda pair: -pair[1]))


def _why_mixed(
    fit: HeadFit, influence: Mapping[str, float], alone: str, rest: str
) -> str:
    """Return that a mixture judges and what moves it, in words.

    Args:
        fit: The fitted head.
        influence: How far each group of readings moves a score.
        alone: The score that the mixture is compared with.
        rest: What moves a score beside these labels.
    """
    beside = f", the rest from {rest}" if fit.learnt < 1 else ""
    moved = ", ".join(
        f"{'length and overlap' if name == 'surface' else name} {points:.1f}"
        for name, points in influence.items()
    )
    return (
        f"the score combines several signals (cross-validated Q {fit.q:.2f}; {alone} {fit.direct:.2f}). "
        f"{fit.learnt:.0%} of what moves it comes from these labels{beside}. They move it by (standard deviation, in "
        f"percent): {moved}"
    )


def _of_one_row(contributions: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(values[0]) for name, values in contributions.items()}


def _by_group(contributions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contributions of each group of readings to a score, or to each row's."""
    groups: dict[str, Any] = {}
    for name, added in contributions.items():
        groups[group_of(name)] = groups.get(group_of(name), 0.0) + added
    return groups


def trained_scores(method: ModelReadings, items: Sequence[Item]) -> list[float]:
    """Return the trained reader's score of each row: 50 is usual, 20 a standard deviation.

    Raises:
        ModelError, MissingExtraError: where the trained reader cannot be opened.
    """
    return [
        trained.trained_score(method.rows.text(item), method.options.aspect).score
        for item in items
    ]


def table_of(
    rows: Sequence[RowReadings], direct: Sequence[float] | None, groups: Sequence[Any]
) -> Readings:
    """Return rows' readings as a table, with the model's own score as the first column if it was requested.

    The score is in percent, NaN where the model gave none.
    """
    names = tuple(rows[0].numbers)
    own = () if direct is None else (DIRECT,)
    values = np.empty((len(rows), len(own) + len(names)))
    if direct is not None:
        values[:, 0] = direct
    for place, row in enumerate(rows):
        values[place, len(own) :] = [row.numbers[name] for name in names]
    states = dict[str, Any]()
    for block in rows[0].states:
        states[block] = np.stack([row.states[block] for row in rows])
    return Readings((*own, *names), values, tuple(groups), states)
