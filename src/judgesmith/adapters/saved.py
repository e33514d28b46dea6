"""A saved judge as other frameworks use one: opened once; each row a verdict, or an error where it has no score."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError, NoScoreError, OptionError
from ..programs import artifact
from ..programs.judge import Judge
from ..programs.models.lm import Connection, LanguageModel, language_model
from ..signatures.values import Item, Verdict


def framework(module: str, what: str, package: str) -> Any:
    """A framework's module. Raises MissingExtraError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(f"{what} needs {package}: pip install {package}") from None


@dataclass(frozen=True, slots=True)
class SavedJudge:
    """An open judge and what a framework shows of it. name: as the caller said, else the aspect that it was compiled
    for."""

    judge: Judge
    name: str

    @classmethod
    def open(
        cls,
        judge: str | Path | Judge,
        *,
        lm: str | LanguageModel | Any | None = None,
        connection: Connection | None = None,
        name: str | None = None,
    ) -> SavedJudge:
        """judge: a Judge, or the file of a saved one. lm, connection: as for `load`. Raises OptionError for a judge
        that ranks the outputs of a document among each other, ArtifactError, ModelError."""
        if not isinstance(judge, Judge):
            judge = artifact.load(judge, lm=lm, connection=connection)
        elif lm is not None:
            judge = judge.copy_for(_language_model=language_model(lm, connection=connection))
        elif connection is not None:
            raise OptionError("connection is for a judge's file or for lm; this judge has its model already")
        if judge.whole_documents:
            raise OptionError(
                f"a {judge.kind} judge scores the outputs of a document against each other; here it would see one alone"
            )
        labels = judge.provenance.get("labels")
        aspect = labels.get("aspect") if isinstance(labels, Mapping) else None
        return cls(judge, name or (aspect if isinstance(aspect, str) else judge.kind))

    def score(self, item: Item) -> Verdict:
        """Raises NoScoreError for a row without a score."""
        return scored(self.judge.score(item.source, item.output, context=item.context, reference=item.reference))

    async def ascore(self, item: Item) -> Verdict:
        """`score` from any event loop."""
        return scored(await self.judge.averdict(item))

    def about(self, verdict: Verdict | None = None) -> dict[str, Any]:
        """What is kept beside a score: the judge's fingerprint, its model and scale, scores by criterion."""
        result = {
            "judge": artifact.fingerprint(self.judge),
            "model": self.judge.lm.name,
            "scale": str(self.judge.scale),
        }
        criteria = {} if verdict is None else {name: c.score for name, c in verdict.criteria.items()}
        return result | ({"criteria": criteria} if criteria else {})


def scored(verdict: Verdict) -> Verdict:
    """The verdict itself. Raises NoScoreError where it has no score."""
    if verdict.failure is not None or math.isnan(verdict.score):
        raise NoScoreError(verdict.failure or "the judge gave no score")
    return verdict


def passages(texts: Sequence[str] | None) -> str | None:
    """Several texts as one context; None where there are none."""
    return "\n\n".join(texts) if texts else None
