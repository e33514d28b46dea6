"""Any optimizer of DSPy by its name, `--optimizer dspy:MIPROv2`, under the contract of all searches.

DSPy proposes programs: instructions, demonstrations or both. Each that it asks about is judged on all rows at once,
with no row's own group in the prompt, failures counted, from the budget of the run; what guides DSPy is the agreement
of the whole set, and the choice among all programs is that of every other search.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, get_args

import dspy
import dspy.teleprompt
from dspy.dsp.utils.settings import main_thread_config
from pydantic import BeforeValidator, create_model

from judgesmith.errors import BudgetError, OptionError
from judgesmith.optimizers.examples import item_of
from judgesmith.optimizers.registry import Through, optimizers
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
    quiet_dspy,
)
from judgesmith.optimizers.search.proposals import Desk, JudgeProgram, taught_of
from judgesmith.parts import nearest, option
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.pipeline import settle_demos
from judgesmith.programs.prompting.saved import saved_predictor
from judgesmith.signatures.values import Verdict

PREFIX = "dspy:"
#: What the run or the adapter says: data, models, the metric, threads.
OURS = (
    "metric",
    "student",
    "trainset",
    "valset",
    "teacher",
    "teacher_settings",
    "num_threads",
    "seed",
    "self",
)
MODELS = ("prompt_model", "task_model", "reflection_lm")
#: Those that are not searched through, and why; `js.Judge(…)` and DSPy's own `compile` take what a program may.
REFUSED = {
    "KNNFewShot": "it replaces what the program does, which a saved judge cannot hold",
    "Ensemble": "it takes several programs and no rows; a panel (--members) averages several prompts",
    "BootstrapFinetune": "it trains on DSPy's own prompts, which no judge sends; see `judgesmith distill`",
    "GRPO": "it trains on DSPy's own prompts, which no judge sends; see `judgesmith distill`",
    "BootstrapFewShotWithOptuna": "it shows each step one demonstration; --optimizer optuna searches for sets",
    "GEPA": "--optimizer gepa is DSPy's GEPA, with feedback on wrongly ordered rows",
    "InferRules": "it writes training rows with their labels into the instructions as rules",
    "BetterTogether": "it combines optimizers; name one of them",
    "AvatarOptimizer": "it is for agents with tools",
    "SignatureOptimizer": "it is COPRO under its old name; take dspy:COPRO",
    "ReAnchor": "it fits thresholds and cuts of typed decisions, which move no score on a scale; for a program of your "
    "own, call its `compile`",
}
#: What those are for that are, by their names.
PURPOSES = {
    "LabeledFewShot": "shows labelled rows",
    "BootstrapFewShot": "shows labelled rows and answers of a teacher that the metric accepts",
    "BootstrapFewShotWithRandomSearch": "tries sets of such demonstrations",
    "COPRO": "has a model write instructions, from the best ones so far",
    "MIPROv2": "tries instructions that a model wrote, together with sets of demonstrations",
    "SIMBA": "adds rules or demonstrations from rows whose scores vary most",
}


#: Calls that write proposals at most, for each candidate.
PROPOSED = 12
#: Trials and candidates that MIPROv2's own settings make of one judge.
AUTOMATIC = {"light": 16, "medium": 30, "heavy": 45}


def _random_search(options: Any) -> int:
    """Each set is judged, and bootstrapped from as many rows at most."""
    return 2 * int(options.num_candidate_programs)


def _mipro(options: Any) -> int:
    if options.auto is not None:
        return AUTOMATIC.get(options.auto, AUTOMATIC["light"])
    return int(options.num_trials or 0) + int(options.num_candidates or 0)


#: How many programs an optimizer judges by its own arguments, on the scale of `candidates`.
SIZES: dict[str, Callable[[Any], int]] = {
    "BootstrapFewShotWithRandomSearch": _random_search,
    "BootstrapRS": _random_search,
    "COPRO": lambda options: int(options.breadth) * int(options.depth),
    "MIPROv2": _mipro,
    "SIMBA": lambda options: 2 * int(options.num_candidates) * int(options.max_steps),
}


class Enough(Exception):
    """The search has asked as much as `candidates` allows."""


def _read(value: Any) -> Any:
    """A text from a command line as the number that it says."""
    for kind in (int, float):
        if isinstance(value, str):
            with suppress(ValueError):
                value = kind(value)
    return value


Plain = Annotated[int | float | str | None, BeforeValidator(_read)]


@cache
def installed() -> dict[str, type[dspy.teleprompt.Teleprompter]]:
    """Return every optimizer of the installed DSPy by its name; one is a class of `dspy.teleprompt` that compiles."""
    base = dspy.teleprompt.Teleprompter
    found: dict[str, type[dspy.teleprompt.Teleprompter]] = {}
    for place in pkgutil.walk_packages(dspy.teleprompt.__path__, "dspy.teleprompt."):
        try:
            module = import_module(place.name)
        except ImportError:  # of a package that it needs
            continue
        for name, part in vars(module).items():
            own = inspect.isclass(part) and part.__module__ == module.__name__
            if own and issubclass(part, base) and part.compile is not base.compile:
                found[name] = part
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Return the names of DSPy's optimizers that can be used."""
    return [name for name in installed() if name not in REFUSED]


@cache
def search_through(name: str) -> type[DSPySearch]:
    """Return the search for a name such as `dspy:MIPROv2`.

    Raises:
        OptionError: For a name that DSPy does not have.
    """
    optimizer = name.removeprefix(PREFIX)
    if optimizer in REFUSED:
        raise OptionError(f"optimizer {name}: {REFUSED[optimizer]}")
    if optimizer not in names():
        raise OptionError(
            f"DSPy has no optimizer {optimizer!r}{nearest(optimizer, names())}; those that run here: "
            + ", ".join(names())
        )
    part = installed()[optimizer]
    fields: dict[str, Any] = {
        one: (
            bool if isinstance(value, bool) else Plain,
            option(value, f"DSPy's own: an argument of {optimizer}."),
        )
        for one, value in _arguments(part).items()
    }
    options = create_model("Options", __base__=_Options, **fields)
    does = PURPOSES.get(optimizer, "an optimizer of this DSPy")
    about = f"DSPy's, guided by agreement over the whole set: {does}"
    return type(
        optimizer,
        (DSPySearch,),
        {"name": name, "about": about, "part": part, "Options": options},
    )


def _arguments(part: Any) -> dict[str, Any]:
    """The arguments of a constructor and of its `compile` that are plain values, with their defaults."""
    arguments: dict[str, Any] = {}
    for where in (part.__init__, part.compile):
        for name, argument in inspect.signature(where).parameters.items():
            plain = (
                isinstance(argument.default, bool | int | float | str)
                or argument.default is None
            )
            if (
                plain
                and name not in (*OURS, *MODELS)
                and name not in arguments
                and _is_plain(argument.annotation)
            ):
                arguments[name] = argument.default
    return arguments


def _is_plain(annotation: Any) -> bool:
    """Return True if an argument takes numbers or words, as far as its annotation says."""
    if isinstance(annotation, str) or annotation is inspect.Parameter.empty:
        return not any(
            word in str(annotation)
            for word in ("dict", "Fn", "Protocol", "Selector", "LM")
        )
    kinds = get_args(annotation) or (annotation,)
    return not any(
        kind is dict or getattr(kind, "__origin__", None) in (dict, list)
        for kind in kinds
    )


class _Options(SureOptions, CandidateOptions):
    pass


@dataclass
class Programs(Desk):
    """A desk for programs with demonstrations.

    They are judged on all rows at once, or row by row where DSPy bootstraps and has to see every step.
    """

    most: int = 0
    """Rows that may be judged."""
    most_written: int = 0
    """Proposals that a model may write."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.judged = {self.key(self.context.base): self.context.tried[0]}
        self.written = 0
        self.prompts = PromptModel(self.context.teacher or self.lm, self._write)

    @property
    def pool(self) -> list[dspy.Example]:
        """Training rows, in the form that demonstrations have: their scores are in percent.

        Where candidates are measured on these very rows, they have the same numbers.
        """
        first = 0 if self.context.pool == self.context.rows else len(self.context.rows)
        return [
            row.copy(row=first + number, augmented=False, gold=True).with_inputs("row")
            for number, row in enumerate(super().pool)
        ]

    def _write(self, coroutine: Callable[[], Any]) -> Any:
        self.written += 1
        if self.written > self.most_written:
            raise Ended(Enough())
        return self.run(coroutine)

    @staticmethod
    def key(judge: Judge) -> tuple[str, ...]:
        """Return a program's identity: its instructions and demonstrations."""
        settle_demos(judge.method, judge.outcome.scale)
        return tuple(
            repr(saved_predictor(p.signature, p.demos)) for _, p in taught_of(judge)
        )

    def verdict(self, judge: Judge, row: int) -> Verdict:
        """Return a program's verdict on a row, traced if DSPy bootstraps; all rows are judged at its first one."""
        context = self.context
        count = len(self.context.rows)
        trace = dspy.settings.trace
        if trace is not None and trace is not main_thread_config["trace"]:
            self._pay(1)
            item = item_of((context.rows + context.pool)[row])
            verdict: Verdict = self.run(lambda: judge.verdict(item, self.lm))
            return verdict
        key = self.key(judge)
        if key not in self.judged:
            self._pay(count)
            self.judged[key] = self._tried(judge)
        trial = self.judged[key]
        if row < count:
            return trial.scored.verdicts[row]
        self._pay(1)
        item = item_of(context.pool[row - count])
        alone: Verdict = self.run(lambda: trial.program.verdict(item, self.lm))
        return alone

    def _tried(self, judge: Judge) -> Trial:
        """The program as a candidate of the search. Raises Ended."""
        context = self.context
        before = len(self.context.tried)
        changed: dict[str, str] = {}
        shown: list[Any] = []
        for name, predictor in taught_of(judge):
            instructions = predictor.signature.instructions
            if instructions != self.own[name]:
                changed[name] = instructions
            if len(predictor.demos) > len(shown):
                shown = predictor.demos
        kind: Any = "none"
        if shown:
            augmented = any(demo.get("augmented") for demo in shown)
            kind = "mixed" if augmented else "labels"
        name = f"{self.search.name.removeprefix(PREFIX)} {before}"
        form = {"instructions": changed} if changed else {}
        try:
            self.search.judge(
                context, Proposal(name, kind, range(len(shown)), judge.with_(), form)
            )
        except Exception as error:
            raise Ended(error) from error
        return context.tried[before]

    def _pay(self, rows: int) -> None:
        self.paid += rows
        if self.paid > self.most:
            raise Ended(Enough())


class DSPySearch(DemonstrationSearch):
    """An optimizer of DSPy. Made by `search_through`; its options are arguments of DSPy's own.

    candidates: on the scale of the other searches: how many programs may be judged on all rows, single rows counted;
    by default as many as the optimizer's own arguments ask for, where they say.
    """

    part: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._stated = frozenset(options)
        self._remarks: list[str] = []
        own = SIZES.get(self.name.removeprefix(PREFIX))
        if own is not None and "candidates" not in self._stated:
            size = max(1, own(self.options))
            self.options = self.options.model_copy(update={"candidates": size})
            self.candidates = size

    def evaluations(self) -> int:
        """Return how many times the validation rows are scored at most; once without candidates."""
        return int(self.candidates) + 3 if self.candidates else 1

    def proposals(self, judge: Judge, rows: int) -> int:
        """Return the calls that proposals of instructions take at most."""
        return PROPOSED * int(self.candidates)

    def explore(self, context: SearchContext) -> None:
        """Run DSPy's optimizer with judging as its metric."""
        self._remarks = []
        if not self.candidates:
            return
        if not context.base.method.taught() or context.base.whole_documents:
            self._remarks.append(
                f"{self.name}: this judge has no prompt of one output that DSPy could change"
            )
            return
        judge = context.base.with_()
        engine.run(judge.method.prepare(judge.lm))
        most = (self.evaluations() - 1) * len(context.rows)
        searching: Any = self
        desk = Programs(
            searching,
            context,
            most=most,
            most_written=self.proposals(judge, len(context.rows)),
        )
        try:
            with quiet_dspy(), dspy.context(lm=desk.prompts, adapter=PlainAdapter()):
                proposed = self._propose(JudgeProgram(judge, desk), desk)
                desk.verdict(proposed.judge, 0)  # what it chose is a candidate, too
        except Ended as end:
            if not isinstance(end.error, Enough):
                raise end.error from None
            where = f"{desk.most} judged rows or {desk.most_written} proposals"
            self._remarks.append(
                f"{self.name} ended at {where}; candidates={self.candidates} allows no more"
            )
        except BudgetError:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            asked = desk.paid or desk.written
            if (chosen := self._chosen()) and not asked:
                options = ", ".join(f"{name}={value}" for name, value in chosen.items())
                raise OptionError(
                    f"{self.name} does not start with {options}: {message}"
                ) from None
            self._remarks.append(f"{self.name} could not go on ({message})")

    def choose(self, tried: Any, rows: Any) -> tuple[Trial, str | None]:
        """Choose as any search does, with the remarks of this run added to the reason."""
        chosen, reason = super().choose(tried, rows)
        return chosen, "; ".join(
            [*self._remarks, *([reason] if reason else [])]
        ) or None

    def _propose(self, program: JudgeProgram, desk: Programs) -> Any:
        """Run DSPy's optimizer with the options that were given, and else DSPy's defaults."""
        rows = desk.rows
        chosen = dict(self._chosen())
        own = {
            "metric": desk.metric(),
            "num_threads": 1,
            "seed": self.seed,
            **dict.fromkeys(MODELS, desk.prompts),
        }
        if "bsize" in type(self.options).model_fields:  # rows in a batch, at most all
            own["bsize"] = min(int(self.options.bsize), len(rows))
        optimizer = self.part(**_taken(self.part.__init__, {**chosen, **own}))
        sets = {"trainset": desk.pool, "valset": rows}
        evaluated = {"num_threads": 1, "display_progress": False}
        arguments = {**chosen, **sets, "eval_kwargs": evaluated, "seed": self.seed}
        return optimizer.compile(program, **_taken(self.part.compile, arguments))

    def _chosen(self) -> Mapping[str, Any]:
        """DSPy's arguments that differ from its defaults."""
        fields = type(self.options).model_fields
        own = set(_Options.model_fields)
        return {
            name: getattr(self.options, name)
            for name in fields
            if name not in own and name in self._stated
        }


def refused() -> dict[str, str]:
    """Return those of the installed DSPy that cannot be used, and why."""
    return {name: REFUSED[name] for name in installed() if name in REFUSED}


optimizers.through[PREFIX] = Through(names, search_through, refused)


def _taken(where: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that a function has arguments for."""
    return {
        name: value
        for name, value in arguments.items()
        if name in inspect.signature(where).parameters
    }
