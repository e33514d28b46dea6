"""Which of two verdicts counts, of a text as it is and of the text without what addresses its judge."""

from __future__ import annotations

import math

import numpy as np

from ...signatures.values import Verdict
from .suspicion import FLAGGED, Suspicion

#: How far signs may move a score, in percent of its scale, before the verdict without them counts.
MOST_MOVED = 10.0


def weighed(with_signs: Verdict, without: Verdict, said: Suspicion) -> Verdict:
    """Return the verdict that counts: the one without the signs if the difference is more than `MOST_MOVED`.

    That holds for one of several aspects, too. `suspicious` states it, with the difference.
    """
    moves = [with_signs.percent - without.percent]
    moves += [
        one.percent - without.aspects[name].percent
        for name, one in with_signs.aspects.items()
        if name in without.aspects
    ]
    moved = max(moves, key=lambda by: (_far(by, said), abs(np.nan_to_num(by))))
    within = not _far(moved, said)
    counts = with_signs if within else without
    if math.isnan(moved):
        effect = "a score is missing with or without it"
    else:
        size, way = round(abs(moved)), "raises" if moved > 0 else "lowers"
        effect = (
            f"it {way} the score by {size} percent of the scale"
            if size
            else "it does not change the score"
        )
        effect += (
            ", and the text is judged without it"
            if not within
            else ", too little to judge without it"
            if size
            else ""
        )
    told = None if within and said.probability < FLAGGED else f"{said}; {effect}"
    return counts.model_copy(
        update={"usage": with_signs.usage + without.usage, "suspicious": told}
    )


def _far(moved: float, said: Suspicion) -> bool:
    """Return whether a score moved by more than may be, or is missing on one side of a text that is flagged."""
    missing = math.isnan(moved)
    return said.probability >= FLAGGED if missing else abs(moved) > MOST_MOVED
