"""Group passages that go through a model together: of like length behind one beginning, which is computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judgesmith.programs.readings.reader import common_length

#: A beginning of fewer tokens is computed again; and rows that share 48 more than all rows do are read together.
WORTH = 16
MORE = 48
#: The share of a batch's longest row that its shortest has at least: what is added to the others is computed in vain.
ALIKE = 0.75


@dataclass(frozen=True, slots=True)
class Row:
    """A passage's tokens, and the place of the last one before its target."""

    tokens: list[int]
    start: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Places of rows, and how many tokens they begin with in common that are computed before them."""

    places: tuple[int, ...]
    shared: int


def batches(rows: Sequence[Row], most: int) -> Iterator[Batch]:
    """Yield batches with each row in one, those with one long beginning next to each other.

    >>> rows = [Row([*range(60), 100 + row], 59) for row in range(3)] + [Row([7, 8, 9], 1)]
    >>> [(batch.places, batch.shared) for batch in batches(rows, 512)]
    [((3,), 0), ((0, 1, 2), 59)]

    Args:
        rows: The rows.
        most: Tokens of a batch, padding included; a longer row is alone.
    """
    order = sorted(range(len(rows)), key=lambda place: rows[place].tokens)
    everywhere = _shared([rows[place] for place in order])
    alone = list[int]()
    families = list[list[int]]()
    for family in _families(rows, order, everywhere + MORE):
        if len(family) > 1:
            families.append(family)
        else:
            alone += family
    for some in [alone, *families] if alone else families:
        if some is alone:
            shared = everywhere
        else:
            shared = _shared([rows[place] for place in some])
        shared = shared if shared >= WORTH else 0
        yield from _alike(rows, some, shared, most)


def _families(
    rows: Sequence[Row], order: Sequence[int], least: int
) -> Iterator[list[int]]:
    """Rows in their order, divided where two share fewer tokens."""
    family = list[int]()
    for place in order:
        if family and _shared([rows[family[-1]], rows[place]]) < least:
            yield family
            family = []
        family.append(place)
    if family:
        yield family


def _shared(ordered: Sequence[Row]) -> int:
    """Tokens before all targets that all rows begin with; of ordered rows the first and the last differ most."""
    if not ordered:
        return 0
    return min(
        common_length(ordered[0].tokens, ordered[-1].tokens),
        *(row.start for row in ordered),
        ordered[0].start,
    )


def _alike(
    rows: Sequence[Row], some: Sequence[int], shared: int, most: int
) -> Iterator[Batch]:
    batch = list[int]()
    left = {place: len(rows[place].tokens) - shared for place in some}
    for place in sorted(some, key=lambda place: -left[place]):
        longest = left[batch[0]] if batch else 0
        if batch and (
            longest * (len(batch) + 1) > most or left[place] < ALIKE * longest
        ):
            yield Batch(tuple(batch), shared)
            batch = []
        batch.append(place)
    if batch:
        yield Batch(tuple(batch), shared)
