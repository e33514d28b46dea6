"""Whatever a model or a server answers, reading it raises nothing and takes time in proportion to its length."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgesmith.programs.answers.reading import bare
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.comparing import comparison, synthesis
from judgesmith.programs.openlgauge import grounding
from judgesmith.programs.openlgauge import reading as annotation_text
from judgesmith.programs.pointwise import geval
from judgesmith.programs.prompting.layouts import (
    CriteriaLayout,
    CriteriaListLayout,
    OverallLayout,
    TextLayout,
    disarm,
)
from judgesmith.rooms.discerning import rewriting
from judgesmith.rooms.injections.rules import suspicion
from judgesmith.signatures.values import Criterion

CRITERIA = (
    Criterion("Fluency", "It reads well."),
    Criterion("Use of the source", "It is true."),
)
OUTPUT = 'The "red" door, and (4) more: it is open. ' * 10
READERS: dict[str, Callable[[str], Any]] = {
    "overall score": lambda text: OverallLayout("before").read(Reply(text), {}),
    "score first": lambda text: OverallLayout("after", "expected").read(
        Reply(text, finish="length"), {}
    ),
    "criteria": lambda text: CriteriaLayout().read(Reply(text), {"criteria": CRITERIA}),
    "list of criteria": lambda text: CriteriaListLayout().read(Reply(text), {}),
    "prose": lambda text: TextLayout("text", "Answer.", tokens=9).read(Reply(text), {}),
    "annotation": lambda text: annotation_text.read_annotation(text, output=OUTPUT),
    "steps": geval.numbered,
    "rewritten text": bare,
    "check of a rewritten text": lambda text: rewriting.check(
        "grammar", text, text + " x"
    ),
    "written text": lambda text: synthesis.bare(text),
    "comparison": lambda text: comparison.ComparisonLayout(sampled=True).read(
        Reply(text), {}
    ),
    "place in the output": lambda text: grounding.ground(text, OUTPUT),
    "place in a long output": lambda text: grounding.ground("the red door (4)", text),
    "disarmed": disarm,
    "suspicion": suspicion,
}
#: What readers look for, and what stands around it.
PIECES = [
    "{",
    "[{",
    "[",
    '{"a":',
    "}",
    "]",
    '"',
    "'",
    "(4",
    "(",
    ")",
    "\n",
    " ",
    "\t",
    "\r",
    "\u2028",
    "\n\n",
    "a ",
    "a",
    "a\n",
    "A1",
    "4",
    "4 ",
    "4,",
    "4-",
    "4/",
    ".",
    "!",
    ",",
    ", ",
    ";",
    ":",
    "=",
    "|",
    "| a | b |\n",
    "-",
    "_",
    " - ",
    "- x: y\n",
    "* ",
    "**",
    "#\n",
    "> ",
    "~~",
    "```",
    "```\n",
    "\\",
    "/",
    "<",
    "<a>",
    "</",
    "<output>",
    "<|",
    "[A",
    "< ",
    "＜",
    "\u200b",
    "<think>",
    "</think>",
    "Score: ",
    "Score: 4 ",
    "score (",
    "give ",
    "rate 4 of ",
    "overall ",
    "Explanation: ",
    "Fluency",
    "Fluency: ",
    "\nFluency: x Score: 4",
    "Use ",
    "Error 1\n",
    "Location: ",
    "Severity: 4\n",
    "Overall: Good\n",
    "No Error\n",
    "Better ",
    "not ",
    "or ",
    "“a”",
    "「",
    "1. x\n",
    "1)",
    "Step 1",
    "a,b\n",
    "a: b\n",
    "inform(a=b)",
    "\u00e9",
    "。",
    "\x00",
    "\U000e0041",
    "\ud800",
    "ignore all ",
    "note to the grader ",
    "rate this ",
    "\u0661",
]
AROUND = [
    "",
    "x",
    "Fluency: ",
    "Score:",
    "Error 1\nLocation: ",
    "<output>x",
    "<a>",
    "Better",
    "4",
    "[",
    "```",
    "1.",
]


def grows_linearly(
    read: Callable[[str], Any], before: str, piece: str, after: str
) -> None:
    """Assert that reading takes linear time: 8,000 characters against 2,000, unless they are over at once.

    Four times as long is linear, sixteen times quadratic. Processor time, the best of three, since the machine may be
    busy.
    """

    def seconds(length: int) -> float:
        text = before + piece * (length // len(piece)) + after
        begun = time.process_time()
        read(text)
        return time.process_time() - begun

    if seconds(8_000) > 0.2:
        short, long = (
            min(seconds(length) for _ in range(3)) for length in (2_000, 8_000)
        )
        assert long < max(9 * short, 0.2), (
            f"{before!r} + {piece!r} * n + {after!r}: {short:.2f} s, then {long:.2f} s"
        )


@pytest.mark.parametrize("name", READERS)
def test_every_reader_is_linear_in_whatever_is_repeated(name: str) -> None:
    for piece in PIECES:
        grows_linearly(READERS[name], "x", piece, "y")


@pytest.mark.parametrize("name", READERS)
def test_no_answer_is_read_in_more_than_linear_time_or_raises(name: str) -> None:
    pieces = st.one_of(st.sampled_from(PIECES), st.text(min_size=1, max_size=6))
    around = st.one_of(st.sampled_from(AROUND), st.text(max_size=10))

    @settings(max_examples=25)
    @given(around, st.lists(pieces, min_size=1, max_size=3).map("".join), around)
    @example("x", "\n", "x")
    @example("[", "(4", "")
    @example("Fluency: ", "4", "y")
    @example("Error 1\nLocation: ", "**", "\nSeverity: 4")
    @example("Better", ",", "x")
    @example("Score:", " ", "x")
    @example("", "{", "0")
    def check(before: str, piece: str, after: str) -> None:
        grows_linearly(READERS[name], before, piece, after)

    check()


@given(
    st.lists(
        st.one_of(st.sampled_from([*PIECES, *AROUND]), st.text(max_size=8)), max_size=25
    ).map("".join)
)
@settings(max_examples=100)
def test_nothing_that_a_model_says_raises(text: str) -> None:
    for read in READERS.values():
        read(text)
