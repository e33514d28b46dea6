"""Loading encoders and sequence-to-sequence models of transformers, from a folder or by their names. Extra: `torch`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import MissingExtraError, ModelError
from .embedding import hub_problem

__all__ = ["Loaded", "load"]


@dataclass(frozen=True)
class Loaded:
    """A model in full floats, ready to be run, and its tokenizer."""

    model: Any
    tokenizer: Any
    torch: Any

    @property
    def longest(self) -> int:
        """Tokens that it reads at once."""
        told = [
            getattr(self.model.config, "max_position_embeddings", None),
            getattr(self.tokenizer, "model_max_length", None),
        ]
        found = min((int(n) for n in told if n and n < 100_000), default=512)
        # RoBERTa and its kin count places from after their padding token, so that two fewer tokens fit.
        return found - 2 if getattr(self.model.config, "model_type", "") in ("roberta", "xlm-roberta") else found


@cache
def load(name: str, kind: str, metric: str) -> Loaded:
    """A model by the name of a folder, or by that under which its hub has it: taken from transformers' own cache, and
    fetched where it is not there. kind: the class of transformers that opens it. metric: for messages.

    Raises MissingExtraError without torch and transformers, ModelError where the model cannot be fetched or opened.
    """
    try:
        torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError(f"{metric} needs a package ({error}): pip install 'judgesmith[torch]'") from None
    folder = Path(name).expanduser()
    place: str | Path = folder if folder.is_dir() else name

    def opened(**options: Any) -> Loaded:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        model = getattr(transformers, kind).from_pretrained(place, dtype=torch.float32, **options)
        return Loaded(model.eval(), tokenizer, torch)

    try:
        return opened(local_files_only=True)
    except Exception as error:  # a damaged file raises whatever its reader likes; one that is absent an OSError
        if place is folder or not isinstance(error, OSError):
            raise ModelError(f"{metric}: the model {name} cannot be opened: {_line(error)}") from None
    problem = hub_problem(name)
    if problem is not None:
        raise ModelError(
            f"{metric}: the model {name} is not on this machine and cannot be fetched ({problem}); fetch it where "
            "there is a network, and name its folder"
        )
    try:
        return opened()
    except Exception as error:
        raise ModelError(f"{metric}: the model {name} cannot be opened: {_line(error)}") from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
