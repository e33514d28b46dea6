"""What holds for every optimizer, whatever it tries."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import judgesmith as js
from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.dspy.searches import GEPASearch, MIPROSearch, SIMBASearch
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.optimizers.search.base import DemonstrationSearch
from judgesmith.optimizers.search.few_shot import KnnFewShot, LabeledFewShot
from judgesmith.optimizers.search.optuna import OptunaSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models.lm import Connection
from judgesmith.testing import OptimizerContract

Make = Callable[..., DemonstrationSearch]
#: Small ones, for speed.
SMALL: dict[str, dict[str, Any]] = {"optuna": {"trials": 6, "startup": 3}}


def maker(name: str, **own: Any) -> Make:
    """A function that makes an optimizer; of what it is given, it takes the options that this one has."""
    part = optimizers.get(name)
    few = {"candidates": 3} if "candidates" in part.Options.model_fields else {}
    taken = {"level", "seed", "progress", *part.Options.model_fields}
    return lambda **given: part(
        **few | SMALL.get(name, {}) | own | {key: value for key, value in given.items() if key in taken}
    )


# ZEPO has no demonstrations and takes judges that compare; what of this holds for it is in test_zepo.py.
NAMES = sorted(set(optimizers.names()) - {"zepo"})
SEARCHES: dict[str, Make] = {
    **{name: maker(name) for name in NAMES},
    **{
        f"{name}, racing": maker(name, racing=True)
        for name in NAMES
        if "racing" in optimizers.get(name).Options.model_fields
    },
    "labeled-few-shot, any rows": maker("labeled-few-shot", stratified=False),
}
#: How many demonstrations the programs of some may have: none, or one (SIMBA adds one at a step).
SHOWS: dict[str, Literal[0, 1]] = {"none": 0, "gepa": 0, "simba": 1}


class TestEveryOptimizer(OptimizerContract):
    @pytest.fixture(params=SEARCHES)
    def make(self, request: pytest.FixtureRequest) -> Make:
        """make(**settings): a new optimizer of one kind."""
        made: Make = SEARCHES[request.param]
        self.shows = SHOWS.get(request.param, 2)
        return made


@pytest.fixture
def labels(labels_of: Any) -> Labels:
    """40 rows of 10 documents."""
    draw = random.Random(1)
    return labels_of(10, 4, lambda n: draw.randint(0, 100))  # type: ignore[no-any-return]


def truth(labels: Labels) -> dict[str, float]:
    return {row.id: row.scores["overall"] for row in labels.rows}


def test_senseless_settings_are_refused() -> None:
    for wrong in (
        lambda: LabeledFewShot(0),
        lambda: KnnFewShot(max_demos=0),
        lambda: KnnFewShot(max_demos=65),
        lambda: OptunaSearch(trials=-1),
        lambda: OptunaSearch(startup=0),
        lambda: OptunaSearch(max_demos=0),
        lambda: OptunaSearch(sure=1.0),
        lambda: MIPROSearch(candidates=-1),
        lambda: GEPASearch(candidates=-1),
        lambda: SIMBASearch(max_demos=0),
        lambda: OptunaSearch(anchor="both"),  # type: ignore[arg-type]
    ):
        with pytest.raises(OptionError):
            wrong()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("knn", "none")])
def test_the_best_candidates_of_every_search_can_judge_together(
    name: str, server: Any, fake: Any, labels: Labels, tmp_path: Path
) -> None:
    human = truth(labels)

    def noisy(ask: Any) -> float:  # the errors of different prompts are independent
        others = ask.text.replace(ask.last, "")
        return min(100, max(0, 20 + 0.6 * human[ask.mark] + random.Random(ask.mark + others).gauss(0, 25)))

    server.answer = fake.judging(noisy)
    connection, judge = Connection(api_base=server.base), ActiveCritic("vanilla", explain="before", reading="said")
    search: Any = build_optimizer(name)
    plan = Compiler(search=search, ensemble_top=3).plan(judge, labels, "openai/fake")
    made = js.compile(judge, labels, lm="openai/fake", optimizer=search, connection=connection, ensemble_top=3)
    assert made.provenance["cost"]["calls"] <= plan.calls
    told = made.provenance["committee"]
    assert isinstance(made, js.Ensemble) == (told["reason"] is None)
    assert set(told["members"]) <= {c["candidate"] for c in made.provenance["candidates"]}
    made.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", connection=connection)
    some = [{"source": row.source, "output": row.output} for row in labels.rows[:3]]
    assert [v.to_dict() for v in loaded.score_many(some)] == [v.to_dict() for v in made.score_many(some)]


def test_an_optimizer_may_be_named_and_a_wrong_name_is_refused(server: Any, labels: Labels) -> None:
    given: dict[str, Any] = {"lm": "openai/fake", "connection": Connection(api_base=server.base)}
    made = js.compile(ActiveCritic("vanilla", explain="before"), labels, optimizer="labeled-few-shot", **given)
    assert made.provenance["optimizer"]["name"] == "labeled-few-shot"
    assert [c["candidate"] for c in made.provenance["candidates"]] == ["zero-shot", "labeled few-shot"]
    server.forget()
    with pytest.raises(OptionError, match=r"optimizer 'best' is unknown.*; known: .*random-search"):
        js.compile(ActiveCritic("vanilla"), labels, optimizer="best", **given)
    assert server.asks == []
