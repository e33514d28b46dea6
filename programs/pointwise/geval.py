"""G-Eval: a score weighted by the probabilities of its digits, after evaluation steps that the model wrote once.

Source: "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment" (Liu et al. 2023, §2), as in the baselines of
"Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too" (§3). Prompts are ours.
"""

from __future__ import annotations

import asyncio
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, assert_never

from judgesmith.disarming import disarm
from judgesmith.errors import CallError
from judgesmith.parts import option
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.comparing.comparison import SAMPLES, Drawing, drawn_answers
from judgesmith.programs.method import Cost
from judgesmith.programs.models.engine import PerLoop
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.prompting.layouts import OverallLayout, TextLayout
from judgesmith.programs.prompting.predict import JudgePredict, material, spent
from judgesmith.programs.registry import methods
from judgesmith.signatures.judging import ScoreBySteps, WriteSteps
from judgesmith.signatures.values import Item, Usage, Verdict

LONGEST_STEPS = 3000


class StepsLayout(TextLayout):
    """Numbered steps, read out of whatever stands around them."""

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the steps from a reply, numbered again."""
        parsed = super().extract(reply, inputs)
        if parsed.problem is None:
            parsed.values["steps"] = numbered(parsed.values["steps"])
        return parsed


#: A numbered line; its words may stand on the next one.
_STEP = re.compile(
    r"^[^\S\n]*+(?:[*_#>-]++[^\S\n]*+){0,4}(?:step\s{0,3})?\d{1,2}\s{0,3}[.):]++[\s*_]*+(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def numbered(text: str) -> str:
    """Return the steps of a text, numbered again, at most ten; a text without numbers on one line."""
    steps = _STEP.findall(text)
    if len(steps) > 1:
        lines = [" ".join(step.replace("**", "").split()) for step in steps[:10]]
    else:
        lines = []
    text_of_steps = "\n".join(
        f"{i}. {line}" for i, line in enumerate(lines, start=1)
    ) or " ".join(text.split())
    return text_of_steps[:LONGEST_STEPS]


class StepsScoreLayout(OverallLayout):
    """A digit after the evaluation steps; with `sampled`, the stated digit counts."""

    def __init__(self, steps: str = "", *, sampled: bool = False) -> None:
        super().__init__("none", "expected")
        self.steps = steps
        self.sampled = sampled
        self.wants_logprobs = not sampled

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the form, after the steps if there are some."""
        form = super().rules(inputs)
        if self.steps:
            return (
                f"Go through these steps in your mind:\n{disarm(self.steps)}\n\n{form}"
            )
        return form

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the score; the written one for sampled answers."""
        parsed = super().extract(
            replace(reply, tokens=None) if self.sampled else reply, inputs
        )
        return replace(parsed, notes=()) if self.sampled else parsed


class _Steps:
    """The evaluation steps, shared by all copies of a judge: written once and kept."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.note = ""
        self.lock = PerLoop(asyncio.Lock)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


@methods.register
class GEval(OneAspect):
    """Direct scoring by evaluation steps that the model writes once. Options: `judgesmith list methods g-eval`.

    >>> method = GEval("fluency", steps="1. Read the output. 2. Count the grammatical errors.")
    >>> method.steps
    '1. Read the output. 2. Count the grammatical errors.'

    Source: G-Eval (Liu et al. 2023).
    """

    kind: ClassVar[str] = "g-eval"
    about: ClassVar[str] = "scores by evaluation steps that the model writes once"
    paper: ClassVar[str] = (
        "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment (Liu et al. 2023)"
    )

    class Options(Drawing, OneAspect.Options):
        steps: str = option(
            "",
            "Evaluation steps of your own; empty has the model write them before the first row, from task and aspect.",
            max_length=LONGEST_STEPS,
        )
        samples: int = option(10, SAMPLES, ge=1, le=1000)

    options: Options

    def build(self) -> None:
        """Make the planner and the scorer."""
        if self.options.steps or not hasattr(self, "_steps"):
            self._steps = _Steps(self.options.steps)
        form = "Answer with three to six numbered steps, one sentence each, and nothing else."
        self.planner = JudgePredict(WriteSteps, StepsLayout("steps", form, tokens=400))
        self.scorer = JudgePredict(ScoreBySteps, StepsScoreLayout(self.steps))

    @property
    def steps(self) -> str:
        """Return the evaluation steps in the prompt; "" until the model has written them."""
        return self._steps.text

    def saved_options(self) -> dict[str, Any]:
        """Return the options with the written steps."""
        return super().saved_options() | {"steps": self.steps}

    def cost(self) -> Cost:
        """Return one call a row, or one for each sample."""
        return Cost(self.options.samples if self.options.reading == "samples" else 1)

    def taught(self) -> list[JudgePredict]:
        """Return the scorer's predictor."""
        return [self.scorer]

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle the reading, and have the model write the steps once."""
        able = await lm.capabilities()
        drawn = not able.logprobs
        match self.options.reading:
            case "auto":
                self.choose(reading="samples" if drawn else "probabilities")
            case "samples":
                drawn = True
            case "probabilities":
                pass
            case _:
                assert_never(self.options.reading)
        async with self._steps.lock():
            if not self._steps.text and not self._steps.note:
                try:
                    answer = await self.planner.ask(lm, self._task_context())
                    self._steps.text = answer.read.values["steps"]
                except CallError as error:  # the score is still one, without them
                    self._steps.note = f"no evaluation steps: {error}"
        layout: StepsScoreLayout = self.scorer.layout
        if (layout.steps, layout.sampled) != (self.steps, drawn):
            self.scorer.layout = StepsScoreLayout(self.steps, sampled=drawn)

    def _task_context(self) -> dict[str, Any]:
        return {"task": self.knowledge.description, "criteria": self.knowledge.criteria}

    def _inputs(self, item: Item) -> dict[str, Any]:
        return {**self._task_context(), "aspect": self.options.aspect, **material(item)}

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Score the output by the expectation of its score, or by the mean of samples."""
        inputs = self._inputs(item)
        notes: tuple[str, ...] = (self._steps.note,) if self._steps.note else ()
        layout: StepsScoreLayout = self.scorer.layout
        lost = Usage()
        if layout.sampled:
            answers, unread, lost = await drawn_answers(
                self.scorer,
                lm,
                inputs,
                self.options.samples,
                temperature=self.options.temperature,
                trial=self.options.trial,
            )
            scores = [float(answer.read.values["score"]) for answer in answers]
            notes += self._drawn(scores, unread)
        else:
            answers = [await self.scorer.ask(lm, inputs)]
            scores = [answers[0].read.values["score"]]
            notes += answers[0].read.notes
        usage, raw = spent(answers)
        return Verdict(
            percent=math.fsum(scores) / len(scores),
            repaired=any(answer.read.repaired for answer in answers),
            notes=notes,
            usage=usage + lost,
            raw=raw,
        )

    def _drawn(self, scores: Sequence[float], lost: int) -> tuple[str, ...]:
        """Return notes for the reader of a mean of drawn scores.

        lost: answers that could not be read.
        """
        error = "unknown from one answer"
        if len(scores) > 1:
            error = f"±{statistics.stdev(scores) / math.sqrt(len(scores)):.1f} of 100"
        note = (
            f"not from log-probabilities: the mean of {len(scores)} answers drawn at temperature "
            f"{self.options.temperature:g}, standard error {error}"
        )
        if lost:
            return (
                note,
                f"{lost} of {self.options.samples} drawn answers could not be read",
            )
        return (note,)

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of the scorer, and of the planner if it is still to run."""
        messages = {"scorer": self.scorer.messages(self._inputs(item))}
        if not self.steps:
            messages["planner (once, before the first row)"] = self.planner.messages(
                self._task_context()
            )
        return messages
