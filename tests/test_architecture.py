"""The arrows between the rooms and inside them, read from the source: import linters cannot see the package mapping."""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import pytest
from arrows import (
    PACKAGE,
    ROOT,
    TOP,
    every_import,
    graph,
    looked_into,
    modules,
)

pytestmark = pytest.mark.text

#: Small modules of src/judgesmith that serve every room and import no DSPy, and what each may import.
SMALL: dict[str, set[str]] = {
    "errors": set(),
    "extras": {"errors"},
    "tables": set(),
    "trajectories": set(),
    "conversation": {"trajectories"},
    "disarming": set(),
    "rows": {"errors", "extras", "conversation", "likeness", "trajectories"},
    "likeness": {"errors", "wording"},
    "parts": {"errors", "extras"},
    "wording": set(),
}
#: Rooms of the library, and what each may import. Agreement is usable without DSPy and without a judge.
LIBRARY = SMALL | {
    "agreement": {"errors", "tables", "parts", "disarming", "rows"},
    "signatures": {"errors", "conversation", "rows", "tables"},
    "datasets": {
        "errors",
        "extras",
        "trajectories",
        "conversation",
        "likeness",
        "parts",
        "rows",
        "wording",
    },
    "programs": {*SMALL, "signatures"},
    "optimizers": {*SMALL, "agreement", "signatures", "programs", "datasets"},
    "testing": {
        *SMALL,
        "agreement",
        "signatures",
        "programs",
        "datasets",
        "optimizers",
    },
}
#: The product may import the library, its own shared rooms, and what it is built on. Nothing imports a room that can
#: stand apart (`APART`, in `rooms`, and the laboratory): its commands and parts come by entry points.
SHARED = {"cli", "running", "figures", "pages", "presets"}
PRODUCT = {
    "scoring": set(),
    "evaluating": {"scoring"},
    "reports": {"evaluating"},
    "comparing": {"evaluating"},
    # The demo shows what the others do.
    "compiling": {"scoring", "evaluating", "comparing", "reports"},
}
APART = {
    "adapters": set(),
    "agents": set(),
    "engines": {"scoring"},
    "injections": set(),
    "labelling": {"evaluating", "reports"},
    "mlflow": set(),
    "queues": set(),
    "serving": {"scoring"},
    "sync": {"evaluating"},
    "training": {"scoring", "compiling"},
    "watching": {"scoring", "evaluating", "reports"},
    "discerning": {"evaluating"},
    "experiments": {"scoring", "evaluating", "reports", "compiling", "discerning"},
}
#: The laboratory's scripts import absolutely, and whatever they measure.
SCRIPTS = ("bench",)
#: What a sub-package may import of its own room; "" is the files of the room itself.
INSIDE = {
    "programs": {
        "answers": set(),
        "models": {"answers"},
        "prompting": {"answers", "models"},
        "": {
            "answers",
            "models",
            "prompting",
            "active_critic",
        },  # every judge may take a task that was inferred
        "active_critic": {"", "answers", "models", "prompting"},
        "openlgauge": {"", "answers", "models", "prompting", "active_critic"},
        "comparing": {"", "answers", "models", "prompting"},
        "pointwise": {
            "",
            "answers",
            "models",
            "prompting",
            "active_critic",
            "comparing",
            "openlgauge",
        },
        "panel": {
            "",
            "answers",
            "models",
            "prompting",
            "active_critic",
            "comparing",
            "openlgauge",
        },
        "readings": {"", "answers", "models", "pointwise", "panel", "prompting"},
        "several": {"", "answers", "models", "prompting", "readings"},
        "baselines": {
            "",
            "answers",
            "models",
            "prompting",
            "active_critic",
            "openlgauge",
            "comparing",
            "readings",
        },
    },
    "optimizers": {
        "": {"search", "fitting"},
        "search": {"", "fitting"},
        "fitting": {"", "search"},
    },
    "datasets": {
        "": {"exports", "formats"},
        "exports": {""},
        "formats": {"", "exports"},
        "benchmarks": {""},
        "perturbations": set(),
        "demo": set(),
    },
}
MACHINE = re.compile(
    r"(?<![\w.])/(?:home|root|Users|work|tmp|mnt|opt)/\w|[A-Z]:\\\\?Users"
)


def is_script(name: str) -> bool:
    return (
        name.split(".")[1:2] == ["experiments"]
        and name.split(".")[2:3] != []
        and name.split(".")[2] in SCRIPTS
    )


def room_of(name: str) -> str:
    """The room of a module; "" is the package itself with its small modules."""
    inside = name.removeprefix("judgesmith.").removeprefix("rooms.")
    first = inside.partition(".")[0] if "." in name else ""
    return first if first in {*LIBRARY, *SHARED, *PRODUCT, *APART} else ""


def allowed(name: str) -> set[str]:
    """The rooms that a module may import beside its own."""
    room = room_of(name)
    if room in LIBRARY:
        return LIBRARY[room]
    if room in SHARED or room == "":
        return {*LIBRARY, *SHARED}
    return {*LIBRARY, *SHARED, *(PRODUCT | APART)[room]}


def wrong_arrows(name: str, imported: set[str]) -> list[str]:
    """What a module imports although its room, or its sub-package, may not."""
    room, inside = room_of(name), INSIDE.get(room_of(name), {})
    sub = [*name.split("."), "", ""][2]
    sub = sub if sub in inside else ""
    wrong = []
    for other in imported:
        if room_of(other) != room:
            if room_of(other) and room_of(other) not in allowed(name):
                wrong.append(f"{name} imports {other}")
        elif inside:
            theirs = [*other.split("."), "", ""][2]
            theirs = theirs if theirs in inside else ""
            if theirs not in (sub, *inside[sub]):
                wrong.append(f"{name} imports {other}")
    return wrong


def cycle(edges: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, [] if there are none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


#: Folders that no figure of ours makes worth having for everybody, and the page with their figures.
BESIDE = {
    "judgesmith.rooms.training": "distillation.md",
    "judgesmith.rooms.watching": "watching.md",
    "judgesmith.rooms.injections": "attacks.md",
    "judgesmith.experiments.studies.papers": "papers.md",
}


@pytest.mark.parametrize("room", BESIDE)
def test_a_room_beside_is_imported_by_nothing_else(room: str) -> None:
    inside = {name for name in graph() if name == room or name.startswith(f"{room}.")}
    assert inside
    importing = {
        name
        for name, (imported, _) in graph().items()
        if imported & inside and not is_script(name)
    }
    assert importing - inside == set()


@pytest.mark.parametrize("room", BESIDE)
def test_a_room_beside_says_first_what_it_is_worth(room: str) -> None:
    said = ast.get_docstring(ast.parse(modules()[room].read_text(encoding="utf-8")))
    assert said is not None
    worth, _, rest = said.partition("\n\n")
    assert ";" in worth or ":" in worth
    assert f"experiments/results/{BESIDE[room]}" in rest
    assert (ROOT / "experiments/results" / BESIDE[room]).is_file()


def test_every_folder_is_a_room_of_the_table() -> None:
    apart = {path.parent.name for path in PACKAGE.glob("rooms/*/__init__.py")}
    assert apart == set(APART) - {"experiments"}
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    folders = folders - {"rooms"} | apart
    modules_of_package = {*SMALL, "figures"}
    assert folders | set(TOP) == (
        {*LIBRARY, *SHARED, *PRODUCT, *APART} - modules_of_package
    ) | (folders & modules_of_package)
    for room, subs in INSIDE.items():
        assert {path.parent.name for path in (ROOT / room).glob("*/__init__.py")} == {
            sub for sub in subs if sub
        }, room


def test_a_module_imports_only_what_its_room_may() -> None:
    assert [
        line
        for name, (imported, _) in graph().items()
        if not is_script(name)
        for line in wrong_arrows(name, imported)
    ] == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("signatures.new", "from ..programs.models import lm"),
        ("programs.new", "from ..optimizers import front"),
        ("programs.new", "from ..datasets import records"),
        ("programs.new", "def f():\n    from .. import cli"),
        ("programs.models.new", "from .. import judge"),
        ("datasets.new", "from ..signatures import values"),
        ("agreement.new", "from ..programs import judge"),
        ("scoring.new", "from ..rooms.serving import service"),
        ("optimizers.new", "from ..scoring import scoring"),
        ("reports.new", "from ..experiments import studies"),
    ],
)
def test_a_wrong_arrow_would_be_found(name: str, line: str) -> None:
    full = f"judgesmith.{name}"
    assert len(wrong_arrows(full, looked_into(full, line)[0])) == 1


def test_rooms_import_each_other_absolutely_and_print_nothing() -> None:
    """So that an editor finds what is imported, whichever path a file was opened at."""
    wrong = []
    for name, path in modules().items():
        if is_script(name):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                ["." * node.level + (node.module or "")]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            names += (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            wrong += [
                f"{name}: {other}"
                for other in names
                if other.split(".")[0] in ("", *TOP)
            ]
            prints = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "print"
            )
            if prints and room_of(name) in LIBRARY:
                wrong.append(f"{name}:{node.lineno}: print()")
    assert wrong == []


def test_no_modules_import_each_other_however_late_or_for_their_types() -> None:
    # The package itself imports its public names when they are asked for; nothing in it imports them from there.
    edges = {
        name: every_import(name, path) - {"judgesmith"}
        for name, path in modules().items()
    }
    assert cycle(edges) == []
    late = looked_into(
        "judgesmith.programs.models.lm", "def f():\n    from ..judge import Judge"
    )[0]
    assert late == {"judgesmith.programs.judge"}
    assert cycle(edges | {"judgesmith.programs.models.lm": late}) != []


def test_every_module_that_is_imported_exists() -> None:
    assert [
        (name, other)
        for name, (imported, _) in graph().items()
        for other in imported - modules().keys()
    ] == []


def test_no_module_takes_the_private_names_of_another() -> None:
    assert sorted(line for _, private in graph().values() for line in private) == []
    for line in (
        "from .models.lm import _secret",
        "from .models import lm\nlm._secret",
    ):
        private = looked_into("judgesmith.programs.new", line)[1]
        assert private == [
            "judgesmith.programs.new: judgesmith.programs.models.lm._secret"
        ]


def test_the_package_itself_imports_rooms_only_when_asked() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    assert [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level
    ] == []


#: Imports the whole room, and measures, where nothing of what judgesmith requires can be had but four packages.
ALONE = """
import importlib, pkgutil, re, sys
from importlib.metadata import requires
needed = {re.split("[^a-z0-9_-]", one)[0].replace("-", "_") for one in requires("judgesmith") if "extra" not in one}
sys.modules.update(dict.fromkeys(needed - {"numpy", "scipy", "pandas", "pydantic"}))
import judgesmith as js, judgesmith.agreement as room
for one in pkgutil.walk_packages(room.__path__, room.__name__ + "."): importlib.import_module(one.name)
html = js.meta_evaluate({"judge": [1, 2, 3, 4, 6]}, [1, 2, 3, 5, 4], coefficients=["accuracy", "q"])._repr_html_()
print(len(needed) > 15, "judge" in html, js.estimate([1, 2, 3, 4], [2, 3, 4, 5]).systems[0].mean)
"""


def test_agreement_stands_alone() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.stdout == "True True 3.5\n", done.stderr


def test_no_source_names_a_path_of_a_machine() -> None:
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules().items()}
    assert {
        name: match[0]
        for name, text in texts.items()
        if (match := MACHINE.search(text))
    } == {}
    # Put together here, so that this file itself names no path of a machine.
    for text in (
        'open("/home/me/x")',
        "/".join(("", "tmp", "w", "v")),
        "C:\\Users\\me",
    ):
        assert MACHINE.search(text), text
    for text in (
        "https://example.org/home/x",
        f"a{'/'.join(('', 'tmp', 'b'))}",
        "application/json",
    ):
        assert not MACHINE.search(text), text
