"""A predictor's instructions and demonstrations as JSON, and back: nothing in it can name a model, an address or a
class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any

import dspy
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ...signatures.values import CriterionScore

Text = Annotated[str, StringConstraints(max_length=400_000)]
Short = Annotated[str, StringConstraints(max_length=400)]
Percent = Annotated[float, Field(ge=0, le=100)]
#: Demonstrations of a predictor at most.
MOST_DEMOS = 256


class Part(BaseModel):
    """A part of a saved judge: only known keys, no text read as a number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SavedCriterionScore(Part):
    score: Percent
    explanation: Text = ""


class SavedDemo(Part):
    source: Text = ""
    output: Text
    context: Text | None = None
    reference: Text | None = None
    group: Text | None = None
    score: Percent
    explanation: Text = ""
    criteria_scores: dict[Short, SavedCriterionScore] | None = None
    annotation: Text = ""
    augmented: bool = False
    gold: bool = True

    def demonstration(self) -> dict[str, Any]:
        made = self.model_dump(exclude_none=True, exclude={"criteria_scores"})
        if self.criteria_scores is not None:
            made["criteria_scores"] = {
                name: CriterionScore(c.score, c.explanation) for name, c in self.criteria_scores.items()
            }
        return made


class SavedPredictor(Part):
    instructions: Text
    demos: Annotated[list[SavedDemo], Field(max_length=MOST_DEMOS)]
    fields: Short | None = None

    def demonstrations(self) -> list[dict[str, Any]]:
        return [demo.demonstration() for demo in self.demos]


def signature_hash(signature: type[dspy.Signature]) -> str:
    """Twelve hex digits over the signature's field names in their order: demonstrations fit only the same fields."""
    fields = [*signature.input_fields, "->", *signature.output_fields]
    return sha256(" ".join(fields).encode()).hexdigest()[:12]


def saved_predictor(signature: type[dspy.Signature], demos: Sequence[Any]) -> dict[str, Any]:
    return {"instructions": signature.instructions, "demos": [_saved_demo(demo) for demo in demos]}


def _saved_demo(demo: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in SavedDemo.model_fields:
        value = demo.get(name)
        if value is None or value == "":
            continue
        if name == "criteria_scores":
            # One that could not be read is left out; the prompts leave it out too.
            value = {
                k: {"score": round(float(c.score), 6), "explanation": c.explanation}
                for k, c in value.items()
                if not math.isnan(c.score)
            }
        elif name == "score":
            value = round(float(value), 6)
        kept[name] = value
    return kept


def traced_demo(step: Mapping[str, Any]) -> dict[str, Any] | None:
    """A step of a trace, inputs and outputs, as a demonstration; None where it gave no score."""
    made = {name: step[name] for name in SavedDemo.model_fields if step.get(name) is not None}
    scores = [c.score for c in made.get("criteria_scores", {}).values() if not math.isnan(c.score)]
    score = made.setdefault("score", sum(scores) / len(scores) if scores else None)
    usable = isinstance(score, int | float) and 0 <= score <= 100 and made.get("output")
    return {**made, "augmented": True, "gold": False} if usable else None
