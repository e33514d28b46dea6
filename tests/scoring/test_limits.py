"""What a run may spend and what it would take; a server that dies; what stands in a log, and in a CSV."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from json_lines import Rows, lines

from judgesmith.errors import BudgetError, OptionError
from judgesmith.parts import read_options
from judgesmith.programs import progress
from judgesmith.programs.capabilities import passes_over
from judgesmith.programs.models import pace
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.running import opening
from judgesmith.running.console import Watch
from judgesmith.running.limits import Limits
from judgesmith.scoring.tables import write_table
from judgesmith.signatures.values import (
    CriterionScore,
    ErrorSpan,
    Item,
    Opinion,
    Verdict,
)


@pytest.fixture
def score(cli: Any, judge_file: Path, server: Any) -> Callable[..., Any]:
    def run(*arguments: object) -> Any:
        return cli(
            "score",
            *arguments,
            "--judge",
            judge_file,
            "--api-base",
            server.base,
            "--concurrency",
            2,
        )

    return run


def test_max_calls_stops_score_which_can_go_on(
    server: Any, score: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows, out = rows_file(12), tmp_path / "out.jsonl"
    score(rows, "-o", out, "--max-calls", 8).refused(
        "the budget of 8 calls is used up; what is finished is kept"
    )
    kept = len(lines(out))
    assert 0 < kept < 12
    assert len(server.asks) <= 8
    done = score(rows, "-o", out, "--json")
    assert (done.code, done.json["scored"]) == (0, 12)
    # What was in flight when the budget ran out is asked again, nothing else.
    assert sorted({ask.mark for ask in server.judged}) == [
        row["id"] for row in lines(out)
    ]
    assert len(server.judged) - 12 <= 8 - kept


def test_max_failed_stops_the_run(
    server: Any, fake: Any, score: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = lambda ask: (
        fake.Fault(400, "no") if ask.step == "score" else fake.sensible(ask)
    )
    out = tmp_path / "out.jsonl"
    score(rows_file(60), "-o", out, "--max-failed", "10%").refused(
        "7 of 7 rows have no score (--max-failed), the last"
    )  # 7 > 10 % of 60
    assert len(lines(out)) == 7
    score(
        rows_file(400, "many.jsonl"),
        "-o",
        tmp_path / "many.out.jsonl",
        "--max-failed",
        "10%",
    ).refused("20 of 20 rows have no score (--max-failed), the last")


def test_how_many_may_fail() -> None:
    for senseless in ("x", "-1", "5%%", "nan", ""):
        with pytest.raises(OptionError, match="max_failed"):
            read_options(Limits, {"max_failed": senseless}, "score")
    number, share = Limits(max_failed="3"), Limits(max_failed="5 %")
    number.check(3, 3, "why")
    share.check(5, 100, "why")
    share.check(2, 12, "why", 200_000)  # the first rows say little
    share.check(10, 10, "why")
    share.check(50, 900, "why", 1000)
    for limits, failed, rows, total in (
        (number, 4, 1000, None),
        (share, 51, 900, 1000),
        (share, 1, 1, 12),
        (share, 12, 60, 200_000),
        (share, 12, 60, None),
        (Limits(max_failed="0%"), 1, 30, 1000),
    ):
        with pytest.raises(BudgetError, match=f"{failed} of {rows} rows"):
            limits.check(failed, rows, "why", total)


@pytest.mark.parametrize(
    ("true", "most_stopped", "least_stopped", "by"),
    [(0.02, 0, 0, 0), (0.04, 2, 0, 0), (0.05, 6, 0, 0), (0.1, 100, 100, 1500)],
)
def test_a_share_is_of_the_whole_run(
    true: float, most_stopped: int, least_stopped: int, by: int
) -> None:
    """A hundred runs of 20,000 rows with --max-failed 5%, looked at after every row."""
    limits, rng = Limits(max_failed="5%"), np.random.default_rng(1)
    stopped = []
    for _ in range(100):
        places = np.flatnonzero(rng.random(20_000) < true)
        for failed, place in enumerate(places.tolist(), 1):
            try:
                limits.check(failed, place + 1, "why", None)
            except BudgetError:
                stopped.append(place + 1)
                break
    assert least_stopped <= len(stopped) <= most_stopped
    if by:
        assert max(stopped) < by


def test_dry_runs_and_unknown_prices_spend_nothing(
    server: Any, score: Any, rows_file: Rows, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    plan = score(rows_file(12), "-o", out, "--dry-run", "--json", "--limit", 10).told
    assert (plan["rows"], plan["calls"], plan["cost"]) == (10, 10, None)
    assert plan["prompt_tokens"] > 100
    assert (
        "10 rows to judge: at most 10 calls"
        in score(rows_file(12), "--dry-run", "--limit", 10).out
    )
    assert not server.asks
    assert not out.exists()
    score(rows_file(3), "--max-cost", 1).refused("the price of openai/fake is unknown")
    assert not server.judged


@pytest.mark.parametrize(
    ("command", "calls", "most"),
    [
        (("evaluate", "ROWS", "--judge", "JUDGE"), 12, 5),
        (
            ("discern", "JUDGE", "ROWS", "--perturb", "typos"),
            9,
            3,
        ),  # three texts, each with two changes
    ],
)
def test_dry_run_and_max_calls_of_other_commands(
    command: tuple[object, ...],
    calls: int,
    most: int,
    cli: Any,
    server: Any,
    judge_file: Path,
    rows_file: Rows,
) -> None:
    files = {"ROWS": rows_file(12), "JUDGE": judge_file}
    common = (
        *(files.get(str(part), part) for part in command),
        "--api-base",
        server.base,
        "--rounds",
        0,
    )
    plan = cli(*common, "--dry-run", "--json")
    assert (plan.code, plan.json["calls"]) == (0, calls)
    assert not server.asks
    cli(*common, "--max-calls", most).refused(f"the budget of {most} calls is used up")
    assert len(server.asks) <= most


def test_the_summary_has_tokens_and_price(score: Any, rows_file: Rows) -> None:
    done = score(rows_file(6))
    assert " tokens, price unknown, " in done.out
    again = score(
        rows_file(6), "-o", rows_file(6).with_name("again.jsonl"), "--json"
    ).json
    assert (again["calls"], again["prompt_tokens"]) == (0, 0)  # from the disk
    assert again["cost"] == 0


def test_a_server_that_dies_stops_the_run_and_its_rows_are_judged_later(
    server: Any, score: Any, rows_file: Rows, tmp_path: Path, monkeypatch: Any
) -> None:
    from judgesmith.programs.models import sending, transport
    from judgesmith.programs.models.providers.openai import OpenAIStyle

    sent, alive = OpenAIStyle.send, 15

    async def dying(self: Any, request: Any) -> Any:
        if len(server.asks) >= alive:
            raise transport.Unanswered(
                "the connection failed: refused", again=True, reached=False
            )
        return await sent(self, request)

    monkeypatch.setattr(OpenAIStyle, "send", dying)
    monkeypatch.setattr(sending, "_patience", lambda *_: 0.0)
    rows, out = rows_file(60), tmp_path / "out.jsonl"
    score(rows, "-o", out).come_again(
        "openai/fake does not answer any more: 10 calls in a row", "repeat the command"
    )
    assert all(row["verdict"]["failure"] is None for row in lines(out))
    assert 8 <= len(lines(out)) < 20
    alive = 10_000
    done = score(rows, "-o", out, "--json")
    assert (done.code, done.json["scored"], done.json["failed"]) == (0, 60, 0)


def test_reading_by_a_model_of_this_machine_takes_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(opening, "thread_count", lambda: 2)
    seconds = opening.reading_seconds(27_822, ["local/qwen2.5-0.5b"])
    assert 55 < seconds < 90  # of 450 tokens a second, and what opening takes
    assert opening.reading_seconds(27_822, ["local/qwen2.5-1.5b"]) > 2 * seconds
    own = tmp_path / "own.gguf"
    own.write_bytes(b"x" * 1_000_000)
    assert 0 < opening.reading_seconds(27_822, [f"gguf:{own}"]) < 3
    assert opening.reading_seconds(27_822, []) == 0


def test_estimates_go_by_what_reading_last_took(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    assert pace.known() == pace.USUAL
    pace.keep(size=500_000_000, work=100, seconds=1.0, threads=1)  # too short to tell
    assert pace.known() == pace.USUAL
    pace.keep(size=500_000_000, work=4000, seconds=20.0, threads=2)
    assert pace.known() == 5e10  # 5e8 bytes * 4000 tokens / 20 s / 2 threads
    (tmp_path / "calls.pace").write_text("nonsense")
    assert pace.known() == pace.USUAL


def test_a_source_that_rows_share_is_read_once() -> None:
    method = ModelReadings("fluency")
    rows = [Item("An output of five words.", "A source. " * 100) for _ in range(4)]
    one = passes_over(method, rows[:1]).tokens
    every = passes_over(method, rows)
    assert (every.count, every.judged) == (4, 4 * passes_over(method, rows[:1]).judged)
    alone = passes_over(method, [Item("An output of five words.")]).tokens
    assert every.tokens == one + 3 * alone


def test_a_long_prompt_and_a_written_answer_take_longer() -> None:
    assert pace.of_call(tokens=1000, fresh=400) == 400
    assert pace.of_call(tokens=5000, fresh=5000) == 5000  # of English some 4,000
    assert pace.of_call(tokens=6000, fresh=6000) == 4 * 6000  # by llama.cpp
    assert pace.of_call(tokens=1000, fresh=1000, written=45) == 4 * 1000 + 20 * 45


def test_a_log_gets_lines_of_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    with Watch("scoring", 100) as watch:
        watch.step(there=True)  # by an earlier run
        watch.tell("1 failed, $0.02")
        for second in range(30):
            now = float(second)
            watch.step()
    told = capsys.readouterr().err.splitlines()
    # After 10 s, 10 rows behind the first of this run: 1.0/s, 88 are left; then after 20 s.
    assert told == [
        "[   10 s] scoring: 12 of 100, 1.0/s, 88 s left, 1 failed, $0.02",
        "[   20 s] scoring: 22 of 100, 1.0/s, 78 s left, 1 failed, $0.02",
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that progress goes by, as its only item."""
    seconds = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    return seconds


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> progress.Reading:
    """What models read, from the beginning."""
    monkeypatch.setattr(progress, "read", progress.Reading())
    return progress.read


def test_the_time_left_is_not_told_by_the_first_row(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    """A model is opened for the first one: ninety seconds of it say nothing of the others."""
    with Watch("scoring", 100) as watch:
        for clock[0] in (90.0, 101.0, 102.0, 123.0):
            watch.step()
    assert [
        line.partition("scoring: ")[2] for line in capsys.readouterr().err.splitlines()
    ] == [
        "1 of 100",
        "2 of 100, 11 s each",
        "4 of 100, 11 s each, 18 min left",
    ]


def test_a_long_row_shows_what_is_read_of_it(
    capsys: pytest.CaptureFixture[str], clock: list[float], read: progress.Reading
) -> None:
    told = list[str]()

    def says(watch: Watch, now: float) -> None:
        clock[0] = now
        watch.line()
        told.extend(capsys.readouterr().err.splitlines())

    watch = Watch("scoring", 6)  # writes by itself only where it is entered
    with read.of_rows(1), read.begun(4000, 6000.0) as share:
        with read.step(share, 1500.0, 1500):
            clock[0] = 20.0
        # A quarter of a row in 20 s: 5.75 rows are left, of 80 s each.
        says(watch, 30.0)
        with read.step(share, 4500.0, 2500):
            clock[0] = 90.0  # the rest in 60 s
    watch.step()
    # The next two rows are under way, and a tenth of one of them is read, in 8 s.
    with read.of_rows(2), read.begun(8000, 12000.0) as share:
        with read.step(share, 600.0, 600):
            clock[0] = 98.0
        says(watch, 98.0)
    assert told == [
        "[   30 s] scoring: 0 of 6, 25% of 4,000 tokens under way read, 8 min left",
        "[   90 s] scoring: 1 of 6",
        # (6 - 1.1) rows of (20 + 60 + 8) / 1.1 s
        "[   98 s] scoring: 1 of 6, 5% of 8,000 tokens under way read, 7 min left",
    ]


def test_reading_beside_other_steps_tells_of_itself_alone(
    capsys: pytest.CaptureFixture[str], clock: list[float], read: progress.Reading
) -> None:
    """Steps of a compilation are not rows that are read: nothing follows from one for the other."""
    watch = Watch("compiling", 100)
    watch.step(steps=2)
    with read.of_rows(16), read.begun(4000, 4000.0) as share:
        with read.step(share, 1000.0, 1000):
            clock[0] = 10.0
        watch.line()
    told = capsys.readouterr().err
    assert "2 of 100, 25% of 4,000 tokens under way read, 30 s left of these" in told


def test_csv_keeps_criteria_spread_and_errors(tmp_path: Path) -> None:
    verdict = Verdict(
        3.0,
        criteria={"Style": CriterionScore(40.0, "=flat")},
        errors=(ErrorSpan("x", "wrong", 2.0, 0, 1, "exact"),),
        opinions={"a": Opinion(10.0), "b": Opinion(30.0)},
        spread=0.5,
    )
    scored = {
        "id": "r1",
        "output": "x",
        "verdict": verdict.to_dict(),
        "judge": "m",
        "seen": False,
    }
    (tmp_path / "out.csv.jsonl").write_text(json.dumps(scored) + "\n")
    write_table(tmp_path / "out.csv.jsonl", tmp_path / "out.csv")
    (read,) = csv.DictReader((tmp_path / "out.csv").open(encoding="utf-8", newline=""))
    assert json.loads(read["judge_criteria"])["Style"]["score"] == 40
    assert float(read["judge_spread"]) == 0.5
    assert json.loads(read["judge_errors"])[0]["explanation"] == "wrong"


def test_what_is_no_judge_is_not_overwritten(
    cli: Any, tmp_path: Path, server: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base)
    foreign = tmp_path / "notes.json"
    foreign.write_text('{"mine": 1}')
    how = (
        "--method",
        "direct",
        "--as",
        "summarization/coherence",
        "--lm",
        "openai/fake",
    )
    cli("new", *how, "-o", foreign).refused("is not a judge, so it is not overwritten")
    assert foreign.read_text() == '{"mine": 1}'


def test_a_resumed_run_loads_no_library_of_providers(
    cli: Any, spawn: Any, server: Any, judge_file: Path, rows_file: Rows, tmp_path: Path
) -> None:
    """LiteLLM alone takes seconds to import: twenty rows that were there took seven."""
    command = (
        "score",
        rows_file(20),
        "--judge",
        judge_file,
        "-o",
        tmp_path / "out.jsonl",
        "--api-base",
        server.base,
    )
    assert cli(*command).code == 0
    code = (
        "import atexit, sys; from judgesmith.cli.main import main; "
        "atexit.register(lambda: print('litellm' in sys.modules, 'openai' in sys.modules)); main()"
    )
    said, _ = spawn(*command, code=code).communicate(timeout=120)
    assert "20 were there" in said
    assert said.splitlines()[-1] == "False False"
