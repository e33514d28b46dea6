"""How large the house is, room by room, read from the source.

    python docs/house.py            # print lines and statements; fail where a ceiling is exceeded

A line is a line of a file: blank lines, docstrings and comments count. A statement is one of Python's `ast`.
"""

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGET = {"core": 35_000, "production": 50_000, "tests": 30_000}
LIBRARY = ("signatures", "programs", "optimizers", "datasets")
#: What can stand apart from the core, by its folder.
APART = (
    "adapters", "choosing", "labelling", "mlflow", "queues", "serving", "sync", "testing",
    "training", "watching", "programs/baselines", "programs/readings/bindings",
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


def main() -> int:
    lines, statements = sizes()
    for room, count in sorted(lines.items(), key=lambda pair: -pair[1]):
        print(f"{count:7,} lines {statements[room]:7,} statements  {room}")
    counted, wrong = totals(lines), []
    for name, count in counted.items():
        print(f"{name}: {count:,} lines, budget {BUDGET[name]:,}; {totals(statements)[name]:,} statements")
        if count > BUDGET[name]:
            wrong.append(f"{name}: {count:,} lines; there may be {BUDGET[name]:,} (docs/house.py): take some away")
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
