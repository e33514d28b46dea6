"""Direct scoring with synthetic pairwise comparisons: an output is compared with graded references of its document.

The references (`synthesis`) are written once per document and aspect and kept (`reference_store`); each output costs
one comparison a level. Better than a level speaks for the output by the level's number, worse against it.

Source: "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too" (§2.2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from judgesmith.errors import CallError, JudgesmithError, OptionError
from judgesmith.likeness import same_row
from judgesmith.parts import option, plugin
from judgesmith.programs.aspects import Aspect, Task
from judgesmith.programs.comparing.comparison import Comparing, Comparison, settled
from judgesmith.programs.comparing.references import (
    ReferenceStore,
    reference_key,
    reference_store,
)
from judgesmith.programs.comparing.synthesis import (
    FAMILIES,
    FEWEST,
    MOST,
    ReferenceSet,
    ReferenceWriter,
    Target,
    length_guide,
)
from judgesmith.programs.method import Cost
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.transport import Message
from judgesmith.programs.prompting.predict import Unreadable, spent
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Details, Item, Usage, Verdict
from judgesmith.tables import shortened


def pairwise_score(p_better: Sequence[float], p_worse: Sequence[float]) -> float:
    """Return the score s = Σ i·p_B(i) − i·p_W(i) over the levels i = 1..N.

    Source: Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too, §2.2.

    >>> round(pairwise_score([0.9, 0.8, 0.3], [0.1, 0.2, 0.7]), 6)  # 1·0.8 + 2·0.6 + 3·(−0.4)
    0.8

    Args:
        p_better: Length N, the probabilities that the output is better than the reference of each level, worst first.
        p_worse: The same for worse.

    Returns:
        A float within ±N(N+1)/2, higher is better; NaN if a probability is NaN.

    Raises:
        OptionError: For unequal lengths, or values that are no probabilities.
    """
    if not len(p_better) == len(p_worse) > 0:
        raise OptionError(
            f"one p_better and p_worse a level; got {len(p_better)} and {len(p_worse)}"
        )
    for level, (better, worse) in enumerate(
        zip(p_better, p_worse, strict=True), start=1
    ):
        if min(better, worse) < -1e-9 or better + worse > 1 + 1e-9:
            raise OptionError(
                f"level {level}: {better:g} and {worse:g} are not probabilities of better and of worse"
            )
    return math.fsum(
        i * (b - w)
        for i, (b, w) in enumerate(zip(p_better, p_worse, strict=True), start=1)
    )


def level_percent(leads: Mapping[int, float], levels: int) -> float:
    """Return the score in [0, 100]: 50·(1 + Σ i·(p_B − p_W) / Σ i).

    Args:
        leads: p_B − p_W by level, for the comparisons that were made; the sums run over these, so that the levels left
            out count as the weighted mean of the others.
        levels: N.

    Returns:
        The score; NaN if the levels made hold no more than half of N(N+1)/2.
    """
    if 4 * sum(leads) <= levels * (levels + 1):
        return math.nan
    percent = 50.0 * (
        1.0 + math.fsum(n * lead for n, lead in leads.items()) / sum(leads)
    )
    return min(100.0, max(0.0, percent))


@dataclass(frozen=True, slots=True)
class Vectors(Details):
    """The comparisons behind a verdict, worst level first.

    There are the probabilities (to six digits) that the output is better, or worse, than the reference of each level.
    flipped: whether the two orders disagreed, by level; empty for one order.
    """

    levels: tuple[int, ...]
    better: tuple[float, ...]
    worse: tuple[float, ...]
    flipped: tuple[bool, ...] = ()

    @classmethod
    def of(cls, compared: Mapping[int, Comparison]) -> Vectors:
        """Return the probabilities of comparisons by level."""
        comparisons = compared.values()
        return cls(
            tuple(compared),
            tuple(round(c.better, 6) for c in comparisons),
            tuple(round(c.worse, 6) for c in comparisons),
            tuple(c.flipped for c in comparisons if c.flipped is not None),
        )


@methods.register
class PairwiseDirectScorer(Comparing):
    """A method that needs no labels: it compares an output with references of known quality that a model wrote.

    Options: `judgesmith list methods pairwise-direct`.

    writer: the model that writes references, or its name. references: the store; default the one that all judges of
    this process share. An output's own `reference` is shown only as a rung of a ladder (option grading).

    Source: Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too.
    """

    kind: ClassVar[str] = "pairwise-direct"
    tells_by_numbers: ClassVar[bool] = True
    about: ClassVar[str] = (
        "compares with graded references that the model writes once a document; needs no labels"
    )
    paper: ClassVar[str] = (
        "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too"
    )
    aliases: ClassVar[tuple[str, ...]] = ("pairwise",)

    class Options(Comparing.Options):
        low: str = option(
            "", "What the worst output is like, as a clause; empty takes the library's."
        )
        high: str = option(
            "", "What the best output is like, as a clause; empty takes the library's."
        )
        family: str = option(
            "",
            "The kind of output, for the writer: a task of the library; empty takes that of the aspect.",
        )
        levels: int = option(5, "Graded references a document.", ge=FEWEST, le=MOST)
        words: int = option(
            0,
            "The references' length, best the median of real outputs; 0: usual for the family.",
            ge=0,
            le=2000,
        )
        writer: str = option(
            "", "The model that writes the references, if not the judge's own."
        )
        grading: Literal["written", "perturbed"] = option(
            "written",
            "Where the references come from: written by the model (the paper's way), or perturbed: copies of the row's "
            "reference, else of one text that the writer writes, with up to 60 % of the words perturbed; never of the "
            "judged output itself. trial draws which.",
            added=True,
        )

        @field_validator("family")
        @classmethod
        def _known(cls, family: str) -> str:
            if (family or "general") not in FAMILIES:
                raise OptionError(
                    f"there is no family {family!r}; there are: {', '.join(FAMILIES)}"
                )
            return family or "general"

        @field_validator("writer")
        @classmethod
        def _no_address(cls, name: str) -> str:
            if re.search(r"https?:|//", name, re.IGNORECASE):
                raise OptionError(
                    "an address stands where only the writer's name may; pass a model, or its address in lm=…"
                )
            return name

    options: Options

    def __init__(
        self,
        aspect: str | Aspect = "overall",
        *,
        writer: str | LanguageModel = "",
        references: ReferenceStore | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            aspect, writer=writer if isinstance(writer, str) else writer.name, **options
        )
        self._writer = None if isinstance(writer, str) else writer
        self._store = references
        self._connection: Connection | None = None

    def build(self) -> None:
        """Make the comparer and the writer."""
        super().build()
        self.writer = ReferenceWriter()

    @classmethod
    def aspect_options(cls, aspect: Aspect, task: Task | None) -> dict[str, str]:
        """Return the library's words for the aspect's ends and the task's family."""
        return {
            **super().aspect_options(aspect, task),
            "low": aspect.low,
            "high": aspect.high,
            "family": aspect.task if aspect.task in FAMILIES else "",
        }

    @property
    def writer_name(self) -> str:
        """Return the model that writes references; "" for the judge's own."""
        return self.options.writer

    def cost(self) -> Cost:
        """Return the comparisons of a row, and the writings of a document that is new."""
        return Cost(
            self.options.levels * self.calls_a_comparison(), self.target().levels
        )

    def meet(self, aspect: str, items: Sequence[Item], lm: LanguageModel) -> None:
        """Take the length of references from the outputs, unless the user gave one."""
        self.choose(
            words=self.options.words or length_guide([item.output for item in items])
        )

    def models(self) -> tuple[str, ...]:
        """Return the name of the model that writes references, where that is another one."""
        return (self.writer_name,) if self.writer_name else ()

    def connect(self, connection: Connection | None) -> None:
        """Take the way to reach the writer."""
        self._connection = connection

    # -- references

    @property
    def store(self) -> ReferenceStore:
        """Return the store of written references: the one given as `references`, else that of this process."""
        if self._store is None:
            self._store = reference_store()
        return self._store

    def target(self) -> Target:
        """Return the target of the writer's prompt; of a ladder only the best is written.

        `knowledge` may have been changed since this judge was made.
        """
        criteria = self.knowledge.criteria
        return Target(
            self.options.family,
            self.knowledge.description,
            self.options.aspect,
            criteria[0].definition if criteria else "",
            self.options.low,
            self.options.high,
            self.options.words,
            self.options.levels if self.options.grading == "written" else 1,
        )

    def _writing_model(self, lm: LanguageModel) -> LanguageModel:
        if not self.writer_name or self.writer_name == lm.name:
            return lm
        if self._writer is None:
            self._writer = language_model(self.writer_name, connection=self._connection)
        self._writer.pay_with(lm)
        return self._writer

    async def areferences(
        self, item: Item, lm: LanguageModel
    ) -> tuple[ReferenceSet, Usage]:
        """Return the references of an item, its document's or a ladder, written if they are not there.

        Raises:
            CallError: If they could not be written.
        """
        return await (
            self._written if self.options.grading == "written" else self._ladder
        )(item, lm)

    async def _written(
        self, item: Item, lm: LanguageModel
    ) -> tuple[ReferenceSet, Usage]:
        model = self._writing_model(lm)
        asks = self.writer.predict
        prompt = self.target().fingerprint(asks.signature.instructions, asks.demos)
        key = reference_key(
            item, self.options.aspect, prompt, self.target().levels, model.name
        )
        return await self.store.get_or_write(
            key, lambda: self.writer.awrite(item, self.target(), model)
        )

    async def _ladder(
        self, item: Item, lm: LanguageModel
    ) -> tuple[ReferenceSet, Usage]:
        """Perturbed copies of the best output at hand: the row's reference, else a text written once a document.

        Of the judged output, or nearly it, they are where nothing else is there, and then without the unperturbed one.
        """
        usage = Usage()
        why = "what was written is the judged one, or too short"
        levels = self.options.levels
        copies = self._copies(item.reference or "", item)
        if levels not in copies:
            try:
                written, usage = await self._written(item, lm)
                copies = self._copies(written.outputs[1], item)
            except Unreadable as error:
                usage = error.usage
                why = str(error)
        if levels in copies:
            return ReferenceSet(levels, copies, {}), usage
        if not (copies := self._copies(item.output, item)):
            raise Unreadable(
                f"every text at hand is too short for {self.options.levels} degrees of perturbation",
                (),
                usage,
            )
        return ReferenceSet(
            self.options.levels,
            copies,
            {self.options.levels: f"no other output is at hand: {why}"},
        ), usage

    def _copies(self, text: str, judged: Item) -> dict[int, str]:
        """Perturbed copies of a text by level, none of one too short; of the judged output all but the unperturbed."""
        ladder = plugin("ladders", self.options.grading)
        try:
            copies = dict(
                enumerate(
                    ladder(text, self.options.levels, seed=self.options.trial), start=1
                )
            )
        except JudgesmithError:
            return {}
        if same_row(judged.source, text, judged.source, judged.output):
            del copies[self.options.levels]
        return copies

    # -- judging

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Compare the output with the reference of each level, and add the leads up."""
        references, usage = await self.areferences(item, lm)
        compared, failures = await self._compared(item, references, lm)
        _, raw = spent(compared.values())
        usage += spent((*compared.values(), *failures.values()))[0]
        leads = {level: c.better - c.worse for level, c in compared.items()}
        percent = level_percent(leads, self.options.levels)
        if math.isnan(percent):
            reasons = "; ".join(dict.fromkeys(map(str, failures.values())))
            shortage = (
                f"only {len(compared)} of {self.options.levels} comparisons could be made: "
                f"{reasons or 'no references'}"
            )
            return Verdict.failed(shortage, usage=usage, raw=raw)
        return Verdict(
            percent=percent,
            explanation=in_words(compared, references),
            repaired=any(c.repaired for c in compared.values()),
            notes=tuple(self._notes(compared, references, failures)),
            details=Vectors.of(compared),
            usage=usage,
            raw=raw,
        )

    async def _compared(
        self, item: Item, references: ReferenceSet, lm: LanguageModel
    ) -> tuple[dict[int, Comparison], dict[int, CallError]]:
        """Comparisons by level, and the failures of others."""
        levels = list(references.outputs)
        compared: dict[int, Comparison] = {}
        failures: dict[int, CallError] = {}
        # One after the other, an embedded model finds the document in its cache from the second comparison on.
        for batch in [[n] for n in levels] if lm.one_by_one else [levels]:
            results = await settled(
                self.acompare(item, references.outputs[n], lm) for n in batch
            )
            for level, result in zip(batch, results, strict=True):
                if isinstance(result, CallError):
                    failures[level] = result
                else:
                    compared[level] = result
        return compared, failures

    def _notes(
        self,
        compared: Mapping[int, Comparison],
        references: ReferenceSet,
        failures: Mapping[int, CallError],
    ) -> list[str]:
        notes = [
            f"level {n} has no reference: {why}"
            for n, why in references.left_out.items()
        ]
        notes += [
            f"the comparison with level {n} failed: {error}"
            for n, error in failures.items()
        ]
        if len(compared) < self.options.levels:
            levels = ", ".join(map(str, compared))
            notes.append(
                f"the score rests on levels {levels}, which keep their weights; its range is theirs alone"
            )
        notes += self.cautions(compared.values())
        if self.comparer.counted or self.comparer.samples:
            error = (
                50.0
                * math.sqrt(sum((n * c.error) ** 2 for n, c in compared.items()))
                / sum(compared)
            )
            if math.isnan(error):
                text = "unknown from one answer"
            else:
                text = f"±{error:.1f} of 100"
            notes.append(f"standard error of the score: {text}")
        return notes

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of a comparison and of the writer."""
        writing = self.writer.inputs(item, self.target(), 1)
        return {
            "comparer (once a level)": self.comparison_prompt(
                item, "(a reference that the writer wrote)"
            ),
            f"writer (once a document, level 1 of {self.target().levels})": self.writer.predict.messages(
                writing
            ),
        }


def in_words(compared: Mapping[int, Comparison], references: ReferenceSet) -> str:
    """Describe the comparisons, with the two references that the output stands between.

    For example "Better than level 1, 2 and 3, worse than level 4 and 5 (of 5)".
    """
    levels: dict[str, list[int]] = {"better": [], "similar": [], "worse": []}
    for level, comparison in compared.items():
        levels[comparison.word].append(level)
    link = {"better": "better than", "similar": "similar to", "worse": "worse than"}
    text = ", ".join(
        f"{link[word]} level {_listed(some)}" for word, some in levels.items() if some
    )
    text = f"{text[:1].upper()}{text[1:]} (of {references.levels})."
    won = max(levels["better"], default=0)
    lost = min(levels["worse"], default=0)
    if 0 < lost < won:
        text += " The comparisons contradict the order of the levels."
    for level in sorted({won, lost} - {0}):
        text += f" Level {level}: “{shortened(references.outputs[level], 160)}”"
    return text


def _listed(levels: Sequence[int]) -> str:
    return " and ".join(
        filter(None, (", ".join(map(str, levels[:-1])), str(levels[-1])))
    )
