"""What is asked, which keys answer it, and which answers are refused."""

import math
import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgesmith.errors import OptionError
from judgesmith.rooms.labelling.order import GAP, sequence
from judgesmith.rooms.labelling.task import Task, Unit

TOOLS = set("usgd?oew")
ROW = Unit("k", {"output": "héllo 👩‍👩‍👧 wörld"})
TASKS = [
    Task(),
    Task(scale=(0, 3)),
    Task(scale=(1, 10)),
    Task(scale=(-2, 2)),
    Task(scale=(0, 100)),
    Task("binary"),
    Task("category", categories=("bad", "ok", "good")),
    Task("preference"),
    Task("binary", ("tone", "truth")),
]


@pytest.mark.parametrize("task", TASKS)
def test_every_answer_has_a_key_of_its_own_that_is_no_tool(task: Task) -> None:
    for question in task.questions:
        keys = [choice.key for choice in question.choices]
        assert len(set(keys)) == len(keys)
        assert not TOOLS & set(keys)
        assert set(keys) <= set(string.ascii_lowercase + string.digits)
        for choice in question.choices:
            assert question.read(choice.value) == choice.value
            assert question.apart(choice.value, choice.value) == 0
        assert len(
            {question.number(choice.value) for choice in question.choices}
        ) == len(keys)


def test_a_digit_is_the_score_itself() -> None:
    for low, high, keys in (
        (1, 5, "12345"),
        (0, 3, "0123"),
        (1, 10, "1234567890"),
        (-2, 2, "12345"),
    ):
        (question,) = Task(scale=(low, high)).questions
        assert "".join(choice.key for choice in question.choices) == keys
        assert [choice.value for choice in question.choices] == list(
            range(low, high + 1)
        )
    (typed,) = Task(scale=(0, 100)).questions
    assert typed.choices == ()
    assert typed.read(55.5) == 55.5
    assert typed.apart(0, 40) == 0.4


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        (Task(), {"score": 6}),
        (Task(), {"score": True}),
        (Task(), {"score": "3"}),
        (Task(), {}),
        (Task(), []),
        (Task(scale=(0, 100)), {"score": float("nan")}),
        (Task(scale=(0, 100)), {"score": True}),
        (Task("binary"), {"binary": "maybe"}),
        (Task("preference"), {"preference": "c"}),
        (Task("spans"), {}),
        (Task("spans"), {"errors": [{"start": 0, "end": 99, "severity": 3}]}),
        (Task("spans"), {"errors": [{"start": 2, "end": 2, "severity": 3}]}),
        (Task("spans"), {"errors": [{"start": 0, "end": 2, "severity": 6}]}),
        (Task("spans"), {"errors": [{"start": None, "end": 2, "severity": 3}]}),
        (Task("spans"), {"errors": [{"start": True, "end": 2, "severity": 3}]}),
        (
            Task("spans"),
            {
                "errors": [
                    {"start": 0, "end": 2, "severity": 3, "explanation": "x" * 3000}
                ]
            },
        ),
        (Task("spans"), {"errors": [None]}),
        (Task(aspects=("a", "b")), {"a": 3}),
        *(
            (Task(), {"score": 3, "why": why})
            for why in ("x", {"score": 1}, {"tone": "x"}, {"score": "x" * 3000})
        ),
    ],
)
def test_wrong_answers_are_refused(task: Task, answer: Any) -> None:
    with pytest.raises(ValueError, match=r"give|choose|answer|errors"):
        task.read(ROW, answer)


def test_spans_count_code_points_and_get_their_words() -> None:
    errors = [
        {"start": None, "end": None, "severity": 5},
        {"start": 6, "end": 11, "severity": 2, "explanation": " x "},
    ]
    read = Task("spans").read(ROW, {"errors": errors})["errors"]
    assert [one["text"] for one in read] == [
        "👩‍👩‍👧",
        "",
    ]  # five code points, seven or more in UTF-16
    assert read[0]["explanation"] == "x"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "stars"}, "--kind stars"),
        ({"scale": [5.0, 1.0]}, "--scale 5 1"),
        ({"kind": "category"}, "two to ten are needed"),
        ({"categories": ["a", "b"]}, "--kind category"),
        ({"kind": "category", "categories": ["a", "A"]}, "must differ"),
        ({"kind": "binary", "categories": ["a", "b", "c"]}, "two are needed"),
        ({"repeats": 2.0}, "--repeats 2"),
        ({"kind": "preference", "aspects": ["a", "b"]}, "give one"),
        ({"aspects": ["a", "A"]}, "must differ"),
        ({"aspects": ["why"]}, "must differ"),
        ({"kind": "spans", "why": True}, "--why: labels of kind spans"),
    ],
)
def test_tasks_that_make_no_sense_are_refused(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        Task(**options)


@given(st.integers(0, 80), st.floats(0, 1), st.integers(0, 40))
@example(0, 0.0703125, 29)
def test_rows_come_back_after_others_and_a_longer_queue_only_adds(
    rows: int, share: float, more: int
) -> None:
    queue = [f"u{n}" for n in range(rows + more)]
    short, whole = sequence(queue[:rows], share), sequence(queue, share)
    assert [key for key, turn in whole if not turn] == queue
    assert set(short) <= set(whole)
    assert len(set(whole)) == len(whole)
    place = {one: n for n, one in enumerate(whole)}
    again = [key for key, turn in whole if turn]
    room = queue[: max(0, len(queue) - GAP)]
    assert all(place[key, 1] - place[key, 0] >= GAP for key in again if key in room)
    assert all(place[key, 1] - place[key, 0] > 1 for key in again)
    assert len(again) == (math.ceil(len(queue) * share) if len(queue) > 1 else 0)


@pytest.mark.parametrize(
    ("rows", "share", "again"),
    [(12, 0.25, 3), (5, 0.2, 1), (4, 0.25, 1), (9, 1, 9), (2, 0.5, 1), (40, 0.1, 4)],
)
def test_a_short_session_has_its_repeats(rows: int, share: float, again: int) -> None:
    shown = sequence([f"u{n}" for n in range(rows)], share)
    assert (len(shown), sum(turn for _, turn in shown)) == (rows + again, again)
