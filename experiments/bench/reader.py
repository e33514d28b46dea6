"""Measure the cost of reading with an embedded model: OpenVINO's reader beside llama.cpp's.

    python experiments/bench/reader.py [--json] [--tokens 150,500,2000] [--repetitions 3] [--model qwen2.5-0.5b]

Each reader is opened in a process of its own, and they take turns. A passage is made-up text of that many tokens, 60 of
them the target, with the states of three layers; none shares more than the instruction with another. Fields, for each
reader: seconds until it is open, the process's peak of memory in MB, and tokens a second by wall time (the best
repetition) and for two seconds of processor time, which other work on the machine disturbs less. `fast_vs_slow`: the
ratio of tokens a second by wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

from judgesmith.experiments.bench.long_texts import text
from judgesmith.programs.models.files import model_path
from judgesmith.programs.models.threads import thread_count
from judgesmith.programs.readings.bindings.embedded_reader import EmbeddedReader
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.passages import Passage, Piece, Text, passage

READERS: dict[str, Any] = {"openvino": OpenVinoReader, "llama.cpp": EmbeddedReader}
TARGET = 60


def passages(reader: Any, tokens: int, count: int) -> list[Passage]:
    """Passages of about that many tokens each."""
    result = list[Passage]()
    for number in range(count):
        words = text(tokens, 7 * tokens + number).split()
        target, start = " ".join(words[: TARGET // 3]), words[TARGET // 3 :]
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
        wall, used = list[float](), list[float]()
        for one in passages(reader, size, repetitions):
            count = reader.size(one.pieces)
            begun, before = time.perf_counter(), time.process_time()
            reader.read(one, layers=(10, 12, 14))
            wall.append(count / (time.perf_counter() - begun))
            used.append(2 * count / (time.process_time() - before))
        result[f"tokens_per_s_{size}"] = round(max(wall))
        result[f"tokens_per_two_cpu_s_{size}"] = round(max(used))
    result["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    reader.close()
    return result


def main() -> None:
    """Print the figures of both readers, or of one in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--tokens", default="150,500,2000")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--model", default="qwen2.5-0.5b")
    parser.add_argument("--way", choices=READERS, help="one reader, in this process")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.tokens.split(",")]
    if arguments.way:
        print(
            json.dumps(
                measured(arguments.way, arguments.model, sizes, arguments.repetitions)
            )
        )
        return
    result: dict[str, Any] = {
        "load_average": round(os.getloadavg()[0], 1),
        "threads": thread_count(),
    }
    for way in READERS:
        command = [
            sys.executable,
            __file__,
            "--way",
            way,
            "--tokens",
            arguments.tokens,
            "--model",
            arguments.model,
        ]
        run = subprocess.run(
            [*command, "--repetitions", str(arguments.repetitions)],
            capture_output=True,
            check=True,
        )
        result[way] = json.loads(run.stdout.splitlines()[-1])
        print(way, result[way], file=sys.stderr)
    for size in sizes:
        fast, slow = (result[way][f"tokens_per_s_{size}"] for way in READERS)
        result[f"fast_vs_slow_{size}"] = round(fast / max(1, slow), 2)
    print(json.dumps(result) if arguments.json else json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
