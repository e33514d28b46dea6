"""`judgesmith discern --dry-run`: which texts, perturbations and calls a run would be."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..datasets.perturbations.dhp import origin_of
from ..datasets.perturbations.registry import Degree, Material, Perturbation, sentences
from ..running.limits import Estimate
from .options import DiscernOptions
from .pairs import Book, Texts
from .rewriting import WRITTEN, Written

__all__ = ["Plan", "unwritten_perturbations"]


class _Unwritten(Written):
    """Stands where a language model would write, so that what follows can be counted; its texts are never judged."""

    def change(self, text: str, degree: Degree, rng: random.Random, material: Material) -> str:
        return f"{text} [{self.name}]" + (" [major]" if degree == "major" else "")


def unwritten_perturbations() -> Mapping[str, Perturbation]:
    """Those that a writer would make, by name, without a writer."""
    parts = ("name", "about", "level")
    made = [type(kind.__name__, (_Unwritten,), {part: getattr(kind, part) for part in parts})() for kind in WRITTEN]
    return {one.name: one for one in made}


@dataclass(frozen=True)
class Plan:
    """Texts, perturbations and calls. perturbations: (name, origin, texts, left out)."""

    texts: Texts
    sizes: tuple[float, float, float]
    perturbations: tuple[tuple[str, str, int, int], ...]
    metrics: tuple[str, ...]
    repeat: int
    judging: Estimate
    to_write: int
    writer: str | None

    @classmethod
    def of(
        cls,
        texts: Texts,
        book: Book,
        chosen: Sequence[tuple[Perturbation, tuple[Degree, ...]]],
        how: DiscernOptions,
        judging: Estimate,
    ) -> Plan:
        there, left = Counter(pair.name for pair in book.pairs), Counter(one.name for one in book.left)
        lines = []
        for made, degrees in chosen:
            for degree in degrees:
                name = made.name if degree == "only" else f"{made.name}:{degree}"
                lines.append((name, origin_of(made, degree, texts.task), there[name], left[name]))
        written = sum(pair.method == "lm" for pair in book.pairs)
        good = [text.text for text in texts.texts]
        sizes = (
            fmean(map(len, good)),
            fmean(len(text.split()) for text in good),
            fmean(len(sentences(text, how.language)) for text in good),
        )
        return cls(texts, sizes, tuple(lines), how.metrics, how.repeat, judging, written, how.writer)

    def to_dict(self) -> dict[str, Any]:
        characters, words, parts = (round(size, 1) for size in self.sizes)
        return self.judging.to_dict() | {
            "texts": {"origin": self.texts.origin, "role": self.texts.role, "n": len(self.texts.texts),
                      "of": self.texts.total, "task": self.texts.task, "characters": characters, "words": words,
                      "sentences": parts, "notes": list(self.texts.notes)},
            "perturbations": [
                {"perturbation": name, "origin": origin, "n": n, "left_out": left}
                for name, origin, n, left in self.perturbations
            ],
            "metrics": list(self.metrics), "repeat": self.repeat, "to_write": self.to_write, "writer": self.writer,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """The plan in words, a line each."""
        t = self.texts
        characters, words, parts = self.sizes
        told = [
            f"{len(t.texts)} of {t.total} {t.role}s of {t.origin}, as texts of the paper's task {t.task!r}; on average "
            f"{characters:.1f} characters, {words:.1f} words, {parts:.1f} sentences",
            *(f"note: {note}" for note in t.notes),
        ]
        if self.metrics:
            told.append(f"metrics: {', '.join(self.metrics)}; each text is scored {self.repeat} times by each")
        for name, origin, n, left in self.perturbations:
            told.append(f"  {name} ({origin}): {n} texts" + (f", {left} left out" if left else ""))
        if self.to_write:
            told.append(
                f"{self.to_write} texts to be written by {self.writer} first, each in 1 to 3 tries, not counted below"
            )
        return [*told, str(self.judging)]
