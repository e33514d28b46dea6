"""Help texts read like those of other tools: noun phrases or imperatives, in short sentences."""

import importlib
import inspect
import pkgutil
import re

import pytest

import judgesmith
from judgesmith.cli.commands import Command
from judgesmith.errors import ModelError
from judgesmith.parts import Options

pytestmark = pytest.mark.text

#: Words of a sentence at most.
LONGEST = 20
#: Openings that make a subordinate clause where a noun belongs.
CLAUSE = re.compile(r"(what|whether|where|how|which|who|whose|when)\b", re.IGNORECASE)


def option_models() -> list[type[Options]]:
    """Every model of options, except those of files that no user writes on a command line."""
    found: set[type[Options]] = set()
    for module in pkgutil.walk_packages(judgesmith.__path__, "judgesmith."):
        try:
            names = vars(importlib.import_module(module.name)).values()
        except (ImportError, ModelError):  # an extra is missing
            continue
        for value in names:
            if inspect.isclass(value) and issubclass(value, Options):
                found.add(value)
    return sorted(found, key=lambda model: (model.__module__, model.__name__))


MODELS = option_models()
COMMANDS = [
    model for model in MODELS if issubclass(model, Command) and model is not Command
]


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.?!])\s+", " ".join(text.split())) if part]


def prose_words(sentence: str) -> int:
    """The words of a sentence; a list of four names or more counts as one."""
    return len(re.sub(r"(?:\S+, ){3,}", "", sentence).split())


def helps(model: type[Options]) -> list[tuple[str, str]]:
    return [
        (f"{model.__name__}.{name}", sentence)
        for name, field in model.model_fields.items()
        for sentence in sentences(field.description or "")
    ]


def test_every_command_is_among_them() -> None:
    names = {command.__name__ for command in COMMANDS}
    assert {"Compile", "Evaluate", "Serve", "Watch", "Score", "Discern"} <= names


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_sentence_of_an_options_help_is_long(model: type[Options]) -> None:
    long = [
        (name, sentence)
        for name, sentence in helps(model)
        if prose_words(sentence) > LONGEST
    ]
    assert long == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_options_help_opens_with_a_clause(model: type[Options]) -> None:
    opened = [
        (name, sentence) for name, sentence in helps(model) if CLAUSE.match(sentence)
    ]
    assert opened == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_no_commands_help_opens_with_a_clause_or_a_question(
    command: type[Command],
) -> None:
    first = sentences(inspect.getdoc(command) or "")[0]
    assert not CLAUSE.match(first), first
    assert not first.endswith("?"), first


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_no_sentence_of_a_commands_help_is_long(command: type[Command]) -> None:
    text = inspect.getdoc(command) or ""
    long = [part for part in sentences(text) if prose_words(part) > LONGEST]
    assert long == []
