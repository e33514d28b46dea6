"""A long run before a model's server that misbehaves: is every row accounted for, do memory and open files grow?

    python experiments/bench/soak.py [--json] [--minutes 5] [--rate 50] [--through serve|score] [--deaths 2]
                                     [--save]

The model's server gives 429, 500, resets, answers that are cut off, that are no JSON or that have no score, and answers
that never come, each to the share of requests in FAULTS; `--deaths` times in the first half it is killed, and is there
again after five seconds. Before it stands `judgesmith serve`, to which rows are posted at this rate, or `judgesmith
score` judges a file (at most `rate` calls a second; it keeps a mark of each row's id, up to a million).

answered: rows with a score; failed: rows without one, which say why (`reasons`, by their first words); lost: rows of
which nothing came back; doubled: rows that came more than once; sent_back: answers of `serve` that ask for the row
again, which it then was; failed_requests: those that ended without an answer, after which it was, too; growth_mb and
growth_files: from the middle of the run, after the last death, to its end; over_time: seconds, megabytes and open
files, now and then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from judgesmith.experiments.bench.figures import add_save, save, show
from judgesmith.experiments.bench.loopback import PLAIN, Endpoint, completion, serve
from judgesmith.experiments.bench.scoring import judge_at, rows
from judgesmith.experiments.bench.serve import ready
from judgesmith.serving.run import many_files

#: Share of requests. A hanging answer takes longer than the judge waits.
FAULTS = {"busy": 0.03, "error": 0.01, "reset": 0.01, "cut": 0.01, "garbage": 0.01, "no score": 0.01, "hang": 0.002}
WAIT, HANG = 10.0, 60.0
DOWN = 5.0
#: Of the rows' clients together, so that a burst is not taken for a leak.
CONNECTIONS = 200
#: Seconds that a row is sent again before it is given up.
PATIENCE = 120.0


def misbehaving(latency: float, seed: int) -> web.Application:
    """A model's server that answers most requests after `latency` seconds."""
    rng = random.Random(seed)
    good = orjson.dumps(completion(PLAIN, logprobs=True))
    nonsense = orjson.dumps(completion("I would rather not say.", logprobs=True))

    async def chat(request: web.Request) -> web.StreamResponse:
        probe = b"2 + 2 =" in await request.read()
        (fault,) = rng.choices([*FAULTS, ""], [*FAULTS.values(), 1 - sum(FAULTS.values())])
        await asyncio.sleep(latency)
        if probe or not fault:
            return web.Response(body=good, content_type="application/json")
        if fault == "busy":
            return web.Response(status=429, headers={"Retry-After": "1"})
        if fault == "error":
            return web.Response(status=500, text="out of memory")
        if fault in ("garbage", "no score"):
            return web.Response(body=nonsense if fault == "no score" else b"<html>", content_type="application/json")
        if fault == "hang":
            await asyncio.sleep(HANG)
        if fault == "cut":
            response = web.StreamResponse(headers={"Content-Length": "4000", "Content-Type": "application/json"})
            await response.prepare(request)
            await response.write(good[:50])
        if request.transport is not None:  # the client waits still
            request.transport.close()
        return web.Response()

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", chat)
    return app


@dataclass
class Seen:
    """What came back, and what the process held meanwhile: (seconds, megabytes, open files)."""

    verdicts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    sent_back: Counter[str] = field(default_factory=Counter)
    failed_requests: Counter[str] = field(default_factory=Counter)
    held: list[tuple[float, float, int]] = field(default_factory=list)

    def take(self, identity: str, verdict: dict[str, Any]) -> None:
        self.verdicts[identity] += 1
        if verdict["failure"]:
            self.failures[re.sub(r"\d+", "N", verdict["failure"])[:60]] += 1

    def told(self, count: int) -> dict[str, Any]:
        failed = sum(self.failures.values())
        span = self.held[-1][0] if self.held else 0.0
        early = [sample for sample in self.held if 0.5 * span <= sample[0] <= 0.6 * span] or self.held[:1]
        late = [sample for sample in self.held if sample[0] >= 0.9 * span]
        mb = [statistics.median(sample[1] for sample in part) for part in (early, late)]
        files = [statistics.median(sample[2] for sample in part) for part in (early, late)]
        return {
            "rows": count,
            "answered": len(self.verdicts) - failed,
            "failed": failed,
            "lost": sum(f"r{n}" not in self.verdicts for n in range(count)),
            "doubled": sum(self.verdicts.values()) - len(self.verdicts),
            "sent_back": dict(self.sent_back),
            "failed_requests": dict(self.failed_requests),
            "mb": mb,
            "growth_mb": round(mb[1] - mb[0], 1),
            "files": files,
            "growth_files": files[1] - files[0],
            "reasons": dict(self.failures.most_common(8)),
            "over_time": [[round(value) for value in sample] for sample in self.held[:: max(1, len(self.held) // 20)]],
        }


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Something in a thread of its own, which is told when the block is over."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def watched(process: int, seen: Seen) -> AbstractContextManager[None]:
    """Notes memory and open files every second."""
    started = time.monotonic()

    def look(over: threading.Event) -> None:
        while not over.wait(1.0):
            try:
                status = Path(f"/proc/{process}/status").read_text()
                files = sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())
            except OSError:  # it has ended
                return
            found = re.search(r"VmRSS:\s+(\d+) kB", status)
            if found is not None:
                seen.held.append((time.monotonic() - started, int(found[1]) / 1024, files))

    return beside(look)


def dying(endpoint: Endpoint, deaths: int, seconds: float) -> AbstractContextManager[None]:
    """Kills the model's server so often, evenly over the first half of the run, and starts it again."""

    def kill(over: threading.Event) -> None:
        for _ in range(deaths):
            if over.wait(seconds / 2 / (deaths + 1)):
                return
            endpoint.kill()
            time.sleep(DOWN)
            endpoint.start_again()

    return beside(kill)


async def posted(address: str, count: int, rate: float, seen: Seen) -> None:
    """Each row at its time; sent again where the server says so."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS), timeout=aiohttp.ClientTimeout(total=PATIENCE)
    )

    async def one(number: int, row: dict[str, str]) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                async with session.post(f"{address}/v1/score", json=row) as response:
                    told = await response.json()
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                seen.failed_requests[type(error).__name__] += 1
                await asyncio.sleep(1)
                continue
            if response.status == 200:
                seen.take(f"r{number}", told)
                return
            seen.sent_back[f"{response.status} {told['error']['code']}"] += 1
            await asyncio.sleep(float(response.headers.get("Retry-After", 1)) * random.uniform(1, 2))

    async with session, asyncio.TaskGroup() as tasks:
        started = time.monotonic()
        for number, row in enumerate(rows(count)):
            await asyncio.sleep(started + number / rate - time.monotonic())
            tasks.create_task(one(number, row))


def through_serve(folder: Path, base: str, given: argparse.Namespace, count: int, seen: Seen) -> None:
    command = [
        sys.executable, "-m", "judgesmith.cli.main", "serve", str(folder / "judge.json"), "--port", "0",
        "--api-base", base, "--timeout", str(WAIT), "--concurrency", "256", "--no-cache", "--no-log",
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=own_environment(folder)) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            found = re.search(r"at (http://\S+)", said)
            if found is None:
                raise RuntimeError(f"the server did not start: {said}{process.stderr.read()}")
            threading.Thread(target=process.stderr.read, daemon=True).start()
            with watched(process.pid, seen):
                asyncio.run(ready(found[1]))
                asyncio.run(posted(found[1], count, given.rate, seen))
        finally:
            process.terminate()
            process.wait(timeout=60)


def through_score(folder: Path, base: str, given: argparse.Namespace, count: int, seen: Seen) -> None:
    with (folder / "rows.jsonl").open("w") as file:
        for number, row in enumerate(rows(count)):
            file.write(json.dumps({"id": f"r{number}", **row}) + "\n")
    command = [
        sys.executable, "-m", "judgesmith.cli.main", "score", "rows.jsonl", "--judge", "judge.json", "-o", "out.jsonl",
        "--api-base", base, "--timeout", str(WAIT), "--concurrency", "256", "--rpm", str(60 * given.rate), "--no-cache",
    ]  # fmt: skip
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said, env=own_environment(folder))
        with watched(process.pid, seen):
            code = process.wait()
    for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        seen.take(record["id"], record["verdict"])
    if code not in (0, 1):
        print((folder / "said.txt").read_text()[-2000:], file=sys.stderr)


def own_environment(folder: Path) -> dict[str, str]:
    return os.environ | {"OPENAI_API_KEY": "none", "JUDGESMITH_CACHE": str(folder / "calls.sqlite")}


def keep(found: dict[str, Any], deaths: int, folder: Path | None, **about: Any) -> None:
    """The table of one run."""
    columns = {
        "through": "", "rows": "{:,}", "rows/s": "{:.0f}", "deaths": "{}", "with a score": "{:,}",
        "without, with a reason": "{:,}", "lost": "{}", "twice": "{}", "MB, middle and end": "{:.0f} → {:.0f}",
        "open files": "{:.0f} → {:.0f}",
    }  # fmt: skip
    rate = found["rows"] / found["seconds"]
    counts = [found[name] for name in ("answered", "failed", "lost", "doubled")]
    row = [found["through"], found["rows"], rate, deaths, *counts, found["mb"], found["files"]]
    save(folder, f"soak-{found['through']}", columns, [row], **about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=50.0, help="rows a second")
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--deaths", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--through", choices=("serve", "score"), default="serve")
    add_save(parser)
    parser.add_argument("--model", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.model:
        asyncio.run(serve(misbehaving(given.latency_ms / 1000, given.seed), given.port))
        return
    many_files()
    seconds = 60 * given.minutes
    count, seen = int(given.rate * seconds), Seen()
    endpoint = Endpoint(__file__, "--model", "--latency-ms", str(given.latency_ms), "--seed", str(given.seed))
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            judge_at(endpoint.address, 1).save(folder / "judge.json")
            run = through_serve if given.through == "serve" else through_score
            with dying(endpoint, given.deaths, seconds):
                run(folder, endpoint.address, given, count, seen)
    finally:
        endpoint.close()
    found = {"through": given.through, "seconds": round(time.monotonic() - started), **seen.told(count)}
    show(found, as_json=given.json)
    keep(found, given.deaths, given.save, seed=given.seed)


if __name__ == "__main__":
    main()
