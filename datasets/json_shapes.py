"""Rows in a JSON object: in one of its members, or as pandas writes a table (`orient`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import LabelsError
from .records import is_role

#: Members that hold the rows beside others, such as what an interface says of its pages.
_HOLDERS = (
    "data",
    "rows",
    "records",
    "items",
    "results",
    "examples",
    "samples",
    "instances",
    "entries",
    "labels",
)


def rows_in(data: Mapping[str, Any], origin: str) -> Any:
    """Return the rows of a JSON object, or the object itself if it holds none.

    Raises:
        LabelsError: For an object of objects that can be read in two ways.
    """
    cells: Any = data.get("data")
    names: Any = data.get("columns")
    if _is_list_of(list, cells) and _is_list_of(str, names):  # orient="split"
        return [_row(names, row, number, origin) for number, row in enumerate(cells, 1)]
    inner = list(data.values())
    holders = [
        name
        for name, value in data.items()
        if _is_list_of(dict, value) and not is_role(name)
    ]
    if len(data) > 1:
        holders = [name for name in _HOLDERS if name in holders]
    if holders:
        return data[holders[0]]
    if all(isinstance(column, list) for column in inner) and inner:  # `to_dict("list")`
        if len({len(column) for column in inner}) > 1:
            lengths = ", ".join(
                f"{name} {len(column)}" for name, column in data.items()
            )
            raise LabelsError(
                f"{origin}: its columns are not equally long ({lengths}); write a list of objects"
            )
        return [dict(zip(data, row, strict=True)) for row in zip(*inner, strict=True)]
    if all(isinstance(column, dict) for column in inner) and inner:
        return _by_index(data, origin)
    return data


def _by_index(
    data: Mapping[str, Mapping[str, Any]], origin: str
) -> list[dict[str, Any]]:
    """An object of objects: {column: {index: cell}}, pandas' usual form, or {index: {column: cell}}."""
    inner = list(dict.fromkeys(name for part in data.values() for name in part))
    outside, inside = (any(map(is_role, names)) for names in (data, inner))
    if outside and not inside:
        return [
            {name: column.get(place) for name, column in data.items()}
            for place in inner
        ]
    if inside and not outside:
        return [dict(row) for row in data.values()]
    raise LabelsError(
        f"{origin}: an object of objects, whose names ({', '.join([*data, *inner][:6])}, …) do not say which are the "
        "columns; write a list of objects (pandas: to_json(orient='records'))"
    )


def _row(names: list[str], row: list[Any], number: int, origin: str) -> dict[str, Any]:
    if len(row) != len(names):
        raise LabelsError(
            f"{origin}, row {number}: {len(row)} cells, but there are {len(names)} columns"
        )
    return dict(zip(names, row, strict=True))


def _is_list_of(kind: type, value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, kind) for item in value)
    )
