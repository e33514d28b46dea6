"""Figures with bars in the style of the reports: hatches beside the colours, for grey prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..reports.page import SERIES, plot_style
from .plain import clean

__all__ = ["HATCHES", "literal", "look", "styled"]

#: Beside the colours, which also tell more series apart than there are colours.
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "---", "ooo")


def look(series: int) -> dict[str, Any]:
    """Colour and hatch of the n-th series of bars, from 0."""
    return {
        "color": SERIES[series % len(SERIES)],
        "hatch": HATCHES[(series + series // len(SERIES)) % len(HATCHES)],
        "edgecolor": "white",
        "linewidth": 0.4,
    }


@contextmanager
def styled(width: float, height: float) -> Iterator[Any]:
    """A figure in this style, in inches; draw in it while the block lasts."""
    from matplotlib.figure import Figure

    with plot_style({"xtick.labelsize": 8, "ytick.labelsize": 8, "hatch.linewidth": 0.6}):
        yield Figure(figsize=(width, height), layout="constrained")


def literal(text: str) -> str:
    """A name of unknown origin, not read as mathematics by matplotlib."""
    return clean(text).replace("$", r"\$")
