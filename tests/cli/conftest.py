"""Fixtures of the commands' tests."""

from command_line import cli, compile_, fake, judge_file, labels_of, own_cache, rows_file, server, spawn, started, until

__all__ = [
    "cli", "compile_", "fake", "judge_file", "labels_of", "own_cache", "rows_file", "server", "spawn", "started",
    "until",
]  # fmt: skip
