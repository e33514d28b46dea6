"""Measure the cost of reading with an embedded model: OpenVINO's reader beside llama.cpp's.

    python experiments/bench/reader.py [--json] [--tokens 150,500,2000] [--turns 2] [--repetitions 3] [--save]

Each reader is opened in a process of its own; they take turns, as often as `--turns` says. A passage is made-up text
of that many tokens, 60 of them the target, with the states of three layers; none shares more than the instruction with
another. Fields, for each reader: seconds until it is open, the process's peak of memory in MB, and tokens a second by
wall time and for two seconds of processor time, which other work on the machine disturbs less; the best of all.
`fast_vs_slow`: the ratio of tokens for the same processor time. `--save` writes them among the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from judgesmith.experiments.bench.long_texts import text
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.models.files import model_path
from judgesmith.programs.models.threads import thread_count
from judgesmith.programs.readings.bindings.embedded_reader import EmbeddedReader
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.passages import Passage, Piece, Text, passage

READERS: dict[str, Any] = {"openvino": OpenVinoReader, "llama.cpp": EmbeddedReader}
TARGET = 60
DATA = Path(__file__).resolve().parents[1] / "results/data"


def passages(reader: Any, tokens: int, count: int) -> list[Passage]:
    """Passages of about that many tokens each."""
    result = list[Passage]()
    for number in range(count):
        words = text(tokens, 7 * tokens + number).split()
        target = " ".join(words[: TARGET // 3])
        start = words[TARGET // 3 :]
        whole = passage(Text("", target), reader.chat)
        while start and reader.size(whole.pieces) < tokens:
            share = max(1, (tokens - reader.size(whole.pieces)) // 4)
            source = " ".join(words[TARGET // 3 : len(words) - len(start) + share])
            start = start[share:]
            whole = passage(Text(source, target), reader.chat)
        result.append(whole)
    return result


def measured(
    way: str, model: str, sizes: list[int], repetitions: int
) -> dict[str, Any]:
    """Return one reader's seconds to open, and its tokens a second by length of passage."""
    started = time.perf_counter()
    reader = READERS[way](model_path(model), threads=thread_count())
    reader.read(Passage((Piece("Two and two are"), Piece(" four.")), 1))
    result: dict[str, Any] = {"open_seconds": round(time.perf_counter() - started, 2)}
    for size in sizes:
        wall = list[float]()
        used = list[float]()
        for one in passages(reader, size, repetitions):
            count = reader.size(one.pieces)
            begun = time.perf_counter()
            before = time.process_time()
            reader.read(one, layers=(10, 12, 14))
            wall.append(count / (time.perf_counter() - begun))
            used.append(2 * count / (time.process_time() - before))
        result[f"tokens_per_s_{size}"] = round(max(wall))
        result[f"tokens_per_two_cpu_s_{size}"] = round(max(used))
    result["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    reader.close()
    return result


def turn(way: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one reader, in a process of its own."""
    options = ("tokens", "model", "repetitions")
    command = [sys.executable, __file__, "--way", way]
    for option in options:
        command += [f"--{option}", str(getattr(arguments, option))]
    run = subprocess.run(command, capture_output=True, check=True)
    figures: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    print(way, figures, file=sys.stderr)
    return figures


def best(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return each figure's best of several turns: the least seconds, the most tokens and memory."""
    result = dict(turns[0])
    for one, name in itertools.product(turns, result):
        result[name] = max(result[name], one[name])
    result["open_seconds"] = min(one["open_seconds"] for one in turns)
    return result


def main() -> None:
    """Print the figures of both readers, or of one in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--tokens", default="150,500,2000")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--model", default="qwen2.5-0.5b")
    parser.add_argument("--way", choices=READERS, help="one reader, in this process")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.tokens.split(",")]
    if arguments.way:
        way = arguments.way
        repetitions = arguments.repetitions
        print(json.dumps(measured(way, arguments.model, sizes, repetitions)))
        return
    load = round(os.getloadavg()[0], 1)
    result: dict[str, Any] = {"load_average": load, "threads": thread_count()}
    turns = dict[str, list[dict[str, Any]]]()
    for _ in range(arguments.turns):
        for way in READERS:
            turns.setdefault(way, []).append(turn(way, arguments))
    result |= {way: best(of_way) for way, of_way in turns.items()}
    for size in sizes:
        fast, slow = (result[way][f"tokens_per_two_cpu_s_{size}"] for way in READERS)
        result[f"fast_vs_slow_{size}"] = round(fast / max(1, slow), 2)
    print(json.dumps(result) if arguments.json else json.dumps(result, indent=1))
    if arguments.save:
        save_table(result, sizes, arguments.model)


def save_table(result: dict[str, Any], sizes: list[int], model: str) -> None:
    """Save the figures of both readers: tokens by two cores' seconds, and in brackets by the clock's."""
    columns = {"reader": "", "opens in s": "{:.1f}", "MB at most": "{:.0f}"}
    rows = []
    columns |= {f"{size} tokens a row": "{:.0f} ({:.0f})" for size in sizes}
    for way in READERS:
        of = result[way]
        cells = list[Any]()
        for size in sizes:
            names = f"tokens_per_two_cpu_s_{size}", f"tokens_per_s_{size}"
            cells.append([of[name] for name in names])
        rows.append([way, of["open_seconds"], of["peak_mb"], *cells])
    save(
        DATA,
        "reading",
        columns,
        rows,
        commands=["python experiments/bench/reader.py --save"],
        model=model,
        note=f"load {result['load_average']} before, {result['threads']} threads",
    )


if __name__ == "__main__":
    main()
