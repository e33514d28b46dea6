"""What DSPy's own optimizers have in common under the contract of all searches.

They propose programs (instructions that a model writes, demonstrations) and are guided by a per-example surrogate of
agreement (`surrogate.RankSurrogate`). What they prefer decides nothing: their programs are measured by Q over all
validation rows, failures counted, no row judged with its own group in the prompt, and chosen as in every other search.

What their prompts show: texts of training rows with their human scores (MIPROv2's summary of the data, GEPA's
feedback, SIMBA's reward), so labels of training rows can find their way into instructions. Held-out rows are never
seen by any of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from ...agreement.surrogate import RankSurrogate
from ...errors import BudgetError
from ...programs.models import engine
from ...signatures.values import Item, Verdict
from ..examples import Scored, item_of, percents_of
from ..search.base import DemoKind, DemonstrationSearch, Proposal, SearchContext, Trial
from .desk import Desk, JudgeProgram, Proposed, Tuned
from .model import PlainAdapter, quiet_dspy


class DSPySearch(DemonstrationSearch):
    """What the three have in common.

    candidates: on the scale of `CorrelationRandomSearch`. The model that writes proposals is the teacher, or else the
    judge's own. Racing has no place here: which rows a program is tried on is for DSPy to say. The same seed, labels
    and cache give the same candidates; only where a budget ends a search with several rows under way is it open which
    of these it still judged. With a valset the training rows are scored once more, without demonstrations: the
    surrogate's panel is made of them.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._remarks: list[str] = []

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"surrogate": "rank concordance"}

    def evaluations(self) -> int:
        return int(self.candidates) + 3 if self.candidates else 1

    @property
    def _completed(self) -> int:
        """How many programs that DSPy tried on some rows only are judged on the rest of them."""
        return 0

    @abstractmethod
    def _propose(self, program: JudgeProgram, desk: Desk, context: SearchContext) -> None:
        """Run DSPy's optimizer; `desk` notes what it tries."""

    def explore(self, context: SearchContext) -> None:
        self._remarks = []
        if not self.candidates:
            return
        if not context.base.taught():
            self._remarks.append("this judge has no prompt that instructions or demonstrations could change")
            return
        if context.base.whole_documents:
            self._remarks.append(f"{self.name} judges one output at a time, which this judge of whole documents cannot")
            return
        desk, program = self._opened(context)
        self.progress.stage(f"programs that {self.name} proposes", (self.evaluations() - 1) * len(context.rows))
        with quiet_dspy(), dspy.context(lm=desk.prompts, adapter=PlainAdapter()):
            broken = desk.run(lambda: self._propose(program, desk, context))
        if broken:
            self._remarks.append(f"{self.name} could not go on ({broken})")
        self._measure(context, desk)
        if len(desk.proposed) == 1 and not desk.ran_out and not self._remarks:
            self._remarks.append(f"{self.name} proposed nothing but the zero-shot prompt")
        if desk.ran_out:
            raise BudgetError("the budget ended the search")

    def _opened(self, context: SearchContext) -> tuple[Desk, JudgeProgram]:
        """A desk that knows zero-shot's answers, and the program that DSPy starts from."""
        judge = context.base.copy_for()
        engine.run(judge.prepare(judge.lm))
        judge.set_brief(True)
        known = _by_item(context.rows, context.tried[0].scored.verdicts)
        if any(item_of(e) not in known for e in context.pool):
            known |= _by_item(
                context.pool, self._score(context.base, context.pool, "zero-shot, training rows").verdicts
            )
        desk = Desk(
            judge,
            RankSurrogate(context.pool, percents_of([known[item_of(e)] for e in context.pool]), seed=self.seed),
            [*context.pool, *context.rows],
            prompts=context.teacher or judge.lm,
            keep=self._completed * len(context.rows) * judge.calls_per_row(),
            progress=self.progress,
        )
        desk.known(known)
        return desk, JudgeProgram(judge, desk)

    # -- measuring what was proposed

    def _measure(self, context: SearchContext, desk: Desk) -> None:
        """Q of the proposed programs: of all that were tried on every row, then of the most promising others."""
        items = [item_of(e) for e in context.rows]
        whole: list[Proposed] = []
        partial: list[Proposed] = []
        for entry in desk.ranked():
            (whole if all(item in entry.answers for item in items) else partial).append(entry)
        partial = partial[: max(0, min(self._completed, self.evaluations() - len(context.tried) - len(whole)))]
        for number, entry in enumerate([*whole, *partial], start=1):
            self._take(context, f"{self.name} {number}", entry, items)

    def _take(self, context: SearchContext, name: str, entry: Proposed, items: Sequence[Item]) -> None:
        proposal = _proposal(name, entry.tuned, context)
        known = {item: answer.verdict for item, answer in entry.answers.items()}
        missing = [e for e, item in zip(context.rows, items, strict=True) if item not in known]
        if missing:
            known |= _by_item(missing, self._score(proposal.program, missing, name).verdicts)
        self._consider(context, proposal, Scored.of([known[item] for item in items]))

    def choose(self, tried: Sequence[Trial], rows: Sequence[dspy.Example]) -> tuple[Trial, str | None]:
        chosen, reason = super().choose(tried, rows)
        return chosen, "; ".join([*self._remarks, *([reason] if reason else [])]) or None


def _by_item(rows: Sequence[dspy.Example], verdicts: Sequence[Verdict]) -> dict[Item, Verdict]:
    return {item_of(e): v for e, v in zip(rows, verdicts, strict=True)}


def _proposal(name: str, tuned: Tuned, context: SearchContext) -> Proposal:
    """A proposed program as a candidate: its demonstrations, and the instructions that are not the student's."""
    own = {n: p.signature.instructions for n, p in context.base.named_predictors()}
    changed = {n: text for n, (text, _) in tuned.parts.items() if text != own[n]}
    where = {(e.source or "", e.output, e.group): i for i, e in enumerate(context.pool)}
    picked = [where[d.get("source") or "", d["output"], d.get("group")] for d in tuned.demos]
    form = {"instructions": changed} if changed else {}
    return Proposal(name, _kind(tuned.demos), picked, tuned.on(context.base), form)


def _kind(demos: Sequence[Mapping[str, Any]]) -> DemoKind:
    if not demos:
        return "none"
    if not all(d.get("gold", True) for d in demos):
        return "predicted"
    return "gold" if any(d.get("augmented") for d in demos) else "labels"
