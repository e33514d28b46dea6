"""What `judgesmith study control` found of models: whether they learn from labelled examples.

Findings are kept beside the model files, so that a later `compile` on this machine can name them.
"""

from __future__ import annotations

import json
from pathlib import Path

from judgesmith.programs.atomic import write_whole
from judgesmith.programs.models.files import models_dir


def kept_at() -> Path:
    """Return the file of what was found."""
    return models_dir() / "controls.json"


def keep(model: str, passed: bool, sentence: str) -> None:
    """Keep what a control found of a model, in place of what was found before.

    Raises:
        OSError: If the file cannot be written.
    """
    found = _found() | {model: {"passed": passed, "sentence": sentence}}
    write_whole(kept_at(), json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def failed_control(model: str) -> str | None:
    """Return the sentence of a control that a model failed; None if it passed, or none was run here."""
    match _found().get(model):
        case {"passed": False, "sentence": str(sentence)}:
            return sentence
    return None


def _found() -> dict[str, object]:
    try:
        found = json.loads(kept_at().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
