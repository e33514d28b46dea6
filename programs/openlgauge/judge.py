"""OpeNLGauge: several annotators mark error spans, their mean is the score, a supervisor merges the errors.

Paper: "OpeNLGauge: An Explainable Metric for NLG Evaluation with Open-Weights LLMs" (§4).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, assert_never

import numpy as np
from pydantic import BeforeValidator, Field

from judgesmith import parts
from judgesmith.errors import CallError, OptionError
from judgesmith.parts import option
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.aspects import Aspect, Task
from judgesmith.programs.method import Cost
from judgesmith.programs.models.lm import (
    Connection,
    LanguageModel,
    Sampling,
    language_model,
)
from judgesmith.programs.models.names import ListedName
from judgesmith.programs.models.transport import Message
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.openlgauge.annotation import (
    FORCED_MOST,
    AnnotationLayout,
    Annotator,
    Focus,
    MergeLayout,
    Overall,
    Severity,
    Supervisor,
    error_list,
)
from judgesmith.programs.openlgauge.grounding import ground_errors
from judgesmith.programs.openlgauge.merging import (
    check_merged,
    lost_reports,
    merge_errors,
    outliers,
)
from judgesmith.programs.openlgauge.reading import MOST, Annotation
from judgesmith.programs.prompting.layouts import Reading
from judgesmith.programs.prompting.predict import Answer, JudgePredict, spent
from judgesmith.programs.refining import (
    Refinement,
    Refiner,
    TrainingRows,
    score_matrix,
    weighted_mean,
)
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import (
    CriterionScore,
    ErrorSpan,
    Item,
    Opinion,
    Usage,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Member:
    """One annotator of an ensemble: a model, its temperature, and its weight in the mean.

    >>> Member.parse("local/qwen2.5-1.5b@0.7")
    Member(model='local/qwen2.5-1.5b', temperature=0.7, weight=1.0)
    """

    model: str
    temperature: float = 0.0
    weight: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Member:
        """Read `local/qwen2.5-1.5b`, or `local/qwen2.5-1.5b@0.7` for a temperature.

        Raises:
            OptionError: For a temperature that is none.
        """
        match = re.fullmatch(r"(.+?)(?:@(\d+(?:\.\d+)?))?", text.strip())
        if not match:
            raise OptionError(
                "an annotator needs a model's name, and perhaps @ and a temperature: MODEL@0.7"
            )
        member = cls(match[1], float(match[2] or 0.0))
        if member.temperature > 2:
            raise OptionError(f"annotator {text!r}: a temperature lies between 0 and 2")
        return member

    @property
    def name(self) -> str:
        """Return the model, with its temperature unless that is 0; the key of its opinion in `Verdict.opinions`."""
        if not self.temperature:
            return self.model
        return f"{self.model}@{self.temperature:g}"


class SavedMember(parts.Options):
    """An annotator as a saved judge holds it."""

    model: ListedName = option(..., "The model's name.")
    temperature: float = option(0.0, "Its temperature.", ge=0, le=2)
    weight: float = option(1.0, "Its weight in the mean.", ge=0, le=1e6)


def _members(stated: Sequence[Member | str]) -> tuple[Member, ...]:
    members = tuple(m if isinstance(m, Member) else Member.parse(m) for m in stated)
    names = [m.name for m in members]
    if len(set(names)) < len(names):
        raise OptionError(
            "an annotator is named twice; give one of the two another temperature (MODEL@0.7)"
        )
    return members


@methods.register
class OpeNLGauge(OneAspect):
    """A method that marks errors, with one annotator or several. Options: `judgesmith list methods openlgauge`.

    task: what the system was asked to do; the library's where not given. Where several annotators are heard, the
    supervisor merges their errors; those of a single annotator are merged by overlap and similarity.

    Source: OpeNLGauge: An Explainable Metric for NLG Evaluation with Open-Weights LLMs.
    """

    kind: ClassVar[str] = "openlgauge"
    about: ClassVar[str] = (
        "marks error spans with explanations and severities, by one annotator or several"
    )
    paper: ClassVar[str] = (
        "OpeNLGauge: An Explainable Metric for NLG Evaluation with Open-Weights LLMs"
    )

    class Options(OneAspect.Options):
        low: str = option(
            "",
            "What the lowest label says of an output, as a clause; empty takes the library's.",
        )
        high: str = option(
            "",
            "What the highest label says of an output, as a clause; empty takes the library's.",
        )
        leave_aside: str = option(
            "", "What is not to be considered; empty takes the library's."
        )
        own_rules: str = option(
            "",
            "Rules of annotation for this aspect, one a line, after the general ones; empty takes the library's.",
            added=True,
            max_length=4000,
        )
        own_steps: str = option(
            "",
            "Steps of annotation for this aspect, one a line, in place of the general ones; empty takes the library's.",
            added=True,
            max_length=4000,
        )
        annotators: Annotated[tuple[Member, ...], BeforeValidator(_members)] = option(
            (),
            "Models of the ensemble, MODEL or MODEL@TEMPERATURE; without any, the judge's own model annotates alone.",
        )
        supervisor: Literal["lm", "none"] = option(
            "lm",
            "Who merges the annotators' errors: lm, the judge's own model; none, overlap and similarity.",
        )
        reading: Literal[Reading, "auto"] = option(
            "auto",
            "The stated label, or its expectation under the model's probabilities, which separates equal labels; auto "
            "takes the expectation where the models give log-probabilities.",
        )
        overall: Overall = option(
            "labels",
            "The overall judgement: labels, or integers (the paper's ablations, §7.3).",
        )
        severity: Severity = option(
            "integers",
            "The severity of errors: integers, or categories (an ablation, §7.3).",
        )
        rules: bool = option(
            True, "The prompt has the rules of annotation; no is an ablation (§7.3)."
        )
        forced_most: int = option(
            FORCED_MOST,
            "Errors at most in an answer of a local model, whose form is forced: small ones go on and on where they "
            "may. Other models, as in the paper, are asked for at most 8.",
            added=True,
            ge=1,
            le=MOST,
        )
        drop_outliers: bool = option(
            True,
            "An annotator whose score is two standard deviations and one label from the mean is not heard by the "
            "supervisor (its score counts).",
        )

    options: Options
    fitted_always: ClassVar[bool] = False

    class Fitted(parts.Options):
        ensemble: Annotated[list[SavedMember], Field(max_length=64)] | None = option(
            None, "The annotators with their weights."
        )

    def __init__(self, aspect: str | Aspect = "overall", **options: Any) -> None:
        super().__init__(aspect, **options)
        self._connection: Connection | None = None
        self._open: dict[str, LanguageModel] = {}
        self._brief = False
        #: Annotators that are asked no more; see `capabilities.HearsSeveral`.
        self.silent: tuple[str, ...] = ()

    @property
    def _annotators(self) -> tuple[Member, ...]:
        """The annotators that are asked."""
        named = self.options.annotators
        return tuple(member for member in named if member.name not in self.silent)

    def build(self) -> None:
        """Make the annotator and the supervisor."""
        self.annotator = Annotator(
            self._layout("expected" if self.options.reading == "expected" else "said")
        )
        self.supervisor = Supervisor(MergeLayout(forced_most=self.options.forced_most))

    @classmethod
    def aspect_options(cls, aspect: Aspect, task: Task | None) -> dict[str, str]:
        """Return the library's words for the aspect's ends and exclusions."""
        return {
            **super().aspect_options(aspect, task),
            "low": aspect.low,
            "high": aspect.high,
            "leave_aside": ", ".join(aspect.leave_aside),
            "own_rules": "\n".join(aspect.rules),
            "own_steps": "\n".join(aspect.steps),
        }

    @classmethod
    def described(cls, task: Task | None) -> str:
        """Return a task's description with the names of its parts."""
        if task is None:
            return ""
        named = {"source": task.source, "context": task.context, "output": task.output}
        return f"{task.description} " + " ".join(
            f"The {tag} is the {name}." for tag, name in named.items() if name
        )

    def _layout(self, reading: Reading) -> AnnotationLayout:
        o = self.options
        return AnnotationLayout(
            reading,
            overall=o.overall,
            severity=o.severity,
            rules=o.rules,
            forced_most=o.forced_most,
        )

    def saved_options(self) -> dict[str, Any]:
        """Without the annotators, which stand with what was fitted."""
        return {
            name: value
            for name, value in super().saved_options().items()
            if name != "annotators"
        }

    def refiners(self) -> list[Refiner]:
        """Return the fit of the annotators' weights, if there are several."""
        return [self._weigh_annotators] if len(self._annotators) > 1 else []

    def _weigh_annotators(self, rows: TrainingRows) -> Refinement:
        annotators = self._annotators
        names = [member.name for member in annotators]
        opinions = score_matrix(
            [verdict.opinions for verdict in rows.verdicts],
            names,
            attrgetter("percent"),
        )
        fit = rows.ridge_weights(
            opinions, own=False, parts="annotators", plain="equal weights"
        )
        if fit.reason is not None:
            return Refinement("ensemble", rows.percents, fit.to_dict(), fit.reason)
        weighed = list[Member]()
        shares = list[str]()
        for member, weight in zip(annotators, fit.weights, strict=True):
            weighed.append(replace(member, weight=round(weight, 6)))
            shares.append(f"{member.name} {weight:.2f}")
        self.choose(annotators=weighed)
        changed = (
            f"annotators are weighed ({', '.join(shares)}): {rows.label} {fit.found:.2f} against {fit.plain:.2f} "
            "for equal weights on training rows that the weights were not fitted to"
        )
        return Refinement(
            "ensemble",
            weighted_mean(opinions, fit.weights),
            fit.to_dict(),
            changed=changed,
        )

    def fitted(self) -> dict[str, Any]:
        """Return the annotators with their weights; see `capabilities.Learns`."""
        members = [
            {
                "model": m.model,
                "temperature": float(m.temperature),
                "weight": round(float(m.weight), 6),
            }
            for m in self._annotators
        ]
        return {"ensemble": members} if members else {}

    def load_fitted(self, name: str, data: Any) -> None:
        """Take the data that `fitted` gave.

        Raises:
            OptionError: For data that does not fit.
        """
        self.choose(
            annotators=[Member(m["model"], m["temperature"], m["weight"]) for m in data]
        )

    # -- models

    def models(self) -> tuple[str, ...]:
        """Return the names of the annotators' models."""
        return tuple(dict.fromkeys(m.model for m in self._annotators))

    def connect(self, connection: Connection | None) -> None:
        """Take the way to reach these models."""
        self._connection = connection
        self._open = {}

    def use(self, name: str, lm: str | LanguageModel | Any) -> None:
        """Let the annotator called `name` (`Member.name`) use this model object."""
        self._open[name] = language_model(lm)

    def _model(self, member: Member, lm: LanguageModel) -> LanguageModel:
        if member.name not in self._open:
            sampling = Sampling(member.temperature, lm.sampling.max_tokens)
            if member.model == lm.name and sampling == lm.sampling:
                self._open[member.name] = lm
            else:
                self._open[member.name] = language_model(
                    member.model, sampling=sampling, connection=self._connection
                )
        opened = self._open[member.name]
        opened.pay_with(lm)
        return opened

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle one reading for all annotators."""
        models = [self._model(m, lm) for m in self._annotators] or [lm]
        able = [await model.capabilities() for model in models]
        reading = self.options.reading
        match reading:
            case "auto":
                # One way of reading for all, or their mean would mix two kinds of numbers.
                every = all(one.logprobs for one in able)
                reading = "expected" if every else "said"
            case "said" | "expected":
                pass
            case _:
                assert_never(reading)
        self.choose(reading=reading)

    def cost(self) -> Cost:
        """Return a call for each annotator, and one for the supervisor."""
        annotations = max(1, len(self._annotators))
        return Cost(annotations + 1 if self._supervises else annotations)

    @property
    def _supervises(self) -> bool:
        """Return True if a model merges the reports of several annotators."""
        return self.options.supervisor == "lm" and len(self._annotators) > 1

    @property
    def brief(self) -> bool:
        """Return True if scoring leaves out the supervisor, whose merge changes no score."""
        return self._brief

    def set_brief(self, on: bool) -> None:
        """Leave the supervisor out: it merges errors and does not touch the score."""
        self._brief = on

    def stops_early(self) -> bool:
        """Return whether brief answers leave out what a demonstration would show."""
        return self._supervises

    # -- judging

    def focus(self) -> Focus:
        """Return the focus of annotators: aspect, definition, task, scale, and exclusions."""
        if self.knowledge.criteria:
            definition = self.knowledge.criteria[0].definition
        else:
            definition = ""
        return Focus(
            self.options.aspect,
            definition,
            self.knowledge.description,
            self.options.low,
            self.options.high,
            self.options.leave_aside,
            self.options.own_rules,
            self.options.own_steps,
        )

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Collect all annotators' opinions, average their scores and merge their errors."""
        members = self._annotators or (Member(lm.name, lm.sampling.temperature),)
        models = [self._model(member, lm) for member in self._annotators] or [lm]
        calls = [
            self._opinion(item, member, model)
            for member, model in zip(members, models, strict=True)
        ]
        answered = await asyncio.gather(*calls)
        answers = [answer for _, answer in answered]
        opinions = _by_member(members, answered)
        percents = np.array([opinion.percent for opinion in opinions.values()])
        usable = np.isfinite(percents)
        if not usable.any():
            usage, raw = spent(answers)
            return Verdict.failed(_why_none(opinions), usage=usage, raw=raw)
        percent = _weighted(percents[usable], members, usable)
        errors, merge_notes, merge = await self._merged(item, opinions, lm)
        usage, raw = spent([*answers, merge])
        return Verdict(
            percent=percent,
            explanation=_nearest(opinions, percent),
            errors=errors,
            opinions=opinions if self._annotators else {},
            spread=_spread(percents[usable]),
            repaired=any(answer.read.repaired for answer in answers),
            notes=tuple(self._notes(opinions, merge_notes)),
            usage=usage,
            raw=raw,
        )

    def _notes(
        self, opinions: Mapping[str, Opinion], merge_notes: Sequence[str]
    ) -> Iterator[str]:
        for name, opinion in opinions.items():
            if opinion.failure:
                yield f"annotator {name} gave no score: {opinion.failure}"
        for name, opinion in opinions.items():
            if opinion.outlier and self.options.drop_outliers:
                yield f"annotator {name} is an outlier; its errors were left out"
        yield from merge_notes
        if len(opinions) == 1:
            yield from next(iter(opinions.values())).notes

    async def _opinion(
        self, item: Item, member: Member, model: LanguageModel
    ) -> tuple[Opinion, Answer]:
        try:
            answer: Answer = await self.annotator.annotate(item, self.focus(), model)
        except CallError as error:
            return Opinion(math.nan, failure=str(error)), _lost(error)
        values = answer.read.values
        annotation: Annotation = values["annotation"]
        errors = ground_errors(annotation.errors, item.output, member.name)
        notes = answer.read.notes
        return Opinion(
            values["percent"],
            values["label"],
            annotation.explanation,
            errors,
            notes=notes,
        ), answer

    def _reported(
        self, opinions: Mapping[str, Opinion]
    ) -> dict[str, tuple[ErrorSpan, ...]]:
        """The errors that are to be merged, by annotator."""
        return {
            name: o.errors
            for name, o in opinions.items()
            if o.errors and not (o.outlier and self.options.drop_outliers)
        }

    async def _merged(
        self, item: Item, opinions: Mapping[str, Opinion], lm: LanguageModel
    ) -> tuple[tuple[ErrorSpan, ...], list[str], Answer | None]:
        """The merged errors, what to note, and what the supervisor's call cost."""
        reported = self._reported(opinions)
        if self._brief or not self._supervises or len(reported) < 2:
            return merge_errors(reported), [], None
        try:
            answer = await self.supervisor.merge(item.output, reported, lm)
        except CallError as error:
            note = f"the supervisor failed ({error}); errors were merged by overlap"
            return merge_errors(reported), [note], _lost(error)
        merged = ground_errors(answer.read.values["merged"], item.output)
        checked = check_merged(merged, reported)
        lost = len(lost_reports(checked, reported)) if len(checked) < MOST else 0
        count = sum(map(len, reported.values()))
        text = f"the supervisor dropped {lost} of {count} reported errors; they are with the annotators"
        return checked, [text] if lost else [], answer

    # -- demonstrations and prompts

    def taught(self) -> list[JudgePredict]:
        """Return the predictors of the annotator and, if it is in use, of the supervisor."""
        # While it is brief, nothing tells whether what is changed of the supervisor is for the better.
        if self._supervises and not self._brief:
            merging = [self.supervisor.predict]
        else:
            merging = []
        return [self.annotator.predict, *merging]

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a labelled row with the errors of a verdict."""
        demo = super().demonstration(item, verdict)
        if verdict is None or not verdict.errors:
            return demo
        demo["annotation"] = error_list(verdict.errors)
        opinions = verdict.opinions
        if len(reported := self._reported(opinions)) > 1:
            reports = {
                name: CriterionScore(opinions[name].percent, error_list(e))
                for name, e in reported.items()
            }
            demo["criteria_scores"] = reports
        return demo

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of annotator and supervisor."""
        inputs = self.annotator.inputs(item, self.focus())
        messages = {"annotator": self.annotator.predict.messages(inputs)}
        if self._supervises:
            shown = {"first": (ErrorSpan("(what the annotators reported)", "…", 3.0),)}
            inputs = self.supervisor.inputs(item.output, shown)
            messages["supervisor (the annotators' errors follow)"] = (
                self.supervisor.predict.messages(inputs)
            )
        return messages


def _by_member(
    members: Sequence[Member], answered: Sequence[tuple[Opinion, Answer]]
) -> dict[str, Opinion]:
    """Return the opinions by annotator; of several, each that stands apart is marked."""
    names = [member.name for member in members]
    opinions = dict(zip(names, (opinion for opinion, _ in answered), strict=True))
    if len(opinions) > 1:
        # The rule is on labels 1..5.
        labels = [1.0 + opinion.percent / 25.0 for opinion in opinions.values()]
        for name, apart in zip(opinions, outliers(labels), strict=True):
            opinions[name] = replace(opinions[name], outlier=apart)
    return opinions


def _why_none(opinions: Mapping[str, Opinion]) -> str:
    """Return why no annotator gave a score."""
    reasons = [f"{name}: {opinion.failure}" for name, opinion in opinions.items()]
    if len(opinions) == 1 and (failure := next(iter(opinions.values())).failure):
        return failure
    return f"every annotator failed: {'; '.join(reasons)}"


def _weighted(percents: Any, members: Sequence[Member], usable: Any) -> float:
    """Return the mean of the percents that some annotators gave, by weight; equal if these weigh nothing."""
    weights = np.array([member.weight for member in members])[usable]
    if not weights.sum() > 0:
        weights = np.ones(len(weights))
    return float(np.average(percents, weights=weights))


def _nearest(opinions: Mapping[str, Opinion], percent: float) -> str:
    """Return the explanation of the annotator that is nearest to the mean."""
    scored = [o for o in opinions.values() if not math.isnan(o.percent)]
    return min(scored, key=lambda opinion: abs(opinion.percent - percent)).explanation


def _spread(percents: Any) -> float:
    return float(np.std(percents, ddof=1)) if len(percents) > 1 else math.nan


def _lost(error: CallError) -> Answer:
    """A call that gave no answer, for what it cost and what the model said."""
    return Answer(
        Read({}),
        getattr(error, "usage", None) or Usage(),
        tuple(getattr(error, "raw", ())),
    )
