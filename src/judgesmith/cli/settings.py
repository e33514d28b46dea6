"""Settings on a command line: `--set NAME=VALUE`, `--config FILE.yaml`, and every other option by its own name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from ..errors import OptionError
from ..parts import nearest
from ..running.settings import Catalogue, FromFile, choices_of, pairs_of, read_yaml

#: What typer raises for a wrong command line; it has no public name of its own.
UsageError: Any = typer.BadParameter.__base__
#: Where the settings of presets and a --config file are kept while a command line is read.
FROM_FILE = "judgesmith.settings"
#: What may follow a switch; `--augment dhp` is of older versions.
YES_OR_NO = ("true", "false", "yes", "no", "on", "off", "dhp")
#: What a file or a preset for another command says, and which command that is.
ELSEWHERE = {
    "arms": "what `judgesmith study` compares",
    "optimizer": "how `judgesmith compile` learns from labels",
    "perturb": "how `judgesmith discern` changes texts",
}
#: Everyday options by the names that a --config file has for them, where these are not their own.
FLAGS = {"as": "library_aspect", "json": "as_json"}


class SettingsCommand(TyperCommand):
    """A command with `--set`: an option that it does not list is a setting by its own name (`--variant fine` is `--set
    variant=fine`), and so is any other line of its --config file."""

    catalogue: ClassVar[Callable[[Mapping[str, Any]], Catalogue]]
    #: Whether its --config file is read here, and not by the command itself.
    reads_file: ClassVar[bool] = True
    #: Options of older versions, with what stands in their place.
    moved: ClassVar[Mapping[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            for option in (arg.partition("=")[0] for arg in args):
                if option in self.moved:
                    raise UsageError(f"Option {option!r} is gone: use `{self.moved[option]}`", ctx=ctx)
            args = list(_as_settings(args, self._known(), type(self).catalogue, ctx))
            if self.reads_file:
                self._read(_values_of("--preset", args), _values_of("--config", args)[-1:], ctx)
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def _known(self) -> dict[str, int]:
        """Each option as it is written, with the number of values that it takes."""
        known = {"--help": 0}
        for parameter in self.params:
            takes = 0 if getattr(parameter, "is_flag", False) else parameter.nargs
            known |= dict.fromkeys((*parameter.opts, *parameter.secondary_opts), takes)
        return known

    def _read(self, presets: Sequence[str], config: Sequence[str], ctx: Any) -> None:
        from ..presets import layered

        if not presets and not config:
            return
        options = {p.name: p for p in self.params if p.param_type_name == "option"}
        given = read_yaml(Path(config[0])) if config else {}
        everyday, settings = {}, FromFile()
        settings.source = " or ".join([*(f"--preset {name}" for name in presets), *(f"--config {c}" for c in config)])
        for key, value in (layered(presets, given) if "preset" in options else given).items():
            name = FLAGS.get(key, key)
            if name in options and name not in ("config", "settings"):
                several = options[name].multiple and isinstance(value, str)
                everyday[name] = [value] if several else _plain(name, value)
            elif key in ELSEWHERE:
                raise OptionError(f"{settings.source}, {key}: {ELSEWHERE[key]}, so give it to that command")
            else:
                settings.append((key, value))
        ctx.default_map = {**(ctx.default_map or {}), **everyday}
        ctx.meta[FROM_FILE] = settings


def with_settings(
    catalogue: Callable[[Mapping[str, Any]], Catalogue],
    *,
    reads_file: bool = True,
    moved: Mapping[str, str] | None = None,
) -> type[SettingsCommand]:
    """The class of a command with these settings; they are asked for where a command line names some."""
    own = {"catalogue": staticmethod(catalogue), "reads_file": reads_file, "moved": moved or {}}
    return type("SettingsCommand", (SettingsCommand,), own)


def settings_of(ctx: typer.Context, given: Sequence[str] | None) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """The settings of presets and the --config file, and those of the command line, which win."""
    return ctx.meta.get(FROM_FILE, []), list(pairs_of(given or []))


def _presets(incomplete: str) -> list[tuple[str, str]]:
    from .. import presets

    return [(name, presets.about(name)) for name in presets.names() if name.startswith(incomplete)]


def _plain(name: str, value: Any) -> Any:
    """A value of a YAML file as a command line would have it."""
    if name == "columns" and isinstance(value, Mapping):
        return [f"{role}={column}" for role, column in value.items()]
    return value


def _values_of(option: str, args: Sequence[str]) -> list[str]:
    found = []
    for place, arg in enumerate(args):
        if arg == "--":
            break
        if arg == option and place + 1 < len(args):
            found.append(args[place + 1])
        elif arg.startswith(f"{option}="):
            found.append(arg.partition("=")[2])
    return found


def _as_settings(
    args: Sequence[str], known: Mapping[str, int], catalogue: Callable[[Mapping[str, Any]], Catalogue], ctx: Any
) -> Iterator[str]:
    """The arguments, with every unknown `--option` as `--set`."""
    left = list(args)
    while left:
        arg = left.pop(0)
        option, equals, value = arg.partition("=")
        if arg == "--":
            yield from (arg, *left)
            return
        if not arg.startswith("--") or option in known:
            yield arg
            for _ in range(0 if equals else known.get(option, 0)):
                if left:
                    yield left.pop(0)
            continue
        name, switch = _setting(option, known, catalogue({}), ctx)
        if not equals:
            if switch is not None and not (left and left[0].casefold() in YES_OR_NO):
                value = "yes"
            elif left:
                value = left.pop(0)
            else:
                raise UsageError(f"Option {option!r} requires an argument.", ctx=ctx)
        if switch is False:
            value = "no" if value.casefold() in ("yes", "true", "on") else "yes"
        yield from ("--set", f"{name}={value}")


def _setting(option: str, known: Mapping[str, int], catalogue: Catalogue, ctx: Any) -> tuple[str, bool | None]:
    """The setting that an option names, and whether the name alone says yes (True), no (False) or nothing (None)."""
    name = option.removeprefix("--").replace("-", "_")
    last = name.rpartition(".")[2]
    if catalogue.is_switch(last):
        return name, True
    if name.startswith("no_") and catalogue.is_switch(name.removeprefix("no_")):
        return name.removeprefix("no_"), False
    names = catalogue.names()
    if last in names:
        return name, None
    near = nearest(option, [*known, *(f"--{n.replace('_', '-')}" for n in names)])
    raise UsageError(f"No such option: {option}{near}", ctx=ctx)


def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """What a shell offers after `--set`: names with their help, then the values of an option that has a choice."""
    try:
        owners = ctx.command.catalogue(ctx.params).owners  # type: ignore[attr-defined]
    except OptionError:
        return []
    name, equals, _ = incomplete.partition("=")
    if equals:
        found = [(owner.options, known) for owner in owners if (known := owner.named(name))]
        offered = [(f"{name}={value}", "") for options, known in found for value in choices_of(options, known)]
    else:
        offered = [
            (f"{name}=", field.description or "") for o in owners for name, field in o.options.model_fields.items()
        ]
    return [(text, help) for text, help in offered if text.startswith(incomplete)]


Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other option (`judgesmith options COMMAND` lists them); `--name value` means the same. Repeatable.",
        autocompletion=complete,
    ),
]
Presets = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="A paper's settings by name (`judgesmith presets`); --config and the command line win. Repeatable.",
        autocompletion=_presets,
    ),
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE.yaml", help="Options as YAML, by the same names; the command line wins.")
]
