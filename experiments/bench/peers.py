"""judgesmith beside other packages that correct and gate a judge by people's labels, on the same files.

    PYTHONPATH=FOLDER python experiments/bench/peers.py [--runs 600] [--data FOLDER]

FOLDER has the other packages, each optional: `pip install --no-deps --target FOLDER juried judgekeeper truescore`, and
the source of GLIDE (github.com/EmertonData/glide). PPI++ is the formula of ppi-python. The files are the recorded
judges and tasks of `audits.py`; each run takes one, draws labels from its rows, and asks every package the same.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.comparison import compare
from judgesmith.agreement.rates import rate, strata
from judgesmith.agreement.sequential import ShareTest, StrataTest, planned
from judgesmith.experiments.bench.audits import (
    AHEAD,
    RESULTS,
    Recorded,
    Vector,
    options_of,
    recorded,
)
from judgesmith.experiments.bench.orders import drawn
from judgesmith.experiments.bench.versions import Task, tasks
from judgesmith.experiments.studies.saving import save

#: (low, high) of a share or a difference; None where a package refuses.
Interval = tuple[float, float] | None
NORMAL = 1.959964


def package(name: str) -> Any:
    """Return a module of another package; None where it is not there."""
    try:
        return import_module(name)
    except ImportError:
        return None


# Pass rates ----------------------------------------------------------------------------------------------------------


def by_judgesmith(judge: Vector, people: Vector) -> Interval:
    """Return the interval of `judgesmith check` and `estimate`."""
    rng = np.random.default_rng(0)
    found = rate(strata(judge), people, np.ones(len(judge)), np.arange(len(judge)), rng)
    return found.interval(0.95)


def by_people(judge: Vector, people: Vector) -> Interval:
    """Return Wilson's interval of the labels alone."""
    y = people[~np.isnan(people)]
    ends = scipy.stats.binomtest(int(y.sum()), len(y)).proportion_ci(method="wilson")
    return float(ends.low), float(ends.high)


def by_formula(judge: Vector, people: Vector) -> Interval:
    """Return the interval of PPI++, as ppi-python has it."""
    labelled = ~np.isnan(people)
    y = people[labelled]
    f = judge[labelled]
    rest = judge[~labelled]
    n = len(y)
    variance = np.concatenate([f, rest]).var()
    weight = float(np.cov(y, f)[0, 1] / ((1 + n / len(rest)) * (variance + 1e-12)))
    weight = min(max(weight, 0.0), 1.0)
    middle = weight * rest.mean() + (y - weight * f).mean()
    error = math.sqrt(weight**2 * rest.var() / len(rest) + (y - weight * f).var() / n)
    return middle - NORMAL * error, middle + NORMAL * error


def _labelled(people: Vector) -> tuple[Vector, npt.NDArray[np.intp]]:
    index = np.flatnonzero(~np.isnan(people))
    return people[index], index


def by_truescore(judge: Vector, people: Vector) -> Interval:
    """Return the interval of truescore's PPI++."""
    y, index = _labelled(people)
    found = package("truescore").ppi_estimate(judge, y, index)
    return float(found.low), float(found.high)


def by_rogan_gladen(judge: Vector, people: Vector) -> Interval:
    """Return the interval of truescore's correction by sensitivity and specificity."""
    y, index = _labelled(people)
    with suppress(ValueError):
        found = package("truescore").rogan_gladen_estimate(judge, y, index)
        return float(found.low), float(found.high)
    return None


def by_juried(judge: Vector, people: Vector) -> Interval:
    """Return the interval of juried's corrected pass rate."""
    own = package("juried.correction")
    y, index = _labelled(people)
    cases = [
        own.LabelledCase("quality", bool(p), bool(j))
        for p, j in zip(y, judge[index], strict=True)
    ]
    accuracy = float((y == judge[index]).mean())
    known = own.Calibration(Path("c"), "", "", "", None, None, accuracy, cases)
    found = own.correct(
        int(judge.sum()), len(judge), known, "quality", 1, resamples=400
    )
    if found is None or found.interval is None:
        return None
    return float(found.interval.lower), float(found.interval.upper)


def by_glide(judge: Vector, people: Vector) -> Interval:
    """Return the interval of GLIDE's PPI++."""
    with suppress(ValueError):
        found = package("glide.estimators").PPIMeanEstimator().estimate(people, judge)
        middle = float(found.mean)
        reach = NORMAL * float(found.std)
        return middle - reach, middle + reach
    return None


Rated = Callable[[Vector, Vector], Interval]
#: Who is asked for a pass rate -> the package that it needs.
RATES: Mapping[str, tuple[Rated, str]] = {
    "judgesmith": (by_judgesmith, ""),
    "labels alone (Wilson)": (by_people, ""),
    "PPI++ (ppi-python's formula)": (by_formula, ""),
    "truescore, PPI++": (by_truescore, "truescore"),
    "truescore, Rogan-Gladen": (by_rogan_gladen, "truescore"),
    "juried": (by_juried, "juried.correction"),
    "GLIDE, PPI++": (by_glide, "glide.estimators"),
}


def finite(found: Interval) -> Interval:
    """Return an interval whose ends are numbers; None otherwise, since an end that is none excludes nothing."""
    if found is None or not all(map(math.isfinite, found)):
        return None
    return found


def present(ways: Mapping[str, tuple[Rated, str]]) -> dict[str, Rated]:
    """Return the ways of packages that are there."""
    return {
        name: ask
        for name, (ask, needed) in ways.items()
        if not needed or package(needed) is not None
    }


@dataclass
class Tally:
    """Intervals of one package."""

    held: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, found: Interval, true: float) -> None:
        """Count an interval, or that there is none."""
        if found is None:
            return
        low, high = found
        self.held.append(low <= true <= high)
        self.widths.append(high - low)

    def row(self, runs: int) -> list[Any]:
        """Return how many there were, held the truth, their width, and milliseconds."""
        if not self.held:
            return [0.0, None, None, 1000 * self.seconds / runs]
        share = len(self.held) / runs
        held = float(np.mean(self.held))
        width = float(np.mean(self.widths))
        return [share, held, width, 1000 * self.seconds / runs]


def rates(pairs: list[Recorded], labels: int, runs: int) -> dict[str, list[Any]]:
    """Return the row of each package for intervals of pass rates."""
    ways = present(RATES)
    rng = np.random.default_rng(0)
    tallies: dict[str, Tally] = defaultdict(Tally)
    for number in range(runs):
        pair = pairs[number % len(pairs)]
        judge = pair.judge.astype(np.float64)
        true = float(pair.people.mean())
        people = np.full(len(judge), np.nan)
        chosen = rng.permutation(len(judge))[:labels]
        people[chosen] = pair.people[chosen]
        for name, ask in ways.items():
            began = time.process_time()
            found = finite(ask(judge, people))
            tallies[name].seconds += time.process_time() - began
            tallies[name].add(found, true)
    return {name: tally.row(runs) for name, tally in tallies.items()}


# Differences ---------------------------------------------------------------------------------------------------------


def difference_by_judgesmith(judge: Vector, people: Vector) -> Interval:
    """Return the interval of `judgesmith compare`, of tables (2, documents): the base, then the new version."""
    count = judge.shape[1]
    found = compare(
        judge.ravel(),
        people.ravel(),
        systems=["a"] * count + ["b"] * count,
        documents=[*range(count)] * 2,
        base="a",
        new="b",
    )
    return found.low, found.high


def difference_by_people(judge: Vector, people: Vector) -> Interval:
    """Return Student's interval of the paired labels."""
    change = people[1] - people[0]
    change = change[~np.isnan(change)]
    reach = float(scipy.special.stdtrit(len(change) - 1, 0.975))
    reach *= change.std(ddof=1) / math.sqrt(len(change))
    return float(change.mean() - reach), float(change.mean() + reach)


def difference_by_formula(judge: Vector, people: Vector) -> Interval:
    """Return PPI++ of the paired differences."""
    return by_formula(judge[1] - judge[0], people[1] - people[0])


def difference_by_truescore(judge: Vector, people: Vector) -> Interval:
    """Return the interval of truescore's comparison."""
    index = np.flatnonzero(~np.isnan(people).any(axis=0))
    gold = people[:, index]
    found = package("truescore").ppi_compare(*judge[::-1], *gold[::-1], index)
    return float(found.low), float(found.high)


def difference_by_glide(judge: Vector, people: Vector) -> Interval:
    """Return the interval of GLIDE's PPI++ of the paired differences."""
    return by_glide(judge[1] - judge[0], people[1] - people[0])


DIFFERENCES: Mapping[str, tuple[Rated, str]] = {
    "judgesmith": (difference_by_judgesmith, ""),
    "labels alone (paired t)": (difference_by_people, ""),
    "PPI++ (ppi-python's formula)": (difference_by_formula, ""),
    "truescore": (difference_by_truescore, "truescore"),
    "GLIDE, PPI++": (difference_by_glide, "glide.estimators"),
}


def differences(every: list[Task], labels: int, runs: int) -> dict[str, list[Any]]:
    """Return the row of each package: differences of two systems, and of equal ones (sides drawn by document)."""
    ways = present(DIFFERENCES)
    rng = np.random.default_rng(0)
    tallies: dict[str, Tally] = defaultdict(Tally)
    found: dict[str, list[bool]] = defaultdict(list)
    alarms: dict[str, list[bool]] = defaultdict(list)
    for number in range(runs):
        task = every[number % len(every)]
        a, b = rng.permutation(len(task.systems))[:2]
        both = ~np.isnan(task.human[[a, b]]).any(axis=0)
        both &= ~np.isnan(task.judge[[a, b]]).any(axis=0)
        judge = task.judge[[a, b]][:, both]
        truth = task.human[[a, b]][:, both]
        if truth.shape[1] < labels + 10:
            continue
        chosen = rng.permutation(truth.shape[1])[:labels]
        turned = rng.random(truth.shape[1]) < 0.5
        for same in (False, True):
            own = judge.copy()
            people = truth.copy()
            if same:  # each document's two answers on sides drawn by chance: no version is better
                own[:, turned] = own[::-1, turned]
                people[:, turned] = people[::-1, turned]
            true = 0.0 if same else float((people[1] - people[0]).mean())
            some = np.full_like(people, np.nan)
            some[:, chosen] = people[:, chosen]
            if np.ptp(some[1, chosen] - some[0, chosen]) == 0:
                continue
            for name, ask in ways.items():
                began = time.process_time()
                ends = finite(ask(own, some))
                tallies[name].seconds += time.process_time() - began
                beyond = ends is not None and not ends[0] <= 0 <= ends[1]
                if same:
                    alarms[name].append(beyond)
                else:
                    tallies[name].add(ends, true)
                    found[name].append(beyond)
    rows = {}
    for name, tally in tallies.items():
        _, held, width, milliseconds = tally.row(len(found[name]))
        finds = float(np.mean(found[name]))
        rows[name] = [held, width, finds, float(np.mean(alarms[name])), milliseconds]
    return rows


# Gates ---------------------------------------------------------------------------------------------------------------


def gates(pairs: list[Recorded], runs: int) -> dict[str, list[Any]]:
    """Return of each gate on TPR how often it passes a judge at, below and above the bar, and the labels it takes."""
    rows: dict[str, list[Any]] = {}
    for away in (0.05, 0.0, -AHEAD):
        rng = np.random.default_rng(0)
        passed: dict[str, list[bool]] = defaultdict(list)
        labels: dict[str, list[int]] = defaultdict(list)
        for number in range(4 * runs):
            pair = pairs[number % len(pairs)]
            true = float(pair.judge[pair.people].mean())
            bar = true + away
            if not (bar >= 0.1 and bar + AHEAD <= 0.98):
                continue
            for name, (decision, count) in _gates(pair, bar, rng).items():
                passed[name].append(decision)
                labels[name].append(count)
            if len(labels["judgesmith, --anytime"]) >= runs:
                break
        for name, decisions in passed.items():
            rows.setdefault(name, []).extend(
                [float(np.mean(decisions)), float(np.mean(labels[name]))]
            )
    return rows


def _gates(
    pair: Recorded, bar: float, rng: np.random.Generator
) -> dict[str, tuple[bool, int]]:
    """Return of each gate whether the judge passes, and the labels that it took."""
    most = 2000
    rows = rng.integers(0, len(pair.people), size=most)
    judge = pair.judge[rows]
    people = pair.people[rows]
    counted = np.flatnonzero(people)
    right = judge[counted].astype(np.float64)
    found = {}
    forty = right[counted < 40]
    if package("judgekeeper.metrics") is not None:
        words = ["fail", "pass"]
        told = package("judgekeeper.metrics").agreement(
            [words[int(p)] for p in people[:40]],
            [words[int(j)] for j in judge[:40]],
            "pass",
            "fail",
        )
        share = told["tpr"]
        found["judgekeeper (points, 40 labels)"] = (
            share is not None and share >= bar,
            40,
        )
    if package("truescore") is not None:
        first = package("truescore.sequential").first_exclusion
        above = first(right, bar, direction="above")
        below = first(right, bar + AHEAD, alpha=0.1, direction="below")
        ends = [end for end in (above, below) if end is not None]
        end = min(ends) if ends else len(right)
        place = int(counted[end - 1]) + 1 if ends else most
        found["truescore, first_exclusion"] = above is not None and above == end, place
    lower = scipy.stats.beta.ppf(0.025, forty.sum(), len(forty) - forty.sum() + 1)
    found["judgesmith, 40 labels"] = bool(lower >= bar), 40
    look = ShareTest(bar, bar + AHEAD).look(right)
    place = most if look.sufficed is None else int(counted[look.sufficed - 1]) + 1
    found["judgesmith, --anytime"] = look.decision == "passed", place
    sides = (1e9 * (~pair.judge).sum(), 1e9 * pair.judge.sum())
    plan = planned("tpr", (float(sides[0]), float(sides[1])), bar, bar + AHEAD)
    order = drawn(pair, plan, rng, without=False)[:most]
    look = StrataTest("tpr", bar, bar + AHEAD, plan).look(
        pair.judge[order], pair.people[order]
    )
    found["judgesmith, label --decide"] = (
        look.decision == "passed",
        look.sufficed or most,
    )
    return found


def main() -> None:
    """Ask every package that is there, and save the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=600)
    options = options_of(parser)
    pairs = [pair for pair in recorded(options.data) if len(pair.people) >= 200]
    about: dict[str, Any] = {
        "commands": [f"python experiments/bench/peers.py --runs {options.runs}"],
        "seed": 0,
    }
    rows = []
    for labels in (20, 40, 100):
        for name, row in rates(pairs, labels, options.runs).items():
            rows.append([labels, name, *row])
            print(rows[-1], flush=True)
    columns = {
        "labels": "{:d}",
        "by": "",
        "gives an interval": "{:.0%}",
        "it holds the truth": "{:.1%}",
        "width": "{:.3f}",
        "ms": "{:.1f}",
    }
    notes = f"{len(pairs)} recorded judges and tasks"
    save(RESULTS, "peers-rates", columns, rows, notes=notes, **about)
    every = [task for task in tasks() if len(task.systems) >= 4]
    rows = []
    for labels in (10, 20):
        for name, row in differences(every, labels, options.runs).items():
            rows.append([labels, name, *row])
            print(rows[-1], flush=True)
    columns = {
        "labels": "{:d}",
        "by": "",
        "it holds the truth": "{:.1%}",
        "width": "{:.3f}",
        "finds a difference": "{:.0%}",
        "finds one of equal versions": "{:.1%}",
        "ms": "{:.1f}",
    }
    notes = f"{len(every)} recorded judges and aspects"
    save(RESULTS, "peers-differences", columns, rows, notes=notes, **about)
    rows = []
    for name, row in gates(pairs, options.runs).items():
        rows.append([name, *row])
        print(rows[-1], flush=True)
    columns = {"gate": ""}
    for where in (".05 below the bar", "at the bar", ".1 above the bar"):
        columns |= {f"{where}: passes": "{:.1%}", f"{where}: labels": "{:.0f}"}
    notes = "TPR; at most 2,000 labels"
    save(RESULTS, "peers-gates", columns, rows, notes=notes, **about)


if __name__ == "__main__":
    main()
