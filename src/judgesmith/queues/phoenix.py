"""A Phoenix project as a queue of `judgesmith sync`: annotations of its spans by people, and verdicts as annotations.

Where Phoenix is and who may use it, the settings of its own client say: PHOENIX_ENDPOINT or PHOENIX_COLLECTOR_ENDPOINT,
else this machine; PHOENIX_API_KEY.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from ..datasets.exports import Given
from ..errors import OptionError
from ..programs.artifact import about_judge
from ..programs.judge import Judge
from ..signatures.values import Verdict
from .interface import Interface, Record, about_verdict, record

#: Spans and annotations of a page; a span has its texts with it.
SPANS, ANNOTATIONS = 100, 1000
HERE = "http://127.0.0.1:6006"


class Project(Interface):
    """The root spans of a project. only: other spans, by parameters of Phoenix's interface."""

    tool, settings = "Phoenix", "PHOENIX_COLLECTOR_ENDPOINT and PHOENIX_API_KEY"
    filters = ("start_time", "end_time", "trace_id", "parent_id", "name", "span_kind", "status_code", "attribute")

    def __init__(self, name: str, only: str | None = None) -> None:
        key = os.environ.get("PHOENIX_API_KEY")
        base = os.environ.get("PHOENIX_ENDPOINT") or os.environ.get("PHOENIX_COLLECTOR_ENDPOINT") or HERE
        base = base.rstrip("/").removesuffix("/v1/traces")
        super().__init__(only, base, headers={"Authorization": f"Bearer {key}"} if key else {})
        there = {one["name"]: one["id"] for page in self.pages("v1/projects", limit=SPANS) for one in page}
        if name not in there:
            names = ", ".join(map(repr, there)) or "none"
            raise OptionError(f"Phoenix has no project {name!r}; there are: {names} (PHOENIX_COLLECTOR_ENDPOINT)")
        self._project = f"v1/projects/{there[name]}"

    def heads(self) -> Iterator[Record]:
        """The spans as records, newest first."""
        for page in self.pages(f"{self._project}/spans", limit=SPANS, **(self.only or {"parent_id": "null"})):
            yield from self._records(page)

    def whole(self, span: str) -> Record | None:
        """One span, None where it was deleted."""
        spans = next(self.pages(f"{self._project}/spans", limit=1, span_id=span))
        if any(one["context"]["span_id"] != span for one in spans):
            raise OptionError("this Phoenix does not look spans up by their ids; take a newer version of it")
        return next(self._records(spans), None)

    def _records(self, page: list[Record]) -> Iterator[Record]:
        given: dict[str, list[Record]] = {span["context"]["span_id"]: [] for span in page}
        asked = {"limit": ANNOTATIONS, "span_ids": list(given)}
        for listed in self.pages(f"{self._project}/span_annotations", **asked) if page else ():
            for one in listed:
                given[one["span_id"]].insert(0, one)  # the newest come first
        for span in page:
            name, has = span["context"]["span_id"], span["attributes"]
            source, output, group = (has.get(key) for key in ("input.value", "output.value", "session.id"))
            ours = (one["metadata"] for one in given[name] if one["annotator_kind"] == "LLM")
            yield record(name, source, output, group, map(_given, given[name]), ours)

    def giving(self, judge: Judge, name: str) -> Callable[[str, Verdict], None]:
        """What writes a verdict of this judge to a span, in place of an earlier one of this very judge."""
        known = about_judge(judge)

        def give(span: str, verdict: Verdict) -> None:
            result = {"score": verdict.score, "label": verdict.category, "explanation": verdict.explanation or None}
            made = {
                "span_id": span,
                "name": name,
                "annotator_kind": "LLM",
                "identifier": f"judgesmith:{known['judge']}",
                "result": result,
                "metadata": known | about_verdict(verdict),
            }
            if self.call("POST", "v1/span_annotations", params={"sync": True}, json={"data": [made]}) is None:
                raise OptionError(f"Phoenix has no span {span} any more")

        return give


def _given(one: Record) -> Given:
    result = one.get("result") or {}
    rating = result.get("label") if result.get("score") is None else result["score"]
    who = one.get("user_id") or one.get("identifier")
    if one.get("source") == "API":  # the user is whose key a program has, which knows the person
        who = one.get("identifier") or who
    return one.get("name"), who, rating, one.get("annotator_kind") == "HUMAN", result.get("explanation")
