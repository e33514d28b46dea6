"""Run the demo, keep its output, and draw it: pages/assets/demo.json, demo.svg, and the block in README.md.

    python docs/demo.py [--draw]

--draw runs nothing, and writes figure and block again from demo.json.
"""

import json
import re
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from judgesmith.figures import Estimate, forest
from judgesmith.programs.artifact import read

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "docs/pages/assets"
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- demo -->\n).*?(<!-- /demo -->)", re.DOTALL)
JUDGES = {
    "heldout": "compiled",
    "zero_shot": "the plain prompt",
    "surface": "length, overlap, repetition",
}
FIGURES = ("value", "low", "high")


def measured(judge: Path, scored: Path) -> dict[str, Any]:
    """Return what the demo showed: agreement by judge, and the verdicts on its new texts."""
    history = read(judge).provenance
    verdicts = [
        json.loads(line) for line in scored.read_text(encoding="utf-8").splitlines()
    ]
    return {
        "rows": history["labels"]["heldout"],
        "agreement": {
            name: [round(history[key][one], 2) for one in FIGURES]
            for key, name in JUDGES.items()
        },
        "verdicts": [
            {
                "id": row["id"],
                "score": round(row["verdict"]["score"], 2),
                "suspicious": bool(row["verdict"].get("suspicious")),
            }
            for row in verdicts
        ],
    }


def run() -> dict[str, Any]:
    """Run `judgesmith demo` in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("judgesmith")), "demo"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return measured(
            Path(folder, "demo-judge.json"), Path(folder, "demo-judge.scored.jsonl")
        )


def block(data: dict[str, Any]) -> str:
    """Return agreement and verdicts as the README shows them."""
    text = (files("judgesmith.datasets.demo") / "new_outputs.jsonl").read_text(
        encoding="utf-8"
    )
    outputs = {row["id"]: row["output"] for row in map(json.loads, text.splitlines())}
    lines = [
        f"{data['rows']} sentences, each judged by a judge that did not learn from it:"
    ]
    for name, (value, low, high) in data["agreement"].items():
        lines.append(f"  {name:<28} Q {value:.2f} [{low:.2f}, {high:.2f}]")
    lines.append("Four new ones, on 1 to 5:")
    for row in data["verdicts"]:
        note = "  (flagged: it addresses the judge)" if row["suspicious"] else ""
        lines.append(f"  {row['score']:.2f}  {outputs[row['id']][:52]}…{note}")
    return "\n".join(lines)


def with_block(page: str, data: dict[str, Any]) -> str:
    """Return a page with the demo's output in its block."""
    return BLOCK.sub(
        lambda found: f"{found[1]}```text\n{block(data)}\n```\n{found[2]}", page
    )


def draw(data: dict[str, Any], figure: Path) -> None:
    """Draw the demo's agreement."""
    lines = [
        Estimate(f"{name} {found[0]:.2f}", *found)
        for name, found in data["agreement"].items()
    ]
    forest([(f"Q on {data['rows']} rows, 95 %", lines)]).write(figure)


def main() -> None:
    """Run or read the demo, and write figure and block."""
    kept = ASSETS / "demo.json"
    if "--draw" not in sys.argv[1:]:
        kept.write_text(json.dumps(run(), indent=1) + "\n", encoding="utf-8")
    data = json.loads(kept.read_text(encoding="utf-8"))
    draw(data, ASSETS / "demo.svg")
    README.write_text(
        with_block(README.read_text(encoding="utf-8"), data), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
