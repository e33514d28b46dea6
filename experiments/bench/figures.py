"""What a bench found, printed for people or for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def show(found: Mapping[str, Any], *, as_json: bool) -> None:
    """One JSON object, or a line for each figure."""
    print(json.dumps(found) if as_json else "\n".join(f"{name:16} {value}" for name, value in found.items()))
