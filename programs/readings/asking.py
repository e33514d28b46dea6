"""The own score of a judge of readings: one number, or the mean of the answers to several forms of the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from judgesmith.parts import option
from judgesmith.programs.method import Cost
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message
from judgesmith.programs.panel.judge import FormNames, Panel
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.prompting.layouts import Reading
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.signatures.values import Criterion, Item, Verdict


class AsksForms(DirectScorer):
    """A direct score, or with the option `forms` a panel's.

    The panel's mean is one reading. As readings of their own its members did worse
    (`experiments/results/replay.md`).
    """

    class Options(DirectScorer.Options):
        forms: FormNames = option(
            (),
            "Forms in which the model is asked for its own score, which is their mean: a call each (`judgesmith list "
            "methods panel`), each read in a way of its own; empty: one number, read as `reading` says.",
            added=True,
        )
        forms_reading: Literal[Reading, "auto"] = option(
            "auto",
            "The reading of forms: their likeliest answers (said), or the mean of each one's answers under the model's "
            "probabilities (expected); auto takes the expectation where the model gives log-probabilities.",
            added=True,
            before="said",
        )

    options: Options
    panel: Panel

    @property
    def silent(self) -> tuple[str, ...]:
        """Return the forms that are asked no more; see `capabilities.HearsSeveral`."""
        return self.panel.silent if self.options.forms else ()

    @silent.setter
    def silent(self, names: tuple[str, ...]) -> None:
        if self.options.forms:
            self.panel.silent = names

    def build(self) -> None:
        """Make the steps that ask: of one number, or of the forms."""
        aspect = self.options.aspect
        forms = self.options.forms
        before = vars(self).pop("panel", None)
        vars(self).pop("scorer", None)
        if not forms:
            super().build()
            return
        self.panel = before
        if before is None or before.options.forms != forms:
            criteria = self.knowledge.criteria or (Criterion(aspect, ""),)
            self.panel = Panel(aspect, criteria=criteria, forms=forms)
        self.panel.choose(reading=self.options.forms_reading)

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle how the score is read, or the forms."""
        await super().prepare(lm)
        if self.options.forms and self.options.forms_reading == "auto":
            await self.panel.prepare(lm)
            self.choose(forms_reading=self.panel.options.reading)

    async def own(self, item: Item, lm: LanguageModel) -> Verdict:
        """Ask the model for its score of a row."""
        if not self.options.forms:
            return await super().judge(item, lm)
        self.panel.knowledge = self.knowledge
        return await self.panel.judge(item, lm)

    def cost(self) -> Cost:
        """Return a call a row for each form."""
        return self.panel.cost() if self.options.forms else super().cost()

    def meet(self, aspect: str, items: Sequence[Item], lm: LanguageModel) -> None:
        """Forget what a judge that is compiled again learnt of its forms."""
        if self.options.forms:
            self.panel.meet(aspect, items, lm)

    def taught(self) -> list[JudgePredict]:
        """Return the predictors of the forms."""
        return self.panel.taught() if self.options.forms else super().taught()

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a labelled row as the forms show it."""
        if self.options.forms:
            return self.panel.demonstration(item, verdict)
        return super().demonstration(item, verdict)

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of each form for a row."""
        if not self.options.forms:
            return super().prompts(item)
        self.panel.knowledge = self.knowledge
        return self.panel.prompts(item)

    @property
    def brief(self) -> bool:
        """Return True if one short answer is asked for."""
        return not self.options.forms
