"""How fast models of this machine are read, for estimates: as the last long run here measured it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from judgesmith.programs.models.cache import CallCache

#: Bytes of weights times tokens that one thread reads in a second, where nothing was measured: 245 tokens of the 0.5B's
#: 491 MB.
USUAL = 1.2e11
#: Tokens of the shortest run that tells.
TELLING = 3000
#: Tokens that a reader of this process takes; llama.cpp reads longer prompts, and those before it writes.
CONTEXT = 4096
#: How many times as long llama.cpp takes.
BY_LLAMA_CPP = 4
#: The share of estimated tokens that prose in English has.
PROSE = 0.76
#: Tokens that are read while one is written.
WRITTEN = 20


def known() -> float:
    """Return bytes of weights times tokens that one thread reads in a second."""
    with suppress(OSError, ValueError):
        measured = float(_path().read_text())
        if 0.001 < measured / USUAL < 1000:
            return measured
    return USUAL


def keep(size: int, work: float, seconds: float, threads: int) -> None:
    """Keep what a run took.

    Args:
        size: Bytes of the weights.
        work: Tokens that were read.
        seconds: What that took.
        threads: Threads that computed.
    """
    if work < TELLING or seconds <= 0:
        return
    with suppress(OSError):
        _path().write_text(f"{size * work / seconds / threads:.4g}\n")


def of_call(tokens: float, fresh: float, written: float = 0.0) -> float:
    """Return the tokens whose reading takes as long as a call.

    Args:
        tokens: Those of its prompt.
        fresh: Those that no prompt just before it began with.
        written: Those of its answer; 0 for one that is chosen among a few.
    """
    if written or tokens * PROSE > CONTEXT:
        return BY_LLAMA_CPP * fresh + WRITTEN * written
    return fresh


def _path() -> Path:
    return CallCache.default_path().with_suffix(".pace")
