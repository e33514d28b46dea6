"""Automatic metrics beside a direct judge on the same rows: local models in place of the metrics' own weights.

    JUDGESMITH_DATA=… python -m judgesmith.experiments.papers.baselines summeval consistency local/qwen2.5-0.5b \\
        --as summarization/consistency --documents 20 --outputs 5 -o results.jsonl

Documents with at least two outputs are drawn by the seed, and a number of outputs of each. Spearman's ρ with human
ratings, pooled and within documents, with 95 % intervals over documents. Columns of the set's published metrics stand
beside them. One JSON line an arm is appended; a second run leaves out what the file has. """

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...agreement.correlation import correlate
from ...agreement.resampling import Measure, bootstrap_q
from ...datasets.loading import read_labels
from ...datasets.records import Labels
from ...optimizers.examples import documents, examples_of, humans
from ...programs.metrics import PREFIX, reference_metric
from ...programs.pointwise.direct import DirectScorer
from ...running.opening import open_model, quiet
from .pairwise import draw

METRICS = ("rougeL", "meteor", "meteor:source", "bertscore-lm:{lm}", "bertscore-lm:{lm},against=source",
           "moverscore-lm:{lm},idf=no", "bartscore-lm:{lm}", "bartscore-lm:{lm},direction=f",
           "gptscore:{lm}", "gptscore:{lm},aspect={aspect}")  # fmt: skip


def some_outputs(labels: Labels, count: int, seed: int) -> Labels:
    """`count` outputs of each document, drawn by the seed."""
    rng = np.random.default_rng([seed, 5])
    rows: dict[str, list[int]] = {}
    for index, row in enumerate(labels.rows):
        rows.setdefault(row.doc_id, []).append(index)
    chosen = [i for members in rows.values() for i in rng.permutation(members)[:count].tolist()]
    return labels.subset(sorted(chosen))


def agreement_of(scores: Sequence[float], labels: Labels, seed: int) -> dict[str, Any]:
    """Spearman's ρ at two levels, with intervals; None where it is undefined."""
    examples = examples_of(labels)
    where, people = documents(examples), humans(examples)
    found: dict[str, Any] = {"rows": len(examples), "failed": sum(map(math.isnan, scores))}
    for level in ("pooled", "sample"):
        measure = Measure(people, documents=where, level=level, coefficient="spearman")
        interval = bootstrap_q(np.array(scores), measure, seed=seed)
        value = correlate(np.array(scores), people, level=level, documents=where).value
        found[level] = [None if math.isnan(x) else round(float(x), 3) for x in (value, interval.low, interval.high)]
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("aspect")
    parser.add_argument("model")
    parser.add_argument("--as", dest="library_aspect", required=True)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--outputs", type=int, default=5, help="of each document")
    parser.add_argument(
        "--metrics", default=" ".join(METRICS), help="separated by spaces; {lm} and {aspect} are filled"
    )
    parser.add_argument("--columns", default="", help="published metrics of the set, separated by commas")
    parser.add_argument("--no-direct", action="store_true")
    parser.add_argument("--source", action="store_true", help="the source serves as the reference where there is none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    folder = Path(os.environ["JUDGESMITH_DATA"])
    labels = read_labels(folder / f"{options.set}.jsonl", aspect=options.aspect)
    labels = some_outputs(draw(labels, options.documents, options.seed), options.outputs, options.seed)
    named = {name: getattr(options, name) for name in ("set", "aspect", "model", "seed", "documents", "outputs")}
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    done = {tuple(json.loads(line).get(key) for key in (*named, "arm")) for line in lines}

    def keep(arm: str, scores: Sequence[float], started: float) -> None:
        seconds = round(time.monotonic() - started, 1)
        row = {**named, "arm": arm, **agreement_of(scores, labels, options.seed), "seconds": seconds}
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    texts = [
        {"source": r.source, "output": r.output, "reference": r.source if options.source else r.reference}
        for r in labels.rows
    ]
    with quiet():
        for name in options.metrics.split():
            arm = PREFIX + name.format(lm=options.model, aspect=options.library_aspect)
            if (*named.values(), arm) not in done:
                started = time.monotonic()
                scores = [verdict.score for verdict in reference_metric(arm).score_many(texts)]
                if not all(map(math.isnan, scores)):  # a set without references
                    keep(arm, scores, started)
        if not options.no_direct and (*named.values(), "direct") not in done:
            started = time.monotonic()
            judge = DirectScorer(options.library_aspect, lm=open_model(options.model))
            shown = [{"source": r.source, "output": r.output, "group": r.group} for r in labels.rows]
            keep("direct", [verdict.percent for verdict in judge.score_many(shown)], started)
    published: dict[str, Any] = {}
    for line in (folder / f"{options.set}.metrics.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        published[record["id"]] = record["metrics"]
    for column in filter(None, options.columns.split(",")):
        if (*named.values(), f"column {column}") not in done:
            values = [published.get(row.id, {}).get(column) for row in labels.rows]
            keep(f"column {column}", [math.nan if v is None else float(v) for v in values], time.monotonic())


if __name__ == "__main__":
    main()
