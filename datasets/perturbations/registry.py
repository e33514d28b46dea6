"""Texts perturbed to harm them, changed without harm, or made to address their judge: the registry, and checked pairs.

Source: DHP benchmark (Tables 1 and 2); of what goes beyond it `paper` is empty.
"""

from __future__ import annotations

import random
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeVar, get_args

from judgesmith.datasets.perturbations.base import (
    Amounts,
    Change,
    Degree,
    Kind,
    Level,
    Material,
    Method,
    Perturbation,
    Text,
    Unperturbable,
    sentences,
)
from judgesmith.datasets.perturbations.dhp import TASKS
from judgesmith.errors import OptionError
from judgesmith.parts import Registry, nearest

__all__ = [
    "PERTURBATIONS",
    "Amounts",
    "Change",
    "Degree",
    "Kind",
    "Left",
    "Level",
    "Material",
    "Method",
    "Pair",
    "Perturbation",
    "Text",
    "Unperturbable",
    "find_perturbations",
    "pairs_of",
    "perturbations",
    "rule",
    "sentences",
]

#: (text, degree, rng, material) -> the changed text.
Rule = TypeVar("Rule", bound=Callable[..., str])
_TRIES = 8  # draws for a major perturbation that changed no more than the minor one

#: Classes of perturbations, built in and of other packages; each is made without arguments.
perturbations: Registry[type[Perturbation]] = Registry(
    "perturbation",
    packages=("judgesmith.datasets.perturbations",),
    group="judgesmith.perturbations",
)


def rule(
    name: str, about: str, level: Level, **declared: Any
) -> Callable[[Rule], Rule]:
    """Register a function as a perturbation.

    Args:
        name: Its name in the registry.
        about: Its description, one line.
        level: The level of the text it changes.
        **declared: Further attributes of `Perturbation`: kind, degrees, needs, base …
    """

    def registered(change: Rule) -> Rule:
        members = {
            "__module__": change.__module__,
            "__doc__": change.__doc__,
            "change": staticmethod(change),
        }
        members |= {"name": name, "about": about, "level": level} | declared
        perturbations.register(type(name, (Perturbation,), members))
        return change

    return registered


class _Instances(UserDict[str, Perturbation]):
    """One of each registered class, by name: those of characters, words and sentences, then invariances, attacks.

    They are made when they are first asked for, since their modules import this one.
    """

    def __init__(self) -> None:
        """Nothing yet."""

    @cached_property
    def data(self) -> dict[str, Perturbation]:  # type: ignore[override]
        kinds = get_args(Kind)
        levels = get_args(Level)
        instances = [part() for part in perturbations.parts().values()]
        return {
            p.name: p
            for p in sorted(
                instances, key=lambda p: (kinds.index(p.kind), levels.index(p.level))
            )
        }


PERTURBATIONS: Mapping[str, Perturbation] = _Instances()


@dataclass(frozen=True, slots=True)
class Pair:
    """A text before and after a perturbation, with everything that is needed to make or judge it again.

    original: what was perturbed; of an attack a text of another document, of all else the good text. id: the good
    text's.
    """

    id: str
    perturbation: str
    degree: Degree
    kind: Kind
    level: Level
    method: Method
    original: str
    perturbed: str
    source: str
    context: str | None
    references: tuple[str, ...]
    group: str
    seed: int
    change: Change

    @property
    def name(self) -> str:
        """Return `typos:major`, or the plain name for a perturbation without degrees."""
        if self.degree == "only":
            return self.perturbation
        return f"{self.perturbation}:{self.degree}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `from_dict` takes them back."""
        return asdict(self) | {"references": list(self.references)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Pair:
        """Return the pair that `to_dict` wrote.

        Raises:
            KeyError: For a missing value.
            TypeError: For a value of another type.
        """
        fields = {name: data[name] for name in cls.__dataclass_fields__}
        return cls(
            **fields
            | {
                "references": tuple(data["references"]),
                "change": Change(**data["change"]),
            }
        )


@dataclass(frozen=True, slots=True)
class Left:
    """A text that was left out of a perturbation, and why."""

    id: str
    name: str
    reason: str


def _of_paper(
    available: Mapping[str, Perturbation], task: str
) -> dict[str, tuple[Degree, ...]]:
    """Return the paper's perturbations for a task, with their degrees.

    A stand-in takes the place of one that needs a language model if there is none.
    """
    stand_ins = {
        perturbation.stands_for: name
        for name, perturbation in available.items()
        if perturbation.stands_for
    }
    result = {
        name if name in available else stand_ins.get(name, ""): d
        for name, d in TASKS[task].perturbations.items()
    }
    return {name: degrees for name, degrees in result.items() if name}


def find_perturbations(
    wanted: Sequence[str],
    there: Mapping[str, Perturbation] = PERTURBATIONS,
    task: str = "summarization",
) -> list[tuple[Perturbation, tuple[Degree, ...]]]:
    """Return perturbations by name, by `name:minor` or `name:major`, or by group, each with its degrees.

    Groups are all, paper (what DHP does to texts of a task, by rules where no language model is there to do it),
    degradation, invariance, attack, character, word, sentence (those of a level), and trajectory (of agents' logs). The
    result is in the registry's order.

    Args:
        wanted: Names and groups.
        there: The perturbations to choose from.
        task: One of `dhp.TASKS`.

    Raises:
        OptionError: For an unknown name, with the nearest one.
    """
    of_paper = _of_paper(there, task)
    groups: dict[str, list[str]] = {"all": list(there), "paper": list(of_paper)}
    for name, perturbation in there.items():
        groups.setdefault(perturbation.kind, []).append(name)
        if perturbation.kind == "degradation" or "trajectory" in perturbation.needs:
            groups.setdefault(perturbation.level, []).append(name)
    result: dict[str, set[Degree]] = {}
    for word in wanted:
        name, colon, degree = word.strip().partition(":")
        members = groups.get(name, [name] if name in there else [])
        if not members:
            if name.endswith("-lm"):
                raise OptionError(
                    f"{name} is made by a language model: name one with --writer, or take a -rules perturbation"
                )
            raise OptionError(
                f"there is no perturbation {name!r}{nearest(name, [*there, *groups])}; there are {', '.join(there)}, "
                f"and the groups {', '.join(groups)}"
            )
        for member in members:
            degrees = of_paper[member] if name == "paper" else there[member].degrees
            if colon and degree not in degrees:
                if name not in groups:
                    raise OptionError(
                        f"{name} has no degree {degree!r}; it has {', '.join(degrees)}"
                    )
                continue
            result.setdefault(member, set()).update(
                [d for d in degrees if not colon or d == degree]
            )
    ordered = list[tuple[Perturbation, tuple[Degree, ...]]]()
    for name, perturbation in there.items():
        if name in result:
            present = tuple(d for d in perturbation.degrees if d in result[name])
            ordered.append((perturbation, present))
    return ordered


def pairs_of(
    perturbation: Perturbation,
    texts: Sequence[Text],
    *,
    degrees: Sequence[Degree] | None = None,
    seed: int = 0,
    amounts: Amounts | None = None,
    language: str = "en",
) -> Iterator[Pair | Left]:
    """Yield every text perturbed in every degree, or the reason why it is left out.

    A text that comes out unchanged is left out, and so is a major perturbation that changed no more than the minor one.
    The same seed and text give the same pair, whatever other texts and perturbations there are; parts taken from other
    documents depend on these, too.
    """
    chosen = perturbation.degrees if degrees is None else tuple(degrees)
    for own in texts:
        group = own.group or own.id
        others = [other for other in texts if (other.group or other.id) != group]
        material = Material(own, others, amounts or Amounts(), language)
        pairs: dict[str, Pair] = {}
        for degree in [
            d
            for d in perturbation.degrees
            if d in chosen or (d == "minor" and "major" in chosen)
        ]:
            minor = pairs.get("minor") if degree == "major" else None
            outcome = _pair(perturbation, degree, material, seed, minor)
            if isinstance(outcome, Pair):
                pairs[degree] = outcome
            if degree in chosen:
                yield outcome


def _pair(
    perturbation: Perturbation,
    degree: Degree,
    material: Material,
    seed: int,
    minor: Pair | None,
) -> Pair | Left:
    own = material.own
    name = perturbation.name if degree == "only" else f"{perturbation.name}:{degree}"
    try:
        perturbation.require(material)
        before = perturbation.base(material)
        if not any(character.isalnum() for character in before):
            raise Unperturbable("it has no letters")
        for attempt in range(_TRIES if minor is not None else 1):
            # The degree is no part of the seed: what minor draws is the beginning of what major draws.
            key = f"{seed}|{perturbation.name}|{own.id}|{own.text}"
            if attempt:
                key += f"|{attempt}"
            # Bytes, for the sake of lone surrogates.
            rng = random.Random(key.encode("utf-8", "backslashreplace"))
            after = perturbation.change(before, degree, rng, material)
            change = Change.between(before, after)
            if minor is None or change.distance > minor.change.distance:
                break
        else:
            raise Unperturbable(
                "the major perturbation changed no more than the minor one"
            )
    except Unperturbable as error:
        return Left(own.id, name, str(error))
    if after == before:
        return Left(own.id, name, "nothing changed")
    if not after.strip():
        return Left(own.id, name, "nothing was left of it")
    return Pair(
        own.id,
        perturbation.name,
        degree,
        perturbation.kind,
        perturbation.level,
        perturbation.method,
        before,
        after,
        own.source,
        own.context,
        own.references,
        group=own.group or own.id,
        seed=seed,
        change=change,
    )
