"""A Phoenix project as a queue of `judgesmith sync`: annotations of its spans by people, and verdicts as annotations.

Where Phoenix is and who may use it, the settings of its own client say: PHOENIX_ENDPOINT or PHOENIX_COLLECTOR_ENDPOINT,
else this machine; PHOENIX_API_KEY.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from judgesmith.datasets.exports import DISCARDED, Answer
from judgesmith.datasets.exports.phoenix import phoenix_rater
from judgesmith.errors import OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import about_judge
from judgesmith.rooms.queues.interface import Interface, Record, about_verdict, record
from judgesmith.signatures.values import Verdict

#: Spans and annotations of a page; a span has its texts with it.
SPANS = 100
ANNOTATIONS = 1000
HERE = "http://127.0.0.1:6006"


class Project(Interface):
    """The root spans of a project. only: other spans, by parameters of Phoenix's interface."""

    tool = "Phoenix"
    settings = "PHOENIX_COLLECTOR_ENDPOINT and PHOENIX_API_KEY"
    filters = (
        "start_time",
        "end_time",
        "trace_id",
        "parent_id",
        "name",
        "span_kind",
        "status_code",
        "attribute",
    )

    def __init__(self, name: str, only: str | None = None) -> None:
        key = os.environ.get("PHOENIX_API_KEY")
        base = (
            os.environ.get("PHOENIX_ENDPOINT")
            or os.environ.get("PHOENIX_COLLECTOR_ENDPOINT")
            or HERE
        )
        base = base.rstrip("/").removesuffix("/v1/traces")
        super().__init__(
            only, base, headers={"Authorization": f"Bearer {key}"} if key else {}
        )
        there = {
            one["name"]: one["id"] for one in self.listed("v1/projects", limit=SPANS)
        }
        if name not in there:
            names = ", ".join(map(repr, there)) or "none"
            raise OptionError(
                f"Phoenix has no project {name!r}; there are: {names} (PHOENIX_COLLECTOR_ENDPOINT)"
            )
        self._project = f"v1/projects/{there[name]}"

    def heads(self) -> Iterator[Record]:
        """Yield the spans as records, newest first."""
        for page in self.pages(
            f"{self._project}/spans",
            limit=SPANS,
            **(self.only or {"parent_id": "null"}),
        ):
            yield from self._records(page)

    def whole(self, span: str) -> Record | None:
        """Return one span, None where it was deleted."""
        spans = next(self.pages(f"{self._project}/spans", limit=1, span_id=span))
        if any(one["context"]["span_id"] != span for one in spans):
            raise OptionError(
                "this Phoenix does not look spans up by their ids; take a newer version of it"
            )
        return next(self._records(spans), None)

    def _records(self, page: list[Record]) -> Iterator[Record]:
        roots = {
            span["context"]["trace_id"]: span
            for span in page
            if not span.get("parent_id")
        }
        spans = {span["context"]["span_id"]: span for span in page}
        annotations = self._annotations("span", [*spans]) + self._annotations(
            "trace", [*roots]
        )
        feedback: dict[str, list[Record]] = {name: [] for name in spans}
        annotations.reverse()
        for one in sorted(annotations, key=lambda one: str(one.get("created_at"))):
            if "trace_id" in one:
                of = roots[one["trace_id"]]["context"]["span_id"]
            else:
                of = one["span_id"]
            feedback[of].append(one)
        for name, span in spans.items():
            has = span["attributes"]
            source = has.get("input.value")
            output = has.get("output.value", "")
            group = has.get("session.id")
            ours = (
                one["metadata"]
                for one in feedback[name]
                if one["annotator_kind"] == "LLM"
            )
            yield record(
                name, source, output, group, map(_answer, feedback[name]), ours
            )

    def _annotations(self, of: str, ids: list[str]) -> list[Record]:
        """Return those of some spans, or of some traces as a whole, the newest first."""
        parameters: Record = {"limit": ANNOTATIONS, f"{of}_ids": ids}
        if not ids:
            return []
        pages = self.pages(f"{self._project}/{of}_annotations", **parameters)
        return [one for page in pages for one in page]

    def giving(self, judge: Judge, name: str) -> Callable[[str, Verdict], None]:
        """Return a function that writes a verdict of this judge to a span, in place of its earlier one."""
        fields = about_judge(judge)

        def give(span: str, verdict: Verdict) -> None:
            result = {
                "score": verdict.score,
                "label": verdict.category,
                "explanation": verdict.explanation or None,
            }
            annotation = {
                "span_id": span,
                "name": name,
                "annotator_kind": "LLM",
                "identifier": f"judgesmith:{fields['judge']}",
                "result": result,
                "metadata": fields | about_verdict(verdict),
            }
            if (
                self.call(
                    "POST",
                    "v1/span_annotations",
                    params={"sync": True},
                    json={"data": [annotation]},
                )
                is None
            ):
                raise OptionError(
                    f"Phoenix: span {span} does not exist any more; sync again"
                )

        return give


def _answer(one: Record) -> Answer:
    result = one.get("result") or {}
    rating = result.get("label") if result.get("score") is None else result["score"]
    left = "" if one.get("annotator_kind") == "HUMAN" else DISCARDED
    return Answer(
        one.get("name"), phoenix_rater(one), rating, left, result.get("explanation")
    )
