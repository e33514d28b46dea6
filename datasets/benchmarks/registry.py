"""Declarations of benchmark sets, and their registry."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from judgesmith.parts import Registry

GITHUB = "https://raw.githubusercontent.com"
"""Where origins are fetched from."""

PREFIX = "bench/"


@dataclass(frozen=True, slots=True)
class Origin:
    """One file of a public repository at one commit. `bytes` and `sha256` describe the whole file."""

    repository: str
    path: str
    commit: str
    bytes: int
    sha256: str

    @property
    def url(self) -> str:
        """Return the address of the file at the pinned commit."""
        return f"{GITHUB}/{self.repository}/{self.commit}/{self.path}"


@dataclass(frozen=True, slots=True)
class BenchmarkCard:
    """The facts about a set that give its numbers their meaning.

    `aspects` maps each aspect to its scale (worst, best), higher is better; -inf where there is no worst end.
    `rows`, `documents` and `systems` (None where they are not named) are those of the whole set. `aggregation` says how
    published tables make one number of it. `restriction` is "" or what stands against free use. `origin` is None for a
    set that cannot be fetched, and `unfetchable` says why. `extras` are the files that may lie beside the rows.
    A set of another package has its rows in a `file` of that package (JSONL that `read_labels` reads), or an origin and
    `convert`, which makes rows of the original file.
    """

    name: str
    title: str
    task: str
    aspects: Mapping[str, tuple[float, float]]
    rows: int
    documents: int
    paper: str
    paper_url: str
    licence: str
    licence_note: str
    aggregation: str
    systems: int | None = None
    restriction: str = ""
    quirks: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    origin: Origin | None = None
    unfetchable: str = ""
    file: Path | None = None
    convert: Callable[[Path], list[dict[str, Any]]] | None = None

    @property
    def key(self) -> str:
        """Return the name without `bench/`; the set's file is `{key}.jsonl`."""
        return self.name.removeprefix(PREFIX)

    @property
    def about(self) -> str:
        """Return a description of one line, as every part has it."""
        return self.title

    def to_json(self) -> dict[str, Any]:
        """Return the card as JSON values: a missing worst end is null."""
        scales = {
            aspect: [worst if math.isfinite(worst) else None, best]
            for aspect, (worst, best) in self.aspects.items()
        }
        data = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("file", "convert")
        }
        return data | {
            "aspects": scales,
            "origin": asdict(self.origin) if self.origin else None,
        }


#: The sets of cards.toml, and those of other packages.
benchmarks: Registry[BenchmarkCard] = Registry(
    "benchmark set",
    packages=("judgesmith.datasets.benchmarks",),
    group="judgesmith.benchmarks",
)

for _key, _entry in tomllib.loads(
    files(__package__).joinpath("cards.toml").read_text(encoding="utf-8")
).items():
    _entry |= {
        field: tuple(_entry[field]) for field in ("quirks", "extras") if field in _entry
    }
    _entry["aspects"] = {
        aspect: (float(worst), float(best))
        for aspect, (worst, best) in _entry["aspects"].items()
    }
    if "origin" in _entry:
        _entry["origin"] = Origin(**_entry["origin"])
    benchmarks.register(BenchmarkCard(PREFIX + _key, **_entry))
