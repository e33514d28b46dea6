"""Build the package with setuptools, after the rooms are where it looks for them.

`src/judgesmith` has a link to each room of the repository (`programs` -> `../../programs`). Git on Windows writes a
link as a file that holds its target unless `core.symlinks` is on. Such a file becomes a directory junction, which needs
no rights.
"""

import sys
from pathlib import Path

from setuptools import build_meta as _setuptools
from setuptools.build_meta import (  # noqa: F401 (the hooks that need no links)
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

PACKAGE = Path(__file__).parent / "judgesmith"


def junction(target: Path, place: Path) -> None:
    """Make `place` lead to the folder `target`: a junction on Windows, a link elsewhere."""
    if sys.platform == "win32":
        import _winapi

        _winapi.CreateJunction(str(target), str(place))
    else:
        place.symlink_to(target, target_is_directory=True)


def link_rooms(package: Path = PACKAGE) -> None:
    """Replace each file that stands for a link by the link itself."""
    for place in package.iterdir():
        if place.suffix or not place.is_file():
            continue
        target = (package / place.read_text(encoding="utf-8").strip()).resolve()
        if target.is_dir():
            place.unlink()
            junction(target, place)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    """Link the rooms, then build a wheel."""
    link_rooms()
    return _setuptools.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    """Link the rooms, then build an editable wheel."""
    link_rooms()
    return _setuptools.build_editable(
        wheel_directory, config_settings, metadata_directory
    )


def build_sdist(sdist_directory, config_settings=None):  # type: ignore[no-untyped-def]
    """Link the rooms, then build a source distribution."""
    link_rooms()
    return _setuptools.build_sdist(sdist_directory, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):  # type: ignore[no-untyped-def]
    """Link the rooms, then prepare a wheel's metadata."""
    link_rooms()
    return _setuptools.prepare_metadata_for_build_wheel(
        metadata_directory, config_settings
    )


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):  # type: ignore[no-untyped-def]
    """Link the rooms, then prepare an editable wheel's metadata."""
    link_rooms()
    return _setuptools.prepare_metadata_for_build_editable(
        metadata_directory, config_settings
    )
