"""Several servers of one model: shared evenly, one that is down left out and tried again."""

import asyncio

import pytest

from judgesmith.errors import OptionError
from judgesmith.programs.models import fleet
from judgesmith.programs.models.fleet import Fleet
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.transport import Reply, Request, Unanswered

ASK = Request([{"role": "user", "content": "x"}], 4)


class One:
    """A server that answers, or does not while `down`, or refuses."""

    def __init__(self, wait: float = 0.0) -> None:
        self.asked, self.down, self.refuses, self.wait = 0, False, False, wait

    async def send(self, request: Request) -> Reply:
        self.asked += 1
        await asyncio.sleep(self.wait)
        if self.down:
            raise Unanswered("refused", again=True, reached=False)
        if self.refuses:
            raise Unanswered("HTTP 500", again=True)
        return Reply("yes")


def test_the_least_loaded_is_asked() -> None:
    slow, fast = One(0.05), One(0.001)

    async def everything() -> None:
        both, left = Fleet([slow, fast]), list(range(40))

        async def worker() -> None:
            while left:
                left.pop()
                await both.send(ASK)

        await asyncio.gather(*(worker() for _ in range(4)))

    asyncio.run(everything())
    assert slow.asked + fast.asked == 40
    assert fast.asked > slow.asked


def test_one_that_is_down_costs_no_row_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(fleet.time, "monotonic", lambda: now)
    dead, alive = One(), One()
    dead.down = True
    both = Fleet([dead, alive])

    async def calls(count: int) -> None:
        for _ in range(count):
            assert (await both.send(ASK)).text == "yes"

    asyncio.run(calls(10))
    assert (dead.asked, alive.asked) == (1, 10)
    now, dead.down = 1.5, False
    asyncio.run(calls(10))
    assert dead.asked == 6  # every other one


def test_where_none_answers_the_call_is_unanswered_and_a_refusal_goes_to_no_other() -> None:
    first, second = One(), One()
    first.down = second.down = True
    both = Fleet([first, second])
    with pytest.raises(Unanswered, match="refused") as caught:
        asyncio.run(both.send(ASK))
    assert not caught.value.reached
    assert (first.asked, second.asked) == (1, 1)
    first.down = second.down = False
    first.refuses = second.refuses = True
    with pytest.raises(Unanswered, match="500"):
        asyncio.run(both.send(ASK))
    assert first.asked + second.asked == 3


def test_several_addresses_are_for_openai_style_servers() -> None:
    bases = "http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"
    made = language_model("openai/x", connection=Connection(bases[0], others=(bases[1],), cache=False))
    assert made.identity == ",".join(sorted(bases))
    with pytest.raises(OptionError, match="not an http"):
        language_model("openai/x", connection=Connection(bases[0], others=("nowhere",), cache=False))
    with pytest.raises(OptionError, match="several addresses"):
        language_model("anthropic/x", connection=Connection(bases[0], others=(bases[1],), cache=False))
