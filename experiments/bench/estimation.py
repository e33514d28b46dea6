"""Do the intervals of `judgesmith estimate` hold, and what are the judge's scores worth in labels?

    JUDGESMITH_DATA=… python experiments/bench/estimation.py [--json] [--worlds 500] [--labels 10 20 40]

Two checks, no model called. Benchmark sets: published scores of judges are the judge, all human scores are the truth,
and a draw shows the estimator the human scores of this number of documents (all systems' outputs of each). "fixed": the
set's documents are all there are; "drawn": a world of as many documents is drawn from the set with replacement, so that
the intervals speak of what they claim to speak of. Simulation: normal scores of five systems that share documents, with
a judge that correlates with people by r and is biased towards some systems.

"covered": share of the systems' intervals that hold the truth; "differences": the same of their differences; "naive":
share of judge means, mapped to people's scale by the labels, whose own 95 % interval holds it. "labels": effective
number of labels over the real one (geometric mean). "width": of the interval, over that from the labels alone.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from scipy import stats

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.estimation import estimate
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.experiments.bench.tables import read_table

#: set, aspect, judge's metric, whether systems without it are left out
SETS = (
    ("summeval", "coherence", "gpt-4-0314.rts.coherence"),
    ("summeval", "relevance", "gpt-3.5-turbo-0301.rts.relevance"),
    ("summeval", "fluency", "rougeL_f"),
    ("hanna", "coherence", "ChatGPT.p1.coherence"),
    ("hanna", "engagement", "ChatGPT.p1.engagement"),
    ("hanna", "relevance", "ROUGE-L F-Score"),
)
WORLDS = (0.0, 0.4, 0.8)


def measured(f: Vector, y: Vector, doc: Any, sys: Any, truth: dict[str, float], labelled: Any) -> list[float]:
    """covered, of differences, naive covered, log of effective over real labels, width over that of labels alone."""
    shown = np.where(np.isin(doc, labelled), y, np.nan)
    found = estimate(f, shown, systems=sys, documents=doc)
    certain = [s for s in found.systems if s.reason is None]
    held = [s.low <= truth[s.system] <= s.high for s in certain]
    gaps = [d.low <= truth[d.a] - truth[d.b] <= d.high for d in found.differences]
    slope, base = np.polyfit(f[~np.isnan(shown)], shown[~np.isnan(shown)], 1)
    naive = []
    for s in found.systems:
        own = base + slope * f[sys == s.system]
        half = stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))
        naive.append(abs(own.mean() - truth[s.system]) <= half)
    gain = [np.log(s.effective / s.n_human) for s in certain]
    width = [(s.high - s.low) / (s.human_high - s.human_low) for s in certain]
    return [float(np.mean(part)) for part in (held, gaps, naive, gain, width)]


def of_set(name: str, aspect: str, metric: str, labels: int, draws: int, drawn: bool, seed: int = 0) -> dict[str, Any]:
    table = read_table(name, aspect, [metric])
    f, y = table.scores[:, 0], table.human
    doc, sys = np.array(table.documents), np.array(table.systems)
    names, rng = np.unique(doc), np.random.default_rng([seed, labels, drawn])
    truth = {s: float(y[sys == s].mean()) for s in np.unique(sys)}
    rows_of = {d: np.flatnonzero(doc == d) for d in names}
    results = []
    for _ in range(draws):
        world = rng.choice(names, len(names), replace=drawn)
        rows = np.concatenate([rows_of[d] for d in world])
        which = np.repeat(np.arange(len(world)), [len(rows_of[d]) for d in world])
        results.append(measured(f[rows], y[rows], which, sys[rows], truth, rng.choice(len(world), labels, False)))
    about = {"set": name, "aspect": aspect, "judge": metric, "documents": len(names), "systems": len(truth)}
    return about | {"kind": "drawn" if drawn else "fixed", "labels": labels} | summary(results)


def simulated(
    r: float, labels: int, draws: int, documents: int = 200, systems: int = 5, seed: int = 0
) -> dict[str, Any]:
    rng = np.random.default_rng([seed, labels, round(100 * r)])
    quality, bias = np.linspace(3.0, 3.6, systems), np.linspace(0.5, -0.5, systems)
    truth = {f"s{i}": float(q) for i, q in enumerate(quality)}
    doc = np.repeat(np.arange(documents), systems)
    sys = np.tile([f"s{i}" for i in range(systems)], documents)
    results = []
    for _ in range(draws):
        common = rng.normal(0, 0.6, documents)[:, None] + rng.normal(0, 0.8, (documents, systems))
        noise = rng.normal(0, 0.6, documents)[:, None] + rng.normal(0, 0.8, (documents, systems))
        human = quality + common
        judge = 50 + 10 * (bias + r * common + np.sqrt(1 - r * r) * noise)
        shown = rng.choice(documents, labels, False)
        results.append(measured(judge.ravel(), human.ravel(), doc, sys, truth, shown))
    about = {"set": "simulation", "judge": f"r {r:g}", "documents": documents, "systems": systems}
    return about | {"kind": "drawn", "labels": labels} | summary(results)


def summary(results: list[list[float]]) -> dict[str, float]:
    held, gaps, naive, gain, width = np.array(results).mean(axis=0)
    return {
        "covered": round(float(held), 3),
        "differences": round(float(gaps), 3),
        "naive": round(float(naive), 3),
        "effective": round(float(np.exp(gain)), 2),
        "width": round(float(width), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--labels", type=int, nargs="+", default=[10, 20, 40], help="labelled documents")
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    given = parser.parse_args()
    cells = []
    for labels in given.labels:
        cells += [simulated(r, labels, given.worlds) for r in WORLDS]
        for name, aspect, metric in SETS:
            cells += [of_set(name, aspect, metric, labels, given.worlds, drawn) for drawn in (True, False)]
    columns = {"set": "", "judge": "", "documents": "", "labelled": "{}", "systems covered": "{:.3f}",
               "differences covered": "{:.3f}", "naive": "{:.2f}", "worth": "{:.2f}", "width": "{:.2f}"}  # fmt: skip
    save(
        given.save, "estimation", columns,
        [[f"{c['set']} {c.get('aspect', '')}", c["judge"], c["kind"], c["labels"], c["covered"], c["differences"],
          c["naive"], c["effective"], c["width"]] for c in cells],
        notes=f"{given.worlds} worlds",
    )  # fmt: skip
    if given.json:
        print(json.dumps({"worlds": given.worlds, "cells": cells}))
        return
    print(f"{'set':11} {'aspect':12} {'judge':34} kind   labels covered differences naive labels× width×")
    for c in cells:
        print(
            f"{c['set']:11} {c.get('aspect', ''):12} {c['judge']:34} {c['kind']:6} {c['labels']:5} {c['covered']:8.3f} "
            f"{c['differences']:10.3f} {c['naive']:7.3f} {c['effective']:7.2f} {c['width']:6.2f}"
        )


if __name__ == "__main__":
    main()
