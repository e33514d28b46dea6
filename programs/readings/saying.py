"""Why a judge of readings gave a score, in words that ask for no knowledge of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from judgesmith.programs.readings.kinds import TRAINED, Words, group_of
from judgesmith.programs.registry import readings

#: Points of 100 that a reason moves a score by at least, and the share of what the strongest one does; how many reasons
#: are named on a side, and how many words; by how many nats these are less expected than any of a typical output.
WORTH = 1.0
SHARE = 0.2
MOST = 3
CLEARLY = 2.0


class Reason(NamedTuple):
    """A cause of a score. points: by how many percent. about: the topic. words: a true clause about the output."""

    points: float
    about: str
    words: str


def reasons(added: Mapping[str, float], above: Mapping[str, float]) -> list[Reason]:
    """Return the causes of a score, the largest first.

    Readings about one thing are one reason, in the words of the one that moves the score most: each may be far from
    zero where together they say little.

    Args:
        added: The contribution of each reading and each block of states.
        above: How far a reading is above its mean; states have none.
    """
    topics: dict[str, dict[str, float]] = {}
    for name, points in added.items():
        topics.setdefault(_words(name)[0], {})[name] = points
    result = []
    for topic, parts in topics.items():
        total = sum(parts.values())
        most = max(parts, key=lambda name: parts[name] * total)
        _, clause, more, less = _words(most)
        result.append(
            Reason(
                total,
                topic,
                clause.replace("{}", more if above.get(most, total) > 0 else less, 1),
            )
        )
    return sorted(result, key=lambda reason: -abs(reason.points))


def _words(name: str) -> tuple[str, str, str, str]:
    """An entry of `Reading.words` for any reading or block."""
    part, _, key = name.partition(".")
    if (group := group_of(name)) == "hidden states":
        return (
            group,
            "as a whole it resembles outputs that people rated {}",
            "well",
            "badly",
        )
    if group == "direct score":
        return (
            group,
            "the model itself, asked for a score, gives {} than usual",
            "more",
            "less",
        )
    if name == TRAINED:
        return (
            group,
            "a small model that learnt from ratings of other tasks finds it {} than usual",
            "better",
            "worse",
        )
    clauses: Words = readings.parts()[part].words if part in readings.parts() else {}
    return clauses.get(key, (name, f"its {key} is {{}} than usual", "higher", "lower"))


def shades(
    surprise: Sequence[tuple[int, int, float]], cuts: Sequence[float]
) -> tuple[tuple[int, int, int], ...]:
    """(start, end, grade) of the words whose surprise is above the first cut: 1; above the second: 2; and so on."""
    shaded = list[tuple[int, int, int]]()
    for start, end, nats in surprise:
        if grade := sum(nats > cut for cut in cuts):
            shaded.append((start, end, grade))
    return tuple(shaded)


def explained(why: Sequence[Reason], words: Sequence[str]) -> str:
    """Describe whether a score is above or below a typical one, with reasons for the output and against it.

    Args:
        why: The reasons.
        words: The least expected words, which are named if such words spoke against it.
    """
    points = [point.points for point in why]
    moved = sum(points)
    least = max([WORTH, *(SHARE * abs(number) for number in points)])
    raised = [reason for reason in why if reason.points >= least][:MOST]
    lowered = [reason for reason in why if reason.points <= -least][:MOST]
    sides = [_side("In its favour", raised), _side("Against it", lowered)]
    if moved < 0:
        sides.reverse()
    sentences = [f"Scored {_place(moved)} a typical output", *filter(None, sides)]
    if words and "words" in (reason.about for reason in lowered):
        quoted = ", ".join(map("“{}”".format, words))
        sentences.append(f"Least expected words: {quoted}")
    return ". ".join(sentences) + "."


def _place(moved: float) -> str:
    if abs(moved) < WORTH:
        return "about the same as"
    return "above" if moved > 0 else "below"


def _side(name: str, reasons: Sequence[Reason]) -> str:
    """Reasons of one side; "" for none."""
    return f"{name}: {'; '.join(reason.words for reason in reasons)}" if reasons else ""
