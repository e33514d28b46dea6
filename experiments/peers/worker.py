"""Runs one peer inside the peer's own environment, where judgesmith is not installed: only the standard library here.

    python -P worker.py JOB.json RESULT.json

The job names the file of the peer, which has `compile_judge(job) -> score`, where `score(row)` is a percent; `job` and
the rows are described in `run.py`. A peer that raises for a row leaves that row without a score, with its reason.
"""

from __future__ import annotations

import json
import math
import platform
import runpy
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Job = dict[str, Any]
Score = Callable[[dict[str, Any]], float]


def versions(packages: list[str]) -> dict[str, str]:
    result = {"python": platform.python_version()}
    for name in packages:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            result[name] = "not installed"
    return result


def reason(error: BaseException) -> str:
    """One line, without what a library wraps around it."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400]


def judge_rows(score: Score, rows: list[dict[str, Any]]) -> tuple[list[float | None], list[str | None]]:
    """(percents, reasons), both as long as `rows`; exactly one of the two is None for a row."""
    scores: list[float | None] = []
    reasons: list[str | None] = []
    for number, row in enumerate(rows, start=1):
        try:
            value = float(score(row))
            if not math.isfinite(value):
                raise ValueError(f"the score is {value}")
            scores.append(value)
            reasons.append(None)
        except Exception as error:
            scores.append(None)
            reasons.append(reason(error))
        print(f"held-out row {number} of {len(rows)}", file=sys.stderr, flush=True)
    return scores, reasons


def tell(job: Job) -> None:
    """The search is over: calls are counted as judging from here."""
    request = urllib.request.Request(  # noqa: S310  # the address is the proxy's that started this process
        job["base"] + "/judging", data=b"{}", headers={"Authorization": f"Bearer {job['key']}"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30):
        pass


def main(job_path: str, result_path: str) -> None:
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    result: dict[str, Any] = {"versions": versions(job["packages"]), "settings": {}}
    started = time.monotonic()
    try:
        score = runpy.run_path(job["peer_file"])["compile_judge"](job)
        result["settings"] = job.get("settings", {})
        result["search_seconds"] = round(time.monotonic() - started, 1)
        tell(job)
        result["scores"], result["reasons"] = judge_rows(score, job["heldout"])
    except Exception as error:
        traceback.print_exc()
        result["error"] = reason(error)
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
