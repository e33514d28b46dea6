"""A saved judge as other frameworks use one: opened once; each row a verdict, or an error where it has no score."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError, NoScoreError, OptionError
from ..programs import artifact
from ..programs.judge import Judge
from ..programs.models.lm import Connection, LanguageModel
from ..signatures.values import Verdict

#: What the adapters take for a language model.
LM = str | LanguageModel | Any | None


def framework(module: str, what: str, package: str) -> Any:
    """A framework's module. Raises MissingExtraError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(f"{what} needs {package}: pip install {package}") from None


def opened(judge: str | Path | Judge, lm: LM, connection: Connection | None, name: str | None) -> tuple[Judge, str]:
    """A Judge, or the file of a saved one, and what to call it: as the caller says, else by the aspect that it was
    compiled for. Raises OptionError for a judge that ranks the outputs of a document among each other, ArtifactError,
    ModelError."""
    if not isinstance(judge, Judge):
        judge = artifact.load(judge, lm=lm, connection=connection)
    elif lm is not None or connection is not None:
        raise OptionError("lm and connection are for a judge's file; this judge has its model already")
    if judge.whole_documents:
        raise OptionError(
            f"a {judge.kind} judge scores the outputs of a document against each other; here it would see one alone"
        )
    labels = judge.provenance.get("labels")
    aspect = labels.get("aspect") if isinstance(labels, Mapping) else None
    return judge, name or (aspect if isinstance(aspect, str) else judge.kind)


def scored(verdict: Verdict) -> Verdict:
    """The verdict itself. Raises NoScoreError where it has no score."""
    if verdict.failure is not None or math.isnan(verdict.score):
        raise NoScoreError(verdict.failure or "the judge gave no score")
    return verdict


def passages(texts: Sequence[str] | None) -> str | None:
    """Several texts as one context; None where there are none."""
    return "\n\n".join(texts) if texts else None
