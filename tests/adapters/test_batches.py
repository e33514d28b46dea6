"""`judgesmith score --batch` against servers on loopback that behave as OpenAI's and Anthropic's batches do."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from json_lines import Rows, lines
from loopback import Server

from judgesmith.adapters import batches
from judgesmith.testing.fake import Ask, Fault


class Desk(Server):
    """Both interfaces: a batch is under way when it is first looked at. `sent`: the requests of every batch."""

    def __init__(self) -> None:
        self.sent: dict[str, list[dict[str, Any]]] = {}
        self.results: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, bytes] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self.looks: Counter[str] = Counter()
        super().__init__()

    def routes(self) -> list[web.RouteDef]:
        return [*super().routes(), web.route("*", "/v1/{rest:.*}", self._other)]

    def _said(self, body: dict[str, Any]) -> Any:
        system = (
            [{"role": "system", "content": body["system"]}] if "system" in body else []
        )
        flat = [
            {
                "role": m["role"],
                "content": m["content"]
                if isinstance(m["content"], str)
                else "".join(part["text"] for part in m["content"]),
            }
            for m in [*system, *body["messages"]]
        ]
        self.asks.append(ask := Ask(body | {"messages": flat}, len(self.asks)))
        return self.answer(ask)

    def _message(self, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": self._said(body)}],
            "usage": {
                "input_tokens": 50,
                "output_tokens": 9,
                "cache_read_input_tokens": 40,
            },
        }

    def _begun(self, requests: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        name = f"batch_{len(self.sent)}"
        self.sent[name], self.results[name] = (
            requests,
            [self._result(one) for one in reversed(requests)],
        )
        now, done = (
            datetime.now(UTC).isoformat(),
            {"processing": len(requests), "succeeded": 0},
        )
        self.listed[name] = {
            "id": name,
            "created_at": now,
            "request_counts": done,
            "status": "validating",
        } | more
        return self.listed[name]

    def _result(self, one: dict[str, Any]) -> dict[str, Any]:
        body, named = one.get("body") or one["params"], {"custom_id": one["custom_id"]}
        if isinstance(fault := self._said(body), Fault):
            error = {
                "code": "batch_expired",
                "type": "invalid_request_error",
                "message": fault.text,
            }
            return named | {
                "response": None,
                "error": error,
                "result": {"type": "errored", "error": {"error": error}},
            }
        choice = {"message": {"content": fault}, "finish_reason": "stop"}
        whole = {
            "choices": [choice],
            "usage": {"prompt_tokens": 50, "completion_tokens": 9},
        }
        message = self._message(body) if "params" in one else {}
        return named | {
            "response": {"status_code": 200, "body": whole},
            "error": None,
            "result": {"type": "succeeded", "message": message},
        }

    async def _other(self, request: web.Request) -> web.Response:
        rest = request.match_info["rest"]
        if rest == "messages":
            return web.json_response(self._message(await request.json()))
        if (rest, request.method) == ("files", "POST"):
            name = f"file_{len(self.files)}"
            self.files[name] = (await request.post())["file"].file.read()  # type: ignore[union-attr]
            return web.json_response({"id": name})
        if request.method == "POST":
            body = await request.json()
            given = body.get("requests") or list(
                map(json.loads, self.files[body["input_file_id"]].splitlines())
            )
            return web.json_response(self._begun(given, metadata=body.get("metadata")))
        if rest.endswith("batches"):
            return web.json_response({"data": list(self.listed.values())})
        name = rest.removesuffix("/results").removesuffix("/content").rpartition("/")[2]
        if rest.endswith(("/results", "/content")):
            name, _, kind = name.partition("-")
            wanted = [
                r
                for r in self.results[name]
                if not kind or (r["error"] is None) == (kind == "good")
            ]
            return web.Response(text="".join(json.dumps(one) + "\n" for one in wanted))
        self.looks[name] += 1
        ended = (
            {
                "status": "completed",
                "processing_status": "ended",
                "output_file_id": f"{name}-good",
                "error_file_id": f"{name}-bad",
            }
            if self.looks[name] > 1
            else {"status": "in_progress"}
        )
        return web.json_response(self.listed[name] | ended)


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture
def server() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


@pytest.fixture(params=["openai/fake", "anthropic/claude-3-5-haiku-20241022"])
def score(
    request: Any,
    cli: Any,
    judge_file: Path,
    server: Desk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    monkeypatch.setattr(batches, "FIRST", 0.01)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
    base = (
        server.base
        if request.param.startswith("openai")
        else server.base.removesuffix("/v1")
    )
    common = (
        "--judge",
        judge_file,
        "--lm",
        request.param,
        "--api-base",
        base,
        "--batch",
        "-o",
        tmp_path / "out.jsonl",
    )
    return lambda *arguments: cli("score", *arguments, *common)


def test_batches_fill_rows_in_order_and_failed_ones_are_sent_again(
    score: Callable[..., Any],
    server: Desk,
    rows_file: Rows,
    tmp_path: Path,
    fake: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in (batches.OpenAI, batches.Anthropic):
        monkeypatch.setattr(kind, "most", 5)
    well, rows = server.answer, rows_file(12)
    server.answer = lambda ask: (
        fake.Fault(text="too late")
        if ask.step == "score" and ask.mark == "r003"
        else well(ask)
    )
    done = score(rows, "--json")
    assert (done.code, done.json["scored"], done.json["failed"]) == (1, 11, 1)
    assert [len(requests) for requests in server.sent.values()] == [5, 5, 2]
    (why,) = done.json["failures"]
    assert why["id"] == "r003"
    assert "too late" in why["reason"]
    assert done.json["prompt_tokens"] >= 11 * 50
    server.answer = well
    assert score(rows, "--json", "--retry-failed").json["scored"] == 12
    assert [len(requests) for requests in server.sent.values()] == [5, 5, 2, 1]
    assert [row["id"] for row in lines(tmp_path / "out.jsonl")] == [
        row["id"] for row in lines(rows)
    ]


def test_a_kill_between_any_two_steps_loses_and_doubles_nothing(
    score: Callable[..., Any],
    server: Desk,
    rows_file: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in (batches.OpenAI, batches.Anthropic):
        monkeypatch.setattr(kind, "most", 3)
    real, steps, kills, rows = httpx.Client.request, itertools.count(), 0, rows_file(9)

    def dying(*given: Any, **more: Any) -> Any:
        """A run ends before its first step, before it hears of it, before its second step, and so on."""
        dies = next(steps) == kills // 2
        if dies and kills % 2 == 0:
            raise Killed
        answer = real(*given, **more)
        if dies:
            raise Killed
        return answer

    monkeypatch.setattr(httpx.Client, "request", dying)
    while True:
        steps = itertools.count()
        try:
            done = score(rows, "--json")
            break
        except Killed:
            kills += 1
    assert (done.code, done.json["scored"], kills > 5) == (0, 9, True)
    assert (
        Counter(
            one["custom_id"] for requests in server.sent.values() for one in requests
        ).most_common(1)[0][1]
        == 1
    )
    assert [row["id"] for row in lines(tmp_path / "out.jsonl")] == [
        row["id"] for row in lines(rows)
    ]


def test_what_no_batch_can_do_is_refused(
    cli: Any, server: Desk, judge_file: Path, rows_file: Rows, tmp_path: Path
) -> None:
    common = (
        "score",
        rows_file(3),
        "--judge",
        judge_file,
        "--api-base",
        server.base,
        "--batch",
    )
    cli(*common, "--lm", "groq/x").refused("--batch is for openai/… and anthropic/…")
    cli(*common, "--max-calls", 5).refused("use --limit")
    priced = (*common, "--lm", "openai/gpt-4o-mini", "--dry-run", "--json")
    assert (
        cli(*priced).json["cost"] * 2
        == cli(*(one for one in priced if one != "--batch")).json["cost"]
    )
    assert not server.asks
