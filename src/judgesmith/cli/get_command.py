"""`judgesmith get`: benchmark sets and language models, fetched with licence and checksum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import typer

from judgesmith.cli.commands import Command, Json, argument, flag
from judgesmith.cli.list_command import licence_of, rows_of, set_data
from judgesmith.errors import LabelsError, OptionError


class Get(Command, Json):
    """Fetch models (local/NAME, ollama_chat/NAME) and data (bench/NAME).

    The licence is displayed first, and checksums are verified. Names: `judgesmith list data`, `judgesmith list models`.
    Exit code 0: everything was fetched; 1: a licence was declined; 2: an error.
    """

    example: ClassVar[str] = "judgesmith get local/qwen2.5-0.5b"

    names: list[str] = argument(
        ...,
        "Data sets and models to fetch: bench/NAME, local/NAME or ollama_chat/NAME.",
        "NAME...",
    )
    yes: bool = flag(
        False, "Accept the displayed licences without confirmation.", "--yes", "-y"
    )
    host: str | None = flag(
        None, "URL of the Ollama server, for ollama_chat/…. Default: the local server."
    )

    def run(self) -> int:
        """Fetch the models and data sets named."""
        from judgesmith.running.console import print_json

        models = [name for name in self.names if _is_model(name)]
        sets = self._sets([name for name in self.names if name not in models])
        if sets is None:
            return 1
        here = [
            {
                "name": name,
                "path": None if (path := self._model(name)) is None else str(path),
            }
            for name in models
        ]
        if self.as_json:
            print_json({"sets": sets, "models": here})
        return 0

    def _model(self, name: str) -> Path | None:
        from rich.markup import escape

        from judgesmith.programs.models.ollama import is_ollama, pull_ollama
        from judgesmith.programs.models.provider import provider_of
        from judgesmith.running.console import out
        from judgesmith.running.opening import fetch, fetching

        path = None
        if is_ollama(name):
            model = provider_of(name).model_of(name)
            with fetching(model) as progress:
                pull_ollama(model, self.host, progress=progress)
        else:
            path = fetch(name)
        if not self.as_json:
            out.print(
                f"{escape(name)} is there"
                + ("." if path is None else f": {escape(str(path))}"),
                soft_wrap=True,
            )
        return path

    def _sets(self, names: list[str]) -> list[dict[str, Any]] | None:
        """Return the sets that are here now; None where the user said no."""
        from judgesmith.datasets.benchmarks.catalog import benchmark, locate, resolve
        from judgesmith.running.console import asks, err, out
        from judgesmith.running.opening import fetching

        cards = list({card.name: card for card in map(benchmark, names)}.values())
        wanted = [card for card in cards if locate(card.name).path is None]
        for card in wanted:
            if card.origin is None:
                raise LabelsError(
                    f"{card.name}: cannot be fetched ({card.unfetchable}); set JUDGESMITH_DATA to a folder with"
                    f" {card.key}.jsonl"
                )
        for card in wanted:
            err.print(
                f"{card.name}: {licence_of(card)}",
                markup=False,
                style="yellow" if card.restriction else None,
            )
        if wanted and not self.yes:
            if not asks():
                raise OptionError(
                    "the licences above cannot be confirmed without a terminal; pass --yes to accept them"
                )
            names = [card.name for card in wanted]
            if not typer.confirm(f"Fetch {', '.join(names)}?", err=True):
                err.print("nothing was fetched")
                return None
        done = []
        for card in cards:
            if card in wanted:
                with fetching(card.name) as progress:
                    resolve(card.name, fetch=True, progress=progress)
            here = set_data(card)
            done.append(_described(here) | {"fetched": card in wanted})
            if not self.as_json:
                state = "fetched" if card in wanted else "here already"
                out.print(
                    f"{card.name}: {state}, {rows_of(here)} rows, {here['path']}",
                    markup=False,
                    soft_wrap=True,
                )
        return done


def _is_model(name: str) -> bool:
    """Return whether a name is that of a model which can be fetched, and not of a data set."""
    from judgesmith.programs.models.ollama import is_ollama
    from judgesmith.programs.models.provider import provider_of

    return is_ollama(name) or provider_of(name).catalog


def _described(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return name, rows and place of a set."""
    return {key: entry[key] for key in ("name", "rows", "rows_here", "where", "path")}
