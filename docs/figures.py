"""Draws the figures of the README and the results from what stands in files.

python docs/figures.py                    # those of experiments/figures that stand beside a table
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


Row = tuple[str, float, float, float, str]


def forest(rows: list[Row], label: str, limits: tuple[float, float], path: Path) -> None:
    """Name, value, lower and upper end, colour: one line each, the last on top."""
    figure, axes = plt.subplots(figsize=(7.5, 0.75 + 0.32 * len(rows)))
    for y, (_, value, low, high, colour) in enumerate(rows):
        axes.plot([low, high], [y, y], color=colour, linewidth=2.5, solid_capstyle="butt")
        axes.plot(value, y, "o", color=colour)
        axes.annotate(f"{value:.2f}", (value, y), (0, 6), textcoords="offset points", ha="center", fontsize=8.5)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(-0.5, len(rows) - 0.2)
    axes.set_xlim(*limits)
    axes.axvline(0, color="#c8c8c8", linewidth=0.8, zorder=0)
    axes.set_xlabel(label)
    written(figure, path)


def optimizers() -> None:
    """Held-out Q of each arm and peer: the first table of experiments/results/optimizers.md."""
    text = (ROOT / "experiments/results/optimizers.md").read_text(encoding="utf-8")
    table = text.split("\n| wiki_da meaning, 40 labels |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    rows: list[Row] = []
    for line in table:
        name, cell, *_ = (cell.strip() for cell in line.strip("|").split("|"))
        value, low, high = (float(n) for n in re.findall(r"-?[\d.]+", cell.replace("−", "-")))
        rows.append((re.sub("[*`]", "", name), value, low, high, ORANGE if name.startswith("*") else BLUE))
    label = "Q on held-out rows, 95 % interval; orange: other projects"
    forest(rows[::-1], label, (-0.7, 2.2), ROOT / "experiments/figures/optimizers.svg")


def suggestion() -> None:
    """The lead of suggested rows over random order by task and number of labels, from its saved table."""
    data = json.loads((ROOT / "experiments/results/data/suggestion.json").read_text(encoding="utf-8"))
    leads = [i for i, title in enumerate(data["columns"]) if title.startswith("lead at ")]
    labels = [int(list(data["columns"])[i].removeprefix("lead at ")) for i in leads]
    rows = [row for row in data["rows"] if row[1] == "suggest"]
    figure, axes = plt.subplots(figsize=(7.5, 3.6))
    for k, row in enumerate(rows):
        x = [label * 1.02 ** (k - len(rows) / 2) for label in labels]  # beside each other
        values, errors = zip(*(row[i] for i in leads), strict=True)
        axes.errorbar(x, values, yerr=errors, fmt="o-", color="#9ab8cf", markersize=3, linewidth=0.8)
    means = [sum(row[i][0] for row in rows) / len(rows) for i in leads]
    axes.plot(labels, means, "o-", color=BLUE, linewidth=2.5, label=f"mean of {len(rows)} tasks")
    axes.axhline(0, color=ORANGE, linewidth=1, label="random order")
    axes.set_xscale("log")
    axes.set_xticks(labels, [str(label) for label in labels])
    axes.minorticks_off()
    axes.set_xlabel("labels (bars: standard error over draws)")
    axes.set_ylabel("lead in Q")
    axes.legend(frameon=False)
    written(figure, ROOT / "experiments/figures/suggestion.svg")


def demo(judge: Path) -> None:
    """Agreement of the demo's judge on its held-out rows, beside zero-shot and what no model is needed for."""
    provenance = json.loads(judge.read_text(encoding="utf-8"))["provenance"]
    judges = (
        ("length, overlap, repetition", "surface", GREY),
        ("zero-shot", "zero_shot", ORANGE),
        ("compiled", "heldout", BLUE),
    )
    rows = [
        (name, provenance[key]["q"], provenance[key]["low"], provenance[key]["high"], colour)
        for name, key, colour in judges
    ]
    label = f"Q with human ratings on {provenance['heldout']['n']} held-out rows, 95 % interval (3: perfect agreement)"
    forest(rows, label, (-3, 3), ROOT / "docs/pages/assets/demo.svg")


if __name__ == "__main__":
    with plt.rc_context(STYLE):
        readings()
        optimizers()
        suggestion()
        for given in sys.argv[1:]:
            demo(Path(given))
