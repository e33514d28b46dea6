"""A saved judge as a scorer of Inspect (`inspect_ai`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ..programs.artifact import fingerprint
from ..programs.judge import Judge
from ..programs.models.lm import Connection
from ..signatures.values import Item
from .saved import LM, framework, opened, scored


def inspect_scorer(
    judge: str | Path | Judge, *, lm: LM = None, connection: Connection | None = None, name: str | None = None,
    source_from: Callable[[Any], str] | None = None, context_from: Callable[[Any], str | None] | None = None,
) -> Any:  # fmt: skip
    """A judge as an Inspect scorer: `Task(dataset=…, solver=…, scorer=js.inspect_scorer("judge.json"))`.

    judge: a Judge, or the file of a saved one. lm, connection: as for `load`. name: kept in every score's metadata;
    default the aspect that the judge was compiled for. The judged output is the model's completion, the source the
    sample's input, the reference its target where it has one; source_from and context_from get the `TaskState`
    instead: `context_from=lambda state: state.metadata["passages"]`.

    Returns: a scorer with `mean` and `stderr`. A score's value is a float on the judge's scale, with the explanation,
    and as metadata the judge's fingerprint, model and scale, and scores by criterion. A sample without a score raises
    NoScoreError: Inspect records it as an error and, with `fail_on_error=False`, leaves it out of the mean.

    Raises: MissingExtraError without Inspect; OptionError, ArtifactError, ModelError as opening the judge does.
    """
    return _registered()(*opened(judge, lm, connection, name), source_from, context_from)


@cache
def _registered() -> Any:
    """The scorer as Inspect registers it, once."""
    scorers = framework("inspect_ai.scorer", "inspect_scorer", "inspect-ai")

    @scorers.scorer(metrics=[scorers.mean(), scorers.stderr()], name="judgesmith")  # type: ignore[untyped-decorator]
    def judgesmith(
        judge: Judge, name: str, source_from: Callable[[Any], str] | None, context_from: Callable[[Any], Any] | None
    ) -> Any:
        about = {"name": name, "judge": fingerprint(judge), "model": judge.lm.name, "scale": str(judge.scale)}

        async def score(state: Any, target: Any) -> Any:
            source = state.input_text if source_from is None else source_from(state)
            context = None if context_from is None else context_from(state)
            item = Item(state.output.completion, source, context, target.text or None)
            verdict = scored(await judge.averdict(item))
            criteria = {name: c.score for name, c in verdict.criteria.items()}
            return scorers.Score(
                value=float(verdict.score), answer=state.output.completion, explanation=verdict.explanation or None,
                metadata={**about, **({"criteria": criteria} if criteria else {})},
            )  # fmt: skip

        return score

    return judgesmith
