"""Build with setuptools, after the rooms' links are links.

Git on Windows writes a link as a file that holds its target, unless `core.symlinks` is on. Such a file becomes a
directory junction, which needs no rights.
"""

import os
from pathlib import Path

from setuptools import setup


def link_rooms(package: Path) -> None:
    """Replace each file that stands for a link by the link itself."""
    for place in package.iterdir():
        if place.suffix or not place.is_file():
            continue
        target = (package / place.read_text(encoding="utf-8").strip()).resolve()
        if not target.is_dir():
            continue
        place.unlink()
        if os.name == "nt":
            import _winapi

            _winapi.CreateJunction(str(target), str(place))
        else:
            place.symlink_to(target, target_is_directory=True)


link_rooms(Path(__file__).parent / "src" / "judgesmith")
setup()
