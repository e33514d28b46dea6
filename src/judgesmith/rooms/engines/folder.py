"""The folder that a run --on an engine writes, and the rows that it reads: on this machine or in a storage."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs, parquet

from judgesmith.datasets.columns import Columns
from judgesmith.datasets.formats import format_of
from judgesmith.datasets.loading import iter_rows
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rooms.engines.batches import BatchScorer
from judgesmith.running.opening import roles_for
from judgesmith.running.settings import compared, defaults_of
from judgesmith.running.storage import file_name, place_of

if TYPE_CHECKING:
    from judgesmith.scoring.command import Score

#: Where rows are laid that were no Parquet.
INPUT = "input/rows.parquet"
#: The folders of a run.
PARTS = ("done", "rows", "forgotten", "input")
#: The mark of the model with its address, in run.json.
SERVER = "server"
#: Options whose content the mark of a run has.
MARKED = ("--rows", "--judge", "--lm", "--api-base")
#: Rows by which columns are found, and ids in one message.
HEAD = 1000
SHOWN = 5
#: How the names of Ray's lists of ids end whose rows may be half written.
PENDING = ".pending.parquet"


class Output:
    """A folder, on this machine or in a storage."""

    def __init__(self, name: str) -> None:
        self.name = name.rstrip("/")
        self.system, self.root = place_of(self.name)

    def path(self, part: str) -> str:
        """Return the path of a part in the folder."""
        return f"{self.root}/{part}"

    def files(self, part: str = "") -> list[fs.FileInfo]:
        """Return the files of a part, none where that is not there."""
        entries = self.system.get_file_info(
            fs.FileSelector(self.path(part), recursive=True, allow_not_found=True)
        )
        return [
            one for one in entries if one.is_file and not one.base_name.startswith(".")
        ]

    def table(self, part: str, columns: list[str]) -> pa.Table:
        """Return columns of all rows of a part."""
        return _dataset(self.path(part), self.system).to_table(columns=columns)

    def write(self, part: str, content: bytes) -> None:
        """Write a part of the folder, whole or not at all."""
        with (
            self._whole(part) as path,
            self.system.open_output_stream(path) as file,
        ):
            file.write(content)

    @contextmanager
    def _whole(self, part: str) -> Iterator[str]:
        """Yield the path of a file that takes the part's place. Its name is drawn: no link lies there."""
        place = self.path(part)
        self.system.create_dir(place.rpartition("/")[0])
        path = self.path(f".{secrets.token_hex(8)}.new")
        yield path
        self.system.move(path, place)

    def begun(self) -> dict[str, Any] | None:
        """Return the mark of the run that began the folder; None for an empty one.

        It is {} where a kill left none that can be read, or left an --overwrite half done.

        Raises:
            OptionError: If the folder is something else.
        """
        files = self.files()
        if any(one.path == self.path("run.json") for one in files):
            with suppress(ValueError):
                read = json.loads(
                    self.system.open_input_stream(self.path("run.json")).read()
                )
                return read if isinstance(read, dict) else {}
            return {}
        laid = tuple(self.path(f"{part}/") for part in PARTS)
        for one in files:
            if not (one.path.startswith(laid) and one.extension == "parquet"):
                raise OptionError(
                    f"{self.name} has {one.base_name!r} and is no output of --on ray; give another -o"
                )
        return {} if any(one.path != self.path(INPUT) for one in files) else None

    def clear(self) -> None:
        """Remove what a run wrote. A kill on the way leaves a folder that only --overwrite takes up."""
        self.write("run.json", b"{}")
        for part in PARTS:
            if self.files(part):
                self.system.delete_dir(self.path(part))
        self.system.delete_file(self.path("run.json"))

    def clean(self) -> None:
        """Remove what a kill left half written, as Ray does when it resumes."""
        beside = fs.FileSelector(self.root, allow_not_found=True)
        for one in self.system.get_file_info(beside):
            if one.is_file and re.fullmatch(r"\.[0-9a-f]{16}\.new", one.base_name):
                self.system.delete_file(one.path)
        for one in self.files("done"):
            if one.base_name.endswith(PENDING):
                written = [
                    r
                    for r in self.files("rows")
                    if r.base_name.startswith(one.base_name.removesuffix(PENDING))
                ]
                for half in [*written, one]:
                    self.system.delete_file(half.path)

    def forget_failed(self, key: str) -> None:
        """Take rows without a score from what is done. Whatever kill comes between, the next call ends it."""
        if not self.files("forgotten"):
            scores = self.table("rows", [key, "judge_score"])
            self.replace(
                "forgotten/ids.parquet",
                scores.filter(pc.field("judge_score").is_null()).select([key]),
            )
        failed = self.table("forgotten", [key])[key].combine_chunks()
        for part in ("rows", "done"):
            for one in self.files(part):
                table = parquet.read_table(one.path, filesystem=self.system)
                scored = table.filter(pc.invert(pc.is_in(table[key], failed)))
                if scored.num_rows < table.num_rows:
                    self.replace(f"{part}/{one.base_name}", scored)
        self.system.delete_dir(self.path("forgotten"))

    def replace(self, part: str, table: pa.Table) -> None:
        """Write a file whole or not at all."""
        with self._whole(part) as path:
            parquet.write_table(table, path, filesystem=self.system)


def _dataset(path: str, system: fs.FileSystem) -> Any:
    from pyarrow import dataset

    return dataset.dataset(path, format="parquet", filesystem=system)


@dataclass(frozen=True)
class Rows:
    """The rows of a run, as Parquet. key: the column of their ids; done: how many an earlier run wrote."""

    path: str
    system: fs.FileSystem
    scorer: BatchScorer
    key: str
    count: int
    done: int


def opened_rows(command: Score, output: Output, scorer: BatchScorer) -> Rows:
    """Check the rows, lay them as Parquet where they are not, and bring the output into the state to resume from."""
    files = _files(command.rows)
    chosen = compared(command, "value", "content", defaults=True)
    values = {name: value for name, value in chosen.items() if name not in MARKED}
    mark = {
        "judge": scorer.fingerprint,
        "lm": command.lm,
        SERVER: scorer.server,
        **values,
        "rows": [[one.path, one.size, one.mtime_ns] for one in files],
    }
    # An option that came later was not set when an earlier version began the run.
    defaults = defaults_of(type(command))
    absent = mark | {name: defaults[name] for name in values}
    begun = output.begun()
    if command.overwrite and begun is not None:
        output.clear()
        begun = None
    if begun is None and command.retry_failed:
        raise OptionError(
            f"{output.name} does not exist: there are no failed rows to try again"
        )
    if begun == {}:
        raise OptionError(
            f"{output.name} is what a killed run or a killed --overwrite left: its run.json is missing or cannot be "
            "read. Give --overwrite to begin again, or another -o"
        )
    if begun is not None and (
        other := [name for name in mark if begun.get(name, absent[name]) != mark[name]]
    ):
        if other[0] == SERVER:
            raise OptionError(
                f"{output.name} was scored by the model at another address ({begun[SERVER]}; this is {mark[SERVER]}), "
                "which is another judge; resume with the address of before (--api-base, or the environment's), give "
                "another -o, or --overwrite"
            )
        raise OptionError(
            f"{output.name} was written with {other[0]} {begun.get(other[0])}, this is {mark[other[0]]}; give another "
            "-o, or --overwrite"
        )
    system, path = place_of(command.rows)
    if command.limit or _kind(files[0]) != ".parquet":
        if begun is None:
            _lay(command, files, output, scorer)
        system = output.system
        path = output.path("input")
    rows = _checked(Rows(path, system, scorer, "", 0, 0), file_name(command.rows))
    output.write("run.json", json.dumps(mark).encode())
    output.clean()
    if command.retry_failed or output.files("forgotten"):
        output.forget_failed(rows.key)
    return replace(
        rows,
        done=output.table("done", [rows.key]).num_rows if output.files("done") else 0,
    )


def _kind(file: fs.FileInfo) -> str:
    return f".{file.extension.lower()}"


def _files(name: str) -> list[fs.FileInfo]:
    """Return the files of a name, of a folder all that it has, in order. Raises LabelsError where there are none."""
    system, path = place_of(name)
    try:
        (entry,) = system.get_file_info([path])
        if not entry.is_file:
            inside = system.get_file_info(fs.FileSelector(path, recursive=True))
        else:
            inside = [entry]
    except OSError as error:
        raise LabelsError(f"{name} cannot be read: {error}") from None
    files = sorted(
        (one for one in inside if one.is_file and one.base_name[0] not in "._"),
        key=lambda one: one.path,
    )
    if len(kinds := sorted(set(map(_kind, files)))) != 1:
        raise LabelsError(
            f"{name} has files of {len(kinds)} kinds ({', '.join(kinds)}); rows are of one kind"
        )
    return files


def _lay(
    command: Score, files: list[fs.FileInfo], output: Output, scorer: BatchScorer
) -> None:
    """Write rows as `score` reads them to OUTPUT/input; one without an id has its place in its file for it."""
    with TemporaryDirectory() as folder:
        there = place_of(command.rows)[0]

        def records() -> Iterator[Mapping[str, Any]]:
            for one in files:
                path = Path(folder) / one.base_name
                before = "" if len(files) == 1 else f"{one.base_name}:"
                fs.copy_files(one.path, str(path), source_filesystem=there)
                roles = roles_for(path, command.roles(), command.judge)
                for row, _ in iter_rows(path, columns=roles):
                    yield {"id": f"{before}{row.line}", **row.columns}

        path = Path(folder) / "rows.parquet"
        format_of(path).write(lambda: islice(records(), command.limit), path)
        output.system.create_dir(output.path("input"))
        fs.copy_files(
            str(path), output.path(INPUT), destination_filesystem=output.system
        )


def _checked(rows: Rows, origin: str) -> Rows:
    """Return the rows with the columns that they have.

    Raises:
        LabelsError: If ids are missing, or shared by several rows.
    """
    dataset = _dataset(rows.path, rows.system)
    names = dataset.schema.names
    head = dataset.head(HEAD).to_pylist()
    columns = Columns.find(
        names,
        origin,
        chosen=rows.scorer.roles(names),
        scores_needed=False,
        records=head,
    )
    if not head:
        raise LabelsError(f"{origin}: there are no rows in it; name a file with rows")
    key = columns.texts.get("id")
    if key is None:
        raise LabelsError(
            f"{origin}: no column of ids, which resuming needs; name it with --columns id=NAME"
        )
    scorer = replace(rows.scorer, columns=columns.texts)
    scorer(dataset.schema.empty_table())
    ids = dataset.to_table(columns=[key])[key]
    if ids.null_count:
        raise LabelsError(
            f"{origin}, column {key!r}: {ids.null_count} rows have no id, which resuming needs; give every row one"
        )
    counted = pc.value_counts(ids).flatten() if len(ids) else []
    twice = counted[0].filter(pc.greater(counted[1], 1)).to_pylist() if counted else []
    if twice:
        shown = ", ".join(repr(one) for one in twice[:SHOWN]) + (
            ", …" if len(twice) > SHOWN else ""
        )
        raise LabelsError(
            f"{origin}, column {key!r}: several rows have the id {shown}; give each row its own"
        )
    return replace(rows, scorer=scorer, key=key, count=len(ids))
