"""Presets: settings of the papers, and for retrieval answers, by name, each a YAML file like those that --config reads.

A preset may build on others (`preset: NAME`), which it wins over. Its first line says what it is; one with arms is for
studies, one that begins with "discern" for `judgesmith discern`. Comments name the section or the table of the paper,
and what is not taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesmith.errors import OptionError
from judgesmith.running.settings import Shelf, read_yaml

__all__ = ["about", "kind", "layered", "names", "read", "text"]

_SHELF = Shelf(Path(__file__).parent, "--preset", "preset", "`judgesmith list presets`")
names = _SHELF.names
text = _SHELF.text
about = _SHELF.about


def kind(name: str) -> str:
    """Return the command that a preset is for: study, discern, distill, synthesize, or compile (and `new`)."""
    line = about(name)
    start = line.partition(":")[0]
    if start in ("study", "discern"):
        return start
    return next(
        (
            command
            for command in ("distill", "synthesize")
            if f"`judgesmith {command}`" in line
        ),
        "compile",
    )


def read(name: str) -> dict[str, Any]:
    """Return the settings of a preset and of those that it builds on.

    Raises:
        OptionError: If the name is unknown.
    """
    return layered((), read_yaml(_SHELF.file(name)))


def layered(presets: Sequence[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of presets, later ones over earlier, and those of a file over all.

    The file's own `preset` counts if no presets are given.

    Raises:
        OptionError: If a name is unknown.
    """
    config = dict(config)
    own = config.pop("preset", None) or ()
    named = presets or ([own] if isinstance(own, str) else own)
    if not isinstance(named, Sequence) or not all(
        isinstance(name, str) for name in named
    ):
        raise OptionError(
            f"preset: a name or a list of names is expected; got {named!r}"
        )
    result: dict[str, Any] = {}
    for layer in (*map(read, named), config):
        result |= layer
    return result
