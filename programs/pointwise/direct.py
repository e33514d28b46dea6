"""Direct scoring: one number for one aspect, asked for in one short answer.

Source: the plain scoring baseline of "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too" (§3). The prompt
is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, get_args

from ...errors import OptionError
from ...signatures.values import Criterion, Item, Scale, Verdict
from ..active_critic.scoring import Known, OverallScorer
from ..aspects import Aspect, AspectLibrary, known_aspect
from ..judge import Judge
from ..models.lm import LanguageModel
from ..models.transport import Message
from ..prompting.layouts import OverallLayout, Reading


class OneAspectJudge(Judge):
    """A judge of one aspect: an `Aspect`, its name in the aspect library (`summarization/coherence`), or any name
    together with `criteria` (one Criterion that defines it). Raises OptionError for an unknown name or several
    criteria."""

    def __init__(
        self,
        aspect: str | Aspect = "overall",
        *,
        task: str = "",
        criteria: Sequence[Criterion] = (),
        library: AspectLibrary | None = None,
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
    ) -> None:
        if isinstance(aspect, Aspect) or not criteria:
            known, its_task = known_aspect(aspect, library)
            aspect, criteria = known.name, (Criterion(known.name, known.definition),)
            task = task or (its_task.description if its_task else "")
        super().__init__(task=task, criteria=criteria, lm=lm, scale=scale)
        if len(criteria) != 1:
            raise OptionError(f"one aspect is judged at a time; got {len(criteria)} criteria")
        self.aspect: str = aspect

    @property
    def brief(self) -> bool:
        return True  # answers of a word or a digit: embedded models take such rows one at a time


class DirectScorer(OneAspectJudge):
    """The plain baseline: one number, no explanation, no evaluation steps.

    aspect: see `OneAspectJudge`. reading: the "expected" digit 1–5 under the model's probabilities, or the number 0–100
    that is "said"; "auto" takes the expectation where the model gives log-probabilities.
    """

    kind: ClassVar[str] = "direct"

    def __init__(
        self,
        aspect: str | Aspect = "overall",
        *,
        task: str = "",
        criteria: Sequence[Criterion] = (),
        reading: Reading | Literal["auto"] = "auto",
        library: AspectLibrary | None = None,
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
    ) -> None:
        super().__init__(aspect, task=task, criteria=criteria, library=library, lm=lm, scale=scale)
        if reading not in (*get_args(Reading), "auto"):
            raise OptionError(f"reading {reading!r} is none of auto, {', '.join(get_args(Reading))}")
        self.reading = reading
        self.scorer = OverallScorer("none", "said" if reading == "auto" else reading)

    def options(self) -> dict[str, Any]:
        return {"aspect": self.aspect, "reading": self.reading}

    async def prepare(self, lm: LanguageModel) -> None:
        if self.reading == "auto":
            self.reading = "expected" if (await lm.capabilities()).logprobs else "said"
            self.scorer.predict.layout = OverallLayout("none", self.reading)

    def _known(self) -> Known:
        return Known(self.knowledge.description, self.knowledge.criteria, self.aspect)

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        answer = await self.scorer.ascore(item, self._known(), lm)
        return Verdict(
            score=math.nan,
            percent=answer.read.values["score"],
            repaired=answer.read.repaired,
            notes=answer.read.notes,
            usage=answer.usage,
            raw=answer.raw,
        )

    def previews(self, item: Item) -> dict[str, list[Message]]:
        return {"scorer": self.scorer.predict.messages(self.scorer.inputs(item, self._known()), group=item.group)}
