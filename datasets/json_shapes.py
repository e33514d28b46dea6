"""Rows in a JSON object: in one of its members, or as pandas writes a table (`orient`)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from judgesmith.datasets.roles import is_role
from judgesmith.errors import LabelsError

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
    columns = list(data.values())
    holders = [
        name
        for name, value in data.items()
        if _is_list_of(dict, value) and not is_role(name)
    ]
    if len(data) > 1:
        holders = [name for name in _HOLDERS if name in holders]
    if holders:
        return data[holders[0]]
    if _are_all(list, columns):  # `to_dict("list")`
        return _by_column(data, origin)
    if _are_all(dict, columns):
        return _by_index(data, origin)
    return data


def _are_all(kind: type, values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, kind) for value in values)


def _by_column(data: Mapping[str, list[Any]], origin: str) -> list[dict[str, Any]]:
    """Return the rows of an object of lists, `to_dict("list")`."""
    columns = list(data.values())
    if len(set(map(len, columns))) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in data.items())
        raise LabelsError(
            f"{origin}: its columns are not equally long ({lengths}); write a list of objects"
        )
    return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]


def _by_index(
    data: Mapping[str, Mapping[str, Any]], origin: str
) -> list[dict[str, Any]]:
    """An object of objects: {column: {index: cell}}, pandas' usual form, or {index: {column: cell}}."""
    inner = list(dict.fromkeys(itertools.chain(*data.values())))
    outside = any(map(is_role, data))
    inside = any(map(is_role, inner))
    if outside and not inside:
        rows = []
        for place in inner:
            rows.append({name: column.get(place) for name, column in data.items()})
        return rows
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
