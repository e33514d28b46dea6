"""Options of `judgesmith discern` beside judges, texts and perturbations."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from judgesmith.agreement.discernment import Form
from judgesmith.datasets.perturbations.base import Amounts
from judgesmith.datasets.perturbations.dhp import task_of
from judgesmith.parts import option
from judgesmith.running.limits import Limits


class DiscernOptions(Limits):
    """Settings of perturbing, judging and testing texts."""

    texts: str | None = option(
        None, "Good texts: a file or bench/NAME. Used if the command line names none."
    )
    good: Literal["auto", "reference", "output"] = option(
        "auto",
        "Column of the good texts. auto: the references if there are any, else the outputs.",
    )
    pick: Literal["first", "most-sentences"] = option(
        "first", "Reference to take from a document with several."
    )
    longer_than: int = option(
        0,
        "Minimum length of a text, in characters. If too few are longer, the longest of the others are added.",
        ge=0,
    )
    show_reference: bool = option(
        True,
        "Show the reference to the judge. A metric always compares with it.",
    )
    metrics: tuple[str, ...] = option(
        (),
        "Metrics of the task, as TASK/ASPECT of the library. A METHOD judges these. For other judges, criteria or "
        "aspects with these names count.",
    )
    scale: tuple[float, float] = option((1, 5), "Lowest and highest score of a METHOD.")
    amount: str = option(
        "relative",
        "Number of characters and words to change. relative: a share of the text. Others: the paper's numbers for "
        "that task.",
    )
    language: str = option(
        "en",
        "Language code of the texts, e.g. en, de or zh, for sentence splitting and rules.",
    )
    writer: str | None = option(
        None,
        "Language model that writes the perturbations entities-lm, grammar-lm and rewrite-lm of the paper.",
    )
    repeat: int = option(
        1,
        "Number of scores to average for each text (paper: 5). At temperature 0 one is enough. More than one "
        "bypasses the cache of calls.",
        ge=1,
    )
    weights: Path | None = option(
        None,
        "Table (.csv, .xlsx) of expert weights, metrics by perturbations. none: the built-in table.",
    )
    form: Form = option(
        "normalised",
        "Combination of the p-values of M metrics. normalised: weight 1/M each. paper: the paper's formula, M "
        "times smaller.",
    )
    rounds: int = option(1000, "Number of bootstrap resamples. 0: no intervals.", ge=0)
    seed: int = option(0, "Random seed for texts, perturbations and resamples.")

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
