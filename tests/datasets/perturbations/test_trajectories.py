"""Perturbations of what an agent did; what holds for every perturbation is tested with the others."""

import re

import pytest
from tables import cases

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

KNOWN = cases(__file__)
LINES = set(AGENT.splitlines())


@pytest.mark.parametrize("name", KNOWN["made"])
def test_each_changes_what_it_says_and_nothing_else(name: str) -> None:
    assert {made.name for made, _ in find_perturbations(["trajectory"])} == KNOWN[
        "made"
    ].keys()
    texts = [Text("a", AGENT), Text("b", AGENT.replace("oslo", "bergen"))]
    for outcome in (
        o
        for seed in range(9)
        for o in pairs_of(PERTURBATIONS[name], texts, seed=seed)
        if o.id == "a"
    ):
        assert isinstance(outcome, Pair)
        made = set(outcome.perturbed.splitlines())
        assert len(LINES - made) == KNOWN["made"][name]["gone"]
        assert all(
            re.fullmatch(KNOWN["made"][name]["new"], line) for line in made - LINES
        )


@pytest.mark.parametrize(("name", "without", "why"), KNOWN["left"])
def test_what_cannot_be_perturbed_is_left_out_with_the_reason(
    name: str, without: str, why: str
) -> None:
    text = re.sub(without, '"error"' if "high" in without else "", AGENT)
    (left,) = pairs_of(PERTURBATIONS[name], [Text("a", text)])
    assert isinstance(left, Left) and left.reason == why


def test_rows_of_which_one_turn_is_judged_are_left_out() -> None:
    (left,) = pairs_of(
        PERTURBATIONS["argument-format"], [Text("a", marked(AGENT, "2"))]
    )
    assert isinstance(left, Left) and left.reason.startswith(
        "one of its turns is judged"
    )
