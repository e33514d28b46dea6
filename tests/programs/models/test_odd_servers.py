"""Servers that say the same in other ways: streams, waits in a body, refused parameters, short counts."""

import json
import ssl
from typing import Any

import aiohttp
import pytest
from misbehaving_server import MakeServer, Say

from judgesmith.errors import CallError, ModelError, OutageError
from judgesmith.programs.answers.reply import Reply, ending
from judgesmith.programs.models import engine, reaching, refusals
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.reaching import check_trusted, proxy_for
from judgesmith.programs.models.refusals import reset_after, retry_after
from judgesmith.programs.models.transport import Request, Unanswered, read_reply
from judgesmith.programs.models.window import fewest_tokens, is_short_count


def model(base: str, **given: Any) -> LanguageModel:
    connection = Connection(api_base=base, api_key="x", **({"cache": False} | given))
    return language_model("openai/m", connection=connection)


def ask(lm: LanguageModel, text: str = "Rate it.") -> Reply:
    return engine.run(lm.complete(Request([{"role": "user", "content": text}], 12)))


def completion(content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": "stop"}], **more}


def piece(content: str | None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    chunk = {"object": "chat.completion.chunk", "choices": [choice], **more}
    return f"data: {json.dumps(chunk)}\n\n"


# Answers in other forms

WHOLE = json.dumps(completion("Score: 80"))
STREAMS = {
    "a line": f"data: {WHOLE}\n\n",
    "an end": f"{WHOLE}\n\ndata: [DONE]\n\n",
    "comments": f": PROCESSING\n\n: PROCESSING\n\n{WHOLE}",
    "an event": f"event: message\nid: 3\r\ndata: {WHOLE}\r\n\r\ndata: [DONE]\r\n\r\n",
    "lines": "".join(
        f"data: {line}\n"
        for line in json.dumps(completion("Score: 80"), indent=1).split("\n")
    ),
    "pieces": piece("Score:") + piece(" 8") + piece("0") + piece(None, "stop"),
    "pieces to the end": piece("Score: ") + piece("80") + "data: [DONE]\n\n",
    "pieces, then counts": piece("Score: 80", "stop")
    + 'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}\n\n',
}


@pytest.mark.parametrize("form", STREAMS)
def test_a_whole_answer_is_read_from_an_event_stream(
    form: str, serve: MakeServer
) -> None:
    reply = ask(model(serve(Say(body=STREAMS[form].encode())).base))
    assert (reply.text, reply.ending) == ("Score: 80", "whole")


def test_a_stream_that_breaks_off_is_not_whole(serve: MakeServer) -> None:
    cut = piece("Score:") + piece(" 8")
    for body in (cut, cut + 'data: {"choices": [{"del', piece(" 8")[6:]):
        assert ask(model(serve(Say(body=body.encode())).base)).ending == "cut"


def test_an_error_in_a_stream_is_one(serve: MakeServer) -> None:
    body = piece("Score:") + 'data: {"error": {"message": "upstream", "code": 502}}\n\n'
    with pytest.raises(CallError, match="upstream"):
        ask(model(serve(Say(body=body.encode())).base, attempts=1))


@pytest.mark.parametrize(
    ("body", "times"),
    [
        (completion([{"type": "text", "text": {"value": "Score: 80"}}]), 1),
        (completion([["Score: 80"]]), 1),
        ({"content": [{"type": "text", "text": "Score: 80"}]}, 2),  # another interface
    ],
)
def test_a_form_that_is_not_known_is_no_outage(
    body: Any, times: int, serve: MakeServer
) -> None:
    server = serve(Say(body=json.dumps(body).encode()))
    lm = model(server.base, attempts=2)
    with pytest.raises(
        CallError, match=r"cannot be read|not a chat completion"
    ) as said:
        ask(lm)
    assert said.value.lasting
    assert len(server.bodies) == times
    with pytest.raises(ModelError, match="The server is up") as refused:
        engine.run(lm.capabilities())
    assert not isinstance(refused.value, OutageError)


@pytest.mark.parametrize(
    ("content", "text"),
    [(80, "80"), (4.5, "4.5"), ({"score": 80}, '{"score": 80}')],
)
def test_an_answer_that_the_server_parsed_is_text_again(
    content: Any, text: str
) -> None:
    assert read_reply(completion(content)).text == text


def test_the_first_answer_is_the_one_with_the_number_nought() -> None:
    choices = [
        {"index": number, "message": {"content": f"Score: {score}"}}
        for number, score in ((1, 20), (0, 80))
    ]
    assert read_reply({"choices": choices}).text == "Score: 80"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            {"tool_calls": [{"function": {"arguments": '{"score": 80}'}}]},
            '{"score": 80}',
        ),
        ({"tool_calls": [{"function": {"arguments": {"score": 80}}}]}, '{"score": 80}'),
        ({"function_call": {"arguments": '{"score": 80}'}}, '{"score": 80}'),
        ({"tool_calls": [{"function": {"arguments": "1"}}] * 2}, ""),
        ({"tool_calls": [{"function": None}]}, ""),
    ],
)
def test_a_tool_s_arguments_are_kept_beside_the_reason(message: Any, text: str) -> None:
    reply = read_reply({"choices": [{"message": {"content": None} | message}]})
    assert (reply.text, reply.absent) == (
        text,
        "the model called a tool instead of answering",
    )


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        ({"finish_reason": "FINISH_REASON_STOP"}, "whole"),
        ({"finish_reason": None}, "whole"),
        ({"finish_reason": None, "native_finish_reason": "MAX_TOKENS"}, "limit"),
        ({"finish_reason": {"type": "max_tokens"}}, "limit"),
        ({"finish_reason": 7}, "cut"),
        ({"finish_reason": "RECITATION"}, "filter"),
        ({"finish_reason": "something new"}, "cut"),
    ],
)
def test_only_a_known_end_makes_an_answer_whole(choice: Any, meant: str) -> None:
    reply = read_reply({"choices": [{"message": {"content": "4"}, **choice}]})
    assert reply.ending == meant == ending(reply.finish)


# Parameters


def refusing(*names: str, **words: str) -> Any:
    """A server that refuses these parameters, whatever their value but a temperature of 1."""

    def answer(_: int, body: dict[str, Any]) -> Say:
        for name in names:
            if name in body and not (name == "temperature" and body[name] == 1):
                said = words.get(name) or f"Unsupported parameter: '{name}'."
                error = {"error": {"message": said, "param": name}}
                return Say(400, json.dumps(error).encode())
        return Say()

    return answer


@pytest.mark.parametrize(
    ("refused", "asked"),
    [
        (("temperature",), {"max_tokens"}),
        (("max_tokens",), {"temperature", "max_completion_tokens"}),
        (("temperature", "max_tokens"), {"max_completion_tokens"}),
        (("max_tokens", "max_completion_tokens"), {"temperature"}),
    ],
)
def test_a_model_is_asked_again_without_what_it_does_not_take(
    refused: tuple[str, ...], asked: set[str], serve: MakeServer
) -> None:
    server = serve(refusing(*refused))
    lm = model(server.base)
    replies = [ask(lm, f"Rate {number}.") for number in range(3)]
    assert {reply.text for reply in replies} == {"Score: 4"}
    assert {reply.without for reply in replies} == {tuple(sorted(refused))}
    assert len(server.bodies) == 3 + len(refused)  # learnt once
    assert set(server.bodies[-1]) == {"model", "messages"} | asked


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported value: 'temperature' does not support 0 with this model.",
        "invalid temperature: only 1 is allowed for this model",
        "`temperature` may only be set to 1 when thinking is enabled",
        "temperature: Extra inputs are not permitted",
        "`temperature` is deprecated for this model.",
        "#: extraneous key [temperature] is not permitted",
    ],
)
def test_the_server_s_words_tell_which_it_is(words: str, serve: MakeServer) -> None:
    def answer(_: int, body: dict[str, Any]) -> Say:
        refused = "temperature" in body
        return Say(400, json.dumps({"error": words}).encode()) if refused else Say()

    assert ask(model(serve(answer).base)).without == ("temperature",)


def test_another_refusal_is_not_asked_again_and_teaches_nothing(
    serve: MakeServer,
) -> None:
    said = [
        "This model's maximum context length is 4096 tokens, however you requested 5000.",
        "max_tokens must be at most 8",
        "The text about temperature records is not supported",
    ]
    server = serve(Say(400, json.dumps({"error": {"message": said[0]}}).encode()))
    with pytest.raises(CallError, match="context length"):
        ask(lm := model(server.base))
    assert len(server.bodies) == 1
    for words in said[1:]:
        server = serve(Say(400, json.dumps({"error": {"message": words}}).encode()))
        with pytest.raises(CallError):
            ask(lm := model(server.base))
        assert not lm.transport.parameters.refused  # type: ignore[attr-defined]


def test_a_probe_from_the_disk_tells_the_next_process(
    serve: MakeServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "c.sqlite"))

    def answer(_: int, body: dict[str, Any]) -> Say:
        if "temperature" in body:
            words = b'{"error": {"message": "temperature is not supported"}}'
            return Say(400, words)
        return Say(body=json.dumps(completion("4")).encode())

    server = serve(answer)
    for _ in range(2):
        lm = model(server.base, cache=True)
        assert engine.run(lm.capabilities()).without == ("temperature",)
        ask(lm, "Rate it.")
    assert sum("temperature" in body for body in server.bodies) == 1


# Waits


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ('{"retryDelay": "9s"}', 9.0),
        ('{"retryDelay": {"seconds": 9}}', 9.0),
        ('{"error": {"retry_after_ms": 250}}', 0.25),
        ('{"retry_after_seconds": 7}', 7.0),
        ('{"retryAfter":3}', 3.0),
        ("Please try again in 9s.", 9.0),
        ("Try again in 2m3s", 123.0),
        ("Please try again in 1h2m3.5s. Visit", 3723.5),
        ("Please retry in 27.4s.", 27.4),
        ("retry after 20 seconds", 20.0),
        ("Please wait for 500 ms", 0.5),
        ("The limit resets in 3 minutes", 180.0),
        ("Rate limit: 40 requests in 60 seconds", None),
        ("Try again later.", None),
        ("try again in the evening", None),
    ],
)
def test_a_wait_in_a_body_is_read(body: str, seconds: float | None) -> None:
    assert retry_after({}, body) == seconds
    assert retry_after({"Retry-After": "1"}, body) == 1.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "1m2s"}, 62.0),
        ({"X-RateLimit-Reset": "1000000030"}, 30.0),
        ({"x-ratelimit-reset": "1000000030000"}, 30.0),
        ({"RateLimit": '"default";r=0;t=9'}, 9.0),
        ({"anthropic-ratelimit-requests-reset": "2001-09-09T01:47:10Z"}, 30.0),
        (
            {
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "8s",
            },
            8.0,
        ),
        ({"x-ratelimit-reset": "86400"}, None),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-limit": "9"}, None),
    ],
)
def test_a_counter_s_reset_is_a_wait_of_two_minutes_at_most(
    headers: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals.time, "time", lambda: 1_000_000_000.0)
    assert reset_after(headers) == seconds


def test_a_quota_for_a_moment_is_waited_for(serve: MakeServer) -> None:
    body = {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [{"retryDelay": "0.2s"}],
        }
    }
    server = serve(Say(429, json.dumps(body).encode()), Say())
    assert ask(model(server.base)).text == "Score: 4"


# A window


def counting(**usage: Any) -> Say:
    return Say(body=json.dumps(completion("Score: 4", usage=usage)).encode())


LONG = "The committee met again and wrote down what it had decided. " * 550  # 33,000


@pytest.mark.parametrize("counted", [1, 300, 2050, 4096])
def test_a_count_that_is_too_short_for_a_prompt_is_no_answer_to_it(
    counted: int, serve: MakeServer
) -> None:
    server = serve(counting(prompt_tokens=counted))
    with pytest.raises(CallError, match="read only a part of the prompt") as caught:
        ask(model(server.base), LONG)
    assert caught.value.lasting
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        (LONG, {"prompt_tokens": 6600}),  # five characters to a token
        (LONG, {"prompt_tokens": 0}),
        (LONG, {}),
        (
            LONG,
            {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 6560}},
        ),
        (LONG, {"prompt_tokens": 40, "prompt_cache_hit_tokens": 6560}),
        ("国家发展和改革委员会今天上午宣布了新的规定。" * 500, {"prompt_tokens": 5500}),
        ("हिन्दी में लिखा हुआ एक लंबा वाक्य यहाँ है। " * 500, {"prompt_tokens": 5000}),
        ("def f():\n" + " " * 40_000 + "pass", {"prompt_tokens": 400}),
        ("Short.", {"prompt_tokens": 1}),
    ],
)
def test_a_true_count_is_never_taken_for_a_short_one(
    text: str, usage: Any, serve: MakeServer
) -> None:
    assert ask(model(serve(counting(**usage)).base), text).text == "Score: 4"


def test_a_server_that_counts_what_it_has_not_kept_counted_more_before(
    serve: MakeServer,
) -> None:
    lm = model(serve(counting(prompt_tokens=6600), counting(prompt_tokens=12)).base)
    assert [ask(lm, LONG).text for _ in range(2)] == ["Score: 4"] * 2


def test_few_tokens_are_expected_of_repeated_signs() -> None:
    ruled = [{"role": "user", "content": "=" * 9000 + "\n" * 9000}]
    assert fewest_tokens(ruled) == 0
    assert not is_short_count(3, ruled)


# Ways


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_the_proxy_of_the_environment_is_used(
    name: str, serve: MakeServer, no_proxies: pytest.MonkeyPatch
) -> None:
    server = serve()
    no_proxies.setenv(name, server.base.removesuffix("/v1"))
    assert ask(model("http://models.corp.invalid/v1")).text == "Score: 4"
    assert server.headers[0].startswith("POST http://models.corp.invalid/v1/chat")


def test_this_machine_and_exceptions_are_reached_directly(
    serve: MakeServer, no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://proxy.invalid:3128")
    assert ask(model(serve().base)).text == "Score: 4"
    no_proxies.setenv("NO_PROXY", ".corp.example, 10.0.0.7")
    assert proxy_for("http://models.corp.example/v1") is None
    assert proxy_for("http://10.0.0.7:8000/v1") is None
    assert proxy_for("http://elsewhere.example/v1") == "http://proxy.invalid:3128"
    assert proxy_for("https://elsewhere.example/v1") is None
    for address in ("http://localhost:1/v1", "http://[::1]:1/v1", "http://127.3.2.1/"):
        assert reaching.is_loopback(address)


def test_a_proxy_that_speaks_no_http_is_named(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(ModelError, match=r"socks5://.*NO_PROXY"):
        ask(model("http://models.corp.invalid/v1"))


def test_a_certificate_that_is_not_trusted_is_said_at_once() -> None:
    failed = ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED")
    wrapped = aiohttp.ClientError("Cannot connect")
    wrapped.__cause__ = failed
    said = Exception("APIConnectionError: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed")
    for error in (failed, wrapped, said):
        with pytest.raises(ModelError, match=r"not trusted.*SSL_CERT_FILE"):
            check_trusted("openai/m", error)
    check_trusted("openai/m", Unanswered("the connection failed", again=True))
