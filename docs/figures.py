"""Draws the figures of the README and the results from what stands in files.

python docs/figures.py                    # experiments/figures/readings.svg, from the study's table
python docs/figures.py demo-judge.json    # and docs/pages/assets/demo.svg, from the judge that `judgesmith demo` saved
"""

import json
import re
import sys
from pathlib import Path

import matplotlib
from matplotlib import pyplot as plt

matplotlib.use("Agg")
ROOT = Path(__file__).resolve().parents[1]
#: Okabe and Ito's colours, which readers with any form of colour blindness can tell apart.
GREY, ORANGE, BLUE = "#767676", "#d55e00", "#0072b2"
STYLE = {
    "font.size": 10, "svg.hashsalt": "judgesmith", "axes.spines.top": False, "axes.spines.right": False,
    "axes.spines.left": False, "ytick.left": False, "figure.facecolor": "white",
}  # fmt: skip


def written(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None, dpi=160)
    plt.close(figure)
    print(path.relative_to(ROOT))


def readings() -> None:
    """Zero-shot and weighed Q of each task: the first table of experiments/results/readings.md."""
    text = (ROOT / "experiments/results/readings.md").read_text(encoding="utf-8")
    table = text.split("\n| Task |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    rows = []
    for line in table:
        task, _, zero, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        weighed = re.match(r"\*\*([\d.]+)\*\* ± ([\d.]+)", rest[4])
        if weighed:
            rows.append((task, float(zero.replace("−", "-")), float(weighed[1]), float(weighed[2])))
    rows.sort(key=lambda row: row[2])
    figure, axes = plt.subplots(figsize=(7.5, 4.6))
    for y, (_, zero, mean, deviation) in enumerate(rows):
        axes.plot([zero, mean], [y, y], color="#c8c8c8", zorder=1)
        axes.errorbar(mean, y, xerr=deviation, fmt="o", color=BLUE, label="readings, 40 labels" if not y else None)
        axes.plot(zero, y, "s", color=ORANGE, label="the model's own score" if not y else None)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_xlabel("Q on documents that no label came from (bars: standard deviation over 50 draws of labels)")
    axes.axvline(0, color="#c8c8c8", linewidth=0.8, zorder=0)
    axes.legend(frameon=False, loc="lower right")
    written(figure, ROOT / "experiments/figures/readings.svg")


def demo(judge: Path) -> None:
    """Agreement of the demo's judge on its held-out rows, beside zero-shot and what no model is needed for."""
    told = json.loads(judge.read_text(encoding="utf-8"))["provenance"]
    rows = [("length, overlap, repetition", told["surface"], GREY), ("zero-shot", told["zero_shot"], ORANGE)]
    rows.append(("compiled", told["heldout"], BLUE))
    figure, axes = plt.subplots(figsize=(7.5, 1.7))
    for y, (_, found, colour) in enumerate(rows):
        axes.plot([found["low"], found["high"]], [y, y], color=colour, linewidth=2.5, solid_capstyle="butt")
        axes.plot(found["q"], y, "o", color=colour)
        axes.annotate(f"{found['q']:.2f}", (found["q"], y), (0, 7), textcoords="offset points", ha="center")
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(-0.5, len(rows) - 0.3)
    axes.set_xlim(-3, 3)
    axes.axvline(0, color="#c8c8c8", linewidth=0.8, zorder=0)
    axes.set_xlabel(
        f"Q with human ratings on {told['heldout']['n']} held-out rows, 95 % interval (3: perfect agreement)"
    )
    written(figure, ROOT / "docs/pages/assets/demo.svg")


if __name__ == "__main__":
    with plt.rc_context(STYLE):
        readings()
        for given in sys.argv[1:]:
            demo(Path(given))
