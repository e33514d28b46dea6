"""DSPy's own optimizers MIPROv2 and GEPA under the contract of all searches.

They propose programs (instructions that a model writes, demonstrations) and are guided by a per-example surrogate of
agreement (`surrogate.RankSurrogate`). What they prefer decides nothing: their programs are measured by Q over all
validation rows, failures counted, no row judged with its own group in the prompt, and chosen as in every other search.

What their prompts show: texts of training rows with their human scores (MIPROv2's summary of the data, GEPA's
feedback), so labels of training rows can find their way into instructions. Held-out rows are never
seen by any of it.
"""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import dspy
import numpy as np
from dspy.teleprompt import MIPROv2

from ...agreement.surrogate import RankSurrogate
from ...errors import BudgetError, MissingExtraError
from ...programs.judge import Judge
from ...programs.models import engine
from ...signatures.values import Item, Verdict
from ..examples import Scored, item_of, percents_of
from ..registry import optimizers
from .base import (
    BootstrapOptions,
    CandidateOptions,
    DemoKind,
    Demonstrations,
    DemonstrationSearch,
    Proposal,
    SearchContext,
    SureOptions,
    Trial,
)
from .desk import Desk, JudgeProgram, Proposed, Tuned, shown
from .prompts import PlainAdapter, cleaned, quiet_dspy

#: Rows of one reflection of GEPA.
REFLECTED = 4
#: Calls at most with which MIPROv2 summarizes the data: a first one, nine more, the summary.
SUMMARY_CALLS = 11
#: Characters of rows that one of those calls shows.
SUMMARY_CHARACTERS = 8000


class DSPySearch(DemonstrationSearch):
    """What they have in common.

    candidates: on the scale of `CorrelationRandomSearch`. The model that writes proposals is the teacher, or else the
    judge's own. Racing has no place here: which rows a program is tried on is for DSPy to say. The same seed, labels
    and cache give the same candidates; only where a budget ends a search with several rows under way is it open which
    of these it still judged. With a valset the training rows are scored once more, without demonstrations: the
    surrogate's panel is made of them.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
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


@optimizers.register
class MIPROSearch(DSPySearch):
    """MIPROv2: instructions that a model writes from a summary of the data and demonstrations, then TPE over pairs
    of an instruction and a set of demonstrations.

    The sets of demonstrations are drawn as in random search, instead of DSPy's own bootstrapping, whose demonstrations
    do not say which group they are of. The summary of the program's source code is left out: it says nothing of the
    task. Every trial is judged on all rows, so that each is also measured by the true objective.
    """

    name = "mipro"
    about = "DSPy's MIPROv2: a model writes instructions, TPE combines them with sets of demonstrations"
    paper = "Optimizing Instructions and Demonstrations for Multi-Stage Language Model Programs"

    class Options(SureOptions, BootstrapOptions, CandidateOptions):
        pass

    @property
    def _instructions(self) -> int:
        """Instructions, and sets of demonstrations, that are combined; the student's own and the empty set count."""
        return int(max(2, self.candidates // 2 + 1))

    def proposals(self, judge: Judge, rows: int) -> int:
        return (SUMMARY_CALLS + self._instructions * len(judge.taught())) if self.candidates else 0

    def _propose(self, program: JudgeProgram, desk: Desk, context: SearchContext) -> None:
        pool, rows = [shown(e) for e in context.pool], [shown(e) for e in context.rows]
        length = sum(len(str(e)) for e in pool) / len(pool)
        optimizer = _MIPRO(
            self._sets(context),
            self._remarks,
            metric=desk.surrogate,
            prompt_model=desk.prompts,
            task_model=desk.prompts,
            max_bootstrapped_demos=self.max_demos,
            max_labeled_demos=self.max_demos,
            auto=None,
            num_candidates=self._instructions,
            num_threads=desk.threads,
            seed=self.seed,
        )
        optimizer.compile(
            program,
            trainset=pool,
            valset=rows,
            num_trials=self.candidates + 2,
            minibatch=False,
            program_aware_proposer=False,
            view_data_batch_size=int(min(10, max(1, SUMMARY_CHARACTERS // length))),
        )

    def _sets(self, context: SearchContext) -> list[list[dict[str, Any]]]:
        """No demonstrations, then random sets of each kind in turn."""
        shown = Demonstrations(context, self, context.answers())
        made: list[list[dict[str, Any]]] = [[]]
        for number in range(1, self._instructions):
            kind = shown.kinds[number % len(shown.kinds)]
            rng = np.random.default_rng([self.seed, number])
            picked = shown.spread(kind, int(rng.integers(1, self.max_demos + 1)), rng)
            program = shown.shown_by(context.base, picked, kind)
            made.append([dict(d) for d in program.taught()[0].demos])
        return made


class _MIPRO(MIPROv2):  # type: ignore[misc]
    """MIPROv2 with our demonstrations, and proposals that can stand in our prompts."""

    def __init__(self, sets: list[list[dict[str, Any]]], remarks: list[str], **given: Any) -> None:
        super().__init__(**given)
        self._sets = sets
        self._remarks = remarks

    def _bootstrap_fewshot_examples(self, program: Any, *_: Any, **__: Any) -> dict[int, list[list[dict[str, Any]]]]:
        return dict.fromkeys(range(len(program.predictors())), self._sets)

    def _propose_instructions(self, program: Any, *given: Any, **named: Any) -> dict[int, list[str]]:
        own = {i: p.signature.instructions for i, p in enumerate(program.predictors())}
        try:
            proposed = super()._propose_instructions(program, *given, **named)
        except Exception as error:  # a model that fails at this may still judge: the demonstrations are tried
            self._remarks.append(f"no instructions were proposed ({' '.join(str(error).split())[:200]})")
            return {i: [text] for i, text in own.items()}
        return {i: [own[i], *(cleaned(t) or own[i] for t in texts[1:])] for i, texts in proposed.items()}


@optimizers.register
class GEPASearch(DSPySearch):
    """GEPA: instructions evolve by reflection. A model reads a few answers, with which other rows the judge ordered
    against people, and writes a better instruction; what does better on those rows is tried on all.

    It changes instructions only, so that its programs have no demonstrations.
    """

    name = "gepa"
    about = "DSPy's GEPA: instructions evolve by a model's reflection on wrongly ordered rows"
    paper = "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning"

    class Options(SureOptions, CandidateOptions):
        pass

    def __init__(self, **options: Any) -> None:
        if importlib.util.find_spec("gepa") is None:
            raise MissingExtraError("GEPA needs its own package: pip install 'gepa[dspy]'")
        super().__init__(**options)

    @property
    def _completed(self) -> int:
        return int(max(1, self.candidates - self.candidates // 2))

    @property
    def _rounds(self) -> int:
        return 2 * int(self.candidates)

    def proposals(self, judge: Judge, rows: int) -> int:
        return self._rounds

    def _propose(self, program: JudgeProgram, desk: Desk, context: SearchContext) -> None:
        pool, rows = [shown(e) for e in context.pool], [shown(e) for e in context.rows]
        batch = min(REFLECTED, len(pool))
        most = (self.evaluations() - 1 - self._completed) * len(rows)
        rounds = 0
        desk.traced = True

        def enough(state: Any) -> bool:
            nonlocal rounds
            rounds += 1
            # A round tries parent and child on a batch and then, perhaps, the child on all rows.
            return rounds > self._rounds or desk.paid_rows + 2 * batch + len(rows) > most

        def metric(
            example: dspy.Example, prediction: Any, trace: Any = None, asked: Any = None, asked_trace: Any = None
        ) -> Any:
            score = desk.surrogate(example, prediction)
            if asked is None:
                return score
            return dspy.Prediction(score=score, feedback=desk.surrogate.feedback(example, prediction))

        optimizer = dspy.GEPA(
            metric,
            max_metric_calls=most + len(rows) + 2 * batch * self._rounds,
            reflection_minibatch_size=batch,
            reflection_lm=desk.prompts.copy(temperature=1.0),
            instruction_proposer=_proposer(),
            use_merge=False,
            num_threads=desk.threads,
            seed=self.seed,
            gepa_kwargs={"stop_callbacks": [enough]},
        )
        optimizer.compile(program, trainset=pool, valset=rows)


def _proposer() -> Any:
    from dspy.teleprompt.gepa import InstructionProposer

    class Proposer(InstructionProposer):  # type: ignore[misc]
        """GEPA's own, whose failure costs a round and no second call."""

        def __call__(
            self, candidate: dict[str, str], reflective_dataset: Mapping[str, Any], components_to_update: list[str]
        ) -> dict[str, str]:
            try:
                proposed = super().__call__(candidate, reflective_dataset, components_to_update)
            except Exception:
                return {}
            return {name: text for name, raw in proposed.items() if (text := cleaned(raw))}

    return Proposer(
        adapter=PlainAdapter(),
        additional_instructions="The form of the answer (which lines, which numbers) is fixed elsewhere: do not speak "
        "of it. Say what makes an output better or worse. At most 200 words. Quote none of the examples.",
    )
