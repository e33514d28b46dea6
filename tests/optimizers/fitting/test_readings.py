"""Readings weighed by labels: a judge compiled with a reader that knows what the labels follow from."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import PlantedReader, guessing, planted_labels

import judgesmith as js
from judgesmith.datasets.records import Labels
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.planning import PROBES
from judgesmith.optimizers.planning import plan as planned
from judgesmith.optimizers.search.few_shot import NoSearch
from judgesmith.programs import artifact, loading
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.readings import kinds
from judgesmith.programs.readings.bindings import opening
from judgesmith.programs.readings.bindings.opening import Opened
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.testing.fake import own_environment
from judgesmith.testing.scripted import MakeScripted, ScriptedTransport, scripted_models

MODEL = "a1b2" * 16


@pytest.fixture(scope="module")
def compiled() -> Any:
    """The judge, compiled once from 72 rows of 24 documents."""
    with scripted_models() as make, pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            opening._opened, "test/model at None", Opened(PlantedReader(), MODEL)
        )
        yield js.compile(
            ModelReadings("fluency"),
            planted_labels(),
            lm=make(guessing())[0],
            heldout=0.4,
        )


def test_labels_pay_where_a_reading_knows_what_they_follow_from(
    compiled: Judge,
) -> None:
    report = compiled.report
    assert abs(report.zero_shot.q) < 1 < 2.5 < report.heldout.q
    assert report.difference[1] > 0
    assert report.surface.q < 1
    assert not any("no better than that" in note for note in report.notes)
    assert compiled.method.head is not None
    assert compiled.method.head_model == MODEL


def test_the_report_says_what_weighs(compiled: Judge) -> None:
    said = compiled.report.to_dict()
    json.dumps(said, allow_nan=False)
    assert said["selected"]["candidate"] == said["selected"]["kind"] == "readings"
    assert said["selected"]["q"] > 2.5  # of left-out training rows
    by_name = {one["name"]: one for one in said["readings"]}
    assert sum(one["weight"] for one in by_name.values()) == pytest.approx(1, abs=1e-3)
    assert by_name["with the labels"]["q"] > 2.5 > 1 > by_name["own score alone"]["q"]
    assert by_name["experience alone"]["weight"] > 0
    assert by_name["experience alone"]["q"] > 0
    (note,) = [
        note
        for note in compiled.report.notes
        if "of what moves it comes from these labels" in note
    ]
    assert f"{by_name['with the labels']['weight']:.0%}" in note
    assert set(said["surface"]) == set(said["heldout"])
    assert compiled.provenance["surface"] == said["surface"]


def test_the_plan_says_what_is_read() -> None:
    labels = planted_labels()
    notes = planned(Compiler(), Judge(ModelReadings("fluency")), labels, None).notes
    said = "the model also reads each text once, without a call: 72 rows in 72 passes, about "
    assert any(note.startswith(said) for note in notes)
    long = replace(
        labels, rows=tuple(replace(row, output=row.output * 400) for row in labels.rows)
    )
    notes = planned(Compiler(), Judge(ModelReadings("fluency")), long, None).notes
    (note,) = [note for note in notes if note.startswith("the model also reads")]
    passes, tokens = (
        int(n.replace(",", ""))
        for n in re.findall(r"([\d,]+) passes, about ([\d,]+) tokens", note)[0]
    )
    characters = sum(len(row.output) for row in long.rows)
    assert passes >= 2 * 72
    assert characters / 3.5 < tokens < 2 * characters / 3.5
    plain = Judge(DirectScorer("fluency"))
    assert planned(Compiler(NoSearch()), plain, labels, None).notes == ()


def test_folds_of_a_judge_that_only_weighs_cost_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_environment(monkeypatch, tmp_path)
    reader, labels, transport = (
        PlantedReader(),
        planted_labels(12, 2),
        ScriptedTransport(guessing()),
    )
    monkeypatch.setitem(opening._opened, "test/model at None", Opened(reader, MODEL))
    counted, count = list[str](), kinds.surface

    def counting(source: str, output: str) -> dict[str, float]:
        counted.append(output)
        return count(source, output)

    monkeypatch.setattr(kinds, "surface", counting)
    lm = LanguageModel("test/model", transport, identity="test")
    plan = planned(Compiler(NoSearch()), Judge(ModelReadings("fluency")), labels, lm)
    judge = js.compile(ModelReadings("fluency"), labels, lm=lm)
    report, cost = judge.report, judge.provenance["cost"]["calls"]
    assert (report.runs, report.folds, report.heldout_rows, plan.runs) == (5, 4, 24, 5)
    assert len(transport.requests) == cost == 24
    assert report.usage.cached == 0
    assert plan.calls == 24 + PROBES
    assert reader.reads == 24
    assert sorted(counted) == sorted(row.output for row in labels.rows)
    assert "(5 times 4 folds)" in report.notes[0]
    assert "all 24 labels" in report.notes[0]
    assert [line.count("5 × 4-fold") for line in report.table().title.splitlines()] == [
        1
    ]
    assert len(judge.provenance["seen"]) == 24
    assert judge.provenance["heldout"]["runs"] == 5
    for options in ({"max_calls": 500}, {"cv": 3}):
        assert (
            js.compile(ModelReadings("fluency"), labels, lm=lm, **options).report.runs
            == 1
        )


def test_a_compiled_judge_is_saved_whole(compiled: Judge, tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    compiled.save(path)
    again = loading.build(artifact.read(path))
    assert isinstance(again.method, ModelReadings)
    assert again.method.fitted() == compiled.method.fitted() != {}
    again.set_lm(compiled.lm)
    rows = [{"source": r.source, "output": r.output} for r in planted_labels(2).rows]
    assert [v.score for v in again.score_many(rows)] == [
        v.score for v in compiled.score_many(rows)
    ]


@pytest.fixture
def lm(scripted: MakeScripted, monkeypatch: pytest.MonkeyPatch) -> LanguageModel:
    monkeypatch.setitem(
        opening._opened, "test/model at None", Opened(PlantedReader(), MODEL)
    )
    return scripted(guessing())[0]


def fewer(documents: int, per_document: int) -> tuple[Labels, Labels]:
    """Labels, and others to hold out."""
    every = planted_labels(documents + 10, per_document)
    known = {f"d{d:03d}" for d in range(documents)}
    train, rest = (
        [r for r in every.rows if (r.doc_id in known) is side] for side in (True, False)
    )
    return replace(every, rows=tuple(train)), replace(every, rows=tuple(rest))


@pytest.mark.parametrize(
    ("documents", "per_document"), [(2, 1), (2, 7)], ids=["rows", "groups"]
)
def test_too_few_labels_keep_the_direct_score_and_say_so(
    documents: int, per_document: int, lm: Any
) -> None:
    train, heldout = fewer(documents, per_document)
    judge = js.compile(ModelReadings("fluency"), train, lm=lm, heldout=heldout)
    assert judge.method.fitted() == {}
    assert judge.report.readings == ()
    assert judge.report.selected["candidate"] != "readings"
    note = f"{documents * per_document} rows of {documents} groups could be read"
    assert any(
        note in said and "the direct score stays" in said and "{" not in said
        for said in judge.report.notes
    )


def test_just_enough_labels_are_weighed(lm: Any) -> None:
    train, heldout = fewer(3, 1)
    assert (
        "head"
        in js.compile(
            ModelReadings("fluency"), train, lm=lm, heldout=heldout
        ).method.fitted()
    )


@pytest.mark.parametrize(("documents", "weighed"), [(3, False), (24, True)])
def test_a_hosted_models_own_score_has_the_first_word(
    documents: int, weighed: bool, lm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(opening._opened, "local/beside", Opened(PlantedReader(), MODEL))
    train, heldout = fewer(documents, 1)
    judge = js.compile(
        ModelReadings("fluency", reader="local/beside"), train, lm=lm, heldout=heldout
    )
    assert ("head" in judge.method.fitted()) is weighed
    said = (
        "the score combines several signals "
        if weighed
        else "the model's own score is used alone"
    )
    assert any(said in note for note in judge.report.notes)


def test_a_judge_that_is_no_better_than_counting_words_says_so(lm: Any) -> None:
    plain = planted_labels()
    rows = [
        replace(
            row,
            output=" ".join(row.output.split() * (1 + n % 5)),
            scores={"overall": 20.0 * (n % 5)},
        )
        for n, row in enumerate(plain.rows)
    ]
    judge = js.compile(
        DirectScorer("fluency"),
        replace(plain, rows=tuple(rows)),
        lm=lm,
        optimizer="none",
        heldout=0.4,
    )
    assert judge.report.surface.q > 2 > judge.report.heldout.q
    assert any(
        "the judge is no better than that" in note for note in judge.report.notes
    )


def test_folds_of_labels_that_mean_nothing_agree_with_nothing(lm: Any) -> None:
    """The mean label without a fold is low where the fold's labels are high: surface came out at -.32."""
    surface, read = [], []
    for seed in range(12):
        rng, plain = np.random.default_rng(seed), planted_labels(12, 2, seed=seed)
        scores = 50 + np.clip(
            rng.normal(size=24) * 15 + np.repeat(rng.normal(size=12) * 15, 2), -50, 50
        )
        rows = [
            replace(row, scores={"overall": float(s)})
            for row, s in zip(plain.rows, scores, strict=True)
        ]
        report = js.compile(
            ModelReadings("overall"), replace(plain, rows=tuple(rows)), lm=lm
        ).report
        assert report.folds == 4
        surface.append(report.surface.q)
        read.append(report.heldout.q)
    assert abs(np.mean(surface)) < 0.1
    assert abs(np.mean(read)) < 0.5
