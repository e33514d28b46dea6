"""Contract of every optimizer."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from judgesmith.datasets.records import Labels
from judgesmith.errors import BudgetError, LeakError
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.front import compile as compile_judge
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.planning import plan as planned
from judgesmith.optimizers.search.base import DemonstrationSearch, SearchRecord, better
from judgesmith.programs import loading
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import row_context
from judgesmith.testing.fake import (
    Ask,
    FakeModel,
    Fault,
    judging,
    make_labels,
    own_environment,
    sensible,
)


def run(
    search: DemonstrationSearch, model: FakeModel, labels: Labels, **options: Any
) -> tuple[Judge, SearchRecord]:
    """Compile a judge with the search; return it with the record."""
    student = Judge(
        ActiveCritic("vanilla", explain="before", reading="said"), lm=model.lm
    )
    judge = search.compile(student, trainset=examples_of(labels), **options)
    assert search.record is not None
    return judge, search.record


def truth(labels: Labels) -> dict[str, float]:
    """Return the human scores by id."""
    return {row.id: row.scores["overall"] for row in labels.rows}


def guess(ask: Ask) -> int:
    """Return a score that depends on the row's mark alone."""
    return int(ask.mark[1:]) * 37 % 101


def copy_the_document(ask: Ask) -> float:
    """Return the label of a demonstration of the same document, if there is one; else something without meaning."""
    document = ask.last.split("Notice ")[1].split(":")[0]
    turns = [str(message["content"]) for message in ask.body["messages"][1:-1]]
    for shown, said in pairwise(turns):
        # A label stands alone; what a model said before has its explanation.
        if f"Notice {document}:" in shown and said.startswith("Score: "):
            return float(said.removeprefix("Score: "))
    return guess(ask)


class OptimizerContract:
    """Subclass it in a test module, name the `part`, and pytest runs all of this over it.

    No server is started: a model inside the process answers.

    part: the optimizer's class. settings: what it is made with, so that a run is short. shows: how many demonstrations
    its programs may have: 0, 1, or 2 for several. An option `max_demos`, where it has one, must allow 20.
    """

    part: ClassVar[type[DemonstrationSearch]]
    settings: ClassVar[dict[str, Any]] = {}
    shows: ClassVar[Literal[0, 1, 2]] = 2

    def new(self, **options: Any) -> DemonstrationSearch:
        """Return a new optimizer; options: `level`, `seed` and others, of which it takes those that it has."""
        taken = {"level", "seed", *self.part.Options.model_fields}
        return self.part(
            **{
                **self.settings,
                **{name: value for name, value in options.items() if name in taken},
            }
        )

    @pytest.fixture(autouse=True)
    def own_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Provide a cache of the test's own."""
        return own_environment(monkeypatch, tmp_path)

    @pytest.fixture
    def model(self) -> FakeModel:
        """Provide the fake model."""
        return FakeModel()

    @pytest.fixture
    def labels(self) -> Labels:
        """Provide 40 rows of 10 documents."""
        draw = random.Random(1)
        return make_labels(10, 4, lambda n: draw.randint(0, 100))

    def test_the_record_is_whole_holds_no_leak_and_is_the_same_again(
        self, model: FakeModel, labels: Labels, capsys: pytest.CaptureFixture[str]
    ) -> None:
        human = truth(labels)
        documents = {row.id: row.doc_id for row in labels.rows}
        model.answer = judging(
            lambda ask: (human[ask.mark] + len(ask.text) * 7 % 101) / 2
        )

        def once(seed: int) -> tuple[Any, ...]:
            search = self.new(seed=seed, max_demos=6)
            judge, record = run(search, model, labels)
            return (
                search,
                judge,
                record,
                [c.to_dict() for c in record.candidates],
                judge.predictors()[0].demos,
            )

        search, judge, record, *first = once(0)
        zero_shot, *others = record.candidates
        assert (zero_shot.name, zero_shot.demos) == ("zero-shot", 0)
        assert record.selected in record.candidates
        assert not better(zero_shot, record.selected)
        assert len(others) < search.evaluations()
        assert len({c.name for c in record.candidates}) == len(others) + 1
        for candidate in record.candidates:
            assert (candidate.rows == 40) == (candidate.dropped is None)
        assert judge.candidate_programs == first[0]
        assert record.zero_shot.percents.shape == record.scored.percents.shape == (40,)
        assert len(model.judged) <= 40 * search.evaluations()
        assert search.settings()["name"] == search.name

        shown = [ask for ask in model.judged if ask.shown]
        assert shown or self.shows == 0
        for ask in shown:
            assert documents[ask.mark] not in {documents[mark] for mark in ask.shown}, (
                ask.text
            )

        assert list(once(0)[3:]) == first
        assert list(once(1)[3:]) != first or not others
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("leaky", [False, True])
    def test_copying_labels_pays_only_where_a_search_leaks(
        self, leaky: bool, model: FakeModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        draw = random.Random(2)
        level = [draw.uniform(10, 90) for _ in range(20)]
        labels = make_labels(20, 3, lambda n: level[n // 3] + draw.uniform(-10, 10))
        model.answer = judging(copy_the_document)
        if leaky:  # the control: every demonstration in every prompt
            monkeypatch.setattr(
                row_context, "allowed", lambda demos, item: list(range(len(demos)))
            )
            monkeypatch.setattr(row_context, "check", lambda messages: None)
        _, record = run(self.new(max_demos=20), model, labels)
        best = max(c.agreement.q for c in record.candidates if not c.dropped)
        # One demonstration is too few to copy from.
        assert best > 0.8 if leaky and self.shows > 1 else best < 0.4

    def test_a_validation_set_is_disjoint_measured_and_never_shown(
        self, model: FakeModel, labels: Labels
    ) -> None:
        train = labels.subset(range(20))
        val = labels.subset(range(20, 40))
        with pytest.raises(LeakError, match="group 'd004'"):
            run(
                self.new(),
                model,
                train,
                valset=examples_of(labels.subset(range(19, 40))),
            )
        assert model.asks == []
        judge, record = run(self.new(), model, train, valset=examples_of(val))
        assert record.scored.percents.shape == (20,)
        measured = {row.id for row in val.rows}
        assert not any(measured & set(ask.shown) for ask in model.judged)
        assert all(
            demo["group"] in set(train.groups)
            for p in judge.predictors()
            for demo in p.demos
        )

    def test_demonstrations_are_chosen_where_they_help_and_not_where_they_harm(
        self, model: FakeModel, labels: Labels
    ) -> None:
        human = truth(labels)
        model.answer = judging(lambda ask: guess(ask) if ask.shown else human[ask.mark])
        judge, record = run(self.new(), model, labels)
        assert record.selected.name == "zero-shot"
        assert all(p.demos == [] for p in judge.predictors())

        model.answer = judging(lambda ask: human[ask.mark] if ask.shown else guess(ask))
        judge, record = run(self.new(), model, labels)
        if self.shows:
            assert record.selected.demos == len(judge.predictors()[0].demos) > 0
            # A single demonstration is in no prompt of its own document.
            assert record.selected.agreement.q > (
                2.5 if record.selected.demos == 1 else 3 - 1e-6
            )

    def test_failures_are_imputed_counted_and_disqualify(
        self, model: FakeModel, labels: Labels
    ) -> None:
        human = truth(labels)
        rough = {
            mark: min(100.0, max(0.0, score + random.Random(mark).gauss(0, 15)))
            for mark, score in human.items()
        }

        def answer(ask: Ask) -> Any:
            if ask.step == "score" and ask.shown and int(ask.mark[1:]) % 4 == 0:
                return Fault(400, "no")
            return judging(
                lambda ask: human[ask.mark] if ask.shown else rough[ask.mark]
            )(ask)

        model.answer = answer
        _, record = run(self.new(), model, labels)
        assert record.selected.name == "zero-shot"
        for c in record.candidates:
            assert c.agreement.objective.n == c.rows  # imputed, not left out
            if c.demos:
                assert c.agreement.objective.failed > 0
                assert (
                    c.disqualified
                    == f"{c.agreement.objective.failed} of {c.rows} rows failed"
                )
        model.answer = lambda ask: (
            "I would rather not." if ask.step == "score" else sensible(ask)
        )
        _, record = run(self.new(), model, labels)
        assert (record.selected.name, record.selected.disqualified) == (
            "zero-shot",
            "40 of 40 rows failed",
        )
        assert {c.agreement.q for c in record.candidates} == {0.0}

    @pytest.mark.parametrize("extra", [0, 95])
    def test_a_budget_is_kept_and_the_best_so_far_reported(
        self, extra: int, model: FakeModel, labels: Labels
    ) -> None:
        model.lm.meter.max_calls = 20
        with pytest.raises(BudgetError):
            run(self.new(), model, labels)
        model = FakeModel()
        model.lm.meter.max_calls = (
            3 + 40 + extra
        )  # the probe, zero-shot, and something of the rest
        search = self.new()
        judge, record = run(search, model, labels)
        assert len(model.asks) <= model.lm.meter.max_calls
        assert record.candidates[0].name == "zero-shot"
        assert record.selected.dropped is None
        assert record.scored.failed == 0
        assert len(record.scored.percents) == 40
        if not extra and search.evaluations() > 1:
            assert (
                record.stopped
                == f"the budget ran out; 1 of {search.evaluations()} candidates were tried"
            )
            assert judge.predictors()[0].demos == []

    def test_it_compiles_within_its_plan(
        self, model: FakeModel, labels: Labels, tmp_path: Path
    ) -> None:
        optimizer = self.new()
        judge = Judge(ActiveCritic("coarse", explain="before"))
        plan = planned(Compiler(optimizer), judge, labels, "openai/fake")
        compiled = compile_judge(
            judge, labels, lm=model.lm, optimizer=optimizer, progress=False
        )
        assert compiled.provenance["cost"]["calls"] <= plan.calls
        assert compiled.provenance["optimizer"]["name"] == optimizer.name
        assert len(compiled.provenance["candidates"]) <= optimizer.evaluations()
        compiled.save(tmp_path / "judge.json")
        loaded = loading.load(tmp_path / "judge.json", lm=model.lm)
        text = labels.rows[0].source, labels.rows[0].output
        assert loaded.score(*text).to_dict() == compiled.score(*text).to_dict()
        assert compiled.score(*text).failure is None
