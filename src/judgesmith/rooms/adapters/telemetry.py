"""Verdicts as OpenTelemetry's events `gen_ai.evaluation.result`: `judgesmith score --otel`.

They go through the global logger provider: whoever starts the program says where to, as for any other program
(`opentelemetry-instrument`, OTEL_EXPORTER_OTLP_ENDPOINT).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from judgesmith.errors import MissingExtraError, OptionError
from judgesmith.programs.artifact import fingerprint
from judgesmith.programs.judge import Judge

EVENT = "gen_ai.evaluation.result"
START = "opentelemetry-instrument judgesmith score …"
_TRACE = re.compile(r"(?:tr-)?([0-9a-f]{32})")
_SPAN = re.compile(r"([0-9a-f]{16})")


class Events:
    """Emitter of an OpenTelemetry event for each scored row.

    An event is linked to the span that the row's columns `trace_id` (or `id`, in MLflow's form) and `span_id` name.

    Raises:
        MissingExtraError: If OpenTelemetry is not installed.
        OptionError: If events would be lost.
    """

    def __init__(self, judge: Judge) -> None:
        try:
            self._logs = import_module("opentelemetry._logs")
        except ImportError:
            raise MissingExtraError(
                f"--otel: pip install opentelemetry-distro, and start it as `{START}`"
            ) from None
        if not hasattr(
            self._logs.get_logger_provider(), "force_flush"
        ):  # the one that stands for none
            raise OptionError(
                f"--otel: no exporter of OpenTelemetry is set up; start it as `{START}`"
            )
        self._logger = self._logs.get_logger("judgesmith")
        self._about = about(judge)

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Emit the event of a scored row."""
        trace = _TRACE.fullmatch(str(record.get("trace_id") or record.get("id")))
        span = _SPAN.fullmatch(str(record.get("span_id")))
        event = self._logs.LogRecord(
            timestamp=time.time_ns(),
            event_name=EVENT,
            attributes=attributes(self._about, record["verdict"]),
            trace_id=int(trace[1], 16) if trace else None,
            span_id=int(span[1], 16) if span else None,
        )
        self._logger.emit(event)


def about(judge: Judge) -> dict[str, Any]:
    """Return the attributes that all events of a judge have."""
    return {
        "gen_ai.evaluation.name": judge.judges_aspect or judge.method.kind,
        "judgesmith.judge": fingerprint(judge),
        "judgesmith.model": judge.lm.name,
        "judgesmith.agreement": judge.stated_agreement or None,
        "judgesmith.scale.low": judge.scale.low,
        "judgesmith.scale.high": judge.scale.high,
    }


def attributes(about: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a verdict in `score`'s form: the semantic conventions' and, beside them, ours."""
    sure = verdict.get("interval") or {}
    decided = None
    if verdict.get("passed") is not None:
        decided = "pass" if verdict["passed"] else "fail"
    result = {
        **about,
        "gen_ai.evaluation.score.value": verdict["score"],
        "judgesmith.failure": verdict["failure"],
        "gen_ai.evaluation.score.label": verdict.get("category") or decided,
        "gen_ai.evaluation.explanation": verdict.get("explanation") or None,
        "error.type": "no_score" if verdict["failure"] else None,
        **{
            f"judgesmith.interval.{end}": sure.get(end)
            for end in ("low", "high", "coverage")
        },
    }
    return {name: value for name, value in result.items() if value is not None}
