"""Every format in, every mistake named with file, row, column and advice."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judgesmith.datasets import loading as loading_module
from judgesmith.datasets.loading import (
    count_rows,
    iter_rows,
    read_compared,
    read_labels,
)
from judgesmith.errors import LabelsError, OptionError

SCORES = [1, 2, 3, 4, 5, 4, 3, 2]


def records(**changes: Any) -> list[dict[str, Any]]:
    """Eight good rows; a change `score_3=7` sets a cell, here the score of row 3."""
    rows: list[dict[str, Any]] = [
        {"source": f"text {n}", "output": f"summary {n}", "score": score}
        for n, score in enumerate(SCORES, 1)
    ]
    for key, value in changes.items():
        column, row = key.rsplit("_", 1)
        rows[int(row) - 1][column] = value
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows in the format that the name's ending says."""
    frame = pd.DataFrame(rows)
    kind = path.suffix.removeprefix(".")
    if kind == "parquet":
        frame.to_parquet(path)
        return path
    text = {
        "csv": lambda: frame.to_csv(index=False),
        "tsv": lambda: frame.to_csv(index=False, sep="\t"),
        "json": lambda: json.dumps(rows),
        "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in rows),
    }[kind]()
    path.write_text(text)
    return path


def message(source: Any, **options: Any) -> str:
    with pytest.raises(LabelsError) as error:
        read_labels(source, **options)
    return str(error.value)


def from_text(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


FORMATS = ["l.csv", "l.tsv", "l.json", "l.jsonl", "l.x.jsonl", "l.parquet", "L.v2.csv"]


class TestFormats:
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_format_gives_the_same_rows(self, tmp_path: Path, name: str) -> None:
        labels = read_labels(write(tmp_path / name, records()), scale=(1, 5))
        assert labels.origin == name
        assert labels.scores.tolist() == SCORES
        assert [row.output for row in labels.rows] == [
            f"summary {n}" for n in range(1, 9)
        ]
        assert [row.id for row in labels.rows] == [str(n) for n in range(1, 9)]
        assert (
            labels.fingerprint() == read_labels(records(), scale=(1, 5)).fingerprint()
        )
        assert (labels.scale, labels.scale_given, labels.warnings) == (
            (1.0, 5.0),
            True,
            (),
        )
        assert str(tmp_path) not in repr(labels)  # no path of the machine is kept
        assert count_rows(tmp_path / name) == (None if name.endswith(".json") else 8)

    @pytest.mark.parametrize(
        "source",
        [pd.DataFrame(records()), iter(records())],
        ids=["DataFrame", "iterator"],
    )
    def test_tables_whole_or_up_to_a_limit(self, source: Any) -> None:
        labels = read_labels(source)
        assert (labels.origin, labels.scores.tolist()) == ("<table>", SCORES)
        assert len(read_labels(records(), limit=4, min_rows=4)) == 4

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("name", ["l.csv", "l.jsonl", "l.json"])
    def test_encodings_with_a_byte_order_mark(
        self, tmp_path: Path, name: str, encoding: str
    ) -> None:
        path = write(tmp_path / name, records(output_1="Grüße, 世界 😀"))
        path.write_bytes(path.read_bytes().decode().encode(encoding))
        labels = read_labels(path)
        assert (labels.rows[0].source, labels.rows[0].output) == (
            "text 1",
            "Grüße, 世界 😀",
        )

    def test_long_texts_with_quoted_line_breaks_and_delimiters(
        self, tmp_path: Path
    ) -> None:
        text = (
            'a "quoted", text\nover two lines' + "x" * 200_000
        )  # more than the csv module allows
        path = write(tmp_path / "l.csv", records(output_2=text))
        assert read_labels(path).rows[1].output == text
        assert count_rows(path) == 8

    def test_the_common_format(self, tmp_path: Path) -> None:
        rows = [
            {
                "id": f"r{n}",
                "task": "dialogue",
                "source": f"hi {n // 2}",
                "context": "fact",
                "output": f"o{n}",
                "reference": "ref",
                "system": "A",
                "doc_id": f"d{n // 2}",
                "group": "g" if n < 4 else f"g{n // 2}",
                "scores": {"coherence": n % 3 + 1.0, "overall": n % 5 + 1.0},
                "zscores": {"coherence": -9.0},
            }
            for n in range(8)
        ]
        labels = read_labels(
            write(tmp_path / "x.jsonl", rows), aspect="coherence", scale=(1, 3)
        )
        assert labels.scores.tolist() == [1, 2, 3, 1, 2, 3, 1, 2]
        first = labels.rows[0]
        assert (first.id, first.context, first.reference, first.system) == (
            "r0",
            "fact",
            "ref",
            "A",
        )
        assert (first.doc_id, labels.groups) == (
            "d0",
            ["g"] * 4 + ["g2", "g2", "g3", "g3"],
        )
        assert read_labels(tmp_path / "x.jsonl").aspect == "overall"

    def test_duplicates_share_a_group_and_are_warned_of(self) -> None:
        rows = [
            {**row, "doc_id": f"d{n}"}
            for n, row in enumerate(records(source_5="text 2", output_5="summary 2"))
        ]
        labels = read_labels(rows, scale=(1, 5))
        assert labels.groups == ["d0", "d1", "d2", "d3", "d1", "d5", "d6", "d7"]
        assert labels.warnings == (
            "<table>: near-duplicates (1 equal row; case, white space, Unicode and punctuation are ignored; first:"
            " rows 2 and 5); they stay on one side of every split; the 8 rows are 7 groups",
            "<table>: rows 2 and 5 hold the same texts and have opposite ratings, 2 and 5; correct one, or let a third"
            " person decide",
        )


FLAT = [
    {"output": f"o{n}", "scores.flow": n % 2, "score_tone": n % 3} for n in range(8)
]


class TestAspectsAndScale:
    def test_several_aspects_need_a_choice(self) -> None:
        assert (
            message(FLAT)
            == "<table>: there are several aspects (flow, tone); pass --aspect NAME"
        )
        assert read_labels(FLAT, aspect="tone").scores.tolist() == [
            0,
            1,
            2,
            0,
            1,
            2,
            0,
            1,
        ]
        assert message(FLAT, aspect="x").endswith(
            "no aspect 'x'; pass --aspect with one of: flow, tone"
        )

    def test_a_plain_column_can_be_the_aspect_and_a_chosen_score_column_names_it(
        self,
    ) -> None:
        rows = [{"output": f"o{n}", "Fluency": n % 2, "score": 9} for n in range(8)]
        assert read_labels(rows, aspect="fluency").scores.tolist() == [0, 1] * 4
        rows = [{"output": f"o{n}", "q1": n % 2} for n in range(8)]
        assert read_labels(rows, columns={"score": "q1"}).aspect == "q1"
        assert (
            read_labels(rows, columns={"score": "q1"}, aspect="tone").aspect == "tone"
        )

    def test_an_empty_object_does_not_hide_the_aspect(self) -> None:
        rows = [
            {"output": f"o{n}", "scores": {"a": n % 2} if n != 4 else {}}
            for n in range(8)
        ]
        assert message(rows) == (
            "<table>: 7 of 8 rows are labels (no rating: row 5), at least 8 are needed; rate more rows"
        )

    def test_objects_of_named_raters_are_averaged_with_a_warning(self) -> None:
        rows = [
            {"output": f"o{n}", "score": {"ann": n % 3, "bob": 3}} for n in range(8)
        ]
        labels = read_labels(rows, scale=(0, 3))
        assert labels.scores[0] == 1.5  # (0 + 3) / 2
        assert labels.warnings == (
            "<table>, column 'score': the keys of its objects were taken as raters and averaged;"
            " if they are aspects, pass --columns scores=score",
        )
        assert (
            read_labels(rows, columns={"scores": "score"}, aspect="ann").scores[1]
            == 1.0
        )

    def test_an_inferred_scale_is_said(self) -> None:
        labels = read_labels(records())
        assert (labels.scale, labels.scale_given) == ((1.0, 5.0), False)
        assert labels.warnings == (
            "<table>: the scale was inferred as 1..5 from scores between 1 and 5;"
            " pass --scale LOW HIGH if that is wrong",
        )

    def test_single_ratings_count_for_the_scale(self) -> None:
        rows = [
            {**row, "score": [row["score"], 7]} for row in records()
        ]  # means lie in 4..6
        assert read_labels(rows).scale == (1.0, 7.0)
        assert "row 1, column 'score': 7 is outside 1..6; pass --scale 1 7" in message(
            rows, scale=(1, 6)
        )

    @pytest.mark.parametrize(
        "scale", [(5, 1), (1, 1), (1, 2, 3), (1, float("inf")), (float("nan"), 1)]
    )
    def test_a_scale_that_is_none(self, scale: Any) -> None:
        with pytest.raises(
            OptionError, match="--scale needs two finite numbers, the lower first"
        ):
            read_labels(records(), scale=scale)


COUNTED = "\n(rows are counted from 1 without the header)"


class TestRowProblems:
    def test_off_the_scale(self, tmp_path: Path) -> None:
        path = write(tmp_path / "labels.csv", records(score_3=7, score_4=0.5))
        assert message(path, scale=(1, 5)) == (
            "labels.csv, row 3, column 'score': 7 is outside 1..5; pass --scale 0.5 7 or correct the row "
            "(2 such cells: rows 3, 4)" + COUNTED
        )

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            (
                records(score_2="good"),
                ", row 2, column 'score': 'good' is not a number; write a number or remove the row",
            ),
            (
                records(output_8=" \n"),
                ", row 8, column 'output': the output is empty; fill it in or remove the row",
            ),
            (
                [
                    {**row, "id": n if n != 6 else 2}
                    for n, row in enumerate(records(), 1)
                ],
                ", row 6 (2), column 'id': id '2' is that of row 2 already; give every row its own",
            ),
            (
                [{**row, "score": 4} for row in records()],
                ", column 'score': all 8 scores are 4, so there is nothing to agree with; add rows with other scores",
            ),
            (records()[:5], ": 5 rows, at least 8 are needed; add rows"),
        ],
    )
    def test_one_problem(self, rows: list[dict[str, Any]], expected: str) -> None:
        assert message(rows) == "<table>" + expected

    @pytest.mark.parametrize(
        "cell", [None, float("nan"), "", " ", "n/a", "N/A", "-", "?", "skipped"]
    )
    def test_a_row_that_nobody_rated_is_left_out_and_counted(self, cell: Any) -> None:
        labels = read_labels(
            [*records(), {"source": "s", "output": "o", "score": cell}], scale=(1, 5)
        )
        assert labels.scores.tolist() == SCORES
        assert labels.understood()["skipped_rows"] == [
            {"row": 9, "reason": "no rating"}
        ]
        assert (labels.understood()["rows"], labels.understood()["labelled"]) == (9, 8)

    def test_problems_of_a_column_are_one_with_their_number(self) -> None:
        (line,) = message(
            records(**{f"output_{n}": "" for n in range(1, 9)})
        ).splitlines()
        assert line.startswith("<table>, row 1, column 'output'")
        assert line.endswith("(8 such cells)")

    def test_five_problems_are_shown_and_the_rest_counted(self) -> None:
        wrong = dict(
            zip(
                range(1, 7),
                ("x", "2026-04-05", "4,5", "5,000", "1e999", 1e13),
                strict=True,
            )
        )
        rows = records(output_7="", **{f"score_{n}": cell for n, cell in wrong.items()})
        lines = message(rows).splitlines()
        assert len(lines) == 6
        assert lines[5] == "... and 2 more problems"
        assert [line.split(",")[1] for line in lines[:5]] == [
            " row 7",
            " row 1",
            " row 2",
            " row 3",
            " row 4",
        ]

    @pytest.mark.parametrize("source", [{"source": ""}, {}])
    def test_a_task_without_sources(self, source: dict[str, str]) -> None:
        labels = read_labels(
            [{"output": r["output"], "score": r["score"]} | source for r in records()],
            scale=(1, 5),
        )
        assert (labels.warnings, len(set(labels.groups))) == ((), 8)


class TestFileProblems:
    def test_what_is_no_file_or_no_table(self, tmp_path: Path) -> None:
        assert (
            message(tmp_path / "no.csv")
            == "no.csv: there is no such file; check the path"
        )
        assert (
            message(tmp_path)
            == f"{tmp_path.name}: this is a folder, not a file; name a file in it"
        )
        assert message(from_text(tmp_path, "c.parquet", "no")).startswith(
            "c.parquet: not a readable Parquet file"
        )
        frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
        assert message(frame).startswith("<table>: two columns have the same name")
        for source in (3, b"x", [["a"]]):
            assert message(source).startswith("<table>")

    @pytest.mark.parametrize("name", ["labels", "l.csv.zip", "l.gz", "l.parquet.gz"])
    def test_unknown_ending(self, tmp_path: Path, name: str) -> None:
        assert message(from_text(tmp_path, name, "x")) == (
            f"{name}: unknown file type; use one of .csv, .tsv, .json, .jsonl, .ndjson, .parquet,"
            " .eval, .xlsx, .xlsm, .xls, .xlsb, .ods"
        )

    def test_another_encoding(self, tmp_path: Path) -> None:
        said = "l.csv: the text is not utf-16-le, as its first bytes say (truncated data); save the file as UTF-8"
        assert message(from_text(tmp_path, "l.csv", b"\xff\xfea")).startswith(said)
        said = "l.jsonl, line 2: the text is not UTF-8, though most of the file is: it is damaged there"
        text = b'{"output": "\xc3\xa9\xe2\x82\xac\xc3\xa9"}\n{"output": "caf\xe9"}\n'
        assert message(from_text(tmp_path, "l.jsonl", text)).startswith(said)

    @pytest.mark.parametrize(
        ("name", "text", "expected"),
        [
            ("l.csv", "", "l.csv: the file is empty"),
            (
                "l.jsonl",
                "\n\n",
                "l.jsonl: there are no rows in it, at least 8 are needed",
            ),
            ("l.json", "[]", "l.json: there are no rows in it, at least 8 are needed"),
            (
                "l.csv",
                "output,score,score\n",
                "l.csv: column 'score' appears twice in the header; rename one of them",
            ),
            (
                "l.csv",
                "output,score\na,1\n\na,b,2\n",
                (
                    "l.csv, row 2 (line 4): 3 cells, but the header has 2; put texts with "
                    "',' or a line break in double quotes"
                ),
            ),
            (
                "l.csv",
                'output,score\n"a,1\nb,2\n',
                (
                    "l.csv, line 3: malformed (unexpected end of data); a text with double "
                    "quotes needs them doubled and quotes around it"
                ),
            ),
            (
                "l.jsonl",
                '{"a": 1}\n\n{"a" 1}\n',
                (
                    "l.jsonl, line 3: malformed JSON (Expecting ':' delimiter, character 6); "
                    "correct the line"
                ),
            ),
            (
                "l.jsonl",
                '{"a": 1}\n[1]\n',
                "l.jsonl, line 2: a JSON object is needed, not list",
            ),
            (
                "l.json",
                '[\n{"a": 1}\n{}]',
                (
                    "l.json, line 3: malformed JSON (Expecting ',' delimiter, character 1); "
                    "correct the line"
                ),
            ),
            ("l.json", '["a"]', "l.json, row 1: an object is needed, not str"),
            ("l.json", "3", "l.json: rows are needed (a list of objects), not int"),
            (
                "l.json",
                '{"output": "a", "score": 1}',
                "l.json: rows are needed (a list of objects), not dict",
            ),
            (
                "l.csv",
                "\ufeffa,b\n1,2\n",
                (
                    "l.csv: no column for the output text; the columns are: a, b; name it "
                    "with --columns output=NAME"
                ),
            ),
            (
                "l.csv",
                "output,b\n1,2\n",
                (
                    "l.csv: no column with scores; the columns are: output, b; name it with "
                    "--columns score=NAME"
                ),
            ),
        ],
    )
    def test_message(self, tmp_path: Path, name: str, text: str, expected: str) -> None:
        assert message(from_text(tmp_path, name, text)) == expected


class TestIterRows:
    def test_rows_and_their_records(self, tmp_path: Path) -> None:
        pairs = list(
            iter_rows(
                write(
                    tmp_path / "l.csv", [{**row, "extra": "kept"} for row in records()]
                )
            )
        )
        assert [row.scores["overall"] for row, _ in pairs] == SCORES
        assert all(
            list(record.values())[1::2] == [row.output, "kept"] for row, record in pairs
        )

    def test_scores_are_optional_and_bad_ones_left_out(self) -> None:
        rows: list[dict[str, Any]] = [
            {"answer": "a", "score": "?"},
            {"answer": "", "score": 3},
            {"answer": None},
        ]
        made = [row for row, _ in iter_rows(rows)]
        assert [(row.output, dict(row.scores)) for row in made] == [
            ("a", {}),
            ("", {"overall": 3.0}),
            ("", {}),
        ]
        assert [row.output for row, _ in iter_rows([{"answer": "b"}])] == ["b"]

    def test_the_same_columns_as_read_labels(self) -> None:
        rows = [{"q": "s", "a": f"o{n}", "text": "", "grade": n % 3} for n in range(8)]
        columns = {"output": "a", "source": "q"}
        assert [row for row, _ in iter_rows(rows, columns=columns)] == list(
            read_labels(rows, columns=columns).rows
        )

    def test_it_does_not_read_ahead_of_what_decides_the_columns(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loading_module, "_HEAD", 2)
        taken = []

        def endless() -> Iterator[dict[str, str]]:
            while True:
                taken.append(1)
                yield {"output": "a"}

        rows = iter_rows(endless())
        for _ in range(5):
            next(rows)
        assert len(taken) == 5

    def test_what_is_wrong_with_the_file_is_said_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(LabelsError, match=r"no\.csv: there is no such file"):
            iter_rows(tmp_path / "no.csv")
        with pytest.raises(LabelsError, match="there are no rows in it"):
            next(iter_rows(from_text(tmp_path, "l.csv", "output\n")))
        with pytest.raises(
            LabelsError, match="no column for the output text; the columns are: x"
        ):
            next(iter_rows([{"x": 1}]))


@pytest.mark.parametrize(
    ("name", "text"), [("no.jsonl", None), ("l.parquet", "no"), ("l.csv", 'a\n"')]
)
def test_rows_of_what_cannot_be_read_are_not_counted(
    tmp_path: Path, name: str, text: str | None
) -> None:
    assert (
        count_rows(tmp_path / name if text is None else from_text(tmp_path, name, text))
        is None
    )


def test_reasons_are_read_with_their_aspect_and_never_a_models(tmp_path: Path) -> None:
    scores = [{"tone": 1 + n % 4, "style": 5 - n % 4} for n in range(8)]
    rows = [
        {
            "output": f"text {n % 4}",
            "rater": "AB"[n // 4],
            "scores": scores[n],
            "why": None,
        }
        for n in range(8)
    ]
    rows[0]["why"], rows[4]["why"] = (
        {"tone": "Rude.", "Ann": "Read twice."},
        ["Curt,\n I think.", None, " "],
    )
    tone, style = (
        read_labels(rows, aspect=name, min_rows=2).rows[0] for name in ("tone", "style")
    )
    assert (
        tone.why("tone")
        == ("Rude.", "Read twice.", "Curt, I think.")
        == tone.why("overall")
    )
    assert style.why("style") == ("Read twice.", "Curt, I think.")
    for name, column in (
        ("Why did you say so?", True),
        ("Bot reason", False),
        ("Reviewer comment", True),
    ):
        table = [row | {name: "It is well said."} for row in records()]
        assert read_labels(table).rows[0].comments == (
            {"": ("It is well said.",)} if column else {}
        )
        assert (
            read_labels(write(tmp_path / "l.csv", table), columns={"rationale": name})
            .rows[0]
            .comments
        )
    sides = ({"response_a": f"a{n}", "response_b": f"b{n}"} for n in range(8))
    pairs = [
        row | {"winner": "ab"[n % 2], "comment": f"c{n}"} for n, row in enumerate(sides)
    ]
    kept = {row.output: row.why("overall") for row in read_labels(pairs).rows}
    assert (kept["a0"], kept["b0"], kept["a1"], kept["b1"]) == (
        ("c0",),
        (),
        (),
        ("c1",),
    )


def test_the_mean_of_several_aspects_is_an_overall_score(tmp_path: Path) -> None:
    rows = [
        {
            "source": f"text {n}",
            "output": f"summary {n}",
            "scores": {"coherence": 1 + n % 5, "fluency": 5, "length": 90},
        }
        for n in range(1, 12)  # fluency is the same everywhere, and the mean is not
    ]
    del rows[4]["scores"]["fluency"]  # type: ignore[attr-defined]
    labels = read_labels(iter(rows), aspect="mean:coherence,fluency", scale=(1, 5))
    assert (labels.aspect, labels.kind, len(labels)) == ("overall", "score", 10)
    assert labels.scores.tolist() == [
        (1 + n % 5 + 5) / 2 for n in range(1, 12) if n != 5
    ]
    assert labels.warnings[0] == (
        "<table>: the overall score is the mean of coherence, fluency; 1 rows that lack one were left out"
    )
    assert labels.account is not None
    assert labels.account.skipped == ((5, "it lacks one of coherence, fluency"),)
    assert labels.account.labelled == 10
    flat = [
        {
            "source": f"text {n}",
            "output": f"o {n}",
            "coherence": 1 + n % 5,
            "fluency": 1 + n % 4,
        }
        for n in range(9)
    ]
    found = read_labels(
        write(tmp_path / "flat.csv", flat),
        aspect="mean:coherence, fluency",
        scale=(1, 5),
    )
    assert found.scores.tolist() == [(2 + n % 5 + n % 4) / 2 for n in range(9)]
    assert (
        found.fingerprint()
        != read_labels(
            tmp_path / "flat.csv", aspect="fluency", scale=(1, 5)
        ).fingerprint()
    )


@pytest.mark.parametrize(
    ("aspect", "more", "told"),
    [
        ("mean:coherence", {}, "a mean needs two aspects or more"),
        (
            "mean:coherence,flow",
            {},
            (
                "there is no aspect 'flow'; pass --aspect with one of: coherence, "
                "fluency, length"
            ),
        ),
        (
            "mean:coherence,length",
            {},
            "do not: coherence on 1..5, length on 0..100; pass --scale LOW HIGH",
        ),
        (
            "mean:coherence,fluency",
            {"kind": "binary"},
            "cannot be combined with --kind binary",
        ),
    ],
)
def test_a_mean_that_cannot_be_is_refused(
    aspect: str, more: dict[str, Any], told: str
) -> None:
    rows = [
        {
            "output": f"o {n}",
            "scores": {"coherence": 1 + n % 5, "fluency": 1 + n % 4, "length": 9 * n},
        }
        for n in range(12)
    ]
    with pytest.raises((LabelsError, OptionError), match=re.escape(told)):
        read_labels(rows, aspect=aspect, **more)


@pytest.mark.parametrize(
    ("names", "compared"),
    [
        (("output", "a", "b"), False),
        (("Response", "1", "2"), False),
        (("prompt", "a", "b"), True),
        (("text", "left", "right"), True),
        (("output", "output_a", "output_b"), True),
    ],
)
def test_columns_beside_an_output_are_no_two_outputs(
    names: tuple[str, ...], compared: bool
) -> None:
    record = {name: f"words of {name}" for name in names}
    assert (read_compared([record, record]) is not None) is compared


def test_the_better_of_two_outputs_beside_another_text_is_read() -> None:
    record = {"answer": "B", "a": "one text", "b": "another", "winner": "b"}
    pairs = read_compared([record])
    assert pairs is not None
    assert pairs[0][0].won == 0.0


@pytest.mark.parametrize("code", [-1, -9, -99, 99, 999])
def test_a_number_for_no_answer_is_not_the_end_of_the_scale(code: int) -> None:
    rows = records(score_3=code)
    with pytest.raises(
        LabelsError, match=f"row 3, column 'score': {code} often stands"
    ):
        read_labels(rows)
    assert read_labels(rows, scale=(min(code, 1), max(code, 5))).scores[2] == code


@pytest.mark.parametrize(
    "scores", [[-1, 0, 1, 1], [-2, -1, 0, 2], [0, 50, 99, 100], [-1, 1, 1, -1]]
)
def test_such_numbers_among_ratings_of_their_kind_are_ratings(
    scores: list[int],
) -> None:
    rows = [
        {"output": f"text {n}", "score": score} for n, score in enumerate(scores * 2)
    ]
    assert read_labels(rows).scores.tolist() == scores * 2


@pytest.mark.parametrize(
    ("word", "score"), [("Average", 3.0), ("TOTAL", 24), ("Summe", 24), ("median", 3)]
)
def test_the_total_below_a_column_is_no_label(word: str, score: float) -> None:
    total = {"source": "", "output": word, "score": score}
    labels = read_labels([*records(), total])
    assert len(labels) == 8
    assert labels.scores.tolist() == SCORES
    assert dict(labels.account.skipped)[9] == "a total or mean of the other ratings"
    other = read_labels([*records(), total | {"score": 1.5}])
    assert other.scores.tolist() == [*SCORES, 1.5]


def test_numbers_of_a_fault_are_taken_for_scores_only_by_name() -> None:
    rows = [
        {"source": row["source"], "output": row["output"], "error_rate": row["score"]}
        for row in records()
    ]
    with pytest.raises(LabelsError, match="no column with scores"):
        read_labels(rows)
    labels = read_labels(rows, columns={"score": "error_rate"})
    assert any("higher scores are taken as better" in note for note in labels.warnings)
