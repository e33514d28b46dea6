"""DHP's perturbations by a language model, as perturbations like all others; here, since `datasets` asks no model."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import ClassVar

from ..datasets.perturbations.base import DHP, Need, several_sentences, split_space
from ..datasets.perturbations.registry import Degree, Level, Material, Method, Perturbation, Unperturbable
from ..datasets.perturbations.rules import inserted
from ..errors import CallError
from ..programs.models import engine
from ..programs.models.lm import LanguageModel
from ..programs.rewriting import Amount, Rewriter, Rewriting

__all__ = ["WRITTEN", "Written", "written_perturbations"]


class Written(Perturbation):
    """A perturbation by a language model."""

    method: ClassVar[Method] = "lm"
    needs: ClassVar[tuple[Need, ...]] = ("lm",)
    paper: ClassVar[str] = DHP


class _ByLM(Written):
    kind_of_rewriting: ClassVar[Rewriting]

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = lm
        self.rewriter = Rewriter()

    def ask(self, text: str, degree: Degree) -> str:
        """One checked answer. Raises Unperturbable where the model gives none."""
        amount: Amount = "major" if degree == "major" else "minor"
        try:
            rewriting = self.rewriter.rewrite(self.kind_of_rewriting, text, self.lm, amount=amount)
            return engine.run(rewriting).text
        except CallError as error:
            raise Unperturbable(f"{self.lm.name}: {error}") from None

    def change(self, text: str, degree: Degree, rng: random.Random, material: Material) -> str:
        return self.ask(text, degree)


class EntitiesByLM(_ByLM):
    name: ClassVar[str] = "entities-lm"
    about: ClassVar[str] = "names, numbers and terms replaced by invented ones"
    level: ClassVar[Level] = "word"
    kind_of_rewriting: ClassVar[Rewriting] = "entities"


class GrammarByLM(_ByLM):
    name: ClassVar[str] = "grammar-lm"
    about: ClassVar[str] = "grammatical errors"
    level: ClassVar[Level] = "word"
    kind_of_rewriting: ClassVar[Rewriting] = "grammar"


class RewriteByLM(_ByLM):
    name: ClassVar[str] = "rewrite-lm"
    about: ClassVar[str] = "sentences rephrased and inserted after themselves: one (minor), up to three (major)"
    level: ClassVar[Level] = "sentence"
    kind_of_rewriting: ClassVar[Rewriting] = "rephrase"

    def change(self, text: str, degree: Degree, rng: random.Random, material: Material) -> str:
        parts = several_sentences(text, material, 2 if degree == "major" else 1)
        places = list(range(len(parts)))
        rng.shuffle(places)
        for i in sorted(places[: 1 if degree == "minor" else 3], reverse=True):
            parts = inserted(parts, i, self.ask(split_space(parts[i])[0], degree))
        return "".join(parts)


WRITTEN: tuple[type[_ByLM], ...] = (EntitiesByLM, GrammarByLM, RewriteByLM)


def written_perturbations(lm: LanguageModel) -> Mapping[str, Perturbation]:
    """The perturbations that this model makes, by name."""
    return {made.name: made for made in (kind(lm) for kind in WRITTEN)}
