"""The interface of screens, which find texts that address their judge.

A text with signs is judged twice, as it is and without the sentences that hold them. The lower of the two verdicts
counts (`weighing.weighed`), so that a defence raises no score. Every registered screen looks at every row:
judgesmith's own and those of other packages, each by an entry point. What could break the frame of a prompt is
disarmed in every text in any case (`judgesmith.disarming`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from judgesmith.errors import OptionError
from judgesmith.parts import Registry
from judgesmith.signatures.values import Item

logger = logging.getLogger(__name__)

#: From this probability on a text is called suspicious, and judged without its signs, too. Below it nothing is done.
FLAGGED = 0.5


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The probability that a text addresses its judge, and its signs, as a clause that quotes them."""

    probability: float
    about: str

    def __str__(self) -> str:
        return f"{self.about}, probability {self.probability:.2f}"


class Screen(Protocol):
    """A detector of texts that address their judge; a class without arguments, registered in `screens`."""

    def guarded(self, item: Item, least: float) -> tuple[Item, Suspicion | None]:
        """Return a row without the sentences that address a judge, and the suspicion; None for an unsuspicious row.

        A text of which next to nothing would be left stays as it is.

        Args:
            item: The row.
            least: The probability from which on a text is suspicious.
        """
        ...

    async def screened(self, item: Item, least: float) -> tuple[Item, Suspicion | None]:
        """Return the same on the loop that calls models, which it does not hold up."""
        ...


#: The screens, by name.
screens: Registry[type[Any]] = Registry(
    "screen", packages=(), group="judgesmith.screens"
)


@cache
def _active(registry: Registry[type[Any]]) -> tuple[Screen, ...]:
    active = tuple(screen() for screen in registry.parts().values())
    for name, reason in registry.broken.items():
        raise OptionError(
            f"the screen {name!r} cannot be used: {reason}; repair or uninstall its package"
        )
    if not active:  # commands silence warnings
        logger.error(
            "nothing looks for texts that address their judge: this installation has no screen; to get "
            "judgesmith's own back: pip install --force-reinstall judgesmith"
        )
    return active


def guarded(item: Item, least: float = FLAGGED) -> tuple[Item, Suspicion | None]:
    """Return a row without the sentences that address a judge, and the strongest suspicion of all screens.

    Args:
        item: The row.
        least: The probability from which on a text is suspicious.

    Raises:
        OptionError: If a package's screen cannot be loaded. No row is judged without it.
    """
    strongest: Suspicion | None = None
    for screen in _active(screens):
        item, suspicion = screen.guarded(item, least)
        strongest = _stronger(strongest, suspicion)
    return item, strongest


async def screened(item: Item) -> tuple[Item, Suspicion | None]:
    """Return the same for a row that is judged, on the loop that calls models."""
    strongest: Suspicion | None = None
    for screen in _active(screens):
        item, suspicion = await screen.screened(item, FLAGGED)
        strongest = _stronger(strongest, suspicion)
    return item, strongest


def _stronger(first: Suspicion | None, second: Suspicion | None) -> Suspicion | None:
    if first is None or second is None:
        return first or second
    return max(first, second, key=lambda suspicion: suspicion.probability)
