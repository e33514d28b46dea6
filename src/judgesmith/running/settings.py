"""Options by their names: what `--set NAME=VALUE`, `--config FILE.yaml` and the settings of a study mean.

Every option is declared once, where it is used: by a judge method, by an optimizer, or by a command. A name is
looked up among those of the chosen parts; one that only other parts have is an error, since it would do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml  # type: ignore[import-untyped,unused-ignore]

from ..errors import OptionError
from ..parts import Options, from_text, nearest, option, read_options

#: Older names of options, and the flags of the command line.
ALIASES = {
    "annotator": "annotators",
    "as": "library_aspect",
    "aspects": "aspect_file",
    "bootstrap_over": "over",
    "demos": "max_demos",
    "max_demos": "demos",
    "references": "levels",
    "levels": "references",
    "tests": "compare",
    "try_temperature": "temperatures",
    "try_temperatures": "temperatures",
    "try_variant": "variants",
    "try_variants": "variants",
}


def other_names(name: str) -> set[str]:
    """The names that may mean the same option as this one, itself among them."""
    return {name, *(new for old, new in ALIASES.items() if old == name), *(o for o, n in ALIASES.items() if n == name)}


#: Ablations of the Active-Critic paper: what `without` leaves out, as options of the method.
WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "task": {"use_task": False},
    "criteria": {"use_criteria": False},
    "os-e": {"combine": "mean"},
    "explanations": {"explain": "none"},
}


class JudgeInWords(Options):
    """What is judged, in the user's words."""

    task: str = option("", "What is judged, in your words, instead of inferring it.")
    criteria: Path | None = option(
        None, "Your criteria instead of inferred ones: lines `name: definition`, or JSON or YAML."
    )
    aspect_file: Path | None = option(None, "A YAML file that adds aspects to the library or changes some.")


class ReachOptions(Options):
    """How language models are reached."""

    timeout: float = option(120.0, "Seconds to wait for one answer.", gt=0)
    concurrency: int | None = option(None, "Calls in flight at most.", ge=1)
    rpm: float | None = option(None, "Calls a minute at most.", gt=0)
    cache: bool = option(True, "Take from the disk what was answered before; --no-cache asks again.")


class ModelOptions(ReachOptions):
    """How the language model is reached and sampled."""

    temperature: float = option(0.0, "Temperature of the judge's answers.", ge=0, le=2)
    max_tokens: int | None = option(None, "Cap on the length of answers.", ge=1)


class FromFile(list[tuple[str, Any]]):
    """Settings of files. source: the files, for messages."""

    source = "--config"


@dataclass(frozen=True, slots=True)
class Owner:
    """Options that a name may belong to. key: what qualifies it (`method.temperature`); where: for messages."""

    key: str
    where: str
    options: type[Options]

    def named(self, name: str) -> str | None:
        """The option of that name, or of the name that another part or an older version has for it."""
        for known in (name, ALIASES.get(name, name)):
            if known in self.options.model_fields:
                return known
        return None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The options that a command line may name. owners: of the chosen parts. who: these parts, for messages. others:
    the options of parts that were not chosen, by what chooses them. more: where the options are described."""

    owners: tuple[Owner, ...]
    who: str = "this command"
    others: Callable[[], Sequence[tuple[str, type[Options]]]] = tuple
    more: str = ""

    def names(self) -> list[str]:
        """Every name that may be set, for some choice of parts."""
        names = {name for options in self._all() for name in options.model_fields}
        own = {"no_cache"} if "cache" in names else set()
        own |= {"without"} if "use_task" in names else set()
        return sorted(names | own | {old for old, new in ALIASES.items() if new in names})

    def is_switch(self, name: str) -> bool:
        """Whether an option of that name is yes or no, so that the name alone means yes."""
        names = {name, ALIASES.get(name, name)}
        fields = [options.model_fields[n] for options in self._all() for n in names & options.model_fields.keys()]
        return bool(fields) and all(bool in (f.annotation, *get_args(f.annotation)) for f in fields)

    def is_list(self, name: str) -> bool:
        """Whether an option of that name takes several values."""
        names = {name, ALIASES.get(name, name)}
        fields = [options.model_fields[n] for options in self._all() for n in names & options.model_fields.keys()]
        return name == "without" or any(isinstance(from_text(field, "x"), list) for field in fields)

    def _all(self) -> list[type[Options]]:
        return [*(owner.options for owner in self.owners), *(options for _, options in self.others())]

    def takes(self, name: str) -> bool:
        """Whether the chosen parts have an option of that name."""
        key, _, last = (name if name != "without" else "use_task").rpartition(".")
        return any(owner.named(last) for owner in self.owners if key in ("", owner.key))

    def resolve(self, *layers: Iterable[tuple[str, Any]], source: str = "--set") -> dict[str, dict[str, Any]]:
        """Options by the key of their owner, checked. Later layers win over earlier ones; within one, an option that
        takes several collects them. Values that are texts are read as on a command line.

        Raises OptionError for names that are unknown, ambiguous, or of other parts, and for wrong values.
        """
        found: dict[str, dict[str, Any]] = {owner.key: {} for owner in self.owners}
        for layer in layers:
            fresh: dict[tuple[str, str], Any] = {}
            where = getattr(layer, "source", source)
            for given, value in layer:
                for name, one in _plain_names(given, value, where):
                    owner, known = self._owner(name, where)
                    read = from_text(owner.options.model_fields[known], one) if isinstance(one, str) else one
                    before = fresh.get((owner.key, known))
                    several = isinstance(before, list) and isinstance(read, list)
                    fresh[owner.key, known] = [*before, *read] if several else read  # type: ignore[misc]
            for (key, known), value in fresh.items():
                found[key][known] = value
        return {owner.key: checked(owner.options, found[owner.key], owner.where) for owner in self.owners}

    def _owner(self, given: str, source: str) -> tuple[Owner, str]:
        key, dot, name = given.rpartition(".")
        having = [(own, known) for own in self.owners if not dot or own.key == key if (known := own.named(name))]
        if len(having) == 1:
            return having[0]
        if having:
            names = " or ".join(f"{owner.key}.{known}" for owner, known in having)
            raise OptionError(f"{source} {given}: which one? Write {names}")
        meant = {name, ALIASES.get(name, name)}
        if others := {part for part, options in self.others() if meant & options.model_fields.keys()}:
            told = ", ".join(sorted(others))
            raise OptionError(f"{source} {given}=… does nothing with {self.who}; it is an option of {told}")
        raise OptionError(f"{source} {given}: there is no option of that name{nearest(name, self.names())}{self.more}")


def checked(options: type[Options], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Options that were given, as values of their types. Raises OptionError."""
    chosen = read_options(options, given, where)
    return {name: getattr(chosen, name) for name in given}


def _plain_names(given: str, value: Any, source: str) -> Iterable[tuple[str, Any]]:
    """A setting as one or more options: `without` names several, `no-x` is `x` denied."""
    name = given.strip().replace("-", "_")
    if name == "without":
        for part in _several(value):
            if part not in WITHOUT:
                raise OptionError(f"{source} without: {part!r} is not one of {', '.join(WITHOUT)}")
            yield from WITHOUT[part].items()
    elif name == "no_cache":
        yield "cache", not _is_yes(value)
    elif name == "augment" and value == "dhp":  # as it was given when there were to be several ways
        yield name, True
    else:
        yield name, value


def _several(value: Any) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else value or ()
    return [str(part).strip() for part in parts]


def _is_yes(value: Any) -> bool:
    return str(value).strip().casefold() in ("true", "yes", "on", "1")


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises OptionError where there is none."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--config {path}: {getattr(error, 'strerror', None) or error}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise OptionError(f"--config {path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise OptionError(f"--config {path}: expected lines of the form `option: value`")
    return {str(key).replace("-", "_"): value for key, value in data.items()}


@dataclass(frozen=True, slots=True)
class Shelf:
    """YAML files in a folder, by their names; the first line of each, a comment, says what it is. asked: what a user
    named one with; kind: what they are; listed: where their names are found, for the message on an unknown one."""

    folder: Path
    asked: str
    kind: str
    listed: str

    def names(self) -> list[str]:
        return sorted(file.relative_to(self.folder).with_suffix("").as_posix() for file in self.folder.rglob("*.yaml"))

    def file(self, name: str) -> Path:
        """Raises OptionError for an unknown name."""
        known = self.names()
        if name not in known:
            raise OptionError(
                f"{self.asked} {name}: there is no such {self.kind}{nearest(name, known)}; {self.listed} lists them"
            )
        return self.folder / f"{name}.yaml"

    def text(self, name: str) -> str:
        """A file as it stands, with comments. Raises OptionError for an unknown name."""
        return self.file(name).read_text(encoding="utf-8")

    def about(self, name: str) -> str:
        """What one is, in one line. Raises OptionError for an unknown name."""
        return self.text(name).partition("\n")[0].removeprefix("# ")


def pairs_of(given: Sequence[str]) -> list[tuple[str, str]]:
    """`NAME=VALUE` options as pairs. Raises OptionError."""
    pairs = []
    for option_ in given:
        name, equals, value = option_.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--set {option_!r} is not of the form NAME=VALUE, for example --set anchor=gold")
        pairs.append((name.strip(), value.strip()))
    return pairs


def choices_of(options: type[Options], name: str) -> list[str]:
    """The values that an option can have, where it has a choice of them."""
    annotation = options.model_fields[name].annotation
    kinds = (annotation, *get_args(annotation))
    if bool in kinds:
        return ["yes", "no"]
    return [str(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
