"""What is fitted after a search, on synthetic judges with known errors: weights of criteria, and committees.

    python experiments/bench/refinements.py [--json] [--repeats 40]

"gain" is Q on fresh rows of what was fitted less Q of the plain way, 0 where the plain way stayed; "taken" the share of
the repeats in which it did not. These worlds are ours: errors are normal, and how far judges share them is the column
that decides. No model is called.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import dspy
import numpy as np

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.objectives import Q
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.optimizers.examples import Scored, Vector, agreement
from judgesmith.optimizers.fitting.ensemble import form_ensemble
from judgesmith.optimizers.fitting.training import Training, refine
from judgesmith.optimizers.search.base import Candidate, SearchRecord, Trial
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.signatures.values import Criterion, CriterionScore, Verdict

MEASURED = CorrelationSum()
FRESH = 2000
#: name: error of the overall score, errors of the criteria (None: it says nothing), error that all of them share.
CRITERIA: dict[str, tuple[float, tuple[float | None, ...], float]] = {
    "overall knows more": (0.7, (1.5,) * 6, 0.5),
    "about equal": (1.0, (1.5,) * 6, 0.5),
    "one criterion counts": (1.3, (0.7, None, None, None, None, None), 0.4),
    "all criteria guess": (1.0, (None,) * 6, 0.3),
}
#: name: the share of the error that candidates have in common, and whether one is far better than the others.
COMMITTEES: dict[str, tuple[float, bool]] = {
    "independent errors": (0.0, False),
    "half shared": (0.5, False),
    "90 % shared": (0.9, False),
    "half shared, one clearly best": (0.5, True),
}
CANDIDATES, TOP = 11, 3


def rows(human: Vector) -> list[dspy.Example]:
    """Two rows a group."""
    groups = [f"g{i // 2}" for i in range(len(human))]
    return [
        dspy.Example(source="", output=f"o{i}", score=float(h), group=g, document=g, system=None)
        for i, (h, g) in enumerate(zip(human, groups, strict=True))
    ]


def verdicts(criteria: Vector, overall: Vector) -> list[Verdict]:
    return [
        Verdict(
            score=math.nan, percent=float(o), criteria={f"c{i}": CriterionScore(float(s)) for i, s in enumerate(row)}
        )
        for row, o in zip(criteria, overall, strict=True)
    ]


def weighing(name: str, labels: int, seed: int) -> tuple[float, bool]:
    """Gain of fitted criterion weights, and whether they were taken."""
    noise, criteria, common = CRITERIA[name]
    rng = np.random.default_rng([seed, labels])

    def world(n: int) -> tuple[Vector, Vector, Vector]:
        truth = rng.normal(0, 0.8, n // 2).repeat(2) + rng.normal(0, 0.6, n)
        shared = rng.normal(0, common, n)
        said = [rng.normal(0, 1.4, n) if s is None else truth + rng.normal(0, s, n) for s in criteria]
        overall = truth + shared + rng.normal(0, noise, n)
        made = (truth, np.stack(said, 1) + shared[:, None], overall)
        return tuple(np.clip(np.round(50 + 18 * x), 0, 100) for x in made)  # type: ignore[return-value]

    human, scores, overall = world(labels)
    judge = ActiveCritic("fine", criteria=[Criterion(f"c{i}", "") for i in range(len(criteria))])
    refine(judge, Training(rows(human), verdicts(scores, overall), overall, Q(), seed))
    found = judge.combination
    human, scores, overall = world(FRESH)
    if found is None:
        return 0.0, False
    combined = np.array([found(v.criteria, v.percent) for v in verdicts(scores, overall)])
    return MEASURED(combined, human).q - MEASURED(overall, human).q, True


def committee(name: str, labels: int, seed: int) -> tuple[float, bool]:
    """Gain of a committee of the best candidates, and whether it was taken."""
    common, one_best = COMMITTEES[name]
    rng = np.random.default_rng([seed, labels])
    total = labels + FRESH
    human, shared = rng.uniform(0, 100, total), rng.normal(0, 1, total)
    spread = np.full(CANDIDATES, 35.0)
    if one_best:
        spread[4] = 12.0
    own = rng.normal(0, 1, (CANDIDATES, total))
    said = human + spread[:, None] * (np.sqrt(common) * shared + np.sqrt(1 - common) * own)
    said = np.clip(20 + 0.6 * said, 0, 100)
    examples, rule = rows(human[:labels]), CorrelationRandomSearch(sure=0.7)
    tried = tuple(
        Trial(
            Candidate(str(i), "labels", i, agreement(s[:labels], examples, objective=Q(), seed=0, rounds=20)),
            ActiveCritic("vanilla"),
            Scored((), s[:labels]),
        )
        for i, s in enumerate(said)
    )
    single, _ = rule.choose(tried, examples)
    record = SearchRecord(
        tuple(t.candidate for t in tried), single.candidate, single.scored, tried[0].scored, tried=tried
    )
    made, found = form_ensemble(record, examples, TOP, rule.choose, objective=Q(), seed=seed)
    if made is None:
        return 0.0, False
    members = [said[int(i)] for i in found.details["members"]]
    mean = np.mean([(s[labels:] - s[:labels].mean()) / s[:labels].std() for s in members], axis=0)
    fresh = human[labels:]
    return MEASURED(mean, fresh).q - MEASURED(said[int(single.candidate.name)][labels:], fresh).q, True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for what, measure, worlds in (("criteria", weighing, CRITERIA), ("committee", committee, COMMITTEES)):
        for name in worlds:
            for labels in (30, 60, 120) if what == "criteria" else (40, 80):
                results = [measure(name, labels, seed) for seed in range(options.repeats)]
                gains = [gain for gain, _ in results]
                entry = {
                    "what": what, "world": name, "labels": labels, "taken": float(np.mean([t for _, t in results])),
                    "gain": round(float(np.mean(gains)), 3), "worst": round(min(gains), 3),
                }  # fmt: skip
                found.append(entry)
                if not options.json:
                    print(
                        f"{what:9} {name:30} {labels:3} labels: taken {entry['taken']:4.0%}, "
                        f"gain {entry['gain']:+.3f}, "
                        f"worst {entry['worst']:+.3f}",
                        flush=True,
                    )
    if options.json:
        print(json.dumps({"repeats": options.repeats, "cells": found}))
    columns = {"world": "", "labels": "{}", "taken": "{:.0%}", "gain": "{:+.2f}", "worst": "{:+.2f}"}
    for what in ("criteria", "committee"):
        rows_ = [[entry[column] for column in columns] for entry in found if entry["what"] == what]
        save(options.save, f"refinements-{what}", columns, rows_, notes=f"{options.repeats} repeats")


if __name__ == "__main__":
    main()
