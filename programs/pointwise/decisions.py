"""A decision model as a judge: each criterion is a typed question, and all are answered in one pass.

The answers are probabilities, so that a score is an expected level. Each criterion's answer stands in the verdict, as a
signal for a judge that weighs them by labels (`compile --signal verdict.criteria.NAME.score=0..100`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from judgesmith.disarming import disarm
from judgesmith.parts import option, read_options
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.aspects import OVERALL
from judgesmith.programs.method import Words
from judgesmith.programs.models.decisions import answers_in, percent_of
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message, Request
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import CriterionScore, Item, Verdict

#: The names of five levels; of another number the ends alone have names.
_LEVELS = ("very poor", "poor", "fair", "good", "excellent")


@methods.register
class Decisions(OneAspect):
    """A decision model (`decision:NAME` or `zeroshot:NAME`) is asked for every criterion; the score is their mean."""

    kind: ClassVar[str] = "decisions"
    about: ClassVar[str] = (
        "a decision model answers a typed question for each criterion, with probabilities, in one pass"
    )
    takes_several: ClassVar[bool] = True
    tells_by_numbers: ClassVar[bool] = True

    class Options(OneAspect.Options):
        question: Literal["levels", "yes-no"] = option(
            "levels", "Which level the output is on, or whether the criterion holds."
        )
        levels: int = option(5, "How many levels there are.", ge=2, le=10)

    options: Options

    @classmethod
    def in_words(cls, options: Mapping[str, Any], words: Words) -> Self:
        """Return the method for the criteria of the user, one or several."""
        if len(words.criteria) < 2 or words.library_aspect:
            return super().in_words(options, words)
        read_options(cls.Options, options, f"--method {cls.kind}")
        own = {"aspect": words.labels_aspect or OVERALL[0]} | dict(options)
        return cls(task=words.task, criteria=words.criteria, **own)

    def questions(self) -> dict[str, Any]:
        """Return the typed question of each criterion, by its name."""
        return {
            criterion.name: self._question(criterion.definition or criterion.name)
            for criterion in self.knowledge.criteria
        }

    def _question(self, definition: str) -> dict[str, Any]:
        task = self.knowledge.description
        about = f"{task}\n{definition}" if task else definition
        if self.options.question == "yes-no":
            return {"type": "noul", "instructions": f"The output fulfils this: {about}"}
        return {
            "type": "score",
            "instructions": f"How good is the output in this respect? {about}",
            "criteria": self.levels(),
        }

    def levels(self) -> list[str]:
        """Return the names of the levels, worst first."""
        count = self.options.levels
        if count == len(_LEVELS):
            return list(_LEVELS)
        between = [f"level {level} of {count}" for level in range(2, count)]
        return [_LEVELS[0], *between, _LEVELS[-1]]

    def messages(self, item: Item) -> list[Message]:
        """Return the questions and the row, each as JSON."""
        texts = {
            "source": item.source,
            "context": item.context,
            "reference": item.reference,
            "output": item.output,
        }
        state = {
            name: disarm(text)
            for name, text in texts.items()
            if text and name not in self.hidden
        }
        return [
            {"role": "system", "content": json.dumps(self.questions())},
            {"role": "user", "content": json.dumps(state, ensure_ascii=False)},
        ]

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Ask for all criteria at once; the score is the mean of the expected answers."""
        levels = self.options.levels

        def scores(reply: Reply) -> dict[str, float]:
            answers = answers_in(reply)
            return {
                name: percent_of(answers.get(name), levels) for name in self.questions()
            }

        def readable(reply: Reply) -> bool:
            return not any(map(math.isnan, scores(reply).values()))

        request = Request(self.messages(item), max_tokens=1)
        reply, usage = await lm.answered(request, readable)
        percents = scores(reply)
        missing = [name for name, percent in percents.items() if math.isnan(percent)]
        if missing:
            reason = f"no answer with probabilities for {', '.join(missing)}"
            return Verdict.failed(reason, usage=usage, raw=(reply.text,))
        shown = ", ".join(f"{name} {percent:.0f}" for name, percent in percents.items())
        return Verdict(
            percent=math.fsum(percents.values()) / len(percents),
            explanation=f"Expected answers of the decision model, of 100: {shown}.",
            criteria={name: CriterionScore(value) for name, value in percents.items()},
            usage=usage,
            raw=(reply.text,),
        )
