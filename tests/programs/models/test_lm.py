"""Language models over a real server that misbehaves: retries, limits, the cache, the meter, the probe, names."""

import asyncio
import copy
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import dspy
import pytest
from misbehaving_server import MakeServer, Say, Server, saying
from parrot import Foreign
from patience import HANG

from judgesmith.errors import BudgetError, CallError, ModelError, OptionError
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.comparing.synthesis import ReferenceWriter, Target
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models import price as price_module
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.lm import (
    Connection,
    LanguageModel,
    Sampling,
    language_model,
)
from judgesmith.programs.models.price import Meter, price
from judgesmith.programs.models.sending import Unreachable
from judgesmith.programs.models.transport import Request
from judgesmith.signatures.values import Item, Usage

#: A Retry-After that keeps the tests fast: without one, waits are random between 0 and 0.5 s and grow.
SOON = {"Retry-After": "0.01"}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "HOSTED_VLLM_API_KEY",
        "LM_STUDIO_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)


def model(
    server: Server | str, name: str = "openai/m", **connection: Any
) -> LanguageModel:
    base = server if isinstance(server, str) else server.base
    options: dict[str, Any] = {
        "api_key": "sk-secret",
        "timeout": 5.0,
        "cache": False,
    } | connection
    return language_model(name, connection=Connection(api_base=base, **options))


def ask(number: int = 0, **options: Any) -> Request:
    return Request([{"role": "user", "content": f"row {number}"}], 12, **options)


def complete(lm: LanguageModel, *requests: Request, **options: Any) -> list[Reply]:
    """All of them at the same time."""

    async def together() -> list[Reply]:
        return list(
            await asyncio.gather(
                *(lm.complete(request, **options) for request in requests)
            )
        )

    return engine.run(together())


# Retries


def test_a_request_is_tried_again_and_the_tries_are_counted(serve: MakeServer) -> None:
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=5), usegmt=True)
    server = serve(
        Say(429, headers=SOON),
        Say(503, headers={"Retry-After": past}),
        Say(500, headers=SOON),
        Say(),
    )
    lm = model(server)
    reply, usage = engine.run(lm.answered(ask()))
    assert reply.text == "Score: 4"
    assert len(server.bodies) == 4
    assert (usage.calls, usage.retries, usage.cached) == (4, 3, 0)
    assert (usage.prompt_tokens, usage.completion_tokens) == (
        11,
        3,
    )  # of the answer, not of the tries
    assert lm.meter.usage == usage
    assert lm.meter.logical == 1


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_the_tries_are_bounded(serve: MakeServer, attempts: int) -> None:
    server = serve(Say(429, b'{"error": {"message": "slow down"}}', SOON))
    lm = model(server, attempts=attempts)
    with pytest.raises(CallError, match="openai/m: HTTP 429: slow down") as caught:
        complete(lm, ask())
    assert len(server.bodies) == attempts
    assert (f"after {attempts} tries" in str(caught.value)) == (attempts > 1)
    assert (lm.meter.usage.calls, lm.meter.usage.retries) == (attempts, attempts - 1)


def test_the_wait_is_what_the_server_asked_for(serve: MakeServer) -> None:
    server = serve(
        Say(429, headers={"Retry-After": "0.25"}),
        Say(429, headers={"Retry-After": "0"}),
        Say(),
    )
    complete(model(server), ask())
    first, second, third = server.times
    assert 0.24 <= second - first < 1.0
    assert third - second < 0.2


def test_a_wait_for_a_retry_holds_no_place(serve: MakeServer) -> None:
    """With one call at a time, a call that waits for its retry lets the others pass."""

    def behave(number: int, body: dict[str, Any]) -> Say:
        again = sum(b == body for b in server.bodies) > 1
        return (
            Say()
            if again or "row 0" not in str(body)
            else Say(429, headers={"Retry-After": "0.3"})
        )

    server = serve(behave)
    complete(model(server, concurrency=1), ask(0), ask(1), ask(2))
    asked = [body["messages"][0]["content"] for body in server.bodies]
    assert asked == ["row 0", "row 1", "row 2", "row 0"]


def test_half_a_character_is_sent_and_kept_as_the_sign_for_one(
    serve: MakeServer,
) -> None:
    broken = Request([{"role": "user", "content": "half \ud83d a smile"}], 1)
    for cache in (False, True):
        complete(lm := model(server := serve(), cache=cache), broken, broken)
        assert len(server.bodies) == 2 - cache
        assert server.bodies[0]["messages"][0]["content"] == "half \ufffd a smile"
        complete(lm, Request([{"role": "user", "content": "half \ufffd a smile"}], 1))
        assert len(server.bodies) == 3 - 2 * cache


# Limits


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_no_more_calls_at_a_time_than_allowed(
    serve: MakeServer, concurrency: int
) -> None:
    server = serve(Say(wait=0.01))
    complete(model(server, concurrency=concurrency), *(ask(n) for n in range(40)))
    assert len(server.bodies) == 40
    assert server.most_in_flight == concurrency


def test_requests_a_minute_are_paced_from_the_first_and_count_tries(
    serve: MakeServer,
) -> None:
    again = Say(429, headers={"Retry-After": "0"})
    server = serve(again, again, Say())
    complete(
        model(server, rpm=1200), *(ask(n) for n in range(8))
    )  # 1200 a minute: one each 50 ms
    assert len(server.times) == 10
    assert server.times[-1] - server.times[0] >= 9 * 0.05 - 0.03
    assert max(b - a for a, b in pairwise(server.times)) < 0.5


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *(
            (Connection, {name: 0})
            for name in ("timeout", "attempts", "rpm", "concurrency")
        ),
        *(
            (Sampling, options)
            for options in (
                {"temperature": -0.1},
                {"temperature": 2.5},
                {"max_tokens": 0},
            )
        ),
    ],
)
def test_numbers_that_make_no_sense(kind: type, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=" ".join(options).replace("_", "[_ ]")):
        kind(**options)


def test_a_key_is_not_shown() -> None:
    assert "sk-secret" not in repr(Connection(api_key="sk-secret"))


# The cache

LOGPROBS = saying("4", ("4", -0.12345678901234567), ("5", -2.3))


def test_a_second_run_asks_nothing_reads_the_very_same_and_counts_logical_calls(
    serve: MakeServer,
) -> None:
    server = serve(LOGPROBS)
    requests = [ask(n) for n in range(5)]
    fresh, again = model(server, cache=True), model(server, cache=True)
    first = complete(fresh, *requests)
    assert complete(again, *requests) == first  # to the last digit of a log-probability
    assert len(server.bodies) == 5
    assert again.meter.usage == Usage(cached=5)
    assert fresh.meter.usage.tokens == sum(fresh.meter.logical_tokens) > 0
    assert (again.meter.logical, again.meter.logical_tokens) == (
        5,
        fresh.meter.logical_tokens,
    )


def test_the_failure_of_a_shared_request_reaches_all_who_wait(
    serve: MakeServer,
) -> None:
    server = serve(Say(400, b"no", wait=0.02))
    lm = model(server, cache=True)

    async def together() -> list[Any]:
        return await asyncio.gather(
            *(lm.complete(ask()) for _ in range(4)), return_exceptions=True
        )

    assert [type(outcome) for outcome in engine.run(together())] == [CallError] * 4
    assert len(server.bodies) == 1
    with pytest.raises(CallError):  # and is not stored
        complete(lm, ask())
    assert len(server.bodies) == 2


@pytest.mark.parametrize(("leaves", "sent"), [(0, 2), (1, 1)])
def test_who_waits_can_be_cancelled_and_asks_where_the_request_is(
    serve: MakeServer, leaves: int, sent: int
) -> None:
    server = serve(Say(wait=0.3))
    lm = model(server, cache=True)

    async def one_leaves() -> list[Any]:
        calls = [asyncio.ensure_future(lm.complete(ask())) for _ in range(4)]
        while not server.bodies:
            await asyncio.sleep(0.01)
        calls[leaves].cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = engine.run(one_leaves())
    assert isinstance(outcomes.pop(leaves), asyncio.CancelledError)
    assert [reply.text for reply in outcomes] == ["Score: 4"] * 3
    assert (
        len(server.bodies) == sent
    )  # of the cancelled one, and one for the three others


@pytest.mark.parametrize(
    "other",
    [
        {"max_tokens": 13},
        {"temperature": 0.7},
        {"top_logprobs": 20},
        {"grammar": 'root ::= "4"'},
        {"schema": {"type": "object"}},
        {"sample": 1},
        {"messages": [{"role": "system", "content": "row 0"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_key_tells_requests_apart(serve: MakeServer, other: dict[str, Any]) -> None:
    server = serve()
    lm = model(server, cache=True)
    complete(lm, ask())
    complete(lm, replace(ask(), **other))
    assert len(server.bodies) == 2
    complete(lm, ask(), replace(ask(), **other))
    assert len(server.bodies) == 2


def test_the_key_tells_servers_and_models_apart(serve: MakeServer) -> None:
    one, two = serve(), serve()
    complete(model(one, cache=True), ask())
    complete(model(two, cache=True), ask())
    complete(model(one, name="openai/other", cache=True), ask())
    complete(model(one.base + "/", cache=True), ask())  # the same address
    assert (len(one.bodies), len(two.bodies)) == (2, 1)


def test_an_entry_that_something_else_wrote_is_asked_again(serve: MakeServer) -> None:
    server = serve()
    lm = model(server, cache=True)
    assert lm._cache is not None
    lm._cache.put(lm._key(ask()), {"text": "4"})
    for _ in range(2):
        assert complete(model(server, cache=True), ask())[0].text == "Score: 4"
    assert len(server.bodies) == 1


# Answers that cannot be read

GARBAGE = saying("As an AI I like turtles.")


def scored(reply: Reply) -> bool:
    return "Score" in reply.text


def test_an_answer_that_cannot_be_read_is_asked_for_again_and_again(
    serve: MakeServer,
) -> None:
    server = serve(GARBAGE, GARBAGE, Say())
    for number in (1, 2, 3, 3):  # the third can be read, and is there the next time
        lm = model(server, cache=True)
        (reply,) = complete(lm, ask(), readable=scored)
        assert len(server.bodies) == number
        assert scored(reply) == (number == 3)
        assert lm.meter.logical == 1
    assert lm.meter.usage == Usage(cached=1)


def test_who_waits_shares_an_answer_that_cannot_be_read(serve: MakeServer) -> None:
    """Nobody asks sixteen times at once for what one answer has shown; afterwards everybody asks anew."""
    server = serve(GARBAGE, Say())
    lm = model(server, cache=True)
    read: list[Reply] = []

    def readable(reply: Reply) -> bool:
        read.append(reply)
        return scored(reply)

    assert len(set(complete(lm, *[ask()] * 16, readable=readable))) == 1
    assert len(server.bodies) == 1
    assert len(read) == 16  # everybody is asked of what it gets
    assert scored(complete(lm, *[ask()] * 16, readable=readable)[7])
    assert len(server.bodies) == 2
    assert (lm.meter.usage.calls, lm.meter.usage.cached, lm.meter.logical) == (
        2,
        30,
        32,
    )


@pytest.mark.parametrize("cache", [True, False])
def test_a_judge_asks_anew_what_it_could_not_read(
    serve: MakeServer, cache: bool
) -> None:
    healthy = False

    def behave(_: int, body: dict[str, Any]) -> Say:
        return (
            Say()
            if healthy or "2 + 2 =" in body["messages"][-1]["content"]
            else GARBAGE
        )

    server = serve(behave)

    def verdict() -> Any:
        lm = model(server, cache=cache)
        judge = Judge(ActiveCritic("vanilla", explain="none", reading="said"), lm=lm)
        return judge.score("source", "output"), lm.meter.usage.calls

    failed, _ = verdict()
    assert "no score in the answer" in (failed.failure or "")
    assert failed.usage.calls == 2
    healthy = True
    mended, _ = verdict()
    assert (mended.failure, mended.score, mended.usage.calls) == (None, 4.0, 1)
    again, calls = verdict()
    assert again.score == 4.0
    assert (calls == 0) == cache


def test_a_reference_that_was_refused_is_written_anew_by_a_server_that_is_well_again(
    serve: MakeServer,
) -> None:
    """Readable, and of no use: one text for the worst and the best level alike."""
    healthy = False
    texts = {
        1: "Nothing in it is true.",
        2: "The hall is closed on Monday.",
        3: "The hall closes for repairs.",
    }

    def behave(number: int, body: dict[str, Any]) -> Say:
        if "2 + 2 =" in body["messages"][-1]["content"]:
            return Say()
        return saying(texts[1 + number % 3] if healthy else "The hall is closed today.")

    server = serve(behave)
    target = Target(levels=3)

    def write() -> Any:
        writer = ReferenceWriter()
        return engine.run(
            writer.awrite(
                Item("o", "The hall is closed."), target, model(server, cache=True)
            )
        )

    with pytest.raises(CallError, match="the same as one that exists"):
        write()
    healthy = True
    references, _ = write()
    assert {1, 3} <= set(references.outputs)


def test_garbage_tells_no_later_process_what_a_server_can_do(serve: MakeServer) -> None:
    able, broken = capable(), True
    server = serve(lambda number, body: GARBAGE if broken else able(number, body))
    assert engine.run(model(server, cache=True).capabilities()) == Capabilities(
        False, False, True, False
    )
    broken = False
    assert engine.run(model(server, cache=True).capabilities()) == Capabilities(
        True, True, True, False
    )


# The meter


@pytest.mark.parametrize("cache", [False, True])
def test_the_budget_ends_before_the_call(serve: MakeServer, cache: bool) -> None:
    server = serve()
    lm = model(server, cache=cache)
    lm.meter.max_calls = 2
    complete(lm, ask(0))
    complete(lm, ask(0))  # counts, whether or not the disk answers it
    with pytest.raises(BudgetError, match="2 calls"):
        complete(lm, ask(1))
    assert len(server.bodies) == (1 if cache else 2)
    assert lm.meter.logical == 2


def test_the_budget_in_dollars() -> None:
    with pytest.raises(BudgetError, match=r"\$0\.5"):
        Meter(cost=0.5, max_cost=0.5).admit()


@pytest.mark.parametrize(
    "name",
    [
        "local/qwen2.5-0.5b",
        "gguf:model.gguf",
        "ollama_chat/llama3.1:8b",
        "openai/no-such-model",
        "gpt-4o-mini",
    ],
)
def test_prices(name: str) -> None:
    known = {
        "openai/no-such-model": None,
        "gpt-4o-mini": price("openai/gpt-4o-mini", Reply("4", None, 1000, 100)),
    }
    assert price(name, Reply("4", None, 1000, 100)) == known.get(name, 0.0)


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No price was asked for, and LiteLLM is not imported; afterwards all is as it was."""
    price_module._rates.cache_clear()
    price_module._listed.cache_clear()
    monkeypatch.setitem(sys.modules, "litellm", types.ModuleType("litellm"))
    del sys.modules["litellm"]
    return monkeypatch


@pytest.mark.parametrize(
    "name",
    ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5", "openai/no-such-model"],
)
def test_a_price_does_without_litellm_and_is_litellms(
    name: str, unloaded: pytest.MonkeyPatch
) -> None:
    told = price(name, Reply("4", None, 1000, 100))
    assert "litellm" not in sys.modules
    unloaded.undo()
    import litellm

    entry = litellm.model_cost.get(name.partition("/")[2])
    assert told == (
        entry
        and 1000 * entry["input_cost_per_token"] + 100 * entry["output_cost_per_token"]
    )


def test_prices_registered_with_litellm_count(unloaded: pytest.MonkeyPatch) -> None:
    loaded = types.ModuleType("litellm")
    loaded.model_cost = {
        "ours": {"input_cost_per_token": 2.0, "output_cost_per_token": 1.0}
    }  # type: ignore[attr-defined]
    unloaded.setitem(sys.modules, "litellm", loaded)
    assert price("openai/ours", Reply("", None, 3, 4)) == 10.0


# The probe


def capable(
    *, logprobs: bool = True, schema: bool = True, system: bool = True
) -> Callable[[int, dict[str, Any]], Say]:
    """A server that answers 400 to what it cannot do."""

    def behave(_: int, body: dict[str, Any]) -> Say:
        if not system and body["messages"][0]["role"] == "system":
            return Say(400, b'{"error": {"message": "System role not supported"}}')
        if "logprobs" in body:
            return LOGPROBS if logprobs else Say(400, b"logprobs: unknown field")
        if "response_format" in body:
            return (
                saying('{"digit": 4}')
                if schema
                else Say(400, b"response_format: unknown")
            )
        return Say()

    return behave


@pytest.mark.parametrize("logprobs", [True, False])
@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("system", [True, False])
@pytest.mark.parametrize("cache", [True, False])
def test_the_probe_finds_abilities(
    serve: MakeServer, logprobs: bool, schema: bool, system: bool, cache: bool
) -> None:
    server = serve(capable(logprobs=logprobs, schema=schema, system=system))
    lm = model(server, cache=cache)
    assert engine.run(lm.capabilities()) == Capabilities(
        logprobs, schema, system, False
    )
    asked = len(server.bodies)
    assert asked <= 5
    assert engine.run(lm.capabilities()) == Capabilities(
        logprobs, schema, system, False
    )
    assert len(server.bodies) == asked  # once per model


@pytest.mark.parametrize(
    "say", [Say(), saying("4", ("4", 0.0))], ids=["prose", "the chosen token alone"]
)
def test_a_server_that_ignores_what_it_cannot_do_is_seen_through(
    serve: MakeServer, say: Say
) -> None:
    assert engine.run(model(serve(say)).capabilities()) == Capabilities(
        False, False, True, False
    )


def test_many_ask_for_the_probe_at_once(serve: MakeServer) -> None:
    server = serve(capable())
    lm = model(server)

    async def together() -> set[Capabilities]:
        return set(await asyncio.gather(*(lm.capabilities() for _ in range(20))))

    assert engine.run(together()) == {Capabilities(True, True, True, False)}
    assert len(server.bodies) == 2


def test_a_server_that_is_down_is_a_model_error_after_the_tries_of_one_call() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening
        lm = model(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", attempts=2)
        with pytest.raises(
            ModelError,
            match=r"connection failed.*after 2 tries.*check that the server runs",
        ):
            engine.run(lm.capabilities())
        assert lm.meter.usage.calls == 2
        with pytest.raises(Unreachable):
            complete(lm, ask())


def test_a_server_that_refuses_everything_is_a_model_error(serve: MakeServer) -> None:
    with pytest.raises(ModelError, match="HTTP 400: no"):
        engine.run(model(server := serve(Say(400, b"no"))).capabilities())
    assert len(server.bodies) == 4


def test_a_probe_that_failed_is_made_again_when_asked_again(serve: MakeServer) -> None:
    able = capable()
    server = serve(lambda number, body: Say(401) if number == 1 else able(number, body))
    lm = model(server)
    with pytest.raises(ModelError, match="key"):
        engine.run(lm.capabilities())
    assert engine.run(lm.capabilities()).logprobs


# Names


@pytest.mark.parametrize(
    ("lm", "why"),
    [
        *((name, "PROVIDER/MODEL") for name in ("", "  ", "openai/", "/gpt-4o", "/")),
        *(
            (lm, r"a name or a dspy\.LM object")
            for lm in (None, 7, object(), ["openai/m"])
        ),
    ],
)
def test_what_names_no_model_is_refused(lm: Any, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        language_model(
            lm, connection=Connection(api_base="http://127.0.0.1:1/v1", cache=False)
        )


@pytest.mark.parametrize(
    "base",
    [
        "127.0.0.1:8000/v1",
        "localhost",
        "ftp://host/v1",
        "http://",
        "http:///v1",
        "file:///etc/passwd",
        "http://h:port/v1",
        "http://h:99999/v1",
        "http://[::1/v1",
    ],
)
def test_addresses_that_are_none(base: str) -> None:
    with pytest.raises(OptionError, match=r"for example http://127.0.0.1:8000/v1"):
        model(base)


def test_the_address_may_come_from_the_environment(
    serve: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    monkeypatch.setenv("OPENAI_BASE_URL", server.base)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    complete(language_model("openai/m", connection=Connection(cache=False)), ask())
    assert "Bearer sk-environment" in server.headers[0]


@pytest.mark.parametrize("provider", ["hosted_vllm", "lm_studio", "llamafile"])
def test_openais_key_goes_to_no_other_server(
    serve: MakeServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    complete(model(server, f"{provider}/m", api_key=None), ask())
    assert "sk-openai" not in server.headers[0]
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "sk-own")
    complete(model(server, f"{provider}/m", api_key=None), ask())
    assert "Bearer sk-own" in server.headers[1]


def test_a_model_is_itself_and_is_not_copied() -> None:
    lm = model("http://127.0.0.1:1/v1")
    assert language_model(lm) is copy.deepcopy(lm) is lm


def test_a_dspy_object_is_the_same_model_each_time_and_probed_once() -> None:
    mine, other = Foreign(), Foreign()
    lm = language_model(mine)
    assert lm.name == "mine/m"
    assert language_model(mine) is lm
    assert language_model(other) is not lm
    assert language_model(mine, sampling=Sampling(temperature=1.0)) is not lm
    judge = Judge(ActiveCritic("vanilla", explain="none", reading="said"))
    with dspy.context(lm=mine):
        judge.score("source", "one")
        calls = len(mine.asked)
        judge.score("source", "two")
    assert len(mine.asked) == calls + 1


def test_rows_do_not_pile_up_in_dspys_trace(serve: MakeServer) -> None:
    judge = Judge(
        ActiveCritic("vanilla", explain="none", reading="said"), lm=model(serve())
    )
    before = len(dspy.settings.trace)
    with dspy.context(max_errors=3):  # a context that says nothing of traces
        judge.score("source", "one")
    assert len(dspy.settings.trace) == before


# Processes

SCORING = """
import sys
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
lm = language_model("openai/m", connection=Connection(api_base=sys.argv[1], api_key="k"))
judge = Judge(ActiveCritic("vanilla", explain="none", reading="said"), lm=lm)
rows = [{"source": "s", "output": f"output {n}"} for n in range(6)]
print([v.score for v in judge.score_many(rows)], lm.meter.usage.calls, lm.meter.usage.cached)
"""


def test_a_second_process_uses_the_firsts_calls_and_nothing_is_left_open(
    serve: MakeServer,
) -> None:
    server = serve()
    outputs = []
    for _ in range(2):
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "always::ResourceWarning",
                "-c",
                SCORING,
                server.base,
            ],
            capture_output=True,
            text=True,
            timeout=HANG,
        )
        assert done.returncode == 0, done.stderr
        for complaint in (
            "Unclosed",
            "was destroyed",
            "never retrieved",
            "never awaited",
            "ResourceWarning",
        ):
            assert complaint not in done.stderr
        outputs.append(done.stdout)
    asked = len(server.bodies)
    # The probe's two requests and six rows; 4 of 0..100 is the score 4.
    assert asked == 8
    assert outputs == [f"{[4.0] * 6} 8 0\n", f"{[4.0] * 6} 0 8\n"]


def test_a_call_that_hangs_is_sent_again_and_holds_no_place(serve: MakeServer) -> None:
    """2 % of calls without an answer held a place of 16 each, until the limit of a call was over."""
    hung: list[str] = []

    def answer(_: int, body: dict[str, Any]) -> Say:
        text = body["messages"][0]["content"]
        if int(text.split()[1]) % 25 == 24 and hung.count(text) < 1 + (
            text == "row 49"
        ):
            hung.append(text)
            return replace(saying(text), wait=25.0)
        return replace(saying(text), wait=0.02)

    lm = model(serve(answer), timeout=30.0, concurrency=4)

    async def every() -> list[Reply]:
        return await asyncio.gather(
            *(lm.complete(ask(number)) for number in range(150))
        )

    started = time.monotonic()
    replies = engine.run(every())
    assert time.monotonic() - started < 15
    assert [reply.text for reply in replies] == [
        f"row {number}" for number in range(150)
    ]
    assert len(hung) == 7  # six rows, one of them twice
    assert lm.meter.usage.calls == 150 + lm.meter.usage.retries
    assert 7 <= lm.meter.usage.retries <= 10


def test_where_all_calls_are_slow_few_are_sent_again(serve: MakeServer) -> None:
    seconds = 0.0
    lm = model(serve(lambda *_: Say(wait=seconds)), timeout=30.0, concurrency=20)

    async def some(first: int) -> None:
        await asyncio.gather(
            *(lm.complete(ask(number)) for number in range(first, first + 60))
        )

    engine.run(some(0))
    seconds = 0.8
    engine.run(some(60))
    assert lm.meter.usage.retries <= 12
