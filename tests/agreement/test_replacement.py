"""The alternative annotator test: who is closer to the others."""

import math

import numpy as np
import pytest

from judgesmith.agreement.replacement import alternative_annotator_test, way_to_rater
from judgesmith.errors import LabelsError, OptionError

NAN = float("nan")


def raters(seed: int = 0, rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.uniform(1, 5, rows)
    return truth, truth[:, None] + rng.normal(0, 0.8, (rows, 3))


def test_a_judge_that_knows_the_truth_may_replace_raters_and_one_that_guesses_may_not() -> None:
    truth, table = raters()
    good = alternative_annotator_test(truth, table)
    assert good.passed and good.omega == 1 and good.rho > 0.5 and good.conditions == ()
    bad = alternative_annotator_test(np.random.default_rng(1).uniform(1, 5, len(truth)), table)
    assert not bad.passed and bad.omega == 0 and bad.rho < 0.5


def test_the_shares_of_wins_are_counted_as_in_the_paper() -> None:
    # Rater 1 left out: the judge is 0, 1, 1 from the mean of the others' (both say the same), the rater 1, 1, 0.
    table = np.array([[2.0, 1, 1], [2, 1, 1], [1, 1, 1]])
    found = alternative_annotator_test([1.0, 2, 2], table).raters[0]
    assert (found.rows, found.judge, found.human) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))
    # leads of the rater: -1, 0, 1; mean 0, standard error 1/sqrt(3); t = (0 - 0.2) * sqrt(3), 2 degrees of freedom
    t = -0.2 * math.sqrt(3)
    assert found.p == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)))  # Student's t with 2 degrees, in closed form


def test_rows_of_one_document_do_not_make_it_surer() -> None:
    truth, table = raters(rows=40)
    once = alternative_annotator_test(truth, table).raters[0].p
    codes = np.repeat(range(40), 3)
    thrice = alternative_annotator_test(np.repeat(truth, 3), np.repeat(table, 3, axis=0), documents=codes)
    assert thrice.raters[0].p == pytest.approx(once)


def test_epsilon_is_what_a_rater_costs() -> None:
    truth, table = raters()
    judge = truth + np.random.default_rng(5).normal(0, 0.8, len(truth))
    p = [alternative_annotator_test(judge, table, epsilon=e).raters[0].p for e in (0.0, 0.2, 0.5)]
    assert p[0] > p[1] > p[2]


def test_the_way_to_a_rater_is_nothing_for_a_guess_and_the_whole_for_a_rater() -> None:
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=1500), rng.normal(size=(1500, 5))
    ratings = truth[:, None] + noise[:, :4]
    for judge, share in ((truth + noise[:, 4], 1.0), (noise[:, 4], 0.0), (-truth, None), (truth, None)):
        found = way_to_rater(judge, ratings, rounds=200)
        assert found.low < found.value < found.high
        assert found.value == pytest.approx(share, abs=0.08) if share is not None else abs(found.value) > 1.05
    assert way_to_rater([1, 1, 1, 1], [[1, 2], [2, 3], [3, 4], [4, 6]]).value == 0.0
    assert math.isnan(way_to_rater([1, 2, 3, 4], [[1, 4], [2, 3], [3, 2], [4, 1]]).value)  # raters who disagree


def test_conditions_that_are_not_met_are_said() -> None:
    found = alternative_annotator_test([1, 2, 3, NAN], [[1, 2], [2, 2], [3, NAN], [1, 1]])
    assert len(found.conditions) == 2 and found.to_dict()["conditions"] == list(found.conditions)
    with pytest.raises(LabelsError, match="two raters"):
        alternative_annotator_test([1, 2], [[1], [2]])
    with pytest.raises(OptionError, match="epsilon"):
        alternative_annotator_test([1, 2], [[1, 2], [2, 2]], epsilon=2)
