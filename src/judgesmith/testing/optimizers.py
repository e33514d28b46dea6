"""What holds for every optimizer, whatever it tries."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from ..datasets.records import Labels
from ..errors import BudgetError, LeakError
from ..optimizers.compiling import Compiler
from ..optimizers.examples import examples_of
from ..optimizers.front import compile as compile_judge
from ..optimizers.search.base import DemonstrationSearch, SearchRecord, better
from ..programs import artifact
from ..programs.active_critic.critic import ActiveCritic
from ..programs.judge import Judge
from ..programs.models import row_context
from ..programs.models.lm import Connection, LanguageModel, language_model
from .server import Ask, Fault, Server, judging, make_labels, own_environment, running_server, sensible

__all__ = ["OptimizerContract"]

Make = Callable[..., DemonstrationSearch]


def run(search: DemonstrationSearch, lm: LanguageModel, labels: Labels, **given: Any) -> tuple[Judge, SearchRecord]:
    student = ActiveCritic("vanilla", explain="before", reading="said", lm=lm)
    judge = search.compile(student, trainset=examples_of(labels), **given)
    assert search.record is not None
    return judge, search.record


def truth(labels: Labels) -> dict[str, float]:
    return {row.id: row.scores["overall"] for row in labels.rows}


def guess(ask: Ask) -> int:
    return int(ask.mark[1:]) * 37 % 101


def copy_the_document(ask: Ask) -> float:
    """The label of a demonstration of the same document, if there is one; else something without meaning."""
    document = ask.last.split("Notice ")[1].split(":")[0]
    for part in ask.system.split("<example>")[1:]:
        if f"Notice {document}:" in part:
            return float(part.split("Score: ")[1].split("\n")[0])
    return guess(ask)


class OptimizerContract:
    """Subclass it in a test module, name the `part`, and pytest runs all of this over it.

    part: the optimizer's class. settings: what it is made with, so that a run is short. shows: how many demonstrations
    its programs may have: 0, 1, or 2 for several. An option `max_demos`, where it has one, must allow 20.
    """

    part: ClassVar[type[DemonstrationSearch]]
    settings: ClassVar[dict[str, Any]] = {}
    shows: Literal[0, 1, 2] = 2

    def new(self, **given: Any) -> DemonstrationSearch:
        """A new optimizer. given: `level`, `seed`, and options, of which it takes those that it has."""
        taken = {"level", "seed", *self.part.Options.model_fields}
        return self.part(**{**self.settings, **{name: value for name, value in given.items() if name in taken}})

    @pytest.fixture
    def make(self) -> Make:
        return self.new

    @pytest.fixture
    def server(self) -> Iterator[Server]:
        with running_server() as made:
            yield made

    @pytest.fixture(autouse=True)
    def own_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        return own_environment(monkeypatch, tmp_path)

    @pytest.fixture
    def model(self, server: Server) -> LanguageModel:
        return language_model("openai/fake", connection=Connection(api_base=server.base, attempts=2))

    @pytest.fixture
    def labels(self) -> Labels:
        """40 rows of 10 documents."""
        draw = random.Random(1)
        return make_labels(10, 4, lambda n: draw.randint(0, 100))

    # -- no leak

    def test_no_row_is_judged_with_its_own_document_in_the_prompt(
        self, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        search = make(max_demos=6)
        run(search, model, labels)
        documents = {row.id: row.doc_id for row in labels.rows}
        shown = [ask for ask in server.judged if ask.shown]
        assert shown or self.shows == 0
        for ask in shown:
            assert documents[ask.mark] not in {documents[mark] for mark in ask.shown}, ask.text

    @pytest.mark.parametrize("leaky", [False, True])
    def test_copying_labels_pays_only_where_a_search_leaks(
        self,
        leaky: bool,
        make: Make,
        server: Server,
        model: LanguageModel,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        draw = random.Random(2)
        level = [draw.uniform(10, 90) for _ in range(20)]
        labels = make_labels(20, 3, lambda n: level[n // 3] + draw.uniform(-10, 10))
        server.answer = judging(copy_the_document)
        if leaky:  # the control: every demonstration in every prompt
            monkeypatch.setattr(row_context, "allowed", lambda demos, item: list(range(len(demos))))
            monkeypatch.setattr(row_context, "check", lambda messages: None)
        search = make(max_demos=20)
        _, record = run(search, model, labels)
        best = max(c.agreement.q for c in record.candidates if not c.dropped)
        # One demonstration is too few to copy from.
        assert best > 0.8 if leaky and self.shows > 1 else best < 0.4

    def test_a_validation_set_that_shares_a_document_is_refused(
        self, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        with pytest.raises(LeakError, match="group 'd004'"):
            run(make(), model, labels.subset(range(20)), valset=examples_of(labels.subset(range(19, 40))))
        assert server.asks == []

    def test_a_disjoint_validation_set_is_measured_and_never_shown(
        self, make: Make, server: Server, model: LanguageModel, labels: Labels
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
        self, make: Make, sure: float, seed: int, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        human, noise = truth(labels), random.Random(seed)
        weights: dict[int, float] = {}

        def number(ask: Ask) -> float:
            help_ = weights.setdefault(len(ask.shown), noise.random())
            return help_ * human[ask.mark] + (1 - help_) * guess(ask)

        server.answer = judging(number)
        search = make(seed=seed, sure=sure)
        _, record = run(search, model, labels)
        zero_shot = record.candidates[0]
        assert (zero_shot.name, zero_shot.demos) == ("zero-shot", 0)
        assert record.selected.agreement.q >= zero_shot.agreement.q
        assert not better(zero_shot, record.selected)

    def test_where_demonstrations_do_harm_zero_shot_stays(
        self, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        human = truth(labels)
        server.answer = judging(lambda ask: guess(ask) if ask.shown else human[ask.mark])
        judge, record = run(make(), model, labels)
        assert record.selected.name == "zero-shot"
        assert all(p.demos == [] for p in judge.predictors())

    def test_where_demonstrations_clearly_help_they_are_chosen(
        self, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        human = truth(labels)
        server.answer = judging(lambda ask: human[ask.mark] if ask.shown else guess(ask))
        search = make()
        judge, record = run(search, model, labels)
        if self.shows:
            demos = judge.predictors()[0].demos
            assert record.selected.demos == getattr(demos, "shown", len(demos)) > 0
            # A single demonstration is in no prompt of its own document.
            assert record.selected.agreement.q > (2.5 if self.shows == 1 else 3 - 1e-6)

    # -- failures and undefined scores

    def test_failures_are_imputed_counted_and_disqualify(
        self, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        human = truth(labels)
        rough = {mark: min(100.0, max(0.0, score + random.Random(mark).gauss(0, 15))) for mark, score in human.items()}

        def answer(ask: Ask) -> Any:
            if ask.shown and int(ask.mark[1:]) % 4 == 0:
                return Fault(400, "no")
            return judging(lambda ask: human[ask.mark] if ask.shown else rough[ask.mark])(ask)

        server.answer = lambda ask: answer(ask) if ask.step == "score" else sensible(ask)
        _, record = run(make(), model, labels)
        assert record.selected.name == "zero-shot"
        for c in record.candidates:
            assert c.agreement.objective.n == c.rows  # imputed, not left out
            if c.demos:
                assert c.agreement.objective.failed > 0
                assert c.disqualified == f"{c.agreement.objective.failed} of {c.rows} rows failed"

    @pytest.mark.parametrize("said", ["I would rather not.", "Explanation: So.\nScore: 50"])
    def test_a_judge_that_says_nothing_ends_with_a_reason_and_no_nan(
        self, said: str, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        server.answer = lambda ask: said if ask.step == "score" else sensible(ask)
        _, record = run(make(), model, labels)
        assert record.selected.name == "zero-shot"
        assert record.selected.disqualified in ("40 of 40 rows failed", "the predictions are constant")
        assert {c.agreement.q for c in record.candidates} == {0.0}

    # -- budget, repetition, the record

    @pytest.mark.parametrize("extra", [0, 10, 47, 95, 130])
    def test_a_budget_is_kept_and_the_best_so_far_reported(
        self, extra: int, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        model.meter.max_calls = 3 + 40 + extra  # the probe, zero-shot, and something of the rest
        search = make()
        judge, record = run(search, model, labels)
        assert len(server.asks) <= model.meter.max_calls
        assert record.candidates[0].name == "zero-shot"
        assert record.scored.failed == 0
        assert len(record.scored.percents) == 40  # never one that was judged in part
        assert record.selected.dropped is None
        if extra < 40 and search.evaluations() > 1:
            assert record.stopped == f"the budget ran out; 1 of {search.evaluations()} candidates were tried"
            assert judge.predictors()[0].demos == []

    def test_a_budget_too_small_for_zero_shot_is_an_error(
        self, make: Make, model: LanguageModel, labels: Labels
    ) -> None:
        model.meter.max_calls = 20
        with pytest.raises(BudgetError):
            run(make(), model, labels)

    def test_the_same_seed_gives_the_same_record(self, make: Make, server: Server, labels: Labels, capsys: Any) -> None:
        def once(seed: int) -> tuple[Any, ...]:
            lm = language_model("openai/fake", connection=Connection(api_base=server.base, cache=False))
            judge, record = run(make(seed=seed), lm, labels)
            return [c.to_dict() for c in record.candidates], record.selected.to_dict(), judge.predictors()[0].demos

        server.answer = lambda ask: (
            f"Explanation: So.\nScore: {len(ask.text) * 7 % 101}" if ask.step == "score" else "4"
        )
        first = once(0)
        assert once(0) == first
        if len(first[0]) > 1:
            assert once(1) != first
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("level", ["pooled", "sample", "system"])
    def test_the_record_is_complete(
        self, level: Any, make: Make, server: Server, model: LanguageModel, labels: Labels
    ) -> None:
        human = truth(labels)
        server.answer = judging(lambda ask: (human[ask.mark] + guess(ask) * (1 + len(ask.shown) % 3)) / 4)
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

    # -- in the whole run

    def test_it_compiles_within_its_plan(self, make: Make, server: Server, labels: Labels, tmp_path: Path) -> None:
        optimizer = make()
        judge = ActiveCritic("coarse", explain="before")
        plan = Compiler(search=optimizer).plan(judge, labels, "openai/fake")
        assert server.asks == []
        connection = Connection(api_base=server.base)
        made = compile_judge(judge, labels, lm="openai/fake", optimizer=optimizer, connection=connection)
        assert made.provenance["cost"]["calls"] <= plan.calls
        assert made.provenance["optimizer"]["name"] == optimizer.name
        assert len(made.provenance["candidates"]) <= optimizer.evaluations()
        made.save(tmp_path / "judge.json")
        loaded = artifact.load(tmp_path / "judge.json", connection=connection)
        text = labels.rows[0].source, labels.rows[0].output
        assert loaded.score(*text).to_dict() == made.score(*text).to_dict()
        assert made.score(*text).failure is None
