"""The rows to label, their order, and those that are shown twice."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.errors import OptionError
from judgesmith.evaluating.few import read_suggestable
from judgesmith.rooms.labelling.request import LabelRequest
from judgesmith.rooms.labelling.store import AnswerEvent, Store
from judgesmith.rooms.labelling.suggestion import suggest
from judgesmith.rooms.labelling.task import Task
from judgesmith.rooms.labelling.units import Units

#: Rows shown before a row is shown again, where there are as many, so that the rater judges it afresh.
GAP = 10


def next_units(
    candidates: Units, store: Store, task: Task, request: LabelRequest
) -> list[str]:
    """Return the keys of the units to add, so that the store's queue reaches the requested length.

    Raises:
        OptionError: The order does not suit the kind of labels.
    """
    queued = set(store.queue())
    units = [unit for unit in candidates.units if unit.key not in queued]
    more = len(units) if request.n is None else max(0, request.n - len(queued))
    if request.order == "random":
        random.Random(request.seed).shuffle(units)
    elif request.order == "suggest":
        if task.kind == "preference":
            raise OptionError(
                "--order suggest: it chooses single rows, not pairs; take --order random"
            )
        places = _suggested_places(candidates, store, task, request)
        units = [unit for unit in units if unit.line in places]
        units.sort(key=lambda unit: places[unit.line])
    return [unit.key for unit in units[:more]]


def _suggested_places(
    candidates: Units, store: Store, task: Task, request: LabelRequest
) -> dict[int, int]:
    """Return the places of the file's lines in the order in which `suggest` has them labelled."""
    scored, readings = read_suggestable(
        str(request.rows), columns=request.columns, own=False
    )
    lines = [row.line for row in scored.rows]
    suggestions = suggest(
        readings,
        len(lines),
        human=_labelled(lines, candidates, store, task),
        documents=scored.documents,
        systems=scored.systems,
    )
    return {lines[s.row]: place for place, s in enumerate(suggestions)}


def _labelled(lines: list[int], units: Units, store: Store, task: Task) -> Vector:
    """Return the mean label of the store's raters for the rows on these lines of the file, NaN without one.

    Scores in the file itself do not count: they may be of another aspect.
    """
    line_of = {unit.key: unit.line for unit in units.units}
    ratings: dict[int, list[float]] = {}
    for one in store.answers():
        if one.unit in line_of and one.answer is not None:
            ratings.setdefault(line_of[one.unit], []).append(as_number(task, one))
    return np.array(
        [np.mean(ratings[line]) if line in ratings else np.nan for line in lines]
    )


def as_number(task: Task, one: AnswerEvent) -> float:
    """Return a rater's answer as one number, higher is better: the first question's, or fewer errors."""
    assert one.answer is not None
    if task.kind == "spans":
        return -float(sum(error["severity"] for error in one.answer["errors"]))
    question = task.questions[0]
    return question.number(one.answer[question.name])


def sequence(queue: Sequence[str], share: float) -> list[tuple[str, int]]:
    """Return the showings for a rater: (unit, 0), and for a share of the units (unit, 1) GAP others later or more.

    What the queue is too short for comes behind its end. A longer queue only adds to it.
    """
    shown: list[tuple[str, int]] = []
    again: deque[tuple[int, str]] = deque()
    for place, key in enumerate(queue):
        shown.append((key, 0))
        if math.ceil((place + 1) * share) > math.ceil(place * share):
            again.append((place + GAP, key))
        while again and again[0][0] <= place:
            shown.append((again.popleft()[1], 1))
    # A row right behind itself would measure nothing: the repeat before it waits, as the first row always has one.
    if len(queue) < 2:
        return shown
    late = [(key, 1) for _, key in again]
    if late == [(queue[-1], 1)]:
        before = max(n for n, (_, turn) in enumerate(shown) if turn)
        late.insert(0, shown.pop(before))
    return shown + late
