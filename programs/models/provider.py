"""Providers: how the names of their models begin, what these can do, and how one is opened.

A provider is one file of `providers/`, or of another package, by an entry point of the group `judgesmith.models`. All
that is said of a provider stands in its class: prices, what a saved judge may choose, lists and messages read it there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from judgesmith.errors import OptionError
from judgesmith.parts import Registry
from judgesmith.programs.models.connection import Capabilities, Connection
from judgesmith.programs.models.transport import Transport

#: The form of a plain name, of one with up to three folders before it, and of one with a tag behind it.
WORD = r"[A-Za-z0-9][A-Za-z0-9._-]*"
PATH = rf"{WORD}(?:/{WORD}){{0,3}}"
TAGGED = rf"{PATH}(?::{WORD})?"
#: The provider that takes a name which begins as no other provider's does, if it knows it.
ANY = "PROVIDER/"
#: The model of a judge that needs none, and how names begin before the file whose verdicts one repeats.
NO_MODEL = "none"
RECORDED = "recorded:"
EXAMPLES = "openai/gpt-4o-mini, ollama_chat/llama3.1:8b or local/qwen2.5-0.5b"
_BEGINNING = re.compile(r"[^/:]*[/:]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A model that its provider has opened."""

    name: str
    """The name that artifacts record."""
    transport: Transport
    identity: str | Callable[[], str | None]
    """What tells its answers from those of another model of this name: see `LanguageModel`."""
    concurrency: int = 16
    """Calls under way at once, unless the connection says otherwise."""
    able: Capabilities | None = None
    """What it can do, where that is known; None leaves it to the provider's `probed`."""
    kept: bool = True
    """Whether answers may be kept on disk."""
    longest: int | None = None
    """Tokens of prompt and answer that it takes; None if that is not known."""
    weights: Path | None = None
    """The file of a model inside this process."""
    digest: str = ""
    """The SHA-256 of that file, and of an adapter's."""
    computed_by: str = ""
    """The engine that computes it inside this process."""
    one_by_one: bool = False
    """Whether short answers come sooner one after the other."""


class Provider:
    """One kind of models, by the beginning of their names."""

    name: ClassVar[str]
    """How the names begin, with the sign behind it (`ollama_chat/`, `gguf:`), or the whole of a name (`none`)."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other beginnings."""
    about: ClassVar[str]
    """What its models are, in one line."""
    probed: ClassVar[bool] = True
    """Whether each model is asked what it can do; one that is not gives text, and no log-probabilities."""
    grammars: ClassVar[bool] = False
    """Whether its models answer by a grammar (GBNF)."""
    batches: ClassVar[tuple[str, ...]] = ()
    """Beginnings of names whose models have an API for batches at half the price."""
    free: ClassVar[bool] = False
    """Whether a call costs nothing."""
    in_process: ClassVar[bool] = False
    """Whether its models run inside this process."""
    catalog: ClassVar[bool] = False
    """Whether its models are those of the catalog, which are fetched by name."""
    absent: ClassVar[bool] = False
    """Whether no model is behind its names: answers are in a file, or there are none."""
    listed: ClassVar[str | None] = None
    """The form of a model's name, without the beginning, that a saved judge may choose; None if it may choose none."""

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Open a model.

        Raises:
            ModelError: If it cannot be used.
            OptionError: If the name or the connection is no way to one.
        """
        raise NotImplementedError

    @classmethod
    def model_of(cls, name: str) -> str:
        """Return the model's name without the beginning.

        Raises:
            OptionError: If there is nothing behind it.
        """
        beginning = beginning_of(name)
        model = name.removeprefix(beginning)
        if not model:
            form = "PROVIDER/MODEL" if beginning.endswith("/") else f"{beginning}NAME"
            raise OptionError(
                f"{name!r} names no model; write {form}, for example {EXAMPLES}"
            )
        return model

    @classmethod
    def lists(cls, name: str) -> bool:
        """Return True if a saved judge may choose the model of this name."""
        model = name.removeprefix(beginning_of(name))
        return cls.listed is not None and re.fullmatch(cls.listed, model) is not None

    @classmethod
    def unplaced(cls, api_base: str | None) -> str:
        """Return the environment variable that has to say where the user's own server is; "" if that is known.

        Args:
            api_base: The address that the user gave, if any.
        """
        return ""

    @classmethod
    def placed(cls, api_base: str | None) -> bool:
        """Return whether the user's settings say where the server is."""
        return bool(api_base)

    @classmethod
    def qualified(cls, name: str) -> str:
        """Return the name by which a served model is the same one wherever it is served."""
        return name

    @classmethod
    def size(cls, name: str) -> int:
        """Return the bytes of a model's weights that this process would read; 0 if it reads none.

        Raises:
            OSError: If the file cannot be looked at.
            ModelError: If the model is unknown.
        """
        return 0

    @classmethod
    def context(cls) -> int | None:
        """Return the tokens that each of its models reads at once; None if that is not known before one is opened."""
        return None


providers: Registry[type[Provider]] = Registry(
    "model provider",
    packages=("judgesmith.programs.models.providers",),
    group="judgesmith.models",
)


def beginning_of(name: str) -> str:
    """Return how a model's name begins, up to its first sign.

    >>> beginning_of("ollama_chat/llama3.1:8b"), beginning_of("gguf:a/b"), beginning_of("none")
    ('ollama_chat/', 'gguf:', 'none')
    """
    found: Any = _BEGINNING.match(name)
    return str(found[0])


def beginnings() -> list[str]:
    """Return how the names of all providers' models begin, but for those that only LiteLLM knows."""
    return [
        beginning
        for provider in providers.parts().values()
        for beginning in (provider.name, *provider.aliases)
        if beginning != ANY
    ]


def provider_of(name: str) -> type[Provider]:
    """Return the provider of a model's name: the one that it begins with, else the one that takes any known name.

    The latter says only when a model is opened whether it knows the name.
    """
    beginning = beginning_of(name)
    return providers.get(beginning if beginning in providers else ANY)


def is_local(name: str) -> bool:
    """Return True for a model that runs in this process."""
    return provider_of(name).in_process


def is_absent(name: str) -> bool:
    """Return True for a name without a model behind it: its answers are in a file, or it has none."""
    return provider_of(name).absent
