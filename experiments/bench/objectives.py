"""Does a search find a better judge of categories, or of pass and fail, by their own objective than by Q? A simulation.

    python experiments/bench/objectives.py [--json] [--repeats 200]

Synthetic judges: a judge's score of a row is a part of the human score and noise, of which candidates share 0.6. People
put the human score into 2 or 4 categories. "alike": candidates differ in how much they know. "shapes": half of them
also bend their scores (a few very high ones, a floor that a third of the rows share), as models do. "coarse": all
answer from 1 to 5. The best of 8 candidates on the labelled rows is taken, by each way of choosing. Its worth is
measured on 4,000 new rows: kappa or balanced accuracy with the cut points that `fit_decision` finds on the labelled
rows, as they are saved in a judge, or AUC.

"gain" is that worth less the worth of the choice by Q, "error" its standard error. Kappa is chosen by in three ways: by
rank (`Kappa`), with cuts fitted to other folds, and with cuts fitted to the same rows. "noise" is what each of them
reports of scores that know nothing. No model is called.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.decisions import auc, balanced_accuracy, weighted_kappa
from judgesmith.agreement.objectives import AUC, BalancedAccuracy, Kappa, Objective, Q, Rows
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.optimizers.examples import folds_of
from judgesmith.optimizers.fitting.decision import fitted_cuts

Vector = NDArray[np.float64]
Places = NDArray[np.intp]
CANDIDATES, NEW, COMMON = 8, 4000, 0.6
CASES = ("alike", "shapes", "coarse")
EDGES = {2: np.array([0.3]), 4: np.array([-0.9, 0.0, 0.8])}


def scores(case: str, human: Vector, rng: np.random.Generator, r: Vector) -> Vector:
    """Candidates × rows."""
    alike, own = rng.normal(size=len(human)), rng.normal(size=(len(r), len(human)))
    noise = np.sqrt(COMMON) * alike + np.sqrt(1 - COMMON) * own
    said: Vector = r[:, None] * human + np.sqrt(1 - r[:, None] ** 2) * noise
    if case == "coarse":
        return np.asarray(np.clip(np.round(said + 3), 1, 5))
    if case == "shapes":
        said[0::4] = np.exp(1.5 * said[0::4])
        said[2::4] = np.maximum(said[2::4], -0.4)
    return said


def decided(cuts: list[float], x: Vector) -> Places:
    return np.asarray(np.searchsorted(np.array(cuts), x, side="right"), dtype=np.intp)


def cuts_of(x: Vector, human: Places, categories: int) -> list[float] | None:
    there = len(np.unique(human)) > 1 and np.ptp(x) > 0
    return fitted_cuts(x, human, categories, categories == 2) if there else None


def kappa_same(x: Vector, human: Places, categories: int) -> float:
    cuts = cuts_of(x, human, categories)
    return 0.0 if cuts is None else weighted_kappa(decided(cuts, x), human, categories)


def kappa_folds(x: Vector, human: Places, categories: int) -> float:
    folds, places = folds_of([str(i) for i in range(len(x))], 5, 0), np.zeros(len(x), dtype=np.intp)
    for fold in range(5):
        cuts = cuts_of(x[folds != fold], human[folds != fold], categories)
        places[folds == fold] = 0 if cuts is None else decided(cuts, x[folds == fold])
    found = weighted_kappa(places, human, categories)
    return 0.0 if np.isnan(found) else found


def ways(categories: int, human: Places) -> dict[str, Callable[[Vector], float]]:
    names = [str(i) for i in range(len(human))]
    rows = Rows(human * 100.0 / (categories - 1), names, names)
    own: list[Objective] = [Q(), AUC(), BalancedAccuracy()] if categories == 2 else [Q(), Kappa()]

    def reached(objective: Objective, x: Vector) -> float:
        return objective.reached(x, rows).value

    found: dict[str, Callable[[Vector], float]] = {objective.name: partial(reached, objective) for objective in own}
    if categories > 2:
        found["kappa, folds"] = lambda x: kappa_folds(x, human, categories)
        found["kappa, same rows"] = lambda x: kappa_same(x, human, categories)
    return found


def worth(x: Vector, human: Places, new: Vector, new_human: Places, categories: int) -> dict[str, float]:
    cuts = cuts_of(x, human, categories)
    places = np.zeros(len(new), dtype=np.intp) if cuts is None else decided(cuts, new)
    if categories == 2:
        return {"auc": auc(new, new_human), "balanced accuracy": balanced_accuracy(places, new_human)}
    return {"kappa": weighted_kappa(places, new_human, categories)}


def one(case: str, labels: int, categories: int, seed: int) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """By way of choosing, what the chosen one is worth; and what is reported of noise."""
    rng = np.random.default_rng([seed, labels, categories, CASES.index(case)])
    r = rng.uniform(0.3, 0.7, CANDIDATES)
    human = rng.normal(size=labels + NEW)
    said = scores(case, human, rng, r)
    people = np.searchsorted(EDGES[categories], 0.9 * human + np.sqrt(1 - 0.81) * rng.normal(size=len(human)))
    train, new = people[:labels], people[labels:]
    found, by = {}, ways(categories, train)
    for name, way in by.items():
        best = int(np.argmax([round(way(x[:labels]), 9) for x in said]))
        found[name] = worth(said[best, :labels], train, said[best, labels:], new, categories)
    noise = rng.normal(size=labels)
    return found, {name: way(noise) for name, way in by.items()}


def kept(told: list[dict[str, Any]], repeats: int, folder: Path | None) -> None:
    """The gains of every way of choosing but Q itself, a column a case."""
    cells: dict[tuple[Any, ...], dict[str, list[Any]]] = {}
    for line in told:
        for what in ("auc", "balanced accuracy", "kappa"):
            if what in line and line["by"] != "q":
                row = cells.setdefault((line["labels"], line["categories"], line["by"], what), {})
                row[line["case"]] = [line[what]["gain"], line[what]["error"]]
    columns = {"labels": "{}", "categories": "{}", "chosen by": "", "measured by": ""}
    save(
        folder, "objectives", columns | dict.fromkeys(CASES, "{:+.3f} ({:.3f})"),
        [[*row, *(by_case.get(case) for case in CASES)] for row, by_case in cells.items()],
        notes=f"{repeats} repeats, standard error in brackets",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--labels", type=int, nargs="*", default=[40, 100])
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    given = parser.parse_args()
    told: list[dict[str, Any]] = []
    for categories in EDGES:
        for labels in given.labels:
            for case in CASES:
                drawn = [one(case, labels, categories, seed) for seed in range(given.repeats)]
                for name in drawn[0][0]:
                    line: dict[str, Any] = {"categories": categories, "labels": labels, "case": case, "by": name}
                    line["noise"] = round(float(np.mean([noise[name] for _, noise in drawn])), 4)
                    for what in drawn[0][0][name]:
                        values, plain = (np.array([found[n][what] for found, _ in drawn]) for n in (name, "q"))
                        error = float(np.std(values - plain) / np.sqrt(len(values)))
                        line[what] = {"worth": round(float(values.mean()), 4), "error": round(error, 4)}
                        line[what] |= {"gain": round(float((values - plain).mean()), 4)}
                    told.append(line)
                    if not given.json:
                        print(json.dumps(line), flush=True)
    if given.json:
        print(json.dumps({"repeats": given.repeats, "cells": told}))
    kept(told, given.repeats, given.save)


if __name__ == "__main__":
    main()
