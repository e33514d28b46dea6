"""Commands of pages, run in this process."""

import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from loopback import Server
from scripts import script

ROOT = Path(__file__).resolve().parents[2]
tutorials = script("tutorials")
EXTRAS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
)


def as_reader(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder, with a model's address and key in the environment, as a reader does."""
    tutorials.rate(server)
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    return folder


def run(words: list[str], cli: Any) -> tuple[int, str]:
    match words:
        case ["judgesmith", "label", *_]:
            done = cli(*tutorials.person(words)[1:])
        case ["judgesmith", *arguments]:
            done = cli(*arguments)
        case ["python", "-m", "pytest", *arguments]:
            process = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-p",
                    "no:cacheprovider",
                    "-n0",
                    *arguments,
                ],
                capture_output=True,
                text=True,
                timeout=300,
                env=os.environ
                | {
                    "PYTHONPATH": os.pathsep.join(
                        [".", os.environ.get("PYTHONPATH", "")]
                    )
                },
            )
            return process.returncode, process.stdout + process.stderr
        case ["python", script]:
            runpy.run_path(script, run_name="__main__")
            return 0, ""
        case ["pip", "install", *names]:
            wanted = {
                extra
                for name in names
                for found in re.findall(r"\[(.*)\]", name)
                for extra in found.split(",")
            }
            return int(not wanted <= EXTRAS), f"no such extra: {wanted - EXTRAS}"
        case ["split" | "cat", *_]:
            process = subprocess.run(words, capture_output=True, text=True, timeout=300)
            return process.returncode, process.stdout + process.stderr
        case _:
            raise AssertionError(
                f"the tests do not know how to run {shlex.join(words)}"
            )
    return done.code, done.out + done.err
