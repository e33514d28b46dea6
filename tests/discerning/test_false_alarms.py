"""How often the tests of `meta_evaluate` call judges different that agree equally well with people."""

import numpy as np

from judgesmith.agreement.meta.evaluation import meta_evaluate

SIMULATIONS, DOCUMENTS, ROWS = 200, 30, 4


def test_equal_judges_are_rarely_told_apart() -> None:
    """Documents that people like or do not, and on which a judge errs alike."""
    doc = np.repeat(np.arange(DOCUMENTS), ROWS)
    alarms: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(SIMULATIONS):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=len(doc))
        # an error of the document and one of the row
        of_both = [(0.9 * rng.normal(size=DOCUMENTS)[doc], 0.44 * rng.normal(size=len(doc))) for _ in "abc"]
        judges = {name: truth + one + other for name, (one, other) in zip("abc", of_both, strict=True)}
        human = truth + 0.8 * rng.normal(size=DOCUMENTS)[doc] + 0.7 * rng.normal(size=len(doc))
        table = meta_evaluate(
            judges, human, documents=doc, levels=("pooled", "sample"), coefficients=("pearson",), compare_by="pearson",
            rounds=199, seed=seed,
        ).comparisons  # fmt: skip
        for level, rows in table.groupby("level"):
            single, family = (rows[f"p_permutation{end}"].to_numpy() <= 0.05 for end in ("", "_holm"))
            alarms.setdefault((str(level), "permutation"), []).append((float(single.mean()), float(family.any())))
            apart = (rows["low"] > 0) | (rows["high"] < 0)  # by the bootstrap's interval of the difference
            alarms.setdefault((str(level), "interval"), []).append((float(apart.mean()), 0.0))
    assert len(alarms) == 4
    # three pairs each: the standard error of .05 is about .011, and the seeds are fixed
    for key, rates in alarms.items():
        single, family = np.mean(rates, axis=0).round(9)
        assert 0.03 <= single <= 0.07, key
        assert family <= 0.07, key
