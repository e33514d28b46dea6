"""Measure how long commands take to begin: `judgesmith COMMAND --help` of each, and `import judgesmith`.

    python experiments/bench/startup.py [--json] [--repeat 5] [--save]

Processor time of a process of its own, user and system together, in seconds: the least of the repetitions, which a busy
machine disturbs least. beyond: what it takes more than Python with nothing imported.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from judgesmith.experiments.studies.saving import save

DATA = Path(__file__).resolve().parents[1] / "results" / "data"
NOTHING = "python -c pass"


def started() -> dict[str, list[str]]:
    """Return what is started, by its name."""
    python = sys.executable
    main = ["-m", "judgesmith"]
    named = {
        NOTHING: ["-c", "pass"],
        "import judgesmith": ["-c", "import judgesmith"],
        "judgesmith --version": [*main, "--version"],
        "judgesmith --help": [*main, "--help"],
    }
    for command in sorted(entry_points(group="judgesmith.commands").names):
        words = [*command.split("."), "--help"]
        named[" ".join(["judgesmith", *words])] = [*main, *words]
    return {name: [python, *arguments] for name, arguments in named.items()}


def seconds(command: list[str]) -> float:
    """Return the processor time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    return user + system


def main() -> None:
    """Print the seconds of each, and save them on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    named = started()
    taken = dict.fromkeys(named, float("inf"))
    for _ in range(arguments.repeat + 1):  # the first finds no compiled modules
        for name, command in named.items():
            taken[name] = min(taken[name], seconds(command))
    rows = [(name, spent, spent - taken[NOTHING]) for name, spent in taken.items()]
    if arguments.json:
        print(json.dumps({name: round(spent, 3) for name, spent in taken.items()}))
    else:
        for name, spent, beyond in rows:
            print(f"{name:32} {spent:.2f} {beyond:.2f}")
    columns = {"started": "", "s of processor": "{:.2f}", "beyond": "{:.2f}"}
    ran = "python experiments/bench/startup.py --save"
    save(DATA if arguments.save else None, "startup", columns, rows, commands=[ran])


if __name__ == "__main__":
    main()
