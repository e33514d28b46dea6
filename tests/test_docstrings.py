"""Public names are documented, and the examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgesmith as js

pytestmark = pytest.mark.text

ROOT = Path(__file__).resolve().parents[1]
#: Folders of the package, with the name that each has in it.
ROOMS = ("signatures", "programs", "optimizers", "datasets", "experiments")
HOMES = {ROOT / room: f"judgesmith.{room}" for room in ROOMS}
HOMES |= {ROOT / "src/judgesmith": "judgesmith"}
NAMES = [name for name in js.__all__ if name != "__version__"]


def modules_with_examples() -> list[str]:
    return [
        ".".join([name, *path.relative_to(home).with_suffix("").parts])
        for home, name in HOMES.items()
        for path in sorted(home.rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


def members(cls: type) -> list[str]:
    """Names of the public methods and properties that this package gives a class."""
    return [
        name
        for name, of in (
            (a.name, a.defining_class)
            for a in inspect.classify_class_attrs(cls)
            if a.kind != "data"
        )
        if not name.startswith("_") and of.__module__.startswith("judgesmith")
    ]


def undocumented(value: Any) -> bool:
    text = inspect.getdoc(value) or ""
    made = inspect.isclass(value) and text.startswith(
        f"{value.__name__}("
    )  # what dataclasses write themselves
    return len(text.split()) < 3 or made


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_and_its_methods_are_documented(name: str) -> None:
    value = getattr(js, name)
    assert not undocumented(value)
    if inspect.isclass(value):
        assert [
            member for member in members(value) if undocumented(getattr(value, member))
        ] == []


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_give_what_they_show(module: str) -> None:
    found = doctest.testmod(
        importlib.import_module(module), extraglobs={"np": np, "js": js}
    )
    assert found.attempted
    assert not found.failed
