"""Exports of other tools, one class each: what annotators answered there, and what a tool of evaluation measured.

A class declares which records or files are of its tool, and reads one record. A new one is a class in a file of this
folder, or in another package with an entry point in the group `judgesmith.exports`.

Of `Answers` each record gets the columns that people would have written by hand: texts under their own names, `scores`
as {name: {rater: rating}}, and `why` as {name: [comment]}. A comparison of two outputs gets a column of the question's
name with {rater: winner}. Only what people said of a whole output counts: scores of other judges (LLM, code) and of
parts of an output are left out and counted.

Of `Results` a record gets `source`, `output` and `reference` where the tool keeps them, an `id`, and `judges`, {name:
{"score", "reason"}} of every scorer, metric or assertion. What a person rated there (promptfoo's thumbs) is in
`scores`; a scorer is no person. What failed has no score. A record of another form than its tool writes is refused
with its row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from judgesmith.datasets.exports.samples import UnreadableError, object_of
from judgesmith.errors import LabelsError
from judgesmith.parts import Registry
from judgesmith.rows import named_roles

Record: TypeAlias = dict[str, Any]
JUDGES = "judges"
#: Why a rating is left out.
DISCARDED = "which no person gave or which were discarded"
OF_PARTS = "which are of parts of an output (spans, regions, messages)"
OF_SPANS = "which are of single spans and not of their trace (of its root only where the export has the spans)"
#: What questions for a reason are called.
REASONS = frozenset[str]().union(*named_roles("ratings")["rationale"])


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question of an export.

    left: why it is no rating of the output, "" where it is one. compares: its value names the better one of two
    outputs.
    """

    question: Any
    rater: Any
    value: Any
    left: str = ""
    reason: Any = None
    compares: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """An export that cannot be labels: columns that it has, and those that it would have if it could."""

    has: frozenset[str]
    lacks: frozenset[str]
    problem: str


class Shape(ABC):
    """What is said of an export."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The tool's name in messages."""
    about: ClassVar[str]
    """One line for `judgesmith list exports`."""


class Answers(Shape):
    """Records with what people answered."""

    turn: ClassVar[int] = 0
    """When records are compared with it: after all of a lower turn, which are more particular."""
    share: ClassVar[float] = 0.5
    """The share of records above which a file is such an export."""
    objects: ClassVar[frozenset[str]] = frozenset()
    """Columns that hold objects, which `score` writes into a CSV as JSON."""
    refused: ClassVar[tuple[Refusal, ...]] = ()
    """Other exports of the tool, which cannot be labels."""

    @abstractmethod
    def belongs(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is of such an export."""

    @abstractmethod
    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        """Return the texts of a record by their columns, and the answers."""


class Results(Shape):
    """What a tool of evaluation measured: files of JSON, lines of JSON, or columns of a CSV."""

    def samples(self, data: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return the samples in the object of a JSON file; None if it is of no such file."""
        return None

    def belongs(self, record: Mapping[str, Any]) -> bool:
        """Return whether a line of JSON is a sample."""
        return False

    def cell_reader(self, column: str) -> Callable[[str], Any] | None:
        """Return how the cells of a CSV column are read; None for a column that is not the tool's."""
        return None

    def row(self, sample: Mapping[str, Any]) -> Record:
        """Return a sample as a row.

        Raises:
            UnreadableError: If it has nothing that can be judged.
            ValueError: If the tool does not write such a sample.
        """
        raise NotImplementedError

    def row_of(self, sample: Any, place: str) -> Record:
        """Return a sample as a row.

        Args:
            sample: The sample.
            place: The file and its row, for messages.

        Raises:
            LabelsError: If it has another form than the tool writes, or none that can be judged.
        """
        try:
            return self.row(object_of(sample, "the record"))
        except UnreadableError as error:
            raise LabelsError(f"{place}: {error}") from None
        except ValueError as error:
            raise LabelsError(
                f"{place}: {error}, which {self.title} does not write; correct the row or leave it out"
            ) from None


exports: Registry[type[Shape]] = Registry(
    "export", packages=("judgesmith.datasets.exports",), group="judgesmith.exports"
)


def of_answers() -> list[Answers]:
    """Return what annotators export, the more particular shapes first."""
    kinds = [one for one in exports.parts().values() if issubclass(one, Answers)]
    return [one() for one in sorted(kinds, key=lambda one: one.turn)]


def _results() -> list[Results]:
    return [one() for one in exports.parts().values() if issubclass(one, Results)]


def rows_of_results(data: Any, origin: str) -> list[Record] | None:
    """Return the rows of a result file as JSON; None for any other.

    Raises:
        LabelsError: With the row, for one that cannot be read.
    """
    if not isinstance(data, Mapping):
        return None
    for shape in _results():
        samples = shape.samples(data)
        if samples is not None:
            return [
                shape.row_of(sample, f"{origin}, row {number}")
                for number, sample in enumerate(samples, 1)
            ]
    return None


def row_reader() -> Callable[[Record, str], Record]:
    """Return a function that reads a line of JSON as a row: a tool's sample, or the record itself.

    It takes the record, and the file and its line for messages. It raises LabelsError if a sample has another form than
    its tool writes.
    """
    # Most tools have no lines, and each is asked for every line.
    shapes = [one for one in _results() if type(one).belongs is not Results.belongs]

    def row_of(record: Record, place: str) -> Record:
        for shape in shapes:
            if shape.belongs(record):
                return shape.row_of(record, place)
        return record

    return row_of


def cell_reader(column: str) -> Callable[[str], Any] | None:
    """Return how a tool's cells in a CSV column of this name are read; None for a column of no tool."""
    readers = (shape.cell_reader(column) for shape in _results())
    return next((reader for reader in readers if reader is not None), None)


def object_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that hold objects in the tables of an annotation tool; none for another table."""
    tables = (shape.objects for shape in of_answers() if shape.objects <= {*names})
    return [name for objects in tables for name in objects]
