"""Optuna's own plots of a study: how the best Q rose, and which parameters it depended on."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning

from ..figures import write_figure
from ..optimizers.fitting.weights import quiet_optuna


def draw(study: optuna.Study, folder: Path) -> list[Path]:
    """`history.svg`, and `importance.svg` where at least 4 trials were finished and did not all come out the same.

    Importance is PED-ANOVA's, of the parameters that every finished trial has. Source: Watanabe et al. 2023.
    """
    from matplotlib import rc_context
    from optuna.importance import PedAnovaImportanceEvaluator
    from optuna.visualization import matplotlib as plots

    folder.mkdir(parents=True, exist_ok=True)
    values = [t.value for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    paths = []

    def keep(axes: Any, name: str) -> None:
        path = folder / name
        axes.figure.set_layout_engine("constrained")
        write_figure(path, axes.figure)
        paths.append(path)

    with quiet_optuna(), warnings.catch_warnings(), rc_context({"backend": "agg"}):
        warnings.simplefilter("ignore", ExperimentalWarning)  # these plots have been experimental since 2020
        warnings.simplefilter("ignore", UserWarning)  # of each parameter with few trials; the title says it
        keep(plots.plot_optimization_history(study, target_name="Q on the validation rows"), "history.svg")
        if len(values) >= 4 and len(set(values)) > 1:
            evaluator = PedAnovaImportanceEvaluator()
            axes = plots.plot_param_importances(study, evaluator=evaluator)
            axes.set_title(
                f"What Q depended on (PED-ANOVA, {len(values)} trials; rough below about 50)", loc="left", fontsize=10
            )
            keep(axes, "importance.svg")
    return paths
