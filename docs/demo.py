"""Put the demo's output into README.md. With --live, run the demo that compiles: demo.json, demo.svg in pages/assets.

python docs/demo.py [--live]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
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
    "zero_shot": "model alone",
    "surface": "length and overlap",
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


def printed(*words: str, folder: str) -> str:
    """Return what `judgesmith demo` prints in a folder."""
    # Its answers are fresh: what earlier versions were answered is kept on disk for the same prompts.
    env = os.environ | {"JUDGESMITH_CACHE": str(Path(folder, "calls.sqlite"))}
    command = [str(Path(sys.executable).with_name("judgesmith")), "demo", *words]
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, env=env
    )
    return done.stdout


def run_live() -> dict[str, Any]:
    """Run the demo that compiles in an empty folder, and return what it measured."""
    with tempfile.TemporaryDirectory() as folder:
        printed("--live", folder=folder)
        return measured(
            Path(folder, "demo-judge.json"), Path(folder, "demo-judge.scored.jsonl")
        )


def with_block(page: str, output: str) -> str:
    """Return a page with the demo's output in its block."""
    block = f"```text\n{output.strip()}\n```\n"
    return BLOCK.sub(lambda found: found[1] + block + found[2], page)


def draw(data: dict[str, Any], figure: Path) -> None:
    """Draw the demo's agreement."""
    lines = [
        Estimate(f"{name} {found[0]:.2f}", *found)
        for name, found in data["agreement"].items()
    ]
    forest([(f"Q on {data['rows']} rows, 95 %", lines)]).write(figure)


def main() -> None:
    """Run the demo, and write the README's block; with --live, data and figure of the other one."""
    if "--live" in sys.argv[1:]:
        data = run_live()
        text = json.dumps(data, indent=1) + "\n"
        (ASSETS / "demo.json").write_text(text, encoding="utf-8")
        draw(data, ASSETS / "demo.svg")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = with_block(README.read_text("utf-8"), printed(folder=folder))
    README.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
