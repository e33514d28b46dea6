"""Judges without labels on the same rows: direct scoring, G-Eval, synthetic pairwise comparisons, Yes/No, PairS.

    JUDGESMITH_DATA=… python -m judgesmith.experiments.papers.pairwise wiki_da meaning local/qwen2.5-0.5b \\
        --as "simplification/meaning preservation" --documents 30 -o results.jsonl

Whole documents with at least two outputs are drawn by the seed. Spearman's ρ with human ratings, at sample level
(within documents, averaged) and pooled, with 95 % intervals over documents; calls, prompt tokens and the share of them
that the model took from its cache of prompt beginnings. References are written into a store of their own, so that what
they cost is counted. One JSON line an arm is appended; a second run leaves out what the file has.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
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
from ...programs.metrics import reference_metric
from ...programs.models import engine
from ...programs.models.lm import LanguageModel
from ...programs.pointwise.direct import DirectScorer
from ...programs.pointwise.geval import GEval
from ...running.console import Watch
from ...running.opening import open_model, quiet
from ...signatures.values import Item


def arms(
    aspect: str, words: int, store: ReferenceStore, writer: str = "", **options: Any
) -> Mapping[str, Callable[[], Judge]]:
    """The compared judges by name. words: the references' length. writer: who writes them ("": the judge's model)."""

    def pairwise(levels: int, **more: Any) -> PairwiseDirectScorer:
        return PairwiseDirectScorer(
            aspect, levels=levels, words=words, references=store, writer=writer, **options, **more
        )

    return {
        "direct": lambda: DirectScorer(aspect, **options),
        "g-eval": lambda: GEval(aspect, **options),
        "pairwise-3": lambda: pairwise(3),
        "pairwise-5": lambda: pairwise(5),
        "pairwise-3-both": lambda: pairwise(3, order="both"),
        "yes-no-3": lambda: pairwise(3, form="yes-no"),
        "pairs": lambda: PairS(aspect, **options),
    }


def draw(labels: Labels, count: int, seed: int) -> Labels:
    """The rows of `count` documents that have at least two outputs."""
    rows: dict[str, list[int]] = {}
    for index, row in enumerate(labels.rows):
        rows.setdefault(row.doc_id, []).append(index)
    names = [name for name, members in rows.items() if len(members) > 1]
    chosen = np.random.default_rng(seed).permutation(len(names))[:count]
    return labels.subset(sorted(i for n in chosen for i in rows[names[int(n)]]))


def measure(judge: Judge, labels: Labels, lm: LanguageModel, seed: int) -> dict[str, Any]:
    """One judge over the rows."""
    examples = examples_of(labels)
    judge.set_lm(lm)
    before, started = lm.meter.usage, time.monotonic()
    with Watch("judging", len(examples)) as watch:
        scored = score_rows(judge, examples, watch)
    spent, seconds = lm.meter.usage - before, time.monotonic() - started
    found: dict[str, Any] = {"rows": len(examples), "documents": len(set(documents(examples))), "failed": scored.failed}
    where = documents(examples)
    for level in ("sample", "pooled"):
        interval = bootstrap_q(
            scored.percents, Measure(humans(examples), documents=where, level=level, coefficient="spearman"), seed=seed
        )
        value = correlate(scored.percents, humans(examples), level=level, documents=where).value
        found[level] = {"rho": _number(value), "low": _number(interval.low), "high": _number(interval.high)}
    return found | {
        "calls": spent.calls, "cached": spent.cached, "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens, "prefix_tokens": spent.prefix_tokens,
        "seconds": round(seconds, 1), "notes": _counted(scored.verdicts),
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


def _counted(verdicts: Any) -> dict[str, int]:
    """How often each kind of note came."""
    kinds = ("has no reference", "little of the probability", "the two orders disagree", "failed")
    notes = ["; ".join((*v.notes, v.failure or "")) for v in verdicts]
    return {kind: n for kind in kinds if (n := sum(kind in note for note in notes))}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("aspect")
    parser.add_argument("model")
    parser.add_argument("--as", dest="library_aspect", required=True)
    parser.add_argument("--documents", type=int, default=30)
    parser.add_argument("--arms", default="direct,g-eval,pairwise-3,pairwise-5,yes-no-3,pairs")
    parser.add_argument("--graded", action="store_true", help="also: are the references of pairwise-3 and -5 graded?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writer", default="", help="a model that writes the references in the judge's place")
    parser.add_argument("--store", type=Path, help="keep the references here (default: beside -o)")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    labels = read_labels(Path(os.environ["JUDGESMITH_DATA"]) / f"{options.set}.jsonl", aspect=options.aspect)
    labels = draw(labels, options.documents, options.seed)
    store = ReferenceStore(options.store or options.output.with_suffix(".references.sqlite"))
    made = arms(options.library_aspect, length_guide(row.output for row in labels.rows), store, options.writer)
    named = {name: getattr(options, name) for name in ("set", "aspect", "model", "seed", "writer")}
    done = set()
    if options.output.exists():
        entries = [json.loads(line) for line in options.output.read_text(encoding="utf-8").splitlines()]
        done = {(*(entry.get(key, "") for key in named), entry["arm"]) for entry in entries}

    def keep(arm: str, entry: Mapping[str, Any]) -> None:
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(named | {"arm": arm, **entry}) + "\n")
        print(json.dumps({"arm": arm, **entry}), flush=True)

    with quiet():
        lm = open_model(options.model)
        for arm in options.arms.split(","):
            if (*named.values(), arm) not in done:
                print(f"{arm}: {len(labels)} rows", file=sys.stderr, flush=True)
                keep(arm, measure(made[arm](), labels, lm, options.seed))
            of_references = f"graded {arm}"
            if options.graded and arm in ("pairwise-3", "pairwise-5") and (*named.values(), of_references) not in done:
                judge = made[arm]()
                assert isinstance(judge, PairwiseDirectScorer)
                keep(of_references, graded(judge, labels, lm))


if __name__ == "__main__":
    main()
