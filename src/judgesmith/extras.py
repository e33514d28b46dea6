"""What one command or one format needs: packages of extras, and rooms of judgesmith that an installation may lack.

Both are imported on first use, and named with the command that installs them when they are missing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from judgesmith.errors import MissingExtraError


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
        package = error.name or modules[0]
        raise missing(error, what, package, f"judgesmith[{extra}]") from None
    return imported[0]


def missing(
    error: ImportError, what: str, package: str, install: str
) -> MissingExtraError:
    """Return the error for a package that cannot be imported.

    Args:
        error: What its import raised.
        what: What needs the package; it opens the message.
        package: The package, or a module in it.
        install: What pip is to install, such as `judgesmith[tables]`.
    """
    absent = isinstance(error, ModuleNotFoundError)
    problem = "which is not installed" if absent else f"which fails: {error}"
    return MissingExtraError(
        f"{what} needs {package.partition('.')[0]}, {problem}: pip install '{install}'"
    )


def absent_room(module: str | None) -> str | None:
    """Return the room of judgesmith that a module is in, if this installation lacks it; None if there is no such lack.

    Args:
        module: The module, such as `judgesmith.rooms.serving.command`.
    """
    package, _, inside = (module or "").partition(".")
    if package != "judgesmith" or not inside:
        return None
    first, _, rest = inside.partition(".")
    if first == "rooms" and rest:
        first = f"{first}.{rest.partition('.')[0]}"
    room = f"{package}.{first}"
    spec = find_spec(room)
    # A folder that holds no more than compiled files has no origin.
    return room if spec is None or spec.origin is None else None


def without_room(room: str, what: str) -> MissingExtraError:
    """Return the error for a room of judgesmith that is not there.

    Args:
        room: The room, such as `judgesmith.rooms.serving`.
        what: What needs it; it opens the message.
    """
    return MissingExtraError(
        f"{what} needs {room}, which this installation lacks: pip install --force-reinstall judgesmith"
    )
