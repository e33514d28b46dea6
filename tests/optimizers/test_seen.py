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
    Row(
        id=str(n),
        output=" ".join(words(RNG, 8 + n % 30)),
        source=" ".join(words(RNG, 20)),
    )
    for n in range(200)
]


def test_a_row_is_known_in_every_disguise_and_others_are_not() -> None:
    seen = Seen(marks(ROWS))
    rng = random.Random(1)
    missed = 0
    for row in ROWS:
        assert seen.knows(row.source, row.output)
        assert seen.knows(row.source.upper(), row.output.replace(" ", "\n"))
        # Another ticket that got the same reply is another row.
        assert seen.recall("quite another source", row.output.title() + ".") == "reply"
        assert seen.knows("", row.output.title() + ".")  # its source is not known
        parts = row.output.split()
        parts[rng.randrange(len(parts))] = "changed"
        missed += not seen.knows(row.source, " ".join(parts))
        assert not seen.knows("quite another source", " ".join(parts))
        assert not seen.knows(
            row.source, " ".join(words(rng, 12))
        )  # another output of the same source
    assert missed <= 4  # of 200: the sketch is an estimate


def test_a_short_output_is_known_by_its_source_only() -> None:
    seen = Seen(marks([Row(id="1", output="I don't know.", source="Who was it?")]))
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


THANKS = (
    "We value your feedback on {}. Have a nice day, and thank you for writing to us."
)


def test_a_template_s_reply_to_another_source_is_no_row() -> None:
    labels = [
        Row(
            id=str(n),
            output=THANKS.format(thing),
            source=f"My {thing} came broken, third mail this week",
        )
        for n, thing in enumerate(("kettles", "toasters", "lamps"))
    ]
    seen = Seen(marks(labels))
    for n in range(200):
        asked = f"Where is parcel {n}? I moved to street {n} and wait since Monday"
        assert seen.recall(asked, THANKS.format("toasters")) == "reply"
        assert seen.recall(asked, THANKS.format("mixers")) == "reply"
        assert seen.recall(asked, f"Parcel {n} lies at your neighbour's door.") == ""
    source = labels[1].source
    assert seen.recall(source.upper() + "!", THANKS.format("toasters")) == "row"
    typing_error = source.replace("this week", "this weak")
    assert seen.recall(typing_error, THANKS.format("toasters")) == "row"
    assert seen.recall(source, THANKS.format("mixers")) == "row"  # one word differs


def test_labels_without_a_source_are_known_by_their_outputs() -> None:
    seen = Seen(marks([Row(id="1", output=THANKS.format("lamps"))]))
    assert seen.knows("", THANKS.format("lamps"))
    assert seen.knows("now with the ticket that it answers", THANKS.format("lamps"))
    assert not seen.knows("", "Yes.")


def test_marks_of_earlier_versions_tell_equal_rows_from_like_replies() -> None:
    found = marks(ROWS[:20])
    earlier = [
        mark[:97] if mark.startswith("~") else mark for mark in found["seen_texts"]
    ]
    seen = Seen({"seen": found["seen"], "seen_texts": earlier})
    for row in ROWS[:20]:
        assert seen.knows(row.source.title(), row.output.upper())
        changed = " ".join(["changed", *row.output.split()[1:]])
        assert seen.recall("quite another source", row.output) == "reply"
        assert seen.recall(row.source, changed) in ("reply", "")
