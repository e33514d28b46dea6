"""Scripted members of a panel: what a prompt's form is, and answers in it."""

import hashlib
from collections.abc import Callable

from judgesmith.programs.models.transport import Request
from judgesmith.programs.panel.forms import LABELS

#: What a prompt of each form asks for.
ASKED = {
    "errors": "Location:",
    "questions": "1: <Yes or No>",
    "words": "Rating: <one of Unacceptable",
    "reference": "Rating: <one of Much worse",
    "criteria": "on each criterion by itself",
}


def form_of(request: Request) -> str:
    return next(
        (
            name
            for name, words in ASKED.items()
            if words in request.messages[0]["content"]
        ),
        "percent",
    )


def said(form: str, percent: float) -> str:
    """An answer in the form, as near to a percent as it can be."""
    place = round(percent / 25)
    if form == "questions":
        return "\n".join(
            f"{n}: {'Yes' if n <= round(percent / 20) else 'No'}" for n in range(1, 6)
        )
    if form == "errors":
        error = (
            "No Error"
            if place == 4
            else 'Error 1\nLocation: "text"\nExplanation: It is dull.\nSeverity: 2'
        )
        return f"{error}\n\nOverall: {LABELS[place]}\nReason: as it is."
    words = (
        ("Much worse", "Worse", "Equal", "Better", "Much better")
        if form == "reference"
        else LABELS
    )
    if form in ("words", "reference"):
        return f"Rating: {words[place]}"
    line = "fluency: It reads well.\n" if form == "criteria" else ""
    return f"{line}Score: {percent:.0f}"


def noise(*seeds: object) -> float:
    """A number from -1 to 1 that the same seeds give again."""
    return hashlib.sha256(repr(seeds).encode()).digest()[0] / 127.5 - 1


def quality(request: Request) -> float:
    return float(request.messages[-1]["content"].rpartition("it is ")[2].split()[0])


def noisy(
    width: float, *, by_form: bool = True, name: str = ""
) -> Callable[[Request], str]:
    """A model that sees the quality that stands in the text, but for noise of its own, and of each form."""

    def answer(request: Request) -> str:
        form = form_of(request)
        off = width * noise(
            name, form if by_form else "", request.messages[-1]["content"]
        )
        return said(form, min(100.0, max(0.0, quality(request) + off)))

    return answer
