"""Soft pairwise accuracy of systems."""

from __future__ import annotations

import numpy as np
import pytest

from judgesmith.agreement.meta.accuracy import soft_pairwise_accuracy
from judgesmith.agreement.meta.evaluation import meta_evaluate


def test_of_two_systems_it_is_the_distance_of_two_p_values() -> None:
    # Three documents. People: a better by 1, 1, 1; all eight sign patterns: one as large (tied) → p = (0 + 1/2) / 8.
    # The judge: a better by 1, 1, -1 (sum 1): larger 1 of 8 (sum 3), equal 3 of 8 → p = (1 + 3/2) / 8.
    human, judge = [1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1]
    systems, documents = ["a"] * 3 + ["b"] * 3, [1, 2, 3] * 2
    value = soft_pairwise_accuracy(
        judge, human, systems=systems, documents=documents, rounds=40_000
    )
    assert value == pytest.approx(1 - (2.5 - 0.5) / 8, abs=0.01)
    assert (
        soft_pairwise_accuracy(human, human, systems=systems, documents=documents)
        == 1.0
    )
    turned = soft_pairwise_accuracy(
        [-x for x in human], human, systems=systems, documents=documents, rounds=40_000
    )
    assert turned == pytest.approx(1 - (7.5 - 0.5) / 8, abs=0.01)


def test_systems_without_a_common_document_say_nothing() -> None:
    assert np.isnan(
        soft_pairwise_accuracy([1, 2], [1, 2], systems=["a", "b"], documents=[1, 2])
    )


def test_it_is_a_coefficient_of_systems_alone() -> None:
    rng = np.random.default_rng(0)
    doc, sys = np.repeat(np.arange(20), 4), np.tile(np.arange(4), 20)
    human = sys / 2 + rng.normal(size=80)
    found = meta_evaluate(
        {"judge": human + rng.normal(size=80)},
        human,
        documents=doc,
        systems=sys,
        coefficients=["spearman", "acc_soft"],
        rounds=100,
    )
    table = found.agreement[found.agreement.coefficient == "acc_soft"]
    assert list(table.level) == ["system"]
    assert 0.5 < table.value.iloc[0] <= 1
    assert "no interval" in table.reason.iloc[0]
