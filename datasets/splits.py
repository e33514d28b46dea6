"""Splits that keep a group whole, so that what is reported was never seen by what is reported on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.duplicates import shared
from judgesmith.datasets.records import Labels
from judgesmith.errors import LabelsError, LeakError, OptionError

MIN_SIDE = 3  # rows; a correlation over fewer is always -1, 0 or 1
_DRAWS = 100
MOST_DRAWN = (
    0.75  # of the rows drawn at random that are held out, where others were chosen
)
_Rows: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """Two parts of one set of labels that share no group.

    shown: the rows to learn from with the labels of all aspects, where `train` has those with a label of one.
    """

    train: Labels
    heldout: Labels
    shown: Labels | None = None


def holdout_split(labels: Labels, *, share: float = 0.25, seed: int = 0) -> Split:
    """Hold out about `share` of the rows, in whole groups, from the whole range of scores.

    Groups are ordered by mean score and cut into strata; one group is drawn from each stratum in turn. Both sides have
    at least 3 rows and more than one score. Groups that share texts are merged first (`duplicates`); the rows of both
    sides bear the merged names. The same labels, share and seed give the same split. Rows that `suggest` chose are
    learnt from and not held out, where the others can be split (and at most three quarters of these are held out).

    Args:
        labels: The rows to split.
        share: The share of rows to hold out, between 0 and 1.
        seed: Seed of the draw.

    Raises:
        LabelsError: If no such split was found, with the reason.
        OptionError: For a share outside (0, 1).
    """
    if not 0 < share < 1:
        raise OptionError(f"share must lie between 0 and 1, got {share}")
    labels = labels.grouped
    drawn = labels.subset(np.flatnonzero(~labels.suggested))
    if 0 < len(drawn) < len(labels):
        with suppress(LabelsError):
            held = set(
                _holdout(
                    drawn, min(share * len(labels) / len(drawn), MOST_DRAWN), seed
                ).heldout.groups
            )
            out = np.array([name in held for name in labels.groups])
            return Split(
                labels.subset(np.flatnonzero(~out)),
                labels.subset(np.flatnonzero(out & ~labels.suggested)),
            )
    return _holdout(labels, share, seed)


def _holdout(labels: Labels, share: float, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    scores = labels.scores
    groups = _by_mean(labels, rng)
    if len(groups) < 2:
        raise LabelsError(
            f"{labels.origin}: all {len(labels)} rows are in one group (the same source, doc_id or group), so none can"
            " be held out; add rows with other sources, or a doc_id or group column that tells them apart"
        )
    if len(labels) < 2 * MIN_SIDE:
        raise LabelsError(
            f"{labels.origin}: {len(labels)} rows cannot be split; at least {2 * MIN_SIDE} are needed,"
            f" {MIN_SIDE} on each side; add rows"
        )
    target = min(share * len(labels), len(labels) - MIN_SIDE)
    best: NDArray[np.bool_] | None = None
    for _ in range(_DRAWS):
        held = _draw(groups, len(labels), target, share, rng)
        closer = best is None or abs(held.sum() - target) < abs(best.sum() - target)
        if closer and _usable(scores[held]) and _usable(scores[~held]):
            best = held
    if best is None:
        raise LabelsError(
            f"{labels.origin}: the {len(groups)} groups cannot be split so that both sides have {MIN_SIDE} rows and"
            f" more than one score (largest group: {max(len(group) for group in groups)} of {len(labels)} rows,"
            f" {len(np.unique(scores))} different scores); add rows with other sources or other scores"
        )
    return _split(labels, best)


def group_folds(labels: Labels, *, k: int = 5, seed: int = 0) -> list[Split]:
    """Return `k` splits, or as many as there are groups if these are fewer; each row is held out in exactly one.

    Neighbours in the order of mean scores go to different folds, larger groups to the folds with fewer rows. A fold may
    be small or have one score only: pool the held-out rows of all folds. Groups are merged as in `holdout_split`; rows
    that `suggest` chose are held out, but not kept among a fold's held-out rows where enough others are.

    Raises:
        LabelsError: If there is one group only.
        OptionError: For k < 2.
    """
    if k < 2:
        raise OptionError(f"k must be at least 2, got {k}")
    rng = np.random.default_rng(seed)
    labels = labels.grouped
    groups = _by_mean(labels, rng)
    k = min(k, len(groups))
    if k < 2:
        raise LabelsError(
            f"{labels.origin}: all {len(labels)} rows are in one group (the same source, doc_id or group);"
            " folds need at least 2"
        )
    fold_of = np.empty(len(labels), dtype=np.intp)
    sizes = np.zeros(k, dtype=np.intp)
    for start in range(0, len(groups), k):
        block = sorted(groups[start : start + k], key=lambda group: -len(group))
        emptiest = np.lexsort((rng.random(k), sizes))
        for fold, group in zip(
            emptiest, block, strict=False
        ):  # the last block may be short
            fold_of[group] = fold
            sizes[fold] += len(group)
    splits = [_split(labels, fold_of == fold) for fold in range(k)]
    drawn = []
    for split in splits:
        chosen = np.flatnonzero(~split.heldout.suggested)
        drawn.append(Split(split.train, split.heldout.subset(chosen)))
    scores = [split.heldout.scores for split in drawn]
    if min(map(len, scores)) == 0 or not _usable(np.concatenate(scores)):
        return splits
    return drawn


def assert_disjoint(train: Labels, heldout: Labels) -> None:
    """Check that two sets of labels share no group and no text, by the rule of `duplicates`.

    Which texts are templates is decided by the training rows.

    Raises:
        LeakError: If they do, with an example.
    """
    names = sorted(set(train.groups) & set(heldout.groups))
    if names:
        raise LeakError(
            f"group {names[0]!r} is in both the training and the held-out rows ({len(names)} shared in all);"
            " split with holdout_split or group_folds, which keep groups whole"
        )
    met = shared(train.rows, heldout.rows, train.template_share)
    if met:
        learnt = train.rows[met[0].one]
        held_out = heldout.rows[met[0].other]
        raise LeakError(
            f"held-out row {held_out.id} (group {held_out.group!r}) repeats the {met[0].common} of training row "
            f"{learnt.id}, equal or nearly so ({len(met)} such groups in all); remove these rows from one side, or "
            "split all rows with holdout_split or group_folds"
        )


def _by_mean(labels: Labels, rng: np.random.Generator) -> list[_Rows]:
    """The rows of each group, from the lowest mean score to the highest, equal means in random order."""
    members: dict[str, list[int]] = {}
    for index, name in enumerate(labels.groups):
        members.setdefault(name, []).append(index)
    scores = labels.scores
    groups = [np.array(rows) for rows in members.values()]
    return sorted(
        (groups[i] for i in rng.permutation(len(groups))),
        key=lambda rows: float(scores[rows].mean()),
    )


def _draw(
    groups: Sequence[_Rows],
    rows: int,
    target: float,
    share: float,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """One random choice of held-out groups, as a mask over the rows.

    The smaller side is drawn: with more strata than half of the groups, the last ones are one group each, and the best
    groups would all be held out.
    """
    if share > 0.5:
        return ~_draw(groups, rows, rows - target, 1 - share, rng)
    strata = min(max(round(share * len(groups)), 1), len(groups))
    parts = np.array_split(np.arange(len(groups)), strata)
    shuffled = [rng.permutation(stratum) for stratum in parts]
    rounds = []
    for turn in range(max(map(len, shuffled))):
        for place in rng.permutation(strata):
            if turn < len(shuffled[place]):
                rounds.append(shuffled[place][turn])
    held = np.zeros(rows, dtype=np.bool_)
    taken = 0
    for index in rounds:
        size = len(groups[index])
        if taken < MIN_SIDE or abs(taken + size - target) < abs(taken - target):
            held[groups[index]] = True
            taken += size
    return held


def _usable(scores: NDArray[np.float64]) -> bool:
    return len(scores) >= MIN_SIDE and len(np.unique(scores)) > 1


def _split(labels: Labels, held: NDArray[np.bool_]) -> Split:
    return Split(
        labels.subset(np.flatnonzero(~held)), labels.subset(np.flatnonzero(held))
    )
