"""Direct scoring: one number for one aspect, asked for in one short answer.

Source: the plain scoring baseline of "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too" (§3). The prompt
is ours.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from judgesmith.parts import option
from judgesmith.programs.active_critic.scoring import OverallScorer, TaskContext
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.prompting.layouts import Reading
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Item, Verdict


@methods.register
class DirectScorer(OneAspect):
    """The plain baseline: one number, without explanation or evaluation steps.

    Options: `judgesmith list methods direct`.

    >>> DirectScorer("fluency").options.aspect
    'fluency'

    Source: the baseline of Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too, §3.
    """

    kind: ClassVar[str] = "direct"
    about: ClassVar[str] = "one number for one aspect, asked for in one short answer"
    paper: ClassVar[str] = (
        "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too (its baseline, §3)"
    )

    class Options(OneAspect.Options):
        reading: Literal[Reading, "auto"] = option(
            "auto",
            "The stated number (0-100), or the expected digit 1-5 under the model's probabilities; auto takes the "
            "expectation where the model gives log-probabilities.",
        )

    options: Options

    def build(self) -> None:
        """Make the scoring step."""
        self.scorer = OverallScorer(
            "none", "said" if self.options.reading == "auto" else self.options.reading
        )

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle the reading: expected if the model gives log-probabilities, otherwise as written."""
        if self.options.reading == "auto":
            self.choose(
                reading="expected" if (await lm.capabilities()).logprobs else "said"
            )

    def _task_context(self) -> TaskContext:
        return TaskContext(
            self.knowledge.description, self.knowledge.criteria, self.options.aspect
        )

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Score the output with one call."""
        answer = await self.scorer.ascore(item, self._task_context(), lm)
        return answer.verdict(answer.read.values["score"])

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages for a row."""
        return {
            "scorer": self.scorer.predict.messages(
                self.scorer.inputs(item, self._task_context())
            )
        }
