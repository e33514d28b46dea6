"""The optimizers by name: each registers where it is defined, those of other packages by an entry point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..parts import Registry, read_options

if TYPE_CHECKING:
    from .search.base import DemonstrationSearch

optimizers: Registry[type[DemonstrationSearch]] = Registry(
    "optimizer", packages=("judgesmith.optimizers.search",), group="judgesmith.optimizers"
)


def build_optimizer(
    name: str, given: Mapping[str, Any] | None = None, *, where: str = "", seed: int = 0
) -> DemonstrationSearch:
    """A new optimizer with these options. With the same `candidates`, those that search by Q score the rows about
    equally often.

    where: how the options were given, for messages. Raises OptionError for an unknown name, an option that this
    optimizer lacks, and a value off its limits.
    """
    part = optimizers.get(name)
    options = dict(given or {})
    read_options(part.Options, options, where or f"optimizer {name}")
    return part(**options, seed=seed)
