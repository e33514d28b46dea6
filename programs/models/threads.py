"""How many threads compute an embedded model: what this process may use of the machine, and what it was told."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

from judgesmith.errors import OptionError

#: The user's own number, before all others; and what other programs of the process are held to.
VARIABLE = "JUDGESMITH_THREADS"
OPENMP = "OMP_NUM_THREADS"


def thread_count(root: Path = Path("/")) -> int:
    """Return the threads for an embedded model.

    They are `JUDGESMITH_THREADS`, else the processor cores that this process may use, at most `OMP_NUM_THREADS` and at
    most the processor time that its control group (a container, a job) is given. On a machine that is busy with other
    work, one thread less is often faster: llama.cpp's threads wait for each other.

    Raises:
        OptionError: If `JUDGESMITH_THREADS` is not a number of at least 1.
    """
    if wish := os.environ.get(VARIABLE, "").strip():
        if not wish.isascii() or not wish.isdigit() or int(wish) < 1:
            raise OptionError(
                f"{VARIABLE}={wish!r}: give a number of at least 1, or unset it"
            )
        return int(wish)
    if hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
    else:
        usable = os.cpu_count() or 1
    import psutil  # 30 ms, and this module is loaded by commands that run no model

    # Two hardware threads of one core count once: they share the units that a model keeps busy.
    cores = psutil.cpu_count(logical=False) or usable
    shares = map(math.ceil, _shares(root))
    return min(usable, cores, *shares, *_openmp())


def _openmp() -> Iterator[int]:
    """The number that OpenMP's programs are held to; none for what is no number."""
    first = os.environ.get(OPENMP, "").partition(",")[0].strip()
    if first.isascii() and first.isdigit() and int(first) >= 1:
        yield int(first)


def _shares(root: Path) -> Iterator[float]:
    """The processor time that each control group of this process is given, in cores."""
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if kinds and "cpu" not in kinds.split(","):
            continue
        base = root / "sys/fs/cgroup" / kinds
        folder = base / place.lstrip("/")
        # In a container the path is often one of the host's, and the group's own files are at the top.
        for each in (folder, *folder.parents):
            yield from _share(each)
            if each == base:
                break


def _share(folder: Path) -> Iterator[float]:
    """Quota over period, of either version of control groups; none where nothing is limited."""
    numbers = " ".join(_lines(folder / "cpu.max")).split() or [
        *_lines(folder / "cpu.cfs_quota_us"),
        *_lines(folder / "cpu.cfs_period_us"),
    ]
    with contextlib.suppress(ValueError, ZeroDivisionError):
        quota, period = map(int, numbers)
        if quota > 0 and period > 0:
            yield quota / period


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
