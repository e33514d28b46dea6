"""How many demonstrations a search shows where nobody says: bounded by the rows and by what the model reads."""

from dataclasses import replace
from typing import Any

import pytest

import judgesmith as js
from judgesmith.optimizers.examples import examples_of, room_for
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.planning import plan as planned
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models.price import listed_context
from judgesmith.signatures.values import Item
from judgesmith.testing.fake import FakeModel, judging, make_labels

VANILLA = ActiveCritic("vanilla", explain="none", reading="said")


def shown(search: Any, rows: int) -> list[int]:
    """Return the demonstrations of each candidate of a search."""
    model = FakeModel()
    model.answer = judging(lambda ask: (int(ask.mark[1:]) * 53 + len(ask.text)) % 101)
    labels = make_labels(rows, 1, lambda n: n * 53 % 101)
    search.compile(js.Judge(VANILLA, lm=model.lm), trainset=examples_of(labels))
    return [candidate.demos for candidate in search.record.candidates]


@pytest.mark.parametrize(
    ("rows", "sizes"), [(40, {4, 8, 16}), (24, {4, 8, 12}), (12, {4, 6}), (6, {3})]
)
def test_random_search_tries_sizes_up_to_half_of_the_rows(
    rows: int, sizes: set[int]
) -> None:
    assert set(shown(js.CorrelationRandomSearch(candidates=4), rows)) == {0, *sizes}


@pytest.mark.parametrize(("rows", "size"), [(40, 16), (24, 12), (7, 3)])
def test_labelled_few_shot_shows_half_of_few_rows(rows: int, size: int) -> None:
    assert shown(js.LabeledFewShot(), rows) == [0, size]
    assert shown(js.LabeledFewShot(k=5), rows) == [0, 5]


def test_optuna_draws_up_to_half_of_the_rows() -> None:
    assert max(shown(js.OptunaSearch(trials=12, startup=12), 12)) <= 6


@pytest.mark.parametrize(
    ("model", "context"),
    [
        ("local/qwen2.5-0.5b", 4096),
        ("openai/gpt-4o-mini", 128_000),
        ("openai/a-model-of-ours", None),
    ],
)
def test_the_context_of_a_model_is_what_is_known_of_it(
    model: str, context: int | None
) -> None:
    assert listed_context(model) == context


def test_long_rows_leave_less_room() -> None:
    def room(letters: int, model: str = "local/qwen2.5-0.5b") -> int | None:
        return room_for(model, [Item("x" * letters, "")])

    assert room(100) == 23
    assert room(2000) == 3
    assert room(50_000) == 1
    assert room(50_000, "openai/gpt-4o-mini") == 5
    assert room(50_000, "openai/a-model-of-ours") is None


def test_a_plan_bounds_the_sizes_by_the_context() -> None:
    labels = make_labels(40, 1, lambda n: n * 53 % 101)
    rows = tuple(replace(row, output=row.output + "x" * 800) for row in labels.rows)
    long = replace(labels, rows=rows)
    plans = {
        name: planned(Compiler(), js.Judge(VANILLA), long, name).notes
        for name in ("openai/gpt-4o-mini", "local/qwen2.5-0.5b")
    }
    assert any(
        "4, 8 and 16 demonstrations" in note for note in plans["openai/gpt-4o-mini"]
    )
    assert not any("16 demonstrations" in note for note in plans["local/qwen2.5-0.5b"])
