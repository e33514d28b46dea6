"""What is read out of the answers that models really give, what is repaired, and what is refused."""

import json
import math
import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import cases, table

from judgesmith.programs.answers.criteria import read_criteria, read_criteria_list
from judgesmith.programs.answers.likely import expectation
from judgesmith.programs.answers.reading import read_overall
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.prompting.forms import Form, Line, number
from judgesmith.programs.prompting.layouts import CriteriaLayout, OverallLayout
from judgesmith.signatures.values import Criterion, Scale

CASES = cases(__file__)

FIVE, HUNDRED = Scale(1, 5), Scale(0, 100)
ONE_LINE = Form(number(FIVE))
BEFORE = Form(Line("Explanation", ""), number(FIVE)).fits
BEFORE_HUNDRED = Form(Line("Explanation", ""), number(HUNDRED)).fits


def loosely(form: Form) -> Callable[[str], bool]:
    return partial(form.fits, between=r"\s+")


# Percent on 1..5: 1 → 0, 2 → 25, 3 → 50, 4 → 75, 5 → 100.
ASKED_FORM = [
    ("Explanation: It is clear.\n\nScore: 1", 0),
    ("  Explanation: It is clear.\nScore: 5\n", 100),
    ("Explanation: Three errors: a, b and c; 2 of 3 are grave.\nScore: 2", 25),
]

REPAIRED = CASES["repaired"]
REFUSED = [*CASES["refused"], "Score: " + "9" * 400, "Score: 4/" + "9" * 400]


@pytest.mark.parametrize(
    ("text", "percent", "repaired"),
    [(*read, False) for read in ASKED_FORM] + [(*read, True) for read in REPAIRED],
)
def test_an_unambiguous_answer_is_read_and_marked_where_repaired(
    text: str, percent: float, repaired: bool
) -> None:
    read = read_overall(Reply(text), FIVE, BEFORE)
    assert (read.said, read.repaired, read.problem) == (percent, repaired, None)
    assert math.isnan(read.expected)  # no log-probabilities in this reply


@pytest.mark.parametrize("text", REFUSED)
def test_an_answer_that_could_mean_several_things_is_a_problem(text: str) -> None:
    read = read_overall(Reply(text), FIVE, BEFORE)
    assert read.problem
    assert math.isnan(read.said)
    assert math.isnan(read.expected)


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        *(
            ("Score: 0", 0),
            ("Score: 100", 100),
            ("Score: 100%", 100),
            ("Score: 85/100", 85),
            ("Score: 87.5", 87.5),
        ),
        *(
            (f"Score: {said}", None)
            for said in ("101", "-0.5", "1,000", "80-90", "8/10")
        ),
    ],
)
def test_a_hundred_is_read_too(text: str, percent: float | None) -> None:
    read = read_overall(Reply(text), HUNDRED, BEFORE_HUNDRED)
    assert (
        read.problem
        if percent is None
        else (read.problem, read.said) == (None, percent)
    )


def test_scores_that_an_explanation_copies_from_the_prompt_do_not_count() -> None:
    copied = "Explanation: meaning: It says the same. Score: 4.4/5\nfluency: It reads well. Score: 4.9/5\nScore: 4"
    read = read_overall(Reply(copied), FIVE, BEFORE)
    assert (read.problem, read.said) == (None, 75)
    assert read_overall(
        Reply(copied.replace("\nScore: 4", " Score: 4")), FIVE, BEFORE
    ).problem


def test_a_problem_names_its_kind_and_quotes_the_answer_shortly() -> None:
    def problem(text: str, finish: str = "stop") -> str:
        return read_overall(Reply(text, finish=finish), FIVE, BEFORE).problem or ""

    assert "empty" in problem(" ")
    assert "outside 1..5" in problem("Score: 42")
    assert "2 different scores" in problem("Score: 4\nScore: 2")
    assert "2 different scores" in problem("Score: 4\nWait, actually score: 2")
    assert "cut off" in problem("Explanation: It goes on and on and", "length")
    assert "cut off" not in problem("Explanation: It goes on and on and")
    assert len(problem("Explanation: " + "on and " * 500)) < 250


def test_a_number_that_the_token_limit_may_have_cut_is_not_believed() -> None:
    cut = Reply(
        "Explanation: Mostly fine.\nScore: 8", finish="length"
    )  # 8, or the start of 85?
    assert "cut off" in (read_overall(cut, HUNDRED, BEFORE_HUNDRED).problem or "")
    # A digit on 1..5 is whole, and so is a number after which something else was begun.
    assert read_overall(cut, Scale(1, 9), BEFORE).said == 87.5  # (8-1)/(9-1)
    begun = Reply("Score: 8\nExplanation: Mostly", finish="length")
    assert read_overall(begun, HUNDRED, BEFORE_HUNDRED).said == 8


@pytest.mark.parametrize(("text", "explanation"), CASES["explanations"])
def test_the_explanation_is_found_wherever_it_stands(
    text: str, explanation: str
) -> None:
    assert read_overall(Reply(text), FIVE, BEFORE).explanation == explanation


@pytest.mark.parametrize(
    "text", ["Score: 85", "Score: 85\nExplanation: It is", "Score: 85\n"]
)
def test_a_brief_answer_may_stop_anywhere_after_its_score(text: str) -> None:
    # No explanation is waited for, so that one cut short, or none, is the asked form.
    assert (
        OverallLayout("after", "said", brief=True)
        .read(Reply(text, finish="length"), {})
        .repaired
        is False
    )


# Expectations over the digits' probabilities


def digits(
    text: str, token: str, choices: dict[str, float], *, before: tuple[str, ...] = ()
) -> Reply:
    """A reply of tokens `before`, then `token` with the choices' probabilities, then the rest in one token."""
    head = "".join(before)
    rest = text[len(head) + len(token) :]
    assert head + token + rest == text
    tokens = [TokenChoice(t, ((t, 0.0),)) for t in before]
    tokens.append(
        TokenChoice(token, tuple((t, math.log(p)) for t, p in choices.items()))
    )
    if rest:
        tokens.append(TokenChoice(rest, ((rest, 0.0),)))
    return Reply(text, tuple(tokens))


@pytest.mark.parametrize(("token", "choices", "mean", "mass"), CASES["expectations"])
def test_the_expectation_is_the_mean_digit(
    token: str, choices: dict[str, float], mean: float, mass: float
) -> None:
    reply = digits("Score: 4", token, choices, before=("Score:", " ")[: 3 - len(token)])
    assert expectation(reply, 7, FIVE) == (pytest.approx(mean), pytest.approx(mass))


def test_read_overall_uses_the_expectation_where_enough_probability_is_on_digits() -> (
    None
):
    reply = digits("Score: 4", "4", {"4": 0.5, "2": 0.5}, before=("Score: ",))
    read = read_overall(reply, FIVE, BEFORE)
    assert (read.said, read.expected, read.mass) == (
        75.0,
        pytest.approx(50.0),
        pytest.approx(1.0),
    )  # mean of 4 and 2
    low = digits("Score: 4", "4", {"4": 0.05, "x": 0.9}, before=("Score: ",))
    read = read_overall(low, FIVE, BEFORE)
    assert read.said == 75.0
    assert math.isnan(read.expected)  # 5 % on digits is below the asked 10 %
    assert read.mass == pytest.approx(0.05)


@pytest.mark.parametrize(
    "reply",
    [
        Reply("Score: 4"),
        Reply("Score: 4", ()),
        digits("Score: 4.5", "4.5", {"4.5": 1.0}, before=("Score: ",)),
        digits("Score: 4.5", "4", {"4": 1.0}, before=("Score: ",)),
        digits("Score: 42", "4", {"4": 1.0}, before=("Score: ",)),
        digits("Score: 42", "42", {"42": 0.6, "4": 0.4}, before=("Score: ",)),
        digits("Score: 4", "4", {"x": 1.0}, before=("Score: ",)),
        Reply("Score: 4", (TokenChoice("Score: ", ()), TokenChoice("4", ()))),
    ],
    ids=[
        "none",
        "empty",
        "4.5 in one",
        "4.5 in two",
        "42 in two",
        "42 in one",
        "no digit",
        "no alternatives",
    ],
)
def test_without_a_single_digit_token_there_is_no_expectation(reply: Reply) -> None:
    mean, mass = expectation(reply, 7, FIVE)
    assert math.isnan(mean)
    assert mass == 0.0


def test_token_texts_that_do_not_add_up_to_the_text_give_no_wrong_digit() -> None:
    # The first two tokens are bytes of one character: three characters of tokens for one of text.
    text = "Explanation: It’s 5 stars.\nScore: 2"
    parts = ["Explanation: It", "\\xe2", "\\x80\\x99", "s ", "5", " stars.\nScore: "]
    tokens = [TokenChoice(p, ((p, 0.0),)) for p in parts]
    tokens.append(TokenChoice("2", (("2", math.log(0.5)), ("1", math.log(0.5)))))
    read = read_overall(Reply(text, tuple(tokens)), FIVE, BEFORE)
    assert read.said == 25.0
    assert read.expected == pytest.approx(12.5)  # aligned from the end: 1.5 → 0.5/4
    # Where neither end fits, nothing is guessed.
    torn = (TokenChoice("5", (("5", 0.0),)), *tokens, TokenChoice("<|im_end|>", ()))
    assert math.isnan(read_overall(Reply(text, torn), FIVE, BEFORE).expected)
    shifted = (TokenChoice("xxxxxxx", ()), TokenChoice("5", (("5", 0.0),)))
    assert math.isnan(read_overall(Reply("Score: 2", shifted), FIVE, BEFORE).expected)


@pytest.mark.parametrize("logprob", [math.inf, 1e6, math.nan, -math.inf, -9999.0])
def test_senseless_log_probabilities_never_raise_and_never_leave_the_scale(
    logprob: float,
) -> None:
    tokens = (
        TokenChoice("Score: ", ()),
        TokenChoice("4", (("4", logprob), ("2", math.log(0.2)))),
    )
    read = read_overall(Reply("Score: 4", tokens), FIVE, BEFORE)
    assert read.said == 75.0
    assert math.isnan(read.expected) or 0 <= read.expected <= 100


# Several criteria

CRITERIA = (
    Criterion("Fluency", "It reads well."),
    Criterion("Factual accuracy", "It is true."),
    Criterion("Coverage", "Nothing is missing."),
)


def scores(
    text: str,
    *,
    scale: Scale = FIVE,
    criteria: tuple[Criterion, ...] = CRITERIA,
    explained: bool = True,
):  # type: ignore[no-untyped-def]
    layout = CriteriaLayout(
        "before" if explained else "none", "expected" if scale == FIVE else "said"
    )
    form = layout.form({"criteria": criteria})
    read = read_criteria(
        Reply(text), scale, criteria, loosely(form), expected=False, explained=explained
    )
    return read, {
        name: s.score for name, s in read.values.get("criteria_scores", {}).items()
    }


GOOD = {"Fluency": 75.0, "Factual accuracy": 25.0, "Coverage": 100.0}

LINES = "Fluency: Reads well. Score: 4\nFactual accuracy: One error. Score: 2\nCoverage: All there. Score: 5"


@pytest.mark.parametrize(
    "text",
    table(__file__, "answers_cases"),
)
def test_other_clear_forms_are_repaired_and_marked(text: str) -> None:
    read, found = scores(text)
    assert found == GOOD
    assert read.repaired
    assert read.problem is None


def test_a_name_inside_another_explanation_is_not_that_criterions_answer() -> None:
    read, found = scores(
        "Fluency: Good, coverage: see below. Score: 4\nFactual accuracy: One error. Score: 2\nCoverage: Ok. Score: 5"
    )
    assert (found, read.repaired) == (GOOD, False)
    assert list(found) == [c.name for c in CRITERIA]
    assert (
        read.values["criteria_scores"]["Factual accuracy"].explanation == "One error."
    )


def test_two_scores_for_one_criterion_are_none() -> None:
    _, found = scores(
        LINES.replace("Reads well.", "First I thought: Score: 1, but no.")
    )
    assert math.isnan(found["Fluency"])
    assert found["Coverage"] == 100.0


def test_without_explanations_an_explanation_is_not_the_asked_form() -> None:
    plain = "Fluency: Score: 4\nFactual accuracy: Score: 2\nCoverage: Score: 5"
    read, found = scores(plain, explained=False)
    assert (found, read.repaired) == (GOOD, False)
    read, found = scores(LINES, explained=False)
    assert (found, read.repaired) == (GOOD, True)
    assert read.values["criteria_scores"]["Fluency"].explanation == ""
    assert scores(plain)[0].repaired


@pytest.mark.parametrize("line", CASES["unclear"])
def test_a_criterion_without_a_clear_score_is_nan(line: str) -> None:
    read, found = scores(
        f"Fluency: Reads well. Score: 4\n{line}\nCoverage: All there. Score: 5"
    )
    assert math.isnan(found["Factual accuracy"])
    assert (found["Fluency"], found["Coverage"]) == (75.0, 100.0)
    assert (read.repaired, read.problem) == (True, None)


def test_more_than_half_missing_is_a_problem_that_names_them() -> None:
    read, _ = scores("Fluency: Reads well. Score: 4")
    assert "Factual accuracy, Coverage" in (read.problem or "")
    read, found = scores("Fluency: Reads well. Score: 4", criteria=CRITERIA[:2])
    assert read.problem is None  # exactly half
    assert found["Fluency"] == 75.0


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "I cannot judge this.", "Score: 4", "42", "{}", "[]", "{{{", "null"],
)
def test_an_answer_without_criteria_is_a_problem(text: str) -> None:
    assert scores(text)[0].problem


@pytest.mark.parametrize(
    "name",
    [
        "C++ (style)",
        "Tone & voice",
        "Well-formedness",
        "Is it true?",
        "Klarheit und Stil",
    ],
)
def test_names_with_signs_and_one_inside_another_are_told_apart(name: str) -> None:
    pair = (Criterion(f"{name} guide", "y"), Criterion(name, "x"))
    read, scored = scores(
        f"{name} guide: Followed. Score: 5\n{name}: Poor. Score: 1", criteria=pair
    )
    assert (scored, read.repaired) == ({f"{name} guide": 100.0, name: 0.0}, False)


def test_a_hundred_on_criteria_and_a_cut_number() -> None:
    pair = CRITERIA[:2]
    _, found = scores(
        "Fluency: Well. Score: 80\nFactual accuracy: Ok. Score: 0",
        scale=HUNDRED,
        criteria=pair,
    )
    assert found == {"Fluency": 80.0, "Factual accuracy": 0.0}
    cut = Reply(
        "Fluency: Well. Score: 80\nFactual accuracy: Ok. Score: 9", finish="length"
    )
    read = read_criteria(
        cut, HUNDRED, pair, loosely(ONE_LINE), expected=False, explained=True
    )
    assert read.values["criteria_scores"]["Fluency"].score == 80.0
    assert math.isnan(
        read.values["criteria_scores"]["Factual accuracy"].score
    )  # 9, or the start of 95?


def test_criteria_take_the_expectation_at_their_own_place() -> None:
    text, two = "Fluency: Score: 4\nCoverage: Score: 2", (CRITERIA[0], CRITERIA[2])
    tokens = [TokenChoice(c, ((c, 0.0),)) for c in text]
    tokens[16] = TokenChoice("4", (("4", math.log(0.5)), ("5", math.log(0.5))))
    tokens[-1] = TokenChoice("2", (("2", math.log(0.03)), ("x", math.log(0.9))))
    read = read_criteria(
        Reply(text, tuple(tokens)),
        FIVE,
        two,
        loosely(ONE_LINE),
        expected=True,
        explained=False,
    )
    assert read.values["criteria_scores"]["Fluency"].score == pytest.approx(
        87.5
    )  # 4.5 → 3.5/4
    assert (
        read.values["criteria_scores"]["Coverage"].score == 25.0
    )  # too little probability on digits: as said


# Lists of criteria


@pytest.mark.parametrize(("text", "kept"), [*CASES["criteria"], ("[" * 5000, [])])
def test_criteria_are_read_from_json_and_from_lines(
    text: str, kept: list[list[str]]
) -> None:
    assert [[c.name, c.definition] for c in read_criteria_list(text)] == kept


def test_at_most_so_many_are_kept_and_they_are_short_and_without_markup() -> None:
    many = json.dumps(
        [{"name": f"**Name {i}** <b>", "definition": "word " * 200} for i in range(30)]
    )
    kept = read_criteria_list(many, most=7)
    assert [c.name for c in kept] == [f"Name {i} b" for i in range(7)]
    assert all(0 < len(c.definition) <= 300 for c in kept)


# Whatever a model writes

PIECES = [
    *"0123456789",
    *" \n\t:.,/%-–*_`\"'{}[]()<>+#|=",
    "Score",
    "Rating: ",
    "Explanation: ",
    "Overall ",
    "out of ",
    "on a scale of 1 to ",
    "Fluency",
    "Coverage: ",
    '{"name": ',
    "²",
    "٤",
    "①",
    "\u00a0",
    "\x00",
    "🙂",
]
FRAGMENTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
ANSWERS = st.one_of(
    FRAGMENTS,
    st.text(max_size=60),
    st.floats().map("Score: {}".format),
    st.integers().map(str),
)


@given(
    ANSWERS, st.sampled_from([FIVE, HUNDRED]), st.sampled_from(["stop", "length", ""])
)
def test_no_answer_raises_and_every_score_is_on_the_scale_or_nan(
    text: str, scale: Scale, finish: str
) -> None:
    tokens = tuple(TokenChoice(c, ((c, -0.5), ("3", -1.5))) for c in text)
    for reply in (Reply(text, finish=finish), Reply(text, tokens, finish=finish)):
        read = read_overall(reply, scale, BEFORE)
        assert math.isnan(read.said) is (read.problem is not None)
        for value in (read.said, read.expected):
            assert math.isnan(value) or 0 <= value <= 100
        form = CriteriaLayout().form({"criteria": CRITERIA})
        for expected in (True, False):
            found = read_criteria(
                reply, scale, CRITERIA, loosely(form), expected=expected, explained=True
            )
            assert all(
                math.isnan(s.score) or 0 <= s.score <= 100
                for s in found.values.get("criteria_scores", {}).values()
            )
            assert found.problem or set(found.values["criteria_scores"]) == {
                c.name for c in CRITERIA
            }


def is_explanation(text: str) -> bool:
    """Tell whether a text has something to see, and nothing that may be a score."""
    seen = any(c.isprintable() and not c.isspace() for c in text)
    return seen and re.search(r"(?i)\d|score|rating", text) is None


@given(
    st.text(
        st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=80
    ).filter(is_explanation),
    st.integers(1, 5),
)
@example("Fi\u00adne.", 4)
@example("\u200bFine.\u200e", 4)
def test_the_asked_form_is_always_read_and_never_marked(words: str, digit: int) -> None:
    read = OverallLayout("before", "expected").read(
        Reply(f"Explanation: {words}\nScore: {digit}"), {}
    )
    assert read.values["score"] == (digit - 1) * 25
    assert not read.repaired


def test_visible_thoughts_of_a_reasoning_model_are_no_scores() -> None:
    text = (
        "<think>Score: 2 at first, or Score: 3.</think>\nExplanation: Fine.\nScore: 4"
    )
    found = OverallLayout("before", "expected").read(Reply(text), {})
    assert found.problem is None
    assert found.values == {
        "score": pytest.approx(75.0),
        "explanation": "Fine.",
    }  # (4 - 1) / (5 - 1)
