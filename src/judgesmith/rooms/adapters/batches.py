"""The batch interfaces of OpenAI and Anthropic, half the price of live calls: `judgesmith score --batch`.

The judge runs over the rows twice. The first time its requests are only collected and sent as batches; the second time
each is answered with what came back, so that a batch's answer is read by the code that reads every other one. For
`compile --batch`, whose requests depend on earlier answers, see `batched`.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import httpx
import orjson

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.capabilities import models_of
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine, row_context
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.models.masking import masked
from judgesmith.programs.models.parameters import Parameters
from judgesmith.programs.models.provider import beginning_of, provider_of
from judgesmith.programs.models.providers.litellm import marked_messages
from judgesmith.programs.models.providers.openai import OpenAIStyle
from judgesmith.programs.models.refusals import refuse
from judgesmith.programs.models.transport import (
    Request,
    Transport,
    Unanswered,
    read_reply,
)
from judgesmith.programs.progress import Progress, Silent
from judgesmith.running.console import duration
from judgesmith.running.journal import Journal, read_journal

#: Seconds between two looks at a batch: at first, and at most.
FIRST = 5.0
LONGEST = 300.0
#: Tries of a call that changes nothing, or that was turned away for now.
TRIES = 8
#: Seconds by which a provider's clock may differ from ours.
CLOCKS = 600.0
DISCOUNT = 0.5
GO_ON = "the same command resumes from here"
#: Answers by the `custom_id` of their requests; a text is the reason why there is none.
Answers = dict[str, Reply | str]
#: What providers call a request that its batch ended before.
UNANSWERED = {"expired", "canceled", "cancelled", "batch_expired", "batch_cancelled"}


class Lost(str):
    """Why a batch ended before a request was answered: it may be sent again."""

    __slots__ = ()


class Look(NamedTuple):
    """State of a batch.

    done: requests that have an answer. data: the provider's answer about it.
    """

    ended: bool
    done: int
    data: Mapping[str, Any]


class BatchInterface:
    """A provider's interface of batches."""

    beginning: ClassVar[str]
    """How the qualified names of its models begin."""
    host: ClassVar[str]
    """Its address, unless the connection or the environment names another."""
    addresses: ClassVar[tuple[str, ...]]
    """Environment variables that may hold the address."""
    key_variable: ClassVar[str]
    """The environment variable of the key."""
    most: ClassVar[int]
    """Requests of one batch at most."""
    largest: ClassVar[int]
    """Bytes of one batch at most."""
    path: ClassVar[str]
    """The path of its batches."""

    def __init__(
        self, name: str, base: str, headers: Mapping[str, str], key: str | None
    ) -> None:
        self.name = name
        self.base = base
        self._key = key
        #: Waits some seconds.
        self.sleep: Callable[[float], object] = time.sleep
        # A batch is up to 256 MB, and its answers as much again.
        self._http = httpx.Client(
            headers=dict(headers), timeout=httpx.Timeout(600.0, connect=10.0)
        )

    @classmethod
    def of(cls, name: str, where: Connection) -> Self:
        """Return the interface for a model.

        Raises:
            OptionError: If there is neither a key nor an address.
        """
        named = filter(None, map(os.environ.get, cls.addresses))
        address = where.api_base or next(named, None)
        key = where.api_key or os.environ.get(cls.key_variable)
        if not key and not address:
            raise OptionError(
                f"--batch needs a key for {name}; set {cls.key_variable} in the environment"
            )
        base = cls.root((address or cls.host).rstrip("/"))
        return cls(name, base, cls.headers(key), key)

    @classmethod
    def root(cls, address: str) -> str:
        """Return the address that paths are added to."""
        return address

    @classmethod
    def headers(cls, key: str | None) -> dict[str, str]:
        """Return the headers of every call."""
        raise NotImplementedError

    def close(self) -> None:
        """End its connections."""
        self._http.close()

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """Return a request in the provider's form."""
        raise NotImplementedError

    def submit(self, lines: Sequence[bytes], token: str) -> str:
        """Send a batch of requests and return its id."""
        raise NotImplementedError

    def is_ours(
        self, listed: Mapping[str, Any], token: str, count: int, since: float
    ) -> bool:
        """Return whether a listed batch can be the one of this token, of `count` requests, sent after `since`."""
        raise NotImplementedError

    def look(self, batch: str) -> Look:
        """Return the state of a batch."""
        raise NotImplementedError

    def results(
        self, batch: str, data: Mapping[str, Any]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield `custom_id`, the completion or None, and the error of each request of a batch that has ended."""
        raise NotImplementedError

    def answers(self, batch: str, data: Mapping[str, Any]) -> Answers:
        """Return the answers of a batch that has ended; under "" the reason if the whole of it was refused."""
        answers: Answers = {}
        for custom_id, completion, error in self.results(batch, data):
            if not custom_id or (completion is None and _code(error) in UNANSWERED):
                answers[str(custom_id)] = Lost(f"batch: {_why(error, self._key)}")
                continue
            try:
                if completion is None:
                    raise Unanswered(_why(error, self._key), again=False)
                answers[str(custom_id)] = replace(
                    read_reply(completion), discount=DISCOUNT
                )
            except Unanswered as problem:
                answers[str(custom_id)] = f"batch: {problem}"
        return answers

    def find(
        self, token: str, count: int, since: float, others: Iterable[str]
    ) -> str | None:
        """Return a batch of which a killed run did not learn whether it was sent."""
        listed = self.call("GET", f"{self.path}?limit=100").json().get("data") or []
        ours = (
            one
            for one in listed
            if one["id"] not in others and self.is_ours(one, token, count, since)
        )
        return next((_id(one) for one in ours), None)

    def call(self, method: str, path: str, **sent: Any) -> httpx.Response:
        """Call the provider; a request that changes something is never sent twice, as it may have arrived.

        Raises:
            ModelError: If no answer comes.
        """
        url = f"{self.base}{path}"
        problem = ""
        for tried in range(TRIES):
            after = None
            try:
                response = self._http.request(method, url, **sent)
                if response.is_success:
                    return response
                problem = " ".join(masked(response.text[:2000], self._key).split())[
                    :300
                ]
                refuse(
                    self.name,
                    url,
                    response.status_code,
                    f"HTTP {response.status_code}: {problem}",
                    response.headers,
                )
            except Unanswered as error:
                problem = str(error)
                after = error.after
                again = error.again and (method == "GET" or response.status_code == 429)
            except httpx.HTTPError as error:
                problem = masked(str(error) or type(error).__name__, self._key)[:300]
                again = method == "GET"
            if not again:
                break
            self.sleep(
                min(FIRST * 2**tried, LONGEST) if after is None else min(after, LONGEST)
            )
        raise ModelError(f"{self.name}, {method} {path}: {problem}; {GO_ON}")


class OpenAIBatches(BatchInterface):
    """A file of requests, a batch of it, and a file each of answers and of errors."""

    beginning = "openai/"
    host = "https://api.openai.com/v1"
    addresses = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    key_variable = "OPENAI_API_KEY"
    most = 50_000
    largest = 200_000_000
    path = "/batches"

    @classmethod
    def headers(cls, key: str | None) -> dict[str, str]:
        """Return the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """Return a request as a line of OpenAI's batch file."""
        return orjson.dumps(
            {
                "custom_id": custom_id,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": body,
            }
        )

    def submit(self, lines: Sequence[bytes], token: str) -> str:
        """Upload the lines and create a batch; return its id."""
        file = (
            f"judgesmith-{token}.jsonl",
            b"\n".join(lines) + b"\n",
            "application/jsonl",
        )
        uploaded = _id(
            self.call(
                "POST", "/files", data={"purpose": "batch"}, files={"file": file}
            ).json()
        )
        wanted = {
            "input_file_id": uploaded,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        return _id(
            self.call(
                "POST", self.path, json=wanted | {"metadata": {"judgesmith": token}}
            ).json()
        )

    def is_ours(
        self, listed: Mapping[str, Any], token: str, count: int, since: float
    ) -> bool:
        """Return whether the batch's metadata holds the token."""
        return (listed.get("metadata") or {}).get("judgesmith") == token

    def look(self, batch: str) -> Look:
        """Return the state of a batch."""
        data = self.call("GET", f"{self.path}/{batch}").json()
        counts = data.get("request_counts") or {}
        ended = data.get("status") in ("completed", "failed", "expired", "cancelled")
        return Look(
            ended, (counts.get("completed") or 0) + (counts.get("failed") or 0), data
        )

    def results(
        self, batch: str, data: Mapping[str, Any]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the results from the output file and the error file."""
        for file in filter(
            None, (data.get("output_file_id"), data.get("error_file_id"))
        ):
            for record in _records(
                self.call("GET", f"/files/{_id({'id': file})}/content")
            ):
                response = record.get("response") or {}
                body = response.get("body") or {}
                good = response.get("status_code") == 200
                yield (
                    record.get("custom_id"),
                    body if good else None,
                    record.get("error") or body,
                )
        for problem in ((data.get("errors") or {}).get("data") or [])[
            :1
        ]:  # the batch as a whole was refused
            yield "", None, problem


class AnthropicBatches(BatchInterface):
    """One call with all requests; the answers are lines of JSON."""

    beginning = "anthropic/"
    host = "https://api.anthropic.com"
    addresses = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
    key_variable = "ANTHROPIC_API_KEY"
    most = 100_000
    largest = 256_000_000
    path = "/messages/batches"

    @classmethod
    def root(cls, address: str) -> str:
        """Return an address, whatever part of the path it has, up to the version."""
        return re.sub(r"/v1(/messages)?$", "", address) + "/v1"

    @classmethod
    def headers(cls, key: str | None) -> dict[str, str]:
        """Return the key and the version of the interface."""
        version = {"anthropic-version": "2023-06-01"}
        return version | {"x-api-key": key} if key else version

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """Return a request in Anthropic's form."""
        return orjson.dumps({"custom_id": custom_id, "params": body})

    def submit(self, lines: Sequence[bytes], token: str) -> str:
        """Create a batch of the lines; return its id."""
        form = any(b'"output_format":' in line for line in lines)
        headers = {"Content-Type": "application/json"}
        headers |= {"anthropic-beta": "structured-outputs-2025-11-13"} if form else {}
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        return _id(self.call("POST", self.path, content=body, headers=headers).json())

    def is_ours(
        self, listed: Mapping[str, Any], token: str, count: int, since: float
    ) -> bool:
        """Return whether time and size of the batch match; Anthropic has no place for a token."""
        # There is no place for a token. Whether it has our requests, its answers tell.
        created = datetime.fromisoformat(str(listed.get("created_at"))).timestamp()
        return (
            created > since - CLOCKS
            and sum((listed.get("request_counts") or {}).values()) == count
        )

    def look(self, batch: str) -> Look:
        """Return the state of a batch."""
        data = self.call("GET", f"{self.path}/{batch}").json()
        counts = data.get("request_counts") or {}
        return Look(
            data.get("processing_status") == "ended",
            sum(counts.values()) - counts.get("processing", 0),
            data,
        )

    def results(
        self, batch: str, data: Mapping[str, Any]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the results of a batch, completions in OpenAI's form."""
        # The documented place of `results_url`: a key goes to no address that an answer names.
        for record in _records(self.call("GET", f"{self.path}/{batch}/results")):
            result = record.get("result") or {}
            if result.get("type") == "succeeded":
                message = _completion(result.get("message") or {})
            else:
                message = None
            yield (
                record.get("custom_id"),
                message,
                result.get("error") or result.get("type"),
            )


def _id(data: Mapping[str, Any]) -> str:
    """Return the id of what a provider made. Raises ModelError for one that could not stand in an address."""
    identity = data.get("id")
    if not isinstance(identity, str) or not re.fullmatch(
        r"[A-Za-z0-9_-]{1,200}", identity
    ):
        raise ModelError(
            f"the provider gave no id of a batch or file but {str(identity)[:80]!r}; {GO_ON}"
        )
    return identity


def _records(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.content.split(b"\n"):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            yield record


def _reason(error: Any) -> tuple[Any, ...]:
    """Return a provider's code of an error and its message, as far as there are such."""
    if isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    if not isinstance(error, dict):
        return (error,)
    return error.get("code") or error.get("type"), error.get("message")


def _code(error: Any) -> str:
    return str(_reason(error)[0])


def _why(error: Any, key: str | None) -> str:
    """Return a provider's reason in one line."""
    words = _reason(error)
    return masked(
        " ".join(": ".join(str(word) for word in words if word).split()), key
    )[:300]


def _completion(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer of Anthropic in OpenAI's form, in which every answer is read."""
    blocks = message.get("content") or []
    usage = message.get("usage") or {}
    texts = [
        b["text"]
        for b in blocks
        if b.get("type") == "text" and isinstance(b.get("text"), str)
    ]
    forms = [
        json.dumps(b.get("input")) for b in blocks if b.get("type") == "tool_use"
    ]  # how LiteLLM asks for a form
    cached = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    stop = "length" if message.get("stop_reason") == "max_tokens" else "stop"
    return {
        "choices": [
            {"message": {"content": "".join(forms or texts)}, "finish_reason": stop}
        ],
        "usage": {
            "prompt_tokens": (usage.get("input_tokens") or 0) + cached + written,
            "completion_tokens": usage.get("output_tokens"),
            "prompt_tokens_details": {
                "cached_tokens": cached,
                "cache_creation_tokens": written,
            },
        },
    }


#: Interfaces of batches, by how the qualified names of models begin.
INTERFACES: Mapping[str, type[BatchInterface]] = {
    interface.beginning: interface for interface in (OpenAIBatches, AnthropicBatches)
}


def interface_of(name: str, where: Connection) -> BatchInterface:
    """Return the batch interface of a model.

    Raises:
        OptionError: If it has none, or no key is set.
    """
    beginning = beginning_of(provider_of(name).qualified(name))
    interface = INTERFACES.get(beginning)
    if interface is None:
        having = " and ".join(f"{one}…" for one in INTERFACES)
        raise OptionError(
            f"--batch is for {having}, which have batches, not for {name}; leave it out"
        )
    return interface.of(name, where)


def body_of(live: Transport, name: str, request: Request) -> dict[str, Any]:
    """Return the very body that a live call would send. Other models' form is LiteLLM's own."""
    if isinstance(live, OpenAIStyle):
        return live.body(request)
    import litellm
    from litellm.types.utils import LlmProviders
    from litellm.utils import ProviderConfigManager, get_optional_params

    litellm.suppress_debug_info = True
    parameters: Parameters = getattr(live, "parameters", Parameters())
    model, family, *_ = litellm.get_llm_provider(name)
    messages: list[Any] = marked_messages(name, request)
    options = get_optional_params(
        model=model,
        custom_llm_provider=family,
        drop_params=True,
        messages=messages,
        **parameters.fitted(request.options()),
    )
    form: Any = ProviderConfigManager.get_provider_chat_config(
        model, LlmProviders(family)
    )
    body: dict[str, Any] = form.transform_request(
        model=model,
        messages=messages,
        optional_params=options,
        litellm_params={},
        headers={},
    )
    return {
        name: value
        for name, value in body.items()
        if name not in ("stream", "extra_body", "json_mode")
    }


class Desk:
    """Requests in batches, recorded in OUTPUT.batches.jsonl, from which the next run resumes.

    Args:
        name: The model.
        where: Address and limits of the model.
        output: The output beside which the batches are recorded.
        again: True to send requests once more that failed in an earlier run.

    Raises:
        OptionError: If the model has no batches.
    """

    def __init__(
        self, name: str, where: Connection, output: Path, *, again: bool
    ) -> None:
        self.again = again
        self.provider = interface_of(name, where)
        self.path = output.with_name(f"{output.name}.batches.jsonl")
        self.watch: Progress = Silent()
        #: Requests by their `custom_id`: the row, and the line of a batch.
        self.requests: dict[str, tuple[str, bytes]] = {}
        self.answers: Answers = {}
        self._tried = set[str]()

    def identified(
        self, live: Transport, request: Request
    ) -> tuple[str, dict[str, Any]]:
        """Return the `custom_id` of a request, by what it says and whom it goes to, and its body."""
        body = body_of(live, self.provider.name, request)
        try:
            data = orjson.dumps(
                [self.provider.base, body, request.sample], option=orjson.OPT_SORT_KEYS
            )
        except orjson.JSONEncodeError as error:
            raise Unanswered(
                f"a text of this row cannot be sent ({error})", again=False
            ) from None
        return sha256(data).hexdigest()[:40], body

    def holds(self, requests: Iterable[str]) -> bool:
        """Return True if one of these requests is in a batch that was sent."""
        if not self.path.exists():
            return False
        noted = read_journal(self.path, kind="a list of batches")
        there = {one for _, record in noted for one in record.get("requests", ())}
        return not there.isdisjoint(requests)

    def answer(self) -> None:
        """Send the requests in batches, unless they are in one already, and collect the answers.

        Raises:
            ModelError: If the provider cannot be reached, or answers in another form than documented.
        """
        with Journal(self.path, kind="a list of batches", durable=True) as journal:
            try:
                self._answered(journal)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                problem = f"{self.provider.name}, what it says of a batch is not as documented"
                raise ModelError(
                    f"{problem}: {type(error).__name__}: {error}"[:300]
                ) from None

    def _answered(self, journal: Journal) -> None:
        sent = self._sent(journal)
        failed = self._failed(sent) if self.again else set[str]()
        while True:
            there = {custom_id for requests in sent.values() for custom_id in requests}
            wanted = [
                custom_id
                for custom_id in self.requests
                if custom_id not in there or custom_id in failed
            ]
            for part in self._parts(wanted):
                token = uuid.uuid4().hex
                requests = {
                    custom_id: self.requests[custom_id][0] for custom_id in part
                }
                journal.write(
                    {"sending": token, "at": time.time(), "requests": requests}
                )
                batch = self.provider.submit(
                    [self.requests[custom_id][1] for custom_id in part], token
                )
                journal.write({"sent": token, "batch": batch})
                sent[token, batch] = requests
                self._tried |= requests.keys()
            failed = set()
            if not (strangers := self._collect(sent)):
                return
            for token, batch in strangers:
                journal.write({"dropped": token, "batch": batch})
                del sent[token, batch]

    def _sent(self, journal: Journal) -> dict[tuple[str, str], dict[str, str]]:
        """Return the requests of every batch that was sent, by (token, id), the oldest first."""
        noted: dict[str, dict[str, Any]] = {}
        sent: dict[str, str] = {}
        strangers = set[str]()
        for _, record in read_journal(self.path, kind="a list of batches"):
            if "sending" in record:
                noted[record["sending"]] = record
            elif "sent" in record:
                sent[record["sent"]] = record["batch"]
            else:
                noted.pop(record["dropped"], None)
                strangers.add(record["batch"])
        for token, record in list(noted.items()):
            if token not in sent:  # a run ended while it was sent
                settled = {*sent.values(), *strangers}
                batch = self.provider.find(
                    token, len(record["requests"]), record["at"], settled
                )
                journal.write(
                    {"sent": token, "batch": batch}
                    if batch
                    else {"dropped": token, "batch": ""}
                )
                sent |= {token: batch} if batch else {}
        return {
            (token, sent[token]): r["requests"]
            for token, r in noted.items()
            if token in sent
        }

    def _failed(self, sent: Mapping[tuple[str, str], Mapping[str, str]]) -> set[str]:
        """Return the requests answered with a failure in batches that have ended, and not sent again later."""
        failed = set[str]()
        for (_, batch), requests in sent.items():
            failed -= requests.keys()
            if (
                self.requests.keys() & requests
                and (look := self.provider.look(batch)).ended
            ):
                answers = self.provider.answers(batch, look.data)
                failed |= {
                    one for one in requests if not isinstance(answers.get(one), Reply)
                }
        return failed - self._tried

    def _parts(self, wanted: Sequence[str]) -> Iterator[list[str]]:
        """Yield the requests of one batch each."""
        part = list[str]()
        size = 100
        for custom_id in wanted:
            length = len(self.requests[custom_id][1]) + 1
            if part and (
                len(part) == self.provider.most or size + length > self.provider.largest
            ):
                yield part
                part = []
                size = 100
            part.append(custom_id)
            size += length
        if part:
            yield part

    def _collect(
        self, sent: Mapping[tuple[str, str], Mapping[str, str]]
    ) -> list[tuple[str, str]]:
        """Wait for all batches with requests of this run and take their answers; return those that are not ours."""
        ours = {
            key: requests
            for key, requests in sent.items()
            if self.requests.keys() & requests
        }
        strangers = []
        for (key, requests), data in zip(
            ours.items(), self._waited([batch for _, batch in ours], ours), strict=True
        ):
            answers = self.provider.answers(key[1], data)
            if answers and not answers.keys() & {"", *requests}:
                strangers.append(key)
                continue
            ended = f"batch: no answer came back ({data.get('status') or 'ended'})"
            lost = answers.get("", Lost(ended))
            self.answers |= {
                one: answers.get(one, lost) for one in requests if one in self.requests
            }
        return strangers

    def _waited(
        self, batches: Sequence[str], of: Mapping[Any, Mapping[str, str]]
    ) -> list[Mapping[str, Any]]:
        """Return the provider's answers about these batches when all have ended, polling less and less often."""
        looks: dict[str, Look] = {}
        total = sum(map(len, of.values()))
        started = time.monotonic()
        pause = FIRST
        reported = ""
        at_first: int | None = None
        while True:
            looks |= {
                one: self.provider.look(one)
                for one in batches
                if one not in looks or not looks[one].ended
            }
            done = sum(look.done for look in looks.values())
            passed = time.monotonic() - started
            at_first = done if at_first is None else at_first
            where = "a batch" if len(batches) == 1 else f"{len(batches)} batches"
            text = f"{done:,} of {total:,} requests in {where} are answered"
            if done > at_first:
                text += f", about {duration(passed / (done - at_first) * max(0, total - done))} left"
            if text != reported:
                self.watch.stage(text, 0)
                reported = text
            if all(look.ended for look in looks.values()):
                return [looks[batch].data for batch in batches]
            self.provider.sleep(pause)
            pause = min(pause * 1.5, LONGEST)


class _Collecting:
    """A transport that notes what is asked and answers nothing."""

    def __init__(self, live: Transport, batches: Batches) -> None:
        self.live = live
        self.batches = batches

    async def send(self, request: Request) -> Reply:
        custom_id, body = self.batches.identified(self.live, request)
        item = row_context.current()
        if item is not None:
            row = self.batches.rows.get((item.source, item.output), "")
        else:
            row = ""
        self.batches.requests.setdefault(
            custom_id, (row, self.batches.provider.line(custom_id, body))
        )
        raise Unanswered("this is asked in a batch", again=False)


class _Replaying(_Collecting):
    """A transport that answers from the batches' results.

    A request that was in no batch (an unreadable answer is requested a second time) is sent at once.
    """

    async def send(self, request: Request) -> Reply:
        answer = self.batches.answers.get(
            self.batches.identified(self.live, request)[0]
        )
        if isinstance(answer, str):
            raise Unanswered(answer, again=False)
        return await self.live.send(request) if answer is None else answer


class Batches(Desk):
    """Requests of a judge that scores rows, in batches.

    again: whether requests that failed in an earlier run are sent once more.

    Raises:
        OptionError: If the judge or the model cannot work in batches.
    """

    def __init__(
        self,
        judge: Judge,
        where: Connection,
        output: Path,
        *,
        again: bool,
        watch: Progress,
    ) -> None:
        super().__init__(judge.lm.name, where, output, again=again)
        self.judge = judge
        self.watch = watch
        self.rows: dict[tuple[str, str], str] = {}
        self._check()

    def _check(self) -> None:
        calls = self.judge.method.cost().calls_per_row
        if models_of(self.judge.method) or self.judge.whole_documents or calls != 1:
            if calls != 1:
                why = f"{calls} calls a row"
            else:
                why = "more than calls of one model"
            raise OptionError(
                f"--batch is for judges of one call a row; this one ({self.judge.method.kind}) needs {why}"
            )

    def __call__(self, rows: Sequence[Any]) -> None:
        """Send these rows' requests in batches and collect the answers; the judge's later calls get these."""
        self._check()  # how a judge asks may depend on what its model can do, which is known by now
        lm = self.judge.lm
        engine.run(lm.capabilities())
        self.rows = {(row.source, row.output): row.id for row in rows}
        self.judge.set_lm(lm.metered().through(lambda live: _Collecting(live, self)))
        try:
            for _ in self.judge.score_many(rows, progress=False):
                pass
        finally:
            self.judge.set_lm(lm.through(lambda live: _Replaying(live, self)))
        if self.requests:
            with closing(self.provider):
                self.answer()
