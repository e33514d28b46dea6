"""`judgesmith label`: a store opened or begun, the page served until it is ended, and the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LabelsError, OptionError
from .agreement import Said, summary
from .export import export
from .order import next_units
from .store import Store
from .task import Task
from .units import read_units

if TYPE_CHECKING:
    from .command import Label


@dataclass
class Opened:
    """A store that is ready. rows: that are labelled in all."""

    store: Store
    task: Task
    rows: int
    notes: tuple[str, ...] = ()

    def result(self, target: Path | None = None) -> dict[str, Any]:
        """The result as JSON values, and the labels written to `target`."""
        answers = Said.of(self.store, self.task)
        results: dict[str, Any] = {"store": str(self.store.path), "kind": self.task.kind, "rows": self.rows}
        results |= {"labels": sum(map(len, answers.first.values()))} | summary(answers, self.store.raters())
        if target is not None:
            results |= {"export": str(target), "exported": export(answers, target)}
        return results


def open_store(wanted: Label) -> Opened:
    """The store with its task, and the rows of ROWS in its queue. Raises LabelsError, OptionError."""
    guidelines = None if wanted.guidelines is None else _guidelines(wanted.guidelines)
    # Wrong options and rows are refused before a file is made.
    store = Store(wanted.path, create=False) if wanted.path.is_file() or wanted.rows is None else None
    task = _task(wanted, None if store is None else store.task)
    units = None if wanted.rows is None else read_units(wanted.rows, task.kind, wanted.roles())
    store = store or Store(wanted.path)
    if units is not None:
        more = next_units(units, store, task, wanted)
        store.add(units.units)
        store.enqueue(more)
        if wanted.order == "suggest":
            store.set(suggested=json.dumps([*json.loads(store.get("suggested") or "[]"), *more]))
        store.set(origin=units.origin)
    store.set(task=json.dumps(asdict(task)), **({} if guidelines is None else {"guidelines": guidelines}))
    return Opened(store, task, len(store.queue()), units.notes if units is not None else ())


def _task(wanted: Label, before: Task | None) -> Task:
    """What is asked: as before, or by the options. Raises OptionError where they contradict each other."""
    words = wanted.words
    kind: Any = wanted.kind or ("category" if words else "score")
    old = before or Task(kind=kind, categories=words)
    asked: dict[str, Any] = {
        "kind": wanted.kind,
        "scale": wanted.scale,
        "categories": words or None,
        "aspects": tuple(wanted.aspect) or None,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    for name, value in given.items() if before is not None else ():
        if getattr(before, name) != value:
            raise OptionError(
                f"--{name.removesuffix('s')} {_words(value)}: {wanted.path} holds labels with {name} "
                f"{_words(getattr(before, name))}; leave the option out, or give another --store"
            )
    if "scale" in given and (given.get("kind") or old.kind) != "score":
        raise OptionError(f"--scale: labels of kind {old.kind} have none; leave it out, or pass --kind score")
    given |= {"why": True} if wanted.why else {}
    if wanted.repeats is not None:
        given["repeats"] = wanted.repeats
    return replace(old, **given)


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else repr(value)


def _guidelines(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise LabelsError(f"{path}: is not a text in UTF-8; save the guidelines as plain text or Markdown") from None
    except OSError as error:
        raise LabelsError(f"{path}: the guidelines cannot be read ({error.strerror}); check --guidelines") from None


def serve(opened: Opened, rater: str | None, started: Callable[[str], None], port: int = 0) -> None:
    """Serve the page until Ctrl-C or SIGTERM. started: called with the address. port: 0 for that of the run before, so
    that an open tab goes on, or any free one. Raises OptionError where it cannot be had."""
    from ..running import private
    from .app import Desk, application, rater_name

    try:
        desk = Desk(opened.store, opened.task, None if rater is None else rater_name(rater))
    except ValueError:
        raise OptionError("--rater: the name is empty; give one, or leave the option out to be asked") from None
    made = private.listening(*([port] if port else [int(opened.store.get("port") or 0), 0]))
    own = made.getsockname()[1]
    opened.store.set(port=str(own))
    private.serve(application(desk, own), made, opened.store.token, started)
