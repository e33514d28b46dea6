"""Every room can be taken away: the rest imports, helps, compiles, scores and evaluates, and names what is gone."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/judgesmith"
ROOMS = (
    "adapters",
    "agents",
    "discerning",
    "engines",
    "injections",
    "labelling",
    "mlflow",
    "queues",
    "reports",
    "serving",
    "sync",
    "training",
    "watching",
)
#: What is called in a process without a room. It prints what each step came to, as JSON.
CALLS = '''
import contextlib, io, json, sys

import judgesmith
from judgesmith.cli.main import app, main
from judgesmith.errors import MissingExtraError


def call(*arguments):
    """Return (exit code, what was printed, what was complained about)."""
    sys.argv = ["judgesmith", *arguments]
    out, err, code = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


def name(public):
    try:
        getattr(judgesmith, public)
    except MissingExtraError as error:
        return str(error)
    return ""


absent = sys.argv[1:]
model = ("--lm", "recorded:recorded.jsonl")
results = {
    "from": judgesmith.__file__,
    "names": {public: name(public) for public in judgesmith.__all__},
    "help": call("--help"),
    "compile": call("compile", "rows.csv", "--method", "direct", *model, "-o", "judge.json"),
    "score": call("score", "rows.csv", "--judge", "judge.json", *model, "-o", "scored.jsonl"),
    "evaluate": call("evaluate", "rows.csv", "--judge", "judge"),
    "absent": {command: call(command) for command in absent},
}
print(json.dumps(results))
'''


def room_of(value: str) -> str:
    """The room of an entry point, such as serving of judgesmith.rooms.serving.command:Serve."""
    inside = value.removeprefix("judgesmith.").removeprefix("rooms.")
    return inside.partition(".")[0].partition(":")[0]


def without(rooms: tuple[str, ...], place: Path, *, declared: bool) -> dict[str, str]:
    """Lay the package without some rooms in a folder; return the environment in which it is the one that is imported.

    declared: True if the rooms' entry points are still there, as where a folder was deleted by hand.
    """
    package, about = place / "judgesmith", place / "judgesmith-0.1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "rooms").mkdir()
    for path in (*PACKAGE.iterdir(), *(PACKAGE / "rooms").iterdir()):
        if path.name not in (*rooms, "rooms"):
            target = package / path.relative_to(PACKAGE)
            target.symlink_to(path.resolve())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = []
    for group, points in project["entry-points"].items():
        lines.append(f"[{group}]")
        for name, value in points.items():
            room = room_of(value)
            if declared or room not in rooms:
                lines.append(f"{name} = {value}")
    (about / "entry_points.txt").write_text("\n".join(lines))
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: judgesmith\nVersion: 0.1.0\n"
    )
    return os.environ | {
        "PYTHONPATH": str(place),
        "JUDGESMITH_CACHE": str(place / "calls.sqlite"),
        "OPENBLAS_NUM_THREADS": "1",
    }


def commands_of(rooms: tuple[str, ...]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["judgesmith.commands"]
    return [name for name, value in points.items() if room_of(value) in rooms]


def called(
    rooms: tuple[str, ...], folder: Path, *, declared: bool = True
) -> dict[str, Any]:
    """What the calls came to without some rooms."""
    rows = [
        {
            "source": f"Question {n}?",
            "output": f"Answer {n}.",
            "score": n % 5 + 1,
            "judge": n * 3 % 5 + 1,
        }
        for n in range(10)
    ]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "rows.csv").write_text("\n".join(lines))
    recorded = [row | {"verdict": {"score": row["judge"]}} for row in rows]
    (folder / "recorded.jsonl").write_text("\n".join(map(json.dumps, recorded)))
    place = folder / "without"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CALLS, *commands_of(rooms)],
        cwd=folder,
        env=without(rooms, place, declared=declared),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert result["from"].startswith(str(place))
    assert len((folder / "scored.jsonl").read_text().splitlines()) == 10
    return result


def check(result: dict[str, Any], rooms: tuple[str, ...], *, declared: bool) -> None:
    for step in ("help", "compile", "score", "evaluate"):
        code, _, said = result[step]
        assert (step, code) == (step, 0), said
        assert "internal error" not in said
    missing = [
        f"judgesmith.{room}" if room == "reports" else f"judgesmith.rooms.{room}"
        for room in rooms
    ]
    for public, problem in result["names"].items():
        if problem:
            assert problem.startswith(f"judgesmith.{public} needs judgesmith.")
            assert any(
                f"{room}, which this installation lacks" in problem for room in missing
            )
    _, shown, warned = result["help"]
    commands = commands_of(rooms)
    assert len(warned.splitlines()) == bool(commands and declared), warned
    for command in commands:
        assert f"│ {command} " not in shown
        code, _, said = result["absent"][command]
        assert code == 2
        wanted = "which this installation lacks" if declared else "No such command"
        assert wanted in said
    unseen = "nothing looks for texts that address their judge"
    told = unseen in result["compile"][2] + result["score"][2]
    assert told == ("injections" in rooms)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_that_was_taken_away(room: str, tmp_path: Path) -> None:
    check(called((room,), tmp_path), (room,), declared=True)


def test_rooms_whose_entry_points_went_with_them(tmp_path: Path) -> None:
    check(called(ROOMS, tmp_path, declared=False), ROOMS, declared=False)


def test_all_rooms_that_were_taken_away(tmp_path: Path) -> None:
    result = called(ROOMS, tmp_path)
    check(result, ROOMS, declared=True)
    absent = {name for name, problem in result["names"].items() if problem}
    assert absent == {"assert_agreement", "assert_judged"}
    assert not absent & {"compile", "load", "Judge", "read_labels", "judge", "estimate"}


def test_nothing_is_missed_where_nothing_is_gone(tmp_path: Path) -> None:
    result = called((), tmp_path)
    check(result, (), declared=True)
    assert not any(result["names"].values())
