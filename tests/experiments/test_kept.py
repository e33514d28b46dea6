"""What benches keep: the next run goes on from there."""

from __future__ import annotations

from pathlib import Path

from judgesmith.experiments.bench.kept import Kept


def test_what_was_kept_is_there_in_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    found = Kept(path).add({"task": "é", "by labels": {40: 0.1 + 0.2}})
    assert found == {"task": "é", "by labels": {"40": 0.30000000000000004}}
    again = Kept(path)
    assert again.lines == [found]
    again.add(["two", None])
    assert again.lines == Kept(path).lines == [found, ["two", None]]


def test_without_a_file_values_are_of_the_run_alone() -> None:
    kept = Kept(None)
    assert kept.add({8: 1}) == {"8": 1}
    assert kept.lines == [{"8": 1}]
