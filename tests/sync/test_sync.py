"""`judgesmith sync`: with a queue that stands in for a tool's, and with a server of MLflow if it is here."""

import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_browser
from patience import HANG
from scripts import script

import judgesmith as js
from judgesmith.errors import OptionError
from judgesmith.programs.artifact import fingerprint
from judgesmith.sync import command

tutorials = script("tutorials")
PAGE = tutorials.ROOT / "docs/pages/tutorials/mlflow.md"


class Traces:
    """A queue in memory. found: what a filter finds; broken: the trace at which it fails."""

    def __init__(self) -> None:
        self.kept = {f"t{n:02d}": trace(n) for n in reversed(range(18))}
        self.found, self.broken = set(self.kept), ""

    def heads(self) -> Iterator[dict[str, Any]]:
        return (json.loads(json.dumps(self.kept[name] | {"output": None})) for name in self.kept if name in self.found)

    def whole(self, name: str) -> dict[str, Any] | None:
        if name == self.broken:
            raise OptionError("the queue is gone")
        return self.kept.get(name)

    def giving(self, judge: Any, name: str) -> Any:
        return lambda trace, said: self.kept[trace]["verdicts"].update({fingerprint(judge): {"score": said.score}})


def trace(n: int) -> dict[str, Any]:
    texts = {"source": f"Notice d{n:02d}: the hall is closed.", "output": f"Summary r{n:03d}{' ha' * n}."}
    scores = {"good": {"ada": n % 5 + 1, "ben": n % 4 + 1}} if n % 6 else {}
    return {"id": f"t{n:02d}", **texts, "scores": scores, "why": {"good": ["It is."]}, "verdicts": {}}


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Traces:
    made = Traces()
    monkeypatch.setattr(command, "plugin", lambda group, name: lambda *given: made)
    return made


@pytest.fixture
def sync(cli: Any, tmp_path: Path) -> Any:
    return lambda *more: cli("sync", "mine", "agent", "-o", tmp_path / "labels.jsonl", *more)


def test_the_file_follows_the_queue(queue: Traces, sync: Any, tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"id": "mine", "source": "S", "output": "O", "scores": {"good": 2}}\n')
    every = [f"t{n:02d}" for n in range(18) if n % 6]
    assert (sync("--dry-run", "--json").told["added"], len(labels.read_text().splitlines())) == (every, 1)
    queue.broken = "t09"
    sync().refused("the queue is gone")
    assert len(labels.read_text().splitlines()) == 1 + 7  # what was there, and what came before the failure
    queue.broken = ""
    assert sync("--json").told["added"] == every[7:]
    read, before = js.read_labels(labels, scale=(1, 5)), labels.read_bytes()
    assert (len(read), read.rows[1].ratings["good"], read.rows[1].why("good")) == (16, (2.0, 2.0), ("It is.",))
    assert "15 stay as they were" in sync().said and labels.read_bytes() == before
    queue.kept["t03"]["scores"]["good"]["ada"] = 1
    queue.kept["t04"]["scores"] = {}
    del queue.kept["t05"]
    queue.found -= {"t05", "t07"}  # the latter is only not among what a filter finds
    told = sync().said
    assert "0 rows are new, 1 changed" in told and "so these rows are gone: t04, t05" in " ".join(told.split())
    rows = [json.loads(line) for line in labels.read_text().splitlines()]
    assert [row["id"] for row in rows if row["id"] in ("t04", "t05", "t07")] == ["t07"]
    assert [row["scores"] for row in rows if row["id"] == "t03"] == [{"good": {"ada": 1, "ben": 4}}]


def test_verdicts_are_given_once_and_compared(
    queue: Traces, sync: Any, judge_file: Path, server: Any, fake: Any
) -> None:
    judged = ("--judge", judge_file, "--api-base", server.base, "--json")
    sensible = fake.judging(lambda ask: int(ask.mark[1:]) % 5 * 25 if ask.mark != "r012" else 0)
    server.answer = lambda ask: "Not a chance." if ask.step == "score" and ask.mark == "r006" else sensible(ask)
    first = sync(*judged, "--limit", 9)
    assert (first.code, first.json["judged"]["scored"], [*queue.kept][8]) == (0, 9, "t09")
    done = sync(*judged)
    told = done.json["judged"]
    assert (done.code, told["scored"], [one["id"] for one in told["failed"]]) == (1, 8, ["t06"])
    assert (told["aspect"], told["since"]["n"], told["all"]["n"]) == ("good", 0, 15)
    assert told["all"]["low"] < told["all"]["value"] < told["all"]["high"]
    queue.kept["t12"]["scores"] = {"good": {"ada": 5}}
    again = sync(*judged).json["judged"]
    assert (again["scored"], again["since"]["n"], again["since"]["value"]) == (0, 1, None)
    worst = again["differ"][0]
    assert (worst["id"], worst["people"], worst["judge"], worst["seen"]) == ("t12", 5, 0, False)
    sync(*judged, "--human", "nice").refused("there is no such feedback; there is good")


def test_what_cannot_be_synced_is_refused(sync: Any, cli: Any, tmp_path: Path) -> None:
    sync().refused("no package offers 'mine' for judgesmith.queues")
    cli("sync", "mlflow", "agent", "-o", tmp_path / "labels.csv").refused("labels are written as .jsonl")
    (tmp_path / "labels.jsonl").write_text('{"queue": "mine: agent"}\n')
    sync().refused("line 1: the row has no id")
    sync("--limit", 3).refused("--human and --limit are for --judge")


# -- MLflow itself ----------------------------------------------------------------------------------------------------


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """MLflow, with a server of its own on loopback."""
    made = pytest.importorskip("mlflow", minversion="3.10")
    pytest.importorskip("mlflow.server.fastapi_app")  # the client alone does not serve
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    monkeypatch.setenv("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    serve = ["server", "--host", "127.0.0.1", "--port", port, "--workers", "1", "--backend-store-uri", "sqlite:///m.db"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mlflow", *serve], cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + HANG
        while time.monotonic() < end and process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                break
            time.sleep(0.5)
        yield made
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the workers of its own
        process.wait(HANG)


@needs_browser
@pytest.mark.slow
def test_from_thumbs_in_mlflow_to_a_judge_and_back(
    mlflow: Any, browser: Browser, cli: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tutorial as it stands; then what it left in MLflow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    tutorials.rate(server)
    said = []
    for step in tutorials.steps(PAGE.read_text(encoding="utf-8")):
        if step.kind == "file":
            Path(step.title).write_text(step.text, encoding="utf-8")
        elif step.words[0] == "python":
            runpy.run_path(step.words[1])
        elif step.words[0] == "judgesmith":
            said.append(" ".join(cli(*step.words[1:]).said.split()))
    assert "48 traces; feedback of 2 people: fluent (36)" in said[0] and "48 traces had no verdict" in said[2]
    assert "48 verdicts logged as 'fluent', 0 without a score" in said[3]
    assert "12 rows are new, 1 changed, 34 stay" in said[4] and "so these rows are gone: tr-" in said[4]
    assert re.search(r"since the last sync \(n=1[23]\): accuracy \d\.\d\d \[", said[4])
    client = mlflow.MlflowClient()
    place = client.get_experiment_by_name("support agent").experiment_id
    traces = client.search_traces(locations=[place])
    made, people = js.load("judge.json"), {}
    for trace in traces:
        people[len(trace.info.assessments)] = trace.info.trace_id
        (one,) = [a for a in trace.info.assessments if a.source.source_type == "LLM_JUDGE"]
        assert (one.name, one.metadata["judge"], one.source.source_id) == ("fluent", fingerprint(made), made.lm.name)
        assert one.metadata["agreement"] == made.provenance["heldout"]["signature"] and one.metadata["interval"]
    shown = f"#/experiments/{place}/traces?selectedEvaluationId={people[3]}"
    tab = browser.tab(f"{os.environ['MLFLOW_TRACKING_URI']}/{shown}")
    tab.look(width=1500)
    button = "[...document.querySelectorAll('button')].find(b => /^Assess/.test(b.innerText))"
    tab.until(f"!!{button}")
    tab.js(f"{button}.click()")
    tab.until("/Feedback \\(3\\)\\s+Add feedback\\s+fluent/.test(document.body.innerText)")  # two people and the judge
