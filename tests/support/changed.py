"""Print the test folders of the rooms that a change can reach: `python tests/support/changed.py [COMMIT]`.

A room that stands apart is reached by a change to itself, to its tests, or to anything that it imports. The tests of
the centre are always printed. All rooms are where the tests' own support or the project's file changed.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from arrows import ROOT, every_import, modules

ALL = ("tests/support/", "tests/conftest.py", "tests/constraints.txt", "pyproject.toml")
APART = "tests/rooms/"


def changed_since(commit: str) -> list[str]:
    """Return the files that differ from a commit, also those that Git does not know yet."""
    commands = (
        ("diff", "--name-only", commit),
        ("ls-files", "--others", "--exclude-standard"),
    )
    files: list[str] = []
    for command in commands:
        told = subprocess.run(
            ["git", *command], cwd=ROOT, capture_output=True, text=True, check=True
        )
        files += told.stdout.splitlines()
    return files


def reached_from(start: Iterable[str], edges: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that some import, however far, with these themselves."""
    reached = set(start)
    waiting = list(reached)
    while waiting:
        for name in edges.get(waiting.pop(), set()) - reached:
            reached.add(name)
            waiting.append(name)
    return reached


def folder_of(path: Path) -> str:
    """Return the folder of a file in the package, by the place that its link leads to."""
    return str(path.parent.resolve().relative_to(ROOT))


def folders_for(files: Iterable[str]) -> list[str]:
    """Return the test folders for changed files: the centre's, and those of each room that a change reaches."""
    files = list(files)
    centre = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").iterdir()]
    shown = sorted(
        name
        for name in centre
        if Path(name).name not in ("rooms", "support", "__pycache__")
        and ((name.endswith(".py") and "test_" in name) or (ROOT / name).is_dir())
    )
    rooms = sorted((ROOT / APART).iterdir())
    every = any(file.startswith(ALL) for file in files)
    places = modules()
    edges = {name: every_import(name, path) for name, path in places.items()}
    folders = {str(Path(file).parent) for file in files}
    for room in rooms:
        inside = [name for name in places if f".rooms.{room.name}." in f"{name}."]
        reached = reached_from(inside, edges)
        touched = {folder_of(places[name]) for name in reached if name in places}
        own = f"{APART}{room.name}"
        if every or touched & folders or any(file.startswith(own) for file in files):
            shown.append(own)
    return shown


if __name__ == "__main__":
    print(*folders_for(changed_since(sys.argv[1] if sys.argv[1:] else "HEAD")))
