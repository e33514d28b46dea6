"""What a run may spend and what it would take; a server that dies; what stands in a log, and in a CSV."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, lines

from judgesmith.errors import BudgetError, OptionError
from judgesmith.parts import read_options
from judgesmith.running.console import Watch
from judgesmith.running.limits import Limits
from judgesmith.scoring.tables import write_table
from judgesmith.signatures.values import CriterionScore, ErrorSpan, Opinion, Verdict


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
        "3 of 3 rows have no score (--max-failed), the last"
    )  # 3 > 10 % of 20
    assert len(lines(out)) == 3


def test_how_many_may_fail() -> None:
    for senseless in ("x", "-1", "5%%", "nan", ""):
        with pytest.raises(OptionError, match="max_failed"):
            read_options(Limits, {"max_failed": senseless}, "score")
    number, share = Limits(max_failed="3"), Limits(max_failed="5 %")
    number.check(3, 3, None)
    share.check(5, 100, None)
    for limits, failed, rows in ((number, 4, 1000), (share, 6, 100), (share, 2, 2)):
        with pytest.raises(BudgetError, match=f"{failed} of {rows} rows"):
            limits.check(failed, rows, "why")


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
    from judgesmith.programs.models import lm, transport

    sent, alive = transport.OpenAIStyle.send, 15

    async def dying(self: Any, request: Any) -> Any:
        if len(server.asks) >= alive:
            raise transport.Unanswered(
                "the connection failed: refused", again=True, reached=False
            )
        return await sent(self, request)

    monkeypatch.setattr(transport.OpenAIStyle, "send", dying)
    monkeypatch.setattr(lm, "_patience", lambda *_: 0.0)
    rows, out = rows_file(60), tmp_path / "out.jsonl"
    score(rows, "-o", out).refused(
        "openai/fake does not answer any more: 10 calls in a row", "repeat the command"
    )
    assert all(row["verdict"]["failure"] is None for row in lines(out))
    assert 8 <= len(lines(out)) < 20
    alive = 10_000
    done = score(rows, "-o", out, "--json")
    assert (done.code, done.json["scored"], done.json["failed"]) == (0, 60, 0)


def test_a_log_gets_lines_of_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace

    from judgesmith.programs import progress

    now = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    with Watch("scoring", 100) as watch:
        watch.step(there=True)  # by an earlier run
        watch.tell("1 failed, $0.02")
        for second in range(30):
            now = float(second)
            watch.step()
    told = capsys.readouterr().err.splitlines()
    # After 10 s, 11 rows of this run: 1.1/s, 88 are left; then after 20 s.
    assert (
        told
        == [
            "[   10 s] scoring: 12 of 100, 1.1/s, 80 s left, 1 failed, $0.02",
            "[   20 s] scoring: 22 of 100, 1.1/s, 74 s left, 1 failed, $0.02",  # 78 rows at 1.05/s
        ]
    )


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
