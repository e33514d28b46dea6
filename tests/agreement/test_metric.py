"""Agreement of a whole set as a metric that DSPy averages over rows."""

import statistics
from typing import Any

import dspy
import pytest

import judgesmith as js
from judgesmith.agreement.objectives import Q
from judgesmith.errors import OptionError

ROWS = [dspy.Example(text=f"t{i}", rating=1 + i * 7 % 5, book=str(i // 4)).with_inputs("text") for i in range(20)]


class Saying(dspy.Module):  # type: ignore[misc]
    """A program that gives each text the score of a table; None raises."""

    def __init__(self, scores: list[float | None]) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, text: str) -> dspy.Prediction:
        score = self.scores[int(text[1:])]
        if score is None:
            raise ValueError(text)
        return dspy.Prediction(score=score)


def averaged(metric: Any, scores: list[float | None]) -> float:
    return float(dspy.Evaluate(devset=ROWS, metric=metric, num_threads=2)(Saying(scores)).score)


@pytest.mark.parametrize("name", ["q", "kappa", "pairwise", "closeness"])
def test_what_evaluate_averages_is_the_agreement_of_the_set(name: str) -> None:
    scores: list[float | None] = [row.rating + i * 3 % 4 - i % 3 for i, row in enumerate(ROWS)]
    metric = js.Agreement(name, group_of="book", scale=(1, 5))
    pairs = [(row, dspy.Prediction(score=score)) for row, score in zip(ROWS, scores, strict=True)]
    measured = metric.over(pairs)
    assert averaged(metric, scores) == pytest.approx(100 * measured.value, abs=0.006)
    assert measured.low < measured.value < measured.high


def test_it_prefers_the_right_order_where_a_mean_prefers_the_middle() -> None:
    middle: list[float | None] = [3.0 + i % 2 / 100 for i in range(20)]
    order: list[float | None] = [(row.rating - 3) * 8 for row in ROWS]
    q, mean = js.Agreement("q", scale=(1, 5)), js.Agreement("closeness", scale=(1, 5))
    assert averaged(q, order) == 300 > averaged(q, middle)
    assert averaged(mean, middle) > averaged(mean, order)


def test_failed_rows_and_undefined_agreement_never_win() -> None:
    order: list[float | None] = [float(row.rating) for row in ROWS]
    metric = js.Agreement("q")
    assert 200 < averaged(metric, [None, None, *order[2:]]) < averaged(metric, [None, *order[1:]]) < 300
    assert averaged(metric, [4.0] * 20) == -300
    unread = [(row, dspy.Prediction(score="none" if row is ROWS[0] else row.rating)) for row in ROWS]
    assert metric.over(unread).reached.failed == 1


def test_single_rows_have_a_score_a_yes_or_no_and_feedback() -> None:
    metric = js.Agreement("q", scale=(1, 5), close=0.75)
    good, bad = (metric(ROWS[0], dspy.Prediction(score=ROWS[0].rating + off)) for off in (1, 2))
    assert (float(good), bool(good), float(bad), bool(bad)) == (0.75, True, 0.5, False)
    answers = [metric(ROWS[0], dspy.Prediction(score=score)) for score in (1, 5)]
    assert sum(answers) / 2 == statistics.mean(map(float, answers))  # of one row, whose agreement there is not
    told = metric(ROWS[0], dspy.Prediction(score=4), None, "rate", None)
    assert (told.score, told.feedback) == (0.25, "People gave this output 1, the judge 4: 3 too high.")


def test_a_panel_says_on_which_side_of_other_rows_an_answer_stands() -> None:
    start = [(row, dspy.Prediction(score=1 + i % 5)) for i, row in enumerate(ROWS)]
    metric = js.Agreement(Q(), group_of="book", panel=start)
    good = [metric(row, dspy.Prediction(score=row.rating)) for row in ROWS]
    bad = [metric(row, dspy.Prediction(score=6 - row.rating)) for row in ROWS]
    assert min(bad) >= 0 and max(good) <= 1 and statistics.mean(good) > 0.6 > 0.45 > statistics.mean(bad)
    assert "People gave this output" in metric(ROWS[0], dspy.Prediction(score=5), None, "rate", None).feedback


def test_the_human_score_has_any_name_and_is_asked_for_where_it_could_be_two() -> None:
    assert js.Agreement().human(dspy.Example(text="t", stars=4, id=7).with_inputs("text")) == 4
    assert js.Agreement().human(dspy.Example(text="t", human=2, length=4).with_inputs("text")) == 2
    with pytest.raises(OptionError, match="which field is the human score"):
        js.Agreement().human(dspy.Example(text="t", stars=4, length=7).with_inputs("text"))
    with pytest.raises(OptionError, match="no 'people'"):
        js.Agreement(human_of="people").human(ROWS[0])
