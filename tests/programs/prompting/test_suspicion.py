"""Every registered screen looks at every row, and the strongest suspicion counts."""

import asyncio
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from judgesmith.errors import OptionError
from judgesmith.parts import Registry
from judgesmith.programs.prompting import suspicion
from judgesmith.programs.prompting.suspicion import (
    Suspicion,
    guarded,
    screened,
    screens,
)
from judgesmith.signatures.values import Item

ROW = Item("Fine. alpha beta", "A source.")


def screen_of(word: str, probability: float) -> type[Any]:
    """A screen that takes a word out of the output, with this probability."""

    class Words:
        name = word
        about = f"finds {word}"

        def guarded(self, item: Item, least: float) -> tuple[Item, Suspicion | None]:
            if word not in item.output or probability < least:
                return item, None
            safe = replace(item, output=item.output.replace(word, "").strip())
            return safe, Suspicion(probability, word)

        async def screened(
            self, item: Item, least: float
        ) -> tuple[Item, Suspicion | None]:
            return self.guarded(item, least)

    return Words


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Registry[type[Any]]:
    registry: Registry[type[Any]] = Registry("screen", packages=(), group="no.group")
    monkeypatch.setattr(suspicion, "screens", registry)
    return registry


def test_the_rules_are_registered() -> None:
    assert "rules" in screens.names()


def test_all_screens_look_at_a_row(registered: Registry[type[Any]]) -> None:
    registered.register(screen_of("alpha", 0.6))
    registered.register(screen_of("beta", 0.9))
    safe, strongest = guarded(ROW)
    assert safe.output == "Fine."
    assert strongest == Suspicion(0.9, "beta")


def test_nothing_is_done_below_the_bar(registered: Registry[type[Any]]) -> None:
    registered.register(screen_of("alpha", 0.49))
    assert guarded(ROW) == (ROW, None)
    assert asyncio.run(screened(ROW)) == (ROW, None)


def test_a_screen_that_cannot_be_loaded_stops_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = EntryPoint("theirs", "no_such_module:Screen", "some.group")
    monkeypatch.setattr("judgesmith.parts.entry_points", lambda group: [missing])
    registry: Registry[type[Any]] = Registry("screen", packages=(), group="some.group")
    monkeypatch.setattr(suspicion, "screens", registry)
    with pytest.raises(OptionError, match="the screen 'theirs' cannot be used"):
        guarded(ROW)
