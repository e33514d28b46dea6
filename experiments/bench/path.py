"""The files whose code runs from `score_many` to a verdict, and from `js.compile` to the saved judge.

    python experiments/bench/path.py [--json]

A loopback server answers at once, and nothing comes from a cache. A file is listed where it first runs, with its calls.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import judgesmith as js
from judgesmith.experiments.bench.loopback import loopback
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, language_model

PACKAGE = Path(js.__file__).parent
ROWS = [
    {
        "source": f"Where is stop {n}?",
        "output": f"Behind the market, {n} steps from the gate. " * (1 + n % 5),
        "score": n % 5 + 1,
    }
    for n in range(40)
]


@contextmanager
def traced() -> Iterator[Counter[str]]:
    """Count calls of the package's functions by file, on this thread, new ones and the engine's."""
    calls = Counter[str]()
    root = str(PACKAGE)

    def look(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(root):
            calls[file] += 1

    loop = engine.event_loop()
    threading.setprofile(look)
    loop.call_soon_threadsafe(sys.setprofile, look)
    time.sleep(0.2)
    sys.setprofile(look)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        loop.call_soon_threadsafe(sys.setprofile, None)


def scoring(base: str) -> Counter[str]:
    """Trace one row; one before it opens connections and settles what the model can do."""
    lm = language_model("openai/fake", connection=Connection(base, cache=False))
    judge = js.Judge(js.DirectScorer("fluency"), lm=lm)
    list(judge.score_many(ROWS[:1], progress=False))
    with traced() as calls:
        list(judge.score_many(ROWS[1:2], progress=False))
    return calls


def compiling(base: str) -> Counter[str]:
    """Trace a search over forty labels; one before it imports what a search needs."""
    lm = language_model("openai/fake", connection=Connection(base, cache=False))
    labels = js.read_labels(ROWS, scale=(1, 5))

    def compiled() -> None:
        search = js.CorrelationRandomSearch(candidates=1)
        judge = js.compile(
            js.DirectScorer("fluency"), labels, lm=lm, optimizer=search, progress=False
        )
        with tempfile.TemporaryDirectory() as folder:
            judge.save(Path(folder) / "judge.json")

    compiled()
    with traced() as calls:
        compiled()
    return calls


PATHS: dict[str, Callable[[str], Counter[str]]] = {
    "score_many to a verdict": scoring,
    "js.compile to the saved judge": compiling,
}


def main() -> None:
    """Print the files of both paths, with the calls of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    with loopback(latency_ms=0) as base:
        for name, trace in PATHS.items():
            calls = trace(base)
            if as_json:
                print(json.dumps({"path": name, "files": calls}))
                continue
            print(f"{name}: {len(calls)} files, {calls.total()} calls")
            for file, count in calls.items():
                print(f"  {count:6} {Path(file).relative_to(PACKAGE)}")


if __name__ == "__main__":
    main()
