"""A DSPy prediction together with the value that it shows: what an evaluator gives to the judge that called it."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import dspy

T = TypeVar("T")


class Result(dspy.Prediction, Generic[T]):  # type: ignore[misc]
    """A prediction whose fields are for DSPy, and whose `value` is what they were made of; no prompt shows it."""

    def __init__(self, value: T, **fields: Any) -> None:
        super().__init__(**fields)
        self._value = value  # a private name is no field of the prediction

    @property
    def value(self) -> T:
        """Return the value that the prediction was made of."""
        return self._value


def value_of(prediction: dspy.Prediction, kind: type[T]) -> T:
    """Return the value that a prediction was made of.

    Raises:
        TypeError: For a value of another kind.
    """
    value = prediction.value if isinstance(prediction, Result) else None
    if not isinstance(value, kind):
        raise TypeError(
            f"the prediction holds a {type(value).__name__}, and no {kind.__name__}"
        )
    return value
