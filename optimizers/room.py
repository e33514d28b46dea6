"""How many demonstrations a prompt of a model holds, by their length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.price import listed_context

#: Tokens of a prompt beside its rows, and of what a demonstration may say beside its texts.
BESIDE = 500
SAID = 60
#: Share of a model's context that demonstrations are planned for: their lengths are estimated.
PLANNED = 0.75


def row_tokens(rows: Iterable[Any]) -> int:
    """Return the tokens of a row's texts, about; rows are labels or items."""
    lengths = [
        sum(
            len(text or "")
            for text in (row.source, row.output, row.context, row.reference)
        )
        for row in rows
    ]
    return int(np.mean(lengths) / 3.5) + 20


def room_for(lm: LanguageModel | str | None, rows: Iterable[Any]) -> int | None:
    """Return the demonstrations that a prompt of a model holds beside a row; None if its context is not known."""
    if lm is None:
        return None
    context = lm.context if isinstance(lm, LanguageModel) else listed_context(lm)
    if context is None:
        return None
    tokens = row_tokens(rows)
    left = PLANNED * context - BESIDE - tokens
    return max(1, int(left / (tokens + SAID)))
