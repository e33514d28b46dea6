"""A judge's rubric in other words: by rules that keep its meaning, or as the user puts it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

from judgesmith.datasets.perturbations.base import Unperturbable
from judgesmith.datasets.perturbations.registry import PERTURBATIONS, Material, Text
from judgesmith.errors import OptionError
from judgesmith.programs.judge import Judge
from judgesmith.signatures.values import Criterion, Item

_TASK = "The situation is this: {}"
_CRITERION = "What counts here is the following: {}"
_MOST = 2000  # characters of a definition


def reworded(judge: Judge, rubric: Sequence[Criterion] = ()) -> Judge:
    """Return the judge with its task and criteria in other words.

    rubric: the user's words for the same criteria. By rules: words exchanged for others of the same meaning, another
    beginning, and several criteria in the other order.

    Raises:
        OptionError: If the rubric names other criteria.
    """
    own = judge.method.knowledge
    result: Judge = judge.with_()
    knowledge = result.method.knowledge
    if rubric:
        knowledge.criteria = _as_named(rubric, own.criteria)
        return result
    if own.description:
        knowledge.description = in_other_words(own.description, _TASK)
    knowledge.criteria = tuple(
        Criterion(one.name, in_other_words(one.definition, _CRITERION))
        for one in reversed(own.criteria)
    )
    return result


def _as_named(
    rubric: Sequence[Criterion], own: Sequence[Criterion]
) -> tuple[Criterion, ...]:
    """Return the user's definitions under the judge's own names.

    Raises:
        OptionError: If the names differ.
    """
    spelled = {one.name.casefold(): one.name for one in own}
    wanted = {one.name.casefold(): one for one in rubric}
    if spelled.keys() != wanted.keys():
        listed = ", ".join(spelled.values()) or "none"
        theirs = ", ".join(wanted)
        raise OptionError(
            f"--rubric names {theirs}, and the judge's criteria are {listed}; define each of these in other words"
        )
    return tuple(
        Criterion(spelled[name], one.definition) for name, one in wanted.items()
    )


def in_other_words(words: str, frame: str) -> str:
    """English words with another beginning, some exchanged for others of the same meaning."""
    material = Material(Text("rubric", words))
    exchange = PERTURBATIONS["synonyms"].change
    with suppress(Unperturbable):  # none of the words is on the list
        words = exchange(words, "only", random.Random(0), material)
    framed = frame.format(words)
    return framed if len(framed) <= _MOST else words


def reads_rubric(judge: Judge, other: Judge, item: Item) -> bool:
    """Return whether a row's prompts differ between a judge and the one with other words."""
    return judge.previews(item) != other.previews(item)
