"""Scoring in parts: each row once, whatever is killed. The workers' code runs here without Ray; one test needs Ray."""

import asyncio
import json
import sys
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from written import lines

from judgesmith.errors import OptionError
from judgesmith.programs.models.lm import Connection
from judgesmith.ray.scoring import (
    PARTS_AT_ONCE,
    Cluster,
    Input,
    Order,
    Scorer,
    at_hand,
    own_folder,
    part_name,
    score_on_ray,
    summary_name,
)
from judgesmith.running.limits import Limits

Rows = Callable[..., Path]


@pytest.fixture
def order(server: Any, judge_file: Path, tmp_path: Path) -> Order:
    judge = judge_file.read_text()
    return Order(judge, where=Connection(server.base, cache=False), parts=str(tmp_path / "parts"), run="run")


def given(rows: Path) -> Input:
    with at_hand(str(rows)) as (path, about):
        return Input(path, about)


def test_a_part_that_a_killed_worker_left_is_gone_on_with(
    order: Order, server: Any, rows_file: Rows, tmp_path: Path
) -> None:
    first, second = given(rows_file(20)).parts(10)
    worker, parts = Scorer(order), Path(order.parts)
    assert worker.score(0, first)["scored"] == 10
    assert [row["id"] for row in lines(parts / part_name(0))] == [f"r{n:03d}" for n in range(10)]
    assert json.loads((parts / summary_name(0)).read_text())["rows"] == 10

    # Four rows and a half were written when the worker was killed.
    assert worker.score(1, second)["scored"] == 10
    text = (parts / part_name(1)).read_bytes()
    (parts / part_name(1)).unlink()
    whole_lines = text.splitlines(keepends=True)
    growing = own_folder("run") / part_name(1)
    growing.write_bytes(b"".join(whole_lines[:4]) + whole_lines[4][:30])
    server.forget()
    told = Scorer(order).score(1, second)
    assert (told["resumed"], told["rows"]) == (4, 10)
    assert (parts / part_name(1)).read_bytes() == text
    assert sorted({ask.mark for ask in server.judged}) == [f"r{n:03d}" for n in range(14, 20)]
    assert not growing.exists()


def test_parts_that_a_worker_has_at_once_share_its_limits_and_are_counted_apart(
    order: Order, server: Any, rows_file: Rows
) -> None:
    under_way, most = 0, 0

    def answer(ask: Any) -> Any:
        async def slowly() -> str:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.02)
            under_way -= 1
            return "4" if ask.step == "probe" else "Explanation: Fine.\nScore: 40"

        return slowly()

    server.answer = answer
    worker = Scorer(replace(order, where=replace(order.where, concurrency=3)))
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        told = list(pool.map(worker.score, (0, 1), given(rows_file(20)).parts(10)))
    assert [(t["rows"], t["scored"]) for t in told] == [(10, 10), (10, 10)]
    assert sum(t["calls"] for t in told) == len(server.asks)
    assert min(t["calls"] for t in told) >= 10
    assert most == 3


def test_what_does_not_go_with_ray_is_refused(order: Order, rows_file: Rows, tmp_path: Path) -> None:
    rows = given(rows_file(4))
    with pytest.raises(OptionError, match="--max-calls and --max-cost are of one process"):
        score_on_ray(order, rows, str(tmp_path / "out"), Cluster(), limits=Limits(max_calls=3))
    (tmp_path / "there.jsonl").write_text("{}")
    with pytest.raises(OptionError, match="exists and is complete"):
        score_on_ray(order, rows, str(tmp_path / "there.jsonl"), Cluster())
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"judge": "another"}')
    with pytest.raises(OptionError, match=r"parts of another run \(format, judge"):
        score_on_ray(order, rows, str(folder), Cluster())


class Local:
    """Ray's calls that the driver makes, answered in this process; `stop_after` tasks it is killed."""

    def __init__(self, stop_after: int = 1000) -> None:
        self.left, self.exceptions = stop_after, types.SimpleNamespace(RayTaskError=KeyError, RayActorError=OSError)

    def init(self, **given: Any) -> None:
        assert given["address"] == "local"  # whatever cluster else runs on this machine

    def shutdown(self) -> None: ...

    def remote(self, **_: Any) -> Any:
        def actor(kind: Any) -> Any:
            def start(order: Order) -> Any:
                made = kind(order)
                return types.SimpleNamespace(score=types.SimpleNamespace(remote=lambda *a: Task(made.score(*a))))

            return types.SimpleNamespace(remote=start)

        return actor

    def wait(self, tasks: list[Any], num_returns: int) -> Any:
        print("(raylet) A worker died or was killed")  # Ray says so on stdout
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return tasks[:1], tasks[1:]

    def get(self, task: Any) -> Any:
        return task.told


class Task:
    def __init__(self, told: Any) -> None:
        self.told = told


def on_ray(rows: Path | str, judge: Path, out: Path | str, server: Any) -> tuple[Any, ...]:
    parts = ("--on", "ray", "--workers", 2, "--part-rows", 4)
    return ("score", rows, "--judge", judge, "-o", out, *parts, "--api-base", server.base, "--json")


@pytest.fixture
def bucket() -> Any:
    """fsspec's storage in memory, empty."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.store.clear()
    yield memory
    memory.store.clear()


def test_object_storage_holds_whole_parts_and_a_killed_command_goes_on(
    cli: Any, server: Any, judge_file: Path, rows_file: Rows, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = rows_file(30).read_bytes()
    bucket.pipe("/in/rows.jsonl", content)
    out = "memory://out/scored.jsonl"
    command = (*on_ray("memory://in/rows.jsonl", judge_file, out, server), "--no-cache")
    monkeypatch.setitem(sys.modules, "ray", Local(stop_after=1))
    assert cli(*command).code == 130
    parts = sorted(path.rpartition("/")[2] for path in bucket.find("/out"))
    assert {"manifest.json", "part-000000.jsonl", "part-000000.summary.json"} <= set(parts)
    assert not any("growing" in name for name in parts)
    asked = len(server.judged)
    cut = bucket.cat("/out/scored.jsonl.parts/part-000000.jsonl")
    bucket.pipe("/out/scored.jsonl.parts/part-000000.jsonl", cut[:-9])  # as a storage without atomic writes leaves it
    monkeypatch.setitem(sys.modules, "ray", Local())
    done = cli(*command)
    assert (done.code, done.json["rows"], done.json["scored"], done.json["output"]) == (0, 30, 30, out)
    assert done.json["resumed"] == asked - 4
    assert len(server.judged) == 34
    written = [json.loads(line) for line in bucket.cat("/out/scored.jsonl").splitlines()]
    assert [row["id"] for row in written] == [f"r{n:03d}" for n in range(30)]
    assert list(bucket.find("/out")) == ["/out/scored.jsonl"]
    assert "exists and is complete" in cli(*command).err

    bucket.pipe("/in/rows.jsonl", content.replace(b"r029", b"r030"))
    assert cli(*command, "--overwrite").code == 0
    assert json.loads(bucket.cat("/out/scored.jsonl").splitlines()[-1])["id"] == "r030"


def test_storage_that_cannot_be_used_says_what_is_missing(
    cli: Any, server: Any, judge_file: Path, rows_file: Rows, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    for rows, out, told in (
        ("s3://bucket/rows.jsonl", "memory://out.jsonl", "needs s3fs, which is not installed: pip install s3fs"),
        (rows_file(4), "s3://bucket/out", "needs s3fs"),
        ("memory://absent.jsonl", "memory://out.jsonl", "memory://absent.jsonl does not exist"),
        ("nowhere://rows.jsonl", "memory://out.jsonl", "nowhere"),
    ):
        refused = cli(*on_ray(rows, judge_file, out, server))
        assert (refused.code, told in " ".join(refused.err.split())) == (2, True), refused.err
    alone = cli("score", "memory://rows.jsonl", "--judge", judge_file, "--api-base", server.base)
    assert (alone.code, "object storage needs --on ray" in alone.err) == (2, True)


def test_a_cluster_on_this_machine(
    cli: Any, server: Any, judge_file: Path, rows_file: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    out = tmp_path / "out.jsonl"
    done = cli(*on_ray(rows_file(30), judge_file, out, server))
    assert (done.code, done.json["rows"], done.json["scored"]) == (0, 30, 30)
    assert [row["id"] for row in lines(out)] == [f"r{n:03d}" for n in range(30)]
    assert not (tmp_path / "out.jsonl.parts").exists()
    assert len({ask.mark for ask in server.judged}) == len(server.judged) == 30
