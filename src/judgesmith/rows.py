"""Conversion of any record (of a file, a DataFrame, a request, a `dspy.Example`) into one output with its texts.

This is the only place where names of columns become roles: `judge.score_many`, `judgesmith score`, the server and the
adapters see the same row in the same record.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, time
from functools import lru_cache
from importlib.resources import files
from numbers import Number
from pathlib import Path
from typing import Any, cast

from judgesmith.conversation import judged, parsed, passages, rendered, trajectory
from judgesmith.errors import OptionError
from judgesmith.extras import from_extra
from judgesmith.trajectories.value import marked, unmarked


def named_roles(part: str) -> dict[str, tuple[frozenset[str], ...]]:
    """Return the names of each role's column, best first: of `texts`, or of `ratings`, what people said of them."""
    read = tomllib.loads(
        files(__package__).joinpath("roles.toml").read_text(encoding="utf-8")
    )
    return {role: tuple(map(_names, tiers)) for role, tiers in read[part].items()}


def _names(tier: str) -> frozenset[str]:
    return frozenset(tier.split())


ROLES = named_roles("texts")
#: Names of the only part of an object that stands for its text.
_PARTS = frozenset({"content", "result"}).union(
    *(names for role in ("output", "source", "reference") for names in ROLES[role])
)
#: Names of people's score, best first; without one, the only number that is no input and has no other role.
HUMAN = ("score", "human", "human_score", "rating", "label", "gold")
#: What `judgesmith score` writes into a row beside its id and the columns that it came with. The row's own column of
#: such a name is kept as `given_NAME`.
WRITTEN = ("verdict", "judge", "asked", "seen", "resembles", "defer")
#: How the name of a document begins that was made from its text.
DERIVED = "doc:"
#: Roles whose cells are texts as they are.
_PLAIN = ("source", "output", "reference", "turn", "group", "doc_id")
#: Names of a context that is a list of passages.
PASSAGES = ROLES["context"][-1]


@dataclass(frozen=True, slots=True)
class Item:
    """One output with what belongs to it: what a judge sees of a row.

    `group` names the document it comes from, None where its source says as much: demonstrations of the same group are
    kept out of its prompt. `columns` is the whole record, for judges that weigh its numbers; no prompt shows it.
    """

    output: str
    source: str = ""
    context: str | None = None
    reference: str | None = None
    group: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(record: Any) -> Item:
        """Return the item of any record: a mapping, a `dspy.Example`, a row of a DataFrame, a `datasets.Row`.

        An object with such attributes will do, too, such as DeepEval's test cases.

        >>> Item.of({"source": "A long report.", "output": "A summary."})
        Item(output='A summary.', source='A long report.', context=None, reference=None, group=None)

        Raises:
            OptionError: For a record without an output, and for columns that fit a role equally well.
        """
        if isinstance(record, Item):
            return record.unlabelled()
        cells = _cells_of(record)
        roles = roles_of(tuple(map(str, cells)))
        if "output" not in roles and "messages" not in roles:
            has = ""
            if isinstance(record, Mapping):
                has = f"; the row has {', '.join(map(str, record))}"
            raise OptionError(
                f"a row to be judged needs a text 'output', or 'messages'; got {type(record).__name__}{has}"
            )
        item = Item.by_roles(cells, roles)
        own = getattr(record, "columns", None)
        if isinstance(own, Mapping) and not isinstance(record, Mapping):
            return replace(item, columns=own)
        return item

    @staticmethod
    def by_roles(record: Mapping[str, Any], roles: Mapping[str, str]) -> Item:
        """Return the item of a record whose columns have these roles (role -> column).

        Its output is "" where no column has that role.

        Raises:
            OptionError: With the column, for a cell that is neither text nor number, turns or JSON.
        """
        cells = {role: record.get(column) for role, column in roles.items()}
        for role in ("source", "output", "context", "reference", "messages"):
            cell = cells.get(role)
            plain = cell is None or isinstance(cell, str)
            if not plain and not _has_text(cell):
                raise OptionError(
                    f"column {roles[role]!r} must be a text, a number, turns or JSON; got {type(cell).__name__}"
                )
        texts = {role: as_text(cells[role]) for role in _PLAIN if role in cells}
        source = texts.get("source")
        output = texts.get("output")
        if "context" not in roles:
            context = None
        else:
            context = context_of(roles["context"], cells["context"])
        if (turn := texts.get("turn")) is not None:
            whole = (
                output if output is not None else as_text(cells.pop("messages", None))
            )
            try:
                output = marked(whole or "", turn)
            except ValueError as error:
                raise OptionError(f"column {roles['turn']!r}: {error}") from None
        if "messages" in cells and not is_missing(cells["messages"]):
            chat = judged(cells["messages"], answer=output)
            if chat is None:
                _refuse_no_turns(roles["messages"], cells["messages"])
            before: str | None
            if chat is not None:
                before = chat.before
            elif output is not None:
                before = as_text(cells["messages"])
            else:
                before = ""
            if output is None:
                output = chat.output if chat is not None else as_text(cells["messages"])
            if source is None:
                source = before
            elif before:
                context = before if context is None else f"{before}\n\n{context}"
        output = output or ""
        source = source or ""
        group = stated(texts.get("group") or texts.get("doc_id"), source, output)
        return Item(output, source, context, texts.get("reference"), group, record)

    def unlabelled(self) -> Item:
        """Return what a judge sees of it: nothing that people said."""
        return self


def folded_name(name: str) -> str:
    """Return a column's name for comparison: lower case, with underscores."""
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


#: What a spreadsheet writes in place of a result, in the language of its program: #REF!, #BEZUG!, #N/A, #DIV/0!.
_ERROR = re.compile(
    r"#[¡¿]?[^\W\d_][\w /]*[!?]|#[^\W\d_]/[^\W\d_]|#(?:NV|YOK|BRAK|НД|GETTING_DATA)|Err:\d{3}"
)
_LONGEST_ERROR = 40
#: The roles of up to this many names are kept; a file has few columns, a request may bring any number.
_KEPT = 64


def roles_of(names: tuple[str, ...]) -> Mapping[str, str]:
    """Return columns by role, from the columns' names alone.

    Raises:
        OptionError: If two fit equally well.
    """
    return _kept_roles(names) if len(names) <= _KEPT else _roles_of(names)


def _fitting(
    tiers: Iterable[Iterable[str]], free: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the free columns with a name of the best tier that has any."""
    for tier in tiers:
        if hits := [name for folded in tier for name in free.get(folded, ())]:
            return hits
    return []


def _roles_of(names: tuple[str, ...]) -> Mapping[str, str]:
    places = {name: place for place, name in enumerate(names)}
    free: dict[str, list[str]] = {}
    for name in names:
        free.setdefault(folded_name(name), []).append(name)
    roles: dict[str, str] = {}
    for role, tiers in ROLES.items():
        fitting = sorted(_fitting(tiers, free), key=places.__getitem__)
        if len(fitting) > 1:
            columns = " and ".join(map(repr, fitting[:9]))
            raise OptionError(
                f"{columns} could each be the {role} of a row; rename one of them"
            )
        for name in fitting:
            roles[role] = name
            free[folded_name(name)].remove(name)
    return roles


_kept_roles = lru_cache(maxsize=256)(_roles_of)


def _cells_of(record: Any) -> Mapping[str, Any]:
    """Return a record's cells by the names of their columns."""
    if isinstance(record, Mapping):
        return record
    keys = getattr(record, "keys", None)  # a dspy.Example, a pandas row
    if callable(keys):
        return {str(name): record[name] for name in keys()}
    names = {name for tiers in ROLES.values() for tier in tiers for name in tier}
    cells = {}
    for name in sorted(names):
        value = getattr(record, name, None)
        if value is not None and not callable(value):
            cells[name] = value
    return cells


def arrow_table(table: Any) -> Any:
    """Return a reader of a table that Arrow reads (polars, pyarrow, DuckDB); None for anything else.

    It has the table's `schema`.
    """
    speaks = hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")
    if not speaks or _package(table) == "pandas":
        return None
    pa = from_extra("tables", f"a table of {_package(table)}", "pyarrow")
    if hasattr(table, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(table)
    return pa.Table.from_batches([pa.record_batch(table)]).to_reader()


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def arrow_records(reader: Any) -> Iterator[dict[str, Any]]:
    """Return the records of what `arrow_table` gives, in batches.

    Raises:
        OptionError: For a column of bytes that are no UTF-8 text.
    """
    return (record for batch in reader for record in text_batch(batch).to_pylist())


def text_batch(batch: Any) -> Any:
    """Return a batch of Arrow with texts for bytes, as Impala, Hive and old Spark write their texts.

    Raises:
        OptionError: For a column of bytes that are no UTF-8 text.
    """
    import pyarrow as pa

    columns = []
    for one in batch.schema:
        column = batch.column(one.name)
        wanted = _text_type(one.type)
        if wanted != one.type:
            try:
                column = column.cast(wanted)
            except pa.ArrowException as error:
                raise OptionError(
                    f"column {one.name!r} holds bytes that are no text in UTF-8 ({error}); write it as text"
                ) from None
        columns.append(column)
    return pa.record_batch(columns, names=batch.schema.names)


def _text_type(kind: Any) -> Any:
    """Return a type of Arrow with texts in place of bytes, at any depth."""
    import pyarrow as pa

    types = pa.types
    if types.is_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.large_string()
    if types.is_dictionary(kind):
        return _text_type(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind):
        inside = _text_type(kind.value_type)
        return kind if inside == kind.value_type else pa.list_(inside)
    if types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        return pa.struct([one.with_type(_text_type(one.type)) for one in fields])
    return kind


def rows_of(rows: Any) -> Iterable[Any]:
    """Return rows as `score_many` takes them: of a table (pandas, polars, pyarrow, DuckDB) its records.

    Raises:
        OptionError: If the value holds no rows.
    """
    if isinstance(rows, (str, bytes, Mapping, Path)):
        raise OptionError(
            f"score_many takes rows, such as a list of dicts or a DataFrame, and got a {type(rows).__name__}; a file "
            "is scored by `judgesmith score`, one row by judge.score(source, output)"
        )
    reader = arrow_table(rows)
    if reader is not None or (hasattr(rows, "to_dict") and hasattr(rows, "columns")):
        names = tuple(map(str, rows.columns if reader is None else reader.schema.names))
        if not {"output", "messages"} & set(roles_of(names)):
            raise OptionError(
                f"the table's columns are {', '.join(names)}; the judged text belongs in 'output' (rename it: "
                'df.rename(columns={"what they wrote": "output"}))'
            )
        records: Iterable[Any] = (
            rows.to_dict("records") if reader is None else arrow_records(reader)
        )
        return records
    return cast(Iterable[Any], rows)


def human_score(example: Any) -> float:
    """Return the human score of a row, under any name of its field.

    example: a `dspy.Example` or a mapping.

    Raises:
        OptionError: If no field, or more than one, can be meant.
    """
    inputs = getattr(example, "_input_keys", None) or ()
    roles = roles_of(tuple(map(str, example.keys()))).values()
    numbers: dict[str, float] = {}
    for name, value in example.items():
        if name not in inputs and name not in roles and isinstance(value, Number | str):
            with suppress(ValueError, TypeError):
                numbers[folded_name(name)] = float(value)  # type: ignore[arg-type]
    fields = [name for name in HUMAN if name in numbers] or list(numbers)
    if len(fields) != 1 and not (fields and fields[0] in HUMAN):
        raise OptionError(
            f"no field is clearly the human score, of: {', '.join(example.keys())}; name it 'score'"
        )
    return numbers[fields[0]]


def _refuse_no_turns(column: str, cell: Any) -> None:
    """Raise OptionError for messages that are none: of that name without turns, or with roles that cannot be read."""
    value = parsed(cell)
    several = value if isinstance(value, (list, tuple)) else [value]
    roles = any(isinstance(one, Mapping) and "role" in one for one in several)
    named = folded_name(column) == "messages" and len(several) > 0
    if roles or (named and not trajectory(value).turns):
        shown = as_text(cell) or ""
        raise OptionError(
            f"column {column!r} has no turns: {shown[:60]}; write a list of objects with a role, such as "
            '"user" or "assistant", and its content'
        )


def _has_text(cell: Any) -> bool:
    if isinstance(cell, bytes):
        try:
            cell.decode("utf-8")
        except UnicodeDecodeError:
            return False
    return (
        is_missing(cell)
        or isinstance(cell, (str, Number, Mapping, Sequence, date, time))
        or hasattr(cell, "tolist")
    )


def context_of(column: str, cell: Any) -> str | None:
    """Return a context as text; retrieved passages, also as a list in text, are numbered."""
    named = folded_name(column) in PASSAGES
    value = parsed(cell)
    several = (
        isinstance(value, (list, tuple)) and len(value) > 0 and rendered(value) is None
    )
    shown = passages(value) if several or (named and rendered(value) is None) else None
    return shown or as_text(value if named else cell)


def stated(group: str | None, source: str, output: str) -> str | None:
    """Return a group; None for one that was made from the source, which says no more than the source does."""
    if group is not None and group != source_key(source or output):
        return group
    return None


@lru_cache(maxsize=256)
def source_key(source: str) -> str:
    """Return a document id made from the input's text, the same on every machine.

    All turns of a trajectory have the same id.
    """
    return (
        DERIVED
        + hashlib.sha256(unmarked(source).encode("utf-8", "surrogatepass")).hexdigest()[
            :12
        ]
    )


def is_missing(value: Any) -> bool:
    """Return whether a cell is None, NaN (also pandas' NA and NaT) or blank text."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_sheet_error(text: str) -> bool:
    """Return True if a text is what a spreadsheet shows for a result that it could not work out, such as #REF!."""
    text = text.strip()
    if not text.startswith(("#", "Err:")) or len(text) > _LONGEST_ERROR:
        return False
    return _ERROR.fullmatch(text) is not None and text in (
        text.upper(),
        f"Err:{text[4:]}",
    )


def as_text(value: Any) -> str | None:
    """Return a cell as text; None if it is missing, or an error of a spreadsheet in place of a text.

    Conversations become their turns (`judgesmith.conversation`), a list of strings one a line, an object of one part
    that is called as a text is, {"answer": "…"}, that part, and other objects JSON.
    """
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text or is_sheet_error(text):
            return None
        shown = rendered(value) if text[0] in "[{" else None
        return value if shown is None else shown
    if type(value).__name__ == "ndarray":
        value = value.tolist()
    if is_missing(value):
        return None
    if isinstance(value, bytes):
        return as_text(value.decode("utf-8"))
    if (shown := rendered(value)) is not None:
        return shown
    if isinstance(value, float) and value.is_integer():
        return str(
            int(value)
        )  # pandas turns a column of whole ids with one gap into floats
    if isinstance(value, (list, tuple)) and all(
        isinstance(part, str) for part in value
    ):
        return "\n".join(value)
    if isinstance(value, dict) and len(value) == 1:
        ((name, part),) = value.items()
        if isinstance(part, str) and folded_name(str(name)) in _PARTS:
            return part
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
