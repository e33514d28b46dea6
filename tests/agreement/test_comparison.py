"""`js.compare`: its arithmetic, its symmetries, what it refuses, and its error rates where the truth is known."""

import math
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.agreement.comparison import MOST, Comparison, compare
from judgesmith.errors import LabelsError, OptionError

NAN = math.nan
OLD = [1.0, 2, 3, 4, 5, 3, 2, 4, 3, 1]
NEW = [2.0, 2, 4, 4, 5, 4, 3, 4, 3, 2]


def of_two(
    old: list[float], new: list[float], judge: list[float] | None = None, **more: Any
) -> Comparison:
    """Compare two versions on the same documents."""
    scores = [*old, *new] if judge is None else judge
    return compare(
        np.nan_to_num(np.array(scores), nan=3.0) if judge is None else scores,
        [*old, *new],
        systems=["old"] * len(old) + ["new"] * len(new),
        documents=[*range(len(old)), *range(len(new))],
        base="old",
        new="new",
        **more,
    )


def world(
    seed: int,
    versions: int = 12,
    documents: int = 40,
    labelled: int = 20,
    bias: float = 0.2,
    apart: float = 0.6,
    unrated: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Rows of versions v0, v1, … with a judge that favours some, and ratings of the first documents."""
    rng = np.random.default_rng(seed)
    quality = apart * rng.normal(size=versions)
    hard = 0.6 * rng.normal(size=documents)
    truth = quality[:, None] + hard + 0.5 * rng.normal(size=(versions, documents))
    judge = truth + bias * rng.normal(size=versions)[:, None]
    judge += 0.5 * rng.normal(size=judge.shape)
    human = truth.copy()
    human[:, labelled:] = NAN
    names = [f"v{k}" for k in range(versions)]
    for name in unrated:
        human[names.index(name)] = NAN
    return {
        "judge": judge.ravel(),
        "human": human.ravel(),
        "systems": np.repeat(names, documents).tolist(),
        "documents": np.tile(np.arange(documents), versions).tolist(),
        "quality": quality,
    }


def asked(made: dict[str, Any], base: str, new: str, **more: Any) -> Comparison:
    rows = {name: value for name, value in made.items() if name != "quality"}
    return compare(
        rows.pop("judge"), rows.pop("human"), **rows, base=base, new=new, **more
    )


def test_where_everything_is_rated_it_is_the_paired_t_test() -> None:
    found = of_two(OLD, NEW)
    test = scipy.stats.ttest_rel(NEW, OLD)
    assert found.difference == pytest.approx(0.5)  # 1 more on five of ten documents
    assert found.p == pytest.approx(test.pvalue)
    ends = test.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.verdict, found.basis, found.labelled) == (
        "better",
        "labels",
        (10, 10),
    )
    assert str(found).startswith("new is better than old: +0.50 [+0.12, +0.88], by 10")


def test_the_level_is_shared_over_looks_and_candidates() -> None:
    once = of_two(OLD, NEW)
    assert 0.01 < once.p < 0.05
    often = of_two(OLD, NEW, looks=5)
    chosen = of_two(OLD, NEW, candidates=5)
    assert (often.level, chosen.level) == (0.01, 0.01)
    assert (often.verdict, chosen.verdict) == ("undecided", "undecided")
    assert often.p == once.p
    assert often.low < 0 < once.low


@pytest.mark.parametrize(
    ("margin", "verdict"), [(None, "undecided"), (0.2, "no worse"), (0.6, "alike")]
)
def test_a_margin_decides_that_there_is_no_difference(
    margin: float | None, verdict: str
) -> None:
    new = [1.0, 2, 4, 4, 5, 3, 3, 4, 2, 2]  # +1, +1, +1, -1: .2 [-.25, .65]
    found = of_two(OLD, [*new[:8], 3.0, new[9]], margin=margin)  # .3 [-.05, .65]
    assert found.low == pytest.approx(-0.0455, abs=0.01)
    if margin == 0.6:
        found = of_two(OLD, new, margin=0.7)
    assert found.verdict == verdict


def test_an_undecided_one_says_how_many_labels_it_takes() -> None:
    new = [1.0, 2, 4, 4, 5, 3, 3, 4, 2, 2]
    found = of_two(OLD, new)
    # Standard error .2 of a difference of .2: (1.96 + .84)² times 10 documents are 78, less 10, in fives.
    assert found.difference == pytest.approx(0.2)
    assert found.more == 70
    assert found.finds == pytest.approx(2.8016 * 0.2 * math.sqrt(10 / 80), abs=1e-3)
    assert f"about {found.more} more documents of both" in str(found)


def test_no_difference_at_all_would_take_more_labels_than_are_worth_a_number() -> None:
    found = of_two(OLD, [*OLD[:-2], OLD[-2] + 1, OLD[-1] - 1])
    assert found.verdict == "undecided"
    assert found.more is not None
    assert found.more > MOST
    assert "More than 2,000" in str(found)


def test_without_ratings_nothing_is_decided() -> None:
    found = of_two([NAN] * 10, [NAN] * 10, judge=[*OLD, *NEW])
    assert (found.verdict, found.basis, found.more) == ("undecided", "nothing", 20)
    assert math.isnan(found.difference)
    assert found.judge.difference == pytest.approx(0.5)
    assert "people rated no versions" in found.reasons[0]


def test_a_version_without_probabilities_was_drawn_alike() -> None:
    known = of_two(OLD, NEW, probabilities=[NAN] * 10 + [0.5] * 10)
    assert known.difference == pytest.approx(of_two(OLD, NEW).difference)


def test_preferences_are_told_in_wins() -> None:
    won = [1.0] * 14 + [0.0] * 6
    found = of_two([1 - share for share in won], won, wins=True)
    assert "it wins 70% [" in found.size
    assert "chance that" not in str(found)


def test_versions_are_drawn_to_a_line_from_five_on() -> None:
    made = world(3, labelled=8)
    found = asked(made, "v0", "v1")
    alone = {**made, "human": made["human"].copy()}
    alone["human"][80:] = NAN
    assert found.basis == "labels and other versions"
    assert asked(alone, "v0", "v1").basis == "labels"
    wide = asked(alone, "v0", "v1")
    assert found.high - found.low < wide.high - wide.low


def test_a_history_decides_without_labels_of_the_new_version() -> None:
    decided = wrong = 0
    for seed in range(60):
        made = world(seed, unrated=("v11",))
        found = asked(made, "v0", "v11")
        assert found.basis in ("other versions", "nothing")
        if found.verdict != "undecided":
            decided += 1
            truth = made["quality"][11] - made["quality"][0]
            wrong += (found.verdict == "better") != (truth > 0)
    assert decided >= 20
    assert wrong <= 3


def test_labels_are_asked_of_the_new_version_where_the_base_has_some() -> None:
    found = asked(world(1, apart=0.05, unrated=("v11",)), "v0", "v11")
    assert found.verdict == "undecided"
    assert "Label the same 20 documents of v11" in str(found)


def test_fewer_than_eight_versions_decide_nothing_without_labels() -> None:
    found = asked(world(0, versions=8, unrated=("v7",)), "v0", "v7")
    assert found.verdict == "undecided"
    assert "people rated 7 versions" in found.reasons[0]


def test_a_version_far_outside_the_others_is_refused() -> None:
    made = world(0, unrated=("v11",))
    made["judge"][-40:] += 20
    found = asked(made, "v0", "v11")
    assert found.verdict == "undecided"
    assert "far outside those of the rated versions" in found.reasons[0]


def test_a_judge_that_cannot_tell_versions_decides_nothing_without_labels() -> None:
    decided = 0
    for seed in range(40):
        made = world(seed, unrated=("v10", "v11"))
        rng = np.random.default_rng(1000 + seed)
        made["judge"] = np.repeat(rng.normal(size=12), 40) + rng.normal(size=480)
        decided += asked(made, "v10", "v11").verdict != "undecided"
    assert decided <= 2


def test_equal_outputs_make_a_verdict_surer() -> None:
    made = world(2, unrated=("v10", "v11"))
    texts = [
        f"{name} {d}"
        for name, d in zip(made["systems"], made["documents"], strict=True)
    ]
    made["judge"][-30:] = made["judge"][-70:-40]  # v11 answers 30 documents as v10
    texts[-30:] = texts[-70:-40]
    usual, known = asked(made, "v10", "v11"), asked(made, "v10", "v11", outputs=texts)
    assert known.changed == pytest.approx(0.25)
    assert known.high - known.low < usual.high - usual.low


def test_equal_versions_are_seldom_told_apart_by_labels() -> None:
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        hard = rng.normal(size=60)
        truth = hard + 0.7 * rng.normal(size=(2, 60))
        human = truth.copy()
        human[:, 20:] = NAN
        judge = truth + 0.7 * rng.normal(size=(2, 60)) + np.array([[0.0], [0.5]])
        result = of_two(human[0].tolist(), human[1].tolist(), judge.ravel().tolist())
        found += result.verdict != "undecided"
    assert 0.02 <= found / 300 <= 0.09


SCORES = st.lists(st.integers(1, 5), min_size=12, max_size=12)


@settings(max_examples=40)
@given(
    old=SCORES, new=SCORES, judge=st.lists(st.integers(0, 9), min_size=24, max_size=24)
)
def test_swapping_versions_negates_the_difference(
    old: list[int], new: list[int], judge: list[int]
) -> None:
    human = [*map(float, old[:8]), *[NAN] * 4, *map(float, new[:8]), *[NAN] * 4]
    about: dict[str, Any] = {
        "systems": ["a"] * 12 + ["b"] * 12,
        "documents": [*range(12)] * 2,
        "decisions": (0.0, 9.0),
    }
    one = compare(judge, human, **about, base="a", new="b")
    other = compare(judge, human, **about, base="b", new="a")
    if math.isnan(one.difference):
        assert math.isnan(other.difference)
        return
    assert one.difference == pytest.approx(-other.difference, abs=1e-9)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)
    assert one.p == pytest.approx(other.p)
    mirror = {"better": "worse", "worse": "better"}
    assert other.verdict == mirror.get(one.verdict, one.verdict)


@settings(max_examples=40)
@given(shift=st.floats(-5, 5), seed=st.integers(0, 1000))
def test_neither_a_constant_nor_the_order_of_rows_changes_anything(
    shift: float, seed: int
) -> None:
    made = world(seed % 7, versions=9, documents=24, labelled=12, unrated=("v8",))
    found = asked(made, "v0", "v8")
    order = np.random.default_rng(seed).permutation(len(made["judge"]))
    moved = {
        "judge": made["judge"][order] + shift,
        "human": made["human"][order] + shift,
        "systems": [made["systems"][k] for k in order],
        "documents": [made["documents"][k] for k in order],
    }
    other = asked(moved, "v0", "v8")
    assert other.verdict == found.verdict
    if not math.isnan(found.difference):
        assert other.difference == pytest.approx(found.difference, abs=1e-6)
        assert other.p == pytest.approx(found.p, abs=1e-6)


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"base": "older"}, LabelsError, "no row of version 'older'"),
        ({"new": "old"}, OptionError, "compared with itself"),
        ({"level": 0.0}, OptionError, "level"),
        ({"looks": 0}, OptionError, "looks"),
        ({"margin": -1.0}, OptionError, "margin"),
        ({"documents": [*range(20)]}, LabelsError, "no input in common"),
        ({"systems": ["old", "new"]}, LabelsError, "give one per row"),
        ({"outputs": ["a"]}, LabelsError, "1 outputs for 20 rows"),
        (
            {"probabilities": [0.5] * 19 + [NAN]},
            LabelsError,
            "of version 'new', 1 of 10 rated rows have no probability",
        ),
    ],
)
def test_wrong_input_is_refused(
    more: dict[str, Any], error: type[Exception], said: str
) -> None:
    about: dict[str, Any] = {
        "systems": ["old"] * 10 + ["new"] * 10,
        "documents": [*range(10)] * 2,
        "base": "old",
        "new": "new",
    }
    with pytest.raises(error, match=said):
        compare([*OLD, *NEW], [*OLD, *NEW], **(about | more))


def test_it_is_plain_json() -> None:
    told = of_two([NAN] * 10, [NAN] * 10, judge=[*OLD, *NEW]).to_dict()
    assert told["difference"] is None
    assert told["sentence"].startswith("Undecided whether new is better than old.")
    assert [one["name"] for one in told["versions"]] == ["old", "new"]
