"""Ask again without a parameter that a model does not take, and remember it.

Some models take no temperature, or only 1; others want `max_completion_tokens` in place of `max_tokens`, or no limit at
all. Which ones changes with every release, so that the server's own words tell: a refusal that names a parameter that
was sent.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from judgesmith.programs.models.refusals import Unanswered

R = TypeVar("R")

_UNSUPPORTED = (
    r"unsupported|(?:not|n['’]t) (?:be )?(?:support|permit|allow|accept|recogni|take)|unrecogni|unknown|unexpected|"
    r"deprecated|extraneous|extra (?:input|field|param)"
)
_LIMIT = "max_tokens"
_OTHER_LIMIT = "max_completion_tokens"
#: The parameters that a request can go without, and how a refusal of each is worded beside its name. A limit may also
#: be refused for its size, which another name would not change.
_OPTIONAL = {
    "temperature": rf"{_UNSUPPORTED}|\bonly\b|must|invalid|range",
    _LIMIT: _UNSUPPORTED,
    _OTHER_LIMIT: _UNSUPPORTED,
}
#: What a reader of a verdict is told.
_TOLD = {
    "temperature": "the model takes no temperature, and answered at its own",
    _OTHER_LIMIT: "the model takes no limit of tokens",
}


def notes_on(without: Iterable[str]) -> tuple[str, ...]:
    """Return what a verdict says of the parameters that its request went without."""
    return tuple([_TOLD[name] for name in without if name in _TOLD])


class Parameters:
    """The parameters that one model refused, by name."""

    def __init__(self) -> None:
        self.refused: frozenset[str] = frozenset()

    def fitted(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that the model takes."""
        return _fitted(options, self.refused)

    async def asked(
        self,
        options: Mapping[str, Any],
        send: Callable[[dict[str, Any]], Awaitable[R]],
    ) -> tuple[R, tuple[str, ...]]:
        """Return the answer to a request, sent again without each option that is refused, and the names of these.

        What was left out of an answered request is remembered.

        Raises:
            Unanswered: For every other failure.
        """
        refused = self.refused
        while True:
            fitted = _fitted(options, refused)
            try:
                reply = await send(fitted)
            except Unanswered as error:
                name = None if error.again else _named(error, fitted)
                if name is None:
                    raise
                refused |= {name}
                continue
            self.refused |= refused
            return reply, tuple(sorted(refused))


def _fitted(options: Mapping[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """Return the options but for refused ones; a limit of tokens by its other name while that is not refused, too."""
    kept = {name: value for name, value in options.items() if name not in refused}
    if _LIMIT in refused and _OTHER_LIMIT not in refused and _LIMIT in options:
        kept[_OTHER_LIMIT] = options[_LIMIT]
    return kept


def _named(error: Unanswered, sent: Mapping[str, Any]) -> str | None:
    """Return the option that a refusal names as unsupported; None for another refusal."""
    words = f"{error.about} {error}"
    for name, refusal in _OPTIONAL.items():
        near = rf"\b{name}\b.{{0,120}}?(?:{refusal})|(?:{refusal}).{{0,120}}?\b{name}\b"
        if name in sent and re.search(near, words, re.IGNORECASE | re.DOTALL):
            return name
    return None
