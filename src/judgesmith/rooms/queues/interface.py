"""Shared parts of the queues: an HTTP interface with pages and limits, traces as rows, and metadata of verdicts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import parse_qs

import httpx

from judgesmith.datasets.exports import Answer
from judgesmith.datasets.exports.reading import Export
from judgesmith.datasets.exports.traces import trace_input, trace_output
from judgesmith.errors import OptionError
from judgesmith.programs.models.masking import masked
from judgesmith.programs.models.refusals import retry_after
from judgesmith.signatures.values import Verdict

Record = dict[str, Any]
#: Tries of a request, and seconds that are waited between two of them at most.
TRIES = 6
LONGEST = 300.0
#: Answers that say to come back later, and those that say that something is not there.
LATER = (429, 502, 503, 504)
MISSING = (404, 501)
GONE = 404


class Interface:
    """A tool's HTTP interface, all of whose methods raise OptionError if it cannot be used.

    settings: the variables that hold its address and keys. filters: parameters that --filter may have. only: these.
    access: headers or authentication.
    """

    tool: ClassVar[str]
    settings: ClassVar[str]
    filters: ClassVar[tuple[str, ...]]

    def __init__(self, only: str | None, base: str, **access: Any) -> None:
        self.only: Record = parse_qs(only or "", keep_blank_values=True)
        if (only and not self.only) or not set(self.only) <= set(
            self.filters
        ):  # a tool passes over what it lacks
            raise OptionError(
                f"--filter {only}: give NAME=VALUE (more with & between) of {', '.join(self.filters)}"
            )
        self._base = base.rstrip("/")
        self._http = httpx.Client(timeout=httpx.Timeout(60.0, connect=10.0), **access)

    def one(self, path: str) -> Record | None:
        """Return one object, None where the tool itself says that it is gone.

        Raises:
            OptionError: If what stands before the tool answers in its place (an ingress without its backend).
        """
        answer = self._answer("GET", path)
        if isinstance(answer, dict):
            return answer
        if answer.status_code == GONE and isinstance(_json(answer), dict):
            return None
        raise self._missing(path, answer)

    def call(self, method: str, path: str, **sent: Any) -> Record | None:
        """Return the answer, None where this server has no such interface."""
        answer = self._answer(method, path, **sent)
        return answer if isinstance(answer, dict) else None

    def _answer(self, method: str, path: str, **sent: Any) -> Record | httpx.Response:
        """Return the answer's object, or what says that something is not there.

        A request may be sent again, so it has to be idempotent.
        """
        for tried in range(1, TRIES + 1):
            after = None
            try:
                answer = self._http.request(method, f"{self._base}/{path}", **sent)
                if answer.status_code in MISSING:
                    return answer
                if answer.is_success and isinstance(data := _json(answer), dict):
                    return data
                problem = f"HTTP {answer.status_code}: {answer.text[:500]}"
                again = answer.status_code in LATER
                if answer.is_success:
                    problem = f"HTTP {answer.status_code} without JSON: another server"
                after = retry_after(answer.headers)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                problem = str(error) or type(error).__name__
                again = isinstance(
                    error,
                    httpx.ReadTimeout | httpx.ReadError | httpx.RemoteProtocolError,
                )
            wait = 2.0**tried if after is None else after
            if not again or tried == TRIES or wait > LONGEST:
                break
            time.sleep(wait)
        problem = " ".join(masked(problem).split())[:300]
        raise OptionError(
            f"{self.tool} cannot be used; see {self.settings} ({problem})"
        )

    def listed(self, path: str, **parameters: Any) -> list[Record]:
        """Return a list that every server of this tool has.

        Raises:
            OptionError: If another server answers.
        """
        records = [one for page in self.pages(path, **parameters) for one in page]
        if not all(isinstance(one, dict) and "name" in one for one in records):
            raise self._another()
        return records

    def _another(self) -> OptionError:
        return OptionError(
            f"no {self.tool} answers at {masked(self._base)}; see {self.settings}"
        )

    def _missing(self, path: str, answer: httpx.Response) -> OptionError:
        return OptionError(
            f"no {self.tool} answers at {masked(self._base)} for {path} (HTTP {answer.status_code}). What it does not "
            f"list may still be there, so no row was removed; sync again later, or see {self.settings}"
        )

    def pages(self, path: str, **parameters: Any) -> Iterator[list[Record]]:
        """Yield the listed records, page after page, by cursors or by numbers.

        Raises:
            OptionError: If a page is not there, or is no list: that is not the same as an empty one.
        """
        more: Record | None = {}
        while more is not None:
            answer = self._answer("GET", path, params=parameters | more)
            if not isinstance(answer, dict):
                raise self._missing(path, answer)
            if not isinstance(answer.get("data"), list):
                raise self._another()
            yield answer["data"]
            about = answer.get("meta") or {}
            if cursor := answer.get("next_cursor") or about.get("cursor"):
                more = {"cursor": cursor}
            else:
                if about.get("page", 0) < about.get("totalPages", 0):
                    more = {"page": about["page"] + 1}
                else:
                    more = None


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def record(
    name: str,
    source: Any,
    output: Any,
    group: Any,
    feedback: Iterable[Answer],
    ours: Iterable[Record],
) -> Record:
    """Return a trace as a record of labels.

    feedback: human ratings. ours: metadata of verdicts, from `about_verdict`.
    """
    request = trace_input(source)
    texts = {"id": name, "source": request.value, "output": trace_output(output).value}
    texts |= {"group": group} if group else {}
    texts |= {"context": request.context} if request.context is not None else {}
    verdicts: dict[str, Record] = {}
    for one in ours:
        with suppress(TypeError, ValueError, KeyError):  # a score of somebody else
            decision: Record = {
                key: one[key] for key in ("passed", "category") if key in one
            }
            verdicts[str(one["judge"])] = decision | {"score": float(one["score"])}
    return Export("", lambda _: (texts, iter(feedback))).record({}) | {
        "verdicts": verdicts
    }


def about_verdict(verdict: Verdict) -> Record:
    """Return the metadata of a verdict beside those that `about_judge` gives of its judge."""
    criteria = {k: c["score"] for k, c in verdict.to_dict()["criteria"].items()}
    between = None if verdict.interval is None else str(verdict.interval)
    result = {
        "score": verdict.score,
        "passed": verdict.passed,
        "category": verdict.category,
        "interval": between,
    }
    return {
        name: value
        for name, value in (result | {"criteria": criteria or None}).items()
        if value is not None
    }
