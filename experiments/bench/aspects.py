"""One judge of four aspects against four judges of one: agreement and processor time, with a model that reads rows.

    python experiments/bench/aspects.py SUMMEVAL.jsonl [--lm local/qwen2.5-0.5b] [--labels 40] [--unseen 32]
        [--results FOLDER]

Labels are whole documents drawn by a seed; the rows that agreement is measured on are of other documents. Both are
compiled with the same cache, the one judge first, and score the rows without one.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import judgesmith as js
from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.datasets.loading import read_aspects
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.models.lm import Connection

ASPECTS = ("coherence", "consistency", "fluency", "relevance")


def drawn(path: Path, labels: int, rows: int) -> tuple[list[Any], list[Any]]:
    """Rows with labels, and rows of other documents."""
    by: dict[str, list[Any]] = {}
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        by.setdefault(record["doc_id"], []).append(record)
    few = list[Any]()
    for place in np.random.default_rng(0).permutation(len(by)):
        few += by[sorted(by)[place]][:4]
    return few[:labels], few[labels : labels + rows]


def timed(judge: js.Judge, rows: list[Any]) -> tuple[list[js.Verdict], float]:
    """Verdicts, and seconds of processor time."""
    started = time.process_time()
    return list(judge.score_many(rows, progress=False)), time.process_time() - started


def q(scores: Any, human: Any) -> float:
    """Return Q."""
    return float(CorrelationSum()(scores, human).q)


def main() -> None:
    """Compile, score and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path)
    parser.add_argument("--lm", default="local/qwen2.5-0.5b")
    parser.add_argument("--labels", type=int, default=40)
    parser.add_argument("--unseen", type=int, default=32)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    some, rest = drawn(given.rows, given.labels, given.unseen)
    labels = read_aspects(some, ASPECTS, scale=(1, 5))
    lm = js.language_model(given.lm)
    fresh = js.language_model(given.lm, connection=Connection(cache=False))
    started = time.process_time()
    one = js.compile("readings", labels, lm=lm, progress=False)
    spent = time.process_time() - started
    print(f"one judge of four, compiled in {spent:.1f} s of processor time", flush=True)
    print(one.report, flush=True)
    started = time.process_time()
    four = {
        name: js.compile("readings", of, lm=lm, progress=False)
        for name, of in labels.items()
    }
    again = time.process_time() - started
    print(f"four judges, calls and readings kept: {again:.1f} s", flush=True)
    together, seconds = timed(one.with_(lm=fresh), rest)
    print(f"one judge: {seconds:.1f} s for {len(rest)} rows", flush=True)
    apart, of_four = {}, 0.0
    for name, judge in four.items():
        verdicts, took = timed(judge.with_(lm=fresh), rest)
        apart[name], of_four = verdicts, of_four + took
    print(f"four judges: {of_four:.1f} s for {len(rest)} rows", flush=True)
    table: list[list[Any]] = []
    for name in ASPECTS:
        scores = np.array(
            [
                (row["scores"][name], ours.aspects[name].score, theirs.score)
                for row, ours, theirs in zip(rest, together, apart[name], strict=True)
            ]
        )
        human, ours, theirs = scores.T
        reported = one.report.aspects[name].heldout
        held = [reported.value, reported.low, reported.high]
        table.append([name, q(ours, human), q(theirs, human), held])
    table.append(["seconds a row", seconds / len(rest), of_four / len(rest), None])
    print(json.dumps(table), flush=True)
    save(
        given.results,
        "aspects",
        {
            "aspect": "",
            "one judge of four": "{:.2f}",
            "four judges": "{:.2f}",
            "as reported by folds": "{:.2f} [{:.2f}, {:.2f}]",
        },
        table,
        commands=[
            f"python experiments/bench/aspects.py summeval.jsonl --lm {given.lm} --labels {given.labels} "
            f"--unseen {given.unseen}"
        ],
        model=given.lm,
        labels=given.labels,
        unseen=len(rest),
    )


if __name__ == "__main__":
    main()
