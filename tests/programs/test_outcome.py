"""What is made of a raw percent: the score on the user's scale, and which of two outputs people would prefer."""

import asyncio
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.optimizers.fitting.outcome import fit_sureness
from judgesmith.programs import artifact
from judgesmith.programs.judge import Judge
from judgesmith.programs.outcome import (
    SLOPE,
    BradleyTerry,
    Calibration,
    Decision,
    Outcome,
    Sureness,
)
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Item, Scale, Verdict
from judgesmith.testing.scripted import MakeScripted

FIVE = Scale(1, 5)
PERCENT = st.one_of(
    st.floats(0, 100), st.integers(0, 100).map(float), st.just(math.nan)
)
SCALES = st.sampled_from(
    [FIVE, Scale(0, 100), Scale(-1, 1), Scale(0, 1e-6), Scale(0, 1e6)]
)


def test_linear_is_the_straight_line() -> None:
    linear = Calibration.linear(FIVE)
    assert [linear(p) for p in (0, 25, 50, 75, 100)] == [1, 2, 3, 4, 5]
    assert math.isnan(linear(math.nan))


@pytest.mark.parametrize(
    ("percent", "human"),
    [
        ([], []),
        ([50, 60, 70, 80], [1, 2, 3, 4]),  # four rows
        ([50, 60, 70, 80, math.nan], [1, 2, 3, 4, 5]),  # four that can be used
        ([50] * 20, [1, 2, 3, 4, 5] * 4),  # constant raw scores
        ([0, 0, 0, 100, 100, 100], [1, 1, 1, 5, 5, 5]),  # nothing between the ends
        ([math.nan] * 10, [3] * 10),
    ],
)
def test_without_evidence_the_map_is_linear(
    percent: list[float], human: list[float]
) -> None:
    assert Calibration.fit(percent, human, FIVE) == Calibration.linear(FIVE)


def test_levels_are_the_means_of_equally_filled_bins() -> None:
    # Ten rows in two bins of five: centres 30 and 70, human means 2 and 4.
    fitted = Calibration.fit([30] * 5 + [70] * 5, [2] * 5 + [4] * 5, FIVE)
    assert fitted.percent == (0, 30, 70, 100)
    # ends (2+1)/2 = 1.5 and (4+5)/2 = 4.5; linear there 1, 2.2, 3.8, 5; mixed 0.95 to 0.05
    mixed = [
        0.95 * 1.5 + 0.05 * 1,
        0.95 * 2 + 0.05 * 2.2,
        0.95 * 4 + 0.05 * 3.8,
        0.95 * 4.5 + 0.05 * 5,
    ]
    assert SLOPE == 0.05
    assert fitted.score == pytest.approx(mixed)
    assert fitted(50) == pytest.approx((mixed[1] + mixed[2]) / 2)
    # Human means that fall are pooled, 4 and 2 to 3: of the scale's ends and middle, 2, 3 and 4
    falling = Calibration.fit([30] * 5 + [70] * 5, [4] * 5 + [2] * 5, FIVE)
    assert falling.score == pytest.approx(
        [0.95 * a + 0.05 * b for a, b in ((2, 1), (3, 2.2), (3, 3.8), (4, 5))]
    )


@given(
    st.lists(
        st.tuples(PERCENT, st.one_of(st.floats(-1, 101), st.just(math.nan))),
        max_size=60,
    ),
    SCALES,
)
@example([(50.000001, 1.0), (50.000002, 5.0)] * 10, FIVE)
@example([(50.0001, 5.0), (50.0002, 1.0), (49.9, 3.0)] * 10, Scale(0, 1e-6))
def test_every_fit_strictly_increases_within_the_scale(
    rows: list[tuple[float, float]], scale: Scale
) -> None:
    fitted = Calibration.fit([p for p, _ in rows], [h for _, h in rows], scale)
    # The constructor refuses knots that do not strictly increase; the map itself on a grid:
    values = [fitted(p) for p in np.linspace(0, 100, 201)]
    assert all(a < b for a, b in itertools.pairwise(values))
    extent = scale.high - scale.low
    assert scale.low - 1e-9 * extent <= values[0]
    assert values[-1] <= scale.high + 1e-9 * extent


def test_a_line_is_that_of_least_squares() -> None:
    # Slope 1/25 through the means (50, 3): 2 at 25, 4 at 75; halfway to the scale's ends beyond.
    percent = [25, 25, 50, 75, 75]
    fitted = Calibration.line(percent, [1.5, 2.5, 3, 3.5, 4.5], FIVE)
    assert fitted.percent == (0, 25, 75, 100)
    assert fitted.score == (1.5, 2, 4, 4.5)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(1, 5)), min_size=5, max_size=40),
)
def test_a_line_leaves_every_agreement(rows: list[tuple[float, float]]) -> None:
    x, y = np.array(rows).T
    fitted = Calibration.line(x, y, FIVE)
    mapped = np.array([fitted(p) for p in x.tolist()])
    assert mapped.min() >= 1
    assert mapped.max() <= 5
    if np.ptp(x) > 1e-3:
        straight = np.polyval(np.polyfit(x, mapped, 1), x)
        assert mapped == pytest.approx(straight, abs=1e-6)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(1, 5)), min_size=5, max_size=40))
def test_the_order_of_rows_does_not_matter_where_no_scores_tie(
    rows: list[tuple[float, float]],
) -> None:
    rows = list({round(p, 3): (p, h) for p, h in rows}.values())
    backwards = rows[::-1]
    one = Calibration.fit([p for p, _ in rows], [h for _, h in rows], FIVE)
    two = Calibration.fit([p for p, _ in backwards], [h for _, h in backwards], FIVE)
    assert one.percent == pytest.approx(two.percent)
    assert one.score == pytest.approx(two.score)


@pytest.mark.parametrize(
    ("percent", "score"),
    [
        ([], []),
        ([0.0], [1.0]),
        ([0.0, 100.0], [1.0, 2.0, 3.0]),
        ([0.0, 100.0], [5.0, 1.0]),
        ([0.0, 100.0], [1.0, 1.0]),
        ([0.0, 0.0], [1.0, 5.0]),
        ([100.0, 0.0], [1.0, 5.0]),
        ([0.0, math.nan], [1.0, 5.0]),
        ([0.0, 100.0], [1.0, math.inf]),
    ],
)
def test_knots_that_do_not_strictly_increase_are_refused(
    percent: tuple[float, ...], score: tuple[float, ...]
) -> None:
    with pytest.raises(ArtifactError):
        Calibration(percent, score)


def test_chances_as_defined() -> None:
    model = BradleyTerry(width=10, tie=1)
    # lead 0: e^0 : 1 : e^0
    assert model.chances(40, 40) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    # lead of 20, two widths: e : 1 : 1/e
    whole = math.e + 1 + 1 / math.e
    assert model.chances(60, 40) == pytest.approx(
        (math.e / whole, 1 / whole, 1 / math.e / whole)
    )
    # without ties a lead of ln 3 widths is right in three of four
    assert BradleyTerry(10).chances(10 * math.log(3), 0) == pytest.approx(
        (0.75, 0, 0.25)
    )
    assert BradleyTerry(1e-9).chances(100, 0)[0] == 1.0
    assert all(map(math.isnan, model.chances(math.nan, 40)))
    for wrong in ({"width": 0.0}, {"width": math.inf}, {"width": 1.0, "tie": -1.0}):
        with pytest.raises(ArtifactError, match="width above 0"):
            BradleyTerry(**wrong)


def test_a_judge_is_asked_which_of_two(scripted: MakeScripted, tmp_path: Path) -> None:
    lm, _ = scripted(
        lambda request: (
            "Score: 80"
            if "A better one." in request.messages[-1]["content"]
            else "Score: 60"
        )
    )
    judge = js.Judge(js.ActiveCritic("vanilla", explain="none", reading="said"), lm=lm)
    with pytest.raises(OptionError, match="not compiled from preferences"):
        judge.prefer("s", a="A better one.", b="Another.")
    judge.outcome = replace(judge.outcome, preference=BradleyTerry(20 / math.log(3)))
    judge.save(tmp_path / "judge.json")
    judge = js.load(tmp_path / "judge.json", lm=lm)
    found = judge.prefer("s", a="A better one.", b="Another.")
    assert (found.a, found.tie, found.b) == pytest.approx((0.75, 0, 0.25))
    assert found.winner == "a"
    assert [v.percent for v in found.verdicts] == [80, 60]
    turned = asyncio.run(judge.aprefer("s", a="Another.", b="A better one."))
    assert turned.winner == "b"
    assert turned.b == pytest.approx(0.75)
    empty = judge.prefer("s", a="", b="Another.")
    assert empty.winner is None
    assert math.isnan(empty.a)
    assert empty.verdicts[0].failure


@pytest.mark.parametrize(
    ("cuts", "said", "categories"),
    [
        (
            [20, 40, 60, 80],
            "1, 2 from 20.0, 3 from 40.0, 4 from 60.0, 5 from 80.0 of 100",
            "12345",
        ),
        (
            [20, 62.5, 62.5, 62.5],
            (
                "1, 2 from 20.0, 3 or 4 or 5 from 62.5 of 100 (no score tells apart 3, "
                "4, 5)"
            ),
            ["1", "2", "2", "3 or 4 or 5", "3 or 4 or 5"],
        ),
        (
            [0, 0, 50, 101],
            "1 or 2 or 3, 4 or 5 from 50.0 of 100 (no score tells apart 1, 2, 3; 4, 5)",
            ["1 or 2 or 3", "1 or 2 or 3", "1 or 2 or 3", "4 or 5", "4 or 5"],
        ),
    ],
)
def test_categories_that_no_score_tells_apart_are_one(
    cuts: Any, said: str, categories: Any
) -> None:
    decision = Decision(tuple("12345"), tuple(map(float, cuts)))
    assert str(decision) == said
    assert [decision.category(percent) for percent in (0, 20, 49, 79, 100)] == list(
        categories
    )


def test_fail_and_pass_stay_apart() -> None:
    assert (
        str(Decision(("fail", "pass"), (100.000001,), binary=True))
        == "fail, pass never of 100"
    )
    assert Decision(("fail", "pass"), (0.0,), binary=True).category(0) == "pass"


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=8, unique=True).map(sorted),
    st.lists(st.floats(-1e9, 1e9), min_size=8, max_size=8),
    st.floats(0, 100),
)
def test_a_number_between_knots_is_numpys(
    percents: list[float], errors: list[float], percent: float
) -> None:
    knots = tuple(percents), tuple(abs(e) + 1.0 for e in errors[: len(percents)])
    sure = Sureness(*knots, (0.9,), (1.0,), 9, 9)
    for place in (percent, *percents, math.nan):
        expected = np.interp(place, *knots)
        assert sure.expected_error(place) == expected or math.isnan(place)
    assert math.isnan(sure.expected_error(math.nan))


@pytest.mark.parametrize(
    ("percent", "times", "noted"),
    [
        (30.0, 1.0, False),
        (75.0, 1.0, False),
        (29.9, 1.0, True),
        (99.0, 1.0, True),
        (99.0, None, False),
    ],
)
def test_a_score_unlike_the_labelled_ones_is_noted_beside_its_interval(
    percent: float, times: float | None, noted: bool
) -> None:
    # Without a multiple the interval is the whole scale, which holds for any output.
    sure = Sureness((50.0,), (0.5,), (0.9,), (times,), 40, 20, (30.0, 75.0))
    verdict = Outcome(Scale(1, 5), sureness=sure)(Verdict(percent=percent))
    assert verdict.interval is not None
    assert any("outside those of the labelled rows" in n for n in verdict.notes) == (
        noted
    )
    earlier = replace(sure, seen=None)
    assert Outcome(Scale(1, 5), sureness=earlier)(Verdict(percent=percent)).notes == ()


@pytest.mark.parametrize(
    ("output", "source", "far"),
    [
        (20, 100, ""),
        (5, 45, ""),  # half as long as the shortest, less ten words
        (4, 100, "its output has 4 words, theirs have 20 to 40"),
        (90, 410, ""),  # twice as long as the longest, and ten words
        (3000, 100, "its output has 3,000 words, theirs have 20 to 40"),
        (20, 411, "its source has 411 words, theirs have 100 to 200"),
    ],
)
def test_a_text_of_quite_another_length_has_no_interval(
    output: int, source: int, far: str
) -> None:
    words = {"output": (20, 40), "source": (100, 200)}
    sure = Sureness((50.0,), (0.5,), (0.9,), (1.0,), 40, 20, (30.0, 75.0), words)
    outcome = Outcome(Scale(1, 5), sureness=sure)
    row = Item("w " * output, "w " * source)
    verdict = outcome(Verdict(percent=90.0), row)  # beyond the labelled ones, too
    assert (verdict.interval is None) == bool(far)
    (note,) = verdict.notes
    assert far in note
    assert outcome(Verdict(percent=50.0)).interval is not None
    judge = Judge(DirectScorer("fluency"), outcome=outcome)
    saved = artifact.to_dict(judge)["sureness"]
    assert saved["words"] == {"output": [20, 40], "source": [100, 200]}
    earlier = judge.with_(outcome=replace(outcome, sureness=replace(sure, words=None)))
    assert "words" not in artifact.to_dict(earlier)["sureness"]


def test_the_range_of_labelled_scores_is_saved_and_holds_every_row() -> None:
    percents = np.array([12.34567, 40.0, 88.88888, math.nan])
    human = np.array([1.0, 3.0, 5.0, 2.0])
    sure = fit_sureness(percents, human, human, list("abcd"), Scale(1, 5))
    assert sure is not None
    assert sure.seen == (12.345, 88.889)
    assert all(sure.beyond(percent) is None for percent in percents[:3])
    judge = Judge(DirectScorer("fluency"), outcome=Outcome(Scale(1, 5), sureness=sure))
    assert artifact.to_dict(judge)["sureness"]["seen"] == [12.345, 88.889]
    earlier = replace(judge.outcome, sureness=replace(sure, seen=None))
    saved = artifact.to_dict(judge.with_(outcome=earlier))
    assert "seen" not in saved["sureness"]
