"""One judge of several aspects, each with a method, a scale and a calibration of its own.

What is read of a row is read once for all of them.

A call of a model is made for each aspect: answers on several aspects in one call lean on each other. The score of the
whole is the aspect called "overall", where there is one, and else the mean of the aspects on a common scale.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.parts import option
from judgesmith.programs import artifact, pipeline
from judgesmith.programs.aspects import OVERALL, aspects
from judgesmith.programs.capabilities import (
    passes_of,
    ranks_documents,
)
from judgesmith.programs.method import Cost, Method, Words
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message
from judgesmith.programs.outcome import PERCENT, Calibration, Outcome
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.programs.prompting.saved import SavedPredictor, Short
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.programs.readings.head import HeadData, LinearHead, Readings
from judgesmith.programs.readings.kinds import SIGNAL
from judgesmith.programs.refining import score_matrix
from judgesmith.programs.registry import methods
from judgesmith.programs.sharing import shared
from judgesmith.signatures.values import (
    Criterion,
    ErrorSpan,
    Item,
    Scale,
    Usage,
    Verdict,
)

#: The name of the aspect that is the output as a whole.
WHOLE = OVERALL[0]
#: Aspects of one judge.
MOST = 32


@dataclass(frozen=True, slots=True)
class Part:
    """One aspect of a judge of several.

    Attributes:
        method: judges it.
        outcome: makes its score of a percent.
        beside: corrects its percent by those of the other aspects; None where it stands alone.
    """

    method: Method
    outcome: Outcome
    beside: LinearHead | None = None


class SavedAspect(artifact.Scoring, artifact.SavedMethod):
    """One aspect in a saved judge; its prompts and demonstrations stand with those of the other aspects."""

    calibration: Calibration | None = None
    signatures: dict[Short, Short] = Field(default_factory=dict)
    state: dict[Short, SavedPredictor] = Field(default_factory=dict)
    beside: HeadData | None = None


def _listed(names: Any) -> Any:
    several = names.split(",") if isinstance(names, str) else names
    return tuple(several) if isinstance(several, list) else several


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    plain = tuple(name.strip() for name in names)
    if not all(plain):
        raise OptionError("an aspect has no name")
    if twice := next((one for one in plain if plain.count(one) > 1), None):
        raise OptionError(f"aspect {twice!r} is repeated; name each aspect once")
    return plain


@methods.register
class SeveralAspects(Method):
    """A judge of several aspects.

    `compile` makes it of label columns (`--aspect fluency --aspect coherence`, or `--aspect all`). Until it is
    compiled, each aspect is scored from 0 to 100.
    Options: `judgesmith list methods aspects`.

    >>> SeveralAspects(["fluency", "coherence"]).cost().calls_per_row
    2
    """

    kind: ClassVar[str] = "aspects"
    about: ClassVar[str] = (
        "judges several aspects at once, each by a method of its own, and the whole"
    )
    tells_by_numbers: ClassVar[bool] = True

    class Options(Method.Options):
        aspect: Annotated[
            tuple[Annotated[str, Field(max_length=200)], ...],
            BeforeValidator(_listed),
            AfterValidator(_distinct),
            Field(min_length=1, max_length=MOST),
        ] = option((WHOLE,), "The aspects that are judged, by name.")
        of: str = option(
            "direct", "The method that judges each of them, by its name.", max_length=80
        )

    options: Options

    class Fitted(parts.Options):
        aspects: (
            Annotated[dict[Short, SavedAspect], Field(min_length=1, max_length=MOST)]
            | None
        ) = option(None, "The method and the scale of each aspect.")

    def __init__(
        self,
        aspect: str | Sequence[str] = (WHOLE,),
        *,
        task: str = "",
        criteria: Sequence[Criterion] = (),
        **options: Any,
    ) -> None:
        super().__init__(task=task, criteria=criteria, aspect=aspect, **options)

    @classmethod
    def of_parts(cls, parts: Mapping[str, Part]) -> Self:
        """Return the judge of these aspects, each with its method. Raises OptionError."""
        kind = next(iter(parts.values())).method.kind
        several = cls(tuple(parts), of=kind)
        several._take(parts)
        return several

    @classmethod
    def in_words(cls, options: Mapping[str, Any], words: Words) -> Self:
        """See `Method.in_words`."""
        if words.library_aspect:
            raise OptionError(
                f"--as is for methods that judge one aspect of the library; {cls.kind} takes --criteria"
            )
        parts.read_options(cls.Options, options, f"--method {cls.kind}")
        named = {"aspect": words.labels_aspect or (WHOLE,)} | dict(options)
        return cls(task=words.task, criteria=words.criteria, **named)

    def build(self) -> None:
        """Make a method for each aspect."""
        self._take(
            {
                name: Part(self._method(name), Outcome(PERCENT))
                for name in self.options.aspect
            }
        )

    def _method(self, name: str) -> Method:
        """Return a method for an aspect, before anything is learnt. Raises OptionError."""
        kind = methods.get(self.options.of)
        if issubclass(kind, SeveralAspects):
            raise OptionError(f"of={self.options.of!r}: name the method of one aspect")
        words = Words(name, criteria=(self._meaning(name),))
        method: Method = kind.in_words(
            {}, replace(words, task=self.knowledge.description)
        )
        return method

    def _meaning(self, name: str) -> Criterion:
        """Return what an aspect means: in the user's words, else in the library's, else its name."""
        for criterion in self.knowledge.criteria:
            if criterion.name.casefold() == name.casefold():
                return Criterion(name[:80], criterion.definition)
        try:
            return Criterion(name[:80], aspects().find(name).definition)
        except OptionError:
            return Criterion(name[:80], "")

    def _take(self, aspects: Mapping[str, Part]) -> None:
        for attribute in [name for name in vars(self) if name.startswith("part_")]:
            delattr(self, attribute)
        for place, (name, part) in enumerate(aspects.items()):
            if ranks_documents(part.method):
                raise OptionError(
                    f"{name}: a {part.method.kind} judge ranks the outputs of a document; take a method that scores "
                    "one output"
                )
            setattr(self, f"part_{place}", part.method)
        self._outcomes = {name: part.outcome for name, part in aspects.items()}
        self._beside = {
            name: part.beside
            for name, part in aspects.items()
            if part.beside is not None
        }

    # -- its aspects

    def parts(self) -> dict[str, Part]:
        """Return its aspects, by name."""
        return {
            name: Part(
                getattr(self, f"part_{place}"),
                self._outcomes[name],
                self._beside.get(name),
            )
            for place, name in enumerate(self.options.aspect)
        }

    @property
    def scales(self) -> dict[str, Scale]:
        """The scale of each aspect's scores."""
        return {name: outcome.scale for name, outcome in self._outcomes.items()}

    def whole(self) -> Outcome:
        """Return what is made of the percent of the whole: the outcome of the aspect "overall", else a common scale."""
        if WHOLE in self._outcomes:
            return self._outcomes[WHOLE]
        scales = set(self.scales.values())
        return Outcome(scales.pop() if len(scales) == 1 else PERCENT)

    def members(self) -> list[Method]:
        """Return the methods of its aspects; see `capabilities.Composed`."""
        return [part.method for part in self.parts().values()]

    # -- judging

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Judge every aspect, and the whole."""
        aspects = self.parts()
        with shared():
            raw = await self._asked(aspects, item, lm)
        percents = {name: verdict.percent for name, verdict in raw.items()}
        verdicts = {
            name: _mapped(part, item, raw[name], percents)
            for name, part in aspects.items()
        }
        return self._together(verdicts)

    async def _asked(
        self, aspects: Mapping[str, Part], item: Item, lm: LanguageModel
    ) -> dict[str, Verdict]:
        """Return each aspect's verdict before it is mapped to a scale; a failure is its own."""
        calls = {
            name: pipeline.unmapped(part.method, part.outcome.scale, item, lm)
            for name, part in aspects.items()
        }
        if lm.embedded or passes_of(self, item).count:
            # One after the other: what the first reads, the others take as it is.
            return {name: await call for name, call in calls.items()}
        answers = await asyncio.gather(*calls.values(), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return dict(zip(calls, answers, strict=True))  # type: ignore[arg-type]

    def _together(self, verdicts: Mapping[str, Verdict]) -> Verdict:
        """Return the verdict on the whole, which has those on the aspects."""
        failed = list[str]()
        explained = list[str]()
        errors = list[ErrorSpan]()
        raw = list[str]()
        notes: dict[str, None] = {}
        partly: dict[str, float] = {}
        usage = Usage()
        for name, verdict in verdicts.items():
            if verdict.failure is not None and name in self._needed():
                failed.append(f"{name}: {verdict.failure}")
            if verdict.explanation:
                explained.append(f"{name}: {verdict.explanation}")
            for error in verdict.errors:
                errors.append(replace(error, notes=(*error.notes, f"found for {name}")))
            for text, share in verdict.partly.items():
                partly[text] = min(share, partly.get(text, 1.0))
            notes |= dict.fromkeys(verdict.notes)
            usage += verdict.usage
            raw += verdict.raw
        return Verdict(
            percent=math.nan if failed else self._percent(verdicts),
            failure="; ".join(failed) or None,
            explanation="\n".join(explained),
            errors=tuple(errors),
            repaired=any(verdict.repaired for verdict in verdicts.values()),
            notes=tuple(notes),
            partly=partly,
            usage=usage,
            raw=tuple(raw),
            aspects=dict(verdicts),
        )

    def _needed(self) -> tuple[str, ...]:
        """Return the aspects that the whole cannot be told without."""
        return (WHOLE,) if WHOLE in self._outcomes else tuple(self._outcomes)

    def _percent(self, verdicts: Mapping[str, Verdict]) -> float:
        if WHOLE in verdicts:
            return verdicts[WHOLE].percent
        percents = [
            self._outcomes[name].scale.to_percent(verdict.score)
            for name, verdict in verdicts.items()
        ]
        return math.fsum(percents) / len(percents)

    async def prepare(self, lm: LanguageModel) -> None:
        """Prepare the method of every aspect."""
        for method in self.members():
            await method.prepare(lm)

    def cost(self) -> Cost:
        """Return the calls of all aspects together."""
        costs = [method.cost() for method in self.members()]
        return Cost(
            sum(cost.calls_per_row for cost in costs),
            sum(cost.calls_per_document for cost in costs),
        )

    @property
    def brief(self) -> bool:
        """Return True if the answers of one aspect are a word or a number."""
        return any(method.brief for method in self.members())

    def meet(self, aspect: str, items: Sequence[Item], lm: LanguageModel) -> None:
        """Let every method take what training rows show."""
        for name, part in self.parts().items():
            part.method.meet(name, items, lm)

    def columns(self) -> tuple[Column, ...]:
        """Return the columns that any aspect weighs."""
        every = [column for method in self.members() for column in method.columns()]
        return tuple({column.name: column for column in every}.values())

    # -- demonstrations and prompts

    def taught(self) -> list[JudgePredict]:
        """Return the predictors of all aspects that demonstrations are for."""
        return [predict for method in self.members() for predict in method.taught()]

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a row as a demonstration; see `Method.demonstration`."""
        return self.members()[0].demonstration(item, verdict)

    def no_bootstrap(self) -> str | None:
        """Return why the answers of an aspect cannot be demonstrations."""
        return next(
            filter(None, (method.no_bootstrap() for method in self.members())), None
        )

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of each step, by aspect."""
        return {
            f"{name}: {step}": messages
            for name, part in self.parts().items()
            for step, messages in part.method.prompts(item).items()
        }

    # -- what is saved

    def fitted(self) -> dict[str, Any]:
        """Return method, scale and calibration of each aspect; see `capabilities.Learns`."""
        return {"aspects": {name: _saved(part) for name, part in self.parts().items()}}

    def load_fitted(self, name: str, data: Any) -> None:
        """Take what `fitted` gave. Raises OptionError, ArtifactError."""
        if set(data) != set(self.options.aspect):
            raise OptionError(
                f"the aspects are {', '.join(self.options.aspect)}, and there are methods of {', '.join(data)}"
            )
        read = {
            aspect: artifact.checked(SavedAspect, data[aspect])
            for aspect in self.options.aspect
        }
        self._take(
            {
                aspect: Part(
                    saved.plain(),
                    saved.outcome,
                    None if saved.beside is None else LinearHead.of(saved.beside),
                )
                for aspect, saved in read.items()
            }
        )

    def facts(self) -> dict[str, str]:
        """Return the method and the scale of each aspect."""
        shown = {}
        for name, part in self.parts().items():
            clauses = [f"{part.method.kind} on {part.outcome.scale}"]
            clauses += [f"beside {other}" for other in _others(name, part)]
            clauses += [f"{key}: {text}" for key, text in part.method.facts().items()]
            shown[f"aspect {name}"] = "; ".join(clauses)
        return shown


def _mapped(
    part: Part, item: Item, verdict: Verdict, percents: Mapping[str, float]
) -> Verdict:
    """Return a verdict on an aspect's own scale, its percent corrected by the other aspects'."""
    if verdict.failure is not None:
        return verdict
    if part.beside is not None:
        percent = float(corrected(part.beside, percents_table([percents]))[0])
        verdict = verdict.model_copy(update={"percent": percent})
    return part.outcome(verdict, item)


def percents_table(
    rows: Sequence[Mapping[str, float]], groups: Sequence[Any] | None = None
) -> Readings:
    """Return the aspects' percents of some rows as readings, NaN where an aspect has none; all rows name the same."""
    names = list(rows[0]) if rows else []
    return Readings(
        tuple(f"{SIGNAL}.{name}" for name in names),
        score_matrix(rows, names, float),
        tuple(range(len(rows)) if groups is None else groups),
    )


def corrected(head: LinearHead, table: Readings) -> Any:
    """Return percents by a head over the percents of all aspects, from 0 to 100."""
    return np.clip(head(table), 0.0, 100.0)


def _others(name: str, part: Part) -> list[str]:
    if part.beside is None:
        return []
    named = [key.removeprefix(f"{SIGNAL}.") for key in part.beside.weights]
    return [other for other in named if other != name]


def _saved(part: Part) -> dict[str, Any]:
    held = artifact.Parts(part.method, part.outcome)
    saved = artifact.method_of(held) | artifact.scoring(held)
    aspect = {key: saved[key] for key in saved if key not in ("signatures", "state")}
    if part.beside is not None:
        beside = part.beside.data("").model_dump(mode="json", exclude_defaults=True)
        aspect["beside"] = beside
    return aspect


def scales_of(method: Any) -> dict[str, Scale]:
    """Return the scale of each aspect of a method of several, {} of one that judges one thing."""
    return method.scales if isinstance(method, SeveralAspects) else {}
