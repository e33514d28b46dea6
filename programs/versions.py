"""The parts of a fingerprint. Scores of two judges may be compared if all parts are equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judgesmith.programs.artifact import Artifact, digest, identity_of
from judgesmith.programs.models.files import CATALOG

#: Keys of a judge's identity that change no score: descriptions.
_BESIDE = ("format", "decision", "preference", "sureness")
_PROMPT = ("program", "task", "criteria", "signatures", "state")
_SCALE = ("scale", "calibration")


@dataclass(frozen=True, slots=True)
class Version:
    """A judge's fingerprint, and those of its parts: twelve hex digits each.

    prompt: method and options, task, criteria, instructions, demonstrations. model: its name with the SHA-256 of the
    file where the name stands for one file; what stands behind the name of a served model may change without notice.
    weights: readings and head, and what else was fitted ("none" where nothing was). scale: scale and calibration.
    """

    fingerprint: str
    prompt: str
    model: str
    weights: str
    scale: str

    @classmethod
    def of(cls, artifact: Artifact) -> Version:
        """Return the version of a saved judge: a digest of the whole and of each part."""
        whole = identity_of(artifact)
        separate = {*_BESIDE, *_PROMPT, *_SCALE, "lm"}
        fitted = {name: value for name, value in whole.items() if name not in separate}
        return cls(
            fingerprint=digest(whole),
            prompt=digest({name: whole.get(name) for name in _PROMPT}),
            model=_model(whole.get("lm")),
            weights=digest(fitted) if fitted else "none",
            scale=digest({name: whole.get(name) for name in _SCALE}),
        )

    def parts(self) -> dict[str, str]:
        """Return the parts by their names in words."""
        return {
            "prompt": self.prompt,
            "model": self.model,
            "readings and head": self.weights,
            "scale and calibration": self.scale,
        }


def _model(lm: Mapping[str, Any] | None) -> str:
    if lm is None:
        return "none"
    name = str(lm["model"])
    sampling = lm["sampling"]
    text = f"{name} at temperature {sampling['temperature']:g}"
    text += f", {sampling['max_tokens']} tokens" if sampling.get("max_tokens") else ""
    if name.startswith("local/"):
        file = CATALOG.get(name.removeprefix("local/"))
    else:
        file = None
    if file is None:
        return f"{text} (by its name)"
    return f"{text} (file {file.sha256[:12]})"
