"""Options by their names: what a command line, a --config file, a preset and the settings of a study mean.

Every option is declared once, where it is used: by a judge method, by an optimizer, or by a command. A name is looked
up among those of the chosen parts; one that only other parts have is an error, since it would do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml  # type: ignore[import-untyped,unused-ignore]
from pydantic.fields import FieldInfo

from judgesmith.errors import OptionError
from judgesmith.parts import (
    EVERYWHERE,
    Effect,
    Options,
    Resumed,
    from_text,
    nearest,
    option,
    read_options,
)

#: The ways of running that `score` has beside this process, as they are chosen.
RAY = "--on ray"
BATCH = "--batch"
_PACE = Effect(
    "nothing",
    (RAY,),
    {BATCH: f"is for requests that are sent one by one, not for {BATCH}; leave it out"},
)


class JudgeInWords(Options):
    """Description of the judge's task and criteria in the user's words."""

    task: str = option("", "Task description. Default: inferred from the labels.")
    criteria: Path | None = option(
        None,
        "File of criteria: lines `name: definition`, or JSON. Default: inferred from the labels.",
    )


class ReachOptions(Options):
    """Address and limits of language models."""

    timeout: float = option(
        120.0,
        "Maximum time for one answer, in seconds.",
        effect=Effect("nothing", EVERYWHERE),
        gt=0,
    )
    concurrency: int | None = option(
        None,
        "Maximum number of calls in flight. Default: depends on the model.",
        effect=_PACE,
        ge=1,
    )
    rpm: float | None = option(
        None,
        "Maximum number of calls per minute. Default: no limit.",
        effect=_PACE,
        gt=0,
    )
    cache: bool = option(
        True,
        "Reuse cached answers. --no-cache queries the model again.",
        effect=Effect("nothing", EVERYWHERE),
    )


class ModelOptions(ReachOptions):
    """Address, limits and sampling of the language model."""

    ways = EVERYWHERE
    temperature: float = option(0.0, "Sampling temperature.", ge=0, le=2)
    max_tokens: int | None = option(
        None, "Maximum length of an answer, in tokens. none: set by the method.", ge=1
    )


def spelled(options: type[Options], name: str) -> str:
    """Return an option as it stands on a command line."""
    extra = options.model_fields[name].json_schema_extra
    declared: Any = extra.get("cli") if isinstance(extra, dict) else None
    names = (declared or {}).get("names") or (f"--{name.replace('_', '-')}",)
    return str(names[-1])


def check_way(options: Options, way: str) -> None:
    """Check that a way of running follows every option that was set.

    Raises:
        OptionError: For an option that it refuses: one that is not declared for it.
    """
    kind = type(options)
    for name, field in kind.model_fields.items():
        refusal = Effect.of(field).refusal(way, kind.ways)
        if refusal and getattr(options, name) != _default(field):
            raise OptionError(f"{spelled(kind, name)} {refusal}")


def compared(
    options: Options, *resumed: Resumed, defaults: bool = False
) -> dict[str, Any]:
    """Return the options that a run which resumes compares, by their spelling, as JSON values.

    Args:
        options: The options of the run.
        resumed: What is compared of them; "value" includes options that do not say.
        defaults: Return those too that have their default.
    """
    kind = type(options)
    values = options.settings()
    result = {}
    for name, field in kind.model_fields.items():
        wanted = (Effect.of(field).resumed or "value") in resumed
        if wanted and (defaults or getattr(options, name) != _default(field)):
            result[spelled(kind, name)] = values[name]
    return result


def defaults_of(options: type[Options]) -> dict[str, Any]:
    """Return the defaults of options by their spelling."""
    fields = options.model_fields.items()
    return {spelled(options, name): _default(field) for name, field in fields}


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True)


@dataclass(frozen=True, slots=True)
class Owner:
    """Options that a name may belong to."""

    key: str
    """What qualifies a name that several owners have: `lm.temperature`."""
    where: str
    """The owner in messages."""
    options: type[Options]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The options that the chosen parts take."""

    owners: tuple[Owner, ...]
    who: str = "this command"
    """The chosen parts in messages."""
    others: Callable[[], Sequence[tuple[str, type[Options]]]] = tuple
    """The options of all parts, by what chooses them."""
    more: str = ""
    """Where the options are described."""
    unused: Callable[[str], str | None] = lambda name: None
    """Why an option of these parts does nothing with this choice of them; None for one that does."""

    def fields(self) -> dict[str, list[Any]]:
        """Return every name that may be set for some choice of parts, plain and qualified, with its declarations."""
        result: dict[str, list[Any]] = {}
        for options in [
            *(owner.options for owner in self.owners),
            *(options for _, options in self.others()),
        ]:
            for name, field in options.model_fields.items():
                for spelling in (
                    name,
                    *(f"{owner.key}.{name}" for owner in self.owners),
                ):
                    result.setdefault(spelling, []).append(field)
        return result

    def has(self, name: str) -> bool:
        """Return whether the chosen parts have an option of that name."""
        return bool(self._having(name))

    def takes(self, name: str) -> bool:
        """Return whether an option of that name does something with the chosen parts."""
        return self.has(name) and self.unused(name.rpartition(".")[2]) is None

    def resolve(
        self, chosen: Mapping[str, Any], source: str = ""
    ) -> dict[str, dict[str, Any]]:
        """Return options by the key of their owner, checked. Values that are texts are read as on a command line.

        Raises:
            OptionError: If a name is unknown, ambiguous or of another part or does nothing, or a value is invalid.
        """
        result: dict[str, dict[str, Any]] = {owner.key: {} for owner in self.owners}
        for name, value in chosen.items():
            owner, option = self._owner(name.replace("-", "_"), source)
            field = owner.options.model_fields[option]
            if isinstance(value, str):
                result[owner.key][option] = from_text(field, value)
            else:
                result[owner.key][option] = value
        for owner in self.owners:
            checked = read_options(owner.options, result[owner.key], owner.where)
            result[owner.key] = {
                name: getattr(checked, name) for name in result[owner.key]
            }
            for name, value in result[owner.key].items():
                why = self.unused(name)
                if why and value is not None:
                    raise OptionError(f"{name}=… has no effect with {why}")
        return result

    def _having(self, written: str) -> list[Owner]:
        key, dot, name = written.rpartition(".")
        return [
            own
            for own in self.owners
            if (not dot or own.key == key) and name in own.options.model_fields
        ]

    def _owner(self, written: str, source: str) -> tuple[Owner, str]:
        name = written.rpartition(".")[2]
        having = self._having(written)
        if len(having) == 1:
            return having[0], name
        where = f"{source}: " if source else ""
        if having:
            raise OptionError(
                f"{where}ambiguous option {name!r}: use {' or '.join(f'{own.key}.{name}' for own in having)}"
            )
        if others := sorted(
            {part for part, options in self.others() if name in options.model_fields}
        ):
            raise OptionError(
                f"{where}{written}=… has no effect with {self.who}; it is an option of {', '.join(others)}"
            )
        raise OptionError(
            f"{where}{written}: there is no option of that name{nearest(name, self.fields())}{self.more}"
        )


def read_yaml(path: Path, label: str = "--config") -> dict[str, Any]:
    """Return the mapping in a YAML file, which messages call `label`.

    Raises:
        OptionError: If the file is not one.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"{label} {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        what = getattr(error, "problem", None) or type(error).__name__
        raise OptionError(f"{label} {path} is not YAML{where}: {what}") from None
    if not isinstance(data, dict):
        raise OptionError(f"{label} {path}: expected lines of the form `option: value`")
    return {str(key).replace("-", "_"): value for key, value in data.items()}


@dataclass(frozen=True, slots=True)
class Shelf:
    """YAML files in a folder, by their names; the first line of each, a comment, says what it is."""

    folder: Path
    option: str
    """What a user names one with."""
    kind: str
    """What they are."""
    listed: str
    """The command that lists their names, for the message on an unknown one."""

    def names(self) -> list[str]:
        """Return the names on the shelf."""
        return sorted(
            file.relative_to(self.folder).with_suffix("").as_posix()
            for file in self.folder.rglob("*.yaml")
        )

    def file(self, name: str) -> Path:
        """Return the file of a name.

        Raises:
            OptionError: If the name is unknown.
        """
        names = self.names()
        if name not in names:
            raise OptionError(
                f"{self.option} {name}: there is no such {self.kind}{nearest(name, names)}; {self.listed} lists them"
            )
        return self.folder / f"{name}.yaml"

    def text(self, name: str) -> str:
        """Return a file with its comments.

        Raises:
            OptionError: If the name is unknown.
        """
        return self.file(name).read_text(encoding="utf-8")

    def about(self, name: str) -> str:
        """Return the one-line description of a name.

        Raises:
            OptionError: If the name is unknown.
        """
        return self.text(name).partition("\n")[0].removeprefix("# ")


def choices_of(options: type[Options], name: str) -> list[str]:
    """Return the values that an option can have, where it has a choice of them."""
    annotation = options.model_fields[name].annotation
    kinds = (annotation, *get_args(annotation))
    if bool in kinds:
        return ["yes", "no"]
    return [
        str(value)
        for kind in kinds
        if get_origin(kind) is Literal
        for value in get_args(kind)
    ]
