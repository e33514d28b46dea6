"""Prompts of judges for DSPy's own adapters (ChatAdapter, JSONAdapter, XMLAdapter): fields in place of our layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import dspy

from .layouts import Layout

#: Tokens that an adapter's markers, quotes and braces take at most beside what an answer says.
MARKUP_TOKENS = 200


def foreign_prompt(
    layout: Layout,
    signature: type[dspy.Signature],
    demos: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, Any],
) -> dict[str, Any]:
    """signature, demos and inputs of an adapter's call: texts by field, an answer's form in the descriptions of its
    fields. Demonstrations without a whole answer stand in the instructions, as in our own prompts."""
    shown = layout.shown(signature, inputs)
    outputs = layout.outputs(signature, inputs)
    whole: list[dict[str, str]] = []
    examples: list[str] = []
    for demo in demos:
        texts = layout.shown(signature, {**_shared(shown), **demo})
        if (said := layout.split(signature, demo, inputs)) is not None:
            whole.append({**texts, **said})
        elif (told := layout.example(demo)) is not None:
            material = "\n".join(f"{name}: {text}" for name, text in texts.items() if name not in _shared(shown))
            examples.append(f"{material}\n{told}")
    instructions = " ".join(signature.instructions.split())
    if examples:
        instructions += "\n\nExamples that people scored:\n\n" + "\n\n".join(examples)
    wanted = {name: str(field.json_schema_extra.get("desc") or name) for name, field in signature.input_fields.items()}
    fields = tuple((name, wanted.get(name, name)) for name in shown)
    return {
        "signature": _signature(instructions, fields, tuple(outputs.items())),
        "demos": whole,
        "inputs": shown,
    }


def _shared(shown: Mapping[str, str]) -> dict[str, str]:
    """What all rows share, demonstrations too."""
    return {name: shown[name] for name in ("task", "aspect", "criteria") if name in shown}


@lru_cache(maxsize=64)
def _signature(
    instructions: str, inputs: tuple[tuple[str, str], ...], outputs: tuple[tuple[str, str], ...]
) -> type[dspy.Signature]:
    fields: dict[str, Any] = {name: (str, dspy.InputField(desc=desc)) for name, desc in inputs}
    fields |= {name: (str, dspy.OutputField(desc=desc)) for name, desc in outputs}
    made: type[dspy.Signature] = dspy.make_signature(fields, instructions)
    return made
