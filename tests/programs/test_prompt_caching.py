"""Beginnings of prompts that providers keep: how they are marked, read back, paid for and shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from misbehaving_server import MakeServer, Say

import judgesmith as js
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.price import price
from judgesmith.programs.models.providers.litellm import ThroughLiteLLM
from judgesmith.programs.models.transport import Request, read_reply
from judgesmith.rooms.adapters.batches import body_of

CLAUDE = "anthropic/claude-sonnet-4-5"
PROMPT = [
    {"role": "system", "content": "Judge the output."},
    {"role": "user", "content": "An example."},
    {"role": "assistant", "content": "Score: 3"},
    {"role": "user", "content": "The row."},
]
#: As Anthropic's interface answers: input_tokens are those behind the last mark.
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Explanation: Fine.\nScore: 4"}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 40,
        "output_tokens": 5,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 1500,
    },
}
MARK = {"type": "ephemeral"}


@pytest.fixture
def claude(serve: MakeServer) -> Any:
    """A server of Anthropic's form."""
    return serve(Say(body=json.dumps(MESSAGE).encode()))


def address(server: Any) -> str:
    return str(server.base).removesuffix("/v1")


@pytest.mark.parametrize(
    ("model", "beginning", "marked"),
    [
        (CLAUDE, 3, ["Score: 3"]),
        (CLAUDE, 1, ["Judge the output."]),
        (CLAUDE, 0, []),
        ("anthropic/claude-of-no-table", 3, []),
    ],
)
def test_the_end_of_the_beginning_is_marked_for_claude(
    model: str, beginning: int, marked: list[str], claude: Any
) -> None:
    through = ThroughLiteLLM(model, timeout=5, key="k", api_base=address(claude))
    reply = engine.run(through.send(Request(PROMPT, 10, beginning=beginning)))
    (body,) = claude.bodies
    parts = [*body["system"], *(p for m in body["messages"] for p in m["content"])]
    assert [p["text"] for p in parts if p.get("cache_control") == MARK] == marked
    assert [p["text"] for p in parts] == [m["content"] for m in PROMPT]
    counted = (reply.prompt_tokens, reply.prefix_tokens, reply.written_tokens)
    assert counted == (1840, 1500, 300)


def test_no_other_model_gets_a_mark(serve: MakeServer) -> None:
    server = serve()
    through = ThroughLiteLLM("openai/gpt-4o", timeout=5, key="k", api_base=server.base)
    request = Request(PROMPT, 10, beginning=3)
    engine.run(through.send(request))
    assert server.bodies[0]["messages"] == PROMPT
    assert body_of(through, "openai/gpt-4o", request)["messages"] == PROMPT


def test_a_batch_has_the_mark_of_a_live_call(claude: Any) -> None:
    through = ThroughLiteLLM(CLAUDE, timeout=5, key="k", api_base=address(claude))
    request = Request(PROMPT, 10, beginning=3)
    engine.run(through.send(request))
    batched = body_of(through, CLAUDE, request)
    assert batched["messages"] == claude.bodies[0]["messages"]
    assert batched["messages"][1]["content"][-1]["cache_control"] == MARK


@pytest.mark.parametrize(
    "counts",
    [
        {"prompt_tokens_details": {"cached_tokens": 640}},
        {"prompt_cache_hit_tokens": 640, "prompt_cache_miss_tokens": 60},  # DeepSeek
        {"cached_tokens": 640},  # Moonshot
        {"prompt_tokens_details": {"cached_tokens": None}, "cached_tokens": 640},
    ],
    ids=str,
)
def test_tokens_from_the_cache_are_found_where_servers_put_them(
    counts: dict[str, Any],
) -> None:
    usage = {"prompt_tokens": 700, "completion_tokens": 3, **counts}
    answer = {"choices": [{"message": {"content": "4"}}], "usage": usage}
    assert read_reply(answer).prefix_tokens == 640


def test_what_rows_share_is_the_beginning(scripted: Any) -> None:
    lm, transport = scripted(lambda request: "Score: 4")
    judge = js.Judge(js.DirectScorer("fluency"), lm=lm)
    list(judge.score_many([{"output": "One."}, {"output": "Two."}], progress=False))
    first, second = transport.requests
    assert first.beginning == second.beginning == len(first.messages) - 1 > 0
    shared = first.messages[: first.beginning]
    assert second.messages[: second.beginning] == shared
    assert "One." not in json.dumps(shared)


def test_a_second_request_for_one_row_has_the_same_beginning(scripted: Any) -> None:
    answers = iter(["Who knows?", "Score: 4"])
    lm, transport = scripted(lambda request: next(answers))
    js.Judge(js.DirectScorer("fluency"), lm=lm).score(output="One.")
    first, second = transport.requests
    assert first.beginning == second.beginning
    assert len(second.messages) == len(first.messages) + 2


def test_tokens_from_the_cache_cost_less_and_those_put_there_more() -> None:
    # 40 plain of $3, 1,500 read of $0.30, 300 written of $3.75, 5 answered of $15 a million
    dollars = (40 * 3 + 1500 * 0.3 + 300 * 3.75 + 5 * 15) / 1e6
    reply = Reply("4", None, 1840, 5, 1500, written_tokens=300)
    assert price(CLAUDE, reply) == pytest.approx(dollars)
    assert price(CLAUDE, Reply("4", None, 1840, 5)) == pytest.approx(
        (1840 * 3 + 5 * 15) / 1e6
    )
    # A server that counts more from its cache than there are is not paid less than nothing.
    odd = price(CLAUDE, Reply("4", None, 10, 0, 1000))
    assert odd is not None
    assert odd > 0


def test_the_bill_is_the_same_from_the_disk(
    claude: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    request = Request(PROMPT, 10, beginning=3)

    def asked() -> LanguageModel:
        where = Connection(api_base=address(claude), api_key="k")
        lm = language_model(CLAUDE, connection=where)
        engine.run(lm.complete(request))
        return lm

    first, again = asked(), asked()
    assert len(claude.bodies) == 1
    assert first.meter.usage.prefix_tokens == 1500
    assert first.meter.paid == pytest.approx(first.meter.cost)
    assert again.meter.cost == pytest.approx(first.meter.cost)
    assert again.meter.paid == 0


class Halved:
    """A transport whose answers come at half the price, as those of batches do."""

    async def send(self, request: Request) -> Reply:
        return Reply("Score: 4", None, 1840, 5, 1500, discount=0.5)


def test_half_the_price_is_half_the_price_from_the_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    request = Request(PROMPT, 10, beginning=3)

    def asked() -> LanguageModel:
        lm = LanguageModel(CLAUDE, Halved(), identity="")
        engine.run(lm.complete(request))
        return lm

    # 340 plain of $3, 1,500 read of $0.30, 5 answered of $15 a million, and half of that
    first, again = asked(), asked()
    assert first.meter.cost == pytest.approx((340 * 3 + 1500 * 0.3 + 5 * 15) / 1e6 / 2)
    assert again.meter.cost == pytest.approx(first.meter.cost)
    assert again.meter.paid == 0


def test_score_tells_how_many_tokens_came_from_the_cache(
    cli: Any, claude: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    rows, judge = tmp_path / "rows.jsonl", tmp_path / "judge.json"
    rows.write_text('{"output": "One."}\n{"output": "Two."}\n', encoding="utf-8")
    js.Judge(js.DirectScorer("fluency"), lm=CLAUDE).save(judge)
    where = ("--judge", judge, "--api-base", address(claude))
    done = cli("score", rows, *where, "-o", tmp_path / "scored.jsonl")
    assert "2 scored" in done.out
    # Two calls score rows, two find out what the model can do.
    assert "4 calls, 7,360 (6,000 cached) + 20 tokens" in done.out
