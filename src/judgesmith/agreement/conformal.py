"""Conformal prediction over whole documents: how far off a judge is at most, for a stated share of new rows.

Split conformal prediction takes a quantile of the errors on rows that nothing was learnt from, a little higher than the
share asked for, since the row to come is one more: (n + 1) / n of it. Rows of one document are no independent evidence.
So every document counts alike, whatever its number of rows, and n is the number of independent rows that would say as
much, by the correlation of the errors' ranks within documents: between the number of documents and that of rows. With
one row a document this is split conformal prediction with its guarantee, else an approximation (measured in
experiments/results/uncertainty.md). The form that is guaranteed for every correlation counts documents only (Lee,
Barber and Willett 2023, arXiv:2306.06342): with ten rows a document it promised 90 % and held 94 to 100 %.

crepes and MAPIE would do for independent rows, where the whole is one quantile; neither knows documents.

Sources: Vovk, Gammerman and Shafer 2005; Kish 1965 for the number of independent rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Codes, Vector, id_codes, vector
from judgesmith.errors import OptionError


def conformal_quantile(
    errors: npt.ArrayLike,
    coverage: float,
    *,
    documents: Iterable[Hashable] | None = None,
) -> float:
    """Return the size that a new row's error stays within with probability `coverage` or more.

    Args:
        errors: absolute errors on held-out rows, 0 or more.
        coverage: probability, above 0 and below 1.
        documents: document of each row; None: every row is a document of its own.

    Returns:
        A size in units of the errors; infinite with too few independent rows (coverage 0.9 needs 9 of them, 0.95 needs
        19).

    Raises:
        OptionError: If `coverage` is not between 0 and 1.

    >>> conformal_quantile([1, 2, 3, 4, 5, 6, 7, 8, 9], 0.9)
    9.0
    """
    if not 0 < coverage < 1:
        raise OptionError(
            f"coverage: {coverage} is not between 0 and 1; pass for example 0.9"
        )
    sizes = vector(errors, "errors")
    if not len(sizes):
        return math.inf
    if documents is None:
        codes = np.arange(len(sizes))
    else:
        codes = id_codes(documents, len(sizes), "documents")
    order = np.argsort(sizes, kind="stable")
    share = 1.0 / (np.bincount(codes)[codes] * len(np.unique(codes)))
    wanted = coverage * (1 + 1 / independent_rows(sizes, codes))
    place = int(np.searchsorted(np.cumsum(share[order]), wanted - 1e-9))
    if place < len(sizes) and wanted <= 1 + 1e-9:
        return float(sizes[order][place])
    return math.inf


def independent_rows(errors: Vector, documents: Codes) -> float:
    """Return the number of independent rows that would carry the same evidence.

    It lies between the number of documents, where the ranks of a document's errors are all alike, and the number of
    rows. documents: codes from 0.
    """
    rows = np.bincount(documents)
    count = len(rows)
    total = len(errors)
    if count == total or count < 2:
        return float(count)
    ranks = scipy.stats.rankdata(errors)
    means = np.bincount(documents, ranks) / rows
    between = float(rows @ (means - ranks.mean()) ** 2) / (count - 1)
    within = float(((ranks - means[documents]) ** 2).sum()) / (total - count)
    usual = (total - float((rows**2).sum()) / total) / (
        count - 1
    )  # rows a document, where they differ
    spread = between + (usual - 1) * within
    alike = min(1.0, max(0.0, (between - within) / spread)) if spread > 0 else 1.0
    return float(count**2 / (alike + (1 - alike) / rows).sum())


def deferred(errors: npt.ArrayLike, share: float) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows to leave to a person: those with the largest expected errors.

    Of equal errors the first rows are taken.

    Args:
        errors: expected error of each row; NaN is a row without a score, which goes to a person before all others.
        share: share of rows, in [0, 1], rounded up to whole rows.

    Returns:
        One boolean per row.

    Raises:
        OptionError: If `share` is outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise OptionError(
            f"share: {share} is not between 0 and 1; pass for example 0.1"
        )
    sizes: Vector = vector(errors, "errors", missing=True)
    sizes = np.where(np.isnan(sizes), np.inf, sizes)
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    chosen[
        np.argsort(-sizes, kind="stable")[: math.ceil(share * len(sizes) - 1e-9)]
    ] = True
    return chosen
