"""`judgesmith score --batch` against servers on loopback that behave as OpenAI's and Anthropic's batches do."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from batch_desk import Desk
from json_lines import Rows, lines

from judgesmith.rooms.adapters import batches


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture
def server() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


@pytest.fixture(params=["openai/fake", "anthropic/claude-3-5-haiku-20241022"])
def score(
    request: Any,
    cli: Any,
    judge_file: Path,
    server: Desk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    monkeypatch.setattr(batches, "FIRST", 0.01)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
    common = (
        "--judge",
        judge_file,
        "--lm",
        request.param,
        "--api-base",
        server.address(request.param),
        "--batch",
        "-o",
        tmp_path / "out.jsonl",
    )
    return lambda *arguments: cli("score", *arguments, *common)


def test_batches_fill_rows_in_order_and_failed_ones_are_sent_again(
    score: Callable[..., Any],
    server: Desk,
    rows_file: Rows,
    tmp_path: Path,
    fake: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in batches.INTERFACES.values():
        monkeypatch.setattr(kind, "most", 5)
    well, rows = server.answer, rows_file(12)
    server.answer = lambda ask: (
        fake.Fault(text="too late")
        if ask.step == "score" and ask.mark == "r003"
        else well(ask)
    )
    done = score(rows, "--json")
    assert (done.code, done.json["scored"], done.json["failed"]) == (1, 11, 1)
    assert [len(requests) for requests in server.sent.values()] == [5, 5, 2]
    (why,) = done.json["failures"]
    assert why["id"] == "r003"
    assert "too late" in why["reason"]
    assert done.json["prompt_tokens"] >= 11 * 50
    server.answer = well
    assert score(rows, "--json", "--retry-failed").json["scored"] == 12
    assert [len(requests) for requests in server.sent.values()] == [5, 5, 2, 1]
    assert [row["id"] for row in lines(tmp_path / "out.jsonl")] == [
        row["id"] for row in lines(rows)
    ]


def test_a_kill_between_any_two_steps_loses_and_doubles_nothing(
    score: Callable[..., Any],
    server: Desk,
    rows_file: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in batches.INTERFACES.values():
        monkeypatch.setattr(kind, "most", 3)
    real, steps, kills, rows = httpx.Client.request, itertools.count(), 0, rows_file(9)

    def dying(*given: Any, **more: Any) -> Any:
        """A run ends before its first step, before it hears of it, before its second step, and so on."""
        dies = next(steps) == kills // 2
        if dies and kills % 2 == 0:
            raise Killed
        answer = real(*given, **more)
        if dies:
            raise Killed
        return answer

    monkeypatch.setattr(httpx.Client, "request", dying)
    while True:
        steps = itertools.count()
        try:
            done = score(rows, "--json")
            break
        except Killed:
            kills += 1
    assert (done.code, done.json["scored"], kills > 5) == (0, 9, True)
    assert (
        Counter(
            one["custom_id"] for requests in server.sent.values() for one in requests
        ).most_common(1)[0][1]
        == 1
    )
    assert [row["id"] for row in lines(tmp_path / "out.jsonl")] == [
        row["id"] for row in lines(rows)
    ]


def test_what_no_batch_can_do_is_refused(
    cli: Any, server: Desk, judge_file: Path, rows_file: Rows, tmp_path: Path
) -> None:
    common = (
        "score",
        rows_file(3),
        "--judge",
        judge_file,
        "--api-base",
        server.base,
        "--batch",
    )
    cli(*common, "--lm", "groq/x").refused("--batch is for openai/… and anthropic/…")
    cli(*common, "--max-calls", 5).refused("use --limit")
    priced = (*common, "--lm", "openai/gpt-4o-mini", "--dry-run", "--json")
    assert (
        cli(*priced).json["cost"] * 2
        == cli(*(one for one in priced if one != "--batch")).json["cost"]
    )
    assert not server.asks
