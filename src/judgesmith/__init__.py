"""judgesmith: turn a handful of human scores into a language-model judge, and say honestly how far to trust it."""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _public_names() -> dict[str, str]:
    """Return the module of each public name, as `__init__.pyi` imports them."""
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    modules = [
        node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)
    ]
    return {name.name: str(node.module) for node in modules for name in node.names}


# Public names are imported on first use: DSPy alone takes seconds.
_MODULES = _public_names()
__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from judgesmith.extras import absent_room, without_room

    if (room := absent_room(_MODULES[name])) is not None:
        raise without_room(room, f"judgesmith.{name}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
