"""List the files that Git tracks, so that nothing else in a checkout can fail a check."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The folders that hold the package.
ROOMS = ("signatures", "programs", "optimizers", "datasets", "src", "experiments")


def tracked(*suffixes: str) -> list[Path]:
    """Return the tracked files with one of these suffixes, sorted; links are left out.

    Outside a Git checkout (an unpacked source archive) every file counts as tracked.
    """
    command = ["git", "ls-files", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(part.startswith(".") for part in path.parts)
        ]
    else:
        paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return sorted(
        path
        for path in paths
        if path.suffix in suffixes and path.is_file() and not path.is_symlink()
    )
