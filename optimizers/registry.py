"""The optimizers by name: each registers where it is defined, those of other packages by an entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judgesmith.parts import Registry, read_options

if TYPE_CHECKING:
    from judgesmith.optimizers.search.base import DemonstrationSearch


@dataclass(frozen=True, slots=True)
class Through:
    """The optimizers of another library.

    names: those that can be used; make: a search for one of them; refused: the others, and why.
    """

    names: Callable[[], Sequence[str]]
    make: Callable[[str], type[DemonstrationSearch]]
    refused: Callable[[], Mapping[str, str]] = dict


class Optimizers(Registry["type[DemonstrationSearch]"]):
    """The optimizers, and those of other libraries by a prefix: `dspy:MIPROv2`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.through: dict[str, Through] = {}

    def get(self, name: str) -> type[DemonstrationSearch]:
        """Return the optimizer of that name or alias.

        Raises:
            OptionError: For an unknown name, with the nearest one.
        """
        self.names()  # imports what registers a prefix
        library = next(
            (
                through
                for prefix, through in self.through.items()
                if name.startswith(prefix)
            ),
            None,
        )
        return super().get(name) if library is None else library.make(name)

    def __contains__(self, name: object) -> bool:
        """Return whether `get` has a say on this name: one that begins as another library's is that library's."""
        self.names()
        return str(name).startswith(tuple(self.through)) or super().__contains__(name)

    def every(self) -> dict[str, type[DemonstrationSearch]]:
        """Return all optimizers that can be named, those of other libraries included."""
        own = self.parts()
        others = [
            f"{prefix}{name}"
            for prefix, library in self.through.items()
            for name in library.names()
        ]
        return own | {name: self.get(name) for name in others}

    def refused(self) -> dict[str, str]:
        """Return those of other libraries that cannot be used, and why."""
        self.names()
        return {
            f"{prefix}{name}": reason
            for prefix, library in self.through.items()
            for name, reason in library.refused().items()
        }


optimizers = Optimizers(
    "optimizer",
    packages=("judgesmith.optimizers.search",),
    group="judgesmith.optimizers",
)


def build_optimizer(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    where: str = "",
    seed: int = 0,
) -> DemonstrationSearch:
    """Return a new optimizer with these options.

    With the same `candidates`, those that search by Q score the rows about equally often.

    Args:
        name: Name or alias of the optimizer.
        settings: Options by their names.
        where: The place the options came from, for messages.
        seed: Seed of the search.

    Raises:
        OptionError: For an unknown name, an option that this optimizer lacks, and a value off its limits.
    """
    part = optimizers.get(name)
    options = dict(settings or {})
    read_options(part.Options, options, where or f"optimizer {name}")
    return part(**options, seed=seed)
