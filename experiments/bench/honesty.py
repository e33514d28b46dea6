# ruff: noqa: E501
"""Coverage and bias of what compiling and studies report, before and after, by simulation; one table a name.

    python experiments/bench/honesty.py scores|suggested|systems|folds|readings|gains [--repeats N] [--tables FOLDER] [--save]

scores: 90 % intervals of scores after a choice among candidates. suggested: Q on rows that `suggest` chose. systems:
intervals of Q for systems at large. folds: cross-validated Q where nothing is known. readings: a wild reading, and limits. gains: one judge of 40 labels beside fifty
judges' mean. The last two read the tables that `study experience` keeps.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.resampling import Measure, Q, bootstrap_q, for_other_systems
from judgesmith.agreement.significance import difference_of, holm, paired_bootstrap
from judgesmith.experiments.bench.commands import DATA, save
from judgesmith.experiments.studies.experience import Card, Task, fit_experience, load, read_specs
from judgesmith.experiments.studies.readings import Known, draw_labels, study_table
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.fitting.gaussian import gaussian
from judgesmith.optimizers.fitting.outcome import calibrated_without, fit_sureness
from judgesmith.optimizers.fitting.readings import agreement, weigh
from judgesmith.optimizers.suggestion import suggest
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import LinearHead, Readings
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.signatures.values import Scale

Table = tuple[dict[str, str], list[list[Any]]]
S = Scale(0.0, 100.0)


def _standard(values: Sequence[float]) -> list[float]:
    return [float(np.mean(values)), float(np.std(values) / np.sqrt(len(values)))]


def scores(repeats: int, _: Path) -> Table:
    """30 training rows and 10 held-out ones; judges of correlation .5 with people, the best by Q on training rows."""
    rows = []
    for train, count, alike, held in (
        (30, 1, 0.0, 10),
        (30, 8, 0.0, 10),
        (30, 16, 0.0, 10),
        (30, 16, 0.6, 10),
        (60, 16, 0.0, 20),
    ):
        found: list[list[float]] = []
        for repeat in range(repeats):
            rng = np.random.default_rng([repeat, train, count])
            people = np.clip(50 + 20 * rng.normal(size=train + held + 300), 0, 100)
            common, own = rng.normal(size=len(people)), rng.normal(size=(count, len(people)))
            noise = np.sqrt(alike) * common + np.sqrt(1 - alike) * own
            judges = np.clip(50 + 20 * (0.5 * (people - 50) / 20 + np.sqrt(0.75) * noise), 0, 100)
            y, inside, out = people[:train], judges[:, :train], slice(train, train + held)
            best = int(np.argmax([agreement(judge, y) for judge in inside]))
            left, names = np.zeros(train), list(map(str, range(train)))
            for fold in folds(names, seed=0):
                rest = np.setdiff1d(np.arange(train), fold)
                left[fold] = inside[int(np.argmax([agreement(judge[rest], y[rest]) for judge in inside]))][fold]
            score = Calibration.fit(inside[best], y, S)
            held_out = judges[best, out], np.array(list(map(score, judges[best, out]))), people[out]
            new, truth = judges[best, train + held :], people[train + held :]
            row: list[float] = []
            for percents in (inside[best], None, left):
                parts = (
                    [held_out]
                    if percents is None
                    else [held_out, (percents, calibrated_without(percents, y, names, S), y)]
                )
                joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
                sure = fit_sureness(*joined, list(map(str, range(len(joined[0])))), S)
                ends = [sure.interval(p, score(p), S) for p in new.tolist()]
                row += [
                    np.mean([i.low <= t <= i.high for i, t in zip(ends, truth, strict=True)]),
                    np.mean([i.high - i.low for i in ends]) / 100,
                ]
            found.append(row)
        values = np.array(found).T
        cells = [[*_standard(values[2 * k]), float(values[2 * k + 1].mean())] for k in range(3)]
        rows.append([count, f"{train} + {held}", alike, *cells])
    form = "{:.3f} ± {:.3f}, {:.2f}"
    titles = ("before: rows chosen on, too", "held-out rows alone", "now: the other folds' choice")
    return {"candidates": "{}", "rows": "", "shared error": "{}"} | dict.fromkeys(titles, form), rows


def suggested(repeats: int, _: Path) -> Table:
    """300 rows of 100 documents; three readings; 40 rows by `suggest`, or at random."""
    rows = []
    for worth in (0.3, 0.5, 0.7):
        found = []
        for repeat in range(repeats):
            rng = np.random.default_rng([repeat, int(10 * worth)])
            people = rng.normal(size=300)
            readings = {str(w): w * people + np.sqrt(1 - w * w) * rng.normal(size=300) for w in (worth, 0.3, 0.6)}
            readings = {"judge": readings[str(worth)], "a": readings["0.3"], "b": readings["0.6"]}
            documents = np.repeat(np.arange(100), 3)
            chosen = [s.row for s in suggest(readings, 40, documents=documents)]
            drawn = rng.permutation(300)[:40]
            whole = agreement(readings["judge"], people)
            found.append([agreement(readings["judge"][at], people[at]) - whole for at in (chosen, drawn)])
        values = np.array(found).T
        rows.append([worth, _standard(values[0]), _standard(values[1])])
    form = "{:+.3f} ± {:.3f}"
    return {
        "r of the judge": "{}",
        "Q on 40 suggested rows, less all": form,
        "Q on 40 random rows, less all": form,
    }, rows


def _world(rng: np.random.Generator, systems: int, documents: int) -> tuple[Any, ...]:
    sys, doc = (codes.ravel() for codes in np.indices((systems, documents)))
    n = len(sys)
    quality, hard, own = rng.normal(size=systems) / 2, rng.normal(size=documents) / 2, rng.normal(size=n)
    favour, error = 0.6 * rng.normal(size=systems), 0.4 * rng.normal(size=documents)
    judge = 0.8 * quality[sys] + favour[sys] + 0.5 * (hard[doc] + own) + error[doc] + rng.normal(size=n)
    return judge, quality[sys] + hard[doc] + own, doc, sys


def systems(repeats: int, _: Path) -> Table:
    rows = []
    for level in ("pooled", "sample", "system"):
        q = CorrelationSum(level)  # type: ignore[arg-type]
        truth = float(np.mean([q(*_world(np.random.default_rng(seed), 300, 100)).q for seed in range(40)]))
        for count, documents in ((6, 10), (6, 40), (12, 40), (16, 100)):
            held, widths = [], []
            for repeat in range(repeats if documents < 100 else repeats // 4):
                x, y, doc, sys = _world(np.random.default_rng([repeat, count, documents]), count, documents)
                measure = Measure(y, documents=doc, systems=sys, level=level)  # type: ignore[arg-type]
                one = bootstrap_q(x, measure, rounds=200)
                parts = [sys != k for k in range(count)]
                left_out = [q(x[at], y[at], doc[at], sys[at]).q for at in parts]
                wide = for_other_systems((one.low, one.high), one.value, left_out, Q, 0.95)
                held.append([one.low <= truth <= one.high, wide[0] <= truth <= wide[1]])
                widths.append([one.high - one.low, wide[1] - wide[0]])
            cover, width = np.mean(held, axis=0).tolist(), np.mean(widths, axis=0).tolist()
            rows.append([level, f"{count} × {documents}", truth, [cover[0], width[0]], [cover[1], width[1]]])
    titles = ("over documents", "for new systems")
    return {"level": "", "systems × documents": "", "Q at large": "{:.2f}"} | dict.fromkeys(
        titles, "{:.3f}, {:.2f}"
    ), rows


def cross_validated(repeats: int, _: Path) -> Table:
    """Labels and nine readings that know nothing of each other; folds as few labels are cross-validated."""
    rows = []
    for labels, parts in ((24, 4), (28, 4), (60, 5)):
        found = []
        for repeat in range(repeats):
            rng = np.random.default_rng([repeat, labels])
            names = tuple(f"surface.{k}" for k in range(9))
            table = Readings(names, rng.normal(size=(labels, 9)), tuple(range(labels)))
            people = np.clip(50 + 20 * rng.normal(size=labels), 0, 100)
            raw, scaled = np.zeros(labels), np.zeros(labels)
            for out in folds(table.groups, parts, seed=repeat):
                rest = np.setdiff1d(np.arange(labels), out)
                head = gaussian(table.rows(rest), people[rest], Experience(), own=None).head
                known, raw[out] = head(table.rows(rest)), head(table.rows(out))
                scaled[out] = (raw[out] - known.mean()) / (known.std() or 1.0)
            found.append([agreement(raw, people), agreement(scaled, people)])
        values = np.array(found).T
        rows.append([labels, parts, _standard(values[0]), _standard(values[1])])
    form = "{:+.3f} ± {:.3f}"
    return {"labels": "{}", "folds": "{}", "before: Q of raw scores": form, "now: of each fold's own units": form}, rows


def _tasks(folder: Path) -> list[Task]:
    specs = read_specs(None)
    known = {(Path(s.labels).stem, s.aspect): (s.family, s in specs.tasks) for s in (*specs.tasks, *specs.measured)}
    made = []
    for path in sorted(folder.glob("*.npz")):
        name, aspect = path.stem.split(".")[:2]
        family, teaches = known[name, aspect]
        made.append(Task(f"{name} {aspect}", family, "own" if teaches else "", *load(path)))
    return made


def readings(repeats: int, folder: Path) -> Table:
    rows = []
    for labels in (8, 20, 40, 80):
        found = []
        for task in _tasks(folder):
            known = fit_experience([t for t in _tasks(folder) if t.licence and t.family != task.family], Card())
            for draw in range(repeats):
                train, left = draw_labels(task.table.groups, labels, draw)
                if len(train) < labels or len(left) < 20 or len({task.table.groups[i] for i in train}) < 3:
                    continue
                head, rest, y = (
                    weigh(task.table.rows(train), task.scores[train], known).head,
                    task.table.rows(left),
                    task.scores[left],
                )
                free = LinearHead(head.base, head.weights, head.states)
                wild = rest.values.copy()
                at = np.random.default_rng(draw).integers(len(left)), rest.names.index("assistant.sum")
                wild[at] *= 100
                spoilt = type(rest)(rest.names, wild, rest.groups, rest.states)
                far = np.mean([bool(head.unlike(rest.rows([i]))) for i in range(len(left))])
                q = [agreement(h(t), y) for t in (rest, spoilt) for h in (free, head)]
                moved = [abs(float((h(spoilt) - h(rest))[at[0]])) for h in (free, head)]
                found.append([*q, *moved, far, bool(head.unlike(spoilt.rows([at[0]])))])
        m = np.mean(found, axis=0).tolist()
        rows.append([labels, len(found), m[:2], m[2:4], m[4:6], m[6], m[7]])
    pair = "{:.3f} → {:.3f}"
    return {"labels": "{}", "draws": "{}", "Q": pair, "Q, one wild value": pair, "its row moves by": "{:.0f} → {:.1f}",
            "other rows flagged": "{:.1%}", "wild rows flagged": "{:.0%}"}, rows  # fmt: skip


def gains(repeats: int, folder: Path) -> Table:
    tasks, rows, families = _tasks(folder), [], dict[str, list[tuple[float, Any]]]()
    for task in tasks:
        table, y = task.table, task.scores
        known = fit_experience([t for t in tasks if t.licence and t.family != task.family], Card())
        found = study_table(task.name, Known(table, y), known, sizes=(40,), draws=repeats)
        main = found.at(40)
        if main is None:
            continue
        total, times, direct = np.zeros(len(y)), np.zeros(len(y)), np.nan_to_num(table.columns([DIRECT])[:, 0])
        for draw in range(repeats):
            train, left = draw_labels(table.groups, 40, draw)
            total[left] += weigh(table.rows(train), y[train], known).head(table.rows(left))
            times[left] += 1
        seen = np.flatnonzero(times)
        names = [str(table.groups[i]) for i in seen]
        every = paired_bootstrap(total[seen] / times[seen], direct[seen], Measure(y[seen], documents=names))
        families.setdefault(task.family, []).append((main.gap.value, main.drawn))
        rows.append([task.name, task.family, found.groups, float(main.zero_shot.mean()), float(main.chosen.mean()),
                     float((main.chosen - main.zero_shot).std()), [every.value, every.low, every.high], every.p,
                     [main.gap.value, main.gap.low, main.gap.high], main.gap.p])  # fmt: skip
        print(rows[-1], flush=True)
    for k in (7, 9):
        for row, p in zip(rows, holm([row[k] for row in rows]).tolist(), strict=True):
            row[k] = p
    groups = {family: min(row[2] for row in rows if row[1] == family) for family in families}
    made = {
        family: difference_of(
            float(np.mean([v for v, _ in of])), np.mean([d for _, d in of], axis=0), groups[family], 0, 0.95
        )
        for family, of in families.items()
    }
    for (family, gap), p in zip(made.items(), holm([g.p for g in made.values()]).tolist(), strict=True):
        rows.append(
            [
                f"all of {family}",
                f"{len(families[family])} tasks",
                groups[family],
                None,
                None,
                None,
                None,
                None,
                [gap.value, gap.low, gap.high],
                p,
            ]
        )
    gap, p = "{:+.2f} [{:+.2f}, {:+.2f}]", "{:.3f}"
    return {"task": "", "family": "", "documents": "{}", "own score": "{:.2f}", "40 labels": "{:.2f}",
            "sd over draws": "{:.2f}", "before: gain of all draws' mean": gap, "p (Holm, tasks)": p, "gain of one judge": gap,
            "p (Holm; tasks, families)": p}, rows  # fmt: skip


TABLES: dict[str, tuple[Callable[[int, Path], Table], int]] = {
    "folds": (cross_validated, 1000), "scores": (scores, 1000), "suggested": (suggested, 1000), "systems": (systems, 1000), "readings": (readings, 10),
    "gains": (gains, 50),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(TABLES))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--tables", type=Path, default=Path("tables"))
    parser.add_argument("--save", nargs="?", const=DATA, type=Path)
    parser.add_argument("--commit", default="")
    given = parser.parse_args()
    make, repeats = TABLES[given.name]
    repeats = given.repeats or repeats
    columns, rows = make(repeats, given.tables)
    for row in rows:
        print(row)
    command = (
        f"python experiments/bench/honesty.py {given.name} --repeats {repeats}"
        + f"  # of commit {given.commit}" * bool(given.commit)
    )
    notes = f"{repeats} {'draws' if given.name in ('gains', 'readings') else 'repeats'}"
    save(given.save, f"honesty-{given.name}", columns, rows, commands=[command], notes=notes)


if __name__ == "__main__":
    main()
