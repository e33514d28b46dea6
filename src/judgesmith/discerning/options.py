"""What `judgesmith discern` has to choose beside the judges, the texts and the perturbations."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..agreement.discernment import Form
from ..datasets.perturbations.base import Amounts
from ..datasets.perturbations.dhp import task_of
from ..parts import option
from ..running.limits import Limits


class DiscernOptions(Limits):
    """How texts are perturbed, judged and tested."""

    texts: str | None = option(
        None, "Good texts, as a file or bench/NAME, where the command line names none."
    )
    good: Literal["auto", "reference", "output"] = option(
        "auto",
        "Which column has the good texts; auto: the references where there are some, else the outputs.",
    )
    pick: Literal["first", "most-sentences"] = option(
        "first", "Which of a document's several references is taken."
    )
    longer_than: int = option(
        0,
        "Characters that a text must exceed; where too few texts do, the longest of the others are added.",
        ge=0,
    )
    show_reference: bool = option(
        True,
        "Whether a judge that reads outputs sees their reference; a metric always compares with it.",
    )
    metrics: tuple[str, ...] = option(
        (),
        "The task's metrics, as TASK/ASPECT of the library: what a METHOD judges; other judges give those of their "
        "criteria or aspects that have these names.",
    )
    scale: tuple[float, float] = option((1, 5), "Lowest and highest score of a METHOD.")
    amount: str = option(
        "relative",
        "How many characters and words: relative (shares of the text), or the paper's numbers for summarization, "
        "scientific, story, answer or translation.",
    )
    language: str = option(
        "en", "Language of the texts, as en, de or zh; for sentences and rules."
    )
    writer: str | None = option(
        None,
        "A language model that makes the paper's LM-made perturbations (entities-lm, grammar-lm, rewrite-lm).",
    )
    repeat: int = option(
        1,
        "Scores of each text, averaged (paper: 5). At temperature 0 one is enough. More than one asks without the "
        "cache of calls; -o keeps what was asked.",
        ge=1,
    )
    weights: Path | None = option(
        None,
        "Experts' weight of each metric by perturbation, a table (.csv, .xlsx); none: our own table (see "
        "src/judgesmith/agreement/discernment.py).",
    )
    form: Form = option(
        "normalised",
        "How several metrics' p are combined: each weighs 1/M, or as the paper prints it, M times too small.",
    )
    rounds: int = option(1000, "Resamples of the bootstrap; 0: no intervals.", ge=0)
    seed: int = option(0, "Seed of texts, perturbations and resamples.")

    def task(self, told: str = "") -> str:
        """The paper's task: that of `amount`, or else what texts of this task are. Raises OptionError."""
        task = Amounts(self.amount).task
        return task_of(told) if task == "relative" else task

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The metrics without their task."""
        return tuple(name.rpartition("/")[2] for name in self.metrics)
