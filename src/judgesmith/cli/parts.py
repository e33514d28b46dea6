"""`judgesmith methods`, `optimizers`, `perturbations`, `metrics`, `options`, `presets`: the parts and their options."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ..errors import OptionError
from ..parts import Options, Registry, describe
from ..running.console import err, out, print_json
from .options import Json

__all__ = ["register"]

#: Commands, what they tell of, and where that is registered.
KINDS = {
    "methods": ("How a judge can judge: `judgesmith compile --method NAME`.", "programs.registry", "judges"),
    "optimizers": (
        "How a judge can be compiled: `judgesmith compile --optimizer NAME`.", "optimizers.registry", "optimizers"
    ),
    "perturbations": (
        "How `judgesmith discern --perturb NAME` changes texts.", "datasets.perturbations.registry", "perturbations"
    ),
    "metrics": ("What `judgesmith evaluate --judge metric/NAME` measures.", "programs.registry", "metrics"),
}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add a command for each kind of parts."""
    for command, (text, module, name) in KINDS.items():
        app.command(name=command, help=f"{text} All of them, or one with its options.")(_command(module, name))
    app.command(name="options")(options)
    app.command(name="presets")(presets)


def _command(module: str, name: str) -> Callable[..., None]:
    def show(
        part: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, with its options.")] = None,
        as_json: Json = False,
    ) -> None:
        registry: Registry[Any] = getattr(import_module(f"judgesmith.{module}"), name)
        if part is not None:
            found = registry.get(part)
            known = next(known for known, one in registry.parts().items() if one is found)
            print_json(_facts(known, found)) if as_json else _print_part(known, found)
        elif as_json:
            print_json({"parts": [_facts(*item) for item in registry.parts().items()], "broken": registry.broken})
        else:
            _print_parts(registry)

    return show


def options(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(help="compile, synthesize, distill, new, study, evaluate, discern.")],
    as_json: Json = False,
) -> None:
    """What a command takes by --set NAME=VALUE, in a --config file, or as --name value."""
    found: Any = context.find_root().command
    for name in command:
        found = getattr(found, "commands", {}).get(name)
    found = next(iter(getattr(found, "commands", {}).values()), found)  # those of a group have the same
    if not hasattr(found, "catalogue"):
        raise OptionError(f"{' '.join(command)!r} is not a command that takes --set")
    owners = found.catalogue({}).owners
    if as_json:
        print_json({"options": {owner.where: _listed(owner.options) for owner in owners}})
        return
    for owner in owners:
        out.print(f"[bold]{escape(owner.where)}[/bold]")
        _print_options(owner.options)


def presets(
    preset: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this one, as in its file.")] = None,
    as_json: Json = False,
) -> None:
    """The settings of the papers by name: `judgesmith compile --preset NAME`, and `new`, `study` and `discern`."""
    from .. import presets

    if preset is not None and as_json:
        print_json(presets.read(preset))
    elif preset is not None:
        out.print(presets.text(preset).rstrip(), markup=False, highlight=False, soft_wrap=True)
    elif as_json:
        shown = ({"name": n, "kind": presets.kind(n), "about": presets.about(n)} for n in presets.names())
        print_json({"presets": list(shown)})
    else:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in ("name", "kind", "what it is"):
            table.add_column(column, overflow="fold", no_wrap=column == "name")
        for name in presets.names():
            table.add_row(escape(name), presets.kind(name), escape(presets.about(name)))
        out.print(table)


def _listed(options: type[Options]) -> list[dict[str, Any]]:
    return [
        {"name": o.name, "type": o.type, "default": default, "help": o.help}
        for o, default in zip(describe(options), options().settings().values(), strict=True)
    ]


def _paper(part: Any) -> str:
    """Where a part is from; of a stand-in what it stands for."""
    stands_for = getattr(part, "stands_for", "")
    return f"ours, instead of {stands_for}" if stands_for else getattr(part, "paper", "")


def _facts(name: str, part: Any) -> dict[str, Any]:
    return {
        "name": name,
        "about": part.about,
        "paper": _paper(part),
        "aliases": list(getattr(part, "aliases", ())),
        "options": _listed(getattr(part, "Options", Options)),
    }


def _print_parts(registry: Registry[Any]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "what it is", "paper"):
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for name, part in registry.parts().items():
        table.add_row(escape(name), escape(part.about), escape(_paper(part)))
    out.print(table)
    for name, problem in registry.broken.items():
        err.print(f"the plug-in {name} is left out: {problem}", markup=False, style="red", soft_wrap=True)


def _print_part(name: str, part: Any) -> None:
    facts = _facts(name, part)
    also = f" (also {', '.join(facts['aliases'])})" if facts["aliases"] else ""
    out.print(f"[bold]{escape(name)}[/bold]{escape(also)}: {escape(part.about)}")
    if facts["paper"]:
        out.print(facts["paper"], markup=False, style="dim")
    if not facts["options"]:
        out.print("It has no options.")
        return
    _print_options(part.Options)
    out.print("Set one with --set NAME=VALUE.")


def _print_options(options: type[Options]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("option", "type", "default", "what it does"):
        table.add_column(column, overflow="fold", no_wrap=column == "option")
    for option in describe(options):
        table.add_row(*map(escape, (option.name, option.type, option.default, option.help)))
    out.print(table)
