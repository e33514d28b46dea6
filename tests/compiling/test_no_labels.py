"""`judgesmith new`: a judge without labels, saved, and used like any other."""

import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write

import judgesmith as js
from judgesmith.errors import OptionError
from judgesmith.running.criteria import read_criteria_file
from judgesmith.signatures.values import Criterion

NAME = "openai/fake"
UNLABELLED = ("new", "--lm", NAME)


@pytest.mark.parametrize(
    ("method", "kind", "compares"),
    [
        ("pairwise-direct", "pairwise-direct", True),
        ("pairwise", "pairwise-direct", True),
        ("pairs", "pairs", True),
        ("openlgauge", "openlgauge", False),
        ("g-eval", "g-eval", False),
        ("direct", "direct", False),
    ],
)
def test_every_method_is_saved_and_loads(
    method: str, kind: str, compares: bool, cli: Any, tmp_path: Path
) -> None:
    path = tmp_path / "judge.json"
    asked = ("--form", "yes-no", "--order", "both") if compares else ()
    made = (
        "--method",
        method,
        "--as",
        "summarization/coherence",
        "--scale",
        1,
        5,
        *asked,
        "-o",
        path,
    )
    run = cli(*UNLABELLED, *made)
    assert run.code == 0, run.err
    judge = js.load(path, lm=NAME)
    assert judge.method.kind == kind
    assert (judge.scale.low, judge.scale.high) == (1, 5)
    assert judge.method.knowledge.criteria[0].name == "coherence"
    assert judge.provenance == {}
    if compares:
        assert (judge.method.comparer.form, judge.method.comparer.order) == (
            "yes-no",
            "both",
        )


def test_a_judge_of_ones_own_words_scores(
    server: Any, cli: Any, tmp_path: Path
) -> None:
    server.answer = lambda ask: "Score: 75"
    judge, rows = tmp_path / "judge.json", tmp_path / "rows.jsonl"
    made = cli(
        *UNLABELLED,
        "--method",
        "active-critic",
        "--task",
        "Answers to questions.",
        "-o",
        judge,
    )
    assert made.code == 0, made.err
    rows.write_text('{"source": "Why?", "output": "Because."}\n', encoding="utf-8")
    run = cli("score", rows, "--judge", judge, "--api-base", server.base, "--json").said
    assert json.loads(run.splitlines()[-1])["scored"] == 1
    scored = json.loads((tmp_path / "rows.scored.jsonl").read_text(encoding="utf-8"))
    assert scored["verdict"]["score"] == 75


def test_one_sentence_is_a_judge_that_labels_correct(
    server: Any, cli: Any, tmp_path: Path
) -> None:
    server.answer = lambda ask: (
        f"Explanation: It says please.\nScore: {30 + 7 * len(ask.last) % 60}"
    )
    judge, model = tmp_path / "judge.json", ("--lm", NAME, "--api-base", server.base)
    said = cli(
        "new", "The reply is polite.", *model[:2], "--pass-fail", "-o", judge
    ).said
    assert "pass or fail" in " ".join(said.split())
    rows = write(
        tmp_path / "rows.jsonl",
        [
            {"source": "abcdefghijklm"[n] * 9, "output": "Because. " * n}
            for n in range(1, 12)
        ],
    )
    assert cli("score", rows, "--judge", judge, *model[2:]).code == 0
    verdicts = [row["verdict"] for row in lines(tmp_path / "rows.scored.jsonl")]
    assert {v["category"] for v in verdicts} == {"pass", "fail"}
    assert verdicts[0]["explanation"] == "It says please."
    assert "The reply is polite." in server.asks[-1].text
    labels = write(
        tmp_path / "labels.jsonl",
        [r | {"polite": n % 3 > 0} for n, r in enumerate(lines(rows))],
    )
    better = tmp_path / "better.json"
    started = (
        "compile",
        labels,
        "--start",
        judge,
        *model[2:],
        "--optimizer",
        "none",
        "-o",
        better,
    )
    assert cli(*started).code == 0
    read = js.load(better, lm=NAME)
    assert read.method.knowledge.criteria[0].name == "The reply is polite."
    assert read.outcome.decision.names == (
        "false",
        "true",
    )
    cli(*started, "--method", "direct").refused("is a judge of method active-critic")


def test_one_sentence_in_python() -> None:
    made = js.judge("The reply is polite.", lm=NAME)
    assert (made.scale.low, made.scale.high, made.outcome.decision) == (1, 5, None)
    assert js.judge("politeness").method.knowledge.criteria[0].name == "politeness"
    assert js.judge("Is it safe?", pass_fail=True).outcome.decision.binary
    with pytest.raises(
        OptionError, match="there is no aspect 'poltness'; did you mean"
    ):
        js.judge("poltness")


@pytest.mark.parametrize(
    "text",
    [
        "meaning: It keeps what is said: all of it.\nease: It is easy to read.\n",
        (
            '{"meaning": "It keeps what is said: all of it.", "ease": "It is easy to '
            'read."}'
        ),
    ],
)
def test_a_file_of_criteria_is_read_word_for_word(tmp_path: Path, text: str) -> None:
    file = tmp_path / "criteria.txt"
    file.write_text(text, encoding="utf-8")
    assert read_criteria_file(file) == [
        Criterion("meaning", "It keeps what is said: all of it."),
        Criterion("ease", "It is easy to read."),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no criteria"),
        ("just words", "entry 1: 'just words'"),
        ("ease: It is easy.\nmeaning:\n", "entry 2: 'meaning'"),
        ('{"meaning": ["a", "b"]}', "entry 1: 'meaning'"),
        ('["meaning"]', "entry 1: 'meaning'"),
        ("ease: It is easy.\nEase: It reads well.\n", "Ease more than once"),
    ],
)
def test_an_entry_that_is_no_criterion_is_named(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "criteria.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match=said):
        read_criteria_file(file)
