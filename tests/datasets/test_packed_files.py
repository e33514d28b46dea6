"""Files that unpack to more than they may, and texts that are stored as bytes."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from workbooks import ROWS, workbook

from judgesmith.datasets.loading import iter_rows, read_labels
from judgesmith.errors import LabelsError

HEADER = ["source", "output", "score"]
_ODS = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
    '<table:table table:name="S">{}</table:table></office:spreadsheet></office:body></office:document-content>'
)


def row_of(cells: list[Any], repeated: int = 1) -> str:
    def cell(value: Any) -> str:
        kind = 'office:value-type="string"'
        if not isinstance(value, str):
            kind = f'office:value-type="float" office:value="{value}"'
        return f"<table:table-cell {kind}><text:p>{value}</text:p></table:table-cell>"

    again = f' table:number-rows-repeated="{repeated}"' if repeated > 1 else ""
    return f"<table:table-row{again}>{''.join(map(cell, cells))}</table:table-row>"


def opendocument(path: Path, more: str) -> Path:
    rows = "".join(map(row_of, [HEADER, *ROWS]))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", "<manifest/>")
        file.writestr("content.xml", _ODS.format(rows + more))
    return path


def refused(path: Path, match: str) -> None:
    with pytest.raises(LabelsError, match=match):
        read_labels(path, min_rows=6)


def with_part(path: Path, old: str, new: str) -> Path:
    """A copy of a workbook with other text in its sheet."""
    copy = path.with_stem(f"{path.stem}-changed")
    with (
        zipfile.ZipFile(path) as before,
        zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for name in before.namelist():
            text = before.read(name).decode()
            after.writestr(name, text.replace(old, new) if "sheet1" in name else text)
    return copy


def test_a_cell_far_from_all_others(tmp_path: Path) -> None:
    plain = workbook(tmp_path / "l.xlsx", [HEADER, *ROWS], [])
    far = '<row r="1048000"><c r="XFC1048000"><v>1</v></c></row></sheetData>'
    refused(with_part(plain, "</sheetData>", far), "reach to XFC1048000")
    empty = '<table:table-row table:number-rows-repeated="90000000"><table:table-cell/></table:table-row>'
    refused(
        opendocument(tmp_path / "l.ods", empty + row_of(["a", "b", 1])),
        "reach to row 90000008",
    )


def test_a_row_that_stands_there_many_times(tmp_path: Path) -> None:
    refused(
        opendocument(tmp_path / "l.ods", row_of(["a", "b", 1], 10**8)),
        "reach to row 100000007",
    )
    rest = '<table:table-row table:number-rows-repeated="1048569"><table:table-cell/></table:table-row>'
    assert len(read_labels(opendocument(tmp_path / "rest.ods", rest), min_rows=6)) == 6


def test_merged_cells_that_overlap(tmp_path: Path) -> None:
    path = workbook(tmp_path / "l.xlsx", [HEADER, *ROWS], ["A2:A1048576"] * 2000)
    refused(path, "merged cells overlap")


def test_a_cell_that_unpacks_to_far_more_than_the_file(tmp_path: Path) -> None:
    plain = workbook(tmp_path / "l.xlsx", [HEADER, *ROWS], [])
    refused(with_part(plain, "Sand it first.", "x" * (70 << 20)), "unpacks to 70 MB")


def test_formulas_without_their_results_are_said(tmp_path: Path) -> None:
    plain = workbook(tmp_path / "l.xlsx", [HEADER, *ROWS], [])
    path = plain
    for value in range(1, 6):
        path = with_part(
            path,
            f"<v>{value}</v>",
            "<f>SUM(D1:F1)</f><v></v>" if value % 2 else "<f>1</f>",
        )
    refused(path, r"no row has a score(.|\n)*6 cells hold a formula without its result")


def test_rows_below_the_header_that_describe_the_columns(tmp_path: Path) -> None:
    ids = [f'{{"ImportId":"QID{n}"}}' for n in range(3)]
    path = workbook(
        tmp_path / "l.xlsx", [HEADER, ["Asked", "Said", "How good?"], ids, *ROWS], []
    )
    labels = read_labels(path, min_rows=6)
    assert labels.scores.tolist() == [row[2] for row in ROWS]
    assert "l.xlsx: 2 line(s) below the header were left out" in labels.warnings


@pytest.mark.parametrize("kind", ["binary", "large_binary", "dictionary"])
def test_bytes_of_parquet_are_texts(kind: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    said = [f"Die Tür {n} geht nach w{n * 7} auf." for n in range(12)]
    cells = pa.array(
        [text.encode() for text in said],
        pa.large_binary() if kind[0] == "l" else pa.binary(),
    )
    cells = cells.dictionary_encode() if kind == "dictionary" else cells
    tags = pa.array([[b"a", b"b"]] * 12)
    scores = pa.array([str(n % 5 + 1).encode() for n in range(12)])
    table = pa.table({"output": cells, "tags": tags, "score": scores})
    pq.write_table(table, tmp_path / "l.parquet")
    for source in (tmp_path / "l.parquet", table):
        labels = read_labels(source)
        assert [row.output for row in labels.rows] == said
        assert labels.scores.tolist() == [n % 5 + 1 for n in range(12)]
        assert labels.rows[0].columns["tags"] == ["a", "b"]
    assert [row.output for row, _ in iter_rows([{"output": said[0].encode()}])] == said[
        :1
    ]


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"output": pa.array([b"T\xfcr"] * 12), "score": [1, 2, 3] * 4})
    pq.write_table(table, tmp_path / "l.parquet")
    refused(
        tmp_path / "l.parquet",
        "l.parquet, column 'output' holds bytes that are no text in UTF-8",
    )
    with pytest.raises(LabelsError, match="column 'output' must be a text"):
        read_labels([{"output": b"T\xfcr", "score": n % 3} for n in range(12)])


def test_a_column_of_parquet_that_unpacks_to_far_more_than_the_file(
    tmp_path: Path,
) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"output": ["x" * (20 << 20)] * 5, "score": [1, 2, 3, 4, 5]})
    pq.write_table(
        table, tmp_path / "l.parquet", compression="zstd", use_dictionary=False
    )
    refused(tmp_path / "l.parquet", "unpacks to 100 MB")


def test_a_long_line_of_a_csv(tmp_path: Path) -> None:
    import csv

    before = csv.field_size_limit(131_072)
    try:
        lines = [
            f"{'long ' * 40_000 if n == 3 else 'q'},answer {n} w{n * 7},{n % 5 + 1}\n"
            for n in range(12)
        ]
        (tmp_path / "l.csv").write_text(
            "source,output,score\n" + "".join(lines), encoding="utf-8"
        )
        assert len(read_labels(tmp_path / "l.csv")) == 12
    finally:
        csv.field_size_limit(max(before, csv.field_size_limit()))
