"""Prediction-powered inference: arithmetic, clusters, ranks, and coverage where the truth is known."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.agreement.estimation import Estimates, SystemEstimate, estimate
from judgesmith.errors import LabelsError, OptionError

NAN = float("nan")


def test_the_mean_is_the_human_mean_corrected_by_the_judge() -> None:
    judge, human = [1, 2, 4, 3, 1, 2, 6, 3], [2, 3, 5, 4, NAN, NAN, NAN, NAN]
    # The judge is exactly one below, so that what a document adds is the same for both: for labelled rows its departure
    # from the mean, times sqrt(4/3)/4; less the judge's departures over all eight rows. The weight is cov(a, b)/var(b).
    found = estimate(judge, human).systems[0]
    own = np.array([-1.5, -0.5, 1.5, 0.5, 0, 0, 0, 0]) / 4 * math.sqrt(4 / 3)
    a, b = own, own - (np.array(judge) - 22 / 8) / 8 * math.sqrt(8 / 7)
    weight = float(a @ b / (b @ b))
    assert found.mean == pytest.approx(3.5 + weight * (22 / 8 - 2.5))
    assert found.naive == pytest.approx(22 / 8)
    assert (found.n_human, found.n_judge) == (4, 8)
    # The weight took one of three degrees of freedom: t at two.
    half = 4.302652729911275 * math.sqrt(
        float((a - weight * b) @ (a - weight * b)) * 3 / 2
    )
    assert (found.low, found.high) == pytest.approx(
        (found.mean - half, found.mean + half)
    )
    few = estimate(judge, [2, 3, 5, *[NAN] * 5]).systems[
        0
    ]  # three labels have no degree of freedom for a weight
    assert (few.mean, few.low, few.high) == pytest.approx(
        (few.human, few.human_low, few.human_high)
    )


@pytest.mark.parametrize("labels", [4, 8])
def test_few_labels_of_one_system_hold_the_truth(labels: int) -> None:
    held = []
    for seed in range(400):
        rng = np.random.default_rng([seed, labels])
        human = rng.normal(size=200)
        found = estimate(
            0.6 * human + 0.8 * rng.normal(size=200),
            np.where(np.arange(200) < labels, human, NAN),
        )
        held.append(found.systems[0].low <= 0 <= found.systems[0].high)
    assert 0.92 <= np.mean(held) <= 0.98  # .85 and .91 without the degree of freedom


def test_whole_documents_drawn_at_random_are_not_suspected() -> None:
    suspected = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 7])
        docs = np.repeat(np.arange(60), 16)
        judge = 0.7 * rng.normal(size=60)[docs] + 0.7 * rng.normal(
            size=960
        )  # a document's outputs are alike
        shown = np.where(
            np.isin(docs, rng.permutation(60)[:10]), judge + rng.normal(size=960), NAN
        )
        found = estimate(
            judge, shown, systems=np.tile(np.arange(16), 60), documents=docs
        )
        suspected += any("drawn at" in note for note in found.notes)
    assert suspected <= 4  # two in five, by rows


def test_with_all_rows_labelled_it_is_the_human_mean_and_its_interval() -> None:
    found = estimate([5, 1, 4, 2], [1.0, 2.0, 3.0, 4.0]).systems[0]
    assert found.mean == 2.5
    assert (found.low, found.high) == pytest.approx((found.human_low, found.human_high))
    assert found.effective == pytest.approx(4)


@given(st.floats(-50, 50), st.floats(0.01, 50))
def test_the_judges_own_scale_does_not_matter(shift: float, stretch: float) -> None:
    rng = np.random.default_rng(3)
    judge = rng.normal(size=60)
    human = np.where(np.arange(60) < 20, judge + rng.normal(size=60), NAN)
    one, other = (
        estimate(f, human).systems[0] for f in (judge, shift + stretch * judge)
    )
    assert (one.mean, one.low, one.high) == pytest.approx(
        (other.mean, other.low, other.high), abs=1e-6
    )


def test_rows_of_one_document_are_one_piece_of_evidence() -> None:
    rng = np.random.default_rng(0)
    judge, human = rng.normal(size=40), rng.normal(size=40)
    human[20:] = NAN
    once = estimate(judge, human, documents=range(40)).systems[0]
    thrice = estimate(
        np.repeat(judge, 3), np.repeat(human, 3), documents=np.repeat(range(40), 3)
    ).systems[0]
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert thrice.n_human == 60


def simulated(seed: int, r: float = 0.8) -> tuple[list[bool], float, list[bool]]:
    """Three systems on 100 documents, 20 of them labelled: intervals held, labels gained, differences held."""
    rng = np.random.default_rng(seed)
    truth = np.array([3.0, 3.5, 4.0])
    common = rng.normal(0, 0.5, (100, 1)) + rng.normal(0, 0.8, (100, 3))
    human = truth + common
    judge = [2, 0, -2] + 10 * (
        r * common + math.sqrt(1 - r * r) * rng.normal(0, 0.94, (100, 3))
    )
    shown = np.where(np.arange(100)[:, None] < 20, human, NAN)
    docs, systems = np.repeat(range(100), 3), np.tile(["a", "b", "c"], 100)
    found = estimate(judge.ravel(), shown.ravel(), systems=systems, documents=docs)
    right = dict(zip("abc", truth, strict=True))
    return (
        [s.low <= right[s.system] <= s.high for s in found.systems],
        found.systems[0].effective,
        [d.low <= right[d.a] - right[d.b] <= d.high for d in found.differences],
    )


def test_intervals_hold_the_truth_and_a_good_judge_is_worth_labels() -> None:
    worlds = [simulated(seed) for seed in range(150)]
    # 450 intervals, three of a world alike: 95 % ± 4 standard errors of 150 draws
    assert 0.88 <= np.mean([held for held, _, _ in worlds]) <= 0.995
    assert 0.88 <= np.mean([held for _, _, held in worlds]) <= 0.995
    assert np.median([effective for _, effective, _ in worlds]) > 30  # of 20
    useless = [simulated(seed, r=0.0)[1] for seed in range(40)]
    assert np.median(useless) < 26


def test_ranks_are_left_open_where_differences_are_chance() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.3, 300)
    systems = ["low", "high", "too"] * 100
    human = np.tile([1.0, 4.0, 4.02], 100) + noise
    found = estimate(
        human + rng.normal(0, 0.3, 300),
        human,
        systems=systems,
        documents=np.repeat(range(100), 3),
    )
    ranks = {s.system: (s.rank_low, s.rank_high) for s in found.systems}
    assert ranks == {"low": (3, 3), "high": (1, 2), "too": (1, 2)}
    assert found.systems[-1].system == "low"
    means = [s.mean for s in found.systems]
    at_large = np.mean(means) + 4.302653 * np.std(means, ddof=1) / 3**0.5 * np.array(
        [0, -1, 1]
    )  # t, 2 degrees
    assert found.at_large == pytest.approx(at_large)


def test_what_cannot_be_known_is_said() -> None:
    systems = ["none", "one", "same", "same", "same", "some", "some", "some", "some"]
    human = [NAN, 3, 4, 4, 4, 1, 2, 3, NAN]
    estimates = estimate([1, 2, 3, NAN, 5, 1, 2, 3, 4], human, systems=systems)
    found = {s.system: s for s in estimates.systems}
    assert found["none"].reason
    assert math.isnan(found["none"].mean)
    assert found["none"].naive == 1
    assert "one document" in (found["one"].reason or "")
    assert "equal" in (found["same"].reason or "")
    assert found["same"].n_judge == 2
    assert found["some"].reason is None
    assert found["some"].low < found["some"].mean < found["some"].high
    assert estimates.to_dict()["systems"]["none"]["mean"] is None


def test_rows_that_were_chosen_by_their_scores_are_noticed() -> None:
    judge = np.arange(100.0)
    best = np.where(judge >= 70, judge, NAN)
    assert any("drawn at random" in note for note in estimate(judge, best).notes)
    every_third = np.where(np.arange(100) % 3 == 0, judge, NAN)
    assert not any("random" in note for note in estimate(judge, every_third).notes)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(LabelsError, match="no row has a human score"):
        estimate([1, 2], [NAN, NAN])
    with pytest.raises(LabelsError, match="no row has a judge's score"):
        estimate([NAN, NAN], [1, 2])
    with pytest.raises(LabelsError, match="2 scores and people 3"):
        estimate([1, 2], [1, 2, 3])
    with pytest.raises(OptionError, match="confidence"):
        estimate([1, 2], [1, 2], confidence=95)


# Unequal probabilities of a label ------------------------------------------------------------------------------------


def test_a_row_that_was_unlikely_to_be_labelled_counts_for_more() -> None:
    judge, human = [1.0, 1, 2, 2, 3, 3], [1, 2, 4, np.nan, np.nan, np.nan]
    # Weights 1/.5, 1/.5, 1/.25: people's mean (2·1 + 2·2 + 4·4) / 8 = 2.75, alone 7/3.
    found = estimate(
        judge, human, probabilities=[0.5, 0.5, 0.25, np.nan, np.nan, np.nan]
    ).systems[0]
    assert found.human == pytest.approx(2.75)
    assert estimate(judge, human).systems[0].human == pytest.approx(7 / 3)
    equal = estimate(judge, human, probabilities=[0.5] * 6)
    # As text: no missing bound equals itself where a later Python compares field by field.
    assert repr(equal.systems) == repr(estimate(judge, human).systems)


def test_intervals_hold_where_low_scores_are_labelled_more_often() -> None:
    rng, held, blind = np.random.default_rng(0), 0, 0
    for _ in range(200):
        judge = rng.normal(size=400)
        people = 0.4 * judge + rng.normal(size=400)
        people -= 0.4 * (judge < -0.5)  # people see what the judge does not
        chance = np.where(judge < -0.5, 0.5, 0.1)
        human = np.where(rng.random(400) < chance, people, np.nan)
        found = estimate(judge, human, probabilities=chance).systems[0]
        held += (
            found.low <= -0.4 * 0.3085 <= found.high
        )  # the share below -.5 is .3085; the rest has mean 0
        other = estimate(judge, human).systems[0]
        blind += other.low <= -0.4 * 0.3085 <= other.high
    assert held / 200 > 0.9
    assert blind < held


@pytest.mark.parametrize(
    ("chance", "says"),
    [
        ([0.5], "1 probabilities for 4 rows"),
        ([0.5, 0, 1, 1], "row 2: probability 0 of being labelled"),
    ],
)
def test_probabilities_that_are_none_are_refused(
    chance: list[float], says: str
) -> None:
    with pytest.raises(LabelsError, match=says):
        estimate([1, 2, 3, 4], [1, 2, np.nan, 4], probabilities=chance)


# Pass rates ----------------------------------------------------------------------------------------------------------


def judged(
    seed: int, labels: int, passing: float, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Verdicts that find 90 % of what passes and 75 % of what fails, and people's labels of the first rows."""
    rng = np.random.default_rng([seed, labels])
    passed = rng.random(400) < passing
    verdict = np.where(passed, rng.random(400) < 0.9, rng.random(400) < 0.25)
    shown = np.where(np.arange(400) < labels, passed, NAN)
    return verdict + noise * rng.normal(size=400), shown


@pytest.mark.parametrize("noise", [0.0, 0.5])  # verdicts, and scores
@pytest.mark.parametrize(("passing", "labels"), [(0.95, 8), (0.95, 20), (0.7, 20)])
def test_pass_rates_are_known_from_the_first_labels_on(
    passing: float, labels: int, noise: float
) -> None:
    held, narrower = [], []
    for seed in range(200):
        found = estimate(*judged(seed, labels, passing, noise), decisions=(0, 1))
        (system,) = found.systems
        assert system.low <= system.mean <= system.high  # no reason for none
        held.append(system.low <= passing <= system.high)
        narrower.append(system.human_high - system.human_low > system.high - system.low)
    assert 0.9 <= np.mean(held) <= 0.995  # .68 and .86 of the normal ones, if any
    if passing == 0.7 and not noise:
        assert np.mean(narrower) > 0.9


def test_forty_of_forty_that_pass_say_how_many_may_fail() -> None:
    verdict, _ = judged(0, 0, 0.97)
    found = estimate(verdict, np.where(np.arange(400) < 40, 1.0, NAN)).systems[0]
    assert found.reason is None
    assert (found.mean, found.high) == (1.0, 1.0)
    assert 0.88 < found.low < 0.96  # alone: Jeffreys' 2.5 % of Beta(40.5, 0.5) is 0.939
    assert found.human_low == pytest.approx(0.939, abs=0.006)
    none = estimate(verdict, np.where(np.arange(400) < 40, 0.0, NAN)).systems[0]
    assert (none.low, none.mean) == (0.0, 0.0)
    stars = estimate(verdict, np.where(np.arange(400) < 40, 4.0, NAN)).systems[0]
    assert stars.reason


def test_pass_rates_stay_on_the_scale_of_their_labels() -> None:
    verdict, shown = judged(3, 30, 0.8)
    one = estimate(verdict, shown).systems[0]
    other = estimate(verdict, 1 + 4 * shown, decisions=(1, 5)).systems[0]
    assert (other.low, other.high) == pytest.approx((1 + 4 * one.low, 1 + 4 * one.high))


def test_rows_of_one_document_are_one_piece_of_evidence_of_a_pass_rate() -> None:
    verdict, shown = judged(4, 40, 0.8)
    once = estimate(verdict, shown).systems[0]
    thrice = estimate(
        np.repeat(verdict, 3), np.repeat(shown, 3), documents=np.repeat(range(400), 3)
    ).systems[0]
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high), abs=0.02)


def test_differences_of_pass_rates_match_their_p_and_hold_no_difference() -> None:
    said = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        hard = rng.normal(size=100)  # both find the same documents hard
        passed = [(hard + rng.normal(size=100) > -1.5).astype(float) for _ in range(2)]
        verdict = [np.where(rng.random(100) < 0.8, p, 1 - p) for p in passed]
        shown = [np.where(np.arange(100) < 20, p, NAN) for p in passed]
        found = estimate(
            np.concatenate(verdict),
            np.concatenate(shown),
            systems=["a"] * 100 + ["b"] * 100,
            documents=[*range(100), *range(100)],
        )
        (gap,) = found.differences
        outside = gap.low > 0 or gap.high < 0
        assert outside == (gap.p < 0.05) or abs(gap.p - 0.05) < 0.002
        said.append(outside)
    assert np.mean(said) <= 0.1


def test_what_a_judge_is_worth_is_a_range() -> None:
    rng = np.random.default_rng(0)
    human = rng.normal(size=400)
    judge = 0.6 * human + 0.8 * rng.normal(size=400)
    found = estimate(judge, np.where(np.arange(400) < 20, human, NAN)).systems[0]
    assert found.effective_low < found.effective < found.effective_high
    # r of 20: atanh(r) +- 1.2816 / sqrt(17), back to 20 / (1 - r^2)
    r = math.sqrt(1 - 20 / found.effective)
    high = math.tanh(math.atanh(r) + 1.2816 / math.sqrt(17))
    assert found.effective_high == pytest.approx(20 / (1 - high**2), rel=1e-3)


@pytest.mark.parametrize("name", ["length of outputs", "column 'when'"])
def test_labelled_rows_that_differ_in_anything_but_scores_are_noticed(
    name: str,
) -> None:
    rng = np.random.default_rng(1)
    judge, other = rng.normal(size=200), rng.normal(size=200)
    chosen = np.where(other > 1, judge, NAN)
    (note,) = (
        note
        for note in estimate(judge, chosen, others={name: other}).notes
        if "drawn at random" in note
    )
    assert note.startswith(f"labelled rows are not like the others ({name}, p < .001)")
    first = estimate(judge, np.where(np.arange(200) < 30, judge, NAN))
    assert any("place in the file" in note for note in first.notes)
    drawn = np.where(rng.permutation(200) < 30, judge, NAN)
    assert not any("random" in n for n in estimate(judge, drawn).notes)


def of_systems(
    seed: int, *, systems: int = 12, labelled: int = 8, ceiling: bool = False
) -> tuple[Any, np.ndarray]:
    """Systems whose means lie near a line of the judge's: an estimate, and the true means."""
    rng = np.random.default_rng(seed)
    judged = np.sort(rng.normal(size=systems))
    truth = 2 + 0.5 * judged + 0.1 * rng.normal(size=systems)
    hard = rng.normal(size=80)
    human = truth[:, None] + hard + rng.normal(size=(systems, 80))
    judge = 3 + judged[:, None] + hard + rng.normal(size=(systems, 80))
    if ceiling:  # all but two systems are at the end of the scale
        human[2:] = 5.0 - (rng.random((systems - 2, 80)) < 0.02)
    human[:, labelled:] = NAN
    found = estimate(
        judge.ravel(),
        human.ravel(),
        systems=[f"s{k:02}" for k in range(systems) for _ in range(80)],
        documents=np.tile(np.arange(80), systems),
    )
    return found, truth


def test_means_on_a_line_need_half_the_labels_and_intervals_hold() -> None:
    worlds = [of_systems(seed) for seed in range(40)]
    drawn, alone, held, systems_held, proven = [], [], [], [], []
    for found, truth in worlds:
        assert found.on_line == 12
        right = dict(zip([f"s{k:02}" for k in range(12)], truth, strict=True))
        human = {s.system: s.human for s in found.systems}
        for d in found.differences:
            true = right[d.a] - right[d.b]
            drawn.append((d.difference - true) ** 2)
            alone.append((human[d.a] - human[d.b] - true) ** 2)
            held.append(d.low <= true <= d.high)
            proven.append(d.low * true < 0 and d.high * true < 0)
        systems_held += [s.low <= right[s.system] <= s.high for s in found.systems]
    assert np.mean(alone) / np.mean(drawn) > 2  # labels alone would need twice as many
    assert 0.93 <= np.mean(held) <= 0.995
    assert 0.9 <= np.mean(systems_held) <= 0.995
    assert np.mean(proven) < 0.01


def test_differences_are_those_of_the_means() -> None:
    found, _ = of_systems(3)
    mean = {s.system: s.mean for s in found.systems}
    for d in found.differences:
        assert d.difference == pytest.approx(mean[d.a] - mean[d.b], abs=1e-9)


def test_ratings_at_the_ceiling_are_not_drawn_to_a_line() -> None:
    found, _ = of_systems(1, ceiling=True)
    assert found.on_line == 0
    assert any("hardly vary" in note for note in found.notes)


def test_four_systems_have_no_line() -> None:
    found, _ = of_systems(1, systems=4)
    assert found.on_line == 0
    assert not any("line" in note for note in found.notes)


def test_equal_labels_are_no_certainty_on_the_line() -> None:
    rng = np.random.default_rng(0)
    system = np.repeat(np.arange(6), 20)
    document = np.tile(np.arange(20), 6)
    judge = system + rng.normal(size=120)
    rated = np.where(document < 8, judge + rng.normal(size=120), np.nan)
    about = {"systems": [f"s{k}" for k in system], "documents": document.tolist()}

    def by_name(human: np.ndarray) -> tuple[Estimates, dict[str, SystemEstimate]]:
        found = estimate(judge, human, **about)
        return found, {one.system: one for one in found.systems}

    one_equal = np.where((system == 0) & (document < 8), 3.7, rated)
    found, own = by_name(one_equal)
    assert found.on_line == 6
    assert own["s0"].low < own["s0"].mean < own["s0"].high  # the line tells its error
    assert math.isnan(own["s0"].effective)  # it was told as 0 labels
    assert own["s1"].effective > 0
    all_equal = np.where(document < 8, system + 0.7, np.nan)
    found, own = by_name(all_equal)
    assert found.on_line == 0
    assert any("hardly vary" in note for note in found.notes)
    for one in own.values():  # intervals had no width, and all p were 0
        assert math.isnan(one.low)
        assert "all human scores are equal" in (one.reason or "")
