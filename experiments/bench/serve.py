"""Measure the overhead of a server of judges over calling the model's server, and rows lost in a burst.

    python experiments/bench/serve.py [--json] [--requests 3000] [--in-flight 64] [--latency-ms 50] [--burst 2000]
                                      [--workers 2] [--save]

In one run, interleaved: aiohttp posts the judge's own requests to an OpenAI-style server on loopback, and posts the
same rows to `judgesmith serve` before that server, both with as many in flight; the median of the repetitions, no cache
of calls. serve_vs_direct: requests per second of the one by those of the other; p99_ms: of a row through the server;
half_p99_ms, half_direct_p99_ms: of requests through the server and to the model that begin at half of the server's
rate, whether or not those before have their answers; half_p99_ratio: of the two; peak_mb: of the server's processes
together; cpu_ms: their computing time a row; lost: rows of the burst, all sent at once, that got no score.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from judgesmith.experiments.bench.loopback import loopback
from judgesmith.experiments.bench.scoring import judge_at, load, raw_bodies, rows
from judgesmith.experiments.studies.saving import save
from judgesmith.rooms.serving.run import many_files

DATA = Path(__file__).resolve().parents[1] / "results" / "data"
KEY = "a key of this bench alone"

#: Columns of the saved table, with the form of their numbers and the figures' names.
SHOWN = (
    ("processes", "{:d}", ""),
    ("rows/s", "{:,.0f}", "serve_per_s"),
    ("direct", "{:,.0f}", "direct_per_s"),
    ("share", "{:.2f}", "serve_vs_direct"),
    ("p99, ms", "{:.0f}", "p99_ms"),
    ("p99 at half load", "{:.0f}", "half_p99_ms"),
    ("by the model's", "{:.2f}", "half_p99_ratio"),
    ("CPU a row, ms", "{:.2f}", "cpu_ms"),
    ("MB at most", "{:.0f}", "peak_mb"),
    ("lost", "{:d}", "lost"),
)


@contextmanager
def server(
    base: str, judge: Path, in_flight: int, workers: int = 1
) -> Iterator[tuple[str, int]]:
    """(address, process id) of `judgesmith serve` in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "judgesmith.cli.main",
        "serve",
        str(judge),
        "--port",
        "0",
        "--api-base",
        base,
        "--concurrency",
        str(in_flight),
        "--no-cache",
        "--no-log",
        "--workers",
        str(workers),
    ]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENAI_API_KEY": "none", "JUDGESMITH_API_KEY": KEY},
    ) as process:
        assert process.stderr is not None
        try:
            text = process.stderr.readline()
            match = re.search(r"at (http://\S+)", text)
            if match is None:
                raise RuntimeError(
                    f"the server did not start: {text}{process.stderr.read()}"
                )
            yield match[1], process.pid
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


async def post(
    url: str, bodies: list[bytes], in_flight: int, headers: Mapping[str, str]
) -> tuple[float, list[float], int]:
    """(seconds, milliseconds of each request, answers that are no 200 or have no score)."""
    todo = deque(bodies)
    times = []
    lost = 0

    async def worker(session: aiohttp.ClientSession) -> None:
        nonlocal lost
        while todo:
            body = todo.popleft()
            started = time.perf_counter()
            try:
                async with session.post(url, data=body, headers=headers) as response:
                    answer = await response.read()
                    good = (
                        response.status == 200
                        and orjson.loads(answer).get("score", 0) is not None
                    )
            except (aiohttp.ClientError, OSError, TimeoutError):
                good = False
            lost += not good
            times.append(1000 * (time.perf_counter() - started))

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(total=120)
    ) as session:
        started = time.perf_counter()
        await asyncio.gather(*(worker(session) for _ in range(in_flight)))
        return time.perf_counter() - started, times, lost


async def paced(
    url: str, bodies: list[bytes], per_second: float, headers: Mapping[str, str]
) -> list[float]:
    """Milliseconds of requests that begin at a steady rate."""
    times: list[float] = []

    async def one(session: aiohttp.ClientSession, body: bytes) -> None:
        started = time.perf_counter()
        async with session.post(url, data=body, headers=headers) as response:
            await response.read()
        times.append(1000 * (time.perf_counter() - started))

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        begun = time.perf_counter()
        waiting = []
        for number, body in enumerate(bodies):
            await asyncio.sleep(begun + number / per_second - time.perf_counter())
            waiting.append(asyncio.create_task(one(session, body)))
        await asyncio.gather(*waiting)
    return times


async def ready(address: str) -> None:
    """Wait until the server is ready."""
    async with aiohttp.ClientSession() as session:
        for _ in range(600):
            async with session.get(f"{address}/readyz") as response:
                if response.status == 200:
                    return
            await asyncio.sleep(0.1)
    raise RuntimeError("the server is not ready after a minute")


def family(process: int) -> list[int]:
    """Return a process and its children, if the system lists them."""
    try:
        return [
            process,
            *map(
                int,
                Path(f"/proc/{process}/task/{process}/children").read_text().split(),
            ),
        ]
    except OSError:
        return [process]


def memory(process: int, field: str) -> float:
    """Megabytes of a server's processes: VmRSS now, VmHWM at most so far. NaN where the system does not say."""
    total = 0
    for one in family(process):
        try:
            text = Path(f"/proc/{one}/status").read_text()
        except OSError:
            return float("nan")
        match = re.search(rf"{field}:\s+(\d+) kB", text)
        total += int(match[1]) if match else 0
    return total / 1024


def computing(process: int) -> float:
    """Seconds that a server's processes have computed. NaN where the system does not say."""
    total = 0
    for one in family(process):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return float("nan")
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


async def measure(
    base: str, address: str, process: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return the rates of both servers, the latency and memory of ours, and the rows lost in a burst."""
    json_type = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    count = arguments.requests
    in_flight = arguments.in_flight
    ours = [orjson.dumps(row) for row in rows(count)]
    direct = raw_bodies(judge_at(base, in_flight), base, count)
    await ready(address)
    score = f"{address}/v1/score"
    chat = f"{base}/chat/completions"
    for url, bodies in (
        (score, ours),
        (chat, direct),
    ):  # connections are opened, code is warm
        await post(url, bodies[: 4 * in_flight], in_flight, json_type)
    rates: dict[str, list[float]] = {score: [], chat: []}
    times: list[float] = []
    lost = 0
    spent = 0.0
    before = memory(process, "VmRSS")
    for _ in range(arguments.repeat):
        for url, bodies in ((chat, direct), (score, ours)):
            computed = computing(process)
            seconds, took, missing = await post(url, bodies, in_flight, json_type)
            spent += computing(process) - computed
            rates[url].append(count / seconds)
            if url == score:
                times += took
                lost += missing
    after = memory(process, "VmRSS")
    _, _, burst_lost = await post(
        score,
        (ours * -(-arguments.burst // count))[: arguments.burst],
        arguments.burst,
        json_type,
    )
    through, plain = (statistics.median(rates[url]) for url in (score, chat))
    half: dict[str, float] = {}
    for url, bodies in ((chat, direct), (score, ours)):
        at_half = await paced(url, bodies, through / 2, json_type)
        half[url] = statistics.quantiles(at_half, n=100)[98]
    return {
        "serve_vs_direct": round(through / plain, 3),
        "p99_ms": round(statistics.quantiles(times, n=100)[98], 1),
        "half_p99_ms": round(half[score], 1),
        "half_direct_p99_ms": round(half[chat], 1),
        "half_p99_ratio": round(half[score] / half[chat], 2),
        "peak_mb": round(memory(process, "VmHWM"), 1),
        "lost": lost + burst_lost,
        "serve_per_s": round(through, 1),
        "direct_per_s": round(plain, 1),
        "cpu_ms": round(1000 * spent / (count * arguments.repeat), 3),
        "growth_mb": round(after - before, 1),
        "requests": count * arguments.repeat,
        "burst": arguments.burst,
    }


def main() -> None:
    """Start the servers and print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--burst", type=int, default=2000)
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        help="processes; default one a core",
    )
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    many_files()
    busy = load()
    with (
        tempfile.TemporaryDirectory() as folder,
        loopback(latency_ms=arguments.latency_ms) as base,
    ):
        path = Path(folder) / "judge.json"
        judge_at(base, arguments.in_flight).save(path)
        with server(base, path, arguments.in_flight, arguments.workers) as (
            address,
            process,
        ):
            figures = asyncio.run(measure(base, address, process, arguments))
    count = arguments.workers
    save(
        DATA if arguments.save else None,
        f"speed-serve-{count}",
        {title: form for title, form, _ in SHOWN},
        [[count, *(figures[name] for _, _, name in SHOWN[1:])]],
        commands=[shlex.join(["python", "experiments/bench/serve.py", *sys.argv[1:]])],
        notes=busy,
    )
    print(
        json.dumps(figures)
        if arguments.json
        else "\n".join(f"{name:16} {value}" for name, value in figures.items())
    )


if __name__ == "__main__":
    main()
