"""How often the tests between judges call judges different that agree equally well with people."""

import itertools

import numpy as np

from judgesmith.agreement.differences import paired_bootstrap
from judgesmith.agreement.resampling import Measure
from judgesmith.agreement.significance import holm, permutation_test

SIMULATIONS, DOCUMENTS, ROWS = 200, 30, 4


def test_equal_judges_are_rarely_told_apart() -> None:
    """Documents that people like or do not, and on which a judge errs alike."""
    doc = np.repeat(np.arange(DOCUMENTS), ROWS)
    alarms: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(SIMULATIONS):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=len(doc))
        # an error of the document and one of the row
        of_both = [
            (0.9 * rng.normal(size=DOCUMENTS)[doc], 0.44 * rng.normal(size=len(doc)))
            for _ in "abc"
        ]
        judges = {
            name: truth + one + other
            for name, (one, other) in zip("abc", of_both, strict=True)
        }
        human = (
            truth
            + 0.8 * rng.normal(size=DOCUMENTS)[doc]
            + 0.7 * rng.normal(size=len(doc))
        )
        for level, test in itertools.product(
            ("pooled", "sample"), (permutation_test, paired_bootstrap)
        ):
            measure = Measure(human, documents=doc, level=level, coefficient="pearson")
            pairs = itertools.combinations(judges.values(), 2)
            single = np.array(
                [
                    test(one, other, measure, rounds=199, seed=seed).p
                    for one, other in pairs
                ]
            )
            rates = float((single <= 0.05).mean()), float((holm(single) <= 0.05).any())
            alarms.setdefault((level, test.__name__), []).append(rates)
    assert len(alarms) == 4
    # three pairs each: the standard error of .05 is about .011, and the seeds are fixed
    for key, rates in alarms.items():
        single, family = np.mean(rates, axis=0)
        assert 0.03 <= single <= 0.07, key
        assert family <= 0.07, key
