"""The agreement as a sentence and as tables that fit a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from judgesmith.agreement.meta.evaluation import MetaEvaluation, meta_evaluate
from judgesmith.agreement.resampling import Estimate
from judgesmith.evaluating import tables
from judgesmith.evaluating.decided import Decided
from judgesmith.evaluating.gate import Gate
from judgesmith.evaluating.pivot import BEHIND, headline, pivots
from judgesmith.running.console import ShownConsole
from judgesmith.tables import number, p_in_words

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
    words = set(text.replace(":", "").split())  # of a table, or of a list
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


def rated_by(
    noise: float, rows: int = 120, *, new_systems: bool = False
) -> MetaEvaluation:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=rows)
    ratings = truth[:, None] * (noise < 9) + noise * rng.normal(size=(rows, 3))
    judges = {"j": truth + 0.3 * rng.normal(size=rows), "coin": rng.normal(size=rows)}
    return meta_evaluate(
        judges,
        ratings.mean(axis=1),
        ratings={"overall": ratings},
        systems=[i % 4 for i in range(rows)],
        levels=("pooled",),
        rounds=100,
        new_systems=new_systems,
    )


def test_where_people_do_not_agree_nothing_is_said_of_a_judge() -> None:
    told = headline(rated_by(9.0))
    assert told.startswith(
        "The raters do not agree beyond chance (one with the mean of the others: Spearman ρ "
    )
    assert told.endswith("nothing here says how good a judge is.")
    assert "j " not in told
    assert "ceiling" not in told


def test_a_judge_is_above_people_by_a_test() -> None:
    assert "j is above the human ceiling of 0." in headline(rated_by(1.0))
    told = headline(rated_by(0.35, 24))
    assert "j cannot be told from the human ceiling of 0.88" in told


def test_the_ceiling_is_as_wide_as_a_judge_for_other_systems() -> None:
    one, other = (rated_by(1.0, new_systems=both) for both in (False, True))
    widths = [
        float((found.ceiling["high"] - found.ceiling["low"]).iloc[0])
        for found in (one, other)
    ]
    assert widths[1] > 1.2 * widths[0]


@pytest.mark.parametrize(("p", "said"), [(0.0, "p < .001"), (0.0321, "p = 0.032")])
def test_a_p_value_in_words_is_never_nought(p: float, said: str) -> None:
    assert p_in_words(p) == said


def test_few_documents_are_noted() -> None:
    rng = np.random.default_rng(1)
    human = rng.normal(size=40)
    of = {"rounds": 50, "compare": False}
    few = meta_evaluate(
        {"j": human + 1}, human, documents=[i % 5 for i in range(40)], **of
    )
    assert any("come from only 5 documents" in note for note in few.notes)
    many = meta_evaluate({"j": human + 1}, human, documents=range(40), **of)
    assert not any("come from only" in note for note in many.notes)


def test_a_gate_says_how_often_a_good_judge_passes() -> None:
    rng = np.random.default_rng(0)
    human = rng.normal(size=100)
    judge = 0.6 * human + 0.8 * rng.normal(size=100)
    found = meta_evaluate({"j": judge}, human, rounds=300)
    told = Gate.parse("spearman>=0.4").power(found) or ""
    assert told.startswith(
        "with these 100 rows, a judge of true pooled spearman 0.5 in "
    )
    shares = [int(part.split("%")[0]) for part in told.split(" in ")[1:]]
    # Simulated with 100 labels: 22, 68 and 99 % of judges of .5, .6 and .7.
    assert 10 <= shares[0] <= 32
    assert 55 <= shares[1] <= 82
    assert shares[2] >= 94
    assert Gate.parse("way>=0.4").power(found) is None


@pytest.mark.parametrize(
    ("right", "wrong", "noted"),
    [(7, 4, True), (9, 0, False), (4, 7, True), (0, 0, True)],
)
def test_a_constant_is_compared_on_the_same_rows(
    right: int, wrong: int, noted: bool
) -> None:
    # People fail the first `right` rows, which the judge finds; it fails `wrong` others.
    people = np.array([0.0] * right + [1.0] * 30)
    judge = np.array([0.0] * (right + wrong) + [1.0] * (30 - wrong))
    figures = {"agreement": Estimate(0.8, 0.7, 0.9), "constant": Estimate(0.75)}
    rows = len(people)
    one = Decided(
        "j",
        "overall",
        ("fail", "pass"),
        people,
        judge,
        judge,
        figures,
        {},
        [str(i) for i in range(rows)],
        "pass",
        documents=np.arange(rows),
    )
    assert bool(one.note()) == noted
    if (right, wrong) == (7, 4):
        # 2 · (C(11,7) + … + C(11,11)) / 2^11 = 2 · 562 / 2048
        assert (
            "(right where that is wrong: 7; wrong where that is right: 4; p = 0.549)"
            in one.note()[0]
        )
