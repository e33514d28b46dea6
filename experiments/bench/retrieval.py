"""Answers from retrieved passages: the share of RAGChecker's pairs that are ordered as people order them.

    python experiments/bench/retrieval.py TABLE.npz RAGCHECKER.jsonl SCORED.jsonl

TABLE: readings of a 0.5B of all rows, as `judgesmith study experience` keeps them. SCORED: rows that a judge without
labels scored. Pairs that people call equal are left out; equal scores count half.
"""

import json
import sys
from pathlib import Path

import numpy as np

from judgesmith.experiments.studies.experience import load, weigh
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.readings.experience import _shipped

DRAWS = 20


def share(given, people, documents):
    """The share, and of how many pairs."""
    right = []
    for document in dict.fromkeys(documents):
        places = [k for k, one in enumerate(documents) if one == document]
        if len(places) == 2 and people[places[0]] != people[places[1]]:
            product = (given[places[0]] - given[places[1]]) * (people[places[0]] - people[places[1]])
            right.append(1.0 if product > 0 else 0.5 if product == 0 else 0.0)
    return float(np.mean(right)), len(right)


def main(table_file, rows_file, scored_file):
    known = next(one for one in _shipped() if any(len(of.means) == 896 for of in one.states.values()))
    table, people = load(Path(table_file))
    documents = np.array([str(group) for group in table.groups])
    rows = []

    def add(name, given, spread=None):
        value, pairs = share(given, people, documents)
        rows.append([name, pairs, value, spread])

    texts = [json.loads(line) for line in Path(rows_file).open()]
    scored = [json.loads(line) for line in Path(scored_file).open()]
    add("RAGChecker: claims checked by Llama-3-70B", [row["judges"]["llama-3-70b-claims.overall"] for row in texts])
    add("words shared with the reference answer", table.columns(["surface.reference"])[:, 0])
    add("number of words", table.columns(["surface.words"])[:, 0])
    add("0.5B, its own digit", table.columns(["direct"])[:, 0])
    add("0.5B, likelihood", table.columns(["assistant.mean"])[:, 0])
    add("0.5B, readings and experience, no label", known.head(set(table.names) - {"direct"}, table.states)(table))
    add("135M, readings and experience, no label", [row["verdict"]["score"] for row in scored])
    names = list(dict.fromkeys(documents))
    for size in (8, 20, 40, 80):
        shares = []
        for draw in range(DRAWS):
            chosen = set(np.random.default_rng([draw, size]).permutation(names)[: size // 2])
            inside = np.array([one in chosen for one in documents])
            fit = weigh(table.rows(np.flatnonzero(inside)), people[inside], known)
            given = fit.head(table.rows(np.flatnonzero(~inside)))
            shares.append(share(given, people[~inside], documents[~inside])[0])
        rows.append([f"0.5B, readings, {size} labels", None, float(np.mean(shares)), float(np.std(shares))])
    return rows


if __name__ == "__main__":
    save(
        Path("experiments/results/data"), "retrieval",
        {"what orders them": "{}", "pairs": "{}", "share ordered as by people": "{:.3f}", "SD over draws": "{:.3f}"},
        main(*sys.argv[1:]),
        commands=["python experiments/bench/retrieval.py ragchecker.overall.npz ragchecker.jsonl scored.jsonl"],
        model="qwen2.5-coder-0.5b (Q4_K_M, read in bfloat16) and SmolLM2-135M (Q4_1)",
        notes="overall; experience that comes with judgesmith, learnt from other sets; labels of whole questions, 20 draws",
    )  # fmt: skip
