"""Results as values that compare equal where both are NaN: since Python 3.13 dataclasses that hold NaN never do."""

import dataclasses
import math
from typing import Any


def without_nan(value: Any) -> Any:
    """Return dataclasses as (name, fields), and every NaN in them as a text."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: without_nan(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
        return type(value).__name__, fields
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return value
