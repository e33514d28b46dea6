"""`evaluate_spans`: scored files against people's spans, joined and checked."""

import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import write

from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.spans import evaluate_spans

TEXT = "abcdefghij"


def error(
    start: int | None, end: int | None, severity: Any = 4, how: str = "exact"
) -> dict[str, Any]:
    text = "nowhere" if start is None else TEXT[start:end]
    return {
        "text": text,
        "explanation": "why",
        "severity": severity,
        "start": start,
        "end": end,
        "how": how,
    }


def row(identity: str, *errors: Any, **more: Any) -> dict[str, Any]:
    verdict = {
        "score": 3.0,
        "explanation": "e",
        "errors": list(errors),
        "failure": None,
    }
    return {
        "id": identity,
        "source": f"s{identity}",
        "output": TEXT,
        "verdict": verdict,
    } | more


@pytest.fixture
def file(tmp_path: Path):
    return lambda name, records: write(tmp_path / name, records)


def marks(identity: str, *errors: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": identity, "errors": list(errors)} | more


def test_rows_are_joined_by_id_and_counted(file) -> None:
    scored = file(
        "scored.jsonl",
        [
            row(
                "a",
                error(0, 4),
                error(None, None, 3, "ungrounded"),
                error(None, None, None, "omission"),
            ),
            row("b") | {"verdict": {"failure": "cut off", "errors": []}},
            row("c", error(0, 2)),
            row("d", error(0, 9)),
        ],
    )
    gold = file(
        "gold.jsonl",
        [marks("c"), marks("a", error(2, 8)), marks("b", error(0, 1)), marks("x")],
    )
    report = evaluate_spans(scored, gold)
    # a: 2 of 4 and 6 shared; c: 2 predicted, none of people; b failed and d was not read by anybody.
    assert report.agreement.micro.f1.value == pytest.approx(2 * 2 / (4 + 6 + 2))
    assert (report.rows, report.failed, report.unmarked, report.unscored) == (
        4,
        1,
        1,
        1,
    )
    assert (
        report.agreement.texts,
        report.agreement.unpredicted,
        report.agreement.ungrounded,
    ) == (2, 1, 1)
    assert report.human is None
    said = " ".join(report.notes)
    for words in (
        "1 of 4 rows have no verdict",
        "1 of 4 rows were not marked",
        "1 outputs that people marked were not scored",
        "1 errors of the judge were not found",
        "omissions",
    ):
        assert words in said


def test_the_table_and_the_dictionary(file, capsys: pytest.CaptureFixture[str]) -> None:
    scored = file(
        "sc[b]ored.jsonl",
        [row(str(n), error(0, 3 + n % 3), doc_id=f"d{n // 2}") for n in range(12)],
    )
    gold = file(
        "gold.jsonl", [marks(str(n), error(n % 2, 5, "Minor")) for n in range(12)]
    )
    report = evaluate_spans(scored, gold, rounds=200, seed=1)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["spans"]["documents"] == 6
    assert data["spans"]["micro"]["f1"]["low"] <= data["spans"]["micro"]["f1"]["value"]
    assert data["human_spans"] is None
    report.show()
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "sc[b]ored.jsonl",
        "all (micro)",
        "per text (macro)",
        "by severity (micro)",
        "6 documents, seed 1",
    ):
        assert words in shown
    f1 = report.agreement.micro.f1
    assert f"{f1.value:.3f} [{f1.low:.3f}, {f1.high:.3f}]" in shown


def test_people_agree_with_each_other(file, capsys: pytest.CaptureFixture[str]) -> None:
    scored = file("scored.jsonl", [row("a", error(0, 4)), row("b")])
    both = [
        marks("a", error(0, 4), annotator="x"),
        marks("a", error(0, 2), annotator="y"),
    ]
    gold = file("gold.jsonl", [*both, marks("b", annotator="x")])
    report = evaluate_spans(scored, gold)
    assert report.human is not None
    assert report.human.micro.f1.value == pytest.approx(4 / 6)
    # The judge against x: 4 of 4 and 4, against y: 2 of 4 and 2; means 3, 4, 3.
    assert report.agreement.micro.f1.value == pytest.approx(2 * 3 / (4 + 3))
    report.show()
    assert "people: all (micro)" in capsys.readouterr().out


def test_what_is_not_listed_is_left_out(file) -> None:
    scored = file(
        "scored.jsonl", [row("a", error(0, 4)), row("b"), row("c", error(0, 4))]
    )
    gold = file("gold.jsonl", [marks("a", error(0, 4))])
    assert evaluate_spans(scored, gold).agreement.texts == 1


def test_whatever_a_verdict_holds_is_counted_and_never_raises(file) -> None:
    odd = [
        "text",
        7,
        None,
        [],
        {},
        {"start": 0},
        {"start": "0", "end": "4"},
        {"start": 0, "end": 99},
        {"start": 4, "end": 0},
        {"start": True, "end": 4},
        {"text": 5, "severity": "bad", "start": 0, "end": 2, "how": "magic"},
        {"start": 0, "end": 2, "severity": 1e9},
    ]
    scored = file(
        "scored.jsonl",
        [
            row("a", *odd),
            row("b") | {"verdict": "no"},
            row("c") | {"verdict": {"errors": "all"}},
            row("d") | {"verdict": {}},
        ],
    )
    gold = file("gold.jsonl", [marks(i, error(0, 2)) for i in "abcd"])
    report = evaluate_spans(scored, gold)
    assert report.failed == 3
    assert (report.agreement.predicted, report.agreement.ungrounded) == (2, 6)
    assert "4 entries of verdicts' errors are not objects" in " ".join(report.notes)


def test_rows_the_judge_was_compiled_from_are_said(file) -> None:
    scored = file("scored.jsonl", [row("a", seen=True), row("b")])
    notes = evaluate_spans(scored, file("gold.jsonl", [marks("a"), marks("b")])).notes
    assert any("1 of the rows were used to compile the judge" in note for note in notes)
    assert any("does this judge give error spans?" in note for note in notes)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([{"id": "a", "output": TEXT}], "no row has a verdict"),
        ([row("a"), row("a")], "id 'a' is that of an earlier row"),
        ([row("z")], "no id in common"),
        ([row("a", output="abcdefghiX")], "'a' is marked in another text"),
        (
            [row("a") | {"verdict": {"failure": "f", "errors": []}}],
            "the judge failed on every row",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    file, records: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises((LabelsError, OptionError), match=words):
        evaluate_spans(
            file("scored.jsonl", records), file("gold.jsonl", [marks("a", output=TEXT)])
        )


# Benchmarks ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGESMITH_DATA", str(tmp_path))
    monkeypatch.setenv("JUDGESMITH_DATA_CACHE", str(tmp_path / "cache"))
    for key in ("mqm_ted_ende", "rotowire_accuracy"):
        file(
            f"{key}.jsonl",
            [
                {"id": i, "source": "s", "output": TEXT, "scores": {"overall": -1}}
                for i in "abc"
            ],
        )
    file(
        "mqm_ted_ende.spans.jsonl",
        [marks("a", {"target": "<v>abcd</v>efghij", "severity": "Major"})],
    )
    token = {"start": 1, "end": 1, "tokens": TEXT}
    file("rotowire_accuracy.spans.jsonl", [marks("a", token, tokenized=TEXT)])
    return tmp_path


def test_a_benchmark_that_lists_only_errors_has_read_all_its_outputs(
    file, folder: Path
) -> None:
    scored = file("scored.jsonl", [row("a", error(0, 4)), row("b", error(0, 2))])
    report = evaluate_spans(scored, "bench/mqm_ted_ende")
    assert (report.gold, report.agreement.texts, report.unscored) == (
        "bench/mqm_ted_ende",
        2,
        1,
    )
    assert report.agreement.micro.f1.value == pytest.approx(2 * 4 / (6 + 4))
    assert report.agreement.weighted.f1.value == report.agreement.micro.f1.value


def test_a_benchmark_with_tokens(file, folder: Path) -> None:
    report = evaluate_spans(
        file("scored.jsonl", [row("a", error(0, 5)), row("b")]),
        "bench/rotowire_accuracy",
    )
    assert report.agreement.micro.recall.value == 0.5
    assert "no severity-weighted values: people gave no severities" in report.notes


def test_a_benchmarks_other_text_or_lack_of_spans_is_refused(
    file, folder: Path
) -> None:
    scored = file("scored.jsonl", [row("a", output="other")])
    with pytest.raises(
        LabelsError, match="the output of 'a' is not the one that was judged"
    ):
        evaluate_spans(scored, "bench/mqm_ted_ende")
    with pytest.raises(LabelsError, match="the set has no spans"):
        evaluate_spans(scored, "bench/wiki_da")
    (folder / "mqm_ted_ende.spans.jsonl").unlink()
    with pytest.raises(LabelsError, match=r"mqm_ted_ende\.spans\.jsonl is not here"):
        evaluate_spans(scored, "bench/mqm_ted_ende")


def test_spans_gate_by_the_printed_interval(file, cli: Any) -> None:
    scored = file(
        "scored.jsonl",
        [row(f"r{i}", error(0, 4 + i % 3), error(8, 8 + i % 2)) for i in range(12)],
    )
    gold = file("gold.jsonl", [marks(f"r{i}", error(1, 6)) for i in range(12)])
    figures = cli("evaluate", scored, "--spans", gold, "--json").json["spans"]["micro"]
    for name in ("precision", "recall", "f1"):
        low = figures[name]["low"]
        passed = cli(
            "evaluate",
            scored,
            "--spans",
            gold,
            "--fail-under",
            f"{name}>={low - 1e-4:.5f}",
        )
        assert passed.code == 0
        assert f"passed {name}" in passed.err
        failed = cli(
            "evaluate",
            scored,
            "--spans",
            gold,
            "--fail-under",
            f"{name}>={low + 1e-4:.5f}",
            "--json",
        )
        assert failed.code == 1
        assert f"scored.jsonl, spans: {name} is" in failed.json["gate"]["reasons"][0]
    wrong = cli("evaluate", scored, "--spans", gold, "--fail-under", "kappa>=0.3")
    assert wrong.code == 2
    assert "of spans there are precision, recall, f1" in wrong.err
    aspect = cli("evaluate", scored, "--spans", gold, "--fail-under", "fluency:f1>=0.3")
    assert aspect.code == 2
    assert "of spans there are precision, recall" in aspect.err
