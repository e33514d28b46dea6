"""Formats of files with rows, one class each.

A class declares all that is said of a format (its name, what a file's name ends with), and how a file is read, counted
and written. Readers, outputs of `score`, folders of files, help and errors go by the registry. A new format is a class
in a file of this folder, or in another package with an entry point in the group `judgesmith.formats`.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from judgesmith.datasets.encoding import binary, encoding_of
from judgesmith.datasets.tables import Record, Table, table_records
from judgesmith.errors import LabelsError, OptionError
from judgesmith.extras import from_extra
from judgesmith.parts import Registry

if TYPE_CHECKING:
    from judgesmith.datasets.tables import Source

#: Rows from the first on, at each call.
Rows = Callable[[], Iterable[Mapping[str, Any]]]


class Format(ABC):
    """What is said of a format, and how a file of it is read. Only `records` has to be written."""

    name: ClassVar[str]
    about: ClassVar[str]
    """One line for `judgesmith list formats`, and the beginning of the message that a module is missing."""
    suffixes: ClassVar[tuple[str, ...]]
    """What the name of a file ends with, in lower case; help shows the first."""
    extra: ClassVar[str] = ""
    """The extra of judgesmith with the modules that it needs."""
    modules: ClassVar[tuple[str, ...]] = ()
    packed: ClassVar[bool] = False
    """Whether gzip may have packed a file, with `.gz` behind its suffix."""
    written: ClassVar[bool] = False
    """Whether `write` is there, so that `score` can write it."""
    grows: ClassVar[bool] = False
    """Whether `score` appends its rows to a file one by one: JSON lines."""
    typed: ClassVar[bool] = False
    """Whether cells that are written keep their types. If not, they are read again as text."""

    def open(self, path: Path) -> Table:
        """Return a file's rows. What can be checked without reading them is checked now.

        Raises:
            LabelsError: For a file that is of another format, or damaged.
        """
        notes: list[str] = []
        return Table(path.name, streamed(path, self.records(path, notes)), notes=notes)

    @abstractmethod
    def records(self, path: Path, notes: list[str]) -> Iterator[Record]:
        """Yield a file's rows by their columns.

        Args:
            path: The file, which exists and is not empty.
            notes: Sentences for the user, to which others may be added until the last row.

        Raises:
            LabelsError: With the file, the line or row, what is wrong there and what to do.
        """

    def count(self, path: Path) -> int | None:
        """Return how many rows a file has; None if counting costs as much as reading."""
        return None

    def require(self, path: Path) -> Any:
        """Return the first of the modules that it needs, None for none.

        Raises:
            MissingExtraError: With the extra, if one is not installed.
        """
        if not self.modules:
            return None
        return from_extra(self.extra, f"{path.name}: {self.about}", *self.modules)

    def write(self, rows: Rows, path: Path) -> None:
        """Write rows. All of them have the columns of the first, unless cells are `typed`.

        Raises:
            OSError: If the file cannot be written.
        """
        raise NotImplementedError


formats: Registry[type[Format]] = Registry(
    "file format",
    packages=("judgesmith.datasets.formats",),
    group="judgesmith.formats",
)


@dataclass(frozen=True, slots=True)
class Text:
    """A file of text, and its encoding."""

    path: Path
    encoding: str

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    def open(self) -> TextIO:
        """Return the opened file, unpacked; line ends are as they stand there."""
        return io.TextIOWrapper(binary(self.path), self.encoding, newline="")

    def lines(self) -> Iterator[str]:
        """Yield its lines."""
        with self.open() as handle:
            yield from handle

    def read(self) -> str:
        """Return all of it."""
        with self.open() as handle:
            return handle.read()


class TextFormat(Format):
    """A format of text. Its encoding is found, and `rows` has to be written."""

    packed = True

    def open(self, path: Path) -> Table:
        notes: list[str] = []
        return self.table(_text(path, notes), notes)

    def table(self, text: Text, notes: list[str]) -> Table:
        """Return the rows of a text."""
        rows = streamed(text.path, self.rows(text, notes))
        return Table(text.name, rows, notes=notes)

    def records(self, path: Path, notes: list[str]) -> Iterator[Record]:
        return self.rows(_text(path, notes), notes)

    @abstractmethod
    def rows(self, text: Text, notes: list[str]) -> Iterator[Record]:
        """Yield the rows of a text by their columns.

        Raises:
            LabelsError: With the file, the line, what is wrong there and what to do.
        """


def _text(path: Path, notes: list[str]) -> Text:
    with readable(path):
        encoding, note = encoding_of(path)
    if note:
        notes.append(note)
    return Text(path, encoding)


def open_table(source: Source) -> Table:
    """Return any source as an iterator over records. What can be checked without reading it is checked now.

    Raises:
        LabelsError: For a file that is missing, empty, damaged, or of no known format.
    """
    if not isinstance(source, (str, PathLike)):
        return Table("<table>", table_records(source))
    path = Path(source)
    form = of_name(path)
    if not path.exists():
        raise LabelsError(f"{path.name}: there is no such file; check the path")
    if not path.is_file():
        raise LabelsError(
            f"{path.name}: this is a folder, not a file; name a file in it"
        )
    if form is None:
        raise _unknown(path)
    if path.stat().st_size == 0:
        raise LabelsError(f"{path.name}: the file is empty")
    return form.open(path)


def format_of(path: Path) -> Format:
    """Return the format that a file's name states.

    Raises:
        LabelsError: If the name states none.
    """
    form = of_name(path)
    if form is None:
        raise _unknown(path)
    return form


def of_name(path: Path) -> Format | None:
    """Return the format that a file's name states; None if it states none, as the name of a column does."""
    forms = _by_suffix()
    packed = "".join(path.suffixes[-2:]).lower()
    form = forms.get(path.suffix.lower()) or forms.get(packed)
    return None if form is None else form()


def _every() -> list[type[Format]]:
    """Return all formats, our own first, in an order that does not depend on who imports what."""

    def place(form: type[Format]) -> tuple[bool, str]:
        return not form.__module__.startswith(__name__), form.__module__

    return sorted(formats.parts().values(), key=place)


def _by_suffix() -> dict[str, type[Format]]:
    forms: dict[str, type[Format]] = {}
    for form in _every():
        packed = [f"{suffix}.gz" for suffix in form.suffixes if form.packed]
        for suffix in (*form.suffixes, *packed):
            other = forms.setdefault(suffix, form)
            if other is not form:
                raise OptionError(
                    f"the file formats {other.name} and {form.name} both read {suffix}; uninstall one of them"
                )
    return forms


def written_as(path: Path) -> Format:
    """Return the format that scores are written in, by the name of the output.

    Raises:
        OptionError: If the name states none that can be written.
    """
    suffix = path.suffix.lower()
    writable = _writable()
    for form in writable:
        if suffix in form.suffixes:
            return form()
    raise OptionError(
        f"{path.name}: scores are written as {_alternatives(writable)}; name such an output"
    )


def _writable() -> list[type[Format]]:
    """Return the formats that scores can be written in, the one that grows first."""
    writable = [one for one in _every() if one.written or one.grows]
    return sorted(writable, key=lambda one: not one.grows)


def suffixes_read() -> str:
    """Return what help says of files that can be read: ".csv, .tsv or .json"."""
    return _alternatives(_every())


def suffixes_written() -> str:
    """Return what help says of files that scores can be written to: ".jsonl, .csv or .parquet"."""
    return _alternatives(_writable())


def _alternatives(those: Iterable[type[Format]]) -> str:
    *others, last = (form.suffixes[0] for form in those)
    return f"{', '.join(others)} or {last}"


def _unknown(path: Path) -> LabelsError:
    every = [suffix for form in _every() for suffix in form.suffixes]
    return LabelsError(f"{path.name}: unknown file type; use one of {', '.join(every)}")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors of the file itself into LabelsError."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise LabelsError(
            f"{path.name}: the text is not {error.encoding}, as its first bytes say ({error.reason}); save the file as "
            "UTF-8 (Excel: CSV UTF-8)"
        ) from None
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LabelsError(f"{path.name}: cannot be read ({reason})") from None


def streamed(path: Path, records: Iterator[Record]) -> Iterator[Record]:
    """Yield the same records; errors of the file itself are LabelsError, whenever they turn up."""
    with readable(path):
        yield from records
