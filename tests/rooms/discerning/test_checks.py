"""`judgesmith discern --check`: judges that lean in planted ways, on a real server, and columns of recorded scores."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write

from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.rooms.discerning.checking.live import unchanged
from judgesmith.rooms.discerning.checking.rows import FILLERS, row_key
from judgesmith.rooms.discerning.checking.statistics import (
    CHECKS,
    Resampling,
    Scored,
    lead,
    leads,
    middle,
    own_systems,
    shift,
    sides_of,
)
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.signatures.values import Criterion, Item, Scale
from judgesmith.testing.scripted import PROBE

SYSTEMS = ("gpt-4o", "llama-2-7b", "human")
RUBRIC = (
    "Although short, the text is complete and somebody who reads it needs nothing else."
)


def records() -> list[dict[str, Any]]:
    """Twelve documents of three systems; the scores of `gpt4` are those of `plain`, a quarter of them moved again."""
    result = []
    for document in range(12):
        for place, system in enumerate(SYSTEMS):
            score = 1 + (document + 2 * place) % 5
            result.append(
                {
                    "id": f"d{document}-{system}",
                    "doc_id": f"d{document}",
                    "system": system,
                    "source": f"Minutes of {document}.",
                    "output": f'In town {document} "trees" were bought. It was {system}\'s idea. All went home.',
                    "gpt4": score,
                    "again": 6 - score if document % 4 == 0 else score,
                    "higher": min(5, score + 1),
                    "word": "pass" if score > 1 else "fail",
                    "other": 3,
                }
            )
    return result


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write(tmp_path / "rows.jsonl", records())


@pytest.fixture
def rubric_judge(tmp_path: Path, server: Any) -> Path:
    """A saved judge whose prompt holds a criterion."""
    lm = language_model("openai/fake", connection=Connection(server.base))
    method = DirectScorer("completeness", criteria=[Criterion("completeness", RUBRIC)])
    path = tmp_path / "judge.json"
    Judge(method, lm=lm, scale=Scale(1, 5)).save(path)
    return path


@pytest.fixture
def checked(
    cli: Any, server: Any, rubric_judge: Path, rows: Path
) -> Callable[..., Any]:
    """checked("--check", …): by the saved judge, of the rows."""
    where = ("--api-base", server.base, "--rounds", 200)
    return lambda *arguments: cli("discern", rubric_judge, rows, *where, *arguments)


@pytest.fixture
def leaning(server: Any, fake: Any) -> Callable[..., None]:
    """leaning(score): the model scores from 0 to 100 by the whole request."""

    def say(score: Callable[[Any], float]) -> None:
        server.answer = lambda ask: (
            fake.sensible(ask) if PROBE in ask.last else f"Score: {round(score(ask))}"
        )

    return say


def by_name(report: Any) -> dict[str, Any]:
    return {line["check"]: line for line in report["checks"]}


# -- a judge that is asked


def test_each_way_to_lean_is_found_and_no_other(checked: Any, leaning: Any) -> None:
    """Longer texts gain, lists lose, another rubric and another day change nothing."""

    def score(ask: Any) -> float:
        text = ask.judged
        return 50 + 20 * (FILLERS[0] in text) - 30 * text.startswith("- ")

    leaning(score)
    report = checked("--check", "all", "--json").told
    found = by_name(report)
    assert {name: line["lean"] for name, line in found.items()} == {
        "repeat": "neither",
        "reworded": "neither",
        "length": "raises",
        "style": "neither",
        "layout": "lowers",
    }
    assert found["length"]["change"]["value"] == pytest.approx(0.2)
    assert found["layout"]["change"]["value"] == pytest.approx(-0.3)
    assert found["layout"]["flips"]["value"] == 1
    assert found["length"]["flips"]["value"] == 0
    assert found["repeat"]["moved"]["high"] == pytest.approx(0, abs=1e-6)
    assert list(report["not_made"]) == ["swapped", "own"]
    assert "one output at a time" in report["not_made"]["swapped"]


def test_a_judge_that_says_another_thing_each_time_flips_by_itself(
    checked: Any, leaning: Any
) -> None:
    """The scores of the first look are kept, and only the second one is asked without the cache."""
    turns: Iterator[int] = iter(range(10_000))
    leaning(lambda ask: 20 + 60 * (next(turns) % 2))
    report = checked("--check", "repeat", "--n", 9, "--json").told
    (line,) = report["checks"]
    assert line["rows"] == 9
    assert line["moved"]["value"] > 0.3


def test_a_reworded_rubric_is_what_the_model_reads(
    checked: Any, leaning: Any, server: Any, tmp_path: Path
) -> None:
    leaning(lambda ask: 80 if RUBRIC in ask.text else 30)
    (line,) = checked("--check", "reworded", "--json").told["checks"]
    assert line["change"]["value"] == pytest.approx(-0.5)
    assert line["lean"] == "lowers"
    asked = {ask.text for ask in server.asks if RUBRIC not in ask.text}
    assert any("Though short, the text" in text for text in asked)
    own = tmp_path / "rubric.txt"
    own.write_text("completeness: Nothing that a reader needs is missing.\n")
    server.forget()
    checked("--check", "reworded", "--rubric", own, "--json").said  # noqa: B018
    assert any("Nothing that a reader needs" in ask.text for ask in server.asks)


def test_a_rubric_of_other_criteria_is_refused(checked: Any, tmp_path: Path) -> None:
    own = tmp_path / "rubric.txt"
    own.write_text("fluency: It reads well.\n")
    checked("--check", "reworded", "--rubric", own).refused("fluency", "completeness")


def test_own_writing_is_found_by_the_name_of_the_model_or_as_named(
    checked: Any, leaning: Any
) -> None:
    leaning(lambda ask: 70 if "llama-2-7b" in ask.judged else 40)
    command = ("--check", "own", "--own", "llama-2-7b", "--json")
    own = checked(*command).told["own"]
    assert own["own"] == ["llama-2-7b"]
    assert own["documents"] == 12
    assert own["lead"]["value"] == pytest.approx(0.3)
    assert own["wins"]["value"] == 1
    over = checked(*command, "--recorded", "own=other=1..5").told["own"]
    assert over["over"]["value"] == pytest.approx(0.3)  # the other judge sees no lead
    checked("--check", "own").refused("openai/fake", "gpt-4o", "--own")
    checked("--check", "own", "--own", "claude").refused("no row is of claude", "human")


def test_the_dry_run_names_the_calls_and_asks_nothing(
    checked: Any, server: Any
) -> None:
    server.forget()
    plan = checked("--check", "all", "--n", 9, "--dry-run", "--json").told
    assert plan["checks"] == dict.fromkeys(
        ("score", "repeat", "reworded", "length", "style", "layout"), 9
    )
    assert plan["calls"] == 54
    assert not server.asks
    words = checked("--check", "padded", "--n", 9, "--dry-run").said
    assert "9 rows of 3 documents" in words
    assert "at most 36 calls" in words


def test_scores_are_kept_and_a_second_run_asks_only_for_what_is_new(
    checked: Any, leaning: Any, server: Any, tmp_path: Path
) -> None:
    leaning(lambda ask: 50)
    kept = tmp_path / "checks.jsonl"
    command = ("--check", "repeat", "--check", "length", "--n", 6, "-o", kept)
    assert "Wrote" in checked(*command).said
    server.forget()
    first = checked(*command, "--json").told
    assert not server.asks
    assert len(first["checks"]) == 2
    checked("--check", "style", "--n", 6, "-o", kept).refused("another checks")


def test_rows_without_a_score_are_counted_and_are_no_change(
    checked: Any, leaning: Any, server: Any, fake: Any
) -> None:
    answer = server.answer
    leaning(lambda ask: 50)
    scored = server.answer

    def some(ask: Any) -> Any:
        return (
            "I cannot."
            if "town 3 " in ask.text and PROBE not in ask.last
            else scored(ask)
        )

    server.answer = some
    done = checked("--check", "length", "--json")
    assert done.code == 1
    assert done.json["failed"] == 3
    (line,) = done.json["checks"]
    assert (line["rows"], line["left"]) == (33, 3)
    assert line["moved"]["value"] == 0
    server.answer = answer


def test_the_page_has_the_findings_and_no_markup_of_the_rows(
    checked: Any, leaning: Any, tmp_path: Path, rows: Path
) -> None:
    changed = [json.loads(line) for line in rows.read_text().splitlines()]
    for record in changed:
        record["id"] = f"<b>{record['id']}</b>"
    write(rows, changed)
    leaning(lambda ask: 50 + 20 * (FILLERS[0] in ask.judged))
    page = tmp_path / "checks.html"
    said = checked("--check", "padded", "--report", page).said
    text = page.read_text(encoding="utf-8")
    assert "Checks without labels: judge" in text
    assert "RAISES the score" in text
    assert "<b>d0" not in text
    assert "&lt;b&gt;d" in text
    assert "scores lean with length" in said
    assert FILLERS[0] in text  # the changed output stands beside its scores


def test_outputs_that_a_check_leaves_out_are_explained(
    checked: Any, leaning: Any, rows: Path
) -> None:
    changed = [json.loads(line) for line in rows.read_text().splitlines()]
    changed[0]["output"] = "Trees were bought."
    write(rows, changed)
    leaning(lambda _: 50)
    report = checked("--check", "layout", "--json").told
    assert report["checks"][0]["left"] == 1
    assert report["notes"] == [
        "layout: 1 of 36 outputs were left out, since a list needs two sentences"
    ]


def test_a_dry_run_leaves_the_scores_of_an_earlier_run(
    checked: Any, leaning: Any, tmp_path: Path
) -> None:
    leaning(lambda _: 50)
    kept = tmp_path / "checks.jsonl"
    assert checked("--check", "repeat", "-o", kept).code == 0
    before = kept.read_bytes()
    done = checked("--check", "style", "-o", kept, "--overwrite", "--dry-run")
    assert done.code == 0
    assert kept.read_bytes() == before


@pytest.mark.parametrize("option", [("--repeat", 5), ("--longer-than", 9)])
def test_options_of_perturbing_are_not_taken_in_silence(
    checked: Any, option: tuple[Any, ...]
) -> None:
    checked("--check", "repeat", *option).refused(
        f"{option[0]} has no effect with --check"
    )


def test_rows_that_differ_in_a_weighed_column_are_judged_apart() -> None:
    one, other = (Item("A text.", columns={"stars": stars}) for stars in (1, 5))
    assert row_key(one) != row_key(other)
    assert row_key(Item("A text.")) == row_key(Item("A text.", columns={}))


def test_blank_outputs_are_not_called_foreign() -> None:
    assert "could be changed so" in unchanged("length", DiscernOptions())
    german = DiscernOptions(language="de")
    assert "--language is de" in unchanged("length", german)


# -- a recorded judge


@pytest.fixture
def recorded(cli: Any, rows: Path) -> Callable[..., Any]:
    return lambda judge, *arguments: cli("discern", judge, rows, *arguments)


def test_a_column_is_checked_against_columns(recorded: Any) -> None:
    command = ("--recorded", "repeat=again,length=higher", "--json")
    report = recorded("gpt4=1..5", "--check", "all", *command).told
    found = by_name(report)
    assert list(found) == ["repeat", "length"]
    assert report["rows"] == 36
    assert found["length"]["lean"] == "raises"
    assert found["repeat"]["flips"]["value"] == pytest.approx(0.2, abs=0.06)
    assert report["own"]["own"] == ["gpt-4o"]
    assert report["not_made"]["reworded"].startswith("a recorded judge is not asked")


def test_words_are_decisions(recorded: Any) -> None:
    command = ("--check", "repeat", "--recorded", "repeat=word", "--json")
    report = recorded("word", *command).told
    assert report["checks"][0]["flips"]["value"] == 0
    assert report["bar"] == "the judge's own categories"
    swapped = ("--check", "swapped", "--recorded", "swapped=word")
    recorded("word", *swapped).refused("leave open", "write numbers")


def test_words_after_a_change_are_read_as_the_judges(cli: Any, tmp_path: Path) -> None:
    steps = ("poor", "fair", "good", "excellent")
    worded = [
        record
        | {"grade": steps[i % 4], "capped": steps[min(i % 4, 2)]}
        | {"raised": steps[max(i % 4, 1)]}
        for i, record in enumerate(records())
    ]
    rows = write(tmp_path / "worded.jsonl", worded)
    command = ("--check", "repeat", "--recorded")
    found = cli("discern", "grade", rows, *command, "repeat=capped", "--json").told
    (repeat,) = found["checks"]
    # Of four categories the best one became the next, in a quarter of the rows.
    assert repeat["change"]["value"] == pytest.approx(-1 / 12)
    assert repeat["flips"]["value"] == pytest.approx(1 / 4)
    # A column with fewer words says nothing of those that it lacks, and numbers are no words.
    for judge, after in (
        ("capped", "grade"),
        ("capped", "raised"),
        ("grade", "word"),
        ("word", "gpt4"),
    ):
        refused = cli("discern", judge, rows, *command, f"repeat={after}")
        refused.refused(f"--recorded repeat={after}", "in the same words")
    named = "capped=poor,fair,good,excellent"
    found = cli("discern", named, rows, *command, "repeat=grade", "--json").told
    assert found["checks"][0]["flips"]["value"] == pytest.approx(1 / 4)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("gpt5", "--check", "own"), ("gpt5", "neither a file", "gpt4")),
        (
            ("gpt4", "--check", "repeat", "--recorded", "repeat=gone"),
            ("--recorded repeat=gone: not a column of rows.jsonl", "again"),
        ),
        (("gpt4", "--check", "repeat"), ("--recorded repeat=COLUMN",)),
        (("gpt4", "--check", "lenght"), ("lenght", "did you mean 'length'")),
        (("gpt4", "--check", "own", "--recorded", "x=again"), ("CHECK=COLUMN",)),
        (("gpt4", "--check", "own", "--perturb", "typos"), ("two runs",)),
        (("gpt4", "--own", "human"), ("--own has no effect without --check",)),
        (
            ("gpt4", "--check", "own", "--recorded", "repeat=again"),
            ("--recorded repeat=… has no effect without --check repeat",),
        ),
        (("metric/rougeL", "--check", "repeat"), ("no check applies to a metric",)),
        (("output", "--check", "own"), ("output",)),
    ],
)
def test_what_cannot_be_is_said(
    recorded: Any, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    recorded(*arguments).refused(*parts)


def test_a_recorded_model_is_not_asked_again(
    cli: Any, rubric_judge: Path, rows: Path
) -> None:
    command = ("discern", rubric_judge, rows, "--lm", f"recorded:{rows}#gpt4=1..5")
    cli(*command, "--check", "repeat").refused("repeats what stands in its file")
    own = cli(*command, "--check", "own", "--own", "gpt-4o", "--json").told["own"]
    assert own["documents"] == 12
    assert not math.isnan(own["lead"]["low"])


def test_rows_without_systems_have_no_own_writing(cli: Any, tmp_path: Path) -> None:
    bare = [{k: v for k, v in one.items() if k != "system"} for one in records()]
    path = write(tmp_path / "bare.jsonl", bare)
    cli("discern", "gpt4", path, "--check", "own").refused("--columns system=NAME")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("own", "--own", "llama-9"), "no row is of llama-9; the systems are"),
        (("own",), "no system (gpt-4o, human, llama-2-7b) is named like"),
        (("repeat", "--rubric", "none.txt"), "has no effect without --check reworded"),
        (("repeat", "--own", "human"), "has no effect without --check own"),
    ],
)
def test_what_needs_no_answer_is_refused_before_any_call(
    checked: Any, server: Any, more: tuple[str, ...], problem: str
) -> None:
    checked("--check", *more).refused(problem)
    assert not server.asks


# -- the statistics


def test_a_shift_is_the_mean_change_the_mean_move_and_the_share_of_flips() -> None:
    before = np.array([0.2, 0.4, 0.6, np.nan])
    after = np.array([0.4, 0.4, 0.5, 0.5])
    scored = [Scored(x, sides_of(x, 0.55)) for x in (before, after)]
    found = shift("length", *scored, Resampling(["a", "b", "c", "d"], 500))
    assert (found.rows, found.left) == (3, 1)
    assert found.change.value == pytest.approx(0.1 / 3)
    assert found.moved.value == pytest.approx(0.1)
    assert found.flips.value == pytest.approx(1 / 3)
    assert 0 < found.flips.low < 1 / 3 < found.flips.high < 1


def test_intervals_hold_what_they_should() -> None:
    """Of 300 drawn sets of 20 documents with three rows, the 95 % interval of the change holds the truth."""
    rng, held = np.random.default_rng(3), 0
    documents = [str(d) for d in range(20) for _ in range(3)]
    for seed in range(300):
        common = np.repeat(rng.normal(0, 0.05, 20), 3)
        change = 0.1 + common + rng.normal(0, 0.05, 60)
        scored = [Scored(x, [None] * 60) for x in (np.full(60, 0.4), 0.4 + change)]
        found = shift("length", *scored, Resampling(documents, 300, seed)).change
        held += found.low <= 0.1 <= found.high
    assert 0.91 <= held / 300 <= 0.99


def test_no_rows_give_no_numbers() -> None:
    nothing = Scored(np.full(2, np.nan), [None, None])
    found = shift("style", nothing, nothing, Resampling(["a", "b"]))
    assert found.rows == 0
    assert math.isnan(found.change.value)
    assert found.lean == "unknown"


def test_own_writing_is_compared_inside_documents() -> None:
    values = np.array([0.9, 0.5, 0.1, 0.9, np.nan, 0.2])
    own = np.array([True, False, False, True, False, True])
    found = leads(values, own, ["a", "a", "a", "b", "b", "c"])
    assert found == {"a": pytest.approx(0.6)}
    of_one = lead(found, ["x"], Resampling([])).lead
    assert of_one.value == pytest.approx(0.6)
    assert math.isnan(of_one.low)
    assert math.isnan(of_one.high)


@pytest.mark.parametrize(
    ("model", "systems", "own"),
    [
        ("openai/gpt-4o-mini", ["ChatGPT", "GPT4", "human", "davinci-003"], [0, 1, 3]),
        ("local/qwen2.5-0.5b", ["Qwen-7B", "llama"], [0]),
        ("ollama_chat/llama3.1:8b", ["Llama-2-70B", "vicuna"], [0]),
        ("openrouter/anthropic/claude-3.5", ["Claude 2", "gpt"], [0]),
        ("gemini/gemini-2.0", ["bard", "PaLM 2"], [0, 1]),
        ("word", ["a", "b"], []),
    ],
)
def test_systems_of_a_models_family(
    model: str, systems: list[str], own: list[int]
) -> None:
    assert own_systems(systems, model) == [systems[i] for i in own]


def test_a_bar_has_rows_on_both_sides_where_scores_differ() -> None:
    assert middle(np.array([0.0, 0.0, 0.0, 1.0])) == 1.0
    assert middle(np.array([0.0, 0.5, 1.0])) == 0.5
    assert middle(np.array([0.5, 0.5])) == 0.5
    assert math.isnan(middle(np.array([np.nan])))


def test_every_check_is_described() -> None:
    assert all(CHECKS.values())
    assert len(CHECKS) == 7
