"""A panel over scripted models: members that differ, agree, fail and say nothing new; several models; artifacts."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from members import form_of, noisy, said

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.artifact import to_dict
from judgesmith.programs.loading import load
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.panel.averaging import (
    OF_MODELS,
    OF_PROMPTS,
    Standing,
    averaged,
    different,
    standings_of,
    weights_by_labels,
)
from judgesmith.programs.panel.forms import FORMS, QuestionsLayout, WordsLayout
from judgesmith.programs.panel.judge import Panel
from judgesmith.testing.scripted import MakeScripted


def rows(count: int = 60) -> list[dict[str, Any]]:
    return [
        {
            "source": f"Source {n // 2}.",
            "output": f"From here it is {10 + n * 37 % 81} miles to mill {n}.",
            "score": 10 + n * 37 % 81,
            "doc_id": f"d{n // 2}",
        }
        for n in range(count)
    ]


ROW = {"source": "A source.", "output": "From here it is 70 miles to mill 1."}


# Judging


def test_members_ask_in_their_forms_and_are_averaged(scripted: MakeScripted) -> None:
    percents = {
        "criteria": 60.0,
        "percent": 80.0,
        "errors": 50.0,
        "words": 75.0,
        "questions": 40.0,
    }
    lm, transport = scripted(
        lambda request: said(form_of(request), percents[form_of(request)])
    )
    verdict = js.Judge(Panel("fluency", members=5), lm=lm, scale=js.Scale(1, 5)).score(
        **ROW
    )
    assert {name: one.percent for name, one in verdict.opinions.items()} == percents
    assert verdict.percent == pytest.approx(61.0)  # (60 + 80 + 50 + 75 + 40) / 5
    assert sorted(map(form_of, transport.requests)) == sorted(percents)
    assert (verdict.usage.calls, verdict.explanation) == (5, "fluency: It reads well.")
    assert [error.text for error in verdict.errors] == ["text"]
    assert verdict.criteria["fluency"].score == 60
    assert verdict.details is not None
    assert verdict.details.to_dict() == {
        "members": 5,
        "left_out": [],
    }


@pytest.mark.parametrize(
    ("failing", "percent"), [({"percent"}, 55.0), ({"percent", "errors"}, math.nan)]
)
def test_a_member_that_fails_is_left_out_and_most_of_them_are_needed(
    failing: set[str], percent: float, scripted: MakeScripted
) -> None:
    percents = {"criteria": 60.0, "percent": 80.0, "errors": 50.0}

    def answer(request: Request) -> Any:
        form = form_of(request)
        return (
            Unanswered("HTTP 400", again=False)
            if form in failing
            else said(form, percents[form])
        )

    verdict = js.Judge(Panel("fluency"), lm=scripted(answer)[0]).score(**ROW)
    assert verdict.percent == pytest.approx(percent, nan_ok=True)
    if verdict.failure is None:
        assert "member percent is left out: test/model: HTTP 400" in verdict.notes
        assert verdict.details is not None
        assert verdict.details.to_dict() == {
            "members": 3,
            "left_out": ["percent"],
        }
    else:
        assert verdict.failure.startswith(
            "only 1 of 3 members gave a score: member percent is left out: test/model: HTTP"
        )


def test_the_reference_is_compared_with_where_there_is_one(
    scripted: MakeScripted,
) -> None:
    lm, _ = scripted(lambda request: said(form_of(request), 75.0))
    panel = js.Judge(Panel("fluency", forms=["percent", "reference"]), lm=lm)
    assert len(panel.score(**ROW, reference="Another text.").opinions) == 2
    alone = panel.score(**ROW)
    assert alone.percent == 75.0
    assert "member reference is left out: the row has no reference" in alone.notes
    with pytest.raises(OptionError, match="form reference: no row has a reference"):
        js.compile(panel, rows(), lm=lm, heldout=0.25)
    assert "reference" not in Panel("fluency", members=len(FORMS)).asked_members()


def test_a_budget_of_calls_a_row_and_several_criteria() -> None:
    criteria = [
        js.Criterion("Tone", "It is polite."),
        js.Criterion("Facts", "It is true."),
    ]
    panel = Panel.from_options({"members": 3}, labels_aspect="score", criteria=criteria)
    assert (panel.cost().calls_per_row, len(panel.knowledge.criteria)) == (3, 2)
    jury = Panel("fluency", members=2, models=["openai/b", "openai/c"], row_calls=4)
    assert jury.asked_members() == (
        "criteria",
        "criteria of openai/b",
        "criteria of openai/c",
        "percent",
    )
    assert (
        Panel("fluency").cost().calls_per_row,
        Panel("fluency", models=["openai/b"]).cost().calls_per_row,
    ) == (3, 2)
    with pytest.raises(OptionError, match="words is repeated"):
        Panel("fluency", forms=["words", "words"])
    with pytest.raises(OptionError, match="members is 3, and forms names 1"):
        Panel("fluency", forms=["words"], members=3)


# Compiling


def test_compiling_standardises_and_keeps_who_differs(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    lm, transport = scripted(noisy(60))
    made = js.compile(Panel("fluency"), rows(), lm=lm, heldout=0.25)
    assert sorted(made.method.fitted()["panel"]) == ["criteria", "errors", "percent"]
    alone = [
        js.compile(Panel("fluency", forms=[form]), rows(), lm=lm, heldout=0.25)
        for form in made.method.forms_asked()
    ]
    values = [one.report.heldout.reached.value for one in (made, *alone)]
    assert values[0] > np.mean(values[1:])
    verdicts = list(made.score_many(rows(8)))
    made.save(tmp_path / "panel.json")
    loaded = load(tmp_path / "panel.json", lm=lm)
    assert [v.score for v in loaded.score_many(rows(8))] == [v.score for v in verdicts]
    transport.requests.clear()
    loaded.score(**ROW)
    assert len(transport.requests) == loaded.method.cost().calls_per_row == 3


def test_members_that_say_the_same_are_asked_no_more(scripted: MakeScripted) -> None:
    lm, transport = scripted(noisy(10, by_form=False))
    made = js.compile(Panel("fluency", members=4), rows(), lm=lm, heldout=0.25)
    assert made.method.asked_members() == ("criteria",)
    assert made.method.cost().calls_per_row == 1
    told = next(note for note in made.report.notes if note.startswith("panel:"))
    assert "the mean of 1 standardised member judges" in told
    assert (
        "percent is left out, since criteria says the same (correlation 1.00)" in told
    )
    transport.requests.clear()
    assert made.score(**ROW).failure is None
    assert len(transport.requests) == 1


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (lambda request: Unanswered("HTTP 400", again=False), "it scored 0 of 46 rows"),
        (lambda request: said(form_of(request), 50.0), "it gives every row 50%"),
    ],
    ids=["silent", "constant"],
)
def test_a_model_that_says_nothing_of_rows_is_asked_no_more(
    bad: Any, why: str, scripted: MakeScripted
) -> None:
    good, silent = scripted(noisy(30))[0], scripted(bad, name="openai/bad")[0]
    panel = Panel("fluency", forms=["percent"], models=["openai/bad"])
    panel.use("openai/bad", silent)
    made = js.compile(panel, rows(), lm=good, heldout=0.25)
    assert made.method.asked_members() == ("percent",)
    told = next(note for note in made.report.notes if note.startswith("panel:"))
    assert f"percent of openai/bad is left out, since {why}" in told
    assert "gave no score" not in told


def test_stated_criteria_are_not_inferred_in_their_place() -> None:
    stated = [js.Criterion("Tone", "It is polite.")]
    with pytest.raises(OptionError, match=r"infer .* criteria=\['Tone'\] states them"):
        Panel("Tone", criteria=stated, infer=True)
    with pytest.raises(OptionError, match="infer learns"):
        Panel("Tone", criteria=stated).with_(infer=True)
    named = Panel("Tone", criteria=[js.Criterion("Tone", "")], infer=True)
    assert named.inquiry() is not None
    assert Panel("fluency", infer=True).inquiry() is not None


def test_where_no_member_says_anything_all_stay(scripted: MakeScripted) -> None:
    lm, _ = scripted(lambda request: said(form_of(request), 50.0))
    made = js.compile(Panel("fluency", members=2), rows(), lm=lm, heldout=0.25)
    assert made.method.asked_members() == ("criteria", "percent")


def test_a_jury_is_weighed_by_the_labels(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    good, _ = scripted(noisy(30, name="good"), name="openai/good")
    bad, _ = scripted(noisy(200, name="bad"), name="openai/bad")
    panel = Panel("fluency", forms=["percent"], models=["openai/bad"])
    panel.use("openai/bad", bad)
    made = js.compile(panel, rows(), lm=good, heldout=0.25)
    weights = {
        name: one["weight"] for name, one in made.method.fitted()["panel"].items()
    }
    assert weights["percent"] > 2 * weights["percent of openai/bad"]
    assert made.method.models() == ("openai/bad",)
    assert made.score(**ROW).usage.calls == 2
    data = to_dict(made)
    data["panel"]["percent of openai/other"] = data["panel"].pop("percent")
    (tmp_path / "judge.json").write_text(json.dumps(data))
    with pytest.raises(
        ArtifactError, match="there is no member 'percent of openai/other'"
    ):
        load(tmp_path / "judge.json", lm=good)


# Averaging

MATRICES = st.lists(
    st.lists(st.floats(0, 100), min_size=3, max_size=3), min_size=2, max_size=30
)


@given(MATRICES, st.integers(0, 2))
def test_a_panel_of_equal_members_is_each_of_them(
    table: list[list[float]], which: int
) -> None:
    column = np.array(table)[:, which]
    same = np.stack([column] * 3, axis=1)
    np.testing.assert_allclose(averaged(same, standings_of(same)), column, atol=1e-4)


@given(MATRICES)
def test_a_panels_percents_stay_in_range_and_a_missing_member_moves_nothing_but_its_own_part(
    table: Any,
) -> None:
    percents = np.array(table)
    standings = standings_of(percents)
    whole = averaged(percents, standings)
    assert ((whole >= 0) & (whole <= 100)).all()
    percents[0, 1] = math.nan
    np.testing.assert_array_equal(averaged(percents, standings)[1:], whole[1:])
    assert np.isnan(averaged(np.full((1, 3), math.nan), standings)).all()


def test_a_member_with_little_spread_counts_as_much_as_one_with_much() -> None:
    rng = np.random.default_rng(0)
    people, own = rng.normal(size=400), rng.normal(size=(400, 2))
    percents = 50 + np.array([20.0, 2.0]) * (people[:, None] + own)
    plain, fair = percents.mean(axis=1), averaged(percents, standings_of(percents))
    assert np.corrcoef(fair, people)[0, 1] > np.corrcoef(plain, people)[0, 1] + 0.05


def test_weights_are_equal_where_nothing_says_otherwise_and_those_of_prompts_move_little() -> (
    None
):
    rng = np.random.default_rng(1)
    people = rng.normal(size=40)
    alike = people[:, None] + rng.normal(size=(40, 3))
    assert np.abs(weights_by_labels(alike, people, OF_MODELS) - 1).max() < 0.6
    assert np.abs(weights_by_labels(alike, people, OF_PROMPTS) - 1).max() < 0.3
    unlike = people[:, None] + np.array([0.3, 3.0, 3.0]) * rng.normal(size=(40, 3))
    unlike /= unlike.std(axis=0)
    models, prompts = (
        weights_by_labels(unlike, people, much) for much in (OF_MODELS, OF_PROMPTS)
    )
    assert models.argmax() == prompts.argmax() == 0
    assert models[0] > prompts[0] > 1
    np.testing.assert_array_equal(weights_by_labels(alike, np.zeros(40), OF_MODELS), 1)


def test_alike_is_told_by_enough_rows_only() -> None:
    one = np.arange(30.0)
    assert different(np.stack([one, one, -one], axis=1)) == [0, 2]
    assert different(np.stack([one, one], axis=1)[:10]) == [0, 1]
    assert different(np.stack([one, np.full(30, 50.0)], axis=1)) == [0, 1]
    assert Standing().weight == 1


# Reading


@pytest.mark.parametrize(
    ("answer", "percent"),
    [
        ("Rating: Good", 75.0),
        ("**Good**", 75.0),
        ("I would call it fair.", 50.0),
        ("Rating: not good", None),
        ("Rating: Good or Fair", None),
        ("Rating: 4", None),
    ],
)
def test_words_are_read_where_they_are_clear(
    answer: str, percent: float | None
) -> None:
    assert WordsLayout().read(Reply(answer), {}).values.get("score") == percent


@pytest.mark.parametrize(
    ("answer", "percent", "notes"),
    [
        ("1: Yes\n2: Yes\n3: No\n4: No\n5: No", 40.0, 0),
        ("1. **Yes**\n2. Yes, mostly.\n3. No\n4. No\n5. No", 40.0, 0),
        ("1: Yes\n2: Yes\n3: No\n4: perhaps", 100 * 2 / 3, 1),
        ("1: Yes and no\n2: Yes\n3: No", None, 0),
        ("1: Yes\n1: No\n2: Yes\n3: No", None, 0),
        ("Yes", None, 0),
    ],
)
def test_questions_are_read_by_their_numbers(
    answer: str, percent: float | None, notes: int
) -> None:
    read = QuestionsLayout().read(Reply(answer), {})
    assert read.values.get("score") == (
        None if percent is None else pytest.approx(percent)
    )
    assert len(read.notes) == notes
