"""The arrows between the rooms, read from the source: import linters cannot see the package mapping."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/judgesmith"
ROOMS = ("signatures", "programs", "optimizers", "datasets", "experiments")
#: Modules of src/judgesmith that every room may import.
SHARED = ("errors", "likeness", "parts")
#: What a room may import beside itself.
ARROWS = {
    "errors": set(),
    "likeness": set(),
    "parts": {"errors"},
    "signatures": {"errors"},
    "datasets": set(SHARED),
    "programs": {*SHARED, "signatures"},
    "optimizers": {*SHARED, "signatures", "programs", "datasets"},
    "experiments": {*SHARED, "signatures", "programs", "optimizers", "datasets"},
    "cli": {*SHARED, "signatures", "programs", "optimizers", "datasets", "experiments"},
}
MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|work|tmp|mnt|opt)/\w|[A-Z]:\\\\?Users")


def sources() -> list[tuple[str, Path]]:
    """(room, file) for every Python file; the shared modules and `cli` are in src/judgesmith."""
    found = [(room, path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    found += [("cli", path) for path in sorted((PACKAGE / "cli").rglob("*.py"))]
    return [*found, *((name, PACKAGE / f"{name}.py") for name in SHARED)]


def imports(tree: ast.AST) -> Iterator[tuple[int, str, list[str], int]]:
    """(dots, module, names, line) of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, [], node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names], node.lineno


def reached(room: str, path: Path, dots: int, module: str, names: list[str]) -> set[str]:
    """The rooms that a relative import reaches; "package" is judgesmith itself."""
    home = PACKAGE / "cli" if room == "cli" else ROOT / room
    # Folders up to the room, the file's own included.
    depth = 0 if room in SHARED else len(path.relative_to(home).parts)
    if dots <= depth:
        return {room}
    assert dots == depth + 1, f"{path}: too many dots"
    return {module.split(".")[0]} if module else {name if name in ARROWS else "package" for name in names}


def problems(room: str, path: Path, source: str) -> list[str]:
    """What is wrong with a file's imports and calls."""
    found = []
    tree = ast.parse(source)
    study = room == "experiments" and path.relative_to(ROOT).parts[1] in ("bench", "papers", "peers")
    for dots, module, names, line in imports(tree):
        where = f"{path.relative_to(ROOT)}:{line}"
        top = module.split(".")[0]
        if dots:
            for other in reached(room, path, dots, module, names) - {room}:
                # The version is the one thing that a room may ask the package itself for.
                if other not in ARROWS[room] and not (other == "package" and names == ["__version__"]):
                    found.append(f"{where}: {room} imports {other}")
        elif top == "judgesmith":
            others = set(module.split(".")[1:2]) or {"package"}
            if not study:
                found.append(f"{where}: an absolute import of {module}")
            elif not others <= ARROWS[room] | {room, "package"}:
                found.append(f"{where}: {room} imports {others}")
        elif top in ROOMS:
            found.append(f"{where}: imports the top-level package {top}")
    if room not in ("experiments", "cli"):
        found += [
            f"{path.relative_to(ROOT)}:{node.lineno}: print()"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]
    return found


def test_there_is_something_to_check() -> None:
    count = {room: sum(r == room for r, _ in sources()) for room in ROOMS}
    assert all(n >= 3 for n in count.values()), count


@pytest.mark.parametrize(("room", "path"), sources(), ids=lambda v: v.name if isinstance(v, Path) else v)
def test_a_room_imports_only_what_it_may(room: str, path: Path) -> None:
    assert problems(room, path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("signatures", "from ..programs.lm import price"),
        ("signatures", "from ..datasets import read_labels"),
        ("programs", "from ..optimizers import correlation"),
        ("programs", "from ..datasets.records import Row"),
        ("programs", "from .. import experiments"),
        ("programs", "from judgesmith.signatures.values import Scale"),
        ("optimizers", "def f():\n    from ..experiments import cli"),
        ("datasets", "from ..signatures.values import Scale"),
        ("datasets", "from .. import compile"),
        ("optimizers", "import datasets"),
        ("optimizers", "import datasets.records as r"),
        ("programs", "print('hello')"),
        ("errors", "from .datasets import records"),
    ],
)
def test_a_wrong_line_would_be_found(room: str, line: str) -> None:
    folder = ROOT / "src/judgesmith" if room == "errors" else ROOT / room
    assert len(problems(room, folder / "new.py", line)) == 1


@pytest.mark.parametrize(
    ("room", "file", "line"),
    [
        (
            "programs",
            "new.py",
            "from ..signatures.values import Scale\nfrom . import engine\nfrom ..errors import CallError",
        ),
        ("optimizers", "new.py", "from ..datasets.records import Row\nfrom ..programs import engine"),
        ("experiments", "bench/new.py", "from judgesmith.programs.models.lm import price"),
        ("experiments", "new.py", "print('hello')"),
        ("experiments", "new.py", "from .. import __version__"),
        ("datasets", "demo/__init__.py", "from ..records import Row\nfrom ...errors import LabelsError"),
    ],
)
def test_a_right_line_would_pass(room: str, file: str, line: str) -> None:
    assert problems(room, ROOT / room / file, line) == []


def test_the_package_itself_imports_rooms_only_when_asked() -> None:
    tree = ast.parse((ROOT / "src/judgesmith/__init__.py").read_text(encoding="utf-8"))
    at_import = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    assert at_import == []


@pytest.mark.parametrize(("room", "path"), sources(), ids=lambda v: v.name if isinstance(v, Path) else v)
def test_no_path_of_a_machine_stands_in_the_source(room: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [m[0] for m in MACHINE.finditer(text)] == []


def test_the_pattern_finds_paths_of_machines() -> None:
    # Put together here, so that this file itself names no path of a machine.
    temporary, checkout = "/".join(("", "tmp", "w", "v")), "/".join(("", "work", "main"))
    for text in ('open("/home/me/x")', temporary, "C:\\Users\\me", f"see {checkout}"):
        assert MACHINE.search(text), text
    for text in ("https://example.org/home/x", f"a{'/'.join(('', 'tmp', 'b'))}", "application/json"):
        assert not MACHINE.search(text), text
