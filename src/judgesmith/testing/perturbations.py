"""Contract of every perturbation of a text."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from judgesmith.datasets.perturbations.registry import (
    Amounts,
    Change,
    Left,
    Pair,
    Perturbation,
    Text,
    find_perturbations,
    pairs_of,
    perturbations,
)

TOWN = (
    "The mayor of Springfield, Anna Lopez, said on Monday that the town will not buy 12 new buses. She wanted cheaper "
    "ones, because the budget is small. The council has agreed. It meets again in March 2024."
)
CATS = (
    "Firefighters in Oldham rescued 3 cats from a tall oak on Friday. Nobody was hurt, and the owner, Peter Black, "
    "doesn't live there. He was happy about it. The tree is 150 years old."
)
TALK = "Anna: Do you want tea?\nBen: No, I was never fond of it.\nAnna: Coffee then?\nBen: Yes, it is often better."
AGENT = (
    'User: How warm are oslo and rome tomorrow?\nAssistant calls weather (1): {"city": "oslo", "days": 2}\n'
    'Assistant calls weather (2): {"city": "rome"}\nTool weather (1): {"high": 14}\nTool weather (2): {"high": 31}\n'
    "Assistant: oslo will have 14 degrees, and rome 31."
)
TEXTS = (
    Text(
        "town",
        TOWN,
        "The mayor, Anna Lopez, wants no buses for Springfield.",
        wrong="She bought a horse.",
    ),
    Text("cats", CATS),
    Text("talk", TALK),
    Text(
        "cafe",
        "red door cafe is cheap and has 4 stars .",
        "inform(name='red door cafe', stars=4)",
    ),
    Text("bar", "blue moon bar is dear .", "inform(name='blue moon bar')"),
    Text("agent", AGENT),
)
ODD = (
    Text("emoji", "😀 😀"),
    Text("word", "word"),
    Text("empty", "  "),
    Text("marks", "?! …"),
    Text("bad", "a\ud800b"),
)


class PerturbationContract:
    """Subclass it in a test module, name the `part`, and pytest runs all of this over it.

    part: the perturbation's class. texts: those that it is tried on; it must change at least one.
    """

    part: ClassVar[type[Perturbation]]
    texts: ClassVar[tuple[Text, ...]] = TEXTS

    @pytest.fixture
    def perturbation(self) -> Perturbation:
        """Provide the perturbation to test."""
        return self.part()

    def test_it_is_registered_and_says_what_it_is(
        self, perturbation: Perturbation
    ) -> None:
        assert perturbations.get(perturbation.name) is type(perturbation)
        assert perturbation.about
        assert "\n" not in perturbation.about
        assert [one.name for one, _ in find_perturbations([perturbation.name])] == [
            perturbation.name
        ]

    def test_it_is_seeded_and_changes_what_it_says(
        self, perturbation: Perturbation
    ) -> None:
        first = [
            o for o in pairs_of(perturbation, self.texts, seed=3) if isinstance(o, Pair)
        ]
        assert first, "none of these texts could be perturbed"
        assert first == [
            o for o in pairs_of(perturbation, self.texts, seed=3) if isinstance(o, Pair)
        ]
        for pair in first:
            assert pair.perturbed != pair.original
            assert pair.perturbed.strip()
            assert pair.change == Change.between(pair.original, pair.perturbed)
            assert (pair.kind, pair.level) == (perturbation.kind, perturbation.level)
            if pair.kind != "attack":
                assert pair.original == next(
                    t.text for t in self.texts if t.id == pair.id
                )
            assert Pair.from_dict(json.loads(json.dumps(pair.to_dict()))) == pair

    def test_minor_changes_less_than_major(self, perturbation: Perturbation) -> None:
        if perturbation.degrees == ("only",):
            assert all(
                o.degree == "only"
                for o in pairs_of(perturbation, self.texts)
                if isinstance(o, Pair)
            )
            return
        both = 0
        for seed in range(4):
            one = [
                o
                for o in pairs_of(perturbation, self.texts, seed=seed)
                if isinstance(o, Pair)
            ]
            result = {(pair.id, pair.degree): pair.change.distance for pair in one}
            for identity in {pair.id for pair in one}:
                if (identity, "minor") in result and (identity, "major") in result:
                    assert result[identity, "minor"] < result[identity, "major"]
                    both += 1
        assert both

    def test_odd_texts_are_changed_or_left_out_with_a_reason(
        self, perturbation: Perturbation
    ) -> None:
        for outcome in pairs_of(perturbation, ODD, amounts=Amounts()):
            if isinstance(outcome, Left):
                assert len(outcome.reason) > 5
            else:
                assert outcome.perturbed != outcome.original
                assert any(c.isalnum() for c in outcome.original)
        assert all(
            isinstance(outcome, Left) for outcome in pairs_of(perturbation, ODD[:1])
        )
