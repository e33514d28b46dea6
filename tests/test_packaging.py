"""The package as shipped: a source distribution of a copy of the repository, and the wheel built from it.

The wheel is looked into, installed beside others, and imported.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

pytestmark = pytest.mark.text

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("signatures", "programs", "optimizers", "datasets", "experiments")
#: Run from a checkout, so not in the wheel.
NOT_SHIPPED = ("bench",)
FORGET_THE_INSTALLED = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in repr(f).lower()]
sys.path_hooks[:] = [h for h in sys.path_hooks if "editable" not in repr(h).lower()]
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        recent = version("build") and int(version("setuptools").split(".")[0]) >= 77
    except PackageNotFoundError as error:
        pytest.skip(f"{error} is not installed")
    if not recent:
        pytest.skip("setuptools is older than 77")
    copy = tmp_path_factory.mktemp("repository")
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "setup.py"):
        shutil.copy(ROOT / name, copy)
    for name in ("src", *ROOMS):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignored)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--no-isolation",
            "--outdir",
            str(copy / "dist"),
            str(copy),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        cwd=copy,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (made,) = (copy / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and a package called `datasets` that stands for Hugging Face's."""
    target = tmp_path_factory.mktemp("site")
    (target / "datasets").mkdir()
    (target / "datasets" / "__init__.py").write_text("who = 'Hugging Face'\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--no-index",
            "--quiet",
            "--no-warn-conflicts",
            "--target",
            str(target),
            str(wheel),
        ],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target


def shipped(room: str) -> list[Path]:
    files = (ROOT / room).rglob("*.py")
    return [
        path
        for path in files
        if not (
            room == "experiments" and path.relative_to(ROOT).parts[1] in NOT_SHIPPED
        )
    ]


def expected() -> set[str]:
    """Every Python file of the rooms and of the package, by its place in the wheel."""
    files = {
        f"judgesmith/{room}/{path.relative_to(ROOT / room).as_posix()}"
        for room in ROOMS
        for path in shipped(room)
    }
    package = ROOT / "src/judgesmith"
    return files | {
        f"judgesmith/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*.py")
    }


def run(code: str, site: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -c` in a folder, with `site` before everything that is installed."""
    return subprocess.run(
        [sys.executable, "-c", FORGET_THE_INSTALLED + code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(site)},
    )


def test_the_package_links_to_every_room() -> None:
    links = {
        path.name: str(path.readlink())
        for path in (ROOT / "src/judgesmith").iterdir()
        if path.is_symlink()
    }
    assert links == {room: f"../../{room}" for room in ROOMS}


def test_a_checkout_without_links_is_mended_before_the_build(tmp_path: Path) -> None:
    """Git on Windows writes a link as a file that holds its target."""
    package = tmp_path / "src" / "judgesmith"
    package.mkdir(parents=True)
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "judge.py").write_text("")
    (package / "programs").write_text("../../programs")
    (package / "py.typed").write_text("")
    (package / "LICENSE").write_text("not a folder")
    shutil.copy(ROOT / "setup.py", tmp_path)
    command = [sys.executable, "setup.py", "--name"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, timeout=60)
    assert (package / "programs" / "judge.py").is_file()
    assert (package / "LICENSE").read_text() == "not a folder"
    assert (package / "py.typed").is_file()


def test_the_wheel_holds_what_it_must_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = archive.read(metadata).decode()
        (scripts,) = (
            name for name in names if name.endswith(".dist-info/entry_points.txt")
        )
        commands = archive.read(scripts).decode()
    held = {name for name in names if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in held} == {"judgesmith"}
    assert {name for name in held if name.endswith(".py")} == expected()
    data = {
        path.name
        for path in (ROOT / "datasets/demo").iterdir()
        if path.suffix in (".jsonl", ".md")
    }
    assert {"labels.jsonl", "new_outputs.jsonl", "CARD.md"} <= data
    assert {f"judgesmith/datasets/demo/{name}" for name in data} <= held
    presets = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/judgesmith/presets").rglob("*.yaml")
    }
    assert len(presets) > 20
    assert presets <= held
    assert {"judgesmith/py.typed", "judgesmith/__init__.pyi"} <= held
    assert not [
        name
        for name in held
        if re.fullmatch(r"(.*/)?(test_[^/]*|[^/]*_test\.py|conftest\.py)", name)
    ]
    assert "\nLicense-Expression: Apache-2.0\n" in about
    assert "judgesmith = judgesmith.cli.main:main" in commands


def test_every_module_can_be_imported_from_anywhere(
    installed: Path, tmp_path: Path
) -> None:
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in expected()
    )
    code = f"""
import importlib, json, sys
import judgesmith
for name in {modules!r}:
    importlib.import_module(name)
import datasets
public = [name for name in judgesmith.__all__ if getattr(judgesmith, name) is None]
print(json.dumps({{"from": judgesmith.__file__, "count": len(public), "datasets": datasets.who,
    "twice": [m for m in sys.modules if m in ("signatures", "programs", "optimizers", "experiments")]}}))
"""
    for folder in (tmp_path, ROOT):
        done = run(code, installed, folder)
        assert done.returncode == 0, done.stderr[-2000:]
        told = json.loads(done.stdout)
        assert Path(told["from"]).is_relative_to(installed)
        assert (
            told["datasets"] == "Hugging Face"
        )  # ours, in the repository's root, steps aside
        assert told["count"] == 0
        assert told["twice"] == []


def test_the_installed_command_runs_finds_its_demo_data_and_imports_little(
    installed: Path, tmp_path: Path
) -> None:
    code = """
import sys
import judgesmith.compiling.run
assert "scipy.stats" not in sys.modules  # it takes longer to import than all else, and most commands never use it
from importlib.resources import files
from judgesmith.cli.main import main
sys.argv = ["judgesmith", "compile", str(files("judgesmith.datasets.demo") / "labels.jsonl"), "--dry-run", "--json"]
main()
"""
    done = run(code, installed, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["rows"] == 48


def test_the_contract_suites_need_pytest_and_say_so(
    installed: Path, tmp_path: Path
) -> None:
    done = run(
        "sys.modules['pytest'] = None\nimport judgesmith.testing", installed, tmp_path
    )
    assert done.returncode == 1
    assert (
        "MissingExtraError: judgesmith.testing needs pytest; install it with: pip install pytest"
        in done.stderr
    )
