"""Keep what `judgesmith discern --check` found of real judges as a table of results.

    judgesmith discern JUDGE.json ROWS.jsonl --check all -o SCORES.jsonl --json > FOUND.json
    python experiments/bench/checks.py FOUND.json… [--save FOLDER]

A line for each check of each judge: largest share of flips first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from judgesmith.experiments.studies.saving import save

INTERVAL = "{:+.3f} [{:+.3f}, {:+.3f}]"
COLUMNS = {"judge": "", "check": "", "rows": "{}", "change": INTERVAL}
COLUMNS |= {"moved": "{:.3f} [{:.3f}, {:.3f}]"}
COLUMNS |= {"flips": "{:.0%} [{:.0%}, {:.0%}]", "on average": ""}


def three(estimate: dict[str, Any]) -> list[float]:
    """Return a value with the ends of its interval."""
    return [estimate[end] for end in ("value", "low", "high")]


def lines_of(path: Path) -> list[list[Any]]:
    """Return a line for each check of one run."""
    found = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return [
        [
            path.stem,
            one["check"],
            one["rows"],
            *(three(one[name]) for name in ("change", "moved", "flips")),
            one["lean"],
        ]
        for one in found["checks"]
    ]


def main() -> None:
    """Print and save the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("found", nargs="+", type=Path)
    parser.add_argument("--model", default="local/qwen2.5-0.5b")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    table = [line for path in options.found for line in lines_of(path)]
    table.sort(key=lambda line: -line[5][0])
    for line in table:
        print(*line)
    commands = [
        "judgesmith discern JUDGE.json ROWS.jsonl --check all --json",
        "python experiments/bench/checks.py FOUND.json",
    ]
    save(options.save, "checks", COLUMNS, table, commands=commands, model=options.model)


if __name__ == "__main__":
    main()
