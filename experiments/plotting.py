"""How figures look: colours that colour-blind readers tell apart, hatches beside them, plain axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from .plain import clean

__all__ = ["COLOURS", "HATCHES", "literal", "look", "styled"]

#: Okabe and Ito's palette without its yellow, which is too light for bars.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Beside the colours, for grey prints and more series than colours.
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "---", "ooo")

def look(series: int) -> dict[str, Any]:
    """Colour and hatch of the n-th series of bars, from 0."""
    return {
        "color": COLOURS[series % len(COLOURS)],
        "hatch": HATCHES[(series + series // len(COLOURS)) % len(HATCHES)],
        "edgecolor": "white",
        "linewidth": 0.4,
    }


@contextmanager
def styled(width: float, height: float) -> Iterator[Any]:
    """A figure in this style, in inches; draw in it while the block lasts."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(cast(Any, _STYLE)):
        yield Figure(figsize=(width, height), layout="constrained")


def literal(text: str) -> str:
    """A name of unknown origin, not read as mathematics by matplotlib."""
    return clean(text).replace("$", r"\$")
