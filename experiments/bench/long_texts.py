"""Measure the cost of long texts: seconds and memory by the number of words.

    python experiments/bench/long_texts.py [--json] [--words 500,2000,10000,30000,100000]

Two ways without a model in this process (`long_rows.py` has those with one), each over rows of growing length, the
median of the repetitions, every text another one:

* `surface`: the counts without a model, source and output of that many words.
* `api`: `DirectScorer` through an OpenAI-style server in another process, an output of that many words; no latency.

Time is to be linear: the processor's time for a thousand words, of the longest row, as a multiple of the second
shortest's (`…_linear`, about 1 or less). Wall time depends on what else runs. Memory is the process's peak after each
length, in MB; it is to be level.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "LITELLM_LOCAL_MODEL_COST_MAP", "True"
)  # else DSPy's first pricing tries the network

import argparse
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from judgesmith.experiments.bench.loopback import loopback
from judgesmith.experiments.bench.scoring import WORDS
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.readings.kinds import surface

#: Judges a row of that many words; the number makes its texts unlike every other row's.
Way = Callable[[int, int], None]


def text(words: int, seed: int) -> str:
    """Sentences of twelve words, a seventh of which are rare."""
    draw = random.Random(seed)
    rare = (f"{draw.choice(WORDS)}{draw.randrange(5000)}" for _ in iter(int, 1))
    chosen = [
        next(rare) if place % 7 == 3 else draw.choice(WORDS) for place in range(words)
    ]
    return " ".join(
        word + "." * (place % 12 == 11) for place, word in enumerate(chosen)
    )


def count(words: int, seed: int) -> None:
    """Count a pair of texts of that many words without a model."""
    surface(text(words, seed), text(words, seed + 1))


@contextmanager
def asked() -> Iterator[Way]:
    """Yield a way to score an output through a server on loopback."""
    with loopback(latency_ms=0) as base:
        lm = language_model(
            "openai/bench",
            connection=Connection(api_base=base, api_key="none", cache=False),
        )
        judge = Judge(DirectScorer("fluency"), lm=lm)

        def ask(words: int, seed: int) -> None:
            verdict = judge.score("A source.", text(words, seed))
            if verdict.failure is not None:
                raise RuntimeError(verdict.failure)

        ask(20, 0)  # imports, the probe
        yield ask


def measured(
    way: Way, sizes: list[int], repetitions: int, say: Callable[[str], None]
) -> list[dict[str, float]]:
    """Return time and memory for each size, as medians of the repetitions."""
    lines = list[dict[str, float]]()
    for words in sizes:
        wall = list[float]()
        used = list[float]()
        for repetition in range(repetitions):
            started = time.perf_counter()
            before = time.process_time()
            way(words, 1000 * words + 2 * repetition)
            wall.append(time.perf_counter() - started)
            used.append(time.process_time() - before)
        seconds = statistics.median(wall)
        cpu = statistics.median(used)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        per = 1e6 * cpu / words
        line = {
            "seconds": round(seconds, 4),
            "cpu_seconds": round(cpu, 4),
            "peak_mb": round(peak),
        }
        lines.append({"words": words, **line, "cpu_ms_per_1000_words": round(per, 2)})
        say(
            f"  {words:7,} words {seconds:9.3f} s, {per:9.2f} ms of processor a thousand words, {peak:5.0f} MB at most"
        )
    return lines


def main() -> None:
    """Print the table of each way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--words", default="500,2000,10000,30000,100000")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--ways", default="surface,api")
    options = parser.parse_args()
    sizes = [int(words) for words in options.words.split(",")]

    def say(line: str) -> None:
        print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

    result: dict[str, Any] = {"load_average": round(os.getloadavg()[0], 1)}

    def line(name: str, way: Way) -> None:
        if name not in options.ways.split(","):
            return
        say(name)
        result[name] = measured(way, sizes, options.repetitions, say)
        several = result[name][min(1, len(sizes) - 1) :]
        result[f"{name}_linear"] = round(
            several[-1]["cpu_ms_per_1000_words"] / several[0]["cpu_ms_per_1000_words"],
            2,
        )

    line("surface", count)
    with asked() as ask:
        line("api", ask)
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
