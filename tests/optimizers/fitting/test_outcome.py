"""Cut points between categories and chances of preferences, fitted to raw scores."""

import math
from dataclasses import replace

import numpy as np
import pytest

from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.errors import ArtifactError
from judgesmith.optimizers.fitting.outcome import (
    fit_decision,
    fit_preference,
    places_of,
)
from judgesmith.programs import artifact, loading
from judgesmith.programs.judge import Judge
from judgesmith.programs.outcome import BradleyTerry, Decision
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Verdict


def labels(scores: list[float], names: tuple[str, ...] = ("fail", "pass")) -> Labels:
    levels = tuple(float(n) for n in range(len(names)))
    rows = tuple(
        Row(id=str(n), output=f"o{n}", scores={"overall": score})
        for n, score in enumerate(scores)
    )
    kind = "binary" if len(names) == 2 else "category"
    return Labels(
        rows, "overall", (0, levels[-1]), kind=kind, categories=names, levels=levels
    )


def test_the_cut_stands_in_the_widest_gap_that_agrees_best() -> None:
    found = fit_decision([10, 20, 30, 70, 80, 90], labels([0, 0, 0, 1, 1, 1]))
    assert found == Decision(("fail", "pass"), (50.0,), True)
    assert [found.passed(x) for x in (49.9, 50.0)] == [False, True]


def test_failed_rows_are_left_out_and_too_few_keep_the_middle() -> None:
    assert fit_decision([10, math.nan, 30, 90], labels([0, 1, 0, 1])).cuts == (
        60.0,
    )  # (30 + 90) / 2
    assert fit_decision([10, 20], labels([1, 1])).cuts == (50.0,)
    assert fit_decision([10, 10], labels([0, 1])).cuts == (50.0,)


def test_categories_are_cut_in_order() -> None:
    found = fit_decision(
        [5, 10, 40, 50, 80, 95], labels([0, 0, 1, 1, 2, 2], ("bad", "ok", "good"))
    )
    assert found is not None
    assert found.cuts == (25.0, 65.0)
    assert [found.category(x) for x in (0, 25, 64, 65, 100)] == [
        "bad",
        "ok",
        "ok",
        "good",
        "good",
    ]
    assert found.passed(100) is None


def test_means_of_raters_go_to_the_next_level() -> None:
    assert places_of(labels([0.4, 0.5, 1])).tolist() == [0, 1, 1]


def test_scores_have_no_decision() -> None:
    rows = tuple(
        Row(id=str(n), output="o", scores={"overall": float(n)}) for n in range(5)
    )
    assert fit_decision([1, 2, 3, 4, 5], Labels(rows, "overall", (0, 5))) is None


@pytest.mark.parametrize(
    ("names", "cuts", "binary"),
    [
        (("a",), (), False),
        (("a", "b"), (), True),
        (("a", "a"), (1.0,), True),
        (("a", "b", "c"), (2.0, 1.0), False),
        (("a", "b"), (math.nan,), True),
        (("a", "b", "c"), (1.0, 2.0), True),
    ],
)
def test_what_is_no_decision(
    names: tuple[str, ...], cuts: tuple[float, ...], binary: bool
) -> None:
    with pytest.raises(ArtifactError):
        Decision(names, cuts, binary)


def test_a_saved_judge_decides_as_before(tmp_path: object) -> None:
    judge = Judge(DirectScorer())
    plain = artifact.fingerprint(judge)
    assert "decision" not in artifact.to_dict(judge)
    judge.outcome = replace(
        judge.outcome, decision=Decision(("👎", "👍"), (62.5,), True)
    )
    assert artifact.fingerprint(judge) != plain
    again = loading.build(artifact.Artifact.of(artifact.to_dict(judge)))
    assert again.outcome.decision == judge.outcome.decision
    told = again.outcome(Verdict(math.nan, percent=70.0))
    assert (told.score, told.category, told.passed) == (70.0, "👍", True)
    assert told.to_dict()["passed"] is True
    assert "passed" not in Verdict(1.0).to_dict()


def compared(won: list[float]) -> Labels:
    """One comparison a document: 1 where the first output won, 0 where it lost, 0.5 for a tie."""
    rows = [
        Row(
            id=f"{n}{side}",
            output=f"{side} of {n}",
            group=str(n),
            doc_id=str(n),
            scores={"preference": score},
        )
        for n, first in enumerate(won)
        for side, score in (("a", first), ("b", 1 - first))
    ]
    return Labels(tuple(rows), "preference", (0, 1), kind="preference")


@pytest.mark.parametrize("truth", [BradleyTerry(15, 0.8), BradleyTerry(40)])
def test_what_drew_the_pairs_is_found_again(truth: BradleyTerry) -> None:
    rng = np.random.default_rng(0)
    percents = rng.uniform(0, 100, (2000, 2))
    won = [rng.choice([1.0, 0.5, 0.0], p=truth.chances(a, b)) for a, b in percents]
    found = fit_preference(percents.ravel(), compared(won))
    assert found is not None
    assert found.width == pytest.approx(truth.width, rel=0.15)
    assert found.tie == pytest.approx(truth.tie, rel=0.2)


def test_pairs_that_are_all_ordered_rightly_give_no_certainty() -> None:
    found = fit_preference([60.0, 40.0] * 8, compared([1.0] * 8))
    assert found is not None
    assert found.tie == 0
    assert 0.7 < found.chances(60, 40)[0] < 0.99


def test_failed_rows_are_left_out_and_scores_have_no_chances() -> None:
    labels = compared([1.0] * 4)
    with_a_failure = [60.0, 40.0, 60.0, 40.0, 60.0, 40.0, math.nan, 40.0]
    assert fit_preference(with_a_failure, labels) == fit_preference(
        [60.0, 40.0] * 3, compared([1.0] * 3)
    )
    assert fit_preference([math.nan] * 8, labels) is None
    assert (
        fit_preference([60.0] * 2, Labels(labels.rows[:2], "preference", (0, 1)))
        is None
    )
