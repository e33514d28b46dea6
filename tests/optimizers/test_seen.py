"""Rows that a judge was compiled from are known again, in any disguise, without their texts being kept."""

import json
import random
from typing import Any

import pytest

from judgesmith.datasets.row import Row
from judgesmith.optimizers.examples import row_key
from judgesmith.optimizers.seen import Seen, marks


def words(rng: random.Random, count: int) -> list[str]:
    return [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(count)
    ]


RNG = random.Random(0)
ROWS = [
    Row(str(n), " ".join(words(RNG, 8 + n % 30)), " ".join(words(RNG, 20)))
    for n in range(200)
]


def test_a_row_is_known_in_every_disguise_and_others_are_not() -> None:
    seen = Seen(marks(ROWS))
    rng = random.Random(1)
    missed = 0
    for row in ROWS:
        assert seen.knows(row.source, row.output)
        assert seen.knows(row.source.upper(), row.output.replace(" ", "\n"))
        assert seen.knows("quite another source", row.output.title() + ".")
        parts = row.output.split()
        parts[rng.randrange(len(parts))] = "changed"
        missed += not seen.knows(row.source, " ".join(parts))
        assert not seen.knows(
            row.source, " ".join(words(rng, 12))
        )  # another output of the same source
    assert missed <= 4  # of 200: the sketch is an estimate


def test_a_short_output_is_known_by_its_source_only() -> None:
    seen = Seen(marks([Row("1", "I don't know.", "Who was it?")]))
    assert seen.knows("who was it", "I DON'T KNOW")
    assert not seen.knows("What was it?", "I don't know.")


def test_no_text_is_kept_and_old_artifacts_are_read() -> None:
    said = json.dumps(marks(ROWS[:5]))
    assert not any(
        word in said
        for row in ROWS[:5]
        for word in (row.source + " " + row.output).split()
    )
    old = Seen({"seen": [row_key(ROWS[0].source, ROWS[0].output)]})
    assert old.knows(ROWS[0].source, ROWS[0].output)
    assert not old.knows(ROWS[1].source, ROWS[1].output)
    assert not Seen({}).knows("", "")


@pytest.mark.parametrize(
    "forged", [["~" + "0" * 96], ["~" + "f" * 96], ["~0f"], [1, None], 1, "~"], ids=str
)
def test_forged_marks_know_nothing(forged: Any) -> None:
    seen = Seen({"seen": forged, "seen_texts": forged})
    assert not any(seen.knows(row.source, row.output) for row in ROWS[:50])
