"""The rows to label, their order, and those that are shown twice."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.errors import OptionError
from judgesmith.evaluating.few import read_suggestable
from judgesmith.rooms.labelling.agreement import as_number
from judgesmith.rooms.labelling.chances import Chances, in_strata
from judgesmith.rooms.labelling.deciding import Deciding
from judgesmith.rooms.labelling.request import LabelRequest
from judgesmith.rooms.labelling.store import Store
from judgesmith.rooms.labelling.suggestion import suggest
from judgesmith.rooms.labelling.task import Task, Unit
from judgesmith.rooms.labelling.units import Units

#: Rows shown before a row is shown again, where there are as many, so that the rater judges it afresh.
GAP = 10


def next_units(
    candidates: Units,
    store: Store,
    task: Task,
    request: LabelRequest,
    deciding: Deciding | None = None,
) -> list[str]:
    """Return the keys of the units to add, so that the store's queue reaches the requested length.

    Raises:
        OptionError: The order does not suit the kind of labels.
    """
    queued = set(store.queue())
    units = [unit for unit in candidates.units if unit.key not in queued]
    more = len(units) if request.n is None else max(0, request.n - len(queued))
    if request.chance is not None:
        return _drawn(units, store, task, request, more)
    order = request.order or "file"
    if deciding is not None and request.order is None:
        order = "decide" if deciding.ordered and deciding.passes() else "random"
    if order == "decide":
        return _to_decide(units, store, deciding, request, more)
    if order == "random":
        random.Random(request.seed).shuffle(units)
    elif order == "suggest":
        if task.kind == "preference":
            raise OptionError(
                "--order suggest: it chooses single rows, not pairs; take --order random"
            )
        places = _suggested_places(candidates, store, task, request)
        units = [unit for unit in units if unit.line in places]
        units.sort(key=lambda unit: places[unit.line])
    return [unit.key for unit in units[:more]]


def _drawn(
    units: Sequence[Unit], store: Store, task: Task, request: LabelRequest, more: int
) -> list[str]:
    """Return the keys of units that are drawn with stated probabilities, and keep these.

    Raises:
        OptionError: The probabilities do not suit the rows, the order or the kind of labels.
    """
    if task.kind == "preference" or request.order is not None:
        raise OptionError(
            "--chance draws single rows in an order of its own; leave --order out, and take labels of single rows"
        )
    chances = Chances.parse(str(request.chance))
    found = chances.drawn(str(request.rows), request.columns, units, request.seed)
    return _keep(found, store, more)


def _keep(drawn: Mapping[str, float], store: Store, more: int) -> list[str]:
    """Keep the probabilities of the first units; return these."""
    first = dict(itertools.islice(drawn.items(), more))
    known = json.loads(store.get("chances") or "{}")
    store.set(chances=json.dumps(known | first))
    return list(first)


def _to_decide(
    units: Sequence[Unit],
    store: Store,
    deciding: Deciding | None,
    request: LabelRequest,
    more: int,
) -> list[str]:
    """Return the keys of units in the order that a decision needs, and keep their probabilities.

    Raises:
        OptionError: There is no decision, none that an order helps, or a judge that does not decide.
    """
    if deciding is None:
        raise OptionError("--order decide needs --decide, such as 'tnr>=0.8'")
    if not deciding.ordered:
        raise OptionError(
            f"--order decide: for {deciding.gate.text!r} no order takes fewer labels than a random one; tnr, tpr and "
            "precision have one. Take --order random"
        )
    passes = deciding.passes()
    if not passes:
        raise OptionError(
            "--order decide: the judge has to say pass of some rows and fail of others, and nothing else. Take --order "
            "random"
        )
    judged = [(unit, passes[unit.line]) for unit in units if unit.line in passes]
    found = in_strata(judged, deciding.strata(passes), request.seed)
    return _keep(found, store, more)


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
