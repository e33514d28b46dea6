"""Draws the figure of the demo's agreement from the judge that `judgesmith demo` saved, and prints its numbers.

judgesmith demo && python docs/demo.py demo-judge.json
"""

import sys
from pathlib import Path
from typing import Any

from judgesmith.figures import Estimate, forest
from judgesmith.programs.artifact import read

FIGURE = Path(__file__).resolve().parent / "pages/assets/demo.svg"
JUDGES = {"heldout": "compiled", "zero_shot": "zero-shot", "surface": "length, overlap, repetition"}


def line(name: str, found: dict[str, Any]) -> Estimate:
    """A judge's agreement with its numbers beside its name."""
    value, low, high = (found[key] for key in ("value", "low", "high"))
    return Estimate(f"{name} {value:.2f}", value, low, high)


def main(judge: Path, figure: Path = FIGURE) -> None:
    history = read(judge).provenance
    title = f"Q on {history['labels']['heldout']} rows, 95 %"
    lines = [line(name, history[key]) for key, name in JUDGES.items()]
    forest([(title, lines)]).write(figure)
    for name, found in ((name, history[key]) for key, name in JUDGES.items()):
        print(name, found["signature"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
