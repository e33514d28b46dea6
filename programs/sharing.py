"""What several judges read of the same rows, computed once.

Inside `shared()` a result is kept under its key, so that the aspects of one judge read a row once and not once each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

#: Results that are kept at most: some 30 kB each, of a row that a model has read.
MOST_KEPT = 4096
_readings: ContextVar[OrderedDict[Any, Any] | None] = ContextVar(
    "judgesmith_shared", default=None
)


@contextmanager
def shared() -> Iterator[None]:
    """Keep what is computed inside, also in threads and tasks that begin there; nothing where it is kept already."""
    if _readings.get() is not None:
        yield
        return
    token = _readings.set(OrderedDict())
    try:
        yield
    finally:
        _readings.reset(token)


def each_once(
    keys: Sequence[Key],
    compute: Callable[[list[int]], Sequence[Value]],
) -> list[Value]:
    """Return a value for each key, those that are kept as they are.

    Args:
        keys: what tells a result from every other.
        compute: gives the values of some places, in their order.
    """
    readings = _readings.get()
    if readings is None:
        return list(compute(list(range(len(keys)))))
    values: dict[Key, Value] = {}
    missing: dict[Key, int] = {}
    for place, key in enumerate(keys):
        if key in readings:
            values[key] = readings[key]
        else:
            missing.setdefault(key, place)
    if missing:
        computed = compute(list(missing.values()))
        values |= zip(missing, computed, strict=True)
    readings.update(values)
    while len(readings) > MOST_KEPT:
        readings.popitem(last=False)
    return [values[key] for key in keys]
