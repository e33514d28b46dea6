"""Perturbed copies of labelled outputs: what they score, where they may stand, and when they are used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.datasets.records import Labels, Row
from judgesmith.datasets.splits import Split, group_folds
from judgesmith.errors import LeakError, OptionError
from judgesmith.optimizers.augmentation import (
    KEPT,
    apart,
    augment,
    refuse_leak,
    try_augmentation,
    with_copies,
)
from judgesmith.optimizers.examples import Scored
from judgesmith.optimizers.search.base import SearchRecord, Trial
from judgesmith.signatures.values import Verdict

TOWNS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gum", "Hazel", "Ivy", "Juniper", "Kapok", "Larch")


def labels_of(aspect: str = "overall", documents: int = 12, scale: tuple[float, float] = (1, 5)) -> Labels:
    """Two outputs a document: the full log, scored 5 or 4, and its first sentence, scored 1 or 2."""
    rows = []
    for i, town in enumerate(TOWNS[:documents]):
        short = f"The ferry to {town} left at {i + 3} in the morning with Captain Miller."
        full = f"{short} It carried {i + 40} people and one dog. Nobody in {town} had expected it so early."
        for system, text, share in (("long", full, 1 - i % 2 / 4), ("short", short, i % 2 / 4)):
            score = scale[0] + share * (scale[1] - scale[0])
            rows.append(
                Row(f"{town}-{system}", text, f"Log of {town}", system=system, doc_id=f"d{i}", group=f"g{i}",
                    scores={aspect: score, "other": 3.0}, ratings={aspect: (score, score)})
            )  # fmt: skip
    return Labels(tuple(rows), aspect, scale)


def test_copies_are_worse_and_stand_with_their_originals() -> None:
    labels = labels_of()
    found = augment(labels)
    originals = {row.id: row for row in labels.rows}
    assert (
        len(found) == 12 == len(found.sources) == sum(found.perturbations.values())
    )  # half of 24 rows, one of each good one
    assert len(set(found.sources)) == 12 and len(found.perturbations) >= 6
    for row, source in zip(found.labels.rows, found.sources, strict=True):
        original = originals[source]
        assert original.system == "long" and row.output != original.output
        assert (row.group, row.doc_id, row.source) == (original.group, original.doc_id, original.source)
        degree = row.id.rpartition(":")[2]
        kept = KEPT.get(degree, KEPT["only"])  # type: ignore[call-overload]
        # a 5 on 1..5 becomes 1 + 0.75 * 4 = 4 by minor, 1 + 0.4 * 4 = 2.6 by major perturbation, else 1 + 0.25 * 4 = 2
        assert row.scores == {"overall": pytest.approx(1 + kept * (original.scores["overall"] - 1))}
        assert row.scores["overall"] < original.scores["overall"] and row.ratings == {}
        assert row.system == "long+perturbed" and row.id not in originals
    assert augment(labels).labels.fingerprint() == found.labels.fingerprint()
    assert augment(labels, seed=1).labels.fingerprint() != found.labels.fingerprint()


def test_the_best_come_first_and_no_more_than_asked() -> None:
    found = augment(labels_of(), most=0.25)
    assert len(found) == 6
    assert {dict(zip(TOWNS, range(12), strict=True))[s.partition("-")[0]] % 2 for s in found.sources} == {0}  # the 5s


def test_a_known_aspect_is_perturbed_where_it_hurts() -> None:
    names = {name.partition(":")[0] for name in augment(labels_of("Fluency")).perturbations}
    assert names <= {"deletions", "typos", "grammar-rules", "word-deletion"} and len(names) >= 3
    assert {name.partition(":")[0] for name in augment(labels_of("coherence")).perturbations} <= {
        "shuffle", "rewrite-rules", "random-ending", "wrong-ending",
    }  # fmt: skip


def test_nothing_that_is_good_nothing_to_perturb() -> None:
    labels = labels_of()
    poor = replace(labels, rows=tuple(row for row in labels.rows if row.system == "short"))
    assert len(augment(poor)) == 0
    emoji = replace(labels, rows=tuple(replace(row, output="🙂") for row in labels.rows))
    assert (len(augment(emoji)), augment(emoji).left) == (0, 12)
    with pytest.raises(OptionError, match="most 0"):
        augment(labels, most=0)
    with pytest.raises(OptionError, match="what is kept"):
        augment(labels, kept={"minor": 1.0, "major": 0.4, "only": 0.2})


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([(1, 5), (0, 1), (0, 100), (-3, 3)]), st.integers(2, 12))
def test_no_copy_leaves_its_side_of_a_split(seed: int, scale: tuple[float, float], documents: int) -> None:
    labels = labels_of(documents=documents, scale=scale)
    for part in group_folds(labels, k=2, seed=seed):
        copies = apart(augment(part.train, seed=seed), part.heldout)
        refuse_leak(part, copies)
        held = " ".join(row.output for row in part.heldout.rows)
        for row in copies.labels.rows:
            assert scale[0] <= row.scores["overall"] <= scale[1]
            # whatever is borrowed comes from training rows
            assert not [town for town in TOWNS if town in row.output and town in held]


def test_a_copy_in_the_wrong_place_is_a_leak() -> None:
    labels = labels_of()
    part = group_folds(labels, k=2)[0]
    copies = augment(part.train)
    with pytest.raises(LeakError, match="not a training one"):
        refuse_leak(Split(part.heldout, part.train), copies)
    with pytest.raises(LeakError, match="not a training one"):
        with_copies(part.heldout, copies.labels)
    repeated = part.heldout.rows[0]
    bad = replace(copies.labels.rows[0], source=repeated.source, output=repeated.output)
    with pytest.raises(LeakError, match="same as a held-out row"):
        refuse_leak(part, replace(copies, labels=replace(copies.labels, rows=(bad,))))
    assert len(with_copies(part.train, copies.labels)) == len(part.train) + len(copies)
    assert len(with_copies(part.train, None)) == len(part.train)


def test_only_people_s_rows_remain_in_a_record() -> None:
    verdicts = tuple(Verdict(score=float(k), percent=float(k)) for k in range(5))
    scored = Scored(verdicts, np.arange(5.0))
    trial = Trial(None, None, scored)  # type: ignore[arg-type]
    record = SearchRecord((trial,), trial, "why").on_first(3)
    assert record.scored.percents.tolist() == [0, 1, 2] == record.zero_shot.percents.tolist()
    assert len(record.scored.verdicts) == 3 and record.reason == "why"


# -- does it help?


class Rule:
    """A judge that scores by a rule."""

    def __init__(self, knows: bool, fails: bool = False) -> None:
        self.knows, self.fails = knows, fails

    def score_many(self, items: Iterable[Any], **given: Any) -> Iterator[Verdict]:
        for item in items:
            percent = len(item.output) / 4 if self.knows else float(sum(map(ord, item.output)) % 97)
            if self.fails:
                yield Verdict(score=math.nan, percent=math.nan, failure="no")
            else:
                yield Verdict(score=percent, percent=percent)


def test_copies_are_used_where_they_help_on_people_s_scores() -> None:
    labels = labels_of()
    seen: list[tuple[set[str], bool]] = []

    def fit(train: Labels, copies: Labels | None) -> Any:
        seen.append((set(train.groups), copies is not None))
        assert copies is None or set(copies.groups) <= set(train.groups)
        return Rule(knows=copies is not None)

    copies, trial = try_augmentation(fit, labels)
    assert trial.used and copies is not None and len(copies) == 12 == trial.copies
    assert (trial.rows, trial.difference[0] > 0) == (24, True)
    assert [helped for _, helped in seen] == [False, True, False, True]
    assert seen[0][0] == seen[1][0] and not seen[0][0] & seen[2][0] and len(seen[0][0] | seen[2][0]) == 12
    assert "were used: with copies Q +" in trial.reason and trial.to_dict()["used"] is True


@pytest.mark.parametrize(
    ("plain", "helped", "said"),
    [
        (Rule(True), Rule(False), "not used: with copies Q -"),
        (Rule(True), Rule(True), "not used: with copies Q +0.00 [0.00, 0.00] on 24"),
        (Rule(True), Rule(True, fails=True), "not used"),
    ],
)
def test_copies_are_left_where_they_do_not_help(plain: Rule, helped: Rule, said: str) -> None:
    copies, trial = try_augmentation(lambda _, extra: helped if extra else plain, labels_of())  # type: ignore[arg-type, return-value]
    assert copies is None and not trial.used and said in trial.reason
    assert trial.copies == 12 and trial.to_dict()["perturbations"]


def test_what_cannot_be_tried_is_said() -> None:
    def fit(train: Labels, copies: Labels | None) -> Any:
        raise AssertionError("nothing is to be compiled")

    labels = labels_of()
    poor = replace(labels, rows=tuple(row for row in labels.rows if row.system == "short"))
    copies, trial = try_augmentation(fit, poor)
    assert copies is None and "upper half" in trial.reason and np.isnan(trial.difference[0])
    one = replace(labels, rows=tuple(replace(row, group="g") for row in labels.rows))
    copies, trial = try_augmentation(fit, one)
    assert copies is None and "not tried" in trial.reason and trial.to_dict()["difference"]["value"] is None
