"""Random search runs DSPy's own class: its functions are called, and its scores are agreement of the whole set."""

from collections import Counter
from typing import Any

import dspy
import pytest

import judgesmith as js
from judgesmith.optimizers.examples import examples_of
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
