"""Judges without labels, metrics and published columns on the same rows of a set.

    JUDGESMITH_DATA=… python -m judgesmith.experiments.papers.judges wiki_da meaning local/qwen2.5-0.5b \\
        --as "simplification/meaning preservation" --documents 30 -o results.jsonl
    … judges summeval consistency local/qwen2.5-0.5b --as summarization/consistency --outputs 5 \\
        --arms direct metric/rougeL metric/gptscore:local/qwen2.5-0.5b column/bart_score -o results.jsonl

Arms: `direct`, `g-eval`, `pairwise-3`, `pairwise-5`, `pairwise-3-both`, `yes-no-3`, `pairs`, `metric/NAME` (as of
`judgesmith evaluate --judge`), `column/NAME` (a published metric of the set), and `graded-3`, `graded-5`: are the
references of `pairwise-N` graded? Whole documents with at least two outputs are drawn by the seed, and with --outputs a
number of outputs of each. Spearman's ρ with human ratings, within documents (`sample`) and `pooled`, with 95 %
intervals over documents; calls, tokens and the share of the prompt that the model took from its cache. References are
written into a store of their own, so that their cost is counted. An arm is one JSON line of the output; a second run
leaves out the arms that the file has.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...agreement.correlation import correlate
from ...agreement.resampling import Measure, bootstrap_q
from ...datasets.loading import read_labels
from ...datasets.records import Labels
from ...errors import CallError
from ...optimizers.examples import documents, examples_of, humans, item_of, score_rows
from ...programs.baselines.pairs import PairS
from ...programs.comparing.pairwise import PairwiseDirectScorer
from ...programs.comparing.references import ReferenceStore
from ...programs.comparing.synthesis import length_guide
from ...programs.judge import Judge
from ...programs.metrics import PREFIX, reference_metric
from ...programs.models import engine
from ...programs.models.lm import LanguageModel
from ...programs.pointwise.direct import DirectScorer
from ...programs.pointwise.geval import GEval
from ...running.console import Watch
from ...running.opening import open_model, quiet
from ...signatures.values import Item

ARMS = ("direct", "g-eval", "pairwise-3", "pairwise-5", "yes-no-3", "pairs")
COLUMN = "column/"


def judges(aspect: str, words: int, store: ReferenceStore, writer: str = "") -> Mapping[str, Callable[[], Judge]]:
    """The compared judges by name. words: length of the references. writer: who writes them ("": the judge's model)."""

    def pairwise(levels: int, **more: Any) -> PairwiseDirectScorer:
        return PairwiseDirectScorer(aspect, levels=levels, words=words, references=store, writer=writer, **more)

    return {
        "direct": lambda: DirectScorer(aspect),
        "g-eval": lambda: GEval(aspect),
        "pairwise-3": lambda: pairwise(3),
        "pairwise-5": lambda: pairwise(5),
        "pairwise-3-both": lambda: pairwise(3, order="both"),
        "yes-no-3": lambda: pairwise(3, form="yes-no"),
        "pairs": lambda: PairS(aspect),
    }


def draw(labels: Labels, count: int, outputs: int, seed: int) -> Labels:
    """The rows of `count` documents that have at least two outputs; at most `outputs` of each, all for 0."""
    members: dict[str, list[int]] = {}
    for index, row in enumerate(labels.rows):
        members.setdefault(row.doc_id, []).append(index)
    names = [name for name, rows in members.items() if len(rows) > 1]
    chosen = [members[names[int(n)]] for n in np.random.default_rng(seed).permutation(len(names))[:count]]
    rng = np.random.default_rng([seed, 5])
    rows = [rng.permutation(of)[:outputs].tolist() if outputs else of for of in sorted(chosen)]
    return labels.subset(sorted(itertools.chain.from_iterable(rows)))


def agreement_of(scores: Sequence[float], labels: Labels, seed: int) -> dict[str, Any]:
    """Spearman's ρ at two levels with its interval; None where it is undefined."""
    examples = examples_of(labels)
    where, people, percents = documents(examples), humans(examples), np.array(scores)
    figures: dict[str, Any] = {"rows": len(examples), "documents": len(set(where))}
    figures["failed"] = int(np.isnan(percents).sum())
    for level in ("sample", "pooled"):
        interval = bootstrap_q(
            percents, Measure(people, documents=where, level=level, coefficient="spearman"), seed=seed
        )
        value = correlate(percents, people, level=level, documents=where).value
        figures[level] = {"rho": _number(value), "low": _number(interval.low), "high": _number(interval.high)}
    return figures


def measure(judge: Judge, labels: Labels, lm: LanguageModel, seed: int) -> dict[str, Any]:
    """One judge over the rows."""
    judge.set_lm(lm)
    before = lm.meter.usage
    with Watch("judging", len(labels)) as watch:
        scored = score_rows(judge, examples_of(labels), watch)
    spent = lm.meter.usage - before
    return agreement_of(scored.percents.tolist(), labels, seed) | {
        "calls": spent.calls, "cached": spent.cached, "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens, "prefix_tokens": spent.prefix_tokens,
        "notes": _notes(scored.verdicts),
    }  # fmt: skip


def graded(judge: PairwiseDirectScorer, labels: Labels, lm: LanguageModel) -> dict[str, Any]:
    """Are the references graded? Of all neighbouring levels, in how many the model holds the higher one for better,
    and in how many it has the higher ROUGE-L with the human references, where there are such."""
    judge.set_lm(lm)
    engine.run(judge.prepare(lm))
    firsts = {e.document: e for e in reversed(examples_of(labels))}
    own, rouge, written = [], [], 0
    metric = reference_metric("rougeL")
    for example in firsts.values():
        item = item_of(example)
        try:
            references, _ = engine.run(judge.areferences(item, lm))
        except CallError:  # not even a worst and a best one: `written` falls short of `asked`
            continue
        texts = list(references.outputs.values())
        written += len(texts)
        for lower, higher in itertools.pairwise(texts):
            compared = engine.run(
                judge.comparer.acompare(
                    Item(higher, item.source, item.context, None, item.group), lower, lm,
                    task=judge.knowledge.description, aspect=judge.target().described(), name=judge.aspect,
                )
            )  # fmt: skip
            own.append(compared.comparison.better > compared.comparison.worse)
            if example.reference:
                rouge.append(
                    metric.score(higher, example.reference).score > metric.score(lower, example.reference).score
                )
    return {
        "pairs": len(own), "written": written, "asked": len(firsts) * judge.levels,
        "by_the_model": _number(float(np.mean(own))) if own else None,
        "by_rougeL": _number(float(np.mean(rouge))) if rouge else None,
    }  # fmt: skip


def _notes(verdicts: Any) -> dict[str, int]:
    """How often each kind of note came."""
    kinds = ("has no reference", "little of the probability", "the two orders disagree", "failed")
    notes = ["; ".join((*v.notes, v.failure or "")) for v in verdicts]
    return {kind: n for kind in kinds if (n := sum(kind in note for note in notes))}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def _published(folder: Path, name: str, column: str, labels: Labels) -> list[float]:
    """A published metric of the rows, NaN where a row has none."""
    lines = (folder / f"{name}.metrics.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = {record["id"]: record["metrics"] for record in map(json.loads, lines)}
    values = [metrics.get(row.id, {}).get(column) for row in labels.rows]
    return [math.nan if value is None else float(value) for value in values]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("aspect")
    parser.add_argument("model")
    parser.add_argument("--as", dest="library_aspect", required=True)
    parser.add_argument("--documents", type=int, default=30)
    parser.add_argument("--outputs", type=int, default=0, help="of each document; 0: all")
    parser.add_argument("--arms", nargs="+", default=list(ARMS))
    parser.add_argument("--source", action="store_true", help="the source serves metrics as the reference")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writer", default="", help="a model that writes the references in the judge's place")
    parser.add_argument("--store", type=Path, help="keep the references here (default: beside -o)")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    folder = Path(os.environ["JUDGESMITH_DATA"])
    labels = read_labels(folder / f"{options.set}.jsonl", aspect=options.aspect)
    labels = draw(labels, options.documents, options.outputs, options.seed)
    store = ReferenceStore(options.store or options.output.with_suffix(".references.sqlite"))
    known = judges(options.library_aspect, length_guide(row.output for row in labels.rows), store, options.writer)
    names = ("set", "aspect", "model", "seed", "documents", "outputs", "writer")
    run = {name: getattr(options, name) for name in names}
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    done = [{name: entry.get(name) for name in (*names, "arm")} for entry in map(json.loads, lines)]

    def figures(arm: str, lm: LanguageModel) -> dict[str, Any]:
        if arm.startswith(COLUMN):
            scores = _published(folder, options.set, arm.removeprefix(COLUMN), labels)
            return agreement_of(scores, labels, options.seed)
        if arm.startswith(PREFIX):
            texts = [
                {"source": r.source, "output": r.output, "reference": r.source if options.source else r.reference}
                for r in labels.rows
            ]
            return agreement_of([v.score for v in reference_metric(arm).score_many(texts)], labels, options.seed)
        if arm.startswith("graded-"):
            judge = known[arm.replace("graded", "pairwise")]()
            assert isinstance(judge, PairwiseDirectScorer)
            return graded(judge, labels, lm)
        return measure(known[arm](), labels, lm, options.seed)

    with quiet():
        lm = open_model(options.model)
        for arm in options.arms:
            if run | {"arm": arm} in done:
                continue
            print(f"{arm}: {len(labels)} rows", file=sys.stderr, flush=True)
            started = time.monotonic()
            entry = run | {"arm": arm, **figures(arm, lm), "seconds": round(time.monotonic() - started, 1)}
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
