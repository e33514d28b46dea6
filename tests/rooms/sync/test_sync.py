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
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from browser import Browser, needs_browser
from misbehaving_server import Say, Server
from patience import HANG
from scripts import script
from tables import cases

import judgesmith as js
from judgesmith.errors import OptionError
from judgesmith.programs.artifact import fingerprint
from judgesmith.rooms.queues import interface, langfuse, phoenix
from judgesmith.rooms.sync import command

tutorials = script("tutorials")
PAGE = tutorials.ROOT / "docs/pages/examples/mlflow.md"


class Traces:
    """A queue in memory. found: what a filter finds; broken: the trace at which it fails."""

    def __init__(self) -> None:
        self.kept = {f"t{n:02d}": trace(n) for n in reversed(range(18))}
        self.found, self.broken = set(self.kept), ""

    def heads(self) -> Iterator[dict[str, Any]]:
        return (
            json.loads(json.dumps(self.kept[name] | {"output": None}))
            for name in self.kept
            if name in self.found
        )

    def whole(self, name: str) -> dict[str, Any] | None:
        if name == self.broken:
            raise OptionError("the queue is gone")
        return self.kept.get(name)

    def giving(self, judge: Any, name: str) -> Any:
        return lambda trace, said: self.kept[trace]["verdicts"].update(
            {fingerprint(judge): {"score": said.score}}
        )


def trace(n: int) -> dict[str, Any]:
    texts = {
        "source": f"Notice d{n:02d}: the hall is closed.",
        "output": f"Summary r{n:03d}{' ha' * n}.",
    }
    scores = {"good": {"ada": n % 5 + 1, "ben": n % 4 + 1}} if n % 6 else {}
    return {
        "id": f"t{n:02d}",
        **texts,
        "scores": scores,
        "why": {"good": ["It is."]},
        "verdicts": {},
    }


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Traces:
    made = Traces()
    monkeypatch.setattr(command, "plugin", lambda group, name: lambda *given: made)
    return made


@pytest.fixture
def sync(cli: Any, tmp_path: Path) -> Any:
    return lambda *more: cli(
        "sync", "mine", "agent", "-o", tmp_path / "labels.jsonl", *more
    )


def test_the_file_follows_the_queue(queue: Traces, sync: Any, tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text(
        '{"id": "mine", "source": "S", "output": "O", "scores": {"good": 2}}\n'
    )
    every = [f"t{n:02d}" for n in range(18) if n % 6]
    assert (
        sync("--dry-run", "--json").told["added"],
        len(labels.read_text().splitlines()),
    ) == (every, 1)
    queue.broken = "t09"
    sync().refused("the queue is gone")
    assert (
        len(labels.read_text().splitlines()) == 1 + 7
    )  # what was there, and what came before the failure
    queue.broken = ""
    assert sync("--json").told["added"] == every[7:]
    read, before = js.read_labels(labels, scale=(1, 5)), labels.read_bytes()
    assert (len(read), read.rows[1].ratings["good"], read.rows[1].why("good")) == (
        16,
        (2.0, 2.0),
        ("It is.",),
    )
    assert "15 stay as they were" in sync().said
    assert labels.read_bytes() == before
    queue.kept["t03"]["scores"]["good"]["ada"] = 1
    queue.kept["t04"]["scores"] = {}
    del queue.kept["t05"]
    queue.found -= {"t05", "t07"}  # the latter is only not among what a filter finds
    told = sync().said
    assert "0 rows are new, 1 changed" in told
    assert "so these rows are gone: t04, t05" in " ".join(told.split())
    rows = [json.loads(line) for line in labels.read_text().splitlines()]
    assert [row["id"] for row in rows if row["id"] in ("t04", "t05", "t07")] == ["t07"]
    assert [row["scores"] for row in rows if row["id"] == "t03"] == [
        {"good": {"ada": 1, "ben": 4}}
    ]


def test_removed_rows_are_kept_and_get_their_columns_back(
    queue: Traces, sync: Any, tmp_path: Path
) -> None:
    labels, removed = tmp_path / "labels.jsonl", tmp_path / "labels.removed.jsonl"
    sync()
    rows = [json.loads(line) for line in labels.read_text().splitlines()]
    rows[0]["note"] = "written by hand"
    own = '{"id": "own", "output": "a row of mine", "scores": {"good": 3}}\n'
    labels.write_text(own + "".join(f"{json.dumps(row)}\n" for row in rows))
    labels.chmod(0o600)
    first = rows[0]["id"]
    kept, queue.kept = queue.kept, {}
    told = sync("--dry-run", "--json").told
    assert (len(told["withdrawn"]), removed.exists()) == (15, False)
    told = " ".join(sync().said.split())
    assert "15 of 15 rows of this queue; " in told
    assert "labels.removed.jsonl keeps them as they were" in told
    assert labels.read_text() == own
    before = [json.loads(line) for line in removed.read_text().splitlines()]
    assert {row["id"]: row for row in before} == {row["id"]: row for row in rows}
    queue.kept = kept
    queue.kept[first]["scores"] = {"good": {"cyd": 2}}
    sync()
    after = {row["id"]: row for row in map(json.loads, labels.read_text().splitlines())}
    assert (len(after), after[first]["note"]) == (16, "written by hand")
    assert after[first]["scores"] == {"good": {"cyd": 2}}
    assert labels.stat().st_mode & 0o777 == 0o600


class Incomplete(Server):
    """Langfuse of 30 rated traces, of which one path answers otherwise. gone: trace that was deleted."""

    def __init__(self, older: bool) -> None:
        self.older, self.broken, self.answer = older, "", Say()
        self.gone: Say | None = None
        super().__init__(self.behave)

    def behave(self, number: int, body: dict[str, Any]) -> Say:
        url = urlsplit(self.headers[-1].split(" ")[1])
        path, asked = url.path, dict(parse_qsl(url.query))
        if self.broken and self.broken in path:
            return self.answer
        names = [f"t{n}" for n in range(30) if self.gone is None or n]
        if path.endswith("/t0") and self.gone is not None:
            return self.gone
        data: Any = {"data": [{"name": "p"}]}
        if "scores" in path:
            made = {"name": "good", "value": 3, "dataType": "NUMERIC"}
            made |= {"source": "ANNOTATION", "authorUserId": "ana"}
            people = asked["source"] == "ANNOTATION"
            data = {"data": [made | {"traceId": one} for one in names if people]}
        elif "observations" in path:
            if self.older:
                return Say(404, b'{"message": "Not Found"}')
            wanted = asked.get("traceId")
            shown = [one for one in names if wanted in (None, one)]
            data = {"data": [self.trace(one) | {"traceId": one} for one in shown]}
        elif path.endswith("traces"):
            data = {"data": [self.trace(one) for one in names]}
        elif "traces/" in path:
            data = self.trace(path.rpartition("/")[2])
        return Say(body=json.dumps(data).encode())

    @staticmethod
    def trace(name: str) -> dict[str, Any]:
        return {"id": name, "input": f"Q {name}", "output": f"A {name} at length"}


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        Say(404, b"404 page not found"),
        Say(404, b'{"message": "no Route matched"}'),
        Say(501),
        Say(body=b"{}"),
        Say(body=b'{"data": null}'),
        Say(500),
    ],
)
def test_a_list_that_does_not_answer_withdraws_nothing(
    older: bool,
    answer: Say,
    cli: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Incomplete(older)
    monkeypatch.setenv("LANGFUSE_HOST", made.base.removesuffix("/v1"))
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf")
    labels = tmp_path / "labels.jsonl"
    queue = ("sync", "langfuse", "p", "-o", labels)
    assert len(cli(*queue, "--json").told["added"]) == 30
    before = labels.read_bytes()
    made.answer = answer
    for made.broken in ("scores", "traces" if older else "observations"):
        result = cli(*queue)
        assert labels.read_bytes() == before, made.broken
        # Without observations it is read as an older server is, by traces.
        by_traces = made.broken == "observations" and answer.status in (404, 501)
        assert result.code == (0 if by_traces else 2)
    assert [path.name for path in tmp_path.glob("*.removed*")] == []
    made.broken = ""
    made.gone = Say(404, b"<html>not found</html>")  # from before the tool
    if older:
        cli(*queue).refused("no row was removed")
        assert labels.read_bytes() == before
    made.gone = Say(404, b'{"error": "LangfuseNotFoundError"}')
    assert cli(*queue, "--json").told["withdrawn"] == ["t0"]
    made.close()


def test_verdicts_are_given_once_and_compared(
    queue: Traces, sync: Any, judge_file: Path, server: Any, fake: Any
) -> None:
    judged = ("--judge", judge_file, "--api-base", server.base, "--json")
    sensible = fake.judging(
        lambda ask: int(ask.mark[1:]) % 5 * 25 if ask.mark != "r012" else 0
    )
    server.answer = lambda ask: (
        "Not a chance." if ask.step == "score" and ask.mark == "r006" else sensible(ask)
    )
    first = sync(*judged, "--limit", 9)
    assert (first.code, first.json["judged"]["scored"], [*queue.kept][8]) == (
        0,
        9,
        "t09",
    )
    done = sync(*judged)
    told = done.json["judged"]
    assert (done.code, told["scored"], [one["id"] for one in told["failed"]]) == (
        1,
        8,
        ["t06"],
    )
    assert (told["aspect"], told["since"]["n"], told["all"]["n"]) == ("good", 0, 15)
    assert told["all"]["low"] < told["all"]["value"] < told["all"]["high"]
    queue.kept["t12"]["scores"] = {"good": {"ada": 5}}
    again = sync(*judged).json["judged"]
    assert (again["scored"], again["since"]["n"], again["since"]["value"]) == (
        0,
        1,
        None,
    )
    worst = again["differ"][0]
    assert (worst["id"], worst["people"], worst["judge"], worst["seen"]) == (
        "t12",
        5,
        0,
        False,
    )
    sync(*judged, "--human", "nice").refused("there is no such feedback; there is good")


def test_what_cannot_be_synced_is_refused(sync: Any, cli: Any, tmp_path: Path) -> None:
    sync().refused("no package offers 'mine' for judgesmith.queues")
    cli("sync", "mlflow", "agent", "-o", tmp_path / "labels.csv").refused(
        "labels are written as .jsonl"
    )
    (tmp_path / "labels.jsonl").write_text('{"queue": "mine: agent"}\n')
    sync().refused("line 1: the row has no id")
    sync("--limit", 3).refused("--human and --limit are for --judge")


# -- MLflow itself ----------------------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path, health: str, *command: str, **settings: str) -> Iterator[str]:
    """A tool's server on loopback, whose command and settings have PORT for a free port: its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", *(part.replace("PORT", port) for part in command)],
        cwd=folder,
        start_new_session=True,
        env=os.environ
        | {name: value.replace("PORT", port) for name, value in settings.items()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + HANG
        while time.monotonic() < end and process.poll() is None:
            with (
                suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{health}", timeout=5),
            ):
                break
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the workers of its own
        process.wait(HANG)


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """MLflow, with a server of its own on loopback."""
    made = pytest.importorskip("mlflow", minversion="3.10")
    pytest.importorskip("mlflow.server.fastapi_app")  # the client alone does not serve
    serve = (
        "--host",
        "127.0.0.1",
        "--port",
        "PORT",
        "--workers",
        "1",
        "--backend-store-uri",
        "sqlite:///m.db",
    )
    settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with served(tmp_path, "health", "mlflow", "server", *serve, **settings) as base:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", base)
        yield made


@needs_browser
@pytest.mark.slow
def test_from_thumbs_in_mlflow_to_a_judge_and_back(
    mlflow: Any,
    browser: Browser,
    cli: Any,
    server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
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
    assert "48 traces; feedback of 2 people: fluent (36)" in said[0]
    assert "48 traces had no verdict" in said[2]
    assert "48 verdicts logged as 'fluent', 0 without a score" in said[3]
    assert "12 rows are new, 1 changed, 34 stay" in said[4]
    assert "so these rows are gone: tr-" in said[4]
    assert re.search(r"since the last sync \(n=1[23]\): accuracy \d\.\d\d \[", said[4])
    client = mlflow.MlflowClient()
    place = client.get_experiment_by_name("support agent").experiment_id
    traces = client.search_traces(locations=[place])
    made, people = js.load("judge.json"), {}
    for trace in traces:
        people[len(trace.info.assessments)] = trace.info.trace_id
        (one,) = [
            a for a in trace.info.assessments if a.source.source_type == "LLM_JUDGE"
        ]
        assert (one.name, one.metadata["judge"], one.source.source_id) == (
            "fluent",
            fingerprint(made),
            made.lm.name,
        )
        assert one.metadata["agreement"] == made.provenance["heldout"]["signature"]
        assert one.metadata["interval"]
    shown = f"#/experiments/{place}/traces?selectedEvaluationId={people[3]}"
    tab = browser.tab(f"{os.environ['MLFLOW_TRACKING_URI']}/{shown}")
    tab.look(width=1500)
    button = "[...document.querySelectorAll('button')].find(b => /^Assess/.test(b.innerText))"
    tab.until(f"!!{button}")
    tab.js(f"{button}.click()")
    tab.until(
        "/Feedback \\(3\\)\\s+Add feedback\\s+fluent/.test(document.body.innerText)"
    )  # two people and the judge


# -- Tools that are reached over HTTP ---------------------------------------------------------------------------------

IDS = {f"{n:016x}": f"Summary r{n:03d} of it:{' ha' * n}." for n in range(1, 13)}
SHAPES = cases(__file__)


def shaped(shape: Any, name: str, **words: str) -> Any:
    text = json.dumps(shape).replace("ID", name).replace("TEXT", IDS[name])
    return json.loads(
        text.replace("WHO", words.get("who", "")).replace("KIND", words.get("kind", ""))
    )


class Phoenix:
    """A project of a real server: for each answer a span at the root and another below it. All have one user's key."""

    def __init__(self, base: str) -> None:
        key = {"Authorization": f"Bearer {os.environ['PHOENIX_API_KEY']}"}
        self.http = httpx.Client(base_url=f"{base}/v1/", timeout=HANG, headers=key)
        self.path = f"projects/{self.http.post('projects', json={'name': 'agent/1'}).json()['data']['id']}"
        spans = [
            span for name in IDS for span in shaped(SHAPES["phoenix"]["spans"], name)
        ]
        self.http.post(f"{self.path}/spans", json={"data": spans}).raise_for_status()

    def say(self, name: str, who: str, good: bool) -> None:
        made = shaped(
            SHAPES["phoenix"]["annotation"],
            name,
            who=who,
            kind="CODE" if who == "code" else "HUMAN",
        )
        made["result"]["score"] = int(good)
        end = time.monotonic() + HANG
        while self.http.post(
            "span_annotations?sync=true", json={"data": [made]}
        ).is_error:
            assert (
                time.monotonic() < end
            )  # spans are stored a while after they were sent
            time.sleep(0.1)

    def given(self) -> list[dict[str, Any]]:
        found = self.http.get(
            f"{self.path}/span_annotations", params={"span_ids": [*IDS], "limit": 1000}
        ).json()["data"]
        return [
            one | {"of": one["span_id"], **one["result"]}
            for one in found
            if one["annotator_kind"] == "LLM"
        ]

    def withdraw(self, who: str) -> None:
        asked = {"identifier": who, "delete_all": True}
        self.http.delete(
            f"{self.path}/span_annotations", params=asked
        ).raise_for_status()


class Langfuse:
    """Its interface in memory, which now and then asks for patience."""

    def __init__(self, shapes: dict[str, Any]) -> None:
        self.shapes, self.scores, self.server = (
            shapes,
            list[dict[str, Any]](),
            Server(self.behave),
        )

    def behave(self, number: int, body: dict[str, Any]) -> Say:
        assert (
            "Authorization: Basic cGstbGY6c2stbGY=" in self.server.headers[-1]
        )  # pk-lf:sk-lf
        if number % 7 == 2:
            return Say(429, headers={"Retry-After": "3"})
        if body:
            made = {
                "source": "API",
                "subject": {"kind": "trace", "id": body["traceId"]},
            }
            self.scores = [one for one in self.scores if one["id"] != body["id"]] + [
                body | made
            ]
        url, traces = (
            urlsplit(self.server.headers[-1].split(" ")[1]),
            {n: shaped(self.shapes["trace"], n) for n in IDS},
        )
        path, asked = url.path.removeprefix("/api/public/"), dict(parse_qsl(url.query))
        answers = {
            "projects": {"data": [{"id": "p1", "name": "agent/1"}]},
            "scores": {"id": "s1"},
        }
        answers |= {f"traces/{name}": trace for name, trace in traces.items()}
        if path in self.shapes["paths"]:
            found = [one for one in self.scores if one["source"] == asked.get("source")]
            if "scores" not in path:
                found = [
                    trace
                    for name, trace in traces.items()
                    if asked.get("traceId") in (None, name)
                ]
            size, page = (
                int(asked["limit"]),
                int(asked.get("page") or asked.get("cursor") or 1),
            )
            more = (
                {"cursor": str(page + 1)}
                if "v2/observations" in self.shapes["paths"]
                else {"page": page}
            )
            meta = (
                more | {"totalPages": -(-len(found) // size)}
                if page * size < len(found)
                else {}
            )
            answers[path] = {
                "data": found[::-1][(page - 1) * size : page * size],
                "meta": meta,
            }
        return (
            Say(body=json.dumps(answers[path]).encode())
            if path in answers
            else Say(501)
        )

    def say(self, name: str, who: str, good: bool) -> None:
        made = shaped(
            self.shapes["score"],
            name,
            who=who,
            kind="API" if who == "code" else "ANNOTATION",
        )
        made |= {"value": type(made["value"])(good)} | (
            {"stringValue": str(good)} if "stringValue" in made else {}
        )
        self.scores.append(made)

    def given(self) -> list[dict[str, Any]]:
        return [
            one | {"of": one["traceId"], "explanation": one["comment"]}
            for one in self.scores
            if one["metadata"]
        ]

    def withdraw(self, who: str) -> None:
        self.scores = [one for one in self.scores if one.get("authorUserId") != who]


@pytest.fixture(
    params=[
        pytest.param("phoenix", marks=pytest.mark.slow),
        "langfuse",
        "older langfuse",
    ]
)
def tool(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    for part, name, size in (
        (langfuse, "PAGE", 5),
        (phoenix, "SPANS", 5),
        (phoenix, "ANNOTATIONS", 3),
    ):
        monkeypatch.setattr(part, name, size)
    if request.param == "phoenix":
        pytest.importorskip("phoenix.server")
        settings = SHAPES["phoenix"]["settings"] | {
            "PHOENIX_WORKING_DIR": str(tmp_path)
        }
        with served(
            tmp_path, "healthz", "phoenix.server.main", "serve", **settings
        ) as base:
            monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", f"{base}/v1/traces")
            monkeypatch.setenv("PHOENIX_API_KEY", settings["PHOENIX_ADMIN_SECRET"])
            yield Phoenix(base)
    else:
        made = Langfuse(SHAPES[request.param])
        for name, value in (
            ("HOST", made.server.base[:-3]),
            ("PUBLIC_KEY", "pk-lf"),
            ("SECRET_KEY", "sk-lf"),
        ):
            monkeypatch.setenv(f"LANGFUSE_{name}", value)
        yield made
        made.server.close()


def test_people_and_verdicts_of_a_tool(
    tool: Any,
    cli: Any,
    judge_file: Path,
    server: Any,
    fake: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept, labels, ids = list[float](), tmp_path / "labels.jsonl", [*IDS]
    monkeypatch.setattr(interface, "time", SimpleNamespace(sleep=slept.append))
    queue = ("sync", type(tool).__name__.lower(), "agent/1", "-o", labels)
    for n, name in enumerate(ids[:9]):
        tool.say(name, "ada", n % 2 == 0)
        tool.say(name, "ben", n % 3 == 0)
    tool.say(ids[9], "dan", True)
    tool.say(ids[11], "code", True)
    told, row = (
        cli(*queue, "--json").told,
        json.loads(labels.read_text().splitlines()[0]),
    )
    assert (told["traces"], told["raters"], told["aspects"]) == (12, 3, {"good": 10})
    assert (row["id"], row["source"], row["output"], row["group"]) == (
        ids[0],
        "Is it open?",
        IDS[ids[0]],
        "s1",
    )
    assert [*row["scores"]["good"]] == ["ada", "ben"]
    assert row["why"]["good"] == ["It drags."] * 2
    judge_file.write_text(
        json.dumps(json.loads(judge_file.read_text()) | SHAPES["decides"])
    )
    judged = (*queue, "--judge", judge_file, "--api-base", server.base, "--json")
    server.answer = fake.judging(lambda ask: int(ask.mark[1:]) * 8)
    found = cli(*judged)
    assert (
        found.code,
        found.told["judged"]["scored"],
        found.told["judged"]["all"]["n"],
    ) == (0, 12, 10)
    given = {one["of"]: one for one in tool.given()}
    assert len(given) == len(tool.given()) == 12
    assert given[ids[0]]["name"] == "good"
    about, mark = given[ids[11]]["metadata"], fingerprint(js.load(judge_file))
    assert (about["judge"], about["score"], about["passed"], about["scale"]) == (
        mark,
        96,
        True,
        "0..100",
    )
    assert about["interval"] == "88.5 to 100 (90%)"
    assert given[ids[11]]["explanation"] == "It says r012."
    assert given[ids[0]].get("label", "bad") == "bad"
    assert given[ids[0]].get("value", 0) == 0
    tool.withdraw("dan")
    tool.say(ids[10], "cyd", True)
    again = cli(*judged).told
    assert (again["added"], again["withdrawn"], again["changed"]) == (
        [ids[10]],
        [ids[9]],
        [],
    )
    assert (again["judged"]["scored"], again["judged"]["since"]["n"]) == (0, 1)
    assert set(slept) <= {3.0}
    assert bool(slept) is isinstance(tool, Langfuse)
    cli(*queue, "--filter", "nam=agent").refused("give NAME=VALUE", " name, ")
    cli(*queue[:2], "another", *queue[3:]).refused("'agent/1'")


# -- What people said, and where -----------------------------------------------------------------------------------


def compiled_of(judge_file: Path, aspect: str, **more: Any) -> None:
    """Let the saved judge be one that was compiled from ratings of that name."""
    saved = json.loads(judge_file.read_text())
    labels = (saved["provenance"].get("labels") or {}) | {"aspect": aspect}
    judge_file.write_text(
        json.dumps(
            saved | {"provenance": saved["provenance"] | {"labels": labels}} | more
        )
    )


@pytest.mark.parametrize(
    ("aspect", "name"),
    [
        ("quality", "quality"),
        ("rating", "rating"),
        ("good", "good"),
        ("overall", "good"),
    ],
)
def test_verdicts_stand_under_the_name_of_the_ratings(
    queue: Traces,
    sync: Any,
    judge_file: Path,
    server: Any,
    fake: Any,
    aspect: str,
    name: str,
) -> None:
    for one in queue.kept.values():
        one["scores"] = {
            aspect if aspect != "overall" else "good": by
            for by in one["scores"].values()
        }
    server.answer = fake.judging(lambda ask: int(ask.mark[1:]) % 5 * 25)
    compiled_of(judge_file, aspect)
    told = sync("--judge", judge_file, "--api-base", server.base, "--json").told[
        "judged"
    ]
    assert (told["name"], told["aspect"]) == (name, name)
    assert told["all"]["n"] == 15
    queue.kept = {key: one | {"scores": {}} for key, one in queue.kept.items()}
    told = sync("--judge", judge_file, "--api-base", server.base, "--json").told[
        "judged"
    ]
    assert told["name"] == (
        aspect if aspect != "overall" else "active-critic"
    )  # before anybody has rated


def test_ratings_without_an_output_are_counted_and_not_asked_for_again(
    queue: Traces,
    sync: Any,
    judge_file: Path,
    server: Any,
    fake: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, whole = list[str](), queue.whole
    monkeypatch.setattr(queue, "whole", lambda name: asked.append(name) or whole(name))
    heads = queue.heads
    queue.kept["t02"]["output"] = queue.kept["t06"]["output"] = (
        ""  # with ratings, and without
    )
    monkeypatch.setattr(
        queue,
        "heads",
        lambda: (
            one | {"output": queue.kept[one["id"]]["output"] and None}
            for one in heads()
        ),
    )
    first = sync("--json")
    assert (len(first.json["added"]), first.json["without_output"]) == (
        14,
        ["t02"],
    )
    assert "t02" not in asked
    assert "1 traces with feedback have no output, so they are no labels" in sync().said
    server.answer = fake.judging(lambda ask: 50)
    told = sync("--judge", judge_file, "--api-base", server.base, "--json").told[
        "judged"
    ]
    assert (told["waiting"], told["scored"], told["failed"]) == (16, 16, [])
    assert not {
        "t02",
        "t06",
    } & set(asked)


def test_only_the_judge_knows_which_of_two_words_is_better(
    queue: Traces, sync: Any, judge_file: Path, server: Any, fake: Any
) -> None:
    for n, one in enumerate(queue.kept.values()):
        one["scores"] = {"hallucination": {"ada": "yes" if n % 2 else "no"}}
        one["output"] = f"Summary r{90 - n % 2 * 80:03d} of {one['id']}{' ha' * n}."
    server.answer = fake.judging(lambda ask: int(ask.mark[1:]))
    decides = {"decision": {"names": ["yes", "no"], "cuts": [50.0], "binary": True}}
    compiled_of(judge_file, "hallucination", **decides)
    told = sync("--judge", judge_file, "--api-base", server.base, "--json").told[
        "judged"
    ]
    assert (told["aspect"], told["all"]["n"], told["all"]["value"]) == (
        "hallucination",
        18,
        1.0,
    )


class Replayed:
    """A server of Phoenix that answers as version 20.26.1 did, and as others do."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.recorded, self.answers = recorded, dict[str, Any]()
        self.server = Server(self.behave)

    def behave(self, number: int, body: dict[str, Any]) -> Say:
        path = urlsplit(self.server.headers[-1].split(" ")[1]).path.removeprefix("/v1/")
        known = {
            "projects": {"data": [{"name": "shapes", "id": "p1"}], "next_cursor": None}
        } | self.answers
        answer = known.get(path, self.recorded.get(path.rpartition("/")[2]))
        if isinstance(answer, Say):
            return answer
        return Say(404) if answer is None else Say(body=json.dumps(answer).encode())


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replayed]:
    path = Path(__file__).parents[2] / "datasets" / "recorded" / "phoenix.json"
    made = Replayed(json.loads(path.read_text(encoding="utf-8")))
    monkeypatch.setenv("PHOENIX_ENDPOINT", made.server.base.removesuffix("/v1"))
    monkeypatch.delenv("PHOENIX_API_KEY", raising=False)
    yield made
    made.server.close()


def test_annotations_of_whole_traces_are_of_their_root(
    replayed: Replayed, cli: Any, tmp_path: Path
) -> None:
    queue = ("sync", "phoenix", "shapes", "-o", tmp_path / "labels.jsonl", "--json")
    told = cli(*queue).told
    assert (told["raters"], told["aspects"], told["without_output"]) == (
        3,
        {"good": 2, "useful": 2},
        [f"{3:016x}"],
    )
    rows = [
        json.loads(line)
        for line in (tmp_path / "labels.jsonl").read_text().splitlines()
    ]
    assert [row["scores"] for row in rows] == [
        {"good": {"ada": n, "ben": 1}, "useful": {"cyd": 1}} for n in range(2)
    ]
    before = (tmp_path / "labels.jsonl").read_bytes()
    del replayed.recorded["trace_annotations"]  # for now, or in an older server
    cli(*queue).refused("no row was removed", "p1/trace_annotations (HTTP 404)")
    assert (tmp_path / "labels.jsonl").read_bytes() == before


def test_the_last_annotation_of_a_person_stands(
    replayed: Replayed, cli: Any, tmp_path: Path
) -> None:
    again = [
        one
        for one in replayed.recorded["span_annotations"]["data"]
        if one["identifier"] == "ada"
    ]
    changed = {"name": "good", "created_at": "2026-12-01T00:00:00+00:00"}
    for n, one in enumerate(again):
        new = one | changed | {"result": one["result"] | {"score": 6.0 + n}}
        replayed.recorded["span_annotations"]["data"].insert(0, new)
    told = cli(
        "sync", "phoenix", "shapes", "-o", tmp_path / "labels.jsonl", "--json"
    ).told
    read = js.read_labels(
        tmp_path / "labels.jsonl", aspect="good", scale=(0, 9), min_rows=2
    )
    assert told["raters"] == 3
    assert read.account is not None
    assert read.account.raters == 2
    assert [row.ratings["good"] for row in read.rows] == [(8, 1), (7, 1)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Say(404), "no Phoenix answers at http://127"),
        (Say(body=b'{"projects": []}'), "no Phoenix answers at http://127"),
        (Say(body=b'{"data": ["a"]}'), "no Phoenix answers at http://127"),
        (Say(body=b"<html></html>"), "HTTP 200 without JSON: another server"),
    ],
)
def test_another_server_is_said(
    answer: Say, said: str, replayed: Replayed, cli: Any, tmp_path: Path
) -> None:
    replayed.answers["projects"] = answer
    cli("sync", "phoenix", "shapes", "-o", tmp_path / "labels.jsonl").refused(
        said, "PHOENIX_COLLECTOR_ENDPOINT"
    )
