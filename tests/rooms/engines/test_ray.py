"""`judgesmith score --on ray`: what it refuses, and on a Ray of this machine that nothing is lost, doubled or heard."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from json_lines import Rows, lines, write
from patience import HANG

from judgesmith.rooms.engines.folder import Output
from judgesmith.rooms.engines.ray import Tally
from judgesmith.running.limits import Limits
from judgesmith.signatures.values import Usage
from judgesmith.testing.fake import Fault


@pytest.fixture
def on_ray(cli: Any, judge_file: Path, server: Any) -> Any:
    def run(*arguments: object) -> Any:
        return cli(
            "score",
            *arguments,
            "--on",
            "ray",
            "--judge",
            judge_file,
            "--api-base",
            server.base,
            "--json",
        )

    return run


# -- before anything starts -------------------------------------------------------------------------------------------

ROWS = [{"id": f"r{n:03d}", "source": "s", "output": f"r{n:03d}"} for n in range(20)]


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


TWICE = "column 'id': several rows have the id 'r000', 'r001'; give each row its own"
REFUSED = {
    "an id twice": ([*ROWS, *ROWS[:2]], TWICE),
    "ids that are missing": (
        [*ROWS, {"id": None, "source": "s", "output": "x"}],
        "1 rows have no id",
    ),
    "no ids": ([{"source": "s", "output": "x"}], "no column of ids"),
    "no output": ([{"id": "a", "note": 3}], "no column for the output text"),
    "judged before": (
        [{"id": "a", "output": "x", "judge_score": 1.0}],
        "has a column 'judge_score' already",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_rows_that_ray_could_not_know_again_are_refused(
    what: str, on_ray: Any, tmp_path: Path, server: Any
) -> None:
    rows, message = REFUSED[what]
    on_ray(parquet(tmp_path / "rows.parquet", rows), "-o", tmp_path / "out").refused(
        message
    )
    assert not (tmp_path / "out/run.json").exists()
    assert server.asks == []


OPTIONS = {
    ("--otel",): "--otel has no effect with --on ray",
    ("--defer", "0.1"): "--defer has no effect with --on ray",
    ("--raw",): "--raw has no effect with --on ray",
    ("--retry-failed",): "does not exist: there are no failed rows",
    ("--max-cost", "1"): "the price of openai/fake is unknown",
}


@pytest.mark.parametrize("options", OPTIONS)
def test_options_that_would_do_nothing_are_refused(
    options: tuple[str, ...], on_ray: Any, tmp_path: Path
) -> None:
    rows = parquet(tmp_path / "rows.parquet", ROWS)
    on_ray(rows, "-o", tmp_path / "out", *options).refused(OPTIONS[options])


def test_an_address_where_no_ray_is_is_refused_at_once(
    on_ray: Any, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    rows = parquet(tmp_path / "rows.parquet", ROWS)
    on_ray(rows, "-o", tmp_path / "out", "--address", "127.0.0.1:9").refused(
        "--address 127.0.0.1:9: no Ray answers"
    )


def test_without_ray_the_command_that_installs_it_is_named(
    on_ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    rows = parquet(tmp_path / "rows.parquet", ROWS)
    on_ray(rows, "-o", tmp_path / "out").refused("pip install 'judgesmith[ray]'")


def test_a_folder_of_something_else_is_left_alone(on_ray: Any, tmp_path: Path) -> None:
    rows = parquet(tmp_path / "rows.parquet", ROWS)
    on_ray(rows).refused("needs a folder for its output: -o FOLDER")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    on_ray(rows, "-o", tmp_path / "mine").refused(
        "has 'thesis.txt' and is no output of --on ray"
    )
    on_ray(rows, "-o", tmp_path / "mine", "--overwrite").refused(
        "has 'thesis.txt' and is no output of --on ray"
    )
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"


def test_a_run_of_another_judge_or_input_is_not_continued(
    on_ray: Any, tmp_path: Path
) -> None:
    rows, out = parquet(tmp_path / "rows.parquet", ROWS), tmp_path / "out"
    out.mkdir()
    (out / "run.json").write_text(json.dumps({"judge": "0123456789ab"}))
    on_ray(rows, "-o", out).refused("was written with judge 0123456789ab, this is")


def test_starting_over_removes_what_a_run_wrote_and_no_more(tmp_path: Path) -> None:
    for name in (
        "run.json",
        "rows/a.parquet",
        "done/a.parquet",
        "input/rows.parquet",
        "notes/mine.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    output = Output(str(tmp_path))
    assert output.begun() == {}
    output.clear()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.txt"]


def test_limits_of_all_workers() -> None:
    tally = Tally(Limits(max_calls=3))
    assert [tally.admits("a", 0.0), tally.admits("b", 0.0), tally.admits("a", 0.0)] == [
        True
    ] * 3
    assert not tally.admits("b", 0.0)
    assert tally.stopped()[1].startswith("the budget of 3 calls is used up")
    dollars = Tally(Limits(max_cost=1.0))
    assert dollars.admits("a", 0.4)
    assert dollars.admits("b", 0.5)
    assert not dollars.admits("a", 0.6)  # 0.6 + 0.5
    failed = Tally(Limits(max_failed="3"))
    failed.judged("a", Usage(calls=8), 8, ["HTTP 500"] * 3)
    assert failed.stopped() == ("", "")
    failed.judged("b", Usage(calls=8), 8, ["HTTP 500"])
    assert failed.stopped()[1].startswith(
        "4 of 16 rows have no score (--max-failed), the last: HTTP 500; what is"
    )
    failed.judged("a", Usage(calls=9), 1, [])
    assert failed.counted() == (17, 4, Usage(calls=17))


def test_failed_rows_are_forgotten_whatever_kill_comes_between(tmp_path: Path) -> None:
    output = Output(str(tmp_path))
    scores = {"a": 1.0, "b": None, "c": None, "d": 2.0}
    for part, names in (("1", "ab"), ("2", "cd")):
        for folder in ("rows", "done"):
            (tmp_path / folder).mkdir(exist_ok=True)
        table = pa.table(
            {"id": list(names), "judge_score": [scores[name] for name in names]}
        )
        pq.write_table(table, tmp_path / f"rows/{part}.parquet")
        pq.write_table(table.select(["id"]), tmp_path / f"done/{part}.parquet")
    real, calls = output.replace, 0

    def killed(part: str, table: pa.Table) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:  # the list and one file are written
            raise KeyboardInterrupt
        real(part, table)

    output.replace = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        output.forget_failed("id")
    assert output.files("forgotten")
    output.replace = real  # type: ignore[method-assign]
    output.forget_failed("id")
    assert sorted(output.table("rows", ["id"])["id"].to_pylist()) == ["a", "d"]
    assert sorted(output.table("done", ["id"])["id"].to_pylist()) == ["a", "d"]
    assert not output.files("forgotten")


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    for name in (
        "rows/x_1-0.parquet",
        "rows/x_2-0.parquet",
        "done/x_1.parquet",
        "done/x_2.pending.parquet",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"half")
    Output(str(tmp_path)).clean()
    assert sorted(
        str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.parquet")
    ) == [*("done/x_1.parquet", "rows/x_1-0.parquet")]


# -- on a Ray of this machine -----------------------------------------------------------------------------------------


def listeners(process: psutil.Process) -> set[str]:
    """The addresses at which a process and its children listen."""
    found = set()
    for one in [process, *process.children(recursive=True)]:
        try:
            found |= {
                c.laddr.ip
                for c in one.net_connections("inet")
                if c.status == psutil.CONN_LISTEN
            }
        except psutil.Error:
            continue
    return found


def table_of(out: Path) -> dict[str, dict[str, Any]]:
    """The rows by id; each of them once."""
    rows = pq.read_table(out / "rows").to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_ends_as_in_one_process(
    spawn: Any, cli: Any, judge_file: Path, rows_file: Rows, server: Any, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    good, out, rows = server.answer, tmp_path / "out", rows_file(96)
    server.answer = lambda ask: (
        Fault(400, "too odd")
        if ask.step == "score" and ask.mark == "r003"
        else good(ask)
    )
    model = ("--judge", judge_file, "--api-base", server.base, "--json")
    command = (
        "score",
        rows,
        *model,
        "--on",
        "ray",
        "-o",
        out,
        "--workers",
        2,
        "--rpm",
        600,
        "--no-cache",
    )
    process = spawn(*command)
    ended = time.monotonic() + HANG
    while not list(out.glob("done/*[0-9].parquet")):
        assert process.poll() is None
        assert time.monotonic() < ended
        time.sleep(0.1)
    assert listeners(psutil.Process(process.pid)) <= {
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
    }
    children = psutil.Process(process.pid).children(recursive=True)
    workers = [child for child in children if "MapWorker" in child.name()]
    assert workers
    os.kill(process.pid, signal.SIGKILL)
    assert psutil.wait_procs(workers, HANG)[1] == []
    # Ray's agents, which ask nothing, would outlive the kill by a minute.
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    before, asked = len(server.judged), len(server.asks)
    again = spawn(*command)
    stdout, stderr = again.communicate(timeout=HANG)
    assert again.returncode == 1, stderr
    done = json.loads(stdout)
    assert (done["rows"], done["scored"], done["failed"]) == (96, 95, 1)
    assert 16 <= done["resumed"] < 96
    assert len(server.judged) - before == 96 - done["resumed"]
    assert len(server.asks) - asked == done["calls"]
    assert table_of(out)["r003"]["judge_score"] is None

    server.answer, before = good, len(server.judged)
    retried = spawn(*command, "--retry-failed")
    stdout, stderr = retried.communicate(timeout=HANG)
    assert retried.returncode == 0, stderr
    assert (json.loads(stdout)["scored"], len(server.judged) - before) == (96, 1)
    alone = cli("score", rows, *model, "-o", tmp_path / "alone.jsonl")
    assert alone.code == 0
    made = table_of(out)
    for row in lines(tmp_path / "alone.jsonl"):
        assert made[row["id"]]["judge_score"] == row["verdict"]["score"]
        assert json.loads(made[row["id"]]["judge_verdict"]) == row["verdict"]
    assert cli(*command).json["calls"] == 0  # nothing is left, and no Ray starts


@pytest.mark.slow
def test_a_budget_of_all_workers_is_kept_and_ends_the_run(
    spawn: Any, judge_file: Path, server: Any, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    rows = write(tmp_path / "rows.jsonl", ({"output": f"r{n:03d}"} for n in range(64)))
    model = (
        "--judge",
        judge_file,
        "--api-base",
        server.base,
        "--max-calls",
        40,
        "--no-cache",
    )
    process = spawn(
        "score", rows, *model, "--on", "ray", "-o", tmp_path / "out", "--workers", 2
    )
    _, stderr = process.communicate(timeout=HANG)
    assert (process.returncode, "the budget of 40 calls is used up" in stderr) == (
        2,
        True,
    ), stderr
    assert (
        len(server.asks) == 40
    )  # those by which models are probed are of the budget, too
    made = table_of(tmp_path / "out")
    assert 16 <= len(made) <= len(server.judged)
    assert all(row["judge_score"] is not None for row in made.values())
    assert set(made) <= {
        str(n) for n in range(1, 65)
    }  # rows without an id are called by their places
