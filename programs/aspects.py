"""Aspects of quality by task: what counts, what does not, and what the lowest and the highest label mean.

The packaged library (`aspects.yaml`) has the aspects of OpeNLGauge (Kartáč et al. 2025, appendix A) in words of our
own, and those of its unseen tasks. The same name can mean different things in different tasks (the coherence of a
response is not that of a summary), so that an aspect belongs to a task.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

import yaml  # type: ignore[import-untyped,unused-ignore]
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from judgesmith.errors import OptionError

#: The task whose aspects hold for any text.
GENERAL = "general"
#: Names of a score that say nothing of what is scored.
OVERALL = (
    "overall",
    "score",
    "rating",
    "quality",
    "label",
    "human",
    "human_score",
    "gold",
)


def _one_line(text: str) -> str:
    return " ".join(text.split())


Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),
    AfterValidator(_one_line),
]
Entry = TypeVar("Entry", "Aspect", "Task")
#: What prompts show beside the output: everything, no source, or neither source nor context.
Material = Literal["all", "context", "output"]


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Aspect(_Checked):
    """One aspect of quality in one task.

    low, high: what the lowest label (Unacceptable) and the highest (Excellent) say of the output, as clauses.
    leave_aside: what is not to be considered. rules, steps: of the annotation of its errors; the steps stand in place
    of the general ones. needs_source: False where prompts show no source: the output alone is judged, or, with
    needs_context, beside its context. negative: the name stands for something bad, so that more of it is worse; labels
    and scores still say how good the output is.
    """

    name: Words
    task: Words
    definition: Words
    leave_aside: tuple[Words, ...] = ()
    low: Words
    high: Words
    rules: tuple[Words, ...] = ()
    steps: tuple[Words, ...] = ()
    needs_source: bool = True
    needs_context: bool = False
    negative: bool = False
    aliases: tuple[Words, ...] = ()

    @property
    def material(self) -> Material:
        """Return what prompts show beside the output."""
        if self.needs_source:
            return "all"
        return "context" if self.needs_context else "output"

    @property
    def scoring(self) -> str:
        """Describe the meaning of a high score, for comparisons with other numbers."""
        if self.negative:
            return (
                f"More {self.name} is worse: the best score means that there is none. Reverse human scores that"
                " count how much of it there is"
            )
        return f"More {self.name} is better"


class Task(_Checked):
    """The task of the systems, and the names of their inputs and outputs.

    context: the name of a second input if the task has one, such as the knowledge of a dialogue.
    """

    name: Words
    description: Words
    source: Words
    output: Words
    context: Words | None = None
    aliases: tuple[Words, ...] = ()
    aspects: Mapping[str, Aspect]


class AspectLibrary:
    """Tasks with their aspects. Names are found whatever their case, spaces, hyphens or underscores, and by aliases."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.tasks: Mapping[str, Task] = MappingProxyType(
            {task.name: task for task in tasks}
        )

    def task(self, name: str) -> Task:
        """Return a task by its name or an alias.

        Raises:
            OptionError: For an unknown name, with the names that come close.
        """
        match = _by_name(self.tasks, name)
        # A language pair stands behind the task's name in some data.
        match = match or _by_name(
            self.tasks, re.split(r"[\s_:(]", name.strip(), maxsplit=1)[0]
        )
        if match is None:
            raise OptionError(
                f"there is no task {name!r}; {_near(name, _names(self.tasks), self.tasks)}"
            )
        return match

    def find(self, name: str, task: str | None = None) -> Aspect:
        """Return an aspect by its name or an alias; TASK/NAME names both.

        With a task: that of the task, or else the general one. Without: the only one of this name; of several, the
        general one.

        Raises:
            OptionError: For an unknown name, with the names that come close; also if several tasks have one and no
                general one exists, with these tasks.
        """
        if task is None and "/" in name:
            task, name = name.split("/", 1)
        general = self.tasks[GENERAL]
        hits = self._with(name)
        if task is None:
            only: Aspect | None
            if len(hits) == 1:
                only = next(iter(hits.values()))
            else:
                only = _by_name(general.aspects, name)
            if only is not None:
                return only
            if hits:
                raise OptionError(
                    f"aspect {name!r} means different things in different tasks; name one of: {', '.join(hits)}"
                )
            places = list(self.tasks.values())
            lack = "there is no aspect"
            elsewhere = ""
        else:
            wanted = self.task(task)
            its = _by_name(wanted.aspects, name) or _by_name(general.aspects, name)
            if its is not None:
                return its
            places = [wanted, general]
            lack = f"{wanted.name} has no aspect"
            elsewhere = f"other tasks have it: {', '.join(hits)}; " if hits else ""
        near = [alias for place in places for alias in _names(place.aspects)]
        candidates = dict.fromkeys(
            aspect for place in places for aspect in place.aspects
        )
        raise OptionError(
            f"{lack} {name!r}; {elsewhere}{_near(name, near, candidates if task else sorted(candidates))}"
        )

    def _with(self, name: str) -> dict[str, Aspect]:
        """TASK/NAME -> aspect, of all tasks that have one of this name."""
        result = (_by_name(task.aspects, name) for task in self.tasks.values())
        return {
            f"{aspect.task}/{aspect.name}": aspect
            for aspect in result
            if aspect is not None
        }


@cache
def aspects() -> AspectLibrary:
    """Return the packaged library."""
    text = files(__package__).joinpath("aspects.yaml").read_text(encoding="utf-8")
    tasks = []
    for name, fields in yaml.safe_load(text)["tasks"].items():
        inner = {
            a: Aspect(name=a, task=name, **of) for a, of in fields["aspects"].items()
        }
        tasks.append(Task(name=name, **{**fields, "aspects": inner}))
    return AspectLibrary(tasks)


def known_aspect(aspect: str | Aspect) -> tuple[Aspect, Task | None]:
    """Return an aspect, given itself or by its name, and its task.

    Raises:
        OptionError: As `AspectLibrary.find`.
    """
    known = aspect if isinstance(aspect, Aspect) else aspects().find(aspect)
    return known, aspects().tasks.get(known.task)


#: Names that a message lists; of more it says where they are.
_SHOWN = 16

# Names ---------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", name.casefold()).split())


def _by_name(entries: Mapping[str, Entry], name: str) -> Entry | None:
    wanted = _plain(name)
    match = next(
        (entry for key, entry in entries.items() if _plain(key) == wanted), None
    )
    return match or next(
        (e for e in entries.values() if wanted in map(_plain, e.aliases)), None
    )


def _names(entries: Mapping[str, Aspect] | Mapping[str, Task]) -> list[str]:
    return [name for key, entry in entries.items() for name in (key, *entry.aliases)]


def _near(name: str, among: Iterable[str], names: Iterable[str]) -> str:
    plain = {_plain(one): one for one in reversed(list(among))}
    close = [
        plain[one]
        for one in difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.6)
    ]
    meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    every = list(names)
    if len(every) > _SHOWN:
        return f"{meant}There are {len(every)} (`judgesmith list aspects`)"
    return f"{meant}There are: {', '.join(every)}"
