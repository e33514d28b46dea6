"""Random search runs DSPy's own class: its functions are called, and its scores are agreement of the whole set."""

from collections import Counter
from typing import Any

import dspy
import pytest

import judgesmith as js
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.options import CompileOptions, Compiler
from judgesmith.optimizers.planning import folds_choose_again
from judgesmith.optimizers.planning import plan as planned
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.testing.fake import FakeModel, judging


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls of DSPy's own functions."""
    counts: Counter[str] = Counter()
    for part, name in (
        (dspy.BootstrapFewShotWithRandomSearch, "compile"),
        (dspy.BootstrapFewShot, "_bootstrap"),
        (dspy.LabeledFewShot, "compile"),
        (dspy.Evaluate, "__call__"),
    ):
        monkeypatch.setattr(part, name, _counting(part, name, counts))
    return counts


def _counting(part: Any, name: str, counts: Counter[str]) -> Any:
    own = part.__dict__[name]

    def call(*args: Any, **named: Any) -> Any:
        counts[f"{part.__name__}.{name}"] += 1
        return own(*args, **named)

    return call


def test_compiling_runs_dspys_class(counted: Counter[str], labels_of: Any) -> None:
    labels = labels_of(10, 4, lambda n: n * 53 % 101)
    model = FakeModel()
    model.answer = judging(lambda ask: (int(ask.mark[1:]) * 53 + len(ask.text)) % 101)
    method = ActiveCritic("vanilla", explain="none", reading="said")
    for given in (
        {},
        {"optimizer": "random-search"},
        {"optimizer": CorrelationRandomSearch()},
    ):
        counted.clear()
        judge = js.compile(method, labels, lm=model.lm, heldout=0.25, **given)
        # zero-shot, labels only, bootstrapped and 8 random sets
        assert counted["BootstrapFewShotWithRandomSearch.compile"] >= 1
        assert counted["Evaluate.__call__"] == 11
        assert counted["BootstrapFewShot._bootstrap"] == 9
        assert counted["LabeledFewShot.compile"] == 1
        assert judge.provenance["optimizer"]["name"] == "random-search"


@pytest.mark.parametrize("given", [(), ("--optimizer", "random-search")])
def test_the_command_runs_dspys_class(
    given: tuple[str, ...],
    counted: Counter[str],
    server: Any,
    compile_: Any,
    rows_file: Any,
) -> None:
    server.answer = judging(
        lambda ask: (int(ask.mark[1:]) * 37 + 20 * len(ask.shown)) % 101
    )
    more = "--method", "direct", "--as", "general/fluency", "--heldout", 0.25
    told = compile_(rows_file(40), *given, *more, "--json").told
    assert counted["BootstrapFewShotWithRandomSearch.compile"] >= 1
    assert counted["BootstrapFewShot._bootstrap"] >= 1
    assert counted["Evaluate.__call__"] >= len(told["candidates"]) > 2


def test_dspys_evaluation_scores_by_agreement_of_the_whole_set(
    labels_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = labels_of(10, 4, lambda n: n * 53 % 101)
    model = FakeModel()
    model.answer = judging(
        lambda ask: (int(ask.mark[1:]) * 53 + 13 * len(ask.text)) % 101
    )
    scores: list[float] = []
    own = dspy.Evaluate.__call__

    def call(*args: Any, **named: Any) -> Any:
        result = own(*args, **named)
        scores.append(result.score)
        return result

    monkeypatch.setattr(dspy.Evaluate, "__call__", call)
    search = js.CorrelationRandomSearch(sure=0.0)
    method = ActiveCritic("vanilla", explain="before", reading="said")
    search.compile(js.Judge(method, lm=model.lm), trainset=examples_of(labels))
    record = search.record
    assert record is not None
    values = [candidate.agreement.value for candidate in record.candidates]
    assert scores == [round(100 * value, 2) for value in values]
    assert record.selected.agreement.value == max(values)


def test_sizes_are_tried_in_turn_up_to_half_of_the_rows(labels_of: Any) -> None:
    labels = labels_of(10, 4, lambda n: n * 53 % 101)
    model = FakeModel()
    model.answer = judging(lambda ask: (int(ask.mark[1:]) * 53 + len(ask.text)) % 101)
    method = ActiveCritic("vanilla", explain="none", reading="said")

    def sizes(**given: Any) -> list[int]:
        search = js.CorrelationRandomSearch(candidates=5, **given)
        search.compile(js.Judge(method, lm=model.lm), trainset=examples_of(labels))
        assert search.record is not None
        return [candidate.demos for candidate in search.record.candidates]

    assert sizes(sizes=[4, 8, 16], max_demos=16) == [0, 16, 16, 16, 16, 8, 8, 4]
    assert sizes(sizes=[4, 8, 16], max_demos=8) == [0, 8, 8, 8, 8, 8, 4, 4]
    assert sizes(sizes=[4, 32], max_demos=32) == [0, 20, 20, 20, 20, 20, 4, 4]
    assert sizes() == sizes(sizes=[4, 8, 16], max_demos=16)
    assert set(sizes(max_demos=6)) == {0, 4, 6}
    assert set(sizes(sizes=[], max_demos=4)) == {0, 4}
    with pytest.raises(OptionError, match="sizes"):
        js.CorrelationRandomSearch(sizes=[0])


def test_a_plan_says_the_sizes_and_what_they_cost(labels_of: Any) -> None:
    labels = labels_of(10, 4, lambda n: n * 53 % 101)
    method = ActiveCritic("vanilla", explain="none", reading="said")
    search = js.CorrelationRandomSearch(sizes=[4, 8], max_demos=16)
    plan = planned(Compiler(search), js.Judge(method), labels, "openai/fake")
    assert "sets of 4, 8 and 16 demonstrations are tried" in plan.notes
    (cost,) = (note for note in plan.notes if note.startswith("that takes about"))
    assert f"{plan.prompt_tokens:,} tokens" in cost


# -- folds that choose again ---------------------------------------------------------------------------------------


def measured(labels: Any, answer: Any, **options: Any) -> tuple[Any, int]:
    """Return a compiled judge, and the calls that it took beside the probe of its model."""
    model = FakeModel()
    model.answer = judging(answer)
    method = ActiveCritic("vanilla", explain="none", reading="said")
    judge = js.compile(method, labels, lm=model.lm, **options)
    return judge, len(model.judged)


def test_folds_choose_again_among_the_same_candidates_without_a_call(
    labels_of: Any,
) -> None:
    labels = labels_of(10, 4, lambda n: n * 53 % 101)

    def answer(ask: Any) -> int:
        return (int(ask.mark[1:]) * 53 + len(ask.text) * 7 % 40) % 101

    judge, calls = measured(labels, answer)
    assert calls == 11 * 40
    report = judge.report
    assert (report.folds, report.runs, report.heldout_rows) == (4, 5, 40)
    assert len(report.heldout_predictions) == 40
    assert any("the candidate that the other rows choose" in n for n in report.notes)
    plan = planned(Compiler(), js.Judge(ActiveCritic("vanilla")), labels, "local/x")
    assert plan.parts.again
    assert any("--cv 4 searches again" in note for note in plan.notes)
    searched, more = measured(labels, answer, cv=4)
    assert more > 4 * calls
    assert searched.report.runs == 1
    again, _ = measured(labels, answer)
    assert again.report.to_dict()["heldout"] == report.to_dict()["heldout"]


def test_a_fold_is_judged_by_what_the_other_rows_choose(labels_of: Any) -> None:
    """Half of the rows speak for demonstrations, half against: none is measured by its own choice."""
    labels = labels_of(20, 2, lambda n: n * 37 % 101)
    judge, _ = measured(
        labels,
        lambda ask: (int(ask.mark[1:]) * 71 + 31 * len(ask.text)) % 101,
        optimizer=js.CorrelationRandomSearch(sure=0.0),
    )
    trained = judge.report.selected["q"]
    assert judge.report.heldout.q < trained - 0.1
    assert judge.report.heldout.low < 0.2


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        (ActiveCritic("vanilla"), {}, True),
        (ActiveCritic("vanilla"), {"options": CompileOptions(cv=4)}, False),
        (ActiveCritic("coarse"), {}, False),  # a task is learnt from the labels
        (ActiveCritic("vanilla"), {"search": js.LabeledFewShot()}, True),
        (ActiveCritic("vanilla"), {"search": js.OptunaSearch()}, False),
        (
            ActiveCritic("vanilla"),
            {"search": js.CorrelationRandomSearch(racing=True)},
            False,
        ),
        (
            ActiveCritic("vanilla"),
            {"search": js.CorrelationRandomSearch(stop_at_score=200)},
            False,
        ),
    ],
)
def test_which_folds_choose_again(
    method: Any, options: dict[str, Any], expected: bool
) -> None:
    compiler = Compiler(**options)
    assert folds_choose_again(compiler, js.Judge(method), "local/x") == expected
