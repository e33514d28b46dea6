"""Whatever is fitted, to whatever labels and scores: it can be saved, and a loaded judge says the same."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from judgesmith.agreement.objectives import Q
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.fitting.outcome import (
    calibrated_without,
    cheapest,
    fit_decision,
    fit_preference,
    fit_sureness,
)
from judgesmith.optimizers.fitting.weights import Training, refine
from judgesmith.optimizers.report import Fitted
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import load
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Readings
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.programs.refining import HeadFit, Refinement
from judgesmith.signatures.values import (
    Criterion,
    CriterionScore,
    Opinion,
    Scale,
    Verdict,
)

SCALES = [
    (0, 1),
    (1, 5),
    (0, 100),
    (-16, 0),
    (0, 0.07),
    (-0.1, 0.2),
    (0, 1e-9),
    (1e6, 1e6 + 1),
]
FAR = [(-1e12, 1e12), (1e12 - 1e-3, 1e12), (-1e12, 1 - 1e12), (1e11, 2e11)]
Fit = tuple[Labels, Any]


def labels_of(
    kind: str, scale: tuple[float, float], raw: list[float], levels: int
) -> Labels:
    """Labels of a kind from numbers in 0..1."""
    low, high = scale
    steps = {"binary": 2, "preference": 3, "category": levels}.get(kind)
    values = (
        np.array(raw)
        if steps is None
        else np.round(np.array(raw) * (steps - 1)) / (steps - 1)
    )
    scores = np.clip(low + (high - low) * values, low, high).tolist()
    rows = tuple(
        Row(
            id=str(n),
            output=f"Output {n}.",
            source=f"Source {n // 2}.",
            doc_id=f"d{n // 2}",
            group=f"d{n // 2}",
            scores={"": score},
        )
        for n, score in enumerate(scores)
    )
    grades = (
        np.linspace(low, high, steps or 2).tolist()
        if kind in ("binary", "category")
        else []
    )
    names = tuple(f"grade {n}" for n in range(len(grades)))
    return Labels(rows, "", scale, kind=kind, levels=tuple(grades), categories=names)  # type: ignore[arg-type]


@st.composite
def fits(draw: st.DrawFn) -> Fit:
    """Labels, and raw scores of their rows: beyond 0..100, missing, all equal, or next to each other."""
    kind = draw(st.sampled_from(["score", "category", "binary", "preference"]))
    rows = draw(st.integers(3, 40))
    shares = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1))
    raw = draw(
        st.one_of(
            st.lists(shares, min_size=rows, max_size=rows),
            shares.map(lambda x: [x] * rows),
        )
    )
    scale = draw(st.sampled_from(SCALES + FAR))
    some = st.one_of(
        st.floats(-20, 120),
        st.sampled_from([math.nan, 0.0, 100.0, 100.0006, -0.0006, 1e-9]),
    )
    percents = draw(
        st.one_of(
            st.lists(some, min_size=rows, max_size=rows), some.map(lambda x: [x] * rows)
        )
    )
    return labels_of(kind, scale, raw, draw(st.integers(2, 7))), np.array(percents)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(fits())
@example((labels_of("binary", (0, 1), [0, 1] * 45, 2), np.linspace(60, 104, 90)))
@example(
    (
        labels_of("score", (0, 1e-9), [0.0, 0.5, 1.0, 0.2, 0.9, 0.4], 2),
        np.linspace(0, 100, 6),
    )
)
def test_outcomes_are_saved_and_loaded(tmp_path: Path, fit: Fit) -> None:
    labels, percents = fit
    scale, judge = (
        Scale(*labels.scale),
        Judge(ActiveCritic("coarse"), scale=Scale(*labels.scale)),
    )
    judge.outcome = replace(
        judge.outcome, calibration=Calibration.fit(percents, labels.scores, scale)
    )
    judge.outcome = replace(judge.outcome, decision=fit_decision(percents, labels))
    if judge.outcome.decision is not None and judge.outcome.decision.binary:
        judge.outcome = replace(
            judge.outcome,
            decision=cheapest(judge.outcome.decision, percents, labels, 3.0),
        )
    judge.outcome = replace(judge.outcome, preference=fit_preference(percents, labels))
    scores = calibrated_without(percents, labels.scores, labels.groups, scale)
    judge.outcome = replace(
        judge.outcome,
        sureness=fit_sureness(percents, scores, labels.scores, labels.groups, scale),
    )
    judge.save(tmp_path / "judge.json")
    loaded = load(tmp_path / "judge.json")
    for percent in (0.0, 37.5, 100.0):
        verdict = Verdict(score=math.nan, percent=percent)
        decided = judge.outcome(verdict)
        assert loaded.outcome(verdict) == decided
        assert scale.low <= decided.score <= scale.high
        if (interval := decided.interval) is not None:
            assert (
                scale.low
                <= interval.low
                <= decided.score
                <= interval.high
                <= scale.high
            )


class Head:
    """A refiner that takes a head over columns, as the readings judge does."""

    kind = "readings"
    fitted_always = True

    def __init__(self, table: Readings) -> None:
        self.method = self
        self.table = table
        self.fit: HeadFit | None = None

    def refiners(self) -> list[Any]:
        return [self.weigh]

    def weigh(self, rows: Any) -> Refinement:
        every = np.ones(len(self.table), dtype=bool)
        self.fit = rows.fit_head(
            self.table, every, Experience(), self.table.names[0], strong=False
        )
        return Refinement("readings", self.fit.percents)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Labels, Readings]:
    rows, columns = draw(st.integers(8, 20)), draw(st.integers(1, 3))
    size = draw(st.sampled_from([1e-12, 1.0, 1e6, 1e30]))
    value = st.one_of(
        st.floats(-3, 3).map(lambda x: x * size), st.sampled_from([0.0, math.nan])
    )
    matrix = draw(
        st.lists(
            st.lists(value, min_size=columns, max_size=columns),
            min_size=rows,
            max_size=rows,
        )
    )
    raw = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=rows, max_size=rows))
    labels = labels_of(draw(st.sampled_from(["score", "binary"])), (0, 1), raw, 2)
    names = tuple(f"surface.{n}" for n in range(columns))
    return labels, Readings(names, np.array(matrix), tuple(labels.groups))


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(tables())
def test_heads_are_saved_and_give_what_a_verdict_can_have(
    tmp_path: Path, given_: tuple[Labels, Readings]
) -> None:
    labels, table = given_
    rows, head = examples_of(labels), Head(table)
    training = Training(
        rows, [Verdict(score=math.nan)] * len(rows), np.full(len(rows), 50.0), Q()
    )
    judge = Judge(
        ModelReadings(reader="none", signals=["a=0..1"], first="a"), scale=Scale(0, 1)
    )
    refined: Any = tuple(refine(head, training))  # type: ignore[arg-type]
    unsearched: Any = None
    percents = Fitted(judge, judge, unsearched, None, (), refined).percents
    assert head.fit is not None
    assert ((percents >= 0) & (percents <= 100)).all()
    judge.method.take(head.fit.head, "")
    judge.outcome = replace(
        judge.outcome, calibration=Calibration.fit(percents, labels.scores, judge.scale)
    )
    judge.outcome = replace(
        judge.outcome,
        sureness=fit_sureness(
            percents, labels.scores, labels.scores, labels.groups, judge.scale
        ),
    )
    judge.save(tmp_path / "judge.json")
    loaded: Any = load(tmp_path / "judge.json")
    assert loaded.method.head(table) == pytest.approx(
        judge.method.head(table), abs=1e-3
    )  # type: ignore[misc]
    assert loaded.method.head(table).tolist() == judge.method.head(table).tolist()  # type: ignore[misc]


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_weights_of_criteria_and_annotators_are_saved(
    tmp_path: Path, data: st.DataObject
) -> None:
    names = [f"openai/m{n}" for n in range(data.draw(st.integers(2, 4)))]
    human = data.draw(
        st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=12, max_size=16)
    )
    score = st.one_of(st.just(math.nan), st.floats(0, 100))
    parts = [[data.draw(score) for _ in names] for _ in human]
    labels = labels_of("score", (0, 1), human, 2)
    verdicts = [
        Verdict(
            score=math.nan,
            percent=50.0,
            criteria={
                name: CriterionScore(x) for name, x in zip(names, row, strict=True)
            },
            opinions={name: Opinion(x) for name, x in zip(names, row, strict=True)},
        )
        for row in parts
    ]
    training = Training(
        examples_of(labels), verdicts, np.linspace(0, 100, len(human)), Q(), sure=0.0
    )
    critic = Judge(
        ActiveCritic("fine", criteria=[Criterion(name, "It is.") for name in names]),
        scale=Scale(0, 1),
    )
    for judge in (
        critic,
        Judge(OpeNLGauge("fluency", annotators=names), scale=Scale(0, 1)),
    ):
        for refinement in refine(judge, training):
            judge.outcome = replace(
                judge.outcome,
                calibration=Calibration.fit(
                    refinement.percents, labels.scores, judge.scale
                ),
            )
            judge.provenance = {refinement.name: refinement.details}
        judge.save(tmp_path / "judge.json")
        assert load(tmp_path / "judge.json").method.fitted() == judge.method.fitted()
