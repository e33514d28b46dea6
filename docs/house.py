"""How large the house is, room by room, and its picture, both read from the source.

    python docs/house.py            # print lines and statements; fail where a ceiling is exceeded
    python docs/house.py --draw     # draw docs/pages/assets/house.svg, too

A line is a line of a file: blank lines, docstrings and comments count. A statement is one of Python's `ast`.
"""

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/pages/assets/house.svg"
BUDGET = {"core": 35_000, "production": 50_000, "tests": 30_000}
LIBRARY = ("signatures", "programs", "optimizers", "datasets")
#: What can stand apart from the core, by its folder.
APART = (
    "adapters", "labelling", "mlflow", "serving", "training", "watching",
    "programs/baselines", "programs/readings/bindings",
)  # fmt: skip

#: The library, what can stand apart, the laboratory, and everything else: the product.
SHADES = (
    ((*LIBRARY, "agreement", "testing"), "#dbe7fb"), (APART, "#e6f4e4"), (("experiments",), "#eeeeee"), ((), "#f3ecd8"),
)  # fmt: skip


def room_of(path: Path) -> str:
    """The room of a file of the repository: signatures, agreement, programs/baselines."""
    parts = path.relative_to(ROOT).parts
    parts = parts[2:] if parts[:2] == ("src", "judgesmith") else parts
    folder = "/".join(parts[:-1])
    if apart := [name for name in APART if folder == name or folder.startswith(f"{name}/")]:
        return apart[0]
    return parts[0] if len(parts) > 1 else "judgesmith"


def sources() -> dict[Path, str]:
    """Every Python file of the repository, by path."""
    folders = (*LIBRARY, "src", "experiments", "docs", "tests")
    return {path: path.read_text(encoding="utf-8") for name in folders for path in sorted((ROOT / name).rglob("*.py"))}


def sizes() -> tuple[Counter[str], Counter[str]]:
    """Lines and statements by room."""
    lines, statements = Counter[str](), Counter[str]()
    for path, text in sources().items():
        room = room_of(path)
        lines[room] += len(text.splitlines())
        statements[room] += sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))
    return lines, statements


def totals(counts: Counter[str]) -> dict[str, int]:
    """Of the core, of all production code, of the tests."""
    production = sum(counts.values()) - counts["tests"]
    apart = sum(counts[room] for room in (*APART, "experiments", "docs"))
    return {"core": production - apart, "production": production, "tests": counts["tests"]}


def imports() -> set[tuple[str, str]]:
    """(room, room that it imports), of the rooms of the package."""
    arrows = set()
    for path, text in sources().items():
        parts = path.relative_to(ROOT).parts
        inside = parts[2:] if parts[0] == "src" else parts
        if room_of(path) in ("tests", "docs") or inside[1:2] in (("bench",), ("peers",)):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                above = ["judgesmith", *inside][: -node.level]
                target = [*above, *(node.module or "").split(".")][1:]
                names = target[:1] if node.module else target or [alias.name for alias in node.names]
                arrows |= {(inside[0] if len(inside) > 1 else "judgesmith", name) for name in names if name}
    rooms = {room for room, _ in arrows}
    return {(a, b) for a, b in arrows if a != b and b in rooms and "judgesmith" not in (a, b)}


def below(rooms: set[str], arrows: set[tuple[str, str]]) -> set[str]:
    """The rooms that some rooms import, directly or through others."""
    while more := {b for a, b in arrows if a in rooms} - rooms:
        rooms = rooms | more
    return rooms


def floors(rooms: list[str], arrows: set[tuple[str, str]]) -> list[list[str]]:
    """The rooms by floor: each above all rooms that it imports."""
    left, built = sorted(rooms), list[list[str]]()
    while left:
        floor = [room for room in left if not any(a == room and b in left for a, b in arrows)]
        if not floor:
            raise ValueError(f"these rooms import each other: {', '.join(left)}")
        built.append(floor)
        left = [room for room in left if room not in floor]
    return built


def draw(path: Path) -> None:
    """The rooms, as wide as they are large, and their arrows; an arrow that others imply is left out."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "house", "svg.fonttype": "none", "font.family": "sans-serif"}
    from matplotlib import pyplot as plt

    arrows, (lines, _) = imports(), sizes()
    built = floors(sorted({room for arrow in arrows for room in arrow}), arrows)
    figure, axes = plt.subplots(figsize=(10, 1.15 * len(built)))
    middles: dict[str, tuple[float, float]] = {}
    for level, floor in enumerate(built):
        widths = [0.55 + 0.085 * max(len(room), 8) + lines[room] / 9000 for room in floor]
        x = -(sum(widths) + 0.25 * (len(floor) - 1)) / 2
        for room, width in zip(floor, widths, strict=True):
            color = next(shade for rooms, shade in SHADES if room in rooms or not rooms)
            axes.add_patch(plt.Rectangle((x, level), width, 0.55, facecolor=color, edgecolor="#555", linewidth=0.8))
            for text, height, size in ((room, 0.34, 9), (f"{lines[room]:,}", 0.14, 7)):
                axes.text(x + width / 2, level + height, text, ha="center", va="center", fontsize=size)
            middles[room] = (x + width / 2, level)
            x += width + 0.25
    for a, b in sorted(arrows):
        if b not in below({c for d, c in arrows if d == a} - {b}, arrows):
            (x, y), (end, floor_below) = middles[a], middles[b]
            arrow = {"arrowstyle": "->", "color": "#888", "linewidth": 0.7}
            axes.annotate("", (end, floor_below + 0.56), (x, y), arrowprops=arrow)
    axes.autoscale_view()
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Creator": None})


def main() -> int:
    lines, statements = sizes()
    for room, count in sorted(lines.items(), key=lambda pair: -pair[1]):
        print(f"{count:7,} lines {statements[room]:7,} statements  {room}")
    counted, wrong = totals(lines), []
    for name, count in counted.items():
        print(f"{name}: {count:,} lines, budget {BUDGET[name]:,}; {totals(statements)[name]:,} statements")
        if count > BUDGET[name]:
            wrong.append(f"{name}: {count:,} lines; there may be {BUDGET[name]:,} (docs/house.py): take some away")
    if "--draw" in sys.argv:
        draw(PICTURE)
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
