"""The decision that rows are labelled for, looked at after every label: `judgesmith label --decide 'tnr>=0.8'`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.sequential import Strata, planned
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.anytime import (
    SHARES,
    STRATIFIED,
    Looked,
    check_looks,
    hoped_of,
    looked,
)
from judgesmith.evaluating.columns import column_scores
from judgesmith.evaluating.decided import decisions
from judgesmith.evaluating.gate import Gate
from judgesmith.evaluating.judges import Selection, judged
from judgesmith.evaluating.options import EvaluateOptions
from judgesmith.evaluating.passrate import chances_of
from judgesmith.evaluating.sources import (
    has_column,
    read_file,
    verdict_of,
    with_metrics,
    with_ratings,
)
from judgesmith.running.plain import finite


@dataclass(frozen=True)
class Deciding:
    """A gate, the judge that it is for, and the file of the rows with its verdicts."""

    gate: Gate
    judge: str | None
    file: File

    @classmethod
    def of(
        cls, gate: str, judge: str | None, rows: str, columns: Mapping[str, Any]
    ) -> Self:
        """Return the question of a session.

        Raises:
            OptionError: If there is no such gate, no test of it, or no judge in the rows.
        """
        parsed = Gate.parse(gate)
        check_looks([parsed])
        file = with_metrics(read_file(rows, columns, judges=[judge] if judge else ()))
        found = has_column(file, judge) if judge else any(map(verdict_of, file.records))
        if not found:
            what = f"column {judge!r}" if judge else "verdict of `judgesmith score`"
            raise OptionError(
                f"--decide: {file.origin} has no {what}; name the judge's column with --judge"
            )
        return cls(parsed, judge, file)

    def look(self, labels: Sequence[Mapping[str, Any]]) -> list[Looked]:
        """Return what the labels say so far, an aspect each; as records that `label` exports.

        Raises:
            LabelsError: If the labels cannot be read yet.
        """
        with TemporaryDirectory() as folder:
            path = Path(folder) / "labels.jsonl"
            lines = (json.dumps(finite(dict(one))) for one in labels)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            read = read_file(str(path), {}, texts_needed=False)
        file, _ = with_ratings(self.file, read)
        selection = Selection(
            human=read.aspects(), judges=[self.judge] if self.judge else ()
        )
        data = judged([file], selection)
        options = EvaluateOptions(rounds=0)
        return looked(self.gate, data, decisions(data, options), chances_of(data, None))

    def told(self, labels: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return what the labels say so far, in sentences."""
        if not labels:
            return [f"{self.gate.text} is open: there is no label yet"]
        try:
            found = self.look(labels)
        except (LabelsError, OptionError) as problem:
            return [f"{self.gate.text} is open: {problem}"]
        several = len(found) > 1
        return [
            f"{one.aspect}: {one.sentence}" if several else one.sentence
            for one in found
        ]

    @property
    def ordered(self) -> bool:
        """Whether an order of the rows saves labels."""
        return SHARES.get(self.gate.coefficient) in STRATIFIED

    def passes(self) -> dict[int, bool]:
        """Return whether the judge passes the row on each line of the file; {} where it says anything else of rows."""
        scores = self._scores()
        values = np.unique(scores[~np.isnan(scores)])
        if len(values) != 2:
            return {}
        rows = zip(self.file.rows, scores.tolist(), strict=True)
        return {
            row.line: bool(score == values[1]) for row, score in rows if score == score
        }

    def _scores(self) -> Vector:
        if self.judge is not None:
            return column_scores(self.file, self.judge, [])[0]
        passed = [
            (verdict_of(record) or {}).get("passed") for record in self.file.records
        ]
        return np.array([np.nan if one is None else float(one) for one in passed])

    def strata(self, passes: Mapping[int, bool]) -> Strata:
        """Return how often rows that the judge fails, and that it passes, should be drawn."""
        passed = sum(passes.values())
        rows = float(len(passes) - passed), float(passed)
        share = SHARES[self.gate.coefficient]
        return planned(share, rows, self.gate.bar, hoped_of(self.gate))
