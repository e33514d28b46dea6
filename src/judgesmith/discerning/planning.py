"""`judgesmith discern --dry-run`: which texts, perturbations and calls a run would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..datasets.perturbations.dhp import origin_of
from ..datasets.perturbations.registry import Degree, Perturbation, sentences
from ..running.limits import Estimate
from .options import DiscernOptions
from .pairs import Book, Texts

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """Texts, perturbations and calls."""

    texts: Texts
    book: Book
    chosen: Sequence[tuple[Perturbation, tuple[Degree, ...]]]
    how: DiscernOptions
    judging: Estimate

    def sizes(self) -> tuple[float, float, float]:
        """Characters, words and sentences of a text on average."""
        good = [text.text for text in self.texts.texts]
        parts = (len, lambda text: len(text.split()), lambda text: len(sentences(text, self.how.language)))
        characters, words, several = (fmean(map(part, good)) for part in parts)
        return characters, words, several

    def perturbations(self) -> list[tuple[str, str, int, int]]:
        """(name, origin, texts, texts left out)"""
        made, left = (Counter(one.name for one in some) for some in (self.book.pairs, self.book.left))
        named = [
            (one.name if d == "only" else f"{one.name}:{d}", origin_of(one, d, self.texts.task))
            for one, ds in self.chosen
            for d in ds
        ]
        return [(name, origin, made[name], left[name]) for name, origin in named]

    @property
    def to_write(self) -> int:
        """Texts that the writer makes."""
        return sum(pair.method == "lm" for pair in self.book.pairs)

    def to_dict(self) -> dict[str, Any]:
        characters, words, parts = (round(size, 1) for size in self.sizes())
        return self.judging.to_dict() | {
            "texts": {"origin": self.texts.origin, "role": self.texts.role, "n": len(self.texts.texts),
                      "of": self.texts.total, "task": self.texts.task, "characters": characters, "words": words,
                      "sentences": parts, "notes": self.texts.notes},
            "perturbations": [
                dict(zip(("perturbation", "origin", "n", "left_out"), line, strict=True))
                for line in self.perturbations()
            ],
            "metrics": self.how.metrics, "repeat": self.how.repeat, "to_write": self.to_write,
            "writer": self.how.writer,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """The plan in words, a line each."""
        t, how = self.texts, self.how
        characters, words, parts = self.sizes()
        told = [
            f"{len(t.texts)} of {t.total} {t.role}s of {t.origin}, as texts of the paper's task {t.task!r}; on average "
            f"{characters:.1f} characters, {words:.1f} words, {parts:.1f} sentences",
            *(f"note: {note}" for note in t.notes),
        ]
        if how.metrics:
            told.append(f"metrics: {', '.join(how.metrics)}; each text is scored {how.repeat} times by each")
        for name, origin, n, left in self.perturbations():
            told.append(f"  {name} ({origin}): {n} texts" + (f", {left} left out" if left else ""))
        if self.to_write:
            told.append(
                f"{self.to_write} texts to be written by {how.writer} first, each in 1 to 3 tries, not counted below"
            )
        return [*told, str(self.judging)]
