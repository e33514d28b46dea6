"""Do a score's intervals hold, how wide are they, and does leaving the least sure rows to people help?

    JUDGESMITH_DATA=… python experiments/bench/intervals.py [--json] [--splits 200] [--labels 40 100]

Random splits of benchmark sets by whole documents: the labels of one part calibrate a judge, whose scores are a
published metric column, as `compile` does (map and errors cross-fitted by document); the rest is new. No model is
called. "covered": share of the new rows whose human score lies in its interval, each document counting alike, mean over
the splits (sd over splits: one set of labels may promise a little too much). "width": mean, as a share of the scale.
"infinite": share of splits whose labels have too few documents to promise so much. "error": mean distance from human
ratings, of all new rows and of those that are left when the 10 % with the largest expected errors go to a person, and
the same for Pearson's r.
"""

from __future__ import annotations

import argparse
import itertools
import json
from typing import Any

import numpy as np

from judgesmith.agreement.conformal import deferred
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.experiments.bench.tables import Vector, read_table
from judgesmith.optimizers.fitting.outcome import COVERAGES, calibrated_without, fit_sureness
from judgesmith.programs.outcome import Calibration
from judgesmith.signatures.values import Scale

#: set, aspect, judge's metric, scale
SETS = (
    ("summeval", "coherence", "gpt-4-0314.rts.coherence", Scale(1, 5)),
    ("summeval", "relevance", "rougeL_f", Scale(1, 5)),
    ("hanna", "coherence", "ChatGPT.p1.coherence", Scale(1, 5)),
    ("openmeva_roc", "overall", "chatgpt", Scale(1, 5)),
    ("wiki_da", "meaning", "bertscore_F1_asset", Scale(0, 100)),
    ("newsroom", "informativeness", "rougeL_f", Scale(1, 5)),
    ("topical_chat", "overall", "unieval_overall", Scale(1, 5)),
    ("sfres", "informativeness", "unieval_informativeness", Scale(1, 6)),
)
DEFER = 0.1


def split(percent: Vector, human: Vector, docs: list[str], scale: Scale, new: Any) -> list[list[float]]:
    """Per coverage: covered, width, infinite; then errors and r of all new rows and of those not left to people."""
    train = ~new
    groups = [d for d, k in zip(docs, train, strict=True) if k]
    scores = calibrated_without(percent[train], human[train], groups, scale)
    sure = fit_sureness(percent[train], scores, human[train], groups, scale)
    assert sure is not None
    mapped = Calibration.fit(percent[train], human[train], scale)
    x, y = percent[new], human[new]
    said = np.array([mapped(p) for p in x.tolist()])
    expected = np.interp(x, sure.percent, sure.error)
    codes = np.unique(np.array(docs)[new], return_inverse=True)[1]
    weight = 1.0 / np.bincount(codes)[codes]
    found = []
    for times in sure.times:
        half = np.inf if times is None else times * expected
        low, high = np.maximum(scale.low, said - half), np.minimum(scale.high, said + half)
        held = (low - 1e-9 <= y) & (y <= high + 1e-9)
        width = float(np.mean(high - low)) / (scale.high - scale.low)
        found.append([float(np.average(held, weights=weight)), width, float(times is None)])
    kept = ~deferred(expected, DEFER)
    off = np.abs(said - y)
    agreement = [float(np.corrcoef(said[k], y[k])[0, 1]) for k in (kept | True, kept)]
    return [*found, [float(off.mean()), float(off[kept].mean()), *agreement]]


def of_set(
    name: str, aspect: str, metric: str, scale: Scale, labels: int, splits: int, seed: int = 0
) -> dict[str, Any]:
    table = read_table(name, aspect, [metric])
    raw = table.scores[:, 0]
    percent = 100 * (raw - raw.min()) / np.ptp(raw)
    docs = np.array(table.documents)
    names = np.unique(docs)
    rng = np.random.default_rng([seed, labels])
    results: list[list[list[float]]] = []
    for _ in range(splits):
        order = rng.permutation(names)
        rows = np.cumsum([int((docs == d).sum()) for d in order[: labels + 1]])
        taken = order[: int(np.searchsorted(rows, labels)) + 1]
        results.append(split(percent, table.human, table.documents, scale, ~np.isin(docs, taken)))
    about = {"set": name, "aspect": aspect, "judge": metric, "rows": len(docs), "documents": len(names)}
    cell: dict[str, Any] = about | {"labels": labels, "labelled_documents": len(taken)}
    for k, coverage in enumerate(COVERAGES):
        covered, width, infinite = np.array([r[k] for r in results]).T
        cell[f"{coverage:g}"] = {
            "covered": round(float(covered.mean()), 3), "sd": round(float(covered.std()), 3),
            "width": round(float(width.mean()), 3), "infinite": round(float(infinite.mean()), 3),
        }  # fmt: skip
    last = np.array([r[-1] for r in results]).mean(axis=0).round(3).tolist()
    return cell | {"error": last[:2], "r": last[2:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--labels", type=int, nargs="+", default=[40, 100])
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    given = parser.parse_args()
    cells = []
    for labels, one in itertools.product(given.labels, SETS):
        c = of_set(*one, labels, given.splits)
        cells.append(c)
        if not given.json:
            of = {k: c[f"{k:g}"] for k in COVERAGES}
            told = "  ".join(
                f"{k:g}: {v['covered']:.3f} ({v['sd']:.3f}), width {v['width']:.2f}" for k, v in of.items()
            )
            print(
                f"{c['set']} {c['aspect']}, {c['judge']}: {c['labels']} labels of {c['labelled_documents']} documents; "
                f"{told}; error {c['error'][0]:.3f} → {c['error'][1]:.3f}, r {c['r'][0]:.3f} → {c['r'][1]:.3f}",
                flush=True,
            )
    if given.json:
        print(json.dumps({"splits": given.splits, "cells": cells}))
    columns = {"task": "", "judge": "", "labels": "{}", "labelled documents": "{}"}
    columns |= {f"{100 * k:.0f} %: covered, width": "{:.3f} ({:.3f}), {:.2f}" for k in COVERAGES}
    columns |= {"error, all → without 10 %": "{:.3f} → {:.3f}", "r, all → without 10 %": "{:.3f} → {:.3f}"}
    save(
        given.save, "intervals", columns,
        [[f"{c['set']} {c['aspect']}", c["judge"], c["labels"], c["labelled_documents"],
          *([c[f"{k:g}"][part] for part in ("covered", "sd", "width")] for k in COVERAGES), c["error"], c["r"]]
         for c in cells],
        notes=f"{given.splits} splits",
    )  # fmt: skip


if __name__ == "__main__":
    main()
