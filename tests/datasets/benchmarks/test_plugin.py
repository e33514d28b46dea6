"""A benchmark set of another package: listed, found, loaded and described like ours."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from json_lines import write

from judgesmith import parts
from judgesmith.datasets.benchmarks import catalog
from judgesmith.datasets.benchmarks.registry import BenchmarkCard, Origin
from judgesmith.datasets.loading import read_labels
from judgesmith.parts import Registry

ROWS = [
    {
        "id": str(n),
        "source": f"s{n}" * 9,
        "output": f"o {n}",
        "doc_id": f"d{n // 2}",
        "scores": {"tone": n},
    }
    for n in range(8)
]
CARD = BenchmarkCard(
    name="bench/letters",
    title="Letters: how polite they are",
    task="writing",
    aspects={"tone": (0.0, 7.0)},
    rows=8,
    documents=4,
    paper="Nobody 2026",
    paper_url="https://example.org",
    licence="CC0",
    licence_note="",
    aggregation="pooled",
)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """plugin(card): an installed package declares this set; those of ours are left away."""

    def declare(card: Any) -> None:
        monkeypatch.setattr(EntryPoint, "load", lambda self: card)
        points = [EntryPoint("letters", "letters:CARD", "judgesmith.benchmarks")]
        monkeypatch.setattr(
            parts,
            "entry_points",
            lambda group: points if group == "judgesmith.benchmarks" else [],
        )
        monkeypatch.setattr(
            catalog,
            "benchmarks",
            Registry("set", packages=(), group="judgesmith.benchmarks"),
        )

    monkeypatch.delenv("JUDGESMITH_DATA", raising=False)
    return declare


def test_a_set_with_its_rows_in_the_package(
    plugin: Callable[[Any], None], tmp_path: Path
) -> None:
    plugin(replace(CARD, file=write(tmp_path / "letters.jsonl", ROWS)))
    (card,) = catalog.list_benchmarks()
    assert card.about == CARD.title
    assert catalog.locate("letters") == catalog.Place(
        "package", tmp_path / "letters.jsonl"
    )
    labels = read_labels(catalog.resolve("bench/letters"), scale=card.aspects["tone"])
    assert [row.scores["tone"] for row in labels.rows] == list(range(8))
    assert labels.scale == (0, 7)
    told = card.to_json()
    assert json.loads(json.dumps(told))["aspects"] == {"tone": [0, 7]}
    assert "file" not in told


def test_a_set_that_is_fetched_has_its_own_converter(
    plugin: Callable[[Any], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGESMITH_DATA_CACHE", str(tmp_path))
    content = json.dumps([row["scores"]["tone"] for row in ROWS]).encode()  # type: ignore[index]
    origin = Origin(
        "me/letters",
        "letters.json",
        "c" * 40,
        len(content),
        hashlib.sha256(content).hexdigest(),
    )
    fetched = tmp_path / "origins" / "me_letters" / ("c" * 12) / "letters.json"
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(content)
    plugin(
        replace(
            CARD,
            origin=origin,
            convert=lambda path: [ROWS[n] for n in json.loads(path.read_text())],
        )
    )
    assert catalog.resolve("letters").is_file()
    assert catalog.locate("letters").kind == "cache"
