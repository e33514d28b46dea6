"""How far scores may be trusted, in one line: whose they are, and how far their judge agreed with people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from judgesmith.running.plain import one_line

if TYPE_CHECKING:
    from judgesmith.programs.judge import Judge

_SIGNATURE = re.compile(
    r"(?P<name>[\w-]+)=(?P<value>-?[\d.]+ \[[^\]]*\]).*?\|n:(?P<n>\d+)"
)

#: Of a judge that has learnt from no labels.
UNRATED = (
    "no rated row has taught this judge; in a field unlike summaries, dialogue, stories, descriptions of data and "
    "translations it may even rank texts in reverse, until some are rated"
)


@dataclass(frozen=True, slots=True)
class Trust:
    """What a judge was measured on, as every row that it scores tells. Parts that are not known are empty."""

    judge: str = ""
    """The name of its file."""
    model: str = ""
    scale: tuple[float, float] | None = None
    kind: str = ""
    """What people gave: score, category, binary or preference."""
    ratings: Mapping[str, Any] = field(default_factory=dict)
    """The columns of human ratings that it was compiled from, by role."""
    agreement: str = ""
    """The signature of its agreement on held-out rows; "" where none was measured with this model."""
    baseline: str = ""
    """The signature of length, overlap with the source and repetition alone, on the same rows."""
    note: str = ""
    """Why there is no agreement, where its model is another than the one that was measured."""

    @classmethod
    def of(cls, judge: Judge, name: str, model: str = "") -> Self:
        """Return what is known of a judge.

        Args:
            judge: The judge.
            name: The name of its file.
            model: Its model's name, of a judge that is opened without.
        """
        contract = judge.contract
        moved = judge.moved
        surface = judge.provenance.get("surface")
        baseline = surface if isinstance(surface, Mapping) and not moved else {}
        return cls(
            name,
            model if judge.own_lm is None else judge.own_lm.name,
            (judge.scale.low, judge.scale.high),
            "" if contract is None else contract.question.kind,
            {} if contract is None else contract.ratings,
            judge.stated_agreement,
            str(baseline.get("signature") or ""),
            moved.partition(": scores")[0],
        )

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Return what is known of a saved judge.

        Raises:
            ArtifactError: If the file is not a judge.
        """
        from judgesmith.programs import artifact, loading

        read = artifact.read(path)
        return cls.of(loading.build(read), path.name, read.lm.model if read.lm else "")

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """Return what a scored row tells, whatever stands in it."""
        scale = told.get("scale")
        ends = scale if isinstance(scale, list) and len(scale) == 2 else []
        numbers = [end for end in ends if isinstance(end, int | float)]
        both = (float(numbers[0]), float(numbers[1])) if len(numbers) == 2 else None

        def words(name: str) -> str:
            return one_line(str(told.get(name) or ""))[:300]

        return cls(
            words("judge"),
            words("model"),
            both,
            words("kind"),
            {},
            words("agreement"),
            words("baseline"),
            words("note"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, without unknown parts."""
        values = {
            "judge": self.judge,
            "model": self.model,
            "scale": None if self.scale is None else list(self.scale),
            "kind": self.kind,
            "columns": dict(self.ratings),
            "agreement": self.agreement,
            "baseline": self.baseline,
            "note": self.note,
        }
        return {name: value for name, value in values.items() if value}

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, *, rated: bool = False) -> str:
        """Return it in words. rated: whether people rated the rows that were scored."""
        whose = f"Scored by {self.judge or 'a judge'}"
        whose += f" with {self.model}" if self.model else ""
        if self.scale is not None:
            whose += " on a scale from {:g} to {:g}".format(*self.scale)
        if self.note:
            return f"{whose}. {self.note[0].upper()}{self.note[1:]}."
        if not self.agreement:
            where = "these rows, which" if rated else "rows that"
            return f"{whose}. `judgesmith check` measures how far it agrees with people, on {where} people rated."
        told = f"{whose}. Agreement with people, on rows held out of compiling: {in_words(self.agreement)}."
        if self.baseline:
            told += f" Length and overlap alone: {in_words(self.baseline)}."
        return told


def in_words(signature: str) -> str:
    """Return a signature of agreement without its technical parts.

    >>> in_words("Q=1.31 [0.92, 1.63] r+rho+tau|pooled|n:60|failed:2|seed:0")
    'Q 1.31 [0.92, 1.63] (60 rows)'
    """
    match = _SIGNATURE.search(signature)
    if match is None:
        return signature
    return "{name} {value} ({n} rows)".format(**match.groupdict())
