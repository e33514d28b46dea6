"""How often honest texts are flagged as addressing a judge, and how many attacks are found.

    JUDGESMITH_DATA=… python experiments/bench/suspicion.py [--json] [--texts 100] [--seed 0]

False alarms: all outputs, and all sources, of every set that is there. Hits: every attack of `discern` on a number of
texts of each set; the control is harmless and should not be flagged. No model is called. The attacks' words are ours,
as the rules are: the hit rate says little of other people's words.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from judgesmith.datasets.benchmarks.catalog import list_benchmarks, load_benchmark
from judgesmith.datasets.perturbations.registry import PERTURBATIONS, Pair, pairs_of
from judgesmith.discerning.pairs import read_texts
from judgesmith.errors import JudgesmithError
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.programs.prompting.suspicion import suspicion


def false_alarms(texts: Iterable[str]) -> dict[str, Any]:
    """Different texts, how many are flagged, and the first three reasons."""
    different = {text for text in texts if text and text.strip()}
    found = sorted(reason for text in different if (reason := suspicion(text)))
    return {"texts": len(different), "flagged": len(found), "for example": found[:3]}


def hits(name: str, texts: int, seed: int) -> dict[str, tuple[int, int]]:
    """(flagged, made) by attack."""
    chosen = read_texts(f"bench/{name}", n=texts, seed=seed).texts
    counts = {}
    for attack in [p for p in PERTURBATIONS.values() if p.kind == "attack"]:
        made = [pair for pair in pairs_of(attack, chosen, seed=seed) if isinstance(pair, Pair)]
        counts[attack.name] = (sum(suspicion(pair.perturbed) is not None for pair in made), len(made))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    for card in (one for one in list_benchmarks() if one.aspects):
        try:
            rows = load_benchmark(card.name, aspect=next(iter(card.aspects))).rows
        except JudgesmithError:
            continue  # not there
        found = {
            "outputs": false_alarms(row.output for row in rows),
            "sources": false_alarms(row.source for row in rows),
        }
        results[card.name] = {**found, "attacks": hits(card.name, args.texts, args.seed)}
    told: list[list[Any]] = [
        [part, [sum(found[part][what] for found in results.values()) for what in ("flagged", "texts")]]
        for part in ("outputs", "sources")
    ]
    for attack in next(iter(results.values()), {}).get("attacks", ()):
        told.append([attack, [sum(found["attacks"][attack][i] for found in results.values()) for i in (0, 1)]])
    columns = {"texts": "", "flagged": "{:,} of {:,}"}
    save(args.save, "suspicion", columns, told, seed=args.seed, notes=f"{len(results)} sets")
    if args.json:
        print(json.dumps(results, indent=1, ensure_ascii=False))
        return
    for name, found in results.items():
        for part in ("outputs", "sources"):
            said = found[part]
            print(f"{name:24} {part}: {said['flagged']} of {said['texts']} flagged {said['for example'] or ''}")
    for attack in next(iter(results.values()), {}).get("attacks", ()):
        flagged, made = (sum(found["attacks"][attack][i] for found in results.values()) for i in (0, 1))
        print(f"{attack:24} {flagged} of {made}")


if __name__ == "__main__":
    main()
