"""A judge of several aspects: a whole judge for each, which share what they read of an output."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, StringConstraints

from ..errors import ArtifactError, OptionError
from ..signatures.values import Item, Scale, Verdict
from .artifact import History, Whole
from .judge import Judge
from .members import OfMembers
from .models.lm import LanguageModel
from .prompting.saved import Part
from .registry import ensembles
from .sharing import one_output

FEWEST_ASPECTS, MOST_ASPECTS = 2, 16
LONGEST_NAME = 80
#: What `score` is.
MEAN = "the mean of the aspects' scores, none where one has none"


Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
SavedPart = Annotated[Any, BeforeValidator(Whole.of)]


class SavedAspects(Part):
    """The file of a judge of several aspects: a judge for each, all with one model."""

    aspects: Annotated[dict[Name, SavedPart], Field(min_length=FEWEST_ASPECTS, max_length=MOST_ASPECTS)]
    provenance: History

    def made(self) -> Judge:
        members = {name: saved.made() for name, saved in self.aspects.items()}
        try:
            judge = AspectsJudge(members)
        except OptionError as error:
            raise ArtifactError(f"the file's aspects do not fit: {error}") from None
        judge.provenance = self.provenance
        return judge


@ensembles.register
class AspectsJudge(OfMembers):
    """Judges of one aspect each, by the aspect's name: `AspectsJudge({"fluency": one, "meaning": other})`.

    by_aspect: 2 to 16 judges; they are copied, and all use this judge's model. What they compute of an output alike
    (the readings of a model) is computed once.

    A verdict's `aspects` hold the whole verdict of each: score on its own scale, explanation, interval, category,
    failure. Its `score` is the mean of their scores, on their scale, or on 0..100 where the scales differ; NaN where
    one has none, since the mean of the others would be of something else. The others keep theirs.

    Raises OptionError for fewer or more aspects, a name that is empty or longer than 80 characters, judges of whole
    documents, and a judge of several aspects as one of them.
    """

    kind: ClassVar[str] = "aspects"  # its key in saved judges
    about: ClassVar[str] = "a judge for each of several aspects, and the mean of their scores"
    Saved = SavedAspects

    def __init__(self, by_aspect: Mapping[str, Judge], *, lm: str | LanguageModel | Any | None = None) -> None:
        if not FEWEST_ASPECTS <= len(by_aspect) <= MOST_ASPECTS:
            raise OptionError(f"{FEWEST_ASPECTS} to {MOST_ASPECTS} aspects are judged together; got {len(by_aspect)}")
        for name, member in by_aspect.items():
            if not name.strip() or len(name) > LONGEST_NAME:
                raise OptionError(f"an aspect's name has 1 to {LONGEST_NAME} characters; got {name[:LONGEST_NAME]!r}")
            if member.by_aspect:
                raise OptionError(f"{name}: the judge of an aspect judges that alone, and no several aspects itself")
            if member.whole_documents:
                raise OptionError(
                    f"{name}: {type(member).__name__} ranks the outputs of a document against each other; several "
                    "aspects are judged together one output at a time"
                )
        scales = {member.scale for member in by_aspect.values()}
        super().__init__(lm=lm, scale=scales.pop() if len(scales) == 1 else Scale(0, 100))
        self._names = tuple(by_aspect)
        # Not frozen: DSPy would pass over the demonstrations of what it takes for compiled already.
        self.members = [
            m.copy_for(_compiled=False, _language_model=None, report=None) for m in by_aspect.values()
        ]  # fmt: skip

    def options(self) -> dict[str, Any]:
        """None of its own: the judges of the aspects are in the artifact whole."""
        return {}

    def saved(self, lm: Mapping[str, Any]) -> dict[str, Any]:
        aspects = {name: member.saved({}) for name, member in self.by_aspect.items()}
        return {self.kind: aspects, **lm, "provenance": self.provenance}

    @property
    def by_aspect(self) -> dict[str, Judge]:
        """The judge of each aspect, by the aspect's name."""
        return dict(zip(self._names, self.members, strict=True))

    def names(self) -> list[str]:
        return list(self._names)

    def facts(self) -> dict[str, str]:
        passages = len(self.passages())
        read = f", {passages} passages read" if passages else ""
        return {"aspects": f"{', '.join(self._names)}; {self.calls_per_row()} calls a row{read}"}

    # -- judging

    async def judged(self, item: Item, lm: LanguageModel | None) -> Verdict:
        verdict = await super().judged(item, lm)
        if verdict.aspects:
            return verdict
        reason = verdict.failure or "the judge gave no score"
        return verdict.model_copy(update={"aspects": dict.fromkeys(self._names, Verdict.failed(reason))})

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        with one_output():
            heard = await self.heard(item, lm)
        data: dict[str, Any] = {
            "score": math.nan,
            "aspects": heard,
            "explanation": "\n".join(f"{name}: {v.explanation}" for name, v in heard.items() if v.explanation),
            "errors": tuple(error for v in heard.values() for error in v.errors),
            "notes": tuple(f"{name}: {note}" for name, v in heard.items() for note in v.notes),
            **self.joined(heard),
        }
        if failed := [f"{name}: {v.failure}" for name, v in heard.items() if v.failure is not None]:
            return Verdict(**data, failure="; ".join(failed))
        shares = [m.scale.to_percent(heard[name].score) for name, m in self.by_aspect.items()]
        return Verdict(**data, percent=min(100.0, max(0.0, float(np.mean(shares)))))
