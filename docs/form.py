"""Report how plain the code is, beside other projects: `python docs/form.py`. It gates nothing.

Counted are expressions a statement, which no column width changes; statements of a function; and forms that carry more
than one idea. A stranger's reading decides, not these counts.
"""

import ast
from collections import Counter
from pathlib import Path

from tracked import ROOMS, ROOT, tracked

#: Expressions a statement, comprehensions and conditional expressions of 1,000 lines, by the same count.
ANCHORS = {
    "optuna": (5.93, 23, 7),
    "httpx": (5.91, 10, 15),
    "dspy": (5.96, 24, 22),
    "inspect_ai (scorer)": (5.57, 27, 17),
    "sacrebleu": (6.92, 14, 9),
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def counts(source: str) -> Counter[str]:
    """Count a file's forms, without its docstrings and imports."""
    found = Counter(lines=source.count("\n"))
    for node in ast.walk(ast.parse(source)):
        imported = isinstance(node, ast.Import | ast.ImportFrom)
        if isinstance(node, ast.stmt) and not imported and not _is_text(node):
            found["statements"] += 1
        if isinstance(node, ast.expr):
            found["expressions"] += 1
        if isinstance(node, COMPREHENSIONS):
            found["comprehensions"] += 1
        if isinstance(node, ast.IfExp):
            found["conditionals"] += 1
        if _assigns_in_parallel(node):
            found["parallel"] += 1
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found["maps"] += node.func.id == "map"
    return found


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _assigns_in_parallel(node: ast.AST) -> bool:
    """Return True for `a, b = x, y`."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def room_of(path: Path) -> str:
    """Return the room that a file is counted for."""
    parts = path.relative_to(ROOT).parts
    inner = parts[0] == "src" and len(parts) > 3
    return "/".join(parts[:3]) if inner else parts[0]


def line(name: str, found: Counter[str]) -> str:
    """Return one line of the report."""
    thousands = found["lines"] / 1000
    return (
        f"{found['expressions'] / max(1, found['statements']):5.2f} "
        f"{found['comprehensions'] / thousands:5.0f} {found['conditionals'] / thousands:5.0f} "
        f"{found['parallel']:6} {found['maps']:5} {found['lines']:8,}  {name}"
    )


def main() -> None:
    """Print a line a room, the whole, and the anchors."""
    rooms: dict[str, Counter[str]] = {}
    for path in tracked(".py"):
        if path.relative_to(ROOT).parts[0] in ROOMS:
            found = rooms.setdefault(room_of(path), Counter())
            found.update(counts(path.read_text(encoding="utf-8")))
    print("expressions a statement; comprehensions, conditionals of 1,000 lines;")
    print("parallel assignments; calls of map; lines")
    for room, found in sorted(rooms.items(), key=lambda pair: -pair[1]["lines"]):
        if found["lines"]:
            print(line(room, found))
    print(line("in all", sum(rooms.values(), Counter())))
    for name, (expressions, comprehensions, conditionals) in ANCHORS.items():
        print(f"{expressions:5.2f} {comprehensions:5} {conditionals:5}  {name}")


if __name__ == "__main__":
    main()
