"""Panels and juries from the command line: made, compiled, scored."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, lines


def answer(ask: Any) -> str:
    """A number for every form of answer that is asked for."""
    if "Location:" in ask.text:
        return "No Error\n\nOverall: Excellent\nReason: It reads well."
    named = re.search(r"^(.+): <one short sentence>", ask.text, re.MULTILINE)
    line = f"{named[1]}: It reads well.\n" if named else ""
    return f"{line}Score: {(sum(map(ord, ask.text)) * 7) % 101}"


def test_members_and_a_second_model_make_a_panel(
    server: Any, cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = answer
    rows, judge, out = rows_file(40), tmp_path / "judge.json", tmp_path / "out.jsonl"
    where = ("--api-base", server.base)
    given = (
        "compile",
        rows,
        "--as",
        "general/fluency",
        "--lm",
        "openai/a",
        "-o",
        judge,
        "--json",
        *where,
    )
    plan = cli(*given, "--members", 2, "--heldout", 0.25, "--dry-run").told
    assert (plan["method"]["kind"], plan["row_calls"], plan["optimizer"]["name"]) == (
        "panel",
        2,
        "zero-shot",
    )
    jury = cli(*given, "--lm", "openai/b", "--row-calls", 2, "--heldout", 0.25).told
    assert jury["heldout"]["failed"] == 0
    assert {ask.body["model"] for ask in server.asks} == {"a", "b"}
    told = cli("score", rows, "--judge", judge, "-o", out, "--json", *where).told
    assert told["scored"] == 40
    assert all(row["verdict"]["details"]["left_out"] == [] for row in lines(out))
    assert "member" in cli("show", judge).said


@pytest.mark.parametrize(
    ("more", "first"), [((), 40), (("--cv", 3), 40), (("--no-cache",), 32)]
)
def test_a_member_that_answers_nothing_is_asked_about_each_row_once(
    more: tuple[object, ...],
    first: int,
    server: Any,
    cli: Any,
    rows_file: Rows,
    tmp_path: Path,
) -> None:
    server.answer = lambda ask: answer(ask) if ask.body["model"] == "a" else ""
    rows, judge = rows_file(40), tmp_path / "judge.json"
    given = ("compile", rows, "--as", "general/fluency", "-o", judge, "--json")
    jury = ("--lm", "openai/a", "--lm", "openai/b", "--api-base", server.base)
    told = cli(*given, *jury, "--forms", "percent", *more).told
    asked = [ask for ask in server.judged if ask.body["model"] == "b"]
    assert len(asked) == 2 * first  # an answer that cannot be read is asked for twice
    assert told["heldout"]["failed"] == 0
    (why,) = [note for note in told["notes"] if "was asked no more" in note]
    assert why.startswith("percent of openai/b was asked no more: it scored none of ")
    assert "the answer is empty" in why
    shown = cli("show", judge).said
    assert "openai/b" not in shown.partition("\nmembers")[2].splitlines()[0]


@pytest.mark.parametrize("optimizer", ["zero-shot", "random-search"])
def test_an_annotator_that_answers_nothing_is_asked_about_each_row_once(
    optimizer: str, server: Any, cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = lambda ask: answer(ask) if ask.body["model"] == "a" else ""
    given = ("compile", rows_file(24), "--as", "general/fluency", "--json")
    where = ("--method", "openlgauge", "--lm", "openai/a", "--api-base", server.base)
    ensemble = ("--annotators", "openai/a,openai/b")
    judge = tmp_path / "judge.json"
    told = cli(*given, *where, *ensemble, "--optimizer", optimizer, "-o", judge).told
    asked = [ask for ask in server.asks if ask.body["model"] == "b"]
    assert 24 <= len([ask for ask in asked if ask.step != "probe"]) <= 2 * 24
    assert any(note.startswith("openai/b was asked no more") for note in told["notes"])
    assert '"openai/b"' not in judge.read_text(encoding="utf-8")


def test_of_three_models_the_one_that_answers_judges(
    server: Any, cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = lambda ask: answer(ask) if ask.body["model"] == "a" else ""
    lms: list[object] = []
    for name in "abc":
        lms += ["--lm", f"openai/{name}"]
    given = ("compile", rows_file(40), "--as", "general/fluency", "--json", *lms)
    told = cli(*given, "-o", tmp_path / "judge.json", "--api-base", server.base).told
    assert told["heldout"]["failed"] == 0
    assert sum("was asked no more" in note for note in told["notes"]) == 2


def test_a_row_without_an_answer_is_asked_about_once_in_a_run(
    server: Any, cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    def some(ask: Any) -> str:
        return "" if ask.step != "probe" and "1" in ask.mark else answer(ask)

    server.answer = some
    given = ("compile", rows_file(40), "--as", "general/fluency", "--json")
    where = ("--lm", "openai/a", "--api-base", server.base, "--members", 1)
    assert cli(*given, *where, "-o", tmp_path / "judge.json").code == 0
    texts = [json.dumps(ask.body["messages"]) for ask in server.judged]
    assert len(texts) == len(set(texts)) > 40


def test_a_panel_without_labels_and_what_is_refused(
    server: Any, cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = answer
    judge = tmp_path / "judge.json"
    assert (
        cli(
            "new",
            "The reply is polite.",
            "--lm",
            "openai/a",
            "--lm",
            "openai/b",
            "-o",
            judge,
        ).code
        == 0
    )
    assert (
        cli(
            "score", rows_file(6), "--judge", judge, "--api-base", server.base, "--json"
        ).told["scored"]
        == 6
    )
    two = ("--lm", "openai/a", "--lm", "openai/b")
    refused = cli(
        "compile", rows_file(40), "--method", "direct", "--as", "general/fluency", *two
    )
    refused.refused_at_once(
        "--lm openai/b: --method direct has one model; several are a jury of --method panel"
    )
    twice = cli(
        "compile", rows_file(40), "--as", "general/fluency", "--lm", "openai/a", *two
    )
    twice.refused_at_once("a model is named twice")


def test_a_jury_is_priced_by_all_its_models(
    server: Any, cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = answer
    rows, judge = rows_file(40), tmp_path / "judge.json"
    cheap, dear = "openai/gpt-4o-mini", "openai/gpt-4o"
    alone, jury = ("--lm", cheap), ("--lm", cheap, "--lm", dear)
    given = (
        "compile",
        rows,
        "--as",
        "general/fluency",
        "--method",
        "panel",
        "--row-calls",
        2,
        "--dry-run",
        "--json",
    )
    few, more = (cli(*given, *lms).told["cost"] for lms in (alone, jury))
    assert more > 3 * few
    assert cli(*given, "--lm", cheap, "--lm", "openai/unknown").told["cost"] is None

    new = ("new", "The reply is polite.", "-o", judge, "--lm", cheap, "--lm")
    score = ("score", rows, "--judge", judge, "--api-base", server.base, "--json")
    assert cli(*new, dear).code == 0
    assert cli(*score, "--dry-run").told["cost"] > 0
    judge.unlink()
    assert cli(*new, "openai/unknown").code == 0
    assert cli(*score, "--dry-run").told["cost"] is None
    cli(*score, "--max-cost", 1).refused("the price of openai/unknown is unknown")
    assert not server.judged


def test_a_panel_learns_its_criteria_from_the_labels_first(
    server: Any, cli: Any, fake: Any, rows_file: Rows, tmp_path: Path
) -> None:
    server.answer = fake.judging(lambda ask: sum(map(ord, ask.judged)) * 7 % 101)
    rows, judge = rows_file(40), tmp_path / "judge.json"
    where = ("--lm", "openai/a", "--api-base", server.base)
    asked = ("--forms", "percent,criteria", "--infer", "--heldout", 0.25)
    given = ("compile", rows, "--as", "general/fluency", "-o", judge, *where)
    plan = cli(*given, *asked, "--json", "--dry-run").told
    assert plan["row_calls"] == 2
    assert not server.asks
    cli(*given, *asked)
    assert "observe" in {ask.step for ask in server.asks}
    assert len(server.judged) == 2 * 40
    assert all(
        "How much brevity the output has." in ask.system for ask in server.judged
    )
    server.asks.clear()
    assert cli("score", rows_file(6), "--judge", judge, "--json", *where[2:]).code == 0
    assert {ask.step for ask in server.asks} <= {"probe", "score", "criteria"}
    assert "Brevity" in cli("show", judge).said


def test_criteria_are_inferred_or_given_and_from_labels(
    cli: Any, rows_file: Rows, tmp_path: Path
) -> None:
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text("- name: Tone\n  definition: It is polite.\n")
    where = ("--lm", "openai/a", "--method", "panel", "--infer")
    both = cli("compile", rows_file(40), "--criteria", criteria, *where)
    both.refused_at_once("infer learns the criteria from labels, and --criteria says")
    without = cli("new", "The reply is polite.", *where)
    without.refused_at_once("infer learns the criteria from labels, and there are none")
    given = ("--as", "general/fluency", "--lm", "openai/a", "--dry-run", "--json")
    alone = cli("compile", rows_file(40), *given, "--infer")
    assert alone.told["method"]["kind"] == "panel"
