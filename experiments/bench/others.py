# ruff: noqa: E501
"""Agreement beside scipy, nlpstats, mt-metrics-eval and ppi-python, on simulated tables.

    python experiments/bench/others.py MT_METRICS_EVAL > rows.json    # where all of them are installed

MT_METRICS_EVAL: a checkout of google-research/mt-metrics-eval, which PyPI does not have.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import nlpstats.correlations as nlpstats  # type: ignore[import-not-found]
import numpy as np
import ppi_py  # type: ignore[import-not-found]
import scipy

import judgesmith as js
from judgesmith.agreement.correlation import correlate
from judgesmith.agreement.resampling import Measure
from judgesmith.agreement.significance import permutation_test

warnings.filterwarnings("ignore")
sys.path.insert(0, sys.argv[1])
from mt_metrics_eval.stats import KendallVariants, KendallWithTiesOpt  # type: ignore[import-not-found] # noqa: E402

NAMES = ("pearson", "spearman", "kendall")


def table(seed: int, documents: int, systems: int, steps: int) -> tuple[Any, ...]:
    """A judge in steps of 1 / steps and people in whole numbers, with ties."""
    rng = np.random.default_rng(seed)
    doc, sys_ = (codes.ravel() for codes in np.indices((documents, systems)))
    means = rng.normal(size=documents)[doc] * 0.5 + rng.normal(size=systems)[sys_] * 0.5
    human = np.round(means + rng.normal(size=len(doc)) * 1.2)
    return np.round((human + rng.normal(size=len(doc)) * 1.5) * steps) / steps, human, doc, sys_


def matrix(values: Any, doc: Any, sys_: Any) -> Any:
    made = np.zeros((int(sys_.max()) + 1, int(doc.max()) + 1))
    made[sys_, doc] = values
    return made


def ours(name: str, level: str, x: Any, y: Any, doc: Any, sys_: Any, rounds: int = 0) -> Any:
    shared = {"documents": doc, "systems": sys_, "coefficients": [name], "levels": [level], "rounds": rounds}
    return js.meta_evaluate({"j": x}, y, **shared).cell("j", "overall", level, name)


def main() -> None:
    rows, worst = [], dict[str, float]()

    def apart(key: str, one: float, other: float) -> None:
        worst[key] = max(worst.get(key, 0.0), abs(one - other))

    for steps in (8, 10):
        for seed in range(100):
            x, y, doc, sys_ = table(seed, 12, 8, steps)
            for name, theirs in zip(
                NAMES, (scipy.stats.pearsonr, scipy.stats.spearmanr, scipy.stats.kendalltau), strict=True
            ):
                apart(f"scipy {steps}", correlate(x, y, coefficient=name, level="pooled").value, theirs(x, y)[0])  # type: ignore[arg-type]
                for level, called in (("pooled", "global"), ("sample", "input"), ("system", "system")):
                    one = correlate(x, y, coefficient=name, level=level, documents=doc, systems=sys_).value  # type: ignore[arg-type]
                    other = nlpstats.correlate(matrix(x, doc, sys_), matrix(y, doc, sys_), called, name)
                    apart(f"nlpstats {level} {steps}", one, other)
            at = np.lexsort((doc, sys_))
            how = {"variant": "acc23", "sample_rate": 1.0}
            apart(
                f"mt pooled {steps}",
                ours("accuracy", "pooled", x, y, doc, sys_)["value"],
                KendallWithTiesOpt(list(y), list(x), **how)[0],
            )
            whole = KendallWithTiesOpt(list(y[at]), list(x[at]), num_sys=8, average_by="item", **how)[0]
            apart(f"mt sample {steps}", ours("accuracy", "sample", x, y, doc, sys_)["value"], whole)
            means = [[values[sys_ == k].mean() for k in range(8)] for values in (y, x)]
            apart(
                f"mt system {steps}",
                ours("accuracy", "system", x, y, doc, sys_)["value"],
                KendallVariants(*means, variant="acc23")[0],
            )
    what = {"scipy": "r, ρ, τ-b", "nlpstats": "r, ρ, τ-b", "mt": "pairwise accuracy with tie calibration, all pairs"}
    called = {
        "scipy": f"scipy {version('scipy')}",
        "nlpstats": f"nlpstats {version('nlpstats')}",
        "mt": "mt-metrics-eval, commit 68a481a",
    }
    for key in (key[:-2] for key in worst if key.endswith(" 8")):
        package, *level = key.split()
        values = [worst[f"{key} 8"], worst[f"{key} 10"]]
        rows.append(
            [called[package], what[package], *(level or ["pooled"]), *(f"{v:.0e}" if v else "0" for v in values)]
        )
    x, y, doc, sys_ = table(1, 30, 8, 8)
    other = np.round((y + np.random.default_rng(9).normal(size=len(y)) * 2.2) * 8) / 8
    matrices = [matrix(values, doc, sys_) for values in (x, other, y)]
    started = time.perf_counter()
    theirs = nlpstats.bootstrap(
        matrices[0], matrices[2], "global", "pearson", "inputs", confidence_level=0.95, n_resamples=2000
    )
    between = time.perf_counter()
    one = ours("pearson", "pooled", x, y, doc, sys_, 2000)
    took = between - started, time.perf_counter() - between
    rows.append(
        [
            called["nlpstats"],
            "95 % interval of r over documents, 30 × 8 rows",
            "pooled",
            f"theirs {theirs.lower:.3f} to {theirs.upper:.3f}, ours {one['low']:.3f} to {one['high']:.3f} in 1/{took[0] / took[1]:.0f} of the time",
            "",
        ]
    )
    p = nlpstats.permutation_test(*matrices, "global", "pearson", "inputs", n_resamples=2000).pvalue
    mine = permutation_test(x, other, Measure(y, documents=doc, coefficient="pearson"), rounds=2000).p
    rows.append(
        [
            called["nlpstats"],
            "permutation test of two judges, documents swapped",
            "pooled",
            f"p {p:.3f}, ours {mine:.3f}",
            "",
        ]
    )
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=400)
        judge, people = truth + 0.7 * rng.normal(size=400) + 0.4, truth + 0.3 * rng.normal(size=400)
        (mean,) = js.estimate(judge, np.where(np.arange(400) < 60, people, np.nan)).systems
        point = float(np.ravel(ppi_py.ppi_mean_pointestimate(people[:60], judge[:60], judge[60:]))[0])
        low, high = (
            float(np.ravel(end)[0]) for end in ppi_py.ppi_mean_ci(people[:60], judge[:60], judge[60:], alpha=0.05)
        )
        found.append([abs(mean.mean - point), (mean.high - mean.low) / (high - low), mean.mean, point])
    m = np.array(found)
    rmse = np.sqrt((m[:, 2:] ** 2).mean(axis=0))
    rows.append(
        [
            f"ppi-python {version('ppi-python')}",
            "mean of 400 rows with 60 labels, 200 samples",
            "one system",
            f"means {np.median(m[:, 0]):.3f} apart (median); error (rms) {rmse[0]:.3f} ours, {rmse[1]:.3f} theirs; width {m[:, 1].min():.2f} to {m[:, 1].max():.2f} of theirs",
            "",
        ]
    )
    json.dump(rows, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
