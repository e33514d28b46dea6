"""The arrows between the rooms and inside them, read from the source: import linters cannot see the package mapping."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/judgesmith"
ROOMS = ("signatures", "programs", "optimizers", "datasets", "experiments")
#: Rooms in src/judgesmith.
WITHIN = ("cli", "testing")
#: Modules of src/judgesmith that every room may import.
SHARED = ("conversation", "errors", "likeness", "parts")
#: What a room may import beside itself.
ARROWS = {
    "conversation": set(),
    "errors": set(),
    "likeness": set(),
    "parts": {"errors"},
    "signatures": {"conversation", "errors"},
    "datasets": set(SHARED),
    "programs": {*SHARED, "signatures"},
    "optimizers": {*SHARED, "signatures", "programs", "datasets"},
    "experiments": {*SHARED, "signatures", "programs", "optimizers", "datasets"},
    "cli": {*SHARED, "signatures", "programs", "optimizers", "datasets", "experiments"},
    "testing": {*SHARED, "signatures", "programs", "optimizers", "datasets"},
}
#: What a sub-package may import of its own room; "" is what stands in the room itself. Studies and benches that are run
#: from a checkout may import all of `experiments`.
INSIDE = {
    "programs": {
        "models": set(),
        "prompting": {"models"},
        "": {"models", "prompting", "active_critic"},  # every judge may take a task that was inferred
        "active_critic": {"", "models", "prompting"},
        "openlgauge": {"", "models", "prompting", "active_critic"},
        "comparing": {"", "models", "prompting"},
        "pointwise": {"", "models", "prompting", "active_critic", "comparing", "openlgauge"},
        "readings": {"", "models", "pointwise"},
        "baselines": {"", "models", "readings"},
        "distilled": {"", "models", "prompting", "active_critic", "openlgauge", "readings"},
    },
    "optimizers": {
        "agreement": set(),
        "": {"agreement", "search", "fitting"},
        "search": {"", "agreement", "fitting"},
        "dspy": {"", "agreement", "search", "fitting"},
        "fitting": {"", "agreement", "search"},
        "training": {"", "agreement", "fitting"},
    },
    "datasets": {"": set(), "benchmarks": {""}, "perturbations": set(), "demo": set()},
    "experiments": {
        "": {"reports"},
        "adapters": set(),
        "evaluation": {""},
        "discernment": {"", "evaluation", "reports"},
        "drift": {"", "evaluation", "reports"},
        "reports": {"", "evaluation", "discernment", "drift"},
        "labelling": {"", "evaluation", "reports"},
        "serving": {"", "reports"},
        "presets": {""},
        "studies": {"", "evaluation", "presets", "reports"},
    },
}
MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|work|tmp|mnt|opt)/\w|[A-Z]:\\\\?Users")


def sources() -> list[tuple[str, Path]]:
    """(room, file) for every Python file; the shared modules, `cli` and `testing` are in src/judgesmith."""
    found = [(room, path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    found += [(room, path) for room in WITHIN for path in sorted((PACKAGE / room).rglob("*.py"))]
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
    home = PACKAGE / room if room in WITHIN else ROOT / room
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


# -- modules: sub-packages, cycles, private names


def name_of(path: Path) -> str:
    """A file's module: judgesmith.programs.models.lm."""
    home = PACKAGE if path.is_relative_to(PACKAGE) else ROOT
    return ".".join(["judgesmith", *path.relative_to(home).with_suffix("").parts]).removesuffix(".__init__")


@cache
def modules() -> Mapping[str, Path]:
    return {name_of(path): path for path in [*(path for _, path in sources()), PACKAGE / "__init__.py"]}


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, without what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from (other, *at_run_time(other))
        else:
            yield from (node, *at_run_time(node))


def targets(name: str, package: str, node: ast.AST, known: Mapping[str, Path]) -> Iterator[tuple[str, str, str]]:
    """(module, name taken from it or "", local name) of an import of ours; relative ones are resolved."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name in known:
                yield alias.name, "", alias.asname or alias.name
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: 1 - node.level or None] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            if f"{base}.{alias.name}" in known:
                yield f"{base}.{alias.name}", "", alias.asname or alias.name
            elif (node.level or base.split(".")[0] == "judgesmith") and base != name:
                yield base, alias.name, alias.asname or alias.name


def looked_into(name: str, path: Path, source: str) -> tuple[set[str], list[str]]:
    """(modules that it imports, private names of other modules that it takes or reaches)."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    reached, private, bound = set(), [], {}
    nodes = list(at_run_time(ast.parse(source)))
    for node in nodes:
        for module, taken, local in targets(name, package, node, modules()):
            reached.add(module)
            if taken.startswith("_") and not taken.startswith("__"):
                private.append(f"{name}: {module}.{taken}")
            if not taken:
                bound[local] = module
    private += [
        f"{name}: {bound[node.value.id]}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound
        and node.attr.startswith("_") and not node.attr.startswith("__")
    ]  # fmt: skip
    return reached - {name}, private


@cache
def graph() -> Mapping[str, tuple[set[str], list[str]]]:
    return {name: looked_into(name, path, path.read_text(encoding="utf-8")) for name, path in modules().items()}


def folder(name: str) -> tuple[str, str]:
    """(room, sub-package in it or "")."""
    parts = name.split(".")[1:]
    room, sub = parts[0] if parts else "", parts[1] if len(parts) > 1 else ""
    return room, sub if sub in INSIDE.get(room, ()) or sub in ("bench", "papers", "peers") else ""


def test_every_sub_package_is_in_the_table() -> None:
    there = {
        (room, path.name)
        for room in INSIDE
        for path in (ROOT / room).iterdir()
        if (path / "__init__.py").is_file() and path.name not in ("bench", "papers", "peers")
    }
    assert there == {(room, sub) for room, subs in INSIDE.items() for sub in subs if sub}


def test_a_sub_package_imports_only_what_it_may() -> None:
    wrong = []
    for name, (reached, _) in graph().items():
        room, sub = folder(name)
        if room not in INSIDE or sub in ("bench", "papers", "peers"):
            continue
        wrong += [
            f"{name} imports {other}"
            for other in reached
            if folder(other)[0] == room and folder(other)[1] not in (sub, *INSIDE[room][sub])
        ]
    assert sorted(wrong) == []


def test_the_table_of_arrows_inside_rooms_is_short_of_none_and_has_none_too_many() -> None:
    used = {(folder(name), folder(other)) for name, (reached, _) in graph().items() for other in reached}
    for room, subs in INSIDE.items():
        for sub, others in subs.items():
            assert {other for other in others if ((room, sub), (room, other)) not in used} == set(), (room, sub)


def cycle(edges: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, [] if there are none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_module_that_is_imported_is_there() -> None:
    wrong = [(name, other) for name, (reached, _) in graph().items() for other in reached if other not in modules()]
    assert wrong == []


def test_no_modules_import_each_other_however_late() -> None:
    # The package itself imports its public names when they are asked for; nothing in it imports them from there.
    assert cycle({name: reached - {"judgesmith"} for name, (reached, _) in graph().items()}) == []


def test_a_cycle_would_be_found() -> None:
    lm = modules()["judgesmith.programs.models.lm"]
    late = looked_into("judgesmith.programs.models.lm", lm, "def f():\n    from ..judge import Judge")[0]
    assert late == {"judgesmith.programs.judge"}
    assert looked_into("judgesmith.programs.models.lm", lm, "if TYPE_CHECKING:\n    from .. import judge") == (
        set(),
        [],
    )
    edges = {name: reached for name, (reached, _) in graph().items()} | {"judgesmith.programs.models.lm": late}
    assert {"judgesmith.programs.judge", "judgesmith.programs.models.lm"} <= set(cycle(edges))


def test_no_module_takes_the_private_names_of_another() -> None:
    assert sorted(line for _, private in graph().values() for line in private) == []


@pytest.mark.parametrize(
    "line",
    [
        "from .models.lm import _secret",
        "from .models import lm\nlm._secret",
        "def f():\n    import judgesmith.programs.models.lm as lm\n    return lm._secret()",
    ],
)
def test_a_private_name_would_be_found(line: str) -> None:
    found = looked_into("judgesmith.programs.new", ROOT / "programs/new.py", line)[1]
    assert found == ["judgesmith.programs.new: judgesmith.programs.models.lm._secret"]


# -- functions

LONGEST = 80  # lines
PARAMETERS = 8


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name.removeprefix('judgesmith.')}.{node.name}", node


def test_no_function_is_too_long_to_read() -> None:
    assert {name for name, node in functions() if (node.end_lineno or 0) - node.lineno >= LONGEST} == set()


def test_no_function_takes_many_parameters() -> None:
    """Commands aside, whose parameters are options."""
    many = set()
    for name, node in functions():
        taken = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if len([a for a in taken if a not in ("self", "cls")]) > PARAMETERS and not name.startswith("cli."):
            many.add(name)
    assert many == set()
