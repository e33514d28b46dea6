"""`judgesmith label`: a store opened or begun, the page served until it is ended, and the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from judgesmith.errors import LabelsError, OptionError
from judgesmith.rooms.labelling.agreement import (
    RaterAnswers,
    enough,
    split_rows,
    summary,
)
from judgesmith.rooms.labelling.deciding import Deciding
from judgesmith.rooms.labelling.export import export, labels
from judgesmith.rooms.labelling.order import next_units
from judgesmith.rooms.labelling.request import LabelRequest
from judgesmith.rooms.labelling.store import Store
from judgesmith.rooms.labelling.task import Task
from judgesmith.rooms.labelling.units import Units, read_units


@dataclass
class LabelSession:
    """A store that is ready. rows: that are labelled in all, or to be settled."""

    store: Store
    task: Task
    rows: int
    notes: tuple[str, ...] = ()
    deciding: Deciding | None = None
    settling: bool = False

    def decision(self) -> list[str]:
        """Return what the labels so far decide, in sentences; without a question, how sure the raters' agreement is."""
        answers = RaterAnswers.of(self.store, self.task)
        if self.deciding is None:
            return list(enough(answers))
        return self.deciding.told(labels(answers))

    def result(self, target: Path | None = None) -> dict[str, Any]:
        """Return the result as JSON values, and the labels written to `target`."""
        answers = RaterAnswers.of(self.store, self.task)
        results: dict[str, Any] = {
            "store": str(self.store.path),
            "kind": self.task.kind,
            "rows": len(self.store.queue()),
        }
        results |= {"labels": sum(map(len, answers.first.values()))} | summary(
            answers, self.store.raters()
        )
        results["decision"] = self.decision()
        if target is not None:
            results |= {"export": str(target), "exported": export(answers, target)}
        return results


def open_store(request: LabelRequest) -> LabelSession:
    """Return the store with its task, and the rows of ROWS in its queue.

    Raises:
        LabelsError: If ROWS or the store cannot be read.
        OptionError: If options do not fit the store.
    """
    # Wrong options and rows are refused before a file is made.
    texts = {}
    if request.guidelines is not None:
        texts["guidelines"] = _guidelines(request.guidelines)
    store = before = units = None
    if request.store.is_file() or request.rows is None or request.settle:
        store = Store(request.store, create=False)
        before = store.task
    task = _task(request, before)
    deciding = None
    if request.rows is not None and not request.settle:
        units = read_units(request.rows, task.kind, request.columns)
        deciding = _deciding(request, store, task, texts)
    store = store or Store(request.store)
    notes: tuple[str, ...] = ()
    if units is not None:
        _enqueue(store, units, task, request, deciding)
        notes = units.notes
    store.set(task=json.dumps(asdict(task)), **texts)
    rows = len(store.queue())
    if request.settle:
        if task.kind in ("preference", "spans"):
            raise OptionError(
                f"--settle: labels of kind {task.kind} have no mean that a decision could replace; it is for scores, "
                "categories, and pass or fail"
            )
        rows = len(split_rows(RaterAnswers.of(store, task)))
        if not rows:
            raise OptionError(
                f"--settle: no row of {request.store} splits its raters; label rows by two people or more first"
            )
    return LabelSession(store, task, rows, notes, deciding, request.settle)


def _deciding(
    request: LabelRequest, store: Store | None, task: Task, texts: dict[str, str]
) -> Deciding | None:
    """Return the decision that rows are labelled for, as before unless named, and keep it in `texts`.

    Raises:
        OptionError: If it cannot be decided by these rows.
    """
    before = json.loads(store.get("decide") or "null") if store is not None else None
    gate = request.decide or (before and before["gate"])
    judge = request.judge or (before and before["judge"])
    if gate is None:
        if request.judge is not None:
            raise OptionError("--judge is for --decide, such as --decide 'tnr>=0.8'")
        return None
    if task.kind in ("preference", "spans"):
        raise OptionError(
            f"--decide: labels of kind {task.kind} decide nothing of a judge here; export them for `judgesmith check`"
        )
    texts["decide"] = json.dumps({"gate": gate, "judge": judge})
    return Deciding.of(gate, judge, str(request.rows), request.columns)


def _enqueue(
    store: Store,
    units: Units,
    task: Task,
    request: LabelRequest,
    deciding: Deciding | None,
) -> None:
    """Add the units of a file to a store and its queue."""
    more = next_units(units, store, task, request, deciding)
    store.add(units.units)
    store.enqueue(more)
    if request.order == "suggest":
        suggested = [*json.loads(store.get("suggested") or "[]"), *more]
        store.set(suggested=json.dumps(suggested))
    store.set(origin=units.origin)


def _task(request: LabelRequest, before: Task | None) -> Task:
    """Return the task as before, or by the options. Raises OptionError where they contradict each other."""
    words = request.categories
    kind: Any = request.kind or ("category" if words else "score")
    old = before or Task(kind=kind, categories=words)
    options: dict[str, Any] = {
        "kind": request.kind,
        "scale": request.scale,
        "categories": words or None,
        "aspects": request.aspects or None,
    }
    chosen = {name: value for name, value in options.items() if value is not None}
    for name, value in chosen.items() if before is not None else ():
        if getattr(before, name) != value:
            raise OptionError(
                f"--{name.removesuffix('s')} {_words(value)}: {request.store} holds labels with {name} "
                f"{_words(getattr(before, name))}; leave the option out, or give another --store"
            )
    if "scale" in chosen and (chosen.get("kind") or old.kind) != "score":
        raise OptionError(
            f"--scale: labels of kind {old.kind} have none; leave it out, or pass --kind score"
        )
    chosen |= {"why": True} if request.why else {}
    if request.repeats is not None:
        chosen["repeats"] = request.repeats
    return replace(old, **chosen)


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else repr(value)


def _guidelines(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise LabelsError(
            f"{path}: is not a text in UTF-8; save the guidelines as plain text or Markdown"
        ) from None
    except OSError as error:
        raise LabelsError(
            f"{path}: the guidelines cannot be read ({error.strerror}); check --guidelines"
        ) from None


def serve(
    opened: LabelSession,
    rater: str | None,
    started: Callable[[str], None],
    port: int = 0,
) -> None:
    """Serve the page until Ctrl-C or SIGTERM.

    Args:
        opened: the store, its task and rows.
        rater: name of the rater; None: the page asks.
        started: called with the address.
        port: 0 for the port of the last run, so that an open tab continues, or any free one.

    Raises:
        OptionError: If the port is taken.
    """
    from judgesmith.rooms.labelling.app import Desk, application, rater_name
    from judgesmith.running import private

    try:
        name = None if rater is None else rater_name(rater)
        desk = Desk(
            opened.store,
            opened.task,
            name,
            opened.decision,
            settling=opened.settling,
        )
    except ValueError:
        raise OptionError(
            "--rater: the name is empty; give one, or leave the option out to be asked"
        ) from None
    listening = private.listening(
        *([port] if port else [int(opened.store.get("port") or 0), 0])
    )
    own = listening.getsockname()[1]
    opened.store.set(port=str(own))
    private.serve(application(desk, own), listening, opened.store.token, started)
