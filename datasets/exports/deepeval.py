"""DeepEval: a run's test cases with their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgesmith.datasets.exports import JUDGES, Record, Results, exports
from judgesmith.datasets.exports.samples import are_objects, objects_of, text, verdict


@exports.register
class DeepEval(Results):
    """Test cases, numbered from 1."""

    name = "deepeval"
    title = "DeepEval"
    about = "DeepEval, a test run as JSON"

    def samples(self, data: Mapping[str, Any]) -> Sequence[Any] | None:
        run = data.get("testRunData", data)
        cases: Any = run.get("testCases") if isinstance(run, Mapping) else None
        if not are_objects(cases) or "metricsData" not in cases[0]:
            return None
        return [{"number": number, **case} for number, case in enumerate(cases, 1)]

    def row(self, sample: Mapping[str, Any]) -> Record:
        judges = {}
        for metric in objects_of(sample.get("metricsData"), "metricsData"):
            score = metric.get("score") if metric.get("error") is None else None
            judges[str(metric.get("name"))] = verdict(score, metric.get("reason"))
        row = {
            "id": str(sample["number"]),
            "source": sample.get("input"),
            "output": sample.get("actualOutput"),
            "name": sample.get("name"),
            "reference": sample.get("expectedOutput"),
            "context": text(sample.get("retrievalContext") or sample.get("context")),
        }
        return {name: cell for name, cell in row.items() if cell} | {JUDGES: judges}
