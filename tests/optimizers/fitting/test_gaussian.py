"""The Gaussian model of readings, on tables whose truth is known."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.optimizers.fitting import gaussian as gaussian_module
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.fitting.gaussian import gaussian
from judgesmith.optimizers.fitting.readings import agreement, nested, weigh
from judgesmith.programs.readings.experience import Experience, Weights
from judgesmith.programs.readings.head import HeadData, LinearHead, Readings

NAMES = ("direct", "good", "fair", "noise")
NOTHING = Experience()


def made(
    seed: int, rows: int = 60, *, of_group: int = 2, noise: float = 1.0
) -> tuple[Readings, np.ndarray]:
    """A table in which `good` knows the score, `fair` knows it too, `direct` little, and states a good deal."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=rows)
    values = np.column_stack(
        [
            y + 3 * rng.normal(size=rows),
            10 + 5 * (y + noise * rng.normal(size=rows)),
            y + noise * rng.normal(size=rows),
            rng.normal(size=rows) * 100,
        ]
    )
    states = np.outer(y, rng.normal(size=50)) * 0.5 + rng.normal(size=(rows, 50))
    groups = tuple(i // of_group for i in range(rows))
    return Readings(NAMES, values, groups, {"mid": states.astype(np.float32)}), 3 + y


#: Other tasks have taught that `good` is good; its spread there was 7.
KNOWN = Experience(numbers={"good": (10.0, 7.0, 1.0)}, points=0.5)


def fit(table: Readings, y: np.ndarray, known: Experience = NOTHING) -> LinearHead:
    return gaussian(table, y, known, own="direct").head


def test_unseen_rows_are_known_and_scores_keep_the_scale() -> None:
    table, y = made(1, 300)
    train, test = np.arange(40), np.arange(40, 300)
    predicted = fit(table.rows(train), y[train])(table.rows(test))
    assert agreement(predicted, y[test]) > 2.2
    assert abs(predicted.mean() - y[test].mean()) < 0.5
    assert np.mean((predicted - y[test]) ** 2) < np.var(y[test])


@pytest.mark.parametrize("known", [NOTHING, KNOWN])
def test_a_head_is_numbers_that_add_up_and_a_gap_adds_nothing(
    known: Experience,
) -> None:
    table, y = made(2)
    head = fit(table, y, known)
    again = LinearHead.of(
        HeadData.model_validate_json(head.data("model").model_dump_json())
    )
    assert again(table) == pytest.approx(head(table), abs=1e-4)
    contributed = head.contributions(table)
    assert head.base + sum(contributed.values()) == pytest.approx(head(table))
    gaps = Readings(
        NAMES, np.full_like(table.values, np.nan), table.groups, table.states
    )
    assert all(not head.contributions(gaps)[name].any() for name in head.weights)


def test_with_few_labels_experience_decides_and_with_many_the_labels() -> None:
    wrong = Experience(numbers={"noise": (0.0, 100.0, 1.0)}, points=0.5)
    few, many = ([], [])
    for seed in range(8):
        table, y = made(seed, 300, noise=0.5)
        rest = table.rows(np.arange(100, 300))
        for found, count in ((few, 5), (many, 100)):
            rows, scores = table.rows(np.arange(count)), y[:count]
            heads = [fit(rows, scores, known) for known in (KNOWN, NOTHING, wrong)]
            found.append([agreement(head(rest), y[100:]) for head in heads])
    helped, alone, misled = np.mean(few, axis=0)
    assert helped > alone + 0.2
    assert misled < alone
    assert np.mean(many, axis=0)[2] > 2


def test_labels_that_are_mostly_noise_take_little_from_experience() -> None:
    lost = []
    for seed in range(24):
        table, y = made(seed, 300, noise=1.5)
        rng = np.random.default_rng(seed + 50)
        states = {"mid": rng.normal(size=(300, 200)).astype(np.float32)}
        table = Readings(NAMES, table.values, table.groups, states)
        labels = y + 2.0 * rng.normal(size=300)
        train, test = np.arange(40), np.arange(40, 300)
        fitted = gaussian(table.rows(train), labels[train], KNOWN, own="direct")
        expected = fitted.head + fitted.learnt.scaled(-1.0)
        rows = table.rows(test)
        lost.append(agreement(expected(rows), y[test]))
        lost[-1] -= agreement(fitted.head(rows), y[test])
    assert np.mean(lost) < 0.06


def test_an_own_score_that_is_good_wins_and_costs_nothing_where_it_is_not() -> None:
    gained = []
    for seed in range(8):
        table, y = made(seed, 300, noise=3.0)
        strong = table.values.copy()
        strong[:, 0] = 50 + 10 * (
            y + 0.4 * np.random.default_rng(seed + 99).normal(size=len(y))
        )
        strong_table = Readings(NAMES, strong, table.groups)
        train, test = np.arange(30), np.arange(30, 300)
        fitted = weigh(strong_table.rows(train), y[train], KNOWN)
        assert "direct" in fitted.head.weights
        gained.append(
            agreement(fitted.head(strong_table.rows(test)), y[test])
            - agreement(strong[test, 0], y[test])
        )
    assert np.mean(gained) > -0.03
    assert "direct" not in weigh(*made(3, 60, noise=0.5), KNOWN).head.weights


@pytest.mark.parametrize("groups", [40, 20, 7])
def test_noise_in_more_dimensions_than_rows_teaches_nothing(groups: int) -> None:
    """Rows that are centred together tell each other's labels to a fit with enough dimensions: Q came to 3."""
    reached = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        states = {"wide": rng.normal(size=(40, 400))}
        table = Readings(
            (), np.zeros((40, 0)), tuple(i % groups for i in range(40)), states
        )
        y = rng.normal(size=40)
        reached.append(agreement(gaussian(table, y, NOTHING, own=None).left_out, y))
    assert (
        abs(float(np.mean(reached))) < 0.3
    )  # each has a standard deviation of about .45


def test_left_out_scores_are_those_of_a_fit_without_the_group() -> None:
    table, y = made(4, 40)
    quick = gaussian(table, y, KNOWN, own="direct").left_out
    slow = np.zeros(len(y))
    for group in set(table.groups):
        out = np.flatnonzero([g == group for g in table.groups])
        rest = np.setdiff1d(np.arange(len(y)), out)
        head = fit(table.rows(rest), y[rest], KNOWN)
        slow[out] = head(table.rows(out)) - head.base
    # Means and spreads of the readings are those of all rows in the quick way, and of the rest in the slow one.
    assert np.corrcoef(quick, slow)[0, 1] > 0.97


def test_the_models_own_deviation_covers_new_rows() -> None:
    inside = []
    for seed in range(10):
        table, y = made(seed, 240)
        train, test = np.arange(40), np.arange(40, 240)
        fitted = gaussian(table.rows(train), y[train], NOTHING, own="direct")
        width = 1.645 * np.sqrt(np.mean(fitted.deviation**2))
        inside.append(np.mean(np.abs(fitted.head(table.rows(test)) - y[test]) < width))
    assert 0.85 < np.mean(inside) <= 1


@settings(max_examples=30)
@given(st.floats(0.01, 100), st.floats(-1000, 1000), st.integers(0, 5))
def test_the_unit_of_a_reading_does_not_matter(
    factor: float, shift: float, seed: int
) -> None:
    table, y = made(seed, 40)
    moved = Readings(NAMES, table.values * factor + shift, table.groups, table.states)
    assert fit(table, y)(table) == pytest.approx(
        fit(moved, y)(moved), rel=1e-4, abs=1e-4
    )


def test_a_wild_value_counts_no_more_than_what_training_saw_and_is_told() -> None:
    table, y = made(7, 80)
    head, wild = fit(table.rows(range(40)), y[:40]), table.values[40:].copy()
    wild[0, 1], wild[1, 1] = 1e6, -1e6
    again = LinearHead.of(
        HeadData.model_validate_json(head.data("model").model_dump_json())
    )
    rows = Readings(NAMES, wild, table.groups[40:], {"mid": table.states["mid"][40:]})
    assert np.abs(again(rows)[:2] - 3).max() < np.ptp(y)
    assert again(rows)[2:] == pytest.approx(head(table.rows(range(42, 80))), abs=1e-4)
    assert [again.unlike(rows.rows([i])) for i in range(40)] == [["good"]] * 2 + [
        []
    ] * 38


def test_heads_add_even_with_other_means() -> None:
    table, y = made(5)
    a, b = (
        fit(table.rows(rows), y[rows]) for rows in (np.arange(30), np.arange(30, 60))
    )
    assert (a + b)(table) == pytest.approx(a(table) + b(table))


def test_what_does_not_vary_weighs_nothing_and_equal_labels_leave_experience() -> None:
    table, y = made(6)
    values = table.values.copy()
    values[:, 3] = 7.0
    assert fit(Readings(NAMES, values, table.groups), y).weights["noise"] == (7.0, 0.0)
    head = fit(table.rows(np.arange(6)), np.full(6, 80.0), KNOWN)
    assert agreement(head(table), table.columns(["good"])[:, 0]) > 2.5
    assert head(table.rows(np.arange(6))).mean() == pytest.approx(80.0)


def test_labels_that_mean_nothing_do_not_turn_the_judge_round() -> None:
    truth = []
    for seed in range(20):
        table, y = made(seed, 240)
        train, test = np.arange(40), np.arange(40, 240)
        noise = np.random.default_rng([seed, 2]).permutation(y[train])
        truth.append(
            agreement(fit(table.rows(train), noise, KNOWN)(table.rows(test)), y[test])
        )
    assert np.mean(truth) > 0.5


def test_nested_agreement_is_what_fresh_rows_give() -> None:
    said, true = [], []
    for seed in range(12):
        table, y = made(seed, 260, noise=2.0)
        train, test = np.arange(60), np.arange(60, 260)
        said.append(agreement(nested(fit, table.rows(train), y[train]), y[train]))
        true.append(
            agreement(fit(table.rows(train), y[train])(table.rows(test)), y[test])
        )
    assert abs(np.mean(said) - np.mean(true)) < 0.2


@given(
    st.lists(st.integers(0, 8), min_size=2, max_size=60).filter(
        lambda g: len(set(g)) > 1
    ),
    st.integers(2, 6),
)
def test_folds_keep_groups_whole(groups: list[int], count: int) -> None:
    found = folds(groups, count)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(groups)))
    assert len(found) == min(count, len(set(groups)))
    sides = [{groups[i] for i in fold} for fold in found]
    assert sum(map(len, sides)) == len(set(groups))


def test_what_makes_no_table_is_refused() -> None:
    table, _ = made(7)
    with pytest.raises(OptionError, match="array of that shape"):
        Readings(("a",), np.zeros((3, 2)), (1, 2, 3))
    with pytest.raises(OptionError, match="have gaps"):
        Readings(("a",), np.zeros((2, 1)), (1, 2), {"s": np.array([[1.0], [np.nan]])})
    with pytest.raises(OptionError, match="no reading 'other'"):
        table.columns(["other"])
    with pytest.raises(OptionError, match="no states 'deep'"):
        LinearHead(0.0, {}, {"deep": (0.0, np.zeros(2))})(table)
    with pytest.raises(OptionError, match="one group"):
        folds(["a", "a"])


@pytest.mark.parametrize(
    "change",
    [
        {"model": "x" * 401},
        {"base": float("nan")},
        {"base": 1e300},
        {"weights": {"a": [1, "two"]}},
        {"weights": {str(n): [0, 0] for n in range(2001)}},
        {"states": {"s": {"offset": 0, "weights": []}}},
        {"states": {"s": {"offset": float("inf"), "weights": [1]}}},
        {"states": {"s": {"offset": 0, "weights": [0] * 20_001}}},
        {"other": 1},
    ],
    ids=lambda change: str(change)[:40],
)
def test_what_is_no_head_is_refused(change: dict[str, object]) -> None:
    good = {
        "model": "m",
        "base": 1,
        "weights": {"a": [1, 2]},
        "states": {"s": {"offset": 0, "weights": [1]}},
    }
    assert LinearHead.of(parts.read_options(HeadData, good, "the head")).weights == {
        "a": (1.0, 2.0)
    }
    with pytest.raises(OptionError, match="the head"):
        parts.read_options(HeadData, good | change, "the head")


def test_agreement_of_five_rows() -> None:
    # r = .8; ranks are the values, so rho = .8 too; of 10 pairs 8 are in order and 2 not: tau = .6
    assert agreement(
        np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 3, 5, 4])
    ) == pytest.approx(2.2)
    assert agreement(np.ones(5), np.arange(5.0)) == 0.0


# Ratings of facts -----------------------------------------------------------------------------------------------------


#: Counts that tell whether the source has an output's words, and its details.
WORDS = ("facts.pairs", "facts.triples", "facts.supported", "facts.weakest")
DETAILS = "facts.details"


def of_facts(seed: int, truth: tuple[str, ...]) -> tuple[Readings, np.ndarray]:
    """A table in which some readings know the score, beside others of forty that know nothing."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=200)
    names = (*WORDS, DETAILS, *(f"n{i}" for i in range(40)))
    knows = np.array([name in truth for name in names])
    values = rng.normal(size=(200, len(names))) + np.outer(y, knows)
    values[:, :5] = 0.6 + 0.1 * values[:, :5]
    return Readings(names, values, tuple(range(200))), 3 + y


#: Other tasks have taught that another reading is of some use, which knows nothing here.
TAUGHT = Experience(numbers={"n0": (0.0, 1.0, 0.4)}, points=0.5)


def reached(known: Experience, truth: tuple[str, ...], labels: int) -> float:
    found = []
    for seed in range(8):
        table, y = of_facts(seed, truth)
        head = gaussian(table.rows(range(labels)), y[:labels], known, own=None).head
        found.append(agreement(head(table.rows(range(100, 200))), y[100:]))
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("truth", "labels", "least"),
    [(WORDS, 8, 0.3), ((DETAILS,), 8, 0.5), ((DETAILS,), 40, 0.1)],
)
def test_where_facts_are_rated_a_count_that_tells_is_not_diluted(
    truth: tuple[str, ...], labels: int, least: float
) -> None:
    rated, other = TAUGHT.of_aspect("Factual consistency"), TAUGHT.of_aspect("fluency")
    assert other is TAUGHT
    gain = reached(rated, truth, labels) - reached(other, truth, labels)
    assert gain > least


def test_where_facts_are_rated_but_counts_tell_nothing_labels_say_so() -> None:
    rated = TAUGHT.of_aspect("faithfulness")
    assert reached(rated, ("n3",), 40) > reached(TAUGHT, ("n3",), 40) - 0.05


def test_without_labels_ratings_of_facts_follow_the_counts() -> None:
    table, y = of_facts(0, WORDS)
    plain = TAUGHT.head(table.names, ())
    rated = TAUGHT.of_aspect("groundedness")
    assert agreement(rated.head(table.names, ())(table), y) > 1.0
    assert abs(agreement(plain(table), y)) < 0.3
    uncounted = [name for name in table.names if not name.startswith("facts.")]
    assert rated.head(uncounted, ()) == plain


@pytest.mark.parametrize(
    "aspect",
    ["Consistency", "faithfulness", "no hallucinations", "facts", "groundedness"],
)
def test_names_of_aspects_that_rate_facts(aspect: str) -> None:
    assert TAUGHT.of_aspect(aspect).factual


@pytest.mark.parametrize(
    "aspect", ["fluency", "background", "emotional support", "satisfaction", "overall"]
)
def test_names_of_aspects_that_do_not(aspect: str) -> None:
    assert TAUGHT.of_aspect(aspect) is TAUGHT


def test_a_judge_without_experience_expects_nothing_of_facts() -> None:
    assert NOTHING.of_aspect("consistency") is NOTHING


# Right answers --------------------------------------------------------------------------------------------------------


SAID = "facts.of_reference"


def of_answers(seed: int, *, spread: float) -> tuple[Readings, np.ndarray]:
    """A table in which the share of the reference's words knows the score; spread: how far rows differ in it."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=200)
    values = rng.normal(size=(200, 41))
    values[:, 0] = 0.5 + spread * (y + values[:, 0]) / math.sqrt(2)
    names = (SAID, *(f"n{i}" for i in range(40)))
    return Readings(names, values, tuple(range(200))), 3 + y


def reached_answers(known: Experience, labels: int, *, spread: float = 0.35) -> float:
    found = []
    for seed in range(8):
        table, y = of_answers(seed, spread=spread)
        head = gaussian(table.rows(range(labels)), y[:labels], known, own=None).head
        found.append(agreement(head(table.rows(range(100, 200))), y[100:]))
    return float(np.mean(found))


def test_where_the_right_answer_is_known_few_labels_find_it() -> None:
    right = TAUGHT.of_aspect("correctness")
    assert right.right
    # No word says so: eight labels find it all the same, less surely.
    unsaid = reached_answers(TAUGHT, 8)
    assert reached_answers(right, 8) > unsaid + 0.1
    assert unsaid > reached_answers(TAUGHT, 8, spread=0.03) + 0.1


def test_a_reference_that_is_one_of_many_is_not_taken_for_the_answer() -> None:
    """Rows that share about as much of their references say little, whatever the name."""
    right = TAUGHT.of_aspect("correctness")
    gain = reached_answers(right, 8) - reached_answers(right, 8, spread=0.03)
    assert gain > 0.2


def test_without_labels_a_row_without_a_reference_is_judged_as_before() -> None:
    table, y = of_answers(0, spread=0.35)
    plain, right = (
        known.head(table.names, ())
        for known in (TAUGHT, TAUGHT.of_aspect("correctness"))
    )
    assert agreement(right(table), y) > agreement(plain(table), y) + 1
    bare = table.values.copy()
    bare[:, 0] = np.nan
    without = Readings(table.names, bare, table.groups)
    assert agreement(right(without), plain(without)) == pytest.approx(3)


@pytest.mark.parametrize(
    ("aspect", "definition", "right"),
    [
        ("Correctness", "", True),
        ("answer accuracy", "", True),
        ("quality", "Does it give the right answer?", True),
        ("quality", "It has to match the reference.", True),
        ("fluency", "Grammatically correct sentences.", False),
        ("overall", "", False),
    ],
)
def test_words_that_ask_for_the_right_answer(
    aspect: str, definition: str, right: bool
) -> None:
    assert TAUGHT.of_aspect(aspect, definition).right is right


# Experience that may mislead ------------------------------------------------------------------------------------------


def of_tasks(known: Experience, sign: float, labels: int) -> float:
    """Q on tables in which ten of forty readings know the score; sign: of what experience expects of them."""
    found = []
    expected = {f"n{i}": (0.0, 1.0, sign * 0.3 if i < 10 else 0.0) for i in range(40)}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=200)
        values = rng.normal(size=(200, 40))
        values[:, :10] += y[:, None] / 2
        table = Readings(tuple(expected), values, tuple(range(200)))
        learnt = known.model_copy(update={"numbers": expected})
        train = range(labels)
        head = gaussian(table.rows(train), y[:labels], learnt, own=None).head
        found.append(agreement(head(table.rows(range(100, 200))), y[100:]))
    return float(np.mean(found))


def test_labels_get_rid_of_experience_that_points_the_wrong_way() -> None:
    given_up = of_tasks(TAUGHT, -1.0, 40)
    with mock.patch.object(gaussian_module, "GIVEN_UP", ()):
        assert of_tasks(TAUGHT, -1.0, 40) < given_up - 0.05
        kept = of_tasks(TAUGHT, 1.0, 40)
    assert of_tasks(TAUGHT, 1.0, 40) > kept - 0.05


def test_labels_choose_between_the_views_of_experience() -> None:
    """Weights that tell all texts apart take over where those within systems mislead."""
    right = Weights(numbers={f"n{i}": 0.3 for i in range(10)})
    both = TAUGHT.model_copy(update={"pooled": right})
    assert of_tasks(both, -1.0, 8) > of_tasks(TAUGHT, -1.0, 8) + 0.3
    assert of_tasks(both, 1.0, 8) > of_tasks(TAUGHT, 1.0, 8) - 0.05


def test_without_labels_the_view_within_systems_counts_alone() -> None:
    both = TAUGHT.model_copy(update={"pooled": Weights(numbers={"n0": -1.0})})
    assert both.head(("n0",), ()) == TAUGHT.head(("n0",), ())


def test_readings_beyond_their_ranges_count_in_neither_view() -> None:
    known = Experience(
        numbers={"a": (0.0, 1.0, 1.0), "b": (0.0, 1.0, 1.0)},
        pooled=Weights(numbers={"a": 1.0, "b": 1.0}),
        ranges={"a": (0.0, 1.0)},
    )
    table = Readings(("a", "b"), np.full((3, 2), 5.0), (0, 1, 2))
    seen = known.of_seen(table)
    assert seen.numbers["a"][2] == 0
    assert seen.pooled == Weights(numbers={"b": 1.0})
