"""Comparisons: reading the words' probabilities, both orders, sampled answers, the prompt, and leaving a row out."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.errors import CallError
from judgesmith.programs.answers.likely import word_probabilities
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.answers.words import said_word
from judgesmith.programs.comparing.comparison import (
    WORDS,
    Comparison,
    ComparisonLayout,
    PairwiseComparer,
)
from judgesmith.programs.models import engine
from judgesmith.signatures.values import Item

THREE = WORDS["better-worse"]
ITEM = Item("The judged output.", "The document.", group="d1")


def chosen(first: dict[str, float], *rest: str) -> Reply:
    """A reply whose first token has these probabilities; its text begins with the first of them."""
    start = next(iter(first))
    tokens = (
        TokenChoice(start, tuple((t, math.log(p)) for t, p in first.items())),
        *(TokenChoice(t, ((t, 0.0),)) for t in rest),
    )
    return Reply(start + "".join(rest), tokens, prompt_tokens=10, completion_tokens=1)


def compare(
    comparer: PairwiseComparer,
    lm: Any,
    item: Item = ITEM,
    other: str = "The other output.",
) -> Any:
    return engine.run(
        comparer.acompare(
            item,
            other,
            lm,
            task="Summaries.",
            aspect="fluency: reads well",
            name="fluency",
        )
    )


# Reading


@pytest.mark.parametrize(
    ("first", "rest", "expected", "share"),
    [
        ({"Better": 0.6, "Worse": 0.3, "Similar": 0.1}, [], [0.6, 0.3, 0.1], 1.0),
        (
            {
                " Better": 0.2,
                "better": 0.1,
                "BETTER": 0.1,
                " worse": 0.3,
                "similar": 0.1,
                "I": 0.2,
            },
            [],
            [0.5, 0.375, 0.125],
            0.8,
        ),
        ({"Sim": 0.5, "Bet": 0.25, "Wor": 0.25}, ["ilar"], [0.25, 0.25, 0.5], 1.0),
        ({"ĠBetter": 0.25, "▁better": 0.25, '"Worse.': 0.5}, [], [0.5, 0.5, 0.0], 1.0),
        ({"B": 0.75, "S": 0.25}, ["e", "t", "t", "e", "r"], [0.75, 0.0, 0.25], 1.0),
        (
            {"Be": 0.5, "Wo": 0.25, "S": 0.25},
            ["tter"],
            [0.5, 0.25, 0.25],
            1.0,
        ),
        ({"Better": 0.5, "S": 0.25, "Be": 0.25}, [], [0.75, 0.0, 0.25], 1.0),
        ({"Better": 0.45, "W": 0.45, "Similar": 0.1}, [], [0.45, 0.45, 0.1], 1.0),
        ({"Betterment": 0.5, "Worst": 0.2}, [], [0.0, 0.0, 0.0], 0.0),
    ],
)
def test_surface_forms_are_added_up(
    first: dict[str, float], rest: list[str], expected: list[float], share: float
) -> None:
    odds, got = word_probabilities(chosen(first, *rest), 0, THREE)
    assert odds == pytest.approx(expected, abs=1e-12)
    assert got == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Better", 0),
        (" **Worse**.", 1),
        ("similar\n", 2),
        ("Output 2 is better than output 1.", 0),
        ("Better. The first one is worse.", 0),
        ("not better", None),
        ("Output 2 isn't worse", None),
        ("Better or Worse", None),
        ("It is better here and worse there", None),
        ("Betterment", None),
        ("", None),
    ],
)
def test_the_word_said(text: str, word: int | None) -> None:
    found = said_word(text, THREE)
    assert (found[0] if found else None) == word


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=60), st.sampled_from(list(WORDS)), st.booleans())
def test_no_answer_is_an_exception(text: str, form: Any, spelled: bool) -> None:
    tokens = (
        tuple(TokenChoice(c, ((c, -0.1), ("Worse", -2.0))) for c in text)
        if spelled
        else None
    )
    read = ComparisonLayout(form).read(Reply(text, tokens), {})
    if read.problem is None:
        c = read.values["comparison"]
        assert c.better + c.worse + c.similar == pytest.approx(1.0)


def test_the_place_of_the_word_is_found_behind_other_tokens() -> None:
    tokens = (
        TokenChoice("**", (("**", 0.0),)),
        TokenChoice("Worse", (("Worse", math.log(0.8)), ("Better", math.log(0.2)))),
    )
    read = ComparisonLayout().read(Reply("**Worse", tokens), {})
    assert read.values["comparison"].worse == pytest.approx(0.8)
    thinking = Reply(
        "<think>better?</think>Worse",
        (TokenChoice("<think>better?</think>", ()), *tokens[1:]),
    )
    assert ComparisonLayout().read(thinking, {}).values[
        "comparison"
    ].worse == pytest.approx(0.8)


# Calling


@pytest.mark.parametrize(
    ("form", "order", "first", "expected", "flipped"),
    [
        (
            "better-worse",
            "other-first",
            {"Better": 0.6, "Worse": 0.3, "Similar": 0.1},
            [0.6, 0.3, 0.1],
            None,
        ),
        (
            "better-worse",
            "output-first",
            {"Better": 0.7, "Worse": 0.2, "Similar": 0.1},
            [0.2, 0.7, 0.1],
            None,
        ),
        (
            "better-worse",
            "both",
            {"Better": 0.7, "Worse": 0.2, "Similar": 0.1},
            [0.45, 0.45, 0.1],
            True,
        ),
        (
            "yes-no",
            "other-first",
            {"Yes": 0.3, " no": 0.1, "No": 0.2, "Maybe": 0.4},
            [0.5, 0.5, 0.0],
            None,
        ),
        (
            "yes-no-first",
            "output-first",
            {"Yes": 0.75, "No": 0.25},
            [0.75, 0.25, 0.0],
            None,
        ),
        (
            "yes-no-first",
            "other-first",
            {"Yes": 0.75, "No": 0.25},
            [0.25, 0.75, 0.0],
            None,
        ),
        ("yes-no-first", "both", {"Yes": 0.75, "No": 0.25}, [0.5, 0.5, 0.0], True),
    ],
)
def test_probabilities_are_of_the_judged_output_whatever_is_asked_in_which_order(
    scripted: Any,
    form: Any,
    order: Any,
    first: dict[str, float],
    expected: Any,
    flipped: bool | None,
) -> None:
    lm, transport = scripted(lambda _: chosen(first), logprobs=True)
    c = compare(PairwiseComparer(form, order=order), lm)
    assert (c.better, c.worse, c.similar) == pytest.approx(expected, abs=1e-12)
    assert (c.flipped, c.answers, c.error, c.share) == (
        flipped,
        0,
        0.0,
        pytest.approx(1 - first.get("Maybe", 0)),
    )
    orders = ["other-first", "output-first"] if order == "both" else [order]
    assert c.usage.calls == len(transport.requests) == len(orders)
    asked = {
        "better-worse": "Compared with output 1, output 2 is:",
        "yes-no": "Is output 2 better than output 1?",
        "yes-no-first": "Is output 1 better than output 2?",
    }[form]
    for request, shown in zip(transport.requests, orders, strict=True):
        assert (request.top_logprobs, request.temperature) == (20, 0.0)
        text = request.messages[-1]["content"]
        assert (text.index("The other output.") < text.index("The judged output.")) == (
            shown == "other-first"
        )
        assert text.endswith(asked)
        assert ("Yes or No" in request.messages[0]["content"]) == (
            form != "better-worse"
        )


def test_trials_draw_answers_of_their_own(scripted: Any) -> None:
    lm, transport = scripted(lambda _: Reply("Better"))
    for trial in (0, 2):
        compare(PairwiseComparer(samples=3, trial=trial), lm)
    assert [request.sample for request in transport.requests] == [0, 1, 2, 6, 7, 8]


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_answers_are_drawn_from_the_probabilities_of_one(
    count: int, scripted: Any
) -> None:
    def found(trial: int) -> Any:
        comparer = PairwiseComparer(trial=trial)
        assert engine.run(comparer.prepare(lm, "drawn", count)) == "drawn"
        return compare(comparer, lm)

    lm, _ = scripted(
        lambda _: chosen({"Better": 0.6, "Worse": 0.3, "Similar": 0.1}), logprobs=True
    )
    trials = [found(trial) for trial in range(40)]
    for c in trials:
        assert c.answers == count
        assert c.better * count == pytest.approx(
            round(c.better * count)
        )  # whole answers
        assert c.better + c.worse + c.similar == pytest.approx(1)
    assert found(3).better == trials[3].better
    none = PairwiseComparer()  # no probabilities, nothing that could be drawn from them
    silent, _ = scripted(lambda _: Reply("Better"))
    engine.run(none.prepare(silent, "drawn", 3))
    assert (compare(none, silent).answers, none.counted) == (3, 0)
    mean, spread = (
        sum(c.better for c in trials) / 40,
        0.6 * 0.4 / count,
    )  # a binomial share: p(1 − p) / n
    assert mean == pytest.approx(0.6, abs=4 * math.sqrt(spread / 40))
    assert len({c.better for c in trials}) > 1


def test_without_log_probabilities_answers_are_counted(scripted: Any) -> None:
    said = ["Better", "Better", "Worse", "Similar", "Better"]
    lm, transport = scripted(lambda r: said[r.sample])
    comparer = PairwiseComparer(samples=5, temperature=0.9)
    c = compare(comparer, lm)
    assert (c.better, c.worse, c.similar) == pytest.approx((0.6, 0.2, 0.2))
    assert c.answers == 5
    # of +1 +1 −1 0 +1: variance .6 + .2 − .4² = .64; √(.64/4) = .4
    assert c.error == pytest.approx(0.4)
    assert sorted(r.sample for r in transport.requests) == [0, 1, 2, 3, 4]
    assert {(r.temperature, r.top_logprobs) for r in transport.requests} == {(0.9, 0)}
    assert math.isnan(Comparison(1.0, 0.0, 0.0, answers=1).error)


def test_sampled_answers_that_cannot_be_read_are_counted(scripted: Any) -> None:
    lm, _ = scripted(lambda r: "Better" if r.sample == 0 else "no idea")
    found = compare(PairwiseComparer(samples=3), lm)
    assert (found.better, found.answers) == (1.0, 1)
    assert found.notes == ("2 of 3 sampled answers could not be read",)
    assert found.usage.calls == 5  # 1 + 2 · 2
    none, _ = scripted(lambda _: "no idea")
    with pytest.raises(CallError, match="asked twice"):
        compare(PairwiseComparer(samples=2), none)


def test_embedded_models_list_more(scripted: Any) -> None:
    lm, transport = scripted(
        lambda _: chosen({"Better": 1.0}), logprobs=True, name="local/small"
    )
    compare(PairwiseComparer(), lm)
    assert transport.requests[0].top_logprobs == 300


def test_log_probabilities_that_are_missing_at_the_answer_are_said(
    scripted: Any,
) -> None:
    lm, _ = scripted(lambda _: "Worse", logprobs=True)
    found = compare(PairwiseComparer(), lm)
    assert found.worse == 1.0
    assert found.notes == (
        "no log-probabilities at the answer; the stated word was taken",
    )


# Demonstrations


def test_a_demonstration_is_a_turn_with_its_score() -> None:
    comparer = PairwiseComparer()
    comparer.predict.demos = [
        {"source": "Another.", "output": "Demo text.", "score": 80.0, "group": "d2"}
    ]
    _, asked, answered, last = comparer.predict.messages(
        comparer.inputs(ITEM, "Other."), group=ITEM.group
    )
    assert "Demo text." in asked["content"]
    assert answered["content"] == "Score: 80 of 100"
    assert last["content"].endswith("Compared with output 1, output 2 is:")
    for item, other in (
        (Item("Own.", "It.", group="d2"), "Else."),
        (ITEM, "Demo text."),
    ):
        alone = comparer.predict.messages(
            comparer.inputs(item, other), group=item.group
        )
        assert len(alone) == 2
        assert "Score: 80" not in alone[0]["content"]


@pytest.mark.parametrize("held", [True, False])
def test_the_tokens_of_a_word_are_multiplied_where_a_model_can_be_held_to_it(
    scripted: Any, held: bool
) -> None:
    def answer(request: Any) -> Reply:
        if request.grammar == 'root ::= ("Worse")':
            tokens = [
                TokenChoice("W", (("W", math.log(0.25)),)),
                TokenChoice("orse", (("orse", math.log(0.8)),)),
            ]
            return Reply("Worse", (*tokens, TokenChoice("", (("", -1.2),))))
        return chosen({"Better": 0.5, "W": 0.25, " Worse": 0.05, "Similar": 0.1})

    lm, transport = scripted(answer, logprobs=True, grammar=held)
    got = compare(PairwiseComparer(), lm)
    # Worse: .25·.8 + .05 = .25 of .85. By the first token alone W counts whole, as it begins no other word: .30 of .9.
    share, worse = (0.85, 0.25) if held else (0.9, 0.3)
    assert (got.better, got.worse, got.similar) == pytest.approx(
        (0.5 / share, worse / share, 0.1 / share)
    )
    assert (got.share, got.usage.calls) == (pytest.approx(share), 1 + held)
    assert len({str(request.messages) for request in transport.requests}) == 1
    assert got.notes == (
        ()
        if held
        else ("the first token was read, which does not spell Worse to its end",)
    )
