"""Files of every form that offices, spreadsheets and pandas write: read where there is one reading, else one error."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judgesmith.datasets.encoding import encoding_of
from judgesmith.datasets.formats import open_table
from judgesmith.datasets.loading import count_rows, iter_rows, read_labels
from judgesmith.errors import LabelsError

SCORES = [5, 1, 4, 2, 3, 5, 1, 4, 2]
THINGS = [
    "kettle",
    "bicycle",
    "umbrella",
    "passport",
    "mattress",
    "trumpet",
    "ladder",
    "blanket",
    "compass",
]
SOURCES = [f"Somebody asks whether the {thing} can be returned." for thing in THINGS]
OUTPUTS = [
    f"Yes; bring the {thing}, and the receipt, to window {n}."
    for n, thing in enumerate(THINGS)
]


def rows(
    scores: Sequence[Any] = SCORES, column: str = "score", **more: Any
) -> list[dict[str, Any]]:
    every = zip(SOURCES, OUTPUTS, scores, strict=True)
    return [
        {"id": f"r{n}", "source": s, "output": o, column: x} | more
        for n, (s, o, x) in enumerate(every)
    ]


def text(table: list[dict[str, Any]], sep: str = ",") -> str:
    return pd.DataFrame(table).to_csv(sep=sep, index=False)


def cells(words: Sequence[str], sep: str = ",", column: str = "score") -> str:
    """A CSV with these ratings, the first ones again where there are fewer than rows."""
    return text(rows([words[n % len(words)] for n in range(len(SCORES))], column), sep)


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def scores_of(path: Path) -> list[float]:
    """As labels and as rows to score, which must agree."""
    labels = read_labels(path)
    streamed = {row.output: row.scores.get("overall") for row, _ in iter_rows(path)}
    assert {
        row.output: row.scores[labels.aspect] for row in labels.rows
    }.items() <= streamed.items()
    return list(labels.scores)


def refused(path: Path) -> str:
    with pytest.raises(LabelsError) as error:
        read_labels(path)
    return str(error.value)


def lines_of(table: list[dict[str, Any]], end: str = "") -> str:
    return "".join(f"{json.dumps(row)}{end}\n" for row in table)


PLAIN = text(rows())
FRAME = pd.DataFrame(rows())
READ: dict[str, tuple[str, str | bytes]] = {
    "a first line that says the separator": (
        "l.csv",
        "\ufeffsep=;\r\n" + text(rows(), ";"),
    ),
    "sep= a comma": ("l.csv", "sep=,\n" + PLAIN),
    "sep= a bar": ("l.csv", "SEP=|\n" + text(rows(), "|")),
    "sep= in quotes": ("l.csv", '"sep=;"\n' + text(rows(), ";")),
    "sep= a sign that is no usual one": ("l.csv", "sep=^\n" + text(rows(), "^")),
    "bars": ("l.csv", text(rows(), "|")),
    "tabs under .csv": ("l.csv", text(rows(), "\t")),
    "semicolons under .tsv": ("l.tsv", text(rows(), ";")),
    "empty columns": ("l.csv", PLAIN.replace("\n", ",,\n")),
    "empty cells behind the rows": (
        "l.csv",
        PLAIN.replace("\n", ",,\n").replace("score,,", "score"),
    ),
    "rows of separators": ("l.csv", PLAIN + ",,,\n,,,\n"),
    "blanks around names": (
        "l.csv",
        PLAIN.replace("id,source,output,score", " id , source, output , score "),
    ),
    "an index without a name": ("l.csv", FRAME.drop(columns="id").to_csv()),
    "rows that end early": ("l.csv", text(rows(comment="")).replace(",\n", "\n")),
    "line breaks of Windows in cells": (
        "l.csv",
        PLAIN.replace(", and", ",\r\nand").replace("\n", "\r\n"),
    ),
    "a title with the cells of the header": ("l.csv", "Ratings of May,,,\n" + PLAIN),
    "a title alone": ("l.csv", "Ratings of May\n\n" + PLAIN),
    "a title with a comma": ("l.csv", "Ratings; May\n" + text(rows(), "|")),
    "packed by gzip": ("l.csv.gz", gzip.compress(PLAIN.encode())),
    "JSON lines packed by gzip": (
        "l.jsonl.gz",
        gzip.compress(lines_of(rows()).encode()),
    ),
    "UTF-16 without a mark": ("l.csv", PLAIN.encode("utf-16-le")),
    "UTF-16 with a mark": ("l.csv", PLAIN.encode("utf-16")),
    "commas behind JSON lines": ("l.jsonl", lines_of(rows(), ",")),
    "an array under .jsonl": ("l.jsonl", json.dumps(rows())),
    "an array on many lines under .jsonl": ("l.jsonl", json.dumps(rows(), indent=1)),
    "objects on many lines": (
        "l.jsonl",
        "\n".join(json.dumps(row, indent=1) for row in rows()),
    ),
    "JSON lines under .json": ("l.json", lines_of(rows())),
    "objects with commas between": (
        "l.json",
        ",\n".join(json.dumps(row, indent=1) for row in rows()),
    ),
    "rows in an object": ("l.json", json.dumps({"data": rows()})),
    "rows in an object of any name": ("l.json", json.dumps({"ratings of May": rows()})),
    "rows beside what is said of them": (
        "l.json",
        json.dumps({"meta": [{"page": 1}], "items": rows(), "total": 9}),
    ),
    "pandas: split": ("l.json", FRAME.to_json(orient="split")),
    "pandas: columns": ("l.json", FRAME.to_json(orient="columns")),
    "pandas: index": ("l.json", FRAME.to_json(orient="index")),
    "pandas: table": ("l.json", FRAME.to_json(orient="table")),
    "pandas: dict of lists": ("l.json", json.dumps(FRAME.to_dict("list"))),
}


@pytest.mark.parametrize("name", READ)
def test_the_form_of_a_file(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, *READ[name])
    assert scores_of(path) == SCORES
    assert (
        count_rows(path) in (None, len(SCORES), len(SCORES) + 2)
        or "lines" in name
        or "array" in name
    )


FORMS: dict[str, tuple[str, list[float], tuple[float, float] | None]] = {
    "percent": (cells(["100%", "20 %", "80%"]), [100, 20, 80], (0, 100)),
    "percent in words": (cells(["100 percent", "20 pct"]), [100, 20], (0, 100)),
    "percent in the header": (
        cells(["100", "20"], column="score (%)"),
        [100, 20],
        (0, 100),
    ),
    "shares under percent": (cells(["0.5", "1"], column="score (%)"), [0.5, 1], (0, 1)),
    "percent in both": (
        cells(["100 %", "20 %"], column="Score in %"),
        [100, 20],
        (0, 100),
    ),
    "full width": (cells(["５", "１", "４"]), [5, 1, 4], (1, 5)),
    "full width percent": (cells(["５０％", "１０％"]), [50, 10], (0, 100)),
    "Arabic": (cells(["٥", "١", "٤"]), [5, 1, 4], (1, 5)),
    "Arabic decimals": (cells(["٤٫٥", "١"]), [4.5, 1], (1, 5)),
    "Devanagari": (cells(["५", "१"]), [5, 1], (1, 5)),
    "zero width": (cells(["\u200b5", "1\ufeff", "\u20604"]), [5, 1, 4], (1, 5)),
    "direction marks": (cells(["\u200f5", "\u202a1\u202c"]), [5, 1], (1, 5)),
    "a blank that does not break": (cells(["5\u00a0", "\u20091"]), [5, 1], (1, 5)),
    "a minus sign": (cells(["\u22122", "3"]), [-2, 3], None),
    "a dash for a minus": (cells(["–2", "3"]), [-2, 3], None),
    "points": (cells(["5 points", "1 point", "4 pts"]), [5, 1, 4], (1, 5)),
    "Punkte": (cells(["5 Punkte", "1 Punkt"]), [5, 1], (1, 5)),
    "of": (cells(["4 of 5", "1 of 5"]), [4, 1], (1, 5)),
    "out of": (cells(["4 out of 10", "1 out of 10"]), [4, 1], (1, 10)),
    "von": (cells(["4 von 5", "1 von 5"]), [4, 1], (1, 5)),
    "keycaps": (cells(["5\ufe0f\u20e3", "1\ufe0f\u20e3"]), [5, 1], (1, 5)),
    "decimal commas": (cells(["4,5", "1", "2,25"], ";"), [4.5, 1, 2.25], (1, 5)),
    "decimal commas out of five": (cells(["4,5/5", "1/5"], ";"), [4.5, 1], (1, 5)),
    "decimal commas and percent": (
        cells(["85,5 %", "20,0 %"], ";"),
        [85.5, 20],
        (0, 100),
    ),
    "decimal commas and thousands": (cells(["1.234,5", "2,0"], ";"), [1234.5, 2], None),
    "points where ; separates": (cells(["4.5", "1.25"], ";"), [4.5, 1.25], (1, 5)),
    "thousands that are clear": (cells(["1,234.5", "1,000,000"]), [1234.5, 1e6], None),
    "Swiss thousands": (cells(["1'234", "2'000"]), [1234, 2000], None),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form_of_ratings(name: str, tmp_path: Path) -> None:
    content, expected, scale = FORMS[name]
    path = written(tmp_path, "l.csv", content)
    found = scores_of(path)
    assert found == [expected[n % len(expected)] for n in range(len(found))]
    assert scale is None or read_labels(path).scale == scale


DATE = "is a date, perhaps a rating such as 4/5"
REFUSED: dict[str, tuple[str, str]] = {
    "5-Apr": (cells(["5-Apr"]), DATE),
    "04-May beside numbers": (cells(["04-May", "3", "4"]), DATE),
    "Apr-05": (cells(["Apr-05", "3"]), DATE),
    "an ISO date": (cells(["2026-05-04", "3"]), DATE),
    "an ISO time": (cells(["2026-05-04T00:00:00", "3"]), DATE),
    "a German date": (cells(["04.05.2026", "3"], ";"), DATE),
    "a German month": (cells(["5. Mai", "4/5"]), DATE),
    "an American date": (cells(["4/5/2026", "4/5"]), DATE),
    "thousands or decimals": (
        cells(["5,000", "1,000"]),
        "could be a decimal comma or stand for 5000",
    ),
    "a decimal comma where commas separate": (
        cells(["4,5", "1"]),
        "could be a decimal comma or two ratings",
    ),
    "a point among decimal commas": (
        cells(["4,5", "1.234"], ";"),
        "has a point where other cells have a decimal comma",
    ),
    "ranges": (cells(["3-4", "1", "2"]), "is not a number"),
    "more or less": (cells(["5+", "4-", "3"]), "is not a number"),
    "about": (cells(["~4", "3", "2"]), "is not a number"),
    "plus and minus": (cells(["+", "-", "+"]), "'+' and '-' can say good and bad"),
    "two scales": (cells(["10/10", "1/5", "8/10"]), "is not one of 10/10, 8/10"),
    "percent and numbers": (cells(["85%", "3", "90%"]), "is not one of"),
    "hexadecimal": (cells(["0x64", "3", "2"]), "is not a number"),
    "underscores": (cells(["1_00", "3", "2"]), "is not a number"),
    "a mark within a number": (cells(["50\u200b0", "3", "2"]), "is not a number"),
    "a turn within a number": (cells(["5\u202e0", "3", "2"]), "is not a number"),
    "a footnote": (cells(["4²", "3", "2"]), "is not a number"),
    "letters": (cells(["A", "E", "D"], column="grade"), "words of no known scale"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_two_readings_are_one_error_for_the_column(name: str, tmp_path: Path) -> None:
    content, why = REFUSED[name]
    problem, *others = refused(written(tmp_path, "l.csv", content)).splitlines()
    assert why in problem
    assert others in (
        [],
        ["(rows are counted from 1 without the header)"],
    )
    assert "such cells" in problem or "words of no known scale" in problem


BROKEN: dict[str, tuple[str, str | bytes, str]] = {
    "a comma before the end": (
        "l.json",
        json.dumps(rows())[:-1] + ",]",
        "there is a comma before ']'; take it away",
    ),
    "a comma in an object": (
        "l.json",
        '[{"output": "a",}]',
        "there is a comma before '}'",
    ),
    "a cut line among lines": (
        "l.json",
        lines_of(rows()) + '{"output"',
        "line 10: malformed JSON",
    ),
    "lists without names": (
        "l.json",
        FRAME.to_json(orient="values"),
        "without names of columns",
    ),
    "columns of unequal length": (
        "l.json",
        '{"output": ["a", "b"], "score": [1]}',
        "not equally long",
    ),
    "objects of unknown names": (
        "l.json",
        '{"a": {"b": 1}, "c": {"b": 2}}',
        "orient='records'",
    ),
    "a row too long for its columns": (
        "l.json",
        '{"columns": ["output"], "data": [["a", 1]]}',
        "row 1: 2 cells",
    ),
    "a line break in a text": (
        "l.csv",
        PLAIN.replace('"Yes;', "Yes;\n").replace('"', ""),
        "cells, but the header has 4",
    ),
    "rows that end here and there": (
        "l.csv",
        "a,b,c,output,score\n1,2,3,x\n1,2,3\n",
        "3 cells, but the header has 5",
    ),
    "rows whose scores are missing here and there": (
        "l.csv",
        PLAIN + "r9,a source,an output\n",
        "row 10 (line 11)",
    ),
    "no gzip": ("l.csv.gz", PLAIN, "cannot be read"),
    "equal ids": (
        "l.jsonl",
        lines_of([row | {"id": 1} for row in rows()]),
        "id '1' is that of row 1 already",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_not_clear_is_named(name: str, tmp_path: Path) -> None:
    path, content, why = BROKEN[name]
    assert why in refused(written(tmp_path, path, content))


ENCODED = {
    "cp1252": "Où est le café à côté de l’hôtel? C’est là-bas, très près de l’église, et c’est 5 €.",
    "cp1251": "Где находится библиотека? Идите прямо и потом налево.",
    "cp932": "図書館はどこですか。まっすぐ行って左です。",
    "gb18030": "图书馆在哪里？一直往前走，然后左转，您会看到一个公园。",
    "cp949": "도서관은 어디에 있나요? 곧장 가서 왼쪽으로 도세요.",
    "cp1253": "Πού είναι η βιβλιοθήκη; Πηγαίνετε ευθεία και μετά αριστερά.",
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_another_encoding_is_found_and_said(encoding: str, tmp_path: Path) -> None:
    table = [row | {"output": f"{ENCODED[encoding]} {row['output']}"} for row in rows()]
    path = written(tmp_path, "l.csv", text(table, ";").encode(encoding))
    labels = read_labels(path)
    assert [row.output for row in labels.rows] == [row["output"] for row in table]
    assert (
        f"was read as {encoding}, which was found by its letters ("
        in labels.warnings[0]
    )


def test_what_is_utf8_is_looked_at_to_its_end(tmp_path: Path) -> None:
    path = written(tmp_path, "l.csv", b"a\n" * 2_000_000 + "é".encode())
    assert encoding_of(path) == ("utf-8-sig", None)


@pytest.mark.parametrize(
    "column",
    [
        *(
            "model_score",
            "llm_rating",
            "predicted_grade",
            "gpt4_score",
            "quality.suggestion",
            "judge_rating",
            "AI_score",
        ),
        *(
            "claude_label",
            "reward_score",
            "score.gpt4",
            "scores.model",
            "autograder_score",
            "predicted_label",
        ),
    ],
)
def test_a_machine_s_column_is_not_taken_for_people_s(
    column: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "l.jsonl", lines_of(rows(column=column)))
    assert f"the name of '{column}' says that a machine gave it" in refused(
        path
    ) or column.startswith("judge_")
    assert list(read_labels(path, columns={"score": column}).scores) == SCORES
    both = [row | {"annotator_a": 6 - row[column]} for row in rows(column=column)]
    assert list(read_labels(both).scores) == [6 - score for score in SCORES]
    assert all(not row.scores for row, _ in iter_rows(path))


def test_a_rating_of_what_a_machine_wrote_is_taken_with_a_note() -> None:
    labels = read_labels(rows(column="AI answer rating"))
    assert list(labels.scores) == SCORES
    assert any("whose name speaks of a machine" in note for note in labels.warnings)
    assert not any(
        "machine" in note for note in read_labels(rows(column="user_rating")).warnings
    )


ARROW: dict[str, Callable[[], Any]] = {
    "pyarrow": lambda: pytest.importorskip("pyarrow").Table.from_pylist(rows()),
    "a batch": lambda: pytest.importorskip("pyarrow").RecordBatch.from_pylist(rows()),
    "a reader": lambda: (
        pytest.importorskip("pyarrow").Table.from_pylist(rows()).to_reader()
    ),
    "polars": lambda: pytest.importorskip("polars").DataFrame(rows()),
    "duckdb": lambda: pytest.importorskip("duckdb").from_arrow(
        pytest.importorskip("pyarrow").Table.from_pylist(rows())
    ),
}


@pytest.mark.parametrize("name", ARROW)
def test_tables_that_arrow_reads(name: str) -> None:
    assert list(read_labels(ARROW[name]()).scores) == SCORES
    assert [row.output for row, _ in iter_rows(ARROW[name]())] == OUTPUTS


def test_notes_tell_of_rows_that_end_early(tmp_path: Path) -> None:
    table = open_table(
        written(tmp_path, "l.csv", text(rows(comment="")).replace(",\n", "\n"))
    )
    assert len(list(table.records)) == len(SCORES)
    assert table.notes == [
        "l.csv: 9 rows end before 'comment', which was taken as empty there"
    ]


def test_a_decimal_comma_has_a_point_where_its_file_is_left(tmp_path: Path) -> None:
    path = written(
        tmp_path, "l.csv", cells(["4,5", "1,5"], ";").replace("Yes;", "Yes, 4,5;")
    )
    records = [record for _, record in iter_rows(path)]
    assert {record["score"] for record in records} == {"4.5", "1.5"}
    assert all("Yes, 4,5;" in record["output"] for record in records)


def test_raters_who_split_are_counted_apart() -> None:
    both = [("pass", "fail"), ("pass", "pass"), ("fail", "fail")] * 3
    table = [
        row | {"rater_1": a, "rater_2": b}
        for row, (a, b) in zip(rows(), both, strict=True)
    ]
    table = [
        {name: cell for name, cell in row.items() if name != "score"} for row in table
    ]
    labels = read_labels(table)
    assert sorted(set(labels.scores)) == [0, 0.5, 1]
    assert any(
        "split half and half on 3 of 9 outputs (rows r0, r3, r6)" in note
        for note in labels.warnings
    )


@pytest.mark.parametrize(
    "said",
    [
        {"content": None, "refusal": "I cannot help with {}."},
        {"content": "", "refusal": "I cannot help with {}."},
        {"refusal": "I cannot help with {}."},
        {"content": [{"type": "refusal", "refusal": "I cannot help with {}."}]},
    ],
)
def test_a_refusal_is_what_the_assistant_says(said: dict[str, Any]) -> None:
    table = []
    for source, thing, score in zip(SOURCES, THINGS, SCORES, strict=True):
        turn = json.loads(
            json.dumps({"role": "assistant", **said}).replace("{}.", f"{thing}.")
        )
        table.append(
            {"messages": [{"role": "user", "content": source}, turn], "score": score}
        )
    assert [row.output for row in read_labels(table).rows] == [
        f"I cannot help with {thing}." for thing in THINGS
    ]


def _nested(name: str, cell: Any) -> list[dict[str, Any]]:
    """Rows with a machine's score, and people's ratings in an object or list. cell: by the rating."""
    return [
        {
            "prompt": f"Question {n}",
            "response": f"w{n} w{n * 7} w{n * 13}",
            "llm_rating": 5 - n % 5,
            name: cell(n % 5 + 1),
        }
        for n in range(12)
    ]


@pytest.mark.parametrize(
    ("name", "cell", "raters"),
    [
        ("human_labels", lambda v: [{"by": "a", "value": v}], ("a",)),
        (
            "human_labels",
            lambda v: [{"by": "a", "value": v}, {"by": "b", "value": v}],
            ("a", "b"),
        ),
        ("human_scores", lambda v: [v, v], ()),
        ("reviewer_ratings", lambda v: {"a": {"v": v}}, ("a",)),
        ("reviewer_ratings", lambda v: {"a": v, "b": v}, ("a", "b")),
        (
            "annotators",
            lambda v: [{"name": "x", "score": v, "comment": "so so", "worker_id": 17}],
            ("x",),
        ),
        (
            "human",
            lambda v: json.dumps(
                {"rating": v, "annotator": "x", "timestamp": 1730000000}
            ),
            ("x",),
        ),
        ("expert_grades", lambda v: [{"name": "x", "fluency": v}], ("x",)),
    ],
)
def test_peoples_nested_ratings_beside_a_machine_s_are_read(
    name: str, cell: Any, raters: tuple[str, ...]
) -> None:
    labels = read_labels(_nested(name, cell))
    assert labels.scores.tolist() == [n % 5 + 1 for n in range(12)]
    assert labels.rows[0].raters.get("overall", ()) == raters
    assert not any("machine" in note for note in labels.warnings)
    assert [row.scores for row, _ in iter_rows(_nested(name, cell))] == [
        row.scores for row in labels.rows
    ]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("human_labels", lambda v: [{"by": "a", "value": v, "confidence": 0.5}]),
        ("human_labels", lambda v: [{"by": "a", "fluency": v, "coherence": 3}]),
        ("human_labels", lambda v: [{"text": "a word", "offset": v}]),
        ("annotators", lambda v: [{"name": "x", "age": v}]),
        ("reviewer_ratings", lambda v: {"fluency": {"a": v, "b": v}}),
        ("llm_labels", lambda v: [{"by": "gpt", "value": v}]),
        ("human_vs_llm_ratings", lambda v: [{"by": "a", "value": v}]),
    ],
)
def test_nested_ratings_without_one_reading_are_not_guessed(
    name: str, cell: Any
) -> None:
    with pytest.raises(LabelsError, match="no column with scores of people"):
        read_labels(_nested(name, cell))


def test_two_columns_of_people_are_asked_about() -> None:
    rows = [
        row | {"expert_scores": [3 - len(row["prompt"]) % 2]}
        for row in _nested("human_labels", lambda v: [v])
    ]
    with pytest.raises(
        LabelsError, match="'human_labels' and 'expert_scores' could each be the score"
    ):
        read_labels(rows)


QUALTRICS = """ResponseId,answer,rating
Response ID,The reply shown,How good was it?
"{""ImportId"":""_recordId""}","{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"
"""


def test_lines_below_the_header_that_describe_the_columns(tmp_path: Path) -> None:
    lines = [f"R{n},Take tram {n} to w{n * 7}.,{n % 5 + 1}\n" for n in range(12)]
    path = written(tmp_path, "l.csv", QUALTRICS + "".join(lines))
    labels = read_labels(path)
    assert labels.scores.tolist() == [n % 5 + 1 for n in range(12)]
    assert "l.csv: 2 line(s) below the header were left out" in labels.warnings


def test_texts_that_a_csv_writes_as_formulas(tmp_path: Path) -> None:
    lines = [
        f'"=""{n:03}""","=""Say """"{n}"""" to w{n * 7}.""","=""{n % 5 + 1}"""\n'
        for n in range(12)
    ]
    labels = read_labels(
        written(tmp_path, "l.csv", '"=""id""",answer,score\n' + "".join(lines))
    )
    assert (labels.rows[1].id, labels.rows[1].output) == ("001", 'Say "1" to w7.')
    assert labels.scores.tolist() == [n % 5 + 1 for n in range(12)]


def test_outputs_of_promptfoo_stand_behind_a_verdict(tmp_path: Path) -> None:
    marks = ("[PASS] ", "[FAIL] (0.10) Expected a number\n---\n", "[PASS] (1.00) ", "")
    lines = [
        f'q{n},"{marks[n % 4]}Take tram {n} to w{n * 7}.",{n % 5 + 1}\n'
        for n in range(12)
    ]
    path = written(
        tmp_path,
        "l.csv",
        'city,"[openai:gpt-4.1] Answer {{city}}",score\n' + "".join(lines),
    )
    outputs = [row.output for row in read_labels(path).rows]
    assert outputs == [f"Take tram {n} to w{n * 7}." for n in range(12)]
    lines[3] = lines[3].replace('"Take', '"[ERROR] Timeout. Take')
    path.write_text(
        'city,"[openai:gpt-4.1] Answer {{city}}",score\n' + "".join(lines),
        encoding="utf-8",
    )
    with pytest.raises(LabelsError, match="the output is empty"):
        read_labels(path)


@pytest.mark.parametrize(
    "cells", [("WAHR", "FALSCH"), ("vrai", "faux"), ("ja", "nein"), ("Sí", "No")]
)
def test_true_and_false_in_other_languages(cells: tuple[str, str]) -> None:
    table = [
        {"Antwort": f"Nimm Tram {n} zu w{n * 7}.", "ok": cells[n % 3 == 0]}
        for n in range(12)
    ]
    assert read_labels(table).scores.tolist() == [float(n % 3 > 0) for n in range(12)]
    faults = [{"Antwort": row["Antwort"], "Is it toxic?": row["ok"]} for row in table]
    with pytest.raises(LabelsError, match="names a fault"):
        read_labels(faults)


def test_columns_of_texts_without_blanks_are_found() -> None:
    texts = [
        "新しいやかんを本日発送いたします。",
        "ตรวจสอบตารางเวลาด้วยตัวเอง",
        "请把滚筒擦干净再放纸。",
    ]
    table = [{"bot_text": f"{texts[n % 3]}{n}", "rating": n % 5 + 1} for n in range(12)]
    assert read_labels(table).rows[0].output == table[0]["bot_text"]


@pytest.mark.parametrize(
    "name",
    [
        "Ticket-Nr.",
        "Ticketnummer",
        "Fallnummer",
        "Vorgangs-Nr.",
        "Case number",
        "Ticket #",
    ],
)
def test_numbers_of_tickets_are_ids(name: str) -> None:
    table = [
        {name: f"HD-{n}", "Antwort": f"Nimm Tram {n} zu w{n * 7}.", "Bewertung": n % 5}
        for n in range(12)
    ]
    assert read_labels(table).rows[3].id == "HD-3"


@pytest.mark.parametrize("name", ["No.", "Nr", "Phone number", "Hausnummer", "Order #"])
def test_other_numbers_are_no_ids(name: str) -> None:
    table = [
        {
            name: f"{n + 70}",
            "Antwort": f"Nimm Tram {n} zu w{n * 7}.",
            "Bewertung": n % 5,
        }
        for n in range(12)
    ]
    assert read_labels(table).rows[3].id == "4"


def test_what_is_said_of_rows_has_their_ids() -> None:
    table = [
        {
            "Ticket-Nr.": f"HD-{n}",
            "Antwort": f"Nimm Tram {n % 8} zu w{n % 8 * 7}.",
            "Bewertung": n % 5 + 1 if n else "",
            "Bemerkung": "zu knapp und zu spät",
        }
        for n in range(12)
    ]
    labels = read_labels(table)
    assert any("rows HD-1 and HD-9" in note for note in labels.warnings)
    assert labels.understood()["skipped_rows"] == [
        {"row": 1, "id": "HD-0", "reason": "no rating"}
    ]
    assert labels.rows[0].why("overall") == ("zu knapp und zu spät",)


def test_ids_and_versions_are_known_by_their_cells() -> None:
    table = [
        {
            "Ticket-ID": f"HD-{n}",
            "Bot reply": f"Take tram {n} to w{n * 7}.",
            "Rating": n % 5 + 1,
            "Bot version": f"v{n % 2}",
        }
        for n in range(12)
    ]
    labels = read_labels(table)
    assert (labels.rows[3].id, labels.rows[3].system) == ("HD-3", "v1")
    assert [row.id for row, _ in iter_rows(table)] == [row.id for row in labels.rows]
    for row in table:
        row |= {"Ticket-ID": "HD-1", "Bot version": row["Ticket-ID"]}
    labels = read_labels(table)
    assert (labels.rows[3].id, labels.rows[3].system) == ("4", None)
