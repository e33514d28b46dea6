"""`judgesmith score`: rows in, rows with verdicts out, written as they finish, resumed where they stopped."""

from __future__ import annotations

import csv
import itertools
import json
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from ..datasets.loading import iter_rows
from ..datasets.records import Row
from ..datasets.spreadsheets import guarded, unguarded
from ..errors import OptionError
from ..optimizers.seen import Seen
from ..programs.artifact import fingerprint
from ..programs.judge import Judge
from ..programs.models import engine
from ..signatures.values import Item, Verdict
from .alone import alone
from .console import Watch
from .plain import finite

#: What an output row has beside the input's own columns; an input column of that name gives way.
OURS = ("id", "verdict", "judge", "seen", "defer")
#: A lone surrogate, which broken JSON holds, is written as JSON's own escape for it.
SURROGATES = "backslashreplace"
#: Rows of an input, each with its record as it was read.
Rows = Iterator[tuple[Row, dict[str, Any]]]
#: Ids kept to tell duplicates, about 90 MB of them: memory must not grow with the rows without end.
MOST_IDS = 1_000_000


@dataclass(slots=True)
class ScoreSummary:
    """What a scoring run did. rows, scored, failed and repaired count the whole output file; `resumed` of them were
    there before. The texts of `suspicious` rows address a judge. `seen` rows were used to compile the judge: agreement
    measured on them means little. `duplicate_ids` rows have the id of a row before them, the first of these being
    `duplicate_example`; a row is compared with the first million ids."""

    rows: int = 0
    scored: int = 0
    failed: int = 0
    repaired: int = 0
    suspicious: int = 0
    resumed: int = 0
    seen: int = 0
    calls: int = 0
    cached_calls: int = 0
    seconds: float = 0.0
    failures: list[tuple[str, str]] = field(default_factory=list)
    duplicate_ids: int = 0
    duplicate_example: str | None = None
    _ids: set[bytes] = field(default_factory=set)

    def count(self, record: Mapping[str, Any]) -> None:
        """Count a row of the output."""
        self._compare(record["id"])
        verdict = record["verdict"]
        failure = verdict["failure"]
        self.rows += 1
        self.scored += not failure
        self.failed += bool(failure)
        self.repaired += bool(verdict["repaired"])
        self.suspicious += bool(verdict.get("suspicious"))
        self.seen += bool(record.get("seen"))
        if failure and len(self.failures) < 1000:
            self.failures.append((record["id"], failure))

    def _compare(self, identity: str) -> None:
        # Eight bytes: among a million ids two have the same by chance once in forty million files.
        mark = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        if mark in self._ids:
            self.duplicate_ids += 1
            self.duplicate_example = self.duplicate_example or identity
        elif len(self._ids) < MOST_IDS:
            self._ids.add(mark)

    def to_dict(self) -> dict[str, Any]:
        names = (
            "rows", "scored", "failed", "repaired", "suspicious", "resumed", "seen", "duplicate_ids",
            "duplicate_example", "calls", "cached_calls",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names} | {
            "seconds": round(self.seconds, 2),
            "failures": [{"id": i, "reason": r} for i, r in self.failures],
        }


class Sink(Protocol):
    """An output file that grows by one row at a time."""

    def existing(self) -> Iterator[dict[str, Any]]:
        """The complete rows that are there, as they were written."""
        ...

    def write(self, record: Mapping[str, Any]) -> None:
        """Raises OptionError where the file cannot be written. A half row at its end is taken away by the next run."""
        ...

    def close(self) -> None: ...


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OptionError(
            f"{path} cannot be written: {error.strerror or error}; the rows in it are kept, the same command goes on "
            "from there"
        ) from None


class JsonlSink:
    def __init__(self, path: Path, *, append: bool) -> None:
        self.path = path
        if append and self._ours():
            _drop_half_line(path)
        self._file: IO[str] = path.open("a" if append else "w", encoding="utf-8", errors=SURROGATES)

    def _ours(self) -> bool:
        """Whether the file is an output of ours, so that its last line may be cut off if it is a half one. A file that
        is only half a line can be told by its beginning alone."""
        with self.path.open("rb") as file:
            first = file.readline()
        try:
            record = json.loads(first)
        except ValueError:
            return first.startswith(b'{"') and not first.endswith(b"\n")
        return isinstance(record, dict) and "verdict" in record and "judge" in record

    def existing(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = json.loads(line)
                except ValueError as error:
                    record, why = None, f"no JSON ({getattr(error, 'msg', error)})"
                else:
                    why = "no JSON object"
                if not isinstance(record, dict):
                    raise OptionError(
                        f"{self.path.name}, line {number}: {why}; this is no output of `judgesmith score`. "
                        "Give another -o, or --overwrite"
                    )
                yield record

    def write(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(finite(record), ensure_ascii=False, allow_nan=False, default=str)
        with _writing(self.path):
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        with _writing(self.path):
            self._file.close()


class CsvSink:
    """Flat columns: the input's own, then judge_score, judge_explanation, judge_failure, judge."""

    COLUMNS = (
        "judge_score", "judge_explanation", "judge_failure", "judge_repaired", "judge_seen", "judge_id", "judge",
        "judge_suspicious", "judge_low", "judge_high",
    )  # fmt: skip
    #: By which an output is known; those of earlier versions have no other columns.
    KNOWN_BY = frozenset(COLUMNS[:7])

    def __init__(self, path: Path, *, append: bool) -> None:
        self.path = path
        self._writer: csv.DictWriter[str] | None = None
        if append and set(_csv_header(path) or ()) >= self.KNOWN_BY:
            _drop_half_row(path)
        mode = "a" if append else "w"
        self._file: IO[str] = path.open(mode, encoding="utf-8", newline="", errors=SURROGATES)
        self._header = _csv_header(path) if append else None

    def existing(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8", newline="") as file:
            csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))  # the default refuses texts over 128 KiB
            rows = csv.DictReader(file)
            if not set(self._header or ()) >= self.KNOWN_BY:
                raise OptionError(
                    f"{self.path.name} is no output of `judgesmith score`; give another -o, or --overwrite"
                )
            for row in rows:
                failure = row["judge_failure"] or None
                yield {
                    **{unguarded(k): unguarded(v) for k, v in row.items() if k not in self.COLUMNS},
                    "id": unguarded(row["judge_id"]),
                    "judge": row["judge"],
                    "seen": row["judge_seen"] == "yes",
                    "verdict": {
                        "failure": failure,
                        "repaired": row["judge_repaired"] == "yes",
                        "suspicious": row.get("judge_suspicious"),
                    },
                }

    def write(self, record: Mapping[str, Any]) -> None:
        verdict = record["verdict"]
        flat = {k: v for k, v in record.items() if k not in ("verdict", "judge", "seen")}
        if self._writer is None:
            columns = self._header or [*(k for k in map(_cell, flat) if k not in self.COLUMNS), *self.COLUMNS]
            self._writer = csv.DictWriter(self._file, columns, extrasaction="ignore")
            if self._header is None:
                with _writing(self.path):
                    self._writer.writeheader()
        elif late := [name for name in flat if _cell(name) not in self._writer.fieldnames]:
            raise OptionError(
                f"row {record['id']!r} has {late[0]!r}, which the first row does not have: a .csv cannot take it; "
                "name the output .jsonl"
            )
        flat |= {
            "judge_score": verdict["score"],
            "judge_explanation": verdict["explanation"],
            "judge_failure": verdict["failure"] or "",
            "judge_repaired": "yes" if verdict["repaired"] else "",
            "judge_suspicious": verdict["suspicious"] or "",
            "judge_low": (verdict.get("interval") or {}).get("low", ""),
            "judge_high": (verdict.get("interval") or {}).get("high", ""),
            "judge_seen": "yes" if record.get("seen") else "",
            "judge_id": record["id"],
            "judge": record["judge"],
        }
        with _writing(self.path):
            self._writer.writerow({_cell(k): _cell(v) for k, v in flat.items()})
            self._file.flush()

    def close(self) -> None:
        with _writing(self.path):
            self._file.close()


def _cell(value: Any) -> Any:
    """A value as the cell of a CSV file."""
    return guarded(_plain(value)) if isinstance(value, str | list | dict) else value


def _csv_header(path: Path) -> list[str] | None:
    """The names in the first row, which may go over several lines; None where there is no whole first row."""
    read: list[str] = []

    def kept(line: str) -> str:
        read.append(line)
        return line

    with path.open(encoding="utf-8", newline="", errors="replace") as file:
        try:
            names = next(csv.reader(map(kept, file)), None)
        except csv.Error:  # no CSV at all
            return None
    return names if read and read[-1].endswith("\n") else None


def _drop_half_row(path: Path) -> None:
    """The same for CSV, where a line break inside quotes ends no row."""
    with path.open("rb+") as file:
        place = whole = quotes = 0
        for line in file:
            place += len(line)
            quotes += line.count(b'"')
            if quotes % 2 == 0 and line.endswith(b"\n"):
                whole = place
        file.truncate(whole)


def _drop_half_line(path: Path) -> None:
    """A killed run may have left half a line: it is taken away, its row is judged again."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        place = size
        while place > 0:
            start = max(0, place - 65536)
            file.seek(start)
            found = file.read(place - start).rfind(b"\n")
            if found >= 0:
                file.truncate(start + found + 1)
                return
            place = start
        file.truncate(0)


def _sink(path: Path, *, append: bool) -> Sink:
    kinds: dict[str, type[JsonlSink] | type[CsvSink]] = {".jsonl": JsonlSink, ".csv": CsvSink}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise OptionError(f"{path.name}: scores are written as .jsonl or .csv; name the output so")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return kind(path, append=append)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from None


Existing = Literal["continue", "overwrite", "retry failed"]


def score_file(
    judge: Judge,
    source: Path,
    output: Path,
    *,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    existing: Existing = "continue",
    raw: bool = False,
    watch: Watch | None = None,
) -> ScoreSummary:
    """Judge every row of a file. An output that is there already is continued, if the same judge wrote it from the
    same rows; with "retry failed" its failed rows are judged again instead. A judge of whole documents (`PairS`) takes
    all rows together: an output that is not finished is written anew then, with calls answered before taken from the
    disk. raw: keep the model's own words. watch: is told of every row.

    Raises LabelsError for a broken input line (rows before it are written, but none by a judge of whole documents),
    OptionError for an output that belongs to another judge or input, ModelError where the model cannot be used.
    """
    if output.exists() and source.exists() and output.samefile(source):
        raise OptionError(f"{output} is the input; give another -o")
    with alone(output):
        run = _Run(judge, output, raw, watch)
        started, before = time.monotonic(), judge.lm.meter.usage
        rows: Rows = itertools.islice(iter_rows(source, columns=columns), limit)
        there = output.exists() and existing != "overwrite" and output.stat().st_size > 0
        # A model that is not there, or an input that cannot be read, must not cost an output that is.
        engine.run(judge.prepare(judge.lm))
        rows = itertools.chain(list(itertools.islice(rows, 1)), rows)
        try:
            if existing == "retry failed":
                if not there:
                    raise OptionError(f"{output} does not exist: there are no failed rows to try again")
                run.again(rows)
            else:
                if judge.whole_documents and there:
                    every = list(rows)
                    rows, there = iter(every), run.finished(every)
                run.onwards(rows, there)
        finally:
            spent = judge.lm.meter.usage - before
            run.summary.calls, run.summary.cached_calls = spent.calls, spent.cached
            run.summary.seconds = time.monotonic() - started
    return run.summary


class _Run:
    """A judge writing its verdicts into an output."""

    def __init__(self, judge: Judge, output: Path, raw: bool, watch: Watch | None) -> None:
        self.judge, self.output, self.raw, self.watch = judge, output, raw, watch
        self.mark = fingerprint(judge)
        self.known = Seen(judge.provenance)
        self.summary = ScoreSummary()

    def finished(self, rows: Sequence[tuple[Row, dict[str, Any]]]) -> bool:
        """Whether the output has all rows. Raises OptionError for one of another judge or input."""
        sink = _sink(self.output, append=True)
        sink.close()
        there = 0
        for old in sink.existing():
            self._same(old, rows[there] if there < len(rows) else None)
            there += 1
        return there == len(rows)

    def onwards(self, rows: Rows, there: bool) -> None:
        """Judge the rows that the output does not have yet."""
        sink = _sink(self.output, append=there)
        try:
            for old in sink.existing() if there else ():
                self._same(old, next(rows, None))
                self._count(old, resumed=True)
            for row, record, verdict in _judged(self.judge, rows):
                self._write(sink, self._record(row, record, verdict))
        finally:
            sink.close()

    def again(self, rows: Rows) -> None:
        """Rewrite the output beside itself with its failed rows, and those it does not have yet, judged (all rows,
        where a judge takes whole documents), then put it in the old one's place."""
        if self.output.suffix.lower() != ".jsonl":
            raise OptionError("--retry-failed works on .jsonl outputs; score the .csv anew with --overwrite")
        old_sink = _sink(self.output, append=True)
        old_sink.close()
        beside = self.output.with_name(f".{self.output.stem}.again{self.output.suffix}")
        sink = _sink(beside, append=False)
        try:
            first, second = itertools.tee(self._paired(old_sink.existing(), rows))
            verdicts = _judged(self.judge, ((row, record) for old, row, record in first if not self._keeps(old)))
            for old, _, _ in second:
                if old is not None and self._keeps(old):
                    self._write(sink, old, resumed=True)
                else:
                    self._write(sink, self._record(*next(verdicts)))
            sink.close()
            beside.replace(self.output)
        finally:
            try:
                sink.close()
            finally:  # on a full disk, closing fails as writing did
                with suppress(OSError):
                    beside.unlink(missing_ok=True)

    def _paired(
        self, there: Iterator[dict[str, Any]], rows: Rows
    ) -> Iterator[tuple[dict[str, Any] | None, Row, dict[str, Any]]]:
        """The rows of the input, each with what the output has of it."""
        for old in there:
            new = next(rows, None)
            self._same(old, new)
            assert new is not None
            yield old, *new
        for new in rows:
            yield None, *new

    def _keeps(self, old: dict[str, Any] | None) -> bool:
        return old is not None and not old["verdict"]["failure"] and not self.judge.whole_documents

    def _write(self, sink: Sink, record: Mapping[str, Any], *, resumed: bool = False) -> None:
        sink.write(record)
        self._count(record, resumed=resumed)

    def _count(self, record: Mapping[str, Any], *, resumed: bool) -> None:
        self.summary.count(record)
        self.summary.resumed += resumed
        if self.watch is not None:
            self.watch.step()

    def _record(self, row: Row, record: Mapping[str, Any], verdict: Verdict) -> dict[str, Any]:
        return {
            **finite(record),
            "id": row.id,
            "verdict": verdict.to_dict(raw=self.raw or verdict.failure is not None),
            "judge": self.mark,
            "seen": self.known.knows(row.source, row.output),
        }

    def _same(self, old: Mapping[str, Any], new: tuple[Row, dict[str, Any]] | None) -> None:
        """Raises OptionError unless `old` is what this judge wrote for this very row."""
        verdict, name = old.get("verdict"), self.output.name
        ours = isinstance(verdict, dict) and {"failure", "repaired"} <= set(verdict) and {"id", "judge"} <= set(old)
        if not ours:
            raise OptionError(f"{name} is no output of `judgesmith score`; give another -o, or --overwrite")
        if old["judge"] != self.mark:
            raise OptionError(
                f"{name} was written by judge {old['judge']}, this one is {self.mark}; give another -o, or --overwrite"
            )
        if new is None or _plain(new[0].id) != _plain(old["id"]):
            there = "the end of the input" if new is None else f"{new[0].id!r}"
            raise OptionError(
                f"{name} has row {old['id']!r} where the input has {there}; it belongs to another input. "
                "Give another -o, or --overwrite"
            )
        # Ids are often only line numbers: what the row says has to be the same, too.
        for column, value in finite(new[1]).items():
            if column in old and column not in OURS and _plain(old[column]) != _plain(value):
                raise OptionError(
                    f"{name}, row {old['id']!r}: {column!r} is not what the input has; it belongs to another input, "
                    "or the input was changed. Give another -o, or --overwrite"
                )


def _judged(judge: Judge, rows: Rows) -> Iterator[tuple[Row, dict[str, Any], Verdict]]:
    under_way: deque[tuple[Row, dict[str, Any]]] = deque()

    def items() -> Iterator[Item]:
        for row, record in rows:
            under_way.append((row, record))
            yield Item(row.output, row.source, row.context, row.reference, row.group or None)

    for verdict in judge.score_many(items()):
        row, record = under_way.popleft()
        yield row, record, verdict


def _plain(value: Any) -> str:
    """A value as text that is the same whether it went through JSON, through CSV or through neither."""
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)
    return text.encode("utf-8", SURROGATES).decode()


__all__ = ["ScoreSummary", "score_file"]
