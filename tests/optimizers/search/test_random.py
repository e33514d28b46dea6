"""What every search has from its base, shown on random search: choice, objective, imputation, budget."""

import math
from collections.abc import Callable
from typing import Any

import dspy
import numpy as np
import pytest

from judgesmith.agreement.metric import Agreement
from judgesmith.agreement.objectives import Q
from judgesmith.datasets.records import Labels
from judgesmith.errors import LeakError, OptionError
from judgesmith.optimizers.examples import Scored, agreement, examples_of
from judgesmith.optimizers.search.base import SearchRecord, unfit
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.signatures.values import Scale
from judgesmith.testing.fake import FakeModel, judging
from judgesmith.testing.optimizers import copy_the_document

Search = Callable[..., tuple[Judge, SearchRecord]]


@pytest.fixture
def server() -> FakeModel:
    return FakeModel()


@pytest.fixture
def search(server: FakeModel) -> Search:
    """search(labels, **settings of the optimizer) -> the chosen judge and the record."""

    def run(labels: Labels, **settings: Any) -> tuple[Judge, SearchRecord]:
        compiling = {
            k: settings.pop(k)
            for k in ("valset", "teacher", "restrict")
            if k in settings
        }
        student = Judge(
            ActiveCritic("vanilla", explain="before", reading="said"), lm=server.lm
        )
        optimizer = CorrelationRandomSearch(**{"candidates": 4, **settings})
        judge = optimizer.compile(student, trainset=examples_of(labels), **compiling)
        assert optimizer.record is not None
        return judge, optimizer.record

    return run


# -- no leak ----------------------------------------------------------------------------------------------------------


def test_a_validation_set_that_shares_a_text_is_refused(
    server: FakeModel, search: Search, labels: Labels
) -> None:
    train = labels.subset(range(20))
    disguised = examples_of(labels.subset(range(20, 40)))
    disguised[5] = disguised[5].copy(
        source=labels.rows[3].source, output=labels.rows[3].output
    )
    with pytest.raises(
        LeakError, match="row 6 of valset has the same source and output"
    ):
        search(train, valset=disguised)
    assert server.asks == []


# -- the objective ----------------------------------------------------------------------------------------------------


def test_zero_shot_is_always_a_candidate(search: Search, labels: Labels) -> None:
    every = ["labels only", "bootstrapped", *(f"random {i}" for i in range(4))]
    for given, names in (
        ({}, every),
        ({"restrict": [1]}, ["random 1"]),
        ({"candidates": 0}, []),
    ):
        _, record = search(labels, **given)
        first, *others = (c.name for c in record.candidates)
        assert first == "zero-shot"
        assert sorted(others) == sorted(names)  # the sizes are tried one by one


@pytest.mark.parametrize(
    ("most", "reason"), [(0.1, "10 of 40 rows failed"), (0.3, None)]
)
def test_how_many_rows_may_fail(
    most: float, reason: str | None, labels: Labels
) -> None:
    examples = examples_of(labels)
    percents = np.array(
        [
            math.nan if n % 4 == 0 else example.score
            for n, example in enumerate(examples)
        ]
    )
    reached = agreement(percents, examples, objective=Q(), seed=0, rounds=0)
    assert unfit(Scored((), percents), reached, most) == reason
    assert (reached.objective.n, reached.objective.failed) == (
        40,
        10,
    )
    assert reached.q < 3.0


# -- what demonstrations say ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anchor", ["gold", "predicted"])
def test_bootstrapped_demonstrations_show_the_score_that_was_asked_for(
    anchor: Any, server: FakeModel, search: Search, labels: Labels, human: Any
) -> None:
    said = {mark: 20 + score / 2 for mark, score in human.items()}
    server.answer = judging(
        lambda ask: human[ask.mark] if len(ask.body["messages"]) > 2 else said[ask.mark]
    )
    _, record = search(labels, anchor=anchor, restrict=[-1])
    assert [c.kind for c in record.candidates] == ["none", anchor]
    turns = [ask for ask in server.judged if len(ask.body["messages"]) > 2]
    assert turns
    for ask in turns:
        messages = ask.body["messages"][1:-1]
        for user, assistant in zip(messages[::2], messages[1::2], strict=True):
            mark = user["content"].split("Summary ")[1][:4]
            expected = human[mark] if anchor == "gold" else round(said[mark])
            assert (
                assistant["content"]
                == f"Explanation: It says {mark}.\nScore: {round(expected)}"
            )


def test_rows_without_an_answer_become_no_demonstrations(
    server: FakeModel, search: Search, labels: Labels, human: Any
) -> None:

    def answer(ask: Any) -> Any:
        n = int(ask.mark[1:]) if ask.step == "score" else 0
        if ask.step == "score" and n % 5 == 0:
            return "No idea."
        return judging(lambda ask: human[ask.mark] if n % 2 else 100 - human[ask.mark])(
            ask
        )

    server.answer = answer
    search(labels, candidates=6, max_failed=0.5, anchor="gold", max_labeled_demos=0)
    shown = {
        message["content"].split("Summary ")[1][:4]
        for ask in server.judged
        if not ask.again
        for message in ask.body["messages"][1:-1]
        if message["role"] == "user"
    }
    assert shown
    assert not {mark for mark in shown if int(mark[1:]) % 5 == 0}


def test_a_teacher_writes_the_explanations(
    server: FakeModel, search: Search, labels: Labels
) -> None:
    def answer(ask: Any) -> str:
        if ask.step == "score" and ask.body["model"] == "teacher":
            return f"Explanation: Taught {ask.mark}.\nScore: {len(ask.judged) % 101}"
        return str(judging(lambda ask: len(ask.judged) % 101)(ask))

    server.answer = answer
    teacher = server.model("openai/teacher")
    search(labels, teacher=teacher, anchor="gold", restrict=[-1])
    taught = [ask for ask in server.judged if ask.body["model"] == "teacher"]
    assert len(taught) == len(labels)
    assert not any(ask.labels for ask in taught)  # the teacher sees no label
    pupils = [
        ask
        for ask in server.judged
        if ask.body["model"] == "fake" and len(ask.body["messages"]) > 2
    ]
    assert pupils
    assert all(
        m["content"].startswith("Explanation: Taught ")
        for ask in pupils
        for m in ask.body["messages"][2:-1:2]
    )


# -- as DSPy's own class -----------------------------------------------------------------------------------------------


def test_it_is_dspys_class_and_draws_the_same_candidates(
    server: FakeModel, labels: Labels, human: Any
) -> None:
    sizes = {
        "max_bootstrapped_demos": 3,
        "max_labeled_demos": 6,
        "num_candidate_programs": 5,
    }

    def accept(row: Any, prediction: Any, trace: Any = None) -> bool:
        return int(row.output[9:12]) % 3 == 0

    class Program(dspy.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.judge = dspy.Predict("output -> percent")

        def forward(self, output: str) -> Any:
            return self.judge(output=output)

    rows = [
        dspy.Example(output=row.output).with_inputs("output") for row in labels.rows
    ]
    with dspy.context(lm=dspy.utils.DummyLM([{"percent": "50"}] * 2000)):
        loop = dspy.BootstrapFewShotWithRandomSearch(
            metric=accept, num_threads=1, **sizes
        )
        theirs = loop.compile(Program(), trainset=rows).candidate_programs
    search = CorrelationRandomSearch(metric=accept, seed=0, **sizes)
    assert isinstance(search, dspy.BootstrapFewShotWithRandomSearch)
    server.answer = judging(lambda ask: human[ask.mark])
    search.compile(
        Judge(ActiveCritic("vanilla", reading="said"), lm=server.lm),
        trainset=examples_of(labels),
    )
    assert search.record is not None

    def shown(demos: Any) -> list[tuple[str, bool]]:
        return [(demo["output"], bool(demo.get("augmented"))) for demo in demos]

    drawn = {one["seed"]: shown(one["program"].judge.demos) for one in theirs}
    ours = [shown(trial.program.predictors()[0].demos) for trial in search.record.tried]
    assert ours == [drawn[number] for number in range(-3, 5)]
    assert any(augmented for _, augmented in ours[3])


def test_a_metric_that_raises_counts_zero_until_dspys_limit(
    server: FakeModel, search: Search, labels: Labels
) -> None:
    def broken(row: Any, prediction: Any, trace: Any = None) -> float:
        if row.output.startswith("Summary r001"):
            raise ValueError("no reference")
        return 1.0

    # DSPy counts the errors of each evaluation for itself: there is one.
    _, record = search(labels, metric=broken, restrict=[-2], max_errors=2)
    assert len(record.tried) == 2
    with pytest.raises(ValueError, match="no reference"):
        search(labels, metric=broken, restrict=[-2], max_errors=1)


def test_dspys_arguments_mean_what_they_mean_there(
    server: FakeModel, search: Search, labels: Labels, human: Any
) -> None:
    server.answer = judging(
        lambda ask: human[ask.mark] if len(ask.shown) > 1 else len(ask.judged) % 101
    )
    sizes = {
        "max_bootstrapped_demos": 2,
        "max_labeled_demos": 5,
        "num_candidate_programs": 3,
    }
    _, record = search(
        labels, **sizes, num_threads=2, max_rounds=2, teacher_settings={"lm": server.lm}
    )
    assert [(c.name, c.demos) for c in record.candidates] == [
        ("zero-shot", 0),
        ("labels only", 5),
        ("bootstrapped", 5),
        *((f"random {i}", 5) for i in range(3)),
    ]
    augmented = [
        sum(d["augmented"] for d in t.program.predictors()[0].demos)
        for t in record.tried
    ]
    assert augmented[:3] == [0, 0, 2]
    assert set(augmented[3:]) <= {1, 2}
    _, record = search(labels, **sizes, stop_at_score=299)
    assert record.candidates[-1].agreement.q == pytest.approx(3)
    assert len(record.candidates) == 2
    _, record = search(labels, max_bootstrapped_demos=0, max_labeled_demos=3)
    assert {c.kind for c in record.candidates} == {"none", "labels"}
    _, record = search(labels, max_bootstrapped_demos=3, max_labeled_demos=0)
    assert {c.kind for c in record.candidates} <= {"none", "gold", "predicted"}


def test_a_metric_of_single_rows_decides_as_in_dspy(
    server: FakeModel, search: Search, labels: Labels, human: Any
) -> None:
    server.answer = judging(
        lambda ask: human[ask.mark] * 9 // 10 if ask.shown else human[ask.mark] // 2
    )
    asked: list[Any] = []

    def near(row: Any, prediction: Any, trace: Any = None) -> Any:
        asked.append(trace)
        return 1 - abs(prediction.percent - row.score) / 100

    judge, record = search(labels, metric=near, metric_threshold=0.9)
    means = [
        1 - np.abs(t.scored.percents - np.array(list(human.values()))).mean() / 100
        for t in record.tried
    ]
    assert record.chosen is record.tried[int(np.argmax(means))]
    assert "metric" in str(record.reason)
    assert any(trace is not None for trace in asked)
    assert judge.predictors()[0].demos
    rows = {
        d["output"][8:12]
        for t in record.tried
        for d in t.program.predictors()[0].demos
        if d["augmented"]
    }
    assert rows
    assert all(human[mark] - human[mark] // 2 <= 10 for mark in rows)
    _, record = search(labels, metric=Agreement("closeness"))
    assert record.selected.agreement.by.name == "closeness"


def test_own_documents_flatter_a_search_that_leaves_nothing_out(
    server: FakeModel, search: Search, labels_of: Any
) -> None:
    labels = labels_of(20, 3, lambda n: n // 3 * 37 % 101)
    server.answer = judging(copy_the_document)
    found = {
        out: search(
            labels,
            leave_out=out,
            max_bootstrapped_demos=0,
            max_labeled_demos=20,
            sure=0.0,
        )[1]
        for out in ("document", "nothing")
    }
    assert (
        found["nothing"].selected.agreement.q
        > found["document"].selected.agreement.q + 0.3
    )


def test_raw_examples_are_taken_with_the_score_on_the_judges_scale(
    server: FakeModel, labels: Labels, human: Any
) -> None:
    server.answer = judging(lambda ask: (human[ask.mark] + len(ask.text) * 7 % 101) / 2)
    student = Judge(
        ActiveCritic("vanilla", explain="before", reading="said"),
        lm=server.lm,
        scale=Scale(1, 5),
    )
    raw = [
        dspy.Example(
            question=row.source,
            answer=row.output,
            stars=1 + human[row.id] / 25,
            id=number,
        ).with_inputs("question", "answer")
        for number, row in enumerate(labels.rows)
    ]
    one, other = (
        CorrelationRandomSearch(candidates=2),
        CorrelationRandomSearch(candidates=2),
    )
    made = one.compile(student, trainset=raw)
    other.compile(student, trainset=examples_of(labels))
    assert one.record is not None
    assert other.record is not None
    values = [
        [c.agreement.value for c in search.record.candidates] for search in (one, other)
    ]
    assert values[0] == pytest.approx(values[1])
    shown = [
        demo
        for trial in one.record.tried
        for demo in trial.program.predictors()[0].demos
        if not demo["augmented"]
    ]
    assert shown
    assert all(
        demo["score"] == pytest.approx(human[demo["output"][8:12]]) for demo in shown
    )
    assert made.scale == Scale(1, 5)
    with pytest.raises(
        OptionError, match=r"row 2: people's score 7 is not on the judge's scale 1\.\.5"
    ):
        one.compile(student, trainset=[raw[0], raw[1].copy(stars=7)])
    with pytest.raises(OptionError, match="row 1: no field is clearly the human score"):
        one.compile(
            student,
            trainset=[
                dspy.Example(question="q", answer="a").with_inputs("question", "answer")
            ],
        )


def test_what_ends_a_search_is_no_failed_row_of_dspys(
    server: FakeModel, labels: Labels, human: Any
) -> None:
    student = Judge(
        ActiveCritic("vanilla", explain="before", reading="said"), lm=server.lm
    )
    optimizer = CorrelationRandomSearch(candidates=2)
    for most, tried in (
        (100, 2),
        (130, 3),
    ):  # zero-shot and 40 rows of labels only; 40 more, then 10 of the next
        server.answer = judging(lambda ask: human[ask.mark])
        server.lm.meter.max_calls = server.lm.meter.logical + most
        optimizer.compile(student, trainset=examples_of(labels))
        assert optimizer.record is not None
        assert "the budget ran out" in str(optimizer.record.stopped)
        assert len(optimizer.record.tried) == tried
