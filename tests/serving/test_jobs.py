"""Batch jobs of `judgesmith serve`: a handle, progress, results in order, bounds, and an end or a kill that loses no
row and doubles none."""

import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

KEY = "a-key-of-sixteen-characters"


def rows(count: int) -> list[dict[str, Any]]:
    return [{"source": "s", "output": f"r{n:03d}"} for n in range(count)]


def lines(count: int) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows(count))


def results(at: Any, job: str, **query: Any) -> list[dict[str, Any]]:
    answer = at.http.get(f"/v1/jobs/{job}/results", params=query)
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]


def state(at: Any, job: str) -> dict[str, Any]:
    status: dict[str, Any] = at.http.get(f"/v1/jobs/{job}").json()
    return status


def test_a_job_has_a_handle_progress_and_results_in_the_order_of_its_rows(running: Any, until: Any) -> None:
    at = running()
    given = b'{"output": "r005", "id": 7}\n\n{"output": " "}\n{"output": "r003", "id": "c"}'
    begun = at.job(given)
    assert begun.status_code == 202
    told = begun.json()
    assert (told["rows"], begun.headers["Location"]) == (3, told["status"])
    until(lambda: state(at, told["id"])["state"] == "done")
    done = at.http.get(told["status"]).json()
    assert (done["done"], done["scored"], done["failed"], done["problem"]) == (3, 2, 1, None)
    assert done["failures"] == [{"id": "1", "reason": "the output is empty"}]
    first, second, third = results(at, told["id"])
    assert (first["index"], first["id"], first["score"], first["judge"]) == (0, 7, 5, told["fingerprint"])
    assert ("id" in second, second["score"], second["failure"]) == (False, None, "the output is empty")
    assert results(at, told["id"], start=2) == [third]
    metrics = at.http.get("/metrics").text
    assert 'judgesmith_rows_total{judge="judge",outcome="scored"} 2.0' in metrics
    assert at.http.delete(told["status"]).status_code == 204
    for path in (told["status"], told["results"], "/v1/jobs/..%2f..", "/v1/jobs/" + "0" * 32):
        assert at.http.get(path).status_code == 404


def test_a_job_has_bounds_and_what_is_refused_takes_no_place(asking: Any) -> None:
    refused = (
        (422, "/v1/jobs", b'{"output": "r001"}\n{"source": "s"}\n'), (422, "/v1/jobs", b""),
        (404, "/v1/jobs?judge=other", lines(1)), (413, "/v1/jobs", lines(61)), (413, "/v1/jobs", lines(200)),
        (413, "/v1/jobs", b'{"output": "' + b"x" * 2500),
    )  # fmt: skip

    async def ask(http: httpx.AsyncClient) -> list[int]:
        http.headers["Content-Type"] = "application/x-ndjson"
        for status, path, body in refused:
            answer = await http.post(path, content=body)
            assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True)
        return [(await http.post("/v1/jobs", content=lines(60))).status_code for _ in range(2)]

    assert asking(ask, body=2000, job_rows=60, job_body=5000, jobs=1) == [202, 429]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_jobs_go_on_after_a_kill_and_after_a_stop_and_no_row_is_lost_or_doubled(
    running: Any, server: Any, held: Any, until: Any, tmp_path: Path, end: signal.Signals
) -> None:
    server_args = ("--jobs", tmp_path / "jobs", "--concurrency", 4, "--no-cache")
    go = held(20)
    at = running(*server_args)
    first, second = (at.job(lines(n)).json()["id"] for n in (40, 5))
    until(lambda: len(results(at, first)) == 20)
    assert [r["score"] for r in results(at, first)] == list(range(20))  # what is there of it
    at.process.send_signal(end)
    if end == signal.SIGTERM:
        go.set()  # a row that finishes ends the wait; rows after it are left to the next start
    at.process.wait(60)
    go.set()
    before = len(server.judged)
    at = running(*server_args)
    until(lambda: {state(at, job)["state"] for job in (first, second)} == {"done"})
    assert [(r["index"], r["score"]) for r in results(at, first)] == [(n, n) for n in range(40)]
    assert [r["score"] for r in results(at, second)] == list(range(5))
    if end == signal.SIGKILL:  # what was in flight, no more
        assert len(server.judged) - before == 25
        assert len(server.judged) <= 45 + 4
    counts = state(at, first)
    assert (counts["rows"], counts["done"], counts["scored"]) == (40, 40, 40)


def test_a_job_that_runs_is_cancelled(running: Any, server: Any, held: Any, until: Any, tmp_path: Path) -> None:
    go = held(10)
    at = running("--jobs", tmp_path / "jobs", "--concurrency", 2)
    job = at.job(lines(200)).json()["id"]
    until(lambda: len(results(at, job)) == 10)
    assert at.http.delete(f"/v1/jobs/{job}").status_code == 204
    assert at.http.get(f"/v1/jobs/{job}").status_code == 404
    go.set()
    until(lambda: not (tmp_path / "jobs" / job).exists())
    assert len(server.judged) < 100
    assert at.score("r001").json()["score"] == 1


def test_a_job_waits_for_its_judge_and_for_its_model(
    running: Any, server: Any, fake: Any, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGESMITH_API_KEY", KEY)
    at = running("--jobs", tmp_path / "jobs")
    assert at.job(lines(3)).status_code == 401
    at.http.headers["Authorization"] = f"Bearer {KEY}"
    asked = fake.Fault(401, "no")
    answer, server.answer = server.answer, lambda ask: asked
    job = at.job(lines(3)).json()["id"]
    until(lambda: state(at, job)["state"] == "waiting")
    assert "the key was refused" in state(at, job)["problem"]
    server.answer = answer
    until(lambda: state(at, job)["state"] == "done")
    assert state(at, job)["problem"] is None
    about = tmp_path / "jobs" / job / "job.json"
    about.write_text(about.read_text().replace('"judge": "judge"', '"judge": "gone"'))
    (about.parent / "state.json").unlink()
    until(lambda: state(at, job)["state"] == "waiting")
    assert "there is no judge 'gone'" in state(at, job)["problem"]
