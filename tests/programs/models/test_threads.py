"""Threads of embedded models: affinity, OpenMP's variable and control groups of both versions."""

import os
from pathlib import Path

import psutil
import pytest

from judgesmith.programs.models import threads
from judgesmith.programs.models.threads import thread_count


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (threads.VARIABLE, threads.OPENMP):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 16 if logical else 8)


def machine(root: Path, groups: str, **files: str) -> Path:
    """A root folder with this process's groups, and files of control groups by their paths, `/` written as `__`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("_max", ".max")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("given", "count"), [("3", 3), ("2,4", 2), ("", 8), ("many", 8), ("0", 8)]
)
def test_openmps_number_is_kept_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, count: int
) -> None:
    monkeypatch.setenv(threads.OPENMP, given)
    assert thread_count(tmp_path) == count
    monkeypatch.setenv(threads.VARIABLE, "6")  # the user's own number is before it
    assert thread_count(tmp_path) == 6


@pytest.mark.parametrize(
    ("quota", "count"),
    [
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("20000 100000", 1),
        ("max 100000", 8),
        ("-1", 8),
        ("nonsense", 8),
        ("", 8),
    ],
)
def test_a_containers_share_of_the_processor_is_kept_to(
    tmp_path: Path, quota: str, count: int
) -> None:
    assert thread_count(machine(tmp_path, "0::/\n", cpu_max=quota)) == count


def test_the_narrowest_of_nested_groups_counts(tmp_path: Path) -> None:
    files = {"job__cpu_max": "300000 100000", "job__step__cpu_max": "500000 100000"}
    root = machine(tmp_path, "0::/job/step\n", **files)
    assert thread_count(root) == 3


def test_older_control_groups_count_as_well(tmp_path: Path) -> None:
    groups = "5:cpuset:/\n3:memory:/a\n2:cpu,cpuacct:/a\n0::/\n"
    files = {
        "cpu,cpuacct__a__cpu.cfs_quota_us": "400000\n",
        "cpu,cpuacct__a__cpu.cfs_period_us": "100000\n",
    }
    assert thread_count(machine(tmp_path, groups, **files)) == 4


def test_a_group_of_the_host_is_looked_for_at_the_top(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/docker/abc\n", cpu_max="200000 100000")
    assert thread_count(root) == 2
