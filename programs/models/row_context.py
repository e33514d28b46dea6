"""The row under judgement, as a context of every call that is made for it.

`Judge` opens the context; judges need not know of it. What is sent under it is checked (no demonstration of the row's
own document) and counted (usage, calls), whichever way a judge calls its model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from judgesmith.errors import LeakError
from judgesmith.likeness import Folded, alike, folded, same_output, same_row
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.transport import Message
from judgesmith.rows import source_key
from judgesmith.signatures.values import Item, Usage

#: Letters from which a text in a prompt is recognised: shorter ones appear by chance.
RECOGNISED = 24
#: Scores in percent that are as near as this are equal.
ROUNDING = 1e-6


@dataclass(slots=True)
class Calls:
    """The calls made inside a context, in the order in which they were answered."""

    replies: list[Reply] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    prompts: set[str] = field(default_factory=set)
    """Those that a recorded model was sent."""

    @property
    def usage(self) -> Usage:
        """Return the cost of all calls."""
        return Usage.total(self.usages)


@dataclass(frozen=True, slots=True)
class _Under:
    item: Item | None
    forbidden: tuple[str, ...]
    calls: tuple[Calls, ...]


_NO_ROW = _Under(None, (), ())
_current: ContextVar[_Under] = ContextVar("judgesmith_row", default=_NO_ROW)
_open: ContextVar[bool] = ContextVar("judgesmith_open", default=False)
_spare: ContextVar[Sequence[Mapping[str, Any]]] = ContextVar(
    "judgesmith_spare", default=()
)


@contextmanager
def own_documents_shown() -> Iterator[None]:
    """Inside, a row is judged with whatever demonstrations there are, those of its own document, too.

    For an experiment that compares with optimizers that know no such rule.
    """
    token = _open.set(True)
    try:
        yield
    finally:
        _open.reset(token)


@contextmanager
def standing_in(rows: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """Inside, these rows stand in for demonstrations that a row may not see (`seen`).

    Args:
        rows: Labelled rows in the form of demonstrations.
    """
    token = _spare.set(rows)
    try:
        yield
    finally:
        _spare.reset(token)


@contextmanager
def judging(item: Item, demos: Sequence[Mapping[str, Any]] = ()) -> Iterator[Calls]:
    """Do everything inside for this row; yield its calls, as they are answered.

    Args:
        item: The row.
        demos: All demonstrations of the judge; a prompt that shows the output of one of the row's own document, which
            no other document's has, is a LeakError.
    """
    calls = Calls()
    forbidden = _forbidden(item, demos) if demos and not _open.get() else ()
    token = _current.set(_Under(item, forbidden, (*_current.get().calls, calls)))
    try:
        yield calls
    finally:
        _current.reset(token)


def _forbidden(item: Item, demos: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the outputs of these demonstrations that no prompt for a row may show: those of its document."""
    document = document_of(item)
    own = [demo for demo in demos if demo.get("group") == document]
    if not own:
        return ()
    outputs = {str(demo.get("output") or "") for demo in own}
    allowed_texts = [item.output, item.source, item.context, item.reference]
    for demo in demos:
        if demo.get("group") == document:
            continue
        allowed_texts += [str(demo.get(name) or "") for name in ("output", "source")]
    shown = "\n".join(filter(None, allowed_texts))
    return tuple(
        text for text in outputs if len(text) >= RECOGNISED and text not in shown
    )


@contextmanager
def under(item: Item) -> Iterator[None]:
    """For an evaluator that is called by itself: the row, unless one is under judgement already."""
    with judging(item) if _current.get().item is None else nullcontext():
        yield


def current() -> Item | None:
    """Return the row under judgement."""
    return _current.get().item


def prompts() -> set[str]:
    """Return the prompts that a recorded model was sent for the row under judgement; it adds to them."""
    return _current.get().calls[-1].prompts


def group() -> str | None:
    """Return the document of the row under judgement; None if it has none, and without a row."""
    item = current()
    return None if item is None else item.group


def check(messages: Sequence[Message]) -> None:
    """Check that messages show nothing that the row must not see.

    Raises:
        LeakError: If they do.
    """
    for text in _current.get().forbidden:
        if any(text in message["content"] for message in messages):
            raise LeakError(
                f"a prompt shows a demonstration of the judged row's own document ({text[:60]!r}); a judge shows "
                "demonstrations through its predictors, which leave those out"
            )


def count(reply: Reply, usage: Usage) -> None:
    """Count an answered call for the row under judgement."""
    for calls in _current.get().calls:
        calls.replies.append(reply)
        calls.usages.append(usage)


def document_of(item: Item) -> str:
    """Return the group of a row as labels have it: its own, or the one made from its source."""
    return item.group or source_key(item.source or item.output)


def allowed(demos: Sequence[Mapping[str, Any]], item: Item) -> list[int]:
    """Return the places of the demonstrations that a row may see.

    None of them is of its group, or has its output or its source or nearly these.
    """
    if _open.get() or not demos:
        return list(range(len(demos)))
    document = document_of(item)
    apart = [n for n, demo in enumerate(demos) if demo.get("group") != document]
    twins = _of_one_source(demos, apart, folded(item.source or ""))
    output = item.output or ""
    source = item.source or ""
    return [
        n for n in apart if n not in twins and not _repeats(demos[n], source, output)
    ]


def seen(demos: Sequence[Mapping[str, Any]], item: Item) -> list[Mapping[str, Any]]:
    """Return the demonstrations in the prompt of a row: those that it may see, and what stands in for the others.

    Of four good and four bad demonstrations a good row that is one of them would see three good ones: a prompt that is
    tilted against its own label. So another row of about the same score takes the place, and every row sees the same
    mix of labels, which says nothing of any. It is of a document that neither the row nor a demonstration is of. Where
    the mix without either is nearer than the nearest row, the place stays empty.
    """
    places = allowed(demos, item)
    if len(places) == len(demos):
        return list(demos)
    kept = [demos[place] for place in places]
    if not _spare.get():
        return kept
    free = _free(demos, item)
    scores = [score for demo in kept if (score := _score(demo)) is not None]
    middle = sum(scores) / len(scores) if scores else None
    shown: list[Mapping[str, Any]] = []
    for place, demo in enumerate(demos):
        if place in places:
            shown.append(demo)
            continue
        other = _nearest(demo, free, middle, place)
        if other is not None:
            free = [one for one in free if one is not other]
            shown.append(other)
    return shown


def _free(demos: Sequence[Mapping[str, Any]], item: Item) -> list[Mapping[str, Any]]:
    """Return the rows that may stand in: of no document that is shown, and none that the row may not see.

    Templates of several documents are one text: a row that holds a demonstration's output does not stand in for it.
    """
    groups = {demo.get("group") for demo in demos}
    outputs = {str(demo.get("output") or "") for demo in demos} - {""}
    rows = [
        row
        for row in _spare.get()
        if row.get("group") not in groups and not _holds(row, outputs)
    ]
    return [rows[number] for number in allowed(rows, item)]


def _holds(row: Mapping[str, Any], outputs: Iterable[str]) -> bool:
    """Return True if a row's texts hold one of these outputs."""
    texts = f"{row.get('output') or ''}\n{row.get('source') or ''}"
    return any(output in texts for output in outputs)


def _nearest(
    demo: Mapping[str, Any],
    free: Sequence[Mapping[str, Any]],
    middle: float | None,
    place: int,
) -> Mapping[str, Any] | None:
    """Return the row of a demonstration's form, if there is one, with the nearest score; of several, one by place."""
    own = _score(demo)
    if own is None:
        return None
    alike = [row for row in free if _form(row) == _form(demo)] or free
    gaps = [
        (abs(score - own), row) for row in alike if (score := _score(row)) is not None
    ]
    least = min((gap for gap, _ in gaps), default=None)
    if least is None or (least and middle is not None and abs(middle - own) <= least):
        return None
    nearest = [row for gap, row in gaps if gap <= least + ROUNDING]
    return nearest[place % len(nearest)]


def _form(demo: Mapping[str, Any]) -> tuple[bool, bool]:
    return bool(demo.get("augmented")), bool(demo.get("gold"))


def _score(demo: Mapping[str, Any]) -> float | None:
    """Return the score that a demonstration shows, in percent; None for one that shows none."""
    score = demo.get("score")
    return float(score) if isinstance(score, int | float) else None


def _of_one_source(
    demos: Sequence[Mapping[str, Any]], places: Sequence[int], source: Folded
) -> list[int]:
    """Return the places of the demonstrations whose source is that of a row.

    A source that several groups share is an instruction and not a document: then there are none.
    """
    twins = [n for n in places if alike(folded(demos[n].get("source") or ""), source)]
    return [] if len({demos[n].get("group") for n in twins}) > 1 else twins


def _repeats(demo: Mapping[str, Any], source: str, output: str) -> bool:
    """Return True if a demonstration shows the judged row, or its output as another text."""
    if same_row(demo.get("source") or "", demo.get("output") or "", source, output):
        return True
    reference = demo.get("reference")
    return bool(reference) and same_output(str(reference), output)
