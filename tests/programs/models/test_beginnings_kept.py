"""One request has a provider keep the beginning of a prompt, and those that share it come after."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from keeping_claude import KeepingClaude
from misbehaving_server import MakeServer

import judgesmith as js
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.beginnings_kept import KeptBeginnings
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.transport import Request, Unanswered

CLAUDE = "anthropic/claude-sonnet-4-5"
#: About 2,250 tokens, which every judge of this task has at the beginning of its prompts.
TASK = "The desk wants plain words, and no more of them than needed. " * 150


def asking(server: Any, **limits: Any) -> LanguageModel:
    base = server.base.removesuffix("/v1")
    where = Connection(api_base=base, api_key="k", cache=False, **limits)
    return language_model(CLAUDE, connection=where)


def judged(lm: LanguageModel, count: int, task: str = TASK) -> None:
    judge = js.Judge(js.DirectScorer("fluency", task=task), lm=lm)
    rows = [{"output": f"Text {number}."} for number in range(count)]
    assert [v.score for v in judge.score_many(rows, progress=False)] == [4.0] * count


def test_rows_in_flight_pay_once_for_what_they_share(serve: MakeServer) -> None:
    server = serve(claude := KeepingClaude())
    lm = asking(server)
    judged(lm, 12)
    written = claude.written
    assert claude.read == 11 * written
    # 12 rows of 2,428 tokens that they share: once at $3.75 a million, 11 times at $0.30. Sent together, they paid for
    # 12 at $3.75, which is more than the $3 of prompts without a mark.
    shared = written * (3.75 + 11 * 0.3) / 1e6
    others = (claude.plain * 3 + 9 * len(server.bodies) * 15) / 1e6
    assert lm.meter.cost == pytest.approx(shared + others)
    assert lm.meter.usage.prefix_tokens == claude.read
    assert server.most_in_flight > 1
    judged(lm, 5)
    assert (claude.written, claude.read) == (written, 16 * written)


def test_short_prompts_do_not_wait(serve: MakeServer) -> None:
    server = serve(claude := KeepingClaude(wait=0.3))
    lm = asking(server)
    judged(lm, 1, task="Short.")  # finds out what the model can do
    known = len(server.bodies)
    judged(lm, 8, task="Short.")
    assert server.times[known + 7] - server.times[known] < 0.3
    assert (claude.read, claude.written) == (0, 0)


def test_those_that_waited_keep_to_the_pace(serve: MakeServer) -> None:
    server = serve(claude := KeepingClaude(wait=0.3))
    judged(asking(server, rpm=60 / 0.05), 6)
    apart = [after - before for before, after in itertools.pairwise(server.times)]
    assert min(apart) > 0.03
    assert claude.read == 5 * claude.written


class Provider:
    """Sends, of which each is answered when the test says so."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.under_way: list[asyncio.Future[None]] = []

    async def send(self) -> tuple[Reply, float, int]:
        self.under_way.append(asyncio.get_running_loop().create_future())
        await self.under_way[-1]
        return self.reply, 0.0, 1

    async def count(self) -> int:
        """Requests that were sent, once none has more to do."""
        for _ in range(20):
            await asyncio.sleep(0)
        return len(self.under_way)


Told = Callable[[KeptBeginnings, Provider], Awaitable[None]]
KEPT, NOT_KEPT = Reply("4", written_tokens=2000), Reply("4")


def request(beginning: str = TASK, row: str = "") -> Request:
    messages = [
        {"role": "system", "content": beginning},
        {"role": "user", "content": row},
    ]
    return Request(messages, 10, beginning=1)


def run(reply: Reply, told: Told, patience: float = 60.0) -> None:
    async def all_of_it() -> None:
        await told(KeptBeginnings(patience), Provider(reply))

    asyncio.run(all_of_it())


def started(kept: KeptBeginnings, provider: Provider, *rows: Request) -> list[Any]:
    return [asyncio.ensure_future(kept.sent(row, provider.send)) for row in rows]


def test_the_others_are_sent_after_the_first_answer() -> None:
    async def told(kept: KeptBeginnings, provider: Provider) -> None:
        calls = started(kept, provider, request(row="1"), request(row="2"))
        other = started(kept, provider, request(TASK + "!", "3"))
        assert await provider.count() == 2  # one for each beginning
        provider.under_way[0].set_result(None)
        assert await provider.count() == 3
        for call in provider.under_way[1:]:
            call.set_result(None)
        assert [await call for call in calls + other] == [(KEPT, 0.0, 1)] * 3

    run(KEPT, told)


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_the_others_are_sent_when_the_first_fails(end: str) -> None:
    async def told(kept: KeptBeginnings, provider: Provider) -> None:
        first, *others = started(kept, provider, *map(request, [TASK] * 3))
        assert await provider.count() == 1
        if end == "failed":
            provider.under_way[0].set_exception(Unanswered("no", again=False))
            with pytest.raises(Unanswered):
                await first
        else:
            first.cancel()
        assert await provider.count() == 3
        for call in provider.under_way[1:]:
            call.set_result(None)
        await asyncio.gather(*others)

    run(KEPT, told)


def test_none_waits_longer_than_a_call_may_take() -> None:
    async def told(kept: KeptBeginnings, provider: Provider) -> None:
        calls = started(kept, provider, request(row="1"), request(row="2"))
        await asyncio.sleep(0.2)
        assert await provider.count() == 2
        for call in provider.under_way:
            call.set_result(None)
        await asyncio.gather(*calls)

    run(KEPT, told, patience=0.05)


async def one_is_answered(kept: KeptBeginnings, provider: Provider) -> None:
    (first,) = started(kept, provider, request())
    await provider.count()
    provider.under_way.pop().set_result(None)
    await first


@pytest.mark.parametrize("reply", [KEPT, NOT_KEPT], ids=["kept", "not kept"])
def test_none_waits_once_it_is_known(reply: Reply) -> None:
    async def told(kept: KeptBeginnings, provider: Provider) -> None:
        await one_is_answered(kept, provider)
        calls = started(kept, provider, request(row="1"), request(row="2"))
        assert await provider.count() == 2
        for call in provider.under_way:
            call.set_result(None)
        await asyncio.gather(*calls)

    run(reply, told)


def test_one_goes_first_again_when_it_is_no_longer_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("judgesmith.programs.models.beginnings_kept.KEPT", -1.0)

    async def told(kept: KeptBeginnings, provider: Provider) -> None:
        await one_is_answered(kept, provider)
        calls = started(kept, provider, request(row="1"), request(row="2"))
        assert await provider.count() == 1
        provider.under_way[0].set_result(None)
        assert await provider.count() == 2
        provider.under_way[1].set_result(None)
        await asyncio.gather(*calls)

    run(KEPT, told)
