"""Places in a JSON value, as the keys that lead there."""

from typing import Any

Place = tuple[str | int, ...]


def places(data: Any) -> list[Place]:
    """Every place, the whole first."""
    inner = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    return [(), *((key, *rest) for key, value in inner for rest in places(value))]


def put(data: Any, place: Place, value: Any) -> Any:
    """A copy of the data with the value at a place, of which the last key may be new."""
    if not place:
        return value
    made = data.copy()
    made[place[0]] = put(data[place[0]], place[1:], value) if place[1:] else value
    return made


def at(data: Any, place: Place) -> Any:
    """What stands at a place."""
    return at(data[place[0]], place[1:]) if place else data
