"""The commands as users and machines meet them: results, exit codes, one line for an error."""

import asyncio
import json
import os
import re
import signal
import time
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, lines, write
from patience import HANG
from tables import table
from typer.testing import CliRunner

import judgesmith
from judgesmith.cli.main import app


def dateless(path: Path) -> str:
    text, count = re.subn(r'"created": "[^"]+"', '"created": ""', path.read_text())
    assert count == 1
    return text


# -- compile ----------------------------------------------------------------------------------------------------------


def test_compile_says_what_it_found(
    compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    done = compile_(rows_file(24), "--max-demos", 2)
    assert done.code == 0
    words = " ".join(done.out.split())
    for part in (
        "24 rows of rows.jsonl",
        "model alone",
        "compiled",
        "4-fold cross-validation",
        "Chosen:",
        "tokens, price unknown,",
        "Saved",
    ):
        assert part in words
    assert (
        "each fold judged by a judge compiled without it; the saved judge is compiled from all 24 labels"
        in words
    )
    assert "Traceback" not in done.err


def test_compile_where_no_row_has_a_score_is_no_success(
    server: Any, fake: Any, compile_: Any, rows_file: Rows
) -> None:
    judging = fake.judging(lambda ask: 50)
    server.answer = lambda ask: "Not a chance." if ask.step == "score" else judging(ask)
    done = compile_(rows_file(32), "--task", "t", "--no-use-criteria")
    assert done.code == 1
    assert "no held-out row got a score" in done.err


def test_a_dry_run_asks_nothing(
    server: Any, cli: Any, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    told = compile_(rows_file(48), "--dry-run", "--json").told
    assert told["dry_run"] is True
    assert told["calls"] > 0
    assert told["cost"] is None  # nobody knows the price of openai/fake
    with_teacher = compile_(
        rows_file(48), "--dry-run", "--json", "--teacher", "openai/other"
    )
    assert (
        with_teacher.json["calls"] == told["calls"]
    )  # its pass of whole answers stands for the judge's own
    assert (
        cli("compile", rows_file(48), "--dry-run", "--json").json["rows"] == 48
    )  # no model has to be named
    words = compile_(rows_file(48), "--dry-run")
    assert "price unknown" in words.out
    assert server.asks == []
    assert not (tmp_path / "made.json").exists()


def test_budgets(server: Any, compile_: Any, rows_file: Rows, tmp_path: Path) -> None:
    rows = rows_file(48)
    compile_(rows, "--max-calls", 60, "--json").refused_at_once(
        "BudgetError", "the budget of 60 calls was used up"
    )
    assert len(server.asks) <= 60
    assert not (tmp_path / "made.json").exists()
    compile_(rows, "--max-cost", 1, "--json").refused_at_once(
        "OptionError", "the price of openai/fake is unknown"
    )
    compile_(rows, "--max-calls", 0, "--json").refused_at_once(
        "--max-calls", "greater than or equal to 1"
    )
    server.forget()
    told = compile_(
        rows,
        "--max-calls",
        300,
        "--json",
        "--candidates",
        8,
        "--no-cache",
        "--explain",
        "before",
    ).told
    assert len(server.asks) <= 300
    assert "the budget ran out" in told["stopped"]
    assert any("the budget ran out" in note for note in told["notes"])


def test_held_out_rows_from_a_file(server: Any, compile_: Any, rows_file: Rows) -> None:
    train, other = rows_file(32), rows_file(16, "other.jsonl", prefix="Other ")
    told = compile_(train, "--heldout", other, "--json").told
    assert (told["train_rows"], told["heldout_rows"]) == (32, 16)
    server.forget()
    compile_(train, "--heldout", rows_file(8, "same.jsonl"), "--json").refused_at_once(
        "LeakError", "'d000'"
    )
    assert server.asks == []


def test_a_kill_repeats_no_call_and_changes_nothing(
    server: Any,
    fake: Any,
    cli: Any,
    spawn: Any,
    until: Any,
    rows_file: Rows,
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    never, judge = (
        asyncio.Event(),
        fake.judging(lambda ask: int(ask.mark[1:]) * (2 + len(ask.labels)) % 101),
    )
    server.answer = lambda ask: never.wait() if len(server.judged) > 150 else judge(ask)
    made = tmp_path / "made.json"
    command = (
        "compile",
        rows_file(48),
        "--lm",
        "openai/fake",
        "--api-base",
        server.base,
        "--scale",
        0,
        100,
        "--candidates",
        4,
        "--json",
        "-o",
    )
    process = spawn(*command, made)
    until(
        lambda: (
            len(server.answered) >= 150
            and len(server.asks) >= len(server.answered) + 10
        )
    )
    until(lambda: settled(server))
    process.kill()
    assert process.wait(HANG) == -signal.SIGKILL
    answered, under_way = set(server.answered), len(server.asks) - len(server.answered)
    assert 0 < under_way <= 16 * 2  # places, of which each that hangs is sent once more
    assert not made.exists()
    server.answer = judge
    server.forget()
    resumed = cli(*command, made).told
    assert not answered & {ask.key for ask in server.asks}
    assert resumed["cached_calls"] >= len(answered)
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "fresh.sqlite"))
    assert cli(*command, tmp_path / "undisturbed.json").code == 0
    assert dateless(made) == dateless(tmp_path / "undisturbed.json")


def settled(server: Any) -> bool:
    """Whether the client has had half a second for the answers that it got."""
    before = len(server.asks)
    time.sleep(0.5)
    return len(server.asks) == before


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "parts"),
    table(__file__, "wrong_words"),
    ids=lambda value: (
        " ".join(value) if isinstance(value, list) and len(value) > 1 else None
    ),
)
def test_what_cannot_be_is_one_line(
    arguments: list[str],
    parts: list[str],
    server: Any,
    cli: Any,
    rows_file: Rows,
    judge_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = rows_file(48).read_text()
    monkeypatch.chdir(tmp_path)
    if "--lm" not in arguments:
        monkeypatch.setenv("JUDGESMITH_LM", "openai/fake")
    if "--api-base" not in arguments:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
    machine = ["--json"] if arguments[0] == "compile" else []
    cli(*arguments, *machine).refused_at_once(*parts)
    assert server.judged == []
    assert (tmp_path / "rows.jsonl").read_text() == rows


def test_a_server_that_is_down_or_refuses_the_key_is_one_line(
    server: Any, fake: Any, cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows, made = rows_file(48), tmp_path / "made.json"
    lm = ("--lm", "openai/fake", "-o", made, "--json")
    cli("compile", rows, *lm, "--api-base", "http://127.0.0.1:9/v1").come_again(
        "OutageError", "openai/fake"
    )
    server.answer = lambda ask: fake.Fault(401, '{"error": {"message": "bad key"}}')
    cli("compile", rows, *lm, "--api-base", server.base).refused_at_once(
        "ModelError", "key was refused", "bad key"
    )
    server.answer = lambda ask: fake.Fault(404, "no such model")
    cli("compile", rows, *lm, "--api-base", server.base).refused_at_once(
        "ModelError", "not found"
    )
    assert not made.exists()


def test_without_a_command_the_help_is_shown_and_a_traceback_on_request(
    cli: Any, monkeypatch: Any
) -> None:
    done = cli()
    assert done.code == 2
    assert "Usage" in done.out + done.err
    done = cli("--version")
    assert (done.code, done.out) == (0, judgesmith.__version__ + "\n")
    monkeypatch.setenv("JUDGESMITH_DEBUG", "1")
    with pytest.raises(judgesmith.JudgesmithError):
        cli("show", "none.json")


# -- show, models -----------------------------------------------------------------------------------------------------


def test_show(
    server: Any, cli: Any, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows, made = rows_file(48), tmp_path / "made.json"
    assert compile_(rows, "--json").code == 0
    server.forget()
    words = cli("show", made)
    for part in ("openai/fake", "Accuracy", "Q=", "model alone", "rows.jsonl"):
        assert part in words.out
    told, saved = cli("show", made, "--json").json, json.loads(made.read_text())
    assert told["program"]["kind"] == "active-critic"
    assert re.fullmatch(r"[0-9a-f]{12}", told["fingerprint"])
    assert all(told[name] == saved[name] for name in ("task", "criteria", "state"))
    prompt = cli("show", made, "--prompt", rows)
    assert lines(rows)[0]["output"] in prompt.out
    assert "Score: <number>" in prompt.out
    assert server.asks == []  # no model is called
    messages = cli("show", made, "--prompt", rows, "--json").json["prompt"]
    (sent,) = messages.values()
    out = tmp_path / "out.jsonl"
    server.forget()
    os.environ["JUDGESMITH_CACHE"] = str(
        tmp_path / "empty.sqlite"
    )  # the fixture puts the old one back
    done = cli(
        "score",
        rows,
        "--judge",
        made,
        "--api-base",
        server.base,
        "-o",
        out,
        "--limit",
        1,
        "--json",
    )
    assert done.code == 0
    (asked,) = server.judged
    assert asked.body["messages"] == sent  # the very messages


def test_reasons_in_a_file(
    server: Any, fake: Any, cli: Any, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows = lines(rows_file(48))
    rows_with = write(
        tmp_path / "with.jsonl",
        [row | {"Reviewer comment": f"No date in {row['id']}."} for row in rows],
    )
    cited, judging = (
        fake.CRITERIA.replace('"definition"', '"comments": "1", "definition"', 1),
        server.answer,
    )
    server.answer = lambda ask: (
        cited if ask.step in ("propose", "join") else judging(ask)
    )
    told = " ".join(compile_(rows_with, "--dry-run").out.split())
    assert "48 of 48 outputs have a reason" in told
    assert "why: No date in r" in told
    told = " ".join(compile_(rows_with, "--max-demos", 2).out.split())
    assert re.search(
        r"comments of people that they come from, as the model says: Accuracy: from row r\d",
        told,
    )
    assert "“No date in r" in told
    assert "Fluency: from no comment" in told
    assert "(from row r" in " ".join(cli("show", tmp_path / "made.json").out.split())


def test_the_models_are_listed_without_ollama(cli: Any) -> None:
    listed = cli("list", "models", "--json").json
    makers = {model["name"].partition("/")[0] for model in listed["models"]}
    assert "local" in makers
    assert not any(name.startswith("ollama") for name in makers)
    assert "Ollama" in listed["ollama_problem"]
    assert "Ollama" in cli("list", "models").out


def test_a_command_whose_module_went_is_left_out_of_help(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An editable installation has the entry points of the day when it was made."""
    place = "judgesmith.rooms.watching.gone_command:Gone"
    point = EntryPoint("gone", place, "judgesmith.commands")
    show = EntryPoint("show", "judgesmith.cli.show_command:Show", "judgesmith.commands")
    monkeypatch.setattr("judgesmith.cli.main.entry_points", lambda group: [point, show])
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert " show " in result.output
    assert " gone " not in result.output
    assert "command plug-in 'gone' is left out" in caplog.text


def test_sigterm_is_said_and_the_same_command_goes_on(
    server: Any,
    fake: Any,
    cli: Any,
    spawn: Any,
    until: Any,
    rows_file: Rows,
    judge_file: Path,
    tmp_path: Path,
) -> None:
    """A pod that is to go gets SIGTERM: rows that are written stay, and none is judged twice."""
    never, judge = asyncio.Event(), fake.judging(lambda ask: 50)
    server.answer = lambda ask: never.wait() if len(server.judged) > 6 else judge(ask)
    out = tmp_path / "out.jsonl"
    words = ("score", rows_file(12), "--judge", judge_file, "--api-base", server.base)
    words = (*words, "--concurrency", 1, "-o", out)
    process = spawn(*words)
    until(lambda: len(server.judged) > 6)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=HANG)
    assert process.returncode == 143
    assert "stopped; finished calls and rows are kept" in said
    written = len(lines(out))
    assert 0 < written <= 6
    server.answer = judge
    server.forget()
    assert cli(*words).code == 0
    assert len(lines(out)) == 12
    assert len(server.judged) == 12 - written
