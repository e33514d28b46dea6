"""The optimizers by the names that a command line or a study gives them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from ..errors import OptionError
from ..programs.active_critic.critic import Variant
from .dspy.searches import GEPASearch, MIPROSearch, SIMBASearch
from .search.base import Anchor, DemonstrationSearch
from .search.few_shot import KnnFewShot, LabeledFewShot, NoSearch
from .search.optuna import OptunaSearch
from .search.racing import Racing
from .search.random import CorrelationRandomSearch
from .search.zepo import ZEPO

OptimizerName = Literal["random-search", "optuna", "mipro", "gepa", "simba", "labeled-few-shot", "knn", "zepo", "none"]

_DSPY = {search.name: search for search in (MIPROSearch, GEPASearch, SIMBASearch)}


def optimizer_by_name(
    name: str,
    *,
    candidates: int = 8,
    max_demos: int = 4,
    anchor: Anchor = "auto",
    racing: bool | Racing = False,
    variants: Sequence[Variant] = (),
    temperatures: Sequence[float] = (),
    parallel: int = 1,
    storage: Path | str | None = None,
    seed: int = 0,
) -> DemonstrationSearch:
    """A new optimizer. With the same `candidates`, random search, optuna, mipro, gepa and simba score the rows
    equally often at most.

    What an optimizer has no use for is left aside: LabeledFewShot takes max_demos; variants, temperatures, parallel
    and storage are optuna's; zepo's candidates are paraphrases.
    Raises OptionError for a name that is none of `OptimizerName`.
    """
    if name == "random-search":
        return CorrelationRandomSearch(
            candidates=candidates, max_demos=max_demos, anchor=anchor, racing=racing, seed=seed
        )
    if name == "optuna":
        trials = candidates + 2 if candidates else 0
        return OptunaSearch(
            trials=trials,
            max_demos=max_demos,
            anchor=anchor,
            racing=racing,
            variants=variants,
            temperatures=temperatures,
            parallel=parallel,
            storage=storage,
            seed=seed,
        )
    if name in _DSPY:
        return _DSPY[name](candidates=candidates, max_demos=max_demos, anchor=anchor, seed=seed)
    if name == "labeled-few-shot":
        return LabeledFewShot(max_demos, seed=seed)
    if name == "knn":
        return KnnFewShot(max_demos=max_demos, racing=racing, seed=seed)
    if name == "zepo":
        return ZEPO(candidates=candidates, seed=seed)
    if name == "none":
        return NoSearch(seed=seed)
    raise OptionError(f"optimizer {name!r} is none of {', '.join(get_args(OptimizerName))}")
