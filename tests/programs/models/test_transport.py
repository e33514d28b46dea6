"""How one request reaches a model: a real server that misbehaves in every way seen in the wild."""

import gzip
import itertools
import json
import math
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_places import Place, places, put
from misbehaving_server import MakeServer, Say
from parrot import Foreign

from judgesmith.errors import ModelError
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.models import engine, refusals
from judgesmith.programs.models.providers.litellm import ThroughLiteLLM
from judgesmith.programs.models.providers.openai import LARGEST_ANSWER, OpenAIStyle
from judgesmith.programs.models.refusals import retry_after
from judgesmith.programs.models.through_dspy import ThroughDSPy
from judgesmith.programs.models.transport import Request, Unanswered, read_reply

ASK = Request([{"role": "user", "content": "Rate “this” 🙂"}], 12)


def send(
    base: str,
    request: Request = ASK,
    *,
    key: str | None = "sk-secret",
    timeout: float = 5.0,
) -> Reply:
    """One request over a connection of its own, without retries."""

    async def once() -> Reply:
        style = OpenAIStyle(base, "m", key=key, timeout=timeout, label="openai/m")
        try:
            return await style.send(request)
        finally:
            await style.close()

    return engine.run(once())


def failure(base: str, **options: Any) -> Unanswered:
    with pytest.raises(Unanswered) as caught:
        send(base, **options)
    return caught.value


# What is sent


def test_the_request_is_what_openai_documents_without_a_key_too(
    serve: MakeServer,
) -> None:
    server = serve()
    assert send(server.base) == Reply("Score: 4", None, 11, 3, 0, "stop")
    assert server.bodies == [
        {"model": "m", "messages": ASK.messages, "temperature": 0.0, "max_tokens": 12}
    ]
    assert server.headers[0].startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert "Authorization: Bearer sk-secret\r\n" in server.headers[0]
    send(server.base + "/", key=None)  # a slash at the end is no other address
    assert "authorization" not in server.headers[1].lower()
    assert server.headers[1].startswith("POST /v1/chat/completions ")


def test_a_token_that_is_not_among_the_likeliest_is_listed_with_its_own_probability() -> (
    None
):
    listed = [
        {
            "token": "W",
            "logprob": -9.5,
            "top_logprobs": [{"token": "B", "logprob": -0.1}],
        }
    ]
    reply = read_reply(
        {"choices": [{"message": {"content": "W"}, "logprobs": {"content": listed}}]}
    )
    assert reply.tokens == (TokenChoice("W", (("B", -0.1), ("W", -9.5))),)


def test_logprobs_grammar_and_schema_are_asked_for_in_their_forms(
    serve: MakeServer,
) -> None:
    server = serve()
    schema = {"type": "object"}
    send(server.base, Request(ASK.messages, 1, top_logprobs=20, schema=schema))
    send(server.base, Request(ASK.messages, 1, grammar='root ::= "4"', schema=schema))
    first, second = server.bodies
    assert (first["logprobs"], first["top_logprobs"]) == (True, 20)
    assert first["response_format"]["json_schema"] == {
        "name": "answer",
        "strict": True,
        "schema": schema,
    }
    assert second["grammar"] == 'root ::= "4"'
    assert not {"response_format", "logprobs", "top_logprobs"} & set(second)


# What comes back wrong


@pytest.mark.parametrize(
    ("status", "again"),
    [
        *((s, True) for s in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        *((s, False) for s in (400, 405, 413, 422)),
    ],
)
def test_statuses_that_pass_are_worth_another_try(
    serve: MakeServer, status: int, again: bool
) -> None:
    error = failure(
        serve(Say(status, b'{"error": {"message": "too busy\\nfor you"}}')).base
    )
    assert (error.again, error.reached, error.after) == (again, True, None)
    assert str(error) == f"HTTP {status}: too busy for you"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (401, "the key was refused .HTTP 401: none here"),
        (403, "the key was refused .HTTP 403: none here"),
        (404, "none here.*check the name and --api-base"),
    ],
)
def test_refused_keys_and_unknown_models_are_errors_that_show_no_key(
    serve: MakeServer, status: int, why: str
) -> None:
    with pytest.raises(ModelError, match=f"openai/m: .*{why}") as caught:
        send(
            serve(
                Say(
                    status,
                    b'{"error": {"message": "none here: sk-secret, Bearer abcdefgh, sk-abcdefgh"}}',
                )
            ).base
        )
    assert "sk-secret" not in str(caught.value)
    assert str(caught.value).count("[key]") == 3


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(serve: MakeServer, status: int) -> None:
    elsewhere = serve()
    server = serve(Say(status, b"", {"Location": elsewhere.base + "/chat/completions"}))
    with pytest.raises(ModelError, match="moved to " + re.escape(elsewhere.base)):
        send(server.base)
    assert elsewhere.bodies == []


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("-3", 0.0),
        ("", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 30.0),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),  # long ago
        ("nan", None),
        ("9" * 400, math.inf),  # the caller's own bound holds
    ],
)
def test_retry_after_values(
    value: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals.time, "time", lambda: 1_445_412_450.0)
    assert (
        retry_after({"Retry-After": value})
        == retry_after({"retry-after": value})
        == seconds
    )


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (Say(cut=20), "the connection failed"),
        (Say(hang_up=True), "the connection failed"),
        (Say(wait=5), "no answer within 0.1 s"),
    ],
    ids=["cut off", "closed", "slow"],
)
def test_an_answer_that_does_not_arrive(serve: MakeServer, say: Say, why: str) -> None:
    error = failure(serve(say).base, timeout=0.1 if say.wait else 5.0)
    assert (error.again, error.reached) == (True, False)
    assert str(error).startswith(why)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>Bad gateway</html>", b'{"choices": [', b"\xff\xfe\x00", b"NaN"],
)
def test_garbage_instead_of_json(serve: MakeServer, body: bytes) -> None:
    error = failure(serve(Say(body=body)).base)
    assert error.again
    assert "no JSON" in str(error)


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        "text",
        None,
        {"error": {"message": "overloaded"}},
        {"choices": []},
        {"choices": None},
        {"choices": [{}]},
    ],
)
def test_json_that_is_no_completion(data: Any) -> None:
    with pytest.raises(Unanswered, match="not a chat completion") as caught:
        read_reply(data)
    assert caught.value.again


# A server that lies

#: Any JSON, among it the numbers that Python's own reader lets through.
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
VALID: dict[str, Any] = {
    "choices": [
        {
            "message": {"role": "assistant", "content": "4"},
            "finish_reason": "stop",
            "logprobs": {
                "content": [
                    {"token": "4", "top_logprobs": [{"token": "4", "logprob": -0.1}]}
                ]
            },
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 4},
    },
}


@given(st.sampled_from(places(VALID)), ANY)
def test_whatever_stands_anywhere_in_an_answer_it_is_read_or_refused(
    place: Place, value: Any
) -> None:
    try:
        reply = read_reply(put(VALID, place, value))
    except Unanswered as error:
        assert error.again or error.unread
        assert len(str(error)) < 500
        return
    orjson.dumps(reply.text)  # what the cache does with it
    counts = (reply.prompt_tokens, reply.completion_tokens, reply.prefix_tokens)
    assert all(type(n) is int and 0 <= n <= 10**9 for n in counts)
    for token in reply.tokens or ():
        orjson.dumps(token.text)
        assert all(
            isinstance(text, str) and p <= 0 for text, p in token.alternatives
        )  # no NaN either


@pytest.mark.parametrize(
    ("logprob", "read"),
    [(1e-7, (("4", 0.0),)), (-math.inf, ()), (None, ())],  # JSON has no minus infinity
)
def test_rounding_makes_no_lie_of_a_certain_token_and_one_without_probability_is_left_out(
    logprob: float | None, read: Any
) -> None:
    place = ("choices", 0, "logprobs", "content", 0, "top_logprobs", 0, "logprob")
    assert read_reply(put(VALID, place, logprob)).tokens == (TokenChoice("4", read),)


@pytest.mark.parametrize("depth", [500, 100_000])
def test_json_without_a_bottom(serve: MakeServer, depth: int) -> None:
    nested = b'{"error": ' + b"[" * depth + b"]" * depth + b"}"
    for say in (Say(body=nested), Say(500, nested)):
        assert failure(serve(say).base).again


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_body_is_read_to_a_bound(serve: MakeServer, status: int) -> None:
    def endless() -> Any:
        yield f"HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        yield from itertools.repeat(b"10000\r\n" + b" " * 65536 + b"\r\n")

    server = serve(lambda *_: Say(raw=endless()))
    error = failure(server.base)
    assert not error.again
    assert "longer than 16 MiB" in str(error)
    assert server.bytes_sent < 4 * LARGEST_ANSWER


def test_compressed_answers_are_not_asked_for_and_not_unpacked(
    serve: MakeServer,
) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    server = serve(Say(body=bomb, headers={"Content-Encoding": "gzip"}))
    error = failure(server.base)
    assert "no JSON" in str(error)
    assert "Accept-Encoding: identity\r\n" in server.headers[0]


def heads() -> dict[str, bytes]:
    """Beginnings of answers as no server should send them."""
    return {
        "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
        "a long header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "broken chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    }


@pytest.mark.parametrize("name", heads())
def test_garbage_for_http(serve: MakeServer, name: str) -> None:
    server = serve(lambda *_: Say(raw=[heads()[name]]))
    assert str(failure(server.base, timeout=2.0))


def test_cookies_are_not_kept_and_a_closed_connection_opens_again(
    serve: MakeServer,
) -> None:
    server = serve(Say(headers={"Set-Cookie": "row=1; Path=/"}))

    async def thrice() -> None:
        style = OpenAIStyle(server.base, "m", key=None, timeout=5, label="m")
        await style.send(ASK)
        await style.send(ASK)
        await style.close()
        await style.send(ASK)
        await style.close()

    engine.run(thrice())
    assert len(server.headers) == 3
    assert "cookie" not in server.headers[1].lower()


# What comes back right


def answer(content: Any, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content}, **choice}]}


LISTED = [
    {"token": "Score: ", "logprob": -0.1, "top_logprobs": []},
    {
        "token": "4",
        "top_logprobs": [
            {"token": "4", "logprob": -0.5},
            {"token": " 5", "logprob": -1},
        ],
    },
    {"token": "\n"},
]
READ = (
    TokenChoice("Score: ", ()),
    TokenChoice("4", (("4", -0.5), (" 5", -1.0))),
    TokenChoice("\n", ()),
)
PARTS = [
    {"type": "thinking", "thinking": "hm"},
    {"type": "text", "text": "Score"},
    {"type": "text", "text": ": 4"},
]
FROM_PREFIX = {
    "prompt_tokens": 700,
    "completion_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 640},
}


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        (answer("Score: 4\n", logprobs={"content": LISTED}), Reply("Score: 4\n", READ)),
        *(
            (answer("4", logprobs=none), Reply("4"))
            for none in (None, {}, {"content": None}, {"content": []})
        ),
        (answer(None, finish_reason="length"), Reply("", finish="length")),
        (answer(PARTS), Reply("Score: 4")),
        (answer("4") | {"usage": FROM_PREFIX}, Reply("4", None, 700, 8, 640)),
        (answer("4") | {"usage": {"prompt_tokens_details": None}}, Reply("4")),
    ],
)
def test_what_servers_send_is_read(given: Any, reply: Reply) -> None:
    assert read_reply(given) == reply


LIKELY = st.lists(
    st.fixed_dictionaries(
        {
            "token": st.sampled_from(["4", "5", " 4", "é", "\ud800"]),
            "logprob": st.sampled_from([-0.5, -2.0, 0.0, -1, 0.5, None, float("nan")]),
        }
    ),
    max_size=3,
)


@given(st.lists(st.tuples(st.sampled_from("459é"), LIKELY), min_size=1, max_size=4))
def test_tokens_are_read_together_as_they_are_alone(
    spoken: list[tuple[str, Any]],
) -> None:
    listed = [
        {"token": text, "logprob": -1.0, "top_logprobs": likely}
        for text, likely in spoken
    ]
    alone = [read_reply(answer("x", logprobs={"content": [one]})) for one in listed]
    whole = read_reply(answer("x", logprobs={"content": listed}))
    assert whole.tokens == tuple(one.tokens[0] for one in alone if one.tokens)
    assert set(whole.odd) == {odd for one in alone for odd in one.odd}


# The other two transports


def through_litellm(base: str, model: str = "openai/m", timeout: float = 5.0) -> Reply:
    return engine.run(
        ThroughLiteLLM(model, timeout=timeout, key="sk-secret", api_base=base).send(ASK)
    )


def test_litellm_gives_the_same_replies_and_failures(serve: MakeServer) -> None:
    """One test: importing LiteLLM takes seconds."""
    assert through_litellm(serve().base) == Reply("Score: 4", None, 11, 3, 0, "stop")
    for status in (401, 404):
        with pytest.raises(ModelError):
            through_litellm(serve(Say(status, b'{"error": {"message": "no"}}')).base)
    with pytest.raises(Unanswered, match="LLM Provider NOT provided"):
        through_litellm(serve().base, model="nonsense")
    for say, failed in (
        (
            Say(429, b'{"error": {"message": "slow down"}}', {"Retry-After": "2"}),
            (True, 2.0, True),
        ),
        (Say(400, b'{"error": {"message": "too long"}}'), (False, None, True)),
        (Say(500, b"{}"), (True, None, True)),
        (Say(wait=3), (True, None, False)),
    ):
        server = serve(say)
        with pytest.raises(Unanswered) as caught:
            through_litellm(server.base, timeout=5.0 if failed[2] else 0.2)
        assert (caught.value.again, caught.value.after, caught.value.reached) == failed
        assert len(server.bodies) == 1  # our retries replace LiteLLM's
    for place, value in (
        (("choices",), []),
        (("choices", 0, "message"), 7),
        (("usage",), []),
        ((), [[]]),
    ):
        with pytest.raises(Unanswered):
            through_litellm(
                serve(Say(body=json.dumps(put(VALID, place, value)).encode())).base
            )
    for head in heads().values():
        with pytest.raises(Unanswered):
            through_litellm(
                serve(lambda *_, head=head: Say(raw=[head])).base, timeout=2.0
            )


def test_a_dspy_object_answers_as_text_or_with_log_probabilities() -> None:
    lm = Foreign("Score: 4")
    assert engine.run(ThroughDSPy(lm).send(ASK)).text == "Score: 4"
    assert engine.run(ThroughDSPy(Foreign({})).send(ASK)).text == ""
    assert lm.asked == [
        {"messages": ASK.messages, "temperature": 0.0, "max_tokens": 12}
    ]
    listed = [{"token": "4", "top_logprobs": [{"token": "4", "logprob": -0.1}]}]
    lm = Foreign({"text": "4", "logprobs": {"content": listed}})
    reply = engine.run(
        ThroughDSPy(lm).send(Request(ASK.messages, 1, top_logprobs=5, sample=2))
    )
    assert reply == Reply("4", (TokenChoice("4", (("4", -0.1),)),))
    assert lm.asked[0]["rollout_id"] == 2
    odd = engine.run(ThroughDSPy(Foreign({"text": "4", "logprobs": 7})).send(ASK))
    assert (odd, odd.odd) == (Reply("4"), ("log-probabilities '7'",))


@pytest.mark.parametrize(
    ("output", "again"),
    [
        (None, False),
        (7, False),
        ({"text": True}, False),  # it would come again
        (RuntimeError("first line\nsecond"), False),
    ],
)
def test_a_dspy_object_that_raises_or_gives_something_else_fails_this_call(
    output: Any, again: bool
) -> None:
    with pytest.raises(
        Unanswered, match="first line$" if isinstance(output, Exception) else "."
    ) as caught:
        engine.run(ThroughDSPy(Foreign(output)).send(ASK))
    assert caught.value.again == again
