"""`judgesmith serve` under slow, broken and greedy clients on loopback: what it answers, and how much memory it takes.

    python experiments/bench/abuse.py [--minutes 10] [--save]

Greedy: eight clients that ask without a pause, and one that sends 400 rows at a time or a job and fetches it. Slow: 40
connections that send a head, and 20 that send a body, by a few bytes a second. Broken: what is no HTTP, heads without
end, bodies cut off, 8 MB without a key, wrong hosts and origins, clients that hang up before the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from judgesmith.experiments.bench.commands import DATA, save
from judgesmith.experiments.bench.loopback import loopback
from judgesmith.experiments.bench.scoring import judge_at, rows

KEY = "a-key-for-this-run-alone"
HEAD = (
    b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
)
BROKEN = (
    b"\x16\x03\x01\x00\xff", b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"GET /" + b"a" * 300_000, b"{}\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000, b"POST /v1/score HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"%(head)sContent-Length: 8000000\r\n\r\n{", b"%(head)sContent-Length: -1\r\n\r\n",
    b"%(head)sContent-Length: 33\r\n\r\n" + b'{"source": "s", "output": "gone"}',
    b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 8000000\r\n\r\n" + b"x" * 4_000_000,
)  # fmt: skip


class Abuse:
    """The clients of one server until a time."""

    def __init__(self, port: int, end: float) -> None:
        self.port, self.end = port, end
        self.counts: Counter[str] = Counter()
        self.head = HEAD % (port, KEY.encode())

    async def until_then(self, step: Callable[[], Awaitable[Any]]) -> None:
        while time.monotonic() < self.end:
            try:
                await step()
            except (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.counts[type(error).__name__] += 1
                await asyncio.sleep(0.1)

    async def trickle(self, start: bytes) -> None:
        """A few bytes a second, until the server hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        said = asyncio.ensure_future(reader.read())  # until the server hangs up
        try:
            writer.write(start)
            while time.monotonic() < self.end and not said.done():
                writer.write(b"X: y\r\n" if b"\r\n\r\n" not in start else b" ")
                await writer.drain()
                await asyncio.sleep(1)
        finally:
            self.counts["slow, hung up on"] += said.done()
            said.cancel()
            writer.close()

    async def broken(self) -> None:
        for text in BROKEN:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(text.replace(b"%(head)s", self.head))
            await asyncio.sleep(0.05)
            writer.close()
            self.counts["broken"] += 1

    async def all(self, session: aiohttp.ClientSession) -> None:
        given = list(rows(400))

        async def ask() -> None:
            async with session.post("/v1/score", json=given[self.counts["score 200"] % 400]) as answer:
                await answer.read()
                self.counts[f"score {answer.status}"] += 1

        async def many() -> None:
            async with session.post("/v1/score/many", json={"rows": given}) as answer:
                self.counts["rows of many"] += (await answer.read()).count(b'"score":')
            lines = "".join(json.dumps(row) + "\n" for row in given)
            async with session.post("/v1/jobs", data=lines, headers={"Content-Type": "application/x-ndjson"}) as answer:
                job = (await answer.json()).get("id")
            while job and time.monotonic() < self.end:
                async with session.get(f"/v1/jobs/{job}") as answer:
                    if (await answer.json())["state"] == "done":
                        break
                await asyncio.sleep(0.2)
            async with session.delete(f"/v1/jobs/{job}") as answer:
                self.counts[f"job deleted {answer.status}"] += 1

        slow = [b"GET /readyz HTTP/1.1\r\n"] * 40 + [self.head + b"Content-Length: 9000\r\n\r\n{"] * 20
        steps = [ask] * 8 + [many] + [self.broken] * 2
        await asyncio.gather(
            *map(self.until_then, steps),
            *(self.until_then(lambda start=start: self.trickle(start)) for start in slow),  # type: ignore[misc]
        )


def megabytes(process: int) -> float:
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(match[1]) / 1024 if match else float("nan")


async def run(address: str, process: int, minutes: float) -> tuple[Counter[str], list[float]]:
    """Counts, and megabytes every ten seconds."""
    abuse = Abuse(int(address.rpartition(":")[2]), time.monotonic() + 60 * minutes)
    sizes: list[float] = []
    headers, limit = {"Authorization": f"Bearer {KEY}"}, aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(address, headers=headers, connector=limit) as session:
        clients = asyncio.ensure_future(abuse.all(session))
        while not clients.done():
            sizes.append(megabytes(process))
            await asyncio.wait((clients,), timeout=10)
        await clients
        async with session.get("/readyz") as answer:
            abuse.counts[f"ready at the end {answer.status}"] += 1
    return abuse.counts, sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, loopback(latency_ms=20) as base:
        path, log = Path(folder, "judge.json"), Path(folder, "log")
        judge_at(base, 64).save(path)
        command = ["serve", str(path), "--port", "0", "--api-base", base, "--concurrency", "64", "--no-cache"]
        with log.open("wb") as errors, subprocess.Popen(
            [sys.executable, "-m", "judgesmith.cli.main", *command], stderr=errors,
            env=os.environ | {"OPENAI_API_KEY": "none", "JUDGESMITH_API_KEY": KEY},
        ) as process:  # fmt: skip
            while not (found := re.search(r"at (http://\S+)", log.read_text())):
                time.sleep(0.1)
            counts, sizes = asyncio.run(run(found[1], process.pid, given.minutes))
            process.terminate()
        counts["tracebacks in the log"] = log.read_text(errors="replace").count("Traceback")
        counts["exit code"] = process.returncode
    middle = sizes[len(sizes) // 2]
    told: list[list[Any]] = [[f"MB after {10 * n} s", sizes[n]] for n in range(0, len(sizes), max(1, len(sizes) // 6))]
    told += [["MB, middle", middle], ["MB, most", max(sizes)], ["MB, end", sizes[-1]]]
    told += [[name, float(count)] for name, count in sorted(counts.items())]
    print(json.dumps(dict(told), indent=1))
    if given.save:
        save(DATA, "abuse-serve", {"what": "", "figure": "{:,.0f}"}, told,
             commands=[f"python experiments/bench/abuse.py --minutes {given.minutes:g}"])  # fmt: skip


if __name__ == "__main__":
    main()
