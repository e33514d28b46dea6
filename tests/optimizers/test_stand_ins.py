"""Rows that stand in for demonstrations which a row may not see: the mix of labels is the same for every row."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import dspy
import numpy as np
import pytest

import judgesmith as js
from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.registry import build_optimizer
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models import row_context
from judgesmith.signatures.values import Item
from judgesmith.testing.fake import Ask, FakeModel, judging, make_labels


def demo(number: int, score: float, **more: Any) -> dict[str, Any]:
    texts = {"source": f"Source number {number}.", "output": f"Output number {number}."}
    shown = {"group": f"d{number}", "score": score, "augmented": False, "gold": True}
    return texts | shown | more


def item(number: int) -> Item:
    return Item(
        f"Output number {number}.", f"Source number {number}.", group=f"d{number}"
    )


POOL = [demo(n, 25.0 * (n % 5)) for n in range(20)]


def scores(demos: Sequence[Any]) -> list[float]:
    return [one["score"] for one in demos]


def test_another_row_of_the_same_score_takes_the_place() -> None:
    demos = [POOL[n] for n in (0, 6, 12, 18)]
    assert row_context.seen(demos, item(6)) == [demos[n] for n in (0, 2, 3)]
    with row_context.standing_in(POOL):
        for own in (0, 6, 12, 18):
            seen = row_context.seen(demos, item(own))
            assert scores(seen) == scores(demos)
            groups = [one["group"] for one in seen]
            assert f"d{own}" not in groups
            assert len(set(groups)) == 4
        assert row_context.seen(demos, item(3)) == demos
    assert len(row_context.seen(demos, item(6))) == 3


def test_of_a_row_and_its_siblings_each_is_replaced() -> None:
    sibling = demo(30, 75.0, group="d6")
    demos = [POOL[0], POOL[6], sibling, POOL[12]]
    with row_context.standing_in([*POOL, sibling]):
        seen = row_context.seen(demos, item(6))
    assert scores(seen) == scores(demos)
    assert "d6" not in {one["group"] for one in seen}


@pytest.mark.parametrize(
    ("spare", "expected"),
    [
        ([62.0, 80.0], [10.0, 80.0, 90.0]),  # the nearest
        ([20.0, 62.0], [10.0, 62.0, 90.0]),  # nearer than the mean of 50
        ([20.0, 130.0], [10.0, 90.0]),  # further than the mean: the place stays empty
        ([], [10.0, 90.0]),
    ],
)
def test_the_nearest_score_stands_in_where_it_is_nearer_than_the_rest(
    spare: list[float], expected: list[float]
) -> None:
    demos = [demo(0, 10.0), demo(1, 75.0), demo(2, 90.0)]
    others = [demo(10 + n, score) for n, score in enumerate(spare)]
    with row_context.standing_in([*demos, *others]):
        assert scores(row_context.seen(demos, item(1))) == expected


def test_a_bootstrapped_demonstration_is_replaced_by_one_of_its_form() -> None:
    written = [demo(n, 25.0 * (n % 5), augmented=True) for n in range(20)]
    demos = [written[0], written[6], POOL[12]]
    with row_context.standing_in([*POOL, *written]):
        (_, other, _) = row_context.seen(demos, item(6))
        (_, _, bare) = row_context.seen(demos, item(12))
    assert (other["augmented"], other["score"]) == (True, 25.0)
    assert (bare["augmented"], bare["score"]) == (False, 50.0)
    with row_context.standing_in(POOL):  # of none of its form: a labelled one
        assert scores(row_context.seen(demos, item(6))) == scores(demos)


def test_a_near_duplicate_never_stands_in() -> None:
    twin = demo(6, 25.0, group="other", output="output  Number 6")
    demos = [POOL[0], POOL[6], POOL[12]]
    with row_context.standing_in([*demos, twin]):
        assert len(row_context.seen(demos, item(6))) == 2
    with row_context.own_documents_shown(), row_context.standing_in(POOL):
        assert row_context.seen(demos, item(6)) == demos


# -- judges that copy labels -----------------------------------------------------------------------------------------

Copy = Callable[[Ask], float]


def mean(ask: Ask) -> float:
    return float(np.mean(ask.labels)) if ask.labels else 50.0


def last(ask: Ask) -> float:
    return ask.labels[-1] if ask.labels else 50.0


def drawn(ask: Ask) -> float:
    """The label of a demonstration that the judged text alone picks."""
    return random.Random(ask.mark).choice(ask.labels) if ask.labels else 50.0


def most_frequent(ask: Ask) -> float:
    return max(ask.labels, key=ask.labels.count) if ask.labels else 50.0


def against(copy: Copy) -> Copy:
    return lambda ask: 100 - copy(ask)


COPIES = [mean, last, drawn, most_frequent, against(mean), against(drawn)]
#: Ratings on a scale of five, of two kinds, and means of several raters.
RATINGS: list[Callable[[random.Random], float]] = [
    lambda draw: 25.0 * draw.randint(0, 4),
    lambda draw: draw.choice([0.0, 100.0]),
    lambda draw: round(draw.gauss(50, 20), 1) % 100,
]


def judged(copy: Copy, rating: Callable[[random.Random], float], seed: int) -> float:
    """Return the Q of sixteen demonstrations of forty rows by a judge that copies labels."""
    draw = random.Random(seed)
    labels = make_labels(40, 1, lambda n: rating(draw))
    model = FakeModel()
    model.answer = judging(copy)
    search = build_optimizer("labeled-few-shot", {"max_demos": 16}, seed=seed)
    method = ActiveCritic("vanilla", explain="none", reading="said")
    search.compile(js.Judge(method, lm=model.lm), trainset=examples_of(labels))
    assert search.record is not None
    human = [row.scores["overall"] for row in labels.rows]
    return CorrelationSum()(search.record.tried[1].scored.percents, np.array(human)).q


@pytest.mark.parametrize("rating", RATINGS, ids=["of five", "of two", "means"])
@pytest.mark.parametrize("copy", COPIES)
def test_a_judge_that_copies_labels_comes_out_near_chance(
    copy: Copy, rating: Callable[[random.Random], float]
) -> None:
    # Where labels nearly all differ, the nearest one is not equal, and no noise hides what is left.
    near = 0.15 if rating is not RATINGS[2] else 0.45
    values = [judged(copy, rating, seed) for seed in range(8)]
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    assert abs(np.mean(values)) < max(near, 2.6 * error), values


def test_leaving_out_alone_turns_such_a_judge_against_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_context, "_nearest", lambda *_: None)
    values = [judged(mean, RATINGS[0], seed) for seed in range(8)]
    assert np.mean(values) < -0.8, values


# -- DSPy's own optimizers ---------------------------------------------------------------------------------------------


def test_dspys_class_measures_a_judge_on_rows_that_are_no_demonstrations() -> None:
    draw = random.Random(5)
    labels = make_labels(24, 1, lambda n: 25.0 * draw.randint(0, 4))
    human = {row.id: row.scores["overall"] for row in labels.rows}
    model = FakeModel()
    model.answer = judging(lambda ask: human[ask.mark] / 4 + mean(ask) / 2)
    rows = [
        dspy.Example(
            source=row.source, output=row.output, rating=human[row.id]
        ).with_inputs("source", "output")
        for row in labels.rows
    ]
    judge = js.Judge(
        ActiveCritic("vanilla", explain="none", reading="said"), lm=model.lm
    )
    taught = dspy.LabeledFewShot(k=8).compile(judge, trainset=rows)
    metric = js.Agreement("q", scale=(0, 100))
    pairs = [(row, taught(**row.inputs())) for row in rows]
    left_out = [getattr(prediction, "left_out", 0) for _, prediction in pairs]
    assert sorted(left_out) == [0] * 16 + [1] * 8
    whole = [pair for pair, count in zip(pairs, left_out, strict=True) if not count]
    assert metric.value_of(pairs) == metric.value_of(whole)
    result = dspy.Evaluate(devset=rows, metric=metric, num_threads=1)(taught)
    assert result.score == round(100 * metric.value_of(whole).value, 2)
    few = [pair for pair, count in zip(pairs, left_out, strict=True) if count]
    assert metric.value_of([*few, *whole[:3]]).n == 11
