"""How long it takes to find the duplicates of many rows: `python experiments/bench/duplicates.py [--save] [ROWS ...]`.

Three kinds of rows, a tenth of each near-duplicates of another: sentences of random words (40 words, sources of 60),
sentences made from one template, where everything is like everything, and long texts (400 words). One thread.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections import Counter

from judgesmith.datasets.duplicates import merge
from judgesmith.datasets.records import Row
from judgesmith.experiments.bench.figures import add_save, save

WORDS = 20_000


def text(rng: random.Random, length: int) -> str:
    return " ".join(f"w{int(WORDS * rng.random() ** 3)}" for _ in range(length))


def changed(rng: random.Random, text: str) -> str:
    parts = text.split()
    parts[rng.randrange(len(parts))] = "changed"
    return " ".join(parts)


def rows_of(kind: str, count: int) -> list[Row]:
    rng = random.Random(0)
    lengths = {"short": (60, 40), "template": (60, 12), "long": (400, 400)}[kind]
    template = text(rng, lengths[1] - 2)
    rows: list[Row] = []
    for n in range(count):
        if rows and rng.random() < 0.1:
            other = rng.choice(rows)
            source, output = changed(rng, other.source), changed(rng, other.output)
        else:
            source = text(rng, lengths[0])
            output = f"{template} {text(rng, 2)}" if kind == "template" else text(rng, lengths[1])
        rows.append(Row(str(n), output, source, doc_id=f"d{n}", group=f"d{n}", line=n + 1))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000], metavar="ROWS")
    add_save(parser)
    given = parser.parse_args()
    told: list[list[str | float]] = []
    print(f"{'rows':>8} {'kind':10} {'seconds':>8} {'groups':>8} {'largest':>8} {'peak MB':>8}")
    for size in given.sizes:
        for kind in ("short", "template", "long"):
            rows = rows_of(kind, size)
            start = time.process_time()
            groups = merge(rows).groups
            seconds = time.process_time() - start
            largest = Counter(groups).most_common(1)[0][1]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{size:8} {kind:10} {seconds:8.1f} {len(set(groups)):8} {largest:8} {peak:8.0f}", flush=True)
            told.append([size, kind, seconds, len(set(groups)), largest, round(peak)])
    columns = {"rows": "{:,}", "texts": "", "seconds": "{:.1f}", "groups": "{:,}", "largest": "{}", "peak MB": "{}"}
    save(given.save, "duplicates-speed", columns, told, seed=0)


if __name__ == "__main__":
    main()
