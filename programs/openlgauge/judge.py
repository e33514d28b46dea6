"""OpeNLGauge: several annotators mark error spans, their mean is the score, a supervisor merges the errors.

Paper: "OpeNLGauge: An Explainable Metric for NLG Evaluation with Open-Weights LLMs" (§4).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ...errors import CallError, OptionError
from ...signatures.values import Criterion, ErrorSpan, Item, Opinion, Scale, Usage, Verdict
from ..aspects import Aspect, AspectLibrary, Task, known_aspect
from ..judge import Judge
from ..models.lm import Connection, LanguageModel, Sampling, language_model
from ..models.transport import Message
from ..prompting.predict import Answer, JudgePredict
from .annotation import AnnotationLayout, Annotator, Focus, Labels, Overall, Severity, Supervisor, error_list
from .grounding import ground_errors
from .merging import MOST, check_merged, lost_reports, merge_errors, outliers
from .text import Annotation

SUPERVISORS = ("lm", "none")


@dataclass(frozen=True, slots=True)
class Member:
    """One annotator of an ensemble: a model, its temperature, and its weight in the mean."""

    model: str
    temperature: float = 0.0
    weight: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Member:
        """`local/qwen2.5-1.5b`, or `local/qwen2.5-1.5b@0.7` for a temperature. Raises OptionError."""
        found = re.fullmatch(r"(.+?)(?:@(\d+(?:\.\d+)?))?", text.strip())
        if not found:
            raise OptionError("an annotator needs a model's name, and perhaps @ and a temperature: MODEL@0.7")
        made = cls(found[1], float(found[2] or 0.0))
        if made.temperature > 2:
            raise OptionError(f"annotator {text!r}: a temperature lies between 0 and 2")
        return made

    @property
    def name(self) -> str:
        return self.model if not self.temperature else f"{self.model}@{self.temperature:g}"


class OpeNLGauge(Judge):
    """A judge that marks errors.

    aspect: an `Aspect`, its name in the aspect library (`summarization/coherence`), or any name together with
    `criteria` (one Criterion that defines it), low and high (what the lowest and the highest label say of an output)
    and leave_aside. task: what the system was asked to do; the library's where not given. annotators: Members or their
    names; without any, the judge's own model annotates alone. supervisor: "lm" merges several annotators' errors by the
    judge's own model, "none" by overlap and similarity without a call; so do the errors of a single annotator.
    reading: the label "said", or its expectation under the model's probabilities, which tells equal labels apart;
    "auto" takes the expectation where the model gives log-probabilities. drop_outliers: an annotator whose score is two
    standard deviations and one label from the mean is not heard by the supervisor (its score counts). overall,
    severity, rules: the paper's ablations (§7.3). show_data: structured inputs are laid out for reading.
    """

    kind: ClassVar[str] = "openlgauge"

    def __init__(
        self,
        aspect: str | Aspect = "overall",
        *,
        task: str = "",
        criteria: Sequence[Criterion] = (),
        low: str = "",
        high: str = "",
        leave_aside: str = "",
        annotators: Sequence[Member | str] = (),
        supervisor: Literal["lm", "none"] = "lm",
        reading: Labels | Literal["auto"] = "auto",
        overall: Overall = "labels",
        severity: Severity = "integers",
        rules: bool = True,
        drop_outliers: bool = True,
        show_data: bool = True,
        library: AspectLibrary | None = None,
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
    ) -> None:
        if isinstance(aspect, Aspect) or not criteria:
            known, its_task = known_aspect(aspect, library)
            aspect, criteria = known.name, (Criterion(known.name, known.definition),)
            low, high = low or known.low, high or known.high
            leave_aside = leave_aside or ", ".join(known.leave_aside)
            task = task or _told(its_task)
        super().__init__(task=task, criteria=criteria, lm=lm, scale=scale)
        for name, value, allowed in (
            ("supervisor", supervisor, SUPERVISORS),
            ("reading", reading, (*get_args(Labels), "auto")),
            ("overall", overall, get_args(Overall)),
            ("severity", severity, get_args(Severity)),
        ):
            if value not in allowed:
                raise OptionError(f"{name} {value!r} is none of {', '.join(allowed)}")
        if len(criteria) != 1:
            raise OptionError(f"one aspect is annotated at a time; got {len(criteria)} criteria")
        self.aspect = aspect
        self.low, self.high, self.leave_aside = low, high, leave_aside
        self.supervised, self.reading = supervisor, reading
        self.overall, self.severity, self.rules = overall, severity, rules
        self.drop_outliers, self.show_data = drop_outliers, show_data
        self.members = tuple(m if isinstance(m, Member) else Member.parse(m) for m in annotators)
        names = [m.name for m in self.members]
        if len(set(names)) < len(names):
            raise OptionError("an annotator is named twice; give one of the two another temperature (MODEL@0.7)")
        self._connection: Connection | None = None
        self._open: dict[str, LanguageModel] = {}
        self._brief = False
        self.annotator = Annotator(self._layout("said"))
        self.supervisor = Supervisor()

    def _layout(self, reading: Labels) -> AnnotationLayout:
        return AnnotationLayout(reading, overall=self.overall, severity=self.severity, rules=self.rules)

    def options(self) -> dict[str, Any]:
        return {
            "aspect": self.aspect,
            "low": self.low,
            "high": self.high,
            "leave_aside": self.leave_aside,
            "supervisor": self.supervised,
            "reading": self.reading,
            "overall": self.overall,
            "severity": self.severity,
            "rules": self.rules,
            "drop_outliers": self.drop_outliers,
            "show_data": self.show_data,
        }

    # -- models

    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.model for m in self.members))

    def connect(self, connection: Connection | None) -> None:
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
                self._open[member.name] = language_model(member.model, sampling=sampling, connection=self._connection)
        opened = self._open[member.name]
        opened.meter = lm.meter  # one budget and one bill for the whole ensemble
        return opened

    async def prepare(self, lm: LanguageModel) -> None:
        models = [self._model(m, lm) for m in self.members] or [lm]
        able = [await model.capabilities() for model in models]
        reading: Labels = "said" if self.reading == "said" else "expected"
        if self.reading == "auto" and not all(a.logprobs for a in able):
            reading = "said"  # one way of reading for all, or their mean would mix two kinds of numbers
        self.reading = reading
        self.annotator.predict.layout = self._layout(reading)

    def calls_per_row(self) -> int:
        several = len(self.members) > 1
        return max(1, len(self.members)) + (1 if several and self.supervised == "lm" else 0)

    @property
    def brief(self) -> bool:
        return self._brief

    def set_brief(self, on: bool) -> None:
        """Leave the supervisor out: it merges errors and does not touch the score."""
        self._brief = on

    # -- judging

    def focus(self) -> Focus:
        definition = self.knowledge.criteria[0].definition if self.knowledge.criteria else ""
        return Focus(self.aspect, definition, self.knowledge.description, self.low, self.high, self.leave_aside)

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        members = self.members or (Member(lm.name, lm.sampling.temperature),)
        models = [self._model(m, lm) for m in self.members] or [lm]
        heard = await asyncio.gather(*(self._opinion(item, m, model) for m, model in zip(members, models, strict=True)))
        opinions = {m.name: opinion for m, (opinion, _) in zip(members, heard, strict=True)}
        answers = [answer for _, answer in heard]
        percents = np.array([o.percent for o in opinions.values()])
        usable = np.isfinite(percents)
        usage = sum((a.usage for a in answers), Usage())
        raw = tuple(text for a in answers for text in a.raw)
        if not usable.any():
            reasons = "; ".join(f"{name}: {o.failure}" for name, o in opinions.items())
            single = next(iter(opinions.values())).failure if len(opinions) == 1 else None
            return Verdict.failed(single or f"every annotator failed: {reasons}", usage=usage, raw=raw)
        weights = np.array([m.weight for m in members])[usable]
        if not weights.sum() > 0:  # only annotators that weigh nothing are left
            weights = np.ones(len(weights))
        percent = float(np.average(percents[usable], weights=weights))
        if len(opinions) > 1:
            far = outliers([1.0 + p / 25.0 for p in percents])  # the rule is on labels 1..5
            opinions = {
                name: replace(o, outlier=bool(out)) for (name, o), out in zip(opinions.items(), far, strict=True)
            }
        errors, merged_by, merge = await self._merged(item, opinions, lm)
        notes = [f"annotator {name} gave no score: {o.failure}" for name, o in opinions.items() if o.failure]
        notes += [f"annotator {name} is an outlier; its errors were left out" for name, o in opinions.items()
                  if o.outlier and self.drop_outliers]  # fmt: skip
        notes += merged_by
        if len(opinions) == 1:
            notes += next(iter(opinions.values())).notes
        if merge is not None:
            usage, raw = usage + merge.usage, (*raw, *merge.raw)
        scored = [o for o in opinions.values() if not math.isnan(o.percent)]
        nearest = min(scored, key=lambda o: abs(o.percent - percent))
        spread = float(np.std(percents[usable], ddof=1)) if usable.sum() > 1 else math.nan
        return Verdict(
            score=math.nan,
            percent=percent,
            explanation=nearest.explanation,
            errors=errors,
            opinions=opinions if self.members else {},
            spread=spread * (self.scale.high - self.scale.low) / 100.0,
            repaired=any(a.repaired for a in answers),
            notes=tuple(notes),
            usage=usage,
            raw=raw,
        )

    async def _opinion(self, item: Item, member: Member, model: LanguageModel) -> tuple[Opinion, _Heard]:
        try:
            answer: Answer = await self.annotator.annotate(item, self.focus(), model, show_data=self.show_data)
        except CallError as error:
            return Opinion(math.nan, failure=str(error)), _Heard.of_failure(error)
        values = answer.read.values
        found: Annotation = values["annotation"]
        opinion = Opinion(
            values["percent"],
            values["label"],
            found.explanation,
            ground_errors(found.errors, item.output, member.name),
            notes=answer.read.notes,
        )
        return opinion, _Heard.of(answer)

    async def _merged(
        self, item: Item, opinions: Mapping[str, Opinion], lm: LanguageModel
    ) -> tuple[tuple[ErrorSpan, ...], list[str], _Heard | None]:
        """The merged errors, what to note, and what the supervisor's call cost."""
        reported = {
            name: o.errors for name, o in opinions.items() if o.errors and not (o.outlier and self.drop_outliers)
        }
        if not reported or self._brief or self.supervised == "none" or len(reported) == 1:
            return merge_errors(reported, item.output), [], None
        try:
            answer = await self.supervisor.merge(item.output, reported, lm)
        except CallError as error:
            note = f"the supervisor failed ({error}); errors were merged by overlap"
            return merge_errors(reported, item.output), [note], _Heard.of_failure(error)
        merged = ground_errors(answer.read.values["merged"], item.output)
        made = check_merged(merged, reported, item.output)
        lost = len(lost_reports(made, reported, item.output)) if len(made) < MOST else 0
        count = sum(map(len, reported.values()))
        said = f"the supervisor dropped {lost} of {count} reported errors; they are with the annotators"
        return made, [said] if lost else [], _Heard.of(answer)

    # -- demonstrations and prompts

    def taught(self) -> list[JudgePredict]:
        return [self.annotator.predict]  # the supervisor merges by rules that need no example

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        demo = super().demonstration(item, verdict)
        if verdict is not None and verdict.errors:
            demo["annotation"] = error_list(verdict.errors)
        return demo

    def previews(self, item: Item) -> dict[str, list[Message]]:
        inputs = self.annotator.inputs(item, self.focus(), show_data=self.show_data)
        made = {"annotator": self.annotator.predict.messages(inputs, group=item.group)}
        if len(self.members) > 1 and self.supervised == "lm":
            shown = {"first": (ErrorSpan("(what the annotators reported)", "…", 3.0),)}
            inputs = self.supervisor.inputs(item.output, shown)
            made["supervisor (the annotators' errors follow)"] = self.supervisor.predict.messages(inputs)
        return made


@dataclass(frozen=True, slots=True)
class _Heard:
    """What an annotator's or the supervisor's answer cost, and how it looked."""

    usage: Usage
    raw: tuple[str, ...]
    repaired: bool = False

    @classmethod
    def of(cls, answer: Answer) -> _Heard:
        return cls(answer.usage, answer.raw, answer.read.repaired)

    @classmethod
    def of_failure(cls, error: CallError) -> _Heard:
        return cls(getattr(error, "usage", None) or Usage(), tuple(getattr(error, "raw", ())))


def _told(task: Task | None) -> str:
    """A task of the library for a prompt."""
    if task is None:
        return ""
    named = {"source": task.source, "context": task.context, "output": task.output}
    return f"{task.description} " + " ".join(f"<{tag}>: the {name}." for tag, name in named.items() if name)


__all__ = ["Member", "OpeNLGauge"]
