"""Copies of a text perturbed in known shares of its words: graded references whose order nobody has to judge."""

from __future__ import annotations

import random
import re

from judgesmith.datasets.perturbations.base import Unperturbable, letters, split_space
from judgesmith.datasets.perturbations.rules import slip

#: The share of words perturbed in the worst copy, and how steeply it falls: with four levels .6, .24, .05 and 0.
MOST = 0.6
STEEP = 2.25


def perturbed_copies(text: str, levels: int, *, seed: int = 0) -> list[str]:
    """Return the text in `levels` degrees of perturbation, the worst first, the text itself last.

    Of the perturbed words a third each is left out, misspelt, and replaced by another word of the text. Words that a
    copy perturbs are perturbed in every worse one, too. Where a script has no spaces, letters stand for words.

    Raises:
        Unperturbable: For a text with too few words.
    """
    parts = re.findall(r"\S+\s*|^\s+", text)
    if 10 * len(parts) < len(text):
        parts = list(text)
    places = [i for i, part in enumerate(parts) if letters(part)]
    rng = random.Random(
        f"ladder|{seed}|{text}".encode("utf-8", "backslashreplace")
    )  # bytes: lone surrogates
    rng.shuffle(places)
    perturbed = list(parts)
    copies = [text]
    done = 0
    for level in range(levels - 1, 0, -1):
        share = MOST * ((levels - level) / (levels - 1)) ** STEEP
        count = max(round(share * len(places)), done + 1)
        for number in range(done, min(count, len(places))):
            if number % 3:
                perturbed[places[number]] = _perturbed(
                    parts, places[number], rng, number % 3 == 2
                )
            else:
                perturbed[places[number]] = ""
        copies.append("".join(perturbed))
        done = count
    if len({" ".join(copy.split()) for copy in copies}) < levels:
        raise Unperturbable(
            f"{len(places)} words are too few for {levels} degrees of perturbation, or much alike"
        )
    return copies[::-1]


def _perturbed(parts: list[str], i: int, rng: random.Random, replaced: bool) -> str:
    """Return the replacement of part i: another part's word, if there is one, or itself misspelt."""
    word, space = split_space(parts[i])
    others = [
        other
        for part in parts
        if letters(other := split_space(part)[0]) and other.lower() != word.lower()
    ]
    if replaced and others:
        return rng.choice(others) + space
    changed = list(word)
    at = rng.choice(letters(word))
    changed[at] = slip(word, at, rng, changed)
    return "".join(changed) + space
