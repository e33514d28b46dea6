"""Heads on tables whose truth is known."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.optimizers.fitting.heads import (
    Directed,
    Recipe,
    Ridge,
    StateRidge,
    Together,
    folds,
)
from judgesmith.optimizers.fitting.readings import candidates, middle_layers
from judgesmith.optimizers.fitting.validation import agreement, choose, nested
from judgesmith.programs.readings.head import HeadData, LinearHead, Readings

NAMES = ("zero", "good", "fair", "noise")


def made(seed: int, rows: int = 60, *, of_group: int = 2, noise: float = 1.0) -> tuple[Readings, np.ndarray]:
    """A table in which `good` knows the score, `fair` knows it too, `zero` little, and states a good deal."""
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


RECIPES: tuple[Recipe, ...] = (
    Directed("zero-shot", ("zero",)),
    Directed("equal", ("good", "fair")),
    Ridge("ridge", NAMES),
    StateRidge("states", ("mid",)),
    Together("both", (Ridge("ridge", NAMES), StateRidge("states", ("mid",)))),
)
by_name = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


@by_name
def test_a_head_knows_unseen_rows(recipe: Recipe) -> None:
    table, y = made(1, 300)
    train, test = np.arange(60), np.arange(60, 300)
    fitted = recipe(table.rows(train), y[train])
    assert agreement(fitted.head(table.rows(test)), y[test]) > (0.6 if recipe.name == "zero-shot" else 1.8)


@by_name
def test_a_head_is_numbers(recipe: Recipe) -> None:
    table, y = made(2)
    head = recipe(table, y).head
    data = head.data("model")
    again = LinearHead.of(HeadData.model_validate_json(data.model_dump_json()))
    assert again(table) == pytest.approx(head(table), abs=1e-4)


@by_name
def test_contributions_add_up_and_a_gap_adds_nothing(recipe: Recipe) -> None:
    table, y = made(3)
    head = recipe(table, y).head
    parts = head.contributions(table)
    assert head.base + sum(parts.values()) == pytest.approx(head(table))
    gaps = Readings(NAMES, np.full_like(table.values, np.nan), table.groups, table.states)
    assert all(not head.contributions(gaps)[name].any() for name in head.weights)


@pytest.mark.parametrize("groups", [40, 20, 7])
def test_noise_in_more_dimensions_than_rows_teaches_nothing(groups: int) -> None:
    """Rows that are centred together tell each other's labels to a fit with enough dimensions: Q came to 3."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        states = {"wide": rng.normal(size=(40, 400))}
        table = Readings((), np.zeros((40, 0)), tuple(i % groups for i in range(40)), states)
        y = rng.normal(size=40)
        found.append(agreement(StateRidge("layers", ("wide",))(table, y).left_out, y))
    assert abs(float(np.mean(found))) < 0.3  # each has a standard deviation of about .45


@pytest.mark.parametrize("recipe", [r for r in RECIPES if isinstance(r, Ridge | StateRidge)], ids=lambda r: r.name)
def test_left_out_scores_are_those_of_a_fit_without_the_group(recipe: Ridge | StateRidge) -> None:
    table, y = made(4, 40)
    one = type(recipe)(**{**recipe.__dict__, "choices": (30.0,)})
    quick = one(table, y).left_out
    slow = np.zeros(len(y))
    for group in set(table.groups):
        out = np.flatnonzero([g == group for g in table.groups])
        rest = np.setdiff1d(np.arange(len(y)), out)
        head = one(table.rows(rest), y[rest]).head
        slow[out] = head(table.rows(out)) - head.base
    # Means and spreads of the readings are those of all rows in the quick way, and of the rest in the slow one.
    assert np.corrcoef(quick, slow)[0, 1] > 0.97


@settings(max_examples=30)
@given(st.floats(0.01, 100), st.floats(-1000, 1000), st.integers(0, 5))
def test_the_unit_of_a_reading_does_not_matter(factor: float, shift: float, seed: int) -> None:
    table, y = made(seed, 40)
    moved = Readings(NAMES, table.values * factor + shift, table.groups, table.states)
    for recipe in RECIPES[:3]:
        a, b = recipe(table, y).head(table), recipe(moved, y).head(moved)
        assert a == pytest.approx(b, rel=1e-4, abs=1e-4)


def test_heads_add_even_with_other_means() -> None:
    table, y = made(5)
    a, b = (Ridge("r", NAMES)(table.rows(rows), y[rows]).head for rows in (np.arange(30), np.arange(30, 60)))
    c, d = (StateRidge("s", ("mid",))(table.rows(rows), y[rows]).head for rows in (np.arange(30), np.arange(30, 60)))
    assert (a + b)(table) == pytest.approx(a(table) + b(table))
    assert (c + d)(table) == pytest.approx(c(table) + d(table))


def test_a_constant_reading_weighs_nothing() -> None:
    table, y = made(6)
    values = table.values.copy()
    values[:, 1] = 7.0
    head = Ridge("r", NAMES)(Readings(NAMES, values, table.groups), y).head
    assert head.weights["good"] == (7.0, 0.0)


@given(st.lists(st.integers(0, 8), min_size=2, max_size=60).filter(lambda g: len(set(g)) > 1), st.integers(2, 6))
def test_folds_keep_groups_whole(groups: list[int], count: int) -> None:
    found = folds(groups, count)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(groups)))
    assert len(found) == min(count, len(set(groups)))
    sides = [{groups[i] for i in fold} for fold in found]
    assert sum(map(len, sides)) == len(set(groups))


def test_what_makes_no_table_is_refused() -> None:
    table, y = made(7)
    with pytest.raises(OptionError, match="array of that shape"):
        Readings(("a",), np.zeros((3, 2)), (1, 2, 3))
    with pytest.raises(OptionError, match="have gaps"):
        Readings(("a",), np.zeros((2, 1)), (1, 2), {"s": np.array([[1.0], [np.nan]])})
    with pytest.raises(OptionError, match="no reading 'other'"):
        Directed("x", ("other",))(table, y)
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
    good = {"model": "m", "base": 1, "weights": {"a": [1, 2]}, "states": {"s": {"offset": 0, "weights": [1]}}}
    assert LinearHead.of(parts.read_options(HeadData, good, "the head")).weights == {"a": (1.0, 2.0)}
    with pytest.raises(OptionError, match="the head"):
        parts.read_options(HeadData, good | change, "the head")


# Choosing


def test_the_choice_takes_what_knows_and_keeps_the_scale() -> None:
    table, y = made(8, 300)
    train, test = np.arange(40), np.arange(40, 300)
    choice = choose(RECIPES, table.rows(train), y[train])
    predicted = choice.head(table.rows(test))
    assert choice.shares.get("zero-shot", 0.0) < 0.2 / len(RECIPES)  # of an even share
    assert sum(choice.shares.values()) == pytest.approx(1.0)
    assert agreement(predicted, y[test]) > 2.2
    assert abs(predicted.mean() - y[test].mean()) < 0.5
    assert np.mean((predicted - y[test]) ** 2) < np.var(y[test])
    assert {trial.name for trial in choice.trials} == {recipe.name for recipe in RECIPES}


def test_labels_that_mean_nothing_do_not_turn_the_judge_round() -> None:
    truth = []
    for seed in range(20):
        table, y = made(seed, 240)
        train, test = np.arange(40), np.arange(40, 240)
        noise = np.random.default_rng([seed, 2]).permutation(y[train])
        head = choose(RECIPES[:1] + RECIPES[2:3] + RECIPES[3:4], table.rows(train), noise).head
        truth.append(agreement(head(table.rows(test)), y[test]))
    # Zero-shot alone is at .8; two heads that learnt noise stand beside it.
    assert np.mean(truth) > 0.2


def test_nested_agreement_is_what_fresh_rows_give() -> None:
    said, true = [], []
    for seed in range(12):
        table, y = made(seed, 260, noise=2.0)
        train, test = np.arange(60), np.arange(60, 260)
        said.append(agreement(nested(partial(choose, RECIPES[:4]), table.rows(train), y[train]), y[train]))
        true.append(agreement(choose(RECIPES[:4], table.rows(train), y[train]).head(table.rows(test)), y[test]))
    assert abs(np.mean(said) - np.mean(true)) < 0.2


def test_agreement_of_five_rows() -> None:
    # r = .8; ranks are the values, so rho = .8 too; of 10 pairs 8 are in order and 2 not: tau = .6
    assert agreement(np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 3, 5, 4])) == pytest.approx(2.2)
    assert agreement(np.ones(5), np.arange(5.0)) == 0.0


def test_candidates_of_a_table() -> None:
    names = ("direct", "assistant.mean", "assistant.min", "surface.words")
    rng = np.random.default_rng(0)
    states = {f"assistant.mean{layer}": rng.normal(size=(20, 4)) for layer in (6, 8, 10, 12, 14, 16, 20, 24)}
    table = Readings(names, rng.normal(size=(20, 4)), tuple(range(20)), states)
    assert middle_layers(tuple(states)) == ("assistant.mean10", "assistant.mean12", "assistant.mean14")
    recipes = candidates(table, "direct")
    assert recipes[0].name == "zero-shot"
    for recipe in recipes:
        assert len(recipe(table, rng.normal(size=20)).left_out) == 20
    assert len({recipe.name for recipe in recipes}) == len(recipes)
    bare = Readings(("direct",), rng.normal(size=(20, 1)), tuple(range(20)))
    assert [recipe.name for recipe in candidates(bare, "direct")] == ["zero-shot"]
