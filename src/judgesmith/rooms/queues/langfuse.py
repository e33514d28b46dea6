"""A Langfuse project as a queue of `judgesmith sync`: scores that people annotated, and verdicts as scores.

Where Langfuse is and who may use it, its own settings say: LANGFUSE_HOST (or LANGFUSE_BASE_URL), LANGFUSE_PUBLIC_KEY,
LANGFUSE_SECRET_KEY. Its interface of observations is used, and that of traces where the server has no other.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote

from judgesmith.datasets.exports.langfuse import langfuse_score
from judgesmith.errors import OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import about_judge
from judgesmith.rooms.queues.interface import Interface, Record, about_verdict, record
from judgesmith.signatures.values import Verdict

KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
OBSERVATIONS = "api/public/v2/observations"
TRACES = "api/public/traces"
#: How traces are listed, and their scores: now, and by servers that know no observations.
NOW: Any = (
    {"isRootObservation": True, "fields": "core,basic"},
    "v3/scores",
    {"fields": "details,subject,annotation"},
)
OLDER: Any = ({"fields": "core"}, "v2/scores", {})
PAGE = 100


class Project(Interface):
    """The traces of the project that the keys are for. only: fewer, by parameters of Langfuse's interface."""

    tool = "Langfuse"
    settings = f"LANGFUSE_HOST, {', '.join(KEYS)}"
    filters = ("name", "userId", "sessionId", "environment", "version", "filter")

    def __init__(self, name: str, only: str | None = None) -> None:
        keys = [os.environ.get(key, "") for key in KEYS]
        if not all(keys):
            raise OptionError(
                f"Langfuse: no keys; set {' and '.join(KEYS)} from the project's settings"
            )
        base = (
            os.environ.get("LANGFUSE_BASE_URL")
            or os.environ.get("LANGFUSE_HOST")
            or "https://cloud.langfuse.com"
        )
        super().__init__(only, base, auth=(keys[0], keys[1]))
        there = [one["name"] for one in self.listed("api/public/projects")]
        if name not in there:
            raise OptionError(
                f"the Langfuse keys belong to {', '.join(map(repr, there)) or 'no project'}, not to {name!r}; "
                "set the keys of that project"
            )
        observed = self.call("GET", OBSERVATIONS, params={"limit": 1}) is not None
        self._path, self._how = (OBSERVATIONS, NOW) if observed else (TRACES, OLDER)

    def heads(self) -> Iterator[Record]:
        """Yield the traces without texts as records, newest first."""
        for page in self.pages(self._path, limit=PAGE, **self._how[0], **self.only):
            yield from self._records(page)

    def whole(self, trace: str) -> Record | None:
        """Return one trace with its texts, None where it was deleted."""
        if self._path == OBSERVATIONS:
            parameters = self._how[0] | {"fields": "core,basic,io", "traceId": trace}
            return next(
                self._records(next(self.pages(self._path, limit=PAGE, **parameters))),
                None,
            )
        one = self.one(f"{TRACES}/{quote(trace, safe='')}")
        return next(self._records([one] if one else []), None)

    @cached_property
    def _scores(self) -> dict[str, list[Record]]:
        """The scores by people and of judges of ours, by the trace or observation that they are of."""
        scores: dict[str, list[Record]] = defaultdict(list)
        _, path, parameters = self._how
        for source in ("ANNOTATION", "API"):
            pages = self.pages(
                f"api/public/{path}", source=source, limit=PAGE, **parameters
            )
            for one in (one for page in pages for one in page):
                of = (
                    (one.get("subject") or {}).get("id")
                    or one.get("observationId")
                    or one.get("traceId")
                )
                if of and (
                    source == "ANNOTATION" or "judge" in (one.get("metadata") or ())
                ):
                    scores[of].insert(0, one)  # the newest come first
        return scores

    def _records(self, page: list[Record]) -> Iterator[Record]:
        """Yield records of traces, or of the observations at their roots, whose scores are the traces', too."""
        for one in page:
            trace = one.get("traceId") or one["id"]
            feedback = [
                score
                for name in {trace: 0, one["id"]: 0}
                for score in self._scores.get(name, ())
            ]
            people = (
                langfuse_score(score)
                for score in feedback
                if score["source"] == "ANNOTATION"
            )
            ours = (score["metadata"] for score in feedback if score["source"] == "API")
            yield record(
                trace,
                one.get("input"),
                one.get("output"),
                one.get("sessionId"),
                people,
                ours,
            )

    def giving(self, judge: Judge, name: str) -> Callable[[str, Verdict], None]:
        """Return a function that writes a verdict of this judge to a trace as a score.

        The score is true or false, a category, or a number.
        """
        fields = about_judge(judge)

        def give(trace: str, verdict: Verdict) -> None:
            kind = "NUMERIC" if verdict.category is None else "CATEGORICAL"
            value = verdict.category or verdict.score
            if verdict.passed is not None:
                kind = "BOOLEAN"
                value = int(verdict.passed)
            score = {
                "id": f"judgesmith-{fields['judge']}-{trace}",
                "traceId": trace,
                "name": name,
                "value": value,
                "dataType": kind,
                "comment": verdict.explanation or None,
                "metadata": fields | about_verdict(verdict),
            }
            if self.call("POST", "api/public/scores", json=score) is None:
                raise OptionError(
                    "Langfuse does not accept scores; check LANGFUSE_HOST"
                )

        return give
