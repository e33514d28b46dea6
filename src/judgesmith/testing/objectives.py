"""Contract of every objective that a search maximises."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from judgesmith.agreement.objectives import Objective, Rows, objectives

#: People's scores in percent, two outputs of each of twelve documents.
HUMAN = np.array([0.0, 100.0] * 12)
DOCUMENTS = [f"d{number // 2}" for number in range(24)]
ROWS = Rows(HUMAN, DOCUMENTS, DOCUMENTS)


class ObjectiveContract:
    """Subclass it in a test module, name the `part`, and pytest runs all of this over it."""

    part: ClassVar[type[Objective]]

    @pytest.fixture
    def objective(self) -> Objective:
        """Provide the objective to test."""
        return self.part()

    def test_it_is_registered_and_says_what_it_is(self, objective: Objective) -> None:
        assert objectives.get(objective.name) is type(objective)
        assert objective.about
        assert objective.fits

    def test_people_themselves_reach_the_best_and_their_opposite_less(
        self, objective: Objective
    ) -> None:
        best = objective.reached(HUMAN, ROWS).value
        assert best == pytest.approx(objective.chance + objective.reach)
        assert objective.reached(100 - HUMAN, ROWS).value < best

    def test_failed_rows_are_counted_and_all_of_them_are_chance_with_a_reason(
        self, objective: Objective
    ) -> None:
        some = HUMAN.copy()
        some[0] = np.nan
        assert objective.reached(some, ROWS).failed == 1
        none = objective.reached(np.full(24, np.nan), ROWS)
        assert none.value == objective.chance
        assert none.reason

    def test_its_resamples_are_of_the_same_value(self, objective: Objective) -> None:
        noisy = HUMAN + 37.0 * np.sin(np.arange(24))
        agreement = objective.resampled([noisy], ROWS)
        once = np.ones((1, agreement.documents))
        (statistic,) = agreement.statistics
        assert statistic(once).sum() == pytest.approx(
            objective.reached(noisy, ROWS).value
        )
