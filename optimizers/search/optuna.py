"""Demonstrations and the parts of a prompt as one Optuna study, under the objective and the rules of all searches.

TPE learns from what was tried: how many demonstrations, of which kind, from which part of the range of human scores, in
which order; for a judge that has them, whether the task and which criteria stand in its prompt; and, where asked for,
its variant and its temperature.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import dspy
import numpy as np
import optuna
import orjson
from numpy.typing import NDArray
from optuna.exceptions import OptunaError
from optuna.trial import BaseTrial, FixedTrial, TrialState
from pydantic import Field, field_validator
from sqlalchemy.exc import SQLAlchemyError

from ...errors import OptionError
from ...parts import option
from ...programs.active_critic.critic import Variant
from ...programs.capabilities import Choice, HasChoices
from ...programs.judge import Judge
from ..examples import item_of, row_key
from ..fitting.weights import quiet_optuna
from ..registry import optimizers
from .base import (
    BootstrapOptions,
    CandidateOptions,
    Demonstrations,
    DemonstrationSearch,
    Proposal,
    RacingOptions,
    SearchContext,
    SureOptions,
    Trial,
)

ORDERS = ("rising", "falling", "mixed")
#: How an SQLite file begins.
SQLITE = b"SQLite format 3\x00"
Temperature = Annotated[float, Field(ge=0, le=2)]


@optimizers.register
class OptunaSearch(DemonstrationSearch):
    """TPE over the demonstrations and, for a judge that has them, the parts of its prompt.

    racing: a trial is pruned when, judged on growing blocks of rows, it falls behind the best so far for good. The same
    seed, labels and cache give the same trials, interrupted or not. In a study that is kept (`storage`) the trials of a
    killed run are repeated as they were (their calls come from the call cache) and count.

    study: Optuna's own record of the last search.
    """

    name = "optuna"
    about = "TPE over demonstrations, their order, and what the prompt says of task and criteria"

    class Options(RacingOptions, SureOptions, BootstrapOptions, CandidateOptions):
        trials: int | None = option(
            None, "Trials beside zero-shot; none: two more than `candidates`, as many as random search scores.", ge=0
        )
        startup: int = option(6, "Trials drawn at random before TPE takes over, half of them at most.", ge=1)
        variants: tuple[Variant, ...] = option(
            (), "Other variants of the judge to try, beside its own; fine takes two calls a row."
        )
        temperatures: tuple[Temperature, ...] = option((), "Temperatures to try, beside the model's own.")
        storage: Path | None = option(
            None,
            "SQLite file that keeps the study, for Optuna's own dashboard, and from which a killed run resumes.",
        )

        @field_validator("variants", "temperatures")
        @classmethod
        def _each_once(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(dict.fromkeys(value))

        @field_validator("storage")
        @classmethod
        def _a_study(cls, value: Path | None) -> Path | None:
            return None if value is None else _study_file(value)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        wanted: int | None = self.options.trials
        self.trials: int = (self.candidates + 2 if self.candidates else 0) if wanted is None else wanted
        self.study: optuna.Study | None = None

    def settings(self) -> dict[str, Any]:
        # The file's path stays private; `candidates` is another way to say how many trials.
        made = super().settings() | {"trials": self.trials, "storage": self.storage and self.storage.name}
        del made["candidates"]
        return made

    def evaluations(self) -> int:
        return self.trials + 1

    def calls_per_row(self, judge: Judge) -> int:
        most = judge.most_calls_per_row(variants=self.variants) if isinstance(judge, HasChoices) else 0
        return most or judge.calls_per_row()

    def no_ensemble(self) -> str | None:
        if self.temperatures:
            return "its candidates may differ in temperature, and an ensemble has one"
        return super().no_ensemble()

    # -- the study

    def explore(self, context: SearchContext) -> None:
        self.study = None
        if not self.trials:
            return
        context.answers()
        with quiet_optuna():
            try:
                self.study = self._open(context)
                self._run(self.study, context)
            except (SQLAlchemyError, OptunaError) as error:
                raise OptionError(f"the study in {self.storage} cannot be used: {str(error).splitlines()[0]}") from None

    def _run(self, study: optuna.Study, context: SearchContext) -> None:
        kept = [t for t in study.trials if t.state in (TrialState.COMPLETE, TrialState.PRUNED)]
        for old in study.trials:
            if old.state == TrialState.RUNNING:  # a run was killed in it
                study.tell(old.number, state=TrialState.FAIL)
        if not kept:  # trial 0 is zero-shot, which is judged already
            own = {choice.name: choice.values[0] for choice in self._space(context.base)} | {"demos": 0}
            study.enqueue_trial(own, skip_if_exists=True)
        done: dict[bytes, Trial] = {_key(context.base): context.tried[0]}
        for number, old in enumerate(kept[: self.trials + 1]):
            self._judge_new(context, self._proposal(FixedTrial(old.params), number, context), done)
        for number in range(len(kept), self.trials + 1):
            # Seeded for each trial, so that an interrupted study continues as an uninterrupted one.
            study.sampler = optuna.samplers.TPESampler(
                seed=int(np.random.default_rng([self.seed, number]).integers(2**31)),
                n_startup_trials=min(self.startup, 1 + self.trials // 2),
            )
            trial = study.ask()
            proposal = self._proposal(trial, number, context)
            try:
                self._judge_new(context, proposal, done)
            finally:
                _tell(study, trial, done.get(_key(proposal.program)))

    def _open(self, context: SearchContext) -> optuna.Study:
        """The study of exactly these rows, this student and these settings; others in the file are left alone."""
        base = context.base
        what = {
            "settings": {k: v for k, v in self.settings().items() if k not in ("trials", "storage")},
            "seed": self.seed,
            "student": [base.kind, base.options(), base.lm.name, str(base.dump_state())],
            "rows": [[row_key(item_of(e).source or "", e.output), e.score] for e in (*context.rows, *context.pool)],
            "answers": [str(v.percent) for v in context.answers()],
        }
        name = sha256(orjson.dumps(what, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:16]
        address = None
        if self.storage is not None:
            try:
                self.storage.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OptionError(f"the study in {self.storage} cannot be used: {error.strerror or error}") from None
            address = f"sqlite:///{self.storage.resolve()}"
        return optuna.create_study(
            storage=address, study_name=f"judgesmith-{name}", direction="maximize", load_if_exists=True
        )

    def _judge_new(self, context: SearchContext, proposal: Proposal, done: dict[bytes, Trial]) -> None:
        """Judge a candidate, unless it was judged before, and enter it in `done`. Raises BudgetError."""
        key, count = _key(proposal.program), len(context.tried)
        if key in done:
            return
        try:
            self.judge(context, [proposal])
        finally:
            if len(context.tried) > count:
                done[key] = context.tried[-1]

    # -- what a trial is

    def _proposal(self, trial: BaseTrial, number: int, context: SearchContext) -> Proposal:
        program, form = self._formed(trial, context.base)
        size = trial.suggest_int("demos", 0, self.max_demos)
        if not size:
            return Proposal(f"trial {number}", "none", (), program, form)
        shown = Demonstrations(context, self, context.answers())
        names: list[str] = list(shown.kinds)
        kind = shown.kinds[names.index(trial.suggest_categorical("kind", names))]
        picked = self._picked(trial, size, context.pool, shown.allowed(kind))
        program = shown.shown_by(program, picked, kind)
        return Proposal(f"trial {number}", kind if picked else "none", picked, program, form)

    def _picked(
        self, trial: BaseTrial, size: int, pool: Sequence[dspy.Example], allowed: NDArray[np.intp]
    ) -> list[int]:
        """Rows from `size` strata of the human scores, no two of one group. A place in its stratum is a number, since
        neighbours in the order of the scores show the model nearly the same."""
        order = np.array(sorted((int(i) for i in allowed), key=lambda i: (pool[i].score, i)), dtype=int)
        picked: list[int] = []
        for slot, stratum in enumerate(np.array_split(order, size)):
            place = trial.suggest_float(f"place {slot + 1}", 0.0, 1.0)
            free = [int(i) for i in stratum if pool[int(i)].group not in {pool[p].group for p in picked}]
            if free:
                picked.append(free[min(int(place * len(free)), len(free) - 1)])
        if len(picked) < 2:
            return picked
        how = trial.suggest_categorical("order", list(ORDERS))
        if how == "mixed":
            return [picked[i] for i in np.random.default_rng([self.seed, len(picked)]).permutation(len(picked))]
        return picked if how == "rising" else picked[::-1]

    def _space(self, base: Judge) -> list[Choice]:
        """What is varied beside demonstrations, each with the judge's own value first."""
        own = base.lm.sampling.temperature
        others = [t for t in self.temperatures if t != own]
        return [
            *([Choice("temperature", (own, *others))] if others else []),
            *(base.search_space(variants=self.variants) if isinstance(base, HasChoices) else ()),
        ]

    def _formed(self, trial: BaseTrial, base: Judge) -> tuple[Judge, dict[str, Any]]:
        """The judge with what a trial changes of it beside its demonstrations, and what that is."""
        made: dict[str, Any] = {}
        form: dict[str, Any] = {}
        for choice in self._space(base):
            if not choice.open(made):
                continue
            made[choice.name] = trial.suggest_categorical(choice.name, list(choice.values))
            if made[choice.name] != choice.values[0]:
                form[choice.name] = made[choice.name]
        temperature = made.pop("temperature", None)
        program: Judge = base.with_choices(made) if isinstance(base, HasChoices) else base.copy_for()
        if "temperature" in form:
            program.set_lm(base.lm.at(temperature))
        kept = [c.name for c in program.knowledge.criteria]
        if len(kept) < len(base.knowledge.criteria):
            form = {name: value for name, value in form.items() if not name.startswith("criterion ")}
            form["criteria"] = kept
        return program, form


def _study_file(path: Path) -> Path:
    """A file that a study can be kept in. Raises OptionError for another one, before anything is spent."""
    try:
        with path.open("rb") as file:
            start = file.read(len(SQLITE))
    except FileNotFoundError:
        return path
    except OSError as error:
        raise OptionError(f"the study in {path} cannot be used: {error.strerror or error}") from None
    if start and start != SQLITE:
        raise OptionError(f"the study in {path} cannot be used: this is not an SQLite file; name a new one")
    return path


def _tell(study: optuna.Study, trial: optuna.Trial, tried: Trial | None) -> None:
    """How a trial came out, for TPE; a candidate that cannot be chosen has the lowest value. None: it was not judged,
    since the budget ended."""
    if tried is None:
        study.tell(trial, state=TrialState.FAIL)
        return
    candidate = tried.candidate
    value = candidate.agreement.value if candidate.disqualified is None else candidate.agreement.by.worst
    trial.set_user_attr("candidate", candidate.name)
    if candidate.dropped is None:
        study.tell(trial, value)
    else:
        trial.report(value, candidate.rows or 0)
        study.tell(trial, state=TrialState.PRUNED)


def _key(program: Judge) -> bytes:
    """What makes two candidates the same one: all that their prompts show, and the temperature."""
    shown = [
        program.options(),
        program.lm.sampling.temperature,
        program.knowledge.dump_state(),
        [p.demos for p in program.predictors()],
    ]
    return orjson.dumps(shown, option=orjson.OPT_SORT_KEYS, default=str)
