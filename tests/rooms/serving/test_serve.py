"""`judgesmith serve` in a process of its own: verdicts, bounds, keys, metrics, and an end that loses nothing."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from patience import HANG

import judgesmith as js

KEY = "a-key-of-sixteen-characters"


#: The server, which says at its end how many prompts DSPy has kept.
COUNTING = """
import atexit
from dspy.clients.base_lm import GLOBAL_HISTORY
from judgesmith.cli.main import main
atexit.register(lambda: print("kept:", len(GLOBAL_HISTORY), flush=True))
main()
"""


def test_a_verdict_has_score_usage_and_the_rows_id(running: Any, server: Any) -> None:
    at = running()
    assert at.http.get("/healthz").json()["status"] == "ok"
    verdict = at.score("r042", id="mine").json()
    assert (verdict["score"], verdict["failure"], verdict["id"]) == (42, None, "mine")
    assert verdict["usage"]["calls"] == 1
    (judge,) = at.http.get("/v1/judges").json()
    assert (judge["name"], judge["fingerprint"]) == ("judge", verdict["judge"])
    named = at.score("r001", judge=f"judge@{verdict['judge']}").json()
    assert named["score"] == 1


def test_the_same_row_costs_no_second_call(running: Any, server: Any) -> None:
    at = running()
    at.score("r042")
    assert at.score("r042").json()["usage"] == {
        "calls": 0,
        "cached": 1,
        "prompt_tokens": 0,
        "completion_tokens": 0,
    }


def test_a_failed_row_has_a_reason_and_no_score(running: Any, server: Any) -> None:
    answer = running().score("  ")
    assert answer.status_code == 200
    assert answer.json()["score"] is None
    assert answer.json()["failure"] == "the output is empty"


def test_each_wrong_request_has_its_status_and_a_message(
    running: Any, server: Any
) -> None:
    at = running()
    many = {"rows": [{"output": "r001"}] * 4097}
    text = {"content": b"{}", "headers": {"Content-Type": "text/plain"}}
    refused = [
        (404, at.score("r001", judge="other")),
        (409, at.score("r001", judge="judge@0123")),
        (413, at.score("r001 " * 2_000_000)),
        (413, at.http.post("/v1/score/many", json=many)),
        (422, at.http.post("/v1/score", json={"source": "s"})),
        (415, at.http.post("/v1/score", **text)),
    ]
    for status, answer in refused:
        assert answer.status_code == status
        assert answer.json()["error"]["message"]


def test_many_rows_are_answered_in_lines(running: Any, server: Any) -> None:
    at = running()
    rows = [{"output": f"r{n:03d}", "id": n} for n in (7, 3, 5)]
    many = at.http.post("/v1/score/many", json={"rows": rows, "judge": "judge"})
    verdicts = [json.loads(line) for line in many.text.splitlines()]
    assert [(v["index"], v["id"], v["score"]) for v in verdicts] == [
        (0, 7, 7),
        (1, 3, 3),
        (2, 5, 5),
    ]
    wrong = at.http.post("/v1/score/many", json={"rows": [{"source": "s"}]})
    assert wrong.json()["error"]["code"] == "invalid"


def test_metrics_and_the_log_count_rows_without_their_texts(
    running: Any, server: Any
) -> None:
    at = running(code=COUNTING)
    for output in ("r042", "r042", "r001", "  "):
        at.score(output)
    metrics = at.http.get("/metrics").text
    assert 'judgesmith_rows_total{judge="judge",outcome="scored"} 3.0' in metrics
    assert 'judgesmith_rows_total{judge="judge",outcome="failed"} 1.0' in metrics
    assert 'judgesmith_cache_hits_total{judge="judge"} 1.0' in metrics
    assert "judgesmith_queue_rows 0.0" in metrics
    assert "/v1/score" in at.http.get("/openapi.json").json()["paths"]
    at.process.send_signal(signal.SIGTERM)
    assert at.process.wait(30) == 0
    logged = [json.loads(line) for line in at.lines if line.startswith("{")]
    scored = next(record for record in logged if record["route"] == "/v1/score")
    assert {"route", "status", "ms", "judge"} <= set(scored)
    assert [line for line in at.lines if "r042" in line] == []
    assert at.process.stdout.read() == "kept: 0\n"


def test_an_explanation_is_written_on_request(running: Any, judge_file: Path) -> None:
    js.Judge(js.DirectScorer("fluency", reading="said"), lm="openai/fake").save(
        judge_file
    )
    at = running()
    said, explained = at.score("r042").json(), at.score("r042", explain=True).json()
    assert (said["explanation"], explained["score"], explained["usage"]["calls"]) == (
        "",
        said["score"],
        1,
    )
    assert (
        explained["explanation"]
        == "Written by openai/fake after the score: It is plain and short."
    )
    assert at.score("r042", explain="why").status_code == 422


def test_a_key_of_the_environment_is_asked_for(
    running: Any, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    monkeypatch.setenv("JUDGESMITH_API_KEY", f"another-key-of-many-characters,{KEY}")
    at = running()
    assert at.score("r001").status_code == 401
    assert at.http.get("/metrics").status_code == 401
    for key, status in ((KEY, 200), (KEY + "x", 401)):
        headers = {"Authorization": f"Bearer {key}"}
        answer = at.http.post(
            "/v1/score", json={"source": "s", "output": "r001"}, headers=headers
        )
        assert answer.status_code == status
    monkeypatch.setenv("JUDGESMITH_API_KEY", "short")
    cli("serve", "judge.json", "--port", 0).refused("take at least 16")


def test_too_many_rows_are_told_when_to_come_again_and_a_stop_finishes_what_was_accepted(
    running: Any, server: Any, held: Any, until: Any
) -> None:
    at = running("--queue", 4, "--concurrency", 8)
    go = held(0)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(at.score, f"r{n:03d}") for n in range(4)]
        until(lambda: len(server.judged) == 4)
        busy = at.score("r009")
        assert (busy.status_code, busy.json()["error"]["code"]) == (429, "busy")
        assert int(busy.headers["Retry-After"]) >= 1
        at.process.send_signal(signal.SIGTERM)
        go.set()
        assert [w.result().json()["score"] for w in waiting] == [0, 1, 2, 3]
    assert at.process.wait(30) == 0


def test_a_client_that_hangs_up_makes_room_for_others(
    running: Any, held: Any, until: Any
) -> None:
    held(20)
    at = running("--queue", 1)
    row = {"source": "s", "output": "r020"}
    with pytest.raises(httpx.ReadTimeout):
        at.http.post("/v1/score", json=row, timeout=0.5)
    until(lambda: at.score("r001").status_code == 200)


def test_what_is_not_finished_in_time_is_handed_back(
    running: Any, server: Any, held: Any, until: Any
) -> None:
    at = running("--grace", 0.2)
    go = held(0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(at.score, "r001")
        until(lambda: len(server.judged) == 1)
        at.process.send_signal(signal.SIGTERM)
        answer = waiting.result()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
    assert at.process.wait(30) == 0
    go.set()


def test_a_server_that_cannot_start_says_why(cli: Any, tmp_path: Path) -> None:
    cli("serve", tmp_path / "absent.json", "--port", 0).refused("absent.json")


def test_a_model_that_is_down_is_no_low_score(running: Any) -> None:
    at = running(base="http://127.0.0.1:9/v1", ready=False)
    assert at.http.get("/healthz").status_code == 200
    assert at.http.get("/readyz").status_code == 503
    answer = at.score("r001")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
    assert "Retry-After" in answer.headers


def workers_of(pid: int) -> list[psutil.Process]:
    """The processes that a server has spawned."""
    found = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            found += [child] if "spawn_main" in " ".join(child.cmdline()) else []
    return found


def test_several_processes_share_a_port_and_their_limits_and_count_together(
    running: Any, server: Any, until: Any
) -> None:
    server_ = running("--workers", 2, "--queue", 8, "--concurrency", 4)
    answers = []
    for n in range(40):  # a connection each, so that both accept some
        with httpx.Client(
            base_url=server_.http.base_url, headers=server_.key, timeout=60
        ) as client:
            answers.append(
                client.post(
                    "/v1/score", json={"source": "s", "output": f"r{n:03d}"}
                ).json()["score"]
            )
    assert answers == [float(n) for n in range(40)]

    def counted(name: str) -> float:
        text = server_.http.get("/metrics").text
        return sum(
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith(name)
        )

    assert counted("judgesmith_rows_total{") == 40
    assert counted("judgesmith_queue_rows") == 0
    assert counted("judgesmith_ready{") == 1
    many = server_.http.post(
        "/v1/score/many", json={"rows": [{"output": f"r{n:03d}"} for n in range(5)]}
    )
    assert (many.status_code, many.json()["error"]["code"]) == (
        429,
        "busy",
    )  # each has room for 8 / 2 rows

    first, _ = workers_of(server_.process.pid)
    first.suspend()  # asked whether it lives, it dies without an answer
    for _ in range(20):
        assert server_.http.get("/metrics").status_code == 200
    first.kill()
    until(lambda: first.pid not in [one.pid for one in workers_of(server_.process.pid)])
    until(lambda: len(workers_of(server_.process.pid)) == 2)
    until(
        lambda: all(
            httpx.get(f"{server_.http.base_url}/readyz", timeout=60).status_code == 200
            for _ in range(8)
        )
    )
    assert counted("judgesmith_rows_total{") == 40  # what the dead one counted stays
    # The one in its place counts it, once it has started.
    until(lambda: counted("judgesmith_worker_deaths_total") == 1)
    (died,) = [line for line in server_.lines if "worker_died" in line]
    assert json.loads(died)["process"] == first.pid
    assert json.loads(died)["replaced_by"] in [
        one.pid for one in workers_of(server_.process.pid)
    ]
    server_.process.terminate()
    assert server_.process.wait(HANG) == 0


def test_fewer_calls_at_once_than_processes_are_refused(
    cli: Any, judge_file: Path
) -> None:
    asked = ("serve", judge_file, "--port", 0, "--workers", 4, "--concurrency", 2)
    cli(*asked).refused("--concurrency 2 is fewer than the 4 processes that share it")
