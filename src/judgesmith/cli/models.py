"""`judgesmith models`: language models that need no key."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..errors import ModelError
from .options import Json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the `models` group to the command line."""
    models = typer.Typer(no_args_is_help=True, help="List and fetch language models: local/NAME and Ollama's.")
    models.command("list")(list_models)
    models.command("pull")(pull)
    app.add_typer(models, name="models")


def list_models(
    host: Annotated[str | None, typer.Option(help="Address of Ollama.")] = None, as_json: Json = False
) -> None:
    """The models that can be used without a key: embedded ones and what Ollama has."""
    from rich.table import Table

    from ..programs.models import files
    from ..programs.models.ollama import list_ollama
    from ..running.console import out, print_json

    local = [
        {"name": f"local/{m.name}", "size_mb": round(m.bytes / 1e6), "licence": m.licence, "installed": m.installed}
        for m in files.list_models()
    ]
    ollama: list[dict[str, Any]] = []
    problem = None
    try:
        ollama = [
            {"name": f"ollama_chat/{m.name}", "size_mb": round((m.bytes or 0) / 1e6), "licence": "", "installed": True}
            for m in list_ollama(host)
        ]
    except ModelError as error:
        problem = str(error)
    if as_json:
        print_json({"models": local + ollama, "ollama_problem": problem})
        return
    table = Table(title="Models that need no key")
    for column in ("name", "size", "licence", "here"):
        table.add_column(column, justify="right" if column == "size" else "left")
    for model in local + ollama:
        table.add_row(
            model["name"], f"{model['size_mb']:,} MB", model["licence"], "yes" if model["installed"] else "no"
        )
    out.print(table)
    if problem:
        out.print(f"Ollama: {problem}", style="dim", markup=False)
    out.print("Fetch one with `judgesmith models pull NAME`. Any LiteLLM name works too (openai/…, anthropic/…).")


def pull(
    name: Annotated[str, typer.Argument(help="local/NAME or ollama_chat/NAME")],
    host: Annotated[str | None, typer.Option(help="Address of Ollama.")] = None,
) -> None:
    """Fetch a model, with its licence and checksum."""
    from rich.markup import escape

    from ..programs.models.ollama import pull_ollama
    from ..running.console import out
    from ..running.opening import fetch, fetching

    provider, _, model = name.partition("/")
    if provider in ("ollama", "ollama_chat") and model:
        with fetching(model) as progress:
            pull_ollama(model, host, progress=progress)
        out.print(f"{escape(name)} is there.")
        return
    path = fetch(name)
    out.print(f"{escape(name)} is there: {escape(str(path))}", soft_wrap=True)
