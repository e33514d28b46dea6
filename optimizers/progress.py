"""What a long run tells whoever watches it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A watcher. Methods are called one at a time and must return quickly."""

    def stage(self, title: str, steps: int) -> None:
        """A new part of the work begins, with so many steps."""

    def step(self, title: str | None = None) -> None:
        """One step is done; `title` says what comes next."""

    def best(self, text: str) -> None:
        """The best candidate so far, in words."""


class Telling(Progress, Protocol):
    """A watcher who also shows a line beside the numbers."""

    def tell(self, text: str) -> None:
        """What stands there from now on."""


class Silent:
    """Nobody watches."""

    def stage(self, title: str, steps: int) -> None: ...

    def step(self, title: str | None = None) -> None: ...

    def best(self, text: str) -> None: ...

    def tell(self, text: str) -> None: ...
