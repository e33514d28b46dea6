"""Instructions for servers of a student, written beside its weights."""

from __future__ import annotations

from pathlib import Path

from ...programs.atomic import write_whole
from ...programs.models.lm import LanguageModel
from .gguf_adapter import GGUF_ADAPTER
from .judge import StudentData, served_name

__all__ = ["write_serving"]

_TEXT = """\
# Serving this judge

The weights in this folder belong to {base} (SHA-256 {sha}) and to no other model. Inside a process nothing is to be
done: `judgesmith score ROWS --judge JUDGE.json` finds them here. A server has to offer them as `{name}`.

These commands were written and not run when the judge was made.

{merged}Ollama (copy the base model's file here as `base.gguf`):

    ollama create {name} -f Modelfile
    judgesmith score ROWS --judge JUDGE.json --lm ollama_chat/{name}

vLLM (BASE: the folder of the base model's unquantised weights; scores then differ a little):

    vllm serve BASE --enable-lora --max-lora-rank {rank} --lora-modules {name}=.
    judgesmith score ROWS --judge JUDGE.json --lm hosted_vllm/{name} --api-base http://127.0.0.1:8000/v1
"""


_MERGED = """\
vLLM, with the merged weights in `{folder}`:

    vllm serve {folder} --served-model-name {name}
    judgesmith score ROWS --judge JUDGE.json --lm hosted_vllm/{name} --api-base http://127.0.0.1:8000/v1

"""


def write_serving(folder: Path, student: StudentData, lm: LanguageModel, *, merged: str | None = None) -> None:
    """Write `Modelfile` and `SERVING.md`. Neither names a path of this machine. merged: the folder of the whole
    model's weights, beside them."""
    name = served_name(student.adapter)
    write_whole(folder / "Modelfile", f"FROM ./base.gguf\nADAPTER ./{GGUF_ADAPTER}\nPARAMETER temperature 0\n")
    whole = "" if merged is None else _MERGED.format(folder=merged, name=name)
    told = _TEXT.format(base=lm.name, sha=student.base, name=name, rank=student.rank, merged=whole)
    write_whole(folder / "SERVING.md", told)
