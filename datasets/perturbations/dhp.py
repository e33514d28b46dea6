"""DHP's tasks: which perturbations belong to which, in which degrees, and the metrics that texts are judged by.

How many characters and words are changed is in `base.PAPER`. Source: DHP benchmark, Tables 1 and 2, appendix B.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from judgesmith.datasets.perturbations.base import Degree, Origin, Perturbation

_BOTH: tuple[Degree, ...] = ("minor", "major")
_ONE: tuple[Degree, ...] = ("minor",)
_ONLY: tuple[Degree, ...] = ("only",)


@dataclass(frozen=True, slots=True)
class PaperTask:
    """A task of the paper.

    metrics: the aspects that its texts are judged by, as the library names them. perturbations: its own, with their
    degrees; names that end with "-lm" are made by a language model.
    """

    metrics: tuple[str, ...]
    perturbations: Mapping[str, tuple[Degree, ...]]


_SUMMARIES = PaperTask(
    (
        "summarization/coherence",
        "summarization/consistency",
        "summarization/fluency",
        "summarization/relevance",
    ),
    {
        "deletions": _BOTH,
        "typos": _BOTH,
        "entities-lm": _BOTH,
        "grammar-lm": _BOTH,
        "shuffle": _BOTH,
        "rewrite-lm": _BOTH,
    },
)

#: By the names that `Amounts` has for them. Texts of any other task are treated as summaries.
TASKS: Mapping[str, PaperTask] = {
    "summarization": _SUMMARIES,
    "scientific": _SUMMARIES,
    # "k" has one value there, one entity is replaced and one error is made: the minor degree of each.
    "story": PaperTask(
        (
            "story completion/coherence",
            "story completion/consistency",
            "story completion/fluency",
        ),
        {
            "deletions": _ONE,
            "typos": _ONE,
            "entities-lm": _ONE,
            "grammar-lm": _ONE,
            "random-ending": _ONLY,
            "wrong-ending": _ONLY,
        },
    ),
    "answer": PaperTask(
        ("question-answering/answer quality",),
        {
            "deletions": _BOTH,
            "typos": _BOTH,
            "entities-lm": _BOTH,
            "grammar-lm": _BOTH,
            "random-answer": _ONLY,
        },
    ),
    "translation": PaperTask(
        ("translation/accuracy", "translation/fluency"),
        {
            "deletions": _BOTH,
            "typos": _BOTH,
            "word-deletion": _BOTH,
            "entities-lm": _BOTH,
            "grammar-lm": _BOTH,
        },
    ),
}

_KNOWN_AS = {
    "translation": "translation",
    "mt": "translation",
    "qa": "answer",
    "question answering": "answer",
    "story completion": "story",
}


def task_of(name: str) -> str:
    """Return the paper's task for a task's name in data (`translation de-en`, `question answering`).

    If the paper has no other, it is "summarization", whose perturbations any running text allows.
    """
    plain = re.sub(r"[\W_]+", " ", name.casefold()).strip()
    return _KNOWN_AS.get(plain) or _KNOWN_AS.get(
        plain.partition(" ")[0], "summarization"
    )


def origin_of(perturbation: Perturbation, degree: Degree, task: str) -> Origin:
    """Return the origin of a perturbation of this task: the paper's or ours.

    A perturbation of a task, or in a degree, that the paper does not have there is ours.
    """
    if degree not in TASKS[task].perturbations.get(
        perturbation.stands_for or perturbation.name, ()
    ):
        return "ours"
    return "stand-in" if perturbation.stands_for else "paper"
