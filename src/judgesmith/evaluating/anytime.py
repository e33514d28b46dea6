"""Gates that may be looked at after every label: `judgesmith check --anytime`, `judgesmith label --decide`.

`agreement.sequential` has the tests. Shares of rows have exact ones, other numbers one that is asymptotic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgesmith.agreement.coefficients import (
    Decision,
    Pairs,
    coefficient_of,
    decision_of,
)
from judgesmith.agreement.correlation import Codes, Vector, id_codes
from judgesmith.agreement.meta.agreement import share_of
from judgesmith.agreement.resampling import Agreement, Measure
from judgesmith.agreement.sequential import (
    CoefficientTest,
    Look,
    Share,
    ShareTest,
    Strata,
    StrataTest,
    looks_of,
    planned,
)
from judgesmith.errors import OptionError
from judgesmith.evaluating.decided import Decided, places
from judgesmith.evaluating.gate import ERRORS, RATE, WAY, Gate
from judgesmith.evaluating.sources import Judged, plain_name
from judgesmith.tables import counted

#: Gates whose numbers are shares of rows, with the names of the tests.
SHARES: dict[str, Share] = {
    "recall": "tnr",
    "tpr": "tpr",
    "precision": "precision",
    "accuracy": "accuracy",
    RATE: "rate",
}
#: Shares of which strata of verdicts tell something (experiments/results/audits.md): those of rows of one kind.
STRATIFIED: tuple[Share, ...] = ("tnr", "tpr", "precision")
#: How far above the bar a good judge is hoped to be, of the range; half of the way to its end where that is nearer.
AHEAD = 0.1
#: When a row was labelled, as `judgesmith label` writes it.
WHEN = "labelled_at"


@dataclass(frozen=True, slots=True)
class Looked:
    """A gate, looked at after these labels."""

    gate: str
    judge: str
    aspect: str
    look: Look
    test: ShareTest | StrataTest | CoefficientTest
    in_order: bool
    """The labels' times are known."""
    good: str = ""
    """What a good judge is hoped to have; "" where the test says it."""

    @property
    def passed(self) -> bool:
        """Return True if the judge has passed."""
        return self.look.decision == "passed"

    @property
    def sentence(self) -> str:
        """The decision alone, in a few words."""
        look = self.look
        enough = f"{look.sufficed} of {look.labels} labels that it counts sufficed"
        match look.decision:
            case "passed":
                return f"{self.gate} is passed: {enough}"
            case "failed":
                return f"{self.gate} is not passed: {enough}"
            case "open":
                told = f"{self.gate} is open after {counted(look.labels, 'label')} that it counts"
                if look.more is not None:
                    told += f"; about {look.more} more decide it"
                return told

    def __str__(self) -> str:
        order = "in which they were given" if self.in_order else "of the file"
        good = self.good or f"{self.test.hoped:g}"
        errors = f"passes in {self.test.alpha:.0%} at most, one of {good} fails in {self.test.beta:.0%}"
        if isinstance(self.test, CoefficientTest):
            errors = f"passes in about {self.test.alpha:.0%}, one of {good} fails in about {self.test.beta:.0%}"
        share = self.look.share
        so_far = "" if math.isnan(share) else f"; it is {share:.2f} by them"
        return (
            f"{self.judge}, {self.aspect}: {self.sentence}{so_far} (looked at after each, in the order {order}: a "
            f"judge at the bar {errors})"
        )


def check_looks(gates: Sequence[Gate]) -> None:
    """Refuse gates that no sequential test has.

    Raises:
        OptionError: For such a gate, or without any.
    """
    if not gates:
        raise OptionError("--anytime needs --fail-under, such as 'tnr>=0.8'")
    for gate in gates:
        if why := _untested(gate):
            raise OptionError(
                f"--anytime: {gate.text!r} cannot be looked at after every label, as {why}; test it once, or label for "
                "tnr, tpr, accuracy, kappa or a correlation"
            )


def _untested(gate: Gate) -> str:
    """Return why no sequential test has a gate; "" if one has."""
    if gate.coefficient == WAY:
        return "way is a ratio of two agreements, which few labels leave without bounds"
    if gate.level == "system":
        return (
            "labels add no systems, and a correlation of few systems is no random walk"
        )
    if gate.coefficient in ERRORS:
        return "" if gate.bar > 0 else "no error is below 0"
    if gate.coefficient not in SHARES and issubclass(
        coefficient_of(gate.coefficient), Pairs
    ):
        return "its epsilon is fitted to all labels at once"
    low, high = _range(gate)
    inside = low < gate.bar < high
    return "" if inside else f"the bar is not between {low:g} and {high:g}"


def _range(gate: Gate) -> tuple[float, float]:
    if gate.coefficient == RATE:
        return 0.0, 1.0
    declared = coefficient_of(gate.coefficient)
    return declared.low, declared.high


def looked(
    gate: Gate,
    data: Judged,
    decided: Sequence[Decided],
    chances: Vector | None = None,
) -> list[Looked]:
    """Return what the labels so far say of the first judge, for each aspect of a gate.

    A document counts once, when its first label came.

    Args:
        gate: The gate, of which there is a test (`check_looks`).
        data: The rows, in which those without a label tell how often the judge says what.
        decided: Decisions of people and judges.
        chances: The probability with which each row was drawn for labelling; None: all were drawn alike.

    Raises:
        OptionError: If the judge has no such number, or rows were not drawn alike and the test does not weigh them.
    """
    judge = next(iter(data.judges))
    aspects = [a for a in data.human if gate.aspect in (None, plain_name(a))]
    if gate.coefficient not in SHARES:
        if data.unequal:
            raise OptionError(
                f"--anytime: {gate.text!r}: rows were drawn with unequal probabilities ({data.unequal!r}), which only "
                "shares of rows weigh (tnr, tpr, accuracy, precision, rate)"
            )
        own = {one.aspect: one for one in decided if one.name == judge}
        return [
            _Number(gate, data, judge, aspect, own.get(aspect)).looked()
            for aspect in aspects
        ]
    found = [
        _of_share(gate, data, one, chances)
        for one in decided
        if one.name == judge
        and one.aspect in aspects
        and len(one.people) == len(data.rows)
    ]
    if not found:
        raise OptionError(
            f"--anytime: {judge} makes no decisions as people do, so {gate.text!r} has no share to look at"
        )
    return found


def hoped_of(gate: Gate) -> float:
    """Return the share, or the coefficient, that a good judge is hoped to have."""
    low, high = _range(gate)
    return gate.bar + min(AHEAD * (high - low), (high - gate.bar) / 2)


# Shares of rows ------------------------------------------------------------------------------------------------------


def _of_share(gate: Gate, data: Judged, one: Decided, chances: Vector | None) -> Looked:
    hoped = hoped_of(gate)
    share = SHARES[gate.coefficient]
    both = ~np.isnan(one.people)
    if share != "rate":
        both &= ~np.isnan(one.judge)
    rows, in_order = _in_order(data, np.flatnonzero(both))
    strata = _strata(gate, data, one, chances, rows)
    if strata is not None:
        test = StrataTest(share, gate.bar, hoped, strata)
        look = test.look(one.judge[rows] == 1, one.people[rows] == 1)
        return Looked(gate.text, one.name, one.aspect, look, test, in_order)
    plain = ShareTest(gate.bar, hoped)
    values, weights = _by_document(gate, one, rows, _relative(chances))
    look = plain.look(values, None if chances is None else weights)
    return Looked(gate.text, one.name, one.aspect, look, plain, in_order)


def _strata(
    gate: Gate, data: Judged, one: Decided, chances: Vector | None, rows: Codes
) -> Strata | None:
    """Return the strata of the judge's verdicts; None where they tell nothing, or are not known.

    Rows without a label tell how large they are, and rows of one document are no independent draws.
    """
    share = SHARES[gate.coefficient]
    if (
        share not in STRATIFIED
        or len(one.names) != 2
        or np.isnan(one.people).sum() == 0
    ):
        return None
    documents = one.documents[rows]
    if len(np.unique(documents)) < len(documents):
        return None
    sizes = [float((one.judge == place).sum()) for place in (0, 1)]
    if not all(sizes):
        return None
    plan = planned(share, (sizes[0], sizes[1]), gate.bar, hoped_of(gate))
    drawn = list(plan.sizes)
    if chances is not None:
        for place in (0, 1):
            own = chances[rows][one.judge[rows] == place]
            if not len(own) or np.ptp(own) > 0:
                return None
            drawn[place] = sizes[place] * float(own[0])
    whole = sum(drawn)
    return Strata(plan.rows, (drawn[0] / whole, drawn[1] / whole), plan.fails)


def _by_document(
    gate: Gate, one: Decided, rows: Codes, relative: Vector | None
) -> tuple[list[float], list[float]]:
    """Return the share of each document's rows, and its weight, in the order of the first labels."""
    people = one.people[rows].astype(np.intp)
    if gate.coefficient == RATE:
        right = (people == 1).astype(np.float64)
    else:
        ours = one.judge[rows].astype(np.intp)
        kept = decision_of(gate.coefficient).counted(ours, people)
        rows = rows[kept]
        right = (ours == people)[kept].astype(np.float64)
    values = []
    weights = []
    places: dict[Any, list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        places.setdefault(one.documents[row], []).append(place)
    for own in places.values():
        values.append(float(right[own].mean()))
        weights.append(1.0 if relative is None else float(relative[rows[own[0]]]))
    return values, weights


def _in_order(data: Judged, rows: Codes) -> tuple[Codes, bool]:
    """Return rows in the order in which they were labelled, and whether that is known."""
    times = [str(data.rows[i].columns.get(WHEN) or "") for i in rows.tolist()]
    if not all(times):
        return rows, False
    when = dict(zip(rows.tolist(), times, strict=True))
    return np.array(sorted(rows.tolist(), key=when.__getitem__), dtype=np.intp), True


def _relative(chances: Vector | None) -> Vector | None:
    """Return one over each row's probability, as a share of the largest; None where all are alike."""
    if chances is None:
        return None
    known = chances[~np.isnan(chances)]
    return np.asarray(known.min() / chances)


# Other numbers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Number:
    """A coefficient or an error that a gate is on, of one judge and aspect, looked at by `CoefficientTest`."""

    gate: Gate
    data: Judged
    judge: str
    aspect: str
    decided: Decided | None
    """The judge's decisions; None if it makes none as people do."""

    def looked(self) -> Looked:
        """Return what the labels so far say.

        Raises:
            OptionError: If the judge has no such number.
        """
        data = self.data
        scores = data.judges[self.judge].get(self.aspect)
        if scores is None:
            raise OptionError(f"--anytime: {self.judge} has no score for {self.aspect}")
        both = np.flatnonzero(~np.isnan(scores) & ~np.isnan(data.human[self.aspect]))
        rows, in_order = _in_order(data, both)
        every = id_codes(data.documents, len(data.rows), "documents")
        documents = np.asarray(every[rows])
        units = list(dict.fromkeys(documents.tolist()))
        test = self._test()
        looks = []
        for labels in looks_of(len(units)):
            some = rows[np.isin(documents, units[:labels])]
            codes = np.unique(every[some], return_inverse=True)[1]
            found = self._agreement(some, codes)
            one = None if found is None else _left_out(found)
            if one is not None:
                looks.append((labels, *one))
        look = test.look(looks, len(units))
        sign = -1 if self.gate.coefficient in ERRORS else 1
        look = replace(look, share=sign * look.share)
        good = f"{sign * test.hoped:.3g}"
        return Looked(
            self.gate.text, self.judge, self.aspect, look, test, in_order, good
        )

    def _test(self) -> CoefficientTest:
        """Return the test of the gate; of an error, the test of 0 less it."""
        gate = self.gate
        if gate.coefficient in ERRORS:
            worst, best = self.data.scales.get(self.aspect, (0.0, 2 * gate.bar))
            span = max(best - worst, 2 * gate.bar)
            hoped = gate.bar - min(AHEAD * span, gate.bar / 2)
            return CoefficientTest(-gate.bar, -hoped, -span, 0.0)
        return CoefficientTest(gate.bar, hoped_of(gate), *_range(gate))

    def _agreement(self, rows: Codes, documents: Codes) -> Agreement | None:
        """Return the number on some rows, whose documents are numbered from 0; None where it has none."""
        name = self.gate.coefficient
        x = self.data.judges[self.judge][self.aspect][rows]
        y = self.data.human[self.aspect][rows]
        if name in ERRORS:
            return _of_errors(name, np.abs(x - y), documents)
        if issubclass(coefficient_of(name), Decision):
            return self._of_decisions(decision_of(name), rows, documents)
        systems = self.data.systems
        level: Any = self.gate.level or "pooled"
        measure = Measure(
            y,
            documents=documents.tolist(),
            systems=[systems[i] for i in rows]
            if systems is not None and level == "within"
            else None,
            level=level,
            coefficient=name,
        )
        return Agreement.of([x], measure)

    def _of_decisions(
        self, measure: Decision, rows: Codes, documents: Codes
    ) -> Agreement | None:
        """Return a measure of decisions.

        Raises:
            OptionError: If the judge makes no decisions as people do.
        """
        x = self.data.judges[self.judge][self.aspect][rows]
        y = self.data.human[self.aspect][rows]
        count = int(documents.max()) + 1
        if measure.fits == "preferences":
            drawn = measure.when_drawn(x, y, documents)
            return Agreement.of_share(drawn, count, len(rows))
        marks = self.data.marks.get(self.aspect)
        if measure.by_scores and marks is not None:
            people = places(y, marks.levels).astype(np.intp)
            drawn = measure.when_drawn(x, people, documents)
            return Agreement.of_share(drawn, count, len(rows))
        if self.decided is None or len(self.decided.people) != len(self.data.rows):
            raise OptionError(
                f"--anytime: {self.judge} makes no decisions as people do, so {self.gate.text!r} has no number to look "
                "at"
            )
        ours = self.decided.judge[rows].astype(np.intp)
        theirs = self.decided.people[rows].astype(np.intp)
        if not measure.counted(ours, theirs).any():
            return None
        return share_of(measure.name, ours, theirs, documents)


def _left_out(found: Agreement) -> tuple[float, Vector] | None:
    """Return an agreement, and what it is without each document; None where one of these is undefined."""
    if not found.statistics or math.isnan(found.values[0]) or found.documents < 4:
        return None
    (statistic,) = found.statistics
    each = np.ones((found.documents, found.documents)) - np.eye(found.documents)
    values = found.collapsed(np.asarray(statistic(each)))
    return None if np.isnan(values).any() else (found.values[0], values)


def _of_errors(name: str, errors: Vector, documents: Codes) -> Agreement:
    """Return 0 less the mean error, or less the root of the mean square."""
    power = 2 if name == "rmse" else 1
    sums = np.bincount(documents, errors**power)
    counts = np.bincount(documents).astype(np.float64)

    def less(drawn: Vector) -> Vector:
        return -(((drawn @ sums) / (drawn @ counts)) ** (1 / power))[:, None]

    value = float(less(np.ones((1, len(sums))))[0, 0])
    return Agreement([less], [value], len(sums), len(errors), False, None)
