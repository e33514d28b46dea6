"""`judgesmith score` against everything that fails: the server, the process, the disk."""

import csv
import errno
import io
import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write
from misbehaving_server import Say, Server, saying
from patience import HANG

ROW = re.compile(r"\brow(\d+)\b")
SOON = {"Retry-After": "0.01"}


def scored(n: int) -> Say:
    return saying(f"Explanation: It is row{n}.\nScore: {n % 101}")


class Sick:
    """A server that fails in every way it can until it is well: some rows at their first request, some at each."""

    PASSING = (
        Say(429, b"slow down", SOON),
        Say(500, b"oops", SOON),
        Say(body=b"<html>bad gateway</html>"),
        Say(cut=30),
        Say(reset=True),
        Say(hang_up=True),
        Say(wait=30),
    )
    LASTING = (
        saying("I like turtles."),
        saying("Score: 5000"),
        Say(400, b"refused"),
        Say(503, b"down", SOON),
        Say(body=b'{"choices": [' + b"[" * 100_000, headers=SOON),
    )

    def __init__(self) -> None:
        self.well = False
        #: Rows from here on get no answer: a run that is to be killed under way cannot end before it is.
        self.hold = 10**9
        self.asked: Counter[int] = Counter()
        self.server = Server(self.behave)

    def behave(self, _: int, body: dict[str, Any]) -> Say:
        texts = [message["content"] for message in body["messages"]]
        if "2 + 2 =" in texts[-1]:
            return saying("4")
        n = int(
            next(found[1] for text in reversed(texts) if (found := ROW.search(text)))
        )
        if n >= self.hold:
            return Say(wait=HANG)
        self.asked[n] += 1
        if self.well:
            return scored(n)
        # One row in a hundred fails for good, seven at first; lasting faults without a wait of their own are rarer.
        if n % 100 == 50:
            return self.LASTING[n // 100 % len(self.LASTING)]
        if n % 100 in (3, 13, 23, 33, 43, 53, 63) and self.asked[n] == 1:
            return self.PASSING[n // 100 % len(self.PASSING)]
        return scored(n)


@pytest.fixture
def sick() -> Iterator[Sick]:
    made = Sick()
    yield made
    made.server.close()


def write_rows(path: Path, rows: int) -> Path:
    return write(
        path, ({"id": f"i{n}", "output": f"This is row{n}."} for n in range(rows))
    )


def whole(path: Path, rows: int) -> None:
    """Every row once, in its order, with its own score."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as file:
            scores = [
                (row["id"], float(row["judge_score"])) for row in csv.DictReader(file)
            ]
    else:
        scores = [(row["id"], row["verdict"]["score"]) for row in lines(path)]
    assert scores == [(f"i{n}", n % 101) for n in range(rows)]


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_three_thousand_rows_survive_the_server_and_five_kills(
    sick: Sick, spawn: Any, until: Any, judge_file: Path, tmp_path: Path
) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", 3000), tmp_path / "out.jsonl"

    def score(*more: str) -> Any:
        return spawn(
            "score",
            rows,
            "--judge",
            judge_file,
            "--api-base",
            sick.server.base,
            "-o",
            out,
            "--json",
            "--concurrency",
            32,
            "--timeout",
            2,
            *more,
        )

    def kill_when(process: Any, ready: Callable[[], bool]) -> None:
        until(lambda: ready() or process.poll() is not None)
        process.kill()
        process.communicate(timeout=HANG)
        assert process.returncode == -signal.SIGKILL
        sick.hold = 10**9

    for reached in (250, 900, 1500, 2400):
        sick.hold = reached + 200
        kill_when(score(), lambda: line_count(out) >= reached)  # noqa: B023
        assert reached <= line_count(out) <= reached + 200
    process = score()
    told, complained = process.communicate(timeout=HANG)
    assert "Traceback" not in complained
    assert process.returncode == 1
    summary = json.loads(told)
    assert (summary["rows"], summary["failed"]) == (3000, 30)
    written = lines(out)
    assert [row["id"] for row in written] == [f"i{n}" for n in range(3000)]
    failed = [n for n, row in enumerate(written) if row["verdict"]["failure"]]
    assert failed == list(range(50, 3000, 100))
    verdicts = [written[n]["verdict"] for n in failed]
    assert all(
        verdict["score"] is None and verdict["percent"] is None for verdict in verdicts
    )
    for part, verdict in zip(
        ("no score in the answer", "5000 is outside", "400", "503"),
        verdicts,
        strict=False,
    ):
        assert part in verdict["failure"]
    before = out.read_bytes()

    sick.well, sick.hold = True, 1500
    asked = sick.asked.total()
    kill_when(score("--retry-failed"), lambda: sick.asked.total() >= asked + 10)
    assert out.read_bytes() == before
    process = score("--retry-failed")
    told, complained = process.communicate(timeout=HANG)
    assert (process.returncode, json.loads(told)["failed"]) == (0, 0), complained
    whole(out, 3000)
    # What had been answered was not asked again: apart from the failed rows, what was under way at a kill.
    extra = sum(number - 1 for n, number in sick.asked.items() if n % 100 != 50)
    assert extra <= 210 + 5 * 4 * 32


# -- the disk


class FullDisk(io.FileIO):
    """A file on a disk that is full from its `room`-th write on, of which it still takes a half."""

    room = 0

    def write(self, data: Any, /) -> int:
        kind = type(self)
        kind.room -= 1
        if kind.room > 0:
            return super().write(data)
        if kind.room == 0 and len(data) > 1:
            return super().write(bytes(data[: len(data) // 2]))
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """disk(7): from the seventh write to an output on, there is no room. disk(10**9): there is."""
    real = Path.open

    def opened(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if mode[0] not in "aw" or "out" not in self.name:
            return real(self, mode, *rest, **options)
        file = FullDisk(self, mode)
        return (
            file
            if "b" in mode
            else io.TextIOWrapper(io.BufferedWriter(file), **options)
        )

    monkeypatch.setattr(Path, "open", opened)

    def room(writes: int) -> None:
        FullDisk.room = writes

    room(10**9)
    return room


@pytest.mark.parametrize("room", range(0, 60, 10))
@pytest.mark.parametrize(
    ("name", "again"), [("out.jsonl", False), ("out.csv", False), ("out.jsonl", True)]
)
def test_a_full_disk_is_one_line_and_costs_nothing_that_was_written(
    name: str,
    again: bool,
    room: int,
    sick: Sick,
    cli: Any,
    judge_file: Path,
    disk: Any,
    tmp_path: Path,
) -> None:
    """again: whether the disk is full while failed rows are tried again, which leaves the output as it was."""
    rows, out = write_rows(tmp_path / "rows.jsonl", 60), tmp_path / name
    command = (
        "score",
        rows,
        "--judge",
        judge_file,
        "--api-base",
        sick.server.base,
        "-o",
        out,
        "--json",
    )
    before = None
    if again:
        assert cli(*command).code == 1
        before, command = out.read_bytes(), (*command, "--retry-failed")
    sick.well = True
    disk(room)
    done = cli(*command)
    assert (done.code, done.out, len(done.err.strip().splitlines())) == (2, "", 1)
    assert "No space left on device" in done.err
    if again:
        assert out.read_bytes() == before
        assert not list(tmp_path.glob(".out*"))
    disk(10**9)
    done = cli(*command)
    assert (done.code, done.json["rows"], done.json["failed"]) == (0, 60, 0)
    if not again:
        assert (
            done.json["resumed"] >= room - 3
        )  # the header of a .csv, and the row that was cut
        assert max(sick.asked.values()) <= 2  # those that were under way
    whole(out, 60)
