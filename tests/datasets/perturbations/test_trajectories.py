"""Perturbations of what an agent did; what holds for every perturbation is tested with the others."""

import re
from typing import Any

import pytest

from judgesmith.datasets.perturbations.registry import (
    PERTURBATIONS,
    Left,
    Pair,
    Text,
    find_perturbations,
    pairs_of,
)
from judgesmith.testing.perturbations import AGENT
from judgesmith.trajectories.value import marked

MADE: Any = {
    "dropped-call": {"new": "", "gone": 2},
    "wrong-argument": {
        "new": (
            'Assistant calls weather \\([12]\\): \\{("city": "(bergen|rome|oslo)"|, '
            '|"days": \\d)+\\}'
        ),
        "gone": 1,
    },
    "result-ignored": {
        "new": (
            "Assistant: oslo will have (\\d4 degrees, and rome 31|14 degrees, and "
            "rome \\d1)\\."
        ),
        "gone": 1,
    },
    "false-success": {
        "new": (
            'Tool weather \\(2\\) \\(error\\): \\{"error": "503: the service did not '
            'answer, and nothing was done"\\}'
        ),
        "gone": 1,
    },
    "argument-format": {
        "new": (
            'Assistant calls weather \\(1\\): \\{"days":2,"city":"oslo"\\}|Assistant '
            'calls weather \\(2\\): \\{"city":"rome"\\}'
        ),
        "gone": 2,
    },
    "call-numbers": {
        "new": (
            '(Assistant calls|Tool) weather \\(\\d+\\): \\{("city": "(oslo|rome)"|, '
            '"days": 2|"high": (14|31))+\\}'
        ),
        "gone": 4,
    },
}
LINES = set(AGENT.splitlines())


@pytest.mark.parametrize("name", MADE)
def test_each_changes_what_it_says_and_nothing_else(name: str) -> None:
    assert {made.name for made, _ in find_perturbations(["trajectory"])} == MADE.keys()
    texts = [Text("a", AGENT), Text("b", AGENT.replace("oslo", "bergen"))]
    for outcome in (
        o
        for seed in range(9)
        for o in pairs_of(PERTURBATIONS[name], texts, seed=seed)
        if o.id == "a"
    ):
        assert isinstance(outcome, Pair)
        made = set(outcome.perturbed.splitlines())
        assert len(LINES - made) == MADE[name]["gone"]
        assert all(re.fullmatch(MADE[name]["new"], line) for line in made - LINES)


@pytest.mark.parametrize(
    ("name", "without", "why"),
    [
        (
            "result-ignored",
            "\\d\\d degrees, and rome \\d\\d",
            "its answer has no number of a result",
        ),
        ("false-success", "\\nAssistant: .*", "it ends without an answer"),
        (
            "false-success",
            "\\nTool .*",
            "its answer does not follow a result that is no error",
        ),
        (
            "false-success",
            '"high"(?=: 31)',
            "its answer does not follow a result that is no error",
        ),
        (
            "wrong-argument",
            "(?<=: )\\{.*\\}(?=\\n)",
            "no argument has a value that could be another",
        ),
        (
            "call-numbers",
            " \\(\\d\\)",
            "no calls were made at once, so none has a number",
        ),
        (
            "dropped-call",
            "\\nAssistant calls.*",
            "it is no trajectory with calls of tools",
        ),
        ("false-success", "\\n", "it is no trajectory with calls of tools"),
    ],
)
def test_what_cannot_be_perturbed_is_left_out_with_the_reason(
    name: str, without: str, why: str
) -> None:
    text = re.sub(without, '"error"' if "high" in without else "", AGENT)
    (left,) = pairs_of(PERTURBATIONS[name], [Text("a", text)])
    assert isinstance(left, Left)
    assert left.reason == why


def test_rows_of_which_one_turn_is_judged_are_left_out() -> None:
    (left,) = pairs_of(
        PERTURBATIONS["argument-format"], [Text("a", marked(AGENT, "2"))]
    )
    assert isinstance(left, Left)
    assert left.reason.startswith("one of its turns is judged")
