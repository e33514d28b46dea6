"""A store of labels: nothing is lost, nothing is twice, nothing can be changed."""

import multiprocessing
import os
import signal
import sqlite3
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from patience import HANG

from judgesmith.errors import LabelsError
from judgesmith.rooms.labelling.store import Answered, Store
from judgesmith.rooms.labelling.task import Unit


def store(folder: Path) -> Store:
    return Store(folder / "s.sqlite")


def say(at: Store, rater: str, unit: str, value: Any, **more: Any) -> None:
    given = {
        "turn": 0,
        "after": None,
        "request": f"{rater}-{unit}-{value}-{more}",
    } | more
    at.say(rater, unit, given.pop("turn"), "answer", {"score": value}, **given)


def standing(at: Store, rater: str | None = None) -> list[tuple[str, str, int, Any]]:
    return [
        (one.rater, one.unit, one.turn, one.answer and one.answer["score"])
        for one in at.answers(rater)
    ]


def test_the_last_that_was_said_stands_and_can_be_taken_back(tmp_path: Path) -> None:
    at = store(tmp_path)
    say(at, "Ada", "u1", 4)
    say(at, "Ada", "u2", 1)
    say(at, "Bo", "u1", 5)
    at.say("Bo", "u2", 0, "skip", {"reason": "broken"}, after=None, request="skip")
    (first, *_) = at.answers("Ada")
    say(at, "Ada", "u1", 2, after=first.n)
    assert standing(at, "Ada") == [("Ada", "u2", 0, 1), ("Ada", "u1", 0, 2)]
    assert [one.reason for one in at.answers("Bo")] == ["", "broken"]
    undone = at.undo("Ada", "undo-1")
    assert undone is not None
    assert undone.answer == {"score": 2}
    assert at.undo("Ada", "undo-1") == undone  # the same request, sent again
    assert standing(at, "Ada") == [
        ("Ada", "u1", 0, 4),
        ("Ada", "u2", 0, 1),
    ]  # what stood before stands again
    assert [at.undo("Ada", f"undo-{n}") is not None for n in (2, 3, 4)] == [
        True,
        True,
        False,
    ]
    assert standing(at) == [("Bo", "u1", 0, 5), ("Bo", "u2", 0, None)]


def test_what_is_sent_twice_is_kept_once_and_a_second_tab_overwrites_nothing(
    tmp_path: Path,
) -> None:
    one, other = store(tmp_path), store(tmp_path)
    say(one, "Ada", "u1", 4, request="r1")
    say(other, "Ada", "u1", 4, request="r1")
    with pytest.raises(Answered) as found:
        say(other, "Ada", "u1", 2, request="r2")
    assert found.value.standing is not None
    assert found.value.standing.answer == {"score": 4}
    say(
        other, "Ada", "u1", 2, request="r2", after=found.value.standing.n
    )  # once the rater has seen it
    assert standing(one) == [("Ada", "u1", 0, 2)]


def test_events_cannot_be_changed_or_removed(tmp_path: Path) -> None:
    say(store(tmp_path), "Ada", "u1", 4)
    with sqlite3.connect(tmp_path / "s.sqlite") as db:
        for statement in ("DELETE FROM events", "UPDATE events SET body = '{}'"):
            with pytest.raises(sqlite3.IntegrityError, match="events stay"):
                db.execute(statement)


def rate(path: Path, rater: str) -> None:
    at = Store(path)
    for n in range(10_000):
        say(at, rater, f"u{n}", n)


def test_kill_9_loses_no_answer_that_was_confirmed(tmp_path: Path) -> None:
    at = store(tmp_path)
    spawned = multiprocessing.get_context("spawn")
    raters = [
        spawned.Process(target=rate, args=(at.path, name)) for name in ("Ada", "Bo")
    ]
    for process in raters:
        process.start()
    end = time.monotonic() + HANG
    while len(at.answers()) < 20 and time.monotonic() < end:
        time.sleep(0.02)
    before = standing(at)
    for process in raters:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(HANG)
    after = standing(store(tmp_path))
    assert len(before) >= 20
    assert set(before) <= set(after)
    assert len(after) == len({(rater, unit) for rater, unit, _, _ in after})
    say(store(tmp_path), "Ada", "more", 1)  # and the store goes on


def test_units_stay_and_new_ones_come_behind_them(tmp_path: Path) -> None:
    at = store(tmp_path)
    at.add([Unit("a", {"output": "x\ud800"}), Unit("b", {"output": "y"})])
    at.enqueue(["b"])
    at.add([Unit("c", {"output": "z"}), Unit("a", {"output": "other"})])
    at.enqueue(["b", "c"])
    outputs = [(key, unit.row["output"]) for key, unit in at.units().items()]
    assert outputs == [("a", "x\ud800"), ("b", "y"), ("c", "z")]
    assert at.queue() == ["b", "c"]
    assert at.token == store(tmp_path).token
    assert len(at.token) >= 32


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    say(store(tmp_path), "Ada", "u1", 4)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("a,b\n" * 1000)
    with sqlite3.connect(tmp_path / "other.sqlite") as db:
        db.execute("CREATE TABLE t (x)")
    new = tmp_path / "new.sqlite"
    Store(new).close()
    with sqlite3.connect(new) as db:
        db.execute("PRAGMA user_version=9")
    for name, said in (
        ("labels.csv", "labels.csv.* not a judgesmith label store"),
        ("other.sqlite", "other.sqlite.* not a judgesmith label store"),
        ("new.sqlite", "unknown format 9"),
        ("no/folder.sqlite", "cannot be opened"),
    ):
        with pytest.raises(LabelsError, match=said):
            Store(tmp_path / name)
    with pytest.raises(LabelsError, match="there is no such store"):
        Store(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()
