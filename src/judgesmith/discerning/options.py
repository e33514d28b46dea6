"""Options of `judgesmith discern` beside judges, texts and perturbations."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..agreement.discernment import Form
from ..datasets.perturbations.base import Amounts
from ..datasets.perturbations.dhp import task_of
from ..parts import option
from ..running.limits import Limits


class DiscernOptions(Limits):
    """Settings of perturbing, judging and testing texts."""

    texts: str | None = option(
        None, "Good texts, as a file or bench/NAME, if the command line names none."
    )
    good: Literal["auto", "reference", "output"] = option(
        "auto",
        "Column of the good texts; auto: the references if there are any, else the outputs.",
    )
    pick: Literal["first", "most-sentences"] = option(
        "first", "Which of a document's references to take."
    )
    longer_than: int = option(
        0,
        "Length in characters that a text must exceed; if too few do, the longest of the others are added.",
        ge=0,
    )
    show_reference: bool = option(
        True,
        "Show the reference to a judge that reads outputs; a metric always compares with it.",
    )
    metrics: tuple[str, ...] = option(
        (),
        "Metrics of the task, as TASK/ASPECT of the library: a METHOD judges these; of other judges, criteria or "
        "aspects with these names count.",
    )
    scale: tuple[float, float] = option((1, 5), "Lowest and highest score of a METHOD.")
    amount: str = option(
        "relative",
        "Number of characters and words to change: relative (shares of the text), or the paper's numbers for "
        "summarization, scientific, story, answer or translation.",
    )
    language: str = option(
        "en", "Language of the texts (en, de, zh and so on), for sentences and rules."
    )
    writer: str | None = option(
        None,
        "Language model that makes the paper's model-made perturbations (entities-lm, grammar-lm, rewrite-lm).",
    )
    repeat: int = option(
        1,
        "Scores of each text, averaged (paper: 5). At temperature 0 one is enough. More than one bypasses the "
        "cache of calls; -o keeps the scores.",
        ge=1,
    )
    weights: Path | None = option(
        None,
        "Table (.csv, .xlsx) of experts' weights of each metric by perturbation; none: our own table (see "
        "src/judgesmith/agreement/discernment.py).",
    )
    form: Form = option(
        "normalised",
        "Combination of several metrics' p: each weighs 1/M, or as the paper prints it, M times too small.",
    )
    rounds: int = option(1000, "Resamples of the bootstrap; 0: no intervals.", ge=0)
    seed: int = option(0, "Random seed of texts, perturbations and resamples.")

    def task(self, named: str = "") -> str:
        """Return the paper's task: that of `amount`, or else the one for texts of this task.

        Raises:
            OptionError: If the task is unknown.
        """
        task = Amounts(self.amount).task
        return task_of(named) if task == "relative" else task

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The metrics without their task."""
        return tuple(name.rpartition("/")[2] for name in self.metrics)
