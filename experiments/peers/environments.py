"""The peers, their pinned requirements, and an environment for each, created once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import JudgesmithError

HERE = Path(__file__).resolve().parent


class PeerFailed(JudgesmithError):
    """A peer could not be installed or run; the message goes into the results.

    about: the versions and settings that its worker reported before it failed.
    """

    def __init__(self, message: str, about: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.about = about or {}


@dataclass(frozen=True, slots=True)
class Peer:
    """A runner and what it needs. Without `requirements` it runs where judgesmith does."""

    file: Path
    environment: str | None = None
    requirements: tuple[str, ...] = ()
    variant: str = ""
    reported: tuple[str, ...] = ()
    """Packages whose versions go into the results."""


_MLFLOW = ("mlflow[genai]==3.17.2", "dspy==3.4.1", "gepa==0.1.4", "litellm==1.106.2")


def _mlflow(variant: str) -> Peer:
    return Peer(
        HERE / "peer_mlflow.py", "mlflow", _MLFLOW, variant=variant, reported=("mlflow", "dspy", "gepa", "litellm")
    )


PEERS: dict[str, Peer] = {
    "dspy": Peer(HERE / "peer_dspy.py", reported=("dspy", "litellm")),
    "mlflow": _mlflow("default"),
    "mlflow-gepa": _mlflow("gepa"),
    "deepeval": Peer(HERE / "peer_deepeval.py", "deepeval", ("deepeval==4.3.1",), reported=("deepeval", "openai")),
}


def interpreter(peer: Peer, folder: Path, say: Callable[[str], None] = lambda text: None) -> Path:
    """The Python of a peer's environment below `folder`, created where it is missing or has other versions.

    Raises: PeerFailed with pip's last message.
    """
    if peer.environment is None:
        return Path(sys.executable)
    home = folder.absolute() / peer.environment  # the peer runs in another working directory
    marker, wanted = home / "judgesmith-peer.json", json.dumps(peer.requirements)
    python = home / "bin/python"
    try:
        if python.exists() and marker.exists() and marker.read_text(encoding="utf-8") == wanted:
            return python
        say(f"making an environment with {peer.requirements[0]}")
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(home)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--no-input", *peer.requirements])
        marker.write_text(wanted, encoding="utf-8")
    except OSError as error:
        raise PeerFailed(f"does not install here: {home}: {error.strerror or error}; pass another --envs") from error
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=3600)
    except subprocess.TimeoutExpired:
        raise PeerFailed("does not install here: not done after an hour") from None
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        raise PeerFailed("does not install here: " + (" ".join(errors)[-400:] or "pip printed nothing"))
