"""Perturbations of what an agent did: its calls of tools, their results, and what it makes of them. All are ours.

They change the text of a trajectory (`judgesmith.trajectories`), and leave out all others.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from judgesmith.datasets.perturbations.base import Degree, Material, Unperturbable
from judgesmith.datasets.perturbations.facts import NUMBER
from judgesmith.datasets.perturbations.registry import rule
from judgesmith.trajectories.value import Trajectory, Turn

_DECLARED: dict[str, Any] = {
    "level": "trajectory",
    "degrees": ("only",),
    "needs": ("trajectory",),
}
_written = partial(json.dumps, ensure_ascii=False)
_FAILED = '{"error": "503: the service did not answer, and nothing was done"}'


@lru_cache(maxsize=4096)  # the others' texts are read again for every text
def _turns(text: str) -> tuple[Turn, ...]:
    return Trajectory.read(text).turns


def _text(turns: Sequence[Turn]) -> str:
    return "\n".join(map(str, turns))


def _final(turns: Sequence[Turn]) -> int:
    """The place of the answer that ends a trajectory. Raises Unperturbable."""
    last = max(
        (i for i, turn in enumerate(turns) if turn.speaker == "Assistant"), default=0
    )
    if turns[last].speaker != "Assistant" or turns[last].kind != "speech":
        raise Unperturbable("it ends without an answer")
    return last


def _arguments(turn: Turn) -> dict[str, Any]:
    """The arguments of a call; empty for other turns, and for what is no object as JSON."""
    try:
        held = json.loads(turn.text) if turn.kind == "call" else None
    except (ValueError, RecursionError):
        held = None
    return held if isinstance(held, dict) else {}


def _other_number(number: str, rng: random.Random) -> str:
    """Another number of as many digits, which differs in the first of them."""
    place = next(i for i, sign in enumerate(number) if sign.isdecimal())
    other = rng.choice([digit for digit in "123456789" if digit != number[place]])
    return number[:place] + other + number[place + 1 :]


@rule("dropped-call", "a call of a tool left out, with its result", **_DECLARED)
def dropped_call(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Remove one call with its result."""
    turns = _turns(text)
    call = rng.choice([i for i, turn in enumerate(turns) if turn.kind == "call"])
    return _text(
        [
            turn
            for i, turn in enumerate(turns)
            if i not in (call, Trajectory(turns).answers.get(call))
        ]
    )


@rule(
    "wrong-argument",
    "an argument of a call with another value, of another text's call where one fits",
    **_DECLARED,
)
def wrong_argument(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Replace an argument of a call by a value that other logs have for it."""
    turns = _turns(text)
    values: dict[tuple[str, str], set[str]] = {}
    for turn in (turn for other in material.others for turn in _turns(other.text)):
        for key, value in _arguments(turn).items():
            values.setdefault((key, type(value).__name__), set()).add(_written(value))

    def changed() -> Iterator[tuple[int, str]]:
        for i, turn in enumerate(turns):
            for key, value in _arguments(turn).items():
                there = re.search(
                    f"{re.escape(json.dumps(key))}\\s*:\\s*({re.escape(_written(value))})",
                    turn.text,
                )
                new = sorted(
                    values.get((key, type(value).__name__), set()) - {_written(value)}
                )
                if isinstance(value, bool):
                    new = [_written(not value)]
                elif not new and NUMBER.search(_written(value)):
                    new = [
                        NUMBER.sub(
                            lambda match: _other_number(match[0], rng),
                            _written(value),
                            count=1,
                        )
                    ]
                if there and new:
                    yield (
                        i,
                        turn.text[: there.start(1)]
                        + rng.choice(new)
                        + turn.text[there.end(1) :],
                    )

    if not (possible := list(changed())):
        raise Unperturbable("no argument has a value that could be another")
    place, arguments = rng.choice(possible)
    return _text(
        [
            replace(turn, text=arguments) if i == place else turn
            for i, turn in enumerate(turns)
        ]
    )


@rule(
    "result-ignored",
    "the answer says another number than the result that it is from",
    **_DECLARED,
)
def result_ignored(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Change a number that the answer took from a result."""
    turns = _turns(text)
    last = _final(turns)
    results = {
        match[0]
        for turn in turns
        if turn.kind == "result"
        for match in NUMBER.finditer(turn.text)
    }
    numbers = [
        match[0] for match in NUMBER.finditer(turns[last].text) if match[0] in results
    ]
    if not numbers:
        raise Unperturbable("its answer has no number of a result")
    old = rng.choice(numbers)
    new = _other_number(old, rng)
    answer = NUMBER.sub(
        lambda match: new if match[0] == old else match[0], turns[last].text
    )
    return _text([*turns[:last], replace(turns[last], text=answer), *turns[last + 1 :]])


@rule(
    "false-success",
    "the last result is an error, and the answer claims success as before",
    **_DECLARED,
)
def false_success(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Turn the last result into an error, which the answer ignores."""
    turns = _turns(text)
    before = [i for i in range(_final(turns)) if turns[i].kind == "result"]
    if not before or turns[before[-1]] in Trajectory(turns).errors:
        raise Unperturbable("its answer does not follow a result that is no error")
    return _text(
        [
            replace(turn, text=_FAILED, error=True) if i == before[-1] else turn
            for i, turn in enumerate(turns)
        ]
    )


@rule(
    "argument-format",
    "arguments in another order and with other spaces",
    kind="invariance",
    **_DECLARED,
)
def argument_format(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Write the arguments of calls in another order and spacing, with the same values."""

    def other(turn: Turn) -> Turn:
        arguments = dict(reversed(_arguments(turn).items()))
        if not arguments:
            return turn
        tight = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        return replace(turn, text=tight if tight != turn.text else _written(arguments))

    return _text([other(turn) for turn in _turns(text)])


@rule(
    "call-numbers",
    "calls that were made at once with other numbers",
    kind="invariance",
    **_DECLARED,
)
def call_numbers(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Renumber the calls that were made at once."""
    turns = _turns(text)
    more = rng.randrange(2, 40)
    if not any(turn.number for turn in turns):
        raise Unperturbable("no calls were made at once, so none has a number")
    return _text(
        [
            replace(turn, number=str(int(turn.number) + more)) if turn.number else turn
            for turn in turns
        ]
    )
