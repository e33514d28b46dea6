"""Time meta-evaluation against nlpstats in the same run: `python experiments/bench/meta.py [--json]`.

16 systems x 100 documents x 4 aspects, 1,000 bootstrap and 1,000 permutation rounds, at all levels, for Pearson,
Spearman and Kendall. nlpstats takes minutes to hours for that: it runs 2 and `--theirs` rounds (20 times as many where
it is fast), and its time for all is read off the line through both, so that what it does once is not counted for every
round; the output notes it. Then 1,000,000 pooled rows through `meta_evaluate`, with the peak of memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from judgesmith.agreement.correlation import PARTS, Level
from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.agreement.resampling import Measure, bootstrap_q
from judgesmith.agreement.significance import permutation_test

SYSTEMS = 16
DOCUMENTS = 100
ASPECTS = 4
THEIR_LEVELS = {"sample": "input", "system": "system", "pooled": "global"}


def data(seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Two judges and people, rounded so that there are ties: (aspects, documents, systems); ids of the rows."""
    rng = np.random.default_rng(seed)
    shape = (ASPECTS, DOCUMENTS, SYSTEMS)
    human = rng.normal(size=shape) + rng.normal(size=(ASPECTS, DOCUMENTS, 1))
    a, b = (human + spread * rng.normal(size=shape) for spread in (1.0, 2.0))
    rows = np.indices((DOCUMENTS, SYSTEMS)).reshape(2, -1)
    return np.round(2 * a) / 2, np.round(2 * b) / 2, np.round(human), rows[0], rows[1]


def seconds(function: Callable[[], Any], least: int = 1) -> float:
    """Return the best time of `least` runs: the machine does other things, too."""
    best = float("inf")
    for _ in range(least):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def extrapolated(function: Callable[[int], None], times: int, rounds: int) -> float:
    """Seconds for `rounds`, from the line through 2 and `times` rounds."""
    few, many = (min(n, rounds) for n in (2, times))
    one = seconds(lambda: function(few))
    other = seconds(lambda: function(many))
    return one + (other - one) / max(many - few, 1) * (rounds - few)


def compare(rounds: int, theirs: int, repeats: int) -> dict[str, Any]:
    """Time bootstrap and permutation rounds of both libraries, at all levels and for all coefficients."""
    from nlpstats.correlations.bootstrap import bootstrap  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from nlpstats.correlations.permutation import permutation_test as their_permutation  # type: ignore[import-not-found,import-untyped,unused-ignore]

    a, b, human, doc, sys_ = data(0)
    found: dict[str, Any] = {}

    def measured(aspect: int, level: Level, name: str) -> Measure:
        ratings = human[aspect].ravel()
        return Measure(
            ratings, documents=doc, systems=sys_, level=level, coefficient=name
        )

    for level in cast(tuple[Level, ...], tuple(THEIR_LEVELS)):
        for name in cast(tuple[str, ...], PARTS):

            def our_bootstrap(level: Level = level, name: str = name) -> None:
                for k in range(ASPECTS):
                    bootstrap_q(
                        a[k].ravel(),
                        measured(k, level, name),
                        rounds=rounds,
                    )

            def their_bootstrap(
                times: int, level: Level = level, name: str = name
            ) -> None:
                for k in range(ASPECTS):
                    bootstrap(
                        a[k].T,
                        human[k].T,
                        THEIR_LEVELS[level],
                        name,
                        "inputs",
                        n_resamples=times,
                    )

            def our_test(level: Level = level, name: str = name) -> None:
                for k in range(ASPECTS):
                    permutation_test(
                        a[k].ravel(),
                        b[k].ravel(),
                        measured(k, level, name),
                        rounds=rounds,
                    )

            def their_test(times: int, level: Level = level, name: str = name) -> None:
                for k in range(ASPECTS):
                    their_permutation(
                        a[k].T,
                        b[k].T,
                        human[k].T,
                        THEIR_LEVELS[level],
                        name,
                        "inputs",
                        n_resamples=times,
                    )

            for procedure, ours, other in (
                ("bootstrap", our_bootstrap, their_bootstrap),
                ("permutation", our_test, their_test),
            ):
                mine = seconds(ours, repeats)
                nlpstats = extrapolated(
                    other, theirs if level == "sample" else 20 * theirs, rounds
                )
                key = f"{level}_{name}_{procedure}"
                found[f"{key}_seconds"] = round(mine, 4)
                found[f"{key}_nlpstats_seconds"] = round(nlpstats, 2)
                found[f"{key}_vs_nlpstats"] = round(nlpstats / mine, 1)
                print(
                    f"{key}: {mine:.3f} s, nlpstats {nlpstats:.1f} s, {nlpstats / mine:.0f}x",
                    file=sys.stderr,
                )
    return found


def million(rows: int) -> dict[str, Any]:
    """Run one pooled set of this many rows in a process of its own, whose peak of memory is its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--only-rows", str(rows)],
        capture_output=True,
        text=True,
        check=True,
    )
    return cast(dict[str, Any], json.loads(done.stdout))


def only_rows(rows: int) -> dict[str, Any]:
    """Evaluate one pooled set of this many rows; return its time and peak of memory."""
    rng = np.random.default_rng(0)
    human = np.round(rng.normal(size=rows), 2)
    predicted = human + rng.normal(size=rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    result = meta_evaluate({"judge": predicted}, human)
    took = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cells = result.agreement.set_index("coefficient")
    return {
        "pooled_rows": rows,
        "pooled_rows_seconds": round(took, 2),
        "pooled_rows_peak_mb": round(peak / 1024),
        "pooled_rows_peak_before_mb": round(before / 1024),
        "pooled_rows_intervals": {
            name: cells.loc[[name], ["low", "value", "high"]]
            .to_numpy(float)[0]
            .round(5)
            .tolist()
            for name in PARTS
        },
    }


def main() -> None:
    """Print all times, as lines or as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument(
        "--theirs",
        type=int,
        default=5,
        help="rounds that nlpstats runs; its time is extrapolated",
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of ours, the best counts"
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only-rows", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_rows:
        print(json.dumps(only_rows(arguments.only_rows)))
        return
    warnings.simplefilter("ignore")  # scipy's, of constant documents, from nlpstats
    found: dict[str, Any] = {
        "systems": SYSTEMS,
        "documents": DOCUMENTS,
        "aspects": ASPECTS,
        "rounds": arguments.rounds,
        "nlpstats_rounds": arguments.theirs,
        "nlpstats_extrapolated": arguments.theirs < arguments.rounds,
    }
    try:
        found |= compare(arguments.rounds, arguments.theirs, arguments.repeats)
    except ImportError:
        print(
            "nlpstats is not installed (pip install nlpstats): no comparison",
            file=sys.stderr,
        )
    found |= million(arguments.rows)
    if arguments.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
