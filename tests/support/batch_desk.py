"""A server on loopback with the batch interfaces of OpenAI and Anthropic."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from loopback import Server

from judgesmith.testing.fake import Ask, Fault

#: The status of a scripted fault that says that a batch ended before the request.
EXPIRED = 410


class Desk(Server):
    """Both interfaces: a batch is under way when it is first looked at. `sent`: the requests of every batch."""

    def __init__(self) -> None:
        self.sent: dict[str, list[dict[str, Any]]] = {}
        self.results: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, bytes] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self.looks: Counter[str] = Counter()
        super().__init__()

    def address(self, model: str) -> str:
        """The address that a model of this name is given."""
        return (
            self.base if model.startswith("openai") else self.base.removesuffix("/v1")
        )

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
                "code": "batch_expired" if fault.status == EXPIRED else "server_error",
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
