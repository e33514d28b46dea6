"""A record is the same row through every door: `judgesmith.rows` is the only reader of its texts."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pandas as pd
import pytest

from judgesmith.datasets.loading import iter_rows, read_labels
from judgesmith.errors import LabelsError, OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.rooms.serving.forms import RowIn
from judgesmith.rows import Item, as_text, roles_of, source_key
from judgesmith.signatures.values import Verdict

CHAT = [
    {"role": "user", "content": "Where?"},
    {"role": "assistant", "content": "In Rome."},
]
RECORDS: list[tuple[dict[str, Any], Item]] = [
    ({"output": "x", "source": "s"}, Item("x", "s")),
    ({"output": "x", "prompt": "write a poem"}, Item("x", "write a poem")),
    ({"response": "x", "prompt": "p"}, Item("x", "p")),
    ({"Model Answer": "x", "User-Query": "q"}, Item("x", "q")),
    (
        {
            "output": "x",
            "source": "s",
            "retrieved_contexts": ["a", "b"],
            "ground_truth": "g",
        },
        Item("x", "s", "[1] a\n[2] b", "g"),
    ),
    ({"output": "x", "contexts": '["a", "b"]'}, Item("x", "", "[1] a\n[2] b")),
    ({"output": "x", "context": ["a", "b"]}, Item("x", "", "[1] a\n[2] b")),
    (
        {"output": "x", "context": '[{"text": "a"}, {"text": "b"}]'},
        Item("x", "", "[1] a\n[2] b"),
    ),
    ({"output": "x", "context": "[1, 2]"}, Item("x", "", "[1, 2]")),
    ({"output": "x", "source": "s", "doc_id": "d7"}, Item("x", "s", group="d7")),
    (
        {"output": "x", "source": "s", "doc_id": "d7", "group": 7},
        Item("x", "s", group="7"),
    ),
    ({"output": "x", "source": "s", "group": source_key("s")}, Item("x", "s")),
    ({"output": 3, "source": 3.0}, Item("3", "3")),
    (
        {"output": "x", "source": {"a": 1}, "reference": ["one", "two"]},
        Item("x", '{"a": 1}', None, "one\ntwo"),
    ),
    ({"output": "x", "source": float("nan"), "context": None}, Item("x")),
    ({"output": "x", "source": None}, Item("x")),
    ({"output": None, "source": "s"}, Item("", "s")),
    ({"messages": CHAT}, Item("In Rome.", "User: Where?")),
    (
        {"output": "In Paris.", "source": "s", "messages": CHAT},
        Item("In Paris.", "s", "User: Where?\nAssistant: In Rome."),
    ),
    ({"output": CHAT}, Item("User: Where?\nAssistant: In Rome.")),
    (
        {"messages": CHAT, "judged_turn": 2.0},
        Item("User: Where?\nAssistant (only this turn is judged): In Rome."),
    ),
    ({"source": CHAT, "output": "x"}, Item("x", "User: Where?\nAssistant: In Rome.")),
]
NAMES = [", ".join(record) for record, _ in RECORDS]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """A judge whose verdicts carry the row that it was given."""

    async def verdict(self: Judge, item: Item, lm: Any = None) -> Verdict:
        return Verdict(score=1.0, percent=0.0, raw=(repr(item),))

    async def prepare(self: DirectScorer, lm: Any) -> None: ...

    monkeypatch.setattr(Judge, "verdict", verdict)
    monkeypatch.setattr(DirectScorer, "prepare", prepare)
    return Judge(DirectScorer(), lm="openai/none")


def items(judge: Judge, rows: Any) -> list[str]:
    return [verdict.raw[0] for verdict in judge.score_many(rows, progress=False)]


async def aitems(judge: Judge, rows: Any) -> list[str]:
    return [verdict.raw[0] async for verdict in judge.ascore_many(rows, progress=False)]


@pytest.mark.parametrize(("record", "row"), RECORDS, ids=NAMES)
def test_a_record_is_one_row_at_every_door(
    record: dict[str, Any], row: Item, judge: Judge, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(record) + "\n")
    expected = [repr(row)]

    assert items(judge, [record]) == expected
    assert items(judge, [dspy.Example(**record)]) == expected
    assert items(judge, pd.DataFrame([record])) == expected
    assert asyncio.run(aitems(judge, [record])) == expected
    assert RowIn.model_validate(record).item() == row
    assert RowIn.model_validate_json(json.dumps(record)).item() == row
    assert [Item.of(read) for read, _ in iter_rows(file)] == [row]
    assert Item.of(row) is row
    assert items(judge, [read for read, _ in iter_rows([record])]) == expected
    assert judge.score(
        row.source, row.output, context=row.context, reference=row.reference
    ).raw == (repr(Item(row.output, row.source, row.context, row.reference)),)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        *((record, "output") for record in ({}, {"source": "s"}, "text", None, 3, [1])),
        (
            {"output": "x", "question": "q", "article": "a"},
            "'question' and 'article' could each be the source",
        ),
        ({"output": "x", "prompt": object()}, "'prompt' must be a text"),
        (
            {"output": "Assistant: x", "judged_turn": 0},
            "'judged_turn': 0 is no turn of the assistant; its turns are 1",
        ),
        (
            {"output": "x", "judged_turn": 1},
            "'judged_turn': 1 is given, but the output has no turn",
        ),
    ],
)
def test_what_has_no_output_two_sources_or_no_text_in_a_cell_is_refused(
    record: Any, why: str
) -> None:
    with pytest.raises(OptionError, match=why):
        Item.of(record)


def test_a_row_keeps_the_group_that_near_duplicates_gave_it() -> None:
    ((row, _),) = iter_rows([{"output": "x", "source": "s", "doc_id": "d"}])
    assert Item.of(row).group == "d"


def test_a_test_case_of_deepeval_is_a_row() -> None:
    """Its own names, as a record and as an object; `name` and methods play no role."""
    case = {
        "input": "S",
        "actual_output": "O",
        "expected_output": "R",
        "retrieval_context": ["C", "D"],
        "name": None,
    }
    row = Item.of(case)
    assert (row.source, row.output, row.reference, row.context) == (
        "S",
        "O",
        "R",
        "[1] C\n[2] D",
    )
    assert Item.of(SimpleNamespace(**case, turns=None, text=str.upper)) == row


def test_many_names_are_each_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from judgesmith import rows

    plain, folded = rows.folded_name, list[str]()
    monkeypatch.setattr(
        rows, "folded_name", lambda name: folded.append(name) or plain(name)
    )
    names = (*(f"k{i}" for i in range(3000)), "Output", "prompt")
    assert dict(roles_of(names)) == {"output": "Output", "source": "prompt"}
    assert len(folded) <= len(names) + 2


@pytest.mark.parametrize(
    "record",
    [
        {"messages": "x"},
        {"messages": "x", "output": "y"},
        {"messages": 5},
        {"messages": ["a", "b"]},
        {"messages": [{"role": 1, "content": "x"}]},
        {"conversation": [{"role": 1, "content": "x"}], "output": "y"},
        {"chat": '[{"role": null, "content": "x"}]'},
    ],
)
def test_messages_without_turns_are_refused_everywhere(record: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="has no turns"):
        Item.of(record)
    with pytest.raises(LabelsError, match=r"row 1, column .* has no turns"):
        list(iter_rows([record]))
    with pytest.raises(LabelsError, match=r"row 1, column .* has no turns"):
        read_labels([record | {"score": n % 5} for n in range(9)])


@pytest.mark.parametrize(
    "record",
    [
        {"messages": [], "output": "y"},
        {"messages": None, "output": "y"},
        {"messages": "User: Where?\nAssistant: In Rome."},
        {"conversation": "Kunde: Wo?\nBeraterin: In Rom."},
        {"dialog": ["Where?", "In Rome."]},
    ],
)
def test_what_may_be_a_conversation_is_read_as_before(record: dict[str, Any]) -> None:
    assert Item.of(record).output


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ({"answer": "It is green."}, "It is green."),
        ({"Question": "Is it?"}, "Is it?"),
        ({"city": "Paris"}, '{"city": "Paris"}'),
        ({"answer": 4}, '{"answer": 4}'),
        ({"answer": "a", "question": "b"}, '{"answer": "a", "question": "b"}'),
    ],
)
def test_an_object_of_one_named_text_is_that_text(cell: Any, text: str) -> None:
    assert as_text(cell) == text
