"""Which of two verdicts counts, of a text as it is and of the text without what addresses its judge."""

from __future__ import annotations

import math

import numpy as np

from judgesmith.programs.prompting.suspicion import FLAGGED, Suspicion
from judgesmith.signatures.values import Verdict

#: How far signs may move a score, in percent of its scale, before the verdict without them counts.
MOST_MOVED = 10.0


def weighed(with_signs: Verdict, without: Verdict, suspicion: Suspicion) -> Verdict:
    """Return the verdict that counts: the one without the signs if the difference is more than `MOST_MOVED`.

    That holds for one of several aspects, too. `suspicious` states it, with the difference.
    """
    moves = [with_signs.percent - without.percent]
    for name, verdict in with_signs.aspects.items():
        if name in without.aspects:
            moves.append(verdict.percent - without.aspects[name].percent)
    flagged = suspicion.probability >= FLAGGED
    move = max(moves, key=lambda by: (_is_far(by, flagged), abs(np.nan_to_num(by))))
    moved = _is_far(move, flagged)
    counts = without if moved else with_signs
    reason = f"{suspicion}; {_effect(move, moved)}" if moved or flagged else None
    return counts.model_copy(
        update={"usage": with_signs.usage + without.usage, "suspicious": reason}
    )


def _is_far(move: float, flagged: bool) -> bool:
    """Return whether a score moved by more than may be, or is missing on one side of a text that is flagged."""
    return flagged if math.isnan(move) else abs(move) > MOST_MOVED


def _effect(move: float, moved: bool) -> str:
    """Return, in words, what signs do to a score, and whether the text is judged without them."""
    if math.isnan(move):
        return "a score is missing with or without it"
    if not (size := round(abs(move))):
        effect, small = "it does not change the score", ""
    else:
        way = "raises" if move > 0 else "lowers"
        effect = f"it {way} the score by {size} percent of the scale"
        small = ", too little to judge without it"
    return effect + (", and the text is judged without it" if moved else small)
