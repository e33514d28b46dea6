"""`judgesmith compile --no-labels`: a judge without labels, saved, and used like any other."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgesmith as js
from judgesmith.compiling.run import read_criteria_file
from judgesmith.errors import OptionError
from judgesmith.signatures.values import Criterion

NAME = "openai/fake"
UNLABELLED = ("compile", "--no-labels", "--lm", NAME)


@pytest.mark.parametrize(
    ("method", "kind", "compares"),
    [
        ("pairwise-direct", "pairwise-direct", True), ("pairwise", "pairwise-direct", True), ("pairs", "pairs", True),
        ("openlgauge", "openlgauge", False), ("g-eval", "g-eval", False), ("direct", "direct", False),
    ],
)  # fmt: skip
def test_every_method_is_saved_and_loads(method: str, kind: str, compares: bool, cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    asked = ("--form", "yes-no", "--order", "both") if compares else ()
    made = ("--method", method, "--as", "summarization/coherence", "--scale", 1, 5, *asked, "-o", path)
    run = cli(*UNLABELLED, *made)
    assert run.code == 0, run.err
    judge = js.load(path, lm=NAME)
    assert judge.kind == kind
    assert (judge.scale.low, judge.scale.high) == (1, 5)
    assert judge.knowledge.criteria[0].name == "coherence"
    assert judge.provenance == {}
    if compares:
        assert (judge.comparer.form, judge.comparer.order) == ("yes-no", "both")


def test_a_judge_of_ones_own_words_scores(server: Any, cli: Any, tmp_path: Path) -> None:
    server.answer = lambda ask: "Score: 75"
    judge, rows = tmp_path / "judge.json", tmp_path / "rows.jsonl"
    made = cli(*UNLABELLED, "--method", "active-critic", "--task", "Answers to questions.", "-o", judge)
    assert made.code == 0, made.err
    rows.write_text('{"source": "Why?", "output": "Because."}\n', encoding="utf-8")
    run = cli("score", rows, "--judge", judge, "--api-base", server.base, "--json").said
    assert json.loads(run.splitlines()[-1])["scored"] == 1
    scored = json.loads((tmp_path / "rows.scored.jsonl").read_text(encoding="utf-8"))
    assert scored["verdict"]["score"] == 75


@pytest.mark.parametrize(
    "text",
    [
        "meaning: It keeps what is said: all of it.\nease: It is easy to read.\n",
        '{"meaning": "It keeps what is said: all of it.", "ease": "It is easy to read."}',
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
        ("", "no criteria"), ("just words", "entry 1: 'just words'"),
        ("ease: It is easy.\nmeaning:\n", "entry 2: 'meaning'"), ('{"meaning": ["a", "b"]}', "entry 1: 'meaning'"),
        ('["meaning"]', "entry 1: 'meaning'"), ("ease: It is easy.\nEase: It reads well.\n", "Ease more than once"),
    ],
)  # fmt: skip
def test_an_entry_that_is_no_criterion_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "criteria.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match=said):
        read_criteria_file(file)
