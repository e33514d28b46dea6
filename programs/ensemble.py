"""An ensemble: several prompts of one judge score each output, and the mean of their z-scores is the score.

Prompts with other demonstrations err on other outputs, so that their mean can order outputs better than each of them.
Some give high scores throughout, some use half of the scale; a z-score (how many standard deviations above its own
mean) makes their scores comparable. It costs as many times the calls as it has members.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from ..errors import ArtifactError, OptionError
from ..signatures.values import CLOSED, Item, Opinion, Scale, Verdict
from .artifact import Method, Whole, method, whole
from .judge import Judge
from .members import OfMembers
from .models.lm import LanguageModel
from .prompting.saved import Part
from .registry import ensembles

FEWEST, MOST = 2, 8
#: A member whose scores vary less says nothing, and its z-scores would say it loudly.
LEAST_SD = 1e-3


@dataclass(frozen=True, slots=True)
class Norm:
    """Mean and standard deviation of a member's percents, over the rows that the ensemble was made from."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (0 <= self.mean <= 100 and LEAST_SD <= self.sd <= 100):  # NaN is refused, too
            raise OptionError(
                f"a member's mean lies in 0..100 and its standard deviation in {LEAST_SD:g}..100; "
                f"got {self.mean:g} and {self.sd:g}"
            )

    def z(self, percent: float) -> float:
        return (percent - self.mean) / self.sd

    def percent(self, z: float) -> float:
        """A z-score as a percent, kept inside 0..100."""
        return min(100.0, max(0.0, self.mean + self.sd * z))


class SavedMember(Method):
    norm: Norm


class SavedMembers(Part):
    norm: Norm
    others: Annotated[list[SavedMember], Field(min_length=1, max_length=63)]


class SavedEnsemble(Whole):
    """The file itself is the first member."""

    committee: SavedMembers

    def made(self) -> Judge:
        members = [self.built(self.scale), *(member.built(self.scale) for member in self.committee.others)]
        norms = [self.committee.norm, *(member.norm for member in self.committee.others)]
        try:
            judge = Ensemble(members, norms, scale=self.scale)
        except OptionError as error:
            raise ArtifactError(f"the file's committee does not fit: {error}") from None
        self.give(judge)
        judge.provenance = self.provenance
        return judge


@ensembles.register
class Ensemble(OfMembers):
    """Judges of one kind that differ in what their prompts show, and the mean of their z-scores.

    members: 2 to 8 judges of the same kind; they are copied, and all use the ensemble's model. norms: one for each.
    The score is the mean z-score of the members that gave one, on the first member's percents (its mean and standard
    deviation), inside 0..100. Explanation, criteria, errors and notes are the first one's that gave a score; the other
    members stop after theirs where the method can. A verdict's `opinions` hold every member's score on the first one's
    percents, `spread` their standard deviation; a member that fails is left out of the mean, with a note.

    Raises OptionError for judges of whole documents, whose scores are ranks, and for an ensemble as a member.
    """

    kind: ClassVar[str] = "committee"  # its key in saved judges
    about: ClassVar[str] = "the mean of the z-scores of several prompts of one judge"
    Saved = SavedEnsemble

    def __init__(
        self,
        members: Sequence[Judge],
        norms: Sequence[Norm],
        *,
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
    ) -> None:
        if not FEWEST <= len(members) <= MOST or len(norms) != len(members):
            raise OptionError(
                f"an ensemble has {FEWEST} to {MOST} members and one norm for each; got {len(members)} and {len(norms)}"
            )
        first = members[0]
        if first.kind in ensembles or any(type(m) is not type(first) for m in members):
            raise OptionError("the members of an ensemble are judges of one kind, and no ensembles themselves")
        if first.whole_documents:
            raise OptionError(
                f"{type(first).__name__} ranks the outputs of a document against each other; the members of an "
                "ensemble judge one output at a time"
            )
        super().__init__(lm=lm, scale=scale)
        # Not frozen: DSPy would pass over the demonstrations of what it takes for compiled already.
        self.members = [
            m.copy_for(_compiled=False, _language_model=None, calibration=None, provenance={}, report=None)
            for m in members
        ]
        self.norms = tuple(norms)
        self.knowledge = self.members[0].knowledge
        self.set_brief(False)

    def options(self) -> dict[str, Any]:
        """The first member's. The members themselves, with their norms, are in the artifact."""
        return self.members[0].options()

    def saved(self, lm: Mapping[str, Any]) -> dict[str, Any]:
        """The first member, as a judge's file has it, and the others beside it, each with its norm."""
        norms = [{"norm": {"mean": round(float(n.mean), 6), "sd": round(float(n.sd), 6)}} for n in self.norms]
        others = [norm | method(member) for norm, member in zip(norms[1:], self.members[1:], strict=True)]
        return whole(self, lm, self.members[0], **{self.kind: norms[0] | {"others": others}})

    def facts(self) -> dict[str, str]:
        return {"ensemble": f"the mean of {len(self.members)} prompts; {self.calls_per_row()} calls a row"}

    # -- what is passed on

    def set_brief(self, on: bool) -> None:
        """As in every judge for the first member; of the others only the score is read."""
        first, *others = self.members
        first.set_brief(on)
        for member in others:
            member.set_brief(True)

    async def prepare(self, lm: LanguageModel) -> None:
        first, *others = self.members
        await first.prepare(lm)
        for member in others:
            await member.prepare(lm)
            member.set_brief(True)  # settling the form of answers may have undone it

    def names(self) -> list[str]:
        return [f"member {n}" for n in range(1, len(self.members) + 1)]

    # -- judging

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        heard = await self.heard(item, lm)
        joined = self.joined(heard)
        failed = {name: v.failure for name, v in heard.items() if v.failure is not None}
        if len(failed) == len(heard):
            reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
            return Verdict(score=math.nan, failure=f"every member failed: {reasons}", **joined)
        shared = self.norms[0]
        z = [
            math.nan if v.failure is not None else norm.z(v.percent)
            for norm, v in zip(self.norms, heard.values(), strict=True)
        ]
        percents = [math.nan if math.isnan(one) else shared.percent(one) for one in z]
        lead = next(v for v in heard.values() if v.failure is None)
        spread = float(np.nanstd(percents, ddof=1)) if len(heard) - len(failed) > 1 else math.nan
        return Verdict(
            score=math.nan,
            percent=shared.percent(float(np.nanmean(z))),
            explanation=lead.explanation,
            criteria=lead.criteria,
            errors=lead.errors,
            opinions={
                name: Opinion(percent, explanation=v.explanation, errors=v.errors, failure=v.failure, notes=v.notes)
                for (name, v), percent in zip(heard.items(), percents, strict=True)
            },
            spread=spread * (self.scale.high - self.scale.low) / 100.0,
            notes=(*lead.notes, *(f"{name} gave no score: {reason}" for name, reason in failed.items())),
            **joined,
        )
