"""A file of labels kept the same as what people said of the traces of a queue.

A queue is a class that an entry point of the group `judgesmith.queues` names, made with the name on the command line
and a filter in the tool's own words (or None). Its methods raise OptionError where the tool cannot be reached:
- heads(): records of all traces, newest first: `id`; people's `scores` {name: {rater: rating}}, perhaps {}; `why`
  {name: [reason]} where they gave any; `verdicts` {a judge's fingerprint: {"score", perhaps "passed" or "category"}};
  texts where a tool lists them anyway, `output` "" where it says that the trace has none;
- whole(id): the same with `source`, `output` and what else a row may have; None where the trace is gone;
- giving(judge, name): a function of an id and a Verdict, which writes the verdict to the trace under that name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from judgesmith.errors import OptionError
from judgesmith.rows import as_text
from judgesmith.running.console import Watch
from judgesmith.running.journal import Journal, read_journal, replacing

Record = dict[str, Any]
WHAT = "a file of labels as `judgesmith sync` writes it"


@dataclass
class Pulled:
    """Rows of a file, and their changes.

    origin: the mark of the queue's rows; others stay as they are. heads: every trace of the queue by its id. The lists
    are of ids. empty: of traces with feedback but no output. What is removed is appended to `removed_file`, from which
    a row that comes back has the columns that people wrote into it.
    """

    path: Path
    origin: str
    heads: dict[str, Record] = field(default_factory=dict)
    rows: dict[str, Record] = field(default_factory=dict)
    others: list[Record] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    gone: list[Record] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read what is there. Raises OptionError for another kind of file."""
        if self.path.suffix.lower() != ".jsonl":
            raise OptionError(
                f"-o {self.path}: labels are written as .jsonl; name such a file"
            )
        for number, record in (
            read_journal(self.path, kind=WHAT) if self.path.exists() else ()
        ):
            if record.get("queue") != self.origin:
                self.others.append(record)
            elif not isinstance(record.get("id"), str):
                raise OptionError(
                    f"{self.path.name}, line {number}: the row has no id; this is not {WHAT}"
                )
            else:
                self.rows[record["id"]] = record

    @property
    def removed_file(self) -> Path:
        """The file beside the labels that keeps the rows that were taken out of them."""
        return self.path.with_name(f"{self.path.stem}.removed.jsonl")

    def pull(self, queue: Any, watch: Watch) -> None:
        """Take what the queue has now. What was taken so far stays, should it fail half-way."""
        watch.stage("traces", 0)
        for head in queue.heads():
            trace = dict(head)
            if not head["scores"] and not without_output(
                head
            ):  # of labels alone texts are held
                trace = {
                    key: value
                    for key, value in head.items()
                    if key not in ("source", "output")
                }
            self.heads[head["id"]] = trace
            watch.step()
        for name in (
            self.rows.keys() - self.heads.keys()
        ):  # gone, or only not among what a filter finds
            if (whole := queue.whole(name)) is not None:
                self.heads[name] = whole
        labelled = {name: head for name, head in self.heads.items() if head["scores"]}
        watch.stage("traces with feedback", len(labelled))
        for name in reversed(labelled):
            self._take(name, queue)
            watch.step()
        self.withdrawn = [name for name in self.rows if name not in labelled]
        self.gone = [self.rows.pop(name) for name in self.withdrawn]

    def _take(self, name: str, queue: Any) -> None:
        old = self.rows.get(name)
        feedback = _feedback(self.heads[name])
        if old is None:
            whole = self.heads[name]
            if as_text(whole.get("output")) is None and not without_output(whole):
                whole = queue.whole(name)
            if whole is not None and as_text(whole.get("output")) is not None:
                row = {key: v for key, v in whole.items() if key != "verdicts"}
                own = {
                    key: v
                    for key, v in self._removed.get(name, {}).items()
                    if key not in whole and key != "why"
                }
                self.rows[name] = row | {"queue": self.origin} | own
                self.added.append(name)
            else:
                self.empty.append(name)
        elif feedback != _feedback(old):
            row = {key: v for key, v in old.items() if key != "why"}
            self.rows[name] = row | feedback
            self.changed.append(name)

    @cached_property
    def _removed(self) -> dict[str, Record]:
        """The rows of this queue that were removed, as they last were."""
        if not self.removed_file.exists():
            return {}
        return {
            str(record.get("id")): record
            for _, record in read_journal(self.removed_file, kind=WHAT)
            if record.get("queue") == self.origin
        }

    def write(self) -> None:
        """Put the file in place of the one before, where anything has changed; removed rows are kept beside it."""
        if self.withdrawn:
            with Journal(self.removed_file, kind=WHAT, durable=True) as journal:
                journal.write(*self.gone)
        if self.added or self.changed or self.withdrawn:
            with replacing(self.path) as journal:
                journal.write(*self.others, *self.rows.values())

    def to_dict(self) -> dict[str, Any]:
        """Return counts as plain JSON types."""
        ratings = [
            (name, who)
            for row in self.rows.values()
            for name, by in row["scores"].items()
            for who in by
        ]
        return {
            "traces": len(self.heads),
            "rows": len(self.rows),
            "raters": len({who for _, who in ratings}),
            "aspects": Counter(
                name for row in self.rows.values() for name in row["scores"]
            ),
            "added": self.added,
            "changed": self.changed,
            "withdrawn": self.withdrawn,
            "kept_in": str(self.removed_file) if self.withdrawn else None,
            "without_output": self.empty,
        }


def _feedback(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the human scores of a record, and their reasons."""
    return {key: v for key, v in record.items() if key in ("scores", "why")}


def without_output(head: Record) -> bool:
    """Return whether the tool says that a trace has no output."""
    return isinstance(head.get("output"), str) and not head["output"].strip()
