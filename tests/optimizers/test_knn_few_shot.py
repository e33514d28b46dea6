"""`KnnFewShot`: what it tries, what it keeps, and that a model that copies its nearest demonstration gains nothing."""

import random
from pathlib import Path
from typing import Any

import pytest

import judgesmith as js
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.search import few_shot
from judgesmith.optimizers.search.few_shot import KnnFewShot
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.prompting.neighbours import Neighbours
from judgesmith.programs.prompting.predict import JudgePredict


def document_levels(labels_of: Any, documents: int, per_document: int, seed: int = 2) -> Any:
    """Labels whose documents have a level of their own: a row of the same document tells a row's label."""
    draw = random.Random(seed)
    level = [draw.uniform(10, 90) for _ in range(documents)]
    return labels_of(documents, per_document, lambda n: level[n // per_document] + draw.uniform(-8, 8))


def test_neighbours_that_help_are_chosen_saved_and_shown_again(
    server: Any, fake: Any, labels_of: Any, tmp_path: Path
) -> None:
    labels = document_levels(labels_of, 20, 3)
    truth = {row.id: row.scores["overall"] for row in labels.rows}
    server.answer = fake.judging(
        lambda ask: truth.get(ask.mark, 50) if ask.shown else int(ask.mark[1:]) * 37 % 101
    )  # a model that judges well as soon as it sees examples
    given: dict[str, Any] = {"lm": "openai/fake", "connection": Connection(api_base=server.base)}
    student = ActiveCritic("vanilla", explain="before", reading="said")
    made = js.compile(student, labels, optimizer=KnnFewShot(max_demos=3), **given)
    assert made.provenance["optimizer"] == {
        "name": "knn", "objective": "q", "level": "pooled", "max_demos": 3, "max_failed": 0.1, "sure": 0.7,
        "racing": False, "teacher": None,
    }  # fmt: skip
    assert made.report.selected["candidate"].startswith("2 nearest of ")  # equally good, and shorter than 3
    assert made.report.selected["demos"] == 2
    train = made.provenance["labels"]["train"]
    assert len(made.predictors()[0].demos) == train
    server.forget()
    made.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", connection=Connection(api_base=server.base, cache=False))
    made.set_lm(language_model("openai/fake", connection=Connection(api_base=server.base, cache=False)))
    for row in labels.rows[::9]:
        one, other = (judge.score(row.source, row.output).to_dict() for judge in (made, loaded))
        assert one == other
    prompts = [ask.text for ask in server.judged]
    assert prompts[::2] == prompts[1::2]
    assert len(set(prompts)) == len(prompts) / 2
    # Compiled again by another optimizer, nothing of the pool is left.
    again = js.compile(loaded, labels, optimizer="labeled-few-shot", **given)
    assert not isinstance(again.predictors()[0].demos, Neighbours)


def test_sizes_follow_max_demos() -> None:
    sizes = {most: KnnFewShot(max_demos=most)._sizes() for most in (1, 2, 3, 4, 8)}
    assert sizes == {1: [1], 2: [2], 3: [2, 3], 4: [2, 4], 8: [2, 4, 8]}
    assert KnnFewShot(max_demos=8).evaluations() == 4


def test_of_too_many_rows_the_seed_draws_a_pool(
    server: Any, model: LanguageModel, labels_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = document_levels(labels_of, 12, 3)
    monkeypatch.setattr(few_shot, "fits_pool", lambda texts: list(range(10)))
    drawn: dict[int, list[str]] = {}

    def remember(self: Any, inputs: Any) -> Any:
        drawn[seed] = [d["output"] for d in self.demos] or drawn.get(seed, [])
        return []

    monkeypatch.setattr(JudgePredict, "demos_for", remember)
    for seed in (0, 1):
        KnnFewShot(max_demos=2, seed=seed).compile(
            ActiveCritic("vanilla", explain="before", reading="said", lm=model), trainset=examples_of(labels)
        )
    order = [row.output for row in labels.rows]
    for outputs in drawn.values():
        assert len(outputs) == 10
        assert outputs == sorted(outputs, key=order.index)
    assert drawn[0] != drawn[1]
