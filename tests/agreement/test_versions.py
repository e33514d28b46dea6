"""The line through versions: its arithmetic, its symmetries, and how often it is wrong where the truth is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.agreement.versions import (
    Belief,
    Line,
    Version,
    independent_variances,
    line_through,
)
from judgesmith.errors import LabelsError

SIZES = st.floats(-3, 3).map(lambda value: round(value, 3))


def on_line(slope: float = 2.0, level: float = 1.0, count: int = 8) -> list[Version]:
    """Versions whose means by people lie on a line, but for a departure of .1 up and down in turn."""
    return [
        Version(float(k), level + slope * k + 0.1 * (-1) ** k, 0.0001)
        for k in range(count)
    ]


def test_a_belief_of_one_part_is_a_normal_distribution() -> None:
    one = Belief(np.array([0.5]), np.array([0.25]), np.array([1.0]))
    assert (one.mean, one.deviation) == (0.5, 0.25)
    assert one.wrong == pytest.approx(0.02275, abs=1e-5)  # Φ(-0.5 / 0.25)
    assert one.interval(0.95) == pytest.approx((0.5 - 0.49, 0.5 + 0.49), abs=1e-4)


def test_a_belief_of_two_parts_weighs_them() -> None:
    both = Belief(np.array([1.0, 3.0]), np.array([1.0, 1.0]), np.array([0.75, 0.25]))
    assert both.mean == 1.5  # .75 · 1 + .25 · 3
    assert both.deviation == pytest.approx(math.sqrt(1 + 0.75 * 0.25 + 0.25 * 2.25))
    assert both.wrong == pytest.approx(0.75 * 0.158655 + 0.25 * 0.00135, abs=1e-5)


def test_variances_sum_to_those_of_differences() -> None:
    # Two documents raise all versions alike: that leaves no difference. Shares of the others, squared and summed:
    # .01, .04 and .09, so that differences have .05, .10 and .13.
    common = [0.5, -0.5]
    errors = [
        [*common, 0.1, 0, 0],
        [*common, 0, 0.2, 0],
        [*common, 0, 0, 0.3],
    ]
    mean = (0.01 + 0.04 + 0.09) / 3
    expected = [(mean + own) / 2 for own in (0.01, 0.04, 0.09)]
    assert independent_variances(errors) == pytest.approx(expected)


def test_the_line_is_found() -> None:
    line = Line(on_line())
    # Least squares of .1, -.1, …: the slope is off by -.1 · 4 / 42, where 42 is the judge's sum of squares.
    assert line.slope == pytest.approx(2 - 0.4 / 42, abs=1e-3)
    assert line.spread == pytest.approx(0.13, abs=0.03)  # .1 · √(8 / 6) and its tail
    assert line.downhill < 1e-6
    assert line.outlier() == 1.0


def test_a_difference_without_labels_is_the_judges_on_peoples_scale() -> None:
    line = Line(on_line())
    found = line.difference(Version(2.0), Version(5.0))
    assert found.mean == pytest.approx(3 * line.slope)
    # Two departures of the spread, and the slope's error.
    assert found.deviation > math.sqrt(2) * 0.1
    assert found.wrong < 0.001


def test_rated_versions_are_nearer_to_their_ratings_the_surer_these_are() -> None:
    versions = on_line()
    line = Line(versions)
    a = versions[0]
    sure = line.difference(a, Version(4.0, 10.0, 1e-9)).mean
    vague = line.difference(a, Version(4.0, 10.0, 1e3)).mean
    unrated = line.difference(a, Version(4.0)).mean
    assert sure == pytest.approx(10 - a.human, abs=0.01)
    assert vague == pytest.approx(unrated, abs=0.01)


def test_equal_outputs_leave_no_departure() -> None:
    line = Line(on_line())
    a = Version(3.0)
    none = line.difference(a, a, changed=0.0)
    quarter = line.difference(a, a, changed=0.25)
    whole = line.difference(a, a)
    assert none.deviation < 1e-6
    assert quarter.deviation == pytest.approx(whole.deviation / 2, rel=1e-3)  # √.25


def test_a_test_that_takes_nothing_for_granted_stretches_the_judges_difference() -> (
    None
):
    rng = np.random.default_rng(0)
    judge = rng.normal(size=12)
    human = judge + rng.normal(size=12)
    line = Line([Version(f, h, 0.01) for f, h in zip(judge, human, strict=True)])
    usual = line.difference(Version(0.0), Version(1.0))
    strict = line.difference(Version(0.0), Version(1.0), however_alike=True)
    assert strict.mean > usual.mean
    assert strict.deviation > usual.deviation


def test_an_outlier_is_noticed() -> None:
    versions = on_line()
    versions[3] = Version(3.0, 15.0, 0.0001)
    assert Line(versions).outlier() < 0.001


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ([Version(1.0, 2.0, 0.1)] * 3, "3 versions"),
        ([Version(1.0, float(k), 0.1) for k in range(8)], "the same for all"),
    ],
)
def test_too_little_for_a_line_is_refused(versions: list[Version], said: str) -> None:
    with pytest.raises(LabelsError, match=said):
        Line(versions)


@given(a=SIZES, b=SIZES, rated=st.booleans(), changed=st.floats(0.1, 1))
def test_swapping_versions_negates_the_difference(
    a: float, b: float, rated: bool, changed: float
) -> None:
    versions = on_line()
    line = Line(versions)
    one = versions[2] if rated else Version(a)
    there = line.difference(one, Version(b), 0.1, changed=changed)
    back = line.difference(Version(b), one, 0.1, changed=changed)
    assert there.mean == pytest.approx(-back.mean, abs=1e-9)
    assert there.deviation == pytest.approx(back.deviation)
    assert there.interval(0.9) == pytest.approx(
        [-end for end in reversed(back.interval(0.9))], abs=1e-6
    )


@given(judge=SIZES, human=SIZES)
def test_adding_a_constant_to_all_changes_no_difference(
    judge: float, human: float
) -> None:
    versions = on_line()
    moved = [
        Version(one.judge + judge, one.human + human, one.variance) for one in versions
    ]
    usual = Line(versions).difference(versions[1], Version(4.5), 0.1)
    other = Line(moved).difference(moved[1], Version(4.5 + judge), 0.1)
    assert other.mean == pytest.approx(usual.mean, abs=1e-6)
    assert other.deviation == pytest.approx(usual.deviation, abs=1e-6)


def simulated(rng: np.random.Generator, apart: float) -> tuple[Belief, Belief, float]:
    """Twelve rated versions and a new one, whose base is rated: both beliefs, and the true difference."""
    quality = rng.normal(size=13)
    quality[11:] *= apart
    judge = quality + 0.5 * rng.normal(size=13)
    human = quality[:12] + 0.2 * rng.normal(size=12)
    versions = [Version(judge[k], human[k], 0.04) for k in range(12)]
    line, new = Line(versions), Version(judge[12])
    return (
        line.difference(versions[11], new),
        line.difference(versions[11], new, however_alike=True),
        quality[12] - quality[11],
    )


def test_the_probability_of_a_wrong_sign_is_honest() -> None:
    rng = np.random.default_rng(1)
    said, came = [], []
    for _ in range(600):
        belief, _, truth = simulated(rng, apart=1.0)
        if belief.wrong <= 0.1:
            said.append(belief.wrong)
            came.append(belief.mean * truth < 0)
    assert len(said) > 200
    assert abs(np.mean(came) - np.mean(said)) < 0.02


def test_few_differences_are_found_between_versions_without_one() -> None:
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(600):
        belief, strict, _ = simulated(rng, apart=0.0)
        found += belief.wrong <= 0.05 and strict.wrong <= 0.05
    assert found / 600 <= 0.085  # both ways; .05 each at most, and .03 of error


def test_a_line_is_refused_where_errors_are_unequal_or_a_version_lies_far_off() -> None:
    versions = on_line()
    equal = [0.01] * len(versions)
    assert line_through(versions, equal)[0] is not None
    line, reason = line_through(versions, [0.3, *equal[1:]])  # 30 times the median
    assert line is None
    assert "hardly vary" in reason
    versions[3] = Version(3.0, 150.0, 0.0001)
    line, reason = line_through(versions, equal)
    assert line is None
    assert "do not lie on one line" in reason
    assert line_through(versions[:4], equal[:4]) == (None, "")


def test_the_difference_of_two_means_is_the_means_difference() -> None:
    versions = [Version(one.judge, one.human, 0.05) for one in on_line()]
    line = Line(versions)
    gap = line.difference(versions[1], versions[4])
    both = [line.mean(versions[k]) for k in (4, 1)]
    assert gap.mean == pytest.approx(both[0].mean - both[1].mean)
    wider = gap.wider(2.0, 0.5)
    assert wider.mean == pytest.approx(gap.mean)
    assert wider.deviation == pytest.approx(2 * math.hypot(gap.deviation, 0.5**0.5))
    assert wider.wrong > gap.wrong
