"""Every registered optimizer: what it declares is what it takes, says and keeps."""

import random
from typing import Any

import pytest

import judgesmith as js
from judgesmith.errors import OptionError
from judgesmith.optimizers.options import CompileOptions
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.parts import describe
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.testing.fake import FakeModel, make_labels

PARTS = optimizers.parts()


def test_with_the_same_candidates_the_rows_are_scored_equally_often() -> None:
    names = ("random-search", "optuna", "gepa")
    for candidates in (0, 1, 5, 8):
        found = {
            build_optimizer(name, {"candidates": candidates}).evaluations()
            for name in names
        }
        assert found == {candidates + 3 if candidates else 1}
    assert len({build_optimizer(name).evaluations() for name in names}) == 1
    assert build_optimizer("optuna", {"trials": 1}).evaluations() == 2


def test_options_of_compiling_have_help_and_are_checked() -> None:
    assert all(told.help for told in describe(CompileOptions))
    labels = make_labels(4, 2, float)
    given: dict[str, Any] = {"judge": "direct", "labels": labels, "lm": "none"}
    with pytest.raises(OptionError, match=r"no option 'folds'"):
        js.compile(**given, folds=3)
    with pytest.raises(OptionError, match="heldout"):
        js.compile(**given, heldout=1.5)


@pytest.mark.parametrize("name", PARTS)
def test_compiling_leaves_the_optimizer_as_it_is(name: str) -> None:
    draw = random.Random(1)
    labels = make_labels(10, 4, lambda n: draw.randint(0, 100))
    model = FakeModel()
    few = {"candidates": 2} if "candidates" in PARTS[name].Options.model_fields else {}
    search = PARTS[name](seed=5, level="sample", **few)
    before = dict(vars(search))
    settings = search.settings()
    made = []
    for _ in range(2):
        student = ActiveCritic("vanilla", explain="before", reading="said")
        judge = js.compile(
            student, labels, lm=model.lm, optimizer=search, seed=3, progress=False
        )
        made.append(
            (
                judge.provenance["candidates"],
                judge.provenance["optimizer"],
                judge.method.saved_options(),
            )
        )
        assert vars(search) == before
        assert search.settings() == settings
    assert made[0] == made[1]
    assert made[0][1]["level"] == "pooled"  # the run's
