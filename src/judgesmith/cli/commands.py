"""A command of `judgesmith`: a pydantic model whose fields are its options, and options that several commands share.

A package adds a command by an entry point of the group `judgesmith.commands`: its name, and a `Command`. A dot in the
name (`study.paper`) places it in a group, which is an entry point of its own with a `Group`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin

import typer
from pydantic import Field, PrivateAttr, field_validator
from pydantic.fields import FieldInfo
from typer.core import TyperCommand

from ..errors import OptionError
from ..parts import Options, read_options
from ..running.settings import Catalogue, ReachOptions, read_yaml

if TYPE_CHECKING:
    from ..programs.models.lm import Connection


#: What typer raises for a wrong command line; it has no public name of its own.
UsageError: Any = typer.BadParameter.__base__
#: The heading in `--help` of options that several commands have.
PANELS = {
    **dict.fromkeys(
        ("lm", "api_base", "timeout", "concurrency", "rpm", "cache"), "Language model"
    ),
    **dict.fromkeys(("columns", "limit"), "Data"),
    **dict.fromkeys(("max_calls", "max_cost", "max_failed", "dry_run"), "Limits"),
}


def flag(
    default: Any,
    help: str,
    *names: str,
    metavar: str = "",
    hidden: bool = False,
    **limits: Any,
) -> Any:
    """An option of a command. names: as it is written, `--field-name` where not given. hidden: not in `--help`."""
    cli = {"names": names, "metavar": metavar or None, "hidden": hidden}
    return Field(default, description=help, json_schema_extra={"cli": cli}, **limits)  # type: ignore[dict-item]


def argument(default: Any, help: str, metavar: str = "") -> Any:
    """A positional argument of a command; `...` for one that must be given."""
    extra: Any = {"cli": {"argument": True, "metavar": metavar or None}}
    return Field(default, description=help, json_schema_extra=extra)


@dataclass(frozen=True, slots=True)
class Group:
    """A command with commands of its own."""

    help: str
    panel: str = "More"
    hidden: bool = False


class Command(Options):
    """A command. The docstring is its help, and `run` does the work and returns the exit code (None for 0)."""

    panel: ClassVar[str] = "More"
    """The heading under which `judgesmith --help` lists it."""
    hidden: ClassVar[bool] = False
    _more: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue | None:
        """Options of the command beside its fields, which `--help` does not list; None where it has none. given: all
        that was given, by name.
        """
        return None

    def more(self, key: str) -> dict[str, Any]:
        """What was given of the catalogue's options, by their owner's key."""
        return self._more.get(key, {})

    def run(self) -> int | None:
        raise NotImplementedError

    @classmethod
    def start(cls, given: Mapping[str, Any]) -> int:
        """Read files, check all options and run. given: what the command line says. Raises OptionError."""
        read, source = cls.from_files(given)
        values = {**read, **given}
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
        made = read_options(cls, own, source or f"judgesmith {cls.__name__.lower()}")
        rest = {name: value for name, value in values.items() if name not in own}
        if (catalogue := cls.catalogue(values)) is not None:
            named = {name for name in rest if name in read and name not in given}
            chosen = catalogue.resolve(rest, source if rest.keys() <= named else "")
            made._more.update(chosen)
        elif rest:
            raise OptionError(
                f"{source}, {next(iter(rest))}: there is no option of that name"
            )
        return made.run() or 0

    @classmethod
    def from_files(cls, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Options of presets and of a --config file, by the names of fields, and the files in words."""
        from ..presets import layered

        presets, config = given.get("preset") or (), given.get("config")
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
    as_json: bool = flag(
        False, "End with one JSON object on stdout, for machines.", "--json"
    )


class Config(Options):
    config: Path | None = flag(
        None,
        "Options as YAML, by the same names; the command line wins.",
        metavar="FILE.yaml",
    )


class Preset(Config):
    preset: list[str] | None = flag(
        None,
        "Settings by name, mostly papers' (`judgesmith list presets`); --config and the command line win. Repeatable.",
        metavar="NAME",
    )


class Rows(Options):
    """Which columns of a file are read."""

    columns: list[str] = flag(
        [],
        "Which column plays a role: output, source, score, id, doc_id, group, system, context, reference, messages, "
        "turn, rater, rationale, output_a, output_b, winner, chosen_by; rater_score, once for each person's. Found "
        "where not given. Repeatable.",
        metavar="ROLE=NAME",
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _mapping(cls, value: Any) -> Any:
        return (
            [f"{role}={name}" for role, name in value.items()]
            if isinstance(value, Mapping)
            else value
        )

    def roles(self) -> dict[str, str]:
        """The chosen columns by role. Raises OptionError."""
        from ..running.opening import column_roles

        return column_roles(self.columns)


#: What `--scale NAME=…` says.
ORDER = (
    "the words in a column, worst first, a judge's or people's, where it is not the usual one: "
    "'gpt4=poor,fair,good,excellent'."
)


class Worded(Options):
    """The order of the words in columns of ratings and verdicts."""

    scale_of: list[str] = flag(
        [], f"The order of {ORDER} Repeatable.", "--scale", metavar="NAME=WORST,…,BEST"
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
        """The words by column. Raises OptionError."""
        from ..datasets.orders import parse_orders

        return parse_orders(self.scale_of)


class Scaled(Worded):
    """The scale of numbers, and the order of words; `--scale NAME=…` is kept apart from two numbers."""

    scale: tuple[float, float] | None = flag(
        None,
        f"People's lowest and highest score, inferred if not given. NAME=WORST,…,BEST: the order of {ORDER}",
        metavar="LOW HIGH",
    )
    scale_of: list[str] = flag([], f"The order of {ORDER}", hidden=True)


class Model(Options):
    """The language model of a command."""

    lm: str | None = flag(
        None,
        "Language model: openai/…, anthropic/… and any other LiteLLM name, ollama_chat/…, local/NAME (see `judgesmith "
        "list models`), gguf:PATH, recorded:FILE#COLUMN. Default: JUDGESMITH_LM.",
    )
    api_base: str | None = flag(
        None, "Address of an OpenAI-style server, or of Ollama."
    )


class Jury(Model):
    """The language model of a judge, or several."""

    lm: list[str] = flag(  # type: ignore[assignment]  # several where a model has one
        [],
        "Language model: openai/…, anthropic/… and any other LiteLLM name, ollama_chat/…, local/NAME (see `judgesmith "
        "list models`), gguf:PATH, recorded:FILE#COLUMN. Repeat for a jury (--method panel). Default: JUDGESMITH_LM.",
    )

    def first_lm(self) -> str | None:
        """The judge's own model; the others are a panel's `models`."""
        return self.lm[0] if self.lm else None


class Reach(Model, ReachOptions):
    """A language model, and how it is reached."""

    def connection(self) -> Connection:
        from ..running.opening import connection_of

        return connection_of(self, self.api_base)


class Aspect(Options):
    """How a judge judges, and what its score stands for."""

    method: str | None = flag(
        None,
        "How it judges: see `judgesmith list methods`. Default: readings where the model is in this process (local/…, "
        "gguf:…, or --reader …), else active-critic.",
        metavar="NAME",
    )
    library_aspect: str | None = flag(
        None,
        "The aspect of the library that the score stands for (`judgesmith list aspects`); found by the score's name "
        "where not given.",
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
    default = ... if required else None if several else field.default
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
        words |= {
            "rich_help_panel": PANELS.get(name),
            "hidden": cli.get("hidden", False),
        }
        annotation = Annotated[annotation, typer.Option(*names, **words, **limits)]  # type: ignore[misc]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _hidden(name: str, fields: Sequence[FieldInfo], place: int) -> inspect.Parameter:
    """An option of a part: a text, which the part reads; a switch where all parts take yes or no."""
    spelled = list(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))
    if all(bool in _kinds(field) for field in fields):
        pairs = [
            f"{one}/--{'.'.join([*one[2:].split('.')[:-1], 'no-' + one[2:].split('.')[-1]])}"
            for one in spelled
        ]
        annotation: Any = Annotated[bool | None, typer.Option(*pairs, hidden=True)]
    else:
        kind = list[str] if any(map(_repeats, fields)) else str
        annotation = Annotated[kind | None, typer.Option(*spelled, hidden=True)]
    return inspect.Parameter(
        f"more_{place}",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=annotation,
    )


def _command(parameters: Sequence[inspect.Parameter], **about: Any) -> Any:
    """The command that typer makes of these parameters."""

    def made(**values: Any) -> None: ...

    made.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
    made.__annotations__ = {one.name: one.annotation for one in parameters}
    app = typer.Typer(
        add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False
    )
    app.command(**about)(made)
    return typer.main.get_command(app)


class _Built(TyperCommand):
    """A command that takes the options of its parts, too; these are looked up where a command line names one."""

    model: ClassVar[type[Command]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["more"] = {}
        args = (
            _orders_apart(args)
            if {"scale", "scale_of"} <= self.model.model_fields.keys()
            else args
        )
        known = {
            "--help",
            *(name for one in self.params for name in (*one.opts, *one.secondary_opts)),
        }
        written = [
            arg.partition("=")[0]
            for arg in args[: args.index("--") if "--" in args else None]
        ]
        if any(name.startswith("--") and name not in known for name in written):
            self._take_more(ctx, known)
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

    def invoke(self, ctx: Any) -> Any:
        raise typer.Exit(self.model.start(_given(ctx)))

    def _take_more(self, ctx: Any, known: set[str]) -> None:
        if (catalogue := self.model.catalogue({})) is None:
            return
        fields = {
            n: f
            for n, f in catalogue.fields().items()
            if f"--{n.replace('_', '-')}" not in known
        }
        parameters = [
            _hidden(name, each, place)
            for place, (name, each) in enumerate(fields.items())
        ]
        ctx.meta["more"] = {f"more_{place}": name for place, name in enumerate(fields)}
        self.params = [
            *self.params,
            *(one for one in _command(parameters).params if one.name != "help"),
        ]


def _orders_apart(args: Sequence[str]) -> list[str]:
    """The words of a command line; `--scale NAME=…` is `--scale-of`, as `--scale` alone takes two numbers."""
    made = list(args)
    for place, word in enumerate(args):
        following = args[place + 1] if place + 1 < len(args) else ""
        if word == "--scale" and "=" in following:
            made[place] = "--scale-of"
        elif word.startswith("--scale=") and "=" in word.removeprefix("--scale="):
            made[place] = f"--scale-of={word.removeprefix('--scale=')}"
    return made


def _given(context: typer.Context) -> dict[str, Any]:
    """What the command line says, by the names of fields and of options of parts."""
    names = context.meta["more"]
    result = {}
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = list(value) if isinstance(value, tuple | list) else value
            option_ = names.get(name, name)
            result[option_] = (
                ",".join(value) if name in names and isinstance(value, list) else value
            )
    return result


def build(name: str, model: type[Command]) -> Any:
    """The command of typer that a model stands for."""
    own = inspect.get_annotations(model)
    fields = sorted(
        model.model_fields.items(),
        key=lambda one: (not _cli(one[1]).get("argument"), one[0] not in own),
    )  # the order of --help: arguments, the command's own options, shared ones
    paragraphs = (
        " ".join(part.split())
        for part in inspect.cleandoc(model.__doc__ or "").split("\n\n")
    )
    return _command(
        [_parameter(*one) for one in fields],
        name=name,
        cls=type("Built", (_Built,), {"model": model}),
        help="\n\n".join(paragraphs),
        rich_help_panel=model.panel,
        hidden=model.hidden,
    )
