"""A judge of whole documents on the command line: `--method pairs` over HTTP, and files of whole documents."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, lines

from judgesmith.programs.judge import Judge
from judgesmith.scoring.scoring import journal_of


def label(mark: str) -> int:
    """What `rows_file` gives as the human rating."""
    return int(mark[1:]) * 37 % 101


def preferring(ask: Any) -> str:
    """A model that prefers the output with the higher label."""
    if "Compared with output 1" not in ask.text:
        return "4"  # the probe
    first, second = map(label, re.findall(r"Summary (r\d{3})", ask.last))
    return "Worse" if first > second else "Better"


@pytest.fixture
def model(server: Any) -> Any:
    """The server as such a model, with log-probabilities."""
    server.logprobs, server.answer = True, preferring
    return server


@pytest.fixture
def ranked(
    model: Any, compile_: Any, rows_file: Rows, cli: Any, tmp_path: Path
) -> Callable[..., Any]:
    """`judgesmith score` with a saved PairS."""
    from judgesmith.programs.baselines.pairs import PairS
    from judgesmith.programs.models.lm import Connection, language_model

    path = tmp_path / "pairs.json"
    Judge(
        PairS("summarization/fluency"),
        lm=language_model("openai/fake", connection=Connection(model.base)),
    ).save(path)

    def run(*arguments: object) -> Any:
        return cli(
            "score", *arguments, "--judge", path, "--api-base", model.base, "--json"
        )

    return run


# Files of whole documents


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_a_run_that_was_cut_off_or_limited_ranks_whole_documents(
    name: str, model: Any, ranked: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows, out = rows_file(24), tmp_path / name
    assert ranked(rows, "-o", out).code == 0
    whole = out.read_bytes()
    for keep in (0.4, 0.55, 0.97):  # the middle of a document, half a row
        out.write_bytes(whole[: int(len(whole) * keep)])
        model.forget()
        done = ranked(rows, "-o", out)
        assert (done.code, done.json["rows"], done.json["scored"]) == (0, 24, 24)
        assert out.read_bytes() == whole
        assert [
            ask for ask in model.asks if "Compared" in ask.text
        ] == []  # all from the disk
    again = ranked(rows, "-o", out)
    assert (again.code, again.json["resumed"]) == (0, 24)
    assert again.json["cached_calls"] <= 5  # the probe of the model's abilities
    assert (
        ranked(rows, "-o", out, "--overwrite", "--limit", 6).code == 0
    )  # the middle of a document
    assert lines(journal_of(out))[5]["verdict"]["notes"][0].endswith("of 2")
    assert ranked(rows, "-o", out).code == 0
    assert out.read_bytes() == whole


def test_retries_rank_whole_documents(
    model: Any, fake: Any, ranked: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows, out, straight = (
        rows_file(12),
        tmp_path / "out.jsonl",
        tmp_path / "straight.jsonl",
    )
    good = model.answer
    model.answer = lambda ask: (
        fake.Fault(400, "refused")
        if "r005" in ask.last and "Compared" in ask.text
        else good(ask)
    )
    done = ranked(rows, "-o", out)
    assert (done.code, done.json["failed"], done.json["scored"]) == (
        1,
        2,
        10,
    )  # r005 and what it was compared with
    model.answer = good
    again = ranked(rows, "-o", out, "--retry-failed")
    assert (again.code, again.json["failed"], again.json["scored"]) == (0, 0, 12)
    assert ranked(rows, "-o", straight).code == 0
    assert lines(out) == lines(straight)
