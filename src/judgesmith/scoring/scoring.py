"""`judgesmith score`: rows in, rows with verdicts out, written as they finish, resumed where they stopped."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from judgesmith.agreement.conformal import deferred
from judgesmith.datasets.formats import written_as
from judgesmith.datasets.loading import Compared, iter_rows, read_compared
from judgesmith.datasets.roles import unusual
from judgesmith.datasets.row import Row
from judgesmith.errors import OptionError, OutageError
from judgesmith.optimizers.examples import numbers_of
from judgesmith.optimizers.seen import Seen
from judgesmith.programs import artifact, loading
from judgesmith.programs.artifact import digest, fingerprint
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.models.price import Meter
from judgesmith.programs.outcome import FAR
from judgesmith.programs.prompting.predict import SECOND, TWICE
from judgesmith.rows import WRITTEN
from judgesmith.running.console import Watch
from judgesmith.running.estimates import SAMPLED, Estimate, estimate
from judgesmith.running.journal import Journal, alone, read_journal, replacing
from judgesmith.running.limits import Limits
from judgesmith.running.plain import finite
from judgesmith.running.trust import Trust
from judgesmith.scoring.tables import ADDED, write_table
from judgesmith.signatures.values import Verdict

OURS_IN_WORDS = "an output of `judgesmith score`"
#: Failed rows that wait to be written, until one has a score.
MOST_HELD = 100


@dataclass(slots=True)
class ScoreSummary:
    """Result of a scoring run.

    Counts of rows are of the whole output, those of calls of this run.
    """

    rows: int = 0
    scored: int = 0
    failed: int = 0
    repaired: int = 0
    again: int = 0
    """Rows for which an answer could not be read, and the model was asked again."""
    suspicious: int = 0
    """Rows whose texts address a judge."""
    partly: int = 0
    """Rows of whose texts not all was read."""
    far: int = 0
    """Rows unlike all that the judge learnt from: their scores have no interval."""
    resumed: int = 0
    """Rows that an earlier run wrote."""
    seen: int = 0
    """Rows that the judge was compiled from: agreement measured on them means little."""
    resembling: int = 0
    """Rows whose output is nearly equal to a labelled one that was written for another source."""
    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prefix_tokens: int = 0
    """Those of the prompts that the provider took from its cache, at a lower price."""
    cost: float | None = None
    """Dollars; None where a price is unknown."""
    seconds: float = 0.0
    new_failed: int = 0
    """Rows that failed in this run."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """(id, reason) of the first thousand."""

    def count(self, record: Mapping[str, Any]) -> None:
        """Count a row of the output."""
        verdict = record["verdict"]
        failure = verdict["failure"]
        self.rows += 1
        self.scored += not failure
        self.failed += bool(failure)
        self.repaired += bool(verdict["repaired"])
        self.again += SECOND in verdict.get("notes", ()) or TWICE in (failure or "")
        self.suspicious += bool(verdict.get("suspicious"))
        self.partly += bool(verdict.get("partly"))
        self.far += any(note.startswith(FAR) for note in verdict.get("notes") or ())
        self.seen += bool(record.get("seen"))
        self.resembling += bool(record.get("resembles"))
        if failure and len(self.failures) < 1000:
            self.failures.append((record["id"], failure))

    @contextmanager
    def counting(self, meter: Meter) -> Iterator[None]:
        """Record calls, tokens, dollars and seconds of the enclosed block."""
        started = time.monotonic()
        before = meter.usage
        paid = meter.paid
        try:
            yield
        finally:
            spent = meter.usage - before
            self.calls = spent.calls
            self.cached_calls = spent.cached
            self.prompt_tokens = spent.prompt_tokens
            self.completion_tokens = spent.completion_tokens
            self.prefix_tokens = spent.prefix_tokens
            if meter.paid is None or paid is None:
                self.cost = None
            else:
                self.cost = meter.paid - paid
            self.seconds = time.monotonic() - started

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        data = asdict(self)
        del data["new_failed"]
        return data | {
            "cost": None if self.cost is None else round(self.cost, 6),
            "seconds": round(self.seconds, 2),
            "failures": [{"id": i, "reason": r} for i, r in self.failures],
        }


Existing = Literal["continue", "overwrite", "retry failed"]
Rows = Iterator[
    tuple[Any, dict[str, Any]]
]  # a row, or two outputs that are compared (`Compared`)


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer depends on beside the judge: the model with its address, the texts, and options of the run.

    As text: `SERVER-TEXTS`, and behind it `-NAME:VALUE+NAME:VALUE` where options were set; each is a digest but for the
    names. Before, `-explained` stood for `--explain`.
    """

    server: str
    texts: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        options = "+".join(f"{name}:{value}" for name, value in self.options.items())
        return "-".join(filter(None, (self.server, self.texts, options)))

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the text of a row.

        >>> Asked.of("1a2b-3c4d-tag:5e6f").options
        {'tag': '5e6f'}
        """
        server, _, rest = text.partition("-")
        texts, _, options = rest.partition("-")
        if options == "explained":
            return cls(server, texts, {"explain": digest(True)[:8]})
        named = [option.partition(":") for option in options.split("+") if option]
        return cls(server, texts, {name: value for name, _, value in named})

    def changed(self, now: Asked) -> str:
        """Return which option is another now, in words; "" if none is."""
        for name in dict.fromkeys((*self.options, *now.options)):
            if self.options.get(name) == now.options.get(name):
                continue
            option = f"--{name.replace('_', '-')}"
            if name not in self.options:
                return f"without {option}"
            return f"with another {option}" if name in now.options else f"with {option}"
        return ""


@dataclass(slots=True)
class Run:
    """One run over some rows: who judges, where the rows go, what was counted. `watch` counts every row."""

    judge: Judge
    output: Path
    raw: bool = False
    watch: Watch | None = None
    limits: Limits = field(default_factory=Limits)
    summary: ScoreSummary = field(default_factory=ScoreSummary)
    total: int | None = None
    """Rows of the input, where that is known."""
    any_server: bool = False
    """Rows that are there may come from the same model at another address."""
    ahead: Callable[[list[Any]], None] | None = None
    """Is given all rows that are to be judged before the first of them is (`--batch`)."""
    emit: Callable[[Mapping[str, Any]], None] | None = None
    """Is given each row that was judged now (`--otel`)."""
    name: str = ""
    """The name of the judge's file."""
    mark: str = ""
    server: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What each row tells of its judge."""
    known: Seen = field(default_factory=Seen)
    aspect: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options whose values must stay when the run resumes, by their spelling, without defaults."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Their values as marks of rows have them."""

    def __post_init__(self) -> None:
        self.mark = fingerprint(self.judge)
        self.server = digest([self.judge.lm.name, self.judge.lm.identity])[:8]
        self.aspect = self.judge.judges_aspect
        self.told = Trust.of(self.judge, self.name).to_dict()
        self.known = Seen(self.judge.provenance)
        self.chosen = {
            name.lstrip("-").replace("-", "_"): digest(value)[:8]
            for name, value in sorted(self.options.items())
        }

    def asked(self, row: Row | Compared) -> str:
        """What the row's answer depends on beside the judge: the model with its address, then the texts."""
        texts = [
            [r.output, r.source, r.context, r.reference, r.group] for r in _outputs(row)
        ]
        return str(Asked(self.server, digest(texts), self.chosen))

    def kept(self, old: Mapping[str, Any]) -> None:
        """Count a row that the output has already."""
        self.summary.count(old)
        self.summary.resumed += 1
        if self.watch is not None:
            self.watch.step(there=True)

    def made(
        self, row: Row | Compared, record: Mapping[str, Any], verdict: Verdict
    ) -> dict[str, Any]:
        """Count and write a row judged in this run.

        Raises:
            BudgetError: If too many have failed.
        """
        data = verdict.to_dict(raw=self.raw or verdict.failure is not None)
        known = {self.known.recall(one.source, one.output) for one in _outputs(row)}
        added = {
            "aspect": self.aspect or None,
            "columns": unusual(self.columns) or None,
            "contract": self.told,
        }
        written = {
            "verdict": data | _declared(added, ADDED),
            "judge": self.mark,
            "asked": self.asked(row),
            "seen": "row" in known,
            "resembles": True if "reply" in known and "row" not in known else None,
        }
        made = with_room(record) | {"id": row.id} | _declared(written, WRITTEN)
        self.summary.count(made)
        self.summary.new_failed += bool(verdict.failure)
        if self.emit is not None:
            self.emit(made)
        return made

    def step(self, verdict: Verdict) -> None:
        """Count and write a verdict.

        Raises:
            BudgetError: If too many rows have failed.
        """
        if self.watch is not None:
            paid = self.judge.lm.meter.paid
            cost = [f"${paid:.2f}"] if paid else []
            self.watch.tell(
                ", ".join(
                    [
                        *(
                            [f"{self.summary.failed} failed"]
                            if self.summary.failed
                            else []
                        ),
                        *cost,
                    ]
                )
            )
            self.watch.step()
        self.limits.check(
            self.summary.new_failed,
            self.summary.rows - self.summary.resumed,
            verdict.failure,
            self.total and self.total - self.summary.resumed,
        )


def score_file(
    run: Run,
    source: Path,
    *,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    existing: Existing = "continue",
) -> ScoreSummary:
    """Judge every row of a file.

    A judge of whole documents (`PairS`) takes all rows together: an unfinished output is then written again, with
    earlier calls taken from the cache.

    Args:
        run: the judge, its model, the output and the limits.
        source: the file of rows.
        columns: column of each role; found if not given.
        limit: only the first rows.
        existing: an existing output is continued, if the same judge wrote it from the same rows; or it is overwritten,
            or its failed rows are judged again.

    Raises:
        LabelsError: If an input line is broken; rows before it are written, but none by a judge of whole documents.
        OptionError: If the output is the input, or belongs to another judge or input.
        ModelError: If the model cannot be used.
        OutageError: If it stops responding.
        BudgetError: If a limit is reached.
    """
    if run.output.exists() and source.exists() and run.output.samefile(source):
        raise OptionError(f"{run.output} is the input; give another -o")
    run.columns = dict(columns or {})
    return score_rows(run, _rows(source, run.judge, columns, limit), existing)


def _rows(
    source: Path, judge: Judge, columns: Mapping[str, str] | None, limit: int | None
) -> Rows:
    if judge.explains and (
        judge.whole_documents or judge.outcome.preference is not None
    ):
        raise OptionError(
            "--explain: this judge compares outputs, and explains none by itself; leave --explain out"
        )
    if judge.outcome.preference is None:
        compared = None
    else:
        compared = read_compared(source, columns)
    every: Rows = (
        iter_rows(source, columns=columns) if compared is None else iter(compared)
    )
    rows: Rows = itertools.islice(every, limit)
    return _with_numbers(judge, rows, source.name) if judge.method.columns() else rows


def _with_numbers(judge: Judge, rows: Rows, origin: str) -> Rows:
    """Yield the rows whose columns the judge can read.

    Raises:
        LabelsError: If a column has no number.
    """
    for row, record in rows:
        if all(numbers_of(judge, output, origin) for output in _outputs(row)):
            yield row, record


def plan(
    path: Path,
    lm: str | None,
    where: Connection | None,
    source: Path,
    *,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    explain: bool = False,
) -> Estimate:
    """Estimate the cost of scoring a file with a saved judge, without opening or calling a model.

    Rows scored before are counted, too.
    """
    read = artifact.read(path)
    judge = loading.build(read)
    judge.explains = explain
    sample = list[Row]()
    count = 0
    every = (
        side
        for row, _ in _rows(source, judge, columns, limit)
        for side in _outputs(row)
    )
    for count, row in enumerate(every, 1):
        if count <= SAMPLED:
            sample.append(row)
    return estimate(
        judge, lm or (read.lm.model if read.lm else None), count, sample, where
    )


def score_rows(run: Run, rows: Rows, existing: Existing = "continue") -> ScoreSummary:
    """Judge rows as `score_file` does."""
    judge = run.judge
    growing = journal_of(run.output)
    with (
        alone(run.output),
        run.limits.spending(judge.lm),
        run.summary.counting(judge.lm.meter),
    ):
        exists = (
            existing != "overwrite" and growing.exists() and growing.stat().st_size > 0
        )
        if (
            existing != "overwrite"
            and not exists
            and run.output.exists()
            and run.output.stat().st_size > 0
        ):
            raise OptionError(
                f"{run.output.name} is not {OURS_IN_WORDS}, of which {growing.name} would be beside it; give another "
                "-o, or --overwrite"
            )
        # A model that is not there, or an input that cannot be read, must not cost an output that is.
        engine.run(judge.method.prepare(judge.lm))
        rows = itertools.chain(list(itertools.islice(rows, 1)), rows)
        if existing == "retry failed" and not exists:
            raise OptionError(
                f"{run.output} does not exist: there are no failed rows to try again"
            )
        if judge.whole_documents and exists and existing == "continue":
            every = list(rows)
            rows = iter(every)
            exists = sum(1 for _ in _paired(run, iter(every), growing)) == len(every)
        if existing == "retry failed":
            _retry_failed(run, rows, growing)
        else:
            _resume(run, rows, growing, exists)
    return run.summary


def journal_of(output: Path) -> Path:
    """Return the file that an output's rows are appended to: the output itself, or one beside a table.

    Raises:
        OptionError: If the output is another kind of file.
    """
    form = written_as(output)
    form.require(output)
    return output if form.grows else output.with_name(f"{output.name}.jsonl")


def _resume(run: Run, rows: Rows, growing: Path, exists: bool) -> None:
    """Judge what is not written yet. there: whether some rows are."""
    for old, *_ in _paired(run, rows, growing) if exists else ():
        run.kept(old)
    # Failed rows at the end: should the server turn out to be down, they are judged again by the next run.
    waiting: list[dict[str, Any]] = []
    with Journal(growing, kind=OURS_IN_WORDS, overwrite=not exists) as journal:
        try:
            for row, record, verdict in _judged(run, rows):
                waiting.append(run.made(row, record, verdict))
                if verdict.failure is None or len(waiting) >= MOST_HELD:
                    journal.write(*waiting)
                    waiting.clear()
                run.step(verdict)
        except OutageError:
            waiting.clear()
            raise
        finally:
            try:
                journal.write(*waiting)
            finally:
                if growing != run.output:
                    write_table(growing, run.output)


def _retry_failed(run: Run, rows: Rows, growing: Path) -> None:
    """Rewrite the output with its failed and missing rows judged (all rows, for a judge of whole documents)."""

    def paired() -> Iterator[tuple[dict[str, Any] | None, Row, dict[str, Any]]]:
        yield from _paired(run, rows, growing)
        for new in rows:
            yield None, *new

    def is_kept(old: dict[str, Any] | None) -> bool:
        return (
            old is not None
            and not old["verdict"]["failure"]
            and not run.judge.whole_documents
        )

    with replacing(growing) as journal:
        first, second = itertools.tee(paired())
        verdicts = _judged(
            run, ((row, record) for old, row, record in first if not is_kept(old))
        )
        for old, _, _ in second:
            if old is not None and is_kept(old):
                journal.write(old)
                run.kept(old)
            else:
                row, record, verdict = next(verdicts)
                journal.write(run.made(row, record, verdict))
                run.step(verdict)
    if growing != run.output:
        write_table(growing, run.output)


def _paired(
    run: Run, rows: Rows, growing: Path
) -> Iterator[tuple[dict[str, Any], Row, dict[str, Any]]]:
    """The rows that are written, each with the row of the input.

    Raises OptionError for those of another judge or input.
    """
    for _, old in read_journal(growing, kind=OURS_IN_WORDS):
        yield old, *_same(run, old, next(rows, None))


def _judged(run: Run, rows: Rows) -> Iterator[tuple[Row, dict[str, Any], Verdict]]:
    judge = run.judge
    if run.ahead is not None:
        every = list(rows)
        run.ahead([side for row, _ in every for side in _outputs(row)])
        rows = iter(every)
    under_way: deque[tuple[Any, dict[str, Any]]] = deque()

    def taken() -> Iterator[Row]:
        for row, record in rows:
            under_way.append((row, record))
            yield from _outputs(row)

    verdicts = judge.score_many(taken(), progress=False)
    for verdict in verdicts:
        row, record = under_way.popleft()
        if isinstance(row, Compared) and judge.outcome.preference is not None:
            verdict = judge.outcome.preference.preferred(
                verdict, next(verdicts)
            ).verdict()
        yield row, record, verdict


def with_room(record: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose own columns make room for ours: a column `verdict` of people's becomes `given_verdict`.

    What an earlier run wrote is left out.

    >>> with_room({"seen": "monday", "given_seen": "tuesday"})
    {'given_given_seen': 'monday', 'given_seen': 'tuesday'}
    """
    verdict = record.get("verdict")
    if isinstance(verdict, Mapping) and "failure" in verdict:
        return {name: value for name, value in record.items() if name not in WRITTEN}
    made = {}
    for name, value in record.items():
        free = name
        while free in WRITTEN or (free != name and free in record):
            free = f"given_{free}"
        made[free] = value
    return made


def _declared(parts: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the parts that are there. What is not declared would be lost in tables, and take a user's column."""
    assert parts.keys() <= set(names), f"{sorted(parts)} are not all of {names}"
    return {name: value for name, value in parts.items() if value is not None}


def _outputs(row: Row | Compared) -> tuple[Row, ...]:
    return (row.a, row.b) if isinstance(row, Compared) else (row,)


def _same(
    run: Run, old: Mapping[str, Any], new: tuple[Row, dict[str, Any]] | None
) -> tuple[Row, dict[str, Any]]:
    """The new row. Raises OptionError unless `old` is what this judge wrote for this very row."""
    name = run.output.name
    verdict = old.get("verdict")
    if (
        not isinstance(verdict, dict)
        or not {"failure", "repaired"} <= set(verdict)
        or not {"id", "judge"} <= set(old)
    ):
        raise OptionError(
            f"{name} is not {OURS_IN_WORDS}; give another -o, or --overwrite"
        )
    if old["judge"] != run.mark:
        raise OptionError(
            f"{name} was written by judge {old['judge']}, this one is {run.mark}; give another -o, or --overwrite"
        )
    if new is None or new[0].id != old["id"]:
        expected = "the end of the input" if new is None else f"{new[0].id!r}"
        raise OptionError(
            f"{name} has row {old['id']!r} where the input has {expected}; it belongs to another input. "
            "Give another -o, or --overwrite"
        )
    # Ids are often only line numbers: what the row says has to be the same, too.
    for column, value in finite(new[1]).items():
        if (
            column not in ("id", *WRITTEN)
            and column in old
            and _as_json(old.get(column)) != _as_json(value)
        ):
            raise OptionError(
                f"{name}, row {old['id']!r}: {column!r} is not what the input has; it belongs to another input, or the "
                "input was changed. Give another -o, or --overwrite"
            )
    now = Asked.of(run.asked(new[0]))
    before = Asked.of(str(old["asked"])) if old.get("asked") else now
    how = before.changed(now)
    if how:
        raise OptionError(f"{name} was scored {how}; give another -o, or --overwrite")
    moved = before.server != now.server and not run.any_server
    if moved or before.texts != now.texts:
        if moved:
            other = "another model or address (--any-server allows that)"
        else:
            other = "other --columns or texts"
        raise OptionError(
            f"{name}, row {old['id']!r} was scored with {other}; give another -o, or --overwrite"
        )
    return new


def _as_json(value: Any) -> str:
    return json.dumps(value, default=str)


def mark_deferred(output: Path, share: float) -> int:
    """Write `"defer": true` or false into every row of a scored .jsonl file; return the number of true ones.

    These are the rows to leave to a person: the share (rounded up) with the largest expected errors, rows without a
    score before all others.
    """
    with alone(output):
        verdicts = (row["verdict"] for _, row in read_journal(output))
        errors = (
            None if v["failure"] else (v.get("interval") or {}).get("error")
            for v in verdicts
        )
        chosen = deferred(
            [math.nan if error is None else float(error) for error in errors], share
        )
        with replacing(output) as journal:
            for (_, row), left in zip(
                read_journal(output), chosen.tolist(), strict=True
            ):
                journal.write(row | {"defer": left})
    return int(chosen.sum())
