"""Traces without a verdict of a judge: scored, given back, and compared with what people said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..agreement.meta.evaluation import meta_evaluate
from ..agreement.meta.inputs import LEAST_ROWS, OF_KIND
from ..datasets.loading import iter_rows, read_outputs
from ..datasets.marks import Marks
from ..datasets.row import OVERALL, Row
from ..datasets.sheet import Outputs
from ..errors import LabelsError, OptionError
from ..evaluating.sources import Judged, own_categories, read_people
from ..optimizers.examples import numbers_of
from ..optimizers.seen import Seen
from ..programs.artifact import fingerprint, labels_aspect
from ..programs.judge import Judge
from ..rows import as_text
from ..running.console import Watch
from ..running.limits import Limits
from ..running.plain import finite
from ..wording import folded
from .pulling import Pulled, Record, without_output

#: Traces whose texts are held at once.
PART = 500
#: Rows from which on agreement has an interval.
ENOUGH = 8
MOST_DIFFERENT = 20


@dataclass
class Judging:
    """A judge among the traces of a queue. human: the feedback that it is compared with. mark: the judge's fingerprint,
    worked out where not given. orders: the words of feedback, worst first, by its name. Raises OptionError for a judge
    that does not score one output alone.
    """

    judge: Judge
    queue: Any
    pulled: Pulled
    human: str | None = None
    mark: str = ""
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scored: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.judge.whole_documents:
            raise OptionError(
                f"a {self.judge.method.kind} judge scores outputs against each other; a trace has one alone"
            )
        known = list(self.pulled.to_dict()["aspects"])
        if self.human is not None and self.human not in known:
            raise OptionError(
                f"--human {self.human}: there is no such feedback; there is {', '.join(known) or 'none'}"
            )
        compiled = labels_aspect(self.judge)
        own = [
            name
            for name in (self.human, compiled, self.judge.judges_aspect, OVERALL)
            if name in known
        ]
        self.aspect = own[0] if own else known[0] if len(known) == 1 else None
        named = compiled if compiled in known or compiled != OVERALL else ""
        self.name = (
            named or self.judge.judges_aspect or self.aspect or self.judge.method.kind
        )
        self.mark = self.mark or fingerprint(self.judge)

    def waiting(self, limit: int | None) -> list[str]:
        """The newest traces that have an output and no verdict of this judge."""
        heads = self.pulled.heads.items()
        return [
            name
            for name, head in heads
            if self.mark not in head["verdicts"] and not without_output(head)
        ][:limit]

    def run(self, traces: list[str], limits: Limits, watch: Watch) -> None:
        """Score those that have an output; each verdict is given back at once. Raises BudgetError over the limits."""
        give = self.queue.giving(self.judge, self.name)
        watch.stage("traces without a verdict", len(traces))
        with limits.spending(self.judge.lm):
            for start in range(0, len(traces), PART):
                rows = list(self._rows(traces[start : start + PART]))
                for row in rows:
                    numbers_of(self.judge, row, self.pulled.origin)
                for row, verdict in zip(
                    rows, self.judge.score_many(iter(rows), progress=False), strict=True
                ):
                    if verdict.failure is None:
                        give(row.id, verdict)
                        kept = {
                            "score": verdict.score,
                            "passed": verdict.passed,
                            "category": verdict.category,
                        }
                        self.pulled.heads[row.id]["verdicts"][self.mark] = kept
                        self.scored += 1
                    else:  # no low score, and nothing to give back: the next sync tries again
                        self.failures.append((row.id, verdict.failure))
                    watch.step()
                    limits.check(
                        len(self.failures),
                        self.scored + len(self.failures),
                        verdict.failure,
                    )

    def _rows(self, traces: list[str]) -> Iterator[Row]:
        whole = (
            self.pulled.rows.get(name) or self.queue.whole(name) for name in traces
        )
        records = [
            one
            for one in whole
            if one is not None and as_text(one.get("output")) is not None
        ]
        return (row for row, _ in iter_rows(records)) if records else iter(())

    def compared(self) -> dict[str, Any]:
        """Agreement on the rows that the judge was not compiled from: on those labelled since the last sync, and on
        all. And where judge and people differ most, in shares of the scale.
        """
        verdicts = {
            name: head["verdicts"].get(self.mark)
            for name, head in self.pulled.heads.items()
        }
        rated = [
            row
            for row in self.pulled.rows.values()
            if verdicts.get(row["id"]) and self.aspect in row["scores"]
        ]
        if self.aspect is None or not rated:
            return {
                "aspect": self.aspect,
                "since": None,
                "all": None,
                "seen": 0,
                "differ": [],
            }
        file = self._read(
            [
                row | {"scores": {self.aspect: row["scores"][self.aspect]}}
                for row in rated
            ]
        )
        joined, given = (
            Judged(self.pulled.origin, file.rows),
            [verdicts[row.id] or {} for row in file.rows],
        )
        read_people(joined, file, [self.aspect], None)
        own_categories(
            joined,
            self.name,
            [(one.get("category"), one.get("passed")) for one in given],
        )
        people, scores = (
            joined.human[self.aspect],
            np.array([one.get("score", math.nan) for one in given]),
        )
        joined.judges[self.name] = {self.aspect: scores}
        ids, known = [row.id for row in file.rows], Seen(self.judge.provenance)
        fresh = np.array([not known.knows(row.source, row.output) for row in file.rows])
        new = np.isin(ids, [*self.pulled.added, *self.pulled.changed])
        (low, high), scale = (
            joined.scales.get(self.aspect, (0.0, 1.0)),
            self.judge.scale,
        )
        gaps = np.abs(
            (people - low) / (high - low)
            - (scores - scale.low) / (scale.high - scale.low)
        )
        order = [i for i in np.argsort(-gaps, kind="stable") if gaps[i] > 0][
            :MOST_DIFFERENT
        ]
        differ = [
            {
                "id": ids[i],
                "people": people[i],
                "judge": scores[i],
                "gap": gaps[i],
                "seen": not fresh[i],
            }
            for i in order
        ]
        return {
            "aspect": self.aspect,
            "seen": int((~fresh).sum()),
            "differ": finite(differ),
            "since": self._agreement(joined, fresh & new),
            "all": self._agreement(joined, fresh),
        }

    def _read(self, rated: list[Record]) -> Outputs:
        """The rows as they are, or where only the judge knows which of two words is the better one, as it does."""
        file, decision = (
            read_outputs(rated, categories=self.orders),
            self.judge.outcome.decision,
        )
        marks = file.columns.marks.get(str(self.aspect), Marks())
        names = decision.names if decision is not None else ()
        same = {folded(name) for name in names} == {
            folded(name) for name in marks.unknown
        }
        return read_outputs(rated, categories=names) if marks.fault and same else file

    def _agreement(self, joined: Judged, rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """On some rows: the first coefficient for the kind of feedback, with an interval where there are enough."""
        aspect, count = str(self.aspect), int(rows.sum())
        none = {
            "n": count,
            "coefficient": None,
            "value": None,
            "low": None,
            "high": None,
        }
        if count < LEAST_ROWS:
            return none | {
                "reason": "too few for a number" if count else "there are none"
            }
        decided = {
            judge: {aspect: given[aspect][rows]}
            for judge, given in joined.decided.items()
        }
        try:
            table = meta_evaluate(
                {self.name: joined.judges[self.name][aspect][rows]},
                {aspect: joined.human[aspect][rows]},
                documents=[
                    name
                    for name, one in zip(joined.documents, rows, strict=True)
                    if one
                ],
                scale=joined.scales,
                kinds=joined.kinds,
                categories={name: marks.levels for name, marks in joined.marks.items()},
                decided=decided,
                levels=("pooled",),
                compare=False,
                rounds=1000 if count >= ENOUGH else 0,
            ).agreement
        except LabelsError as error:
            return none | {"reason": str(error)}
        wanted = OF_KIND.get(joined.kinds.get(aspect, "score"), ("spearman",))
        some = table[table.coefficient.isin(wanted)].sort_values(
            "value", key=np.isnan, kind="stable"
        )  # defined ones
        one = some.iloc[0]
        numbers = finite({key: float(one[key]) for key in ("value", "low", "high")})
        return {
            "n": int(one.n),
            "coefficient": one.coefficient,
            **numbers,
            "reason": one.reason or None,
        }
