"""All values of expected_correlations.json, by the command `judgesmith evaluate` itself: one run per set."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgesmith.cli.main import app

DATA = os.environ.get("JUDGESMITH_DATA")
pytestmark = [
    pytest.mark.slow,  # every set is read and measured whole
    pytest.mark.skipif(
        not DATA,
        reason="JUDGESMITH_DATA is unset: the folder of sets with expected_correlations.json",
    ),
]
LEVELS = {"pooled": "pooled", "per_doc_mean": "sample", "system": "system"}


def expected() -> list[dict[str, Any]]:
    path = Path(DATA or "", "expected_correlations.json")
    return (
        json.loads(path.read_text(encoding="utf-8")) if DATA and path.exists() else []
    )


ENTRIES = expected()


def aspect_of(entry: dict[str, Any]) -> str:
    return (
        "zscores.simplicity"
        if entry["aspect"] == "simplicity (zscores)"
        else str(entry["aspect"])
    )


@cache
def run(name: str, without: str | None, absolute: bool) -> dict[str, Any]:
    """`judgesmith evaluate bench/NAME` with every metric and aspect that the fixtures speak of."""
    mine = [
        e for e in ENTRIES if e["set"] == name and e.get("excluded_system") == without
    ]
    arguments = ["evaluate", f"bench/{name}", "--json", "--rounds", "0"]
    for metric in dict.fromkeys(e["metric"] for e in mine):
        arguments += ["--judge", metric]
    for aspect in dict.fromkeys(map(aspect_of, mine)):
        arguments += ["--human", aspect]
    for level in dict.fromkeys(LEVELS[e["aggregation"]] for e in mine):
        arguments += ["--level", level]
    if without:
        arguments += ["--without-system", without]
    result = CliRunner().invoke(
        app, arguments + (["--absolute"] if absolute else []), catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["judges"]


def test_the_fixtures_are_all_there() -> None:
    assert len(ENTRIES) == 429


@pytest.mark.parametrize(
    "entry",
    ENTRIES,
    ids=lambda e: "-".join(
        str(e[k]) for k in ("set", "metric", "aspect", "aggregation", "coefficient")
    ),
)
def test_published(entry: dict[str, Any]) -> None:
    judges = run(
        entry["set"],
        entry.get("excluded_system"),
        bool(entry.get("published_is_absolute_value")),
    )
    cell = judges[entry["metric"]][aspect_of(entry)][LEVELS[entry["aggregation"]]][
        entry["coefficient"]
    ]
    assert round(cell["value"], 6) == pytest.approx(entry["value"], abs=1e-9)
    assert cell["n"] == entry["n"]
    if entry.get("match") == "exact":
        digits = len(str(entry["published"]).partition(".")[2])
        assert round(cell["value"], digits) == pytest.approx(
            entry["published"], abs=10**-digits / 1000
        )
