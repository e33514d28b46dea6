"""Small charts as SVG in the page's own colours, written directly: a few bytes a point, texts that can be selected and
read aloud, nothing of a name that could become markup."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from ..running.plain import clean

_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 8, 38  # room around the axes for ticks and titles
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """A point with the ends of its interval (NaN where there is none), its radius in pixels, and what to say of it."""

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan
    radius: float = 3.5
    title: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Points in one colour. colour: a colour of CSS. joined: a line through them, dashed or not. faint: overlapping
    points shine through."""

    points: Sequence[Point]
    colour: str = "var(--accent)"
    joined: bool = False
    dashed: bool = False
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """low, high: what it spans. logarithmic: powers of ten, of positive values."""

    title: str
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def of(cls, title: str, values: Iterable[float], *, logarithmic: bool = False) -> Axis:
        """An axis that holds the values with a margin. NaN and infinite ones are left out."""
        known = [value for value in values if math.isfinite(value) and (value > 0 or not logarithmic)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        if logarithmic:
            low, high = (low or 1.0) / 1.25, (high or 1.0) * 1.25
            return cls(title, low, high, logarithmic=high > 4 * low)
        margin = 0.06 * (high - low) or max(0.5, abs(high) * 0.05)
        return cls(title, low - margin, high + margin)

    def place(self, value: float) -> float:
        """In [0, 1] from its low to its high end."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round numbers inside the axis, at most about six."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if self.high < 100 * self.low else (1,)
            return [k * 10.0**power for power in powers for k in steps if self.low <= k * 10.0**power <= self.high]
        raw = (self.high - self.low) / _TICKS
        size = 10.0 ** math.floor(math.log10(raw))
        step = next(k * size for k in (1, 2, 5, 10) if k * size >= raw * 0.7)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def plot(series: Sequence[Series], x: Axis, y: Axis, *, width: int = 300, height: int = 250, line: str = "") -> Markup:
    """The chart. line: "diagonal" (x = y), "zero" (y = 0) or none. The figure around it has the words."""
    inner, tall = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def across(value: float) -> str:
        return f"{_LEFT + x.place(value) * inner:.1f}"

    def down(value: float) -> str:
        return f"{_TOP + (1 - y.place(value)) * tall:.1f}"

    made = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true" '
        'font-size="11" fill="currentColor" stroke-linecap="round">',
        f'<path d="M{_LEFT} {_TOP}V{height - _BOTTOM}H{width - _RIGHT}" fill="none" stroke="var(--dim)"/>',
    ]
    for value in x.ticks():
        made.append(f'<text x="{across(value)}" y="{height - _BOTTOM + 14}" text-anchor="middle">{_tick(value)}</text>')
    for value in y.ticks():
        at = down(value)
        made.append(f'<path d="M{_LEFT} {at}H{width - _RIGHT}" stroke="var(--line)" stroke-width=".6"/>')
        made.append(f'<text x="{_LEFT - 5}" y="{float(at) + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
    made.append(f'<text x="{_LEFT + inner / 2:.0f}" y="{height - 6}" text-anchor="middle">{_words(x.title)}</text>')
    middle = _TOP + tall / 2
    made.append(
        f'<text transform="translate(11 {middle:.0f}) rotate(-90)" text-anchor="middle">{_words(y.title)}</text>'
    )
    low, high = max(x.low, y.low), min(x.high, y.high)
    if line == "diagonal" and low < high:
        made.append(
            f'<path d="M{across(low)} {down(low)}L{across(high)} {down(high)}" stroke="var(--dim)" fill="none" '
            'stroke-dasharray="3 4"/>'
        )
    elif line == "zero" and y.low < 0 < y.high:
        made.append(f'<path d="M{_LEFT} {down(0)}H{width - _RIGHT}" stroke="var(--dim)" stroke-dasharray="3 4"/>')
    for one in series:
        known = [point for point in one.points if math.isfinite(point.x) and math.isfinite(point.y)]
        dashes = ' stroke-dasharray="5 4"' if one.dashed else ""
        if one.joined and len(known) > 1:
            path = "L".join(f"{across(point.x)} {down(point.y)}" for point in known)
            made.append(f'<path d="M{path}" fill="none" stroke="{one.colour}" stroke-width="1.6"{dashes}/>')
        limits = "".join(
            f"M{across(p.x)} {down(p.low)}V{down(p.high)}" for p in known if math.isfinite(p.low) and p.low < p.high
        )
        if limits:
            made.append(f'<path d="{limits}" fill="none" stroke="{one.colour}" stroke-width="1.4" opacity=".7"/>')
        faint = ' fill-opacity=".6"' if one.faint else ""
        made.append(f'<g fill="{one.colour}"{faint}>')
        for point in known:
            said = f"<title>{_words(point.title)}</title></circle>" if point.title else ""
            circle = f'<circle cx="{across(point.x)}" cy="{down(point.y)}" r="{point.radius:.1f}"'
            made.append(f"{circle}>{said}" if said else f"{circle}/>")
        made.append("</g>")
    return Markup("".join([*made, "</svg>"]))  # noqa: S704  # numbers, and texts that _words escapes


def _tick(value: float) -> str:
    value = 0.0 if abs(value) < 1e-12 else value
    return f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:.4g}"


def _words(text: str) -> str:
    return str(escape(clean(text)))
