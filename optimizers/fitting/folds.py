"""Folds of whole groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from judgesmith.errors import OptionError


def numbered(groups: Sequence[Hashable]) -> NDArray[np.intp]:
    """Return the number of each row's group, in the order of their first rows.

    Raises:
        OptionError: With fewer than two groups.
    """
    codes = {group: code for code, group in enumerate(dict.fromkeys(groups))}
    if len(codes) < 2:
        raise OptionError(
            "all rows belong to one group: nothing is left to check a fit on; label more sources"
        )
    return np.array([codes[group] for group in groups], dtype=np.intp)


def folds(
    groups: Sequence[Hashable], count: int = 5, *, seed: int = 0
) -> list[NDArray[np.intp]]:
    """Rows of each fold: whole groups, the largest first into the smallest fold, in an order drawn by `seed`.

    Raises: OptionError with fewer than two groups.
    """
    fold_of = fold_numbers(groups, count, seed=seed)
    return [np.flatnonzero(fold_of == fold) for fold in range(fold_of.max() + 1)]


def fold_numbers(
    groups: Sequence[Hashable], count: int = 5, *, seed: int = 0
) -> NDArray[np.intp]:
    """Return the fold of each row, as `folds` makes them."""
    of_row = numbered(groups)
    sizes = np.bincount(of_row)
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    filled = np.zeros(min(count, len(sizes)), dtype=int)
    place = np.zeros(len(sizes), dtype=np.intp)
    for code in sorted(drawn, key=lambda c: -sizes[c]):
        place[code] = int(filled.argmin())
        filled[place[code]] += sizes[code]
    return place[of_row]
