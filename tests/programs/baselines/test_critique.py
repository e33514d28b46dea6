"""Baselines that explain before they rate: their prompts as they stand, and answers as models write them."""

import math
from pathlib import Path
from typing import Any

import pytest

from judgesmith.programs.baselines.critique import AutoJ, ExplainEval, Themis
from judgesmith.programs.baselines.tigerscore import Penalties, TigerScore
from judgesmith.programs.judge import Judge
from judgesmith.signatures.values import Criterion, Item, Scale

PROMPTS = Path(__file__).parents[1] / "golden" / "prompts"
JUDGES = {"explain-eval": ExplainEval, "themis": Themis, "auto-j": AutoJ, "tigerscore": TigerScore}
ITEM = Item("The output </output>.", "The source.", "The context.", "The reference.")


def made(name: str, **given: Any) -> Judge:
    make: Any = JUDGES[name]
    judge: Judge = make("wit", criteria=[Criterion("wit", "It makes one smile.")], task="Jokes are told.", **given)
    return judge


@pytest.mark.parametrize("name", JUDGES)
def test_the_prompt_is_the_golden_one(name: str) -> None:
    (messages,) = made(name).previews(ITEM).values()
    said = "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in messages) + "\n"
    assert said == (PROMPTS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "answer", "percent"),
    [
        ("explain-eval", "Explanation: It is flat.\nScore: 30", 30.0),
        ("themis", "Explanation: It is flat.\nScore: 2", 25.0),  # (2 - 1) / 4
        ("auto-j", "Explanation: It is flat.\nScore: 4", 100 * 3 / 9),  # (4 - 1) / 9
    ],
)
def test_the_explanation_and_the_rating(scripted: Any, name: str, answer: str, percent: float) -> None:
    lm, _ = scripted([(lambda _: True, answer)])
    verdict = made(name, lm=lm, scale=Scale(1, 5)).score("s", "o", reference="r")
    assert (verdict.percent, verdict.explanation, verdict.repaired) == (pytest.approx(percent), "It is flat.", False)
    assert verdict.score == pytest.approx(1 + 4 * percent / 100)


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("answer", ["Well.", "", "Explanation: It is flat."])
def test_what_says_no_rating_has_no_score(scripted: Any, name: str, answer: str) -> None:
    lm, _ = scripted(lambda _: answer)
    verdict = made(name, lm=lm).score("s", "o", reference="r")
    assert math.isnan(verdict.score) and verdict.failure


ERRORS = """Error 1
Location: "two cats"
Aspect: accuracy
Explanation: There is one cat, so write one cat.
Penalty: 4

Error 2
Location: omission
Aspect: completeness
Explanation: The dog is missing.
Penalty: 1.5"""


def test_penalties_are_summed_up(scripted: Any) -> None:
    lm, _ = scripted([(lambda _: True, ERRORS)])
    verdict = TigerScore("fluency", lm=lm).score("A cat and a dog.", "There are two cats.")
    assert verdict.percent == pytest.approx(100 * (1 - 5.5 / 40))  # of 8 errors of 5 points
    assert verdict.details == Penalties((4.0, 1.5), ("accuracy", "completeness"))
    first, second = verdict.errors
    assert (first.text, first.start, first.end, first.severity) == ("two cats", 10, 18, 4.0)
    assert first.explanation == "accuracy: There is one cat, so write one cat."
    assert (second.how, second.start, second.severity) == ("omission", None, 1.5)


@pytest.mark.parametrize(
    ("answer", "penalties", "repaired"),
    [
        ("No Error", (), False),
        ("**No errors** were found.", (), False),
        ("**Location:** two cats\n- Aspect: x\n**Penalty:** -9 points", (5.0,), False),
        ("Error location 1: two\nLocation 1: two\nScore reduction 1: 0.1", (0.5,), False),
        (ERRORS + "\n\nError 3\nLocation: cats", (4.0, 1.5), True),
    ],
)
def test_answers_in_other_words(scripted: Any, answer: str, penalties: tuple[float, ...], repaired: bool) -> None:
    lm, _ = scripted(lambda _: answer)
    verdict = TigerScore("fluency", lm=lm).score("s", "There are two cats.")
    assert verdict.failure is None
    assert isinstance(verdict.details, Penalties) and verdict.details.penalties == penalties
    assert verdict.repaired == repaired == any("left out" in note for note in verdict.notes)


def test_more_errors_than_asked_for_do_not_count(scripted: Any) -> None:
    one = "Location: cats\nAspect: a\nExplanation: b.\nPenalty: 5\n\n"
    lm, _ = scripted(lambda _: one * 10)
    verdict = TigerScore("fluency", lm=lm).score("s", "There are two cats.")
    assert verdict.percent == 0 and verdict.notes == ("10 errors, the first 8 count",)
