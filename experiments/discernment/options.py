"""What `judgesmith discern` has to choose beside the judges, the texts and the perturbations."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ...optimizers.agreement.discernment import Form
from ...parts import option
from ..limits import LimitOptions


class DiscernOptions(LimitOptions):
    """How texts are perturbed, judged and tested."""

    degree: Literal["both", "minor", "major"] = option("both", "Minor perturbations, major ones or both.")
    amount: str = option(
        "relative",
        "How many characters and words: relative (shares of the text), or the paper's numbers for summarization, "
        "scientific, story, answer or translation.",
    )
    language: str = option("en", "Of the texts, as en, de or zh; for sentences and rules.")
    writer: str | None = option(
        None, "A language model that makes the paper's LM-made perturbations (entities-lm, grammar-lm, rewrite-lm)."
    )
    repeat: int = option(
        1,
        "Scores of each text, averaged (paper: 5). At temperature 0 one is enough. More than one asks without the "
        "cache of calls; -o keeps what was asked.",
        ge=1,
    )
    criteria: bool = option(False, "The judge's criteria, or its aspects, are its metrics, in place of its score.")
    weights: Path | None = option(
        None,
        "An expert's weight of each metric by perturbation, .csv or .json; none: our own table (see "
        "optimizers/agreement/discernment.py).",
    )
    form: Form = option(
        "normalised",
        "How several metrics' p are combined: each weighs 1/M, or as the paper prints it, M times too eager.",
    )
    rounds: int = option(1000, "Of the bootstrap; 0 for no intervals.", ge=0)
    seed: int = option(0, "Decides texts, perturbations and resamples.")
