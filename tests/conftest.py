"""Settings for all tests."""

import os
import tempfile
from pathlib import Path

from command_line import cli, compile_, fake, judge_file, labels_of, own_cache, rows_file, server, spawn, started, until
from hypothesis import HealthCheck, settings

__all__ = [
    "cli", "compile_", "fake", "judge_file", "labels_of", "own_cache", "rows_file", "server", "spawn", "started",
    "until",
]  # fmt: skip

# No test writes references into the user's own store.
os.environ["JUDGESMITH_REFERENCES"] = str(Path(tempfile.mkdtemp(prefix="judgesmith-")) / "references.sqlite")

# Timings are measured in benchmarks, never asserted in tests: a busy machine is no failure.
settings.register_profile("judgesmith", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("judgesmith")
