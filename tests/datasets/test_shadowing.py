"""The folder `datasets` at the repository root must not hide Hugging Face's package of the same name."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_INSTALLED = (
    "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]; sys.meta_path[:] = [\n\
f for f in sys.meta_path if 'editable' not in repr(f)]\n"
)


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -c` puts the current folder first on sys.path, as a user in the repository would have it."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_without_another_one_it_is_an_ordinary_missing_module() -> None:
    code = (
        WITHOUT_INSTALLED
        + "try:\n import datasets\nexcept ModuleNotFoundError as e:\n print(e, e.name, sep='|')\n"
    )
    done = run(code + "print('datasets' in sys.modules)", ROOT)
    assert done.stdout.splitlines() == [
        "No module named 'datasets'|datasets",
        "False",
    ], done.stderr


@pytest.fixture
def other(tmp_path: Path) -> Path:
    package = tmp_path / "datasets"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import datasets.early\nwho = 'the real one'\n"
    )
    (package / "early.py").write_text("import datasets\nearly = datasets.__name__\n")
    (package / "sub.py").write_text(
        "from datasets import who\nfrom . import early\nsub = who\n"
    )
    return tmp_path


def test_the_real_one_further_down_the_path_is_imported(other: Path) -> None:
    code = (
        f"import sys; sys.path.append({str(other)!r})\n"
        "import datasets, datasets.sub\n"
        "from datasets.early import early\n"
        "print(datasets.who, datasets.sub.sub, early, datasets.__file__, sys.modules['datasets'] is datasets, sep='|')"
    )
    done = run(code.replace("sys.path.append(", "sys.path.insert(1, "), ROOT)
    expected = (
        f"the real one|the real one|datasets|{other / 'datasets' / '__init__.py'}|True"
    )
    assert done.stdout.strip() == expected, done.stderr


def test_an_error_inside_the_real_one_is_shown_as_it_is(other: Path) -> None:
    (other / "datasets" / "__init__.py").write_text(
        "import a_module_that_is_not_there\n"
    )
    done = run(f"import sys; sys.path.insert(1, {str(other)!r})\nimport datasets", ROOT)
    assert "No module named 'a_module_that_is_not_there'" in done.stderr


@pytest.mark.parametrize(
    "folder", [ROOT, None], ids=["from the repository", "from elsewhere"]
)
def test_our_own_room_is_imported_under_its_own_name(
    folder: Path | None, tmp_path: Path
) -> None:
    code = (
        "import sys, judgesmith.datasets as ours, judgesmith.datasets.row\n"
        "from judgesmith import datasets\n"
        "print(datasets is ours, ours.__name__, ours.row.Row.__module__, 'datasets' in sys.modules, sep='|')"
    )
    done = run(code, folder or tmp_path)
    assert (
        done.stdout.strip() == "True|judgesmith.datasets|judgesmith.datasets.row|False"
    ), done.stderr
