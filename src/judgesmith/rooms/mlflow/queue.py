"""An MLflow experiment as a queue of `judgesmith sync`: what people said of its traces, and verdicts logged to them.

Where MLflow is and who may use it, its own settings say (MLFLOW_TRACKING_URI, MLFLOW_TRACKING_TOKEN and their like).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from judgesmith.datasets.exports.reading import recognised
from judgesmith.errors import OptionError
from judgesmith.programs.judge import Judge
from judgesmith.rooms.mlflow.logging import about_judge, feedback
from judgesmith.rooms.mlflow.store import (
    CHECK,
    LOG,
    check_address,
    mlflow_part,
    patience,
    short,
)
from judgesmith.signatures.values import Verdict

T = TypeVar("T")
#: Traces that are asked for at once; MLflow gives no more than 500.
PAGE = 200


class Experiment:
    """The traces of an experiment, newest first. only: MLflow's own filter of traces, such as "tags.env = 'prod'".

    Raises:
        MissingExtraError: If MLflow is not installed.
        OptionError: If its store cannot be reached or has no such experiment.
    """

    def __init__(self, name: str, only: str | None = None) -> None:
        self._only = only
        self._mlflow = mlflow_part("mlflow", "sync")
        self._entities = mlflow_part("mlflow.entities", "sync")
        check_address()
        self._client = _patiently(lambda: self._mlflow.MlflowClient(), CHECK)
        existing = _patiently(lambda: self._client.get_experiment_by_name(name), CHECK)
        if existing is None or existing.lifecycle_stage != "active":
            there = _patiently(
                lambda: self._client.search_experiments(max_results=20), CHECK
            )
            names = ", ".join(repr(one.name) for one in there)
            raise OptionError(
                f"MLflow has no experiment {name!r}; there are: {names or 'none'} (MLFLOW_TRACKING_URI)"
            )
        self._id = existing.experiment_id

    def heads(self) -> Iterator[dict[str, Any]]:
        """Yield every trace without its texts, as a record.

        It has an id, people's `scores` and reasons (`why`), and `verdicts`, those of judges by their fingerprints.

        Raises:
            OptionError: If the server cannot be used.
        """
        token = None
        more = True
        while more:
            search = {
                "filter_string": self._only,
                "max_results": PAGE,
                "page_token": token,
                "include_spans": False,
            }
            page = _patiently(
                partial(self._client.search_traces, locations=[self._id], **search)
            )
            yield from map(self._head, page)
            token = page.token
            more = bool(page.token)

    def _head(self, trace: Any) -> dict[str, Any]:
        """Return a trace without its texts, with its spans if a rater rated single ones, one of them its root."""
        if any(
            one.span_id and one.source.source_type == "HUMAN"
            for one in trace.info.assessments or ()
        ):
            return self.whole(trace.info.trace_id) or _record(trace)
        has_none = trace.info.request_preview and not trace.info.response_preview
        return _record(trace) | {"output": "" if has_none else None}

    def whole(self, trace: str) -> dict[str, Any] | None:
        """Return one trace with its texts, None if it was deleted.

        Raises:
            OptionError: If the server cannot be used.
        """
        with patience(*LOG):
            try:
                return _record(self._client.get_trace(trace, display=False))
            except Exception as error:  # as in `_asked`
                if getattr(error, "error_code", "") in (
                    "RESOURCE_DOES_NOT_EXIST",
                    "NOT_FOUND",
                ):
                    return None
                raise OptionError(
                    f"MLflow: trace {trace} cannot be read ({short(error)}); sync again"
                ) from None

    def giving(self, judge: Judge, name: str) -> Callable[[str, Verdict], None]:
        """Return a function that logs a verdict of this judge to a trace, as feedback of that name.

        The value is pass or fail, or a category, if the judge decides, else the score. The function raises OptionError.
        """
        about = about_judge(self._entities, judge, name)

        def give(trace: str, verdict: Verdict) -> None:
            logged = feedback(self._entities, about, verdict)
            decided = verdict.category if verdict.passed is None else verdict.passed
            logged.value = logged.value if decided is None else decided
            logged.metadata["score"] = repr(verdict.score)
            if verdict.interval is not None:
                logged.metadata["interval"] = str(verdict.interval)
            _patiently(lambda: self._mlflow.log_assessment(trace, logged))

        return give


def _patiently(call: Callable[[], T], bounds: tuple[int, int] = LOG) -> T:
    with patience(*bounds):
        try:
            return call()
        except Exception as error:  # stores are databases, servers and plugins, each with exceptions of its own
            raise OptionError(
                f"MLflow cannot be used; see MLFLOW_TRACKING_URI ({short(error)})"
            ) from None


def _record(trace: Any) -> dict[str, Any]:
    info = trace.info
    texts = trace.data
    assessments = [one.to_dictionary() for one in info.assessments or ()]
    exported = {
        "trace_id": info.trace_id,
        "trace_metadata": info.trace_metadata,
        "assessments": assessments,
    }
    exported |= {"request": _loaded(texts.request), "response": _loaded(texts.response)}
    exported["spans"] = [
        {"span_id": span.span_id, "parent_id": span.parent_id}
        for span in texts.spans or ()
    ]
    export = recognised([exported], "MLflow")
    assert export is not None
    return export.record(exported, "MLflow") | {
        "verdicts": dict(_verdicts(assessments))
    }


def _verdicts(
    assessments: list[dict[str, Any]],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (fingerprint of the judge, its verdict), also of verdicts that a person overrode."""
    for one in assessments:
        about = one.get("metadata") or {}
        value = one.get("feedback", {}).get("value")
        if (
            "judge" in about
            and value is not None
            and one["source"]["source_type"] == "LLM_JUDGE"
        ):
            kind = {bool: "passed", str: "category"}.get(type(value))
            with suppress(TypeError, ValueError):
                yield (
                    about["judge"],
                    {"score": float(about.get("score", value))}
                    | ({kind: value} if kind else {}),
                )


def _loaded(text: str | None) -> Any:
    """Return an input or output as a trace keeps it, which is JSON."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
