"""The base of evaluators: DSPy modules of one or a few calls, which a judge is made of and which can be used alone."""

from __future__ import annotations

import inspect
from typing import Any, TypedDict

import dspy

from ..models import engine
from ..models.as_dspy import Quiet


class Call(TypedDict, total=False):
    """What every call takes beside its texts. group: demonstrations of it are kept out of the prompt. lm: the model."""

    group: str | None
    lm: Any


class Evaluator(Quiet):
    """A subclass says what it takes and gives in `aforward`; `forward` is that, called synchronously.

    Judges call their evaluators through `acall`, so that DSPy's callbacks, history and usage show the tree. Alone, an
    evaluator uses the model given as `lm`, else the one of `set_lm`, else DSPy's.
    """

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "aforward" in vars(cls):

            def forward(self: Any, *args: Any, **named: Any) -> dspy.Prediction:
                return engine.run(self.aforward(*args, **named))

            forward.__signature__ = inspect.signature(cls.aforward)  # type: ignore[attr-defined]
            forward.__doc__ = cls.aforward.__doc__
            cls.forward = forward

    async def aforward(self, *args: Any, **named: Any) -> dspy.Prediction:
        raise NotImplementedError
