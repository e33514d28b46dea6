"""`judgesmith score`: rows in, rows with verdicts out, written as they finish, resumed where they stopped."""

from __future__ import annotations

import csv
import itertools
import json
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from ..datasets.loading import iter_rows
from ..datasets.records import Row
from ..datasets.spreadsheets import guarded, unguarded
from ..errors import OptionError, OutageError
from ..optimizers.seen import Seen
from ..programs import artifact
from ..programs.artifact import fingerprint
from ..programs.judge import Judge
from ..programs.models import engine
from ..programs.models.lm import Connection, Meter
from ..programs.prompting.suspicion import guarded as without_attacks
from ..running.alone import alone
from ..running.console import Watch
from ..running.limits import SAMPLED, Estimate, Limits, estimate
from ..running.plain import finite
from ..signatures.values import Item, Verdict

#: What an output row has beside the input's own columns; an input column of that name gives way.
OURS = ("id", "verdict", "judge", "seen")
#: A lone surrogate, which broken JSON holds, is written as JSON's own escape for it.
SURROGATES = "backslashreplace"
#: Ids kept to tell duplicates, about 90 MB of them: memory must not grow with the rows without end.
MOST_IDS = 1_000_000
#: Failed rows that wait to be written, until one has a score.
MOST_HELD = 100


@dataclass(slots=True)
class ScoreSummary:
    """What a scoring run did. rows, scored, failed and repaired count the whole output file; `resumed` of them were
    there before, `new_failed` failed in this run. calls, tokens and cost (dollars, None where a price is unknown) are
    of calls that this run sent. The texts of `suspicious` rows address a judge. `seen` rows were used to compile the
    judge: agreement measured on them means little. `duplicate_ids` rows have the id of a row before them, the first of
    these being `duplicate_example`; a row is compared with the first million ids."""

    rows: int = 0
    scored: int = 0
    failed: int = 0
    repaired: int = 0
    suspicious: int = 0
    resumed: int = 0
    seen: int = 0
    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    new_failed: int = 0
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

    @contextmanager
    def counting(self, meter: Meter) -> Iterator[None]:
        """Takes calls, tokens, dollars and seconds of the block."""
        started, before, paid = time.monotonic(), meter.usage, meter.paid
        try:
            yield
        finally:
            spent = meter.usage - before
            self.calls, self.cached_calls = spent.calls, spent.cached
            self.prompt_tokens, self.completion_tokens = spent.prompt_tokens, spent.completion_tokens
            self.cost = None if meter.paid is None or paid is None else meter.paid - paid
            self.seconds = time.monotonic() - started

    def to_dict(self) -> dict[str, Any]:
        names = (
            "rows", "scored", "failed", "repaired", "suspicious", "resumed", "seen", "duplicate_ids",
            "duplicate_example", "calls", "cached_calls", "prompt_tokens", "completion_tokens",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names} | {
            "cost": None if self.cost is None else round(self.cost, 6),
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
            f"{path} cannot be written: {error.strerror or error}; the rows in it are kept, the same command resumes "
            "from there"
        ) from None


class JsonlSink:
    def __init__(self, path: Path, *, append: bool) -> None:
        self.path = path
        if append and self._ours():
            drop_half_line(path)
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
                    record, why = None, f"not JSON ({getattr(error, 'msg', error)})"
                else:
                    why = "no JSON object"
                if not isinstance(record, dict):
                    raise OptionError(
                        f"{self.path.name}, line {number}: {why}; this is not an output of `judgesmith score`. "
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
    """Flat columns: the input's own, then the verdict's; criteria and errors are JSON in one cell. The verdict on an
    aspect, of a judge of several, has columns of its own: judge_score.ASPECT and so on."""

    COLUMNS = (
        "judge_score", "judge_explanation", "judge_failure", "judge_repaired", "judge_seen", "judge_id", "judge",
        "judge_suspicious", "judge_category", "judge_low", "judge_high", "judge_criteria", "judge_spread",
        "judge_errors", "judge_aspect",
    )  # fmt: skip
    #: Of each aspect.
    OF_ASPECT = ("judge_score", "judge_explanation", "judge_failure", "judge_category", "judge_low", "judge_high")
    #: By which an output is known; those of earlier versions have fewer columns.
    KNOWN_BY = frozenset(COLUMNS[:7])

    def __init__(self, path: Path, *, append: bool) -> None:
        self.path = path
        self._writer: csv.DictWriter[str] | None = None
        if append and set(_csv_header(path) or ()) >= self.KNOWN_BY:
            _drop_half_row(path)
        self._new = not append
        mode = "a" if append else "w"
        self._file: IO[str] = path.open(mode, encoding="utf-8", newline="", errors=SURROGATES)
        self._header = _csv_header(path) if append else None

    def existing(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8", newline="") as file:
            csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))  # the default refuses texts over 128 KiB
            rows = csv.DictReader(file)
            if not set(self._header or ()) >= self.KNOWN_BY:
                raise OptionError(
                    f"{self.path.name} is not an output of `judgesmith score`; give another -o, or --overwrite"
                )
            for row in rows:
                failure = row["judge_failure"] or None
                yield {
                    **{unguarded(k): unguarded(v) for k, v in row.items() if not self._is_ours(k)},
                    "id": unguarded(row["judge_id"]),
                    "judge": row["judge"],
                    "seen": row["judge_seen"] == "yes",
                    "verdict": {
                        "failure": failure,
                        "repaired": row["judge_repaired"] == "yes",
                        "suspicious": row.get("judge_suspicious"),
                    },
                }

    def _is_ours(self, column: str) -> bool:
        return column in self.COLUMNS or column.partition(".")[0] in self.OF_ASPECT

    def write(self, record: Mapping[str, Any]) -> None:
        verdict = record["verdict"]
        flat = {k: v for k, v in record.items() if k not in ("verdict", "judge", "seen")}
        ours = _flat(verdict)
        for name, part in (verdict.get("aspects") or {}).items():
            told = _flat(part)
            ours |= {_cell(f"{column}.{name}"): told[column] for column in self.OF_ASPECT}
        if self._writer is None:
            own = dict.fromkeys([*self.COLUMNS, *ours])
            columns = self._header or [*(k for k in map(_cell, flat) if k not in own), *own]
            self._writer = csv.DictWriter(self._file, columns, extrasaction="ignore")
            if self._header is None:
                with _writing(self.path):
                    self._writer.writeheader()
        elif late := [name for name in flat if _cell(name) not in self._writer.fieldnames]:
            raise OptionError(
                f"row {record['id']!r} has {late[0]!r}, which the first row does not have: a .csv cannot take it; "
                "name the output .jsonl"
            )
        told = {"judge_seen": "yes" if record.get("seen") else "", "judge_id": record["id"], "judge": record["judge"]}
        flat |= ours | told
        with _writing(self.path):
            self._writer.writerow({_cell(k): _cell(v) for k, v in flat.items()})
            self._file.flush()

    def close(self) -> None:
        try:
            with _writing(self.path):
                self._file.close()
        finally:
            # On a full disk: half a first row says nothing, not even whose file it is.
            if self._new and _csv_header(self.path) is None:
                with suppress(OSError):
                    os.truncate(self.path, 0)


def _flat(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """A verdict as cells, by column."""
    interval = verdict.get("interval") or {}
    return {
        "judge_score": verdict["score"],
        "judge_explanation": verdict["explanation"],
        "judge_failure": verdict["failure"] or "",
        "judge_repaired": "yes" if verdict["repaired"] else "",
        "judge_suspicious": verdict["suspicious"] or "",
        "judge_low": interval.get("low", ""),
        "judge_high": interval.get("high", ""),
        "judge_criteria": verdict["criteria"] or "",
        "judge_spread": verdict.get("spread"),
        "judge_errors": verdict["errors"] or "",
        "judge_category": verdict.get("category") or "",
        "judge_aspect": verdict.get("aspect") or "",
    }


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


def drop_half_line(path: Path) -> None:
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
        raise OptionError(f"{path.name}: scores are written as .jsonl or .csv; name such an output")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return kind(path, append=append)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from None


Existing = Literal["continue", "overwrite", "retry failed"]
Rows = Iterator[tuple[Row, dict[str, Any]]]


@dataclass(slots=True)
class Run:
    """One run over some rows: who judges, where the rows go, what was counted. `watch` counts every row."""

    judge: Judge
    output: Path
    raw: bool = False
    watch: Watch | None = None
    limits: Limits = field(default_factory=Limits)
    summary: ScoreSummary = field(default_factory=ScoreSummary)
    mark: str = ""
    known: Seen = field(default_factory=Seen)
    aspect: str = ""

    def __post_init__(self) -> None:
        self.mark = fingerprint(self.judge)
        self.aspect = self.judge.judges_aspect
        self.known = Seen(self.judge.provenance)

    def kept(self, old: Mapping[str, Any]) -> None:
        """A row that was there."""
        self.summary.count(old)
        self.summary.resumed += 1
        if self.watch is not None:
            self.watch.step(there=True)

    def made(self, row: Row, record: Mapping[str, Any], verdict: Verdict) -> dict[str, Any]:
        """A row that was judged now. Raises BudgetError where too many have failed."""
        told = verdict.to_dict(raw=self.raw or verdict.failure is not None)
        made = {
            **finite(record),
            "id": row.id,
            "verdict": told | ({"aspect": self.aspect} if self.aspect else {}),
            "judge": self.mark,
            "seen": self.known.knows(row.source, row.output),
        }
        self.summary.count(made)
        self.summary.new_failed += bool(verdict.failure)
        return made

    def step(self, verdict: Verdict) -> None:
        """Counted and written. Raises BudgetError where too many have failed."""
        if self.watch is not None:
            paid = self.judge.lm.meter.paid
            cost = [f"${paid:.2f}"] if paid else []
            self.watch.tell(", ".join([*([f"{self.summary.failed} failed"] if self.summary.failed else []), *cost]))
            self.watch.step()
        self.limits.check(self.summary.new_failed, self.summary.rows - self.summary.resumed, verdict.failure)


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
    """Judge every row of a file. existing: an output that exists already is continued, if the same judge wrote it
    from the same rows; or it is overwritten, or its failed rows are judged again. A judge of whole documents (`PairS`)
    takes all rows together: an output that is not finished is then written again, with calls answered before taken from
    the disk.

    Raises LabelsError for a broken input line (rows before it are written, but none by a judge of whole documents),
    OptionError for an output that belongs to another judge or input, ModelError where the model cannot be used,
    OutageError where it answers no more.
    """
    run = Run(judge, output, raw, watch)
    return score_rows(run, rows_for(output, source, columns=columns, limit=limit), existing)


def rows_for(output: Path, source: Path, *, columns: Mapping[str, str] | None = None, limit: int | None = None) -> Rows:
    """The rows of a file that are to be scored into another. Raises OptionError where it is the same."""
    if output.exists() and source.exists() and output.samefile(source):
        raise OptionError(f"{output} is the input; give another -o")
    return itertools.islice(iter_rows(source, columns=columns), limit)


def plan(
    path: Path,
    lm: str | None,
    where: Connection | None,
    source: Path,
    *,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Estimate:
    """What scoring a file with a saved judge would take, whatever was scored before. Calls and opens no model."""
    read = artifact.read(path)
    sample: list[Item] = []
    count = 0
    for row, _ in itertools.islice(iter_rows(source, columns=columns), limit):
        count += 1
        if len(sample) < SAMPLED:
            sample.append(without_attacks(item_of(row))[0])
    return estimate(artifact.build(read), lm or (read.lm.model if read.lm else None), count, sample, where)


def score_rows(run: Run, rows: Rows, existing: Existing = "continue") -> ScoreSummary:
    """`score_file` over rows that are there. Raises also BudgetError over the limits."""
    judge, output = run.judge, run.output
    with alone(output), run.limits.spending(judge.lm), run.summary.counting(judge.lm.meter):
        there = output.exists() and existing != "overwrite" and output.stat().st_size > 0
        # A model that is not there, or an input that cannot be read, must not cost an output that is.
        engine.run(judge.prepare(judge.lm))
        rows = itertools.chain(list(itertools.islice(rows, 1)), rows)
        if existing == "retry failed" and not there:
            raise OptionError(f"{output} does not exist: there are no failed rows to try again")
        if judge.whole_documents and there and existing == "continue":
            every = list(rows)
            rows, there = iter(every), _finished(output, every, run.mark)
        if existing == "retry failed":
            _again(run, rows)
        else:
            _onwards(run, rows, there)
    return run.summary


def _finished(output: Path, rows: list[tuple[Row, dict[str, Any]]], mark: str) -> bool:
    """Whether an output has all rows. Raises OptionError for one of another judge or input."""
    sink = _sink(output, append=True)
    sink.close()
    there = 0
    for old in sink.existing():
        _same(output, old, rows[there] if there < len(rows) else None, mark)
        there += 1
    return there == len(rows)


def _onwards(run: Run, rows: Rows, there: bool) -> None:
    sink = _sink(run.output, append=there)
    # Failed rows at the end: should the server turn out to be down, they are judged again by the next run.
    held: list[dict[str, Any]] = []

    def write_held() -> None:
        while held:
            sink.write(held.pop(0))

    try:
        if there:
            for old in sink.existing():
                _same(run.output, old, next(rows, None), run.mark)
                run.kept(old)
        for row, record, verdict in _judged(run.judge, rows):
            held.append(run.made(row, record, verdict))
            if verdict.failure is None or len(held) >= MOST_HELD:
                write_held()
            run.step(verdict)
    except OutageError:
        held.clear()
        raise
    finally:
        try:
            write_held()
        finally:
            sink.close()


def _again(run: Run, rows: Rows) -> None:
    """Rewrite the output beside itself with its failed rows, and those it does not have yet, judged (all rows, where a
    judge takes whole documents), then put it in the old one's place."""
    judge, output, mark = run.judge, run.output, run.mark
    if output.suffix.lower() != ".jsonl":
        raise OptionError("--retry-failed works on .jsonl outputs; score the .csv again with --overwrite")
    old_sink = _sink(output, append=True)
    old_sink.close()
    beside = output.with_name(f".{output.stem}.again{output.suffix}")
    sink = _sink(beside, append=False)

    def paired() -> Iterator[tuple[dict[str, Any] | None, Row, dict[str, Any]]]:
        for old in old_sink.existing():
            new = next(rows, None)
            _same(output, old, new, mark)
            assert new is not None
            yield old, *new
        for new in rows:
            yield None, *new

    def kept(old: dict[str, Any] | None) -> bool:
        return old is not None and not old["verdict"]["failure"] and not judge.whole_documents

    try:
        first, second = itertools.tee(paired())
        failed = ((row, record) for old, row, record in first if not kept(old))
        verdicts = _judged(judge, failed)
        for old, row, _ in second:
            if old is not None and kept(old):
                sink.write(old)
                run.kept(old)
            else:
                row, record, verdict = next(verdicts)
                sink.write(run.made(row, record, verdict))
                run.step(verdict)
        sink.close()
        beside.replace(output)
    finally:
        try:
            sink.close()
        finally:  # on a full disk, closing fails as writing did
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def _judged(judge: Judge, rows: Rows) -> Iterator[tuple[Row, dict[str, Any], Verdict]]:
    under_way: deque[tuple[Row, dict[str, Any]]] = deque()

    def items() -> Iterator[Item]:
        for row, record in rows:
            under_way.append((row, record))
            yield item_of(row)

    for verdict in judge.score_many(items(), progress=False):
        row, record = under_way.popleft()
        yield row, record, verdict


def item_of(row: Row) -> Item:
    """A row as a judge takes it."""
    return Item.of(row)


def _same(output: Path, old: Mapping[str, Any], new: tuple[Row, dict[str, Any]] | None, mark: str) -> None:
    """Raises OptionError unless `old` is what this judge wrote for this very row."""
    verdict = old.get("verdict")
    if not isinstance(verdict, dict) or not {"failure", "repaired"} <= set(verdict) or not {"id", "judge"} <= set(old):
        raise OptionError(f"{output.name} is not an output of `judgesmith score`; give another -o, or --overwrite")
    if old["judge"] != mark:
        raise OptionError(
            f"{output.name} was written by judge {old['judge']}, this one is {mark}; give another -o, or --overwrite"
        )
    if new is None or _plain(new[0].id) != _plain(old["id"]):
        there = "the end of the input" if new is None else f"{new[0].id!r}"
        raise OptionError(
            f"{output.name} has row {old['id']!r} where the input has {there}; it belongs to another input. "
            "Give another -o, or --overwrite"
        )
    # Ids are often only line numbers: what the row says has to be the same, too.
    for name, value in finite(new[1]).items():
        if name in old and name not in OURS and _plain(old[name]) != _plain(value):
            raise OptionError(
                f"{output.name}, row {old['id']!r}: {name!r} is not what the input has; it belongs to another input, "
                "or the input was changed. Give another -o, or --overwrite"
            )


def _plain(value: Any) -> str:
    """A value as text that is the same whether it went through JSON, through CSV or through neither."""
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)
    return text.encode("utf-8", SURROGATES).decode()


__all__ = ["Run", "ScoreSummary", "drop_half_line", "item_of", "plan", "score_file", "score_rows"]
