"""Find and read the sets of JUDGESMITH_DATA, for all measurements that need them."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any


def data_folder() -> Path:
    """Return the folder of the sets.

    Raises:
        SystemExit: If the variable JUDGESMITH_DATA does not name it.
    """
    folder = os.environ.get("JUDGESMITH_DATA")
    if not folder:
        raise SystemExit("JUDGESMITH_DATA is not set; set it to the folder of the sets")
    return Path(folder)


def read_set(name: str) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines in that folder, such as `summeval.metrics`."""
    with (data_folder() / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def table_parser(description: str | None, *, draws: int) -> argparse.ArgumentParser:
    """Return a parser for benches of kept tables of readings.

    Args:
        description: Of the bench.
        draws: Draws of labels by default.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=draws)
    parser.add_argument("-o", "--output", type=Path)
    return parser
