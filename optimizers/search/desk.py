"""Where the programs that DSPy's own optimizers propose are judged, and a record of every answer that was paid for.

DSPy catches exceptions nearly everywhere and goes on. What has to end a search (no budget left, a refused key) is
therefore raised as `Ended`, which is no `Exception`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import dspy
import orjson
from dspy.dsp.utils.settings import main_thread_config

from ...agreement.surrogate import RankSurrogate
from ...errors import BudgetError, CallError
from ...programs.judge import Judge, as_prediction
from ...programs.models import engine
from ...programs.models.lm import LanguageModel
from ...programs.progress import Progress
from ...signatures.values import Item, Verdict
from ..examples import item_of
from .prompts import Ended, PromptModel

#: Pseudo-rows that draw the mean gain of a program towards none: a lucky few rows are no evidence.
SHRINKAGE = 5


class JudgeProgram(dspy.Module):  # type: ignore[misc]
    """Scores one output, given its source, as people would score it: `percent` from 0 to 100, with an explanation.

    What counts is the order of the outputs by their scores, and that it is the order in which people put them.
    """

    def __init__(self, judge: Judge, desk: Desk) -> None:
        super().__init__()
        self.judge = judge
        self.desk = desk

    def forward(
        self,
        source: str = "",
        output: str = "",
        context: str | None = None,
        reference: str | None = None,
        group: str | None = None,
    ) -> dspy.Prediction:
        return self.desk.judge(self, Item(output, source, context, reference, group))

    def named_predictors(self) -> list[tuple[str, dspy.Predict]]:
        return taught_of(self.judge)


def taught_of(judge: Judge) -> list[tuple[str, dspy.Predict]]:
    """The predictors that can be taught: others (who writes a reference, who merges) stay as they are."""
    taught = {id(p) for p in judge.taught()}
    return [(name, p) for name, p in judge.named_predictors() if id(p) in taught]


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a proposed program changes: for each taught predictor its instructions and its demonstrations."""

    parts: Mapping[str, tuple[str, tuple[Mapping[str, Any], ...]]]

    @classmethod
    def of(cls, judge: Judge) -> Tuned:
        return cls({name: (p.signature.instructions, tuple(p.demos)) for name, p in taught_of(judge)})

    @property
    def key(self) -> bytes:
        return orjson.dumps(
            {name: [text, [dict(d) for d in demos]] for name, (text, demos) in self.parts.items()},
            option=orjson.OPT_SORT_KEYS,
            default=str,
        )

    @property
    def demos(self) -> tuple[Mapping[str, Any], ...]:
        """Those of the predictor that has most."""
        return max((demos for _, demos in self.parts.values()), key=len, default=())

    def on(self, base: Judge) -> Judge:
        """A copy of `base` with these parts."""
        made = base.copy_for()
        for name, predictor in made.named_predictors():
            if name in self.parts:
                text, demos = self.parts[name]
                predictor.signature = predictor.signature.with_instructions(text)
                predictor.demos = [dict(d) for d in demos]
        return made


@dataclass(slots=True)
class Answer:
    """A verdict that was paid for, and what its predictors were asked and answered, where somebody looked."""

    verdict: Verdict
    steps: list[tuple[str, dict[str, Any], dspy.Prediction]] | None = None


@dataclass(slots=True)
class Proposed:
    """A program that was tried, and its answers by row."""

    tuned: Tuned
    answers: dict[Item, Answer] = field(default_factory=dict)


class Desk:
    """Where programs are judged while DSPy searches. Rows never see their own group in their prompt; nothing is paid
    for twice; the true objective later reads what is noted here.

    judge: the zero-shot student, prepared. prompts: the model that writes proposals. keep: calls that must be left for
    measuring when DSPy's search ends, half of those that are left at most; of a cost, half where keep is not 0.
    """

    def __init__(
        self,
        judge: Judge,
        surrogate: RankSurrogate,
        examples: Sequence[dspy.Example],
        *,
        prompts: LanguageModel,
        keep: int,
        progress: Progress,
    ) -> None:
        self.lm = judge.lm
        self.surrogate = surrogate
        self.examples = {item_of(e): e for e in examples}
        self.prompts = PromptModel(prompts, self.paid)
        self.paid_rows = 0
        #: Whether the traces of programs are read.
        self.traced = False
        self.closed = False
        self.ran_out = False
        self._progress = progress
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self.zero_shot = Tuned.of(judge).key
        self.proposed: dict[bytes, Proposed] = {self.zero_shot: Proposed(Tuned.of(judge))}
        self.threads = 1 if judge.brief and self.lm.embedded else self.lm.concurrency  # as in `Judge.score_many`
        meter = self.lm.meter
        self._last_call = self._last_cost = None
        if meter.max_calls is not None:
            left = max(0, meter.max_calls - meter.logical)
            self._last_call = meter.max_calls - min(keep, left // 2)
        if meter.max_cost is not None:
            self._last_cost = meter.max_cost - (max(0.0, meter.max_cost - meter.cost) / 2 if keep else 0.0)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    # -- answering

    def known(self, verdicts: Mapping[Item, Verdict]) -> None:
        """Zero-shot's verdicts, which were paid for before."""
        self.proposed[self.zero_shot].answers |= {item: Answer(v) for item, v in verdicts.items()}

    def paid(self, coroutine: Callable[[], Any]) -> Any:
        """Run a call to a model. Raises CallError where it failed, Ended where no further one makes sense."""
        self._still_open()
        try:
            return engine.run(coroutine())
        except CallError:
            raise
        except Exception as error:
            with self._lock:
                self._error = self._error or error
            raise Ended(error) from error

    def _still_open(self) -> None:
        meter = self.lm.meter
        with self._lock:
            spent = (self._last_call is not None and meter.logical >= self._last_call) or (
                self._last_cost is not None and meter.cost >= self._last_cost
            )
            if spent and self._error is None:
                self._error = BudgetError("the share of the budget that proposals may use is used up")
            if self.closed or self._error is not None:
                raise Ended(self._error or BudgetError("the search is over"))

    def judge(self, program: JudgeProgram, item: Item) -> dspy.Prediction:
        """A program's answer on a row, from what is known or by calling the model."""
        tuned, trace = Tuned.of(program.judge), dspy.settings.trace
        watched = self.traced and trace is not None and trace is not main_thread_config["trace"]
        predictors = dict(program.judge.named_predictors())
        with self._lock:
            entry = self.proposed.setdefault(tuned.key, Proposed(tuned))
            answer = entry.answers.get(item)
        if answer is not None and (not watched or answer.steps is not None):
            if watched:
                trace += [(predictors[name], dict(inputs), output) for name, inputs, output in answer.steps or ()]
            return as_prediction(answer.verdict)
        start = len(trace) if watched else 0
        verdict: Verdict = self.paid(lambda: program.judge.averdict(item, self.lm))
        names = {id(p): name for name, p in predictors.items()}
        steps = [(names[id(p)], dict(i), o) for p, i, o in trace[start:] if id(p) in names] if watched else None
        with self._lock:
            if not self.closed:
                self.paid_rows += 1
                entry.answers[item] = Answer(verdict, steps)
                self._progress.step()
        return as_prediction(verdict)

    # -- the search and what it left

    def run(self, search: Callable[[], Any]) -> str | None:
        """Let DSPy search. What kept it from its end, if something did. An error that no budget explains is raised."""
        try:
            search()
        except Ended as end:
            if not isinstance(end.error, BudgetError):
                raise end.error from None
            self.ran_out = True
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        finally:
            with self._lock:
                self.closed = True
        return None

    def ranked(self) -> list[Proposed]:
        """What was proposed beside zero-shot, the most promising by the surrogate first.

        Programs were tried on different rows, so that each is compared with zero-shot on its own rows: the summed
        difference over their number plus `SHRINKAGE`.
        """
        with self._lock:  # threads of DSPy's may still be at work where a budget ended the search
            known = [(key, p, dict(p.answers)) for key, p in self.proposed.items() if p.answers]
        plain = self.proposed[self.zero_shot].answers
        base = {item: self._value(item, answer) for item, answer in plain.items() if item in self.examples}

        def gain(answers: Mapping[Item, Answer]) -> float:
            gains = [self._value(item, a) - base[item] for item, a in answers.items() if item in base]
            return math.fsum(gains) / (len(gains) + SHRINKAGE)

        others = [(-gain(answers), key, p) for key, p, answers in known if key != self.zero_shot]
        return [p for *_, p in sorted(others, key=lambda entry: entry[:2])]

    def _value(self, item: Item, answer: Answer) -> float:
        percent = math.nan if answer.verdict.failure else answer.verdict.percent
        return self.surrogate.concordance(self.examples[item], percent)


def shown(example: dspy.Example) -> dspy.Example:
    """A row as DSPy's optimizers see it: its texts and its human score, and its group, which keeps others of it out of
    its prompt. Which system wrote it is left out, as from every judge's prompt."""
    texts = ("source", "output", "context", "reference")
    kept = {name: example[name] for name in (*texts, "score", "group") if example.get(name) is not None}
    kept["score"] = round(float(kept["score"]), 1)
    return dspy.Example(kept).with_inputs(*(n for n in (*texts, "group") if n in kept))
