"""How fast a judge that reads is, against one that writes its answer, on the same embedded model:

    python experiments/bench/readings.py [--json] [--lm local/qwen2.5-0.5b] [--rows 20] [--repetitions 3]

One run, interleaved, without caches, the median of the repetitions: likelihood alone (one pass over the row); all
readings (one pass, with hidden states); one digit under its probabilities; Active-Critic's score with its explanation.
Then the memory of the process after as many rows again and again, which must not grow.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.scoring import CRITERIA, TASK, peak_mb, rows
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, Sampling, language_model
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.readings.head import LinearHead
from judgesmith.programs.readings.judge import ReadingsJudge
from judgesmith.signatures.values import Item


def reading_judge(lm: Any, *, whole: bool) -> ReadingsJudge:
    """A judge that weighs the mean log-probability alone, or every number and every state that it reads by default."""
    options: dict[str, Any] = {} if whole else {"read_forms": ("assistant",), "layers": 0, "surface": False}
    judge = ReadingsJudge("fluency", instruction="Summarize the report.", lm=lm, **options)
    row = judge.read(Item.of(next(rows(1))), lm)
    names = row.numbers if whole else ("assistant.mean",)
    states = {block: (0.0, np.full(len(values), 1e-3)) for block, values in row.states.items()}
    judge.take(LinearHead(50.0, dict.fromkeys(names, (0.0, 1.0)), states), judge.opened(lm).model)
    return judge


def ways(lm: Any) -> dict[str, Judge]:
    """What is compared, by name."""
    return {
        "likelihood": reading_judge(lm, whole=False),
        "readings": reading_judge(lm, whole=True),
        "digit": DirectScorer("fluency", lm=lm),
        "generated": ActiveCritic("coarse", explain="before", task=TASK, criteria=CRITERIA, lm=lm),
    }


def seconds_for(judge: Judge, count: int) -> float:
    start = time.perf_counter()
    failed = [v.failure for v in judge.score_many(rows(count), concurrency=1, progress=False) if math.isnan(v.score)]
    if len(failed) > count / 4:
        raise RuntimeError(f"{len(failed)} of {count} rows have no score: {failed[0]}")
    return time.perf_counter() - start


def resident_mb() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return peak_mb()
    line = next(x for x in status.read_text(encoding="ascii", errors="replace").splitlines() if x.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--lm", default="local/qwen2.5-0.5b")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()

    def say(line: str) -> None:
        print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

    lm = language_model(options.lm, sampling=Sampling(max_tokens=160), connection=Connection(cache=False))
    judges = ways(lm)
    taken: dict[str, list[float]] = {name: [] for name in judges}
    for judge in judges.values():
        seconds_for(judge, 1)
    for repetition in range(options.repetitions):
        for name, judge in judges.items():
            taken[name].append(seconds_for(judge, options.rows))
            say(f"  {repetition + 1}/{options.repetitions} {name}: {options.rows / taken[name][-1]:.2f} rows/s")
    speed = {name: options.rows / statistics.median(times) for name, times in taken.items()}
    memory = []
    for _ in range(3):
        seconds_for(judges["readings"], options.rows)
        memory.append(round(resident_mb(), 1))
    found = {
        "lm": options.lm,
        "rows": options.rows,
        "rows_per_s": {name: round(value, 3) for name, value in speed.items()},
        "likelihood_vs_generated": round(speed["likelihood"] / speed["generated"], 2),
        "readings_vs_generated": round(speed["readings"] / speed["generated"], 2),
        "likelihood_vs_digit": round(speed["likelihood"] / speed["digit"], 2),
        "resident_mb": memory,
    }
    for name, value in found.items():
        say(f"{name}: {value}")
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
