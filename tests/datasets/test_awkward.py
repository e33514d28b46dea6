"""Files as people really have them: what is understood of each, and that no row is lost on the way."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgesmith.datasets.loading import iter_rows, read_labels
from judgesmith.datasets.records import Labels
from judgesmith.errors import JudgesmithError

FOLDER = Path(__file__).parent / "awkward"
EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (FOLDER / "expected.json").read_text(encoding="utf-8")
)
GOOD = [name for name, case in EXPECTED.items() if "expect" in case]
BAD = [name for name, case in EXPECTED.items() if "error" in case]


def read(name: str) -> Labels:
    case = EXPECTED[name]
    categories = case["categories"].split(",") if "categories" in case else ()
    return read_labels(
        FOLDER / name, columns=case.get("columns"), categories=categories
    )


def test_every_file_has_its_expectation() -> None:
    assert {path.name for path in FOLDER.iterdir()} - {"expected.json"} == set(EXPECTED)
    assert len(EXPECTED) >= 25


@pytest.mark.parametrize("name", GOOD)
def test_what_is_understood(name: str) -> None:
    case = EXPECTED[name]
    expected = dict(case["expect"])
    labels = read(name)
    understood = labels.understood()
    reasons: dict[str, list[int]] = {}
    for row in understood["skipped_rows"]:
        reasons.setdefault(row["reason"], []).append(row["row"])
    assert reasons == expected.pop("skipped")
    assert understood["rows"] == understood["labelled"] + understood["skipped"]
    assert all(
        part in "\n".join(understood["notes"]) for part in expected.pop("notes", [])
    ), understood["notes"]
    assert set(expected.pop("unused_has", [])) <= set(understood["unused"])
    assert bool(expected.pop("ratings", False)) == any(
        row.ratings for row in labels.rows
    )
    assert {key: understood[key] for key in expected} == expected
    for part in case.get("source_has", []):
        assert part in labels.rows[0].source
    for part in case.get("context_has", []):
        assert part in (labels.rows[0].context or "")
    assert {
        name: getattr(labels.rows[0], name) for name in case.get("first", {})
    } == case.get("first", {})
    assert {text for row in labels.rows for text in row.why(labels.aspect)} == set(
        case.get("why", ())
    )
    rating = expected.get("columns", {}).get("score", "Rating (1-5)")
    assert rating not in labels.aspect  # an aspect goes into prompts


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_and_how(name: str) -> None:
    case = EXPECTED[name]
    with pytest.raises(JudgesmithError) as error:
        read(name)
    message = str(error.value)
    assert case["error"] in message
    assert name in message
    if "lines" in case:
        assert sum(", row " in line for line in message.splitlines()) == case["lines"]


@pytest.mark.parametrize(
    "name", [name for name in GOOD if EXPECTED[name]["expect"]["kind"] != "preference"]
)
def test_the_same_texts_are_scored(name: str) -> None:
    """What `score` and `show --prompt` show of a row is what the judge was compiled with."""
    labels = read(name)
    rows = iter_rows(FOLDER / name, columns=EXPECTED[name].get("columns"))
    scored = {(row.source, row.output, row.context) for row, _ in rows}
    assert {(row.source, row.output, row.context) for row in labels.rows} <= scored
