"""Tables of cases that stand in files beside the tests that use them."""

import json
from pathlib import Path
from typing import Any

import yaml


def table(tests: str, name: str) -> Any:
    """`name`.json beside the file `tests` (its `__file__`)."""
    return json.loads(Path(tests).with_name(f"{name}.json").read_text(encoding="utf-8"))


def cases(tests: str) -> Any:
    """The tables of a file of tests by their names: test_x.yaml beside test_x.py."""
    return yaml.safe_load(Path(tests).with_suffix(".yaml").read_text(encoding="utf-8"))
