"""Tables of cases that stand in a JSON file beside the tests that use them."""

import json
from pathlib import Path
from typing import Any


def table(tests: str, name: str) -> Any:
    """`name`.json beside the file `tests` (its `__file__`)."""
    return json.loads(Path(tests).with_name(f"{name}.json").read_text(encoding="utf-8"))
