"""Saved judges, opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from judgesmith.programs import artifact
from judgesmith.programs.capabilities import locate
from judgesmith.programs.dspy_judge import tell_engine
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model


def build(read: artifact.Artifact, *, lm: LanguageModel | None = None) -> Judge:
    """Make the judge of a checked file.

    Raises:
        ArtifactError: For an unknown kind, option or prompt form.
    """
    judge = Judge(read.built(), outcome=read.outcome)
    judge.provenance = read.provenance
    judge.own_lm = lm
    judge.earlier = read.contract
    tell_engine(judge)
    return judge


def load(
    path: str | Path,
    *,
    lm: str | LanguageModel | Any | None = None,
    api_base: str | None = None,
    connection: Connection | None = None,
) -> Judge:
    """Load a judge: from a file, or from MLflow's registry (`models:/NAME@ALIAS`, see `compile --register`).

    Without `lm` it uses the model it was compiled with, reached by this machine's own settings (environment,
    `connection`), never by anything in the file.

    Args:
        path: The file, or the registry's address.
        lm: Another model, by name or as an LM.
        api_base: The model's address, the same as `connection=Connection(api_base=…)`.
        connection: Address and limits of the model.

    Raises:
        ArtifactError: For a file that is not a judge.
        ModelError: If the model cannot be used.
    """
    if api_base is not None:
        connection = replace(connection or Connection(), api_base=api_base)
    read = artifact.read(path)
    judge = build(
        read
    )  # all of the file is checked before a model is looked up, fetched or started
    if lm is None:
        lm = artifact.model_of(read, connection)
    if lm is not None:
        judge.own_lm = language_model(
            lm, sampling=artifact.sampling_of(read), connection=connection
        )
        tell_engine(judge)
    artifact.connect(judge.method, connection)
    locate(judge.method, Path(path))
    return judge


def about_judge(judge: Judge) -> dict[str, str]:
    """Return the facts about a judge for tools that keep verdicts.

    They are the judge's fingerprint, its model and scale, and the agreement with people that its file states.
    """
    facts = {
        "judge": artifact.fingerprint(judge),
        "model": judge.lm.name,
        "scale": str(judge.scale),
    }
    return facts | ({"agreement": agreed} if (agreed := judge.stated_agreement) else {})
