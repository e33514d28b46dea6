"""The comparison with other projects: a fake peer in this environment, a fake model on loopback, no network."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest
from misbehaving_server import COMPLETION, Say, Server

from judgesmith.datasets.records import Labels, Row
from judgesmith.errors import OptionError
from judgesmith.experiments.peers import environments, peer_dspy, peer_mlflow, run, worker
from judgesmith.experiments.peers.environments import PEERS, Peer, PeerFailed, interpreter
from judgesmith.experiments.peers.proxy import USED_UP, CountingProxy, Upstream
from judgesmith.optimizers.examples import examples_of

#: Asks the model once for a search and once for each row; a row's score is the length of its output.
PEER = """
import json, urllib.request

def ask(job):
    request = urllib.request.Request(
        job["base"] + "/chat/completions",
        data=json.dumps({"model": "x", "messages": [{"role": "user", "content": "hello"}]}).encode(),
        headers={"Authorization": "Bearer " + job["key"], "Content-Type": "application/json"},
    )
    return json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20))

def compile_judge(job):
    ask(job)
    job["settings"] = {"rows": len(job["train"])}
    def score(row):
        ask(job)
        if "unreadable" in row["output"]:
            raise ValueError("no number")
        return len(row["output"])
    return score
"""


@pytest.fixture
def model() -> Iterator[Server]:
    server = Server(lambda number, body: Say())
    yield server
    server.close()


@pytest.fixture
def proxied(model: Server) -> Iterator[CountingProxy]:
    with CountingProxy(
        Upstream(model.base, "the-model", "upstream-key"), max_calls=3, judging_calls=2, longest_answer=50, timeout=20
    ) as proxy:
        yield proxy


def ask(proxy: CountingProxy, path: str = "/chat/completions", key: str | None = None, **more: Any) -> httpx.Response:
    body = {"model": "whatever", "messages": [{"role": "user", "content": "Hello"}], **more}
    headers = {"Authorization": f"Bearer {proxy.key if key is None else key}"}
    with httpx.Client(trust_env=False, timeout=20) as client:
        return client.post(proxy.base + path, json=body, headers=headers)


# --- the proxy --------------------------------------------------------------------------------------------------------


def test_calls_and_tokens_count_by_phase_and_a_used_up_search_is_refused(proxied: CountingProxy, model: Server) -> None:
    answers = [ask(proxied) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 403, 403]
    assert len(model.bodies) == 3
    # Each answer of the server has 11 tokens in, 3 out.
    assert asdict(proxied.counted["search"]) == {
        "calls": 3, "failed": 0, "refused": 2, "prompt_tokens": 33, "completion_tokens": 9, "unknown": 0,
    }  # fmt: skip
    message = answers[-1].json()["error"]["message"]
    assert message == USED_UP  # no word that makes a client wait and ask again
    assert not any(word in message.lower() for word in ("rate", "quota", "429", "limit", "too many", "retry"))
    assert ask(proxied, "/judging").status_code == 200  # judging has calls of its own
    assert [ask(proxied).status_code for _ in range(3)] == [200, 200, 403]
    assert (proxied.counted["search"].calls, proxied.counted["judging"].calls) == (3, 2)


def test_several_answers_are_as_many_calls(proxied: CountingProxy) -> None:
    assert [ask(proxied, n=n).status_code for n in (2, 2, 1, -1)] == [200, 403, 200, 400]  # 2 of 3 are used
    assert proxied.counted["search"].calls == 3


def test_a_model_is_asked_by_its_own_name_and_key_for_bounded_answers(proxied: CountingProxy, model: Server) -> None:
    ask(proxied)
    ask(proxied, max_completion_tokens=9)
    ask(proxied, max_tokens=4000, temperature=0.7)
    ask(proxied, "/judging")
    ask(proxied)  # judging is without chance where a peer leaves that open
    ask(proxied, temperature=0.5)
    assert [b["model"] for b in model.bodies] == ["the-model"] * 5
    assert [b["max_tokens"] for b in model.bodies] == [50, 9, 50, 50, 50]
    assert [b.get("temperature") for b in model.bodies] == [None, None, 0.7, 0.0, 0.5]
    assert all("max_completion_tokens" not in b for b in model.bodies)
    assert all("Bearer upstream-key" in head for head in model.headers)


def test_strangers_and_nonsense_reach_no_model(proxied: CountingProxy, model: Server) -> None:
    assert ask(proxied, key="other").status_code == 401
    assert ask(proxied, stream=True).status_code == 400
    assert ask(proxied, "/images").status_code == 404
    with httpx.Client(trust_env=False, timeout=20) as client:
        headers = {"Authorization": f"Bearer {proxied.key}"}
        for content in (b"", b"{", b"[1]", b"\xff\xfe"):
            answer = client.post(proxied.base + "/chat/completions", content=content, headers=headers)
            assert answer.status_code == 400
        assert client.get(proxied.base + "/models").json()["data"][0]["id"] == "judge-model"
    assert model.bodies == []
    assert proxied.counted["search"].calls == 0


@pytest.mark.parametrize(
    ("say", "status", "failed", "unknown"),
    [
        (Say(status=503), 400, 1, 0),  # heard once, not asked again by the peer's client
        (Say(status=404), 404, 1, 0), (Say(hang_up=True), 400, 1, 0), (Say(body=b"{}"), 200, 0, 1),
        (Say(body=b"no json"), 200, 0, 1), (Say(body=json.dumps({**COMPLETION, "usage": None}).encode()), 200, 0, 1),
    ],
)  # fmt: skip
def test_a_model_that_fails_is_counted_too(
    proxied: CountingProxy, model: Server, say: Say, status: int, failed: int, unknown: int
) -> None:
    model.behave = lambda *_: say
    assert ask(proxied).status_code == status
    counted = proxied.counted["search"]
    assert (counted.calls, counted.failed, counted.unknown) == (1, failed, unknown)


def test_embeddings_are_made_here_and_are_no_calls(proxied: CountingProxy, model: Server) -> None:
    answer = ask(proxied, "/embeddings", input=["the cat sat", "the cat ran", "rain"], dimensions=256).json()
    first, second, third = (entry["embedding"] for entry in answer["data"])
    assert len(first) == 256
    dot = [sum(a * b for a, b in zip(first, other, strict=True)) for other in (first, second, third)]
    assert dot[0] == pytest.approx(1.0)
    assert dot[1] > dot[2]  # two words of three are shared, or none
    assert model.bodies == []


# --- what a peer is given ---------------------------------------------------------------------------------------------


def labels(count: int, *, secret: float = 0.0) -> Labels:
    """Rows of two to a document; `secret` is added to each score."""
    rows = tuple(
        Row(
            id=f"r{n}", source=f"source {n // 2}", output="x" * (10 + n), context=None, reference=None, system=None,
            doc_id=f"d{n // 2}", group=f"d{n // 2}", scores={"meaning": 10.0 + n + secret},
        )
        for n in range(count)
    )  # fmt: skip
    return Labels(rows, "meaning", (0.0, 100.0))


def job_of(train: Labels, heldout: Labels, peer: Peer, folder: Path, base: str = "-", key: str = "-") -> dict[str, Any]:
    task = run.Task("meaning", examples_of(train), examples_of(heldout))
    return run.job_for(peer, task, max_calls=9, folder=folder, base=base, key=key)


def test_no_label_of_a_held_out_row_reaches_a_peer(tmp_path: Path) -> None:
    all_rows = labels(20)
    train, heldout = all_rows.subset(range(10)), all_rows.subset(range(10, 20))
    job = job_of(train, heldout, PEERS["dspy"], tmp_path)
    assert [sorted(row) for row in job["heldout"]] == [["input", "output"]] * 10
    assert [row["percent"] for row in job["train"]] == [10.0 + n for n in range(10)]
    # Other labels on the held-out rows, the same job byte for byte.
    other = labels(20, secret=31.5).subset(range(10, 20))
    assert json.dumps(job) == json.dumps(job_of(train, other, PEERS["dspy"], tmp_path))


def test_the_input_says_what_else_there_is_to_know() -> None:
    row = Row(id="a", source="S", output="O", context="C", reference="R", doc_id="d", group="d", scores={"m": 1.0})
    (example,) = examples_of(Labels((row,), "m", (0.0, 1.0)))
    assert run.given(example) == {"input": "S\n\nContext: C\n\nReference: R", "output": "O"}


def test_runners_need_nothing_of_judgesmith() -> None:
    """They run where it is not installed: no relative import, none of its name."""
    for file in {peer.file for peer in PEERS.values()} | {Path(worker.__file__)}:
        assert not re.search(r"from \.|(import|from) judgesmith", file.read_text(encoding="utf-8")), file.name


# --- one run ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def go(tmp_path: Path, model: Server) -> Callable[..., dict[str, Any]]:
    """go(code, …): one run of a peer with this code."""

    def start(code: str, *, max_calls: int = 9, timeout: float = 60.0, heldout: Labels | None = None) -> dict[str, Any]:
        file = tmp_path / "peer_fake.py"
        file.write_text(code)
        rows = labels(24)
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        return run.run_once(
            Peer(file, reported=("numpy", "no-such-package")), Path(sys.executable), Upstream(model.base, "m"),
            run.Task("meaning", examples_of(rows.subset(range(8))), examples_of(heldout or rows.subset(range(8, 20)))),
            limits=run.Limits(max_calls, timeout=timeout), folder=folder,
        )  # fmt: skip

    return start


def test_a_peer_s_scores_are_compared_with_people_here(go: Callable[..., dict[str, Any]]) -> None:
    record = go(PEER)
    # An output's length is its human score, in order and distance: r = rho = tau = 1.
    assert (record["status"], record["q"], record["n"], record["failed"]) == ("ok", 3.0, 12, 0)
    assert (record["search"]["calls"], record["judging"]["calls"], record["calls"]) == (1, 12, 13)
    assert record["tokens"] == 13 * (11 + 3)
    assert record["settings"] == {"rows": 8}
    assert record["versions"]["no-such-package"] == "not installed"
    assert record["versions"]["numpy"][0].isdigit()
    json.dumps(record, allow_nan=False)


def test_a_row_without_a_score_is_missing_and_not_zero(go: Callable[..., dict[str, Any]]) -> None:
    rows = list(labels(20).subset(range(8, 20)).rows)
    rows[3] = Row(id="u", output="unreadable", source="s", doc_id="u", group="u", scores={"meaning": 90.0})
    record = go(PEER, heldout=Labels(tuple(rows), "meaning", (0.0, 100.0)))
    assert (record["status"], record["n"], record["failed"]) == ("ok", 12, 1)
    assert record["scores"][3] is None
    assert record["failures"] == {"ValueError: no number": 1}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def compile_judge(job):\n    raise RuntimeError('no\\n way')", "RuntimeError: no way"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def compile_judge(job):\n    import os\n    os._exit(3)", "ended with code 3 and no result"),
        ("def compile_judge(job):\n    print('almost'); raise SystemExit(2)", "its last output was: almost"),
        ("def compile_judge(job):\n    return lambda row: float('nan')", "no held-out row has a score: ValueError"),
        ("def compile_judge(job):\n    return lambda row: 'good'", "no held-out row has a score: ValueError"),
        ("def compile_judge(job):\n    job['heldout'] = []\n    return len", "for each of the 12 held-out rows"),
    ],
)
def test_a_failed_peer_is_recorded_with_its_reason(go: Callable[..., dict[str, Any]], code: str, reason: str) -> None:
    record = go(code)
    assert record["status"] == "failed"
    assert reason in record["reason"]
    assert "q" not in record
    assert record["search"]["calls"] == 0


@pytest.mark.slow
def test_a_peer_that_hangs_is_ended_with_what_it_started(go: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    note = tmp_path / "child"
    code = f"""
import subprocess, sys, time, pathlib
def compile_judge(job):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path({str(note)!r}).write_text(str(child.pid))
    time.sleep(600)
"""
    record = go(code, timeout=8)
    assert (record["status"], record["reason"]) == ("failed", "not done after 8 seconds")
    end = time.monotonic() + 20
    state = ["ps", "-o", "stat=", "-p", note.read_text()]
    while subprocess.run(state, capture_output=True, text=True).stdout.strip()[:1] not in ("", "Z"):  # Z: a zombie
        assert time.monotonic() < end, "its child still runs"
        time.sleep(0.05)


def test_a_peer_sees_no_keys_of_this_machine(
    go: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "mine, too")
    seen = tmp_path / "seen"
    code = f"""
import json, os, pathlib
def compile_judge(job):
    pathlib.Path({str(seen)!r}).write_text(json.dumps(dict(os.environ)))
    return lambda row: len(row["output"])
"""
    assert go(code)["status"] == "ok"
    environment = json.loads(seen.read_text())
    assert "mine" not in json.dumps(environment)
    assert environment["DEEPEVAL_TELEMETRY_OPT_OUT"] == "YES"
    assert Path(environment["HOME"]).is_relative_to(tmp_path)


def test_two_runs_share_no_folder_and_what_is_kept_is_copied(tmp_path: Path) -> None:
    """A cache that a peer leaves in its folder must not answer for another run."""
    for _ in range(2):
        with run._folder(tmp_path / "kept", "dspy-8-0") as folder:
            assert list(folder.iterdir()) == []
            (folder / "cache").touch()
            (folder / "job.json").touch()
    assert [path.name for path in (tmp_path / "kept" / "dspy-8-0").iterdir()] == ["job.json"]
    with pytest.raises(OptionError, match="--api-base"):
        run.upstream_of("gpt-x", None)


# --- environments -----------------------------------------------------------------------------------------------------


def test_an_environment_is_made_again_when_its_versions_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def pretend(command: list[str]) -> None:
        ran.append(command)
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()

    monkeypatch.setattr(environments, "_run", pretend)
    old = Peer(Path("x.py"), "some", ("a==1", "b==2"))
    assert interpreter(old, tmp_path) == tmp_path / "some" / "bin" / "python"
    assert [c[-2:] for c in ran[1:]] == [["a==1", "b==2"]]
    interpreter(old, tmp_path)
    assert len(ran) == 2
    interpreter(Peer(Path("x.py"), "some", ("a==9",)), tmp_path)
    assert len(ran) == 4


def test_an_installation_that_fails_says_what_pip_said(tmp_path: Path) -> None:
    code = "import sys; print('WARNING: old'); print('ERROR: no such thing', file=sys.stderr); sys.exit(1)"
    with pytest.raises(PeerFailed, match=r"^does not install here: ERROR: no such thing$"):
        environments._run([sys.executable, "-c", code])


def test_every_foreign_peer_s_own_package_is_pinned() -> None:
    for name, peer in PEERS.items():
        assert peer.file.is_file(), name
        assert peer.environment is None or "==" in peer.requirements[0], name


# --- settings from the number of calls --------------------------------------------------------------------------------


def test_settings_by_hand() -> None:
    assert peer_mlflow.gepa_calls(420, 40) == 320  # 420 * 6 / 7 - 40
    assert peer_dspy.candidates_for(400, 40) == 7  # 10 looks at all rows, 3 of them without chance
    assert [peer_mlflow.level(p) for p in (0, 19.9, 20, 50, 99.9, 100)] == [1, 1, 2, 3, 5, 5]
