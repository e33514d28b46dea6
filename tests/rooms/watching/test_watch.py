"""`judgesmith watch`: alarms for what changed, and for nothing else."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from json_lines import Rows

from judgesmith.rooms.watching import drift, history
from judgesmith.rooms.watching.drift import rank_p, same_rows, threshold


@pytest.fixture
def watch(
    cli: Any, judge_file: Path, server: Any, rows_file: Rows, tmp_path: Path
) -> Callable[..., Any]:
    rows = rows_file(24)

    def run(*arguments: object) -> Any:
        where = ("--api-base", server.base, "--history", tmp_path / "h.jsonl", "--json")
        return cli("watch", rows, "--judge", judge_file, *where, *arguments)

    return run


def names(run: Any) -> list[str]:
    return [test["name"] for test in run.json["found"] if test["alarm"]]


def test_a_changed_model_is_found_an_unchanged_one_is_not(
    watch: Any, server: Any, fake: Any, tmp_path: Path
) -> None:
    first = watch()
    assert (first.code, first.json["baseline"], first.json["runs"]) == (0, True, 3)
    assert len(server.judged) == 3 * 24  # never from the disk
    quiet = watch("-o", tmp_path / "quiet.html")
    assert (quiet.code, quiet.json["alarms"], quiet.json["runs_since_baseline"]) == (
        0,
        [],
        1,
    )
    assert quiet.json["agreement"]["n"] == 24
    server.answer = fake.judging(lambda ask: 7 + len(ask.judged) % 9)
    loud = watch("-o", tmp_path / "loud.html")
    assert loud.code == 1
    assert "sentinels: scores differ from those before" in names(loud)
    page = (tmp_path / "loud.html").read_text()
    assert "ALARM" in page
    assert "<script" not in page
    assert "Quiet:" in (tmp_path / "quiet.html").read_text()
    accepted = watch("--rebase")
    assert (accepted.code, accepted.json["baseline"]) == (0, True)
    assert watch().code == 0
    server.answer = lambda ask: (
        fake.Fault(400, "no") if ask.step == "score" else fake.sensible(ask)
    )
    failing = watch()
    assert (failing.code, failing.json["failed"], names(failing)) == (
        1,
        24,
        ["sentinels: rows without a score"],
    )


def test_how_often_a_judge_contradicts_itself(
    watch: Any, server: Any, fake: Any
) -> None:
    calls = itertools.count()
    server.answer = fake.judging(
        lambda ask: 20 + 30 * (next(calls) % 3) if ask.mark == "r004" else 50
    )
    told = watch().json["repeats"]
    assert (told["runs"], told["rows"], told["differ"]) == (
        3,
        24,
        pytest.approx(1 / 24, abs=1e-6),
    )
    assert told["worst"] == [{"id": "r004", "low": 20, "high": 80}]
    assert told["sd"] == pytest.approx(
        (900 / 24) ** 0.5, abs=1e-4
    )  # 20, 50 and 80 have the variance 900


def test_too_few_rows_are_said(
    cli: Any, judge_file: Path, server: Any, rows_file: Rows
) -> None:
    rows = rows_file(4)
    found = cli("watch", rows, "--judge", judge_file, "--api-base", server.base)
    # (1 / 4)^8 = 1.5e-5 < 0.05 / 365 / 6 = 2.3e-5 < (1 / 4)^7
    assert "4 sentinel rows are too few for an alarm" in found.out
    assert "give at least 8, or a larger --baseline" in found.out


def test_another_judge_or_other_rows_begin_a_new_baseline(
    watch: Any, judge_file: Path, tmp_path: Path, cli: Any, server: Any
) -> None:
    watch()
    data = json.loads(judge_file.read_text())
    judge_file.write_text(json.dumps(data | {"task": "Another task."}))
    found = watch()
    assert (found.code, found.json["baseline"], found.json["runs"]) == (0, True, 6)
    assert "another judge" in found.json["notes"][0]


def test_a_history_survives_a_kill_and_says_what_is_none(
    watch: Any, tmp_path: Path
) -> None:
    watch()
    path = tmp_path / "h.jsonl"
    with path.open("a") as file:
        file.write('{"format": "judgesmith.wat')
    assert watch().json["runs"] == 4
    assert len(history.read(path)) == 4
    path.write_text(
        path.read_text().replace('"agreement"', '"traffic": {"rows": 50}, "agreement"')
    )
    assert watch().json["runs"] == 5  # new rows were watched, too, before
    path.write_text('{"format": "else"}\n')
    watch().refused("h.jsonl, line 1: format")


# The tests -----------------------------------------------------------------------------------------------------------


def test_the_exact_distribution_of_ranks() -> None:
    # Three runs over two rows, the newest highest in both: (1/3)^2, and both tails.
    runs = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert rank_p(runs, "greater") == pytest.approx(1 / 9)
    assert rank_p(runs, "two-sided") == pytest.approx(2 / 9)
    assert rank_p(runs[[2, 1, 0]], "greater") == pytest.approx(1)
    # A row whose runs are all equal says nothing.
    assert rank_p(np.column_stack([runs, [5.0, 5.0, 5.0]]), "greater") == pytest.approx(
        1 / 9
    )
    assert np.isnan(rank_p(runs[:1], "greater"))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_p_is_that_of_counting_all_orders(seed: int, count: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    runs, newest = (
        rng.integers(0, 3, (count, rows)).astype(float),
        int(rng.integers(1, count)),
    )
    ranks = scipy.stats.rankdata(runs, axis=0)
    sums = np.zeros(1)
    for row in ranks.T:
        sums = np.add.outer(
            sums, [sum(some) for some in itertools.combinations(row, newest)]
        ).ravel()
    found = rank_p(runs, "greater", newest)
    assert found == pytest.approx(np.mean(sums >= ranks[count - newest :].sum() - 1e-9))
    assert rank_p(runs * 7 - 2, "greater", newest) == found


def test_answers_that_only_change_places_differ_without_moving() -> None:
    base = np.tile(np.arange(40.0), (3, 1))
    moved, differ = same_rows("scores", np.vstack([base, base[:1, ::-1]]))
    assert moved.p > 0.5
    assert differ.p < 1e-12
    assert all(test.p == 1 for test in same_rows("scores", np.vstack([base, base[:1]])))


def test_rows_without_a_score_in_any_run_are_left_out() -> None:
    runs = np.vstack([np.zeros((3, 5)), np.ones((1, 5))])
    runs[1, :2] = np.nan
    moved, _ = same_rows("scores", runs)
    assert (moved.n, moved.before, moved.now) == (3, 0, 1)
    assert moved.p == pytest.approx(2 / 4**3)


def test_what_a_single_test_may_spend() -> None:
    tests = [
        drift.Finding("a", 0.5, 1, 0, 0),
        drift.Finding("b", 0.5, 1, 0, 0),
        drift.Finding("c", np.nan, 0, 0, 0),
    ]
    assert threshold(tests, 0.05, 10) == pytest.approx(0.05 / 10 / 2)
