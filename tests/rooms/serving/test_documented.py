"""`/openapi.json` tells the truth: every answer has a documented status and is valid by its schema."""

import json
import sys
from types import SimpleNamespace
from typing import Any

import httpx
import jsonschema
import pytest

import judgesmith as js
from judgesmith.rooms.serving.tracing import UNTRACED, traced

JSON = {"Content-Type": "application/json"}
NO_KEY, FOREIGN, STRANGE = (
    {"Authorization": ""},
    {"Origin": "http://evil.example"},
    {"Host": "evil.example:8000"},
)
ROW = {"source": "s", "output": "r001"}
#: Requests of a working server, and the status that each gets.
REQUESTS: list[tuple[str, str, Any, dict[str, str], int]] = [
    ("POST", "/v1/score", ROW, {}, 200),
    ("POST", "/v1/score", ROW | {"id": 7, "explain": True}, {}, 200),
    ("POST", "/v1/score", {"prompt": "s", "response": "r001", "id": "mine"}, {}, 200),
    (
        "POST",
        "/v1/score",
        {
            "messages": [
                {"role": "user", "content": "s"},
                {"role": "assistant", "content": "r2"},
            ]
        },
        {},
        200,
    ),
    ("POST", "/v1/score", {"output": "  "}, {}, 200),  # no score, and why
    ("POST", "/v1/score", ROW | {"judge": "other"}, {}, 404),
    ("POST", "/v1/score", ROW | {"judge": "judge@0123"}, {}, 409),
    ("POST", "/v1/score", {"output": "r001 " * 2_000}, {}, 413),
    ("POST", "/v1/score", {"source": "s"}, {}, 422),
    ("POST", "/v1/score", ROW | {"another": 1}, {}, 422),
    ("POST", "/v1/score", None, {}, 422),
    ("POST", "/v1/score", ROW, {"Content-Type": "text/plain"}, 415),
    ("POST", "/v1/score/many", {"rows": [ROW, {"output": " "}]}, {}, 200),
    ("POST", "/v1/score/many", {"rows": [ROW] * 9}, {}, 413),
    ("POST", "/v1/score/many", {"rows": [{}]}, {}, 422),
    ("POST", "/v1/score/many", {"rows": [ROW], "judge": "other"}, {}, 404),
    ("GET", "/healthz", None, NO_KEY, 200),
    ("GET", "/readyz", None, NO_KEY, 200),
    ("GET", "/v1/judges", None, {}, 200),
    ("GET", "/metrics", None, {}, 200),
]
REQUESTS += [
    (method, path, ROW if method == "POST" else None, headers, status)
    for method, path in (
        ("POST", "/v1/score"),
        ("POST", "/v1/score/many"),
        ("GET", "/v1/judges"),
        ("GET", "/metrics"),
    )
    for headers, status in ((NO_KEY, 401), (FOREIGN, 403), (STRANGE, 421))
]


def valid(document: Any, method: str, path: str, answer: httpx.Response) -> None:
    """Raises where the document does not know such an answer."""
    told = document["paths"][path][method.lower()]["responses"][str(answer.status_code)]
    kind = answer.headers["content-type"].partition(";")[0]
    schema = told["content"][kind]["schema"]
    held = (
        [answer.text]
        if kind == "text/plain"
        else [json.loads(line) for line in answer.text.splitlines()]
    )
    for one in held:
        jsonschema.Draft202012Validator(
            {**schema, "components": document["components"]}
        ).validate(one)


async def every(http: httpx.AsyncClient) -> Any:
    document = (await http.get("/openapi.json")).json()
    for method, path, body, headers, status in REQUESTS:
        content = b"{" if body is None else json.dumps(body).encode()
        sent = (
            {"content": content, "headers": JSON | headers}
            if method == "POST"
            else {"headers": headers}
        )
        answer = await http.request(method, path, **sent)
        assert answer.status_code == status, (method, path, answer.text)
        valid(document, method, path, answer)
    return document


def test_every_answer_is_documented(asking: Any) -> None:
    document = asking(every, body=9_000, rows=8)
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    closed = {
        path
        for path, by in document["paths"].items()
        if all("security" in one for one in by.values())
    }
    assert closed == {"/v1/score", "/v1/score/many", "/v1/judges", "/metrics"}
    asked = document["paths"]["/v1/score"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]
    for method, path, body, _, status in REQUESTS:
        if (
            (method, path) == ("POST", "/v1/score")
            and isinstance(body, dict)
            and status in (200, 422)
        ):
            checked = jsonschema.Draft202012Validator(
                {**asked, "components": document["components"]}
            ).is_valid(body)
            assert checked == (status == 200), body


def test_a_server_that_cannot_judge_is_documented(asking: Any) -> None:
    async def ask(http: httpx.AsyncClient) -> None:
        document = (await http.get("/openapi.json")).json()
        for path, body in (("/v1/score", ROW), ("/v1/score/many", {"rows": [ROW]})):
            answer = await http.post(path, json=body)
            assert answer.status_code == 503
            assert answer.json()["error"]["retry_after"]
            valid(document, "POST", path, answer)
        answer = await http.get("/readyz")
        assert answer.status_code == 503
        valid(document, "GET", "/readyz", answer)
        for path, status in (("/v1/nothing", 404), ("/v1/score", 405)):
            answer = await http.get(path)
            assert answer.status_code == status
            assert answer.json()["error"]["code"] == "no_route"

    asking(ask, problem="the connection failed")


def test_opinions_and_decisions_are_documented(
    asking: Any, judge_file: Any, server: Any, fake: Any
) -> None:
    js.Judge(js.DirectScorer("fluency", reading="said"), lm="openai/fake").save(
        judge_file
    )

    async def ask(http: httpx.AsyncClient) -> Any:
        document = (await http.get("/openapi.json")).json()
        schema = {
            "$ref": "#/components/schemas/Answer",
            "components": document["components"],
        }
        answered = jsonschema.Draft202012Validator(schema)
        said = (await http.post("/v1/score", json=ROW)).json()
        answered.validate(said)
        opinion = {
            "percent": None,
            "failure": "the output is empty",
            "failure_code": "empty",
        }
        answered.validate(
            said | {"opinions": {"a": opinion}, "passed": True, "category": "good"}
        )
        assert not answered.is_valid(said | {"raw": ["secret"]})
        assert not answered.is_valid(said | {"extra": 1})

    asking(ask)


def test_spans_need_a_tracer_and_stand_before_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def app() -> None: ...

    def middleware(inner: Any, **how: Any) -> Any:
        return SimpleNamespace(inner=inner, how=how)

    tracer = SimpleNamespace(force_flush=lambda: None)
    monkeypatch.setitem(
        sys.modules,
        "opentelemetry.instrumentation.asgi",
        SimpleNamespace(OpenTelemetryMiddleware=middleware),
    )
    for provider, wrapped in ((tracer, True), (SimpleNamespace(), False)):
        monkeypatch.setitem(
            sys.modules,
            "opentelemetry.trace",
            SimpleNamespace(get_tracer_provider=lambda p=provider: p),
        )
        made: Any = traced(app)
        assert (made is app) is not wrapped
    made = None
    monkeypatch.setitem(
        sys.modules,
        "opentelemetry.trace",
        SimpleNamespace(get_tracer_provider=lambda: tracer),
    )
    made = traced(app)
    assert made.inner is app
    assert made.how == {
        "excluded_urls": UNTRACED,
        "exclude_spans": ["receive", "send"],
    }
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.asgi", None)
    assert traced(app) is app


OWN = {
    "output": "Réponse",
    "source": "Demande",
    "score": "Note",
    "id": "id",
    "messages": "Verlauf",
}


def test_a_judge_s_own_names_are_understood_and_documented(
    asking: Any, judge_file: Any, server: Any
) -> None:
    judge = js.load(judge_file, api_base=server.base)
    judge.provenance |= {"labels": {"columns": OWN}}
    judge.save(judge_file)
    own, turns = (
        {"Demande": "s", "Réponse": "r001", "id": 3},
        [{"role": "assistant", "content": "r2"}],
    )

    async def ask(http: httpx.AsyncClient) -> None:
        document = (await http.get("/openapi.json")).json()
        assert document == (await http.get("/openapi.json")).json()
        asked = document["paths"]["/v1/score"]["post"]["requestBody"]["content"][
            "application/json"
        ]["schema"]
        schema = jsonschema.Draft202012Validator(
            {**asked, "components": document["components"]}
        )
        for row, status in (
            (own, 200),
            ({"Verlauf": turns}, 200),
            (ROW, 200),
            (own | {"judge": "judge"}, 200),
            ({"Réponse": "r001", "output": "r002"}, 422),
            (own | {"Note": 3}, 422),
            ({"Demande": "s"}, 422),
        ):
            answer = await http.post("/v1/score", json=row)
            assert answer.status_code == status, (row, answer.text)
            assert schema.is_valid(row) == (status == 200) or "output" in row, row
            many = await http.post("/v1/score/many", json={"rows": [row]})
            assert many.status_code == (422 if "judge" in row else status), (
                row,
                many.text,
            )
        same = [
            (await http.post("/v1/score", json=row)).json()
            for row in (own, ROW | {"id": 3})
        ]
        assert same[0]["score"] == same[1]["score"]
        assert same[0]["id"] == 3
        assert (
            await http.post("/v1/score", json=own | {"judge": "other"})
        ).status_code == 404

    asking(ask)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b'{"output": "x", "id": true}', "an id is a text or a whole number, not true"),
        (b'{"messages": "x"}', "column 'messages' has no turns: x"),
        (
            b'{"messages": [{"role": 1, "content": "x"}]}',
            "column 'messages' has no turns",
        ),
        (b'{"chat": [{"role": 1, "content": "x"}]}', "column 'chat' has no turns"),
        (b'{"output": "\\ud800"}', "malformed JSON"),
        (b'{"output": ', "malformed JSON"),
    ],
)
def test_what_cannot_be_meant_is_refused_for_one_and_for_many(
    asking: Any, sent: bytes, why: str
) -> None:
    async def ask(http: httpx.AsyncClient) -> None:
        for path, body in (
            ("/v1/score", sent),
            ("/v1/score/many", b'{"rows": [' + sent + b"]}"),
        ):
            answer = await http.post(path, content=body, headers=JSON)
            assert answer.status_code == 422, (path, answer.text)
            assert why in answer.json()["error"]["message"], (path, answer.text)

    asking(ask)
