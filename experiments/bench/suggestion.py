"""Are rows that `judgesmith suggest` chooses worth more than rows in random order?

    JUDGESMITH_DATA=… python experiments/bench/suggestion.py [--json] [--draws 40]

Kept tables, no model called: published metric columns are the readings, a ridge regression on them (the one that
`compile` weighs readings by) is fitted to the chosen labels, and Q is measured on the half of the documents that
nothing was chosen from. Labels are asked for ten at a time. "random": rows at random; "documents": at random, one a
document first; "suggest": as the command does; "spread": the same without documents and systems. "labels for": labels
by which the mean Q of a way reaches that of random order at 40 (interpolated).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from judgesmith.errors import OptionError
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.experiments.bench.tables import Table, read_table
from judgesmith.optimizers.fitting.heads import Ridge
from judgesmith.optimizers.fitting.validation import agreement
from judgesmith.optimizers.suggestion import suggest
from judgesmith.programs.readings.head import Readings

#: set, aspect, metrics
SETS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("summeval", "coherence", ("rouge1_f", "rougeL_f", "bart_score_src_hypo", "bart_score_cnn_src_hypo", "coco_sent")),
    ("summeval", "relevance", ("rouge1_f", "rougeL_f", "bart_score_src_hypo", "bart_score_cnn_src_hypo", "coco_sent")),
    ("hanna", "coherence", ("BLEU", "ROUGE-1 F-Score", "ROUGE-L F-Score", "ChatGPT.p1.coherence",
                            "ChatGPT.p1.empathy")),
    ("openmeva_roc", "overall", ("rouge1_f", "bertscore_f", "fwppl", "bartscore", "chatgpt")),
    ("wiki_da", "simplicity", ("bleu_asset", "sari_asset", "fkgl", "bertscore_P_asset", "bertscore_R_asset", "samsa")),
    ("newsroom", "relevance", ("rouge1_r", "rouge1_p", "rouge2_f", "rougeL_f")),
    ("topical_chat", "overall", ("unieval_naturalness", "unieval_coherence", "unieval_engagingness",
                                 "unieval_groundedness", "unieval_understandability")),
    ("sfres", "naturalness", ("unieval_naturalness", "unieval_informativeness", "rouge1_r", "rouge1_p", "rougeL_f")),
)  # fmt: skip
STEP, STEPS = 10, (10, 20, 40, 80)
Way = Callable[[Table, np.ndarray[Any, Any], np.ndarray[Any, Any], Any, int], list[int]]


def at_random(table: Table, pool: Any, labelled: Any, rng: Any, n: int) -> list[int]:
    return [int(i) for i in rng.permutation(np.flatnonzero(pool & ~labelled))[:n]]


def documents_first(table: Table, pool: Any, labelled: Any, rng: Any, n: int) -> list[int]:
    counts: dict[str, int] = {}
    for i in np.flatnonzero(labelled):
        counts[table.documents[i]] = counts.get(table.documents[i], 0) + 1
    chosen: list[int] = []
    rows = at_random(table, pool, labelled, rng, len(pool))
    for _ in range(n):
        row = min((i for i in rows if i not in chosen), key=lambda i: counts.get(table.documents[i], 0), default=None)
        if row is None:
            break
        counts[table.documents[row]] = counts.get(table.documents[row], 0) + 1
        chosen.append(row)
    return chosen


def suggested(table: Table, pool: Any, labelled: Any, rng: Any, n: int, *, plain: bool = False) -> list[int]:
    rows = rng.permutation(np.flatnonzero(pool))  # equal rows in random order
    readings = {str(k): table.scores[rows, k] for k in range(table.scores.shape[1])}
    human = np.where(labelled[rows], table.human[rows], np.nan)
    docs, systems = ([names[i] for i in rows] for names in (table.documents, table.systems))
    more = {} if plain else {"documents": docs, "systems": systems}
    return [int(rows[s.row]) for s in suggest(readings, n, human=human, **more)]


def spread(table: Table, pool: Any, labelled: Any, rng: Any, n: int) -> list[int]:
    return suggested(table, pool, labelled, rng, n, plain=True)


WAYS: dict[str, Way] = {
    "random": at_random, "documents": documents_first, "suggest": suggested, "spread": spread,
}  # fmt: skip


def curve(table: Table, way: Way, seed: int) -> list[float]:
    """Q on the other half of the documents, after 10, 20, 40 and 80 labels."""
    rng = np.random.default_rng(seed)
    docs = np.array(table.documents)
    names = rng.permutation(np.unique(docs))
    pool = np.isin(docs, names[: len(names) // 2])
    names_of = tuple(str(k) for k in range(table.scores.shape[1]))
    readings = Readings(names_of, table.scores, tuple(table.documents))
    labelled, found = np.zeros(len(docs), dtype=bool), []
    for step in range(max(STEPS) // STEP):
        labelled[way(table, pool, labelled, rng, STEP)] = True
        if (step + 1) * STEP in STEPS:
            rows = np.flatnonzero(labelled)
            try:
                head = Ridge("", names_of)(readings.rows(rows), table.human[rows]).head
                found.append(agreement(head(readings.rows(np.flatnonzero(~pool))), table.human[~pool]))
            except OptionError:  # labels of one document only: nothing can be fitted
                found.append(0.0)
    return found


def needed(values: list[float], target: float) -> float | None:
    """Labels by which the curve reaches the target, interpolated; None if it does not."""
    if values[0] >= target:
        return float(STEPS[0])
    for k in range(1, len(values)):
        if values[k] >= target:
            return STEPS[k - 1] + (STEPS[k] - STEPS[k - 1]) * (target - values[k - 1]) / (values[k] - values[k - 1])
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    given = parser.parse_args()
    cells = []
    for name, aspect, metrics in SETS:
        table = read_table(name, aspect, metrics)
        drawn = {way: np.array([curve(table, f, s) for s in range(given.draws)]) for way, f in WAYS.items()}
        target = float(drawn["random"].mean(axis=0)[STEPS.index(40)])
        for way, values in drawn.items():
            lead = values - drawn["random"]
            cell = {
                "set": name, "aspect": aspect, "way": way, "q": values.mean(axis=0).round(3).tolist(),
                "lead": lead.mean(axis=0).round(3).tolist(),
                "error": (lead.std(axis=0, ddof=1) / np.sqrt(given.draws)).round(3).tolist(),
                "labels for": needed(values.mean(axis=0).tolist(), target),
            }  # fmt: skip
            cells.append(cell)
            if not given.json:
                print(cell, flush=True)
    if given.json:
        print(json.dumps({"draws": given.draws, "labels": STEPS, "cells": cells}))
    of = {(c["set"], c["aspect"], c["way"]): c for c in cells}
    columns = {"task": "", "order": "", "Q after 10, 20, 40, 80": "{:.2f}, {:.2f}, {:.2f}, {:.2f}"}
    columns |= {f"lead at {n}": "{:+.2f} ({:.2f})" for n in STEPS} | {
        "labels for what random order has at 40": "{:.0f}"
    }
    told: list[list[Any]] = []
    for (name, aspect, way), c in of.items():
        leads = [None] * len(STEPS) if way == "random" else zip(c["lead"], c["error"], strict=True)
        told.append([f"{name} {aspect}", way, c["q"], *(lead and list(lead) for lead in leads), c["labels for"]])
    save(given.save, "suggestion", columns, told, notes=f"{given.draws} draws, standard error in brackets")


if __name__ == "__main__":
    main()
