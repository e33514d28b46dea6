"""`judgesmith compile --batch` against servers on loopback that behave as OpenAI's and Anthropic's batches do."""

import _thread
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

import httpx
import pytest
from batch_desk import EXPIRED, Desk
from json_lines import Rows

from judgesmith.rooms.adapters import batched, batches
from judgesmith.testing.fake import Ask, Fault, judging

MODELS = ["openai/fake", "anthropic/claude-3-5-haiku-20241022"]


@pytest.fixture
def server() -> Iterator[Desk]:
    desk = Desk()
    desk.answer = judging(lambda ask: int(ask.mark[1:]) * 37 % 101)
    yield desk
    desk.close()


@pytest.fixture(params=MODELS)
def learn(
    request: Any,
    cli: Any,
    server: Desk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """learn(rows, …): `compile --batch`."""
    monkeypatch.setattr(batches, "FIRST", 0.01)
    monkeypatch.setattr(batched, "QUIET", 0.05)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
    base = server.address(request.param)
    common = ("--lm", request.param, "--api-base", base, "--batch")
    common = (*common, "-o", tmp_path / "made.json")
    return lambda *arguments: cli("compile", *arguments, *common)


#: A judge with one call a row, which learns no more than its calibration.
PLAIN = ("--method", "direct", "--as", "summarization/fluency")
PLAIN = (*PLAIN, "--optimizer", "zero-shot")
#: A search in three passes and more.
SEARCH = ("--optimizer", "random-search", "--candidates", 2, "--heldout", 0.5)
SEARCH = (*SEARCH, "--method", "active-critic", "--variant", "vanilla")


def mark(ask: Ask) -> str:
    """The row of a request, "" of one about the model."""
    return ask.mark if "<output>" in ask.text else ""


def sizes(server: Desk) -> list[int]:
    return [len(requests) for requests in server.sent.values()]


def sent_once(server: Desk) -> bool:
    requests = chain.from_iterable(server.sent.values())
    counts = Counter(one["custom_id"] for one in requests)
    return counts.most_common(1)[0][1] == 1


def test_rows_that_wait_for_each_other_are_one_batch(
    learn: Callable[..., Any], server: Desk, rows_file: Rows, tmp_path: Path
) -> None:
    rows = rows_file(40)
    planned = learn(rows, "--json", "--dry-run", *PLAIN).json
    assert "one batch, a day at most" in learn(rows, "--dry-run", *PLAIN).out
    assert not server.asks
    done = learn(rows, "--json", *PLAIN)
    assert (done.code, done.json["heldout"]["failed"]) == (0, 0)
    assert done.json["heldout"]["q"] > 2.9
    assert sizes(server) == [40]
    assert planned["batches"] >= 1
    assert (tmp_path / "made.json.batches.jsonl").stat().st_size


def test_later_passes_are_later_batches_and_the_same_command_pays_for_none_again(
    learn: Callable[..., Any], server: Desk, rows_file: Rows
) -> None:
    rows = rows_file(48)
    planned = learn(rows, "--json", "--dry-run", *SEARCH).json
    done = learn(rows, "--json", *SEARCH)
    assert (done.code, done.json["heldout"]["failed"]) == (0, 0)
    assert 2 <= len(server.sent) <= planned["batches"]
    assert sum(sizes(server)) == done.json["calls"]
    assert sent_once(server)
    before = len(server.asks)
    assert learn(rows, "--json", *SEARCH).json["calls"] == 0
    assert len(server.asks) == before


def test_a_kill_between_any_two_steps_loses_and_doubles_nothing(
    learn: Callable[..., Any],
    server: Desk,
    rows_file: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, kills, rows = httpx.Client.request, 0, rows_file(20)
    steps = count()

    def dying(*of: Any, **more: Any) -> Any:
        """A run ends before its first step, before it hears of it, before its second step, and so on."""
        dies = next(steps) == kills // 2
        if dies and kills % 2 == 0:
            raise OSError("killed")
        answer = real(*of, **more)
        if dies:
            raise OSError("killed")
        return answer

    monkeypatch.setattr(httpx.Client, "request", dying)
    done = learn(rows, "--json", *PLAIN)
    while done.code:
        assert "killed" in done.err
        kills, steps = kills + 1, count()
        done = learn(rows, "--json", *PLAIN)
    assert kills > 5
    assert done.json["heldout"]["failed"] == 0
    assert sizes(server) == [20]


def test_ctrl_c_leaves_a_batch_that_the_same_command_waits_for(
    learn: Callable[..., Any], server: Desk, rows_file: Rows
) -> None:
    begun, rows = server._begun, rows_file(20)

    def interrupted(*of: Any, **more: Any) -> Any:
        _thread.interrupt_main()
        return begun(*of, **more)

    server._begun = interrupted  # type: ignore[method-assign]
    stopped = learn(rows, *PLAIN)
    assert (stopped.code, "the same command resumes" in stopped.err) == (130, True)
    server._begun = begun  # type: ignore[method-assign]
    assert learn(rows, "--json", *PLAIN).json["heldout"]["failed"] == 0
    assert sizes(server) == [20]


def test_what_a_batch_did_not_come_to_stops_the_run_and_is_sent_again(
    learn: Callable[..., Any], server: Desk, rows_file: Rows
) -> None:
    well, rows = server.answer, rows_file(20)
    expired = Fault(EXPIRED, "too late")
    server.answer = lambda ask: expired if mark(ask) in ("r003", "r004") else well(ask)
    learn(rows, *PLAIN).refused("too late; the same command sends the rest")
    server.answer = well
    done = learn(rows, "--json", *PLAIN)
    assert (done.code, done.json["heldout"]["failed"]) == (0, 0)
    assert sizes(server) == [20, 2]


def test_a_request_that_fails_costs_its_row_alone(
    learn: Callable[..., Any], server: Desk, rows_file: Rows
) -> None:
    well = server.answer
    server.answer = lambda ask: (
        Fault(text="cannot do") if mark(ask) == "r003" else well(ask)
    )
    done = learn(rows_file(20), "--json", *PLAIN)
    assert done.json["heldout"]["failed"] == 1
    assert sizes(server) == [20]


def test_a_budget_of_calls_holds_though_a_pass_is_sent_at_once(
    learn: Callable[..., Any], server: Desk, rows_file: Rows
) -> None:
    done = learn(rows_file(48), "--json", "--max-calls", 150, *SEARCH)
    assert done.code == 0
    assert "the budget ran out" in done.json["stopped"]
    assert sum(sizes(server)) <= done.json["calls"] <= 150


def test_what_no_batch_can_do_is_refused_before_anything_is_sent(
    cli: Any, server: Desk, rows_file: Rows, tmp_path: Path
) -> None:
    common = ("compile", rows_file(20), "--api-base", server.base, "--batch")
    common = (*common, "-o", tmp_path / "made.json")
    cli(*common, "--lm", "groq/x").refused("--batch is for openai/… and anthropic/…")
    cli(*common, "--lm", "openai/fake", "--max-cost", 1).refused("use --max-calls")
    for limit in ("--concurrency", "--rpm"):
        cli(*common, "--lm", "openai/fake", limit, 5).refused("sent one by one")
    jury = ("--lm", "openai/fake", "--lm", "openai/other")
    cli(*common, *jury).refused("--batch is for judges of one model")
    priced = (*common, "--lm", "openai/gpt-4o-mini", "--dry-run", "--json")
    live = (one for one in priced if one != "--batch")
    assert 2 * cli(*priced).json["cost"] == cli(*live).json["cost"] > 0
    assert not server.asks
    assert not server.sent
