"""The interface of screens, which find texts that address their judge.

A text with signs is judged twice, as it is and without the sentences that hold them. The lower of the two verdicts
counts (`weighed`), so that a defence raises no score. Every registered screen looks at every row:
judgesmith's own and those of other packages, each by an entry point. What could break the frame of a prompt is
disarmed in every text in any case (`judgesmith.disarming`).

*Lower* is the lower percent of the scale, and with it the worse category, fail instead of pass, and the weaker side of
a preference. So no sentence that a detector knows can raise a score: neither by persuading the judge, nor by having
something cut out that speaks against its text.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

from judgesmith.errors import OptionError
from judgesmith.parts import Registry
from judgesmith.signatures.values import ErrorSpan, Item, Opinion, Verdict

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


UNCHANGED = "too little is left without it, and the text is judged as it is"


def marked(verdict: Verdict, suspicion: Suspicion) -> Verdict:
    """Return the verdict on a text of which nothing but its suspicious sentences could be judged, with a note."""
    return verdict.model_copy(update={"suspicious": f"{suspicion}; {UNCHANGED}"})


def weighed(
    as_it_is: Verdict, without: Verdict, suspicion: Suspicion, output: str = ""
) -> Verdict:
    """Return the lower of two verdicts on one text; of several aspects, the lower one of each.

    If one of them failed there is no verdict: a failure is no score, and the other one alone might be what the sentence
    is there for. `suspicious` states the difference.

    Args:
        as_it_is: The verdict on the text as it is.
        without: The one on the text without the suspicious sentences.
        suspicion: The suspicion.
        output: The output as it is, in which errors that were found without the sentences get their places.
    """
    counts = _lower(as_it_is, without, output)
    move = as_it_is.percent - without.percent
    effect = "there is no score as it is, or without it"
    if not math.isnan(move):
        effect = _effect(move)
    usage = as_it_is.usage + without.usage
    more = {"usage": usage, "suspicious": f"{suspicion}; {effect}"}
    return counts.model_copy(update=more)


def _lower(as_it_is: Verdict, without: Verdict, output: str) -> Verdict:
    """Return the lower verdict, or the one that failed."""
    aspects = {
        name: _lower(verdict, without.aspects.get(name, verdict), output)
        for name, verdict in as_it_is.aspects.items()
    }
    counts = as_it_is
    if without.percent < as_it_is.percent or math.isnan(without.percent):
        counts = _placed(without, output)
    if math.isnan(as_it_is.percent):
        counts = as_it_is
    return counts.model_copy(update={"aspects": aspects})


def _effect(move: float) -> str:
    """Return, in words, what suspicious sentences do to a score, and which verdict counts."""
    if not (size := round(abs(move))):
        return "it does not change the score"
    way, which = ("raises", "without it") if move > 0 else ("lowers", "as it is")
    return f"it {way} the score by {size} percent of the scale, and the score {which} counts"


def _placed(verdict: Verdict, output: str) -> Verdict:
    """Return a verdict with the places of its errors in the whole output, from which sentences were cut out."""
    opinions: Mapping[str, Opinion] = {
        name: replace(opinion, errors=_spans(opinion.errors, output))
        for name, opinion in verdict.opinions.items()
    }
    update = {"errors": _spans(verdict.errors, output), "opinions": opinions}
    return verdict.model_copy(update=update)


def _spans(errors: tuple[ErrorSpan, ...], output: str) -> tuple[ErrorSpan, ...]:
    """Return errors at their places in the whole output; one that reaches across a cut has none."""
    return tuple(_span(error, output) for error in errors)


def _span(error: ErrorSpan, output: str) -> ErrorSpan:
    if error.start is None:
        return error
    # Cutting moves what follows to the left, never to the right.
    start = output.find(error.text, error.start)
    if start < 0:
        return replace(error, start=None, end=None, how="ungrounded")
    return replace(error, start=start, end=start + len(error.text))
