"""Whether a mixture takes the place of a strong judge's own score, and the levels that it goes back on."""

from dataclasses import replace

import numpy as np
import pytest

from judgesmith.agreement.objectives import AUC, Q, Rows
from judgesmith.optimizers.fitting.readings import agreement, ahead, on_levels
from judgesmith.programs.readings.head import HeadData, LinearHead, Readings, Steps
from judgesmith.programs.refining import HeadFit

RNG = np.random.default_rng(0)
QUALITY = RNG.normal(size=80)
NOISE = RNG.normal(size=(3, 80))


def rows_of(human: np.ndarray) -> Rows:
    names = [str(place) for place in range(len(human))]
    return Rows(human, names, names)


def fit_of(scores: np.ndarray) -> tuple[HeadFit, Readings]:
    """A fit whose head gives these scores, on rows that it did without."""
    table = Readings(("a",), scores[:, None], tuple(range(len(scores))))
    head = LinearHead(0.0, {"a": (0.0, 1.0)})
    return HeadFit(head, scores, 0.0, 0.0, 1.0, (), scores), table


def test_breaking_ties_by_noise_is_not_ahead_and_costs_q() -> None:
    own = (QUALITY > 0).astype(float)
    broken = own + 1e-3 * NOISE[0]
    rows = rows_of(QUALITY)
    assert agreement(broken, QUALITY) < agreement(own, QUALITY) - 0.1
    assert not ahead(broken, own, rows, Q(), strong=True)


def test_a_mixture_that_orders_ties_as_people_do_is_ahead() -> None:
    """Five levels are near the whole order, and their ties are rewarded by Q: it gains less than r + d."""
    own = np.round(QUALITY + 0.5 * NOISE[0])
    mixed = own + 0.4 * (QUALITY + NOISE[1])
    gains = agreement(mixed, QUALITY) - agreement(own, QUALITY)
    first, second = Q().compared([mixed, own], rows_of(QUALITY)).values
    assert first - second > gains
    assert ahead(mixed, own, rows_of(QUALITY), Q(), strong=True)
    assert not ahead(own, mixed, rows_of(QUALITY), Q(), strong=True)


def test_few_labels_need_a_clear_lead() -> None:
    own = QUALITY + NOISE[0]
    better = QUALITY + 0.9 * NOISE[0]
    few = slice(0, 12)
    assert ahead(better, own, rows_of(QUALITY), Q(), strong=True)
    assert not ahead(better[few], own[few], rows_of(QUALITY[few]), Q(), strong=True)


def test_scores_go_back_on_peoples_levels_where_that_raises_the_objective() -> None:
    human = np.digitize(QUALITY, [-0.5, 0.5]) * 50.0
    own = np.digitize(QUALITY + 0.7 * NOISE[0], [0.0]) * 100.0
    fit, table = fit_of(50 + 20 * (QUALITY + 0.1 * NOISE[1]))
    levelled = on_levels(fit, table, own, rows_of(human), Q())
    assert set(levelled.percents) == {0.0, 50.0, 100.0}
    assert levelled.q > agreement(fit.percents, human)
    assert (levelled.head(table) == levelled.percents).all()
    many = QUALITY + NOISE[0]
    assert on_levels(fit, table, many, rows_of(human), Q()) is fit
    # Ties count half for the area under the curve, which only loses by levels.
    passed = (human > 25) * 100.0
    assert on_levels(fit, table, own, rows_of(passed), AUC()) is fit


def test_levels_are_saved_with_the_head_and_absent_without() -> None:
    # Scores 40 and 60 for people's 0 and 100: the level changes at 50.
    steps = Steps.of(np.array([40.0, 60.0]), np.array([0.0, 100.0]))
    assert (steps.cuts, steps.levels) == ((50.0,), (0.0, 100.0))
    head = LinearHead(45.0, {"a": (0.0, 1.0)})
    plain = head.data("m").model_dump(mode="json", exclude_defaults=True)
    assert "steps" not in plain
    saved = replace(head, steps=steps).data("m").model_dump_json()
    loaded = LinearHead.of(HeadData.model_validate_json(saved))
    table = Readings(("a",), np.array([[0.0], [9.0]]), (0, 1))
    assert loaded(table).tolist() == [0.0, 100.0]  # 45 and 54


@pytest.mark.parametrize(
    ("cuts", "levels"), [((2.0, 1.0), (0.0, 1.0, 2.0)), ((1.0,), (0.0, 1.0, 2.0))]
)
def test_steps_without_an_order_are_refused(
    cuts: tuple[float, ...], levels: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="rising cuts"):
        Steps(cuts=cuts, levels=levels)
