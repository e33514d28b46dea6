"""The contract suite over every optimizer, and what they have in common beyond it."""

from typing import Any

import pytest

import judgesmith as js
from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models.lm import Connection
from judgesmith.testing import OptimizerContract

NAMES = sorted(optimizers.names())
#: Settings that make a run short; those that race, too.
SMALL: dict[str, dict[str, Any]] = {
    name: {"candidates": 3}
    if "candidates" in optimizers.get(name).Options.model_fields
    else {}
    for name in NAMES
} | {"optuna": {"candidates": 3, "trials": 6, "startup": 3}}
SEARCHES = {name: (name, SMALL[name]) for name in NAMES} | {
    f"{name}, racing": (name, SMALL[name] | {"racing": True})
    for name in ("random-search", "optuna")
}
#: DSPy's own by their names.
SEARCHES |= {
    "dspy:LabeledFewShot": ("dspy:LabeledFewShot", {"candidates": 3, "k": 20}),
    "dspy:BootstrapFewShot": ("dspy:BootstrapFewShot", {"candidates": 3}),
    "dspy:BootstrapFewShotWithRandomSearch": (
        "dspy:BootstrapFewShotWithRandomSearch",
        {"candidates": 3},
    ),
    "dspy:MIPROv2": (
        "dspy:MIPROv2",
        {"candidates": 3, "max_labeled_demos": 1, "max_bootstrapped_demos": 1},
    ),
    "dspy:SIMBA": (
        "dspy:SIMBA",
        {"candidates": 12, "bsize": 4, "num_candidates": 2, "max_steps": 2},
    ),
}
#: How many demonstrations the programs of some may have.
SHOWS = {"zero-shot": 0, "gepa": 0, "dspy:MIPROv2": 1, "dspy:SIMBA": 1}


@pytest.mark.parametrize("search", SEARCHES, scope="class")
class TestEveryOptimizer(OptimizerContract):
    @pytest.fixture(autouse=True)
    def chosen(self, search: str) -> None:
        name, settings = SEARCHES[search]
        self.part, self.settings, self.shows = (
            optimizers.get(name),
            settings,
            SHOWS.get(name, 2),
        )  # type: ignore


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("labeled-few-shot", {"max_demos": 0}),
        ("optuna", {"trials": -1}),
        ("optuna", {"startup": 0}),
        ("optuna", {"sure": 1.0}),
        ("optuna", {"anchor": "both"}),
        ("random-search", {"accept": 0.0}),
        ("random-search", {"accept": 1.1}),
        ("random-search", {"max_failed": 1.0}),
        ("gepa", {"candidates": -1}),
    ],
)
def test_senseless_settings_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        build_optimizer(name, options)


def test_an_optimizer_may_be_named_over_http_and_a_wrong_name_is_refused(
    server: Any, labels: Labels
) -> None:
    given: dict[str, Any] = {
        "lm": "openai/fake",
        "connection": Connection(api_base=server.base),
    }
    made = js.compile(
        ActiveCritic("vanilla", explain="before"),
        labels,
        optimizer="labeled-few-shot",
        **given,
    )
    assert made.provenance["optimizer"]["name"] == "labeled-few-shot"
    assert [c["candidate"] for c in made.provenance["candidates"]] == [
        "zero-shot",
        "labeled few-shot",
    ]
    server.forget()
    with pytest.raises(
        OptionError, match=r"optimizer 'best' is unknown.*; known: .*random-search"
    ):
        js.compile(ActiveCritic("vanilla"), labels, optimizer="best", **given)
    assert server.asks == []
