"""Conformal prediction over whole documents: how far off a judge is at most, for a stated share of new rows.

Split conformal prediction takes a quantile of the errors on rows that nothing was learnt from. Rows of one document
are not exchangeable with those of another, so every document counts alike, whatever its number of rows, and the
document to come counts as one with an infinite error: the hierarchical form. crepes and MAPIE have the form for
independent rows only, which is the same quantile with one row a document.

Sources: Vovk, Gammerman and Shafer 2005; Lee, Barber and Willett 2023, Distribution-free inference with hierarchical
data (arXiv:2306.06342).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from ...errors import OptionError
from .correlation import Vector, id_codes, vector

__all__ = ["conformal_quantile", "coverage_of", "deferred"]


def conformal_quantile(errors: npt.ArrayLike, coverage: float, *, documents: Iterable[Hashable] | None = None) -> float:
    """The size that the error of a new document's row stays within with probability `coverage` or more.

    errors: of rows that nothing was learnt from, 0 or more. documents: of the rows; None: each is one. Infinite where
    the documents are too few to promise so much: coverage 0.9 takes 9 of them, 0.95 takes 19.

    >>> conformal_quantile([1, 2, 3, 4, 5, 6, 7, 8, 9], 0.9)
    9.0
    """
    if not 0 < coverage < 1:
        raise OptionError(f"coverage is {coverage}; it lies between 0 and 1")
    sizes = vector(errors, "errors")
    if not len(sizes):
        return math.inf
    codes = np.arange(len(sizes)) if documents is None else id_codes(documents, len(sizes), "documents")
    rows = np.bincount(codes)
    order = np.argsort(sizes, kind="stable")
    reached = np.cumsum(1.0 / rows[codes[order]]) / (len(rows) + 1)
    place = int(np.searchsorted(reached, coverage - 1e-9))
    return float(sizes[order][place]) if place < len(sizes) else math.inf


def coverage_of(low: npt.ArrayLike, high: npt.ArrayLike, human: npt.ArrayLike) -> float:
    """The share of rows whose human score lies in its interval, ends included; NaN for no rows. A rounding error of a
    billionth outside counts as inside."""
    a, b, y = vector(low, "low"), vector(high, "high"), vector(human, "human")
    slack = 1e-9 * np.maximum(1.0, np.abs(y))
    return float(np.mean((a - slack <= y) & (y <= b + slack))) if len(y) else math.nan


def deferred(errors: npt.ArrayLike, share: float) -> npt.NDArray[np.bool_]:
    """Which rows to leave to a person: the share (in 0..1, rounded up) whose expected errors are largest; of equal ones
    those that come first. NaN: a row without a score, which goes to a person before all others."""
    if not 0 <= share <= 1:
        raise OptionError(f"the share of rows to leave to a person is {share}; it lies between 0 and 1")
    sizes: Vector = vector(errors, "errors", missing=True)
    sizes = np.where(np.isnan(sizes), np.inf, sizes)
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    chosen[np.argsort(-sizes, kind="stable")[: math.ceil(share * len(sizes) - 1e-9)]] = True
    return chosen
