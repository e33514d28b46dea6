"""What `judgesmith compare` does with the answers that it read: which two versions, and what is known of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.comparison import Comparison, compare
from judgesmith.comparing.kept import Kept, keep, number
from judgesmith.comparing.reading import Answer, Versions
from judgesmith.errors import OptionError


@dataclass(frozen=True)
class Question:
    """Which versions are compared, and at which error. Names are "" where the files tell them."""

    base: str = ""
    new: str = ""
    level: float = 0.05
    looks: int = 1
    candidates: int = 1
    margin: float | None = None
    unseen: bool = False


def answer(versions: Versions, question: Question) -> tuple[Comparison, list[str]]:
    """Return the comparison of two versions, with notes.

    Raises:
        LabelsError: If they have no input in common.
        OptionError: If it is not clear which two are meant.
    """
    base, new = chosen(versions.names, versions.origin, question)
    notes = [*versions.notes, *without_learnt(versions.answers, unseen=question.unseen)]
    documents = [one.document for one in versions.answers]
    if not common(versions.answers, documents, base, new):
        ids = [f"id {one.id}" for one in versions.answers]
        if common(versions.answers, ids, base, new):
            documents = ids
            notes.append(
                "no source is the same: answers with the same id count as answers to one input"
            )
    lengths = [float(len(one.output)) for one in versions.answers]
    # An answer without its text, of a history, is like no other.
    texts = [one.output or f"answer {k}" for k, one in enumerate(versions.answers)]
    found = compare(
        [one.judge for one in versions.answers],
        [one.human for one in versions.answers],
        systems=[one.version for one in versions.answers],
        documents=documents,
        base=base,
        new=new,
        level=question.level,
        looks=question.looks,
        candidates=question.candidates,
        margin=question.margin,
        outputs=texts,
        wins=versions.wins,
        decisions=versions.decisions,
        others={"length of outputs": np.array(lengths)},
        probabilities=_chances(versions.answers),
    )
    notes += left_out(versions.answers, documents, base, new)
    return found, [*notes, *found.notes]


def _chances(answers: Sequence[Answer]) -> list[float] | None:
    """Return the probability with which each answer was drawn to be rated; None where nothing says that they differ."""
    chances = [one.chance for one in answers]
    return None if all(map(math.isnan, chances)) else chances


def chosen(names: Sequence[str], origin: str, question: Question) -> tuple[str, str]:
    """Return the names of base and new.

    Raises:
        OptionError: If a name is none of the versions, or it is not clear which are meant.
    """
    there = ", ".join(map(repr, names))
    if len(names) < 2:
        raise OptionError(
            f"{origin} has one version, {there}; give the file of another one, or the column of the version with "
            "--columns system=NAME"
        )
    for option, name in (("--base", question.base), ("--new", question.new)):
        if name and name not in names:
            raise OptionError(
                f"{option} {name}: no such version in {origin}; there are {there}"
            )
    rest = [name for name in names if name not in (question.base, question.new)]
    wanted = [not question.base, not question.new].count(True)
    if wanted and len(rest) != wanted:
        raise OptionError(
            f"{origin} has {len(names)} versions, {there}; name two of them with --base and --new (the others count as "
            "earlier versions)"
        )
    base = question.base or rest.pop(0)
    return base, question.new or rest.pop(0)


def without_learnt(answers: Iterable[Answer], *, unseen: bool) -> list[str]:
    """Drop ratings of answers that are no random ones; return notes.

    unseen: drop those that the judge was compiled from, too, which are only noted else.
    """
    notes = list[str]()
    rated = [one for one in answers if not math.isnan(one.human)]
    suggested = [one for one in rated if one.suggested]
    if 0 < len(suggested) < len(rated):
        _forget(suggested)
        notes.append(
            f"{len(suggested)} ratings of answers that `suggest` chose, which are no random part, are not used"
        )
    learnt = [one for one in rated if one.seen and not one.suggested]
    if learnt and unseen:
        _forget(learnt)
        notes.append(
            f"{len(learnt)} ratings that the judge was compiled from are not used"
        )
    elif learnt:
        notes.append(
            f"{len(learnt)} of the rated answers were used to compile the judge, which is more right there than "
            "elsewhere; --unseen leaves their ratings out"
        )
    return notes


def _forget(answers: Iterable[Answer]) -> None:
    for one in answers:
        one.human = math.nan


def common(
    answers: Sequence[Answer], documents: Sequence[str], base: str, new: str
) -> set[str]:
    """Return the documents that both versions answered, with a score."""
    of: dict[str, set[str]] = {base: set(), new: set()}
    for one, document in zip(answers, documents, strict=True):
        if one.version in of and not math.isnan(one.judge):
            of[one.version].add(document)
    return of[base] & of[new]


def left_out(
    answers: Sequence[Answer], documents: Sequence[str], base: str, new: str
) -> list[str]:
    """Return notes on answers of the two versions that are not compared."""
    both = common(answers, documents, base, new)
    notes = []
    for name in (base, new):
        own = [k for k, one in enumerate(answers) if one.version == name]
        failed = sum(math.isnan(answers[k].judge) for k in own)
        if failed:
            notes.append(
                f"{failed} of {len(own)} answers of {name} have no score by the judge"
            )
        alone = sum(
            documents[k] not in both and not math.isnan(answers[k].judge) for k in own
        )
        if alone:
            notes.append(
                f"{alone} of {len(own)} answers of {name} are left out: the other version has none to that input"
            )
    return notes


def keep_versions(path: Path, versions: Versions) -> int:
    """Append the rated versions of the files to the file of versions; return how many answers it holds then.

    All answers of a version with a rating are kept, as the judge's mean is over all of them.
    """
    rated = {one.version for one in versions.answers if not math.isnan(one.human)}
    kept = [
        Kept(
            one.version,
            one.id,
            one.document,
            versions.mark,
            number(one.judge),
            number(one.human),
        )
        for one in versions.answers
        if one.version in rated
    ]
    return keep(path, kept)


def worse(found: Comparison) -> bool:
    """Return whether the new version is worse: as people say, or by the judge's scores where people decide nothing."""
    if found.verdict != "undecided":
        return found.verdict == "worse"
    return found.basis == "nothing" and found.judge.worse


def about(
    found: Comparison, versions: Versions, notes: Sequence[str]
) -> dict[str, Any]:
    """Return what `--json` prints."""
    return found.to_dict() | {
        "origin": versions.origin,
        "aspect": versions.aspect,
        "scored_by": versions.mark,
        "notes": list(notes),
    }
