"""Judges in servers: any loop, thread or fork, synchronous and asynchronous calls mixed; servers that die."""

import asyncio
import multiprocessing
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Server, running_server

import judgesmith as js
from judgesmith.errors import OutageError
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.providers.litellm import said
from judgesmith.programs.models.sending import OUTAGE_AFTER
from judgesmith.programs.models.transport import Unanswered
from judgesmith.testing.fake import judging, own_environment
from judgesmith.testing.scripted import MakeScripted


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    own_environment(monkeypatch, tmp_path)
    with running_server() as server:
        server.answer = judging(lambda ask: int(ask.mark[1:]) % 101)
        yield at(server)


def at(server: Server, **given: Any) -> Judge:
    # One call in flight: calls that wait for each other are what binds a semaphore to a loop.
    connection = Connection(server.base, cache=False, concurrency=1, **given)
    return Judge(
        ActiveCritic("vanilla", explain="before", reading="said"),
        lm=language_model("openai/fake", connection=connection),
    )


def rows(count: int) -> list[dict[str, str]]:
    return [{"source": "s", "output": f"r{n:03d}"} for n in range(count)]


def test_asynchronous_calls_of_any_loop_and_thread_beside_synchronous_ones(
    judge: Judge,
) -> None:
    assert [v.score for v in judge.score_many(rows(4))] == [0, 1, 2, 3]
    scores: dict[int, Any] = {}

    async def several(start: int) -> list[js.Verdict]:
        async with asyncio.timeout(60):
            return await asyncio.gather(
                *(
                    judge.ascore(source="s", output=f"r{n:03d}")
                    for n in range(start, start + 3)
                ),
                judge.verdict(js.Item("r050", "s")),
            )

    def in_thread(n: int) -> None:
        try:
            if n % 2:
                scores[n] = [v.score for v in asyncio.run(several(n))]
            else:
                scores[n] = judge.score("s", f"r{n:03d}").score
        except BaseException as error:
            scores[n] = error

    threads = [threading.Thread(target=in_thread, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == {n: [n, n + 1, n + 2, 50] if n % 2 else n for n in range(12)}
    assert asyncio.run(several(7))[0].score == 7  # a loop of its own each time


def test_async_for_over_many_in_their_order(judge: Judge) -> None:
    async def coming() -> AsyncIterator[dict[str, str]]:
        for row in rows(9):
            await asyncio.sleep(0)
            yield row

    async def everything() -> list[list[float]]:
        return [
            [v.score async for v in judge.ascore_many(given, concurrency=3)]
            for given in (rows(9), coming())
        ]

    assert asyncio.run(everything()) == [list(range(9))] * 2


def test_leaving_async_for_early_cancels_what_is_under_way(judge: Judge) -> None:
    async def first() -> float:
        verdicts = judge.ascore_many(rows(50), concurrency=2)
        async for verdict in verdicts:
            await verdicts.aclose()  # type: ignore[attr-defined]
            return verdict.score
        raise AssertionError("no verdict")

    assert asyncio.run(first()) == 0
    assert judge.score("s", "r042").score == 42


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)
def test_a_fork_goes_on_with_a_loop_of_its_own(judge: Judge) -> None:
    def score() -> None:
        assert [v.score for v in judge.score_many(rows(6), concurrency=4)] == [
            0,
            1,
            2,
            3,
            4,
            5,
        ]

    score()  # calls waited: the semaphore belongs to a loop
    child = multiprocessing.get_context("fork").Process(target=score)
    child.start()
    child.join(60)
    assert child.exitcode == 0


# -- where the model is, and where it is not


def test_a_server_that_dies_ends_the_run_and_not_row_after_row(
    scripted: MakeScripted,
) -> None:
    refused = Unanswered("the connection failed: refused", again=True, reached=False)
    lm, transport = scripted(
        lambda _: (
            "Explanation: Good.\nScore: 50"
            if len(transport.requests) <= 10
            else refused
        )
    )
    judge = Judge(ActiveCritic("vanilla", explain="before", reading="said"), lm=lm)
    seen = []
    with pytest.raises(
        OutageError,
        match=rf"{OUTAGE_AFTER} calls in a row got no answer.*repeat the command",
    ):
        for verdict in judge.score_many(rows(1000), concurrency=2):
            seen.append(verdict.failure)
    assert len(transport.requests) < 40
    assert seen.count(None) >= 8


@pytest.mark.parametrize(
    "said",
    [
        "Missing credentials. Please pass an `api_key`, or set the `OPENAI_API_KEY`",
        "Missing Gemini API key. Set the GEMINI_API_KEY",
        "Fireworks_aiException - FIREWORKS_API_KEY is not set",
    ],
)
def test_a_missing_key_is_not_tried_again(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import litellm
    from litellm.exceptions import APIConnectionError

    calls = []

    async def refuse(**_: Any) -> None:
        calls.append(1)
        raise APIConnectionError(said, "x", "y")

    monkeypatch.setattr(litellm, "acompletion", refuse)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    lm = language_model("anthropic/claude", connection=Connection(cache=False))
    judge = Judge(ActiveCritic("vanilla", explain="before", reading="said"), lm=lm)
    with pytest.raises(
        js.ModelError,
        match="there is no key for it; set ANTHROPIC_API_KEY in the environment",
    ):
        judge.score("s", "r001")
    assert len(calls) == 1


def test_a_key_that_litellm_does_not_miss_is_told_in_the_providers_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import litellm
    from litellm.exceptions import APIConnectionError

    async def refuse(**_: Any) -> None:
        raise APIConnectionError("api_key of the gateway must be set", "x", "y")

    monkeypatch.setattr(litellm, "acompletion", refuse)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    lm = language_model("anthropic/claude", connection=Connection(cache=False))
    judge = Judge(ActiveCritic("vanilla", explain="before", reading="said"), lm=lm)
    with pytest.raises(js.ModelError, match="api_key of the gateway must be set"):
        judge.score("s", "r001")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            "litellm.InternalServerError: InternalServerError: MistralException - Cannot connect",
            "Cannot connect",
        ),
        ("litellm.AuthenticationError: Missing key", "Missing key"),
        ("The server is full: come again", "The server is full: come again"),
    ],
)
def test_a_failure_has_the_providers_words_alone(theirs: str, ours: str) -> None:
    assert said(RuntimeError(theirs)) == ours
