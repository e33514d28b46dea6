"""The agreement as a sentence and as tables that fit a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from judgesmith.agreement.meta.evaluation import MetaEvaluation, meta_evaluate
from judgesmith.evaluating import tables
from judgesmith.evaluating.pivot import BEHIND, headline, pivots
from judgesmith.running.console import ShownConsole
from judgesmith.tables import number

ASPECTS = (
    "coherence",
    "consistency",
    "fluency",
    "informativeness",
    "naturalness",
    "relevance",
)
HOSTILE = (
    "[bold]x[/bold] \x1b[31m a judge with a name far too long for any column of a table"
)


@pytest.fixture(scope="module")
def several() -> MetaEvaluation:
    """Three judges of six aspects: one close to people, one less, one that knows nothing."""
    rng = np.random.default_rng(0)
    human = {aspect: rng.integers(1, 6, 80).astype(float) for aspect in ASPECTS}
    noise = {"close_judge": 0.4, HOSTILE: 2.0, "nothing": 100.0}
    judges = {
        name: {
            aspect: values + rng.normal(0, sd, 80) for aspect, values in human.items()
        }
        for name, sd in noise.items()
    }
    ratings = {
        aspect: np.stack([values, values + rng.normal(0, 0.5, 80)], axis=1)
        for aspect, values in human.items()
    }
    documents = [f"d{k // 2}" for k in range(80)]
    return meta_evaluate(
        judges,
        human,
        documents=documents,
        ratings=ratings,
        rounds=200,
        levels=("pooled",),
    )


def shown(
    result: MetaEvaluation, width: int, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    console = ShownConsole(width=width, highlight=False, force_terminal=False)
    monkeypatch.setattr(tables, "wide", lambda: console)
    with console.capture() as said:
        tables.show(result, "rows.jsonl", 80, [])
    return said.get().splitlines()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lines_are_short_and_words_whole(
    several: MetaEvaluation, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(several, width, monkeypatch)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    words = set(text.split())
    assert {
        "judge",
        *ASPECTS,
        "average",
        "close_judge",
        "nothing",
        "n",
        "ceiling",
    } <= words
    assert "\x1b" not in text
    (pivot,) = [one for one in pivots(several) if one.coefficient == "spearman"]
    assert pivot.columns == (*ASPECTS, "average")
    for entry in (
        entry for line in pivot.lines for entry in line.entries if entry is not None
    ):
        assert number(entry.value) + entry.mark in text


def test_the_best_is_marked_and_only_what_is_tested_is_behind(
    several: MetaEvaluation,
) -> None:
    pivot = pivots(several)[0]
    close, _, nothing, people = pivot.lines
    assert people.human
    assert people.rests == "2 raters"
    assert all(
        entry is not None and entry.best and not entry.mark for entry in close.entries
    )
    assert all(
        entry is not None and entry.mark == BEHIND for entry in nothing.entries[:-1]
    )
    assert nothing.entries[-1] is not None
    assert not nothing.entries[-1].mark


def test_the_sentence_says_best_next_certainty_and_ceiling(
    several: MetaEvaluation,
) -> None:
    told = headline(several)
    assert told.startswith(
        "Of 3 judges, close_judge agrees best with the human ratings: Spearman ρ 0.9"
    )
    assert "on average over 6 aspects (pooled, 80 rows)" in told
    assert "the lead is beyond chance on 6 of 6 aspects." in told
    assert "the human ceiling of 0." in told
    assert "cannot be distinguished from chance" not in told


def test_a_judge_that_knows_nothing_is_constant_or_leads_by_chance_is_said_to_do_so() -> (
    None
):
    rng = np.random.default_rng(1)
    found = meta_evaluate(
        {"coin": rng.normal(size=40)}, rng.normal(size=40), rounds=200
    )
    told = headline(found)
    assert told.startswith("coin agrees with the human ratings at Spearman ρ ")
    assert "; that cannot be distinguished from chance." in told
    found = meta_evaluate({"flat": np.full(40, 3.0)}, np.arange(40.0), rounds=50)
    assert headline(found).startswith(
        "No judge has a defined agreement with the human ratings: "
    )
    human = rng.integers(1, 6, 60).astype(float)
    against = meta_evaluate(
        {"upside_down": -human + rng.normal(0, 1, 60)}, human, rounds=200
    )
    assert "; it runs against them." in headline(against)
    assert "chance" not in headline(against)
    rng = np.random.default_rng(2)
    human = rng.integers(1, 6, 60).astype(float)
    judges = {name: human + rng.normal(0, 1, 60) for name in ("one", "other")}
    told = headline(meta_evaluate(judges, human, rounds=200))
    assert "which may be chance (p = " in told
