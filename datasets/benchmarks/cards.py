"""The sets of cards.toml as parts."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from .registry import PREFIX, BenchmarkCard, Origin, benchmarks

for _key, _entry in tomllib.loads(files(__package__).joinpath("cards.toml").read_text(encoding="utf-8")).items():
    _entry |= {field: tuple(_entry[field]) for field in ("quirks", "extras") if field in _entry}
    _entry["aspects"] = {aspect: (float(worst), float(best)) for aspect, (worst, best) in _entry["aspects"].items()}
    if "origin" in _entry:
        _entry["origin"] = Origin(**_entry["origin"])
    benchmarks.register(BenchmarkCard(PREFIX + _key, **_entry))
