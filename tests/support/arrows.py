"""The modules of the package and the imports between them, read from the source."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/judgesmith"
#: Rooms at the top level of the repository; all others are in src/judgesmith.
TOP = ("signatures", "programs", "optimizers", "datasets", "experiments")


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the package, by name: judgesmith.programs.models.lm."""
    paths = [path for room in TOP for path in (ROOT / room).rglob("*.py")] + list(
        PACKAGE.rglob("*.py")
    )
    return {name_of(path): path for path in sorted(paths)}


def name_of(path: Path) -> str:
    home = PACKAGE if path.is_relative_to(PACKAGE) else ROOT
    return ".".join(
        ["judgesmith", *path.relative_to(home).with_suffix("").parts]
    ).removesuffix(".__init__")


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, without what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from (other, *at_run_time(other))
        else:
            yield from (node, *at_run_time(node))


def targets(name: str, package: str, node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """(module, name taken from it or "", local name) of an import of ours; relative imports are resolved."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name in modules():
                yield alias.name, "", alias.asname or alias.name
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: 1 - node.level or None] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            if f"{base}.{alias.name}" in modules():
                yield f"{base}.{alias.name}", "", alias.asname or alias.name
            elif (node.level or base.split(".")[0] == "judgesmith") and base != name:
                yield base, alias.name, alias.asname or alias.name


def looked_into(
    name: str, source: str, *, is_package: bool = False
) -> tuple[set[str], list[str]]:
    """(modules that it imports, private names of other modules that it takes or reaches)."""
    package = name if is_package else name.rpartition(".")[0]
    imported, private, bound = set(), [], {}
    nodes = list(at_run_time(ast.parse(source)))
    for node in nodes:
        for module, taken, local in targets(name, package, node):
            if (module, taken) == ("judgesmith", "__version__"):
                continue
            imported.add(module)
            if taken.startswith("_") and not taken.startswith("__"):
                private.append(f"{name}: {module}.{taken}")
            if not taken:
                bound[local] = module
    private += [
        f"{name}: {bound[node.value.id]}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in bound
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    ]
    return imported - {name}, private


@cache
def graph() -> Mapping[str, tuple[set[str], list[str]]]:
    return {
        name: looked_into(
            name,
            path.read_text(encoding="utf-8"),
            is_package=path.name == "__init__.py",
        )
        for name, path in modules().items()
    }


def every_import(name: str, path: Path) -> set[str]:
    """Every module that a module names in an import, also late ones and those that only type checkers read."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {
        module for node in nodes for module, _, _ in targets(name, package, node)
    } & modules().keys() - {name}
