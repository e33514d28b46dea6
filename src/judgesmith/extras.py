"""Packages that one command or one format needs: imported on first use, and named with their extra when missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import MissingExtraError


def from_extra(extra: str, what: str, *modules: str) -> Any:
    """Import modules that an extra of judgesmith installs, and return the first.

    Args:
        extra: The extra, such as `tables`.
        what: What needs the modules; it opens the message.
        modules: Their names, such as `pyarrow` and `pyarrow.parquet`.

    Raises:
        MissingExtraError: If one is missing; names the command that installs the extra.
    """
    try:
        imported = [import_module(module) for module in modules]
    except ImportError as error:
        package = (error.name or modules[0]).partition(".")[0]
        known = isinstance(error, ModuleNotFoundError)
        problem = "which is not installed" if known else f"which fails: {error}"
        raise MissingExtraError(
            f"{what} needs {package}, {problem}: pip install 'judgesmith[{extra}]'"
        ) from None
    return imported[0]
