"""Splits: never a group on both sides, near the share, the same for the same seed."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import assert_disjoint, group_folds, holdout_split
from judgesmith.errors import LabelsError, LeakError, OptionError


def make(scores: Sequence[float], groups: Sequence[int] | None = None) -> Labels:
    """One row per score; without `groups` every row is its own."""
    rows = [
        Row(
            id=str(n),
            output=f"o{n}",
            source=f"s{n}",
            doc_id=f"d{n}",
            group=f"g{g}",
            scores={"overall": score},
            line=n,
        )
        for n, (score, g) in enumerate(
            zip(scores, groups or range(len(scores)), strict=True), 1
        )
    ]
    return Labels(tuple(rows), "overall", (1, 5), origin="l.csv")


def ids(labels: Labels) -> list[str]:
    return [row.id for row in labels.rows]


def sizes(labels: Labels) -> list[int]:
    return [labels.groups.count(group) for group in set(labels.groups)]


@st.composite
def grouped(draw: st.DrawFn) -> Labels:
    n = draw(st.integers(6, 60))
    scores = draw(
        st.lists(st.sampled_from([1.0, 2.0, 2.5, 4.0, 5.0]), min_size=n, max_size=n)
    )
    return make(
        scores,
        draw(st.lists(st.integers(0, draw(st.integers(0, n))), min_size=n, max_size=n)),
    )


seeds = st.integers(0, 2**32 - 1)


@given(grouped(), st.floats(0.05, 0.95), seeds)
@settings(max_examples=60, deadline=None)
def test_holdout_properties(labels: Labels, share: float, seed: int) -> None:
    try:
        split = holdout_split(labels, share=share, seed=seed)
    except LabelsError:
        # Singletons with enough of two scores can always be split.
        counts = sorted(np.unique(labels.scores, return_counts=True)[1])
        assert max(sizes(labels)) > 1 or len(counts) < 2 or counts[-2] < 4
        return
    assert set(split.train.groups).isdisjoint(split.heldout.groups)
    assert sorted(ids(split.train) + ids(split.heldout)) == sorted(ids(labels))
    for side in (split.train, split.heldout):
        assert len(side) >= 3
        assert len(set(side.scores)) > 1
    target = min(max(share * len(labels), 3), len(labels) - 3)
    assert abs(len(split.heldout) - target) <= max(sizes(labels))
    again = holdout_split(labels, share=share, seed=seed)
    assert again == split


@given(grouped(), st.integers(2, 8), seeds)
@settings(max_examples=60, deadline=None)
def test_fold_properties(labels: Labels, k: int, seed: int) -> None:
    groups = set(labels.groups)
    with pytest.raises(OptionError, match="k must be at least 2, got 1"):
        group_folds(labels, k=1)
    if len(groups) < 2:
        with pytest.raises(LabelsError, match="one group"):
            group_folds(labels, k=k, seed=seed)
        return
    folds = group_folds(labels, k=k, seed=seed)
    assert len(folds) == min(k, len(groups))
    assert sorted(i for fold in folds for i in ids(fold.heldout)) == sorted(ids(labels))
    for fold in folds:
        assert len(fold.heldout) > 0
        assert set(fold.train.groups).isdisjoint(fold.heldout.groups)
        assert sorted(ids(fold.train) + ids(fold.heldout)) == sorted(ids(labels))
    assert group_folds(labels, k=k, seed=seed) == folds


def test_the_held_out_rows_cover_the_range_and_differ_by_seed() -> None:
    labels = make([float(n) for n in range(40)])
    split = holdout_split(labels, share=0.25, seed=3)
    # ten strata of four rows, one from each: 0-3, 4-7, ...
    assert sorted(int(score) // 4 for score in split.heldout.scores) == list(range(10))
    assert (
        len({tuple(ids(holdout_split(labels, seed=seed).heldout)) for seed in range(5)})
        == 5
    )
    most = holdout_split(
        labels, share=0.75, seed=3
    )  # the few rows to learn from do so, too
    assert sorted(int(score) // 4 for score in most.train.scores) == list(range(10))


def test_a_few_small_groups_beside_a_huge_one() -> None:
    labels = make([1, 2, 3, 4] + [1, 5] * 20, [0, 1, 2, 3] + [9] * 40)
    split = holdout_split(labels, share=0.25)
    # target 11 of 44: the four small groups (4 rows) are nearer than the huge one (40)
    assert ids(split.heldout) == ["1", "2", "3", "4"]


def test_the_other_score_is_not_left_on_one_side() -> None:
    for seed in range(10):
        split = holdout_split(make([5.0] * 20 + [4.0] * 2), seed=seed)
        assert set(split.train.scores) == set(split.heldout.scores) == {4.0, 5.0}


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (make([1, 2, 3, 4, 5, 1], [0] * 6), "l.csv: all 6 rows are in one group"),
        (make([1, 2, 3, 4]), "l.csv: 4 rows cannot be split; at least 6 are needed"),
        (make([3.0] * 8), "l.csv: the 8 groups cannot be split .* 1 different scores"),
        (
            make([3.0] * 8 + [4.0]),
            "l.csv: the 9 groups cannot be split .* 2 different scores",
        ),
        (make([1, 2, 3, 4, 5, 1], [0, 0, 0, 0, 0, 1]), r"largest group: 5 of 6 rows"),
    ],
    ids=["one group", "few rows", "constant", "one other score", "lopsided"],
)
def test_why_there_is_no_holdout(labels: Labels, why: str) -> None:
    with pytest.raises(LabelsError, match=why):
        holdout_split(labels)


@pytest.mark.parametrize("share", [0, 1, -0.1, 25, math.nan])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(OptionError, match="share must lie between 0 and 1"):
        holdout_split(make([1, 2, 3, 4, 5, 6, 7, 8]), share=share)


def test_folds_are_stratified_and_balanced_by_rows() -> None:
    for fold in group_folds(make([float(n) for n in range(20)]), k=5):
        # blocks of five neighbours, one to each fold: 0-4, 5-9, 10-14, 15-19
        assert sorted(int(score) // 5 for score in fold.heldout.scores) == [0, 1, 2, 3]
    # Groups by mean score have 3, 1, 1, 3, 3, 1 rows; two folds: 3+1, 1+3 the other way round, 3+1
    labels = make(
        [1, 1, 1, 2, 3, 4, 4, 4, 5, 5, 5, 6], [0, 0, 0, 1, 2, 3, 3, 3, 4, 4, 4, 5]
    )
    assert sorted(len(fold.heldout) for fold in group_folds(labels, k=2)) == [5, 7]


@pytest.mark.parametrize("drawn", [20, 8, 3])
def test_rows_that_were_chosen_are_learnt_from_and_not_measured_on(drawn: int) -> None:
    labels = make([float(1 + n % 5) for n in range(40)])
    labels = replace(
        labels,
        rows=tuple(
            replace(row, suggested=n >= drawn) for n, row in enumerate(labels.rows)
        ),
    )
    split = holdout_split(labels, share=0.25)
    if drawn == 3:  # too few to be held out: chosen ones are held out, too
        assert len(split.heldout) == 10
        assert any(split.heldout.suggested)
        assert any(any(fold.heldout.suggested) for fold in group_folds(labels, k=4))
        return
    assert len(split.heldout) == {20: 10, 8: 5}[drawn] == 40 - len(split.train)
    assert not any(split.heldout.suggested)
    assert sum(len(fold.heldout) for fold in group_folds(labels, k=4)) == drawn


def test_a_shared_group_is_named() -> None:
    labels = make([1, 2, 3, 4], [0, 1, 1, 2])
    with pytest.raises(
        LeakError, match="group 'g1' is in both the training and the held-out rows"
    ):
        assert_disjoint(labels.subset([0, 1]), labels.subset([2, 3]))
