"""Traces without a verdict of a judge: scored, given back, and compared with what people said."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.coefficients import unasked
from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.agreement.meta.inputs import LEAST_ROWS
from judgesmith.datasets.loading import iter_rows, read_outputs
from judgesmith.datasets.marks import Marks
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.sheet import Outputs
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.sources import Judged, own_categories, read_people
from judgesmith.optimizers.examples import numbers_of
from judgesmith.optimizers.seen import Seen
from judgesmith.programs.artifact import fingerprint, labels_aspect
from judgesmith.programs.judge import Judge
from judgesmith.rooms.sync.pulling import Pulled, Record, without_output
from judgesmith.rows import as_text
from judgesmith.running.console import Watch
from judgesmith.running.limits import Limits
from judgesmith.running.plain import finite
from judgesmith.wording import folded

#: Traces whose texts are held at once.
PART = 500
#: Rows from which on agreement has an interval.
ENOUGH = 8
MOST_DIFFERENT = 20


@dataclass
class Judging:
    """A judge among the traces of a queue.

    human: the feedback that it is compared with. mark: the judge's fingerprint, computed if not given. orders: the
    words of feedback, worst first, by its name.

    Raises:
        OptionError: If the judge does not score one output alone.
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
        aspects = list(self.pulled.to_dict()["aspects"])
        if self.human is not None and self.human not in aspects:
            raise OptionError(
                f"--human {self.human}: there is no such feedback; there is {', '.join(aspects) or 'none'}"
            )
        compiled = labels_aspect(self.judge)
        self.aspect = aspects[0] if len(aspects) == 1 else None
        for name in (self.human, compiled, self.judge.judges_aspect, OVERALL):
            if name in aspects:
                self.aspect = name
                break
        named = compiled if compiled in aspects or compiled != OVERALL else ""
        self.name = (
            named or self.judge.judges_aspect or self.aspect or self.judge.method.kind
        )
        self.mark = self.mark or fingerprint(self.judge)

    def waiting(self, limit: int | None) -> list[str]:
        """Return the newest traces that have an output and no verdict of this judge."""
        heads = self.pulled.heads.items()
        return [
            name
            for name, head in heads
            if self.mark not in head["verdicts"] and not without_output(head)
        ][:limit]

    def run(self, traces: list[str], limits: Limits, watch: Watch) -> None:
        """Score those that have an output; each verdict is written back at once.

        Raises:
            BudgetError: If a limit is reached.
        """
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
                        summary = {
                            "score": verdict.score,
                            "passed": verdict.passed,
                            "category": verdict.category,
                        }
                        self.pulled.heads[row.id]["verdicts"][self.mark] = summary
                        self.scored += 1
                    else:  # no low score, and nothing to give back: the next sync tries again
                        self.failures.append((row.id, verdict.failure))
                    watch.step()
                    limits.check(
                        len(self.failures),
                        self.scored + len(self.failures),
                        verdict.failure,
                        len(traces),
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
        """Return the agreement on rows that the judge was not compiled from: labelled since the last sync, and all.

        Rows where judge and people differ most come with it, in shares of the scale.
        """
        verdicts = dict[str, Any]()
        for name, head in self.pulled.heads.items():
            verdicts[name] = head["verdicts"].get(self.mark)
        rated = list[dict[str, Any]]()
        for row in self.pulled.rows.values():
            if verdicts.get(row["id"]) and self.aspect in row["scores"]:
                rated.append(
                    row | {"scores": {self.aspect: row["scores"][self.aspect]}}
                )
        if self.aspect is None or not rated:
            return {
                "aspect": self.aspect,
                "since": None,
                "all": None,
                "seen": 0,
                "differ": [],
            }
        file = self._read(rated)
        joined = Judged(self.pulled.origin, file.rows)
        judged = [verdicts[row.id] or {} for row in file.rows]
        read_people(joined, file, [self.aspect], None)
        decisions = [(one.get("category"), one.get("passed")) for one in judged]
        own_categories(joined, self.name, decisions)
        scores = np.array([one.get("score", math.nan) for one in judged])
        joined.judges[self.name] = {self.aspect: scores}
        fresh = self._fresh(file)
        since = [row.id for row in file.rows]
        new = np.isin(since, [*self.pulled.added, *self.pulled.changed])
        return {
            "aspect": self.aspect,
            "seen": int((~fresh).sum()),
            "differ": finite(self._differing(joined, fresh)),
            "since": self._agreement(joined, fresh & new),
            "all": self._agreement(joined, fresh),
        }

    def _fresh(self, file: Outputs) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that the judge was not compiled from."""
        seen = Seen(self.judge.provenance)
        return np.array([not seen.knows(row.source, row.output) for row in file.rows])

    def _differing(
        self, joined: Judged, fresh: npt.NDArray[np.bool_]
    ) -> list[dict[str, Any]]:
        """Return the rows where judge and people differ most, in shares of the scale."""
        aspect = str(self.aspect)
        scale = self.judge.scale
        people = joined.human[aspect]
        scores = joined.judges[self.name][aspect]
        low, high = joined.scales.get(aspect, (0.0, 1.0))
        gaps = np.abs(
            (people - low) / (high - low)
            - (scores - scale.low) / (scale.high - scale.low)
        )
        order = np.argsort(-gaps, kind="stable")
        return [
            {
                "id": joined.rows[i].id,
                "people": people[i],
                "judge": scores[i],
                "gap": gaps[i],
                "seen": not fresh[i],
            }
            for i in order[gaps[order] > 0][:MOST_DIFFERENT]
        ]

    def _read(self, rated: list[Record]) -> Outputs:
        """Return the rows; if only the judge knows which of two words is the better one, with its order."""
        file = read_outputs(rated, categories=self.orders)
        decision = self.judge.outcome.decision
        marks = file.columns.marks.get(str(self.aspect), Marks())
        names = decision.names if decision is not None else ()
        same = {folded(name) for name in names} == {
            folded(name) for name in marks.unknown
        }
        return read_outputs(rated, categories=names) if marks.fault and same else file

    def _agreement(self, joined: Judged, rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return the agreement on some rows: the first coefficient for the feedback, with an interval if possible."""
        aspect = str(self.aspect)
        count = int(rows.sum())
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
            judge: {aspect: scores[aspect][rows]}
            for judge, scores in joined.decided.items()
        }
        categories = {name: marks.levels for name, marks in joined.marks.items()}
        try:
            table = meta_evaluate(
                {self.name: joined.judges[self.name][aspect][rows]},
                {aspect: joined.human[aspect][rows]},
                documents=list(itertools.compress(joined.documents, rows)),
                scale=joined.scales,
                kinds=joined.kinds,
                categories=categories,
                decided=decided,
                levels=("pooled",),
                compare=False,
                rounds=1000 if count >= ENOUGH else 0,
            ).agreement
        except LabelsError as error:
            return none | {"reason": str(error)}
        wanted = unasked(joined.kinds.get(aspect, "score")) or ("spearman",)
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
