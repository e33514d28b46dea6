"""Measure the speed of judging.

    python experiments/bench/scoring.py [--json] [--rows 1000] [--latency-ms 50] [--in-flight 64] [--save]

Compared in one run, interleaved, the median of the repetitions, no caches, against an OpenAI-style server in another
process: raw aiohttp with bodies made beforehand; `Judge.score_many`; `dspy.Parallel` over a `dspy.Predict` of the same
signature and demonstrations, once with DSPy's own prompt and once with the very messages that the judge sends.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "LITELLM_LOCAL_MODEL_COST_MAP", "True"
)  # else DSPy's first pricing tries the network

import argparse
import asyncio
import gc
import json
import logging
import shlex
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import dspy
import orjson

from judgesmith.experiments.bench.loopback import loopback
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.providers.openai import OpenAIStyle
from judgesmith.programs.models.transport import Request
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.signatures.judging import ScoreOverall
from judgesmith.signatures.values import Criterion, Item

DATA = Path(__file__).resolve().parents[1] / "results" / "data"
TASK = (
    "Summaries of short news items. A summary keeps the facts of its source, leaves nothing out that matters, and "
    "reads well."
)
CRITERIA = (
    Criterion("faithfulness", "every statement of the summary is in the source"),
    Criterion("coverage", "the main facts of the source are in the summary"),
    Criterion("fluency", "the summary is well-formed and easy to read"),
)
PROSE = (
    "the council voted on a plan to mend the old bridge after heavy rain had closed the road for weeks while farmers "
    "asked for help and engineers measured the river each morning before the market opened again in the valley"
)
WORDS = PROSE.split()


def load() -> str:
    """Return how busy the machine is, in words."""
    return f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"


def text(seed: int, words: int) -> str:
    """Return some words that no other seed gives."""
    chosen = (
        WORDS[(seed * 7 + place * (3 + seed % 5)) % len(WORDS)]
        for place in range(words)
    )
    return f"Report {seed}: " + " ".join(chosen) + "."


def rows(count: int) -> Iterator[dict[str, str]]:
    """Source (60 words) and output (25 words), one after another, never held together."""
    for number in range(count):
        yield {"source": text(number, 60), "output": text(number + 1_000_003, 25)}


def demonstrations() -> list[dict[str, Any]]:
    """Return four demonstrations with made-up texts."""
    scores = (10.0, 40.0, 70.0, 95.0)
    return [
        {
            "source": text(2_000_000 + place, 60),
            "output": text(3_000_000 + place, 25),
            "context": None,
            "reference": None,
            "group": f"demo {place}",
            "score": score,
            "explanation": "It keeps the main facts but leaves out what happened to the road.",
        }
        for place, score in enumerate(scores)
    ]


def make_judge(lm: Any, *, explain: Any = "before") -> Judge:
    """Active-Critic's coarse variant with four demonstrations, read as an expectation over digits."""
    method = ActiveCritic(
        "coarse", explain=explain, reading="expected", task=TASK, criteria=CRITERIA
    )
    method.overall_scorer.predict.demos = demonstrations()
    return Judge(method, lm=lm)


def judge_at(base: str, in_flight: int) -> Judge:
    """Return the judge with a server at this address."""
    connection = Connection(
        api_base=base, api_key="none", cache=False, concurrency=in_flight
    )
    return make_judge(language_model("openai/loopback", connection=connection))


# -- what is compared


def raw_bodies(judge: Judge, base: str, count: int) -> list[bytes]:
    """Return the requests that the judge sends for these rows."""
    style = OpenAIStyle(base, "loopback", key="none", timeout=60, label="raw")
    bodies = []
    for row in rows(count):
        (messages,) = judge.previews(Item.of(row)).values()
        bodies.append(orjson.dumps(style.body(Request(messages, 160, top_logprobs=20))))
    return bodies


def run_raw(base: str, bodies: list[bytes], in_flight: int) -> int:
    """Raw aiohttp: post what was prepared, read the answer's bytes. Returns the answers."""

    async def everything() -> int:
        todo = deque(bodies)
        answers = 0

        async def one(session: aiohttp.ClientSession) -> None:
            nonlocal answers
            while todo:
                async with session.post(
                    base + "/chat/completions",
                    data=todo.popleft(),
                    headers={"Content-Type": "application/json"},
                ) as response:
                    await response.read()
                    answers += response.status == 200

        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0)
        ) as session:
            await asyncio.gather(*(one(session) for _ in range(in_flight)))
        return answers

    return asyncio.run(everything())


def run_ours(judge: Judge, count: int, in_flight: int) -> int:
    """Score the rows with the judge, messages and answers included; return the number of scores."""
    return sum(
        v.score == v.score
        for v in judge.score_many(rows(count), concurrency=in_flight, progress=False)
    )


def run_dspy(program: dspy.Module, examples: list[dspy.Example], in_flight: int) -> int:
    """Score the examples with `dspy.Parallel`; return the number of scores."""
    # timeout=0 turns the resubmission of late items off: it would send some twice.
    parallel = dspy.Parallel(
        num_threads=in_flight, disable_progress_bar=True, timeout=0
    )
    predictions = parallel([(program, example) for example in examples])
    return sum(getattr(p, "score", None) is not None for p in predictions)


class PlainJudge(dspy.Module):  # type: ignore[misc]
    """A judge in plain DSPy: a `dspy.Predict` (the signature has its explanation before the score)."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(ScoreOverall)
        shared = {
            "task": TASK,
            "criteria": "\n".join(f"- {c.name}: {c.definition}" for c in CRITERIA),
        }
        fields = {"source", "output", "explanation", "score"}
        self.predict.demos = [
            dspy.Example(**shared, **{k: v for k, v in demo.items() if k in fields})
            for demo in demonstrations()
        ]
        self.shared = shared

    def forward(self, source: str, output: str) -> dspy.Prediction:
        """Score an output with DSPy's own prompt."""
        absent = {"context": "", "reference": "", "criteria_scores": ""}
        return self.predict(**self.shared, **absent, source=source, output=output)


class SameMessages(dspy.Module):  # type: ignore[misc]
    """DSPy's call path with the judge's own prompt: its layout stands in as DSPy's adapter."""

    def __init__(self, predict: JudgePredict) -> None:
        super().__init__()
        self.predict = dspy.Predict(predict.signature)
        self.predict.demos = predict.demos

    def forward(self, source: str, output: str) -> dspy.Prediction:
        """Score an output with the judge's messages."""
        return self.predict(
            task=TASK,
            criteria=CRITERIA,
            source=source,
            context="",
            reference="",
            output=output,
            criteria_scores="",
        )


# -- speed


@dataclass(frozen=True, slots=True)
class Speed:
    """Medians over the repetitions: rows a second by the clock, and this process's CPU time in ms per row."""

    rows_per_second: float
    cpu_ms_per_row: float


def measure(
    base: str, count: int, in_flight: int, repetitions: int, say: Callable[[str], None]
) -> dict[str, Speed]:
    """Return the speed of each way, as the median of interleaved repetitions."""
    logging.getLogger("dspy").setLevel(logging.ERROR)
    judge = judge_at(base, in_flight)
    bodies = raw_bodies(judge, base, count)
    lm = dspy.LM(
        "openai/loopback",
        api_base=base,
        api_key="none",
        cache=False,
        temperature=0.0,
        max_tokens=160,
        num_retries=0,
        logprobs=True,
        top_logprobs=20,
    )
    examples = [
        dspy.Example(**row).with_inputs("source", "output") for row in rows(count)
    ]
    method: Any = judge.method
    plain = PlainJudge()
    same = SameMessages(method.overall_scorer.predict)
    layout = method.overall_scorer.predict.layout

    def plain_dspy(n: int) -> int:
        with dspy.context(
            lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)
        ):
            return run_dspy(plain, examples[:n], in_flight)

    def same_dspy(n: int) -> int:
        with dspy.context(lm=lm, adapter=layout):
            return run_dspy(same, examples[:n], in_flight)

    ways: dict[str, Callable[[int], int]] = {
        "raw": lambda n: run_raw(base, bodies[:n], in_flight),
        "ours": lambda n: run_ours(judge, n, in_flight),
        "dspy_parallel": plain_dspy,
        "dspy_same_messages": same_dspy,
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for name, way in ways.items():  # imports, connections, the probe
        assert way(min(count, 2 * in_flight)) == min(count, 2 * in_flight), name
    for repetition in range(repetitions):
        for name, way in ways.items():
            gc.collect()  # nobody pays for another's garbage
            wall = time.perf_counter()
            cpu = time.process_time()
            scored = way(count)
            taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
            if scored != count:
                raise RuntimeError(f"{name}: {scored} of {count} rows were answered")
            say(
                f"  {repetition + 1}/{repetitions} {name}: {count / taken[name][-1][0]:.0f} rows/s"
            )
    return {
        name: Speed(
            count / statistics.median(wall for wall, _ in times),
            1000 * statistics.median(cpu for _, cpu in times) / count,
        )
        for name, times in taken.items()
    }


def main() -> None:
    """Print the speeds of all ways."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()

    def say(line: str) -> None:
        print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

    result: dict[str, Any] = {
        "rows": options.rows,
        "latency_ms": options.latency_ms,
        "in_flight": options.in_flight,
    }
    say(
        f"Speed: {options.rows} rows, {options.latency_ms:g} ms latency, {options.in_flight} in flight"
    )
    result["busy"] = busy = load()
    say(f"  {busy}")
    with loopback(latency_ms=options.latency_ms) as base:
        speeds = measure(
            base, options.rows, options.in_flight, options.repetitions, say
        )
    ours = speeds["ours"]
    columns = {"": "", "rows/s": "{:,.0f}", "ms of processor a row": "{:.2f}"}
    figures = []
    for name, one in speeds.items():
        rates = [one.rows_per_second, one.cpu_ms_per_row]
        by_it = ours.rows_per_second / one.rows_per_second
        figures.append([name.replace("_", " "), *rates, by_it])
    save(
        DATA if options.save else None,
        "speed-scoring",
        columns | {"ours by it": "{:.2f}"},
        figures,
        commands=[
            shlex.join(["python", "experiments/bench/scoring.py", *sys.argv[1:]])
        ],
        notes=busy,
    )
    for name, speed in speeds.items():
        say(
            f"  {name:20} {speed.rows_per_second:7.0f} rows/s  {speed.cpu_ms_per_row:6.2f} ms CPU a row"
        )
        result[f"{name}_rows_per_s"] = round(speed.rows_per_second, 1)
        result[f"{name}_cpu_ms_per_row"] = round(speed.cpu_ms_per_row, 3)
    for name in ("dspy_parallel", "dspy_same_messages", "raw"):
        result[f"ours_vs_{name}"] = round(
            ours.rows_per_second / speeds[name].rows_per_second, 2
        )
        say(f"  ours / {name}: {result[f'ours_vs_{name}']:.2f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
