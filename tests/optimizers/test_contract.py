"""What holds for every optimizer, whatever it tries."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

import judgesmith as js
from judgesmith.datasets.records import Labels
from judgesmith.errors import BudgetError, LeakError, OptionError
from judgesmith.optimizers.by_name import OptimizerName, optimizer_by_name
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.dspy.searches import GEPASearch, MIPROSearch, SIMBASearch
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.search.base import DemonstrationSearch, SearchRecord, better
from judgesmith.optimizers.search.few_shot import KnnFewShot, LabeledFewShot, NoSearch
from judgesmith.optimizers.search.optuna import OptunaSearch
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.prompting.predict import JudgePredict

Make = Callable[..., DemonstrationSearch]
# ZEPO has no demonstrations and takes judges that compare; what of this holds for it is in test_zepo.py.
SEARCHES: dict[str, Make] = {
    "random-search": lambda **given: CorrelationRandomSearch(**{"candidates": 3, **given}),
    "random-search, racing": lambda **given: CorrelationRandomSearch(**{"candidates": 3, "racing": True, **given}),
    "optuna": lambda **given: OptunaSearch(**{"trials": 6, "startup": 3, **given}),
    "optuna, racing": lambda **given: OptunaSearch(**{"trials": 6, "startup": 3, "racing": True, **given}),
    "labeled-few-shot": lambda **given: LabeledFewShot(**_few(given)),
    "labeled-few-shot, any rows": lambda **given: LabeledFewShot(stratified=False, **_few(given)),
    "knn": lambda **given: KnnFewShot(**given),
    "knn, racing": lambda **given: KnnFewShot(**{"racing": True, **given}),
    "mipro": lambda **given: MIPROSearch(**{"candidates": 3, **given}),
    "gepa": lambda **given: GEPASearch(**{"candidates": 3, **given}),
    "simba": lambda **given: SIMBASearch(**{"candidates": 3, **given}),
    "none": lambda **given: NoSearch(**given),
}
#: Those whose programs never have demonstrations.
BARE = ("none", "gepa")


def _few(given: dict[str, Any]) -> dict[str, Any]:
    return {("demos" if name == "max_demos" else name): value for name, value in given.items()}


@pytest.fixture(params=SEARCHES)
def make(request: pytest.FixtureRequest) -> Make:
    """make(**settings): a new optimizer of one kind."""
    made: Make = SEARCHES[request.param]
    return made


@pytest.fixture
def model(server: Any) -> LanguageModel:
    return language_model("openai/fake", connection=Connection(api_base=server.base, attempts=2))


@pytest.fixture
def labels(labels_of: Any) -> Labels:
    """40 rows of 10 documents."""
    draw = random.Random(1)
    return labels_of(10, 4, lambda n: draw.randint(0, 100))  # type: ignore[no-any-return]


def run(search: DemonstrationSearch, lm: LanguageModel, labels: Labels, **given: Any) -> tuple[Judge, SearchRecord]:
    student = ActiveCritic("vanilla", explain="before", reading="said", lm=lm)
    judge = search.compile(student, trainset=examples_of(labels), **given)
    assert search.record is not None
    return judge, search.record


def truth(labels: Labels) -> dict[str, float]:
    return {row.id: row.scores["overall"] for row in labels.rows}


def guess(ask: Any) -> int:
    return int(ask.mark[1:]) * 37 % 101


# -- no leak


def test_no_row_is_judged_with_its_own_document_in_the_prompt(
    make: Make, server: Any, model: LanguageModel, labels: Labels
) -> None:
    search = make(max_demos=6)
    run(search, model, labels)
    documents = {row.id: row.doc_id for row in labels.rows}
    shown = [ask for ask in server.judged if ask.shown]
    assert shown or search.name in BARE
    for ask in shown:
        assert documents[ask.mark] not in {documents[mark] for mark in ask.shown}, ask.text


def copy_the_document(ask: Any) -> float:
    """The label of a demonstration of the same document, if there is one; else something without meaning."""
    document = ask.last.split("Notice ")[1].split(":")[0]
    for part in ask.system.split("<example>")[1:]:
        if f"Notice {document}:" in part:
            return float(part.split("Score: ")[1].split("\n")[0])
    return guess(ask)


@pytest.mark.parametrize("leaky", [False, True])
def test_copying_labels_pays_only_where_a_search_leaks(
    leaky: bool,
    make: Make,
    server: Any,
    fake: Any,
    model: LanguageModel,
    labels_of: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(2)
    level = [draw.uniform(10, 90) for _ in range(20)]
    labels = labels_of(20, 3, lambda n: level[n // 3] + draw.uniform(-10, 10))
    server.answer = fake.judging(copy_the_document)
    if leaky:  # the control: every demonstration in every prompt
        monkeypatch.setattr(JudgePredict, "demos_for", lambda self, inputs, group: self.demos)
    search = make(max_demos=20)
    _, record = run(search, model, labels)
    best = max(c.agreement.q for c in record.candidates if not c.dropped)
    # SIMBA adds a demonstration at a step: it has too few to copy from.
    assert best > 0.8 if leaky and search.name not in (*BARE, "simba") else best < 0.4


def test_a_validation_set_that_shares_a_document_is_refused(
    make: Make, server: Any, model: LanguageModel, labels: Labels
) -> None:
    with pytest.raises(LeakError, match="group 'd004'"):
        run(make(), model, labels.subset(range(20)), valset=examples_of(labels.subset(range(19, 40))))
    assert server.asks == []


def test_a_disjoint_validation_set_is_measured_and_never_shown(
    make: Make, server: Any, model: LanguageModel, labels: Labels
) -> None:
    train, val = labels.subset(range(20)), labels.subset(range(20, 40))
    judge, record = run(make(), model, train, valset=examples_of(val))
    assert record.scored.percents.shape == (20,)
    measured = {row.id for row in val.rows}
    assert not any(measured & set(ask.shown) for ask in server.judged)
    assert all(demo["group"] in set(train.groups) for p in judge.predictors() for demo in p.demos)


# -- what is chosen


@pytest.mark.parametrize("sure", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_never_worse_than_zero_shot_on_the_rows_that_are_reported(
    make: Make, sure: float, seed: int, server: Any, fake: Any, model: LanguageModel, labels: Labels
) -> None:
    human, noise = truth(labels), random.Random(seed)
    weights: dict[int, float] = {}

    def number(ask: Any) -> float:
        help_ = weights.setdefault(len(ask.shown), noise.random())
        return help_ * human[ask.mark] + (1 - help_) * guess(ask)

    server.answer = fake.judging(number)
    search = make(seed=seed, sure=sure)
    _, record = run(search, model, labels)
    zero_shot = record.candidates[0]
    assert (zero_shot.name, zero_shot.demos) == ("zero-shot", 0)
    assert record.selected.agreement.q >= zero_shot.agreement.q
    assert not better(zero_shot, record.selected)


def test_where_demonstrations_do_harm_zero_shot_stays(
    make: Make, server: Any, fake: Any, model: LanguageModel, labels: Labels
) -> None:
    human = truth(labels)
    server.answer = fake.judging(lambda ask: guess(ask) if ask.shown else human[ask.mark])
    judge, record = run(make(), model, labels)
    assert record.selected.name == "zero-shot"
    assert all(p.demos == [] for p in judge.predictors())


def test_where_demonstrations_clearly_help_they_are_chosen(
    make: Make, server: Any, fake: Any, model: LanguageModel, labels: Labels
) -> None:
    human = truth(labels)
    server.answer = fake.judging(lambda ask: human[ask.mark] if ask.shown else guess(ask))
    search = make()
    judge, record = run(search, model, labels)
    if search.name not in BARE:
        demos = judge.predictors()[0].demos
        assert record.selected.demos == getattr(demos, "shown", len(demos)) > 0
        # SIMBA's one demonstration is in no prompt of its own document.
        assert record.selected.agreement.q > (2.5 if search.name == "simba" else 3 - 1e-6)


# -- failures and undefined scores


def test_failures_are_imputed_counted_and_disqualify(
    make: Make, server: Any, fake: Any, model: LanguageModel, labels: Labels
) -> None:
    human = truth(labels)
    rough = {mark: min(100.0, max(0.0, score + random.Random(mark).gauss(0, 15))) for mark, score in human.items()}

    def answer(ask: Any) -> Any:
        if ask.shown and int(ask.mark[1:]) % 4 == 0:
            return fake.Fault(400, "no")
        return fake.judging(lambda ask: human[ask.mark] if ask.shown else rough[ask.mark])(ask)

    server.answer = lambda ask: answer(ask) if ask.step == "score" else fake.sensible(ask)
    _, record = run(make(), model, labels)
    assert record.selected.name == "zero-shot"
    for c in record.candidates:
        assert c.agreement.objective.n == c.rows  # imputed, not left out
        if c.demos:
            assert c.agreement.objective.failed > 0
            assert c.disqualified == f"{c.agreement.objective.failed} of {c.rows} rows failed"


@pytest.mark.parametrize("said", ["I would rather not.", "Explanation: So.\nScore: 50"])
def test_a_judge_that_says_nothing_ends_with_a_reason_and_no_nan(
    said: str, make: Make, server: Any, fake: Any, model: LanguageModel, labels: Labels
) -> None:
    server.answer = lambda ask: said if ask.step == "score" else fake.sensible(ask)
    _, record = run(make(), model, labels)
    assert record.selected.name == "zero-shot"
    assert record.selected.disqualified in ("40 of 40 rows failed", "the predictions are constant")
    assert {c.agreement.q for c in record.candidates} == {0.0}


# -- budget, repetition, the record


@pytest.mark.parametrize("extra", [0, 10, 47, 95, 130])
def test_a_budget_is_kept_and_the_best_so_far_reported(
    extra: int, make: Make, server: Any, model: LanguageModel, labels: Labels
) -> None:
    model.meter.max_calls = 3 + 40 + extra  # the probe, zero-shot, and something of the rest
    search = make()
    judge, record = run(search, model, labels)
    assert len(server.asks) <= model.meter.max_calls
    assert record.candidates[0].name == "zero-shot"
    assert record.scored.failed == 0
    assert len(record.scored.percents) == 40  # never one that was judged in part
    assert record.selected.dropped is None
    if extra < 40 and search.name != "none":
        assert record.stopped == f"the budget ran out; 1 of {search.evaluations()} candidates were tried"
        assert judge.predictors()[0].demos == []


def test_a_budget_too_small_for_zero_shot_is_an_error(make: Make, model: LanguageModel, labels: Labels) -> None:
    model.meter.max_calls = 20
    with pytest.raises(BudgetError):
        run(make(), model, labels)


def test_the_same_seed_gives_the_same_record(make: Make, server: Any, labels: Labels, capsys: Any) -> None:
    def once(seed: int) -> tuple[Any, ...]:
        lm = language_model("openai/fake", connection=Connection(api_base=server.base, cache=False))
        judge, record = run(make(seed=seed), lm, labels)
        return [c.to_dict() for c in record.candidates], record.selected.to_dict(), judge.predictors()[0].demos

    server.answer = lambda ask: f"Explanation: So.\nScore: {len(ask.text) * 7 % 101}" if ask.step == "score" else "4"
    first = once(0)
    assert once(0) == first
    if len(first[0]) > 1:
        assert once(1) != first
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("level", ["pooled", "sample", "system"])
def test_the_record_is_complete(
    level: Any, make: Make, server: Any, fake: Any, model: LanguageModel, labels: Labels
) -> None:
    human = truth(labels)
    server.answer = fake.judging(lambda ask: (human[ask.mark] + guess(ask) * (1 + len(ask.shown) % 3)) / 4)
    search = make(level=level)
    judge, record = run(search, model, labels)
    assert 1 <= len(record.candidates) <= search.evaluations()
    assert record.selected in record.candidates
    assert len({c.name for c in record.candidates}) == len(record.candidates)
    for c in record.candidates:
        assert c.agreement.objective.level == level
        assert (c.rows == 40) == (c.dropped is None)
        told = c.to_dict()
        assert {"candidate", "kind", "demos", "q", "n", "failed", "disqualified", "rows", "dropped"} <= set(told)
    assert judge.candidate_programs == [c.to_dict() for c in record.candidates]
    assert record.zero_shot.percents.shape == record.scored.percents.shape == (40,)
    assert len(server.judged) <= 40 * search.evaluations()
    assert search.settings()["name"] == search.name


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


# -- in the whole run


@pytest.mark.parametrize("name", [n for n in (*get_args(OptimizerName), "raced optuna") if n != "zepo"])
def test_every_optimizer_compiles_within_its_plan(name: str, server: Any, labels: Labels, tmp_path: Path) -> None:
    optimizer: Any = OptunaSearch(trials=4, racing=True) if name == "raced optuna" else optimizer_by_name(name)
    judge = ActiveCritic("coarse", explain="before")
    plan = Compiler(search=optimizer).plan(judge, labels, "openai/fake")
    assert server.asks == []
    connection = Connection(api_base=server.base)
    made = js.compile(judge, labels, lm="openai/fake", optimizer=optimizer, connection=connection)
    assert made.provenance["cost"]["calls"] <= plan.calls
    assert made.provenance["optimizer"]["name"] == optimizer.name
    assert len(made.provenance["candidates"]) <= optimizer.evaluations()
    made.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", connection=connection)
    assert loaded.score("A notice.", "A summary.").to_dict() == made.score("A notice.", "A summary.").to_dict()


@pytest.mark.parametrize("name", [n for n in get_args(OptimizerName) if n not in ("zepo", "knn", "none")])
def test_the_best_candidates_of_every_search_can_judge_together(
    name: str, server: Any, fake: Any, labels: Labels, tmp_path: Path
) -> None:
    human = truth(labels)

    def noisy(ask: Any) -> float:  # the errors of different prompts are independent
        others = ask.text.replace(ask.last, "")
        return min(100, max(0, 20 + 0.6 * human[ask.mark] + random.Random(ask.mark + others).gauss(0, 25)))

    server.answer = fake.judging(noisy)
    connection, judge = Connection(api_base=server.base), ActiveCritic("vanilla", explain="before", reading="said")
    search: Any = optimizer_by_name(name)
    plan = Compiler(search=search, ensemble_top=3).plan(judge, labels, "openai/fake")
    made = js.compile(judge, labels, lm="openai/fake", optimizer=search, connection=connection, ensemble_top=3)
    assert made.provenance["cost"]["calls"] <= plan.calls
    told = made.provenance["committee"]
    assert isinstance(made, js.Committee) == (told["reason"] is None)
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
    with pytest.raises(OptionError, match=r"'best' is none of random-search, optuna, .*, labeled-few-shot, .*none"):
        js.compile(ActiveCritic("vanilla"), labels, optimizer="best", **given)
    assert server.asks == []
