"""An optimizer by name, with what it has no use for left aside; `registry.build_optimizer` refuses that."""

from __future__ import annotations

from typing import Any, Literal

from .registry import build_optimizer, optimizers
from .search.base import DemonstrationSearch

OptimizerName = Literal["random-search", "optuna", "mipro", "gepa", "simba", "labeled-few-shot", "knn", "zepo", "none"]


def optimizer_by_name(name: str, *, seed: int = 0, **given: Any) -> DemonstrationSearch:
    known = optimizers.get(name).Options.model_fields
    return build_optimizer(name, {key: value for key, value in given.items() if key in known}, seed=seed)
