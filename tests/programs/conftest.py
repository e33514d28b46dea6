"""Fixtures of the judges' tests: replies with log-probabilities, and servers that misbehave."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from misbehaving_server import MakeServer, Say, Server

from judgesmith.programs.answers.reply import Reply, TokenChoice


@pytest.fixture
def with_digits() -> Callable[[str, str, dict[str, float]], Reply]:
    """Return a reply whose tokens are single characters, apart from the last `digit`.

    There the model's choices have the given probabilities.
    """

    def make(text: str, digit: str, choices: dict[str, float]) -> Reply:
        place = text.rindex(digit)
        tokens = [TokenChoice(character, ((character, 0.0),)) for character in text]
        tokens[place] = TokenChoice(
            digit, tuple((t, math.log(p)) for t, p in choices.items())
        )
        return Reply(text, tuple(tokens), prompt_tokens=10, completion_tokens=5)

    return make


@pytest.fixture
def texts_of() -> Callable[[Any], str]:
    """All that a request says, roles left out."""
    return lambda messages: "\n".join(m["content"] for m in messages)


@pytest.fixture
def serve() -> Iterator[MakeServer]:
    """Start a server that gives these answers, the last one for ever, or one that a function decides."""
    running: list[Server] = []

    def make(*answers: Say | Callable[[int, dict[str, Any]], Say]) -> Server:
        first = answers[0] if answers else Say()
        if isinstance(first, Say):
            said = [a for a in answers if isinstance(a, Say)] or [first]
            server = Server(lambda number, _: said[min(number, len(said)) - 1])
        else:
            server = Server(first)
        running.append(server)
        return server

    yield make
    for server in running:
        server.close()
