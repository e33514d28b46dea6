"""Measures of decisions: of categories, of pass and fail, and of preferences. How they are computed: `decisions`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.coefficients import Codes, Decision, coefficients
from judgesmith.agreement.decisions import (
    accuracy_when_drawn,
    auc_when_drawn,
    balanced_when_drawn,
    cohen_when_drawn,
    f1_when_drawn,
    kappa_when_drawn,
    pairwise_when_drawn,
)
from judgesmith.agreement.resampling import Bounded


@coefficients.register
class WeightedKappa(Decision):
    """Cohen's kappa with quadratic weights."""

    name = "kappa"
    title = "weighted kappa"
    about = "Cohen's kappa of ordered categories, with quadratic weights."
    low = -1.0
    chance = 0.0
    kinds = ("category",)
    fits = "categories"
    when_drawn = staticmethod(kappa_when_drawn)


@coefficients.register
class CohenKappa(Decision):
    """Cohen's kappa without weights."""

    name = "cohen-kappa"
    title = "Cohen's kappa"
    about = "Cohen's kappa without weights. Only on request."
    low = -1.0
    chance = 0.0
    fits = "categories"
    when_drawn = staticmethod(cohen_when_drawn)


@coefficients.register
class Accuracy(Decision):
    """The share of rows decided as people did."""

    name = "accuracy"
    title = "accuracy"
    about = "Share of rows decided as people did."
    kinds = ("category", "binary")
    fits = "categories"
    when_drawn = staticmethod(accuracy_when_drawn)


@coefficients.register
class BalancedAccuracy(Decision):
    """The mean of the shares of failed and of passed rows that are decided so."""

    name = "balanced-accuracy"
    title = "balanced acc."
    about = "Mean of the shares of failed and of passed rows that are decided so."
    chance = 0.5
    kinds = ("binary",)
    fits = "pass and fail"
    when_drawn = staticmethod(balanced_when_drawn)


@coefficients.register
class F1(Decision):
    """F1 for fail."""

    name = "f1"
    title = "F1 for fail"
    about = "F1 for fail."
    kinds = ("binary",)
    fits = "pass and fail"
    when_drawn = staticmethod(f1_when_drawn)


@coefficients.register
class Precision(Decision):
    """The share of the rows that the judge fails that people fail."""

    name = "precision"
    title = "precision for fail"
    about = "Share of the judge's fails that people fail, too. Only on request."
    fits = "pass and fail"
    empty = "the judge fails no row"
    when_drawn = staticmethod(accuracy_when_drawn)

    def counted(self, decided: Codes, people: Codes) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that the judge fails."""
        return np.asarray(decided == 0)


@coefficients.register
class Recall(Decision):
    """The share of the rows that people fail that the judge fails."""

    name = "recall"
    title = "recall for fail"
    about = "Share of people's fails that the judge finds (TNR). Only on request."
    fits = "pass and fail"
    empty = "people fail no row"
    when_drawn = staticmethod(accuracy_when_drawn)

    def counted(self, decided: Codes, people: Codes) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that people fail."""
        return np.asarray(people == 0)


@coefficients.register
class Sensitivity(Decision):
    """The share of the rows that people pass that the judge passes."""

    name = "tpr"
    title = "recall for pass"
    about = "Share of people's passes that the judge lets pass (TPR). Only on request."
    fits = "pass and fail"
    empty = "people pass no row"
    when_drawn = staticmethod(accuracy_when_drawn)

    def counted(self, decided: Codes, people: Codes) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that people pass."""
        return np.asarray(people == 1)


@coefficients.register
class Auc(Decision):
    """The probability that a passed output scores above a failed one."""

    name = "auc"
    title = "AUC"
    about = "Probability that a passed output scores above a failed one."
    chance = 0.5
    kinds = ("binary",)
    fits = "pass and fail"
    by_scores = True
    when_drawn = staticmethod(auc_when_drawn)


@coefficients.register
class Pairwise(Decision):
    """The share of a document's pairs of outputs that are ordered as people order them."""

    name = "pairwise"
    title = "pairwise acc."
    about = (
        "Share of a document's pairs of outputs that are ordered as people prefer them."
    )
    chance = 0.5
    levels = ("sample",)
    kinds = ("preference",)
    fits = "preferences"
    by_scores = True

    def when_drawn(self, judged: Any, people: Any, units: Any) -> Bounded:
        """Return the share of drawn documents, from scores of both."""
        return pairwise_when_drawn(judged, people, units.tolist())
