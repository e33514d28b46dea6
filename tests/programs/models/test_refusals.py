"""Refusals of servers: of one row, for a while, or for good; and nonsense beside an answer."""

import json
import logging
from itertools import product
from typing import Any

import pytest
from misbehaving_server import MakeServer, Say, Server, saying

from judgesmith.errors import CallError, ModelError, OutageError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models import engine, sending
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.providers.openai import OpenAIStyle
from judgesmith.programs.models.refusals import Denied, fault_of, is_spent, retry_after
from judgesmith.programs.models.transport import Request, Unanswered, read_reply


def model(server: Server) -> LanguageModel:
    return language_model(
        "openai/m",
        connection=Connection(api_base=server.base, api_key="sk-x", cache=False),
    )


def ask(lm: LanguageModel, text: str = "row") -> Reply:
    return engine.run(lm.complete(Request([{"role": "user", "content": text}], 12)))


def send(server: Server) -> Reply:
    style = OpenAIStyle(server.base, "m", key=None, timeout=5, label="openai/m")

    async def once() -> Reply:
        try:
            return await style.send(Request([{"role": "user", "content": "x"}], 12))
        finally:
            await style.close()

    return engine.run(once())


def error(message: str, code: Any = None, kind: str | None = None) -> bytes:
    return json.dumps(
        {"error": {"message": message, "code": code, "type": kind}}
    ).encode()


# Of one row


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize("inside", [False, True])
def test_after_an_answer_403_and_404_are_a_row_s_own(
    serve: MakeServer, status: int, inside: bool
) -> None:
    refused = Say(
        200 if inside else status, error("Input was flagged by moderation", status)
    )
    server = serve(lambda _, body: refused if "flagged" in str(body) else Say())
    lm = model(server)
    assert ask(lm).text == "Score: 4"
    with pytest.raises(CallError, match=r"openai/m: .*Input was flagged by moderation"):
        ask(lm, "flagged")
    assert ask(lm).text == "Score: 4"
    assert len(server.bodies) == 3


@pytest.mark.parametrize("status", [403, 404])
def test_before_any_answer_a_plain_question_tells_a_row_s_refusal_from_a_key_s(
    serve: MakeServer, status: int
) -> None:
    """A run that is repeated begins with the very row that was refused: what came before it is on the disk."""
    refused = Say(status, error("no"))
    server = serve(lambda _, body: refused if "flagged" in str(body) else Say())
    lm = model(server)
    for _ in range(2):
        with pytest.raises(CallError, match=f"HTTP {status}: no"):
            ask(lm, "flagged")
    assert len(server.bodies) == 3  # one plain question
    with pytest.raises(Denied, match=r"the key was refused|not found at the server"):
        ask(model(serve(refused)), "flagged")


def test_a_key_that_is_refused_ends_the_run_at_any_time(serve: MakeServer) -> None:
    for say in (
        Say(401, error("no")),
        Say(200, error("No auth credentials found", 401)),
    ):
        lm = model(serve(Say(), say))
        ask(lm)
        with pytest.raises(ModelError, match="the key was refused") as caught:
            ask(lm)
        assert not isinstance(caught.value, Denied)


# For good

SPENT = [
    (
        429,
        error(
            "You exceeded your current quota, please check your plan.",
            "insufficient_quota",
            "insufficient_quota",
        ),
    ),
    (429, error("x", None, "insufficient_quota")),
    (402, error("Insufficient Balance")),
    (402, error("This request requires more credits, or fewer max_tokens.", 402)),
    (
        403,
        error(
            "Your team has used all available credits or reached its monthly spending limit."
        ),
    ),
    (
        400,
        error(
            "Your credit balance is too low to access the API.",
            None,
            "invalid_request_error",
        ),
    ),
    (
        429,
        error(
            "Your account is suspended, please check your plan.",
            None,
            "exceeded_current_quota_error",
        ),
    ),
    (429, error("余额不足或无可用资源包,请充值。", "1113")),
    (400, error("Access denied.", "Arrearage")),
    (429, error("You have exceeded your monthly included credits.")),
    (200, error("Insufficient credits", 402)),
]


@pytest.mark.parametrize(("status", "body"), SPENT)
def test_a_quota_that_is_used_up_ends_the_run_at_once(
    serve: MakeServer, status: int, body: bytes
) -> None:
    server = serve(Say(), Say(status, body))
    lm = model(server)
    ask(lm)
    with pytest.raises(
        ModelError,
        match=r"quota or credit of this key is used up .*raise it with the provider",
    ):
        ask(lm)
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("status", "kind", "message", "after"),
    [
        (429, "rate_limit_exceeded", "Rate limit reached for requests", None),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota. Please retry in 27.4s.",
            None,
        ),
        (429, "", "You exceeded your current quota", 3.0),
        (429, "", "Quota exceeded for requests per minute", None),
        (400, "invalid_request_error", "bad text: 'insufficient credits'", None),
        (422, "", "insufficient_quota", None),
        (500, "insufficient_quota", "insufficient credits", None),
    ],
)
def test_a_limit_for_a_while_is_no_used_up_quota(
    status: int, kind: str, message: str, after: float | None
) -> None:
    assert not is_spent(status, kind, message, after)


# For a while


def test_a_long_retry_after_ends_the_run_and_says_when_to_come_again(
    serve: MakeServer,
) -> None:
    server = serve(Say(429, error("Daily limit reached"), {"Retry-After": "10800"}))
    with pytest.raises(
        OutageError, match=r"asked again in 3.0 hours \(HTTP 429: Daily limit reached\)"
    ):
        ask(model(server))
    assert len(server.bodies) == 1


def test_a_wait_is_said_once(
    serve: MakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "LONG_WAIT", 0.05)
    lm = model(
        serve(*[Say(429, error("slow down"), {"Retry-After": "0.1"})] * 2, Say())
    )
    with caplog.at_level(logging.WARNING, "judgesmith.servers"):
        ask(lm)
    said = [record.message for record in caplog.records]
    assert said == ["openai/m: waiting for 0 s, as it asks (HTTP 429: slow down)"]


def test_milliseconds_are_read() -> None:
    assert retry_after({"retry-after-ms": "300"}) == 0.3


# Errors inside a 200


@pytest.mark.parametrize(
    ("body", "why", "again"),
    [
        (
            error("Rate limit exceeded: free-models-per-min", 429),
            "Rate limit exceeded: free-models-per-min",
            True,
        ),
        (error("slow down", "rate_limit_exceeded"), "slow down", True),
        (error("Provider returned error", 400), "Provider returned error", False),
        (b'{"error": "model is loading"}', "model is loading", True),
        (
            b'{"id": "x", "choices": null, "error": {"message": "flagged", "code": 400}}',
            "flagged",
            False,
        ),
        (
            b'{"choices": [], "prompt_filter_results": [{}]}',
            "content filter stopped the prompt",
            False,
        ),
        (
            b'{"promptFeedback": {"blockReason": "SAFETY"}}',
            "content filter stopped the prompt",
            False,
        ),
        (
            b'{"code": 500, "msg": "404 NOT_FOUND", "success": false}',
            "404 NOT_FOUND",
            True,
        ),
        (
            b'{"choices": [{"error": {"message": "upstream", "code": 502}}]}',
            "upstream",
            True,
        ),
        (b'{"detail": "Not authenticated"}', "Not authenticated", True),
    ],
)
def test_an_error_inside_a_200_is_named_and_treated_as_its_status(
    serve: MakeServer, body: bytes, why: str, again: bool
) -> None:
    with pytest.raises(Unanswered, match=why) as caught:
        send(serve(Say(body=body)))
    assert caught.value.again is again


def test_an_error_beside_a_completion_that_is_none_is_no_error(
    serve: MakeServer,
) -> None:
    body = json.dumps(
        {"error": None, "choices": [{"message": {"content": "4"}}]}
    ).encode()
    assert send(serve(Say(body=body))).text == "4"
    assert send(serve(Say(body=b"\xef\xbb\xbf" + body))).text == "4"
    assert send(serve(Say(201, body))).text == "4"
    assert fault_of([]) is None
    assert fault_of({"choices": [{"message": {}}]}) is None


# What has no text


def message(finish: str = "stop", **fields: Any) -> Reply:
    return read_reply(
        {
            "choices": [
                {"message": {"role": "assistant", **fields}, "finish_reason": finish}
            ]
        }
    )


@pytest.mark.parametrize(
    ("reply", "absent"),
    [
        (
            message(content=None, refusal="I cannot help."),
            "the model refused: I cannot help.",
        ),
        (
            message(content=[{"type": "refusal", "refusal": "No."}]),
            "the model refused: No.",
        ),
        (
            message("content_filter", content=None),
            "the provider's content filter stopped the answer",
        ),
        (
            message("SAFETY", content=""),
            "the provider's content filter stopped the answer",
        ),
        (
            message("tool_calls", content=None, tool_calls=[{"id": "1"}]),
            "the model called a tool instead of answering",
        ),
        (
            message(reasoning_content="Score: 4"),
            "only thoughts came, and no answer after them",
        ),
        (
            message("length", content="", reasoning_content="Score: 4"),
            "cut off while thinking",
        ),
        (
            message(
                "length",
                content=[{"type": "thinking", "thinking": "Score: 4"}],
                reasoning="x",
            ),
            "cut off while thinking",
        ),
        (message(content="Score: 4", reasoning_content="Score: 2"), ""),
        (message(content="Score: 4", refusal="No."), ""),
    ],
)
def test_an_answer_without_text_says_why(reply: Reply, absent: str) -> None:
    assert reply.absent == absent
    assert reply.text == ("" if absent else "Score: 4")


@pytest.mark.parametrize(
    "content",
    [
        [{"text": "Score: 4"}],
        [{"type": "output_text", "text": "Score: 4"}],
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "2"}]},
            {"type": "text", "text": "Score: 4"},
        ],
        ["Score", ": 4"],
        {"type": "text", "text": "Score: 4"},
    ],
)
def test_parts_of_any_form_are_the_text(content: Any) -> None:
    assert message(content=content).text == "Score: 4"


# What stands beside an answer

ODD = [-1, "10", 10.5, True, [1], {"a": 1}, float("nan"), float("inf"), 10**12]
LISTED = [float("nan"), float("inf"), "-0.1", 12.5, True, [], {}]


@pytest.mark.parametrize(
    ("field", "value"), [*product(("prompt_tokens", "completion_tokens"), ODD)]
)
def test_odd_counts_of_tokens_are_none(field: str, value: Any) -> None:
    reply = read_reply(
        {"choices": [{"message": {"content": "4"}}], "usage": {field: value}}
    )
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("4", 0, 0)
    assert reply.odd


@pytest.mark.parametrize(
    "usage",
    [[], [1], 3, "x", {"prompt_tokens_details": 3}, {"completion_tokens_details": [1]}],
)
def test_odd_usage_costs_nothing_but_itself(usage: Any) -> None:
    assert read_reply(
        {"choices": [{"message": {"content": "4"}}], "usage": usage}
    ) == Reply("4")


@pytest.mark.parametrize("value", LISTED)
def test_an_odd_log_probability_leaves_the_stated_number(value: Any) -> None:
    top = [{"token": "4", "logprob": value}, {"token": "5", "logprob": -0.5}]
    choice = {
        "message": {"content": "4"},
        "logprobs": {"content": [{"token": "4", "top_logprobs": top}]},
    }
    reply = read_reply({"choices": [choice]})
    assert reply.tokens is not None
    assert reply.tokens[0].alternatives == ()
    assert reply.text == "4"
    assert reply.odd


@pytest.mark.parametrize(
    "logprobs",
    [
        [{"token": "4"}],
        7,
        "x",
        {"content": 7},
        {"content": [7]},
        {"content": [{"token": None, "top_logprobs": []}]},
        {"tokens": ["4"], "token_logprobs": [-0.1]},
    ],
)
def test_odd_log_probabilities_are_none(logprobs: Any) -> None:
    assert read_reply(
        {"choices": [{"message": {"content": "4"}, "logprobs": logprobs}]}
    ) == Reply("4")


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity"])
def test_numbers_that_json_does_not_know_are_read_and_said_once(
    serve: MakeServer, number: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    say = saying("4", ("4", -0.1), ("5", -2.0))
    lm = model(serve(Say(body=say.body.replace(b"-2.0", number).replace(b"11", b"-1"))))
    with caplog.at_level(logging.WARNING, "judgesmith.servers"):
        assert [ask(lm).text for _ in range(3)] == ["4"] * 3
    assert len(caplog.records) == 1
    assert "left out" in caplog.records[0].message
