"""`judgesmith compile --no-labels`: a judge without labels, saved, and used like any other."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgesmith.compiling.run import read_criteria_file
from judgesmith.errors import OptionError
from judgesmith.signatures.values import Criterion

NAME = "openai/fake"
UNLABELLED = ("compile", "--no-labels", "--lm", NAME)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("pairwise-direct", "pairwise-direct"),
        ("pairwise", "pairwise-direct"),
        ("openlgauge", "openlgauge"),
        ("g-eval", "g-eval"),
        ("direct", "direct"),
        ("pairs", "pairs"),
    ],
)
def test_every_method_is_saved_and_loads(method: str, kind: str, cli: Any, tmp_path: Path) -> None:
    import judgesmith as js

    path = tmp_path / "judge.json"
    run = cli(*UNLABELLED, "--method", method, "--as", "summarization/coherence", "--scale", 1, 5, "-o", path)
    assert run.code == 0, run.err
    judge = js.load(path, lm=NAME)
    assert judge.kind == kind
    assert (judge.scale.low, judge.scale.high) == (1, 5)
    assert judge.knowledge.criteria[0].name == "coherence"
    assert judge.provenance == {}


@pytest.mark.parametrize("method", ["pairwise-direct", "pairs"])
def test_how_outputs_are_compared(method: str, cli: Any, tmp_path: Path) -> None:
    import judgesmith as js

    path = tmp_path / "judge.json"
    asked = ("--form", "yes-no", "--order", "both")
    run = cli(*UNLABELLED, "--method", method, "--as", "summarization/coherence", *asked, "-o", path)
    assert run.code == 0, run.err
    comparer = js.load(path, lm=NAME).comparer
    assert (comparer.form, comparer.order) == ("yes-no", "both")


def test_a_judge_of_ones_own_words_scores(server: Any, cli: Any, tmp_path: Path) -> None:
    server.answer = lambda ask: "Score: 75"
    judge, rows = tmp_path / "judge.json", tmp_path / "rows.jsonl"
    made = cli(*UNLABELLED, "--method", "active-critic", "--task", "Answers to questions.", "-o", judge)
    assert made.code == 0, made.err
    rows.write_text('{"source": "Why?", "output": "Because."}\n', encoding="utf-8")
    run = cli("score", rows, "--judge", judge, "--api-base", server.base, "--json")
    assert run.code == 0, run.err
    assert json.loads(run.out.splitlines()[-1])["scored"] == 1
    scored = json.loads((tmp_path / "rows.scored.jsonl").read_text(encoding="utf-8"))
    assert scored["verdict"]["score"] == 75


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "which aspect is judged"),
        (["--as", "summarization/beauty"], "beauty"),
        (["--method", "active-critic"], "say what is judged"),
        (["--method", "active-critic", "--variant", "fine", "--task", "x"], "give --criteria"),
        (
            ["--method", "direct", "--as", "summarization/fluency", "--annotators", "m"],
            "annotators=… does nothing with --method direct",
        ),
        (["--as", "summarization/fluency", "--levels", "12"], "12"),
        (
            ["--method", "g-eval", "--as", "summarization/fluency", "--form", "yes-no"],
            "form=… does nothing with --method g-eval; it is an option of pairs, pairwise-direct",
        ),
        (["--as", "summarization/fluency", "--writer", "http://elsewhere/m"], "address"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_saved(arguments: list[str], told: str, cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    run = cli(*UNLABELLED, *arguments, "-o", path)
    assert run.code == 2
    assert told in run.err
    assert not path.exists()


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
        ("", "no criteria"),
        ("just words", "entry 1: 'just words'"),
        ("ease: It is easy.\nmeaning:\n", "entry 2: 'meaning'"),
        ('{"meaning": ["a", "b"]}', "entry 1: 'meaning'"),
        ('["meaning"]', "entry 1: 'meaning'"),
        ("ease: It is easy.\nEase: It reads well.\n", "Ease more than once"),
    ],
)
def test_an_entry_that_is_no_criterion_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "criteria.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match=said):
        read_criteria_file(file)
