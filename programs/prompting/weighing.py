"""The verdict that counts, of a text as it is and of the text without what addresses its judge: the lower one.

*Lower* is the lower percent of the scale, and with it the worse category, fail instead of pass, and the weaker side of
a preference. So no sentence that a detector knows can raise a score: neither by persuading the judge, nor by having
something cut out that speaks against its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from judgesmith.programs.prompting.suspicion import Suspicion
from judgesmith.signatures.values import ErrorSpan, Opinion, Verdict

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
