"""A command of `judgesmith`: a pydantic model whose fields are its options, and options that several commands share.

A package adds a command by an entry point of the group `judgesmith.commands`: its name, and a `Command`. A dot in the
name (`study.paper`) places it in a group, which is an entry point of its own with a `Group`.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    get_args,
    get_origin,
)

import typer
from pydantic import Field, PrivateAttr, field_validator
from pydantic.fields import FieldInfo
from typer.core import TyperCommand

from judgesmith.errors import OptionError
from judgesmith.parts import EVERYWHERE, Effect, Options, nearest, read_options
from judgesmith.running.settings import Catalogue, ReachOptions, read_yaml

if TYPE_CHECKING:
    from judgesmith.programs.models.lm import Connection


#: What typer raises for a wrong command line; it has no public name of its own.
UsageError: Any = typer.BadParameter.__base__
#: An option that names what every way of running reads, and a run that resumes reads again.
CONTENT = Effect("content", EVERYWHERE)


def flag(
    default: Any,
    help: str,
    *names: str,
    metavar: str = "",
    hidden: bool = False,
    effect: Effect | None = None,
    **limits: Any,
) -> Any:
    """Return an option of a command.

    names: spellings on the command line; `--field-name` by default. hidden: leave it out of `--help`. effect: where it
    counts in a run over rows.
    """
    cli = {"names": names, "metavar": metavar or None, "hidden": hidden}
    extra: Any = {"cli": cli, "effect": effect}
    return Field(default, description=help, json_schema_extra=extra, **limits)


def argument(
    default: Any, help: str, metavar: str = "", effect: Effect | None = None
) -> Any:
    """Return a positional argument of a command; `...` for one that must be given."""
    cli = {"argument": True, "metavar": metavar or None}
    extra: Any = {"cli": cli, "effect": effect}
    return Field(default, description=help, json_schema_extra=extra)


def filled(help: str) -> str:
    """Return a help text with the formats of files: {formats} of those that are read, {outputs} of `score`'s."""
    if "{formats}" not in help and "{outputs}" not in help:
        return help
    from judgesmith.datasets.formats import suffixes_read, suffixes_written

    text = help.replace("{formats}", suffixes_read())
    return text.replace("{outputs}", suffixes_written())


@dataclass(frozen=True, slots=True)
class Group:
    """A command with commands of its own."""

    help: str


class Command(Options):
    """A command. The docstring is its help, and `run` does the work and returns the exit code (None for 0).

    `--help` shows the first paragraph, the example and the everyday options, each by its first sentence.
    `judgesmith list options NAME` prints all of it.
    """

    example: ClassVar[str] = ""
    """A command line that can be pasted."""
    everyday: ClassVar[tuple[str, ...]] = ()
    """Fields that `--help` shows, in its order; all of them where there are none."""
    hidden: ClassVar[bool] = False
    """An old name, which nothing lists."""

    config: Path | None = flag(
        None,
        "YAML file of options, by the same names. The command line takes precedence.",
        metavar="FILE.yaml",
        effect=Effect("nothing", EVERYWHERE),
    )
    _more: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)

    @classmethod
    def catalogue(cls, chosen: Mapping[str, Any]) -> Catalogue | None:
        """Return options beside the command's fields, which `--help` does not list; None if there are none.

        chosen: all options set by the user, by name.
        """
        return None

    def more(self, key: str) -> dict[str, Any]:
        """Return the catalogue's options that were set, of one owner."""
        return self._more.get(key, {})

    def run(self) -> int | None:
        """Do the work and return the exit code (None for 0)."""
        raise NotImplementedError

    @classmethod
    def start(cls, chosen: Mapping[str, Any]) -> int:
        """Read files, check all options and run.

        chosen: options set on the command line, by name.

        Raises:
            OptionError: If an option is invalid.
        """
        read, source = cls.from_files(chosen)
        values = {**read, **chosen}
        if (
            "lm" in cls.model_fields
            and not values.get("lm")
            and os.environ.get("JUDGESMITH_LM")
        ):
            lm = os.environ["JUDGESMITH_LM"]
            values["lm"] = [lm] if _repeats(cls.model_fields["lm"]) else lm
        own = {
            name: value for name, value in values.items() if name in cls.model_fields
        }
        rest = {name: value for name, value in values.items() if name not in own}
        catalogue = cls.catalogue(values)
        if rest and catalogue is None:
            name = next(iter(rest))
            near = nearest(name, cls.model_fields)
            raise OptionError(
                f"{source}, {name}: there is no option of that name{near}"
            )
        command = read_options(cls, own, source or f"judgesmith {cls.__name__.lower()}")
        if catalogue is not None:
            named = {name for name in rest if name in read and name not in chosen}
            checked = catalogue.resolve(rest, source if rest.keys() <= named else "")
            command._more.update(checked)
        return command.run() or 0

    @classmethod
    def from_files(cls, chosen: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return options of presets and of a --config file, by the names of fields, and the files in words."""
        from judgesmith.presets import layered

        presets = chosen.get("preset") or ()
        config = chosen.get("config")
        source = " or ".join(
            [
                *(f"--preset {name}" for name in presets),
                *([f"--config {config}"] if config else []),
            ]
        )
        if not source:
            return {}, ""
        file = read_yaml(Path(config)) if config else {}
        fields = {name: name for name in cls.model_fields} | {
            names[-1].lstrip("-").replace("-", "_"): field
            for field, info in cls.model_fields.items()
            if (names := _cli(info).get("names"))
        }
        result = {}
        for key, value in (
            layered(presets, file) if "preset" in cls.model_fields else file
        ).items():
            name = fields.get(key, key)
            if (
                name in fields.values()
                and isinstance(value, str)
                and _repeats(cls.model_fields[name])
            ):
                value = [value]
            result[name] = value
        return result, source


class Json(Options):
    """The option `--json`."""

    as_json: bool = flag(
        False,
        "Print one JSON object on stdout at the end.",
        "--json",
        effect=Effect("nothing", EVERYWHERE),
    )


class Preset(Options):
    """The option `--preset`."""

    preset: list[str] | None = flag(
        None,
        "Named settings, mostly from papers (`judgesmith list presets`). --config and the command line take "
        "precedence. Repeatable.",
        metavar="NAME",
    )


class Rows(Options):
    """Columns to read from a file."""

    columns: list[str] = flag(
        [],
        "Column of a role, such as score=rating. Roles: output, source, score, id, doc_id, group, system, context, "
        "reference, messages, turn, rater, rationale, output_a, output_b, system_a, system_b, winner, chosen_by, "
        "label_chance, rater_score (one for each rater). Default: columns with the usual names. Repeatable.",
        metavar="ROLE=NAME",
        effect=CONTENT,
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _mapping(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return [f"{role}={name}" for role, name in value.items()]
        return value

    def roles(self) -> dict[str, str]:
        """Return the chosen columns by role.

        Raises:
            OptionError: If a role is unknown or given twice.
        """
        from judgesmith.running.opening import column_roles

        return column_roles(self.columns)


#: The meaning of `--scale NAME=…`.
ORDER = "the words in a column, worst first: 'gpt4=poor,fair,good,excellent'."


class Worded(Options):
    """The order of the words in columns of ratings and verdicts."""

    scale_of: list[str] = flag(
        [],
        f"Order of {ORDER} Default: the usual order. Repeatable.",
        "--scale",
        metavar="NAME=WORST,…,BEST",
    )

    @field_validator("scale_of", mode="before")
    @classmethod
    def _orders(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return [
            f"{name}={words if isinstance(words, str) else ','.join(words)}"
            for name, words in value.items()
        ]

    def orders(self) -> dict[str, tuple[str, ...]]:
        """Return the words by column.

        Raises:
            OptionError: If an order is not NAME=WORST,…,BEST.
        """
        from judgesmith.datasets.orders import parse_orders

        return parse_orders(self.scale_of)


class Scaled(Worded):
    """The scale of numbers, and the order of words; `--scale NAME=…` is kept apart from two numbers."""

    scale: tuple[float, float] | None = flag(
        None,
        "Lowest and highest human rating. Default: inferred from the ratings. NAME=WORST,…,BEST sets the "
        f"order of {ORDER}",
        metavar="LOW HIGH",
    )
    scale_of: list[str] = flag([], f"Order of {ORDER}", hidden=True)


class Model(Options):
    """The language model of a command."""

    lm: str | None = flag(
        None,
        "Language model: a LiteLLM name (openai/…, anthropic/…, ollama_chat/…), local/NAME (`judgesmith list "
        "models`), gguf:PATH or recorded:FILE#COLUMN. Default: the variable JUDGESMITH_LM.",
        effect=CONTENT,
    )
    api_base: str | None = flag(
        None,
        "URL of an OpenAI-compatible server or of Ollama. Default: the provider's own.",
        effect=CONTENT,
    )


class Jury(Model):
    """The language model of a judge, or several."""

    lm: list[str] = flag(  # type: ignore[assignment]  # several where a model has one
        [],
        "Language model: a LiteLLM name (openai/…, anthropic/…, ollama_chat/…), local/NAME (`judgesmith list "
        "models`), gguf:PATH or recorded:FILE#COLUMN. Repeat for a jury (--method panel). Default: the variable "
        "JUDGESMITH_LM.",
    )

    def first_lm(self) -> str | None:
        """Return the judge's own model; the others are a panel's `models`."""
        return self.lm[0] if self.lm else None


class Reach(Model, ReachOptions):
    """A language model, and how it is reached."""

    def connection(self) -> Connection:
        """Return address and limits of the model."""
        from judgesmith.running.opening import connection_of

        return connection_of(self, self.api_base)


class Aspect(Options):
    """Method of a judge, and the aspect that its score stands for."""

    method: str | None = flag(
        None,
        "Judging method (`judgesmith list methods`). Default: readings for a model in this process (local/…, gguf:… "
        "or `--reader`), else active-critic.",
        metavar="NAME",
    )
    library_aspect: str | None = flag(
        None,
        "Library aspect that the score measures (`judgesmith list aspects`). Default: the aspect with the score's "
        "name.",
        "--as",
        metavar="[TASK/]ASPECT",
    )


# From a model to a command of typer -------------------------------------------------------------------------------


def _cli(field: FieldInfo) -> dict[str, Any]:
    extra = field.json_schema_extra
    declared: Any = extra.get("cli") if isinstance(extra, dict) else None
    return declared or {}


def _kinds(field: FieldInfo) -> tuple[Any, ...]:
    return (field.annotation, *get_args(field.annotation))


def _repeats(field: FieldInfo) -> bool:
    return any(
        get_origin(kind) in (list, Sequence) or str(kind).endswith(", ...]")
        for kind in _kinds(field)
    )


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    cli = _cli(field)
    required = field.is_required()
    several = _repeats(field)
    default = field.default
    if required:
        default = ...
    elif several:
        default = None
    words: dict[str, Any] = {"help": field.description, "metavar": cli.get("metavar")}
    annotation: Any = field.annotation
    if any(str(kind).endswith(", ...]") for kind in _kinds(field)):
        annotation = list[str] | None
    elif several:
        item = next(
            get_args(kind)[0] for kind in _kinds(field) if get_origin(kind) is list
        )
        annotation = list[item] if required else list[item] | None  # type: ignore[valid-type]
    if cli.get("argument"):
        annotation = Annotated[annotation, typer.Argument(**words)]
    else:
        names = cli.get("names") or (f"--{name.replace('_', '-')}",)
        if annotation is bool and field.default:
            names = (f"{names[0]}/--no-{names[0].removeprefix('--')}",)
        limits = {
            word: getattr(limit, bound)
            for limit in field.metadata
            for bound, word in (("ge", "min"), ("le", "max"))
            if hasattr(limit, bound)
        }
        words["hidden"] = cli.get("hidden", False)
        annotation = Annotated[annotation, typer.Option(*names, **words, **limits)]  # type: ignore[misc]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _spellings(name: str, fields: Sequence[FieldInfo]) -> list[str]:
    """Return how an option of a part may be written: `--a.b`, or `--a.b/--a.no-b` where all parts take yes or no."""
    spelled = list(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))
    if not all(bool in _kinds(field) for field in fields):
        return spelled
    pairs = list[str]()
    for one in spelled:
        part, dot, end = one[2:].rpartition(".")
        pairs.append(f"{one}/--{part}{dot}no-{end}")
    return pairs


def _hidden(name: str, fields: Sequence[FieldInfo], place: int) -> inspect.Parameter:
    """Return an option of a part: a text, which the part reads; a switch where all parts take yes or no."""
    spelled = _spellings(name, fields)
    kind: Any = list[str] if any(map(_repeats, fields)) else str
    if "/" in spelled[0]:
        kind = bool
    annotation = Annotated[kind | None, typer.Option(*spelled, hidden=True)]
    return inspect.Parameter(
        f"more_{place}",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=annotation,
    )


def _command(parameters: Sequence[inspect.Parameter], **about: Any) -> Any:
    """Return the command that typer makes of these parameters."""

    def command(**values: Any) -> None: ...

    command.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    app = typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    app.command(**about)(command)
    return typer.main.get_command(app)


class _Built(TyperCommand):
    """A command that takes the options of its parts, too; these are looked up where a command line names one."""

    model: ClassVar[type[Command]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["more"] = {}
        ctx.meta["more_params"] = []
        if {"scale", "scale_of"} <= self.model.model_fields.keys():
            args = _orders_apart(args)
        own = {"--help"}
        for one in self.params:
            own.update(one.opts, one.secondary_opts)
        words = args[: args.index("--") if "--" in args else None]
        names = {word.partition("=")[0] for word in words if word.startswith("--")}
        # What is required may stand in the file, too.
        ctx.meta["by_file"] = "--config" in names
        if names - own:
            self._take_more(ctx, own, names - own)
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except UsageError as error:
            if near := getattr(error, "possibilities", None):
                error.possibilities = [name for name in near if "." not in name][:3]
            param: Any = getattr(error, "param", None)
            if getattr(param, "nargs", 1) == 2:
                error.message = f"it takes two values, {param.opts[0]} {param.metavar}"
            raise
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph, the example and the everyday options: one screen."""
        model = self.model
        formatter.write_usage(ctx.command_path, " ".join(_usage(model)))
        formatter.write_paragraph()
        formatter.write_text(paragraphs(model)[0])
        if model.example:
            with formatter.section("Example"):
                formatter.write(f"  {model.example}\n")
        formatter.write_paragraph()
        # --config stands below, as every command has it.
        rows = [row for row in shown(model) if not row[0].startswith("--config ")]
        formatter.write_dl(rows, col_max=22)
        name = _name(ctx)
        formatter.write(
            f"\nAll options, in full: judgesmith list options {name}\n"
            "--config FILE.yaml takes all of them by the same names.\n"
        )

    def invoke(self, ctx: Any) -> Any:
        raise typer.Exit(self.model.start(_chosen(ctx)))

    def get_params(self, ctx: Any) -> list[Any]:
        own = super().get_params(ctx)
        if ctx.meta.get("by_file"):
            own = [copy(one) for one in own]
            for one in own:
                one.required = False
        return [*own, *ctx.meta.get("more_params", ())]

    def _take_more(self, ctx: Any, own: set[str], names: set[str]) -> None:
        """Take the options of parts that have these names; all of them for an error that names similar ones."""
        if (catalogue := self.model.catalogue({})) is None:
            return
        others = dict[str, list[Any]]()
        for name, fields in catalogue.fields().items():
            if f"--{name.replace('_', '-')}" not in own:
                others[name] = fields
        named = dict[str, list[Any]]()
        found = set[str]()
        for name, fields in others.items():
            spelled = set("/".join(_spellings(name, fields)).split("/"))
            if spelled & names:
                named[name] = fields
                found |= spelled
        taken = named if names <= found else others
        parameters = [
            _hidden(name, fields, place)
            for place, (name, fields) in enumerate(taken.items())
        ]
        ctx.meta["more"] = {f"more_{place}": name for place, name in enumerate(taken)}
        ctx.meta["more_params"] = [
            one for one in _command(parameters).params if one.name != "help"
        ]


def _name(ctx: Any) -> str:
    """Return the command of a context, with its group, without the program."""
    if ctx.parent is None:
        return ""
    return f"{_name(ctx.parent)} {ctx.info_name}".strip()


def _orders_apart(args: Sequence[str]) -> list[str]:
    """Return the words of a command line; `--scale NAME=…` is `--scale-of`, as `--scale` alone takes two numbers."""
    result = list(args)
    for place, word in enumerate(args):
        following = args[place + 1] if place + 1 < len(args) else ""
        if word == "--scale" and "=" in following:
            result[place] = "--scale-of"
        elif word.startswith("--scale=") and "=" in word.removeprefix("--scale="):
            result[place] = f"--scale-of={word.removeprefix('--scale=')}"
    return result


def _chosen(context: typer.Context) -> dict[str, Any]:
    """Return the options set on the command line, by the names of fields and of options of parts."""
    names = context.meta["more"]
    result: dict[str, Any] = {}
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = list(value) if isinstance(value, tuple | list) else value
            option_ = names.get(name, name)
            if name in names and isinstance(value, list):
                result[option_] = ",".join(value)
            else:
                result[option_] = value
    return result


def paragraphs(model: type[Command]) -> list[str]:
    """Return the paragraphs of a command's help, each in one line."""
    parts = inspect.cleandoc(model.__doc__ or "").split("\n\n")
    return [" ".join(part.split()) for part in parts]


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text."""
    return re.split(r"(?<=[.?!])\s+(?=[A-Z`])", text, maxsplit=1)[0]


def _in_order(model: type[Command]) -> list[tuple[str, FieldInfo]]:
    """Return a command's fields: arguments, its own options, shared ones."""
    own = inspect.get_annotations(model)
    return sorted(
        model.model_fields.items(),
        key=lambda one: (not _cli(one[1]).get("argument"), one[0] not in own),
    )


def fields_shown(
    model: type[Command], *, every: bool = False
) -> list[tuple[str, FieldInfo]]:
    """Return a command's arguments and options in the order of its help; the everyday ones, or every one."""
    order = _in_order(model)
    if every or not model.everyday:
        return [(name, field) for name, field in order if not _cli(field).get("hidden")]
    order.sort(key=lambda one: _place(model, *one))
    return [
        (name, field)
        for name, field in order
        if name in model.everyday or _cli(field).get("argument")
    ]


def shown(model: type[Command], *, every: bool = False) -> list[tuple[str, str]]:
    """Return arguments and options as they are written, with their help, as `fields_shown` has them."""
    rows = []
    for name, field in fields_shown(model, every=every):
        help = filled(field.description or "")
        said = help if every else first_sentence(help)
        rows.append((_written(name, field), said + _default(field, help)))
    return rows


def _default(field: FieldInfo, help: str) -> str:
    """Return the default of an option in words, where there is one that its help does not have."""
    value = field.default
    if field.is_required() or "Default:" in help or isinstance(value, bool):
        return ""
    return f" Default: {value}." if value or value == 0 else ""


def _place(model: type[Command], name: str, field: FieldInfo) -> int:
    if _cli(field).get("argument"):
        return -1
    return model.everyday.index(name) if name in model.everyday else len(model.everyday)


def _usage(model: type[Command]) -> list[str]:
    words = ["[OPTIONS]"]
    for name, field in model.model_fields.items():
        if _cli(field).get("argument"):
            written = _written(name, field)
            words.append(written if field.is_required() else f"[{written}]")
    return words


def _written(name: str, field: FieldInfo) -> str:
    """Return an argument, or an option with its value, as on a command line."""
    cli = _cli(field)
    if cli.get("argument"):
        return cli.get("metavar") or name.upper()
    names = ", ".join(cli.get("names") or (f"--{name.replace('_', '-')}",))
    if bool in _kinds(field):
        return names.replace("--", "--[no-]", 1) if field.default else names
    return f"{names} {cli.get('metavar') or _metavar(field)}"


def _metavar(field: FieldInfo) -> str:
    """Return what stands for the value of an option that does not say."""
    kinds = _kinds(field)
    if choices := [
        value
        for kind in kinds
        if get_origin(kind) is Literal
        for value in get_args(kind)
    ]:
        return "|".join(map(str, choices))
    if Path in kinds:
        return "FILE"
    return "NUMBER" if {int, float} & set(kinds) else "TEXT"


@cache
def build(name: str, model: type[Command]) -> Any:
    """Return the command of typer that a model stands for."""
    return _command(
        [_parameter(*one) for one in _in_order(model)],
        name=name,
        cls=type("Built", (_Built,), {"model": model}),
        help="\n\n".join(paragraphs(model)),
        hidden=model.hidden,
    )
