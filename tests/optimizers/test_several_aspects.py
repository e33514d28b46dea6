"""Several aspects compiled together: the same documents held out, the same findings as alone, one budget."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from planted import PlantedReader, guessing, planted_labels

import judgesmith as js
from judgesmith.datasets.records import Labels, Row
from judgesmith.errors import BudgetError, LabelsError, OptionError
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.several_aspects import AspectsCompiler
from judgesmith.programs import artifact
from judgesmith.programs.readings import opening
from judgesmith.programs.readings.opening import Opened
from judgesmith.signatures.values import Criterion
from judgesmith.testing.scripted import scripted_models

MODEL = "a1b2" * 16
NAMES = ("clear", "kind")


def aspect(labels: Labels, name: str, score: Any) -> Labels:
    """The same rows, scored for an aspect."""
    rows = [replace(row, scores={name: float(score(n, row))}) for n, row in enumerate(labels.rows)]
    return replace(labels, rows=tuple(rows), aspect=name)


def judge(*names: str) -> js.AspectsJudge:
    return js.AspectsJudge({n: js.DirectScorer(n, criteria=[Criterion(n, f"How {n} it is.")]) for n in names or NAMES})


@pytest.fixture
def labels(labels_of: Any) -> dict[str, Labels]:
    """36 rows of 12 documents; an aspect's score is no hint at the other's."""
    rows = labels_of(12, 3, lambda n: n * 37 % 101)
    return {"clear": rows_of(rows, "clear", 37), "kind": rows_of(rows, "kind", 71)}


def rows_of(labels: Labels, name: str, step: int) -> Labels:
    return aspect(labels, name, lambda n, row: n * step % 101)


@pytest.fixture
def compiled(server: Any, fake: Any) -> Any:
    """compiled(labels, judge, **options) by a model that gives each aspect its true score, give or take."""

    def run(labels: Any, which: js.Judge | None = None, **options: Any) -> js.Judge:
        def said(ask: Any) -> float:
            step = 37 if "How clear it is." in ask.text else 71
            n = int(ask.mark[1:])
            return min(100, max(0, n * step % 101 + 23 * (n % 3 - 1)))

        server.answer = fake.judging(said)
        connection = js.Connection(api_base=server.base)
        return js.compile(
            which or judge(), labels, lm="openai/fake", connection=connection, **{"optimizer": "none"} | options
        )

    return run


def held_out(report: Any) -> list[str]:
    return [row["id"] for row in report.heldout_predictions]


def test_no_document_is_learnt_from_for_one_aspect_and_held_out_for_another(
    server: Any, compiled: Any, labels: dict[str, Labels]
) -> None:
    # Kind is rated in a part of the rows only, and begins elsewhere in the file.
    labels["kind"] = labels["kind"].subset([n for n in reversed(range(36)) if n % 12 != 5])
    made = compiled(labels, optimizer="labeled-few-shot")
    document = {row.id: row.doc_id for row in labels["clear"].rows}
    held = {name: {document[i] for i in held_out(report)} for name, report in made.report.aspects.items()}
    assert held["kind"] <= held["clear"] and len(held["clear"]) == 3
    rated = {row.doc_id for row in labels["kind"].rows}
    assert held["kind"] == held["clear"] & rated
    rows = {row.id for row in labels["clear"].rows if row.doc_id in held["clear"]}
    assert any(ask.shown for ask in server.judged)
    assert not any(rows & set(ask.shown) for ask in server.judged)


def test_an_aspect_comes_out_as_it_does_alone(compiled: Any, labels: dict[str, Labels]) -> None:
    made = compiled(labels)
    for name, report in made.report.aspects.items():
        held = set(held_out(report))
        parts = [[n for n, row in enumerate(labels[name].rows) if (row.id in held) is out] for out in (False, True)]
        train, rest = (labels[name].subset(part) for part in parts)
        alone = compiled(train, judge().by_aspect[name], heldout=rest)
        assert alone.report.heldout.to_dict() == report.heldout.to_dict()
        assert alone.calibration == made.by_aspect[name].calibration
    assert made.report.aspects["clear"].heldout.q != made.report.aspects["kind"].heldout.q
    told = made.report.to_dict()
    assert told["calls"] == sum(one["calls"] for one in told["aspects"].values()) > 0
    assert made.provenance["labels"] == {"origin": "labels.jsonl", "aspects": list(NAMES), "rows": 36}
    assert set(made.provenance["seen"]) == set(made.by_aspect["kind"].provenance["seen"])


def test_readings_are_read_once_for_all_aspects(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = PlantedReader()
    monkeypatch.setitem(opening._opened, "test/model at None", Opened(reader, MODEL))
    labels = planted_labels(12)

    def turned(n: int, row: Row) -> float:
        return 100 - row.scores[labels.aspect]

    both = {
        "clear": aspect(labels, "clear", lambda n, row: row.scores[labels.aspect]),
        "kind": aspect(labels, "kind", turned),
    }
    parts = {n: js.ReadingsJudge(n, criteria=[Criterion(n, "")]) for n in NAMES}
    with scripted_models() as make:
        lm = make(guessing())[0]
        lm.connection = replace(lm.connection, cache=True)  # of what was read; calls are not kept
        made = js.compile(js.AspectsJudge(parts), both, lm=lm)
        assert all(report.heldout.q > 2 for report in made.report.aspects.values())
        assert reader.reads == len(labels)  # one aspect's rows, kept on disk for the other
        rows = [{"source": "Source d0 here.", "output": f"w0 x1 w2 x{n}"} for n in range(5)]
        again = artifact.build(artifact.Artifact.of(artifact.to_dict(made)), lm=lm)
        verdicts = list(again.score_many(rows))
    assert reader.reads == len(labels) + 5
    assert all(v.failure is None and v.interval is None and v.aspects["kind"].interval for v in verdicts)


def test_where_one_aspect_has_few_labels_all_are_cross_validated(compiled: Any, labels: dict[str, Labels]) -> None:
    labels["kind"] = labels["kind"].subset(range(0, 36, 3))
    made = compiled(labels)
    assert [report.folds for report in made.report.aspects.values()] == [4, 4]
    assert [report.heldout_rows for report in made.report.aspects.values()] == [36, 12]
    assert any("12 labels of 'kind' are too few" in note for note in made.report.notes)


def test_the_budget_is_for_all_aspects(server: Any, compiled: Any, labels: dict[str, Labels]) -> None:
    plans = AspectsCompiler({n: Compiler(search=None) for n in NAMES}).plan(judge(), labels, "openai/fake")
    # Held-out rows are paid for twice, since an unreadable answer is asked for again.
    whole = sum(plan.calls + plan.heldout_calls for plan in plans.values())
    made = compiled(labels, max_calls=whole)
    assert made.provenance["cost"]["calls"] <= whole
    server.forget()
    with pytest.raises(BudgetError, match=r"aspect 'clear': the budget of 6 calls"):
        compiled(labels, max_calls=12, seed=3)
    assert len(server.judged) <= 12


def test_kinds_of_labels_go_by_aspect(compiled: Any, labels: dict[str, Labels]) -> None:
    passed = aspect(labels["kind"], "kind", lambda n, row: n * 71 % 101 > 50)
    labels["kind"] = replace(
        passed, scale=(0.0, 1.0), kind="binary", categories=("fail", "pass"), levels=(0.0, 1.0)
    )  # fmt: skip
    made = compiled(labels)
    assert (made.by_aspect["clear"].decision, made.scale) == (None, js.Scale(0, 100))
    verdict = made.score("Source d001 here.", "An output, r001.")
    assert verdict.aspects["kind"].passed is True and verdict.aspects["clear"].passed is None
    assert made.report.aspects["kind"].decisions["auc"]["value"] > 0.8
    assert made.report.aspects["clear"].decisions is None


def test_what_is_wrong_says_the_aspect(compiled: Any, labels: dict[str, Labels]) -> None:
    constant = aspect(labels["kind"], "kind", lambda n, row: 5 if n < 33 else n)
    with pytest.raises(LabelsError, match=r"aspect 'kind': .* leave it out, or cross-validate"):
        for seed in range(20):
            AspectsCompiler({n: Compiler(search=None, seed=seed) for n in NAMES}).plan(
                judge(), labels | {"kind": constant}, None
            )
    other = replace(labels["kind"], rows=tuple(replace(r, output=f"Other {r.id}") for r in labels["kind"].rows))
    with pytest.raises(LabelsError, match="give every row its own id"):
        compiled(labels | {"kind": other})
    unscored = aspect(labels["kind"], "kind", lambda n, row: np.nan if n == 7 else n)
    with pytest.raises(LabelsError, match="has no score for 'kind'"):
        compiled(labels | {"kind": unscored})
    with pytest.raises(OptionError, match="labels of 'clear' alone"):
        compiled(labels["clear"])
    with pytest.raises(OptionError, match="the judge is of clear, kind, the labels of clear"):
        compiled({"clear": labels["clear"]})
    with pytest.raises(OptionError, match="each aspect is compiled separately"):
        Compiler(search=None).run(judge(), labels["clear"], js.language_model("openai/fake"))


def test_labels_are_read_from_one_source(compiled: Any, labels: dict[str, Labels]) -> None:
    rows = [
        {"id": one.id, "source": one.source, "output": one.output, "doc_id": one.doc_id,
         "scores": one.scores | other.scores}
        for one, other in zip(labels["clear"].rows, labels["kind"].rows, strict=True)
    ]  # fmt: skip
    made = compiled(iter(rows))
    assert [report.train_rows for report in made.report.aspects.values()] == [27, 27]
    with pytest.raises(LabelsError, match=r"there is no aspect 'new'.*clear, kind"):
        compiled(rows, judge("clear", "new"))
