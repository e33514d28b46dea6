"""Aspects of quality by task: what counts, what does not, and what the lowest and the highest label mean.

The packaged library (`aspects.yaml`) has the aspects of OpeNLGauge (Kartáč et al. 2025, appendix A) in words of our
own, and those of its unseen tasks. The same name can mean different things in different tasks (the coherence of a
response is not that of a summary), so that an aspect belongs to a task. A user's file adds aspects or changes some of
their fields.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import yaml  # type: ignore[import-untyped,unused-ignore]
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from ..errors import OptionError

#: The task whose aspects hold for any text.
GENERAL = "general"
#: Names of a score that say nothing of what is scored.
OVERALL = ("overall", "score", "rating", "quality", "label", "human", "human_score", "gold")


def _one_line(text: str) -> str:
    return " ".join(text.split())


Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_one_line)]
Entry = TypeVar("Entry", "Aspect", "Task")
_SHOWN = 5  # problems in one message


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Aspect(_Checked):
    """One aspect of quality in one task.

    low, high: what the lowest label (Unacceptable) and the highest (Excellent) say of the output, as clauses.
    leave_aside: what is not to be considered. needs_source: False where the output alone is judged. negative: the name
    stands for something bad, so that more of it is worse; labels and scores still say how good the output is.
    """

    name: Words
    task: Words
    definition: Words
    leave_aside: tuple[Words, ...] = Field(default=(), strict=False)
    low: Words
    high: Words
    needs_source: bool = True
    negative: bool = False
    aliases: tuple[Words, ...] = Field(default=(), strict=False)

    @property
    def scoring(self) -> str:
        """What a high score means, for comparisons with other numbers."""
        if self.negative:
            return (
                f"More {self.name} is worse: the best score means that there is none. Reverse human scores that"
                " count how much of it there is"
            )
        return f"More {self.name} is better"


class Task(_Checked):
    """What was asked of the systems, and what their inputs and outputs are called. context: the name of a second input
    where the task has one, such as the knowledge of a dialogue."""

    name: Words
    description: Words
    source: Words
    output: Words
    context: Words | None = None
    aliases: tuple[Words, ...] = Field(default=(), strict=False)
    aspects: Mapping[str, Aspect]


class AspectLibrary:
    """Tasks with their aspects. Names are found whatever their case, spaces, hyphens or underscores, and by aliases."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.tasks: Mapping[str, Task] = MappingProxyType({task.name: task for task in tasks})

    def task(self, name: str) -> Task:
        """A task by its name or an alias. Raises OptionError with the names that come close."""
        found = _by_name(self.tasks, name)
        # A language pair stands behind the task's name in some data.
        found = found or _by_name(self.tasks, re.split(r"[\s_:(]", name.strip(), maxsplit=1)[0])
        if found is None:
            raise OptionError(f"there is no task {name!r}; {_near(name, _names(self.tasks), self.tasks)}")
        return found

    def find(self, name: str, task: str | None = None) -> Aspect:
        """An aspect by its name or an alias; TASK/NAME names both.

        With a task: that of the task, or else the general one. Without: the only one of this name; of several, the
        general one. Raises OptionError where there is none, with the names that come close, or where several tasks
        have one and no general one exists, with these tasks.
        """
        if task is None and "/" in name:
            task, name = name.split("/", 1)
        general, hits = self.tasks[GENERAL], self._with(name)
        if task is None:
            only = next(iter(hits.values())) if len(hits) == 1 else _by_name(general.aspects, name)
            if only is not None:
                return only
            if hits:
                raise OptionError(
                    f"aspect {name!r} means different things in different tasks; name one of: {', '.join(hits)}"
                )
            places, lack, elsewhere = list(self.tasks.values()), "there is no aspect", ""
        else:
            wanted = self.task(task)
            its = _by_name(wanted.aspects, name) or _by_name(general.aspects, name)
            if its is not None:
                return its
            places, lack = [wanted, general], f"{wanted.name} has no aspect"
            elsewhere = f"other tasks have it: {', '.join(hits)}; " if hits else ""
        near = [alias for place in places for alias in _names(place.aspects)]
        known = dict.fromkeys(aspect for place in places for aspect in place.aspects)
        raise OptionError(f"{lack} {name!r}; {elsewhere}{_near(name, near, known if task else sorted(known))}")

    def _with(self, name: str) -> dict[str, Aspect]:
        """TASK/NAME -> aspect, of all tasks that have one of this name."""
        result = (_by_name(task.aspects, name) for task in self.tasks.values())
        return {f"{aspect.task}/{aspect.name}": aspect for aspect in result if aspect is not None}


def aspects(path: str | PathLike[str] | None = None) -> AspectLibrary:
    """The packaged library, with the tasks and aspects of a YAML file of the same form added or changed.

    What the file gives of a known task or aspect replaces single fields; a new one needs all that have no default.
    Raises OptionError with the file and the key for everything that is wrong with it.
    """
    if path is None:
        return _packaged()
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise OptionError(f"{file}: there is no such file; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise OptionError(f"{file}: cannot be read ({why})") from None
    base = {name: _as_data(task) for name, task in _packaged().tasks.items()}
    return AspectLibrary(_tasks(_overlaid(base, _parsed(text, file.name), file.name), file.name))


def known_aspect(aspect: str | Aspect, library: AspectLibrary | None = None) -> tuple[Aspect, Task | None]:
    """An aspect, given as it is or by its name, and its task, in the given library or in the packaged one. Raises
    OptionError as `AspectLibrary.find` does."""
    library = library or aspects()
    known = aspect if isinstance(aspect, Aspect) else library.find(aspect)
    return known, library.tasks.get(known.task)


@cache
def _packaged() -> AspectLibrary:
    name = "aspects.yaml"
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return AspectLibrary(_tasks(_parsed(text, name), name))


# Reading -------------------------------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):  # type: ignore[misc,unused-ignore]
    """Plain values only, and a key that stands twice in a mapping is an error instead of the last one silently
    winning."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = key.value if isinstance(key.value, str) else None
            if name is not None and name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} appears twice", key.start_mark)
            seen.add(name)
        return dict(super().construct_mapping(node, deep=deep))


def _parsed(text: str, file: str) -> dict[str, Any]:
    """The tasks of a YAML text: {name: {field: …, aspects: {name: {field: …}}}}, keys checked, values not yet."""
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506  # a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or "malformed"
        raise OptionError(f"{file}{line}: no YAML that can be read ({why}); quote texts with a colon in them") from None
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{file}: no YAML that can be read ({type(error).__name__})") from None
    tasks = _mapping({} if data is None else data, file, "the file", ("tasks",)).get("tasks", {})
    result = {}
    for name, task in _mapping(tasks, file, "tasks").items():
        fields = _mapping(task, file, f"tasks.{name}", [f for f in Task.model_fields if f != "name"])
        inner = _mapping(fields.get("aspects", {}), file, f"tasks.{name}.aspects")
        known = [f for f in Aspect.model_fields if f not in ("name", "task")]
        result[name] = fields | {
            "aspects": {a: _mapping(value, file, f"tasks.{name}.aspects.{a}", known) for a, value in inner.items()}
        }
    return result


def _mapping(value: Any, file: str, where: str, known: Iterable[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OptionError(f"{file}: {where} must have keys with values, not {type(value).__name__}")
    spelled: dict[str, str] = {}
    for key in value:
        if not isinstance(key, str) or not _plain(key):
            raise OptionError(f"{file}: {where}: the key {key!r} must be a text; put it in quotes")
        if known is not None and key not in (names := list(known)):
            raise OptionError(f"{file}: {where} has an unknown key {key!r}; {_near(key, names, names)}")
        if (first := spelled.setdefault(_plain(key), key)) != key:
            raise OptionError(f"{file}: {where}: {first!r} and {key!r} are one name; rename one of them")
    return value


def _as_data(task: Task) -> dict[str, Any]:
    fields = task.model_dump(exclude={"name"}, exclude_defaults=True)
    fields["aspects"] = {
        name: aspect.model_dump(exclude={"name", "task"}, exclude_defaults=True)
        for name, aspect in task.aspects.items()
    }
    return fields


def _overlaid(base: dict[str, Any], changes: dict[str, Any], file: str) -> dict[str, Any]:
    for name, task in changes.items():
        known = _by_name(_packaged().tasks, name)
        if known is None:
            base[name] = task
            continue
        merged = base[known.name]["aspects"]
        for aspect, fields in task["aspects"].items():
            # By the name alone: what was an alias may become an aspect of its own.
            same = next((n for n in merged if _plain(n) == _plain(aspect)), aspect)
            merged[same] = merged.get(same, {}) | fields
        base[known.name] |= {key: value for key, value in task.items() if key != "aspects"}
    return base


def _tasks(data: Mapping[str, Any], file: str) -> list[Task]:
    """Checked tasks; every problem of the file in one message, up to five."""
    problems: list[str] = []
    tasks = []
    for name, fields in data.items():
        result: dict[str, Aspect] = {}
        for aspect, value in fields["aspects"].items():
            where = f"tasks.{name}.aspects.{aspect}"
            try:
                result[aspect] = Aspect(name=aspect, task=name, **value)
            except ValidationError as error:
                problems += _said(error, file, where)
        try:
            tasks.append(Task(name=name, **{**fields, "aspects": result}))
        except ValidationError as error:
            problems += _said(error, file, f"tasks.{name}")
        problems += _clashes(result, file, f"tasks.{name}.aspects")
    if not problems:
        problems += _clashes({task.name: task for task in tasks}, file, "tasks")
    if problems:
        more = [f"... and {len(problems) - _SHOWN} more problems"] if len(problems) > _SHOWN else []
        raise OptionError("\n".join(problems[:_SHOWN] + more))
    return tasks


def _said(error: ValidationError, file: str, where: str) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        key = ".".join([where, *map(str, problem["loc"])])
        if problem["type"] == "missing":
            lines.append(f"{file}: {key} is missing; a new one needs it")
        else:
            why = problem["msg"].replace("tuple", "list")
            lines.append(f"{file}: {key}: {why[:1].lower()}{why[1:]}; correct it")
    return lines


def _clashes(entries: Mapping[str, Aspect] | Mapping[str, Task], file: str, where: str) -> list[str]:
    """Aliases that two entries claim. A name goes before an alias, so that an alias may be another entry's name."""
    problems = []
    names = set(map(_plain, entries))
    claimed: dict[str, str] = {}
    for name, entry in entries.items():
        for alias in entry.aliases:
            first = claimed.setdefault(_plain(alias), name)
            if first != name and _plain(alias) not in names:
                problems.append(f"{file}: {where}: {first!r} and {name!r} share the alias {alias!r}; drop one of them")
    return problems


# Names ---------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", name.casefold()).split())


def _by_name(entries: Mapping[str, Entry], name: str) -> Entry | None:
    wanted = _plain(name)
    found = next((entry for key, entry in entries.items() if _plain(key) == wanted), None)
    return found or next((e for e in entries.values() if wanted in map(_plain, e.aliases)), None)


def _names(entries: Mapping[str, Aspect] | Mapping[str, Task]) -> list[str]:
    return [name for key, entry in entries.items() for name in (key, *entry.aliases)]


def _near(name: str, among: Iterable[str], known: Iterable[str]) -> str:
    plain = {_plain(one): one for one in reversed(list(among))}
    close = [plain[one] for one in difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.6)]
    meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    return f"{meant}There are: {', '.join(known)}"
