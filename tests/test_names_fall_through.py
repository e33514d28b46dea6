"""A name that nobody has raises wherever a name is taken; nothing computes something else for it.

A family of names is added by a line of `PATHS` for each place that takes a name: what it does with one.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

from judgesmith.cli.commands import Model
from judgesmith.errors import JudgesmithError
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.names import check_chosen, check_listed
from judgesmith.programs.models.price import check_priced
from judgesmith.programs.models.provider import Provider, beginnings, providers
from judgesmith.programs.models.providers.litellm import FORMS
from judgesmith.programs.simple import judge
from judgesmith.rooms.adapters.batches import INTERFACES, interface_of
from judgesmith.running.opening import open_model
from judgesmith.running.settings import check_way
from judgesmith.scoring.command import Score

#: How a name is changed: nobody has the result, however near it is to a name that somebody has.
NAMELESS = ("nameless", "opnai", "OPENAI", "locale")
SERVER = Connection(api_base="http://127.0.0.1:1/v1", api_key="k", cache=False)
#: By family, the places that take a name.
PATHS: dict[str, dict[str, Callable[[str], object]]] = {
    "provider": {
        "a model": lambda name: language_model(f"{name}/gpt-4o"),
        "with an address": lambda name: language_model(
            f"{name}/gpt-4o", connection=SERVER
        ),
        "a bare name": language_model,
        "with another sign": lambda name: language_model(f"{name}:gpt-4o"),
        "of a command": lambda name: open_model(f"{name}/gpt-4o"),
        "of a judge": lambda name: judge("fluency", lm=f"{name}/gpt-4o"),
        "of a saved judge": lambda name: check_chosen(f"{name}/gpt-4o", "http://x/v1"),
        "of a member": lambda name: check_listed([f"{name}/gpt-4o"]),
        "a price": lambda name: check_priced(f"{name}/gpt-4o"),
        "batches": lambda name: interface_of(f"{name}/gpt-4o", SERVER),
    },
    "way of running": {
        "an option of some ways": lambda name: check_way(
            Score(rows="r", judge=Path("j"), limit=3), f"--on {name}"
        ),
        "an option of --on": lambda name: Score(
            rows="r", judge=Path("j"), on=cast(Any, name)
        ),
    },
}


@pytest.mark.parametrize("name", NAMELESS)
@pytest.mark.parametrize(
    ("family", "place"),
    [(family, place) for family, places in PATHS.items() for place in places],
)
def test_a_name_that_nobody_has_raises(
    family: str, place: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises((JudgesmithError, AssertionError, ValidationError), match=name):
        PATHS[family][place](name)


def test_the_nearest_provider_is_named() -> None:
    with pytest.raises(JudgesmithError, match="did you mean 'openai/'"):
        language_model("opnai/gpt-4o")


def test_a_provider_that_has_no_way_to_open_models_opens_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A class that was begun falls into nobody else's opener."""
    providers.names()

    class Begun(Provider):
        name = "begun/"
        about = "Nothing yet."

    monkeypatch.setitem(providers._parts, "begun/", Begun)
    with pytest.raises(NotImplementedError):
        language_model("begun/gpt-4o", connection=SERVER)


def test_batches_are_declared_where_they_are() -> None:
    declared = {one for part in providers.parts().values() for one in part.batches}
    assert declared == set(INTERFACES)


def test_every_beginning_that_help_and_pages_name_is_a_providers() -> None:
    page = Path(__file__).parents[1] / "docs/pages/howto/models.md"
    said = [field.description or "" for field in Model.model_fields.values()]
    said.append(page.read_text(encoding="utf-8").partition("\n## ")[0])
    named = set(re.findall(r"([a-z_]+[/:])(?=[A-Z…])", "\n".join(said)))
    assert {"openai/", "local/", "gguf:", "recorded:", "zeroshot:"} <= named
    known = {*beginnings(), *(f"{provider}/" for provider in FORMS)}
    assert named <= known
