"""The choice among candidates, and the chosen one's agreement on rows that did not choose it."""

import math
from typing import Any

import dspy
import numpy as np
import pytest
from planted import guessing, planted_labels
from rated import rated

import judgesmith as js
from judgesmith.agreement.objectives import Q as Sum
from judgesmith.optimizers.examples import Scored, agreement
from judgesmith.optimizers.fitting.outcome import calibrated_without, fit_sureness
from judgesmith.optimizers.search.base import Candidate, SearchRecord, Trial, unfit
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.optimizers.search.selection import Contest
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Scale, Verdict
from judgesmith.testing.scripted import scripted_models

Table = np.ndarray[Any, Any]


def noisy(human: Table, candidates: int, weight: float, seed: int) -> Table:
    noise = np.random.default_rng(seed).normal(size=(candidates, len(human)))
    return np.asarray(50 + 15 * (weight * human + math.sqrt(1 - weight**2) * noise))


HUMAN = np.random.default_rng(8).normal(size=40)


# -- the rule


#            zero-shot  one demo  three demos
Q = [1.0, 1.2, 1.5]
PARTS = [(0, 0), (1, 0), (3, 0)]


@pytest.mark.parametrize(
    ("clear", "qualified", "expected"),
    [
        ([], [1, 1, 1], 0),
        ([[2, 0]], [1, 1, 1], 2),
        ([[2, 0], [1, 0]], [1, 1, 1], 1),
        ([[2, 0], [1, 0], [2, 1]], [1, 1, 1], 2),
        ([[1, 0]], [1, 1, 0], 1),
        ([], [0, 1, 1], 2),
        ([[2, 0]], [1, 0, 0], 0),
        ([], [0, 0, 0], 0),
    ],
)
def test_the_fewest_demonstrations_that_the_best_does_not_clearly_beat(
    clear: list[list[int]], qualified: list[int], expected: int
) -> None:
    found = Contest(PARTS, [bool(x) for x in qualified]).chosen(
        Q, lambda one, other: [one, other] in clear
    )
    assert found == expected


def test_without_a_margin_the_highest_is_chosen_and_equal_ones_by_their_parts() -> None:
    free = Contest([(0, 0), (3, 0), (1, 1), (1, 0), (1, 0)], [True] * 5)
    assert free.chosen([1.0, 1.2, 1.1, 1.1, 1.1], None) == 1
    assert (
        free.chosen([0.0, 1.2, 1.2, 1.2, 1.2], None) == 3
    )  # fewest demonstrations, fewest changes, the earliest
    assert free.best([1.2, 1.2 + 1e-12, 0.0, 0.0, 0.0]) == 0


def tried(table: Table, examples: list[dspy.Example]) -> list[Trial]:
    made = []
    for i, said in enumerate(table):
        found = agreement(said, examples, objective=Sum(), seed=3, rounds=20)
        verdicts = tuple(
            Verdict.failed("no") if math.isnan(p) else Verdict(score=p, percent=p)
            for p in said.tolist()
        )
        scored = Scored(verdicts, said)
        candidate = Candidate(
            str(i), "labels", min(i, 4), found, unfit(scored, found, 0.1), len(said)
        )
        made.append(Trial(candidate, None, scored))  # type: ignore[arg-type]
    return made


def searched(
    table: Table, examples: list[dspy.Example], **options: Any
) -> SearchRecord:
    search, trials = (
        CorrelationRandomSearch(**{"seed": 3} | options),
        tuple(tried(table, examples)),
    )
    return search.crossed(
        SearchRecord(trials, search.choose(trials, examples)[0]), examples
    )


# -- the agreement of what was chosen


def test_where_nothing_is_chosen_nothing_is_corrected() -> None:
    alone, examples = noisy(HUMAN, 1, 0.6, 0), rated(HUMAN, 1)
    for table in (
        alone,
        np.repeat(alone, 3, axis=0),
        alone * [[1.0], [2.0]],
    ):  # the same but for the scale
        found = searched(table, examples)
        assert found.chosen is found.tried[0]
        assert found.corrected == pytest.approx(found.selected.agreement.q, abs=1e-9)


def test_a_clear_winner_keeps_its_agreement() -> None:
    table = noisy(HUMAN, 6, 0.0, 1)
    table[4] = 50 + 15 * HUMAN + np.random.default_rng(2).normal(size=40)
    found = searched(table, rated(HUMAN, 1))
    assert found.chosen is found.tried[4]
    assert found.corrected == pytest.approx(found.selected.agreement.q, abs=1e-9)


def test_of_equal_judges_the_chosen_one_is_reported_about_as_it_is() -> None:
    # Pearson's r of 0.45 each: Q = r + (6/pi) asin(r/2) + (2/pi) asin(r)
    true = 0.45 + 6 / math.pi * math.asin(0.225) + 2 / math.pi * math.asin(0.45)
    naive, after = [], []
    for seed in range(30):
        human = np.random.default_rng([seed, 1]).normal(size=40)
        found = searched(
            noisy(human, 16, 0.45, seed), rated(human, 1), sure=0.0, seed=seed
        )
        assert found.corrected is not None
        naive.append(found.selected.agreement.q - true)
        after.append(found.corrected - true)
    assert np.mean(naive) > 0.35
    assert abs(np.mean(after)) < 0.15


def test_no_correction_without_evidence() -> None:
    one = searched(noisy(HUMAN, 3, 0.5, 0), rated(HUMAN, 40))  # one document
    silent = searched(
        np.stack([np.full(40, 50.0), np.full(40, math.nan)]), rated(HUMAN, 1)
    )
    assert (one.left_out, one.corrected, silent.corrected) == (None, None, None)


def test_a_run_whose_candidate_a_metric_chose_is_not_corrected() -> None:
    with scripted_models() as make:
        search = CorrelationRandomSearch(
            candidates=1, max_demos=1, metric=lambda row, said, trace=None: 1.0
        )
        judge = js.compile(
            DirectScorer("fluency"),
            planted_labels(60, 2),
            lm=make(guessing())[0],
            optimizer=search,
        )
    assert judge.report.selected["q_corrected"] is None
    assert judge.report.selected["q"] is not None


def test_errors_to_come_are_told_by_rows_that_a_choice_was_not_made_on() -> None:
    covered, scale = [], Scale(0, 100)
    for seed in range(30):
        human = np.random.default_rng([seed, 7]).normal(size=340)
        table, new = noisy(human[:40], 16, 0.5, seed).clip(0, 100), slice(40, None)
        people, names = 50 + 15 * human, list(map(str, range(40)))
        examples = rated(human[:40], 1)
        found = searched(table, examples, sure=0.0, seed=seed)
        assert found.left_out is not None
        score = Calibration.fit(found.scored.percents, people[:40], scale)
        fresh = noisy(human[new], 1, 0.5, seed + 99)[0].clip(0, 100)
        for percents in (found.scored.percents, found.left_out):
            mapped = calibrated_without(percents, people[:40], names, scale)
            sure = fit_sureness(percents, mapped, people[:40], names, scale)
            assert sure is not None
            ends = [sure.interval(p, score(p), scale) for p in fresh.tolist()]
            covered.append(
                np.mean(
                    [
                        i.low <= y <= i.high
                        for i, y in zip(ends, people[new], strict=True)
                        if i
                    ]
                )
            )
    chosen_on, left_out = np.reshape(covered, (-1, 2)).mean(axis=0)
    assert chosen_on < 0.87 < 0.88 < left_out < 0.94
