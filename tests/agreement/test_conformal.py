"""Conformal intervals: quantiles, whole documents, coverage where the truth is known, what is left to people."""

import math

import numpy as np
import pytest

from judgesmith.agreement.conformal import (
    conformal_quantile,
    deferred,
    independent_rows,
)
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.optimizers.fitting.outcome import calibrated_without, fit_sureness
from judgesmith.programs.outcome import Sureness
from judgesmith.signatures.values import Scale

NAN = float("nan")


def test_the_quantile_of_independent_rows_is_that_of_split_conformal_prediction() -> (
    None
):
    errors = list(range(1, 20))
    assert (
        conformal_quantile(errors, 0.9) == 18
    )  # the ceil(0.9 * 20) = 18th smallest of 19
    assert conformal_quantile(errors, 0.95) == 19
    assert conformal_quantile(errors[:18], 0.95) == math.inf  # 0.95 * 19 > 18
    assert conformal_quantile([], 0.9) == math.inf


def test_rows_that_repeat_their_document_count_once() -> None:
    errors = np.arange(1.0, 11)
    assert (
        conformal_quantile(np.repeat(errors, 5), 0.9, documents=np.repeat(range(10), 5))
        == 10
    )
    assert (
        conformal_quantile(
            np.repeat(errors[:8], 5), 0.9, documents=np.repeat(range(8), 5)
        )
        == math.inf
    )
    assert (
        conformal_quantile(np.repeat(errors[:8], 5), 0.9) == 8
    )  # as if there were 40 documents
    assert independent_rows(
        np.repeat(errors, 5), np.repeat(range(10), 5)
    ) == pytest.approx(10)


def test_rows_that_have_nothing_of_their_document_count_each() -> None:
    # In every document the same errors: nothing tells documents apart.
    assert independent_rows(
        np.tile([1.0, 2, 3, 4], 10), np.repeat(range(10), 4)
    ) == pytest.approx(40)


def world(
    seed: int, documents: int, alike: float
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Raw scores, human ratings on 1..5 and documents of four rows."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(10, 90, documents * 4)
    noise = np.repeat(rng.normal(0, alike, documents), 4) + rng.normal(
        0, math.sqrt(1 - alike**2), documents * 4
    )
    human = np.clip(1 + 4 * truth / 100 + 0.6 * noise, 1, 5)
    return truth, human, [f"d{i // 4}" for i in range(documents * 4)]


@pytest.mark.parametrize("alike", [0.0, 0.6])
def test_intervals_hold_the_promised_share_of_new_rows(alike: float) -> None:
    scale, held = Scale(1, 5), []
    for seed in range(60):
        percent, human, docs = world(seed, 80, alike)
        scores = calibrated_without(percent[:80], human[:80], docs[:80], scale)
        sure = fit_sureness(percent[:80], scores, human[:80], docs[:80], scale)
        assert sure is not None
        assert sure.documents == 20
        assert sure.rows == 80
        said = 1 + 4 * percent[80:] / 100
        found = [
            sure.interval(p, s, scale)
            for p, s in zip(percent[80:].tolist(), said.tolist(), strict=True)
        ]
        assert all(i is not None and 1 <= i.low <= i.high <= 5 for i in found)
        held.append(
            np.mean(
                [
                    i.low <= y <= i.high
                    for i, y in zip(found, human[80:].tolist(), strict=True)
                    if i
                ]
            )
        )
    assert 0.88 <= np.mean(held) <= 0.94


def test_where_the_judge_errs_more_the_interval_is_wider() -> None:
    rng = np.random.default_rng(0)
    percent = rng.uniform(0, 100, 400)
    human = percent + rng.normal(0, np.where(percent > 50, 20, 2))
    sure = fit_sureness(percent, percent, human, range(400), Scale(-100, 200))
    assert sure is not None
    assert sure.expected_error(90) > 3 * sure.expected_error(10)


def test_the_whole_scale_where_rows_are_too_few() -> None:
    sure = fit_sureness(
        np.array([10.0, 50, 90]),
        np.array([1.0, 3, 5]),
        np.array([1.0, 2, 5]),
        "abc",
        Scale(1, 5),
    )
    assert sure is not None
    assert sure.times[sure.coverage.index(0.9)] is None
    interval = sure.interval(50, 3, Scale(1, 5))
    assert interval is not None
    assert (interval.low, interval.high) == (1, 5)
    assert sure.interval(50, 3, Scale(1, 5), coverage=0.77) is None
    assert (
        fit_sureness(
            np.array([NAN]), np.array([NAN]), np.array([1.0]), "a", Scale(1, 5)
        )
        is None
    )


def test_the_mapping_of_a_row_has_not_seen_its_documents_scores() -> None:
    percent, human, docs = world(0, 20, 0.0)
    before = calibrated_without(percent, human, docs, Scale(1, 5))
    human[:4] = 6 - human[:4]
    after = calibrated_without(percent, human, docs, Scale(1, 5))
    assert before[:4].tolist() == after[:4].tolist()
    assert before.tolist() != after.tolist()


def test_rows_without_a_score_go_to_people_first_then_the_least_sure() -> None:
    assert deferred([0.1, 0.9, NAN, 0.5], 0.5).tolist() == [False, True, True, False]
    assert deferred([1, 1, 1], 0.34).tolist() == [
        True,
        True,
        False,
    ]  # 1.02 rows, rounded up; equal ones in order
    assert not deferred([1, 2], 0).any()
    assert deferred([1, 2], 1).all()
    with pytest.raises(OptionError, match="between 0 and 1"):
        deferred([1], 10)


@pytest.mark.parametrize(
    "change",
    [
        {"error": (0.0,)},
        {"error": (1.0, 2.0)},
        {"times": (-1.0,)},
        {"coverage": (1.5,)},
        {"percent": (5.0, 5.0), "error": (1.0, 1.0)},
    ],
)
def test_a_sureness_that_makes_no_sense_is_refused(change: dict) -> None:
    good = {
        "percent": (50.0,),
        "error": (1.0,),
        "coverage": (0.9,),
        "times": (2.0,),
        "rows": 9,
        "documents": 9,
    }
    assert Sureness(**good).times == (2.0,)
    with pytest.raises(ArtifactError):
        Sureness(**(good | change))
