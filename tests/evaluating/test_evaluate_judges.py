"""`judgesmith evaluate --judge judge.json`: rows are judged here and now, against the server of conftest.py."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, lines, write
from patience import HANG

from judgesmith.optimizers.examples import row_key
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.signatures.values import Scale


@pytest.fixture
def evaluate(cli: Any, server: Any) -> Callable[..., Any]:
    def run(*arguments: object) -> Any:
        return cli("evaluate", *arguments, "--api-base", server.base, "--rounds", "40")

    return run


@pytest.fixture
def people(server: Any, fake: Any) -> Callable[[Any], int]:
    """The server's model says what people say; returns what it says of a row."""

    def number(ask: Any) -> int:
        return int(ask.mark[1:]) * 37 % 101

    server.answer = fake.judging(number)
    return number


@pytest.fixture
def saved(tmp_path: Path, server: Any) -> Callable[..., Path]:
    """saved("other.json", scale=(1, 5), aspect="fluency", seen=rows): a judge as `compile` leaves it."""

    def make(
        name: str,
        *,
        scale: tuple[float, float] = (0, 100),
        aspect: str = "",
        seen: Any = (),
    ) -> Path:
        lm = language_model("openai/fake", connection=Connection(server.base))
        judge = Judge(
            ActiveCritic("vanilla", explain="before", reading="said"),
            scale=Scale(*scale),
            lm=lm,
        )
        judge.provenance = {
            "labels": {"rows": 8, "origin": "l.csv", "aspect": aspect or "overall"},
            "seen": [row_key(row["source"], row["output"]) for row in seen],
        }
        judge.save(tmp_path / name)
        return tmp_path / name

    return make


# -- judging ----------------------------------------------------------------------------------------------------------


def test_rows_are_judged_and_compared_beside_other_judges(
    evaluate: Any, people: Any, server: Any, rows_file: Rows, judge_file: Path
) -> None:
    records = [row | {"length": len(row["output"])} for row in lines(rows_file(40))]
    rows = write(rows_file(40), records)
    done = evaluate(rows, "--judge", judge_file, "--judge", "length", "--json")
    assert (done.code, list(done.json["judges"])) == (0, ["judge", "length"])
    cell = done.json["judges"]["judge"]["overall"]["pooled"]["spearman"]
    assert (cell["value"], cell["n"], cell["failed"]) == (pytest.approx(1), 40, 0)
    assert {(c["a"], c["b"]) for c in done.json["comparisons"]} == {("judge", "length")}
    (run,) = done.json["live"]
    assert (run["judge"], run["model"], run["artifact"]) == (
        "judge",
        "openai/fake",
        str(judge_file),
    )
    assert (run["rows"], run["scored"], run["failed"], run["failures"]) == (
        40,
        40,
        0,
        [],
    )
    # the calls of the 40 rows and those that found out what the model can do
    assert len(server.judged) == 40
    assert run["calls"] == len(server.asks)
    assert run["prompt_tokens"] == sum(len(ask.text) // 4 for ask in server.asks)
    assert run["completion_tokens"] > 0
    assert run["seconds"] > 0


def test_a_second_run_asks_nothing(
    evaluate: Any, people: Any, server: Any, rows_file: Rows, judge_file: Path
) -> None:
    rows = rows_file(12)
    first = evaluate(rows, "--judge", judge_file, "--json").json
    server.forget()
    second = evaluate(rows, "--judge", f"mine={judge_file}", "--json").json
    assert server.asks == []
    assert second["judges"]["mine"] == first["judges"]["judge"]
    assert (second["live"][0]["calls"], second["live"][0]["cached_calls"]) == (
        0,
        first["live"][0]["calls"],
    )
    assert evaluate(rows, "--judge", judge_file, "--no-cache").code == 0
    assert len(server.judged) == 12
    server.forget()
    assert evaluate(rows, "--judge", judge_file, "--lm", "openai/other", "--json").json[
        "live"
    ][0]["model"] == ("openai/other")
    assert {ask.body["model"] for ask in server.asks} == {"other"}


def test_ctrl_c_loses_no_call(
    server: Any,
    fake: Any,
    spawn: Any,
    until: Any,
    evaluate: Any,
    rows_file: Rows,
    judge_file: Path,
) -> None:
    never, judging = asyncio.Event(), fake.judging(lambda ask: int(ask.mark[1:]))
    server.answer = lambda ask: (
        never.wait()
        if ask.step == "score" and int(ask.mark[1:]) >= 20
        else judging(ask)
    )
    rows = rows_file(40)
    process = spawn(
        "evaluate",
        rows,
        "--judge",
        judge_file,
        "--api-base",
        server.base,
        "--rounds",
        "0",
        "--concurrency",
        "4",
    )
    # Four rows are under way at a time: when four that are held have been asked for, the 20 before them are on disk.
    until(lambda: len(server.judged) == 24)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert (
        err.splitlines()[-1]
        == "stopped; finished calls and rows are kept, the same command resumes from there"
    )
    server.answer = judging
    server.forget()
    assert evaluate(rows, "--judge", judge_file).code == 0
    assert sorted(ask.mark for ask in server.judged) == [
        f"r{n:03d}" for n in range(20, 40)
    ]


def test_failed_rows_have_no_score_and_count(
    evaluate: Any, server: Any, fake: Any, rows_file: Rows, judge_file: Path
) -> None:
    judging, rows = (
        fake.judging(lambda ask: int(ask.mark[1:]) * 37 % 101),
        rows_file(20),
    )
    unsaid = "I \x1b[31mcan not[/red] say."
    server.answer = lambda ask: (
        unsaid if ask.step == "score" and ask.mark in ("r003", "r007") else judging(ask)
    )
    cell = evaluate(rows, "--judge", judge_file, "--json").json["judges"]["judge"][
        "overall"
    ]["pooled"]["pearson"]
    assert (cell["n"], cell["failed"], cell["rows"]) == (18, 2, 20)
    shown = evaluate(rows, "--judge", judge_file)
    # Unreadable answers are not kept: the two rows are asked again, twice each.
    assert (
        "judge: 20 rows judged with openai/fake, 18 scored, 2 failed; 4 calls"
        in shown.out
    )
    assert "no score for r003" in shown.out
    assert "no score for r007" in shown.out
    assert "\x1b[31m" not in shown.out


def test_rows_that_nobody_rated_are_not_judged(
    evaluate: Any, people: Any, server: Any, rows_file: Rows, judge_file: Path
) -> None:
    records = [
        row | ({"score": None} if n % 4 == 0 else {})
        for n, row in enumerate(lines(rows_file(20)))
    ]
    told = evaluate(write(rows_file(20), records), "--judge", judge_file, "--json").json
    assert told["live"][0]["rows"] == len(server.judged) == 15
    cell = told["judges"]["judge"]["overall"]["pooled"]["spearman"]
    assert (cell["value"], cell["n"], cell["failed"]) == (pytest.approx(1), 15, 0)


def test_a_judge_is_compared_with_the_aspect_that_it_was_compiled_for(
    evaluate: Any, server: Any, fake: Any, saved: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = fake.judging(lambda ask: int(ask.mark[1:]))
    records = [
        {k: v for k, v in row.items() if k != "score"}
        | {"scores": {"fluency": n, "relevance": -n}}
        for n, row in enumerate(lines(rows_file(20)))
    ]
    rows = write(tmp_path / "aspects.jsonl", records)
    files = [
        saved(f"{aspect}.json", aspect=aspect) for aspect in ("fluency", "relevance")
    ]
    done = evaluate(
        rows, "--human", "all", "--judge", files[0], "--judge", files[1], "--json"
    )
    for name, value in (("fluency", 1), ("relevance", -1)):
        ((aspect, levels),) = done.json["judges"][name].items()
        assert (aspect, levels["pooled"]["spearman"]["value"]) == (
            name,
            pytest.approx(value),
        )
    assert not any("was compiled for" in note for note in done.json["notes"])


# -- what is said -----------------------------------------------------------------------------------------------------


def test_rows_that_the_judge_learnt_from(
    evaluate: Any, people: Any, server: Any, saved: Any, rows_file: Rows
) -> None:
    records = [row | {"length": len(row["output"])} for row in lines(rows_file(20))]
    rows = write(rows_file(20), records)
    judge = saved("judge.json", seen=records[:5])
    told = evaluate(rows, "--judge", judge, "--judge", "length", "--json").json
    assert told["rows"] == 20
    (note,) = [note for note in told["notes"] if "used to compile" in note]
    assert note.startswith("5 of the rows")
    assert "--unseen" in note
    server.forget()
    told = evaluate(
        rows, "--judge", judge, "--judge", "length", "--unseen", "--no-cache", "--json"
    ).json
    assert told["rows"] == 15
    assert {
        j["overall"]["pooled"]["spearman"]["n"] for j in told["judges"].values()
    } == {15}
    assert [note for note in told["notes"] if "used to compile" in note] == [
        "--unseen: 5 of 20 rows were used to compile a judge and are left out"
    ]
    assert {ask.mark for ask in server.judged} == {f"r{n:03d}" for n in range(5, 20)}
    evaluate(rows, "--judge", saved("all.json", seen=records), "--unseen").refused(
        "--unseen leaves no row"
    )


def test_unseen_goes_by_scored_files_too(
    evaluate: Any, rows_file: Rows, tmp_path: Path
) -> None:
    records = [
        row | {"verdict": {"score": row["score"]}, "seen": n < 4, "system": f"s{n % 4}"}
        for n, row in enumerate(lines(rows_file(20)))
    ]
    told = evaluate(write(tmp_path / "a.jsonl", records), "--unseen", "--json").json
    assert (told["rows"], told["judges"]["a"]["overall"]["pooled"]["kendall"]["n"]) == (
        16,
        16,
    )
    for record in records:
        record["seen"] = False
    told = evaluate(write(tmp_path / "a.jsonl", records), "--unseen", "--json").json
    assert told["rows"] == 20
    assert any("no row is known to have been used" in note for note in told["notes"])


def test_another_scale_and_another_aspect_are_said(
    evaluate: Any, people: Any, saved: Any, rows_file: Rows
) -> None:
    rows = rows_file(12)
    judge = saved("judge.json", scale=(1, 5), aspect="fluency")
    notes = evaluate(rows, "--judge", judge, "--scale", "0", "100", "--json").json[
        "notes"
    ]
    assert any(
        "judge scores on 1..5, human overall on 0..100" in note for note in notes
    )
    assert (
        "judge was compiled for 'fluency'; it is compared with human ratings of overall here"
        in notes
    )
    notes = evaluate(
        rows, "--judge", saved("same.json"), "--scale", "0", "100", "--json"
    ).json["notes"]
    assert not any("scores on" in note or "compiled" in note for note in notes)


# -- wrong input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no such file, and no column of that name"),
        ("[1, 2]", "is not a judge"),
        ({"lm": None}, "no language model: give --lm"),
        (
            {"lm": {"model": "gguf:some.gguf", "sampling": {}}},
            "give it with --lm gguf:PATH",
        ),
    ],
)
def test_unusable_judges(
    evaluate: Any, server: Any, rows_file: Rows, judge_file: Path, text: Any, says: str
) -> None:
    changed = (
        json.dumps(json.loads(judge_file.read_text()) | text)
        if isinstance(text, dict)
        else text
    )
    judge_file.unlink()
    if changed is not None:
        judge_file.write_text(changed)
    done = evaluate(rows_file(8), "--judge", judge_file)
    assert (done.code, server.asks) == (2, [])
    (line,) = done.err.strip().splitlines()
    assert says in line


def test_rows_that_cannot_be_used_cost_no_call(
    evaluate: Any, server: Any, rows_file: Rows, judge_file: Path
) -> None:
    rows = write(rows_file(12), [row | {"score": 3} for row in lines(rows_file(12))])
    done = evaluate(rows, "--judge", judge_file)
    assert (done.code, server.asks) == (2, [])
    assert "all 12 values are 3" in done.err


def test_a_column_may_be_called_like_a_file(
    evaluate: Any, server: Any, rows_file: Rows
) -> None:
    rows = write(
        rows_file(12),
        [row | {"v1.json": n} for n, row in enumerate(lines(rows_file(12)))],
    )
    assert list(evaluate(rows, "--judge", "v1.json", "--json").json["judges"]) == [
        "v1.json"
    ]
    assert server.asks == []
