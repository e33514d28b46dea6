"""Demonstrations and the parts of a prompt as one Optuna study, under the objective and the rules of all searches.

TPE learns from what was tried: how many demonstrations, of which kind, from which part of the range of human scores, in
which order; for a judge that has them, whether the task and which criteria stand in its prompt; and, where asked for,
its variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy
import numpy as np
import optuna
import orjson
from numpy.typing import NDArray
from optuna.trial import BaseTrial, TrialState
from pydantic import field_validator

from judgesmith.optimizers.fitting.weights import quiet_optuna
from judgesmith.optimizers.registry import optimizers
from judgesmith.optimizers.search.base import (
    BootstrapOptions,
    CandidateOptions,
    Demonstrations,
    DemonstrationSearch,
    Proposal,
    RacingOptions,
    SearchContext,
    SureOptions,
    Trial,
    bounded,
)
from judgesmith.parts import option
from judgesmith.programs.active_critic.critic import Variant
from judgesmith.programs.capabilities import Choice, HasChoices
from judgesmith.programs.judge import Judge

ORDERS = ("rising", "falling", "mixed")


@optimizers.register
class OptunaSearch(DemonstrationSearch):
    """TPE over the demonstrations and, for a judge that has them, the parts of its prompt.

    racing: a trial is pruned when, judged on growing blocks of rows, it falls behind the best so far for good. The same
    seed, labels and cache give the same trials.

    study: Optuna's own record of the last search.
    """

    name = "optuna"
    about = "TPE over demonstrations, their order, and what the prompt says of task and criteria"

    class Options(RacingOptions, SureOptions, BootstrapOptions, CandidateOptions):
        trials: int | None = option(
            None,
            "Trials beside the prompt without demonstrations; none: two more than `candidates`, as many as random "
            "search scores.",
            ge=0,
        )
        startup: int = option(
            6,
            "Trials drawn at random before TPE takes over, half of them at most.",
            ge=1,
        )
        variants: tuple[Variant, ...] = option(
            (),
            "Other variants of the judge to try, beside its own; fine takes two calls a row.",
        )

        @field_validator("variants")
        @classmethod
        def _each_once(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(dict.fromkeys(value))

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        trials: int | None = self.options.trials
        if trials is None:
            trials = self.candidates + 2 if self.candidates else 0
        self.trials = trials
        self.study: optuna.Study | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings with the number of trials in place of `candidates`."""
        # `candidates` is another way to say how many trials.
        settings = super().settings() | {"trials": self.trials}
        del settings["candidates"]
        return settings

    def evaluations(self) -> int:
        """Return one more than the trials, for the model alone."""
        return self.trials + 1

    def calls_per_row(self, judge: Judge) -> int:
        """Return the calls for one output in the dearest variant that may be tried."""
        method = judge.method
        if isinstance(method, HasChoices):
            most = method.choices(variants=self.variants).most_calls_per_row()
        else:
            most = 0
        return most or judge.method.cost().calls_per_row

    # -- the study

    def explore(self, context: SearchContext) -> None:
        """Try as many trials as TPE may draw, the model alone being the first."""
        self.study = None
        if not self.trials:
            return
        context.answers()
        startup = min(self.startup, 1 + self.trials // 2)
        with quiet_optuna():
            sampler = optuna.samplers.TPESampler(
                seed=self.seed, n_startup_trials=startup
            )
            self.study = optuna.create_study(direction="maximize", sampler=sampler)
            # Trial 0 is the model alone, which is judged already.
            self.study.enqueue_trial(
                {c.name: c.values[0] for c in self._space(context.base)} | {"demos": 0}
            )
            judged: dict[bytes, Trial] = {_key(context.base): context.tried[0]}
            for number in range(self.trials + 1):
                trial = self.study.ask()
                proposal = self._proposal(trial, number, context)
                key = _key(proposal.program)
                before = len(context.tried)
                try:
                    if key not in judged:
                        self.judge(context, proposal)
                finally:
                    if len(context.tried) > before:
                        judged[key] = context.tried[-1]
                    _tell(self.study, trial, judged.get(key))

    # -- what a trial is

    def _proposal(
        self, trial: BaseTrial, number: int, context: SearchContext
    ) -> Proposal:
        program, form = self._formed(trial, context.base)
        most = bounded(self.max_demos, len(context.pool), context.room)
        size = trial.suggest_int("demos", 0, most)
        if not size:
            return Proposal(f"trial {number}", "none", (), program, form)
        shown = Demonstrations(context, self, context.answers())
        names: list[str] = list(shown.kinds)
        kind = shown.kinds[names.index(trial.suggest_categorical("kind", names))]
        picked = self._picked(trial, size, context.pool, shown.allowed(kind))
        program = shown.shown_by(program, picked, kind)
        return Proposal(
            f"trial {number}",
            kind if picked else "none",
            picked,
            program,
            form,
            context.answers(),
        )

    def _picked(
        self,
        trial: BaseTrial,
        size: int,
        pool: Sequence[dspy.Example],
        allowed: NDArray[np.intp],
    ) -> list[int]:
        """Rows from `size` strata of the human scores, no two of one group.

        A place in its stratum is a number, since neighbours in the order of the scores show the model nearly the same.
        """
        order = sorted(allowed.tolist(), key=lambda i: (pool[i].score, i))
        picked = list[int]()
        groups = set[str]()
        for slot, stratum in enumerate(np.array_split(np.array(order, int), size)):
            place = trial.suggest_float(f"place {slot + 1}", 0.0, 1.0)
            free = [i for i in stratum.tolist() if pool[i].group not in groups]
            if free:
                row = free[min(int(place * len(free)), len(free) - 1)]
                picked.append(row)
                groups.add(pool[row].group)
        if len(picked) < 2:
            return picked
        arrangement = trial.suggest_categorical("order", list(ORDERS))
        if arrangement == "mixed":
            rng = np.random.default_rng([self.seed, len(picked)])
            return [picked[i] for i in rng.permutation(len(picked))]
        return picked if arrangement == "rising" else picked[::-1]

    def _space(self, base: Judge) -> list[Choice]:
        """Return the choices beside demonstrations, each with the judge's own value first."""
        method = base.method
        if isinstance(method, HasChoices):
            return method.choices(variants=self.variants).space()
        return []

    def _formed(self, trial: BaseTrial, base: Judge) -> tuple[Judge, dict[str, Any]]:
        """The judge with what a trial changes of it beside its demonstrations, and what that is."""
        choices: dict[str, Any] = {}
        form: dict[str, Any] = {}
        for choice in self._space(base):
            if not choice.open(choices):
                continue
            choices[choice.name] = trial.suggest_categorical(
                choice.name, list(choice.values)
            )
            if choices[choice.name] != choice.values[0]:
                form[choice.name] = choices[choice.name]
        method = base.method
        if isinstance(method, HasChoices):
            program = base.with_(
                method=method.choices(variants=self.variants).chosen(choices)
            )
        else:
            program = base.with_()
        names = [c.name for c in program.method.knowledge.criteria]
        if len(names) < len(base.method.knowledge.criteria):
            form = {
                name: value
                for name, value in form.items()
                if not name.startswith("criterion ")
            }
            form["criteria"] = names
        return program, form


def _tell(study: optuna.Study, trial: optuna.Trial, tried: Trial | None) -> None:
    """Report a trial's result to TPE; a candidate that cannot be chosen has the lowest value.

    None: it was not judged, since the budget ended.
    """
    if tried is None:
        study.tell(trial, state=TrialState.FAIL)
        return
    candidate = tried.candidate
    if candidate.disqualified is None:
        value = candidate.agreement.value
    else:
        value = candidate.agreement.by.worst
    trial.set_user_attr("candidate", candidate.name)
    if candidate.dropped is None:
        study.tell(trial, value)
    else:
        trial.report(value, candidate.rows or 0)
        study.tell(trial, state=TrialState.PRUNED)


def _key(program: Judge) -> bytes:
    """Return a digest of everything that a candidate's prompts show; equal candidates share it."""
    method = program.method
    demos = [p.demos for p in program.predictors()]
    shown = [method.saved_options(), method.knowledge.dump_state(), demos]
    return orjson.dumps(shown, option=orjson.OPT_SORT_KEYS, default=str)
