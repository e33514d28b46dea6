"""`judgesmith evaluate`: sources, joins, outputs, the gate's exit code."""

from __future__ import annotations

import html
import itertools
import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import Result
from json_lines import write
from typer.testing import CliRunner

from judgesmith.cli.main import app
from judgesmith.errors import JudgesmithError, LabelsError, OptionError
from judgesmith.evaluating.judges import Spec
from judgesmith.programs.models.lm import Connection
from judgesmith.rooms.discerning.judging import open_subject
from judgesmith.rooms.discerning.options import DiscernOptions

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def rows(n: int = 60, noise: float = 1.0, **more: Any) -> list[dict[str, Any]]:
    rng, made = random.Random(0), []
    for i in range(n):
        human = rng.randint(1, 5)
        verdict = {
            "score": human + noise * rng.gauss(0, 1),
            "percent": 50.0,
            "explanation": f"because {i}",
            "failure": None,
        }
        row = {
            "id": f"r{i}",
            "source": f"document {i % 12}",
            "output": "word " * rng.randint(3, 30) + str(i),
        }
        row |= {
            "reference": f"word word {i}",
            "system": f"s{i // 12}",
            "score": human,
            "verdict": verdict,
            "seen": False,
            "doc_id": f"d{i % 12}",
        }
        made.append(row | more)
    return made


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    return write(tmp_path / "mine.scored.jsonl", rows())


Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def invoke(*arguments: object) -> Result:
        result = CliRunner().invoke(
            app, ["evaluate", "--rounds", "60", *map(str, arguments)]
        )
        if isinstance(result.exception, JudgesmithError):
            raise result.exception
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        return result

    return invoke


def as_json(run: Run, *arguments: object) -> dict[str, Any]:
    return json.loads(run(*arguments, "--json").stdout)


# Sources -------------------------------------------------------------------------------------------------------------


def test_a_scored_file_whole_and_without_a_system(run: Run, scored: Path) -> None:
    found = as_json(run, scored, "--human", "score")
    cell = found["judges"]["mine"]["score"]["pooled"]["spearman"]
    assert cell["n"] == 60
    assert cell["low"] < cell["value"] < cell["high"]
    assert set(found["judges"]["mine"]["score"]) == {
        "pooled",
        "within",
        "sample",
        "system",
    }
    assert found["rows"] == 60
    shown = run(scored).stdout
    for words in ("60 rows", "11 documents, 1 skipped", "5 systems", "95% intervals"):
        assert words in shown
    found = as_json(run, scored, "--without-system", "s0")
    assert found["judges"]["mine"]["overall"]["pooled"]["spearman"]["n"] == 48
    assert found["judges"]["mine"]["overall"]["system"]["spearman"]["n"] == 4
    other = as_json(run, scored, "--human", "score", "--new-systems")["judges"]["mine"][
        "score"
    ]["pooled"]["spearman"]
    assert other["low"] < cell["low"] < cell["high"] < other["high"]
    assert other["value"] == cell["value"]
    assert (
        "95% intervals over documents and systems"
        in run(scored, "--new-systems").stdout
    )


def test_a_csv_of_scores_gives_the_same_numbers(
    run: Run, scored: Path, tmp_path: Path
) -> None:
    plain = [row | {"judge_score": row["verdict"]["score"]} for row in rows()]
    pd.DataFrame(plain).drop(columns="verdict").to_csv(
        tmp_path / "flat.csv", index=False
    )
    nested, flat = as_json(run, scored), as_json(run, tmp_path / "flat.csv")
    assert nested["judges"]["mine"] == flat["judges"]["flat"]


def test_columns_paths_and_reference_metrics_are_judges(run: Run, scored: Path) -> None:
    pytest.importorskip("rouge_score")
    found = as_json(
        run,
        scored,
        "metric/rouge1",
        "--judge",
        "raw=verdict.percent",
        "--judge",
        "judge=verdict.score",
    )
    assert list(found["judges"]) == ["raw", "judge", "metric/rouge1"]
    assert (
        found["judges"]["raw"]["overall"]["pooled"]["pearson"]["value"] is None
    )  # it is always 50
    assert {(r["a"], r["b"]) for r in found["comparisons"]} == {
        *itertools.combinations(found["judges"], 2)
    }


def test_several_raters_give_a_ceiling(run: Run, tmp_path: Path) -> None:
    rng = random.Random(1)
    made = [
        {k: v for k, v in row.items() if k != "score"}
        | {f"rater_{k}": row["score"] + rng.choice((0, 0, 1)) for k in (1, 2)}
        for row in rows()
    ]
    found = as_json(run, write(tmp_path / "rated.jsonl", made))
    assert found["way"][0]["low"] < found["way"][0]["value"] < found["way"][0]["high"]
    assert found["ceiling"]["overall"]["raters"] == 2
    assert 0.5 < found["ceiling"]["overall"]["alpha"] < 1
    assert 0.5 < found["ceiling"]["overall"]["pooled"]["spearman"]["value"] < 1


def test_annotators_beside_the_file_and_a_judge_for_each_aspect(
    run: Run, tmp_path: Path
) -> None:
    made = [
        {k: v for k, v in row.items() if k not in ("verdict", "score")}
        | {"scores": {"fluency": row["score"], "relevance": 6 - row["score"]}}
        | {"m_fluency": row["score"] + 0.01 * i, "one": i}
        for i, row in enumerate(rows())
    ]
    write(tmp_path / "set.jsonl", made)
    write(
        tmp_path / "set.annotators.jsonl",
        [
            {"id": r["id"], "annotations": [{"fluency": r["scores"]["fluency"]}] * 2}
            for r in made[:40]
        ],
    )
    found = as_json(
        run, tmp_path / "set.jsonl", "--judge", "m=m_{aspect}", "--judge", "one"
    )
    assert list(found["judges"]["m"]) == ["fluency"]  # m has no column for relevance
    assert list(found["judges"]["one"]) == ["fluency", "relevance", "average"]
    assert found["judges"]["m"]["fluency"]["pooled"]["spearman"]["value"] > 0.9
    assert found["ceiling"]["fluency"]["pooled"]["spearman"]["value"] == pytest.approx(
        1
    )


def test_two_files_are_joined_by_id(run: Run, scored: Path, tmp_path: Path) -> None:
    other = rows(noise=4.0)
    random.Random(2).shuffle(other)
    found = as_json(run, scored, write(tmp_path / "other.jsonl", other))
    assert list(found["judges"]) == ["mine", "other"]
    alone = as_json(run, tmp_path / "other.jsonl")
    pooled = [
        f["judges"]["other"]["overall"]["pooled"]["kendall"]["value"]
        for f in (found, alone)
    ]
    assert pooled[0] == pytest.approx(pooled[1])  # the order of the rows says nothing


def test_values_beside_the_file_are_columns_of_it(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "set.jsonl", rows())
    values = [
        {"id": r["id"], "metrics": {"m.overall": r["score"], "score": -i}}
        for i, r in enumerate(rows()[:50])
    ]
    beside = write(tmp_path / "set.metrics.jsonl", values)
    cell = as_json(run, file, "--judge", "m.{aspect}")["judges"]["m.{aspect}"][
        "overall"
    ]["pooled"]["spearman"]
    assert (cell["value"], cell["failed"]) == (
        pytest.approx(1),
        10,
    )  # the file's own column `score` is the human one
    write(beside, [*values, values[0]])
    with pytest.raises(
        LabelsError,
        match=r"set\.metrics\.jsonl, line 51: expected .*with an id of its own",
    ):
        run(file, "--judge", "m.overall")


def test_ids_on_one_side_only_are_said_and_count_as_failed(
    run: Run, scored: Path, tmp_path: Path
) -> None:
    other = rows()[:50] + [r | {"id": f"other {i}"} for i, r in enumerate(rows()[50:])]
    found = as_json(run, scored, write(tmp_path / "other.jsonl", other))
    assert found["judges"]["other"]["overall"]["pooled"]["spearman"]["failed"] == 10
    (note,) = [n for n in found["notes"] if "other.jsonl" in n]
    assert (
        "10 of 60 rows of mine.scored.jsonl are not in other.jsonl (first: 'r50')"
        in note
    )
    assert "10 rows of other.jsonl are not in mine.scored.jsonl" in note


METRIC = "metric/bertscore:some/model,layer=9"


def test_signs_in_a_metrics_options_are_its_own_in_discern_too() -> None:
    for text, *spec in (
        (METRIC, METRIC, METRIC),
        (f"mine={METRIC}", "mine", METRIC),
        ("mine=a.b", "mine", "a.b"),
    ):
        assert Spec.parse(text) == Spec(*spec)
    subject = open_subject(METRIC, None, Connection(), DiscernOptions())
    made: Any = subject.scorers["score"]
    assert (subject.name, made.chosen.settings()["layer"]) == (METRIC, 9)


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joined", "change", "says"),
    [
        (False, lambda r: r[:3], "3 rows have one"),
        (False, lambda r: [x | {"score": 3} for x in r], "all 60 values are 3"),
        (
            False,
            lambda r: [x | {"score": None} for x in r],
            "no column with human ratings",
        ),
        (
            False,
            lambda r: [*r[:-1], r[-1] | {"score": math.inf}],
            "row 60 (r59), column 'score': inf is not a finite number",
        ),
        (
            False,
            lambda r: [*r[:-1], r[-1] | {"verdict": {"score": math.inf}}],
            "row 60 (r59), column 'verdict.score': inf is not",
        ),
        (
            False,
            lambda r: [*r[:-1], r[-1] | {"verdict": {"score": "good"}}],
            "row 60 (r59), column 'verdict.score': 'good' is no",
        ),
        (
            False,
            lambda r: [*r, r[0] | {"output": "other"}],
            "id 'r0' is that of row 1 already",
        ),
        (
            True,
            lambda r: [x | {"id": "z" + x["id"]} for x in r],
            "no id of mine.scored.jsonl is in other.jsonl",
        ),
        (
            True,
            lambda r: [x | {"output": "different"} for x in r],
            "id 'r0' is another output in other.jsonl",
        ),
        (
            True,
            lambda r: [{k: v for k, v in x.items() if k != "verdict"} for x in r],
            "no row has a verdict",
        ),
    ],
)
def test_unusable_files(
    run: Run, scored: Path, tmp_path: Path, joined: bool, change: Any, says: str
) -> None:
    path = write(tmp_path / "other.jsonl", change(rows()))
    with pytest.raises(LabelsError, match=re.escape(says)):
        run(*[scored] * joined, path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--human", "nope"], "no column or aspect 'nope'"),
        (["--human", "verdict.nope"], "no row has 'verdict.nope'"),
        (["--judge", "nope"], "no column 'nope'"),
        (["--judge", "=x"], "--judge '=x' is not of the form"),
        (["--judge", "verdict.score", "--judge", "verdict.score"], "is named twice"),
        (["--judge", "metric/nist"], "no metric metric/nist"),
        (
            ["--without-system", "s9"],
            "--without-system 's9': the systems of mine.scored.jsonl are s0, s1",
        ),
        (["-o", "report.pdf"], "name it .html"),
        (["--fail-under", "rho>=0.4"], "not of the form"),
    ],
)
def test_options_that_cannot_be_met(
    run: Run, scored: Path, arguments: list[str], says: str
) -> None:
    with pytest.raises((LabelsError, OptionError), match=re.escape(says)):
        run(scored, *arguments)


@pytest.mark.parametrize("empty", [None, "", "  "])
def test_a_column_without_a_number_is_not_called_missing(
    run: Run, tmp_path: Path, empty: Any
) -> None:
    path = write(
        tmp_path / "rows.jsonl",
        [row | {"j": empty, "nested": {"score": empty}} for row in rows()],
    )
    for column in ("j", "nested.score"):
        with pytest.raises(
            LabelsError,
            match=f"column '{column}' has no number in any of {len(rows())} rows",
        ):
            run(path, "--judge", column)
    with pytest.raises(LabelsError, match="there is no column 'k'; there are"):
        run(path, "--judge", "k")


# Output --------------------------------------------------------------------------------------------------------------


def test_the_gate_is_the_exit_code(run: Run, scored: Path, tmp_path: Path) -> None:
    passed, failed = (
        run(scored, "--fail-under", "spearman>=0.2"),
        run(scored, "--fail-under", "sample.spearman>=0.99"),
    )
    assert (passed.exit_code, failed.exit_code) == (0, 1)
    assert "passed spearman>=0.2" in passed.stderr
    (line,) = failed.stderr.strip().splitlines()
    assert line.startswith(
        "FAILED sample.spearman>=0.99: mine, overall: sample spearman is 0."
    )
    gaps = [
        r | ({"verdict": {"score": None, "failure": "x"}} if i % 10 == 0 else {})
        for i, r in enumerate(rows())
    ]
    path = write(tmp_path / "gaps.jsonl", gaps)
    low = run(path, "--fail-under", "q>=0", "--json")
    assert low.exit_code == 1
    assert (
        "coverage 90.0% is below 95.0%" in json.loads(low.stdout)["gate"]["reasons"][0]
    )
    assert run(path, "--fail-under", "q>=0", "--min-coverage", "0.9").exit_code == 0
    # It computes what it needs.
    result = run(
        scored,
        "--coefficient",
        "pearson",
        "--level",
        "pooled",
        "--fail-under",
        "sample.acc_eq>=0.2",
    )
    assert result.exit_code == 0


def test_the_gate_as_a_comment_for_a_pull_request(
    run: Run, scored: Path, tmp_path: Path
) -> None:
    passed, failed = tmp_path / "passed.md", tmp_path / "failed.md"
    name = "<b>@all</b> [x](y)|z `c`"
    given = ("--judge", f"{name}=verdict.score", "--level", "pooled")
    assert (
        run(
            scored, *given, "--fail-under", "spearman>=0.2", "--markdown", passed
        ).exit_code
        == 0
    )
    assert (
        run(
            scored, *given, "--fail-under", "spearman>=0.99", "--markdown", failed
        ).exit_code
        == 1
    )
    lines = passed.read_text(encoding="utf-8").splitlines()
    assert lines[2] == "**passed** spearman&#62;=0.2"
    (row,) = (line for line in lines if line.startswith("| &#"))
    assert html.unescape(row).startswith(
        f"| {name} | overall | pooled | 60 rows | 0 | 0."
    )
    assert re.search(
        r"\| 0\.\d+ \[0\.\d+, 0\.\d+\] \|", row
    )  # the interval is ours, so it stands as it is
    assert not set("<@`(") & set(row)
    (head,) = (line for line in lines if line.startswith("| judge"))
    assert len(re.findall(r"(?<!&)\|", row)) == row.count("|") == head.count("|")
    said = failed.read_text(encoding="utf-8")
    assert said.splitlines()[2] == "**failed** spearman&#62;=0.99"
    assert "the lower end of its interval" in html.unescape(said)
    run(scored, *given, "--markdown", passed)
    assert "passed" not in passed.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("column", "value", "options", "problem"),
    [
        ("human", -99, (), "-99 often stands for no answer"),
        ("human", 50, ("--scale", "1", "5"), "50 is outside 1..5"),
        ("human (1 = best)", 1, (), "the lowest score is the best"),
    ],
)
def test_human_ratings_that_cannot_be_meant_so_are_refused(
    tmp_path: Path, column: str, value: int, options: tuple[str, ...], problem: str
) -> None:
    table = [
        {"output": f"text {n}", column: 1 + n % 5, "metric": n % 7} for n in range(40)
    ]
    table[3][column] = value
    file = write(tmp_path / "rated.jsonl", table)
    command = ["evaluate", str(file), "--judge", "metric", "--human", column]
    done = CliRunner().invoke(app, [*command, *options])
    assert done.exit_code
    assert problem in str(done.exception)
