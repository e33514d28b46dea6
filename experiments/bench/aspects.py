"""One judge of four aspects of SummEval against four judges of one: agreement with people, seconds and calls.

    python experiments/bench/aspects.py learn FOLDER TABLES...
    python experiments/bench/aspects.py draw FOLDER SUMMEVAL.jsonl [--draws 8]
    python experiments/bench/aspects.py time FOLDER SUMMEVAL.jsonl --of all    # and --of coherence, …
    python experiments/bench/aspects.py compare FOLDER [--save FOLDER]

`learn` fits the experience that both start from to kept tables of readings (`judgesmith study experience`), without
the family of summaries. `draw` takes 24 documents with four outputs each. Every draw labels ten of the first fifteen,
compiles both ways, and scores the outputs of all others. Each finished draw stays in FOLDER. What is read and answered
stays in a store (JUDGESMITH_CACHE), so a run that was ended goes on. `time` compiles one judge from six documents
without a store and scores eight other rows, in seconds of processor time. `compare` shows mean agreement over draws
(Q = r + ρ + τ-b), with intervals over documents.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import judgesmith as js
from judgesmith.agreement.differences import Procedure, differences_within
from judgesmith.agreement.resampling import Agreement, interval_of
from judgesmith.datasets.loading import read_aspects
from judgesmith.datasets.records import Labels
from judgesmith.experiments.bench.beside import without_family
from judgesmith.experiments.bench.facts import read_pairs
from judgesmith.experiments.studies.experience import write_experience
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.files import file_sha256, model_path
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.readings.bindings.opening import open_reader
from judgesmith.programs.readings.judge import ModelReadings

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
TASK, FAMILY, LM = "summarization", "summaries", "local/qwen2.5-0.5b"
#: Outputs of a document, documents in all, those that labels are drawn from, and those that a draw labels.
OUTPUTS, DOCUMENTS, POOL, LABELLED = 4, 24, 15, 10
#: Documents that are labelled and rows that are scored where time is taken.
FEW, TIMED = 6, 8
WAYS, ALL = ("one", "four"), "all"


def chosen(path: Path) -> list[list[dict[str, Any]]]:
    """Return some documents' rows, the documents and their outputs drawn by a seed."""
    by: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        by.setdefault(record["doc_id"], []).append(record)
    rng = np.random.default_rng(0)
    names = rng.permutation(sorted(by))[:DOCUMENTS]
    return [
        [by[name][i] for i in rng.permutation(len(by[name]))[:OUTPUTS]]
        for name in names
    ]


def split(documents: Sequence[list[Any]], draw: int) -> tuple[list[Any], list[Any]]:
    """Return the rows that a draw labels, and those of the other documents."""
    labelled = set(np.random.default_rng(draw).permutation(POOL)[:LABELLED].tolist())
    sides: tuple[list[Any], list[Any]] = [], []
    for place, rows in enumerate(documents):
        sides[place not in labelled].extend(rows)
    return sides


def judge_of(aspect: str, folder: Path) -> Judge:
    """Return a judge of one aspect before anything is learnt."""
    given = {"experience": str(folder / "experience.json")}
    words = {"labels_aspect": aspect, "library_aspect": f"{TASK}/{aspect}"}
    return Judge(ModelReadings.from_options(given, **words))


def compiled(
    way: str, labels: Mapping[str, Labels], lm: LanguageModel, folder: Path
) -> list[Judge]:
    """Compile one judge of all aspects, or one judge for each."""
    judges = {name: judge_of(name, folder) for name in ASPECTS}
    if way == "one":
        return [js.compile(judges, labels, lm=lm, progress=False)]
    return [
        js.compile(judges[name], labels[name], lm=lm, progress=False)
        for name in ASPECTS
    ]


def keeping(judges: Sequence[Judge]) -> None:
    """Let judges keep what they read of the rows that they score."""
    for judge in judges:
        parts = getattr(judge.method, "parts", None)
        methods = (
            [judge.method] if parts is None else [p.method for p in parts().values()]
        )
        for method in methods:
            method.keeps = True  # type: ignore[attr-defined]


def scores(judges: Sequence[Judge], rows: Sequence[Any]) -> dict[str, list[js.Verdict]]:
    """Return the verdicts on each aspect."""
    if len(judges) == 1:
        verdicts = list(judges[0].score_many(rows, progress=False))
        return {name: [one.aspects[name] for one in verdicts] for name in ASPECTS}
    return {
        name: list(judge.score_many(rows, progress=False))
        for name, judge in zip(ASPECTS, judges, strict=True)
    }


def learn(folder: Path, tables: Sequence[Path]) -> None:
    """Fit the experience of all families but that of the set."""
    teachers = [pair.plain for pair in read_pairs(tables) if pair.teaches]
    known = without_family(teachers, FAMILY)
    model = file_sha256(model_path(LM.removeprefix("local/")))
    write_experience(
        known.model_copy(update={"model": model}), folder / "experience.json"
    )
    print(
        len(teachers), "tables", sorted({task.family for task in teachers} - {FAMILY})
    )


def draw(folder: Path, path: Path, draws: int) -> None:
    """Compile both ways on each draw and keep the scores of the other documents' rows."""
    documents, lm = chosen(path), js.language_model(LM)
    for number in range(draws):
        kept = folder / f"draw-{number}.json"
        if kept.exists():
            continue
        some, rest = split(documents, number)
        labels = read_aspects(some, ASPECTS, scale=(1, 5))
        found: dict[str, Any] = {"documents": [row["doc_id"] for row in rest]}
        found["human"] = {
            name: [row["scores"][name] for row in rest] for name in ASPECTS
        }
        for way in WAYS:
            judges = compiled(way, labels, lm, folder)
            keeping(judges)
            verdicts = scores(judges, rest)
            found[way] = {
                name: [one.score for one in of] for name, of in verdicts.items()
            }
            if way == "one":
                parts = judges[0].method.parts()  # type: ignore[attr-defined]
                found["beside"] = [n for n, part in parts.items() if part.beside]
                found["reported"] = {
                    name: [
                        report.heldout.value,
                        report.heldout.low,
                        report.heldout.high,
                    ]
                    for name, report in judges[0].report.aspects.items()  # type: ignore[union-attr]
                }
        kept.write_text(json.dumps(found))
        print("draw", number, found["beside"], flush=True)


def timed(folder: Path, path: Path, of: str) -> None:
    """Keep the seconds and calls of compiling one judge, of an aspect or of all, and of scoring rows by it."""
    documents = chosen(path)
    some = [row for rows in documents[:FEW] for row in rows]
    rest = [row for rows in documents[FEW:] for row in rows][:TIMED]
    labels: Any = read_aspects(some, ASPECTS, scale=(1, 5))
    judge: Any = {name: judge_of(name, folder) for name in ASPECTS}
    if of != ALL:
        labels, judge = labels[of], judge[of]
    lm = js.language_model(LM, connection=Connection(cache=False))
    open_reader("", lm)
    started = time.process_time()
    made = js.compile(judge, labels, lm=lm, progress=False)
    middle = time.process_time()
    verdicts = list(made.score_many(rest, progress=False))
    spent = (time.process_time() - middle) / TIMED
    calls = made.report.usage.calls  # type: ignore[union-attr]
    found = {"compile": middle - started, "calls": calls, "row": spent}
    found["row calls"] = sum(one.usage.calls for one in verdicts) / TIMED
    (folder / f"time-{of}.json").write_text(json.dumps(found))
    print(of, found, flush=True)


def agreement_of(parts: Sequence[Any], documents: Sequence[str]) -> Agreement:
    """Return mean Q over draws. parts: (scores, human, documents) of each draw."""
    place = {name: at for at, name in enumerate(documents)}
    sets = [
        (
            np.array(x, float),
            np.array(y, float),
            np.array([place[d] for d in doc]),
            None,
        )
        for x, y, doc in parts
    ]
    return Agreement.of_mean(sets, len(documents), "pooled", "sum")


def compare(folder: Path, target: Path | None) -> None:
    """Print and save the tables of agreement and of cost."""
    draws = [
        json.loads(file.read_text()) for file in sorted(folder.glob("draw-*.json"))
    ]
    documents = sorted({name for one in draws for name in one["documents"]})
    table = list[list[Any]]()
    for name in ASPECTS:
        ways = [
            agreement_of(
                [
                    (one[way][name], one["human"][name], one["documents"])
                    for one in draws
                ],
                documents,
            )
            for way in WAYS
        ]
        both = Agreement(
            [*ways[0].statistics, *ways[1].statistics],
            [*ways[0].values, *ways[1].values],
            len(documents),
            ways[0].rows,
            True,
            ways[0].reason or ways[1].reason,
            ways[0].within,
        )
        (apart,) = differences_within(both, np.array([[1.0, -1.0]]), Procedure())
        reported = float(np.mean([one["reported"][name][0] for one in draws]))
        moved = sum(name in one["beside"] for one in draws)
        figures = [[each.value, each.low, each.high] for each in map(interval_of, ways)]
        gain = [apart.value, apart.low, apart.high]
        table.append([name, *figures, gain, reported, moved])
        print(*table[-1], flush=True)
    table.sort(key=lambda row: row[3][0])  # losses first
    interval = "{:.2f} [{:.2f}, {:.2f}]"
    columns = {"aspect": "", "one judge of four": interval, "four judges": interval}
    columns |= {"one − four": "{:+.3f} [{:+.3f}, {:+.3f}]"}
    columns |= {"reported by folds": "{:.2f}", "draws that used other aspects": "{}"}
    about: dict[str, Any] = {
        "model": LM,
        "draws": len(draws),
        "documents": len(documents),
    }
    command = "python experiments/bench/aspects.py"
    commands = [f"{command} draw FOLDER summeval.jsonl --draws {len(draws)}"]
    commands += [f"{command} learn FOLDER TABLES", f"{command} compare FOLDER"]
    save(target, "aspects", columns, table, commands=commands, **about)
    costs(folder, target)


def costs(folder: Path, target: Path | None) -> None:
    """Print and save what compiling and scoring took."""
    kept = {
        of: json.loads((folder / f"time-{of}.json").read_text())
        for of in (ALL, *ASPECTS)
    }
    four = {key: sum(kept[name][key] for name in ASPECTS) for key in kept[ALL]}
    rows = [["one judge of four", *kept[ALL].values()], ["four judges", *four.values()]]
    for row in rows:
        print(*row)
    columns = {"": "", "compile, CPU s": "{:.0f}", "calls": "{}"}
    columns |= {"a row, CPU s": "{:.2f}", "calls a row": "{:.1f}"}
    commands = [
        f"python experiments/bench/aspects.py time FOLDER summeval.jsonl --of {of}"
        for of in kept
    ]
    about = {"model": LM, "labels": FEW * OUTPUTS, "rows": TIMED}
    save(target, "aspects-cost", columns, rows, commands=commands, **about)


def main() -> None:
    """Run one of the four parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    learning, drawing, timing, comparing = (
        actions.add_parser(name) for name in ("learn", "draw", "time", "compare")
    )
    for one in (learning, drawing, timing, comparing):
        one.add_argument("folder", type=Path)
    learning.add_argument("tables", nargs="+", type=Path)
    for one in (drawing, timing):
        one.add_argument("rows", type=Path)
    drawing.add_argument("--draws", type=int, default=8)
    timing.add_argument("--of", choices=(ALL, *ASPECTS), required=True)
    comparing.add_argument("--save", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.action == "learn":
        learn(given.folder, given.tables)
    elif given.action == "draw":
        draw(given.folder, given.rows, given.draws)
    elif given.action == "time":
        timed(given.folder, given.rows, given.of)
    else:
        compare(given.folder, given.save)


if __name__ == "__main__":
    main()
