"""Another project's judge on the rows, the model and the number of calls of a study, beside the study's own arms.

    python -m judgesmith.experiments.peers.run FOLDER_OF_THE_STUDY --peer deepeval [--peer mlflow …]

A peer runs in an environment of its own, with a home folder of its own and none of this machine's keys. It gets
training rows with scores and held-out rows without, asks the model through a counting proxy on loopback, and returns
scores, whose agreement with people is computed here. A failure is a result too. Each result is appended to the study's
journal, and a second run leaves out what is in it; the study's command then shows the peers in its tables.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from ...agreement.objectives import Q
from ...datasets.records import Labels
from ...errors import JudgesmithError, OptionError
from ...optimizers.examples import agreement, examples_of
from ...programs.models.lm import is_local
from ...running.journal import alone
from ...running.settings import read_yaml
from ..studies.config import Given
from ..studies.run import PEER, Cell, Journal, Study
from .environments import HERE, PEERS, Peer, PeerFailed, interpreter
from .proxy import CountingProxy, Upstream

#: Calls that one held-out row may cost a peer, retries after an unreadable answer included.
CALLS_A_ROW = 4
#: What a run writes into its folder.
FILES = ("job.json", "result.json", "log.txt")
#: What a peer may know of this machine.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "OMP_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Limits:
    max_calls: int
    """Calls of the search."""
    longest_answer: int = 512
    """Tokens of an answer."""
    timeout: float = 7200.0
    """Seconds for a whole run."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a peer learns and judges, under a seed."""

    aspect: str
    train: Sequence[dspy.Example]
    heldout: Sequence[dspy.Example]
    seed: int = 0


def given(example: dspy.Example) -> dict[str, Any]:
    """A row as a peer sees it: `input` is the source with context and reference, `output` is what is judged."""
    parts = [example.source or ""]
    parts += [f"Context: {example.context}"] if example.context else []
    parts += [f"Reference: {example.reference}"] if example.reference else []
    return {"input": "\n\n".join(part for part in parts if part), "output": example.output}


def job_for(peer: Peer, task: Task, *, max_calls: int, folder: Path, base: str, key: str) -> dict[str, Any]:
    """The input of a worker. Training rows have `percent`, the human rating from 0 to 100; held-out rows do not."""
    return {
        "peer_file": str(peer.file),
        "variant": peer.variant,
        "packages": list(peer.reported),
        "aspect": task.aspect,
        "seed": task.seed,
        "max_calls": max_calls,
        "folder": str(folder),
        "base": base,
        "key": key,
        "train": [{**given(e), "percent": float(e.score)} for e in task.train],
        "heldout": [given(e) for e in task.heldout],
    }


def work(python: Path, job: dict[str, Any], timeout: float) -> dict[str, Any]:
    """A worker's result. Raises PeerFailed when it crashes, hangs, fails, or returns something other than scores."""
    folder = Path(job["folder"])
    job_file, result_file, log = (folder / name for name in FILES)
    job_file.write_text(json.dumps(job), encoding="utf-8")
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {
        "HOME": str(folder), "USERPROFILE": str(folder), "TMPDIR": str(folder), "PYTHONUTF8": "1",
        "OPENAI_API_KEY": job["key"], "OPENAI_BASE_URL": job["base"], "OPENAI_API_BASE": job["base"],
        "DSPY_CACHEDIR": str(folder / "dspy"), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
        "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false", "NO_PROXY": "127.0.0.1,localhost",
    }  # fmt: skip
    command = [str(python), "-P", str(HERE / "worker.py"), str(job_file), str(result_file)]
    with log.open("wb") as stream:
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise PeerFailed(f"{python} cannot be started: {error.strerror}") from error
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise PeerFailed(f"not done after {timeout:g} seconds") from None
        finally:
            _end(process)
    try:
        result = json.loads(result_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise PeerFailed(f"ended with code {code} and no result; its last output was: {_last_lines(log)}") from None
    return _checked(result, len(job["heldout"]))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the worker and every process that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_lines(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-2:])[-400:] or "nothing"


def _checked(result: Any, rows: int) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise PeerFailed("its result is not a JSON object")
    if result.get("error"):
        raise PeerFailed(str(result["error"])[:400], result)
    scores, reasons = result.get("scores"), result.get("reasons")
    if not isinstance(scores, list) or not isinstance(reasons, list) or len(scores) != rows or len(reasons) != rows:
        raise PeerFailed(f"its result has no score or reason for each of the {rows} held-out rows")
    if not all(s is None or (isinstance(s, int | float) and math.isfinite(s)) for s in scores):
        raise PeerFailed("its result has a score that is not a number")
    return result


def run_once(
    peer: Peer, python: Path, upstream: Upstream, task: Task, *, limits: Limits, folder: Path
) -> dict[str, Any]:
    """One peer and seed: `status` "ok" with the agreement, or "failed" with the `reason`; calls and tokens always."""
    started = time.monotonic()
    with CountingProxy(
        upstream,
        max_calls=limits.max_calls,
        judging_calls=CALLS_A_ROW * len(task.heldout) + 10,
        longest_answer=limits.longest_answer,
    ) as proxy:
        job = job_for(peer, task, max_calls=limits.max_calls, folder=folder, base=proxy.base, key=proxy.key)
        try:
            result = work(python, job, limits.timeout)
            outcome = _agreed(result, task)
        except PeerFailed as error:
            result, outcome = error.about, {"status": "failed", "reason": str(error)}
    search, judging = proxy.counted["search"], proxy.counted["judging"]
    return {
        **outcome,
        "calls": search.calls + judging.calls,
        "tokens": sum(c.prompt_tokens + c.completion_tokens for c in (search, judging)),
        "search": asdict(search),
        "judging": asdict(judging),
        "seconds": round(time.monotonic() - started, 1),
        "search_seconds": result.get("search_seconds"),
        "versions": result.get("versions", {}),
        "settings": result.get("settings", {}),
    }


def _agreed(result: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """The agreement of a peer's scores with people. Raises PeerFailed where no row has a score."""
    percents = np.array([math.nan if s is None else s for s in result["scores"]], dtype=float)
    # Shortened: the rest is often the model's answer, which differs from row to row.
    reasons = Counter(str(r)[:120] for r in result["reasons"] if r is not None)
    if np.isnan(percents).all():
        raise PeerFailed(f"no held-out row has a score: {reasons.most_common(1)[0][0]}")
    return {
        "status": "ok",
        **agreement(percents, task.heldout, objective=Q(), seed=task.seed).to_dict(),
        "failures": dict(reasons.most_common(3)),
        "scores": [None if math.isnan(p) else round(float(p), 4) for p in percents],
    }


def upstream_of(model: str, api_base: str | None) -> Upstream:
    """Where the model answers. Raises OptionError for a model that is not local and has no address."""
    if is_local(model):
        from ...programs.models.local import embedded

        endpoint = embedded(model)
        return Upstream(endpoint.base_url + "/v1", endpoint.model_id, endpoint.api_key)
    if api_base is None:
        raise OptionError(f"{model}: pass --api-base with the address of a server that speaks OpenAI's protocol")
    return Upstream(api_base.rstrip("/"), model.partition("/")[2] or model, os.environ.get("OPENAI_API_KEY"))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, metavar="FOLDER", help="the study whose rows, model and journal are used")
    parser.add_argument("--peer", choices=sorted(PEERS), action="append", required=True, help="several: repeat it")
    parser.add_argument("--seeds", type=int, help="number of seeds; default: all of the study's")
    parser.add_argument("--max-calls", type=int, default=400, help="calls of the search; held-out rows come on top")
    parser.add_argument("--longest-answer", type=int, default=512, help="tokens; also where a peer sets no limit")
    parser.add_argument("--timeout", type=float, default=7200.0, help="seconds for one peer and seed")
    parser.add_argument("--api-base", help="address of the model's server, for models that are not local/…")
    parser.add_argument("--envs", type=Path, default=Path.home() / ".cache" / "judgesmith" / "peers")
    parser.add_argument("--keep", type=Path, help="a folder in which each run's job, result and log are kept")
    parser.add_argument("--retry-failed", action="store_true")
    options = parser.parse_args(arguments)
    if min(n for n in (options.seeds, options.max_calls, options.longest_answer) if n is not None) < 1:
        parser.error("seeds, calls and tokens are positive numbers")
    try:
        join(options)
    except (JudgesmithError, OSError) as error:
        sys.exit(f"Error: {error}")


def join(options: argparse.Namespace) -> None:
    """Every peer, number of labels and seed that the study's journal does not have yet."""
    data = read_yaml(options.study / "config.yaml")
    config_given = Given(data.get("study"), data, origin=str(options.study / "config.yaml"))  # type: ignore[arg-type]
    with alone(options.study, folder=True):
        study = Study.prepare(config_given)
        journal = Journal.open(options.study, study, overwrite=False)
        config = study.config
        limits = Limits(config.max_calls or options.max_calls, options.longest_answer, options.timeout)
        for model in config.lm:
            upstream = upstream_of(model, options.api_base)
            for name, size, seed in itertools.product(options.peer, config.train, config.seeds[: options.seeds]):
                cell = Cell(model, PEER + name, size, seed)
                if journal.done(cell) or (cell in journal.results and not options.retry_failed):
                    continue
                part = study.parts[seed]
                train, heldout = examples_of(part.train(size)), examples_of(part.heldout)
                task = Task(config.aspect or "", train, heldout, seed)
                try:
                    python = interpreter(PEERS[name], options.envs, lambda text: print(text, file=sys.stderr))
                except PeerFailed as error:
                    row: dict[str, Any] = {"status": "failed", "reason": str(error)}
                else:
                    with _folder(options.keep, f"{name}-{size}-{seed}") as folder:
                        row = run_once(PEERS[name], python, upstream, task, limits=limits, folder=folder)
                journal.add(cell, *recorded(row, len(train), part.heldout))
                outcome = row["signature"] if row["status"] == "ok" else f"failed: {row['reason']}"
                print(f"{cell}  {outcome}  {row.get('calls', 0)} calls  {row.get('seconds', 0)} s", flush=True)


def recorded(row: Mapping[str, Any], labels: int, heldout: Labels) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A peer's result as a record of a study and its held-out predictions."""
    if row["status"] != "ok":
        return {"status": "failed", "reason": row["reason"]}, []
    search = row["search"]
    record = {
        **{name: row[name] for name in ("q", "low", "high", "n", "failed", "pearson", "spearman", "kendall", "reason")},
        "status": "done", "labels": labels, "heldout": len(heldout), "signature": row["signature"],
        "calls": search["calls"], "sent": search["calls"], "prompt_tokens": search["prompt_tokens"],
        "completion_tokens": search["completion_tokens"], "seconds": row["search_seconds"],
        "heldout_calls": row["judging"]["calls"], "demos": None, "versions": row["versions"],
        "selected": ", ".join(f"{name} {version}" for name, version in row["versions"].items()),
    }  # fmt: skip
    predictions = [
        {
            "id": r.id, "group": r.group, "doc_id": r.doc_id, "system": r.system,
            "human": round(float(human), 6), "percent": score, "failure": None if score is not None else "no score",
        }
        for r, human, score in zip(heldout.rows, heldout.scores.tolist(), row["scores"], strict=True)
    ]  # fmt: skip
    return record, predictions


@contextmanager
def _folder(keep: Path | None, name: str) -> Iterator[Path]:
    """An empty folder for one run, so that no cache of an earlier run answers; `keep` gets its job, result and log."""
    with tempfile.TemporaryDirectory(prefix="judgesmith-peer-", ignore_cleanup_errors=True) as folder:
        try:
            yield Path(folder)
        finally:
            if keep is not None:
                (keep / name).mkdir(parents=True, exist_ok=True)
                for file in (Path(folder) / n for n in FILES):
                    if file.exists():
                        shutil.copy(file, keep / name)


if __name__ == "__main__":
    main()
