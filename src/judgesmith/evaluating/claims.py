"""What a saved judge's file says of its agreement with people, beside what it reaches on the rows at hand."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judgesmith.agreement.correlation import Level
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Rows, objectives
from judgesmith.evaluating.sources import Judged
from judgesmith.programs.contract import Contract, speaks_of
from judgesmith.running.plain import finite
from judgesmith.signatures.values import Scale

if TYPE_CHECKING:
    from judgesmith.evaluating.live import LiveRun

_LEVEL = re.compile(r"\|(pooled|within|sample|system)\|")
#: The least rows that are worth a comparison.
FEWEST = 8


@dataclass(frozen=True, slots=True)
class Measured:
    """Agreement with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}] ({self.n} rows)"


@dataclass(frozen=True, slots=True)
class Claim:
    """A judge's agreement when it was compiled, and now, by the same objective."""

    judge: str
    aspect: str
    objective: str
    then: Measured
    now: Measured
    changed: tuple[str, ...]
    """What may have changed: people, texts, the model."""
    seen: int = 0
    """Rows at hand that it was compiled from."""

    @property
    def ends(self) -> tuple[float, float]:
        """Return the 95 % interval of now less then, of two independent intervals that need not be symmetric.

        Source: Zou and Donner 2008 (MOVER).
        """
        then = self.then
        now = self.now
        difference = now.value - then.value
        below = math.hypot(now.value - now.low, then.high - then.value)
        above = math.hypot(now.high - now.value, then.value - then.low)
        return difference - below, difference + above

    @property
    def differs(self) -> bool:
        """Return True if the interval of the difference leaves 0 out."""
        low, high = self.ends
        return low > 0 or high < 0

    def __str__(self) -> str:
        low, high = self.ends
        told = (
            f"{self.judge}, {self.aspect}: {self.objective} {self.then} when it was compiled, {self.now} on these "
            f"rows: {self.now.value - self.then.value:+.2f} [{low:.2f}, {high:.2f}], "
        )
        if self.differs:
            told += f"more than chance: {' or '.join(self.changed)} changed"
        else:
            told += "no more than chance"
        if self.seen:
            told += f" ({self.seen} of these rows it was compiled from; --unseen leaves them out)"
        return told

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        low, high = self.ends
        sides = {
            name: {"value": m.value, "low": m.low, "high": m.high, "n": m.n}
            for name, m in (("then", self.then), ("now", self.now))
        }
        told = {"value": self.now.value - self.then.value, "low": low, "high": high}
        about = {
            "judge": self.judge,
            "aspect": self.aspect,
            "objective": self.objective,
        }
        result: dict[str, Any] = finite(about | sides | {"difference": told})
        return result | {"differs": self.differs}


def claims(
    data: Judged, live: Sequence[LiveRun], *, rounds: int, seed: int
) -> list[Claim]:
    """Return what the files of saved judges say beside what is measured; none for judges without labels."""
    return [
        claim
        for run in live
        for claim in _of_judge(data, run, rounds=rounds, seed=seed)
    ]


def _of_judge(data: Judged, run: LiveRun, *, rounds: int, seed: int) -> Iterator[Claim]:
    from judgesmith.programs import artifact

    history = artifact.read(run.artifact).provenance
    several = history.get("aspects")
    parts = several.values() if isinstance(several, Mapping) else [history]
    changed = ("people", "texts", *(["the model"] if run.moved else []))
    for part in parts:
        contract = Contract.of(part)
        if contract is None:
            continue
        for aspect, scores in data.judges[run.judge].items():
            then = _stated(part.get("heldout"))
            if then is None or not speaks_of(contract.question.aspect, aspect):
                continue
            name, level, before = then
            now = _reached(data, aspect, scores, name, level, rounds=rounds, seed=seed)
            if now is not None:
                label = objectives.get(name).label
                yield Claim(
                    run.judge, aspect, label, before, now, changed, len(data.seen)
                )


def _stated(heldout: Any) -> tuple[str, Level, Measured] | None:
    """Return objective, level and agreement of held-out rows, as a file says them; None where it says none."""
    told = heldout if isinstance(heldout, Mapping) else {}
    name = told.get("objective")
    level = _LEVEL.search(str(told.get("signature")))
    numbers = [told.get(end) for end in ("value", "low", "high", "n")]
    if name not in objectives or any(not isinstance(n, int | float) for n in numbers):
        return None
    value, low, high, n = map(float, numbers)  # type: ignore[arg-type]
    if not low <= value <= high:
        return None
    of = cast(Level, level[1] if level else "pooled")
    return str(name), of, Measured(value, low, high, int(n))


def _reached(
    data: Judged,
    aspect: str,
    scores: Any,
    name: str,
    level: Level,
    *,
    rounds: int,
    seed: int,
) -> Measured | None:
    """Return the agreement on the rows at hand; None for too few of them, or where it is not defined."""
    scale = Scale(*data.scales.get(aspect, (0.0, 1.0)))
    human = data.human[aspect]
    rated = np.flatnonzero(~np.isnan(human))
    scored = ~np.isnan(scores[rated])
    if scored.sum() < FEWEST or not rounds:
        return None
    at = rated[scored]
    systems = data.systems
    rows = Rows(
        np.array([scale.to_percent(score) for score in human[at].tolist()]),
        [data.documents[i] for i in at],
        [data.rows[i].group for i in at],
        None if systems is None else [systems[i] for i in at],
    )
    by = objectives.get(name)(level)
    found = AgreementValue.of(scores[at], rows, by, seed=seed, rounds=rounds)
    if found.reason or math.isnan(found.low):
        return None
    return Measured(found.value, found.low, found.high, found.reached.n)
