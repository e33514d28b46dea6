"""Measure how plain the code is: `python docs/form.py [--list|--check]`; --list names what is too dense.

Counted are syntax nodes (statements and expressions) a line of code, without blank lines, comments, docstrings and
imports; and functions with more than three comprehensions, more than three conditional expressions, either of them
inside another, or arithmetic on a comparison. A hot loop may be listed in `EXCUSED`, with its reason. With --check the
exit code is 1 where the mean is above `MOST_NODES`, a class has too many public methods, or more functions are too
dense than there were (`DENSE`, which only falls).
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracked import ROOMS, ROOT, tracked

MOST_NODES, MOST_COMPREHENSIONS, MOST_CONDITIONALS = 5.5, 3, 3
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Functions that are too dense today. Lower it with each that is made plain.
DENSE = 109
#: Public methods of a class at most.
MOST_METHODS = 20
#: "path:function" -> why its form is as it is.
EXCUSED: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Offence:
    """A function, and why its expressions are not plain."""

    path: Path
    line: int
    function: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.path.relative_to(ROOT)}:{self.line} {self.function}: {self.reason}"
        )


def code_lines(source: str) -> int:
    """Count the lines that hold code other than imports and docstrings."""
    lines = set[int]()
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in _prose(ast.parse(source)):
        lines.difference_update(
            range(node.lineno, (node.end_lineno or node.lineno) + 1)
        )
    return len(lines)


def _prose(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield imports and docstrings."""
    for node in ast.walk(tree):
        docstring = isinstance(node, ast.Expr) and _is_text(node.value)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def nodes(source: str) -> int:
    """Count statements and expressions, without those of imports and docstrings."""
    tree = ast.parse(source)
    prose = {id(inner) for node in _prose(tree) for inner in ast.walk(node)}
    return sum(
        isinstance(node, ast.stmt | ast.expr) and id(node) not in prose
        for node in ast.walk(tree)
    )


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what lies inside a node, but not inside a function in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from _within(child)


def _reasons(function: ast.AST) -> Iterator[str]:
    inside = list(_within(function))
    comprehensions = [node for node in inside if isinstance(node, COMPREHENSIONS)]
    conditionals = [node for node in inside if isinstance(node, ast.IfExp)]
    if len(comprehensions) > MOST_COMPREHENSIONS:
        yield f"{len(comprehensions)} comprehensions"
    if len(conditionals) > MOST_CONDITIONALS:
        yield f"{len(conditionals)} conditional expressions"
    for kinds, nested in (
        (COMPREHENSIONS, comprehensions),
        ((ast.IfExp,), conditionals),
    ):
        if any(
            isinstance(inner, kinds) for outer in nested for inner in _within(outer)
        ):
            yield (
                "one comprehension inside another"
                if kinds is COMPREHENSIONS
                else "nested conditional expressions"
            )
    for node in inside:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = (node.left, node.right)
            if any(isinstance(side, ast.Compare) for side in sides) and any(
                map(_is_text, sides)
            ):
                yield "a text times a comparison"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def offences(path: Path) -> Iterator[Offence]:
    """Yield what is too dense in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for reason in _reasons(node):
                yield Offence(path, node.lineno, node.name, reason)


def many_methods(path: Path) -> Iterator[str]:
    """Yield the classes of a file that have more public methods than they may."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            functions = [
                one
                for one in node.body
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            public = sum(not one.name.startswith("_") for one in functions)
            if public > MOST_METHODS:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {public} public methods"


def main() -> int:
    """Print the measurements; return 1 with --check if a bound is exceeded."""
    paths = [
        path for path in tracked(".py") if path.relative_to(ROOT).parts[0] in ROOMS
    ]
    rooms: dict[str, tuple[int, int]] = {}
    for path in paths:
        source, parts = path.read_text(encoding="utf-8"), path.relative_to(ROOT).parts
        room = "/".join(parts[:3]) if parts[0] == "src" and len(parts) > 3 else parts[0]
        counted, lines = rooms.get(room, (0, 0))
        rooms[room] = (counted + nodes(source), lines + code_lines(source))
    for room, (counted, lines) in sorted(rooms.items(), key=lambda pair: -pair[1][1]):
        print(f"{counted / max(1, lines):5.2f} nodes a line, {lines:6,} lines  {room}")
    total = sum(counted for counted, _ in rooms.values()) / sum(
        lines for _, lines in rooms.values()
    )
    found = [one for path in paths for one in offences(path)]
    kept = [
        one
        for one in found
        if f"{one.path.relative_to(ROOT)}:{one.function}" not in EXCUSED
    ]
    dense = len({(one.path, one.line) for one in kept})
    print(f"{total:5.2f} nodes a line in all; {dense} functions too dense")
    if "--list" in sys.argv:
        print("\n".join(map(str, kept)))
    large = [line for path in paths for line in many_methods(path)]
    print("\n".join(large), end="\n" if large else "")
    return int(
        "--check" in sys.argv and (total > MOST_NODES or dense > DENSE or bool(large))
    )


if __name__ == "__main__":
    sys.exit(main())
