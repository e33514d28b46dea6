"""DSPy's GEPA under the contract of all searches. Others of DSPy's optimizers work with `Agreement` as metric.

It proposes instructions that a model writes. Each program that it tries on all rows is a candidate, judged with no
row's own group in the prompt, failures counted, and chosen as in every other search; what guides it is the same
agreement (`Agreement`).

Its feedback shows texts of training rows with their human scores, so labels of training rows can find their way into
instructions. Held-out rows are never seen by any of it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import dspy

from judgesmith.agreement.metric import Agreement
from judgesmith.errors import BudgetError, CallError, MissingExtraError
from judgesmith.optimizers.examples import item_of
from judgesmith.optimizers.registry import optimizers
from judgesmith.optimizers.search.base import (
    CandidateOptions,
    DemonstrationSearch,
    Proposal,
    SearchContext,
    SureOptions,
    Trial,
)
from judgesmith.optimizers.search.prompts import (
    Ended,
    PlainAdapter,
    PromptModel,
    cleaned,
    quiet_dspy,
)
from judgesmith.programs.capabilities import set_brief
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.pipeline import as_prediction
from judgesmith.signatures.values import Verdict

#: Rows of one reflection of GEPA.
REFLECTED = 4


class JudgeProgram(dspy.Module):  # type: ignore[misc]
    """Scores one output, given its source, as people would score it: `percent` from 0 to 100, with an explanation.

    What counts is the order of the outputs by their scores, and that it is the order in which people put them.
    """

    def __init__(self, judge: Judge, desk: Desk) -> None:
        super().__init__()
        self.judge = judge
        self.desk = desk

    def forward(self, row: int) -> dspy.Prediction:
        """Return the verdict on one row of the desk, as DSPy's prediction."""
        return as_prediction(self.desk.verdict(self.judge, row))

    def named_predictors(self) -> list[tuple[str, dspy.Predict]]:
        """Return the judge's predictors that take instructions and demonstrations, by name."""
        return taught_of(self.judge)


def taught_of(judge: Judge) -> list[tuple[str, dspy.Predict]]:
    """Return the predictors that can be taught; others (that write a reference, or merge) stay unchanged."""
    taught = {id(p) for p in judge.method.taught()}
    return [(name, p) for name, p in judge.named_predictors() if id(p) in taught]


#: What proposals see of a row beside its score.
_TEXTS = ("source", "output", "context", "reference", "group")


@dataclass
class Desk:
    """The place where programs are judged while DSPy searches.

    They are judged on all rows at once, as a candidate of the search, or, for GEPA's reflection, on single rows of the
    pool. DSPy catches exceptions nearly everywhere and goes on, so that what has to end a search is raised as `Ended`.
    """

    search: GEPASearch
    context: SearchContext
    judged: dict[tuple[str, ...], Trial] = field(default_factory=dict)
    """By the instructions of the predictors that are taught."""
    paid: int = 0
    """Rows that were judged."""

    def __post_init__(self) -> None:
        self.own = {
            name: p.signature.instructions for name, p in taught_of(self.context.base)
        }
        self.judged[tuple(self.own.values())] = self.context.tried[0]
        self.lm = self.context.base.lm
        self.prompts = PromptModel(self.context.teacher or self.lm, self.run)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def rows(self) -> list[dspy.Example]:
        """Return the rows that candidates are measured on, each with the number by which it is judged."""
        return [
            row.copy(row=number).with_inputs("row")
            for number, row in enumerate(self.context.rows)
        ]

    @property
    def pool(self) -> list[dspy.Example]:
        """Training rows as proposals see them: texts, human score, group.

        Which system wrote them is left out, as from every judge's prompt.
        """
        examples = list[dspy.Example]()
        for number, row in enumerate(self.context.pool, len(self.context.rows)):
            texts = {n: row[n] for n in _TEXTS if row.get(n) is not None}
            score = round(float(row.score), 1)
            example = dspy.Example(texts, score=score, row=number)
            examples.append(example.with_inputs("row"))
        return examples

    def run(self, coroutine: Callable[[], Any]) -> Any:
        """Run a call to a model.

        Raises:
            CallError: If the call failed.
            Ended: If no further call makes sense.
        """
        try:
            return engine.run(coroutine())
        except CallError:
            raise
        except Exception as error:
            raise Ended(error) from error

    def verdict(self, judge: Judge, row: int) -> Verdict:
        """Return a program's verdict on a row.

        Raises:
            Ended: If the search has to end.
        """
        context = self.context
        if row >= len(context.rows):
            self.paid += 1
            item = item_of(context.pool[row - len(context.rows)])
            verdict: Verdict = self.run(lambda: judge.verdict(item, self.lm))
            return verdict
        texts = {name: p.signature.instructions for name, p in taught_of(judge)}
        key = tuple(texts.values())
        if key not in self.judged:
            before = len(context.tried)
            changed = {
                name: text for name, text in texts.items() if text != self.own[name]
            }
            program = instructed(context.base, changed)
            try:
                self.search.judge(
                    context,
                    Proposal(
                        f"gepa {before}", "none", (), program, {"instructions": changed}
                    ),
                )
            except Exception as error:
                raise Ended(error) from error
            self.judged[key] = context.tried[before]
            self.paid += len(context.rows)
        return self.judged[key].scored.verdicts[row]

    def metric(self, **more: Any) -> Agreement:
        """Return the search's objective as a metric for DSPy."""
        return Agreement(
            self.search.objective,
            score_of="percent",
            human_of="score",
            group_of="group",
            scale=(0, 100),
            **more,
        )

    def panel(self) -> list[Any]:
        """Return the pool with the model's own answers."""
        context = self.context
        scored = context.tried[0].scored
        if context.pool != context.rows:
            scored = self.search.score(
                context.base, context.pool, "training rows, without examples"
            )
        return list(zip(self.pool, map(as_prediction, scored.verdicts), strict=True))


def instructed(base: Judge, texts: Mapping[str, str]) -> Judge:
    """Return a copy with other instructions, by the names of its predictors."""
    judge = base.with_()
    for name, predictor in judge.named_predictors():
        if name in texts:
            predictor.signature = predictor.signature.with_instructions(texts[name])
    return judge


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


@optimizers.register
class GEPASearch(DemonstrationSearch):
    """GEPA: instructions evolve by reflection.

    A model reads a few answers, with which other rows the judge ordered against people, and writes a better
    instruction; what does better on those rows is tried on all.

    candidates: on the scale of `CorrelationRandomSearch`. The model that writes instructions is the teacher, or else
    the judge's own. It changes instructions only, so that its programs have no demonstrations, and racing has no place
    here: which rows a program is tried on is for DSPy to say. The same seed, labels and cache give the same candidates.
    With a valset the training rows are scored once more.
    """

    name = "gepa"
    about = "DSPy's GEPA: instructions evolve by a model's reflection on wrongly ordered rows"
    paper = "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning"

    class Options(SureOptions, CandidateOptions):
        pass

    def __init__(self, **options: Any) -> None:
        if importlib.util.find_spec("gepa") is None:
            raise MissingExtraError(
                "GEPA needs its own package: pip install 'gepa[dspy]'"
            )
        super().__init__(**options)
        self._remarks: list[str] = []

    def evaluations(self) -> int:
        """Return how many times the validation rows are scored at most; once without candidates."""
        return int(self.candidates) + 3 if self.candidates else 1

    def proposals(self, judge: Judge, rows: int) -> int:
        """Return two calls a candidate: GEPA reflects, and may reflect once more."""
        return 2 * int(self.candidates)

    def explore(self, context: SearchContext) -> None:
        """Run GEPA on the judge's instructions, and judge those it proposes."""
        self._remarks = []
        if not self.candidates:
            return
        if not context.base.method.taught():
            self._remarks.append(
                "this judge has no prompt that instructions could change"
            )
            return
        if context.base.whole_documents:
            self._remarks.append(
                "gepa judges one output at a time, which this judge of whole documents cannot"
            )
            return
        judge = context.base.with_()
        engine.run(judge.method.prepare(judge.lm))
        set_brief(judge.method, True)
        desk = Desk(self, context)
        try:
            with quiet_dspy(), dspy.context(lm=desk.prompts, adapter=PlainAdapter()):
                self._propose(JudgeProgram(judge, desk), desk)
        except Ended as end:
            raise end.error from None
        except BudgetError:
            raise
        except Exception as error:
            self._remarks.append(f"gepa could not go on ({_message(error)})")
        if len(context.tried) == 1 and not self._remarks:
            self._remarks.append(
                "gepa proposed nothing but the prompt that it began with"
            )

    def choose(
        self, tried: Sequence[Trial], rows: Sequence[dspy.Example]
    ) -> tuple[Trial, str | None]:
        """Choose as any search does, with the remarks of this run added to the reason."""
        chosen, reason = super().choose(tried, rows)
        return chosen, "; ".join(
            [*self._remarks, *([reason] if reason else [])]
        ) or None

    def _propose(self, program: JudgeProgram, desk: Desk) -> None:
        """Run DSPy's optimizer."""
        pool = desk.pool
        rows = desk.rows
        batch = min(REFLECTED, len(pool))
        most = (self.evaluations() - 1) * len(rows)
        rounds = 0
        most_rounds = 2 * int(self.candidates)

        def enough(state: Any) -> bool:
            nonlocal rounds
            rounds += 1
            # A round tries parent and child on a batch and then, perhaps, the child on all rows.
            return rounds > most_rounds or desk.paid + 2 * batch + len(rows) > most

        optimizer = dspy.GEPA(
            desk.metric(panel=desk.panel()),
            max_metric_calls=most + len(rows) + 2 * batch * most_rounds,
            reflection_minibatch_size=batch,
            reflection_lm=desk.prompts.copy(temperature=1.0),
            instruction_proposer=_proposer(),
            use_merge=False,
            num_threads=1,  # a program is judged on all rows at once
            seed=self.seed,
            gepa_kwargs={"stop_callbacks": [enough]},
        )
        optimizer.compile(program, trainset=pool, valset=rows)


def _proposer() -> Any:
    from dspy.teleprompt.gepa import InstructionProposer

    class Proposer(InstructionProposer):  # type: ignore[misc]
        """GEPA's own, whose failure costs a round and no second call."""

        def __call__(
            self,
            candidate: dict[str, str],
            reflective_dataset: Mapping[str, Any],
            components_to_update: list[str],
        ) -> dict[str, str]:
            try:
                proposed = super().__call__(
                    candidate, reflective_dataset, components_to_update
                )
            except Exception:
                return {}
            return {
                name: text for name, raw in proposed.items() if (text := cleaned(raw))
            }

    return Proposer(
        adapter=PlainAdapter(),
        additional_instructions="The form of the answer (which lines, which numbers) is fixed elsewhere: do not speak "
        "of it. Say what makes an output better or worse. At most 200 words. Quote none of the examples.",
    )
