"""Baselines that explain before they rate: their prompts as they stand, and answers as models write them."""

import math
from pathlib import Path
from typing import Any

import pytest

from judgesmith.programs.baselines.critique import AutoJ, ExplainEval, Themis
from judgesmith.programs.judge import Judge
from judgesmith.signatures.values import Criterion, Item, Scale

PROMPTS = Path(__file__).parents[1] / "golden" / "prompts"
JUDGES = {"explain-eval": ExplainEval, "themis": Themis, "auto-j": AutoJ}
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
