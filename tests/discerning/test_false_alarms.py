"""How often the tests of `meta_evaluate` call judges different that agree equally well with people.

`python tests/discerning/test_false_alarms.py [SIMULATIONS]` measures all cases; it takes an hour and asserts nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judgesmith.agreement.meta.evaluation import meta_evaluate

TESTS = ("permutation", "bootstrap", "williams")


def independent(rng: np.random.Generator, rows: int = 50) -> dict[str, Any]:
    """Rows that share nothing; three judges with errors of one size."""
    truth = rng.normal(size=rows)
    judges = {name: truth + rng.normal(size=rows) for name in "abc"}
    return {"judges": judges, "human": truth + 0.7 * rng.normal(size=rows)}


def clustered(rng: np.random.Generator, documents: int = 30, rows: int = 4) -> dict[str, Any]:
    """Documents that people like or do not, and on which a judge errs alike."""
    doc = np.repeat(np.arange(documents), rows)
    truth = rng.normal(size=len(doc))

    def judge() -> Any:
        return truth + 0.9 * rng.normal(size=documents)[doc] + 0.44 * rng.normal(size=len(doc))

    human = truth + 0.8 * rng.normal(size=documents)[doc] + 0.7 * rng.normal(size=len(doc))
    return {"judges": {name: judge() for name in "abc"}, "human": human, "documents": doc}


def of_systems(rng: np.random.Generator, documents: int = 40, systems: int = 8, liking: float = 0.0) -> dict[str, Any]:
    """Good and bad systems on the same documents. `liking`: of a judge for a system whatever its outputs, so that the
    judges are equal over all systems that there could be, but not over these."""
    doc, sys_ = (codes.ravel() for codes in np.indices((documents, systems)))
    truth = 0.7 * rng.normal(size=systems)[sys_] + rng.normal(size=len(doc))

    def judge() -> Any:
        shared = 0.5 * rng.normal(size=documents)[doc] + liking * rng.normal(size=systems)[sys_]
        return truth + shared + rng.normal(size=len(doc))

    human = truth + 0.5 * rng.normal(size=documents)[doc] + 0.7 * rng.normal(size=len(doc))
    return {"judges": {name: judge() for name in "abc"}, "human": human, "documents": doc, "systems": sys_}


def unlike(rng: np.random.Generator, documents: int = 30, rows: int = 4) -> dict[str, Any]:
    """Equally good judges that err differently: by row, by document, and half and half."""
    doc = np.repeat(np.arange(documents), rows)
    truth = rng.normal(size=len(doc))
    human = truth + 0.8 * rng.normal(size=documents)[doc] + 0.6 * rng.normal(size=len(doc))
    by_row, by_document = rng.normal(size=(2, len(doc))), rng.normal(size=(2, documents))[:, doc]
    both = (by_row[1] + by_document[1]) / np.sqrt(2)
    judges = {"by row": truth + by_row[0], "by document": truth + by_document[0], "both": truth + both}
    return {"judges": judges, "human": human, "documents": doc}


def skewed(rng: np.random.Generator, rows: int = 50) -> dict[str, Any]:
    """Judges that order equally well but score on scales of other shapes."""
    data = independent(rng, rows)
    data["judges"]["b"] = np.exp(data["judges"]["b"])
    data["judges"]["c"] = data["judges"]["c"] ** 3
    return data


def of_few_systems(rng: np.random.Generator, rows: int = 60, systems: int = 6) -> dict[str, Any]:
    """Every output is of its own document, and good and bad systems wrote them."""
    sys_ = rng.integers(systems, size=rows)
    truth = 0.7 * rng.normal(size=systems)[sys_] + rng.normal(size=rows)
    judges = {name: truth + rng.normal(size=rows) for name in "abc"}
    return {"judges": judges, "human": truth + 0.7 * rng.normal(size=rows), "systems": sys_}


BOTH = ("pearson", "spearman")
FAVOURITES = {"documents": 20, "systems": 16, "liking": 0.7}
EVERY = ("pooled", "sample", "system")


@dataclass(frozen=True)
class Case:
    make: Callable[..., dict[str, Any]]
    sizes: dict[str, Any] = field(default_factory=dict)
    levels: tuple[str, ...] = ("pooled",)
    coefficients: tuple[str, ...] = BOTH


CASES = {
    "50 independent rows": Case(independent),
    "20 independent rows": Case(independent, {"rows": 20}),
    "50 rows, judges on skewed scales": Case(skewed, coefficients=("spearman",)),
    "60 rows of 6 systems": Case(of_few_systems),
    "30 documents of 4 rows": Case(clustered, {}, ("pooled", "sample")),
    "12 documents of 10 rows": Case(clustered, {"documents": 12, "rows": 10}, ("pooled", "sample")),
    "30 documents, judges that err unlike": Case(unlike, coefficients=("pearson",)),
    "40 documents x 8 systems": Case(of_systems, {}, EVERY),
    "20 documents x 16 systems": Case(of_systems, {"documents": 20, "systems": 16}, EVERY),
    "20 x 16, judges with favourites": Case(of_systems, FAVOURITES, EVERY),
}


def alarms(
    case: Case, simulations: int, rounds: int = 399, coefficient: str = "pearson", least: int = 0
) -> dict[tuple[str, str], tuple[float, float]]:
    """Per level and test the share of p <= .05 over single pairs of judges, and of any of three after Holm."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(least, least + simulations):
        data = case.make(np.random.default_rng(seed), **case.sizes)
        table = meta_evaluate(
            data["judges"], data["human"], documents=data.get("documents"), systems=data.get("systems"),
            levels=case.levels, coefficients=(coefficient,), compare_by=coefficient, rounds=rounds, seed=seed,
        ).comparisons  # fmt: skip
        for level, rows in table.groupby("level"):
            for test in TESTS:
                single, family = (rows[f"p_{test}{end}"].to_numpy() for end in ("", "_holm"))
                if not np.isnan(single).any():
                    rates = (float((single <= 0.05).mean()), float((family <= 0.05).any()))
                    found.setdefault((str(level), test), []).append(rates)
    return {key: tuple(np.mean(rates, axis=0)) for key, rates in found.items()}  # type: ignore[misc]


def test_equal_judges_are_rarely_told_apart() -> None:
    # 200 simulations of three pairs each: the standard error of .05 is about .011, and the seeds are fixed
    found = alarms(CASES["30 documents of 4 rows"], 200, rounds=199)
    assert set(found) == {(level, test) for level in ("pooled", "sample") for test in ("permutation", "bootstrap")}
    for (level, test), (single, family) in found.items():
        assert 0.03 <= single <= 0.07, (level, test)
        assert family <= 0.07, (level, test)


def lines(simulations: int) -> Iterator[str]:
    for name, case in CASES.items():
        for coefficient in case.coefficients:
            for (level, test), (single, family) in alarms(case, simulations, coefficient=coefficient).items():
                yield f"| {name} | {level} | {coefficient} | {test} | {single:.3f} | {family:.3f} |"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
