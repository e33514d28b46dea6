"""`judgesmith check --plan`: what more labels would buy, from the variances of the labels at hand.

The width of an interval falls with the square root of the number of labels, documents with as many rows as now. A
gate's power follows from that: of correlations on Fisher's scale, of shares by exact binomials. What labels gain when
they are weighed beside a judge that scores is read off the file's own learning curve (`optimizers.fitting.curve`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from judgesmith.agreement.coefficients import title_of
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of
from judgesmith.agreement.sequential import ShareTest
from judgesmith.agreement.sequential import power as power_of_share
from judgesmith.evaluating.decided import Decided
from judgesmith.evaluating.gate import Gate
from judgesmith.evaluating.pivot import headline_place
from judgesmith.evaluating.sources import Judged
from judgesmith.tables import Column, Table, number

if TYPE_CHECKING:
    from judgesmith.optimizers.fitting.curve import Curve

#: Judges and aspects whose learning curve is drawn.
MOST = 4
#: Labels of the plan, as multiples of those at hand.
TIMES = (1, 2, 4, 8)
#: Power that a plan asks for.
WANTED = 0.9
#: Half-widths that are asked for most.
WIDTHS = (0.2, 0.1, 0.05)


@dataclass(frozen=True, slots=True)
class Precision:
    """A number of a judge, with the half-width of its interval and the labels that it rests on."""

    judge: str
    what: str
    value: float
    half: float
    labels: int

    def half_with(self, times: float) -> float:
        """Return the half-width with so many times the labels."""
        return self.half / math.sqrt(times)

    def labels_for(self, half: float) -> int:
        """Return the labels for an interval of this half-width."""
        return math.ceil(self.labels * (self.half / half) ** 2)


@dataclass(frozen=True, slots=True)
class Gain:
    """What labels gain beside a judge."""

    judge: str
    aspect: str
    curve: Curve

    def __str__(self) -> str:
        return f"{self.judge}, {self.aspect}: {self.curve}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"judge": self.judge, "aspect": self.aspect} | self.curve.to_dict()


@dataclass(frozen=True)
class Plan:
    """What more labels would buy."""

    labels: int
    """Labels at hand."""
    precisions: tuple[Precision, ...]
    told: tuple[tuple[str, float, int], ...]
    """Differences between two judges: of what, which is found with 80 % now, and the labels for one of .1."""
    gates: tuple[str, ...]
    """The power of each gate, in words."""
    gains: tuple[Gain, ...] = ()
    """What labels gain beside each judge that scores."""

    def table(self) -> Table:
        """Return half-widths by the number of labels."""
        titles = [f"{one.judge}, {one.what}" for one in self.precisions]
        columns = [Column("labels", "d"), *(Column(title, "s") for title in titles)]
        table = Table(columns, "What more labels would buy")
        for times in TIMES:
            halves = [f"±{one.half_with(times):.2f}" for one in self.precisions]
            table.add(self.labels * times, *halves)
        return table

    def sentences(self) -> Iterator[str]:
        """Yield what the plan says, a sentence each."""
        for one in self.precisions:
            needs = ", ".join(
                f"±{half:g}: {max(one.labels_for(half), self.labels) if half < one.half else 'reached'}"
                for half in WIDTHS
            )
            yield (
                f"{one.judge}, {one.what}: {number(one.value, 2)} ±{one.half:.2f} with {self.labels} labels. Labels "
                f"for {needs}."
            )
        for what, now, labels in self.told:
            yield (
                f"Two judges: with {self.labels} labels a difference of {now:.2f} in {what} is found in 80%; one of "
                f"0.1 needs {labels}."
            )
        yield from self.gates
        yield from map(str, self.gains)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "labels": self.labels,
            "precision": [
                {
                    "judge": one.judge,
                    "what": one.what,
                    "value": one.value,
                    "half_width": {
                        str(self.labels * times): one.half_with(times)
                        for times in TIMES
                    },
                    "labels_for": {str(half): one.labels_for(half) for half in WIDTHS},
                }
                for one in self.precisions
            ],
            "gates": list(self.gates),
            "gains": [one.to_dict() for one in self.gains],
        }


def plan(
    result: MetaEvaluation,
    decided: Sequence[Decided],
    gates: Sequence[Gate],
    bar: float,
    gains: Sequence[Gain] = (),
) -> Plan:
    """Return what more labels would buy.

    gates: those that were asked for; none: those that fit the labels. bar: the share that a judge of pass and fail has
    to reach.
    """
    precisions = list(_precisions(result, decided))
    rows = rows_of(result.agreement)
    labels = max((row["n"] for row in rows if row["level"] == "pooled"), default=0)
    labels = labels or max((one.labels for one in precisions), default=0)
    wanted = list(gates) or [Gate.parse(text) for text in _usual(decided, bar)]
    told = [one for gate in wanted for one in _powers(gate, result, decided)]
    return Plan(
        labels,
        tuple(precisions),
        tuple(_differences(result, labels)),
        tuple(told),
        tuple(gains),
    )


def gains_of(data: Judged, seed: int) -> Iterator[Gain]:
    """Yield what labels gain beside each judge that scores, the first few of them; nothing where labels are too few."""
    from judgesmith.optimizers.fitting.curve import curve
    from judgesmith.programs.readings.passages import Text

    pairs = [
        (judge, aspect, by_aspect[aspect])
        for aspect in data.human
        for judge, by_aspect in data.judges.items()
        if aspect in by_aspect and aspect not in data.kinds
    ]
    for judge, aspect, scores in pairs[:MOST]:
        human = data.human[aspect]
        at = np.flatnonzero(~np.isnan(human)).tolist()
        rows = [data.rows[i] for i in at]
        texts = [
            Text(row.source, row.output, row.context or "", "", row.reference or "")
            for row in rows
        ]
        groups = [row.group or row.doc_id for row in rows]
        found = curve(scores[at], texts, human[at], groups, seed=seed)
        if found is not None:
            yield Gain(judge, aspect, found)


def _usual(decided: Sequence[Decided], bar: float) -> list[str]:
    """Return the gates to plan for where none is named."""
    if any(len(one.names) == 2 for one in decided):
        return [f"tnr>={bar:g}", f"tpr>={bar:g}"]
    if decided:
        return [f"accuracy>={bar:g}"]
    return ["spearman>=0.4"]


def _precisions(
    result: MetaEvaluation, decided: Sequence[Decided]
) -> Iterator[Precision]:
    """Yield the numbers that the first sentence is about."""
    for one in decided:
        labels = int(np.sum(np.array(one.counts())[:, :-1]))
        keys = {"agreement": "agreement", "kappa": "kappa"}
        if len(one.names) == 2:
            keys = {"recall": "fails found", "tpr": "passes passed", "kappa": "kappa"}
        for key, what in keys.items():
            figure = one.figures[key]
            half = (figure.high - figure.low) / 2
            if half > 0:
                yield Precision(one.name, what, figure.value, half, labels)
    known = {(one.name, one.aspect) for one in decided}
    rows = rows_of(result.agreement)
    level, name = headline_place(result, rows)
    for row in rows:
        at = row["level"] == level and row["coefficient"] == name
        half = (row["high"] - row["low"]) / 2
        if at and half > 0 and (row["judge"], row["aspect"]) not in known:
            what = f"{row['aspect']}: {title_of(name)}"
            yield Precision(row["judge"], what, row["value"], half, row["n"])


def _differences(
    result: MetaEvaluation, labels: int
) -> Iterator[tuple[str, float, int]]:
    """Yield the difference between two judges that is found in 80 %, and the labels for one of .1."""
    errors = [row["error"] for row in rows_of(result.comparisons) if row["error"] > 0]
    if errors:
        reach = scipy.stats.norm.ppf(0.975) + scipy.stats.norm.ppf(0.8)
        now = float(reach * max(errors))
        what = title_of(str(result.settings["compare_by"]))
        yield what, now, math.ceil(labels * (now / 0.1) ** 2)


def _powers(
    gate: Gate, result: MetaEvaluation, decided: Sequence[Decided]
) -> Iterator[str]:
    """Yield how often better judges pass a gate with the labels at hand, with four times as many, and when in 90 %."""
    share = _counted(gate, decided)
    if share is not None:
        yield from _of_share(gate, *share)
        return
    curve = gate.curve(result)
    if curve is None:
        return
    n, passing = curve
    true = round(gate.bar + 0.2, 2)
    if true >= 1:
        return
    needs = next((m for m in _numbers(n) if passing(true, m) >= WANTED), None)
    enough = "" if needs is None else f", {WANTED:.0%} needs about {needs}"
    yield (
        f"A judge of true {title_of(gate.coefficient)} {true:g} passes {gate.text} with these {n} labels in "
        f"{passing(true, n):.0%}, with {4 * n} in {passing(true, 4 * n):.0%}{enough}."
    )


def _numbers(n: int) -> Iterator[int]:
    """Yield numbers of labels in steps of 5 %, from a few."""
    m = 8.0
    while m < 100 * max(n, 20):
        yield math.ceil(m)
        m *= 1.05


def _counted(gate: Gate, decided: Sequence[Decided]) -> tuple[int, int] | None:
    """Return the labels of a judge, and those that a gate on a share counts; None for another gate."""
    if not decided:
        return None
    counts = np.array(decided[0].counts())[:, :-1]
    labels = int(counts.sum())
    counted: Mapping[str, int] = {"accuracy": labels}
    if len(decided[0].names) == 2:
        counted = {
            "accuracy": labels,
            "recall": int(counts[0].sum()),
            "tpr": int(counts[1].sum()),
            "precision": int(counts[:, 0].sum()),
        }
    own = counted.get(gate.coefficient)
    return None if not own else (labels, own)


def _of_share(gate: Gate, labels: int, own: int) -> Iterator[str]:
    """Yield the power of a gate on a share. own: labels that it counts."""
    true = round(gate.bar + min(0.1, (1 - gate.bar) / 2), 3)
    if not 0 < gate.bar < true < 1:
        return

    def passing(m: int) -> float:
        return power_of_share(gate.bar, true, max(1, round(m * own / labels)), 0.025)

    needs = next((m for m in _numbers(labels) if passing(m) >= WANTED), None)
    enough = "" if needs is None else f", {WANTED:.0%} needs about {needs}"
    name = gate.text.partition(">")[0].strip()
    looking = ShareTest(gate.bar, true).expected(true) * labels / own
    yield (
        f"A judge of true {name} {true:g} passes {gate.text} with these {labels} labels in {passing(labels):.0%}, with "
        f"{4 * labels} in {passing(4 * labels):.0%}{enough}; looked at after every label (--anytime), about "
        f"{math.ceil(looking)} decide it."
    )
