"""A predictor's instructions and demonstrations as JSON, and back.

Nothing in it can name a model, an address or a class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

import dspy
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from judgesmith.signatures.values import CriterionScore

Text = Annotated[str, StringConstraints(max_length=400_000)]
Short = Annotated[str, StringConstraints(max_length=400)]
Percent = Annotated[float, Field(ge=0, le=100)]
#: How an output compares with another one.
Compared = Literal["better", "worse", "similar"]
#: Inputs that are the same for every row: they go into the system message.
SHARED = ("task", "aspect", "criteria")
#: The keys of a state in DSPy's form.
STOCK = {"traces", "train", "demos", "signature", "lm", "fields", "digest"}
#: Demonstrations of a predictor at most.
MOST_DEMOS = 256


class Part(BaseModel):
    """A part of a saved judge: only known keys, no text read as a number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SavedCriterionScore(Part):
    """A criterion's score in a saved demonstration."""

    score: Percent
    explanation: Text = ""


class SavedDemo(Part):
    """One demonstration.

    texts: what a predictor that scores nothing is shown, by the fields of its signature. turn: False, as in files that
    do not say it, shows a score without the rest of its answer as an example in the system message.
    """

    source: Text = ""
    output: Text = ""
    context: Text | None = None
    reference: Text | None = None
    group: Text | None = None
    score: Percent | None = None
    explanation: Text = ""
    criteria_scores: dict[Short, SavedCriterionScore] | None = None
    annotation: Text = ""
    other: Text | None = None
    comparison: Compared | None = None
    texts: dict[Short, Text] | None = None
    augmented: bool = False
    gold: bool = True
    turn: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        scored = self.output and self.score is not None
        if not (
            scored
            or self.texts
            or (self.output and (self.comparison or self.annotation))
        ):
            raise ValueError(
                "a demonstration has an output with its score, or other texts"
            )
        return self

    def demonstration(self) -> dict[str, Any]:
        """Return the demonstration as prompts use it."""
        demo = self.model_dump(
            exclude_none=True, exclude={"criteria_scores", "texts", "turn"}
        ) | (self.texts or {})
        if not self.turn:
            demo["turn"] = False
        if self.criteria_scores is not None:
            demo["criteria_scores"] = {
                name: CriterionScore(c.score, c.explanation)
                for name, c in self.criteria_scores.items()
            }
        return demo


class SavedPredictor(Part):
    """A saved predictor: instructions, demonstrations, and a digest of its fields."""

    instructions: Text
    demos: Annotated[list[SavedDemo], Field(max_length=MOST_DEMOS)]
    fields: Short | None = None

    def demonstrations(self) -> list[dict[str, Any]]:
        """Return the demonstrations as prompts use them."""
        return [demo.demonstration() for demo in self.demos]


def signature_hash(signature: type[dspy.Signature]) -> str:
    """Twelve hex digits over the signature's field names in their order: demonstrations fit only the same fields."""
    fields = [*signature.input_fields, "->", *signature.output_fields]
    return sha256(" ".join(fields).encode()).hexdigest()[:12]


def saved_predictor(
    signature: type[dspy.Signature], demos: Sequence[Any]
) -> dict[str, Any]:
    """Return a predictor's instructions and demonstrations as JSON values."""
    return {
        "instructions": signature.instructions,
        "demos": [_saved_demo(demo, signature) for demo in demos],
    }


def flat(demo: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved demonstration with its other texts beside the rest, as stock modules read it."""
    texts: Mapping[str, Any] = demo.get("texts") or {}
    return {name: value for name, value in demo.items() if name != "texts"} | dict(
        texts
    )


def from_stock(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a state of DSPy's form, as `JudgePredict.dump_state` gives it, as `SavedPredictor` reads it.

    Raises:
        KeyError, TypeError, ValueError: For another form, and for one that names a model.
    """
    if "signature" not in state:
        return state
    if others := {*state} - STOCK:
        raise ValueError(f"unknown key {min(others)!r}")
    if state["lm"] is not None or state.get("fields"):
        raise ValueError("it names a model, or thresholds of decisions")
    demos = []
    for demo in state["demos"]:
        own = {n: value for n, value in demo.items() if n in SavedDemo.model_fields}
        texts = {n: value for n, value in demo.items() if n not in own}
        demos.append(own | ({"texts": texts} if texts else {}))
    instructions = state["signature"]["instructions"]
    return {
        "instructions": instructions,
        "demos": demos,
        "fields": state.get("digest"),
    }


def other_texts(values: Mapping[str, Any], signature: Any) -> dict[str, Any]:
    """Return the texts of a predictor's own fields, without those that every demonstration has."""
    fields = [
        *(name for name in signature.input_fields if name not in SHARED),
        *signature.output_fields,
    ]
    names = [name for name in fields if name not in SavedDemo.model_fields]
    return {
        name: values[name]
        for name in names
        if isinstance(values.get(name), str) and values[name]
    }


def _saved_demo(demo: Any, signature: Any) -> dict[str, Any]:
    values = {name: demo.get(name) for name in SavedDemo.model_fields}
    texts = other_texts(demo, signature).items()
    values["texts"] = {key: str(text) for key, text in texts} or None
    values["turn"] = None if values["turn"] is False else True
    if values["score"] is not None:
        values["score"] = round(float(values["score"]), 6)
    if values["criteria_scores"] is not None:
        # One that could not be read is left out; the prompts leave it out too.
        values["criteria_scores"] = {
            name: {"score": round(float(one.score), 6), "explanation": one.explanation}
            for name, one in values["criteria_scores"].items()
            if not math.isnan(one.score)
        }
    return {name: value for name, value in values.items() if value not in (None, "")}
