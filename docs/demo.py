"""Run the demo, keep its output, and draw it: demo.json, demo.svg and report.png in pages/assets, a block in README.md.

    python docs/demo.py [--draw]

--draw runs nothing, and writes figure and block again from demo.json. The picture of the report needs Chromium.
"""

import json
import os
import re
import shutil
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
#: Width and height of the picture of the report, in pixels.
PICTURE = (1100, 800)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=5000"
)


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


def run(picture: Path | None = None) -> dict[str, Any]:
    """Run `judgesmith demo` in an empty folder, and take a picture of its report where a file is named.

    Its answers are fresh: what earlier versions were answered is kept on disk for the same prompts.
    """
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"JUDGESMITH_CACHE": str(Path(folder, "calls.sqlite"))}
        command = [str(Path(sys.executable).with_name("judgesmith")), "demo"]
        subprocess.run(
            command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=env
        )
        data = measured(
            Path(folder, "demo-judge.json"), Path(folder, "demo-judge.scored.jsonl")
        )
        if picture is not None:
            photograph(Path(folder, "demo-judge.html"), picture)
            data["pictured"] = data["verdicts"]
        return data


def photograph(page: Path, picture: Path) -> None:
    """Take a picture of the top of a page.

    Raises:
        SystemExit: If there is no Chromium.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium for the picture of the report: install it")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            *FLAGS.split(),
            f"--user-data-dir={profile}",
            "--window-size={},{}".format(*PICTURE),
            f"--screenshot={picture}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True)


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
        data = run(ASSETS / "report.png")
        kept.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    data = json.loads(kept.read_text(encoding="utf-8"))
    draw(data, ASSETS / "demo.svg")
    README.write_text(
        with_block(README.read_text(encoding="utf-8"), data), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
