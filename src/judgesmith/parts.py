"""Parts: judges, optimizers, perturbations, metrics and benchmark sets, each declared where it is defined.

A part is a class (a benchmark set: an object) with a name, one line on what it is (`about`), its `paper` if it has one,
and `Options`: a frozen pydantic model in which every option has its type, default, limits and help. A `Registry` finds
the parts of a kind, including those of other packages (entry points). The command line, the settings of studies, saved
judges and `--help` are derived from these declarations.
"""

from __future__ import annotations

import difflib
import json
import logging
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from judgesmith.errors import OptionError
from judgesmith.extras import absent_room, missing, without_room

logger = logging.getLogger(__name__)

P = TypeVar("P")
Chosen = TypeVar("Chosen", bound="Options")


class Options(BaseModel):
    """Base of a part's options. Values are checked when the model is made and never change afterwards."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    ways: ClassVar[tuple[str, ...]] = ()
    """The ways of running that follow those of its options which declare none: see `Effect`."""

    def settings(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        return self.model_dump(mode="json")

    @classmethod
    def absent(cls) -> dict[str, Any]:
        """Return what it means that a saved judge lacks an option that was `added`."""
        found = {}
        for name, declared in cls.model_fields.items():
            extra = declared.json_schema_extra
            if isinstance(extra, dict) and "absent" in extra:
                found[name] = extra["absent"]
        return found

    def left_out(self) -> set[str]:
        """Return the options that a saved judge leaves out, since they say what their absence means."""
        absent = self.absent().items()
        return {name for name, value in absent if getattr(self, name) == value}


#: What a run that resumes compares of an option: its value, what it names (a file's rows, a judge), or nothing.
Resumed = Literal["value", "content", "nothing"]
#: Every way of running.
EVERYWHERE = ("*",)


@dataclass(frozen=True, slots=True)
class Effect:
    """Where an option of a run over rows has an effect, as its declaration says.

    A way of running is named as users choose it, `--on ray` or `--batch`. An option that is not declared for a way is
    refused by it, and one without `resumed` has to keep its value.
    """

    resumed: Resumed | None = None
    ways: tuple[str, ...] | None = None
    """The ways that follow the option; None if its class says which."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why a way refuses it, behind the option in the message."""

    @classmethod
    def of(cls, field: FieldInfo) -> Effect:
        """Return the effect that a field declares."""
        extra = field.json_schema_extra
        declared = extra.get("effect") if isinstance(extra, dict) else None
        return declared if isinstance(declared, cls) else cls()

    def refusal(self, way: str, otherwise: Sequence[str] = ()) -> str:
        """Return why a way refuses the option; "" if it follows it.

        Args:
            way: The way of running.
            otherwise: The ways of an option that declares none.
        """
        ways = otherwise if self.ways is None else self.ways
        if way in ways or "*" in ways:
            return ""
        return self.refusals.get(way, f"has no effect with {way}; leave it out")


def option(
    default: Any,
    help: str,
    *,
    added: bool = False,
    before: Any = None,
    effect: Effect | None = None,
    **limits: Any,
) -> Any:
    """Return one option of an `Options` model.

    added: the option came after judges were saved without it, whose fingerprints must stay, so a judge is saved with it
    only if it is not the default. before: what those judges did, where that is not the default. effect: where it counts
    in a run over rows. limits: pydantic's own (ge, le, max_length, …).
    """
    extra: Any = {}
    if added:
        extra["absent"] = default if before is None else before
    if effect is not None:
        extra["effect"] = effect
    return Field(default, description=help, json_schema_extra=extra or None, **limits)


@dataclass(frozen=True, slots=True)
class Described:
    """An option in words: name, type or choices, default, help."""

    name: str
    type: str
    default: str
    help: str


def describe(options: type[Options]) -> list[Described]:
    """Return every option of a model, in the order of its declaration."""
    return [
        Described(
            name, _type_text(field), _value_text(field.default), field.description or ""
        )
        for name, field in options.model_fields.items()
    ]


def read_options(
    options: type[Chosen], values: Mapping[str, Any], where: str
) -> Chosen:
    """Return options from keyword arguments, a settings file, a saved judge or `NAME=VALUE` texts.

    where: whose options they are, for messages ("--method direct").

    Raises:
        OptionError: If a name is not one of the options, or a value is off its limits.
    """
    for name in values:
        if name not in options.model_fields:
            names = ", ".join(options.model_fields) or "none"
            raise OptionError(
                f"{where} has no option {name!r}{nearest(name, options.model_fields)}; it has {names}"
            )
    try:
        return options.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "missing":
            raise OptionError(f"{where} needs {name}") from None
        value = f"; got {first['input']!r}" if name else ""
        raise OptionError(
            f"{where}{', ' + name if name else ''}: {message}{value}"[:400]
        ) from None


def from_text(field: FieldInfo, text: str) -> Any:
    """Return the text of `NAME=VALUE` as the value of an option.

    A list if it takes several (separated by commas, or a JSON list), None for "none" if it may be absent, else the text
    itself, which pydantic then reads.
    """
    kinds = _kinds(field.annotation)
    if type(None) in kinds and text.strip().casefold() in ("none", "null", ""):
        return None
    if any(get_origin(kind) in (tuple, list, Sequence) for kind in kinds):
        if text.lstrip().startswith("["):
            with suppress(ValueError):
                return json.loads(text)
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def nearest(name: str, names: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the most similar known name; "" if none is similar."""
    near = difflib.get_close_matches(name, list(names), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


class Registry(Generic[P]):
    """The parts of one kind, by name.

    what: the kind, for messages. packages: where built-in parts are defined; every module in them is imported when a
    part is first asked for. group: the entry points of other packages' parts. key: the class attribute that holds the
    name. A plug-in that cannot be used is left out and named in `broken`.
    """

    def __init__(
        self, kind: str, *, packages: Sequence[str], group: str, key: str = "name"
    ) -> None:
        self.kind = kind
        self.group = group
        self.broken: dict[str, str] = {}
        self._packages = packages
        self._key = key
        self._parts: dict[str, P] = {}
        self._aliases: dict[str, str] = {}
        self._loaded = False

    def register(self, part: P) -> P:
        """Declare a part, as a class decorator or by a call.

        Raises:
            OptionError: If it declares too little, or its name is taken.
        """
        name = getattr(part, self._key, "")
        if not (isinstance(name, str) and name and getattr(part, "about", "")):
            raise OptionError(
                f"{_place(part)} is no {self.kind}: it needs `{self._key}` and `about`"
            )
        options = getattr(part, "Options", Options)
        if missing := [
            n for n, field in options.model_fields.items() if not field.description
        ]:
            raise OptionError(f"{self.kind} {name}: option {missing[0]!r} has no help")
        for taken in (name, *getattr(part, "aliases", ())):
            other = self._parts.get(self._aliases.get(taken, taken))
            # A module that is imported again defines its classes again.
            if isinstance(part, type):
                again = _place(other) == _place(part)
            else:
                again = other == part
            if other is not None and not again:
                raise OptionError(
                    f"{self.kind} {taken!r} exists already: {_place(other)}"
                )
        self._parts[name] = part
        self._aliases |= dict.fromkeys(getattr(part, "aliases", ()), name)
        return part

    def names(self) -> tuple[str, ...]:
        """Return the names of all parts."""
        self._load()
        return tuple(self._parts)

    def parts(self) -> dict[str, P]:
        """Return all parts by name."""
        self._load()
        return dict(self._parts)

    def get(self, name: str) -> P:
        """Return the part of that name or alias.

        Raises:
            OptionError: If there is none; the message has the nearest name.
        """
        self._load()
        part = self._parts.get(self._aliases.get(name, name))
        if part is None:
            if name in self.broken:
                broken = f"; the plug-in {name!r} is broken: {self.broken[name]}"
            else:
                broken = ""
            known = ", ".join(sorted(self._parts))
            raise OptionError(
                f"{self.kind} {name!r} is unknown{nearest(name, self._parts)}; known: {known}{broken}"
            )
        return part

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._parts or name in self._aliases

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        try:
            for name in self._packages:
                package = import_module(name)
                for module in pkgutil.walk_packages(
                    getattr(package, "__path__", ()), f"{name}."
                ):
                    import_module(module.name)
        except BaseException:
            self._loaded = (
                False  # a missing dependency, Ctrl-C: the next call says so again
            )
            raise
        for point in sorted(offers(self.group), key=lambda point: point.name):
            before = dict(self._parts), dict(self._aliases)
            try:
                self.register(point.load())
            except (Exception, SystemExit) as error:
                self._parts, self._aliases = (
                    before  # nor what its module had registered before it failed
                )
                self.broken[point.name] = f"{type(error).__name__}: {error}"[:300]
                logger.warning(
                    "%s plug-in %r is left out: %s",
                    self.kind,
                    point.name,
                    self.broken[point.name],
                )


def offers(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, without those of rooms of judgesmith that this installation lacks."""
    points = entry_points(group=group)
    return [point for point in points if absent_room(point.module) is None]


def plugin(group: str, name: str) -> Any:
    """Return the object of a name in the entry-point group `judgesmith.GROUP`.

    Raises:
        OptionError: If no package offers it.
        MissingExtraError: If what it needs is not installed.
    """
    points = {point.name: point for point in entry_points(group=f"judgesmith.{group}")}
    if name not in points:
        raise OptionError(
            f"no package offers {name!r} for judgesmith.{group}{nearest(name, points)}"
        )
    point = points[name]
    try:
        return point.load()
    except ModuleNotFoundError as error:
        if (room := absent_room(error.name)) is not None:
            raise without_room(room, repr(name)) from None
        package = install = error.name or point.module
        if point.dist and name in (point.dist.metadata.get_all("Provides-Extra") or ()):
            install = f"{point.dist.name}[{name}]"
        raise missing(error, repr(name), package, install) from None


def _place(part: object) -> str:
    """Return the place where a class, or the class of an object, is defined."""
    cls = part if isinstance(part, type) else type(part)
    return f"{cls.__module__}.{cls.__qualname__}"


def _kinds(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, UnionType):
        return get_args(annotation)
    return (annotation,)


_TYPES = {
    bool: "yes or no",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "file",
    type(None): "none",
}
_LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def _type_text(field: FieldInfo) -> str:
    lines: list[str] = []
    for kind in _kinds(field.annotation):
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        if get_origin(kind) is Literal:
            lines += map(str, get_args(kind))
        elif get_origin(kind) in (tuple, list, Sequence):
            lines.append("a list")
        else:
            lines.append(_TYPES.get(kind) or str(getattr(kind, "__name__", kind)))
    limits = [
        f"{sign} {getattr(m, name)}"
        for m in field.metadata
        for name, sign in _LIMITS.items()
        if hasattr(m, name)
    ]
    return ", ".join([" | ".join(lines), *limits])


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        value = ", ".join(map(str, value))
    return "none" if value in (None, "") else str(value)
