"""A gate that was passed on fresh labels is tested again only against itself: `judgesmith check --baseline FILE`.

The same labels that a judge has passed once say nothing new at the next commit, and a gate that is asked again fails by
chance: of judges well above the bar, a quarter within twelve commits. So the verdicts of the run that passed are kept.
Later runs ask whether the judge agrees *less* than then on the same rows, paired, with the level shared over all looks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from judgesmith.agreement.coefficients import decided as of_decisions
from judgesmith.agreement.coefficients import decision_of, title_of
from judgesmith.agreement.correlation import Codes, Vector
from judgesmith.agreement.meta.evaluation import meta_evaluate, rows_of
from judgesmith.agreement.meta.inputs import EvaluationOptions
from judgesmith.agreement.paired import ALPHA, FOUND, level_of_look, paired
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.decided import Decided
from judgesmith.evaluating.gate import Gate
from judgesmith.evaluating.sources import Judged, plain_name
from judgesmith.tables import p_in_words

FORMAT = "judgesmith.baseline/1"
#: The fewest rows that both runs have to have.
FEWEST = 8


@dataclass(frozen=True, slots=True)
class Again:
    """A judge's agreement on the rows of its baseline, now less then."""

    what: str
    difference: float
    low: float
    high: float
    p: float
    level: float
    rows: int
    finds: float
    """The size of a loss that is found in 90 % of cases; NaN where nothing changed."""

    @property
    def worse(self) -> bool:
        """Return True if it agrees less than then, by more than chance."""
        return self.p < self.level

    def __str__(self) -> str:
        told = f"{self.what}: {self.difference:+.3f}"
        if not math.isnan(self.low):
            told += f" [{self.low:+.3f}, {self.high:+.3f}]"
        told += f" since the baseline, on {self.rows} rows"
        if self.worse:
            told += f": worse, {p_in_words(self.p)} (level {self.level:.2g})"
        elif self.p < 1:
            told += f": not surely worse, {p_in_words(self.p)} (level {self.level:.2g})"
        else:
            told += ": no change"
        if not math.isnan(self.finds):
            told += (
                f"; a loss of {self.finds:.3f} would be found in {FOUND:.0%} of cases"
            )
        return told


@dataclass(frozen=True)
class Baseline:
    """The verdicts of a judge in the run that passed its gates."""

    written: str
    judge: str
    gates: tuple[str, ...]
    scores: Mapping[str, Mapping[str, float]]
    """Scores by aspect and row."""
    decided: Mapping[str, Mapping[str, float]]
    """Numbers of the categories, by aspect and row."""

    @classmethod
    def of(
        cls, data: Judged, decided: Sequence[Decided], gates: Sequence[Gate]
    ) -> Self:
        """Return the verdicts of the first judge on the labelled rows."""
        judge = next(iter(data.judges))
        ids = [row.id for row in data.rows]
        scores = {}
        for aspect, values in data.judges[judge].items():
            scores[aspect] = _by_id(ids, values, data.human[aspect])
        own = [one for one in decided if one.name == judge]
        places = {one.aspect: _by_id(one.ids, one.judge, one.people) for one in own}
        today = datetime.now(UTC).date().isoformat()
        texts = tuple(gate.text for gate in gates)
        return cls(today, judge, texts, scores, places)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a baseline.

        Raises:
            OptionError: If the file cannot be read, or is none.
        """
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            if told["format"] != FORMAT:
                raise ValueError(told["format"])
            return cls(
                str(told["written"]),
                str(told["judge"]),
                tuple(map(str, told["gates"])),
                _numbers(told["scores"]),
                _numbers(told["decided"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise OptionError(
                f"--baseline {path}: it is no baseline of `judgesmith check` ({error}); delete it, and the next run "
                "that passes writes one"
            ) from None

    def text(self) -> str:
        """Return the file."""
        told = {
            "format": FORMAT,
            "written": self.written,
            "judge": self.judge,
            "gates": list(self.gates),
            "scores": self.scores,
            "decided": self.decided,
        }
        return json.dumps(told, ensure_ascii=False, indent=1) + "\n"

    def again(
        self,
        gate: Gate,
        data: Judged,
        decided: Sequence[Decided],
        options: EvaluationOptions,
        looks: int,
    ) -> list[Again]:
        """Return the first judge's agreement now less then, for each aspect of a gate.

        Raises:
            OptionError: If another judge passed the gates then.
            LabelsError: If too few rows are in both runs.
        """
        judge = next(iter(data.judges))
        if judge != self.judge:
            raise OptionError(
                f"--baseline: judge {self.judge!r} passed the gates then, and {judge!r} is put to them now; name the "
                "same judge first, or give another file"
            )
        level = level_of_look(ALPHA, looks)
        found = []
        for aspect, scores in data.judges[judge].items():
            if gate.aspect not in (None, plain_name(aspect)):
                continue
            if gate.correlates:
                found.append(self._scores(gate, data, aspect, scores, options, level))
                continue
            own = [one for one in decided if (one.name, one.aspect) == (judge, aspect)]
            if not own or aspect not in self.decided:
                raise LabelsError(
                    f"--baseline: {aspect} is decided in one of the runs only, so that {gate.text!r} cannot be tested "
                    "again; delete the baseline to begin with these rows"
                )
            found.append(self._decisions(gate, own[0], looks))
        return found

    def _decisions(self, gate: Gate, one: Decided, looks: int) -> Again:
        """Return the change of the share of rows that are decided as people did, of those that the gate counts."""
        then = _joined(one.ids, self.decided[one.aspect])
        both = ~np.isnan(one.people) & ~np.isnan(one.judge) & ~np.isnan(then)
        people = one.people[both]
        now = one.judge[both]
        counted = np.ones(len(people), dtype=bool)
        if gate.coefficient in ("recall", "tpr"):
            codes: tuple[Codes, Codes] = (now.astype(np.intp), people.astype(np.intp))
            counted = decision_of(gate.coefficient).counted(*codes)
        _enough(int(counted.sum()))
        found = paired(
            (now == people)[counted].astype(np.float64),
            (then[both] == people)[counted].astype(np.float64),
            one.documents[both][counted].tolist(),
            alpha=ALPHA,
            looks=looks,
        )
        name = gate.coefficient if gate.coefficient in ("recall", "tpr") else "accuracy"
        what = f"{one.name}, {one.aspect}: {title_of(name)}"
        if name != gate.coefficient:
            what += f" (for {title_of(gate.coefficient)})"
        ends = (found.difference, found.low, found.high, found.p, found.level)
        return Again(what, *ends, found.n, found.finds)

    def _scores(
        self,
        gate: Gate,
        data: Judged,
        aspect: str,
        scores: Vector,
        options: EvaluationOptions,
        level: float,
    ) -> Again:
        """Return the change of a coefficient, by the test between two judges."""
        ids = [row.id for row in data.rows]
        then = _joined(ids, self.scores.get(aspect, {}))
        both = ~np.isnan(then) & ~np.isnan(scores) & ~np.isnan(data.human[aspect])
        _enough(int(both.sum()))
        by = gate.coefficient
        judge = next(iter(data.judges))
        what = f"{judge}, {aspect}: {title_of(by)}"
        if (then[both] == scores[both]).all():
            nothing = (0.0, math.nan, math.nan, 1.0, level)
            return Again(what, *nothing, int(both.sum()), math.nan)
        systems = data.systems
        levels: dict[str, Any] = {}
        if gate.level is not None:
            levels["levels"] = (gate.level,)
        found = meta_evaluate(
            {"now": scores[both], "then": then[both]},
            data.human[aspect][both],
            documents=[data.documents[i] for i in np.flatnonzero(both)],
            systems=None
            if systems is None
            else [systems[i] for i in np.flatnonzero(both)],
            scale=data.scales.get(aspect),
            options=EvaluationOptions(
                **levels,
                coefficients=(by,),
                compare_by=by,
                rounds=options.rounds,
                seed=options.seed,
            ),
        )
        row = next(iter(rows_of(found.comparisons)))
        error = float(row["error"])
        freedom = float(row["freedom"])
        if not error > 0:
            raise LabelsError(
                f"{what} cannot be compared with the baseline: {row['reason'] or 'no resamples were drawn'}"
            )
        difference = float(row["difference"])
        p = float(stdtr(freedom, difference / error))
        finds = float(stdtrit(freedom, 1 - level) + ndtri(FOUND)) * error
        ends = (difference, row["low"], row["high"], p, level)
        return Again(what, *ends, int(both.sum()), finds)


class Retest:
    """The gates that were passed before, which are tested again only against the run that passed them."""

    def __init__(
        self, path: Path | None, options: EvaluationOptions, looks: int
    ) -> None:
        """Read the baseline, where there is one.

        Raises:
            OptionError: If the file is no baseline.
        """
        self.path = path
        self.options = options
        self.looks = looks
        self.found: list[Again] = []
        self.baseline: Baseline | None = None
        if path is not None and path.exists():
            self.baseline = Baseline.read(path)

    def passed_before(self, gate: Gate) -> bool:
        """Return True for a gate that the baseline has passed and whose number its verdicts tell.

        A gate on errors, on the way to a rater or on the pass rate of all rows is put to the test afresh.
        """
        if self.baseline is None or gate.text not in self.baseline.gates:
            return False
        return gate.correlates or gate.coefficient in of_decisions()

    def reasons(
        self, gate: Gate, data: Judged, decided: Sequence[Decided]
    ) -> list[str]:
        """Return the reasons why the judge is worse than its baseline, and keep what is found."""
        if self.baseline is None:
            return []
        found = self.baseline.again(gate, data, decided, self.options, self.looks)
        self.found += found
        return [str(one) for one in found if one.worse]

    def begin(
        self, data: Judged, decided: Sequence[Decided], gates: Sequence[Gate]
    ) -> str | None:
        """Return the text of a new baseline; None where there is one, or none was asked for."""
        if self.path is None or self.baseline is not None or not gates:
            return None
        return Baseline.of(data, decided, gates).text()


def _enough(rows: int) -> None:
    """Raise LabelsError for too few rows."""
    if rows < FEWEST:
        raise LabelsError(
            f"--baseline: {rows} labelled rows are in this run and in the baseline; at least {FEWEST} are needed. "
            "Delete the baseline to begin with these rows"
        )


def _by_id(ids: Sequence[str], values: Vector, human: Vector) -> dict[str, float]:
    """Return the values of labelled rows that have one."""
    present = np.flatnonzero(~np.isnan(values) & ~np.isnan(human)).tolist()
    return {ids[i]: float(values[i]) for i in present}


def _joined(ids: Sequence[str], values: Mapping[str, float]) -> Vector:
    return np.array([values.get(name, math.nan) for name in ids], dtype=np.float64)


def _numbers(told: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {
        str(aspect): {str(name): float(value) for name, value in rows.items()}
        for aspect, rows in told.items()
    }
