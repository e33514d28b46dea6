"""One judge of four aspects of SummEval against four judges of one: agreement with people, seconds and calls.

    python experiments/bench/aspects.py tables FOLDER TABLES... [--draws 20]
    python experiments/bench/aspects.py time FOLDER SUMMEVAL.jsonl --of all    # and --of coherence, …
    python experiments/bench/aspects.py compare FOLDER [--save FOLDER]

`tables` takes tables of readings that `judgesmith study experience` kept: 160 outputs of whole documents, each with
its readings and its own score for every aspect. Each draw labels 40 outputs of some documents. Every aspect is fitted
as `compile` does it, from an experience without the family of summaries, and corrected by the other aspects' scores
where that is ahead on the labelled rows. Agreement (Q = r + ρ + τ-b) is of the outputs of all other documents, with
intervals over documents. `time` scores four rows without labels and without a store, by each judge in a process of its
own, the model opened before. Its seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import judgesmith as js
from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.differences import Procedure, differences_within
from judgesmith.agreement.objectives import Q
from judgesmith.agreement.resampling import Agreement, interval_of
from judgesmith.datasets.records import Labels
from judgesmith.experiments.bench.facts import Pair, read_pairs
from judgesmith.experiments.studies.experience import (
    TaskSpec,
    chosen_rows,
    draws_of,
    located,
    without_family,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.fitting.weights import Training
from judgesmith.programs.capabilities import passes_of
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.outcome import PERCENT, Outcome
from judgesmith.programs.readings.bindings.opening import open_reader
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.judge import DIRECT, ModelReadings
from judgesmith.programs.readings.kinds import SIGNAL
from judgesmith.programs.several.judge import (
    Part,
    SeveralAspects,
    corrected,
    percents_table,
)
from judgesmith.signatures.values import Item

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
TASK = "summarization"
FAMILY = "summaries"
LM = "local/qwen2.5-0.5b"
LABELS = 40
TIMED = 4
WAYS = ("one", "four")


# Agreement ------------------------------------------------------------------------------------------------------------


@cache
def labels_of(spec: TaskSpec) -> Labels:
    """Return the rows of a table with their labels."""
    return chosen_rows(spec, located(spec.labels, None))


def training(pair: Pair, train: np.ndarray, own: Vector) -> Training:
    """Return the labelled rows of an aspect with the scores that something gave them."""
    labels = labels_of(pair.spec).subset(train)
    return Training(examples_of(labels), (), own, Q())


def alone(
    pair: Pair, train: np.ndarray, left: np.ndarray, experience: Experience
) -> tuple[Vector, Vector]:
    """Return an aspect's scores by itself, of the labelled rows by what did without them and of the others."""
    table = pair.with_facts.table
    own = table.columns([DIRECT])[:, 0]
    if np.isnan(own).any():
        raise ValueError(f"{pair.spec.aspect}: a row has no own score; leave it out")
    every = np.ones(len(train), dtype=bool)
    rows = training(pair, train, own[train])
    fit = rows.fit_head(table.rows(train), every, experience, DIRECT, strong=False)
    if not fit.ahead:
        return own[train], own[left]
    return np.clip(fit.percents, 0, 100), np.clip(fit.head(table.rows(left)), 0, 100)


def beside(
    name: str,
    pair: Pair,
    train: np.ndarray,
    labelled: Mapping[str, Vector],
    others: Mapping[str, Vector],
) -> Vector | None:
    """Return an aspect's scores of the other rows corrected by all aspects' scores; None if that is not ahead."""

    def table_of(scores: Mapping[str, Vector], groups: Sequence[Any]) -> Any:
        order = [name, *(one for one in scores if one != name)]
        columns = zip(*(scores[one].tolist() for one in order), strict=True)
        return percents_table(
            [dict(zip(order, row, strict=True)) for row in columns], groups
        )

    groups = [pair.with_facts.table.groups[i] for i in train]
    every = np.ones(len(train), dtype=bool)
    fit = training(pair, train, labelled[name]).fit_head(
        table_of(labelled, groups),
        every,
        Experience(),
        f"{SIGNAL}.{name}",
        strong=True,
    )
    if not fit.ahead:
        return None
    size = len(others[name])
    return np.asarray(corrected(fit.head, table_of(others, range(size))))


def tables(folder: Path, kept: Sequence[Path], draws: int) -> None:
    """Keep the scores of each draw, both ways."""
    pairs = list(read_pairs(kept))
    experience = without_family([one.plain for one in pairs if one.teaches], FAMILY)
    aspects = {one.spec.aspect: one for one in pairs if "summeval" in one.spec.labels}
    four = {name: aspects[name] for name in ASPECTS}
    first = four[ASPECTS[0]]
    if any(
        [r.id for r in one.rows] != [r.id for r in first.rows] for one in four.values()
    ):
        raise ValueError("the aspects' tables are of different rows")
    groups = first.with_facts.table.groups
    found: dict[str, Any] = {"documents": list(groups), "draws": []}
    found["human"] = {n: one.with_facts.scores.tolist() for n, one in four.items()}
    for _, train, left in draws_of(groups, LABELS, draws):
        fits = {n: alone(one, train, left, experience) for n, one in four.items()}
        labelled = {name: fit[0] for name, fit in fits.items()}
        others = {name: fit[1] for name, fit in fits.items()}
        moved = {
            name: beside(name, one, train, labelled, others)
            for name, one in four.items()
        }
        better = {name: of for name, of in moved.items() if of is not None}
        used = list(better)
        one_judge = others | better
        draw: dict[str, Any] = {"rows": left.tolist(), "used": used}
        draw["four"] = {name: of.tolist() for name, of in others.items()}
        draw["one"] = {name: of.tolist() for name, of in one_judge.items()}
        found["draws"].append(draw)
        print(len(found["draws"]), used, flush=True)
    (folder / "draws.json").write_text(json.dumps(found))


def agreement_of(found: Mapping[str, Any], way: str, name: str) -> Agreement:
    """Return mean Q of an aspect over draws."""
    documents = np.unique(found["documents"], return_inverse=True)[1]
    human = np.array(found["human"][name], float)
    sets = []
    for draw in found["draws"]:
        at = np.array(draw["rows"])
        sets.append((np.array(draw[way][name]), human[at], documents[at], None))
    return Agreement.of_mean(sets, int(documents.max()) + 1, "pooled", "sum")


def compare(folder: Path, target: Path | None) -> None:
    """Print and save the tables of agreement and of cost."""
    found = json.loads((folder / "draws.json").read_text())
    rows = list[list[Any]]()
    for name in ASPECTS:
        one, four = (agreement_of(found, way, name) for way in WAYS)
        both = replace(
            one,
            statistics=[*one.statistics, *four.statistics],
            values=[*one.values, *four.values],
        )
        (gap,) = differences_within(both, np.array([[1.0, -1.0]]), Procedure())
        shown = [
            [each.value, each.low, each.high] for each in map(interval_of, (one, four))
        ]
        used = sum(name in draw["used"] for draw in found["draws"])
        rows.append([name, *shown, [gap.value, gap.low, gap.high], used])
        print(*rows[-1], flush=True)
    rows.sort(key=lambda row: row[3][0])  # losses first
    interval = "{:.2f} [{:.2f}, {:.2f}]"
    columns = {"aspect": "", "one judge of four": interval, "four judges": interval}
    columns |= {"one − four": "{:+.3f} [{:+.3f}, {:+.3f}]"}
    columns |= {"draws that used other aspects": "{}"}
    command = "python experiments/bench/aspects.py"
    about: dict[str, Any] = {
        "model": "qwen2.5-coder-0.5b (Q4_K_M)",
        "notes": f"{len(found['draws'])} draws of {LABELS} labels, {len(found['documents'])} outputs",
    }
    commands = [f"{command} tables FOLDER TABLES", f"{command} compare FOLDER"]
    save(target, "aspects", columns, rows, commands=commands, **about)
    costs(folder, target)


# Cost -----------------------------------------------------------------------------------------------------------------


def judges(of: str, lm: Any) -> list[js.Judge]:
    """Return a judge of all aspects, or of one, without labels."""
    methods = {}
    for name in ASPECTS:
        methods[name] = ModelReadings.from_options(
            {}, labels_aspect=name, library_aspect=f"{TASK}/{name}"
        )
        methods[name].begin(lambda: lm)
    if of == "all":
        parts = {name: Part(one, Outcome(PERCENT)) for name, one in methods.items()}
        return [js.Judge(SeveralAspects.of_parts(parts), lm=lm)]
    return [js.Judge(methods[of], lm=lm)]


def timed(folder: Path, path: Path, of: str) -> None:
    """Keep the seconds, passes and calls of scoring rows one way."""
    lines = path.read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines[:: len(lines) // TIMED]][:TIMED]
    lm = js.language_model(LM, connection=Connection(cache=False))
    open_reader("", lm)
    every = judges(of, lm)
    items = [Item(row["output"], row["source"]) for row in rows]
    each = [passes_of(one.method, item).count for one in every for item in items]
    started = time.process_time()
    verdicts = [v for one in every for v in one.score_many(rows, progress=False)]
    spent = (time.process_time() - started) / TIMED
    calls = sum(verdict.usage.calls for verdict in verdicts) / TIMED
    found = {"seconds": spent, "passes": sum(each) / TIMED, "calls": calls}
    (folder / f"time-{of}.json").write_text(json.dumps(found))
    print(of, found, [verdict.failure for verdict in verdicts if verdict.failure])


def costs(folder: Path, target: Path | None) -> None:
    """Print and save what a scored row took."""
    kept = {}
    for of in ("all", *ASPECTS):
        kept[of] = json.loads((folder / f"time-{of}.json").read_text())
    one = kept["all"]
    four = {key: sum(kept[name][key] for name in ASPECTS) for key in one}
    rows = [["one judge of four", *one.values()], ["four judges", *four.values()]]
    for row in rows:
        print(*row)
    columns = {"": "", "CPU s a row": "{:.2f}", "passes a row": "{:.1f}"}
    columns |= {"calls a row": "{:.1f}"}
    command = "python experiments/bench/aspects.py time FOLDER summeval.jsonl --of"
    commands = [f"{command} {of}" for of in kept]
    save(target, "aspects-cost", columns, rows, commands=commands, model=LM)


def main() -> None:
    """Run one of the three parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    fitting, timing, comparing = map(actions.add_parser, ("tables", "time", "compare"))
    for one in (fitting, timing, comparing):
        one.add_argument("folder", type=Path)
    fitting.add_argument("tables", nargs="+", type=Path)
    fitting.add_argument("--draws", type=int, default=20)
    timing.add_argument("rows", type=Path)
    timing.add_argument("--of", choices=("all", *ASPECTS), required=True)
    comparing.add_argument("--save", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.action == "tables":
        tables(options.folder, options.tables, options.draws)
    elif options.action == "time":
        timed(options.folder, options.rows, options.of)
    else:
        compare(options.folder, options.save)


if __name__ == "__main__":
    main()
