"""Gates that may be looked at after every label: `judgesmith check --anytime`, by `agreement.sequential`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesmith.agreement.coefficients import decision_of
from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.sequential import Look, ShareTest
from judgesmith.errors import OptionError
from judgesmith.evaluating.decided import Decided
from judgesmith.evaluating.gate import Gate
from judgesmith.evaluating.sources import Judged, plain_name
from judgesmith.tables import counted

#: Gates whose numbers are shares of rows.
SHARES = ("accuracy", "recall", "tpr", "precision")
#: How far above the bar a good judge is hoped to be; half of the way to 1 where that is nearer.
AHEAD = 0.1
#: When a row was labelled, as `judgesmith label` writes it.
WHEN = "labelled_at"


@dataclass(frozen=True, slots=True)
class Looked:
    """A gate on a share, looked at after these labels."""

    gate: str
    judge: str
    aspect: str
    look: Look
    test: ShareTest
    in_order: bool
    """The labels' times are known."""

    @property
    def passed(self) -> bool:
        """Return True if the judge has passed."""
        return self.look.decision == "passed"

    def __str__(self) -> str:
        look = self.look
        told = f"{self.judge}, {self.aspect}: {self.gate} "
        match look.decision:
            case "passed":
                told += f"is passed: {look.sufficed} of {look.labels} labels that it counts sufficed"
            case "failed":
                told += f"is not passed: {look.sufficed} of {look.labels} labels that it counts sufficed"
            case "open":
                told += f"is open after {counted(look.labels, 'label')} that it counts"
                if look.more is not None:
                    told += f"; about {look.more} more decide it"
        order = "in which they were given" if self.in_order else "of the file"
        return (
            f"{told} (looked at after each, in the order {order}: a judge at the bar passes in "
            f"{self.test.alpha:.0%} at most, one of {self.test.hoped:g} fails in {self.test.beta:.0%})"
        )


def check_shares(gates: Sequence[Gate]) -> None:
    """Refuse gates that no sequential test has.

    Raises:
        OptionError: For such a gate, or without any.
    """
    if not gates:
        raise OptionError("--anytime needs --fail-under, such as 'tnr>=0.8'")
    for gate in gates:
        if gate.coefficient not in SHARES or not 0 < gate.bar < 1:
            raise OptionError(
                f"--anytime: {gate.text!r} is not on a share of rows; tnr, tpr, accuracy and precision are, with a bar "
                "between 0 and 1"
            )


def looked(
    gate: Gate,
    data: Judged,
    decided: Sequence[Decided],
    chances: Vector | None = None,
) -> list[Looked]:
    """Return what the labels so far say of the first judge, for each aspect of a gate.

    A document counts once, by the mean of its rows, when its first label came.

    Raises:
        OptionError: If the judge does not decide.
    """
    judge = next(iter(data.judges))
    found = []
    for one in decided:
        wanted = gate.aspect in (None, plain_name(one.aspect))
        if one.name == judge and wanted and len(one.people) == len(data.rows):
            found.append(_looked(gate, data, one, chances))
    if not found:
        raise OptionError(
            f"--anytime: {judge} makes no decisions as people do, so {gate.text!r} has no share to look at"
        )
    return found


def _looked(gate: Gate, data: Judged, one: Decided, chances: Vector | None) -> Looked:
    both = np.flatnonzero(~np.isnan(one.people) & ~np.isnan(one.judge))
    people = one.people[both].astype(np.intp)
    ours = one.judge[both].astype(np.intp)
    rows = both[decision_of(gate.coefficient).counted(ours, people)]
    times = [str(data.rows[i].columns.get(WHEN) or "") for i in both.tolist()]
    in_order = all(times)
    if in_order:
        when = dict(zip(both.tolist(), times, strict=True))
        rows = np.array(sorted(rows.tolist(), key=when.__getitem__), dtype=np.intp)
    right = (one.people == one.judge)[rows].astype(np.float64)
    values = []
    weights = []
    relative = _relative(chances)
    places: dict[Any, list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        places.setdefault(one.documents[row], []).append(place)
    for own in places.values():
        values.append(float(right[own].mean()))
        weights.append(1.0 if relative is None else float(relative[rows[own[0]]]))
    test = ShareTest(gate.bar, gate.bar + min(AHEAD, (1 - gate.bar) / 2))
    look = test.look(values, None if relative is None else weights)
    return Looked(gate.text, one.name, one.aspect, look, test, in_order)


def _relative(chances: Vector | None) -> Vector | None:
    """Return one over each row's probability, as a share of the largest; None where all are alike."""
    if chances is None:
        return None
    known = chances[~np.isnan(chances)]
    return np.asarray(known.min() / chances)
