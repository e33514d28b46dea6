"""`judgesmith score`: rows and outputs in object storage, and outputs as Parquet."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow.parquet as pq
import pytest
from json_lines import Rows, write
from patience import HANG

from judgesmith.datasets.formats import format_of
from judgesmith.running import storage


@pytest.fixture
def score(cli: Any, judge_file: Path, server: Any) -> Any:
    def run(*arguments: object) -> Any:
        return cli(
            "score",
            *arguments,
            "--judge",
            judge_file,
            "--api-base",
            server.base,
            "--json",
        )

    return run


# -- Parquet ----------------------------------------------------------------------------------------------------------


def test_scores_as_parquet(server: Any, score: Any, cli: Any, tmp_path: Path) -> None:
    rows = [
        {
            "id": n,
            "output": f"r{n:03d}" if n else "",
            "score": float(n),
            "meta": {"a": [n]},
            "none": None,
        }
        for n in range(30)
    ]
    out = tmp_path / "out.parquet"
    done = score(write(tmp_path / "rows.jsonl", rows), "-o", out)
    assert (done.code, done.json["scored"], done.json["failed"]) == (1, 29, 1)
    read = pq.read_table(out)
    assert read["id"].to_pylist() == [str(n) for n in range(30)]
    assert [
        str(read.schema.field(name).type)
        for name in ("id", "score", "meta", "none", "judge_score")
    ] == [*("string", "double", "string", "string", "double")]
    assert read["judge_score"].to_pylist() == [None] + [4.0] * 29
    assert read["judge_failure"].to_pylist() == ["the output is empty"] + [None] * 29
    assert read["judge_seen"].to_pylist() == [False] * 30
    assert json.loads(read["meta"][3].as_py()) == {"a": [3]}
    assert json.loads(read["judge_verdict"][1].as_py())["score"] == 4.0
    assert len(pd.read_parquet(out)) == 30
    again = score(tmp_path / "rows.jsonl", "-o", out)
    assert (again.json["resumed"], again.json["calls"]) == (30, 0)
    assert cli("evaluate", out, "--json").code == 0


COLUMNS = {
    "numbers that become broken": ([1] * 5000 + [1.5], "double", 1.0),
    "numbers beside words": ([1] * 5000 + ["x"], "string", "1"),
    "words beside truth": (["x", True], "string", "x"),
    "beyond 64 bits": ([2**70, 1], "string", str(2**70)),
    "half a pair": (["\ud800"], "string", "\\ud800"),
    "nothing": ([None] * 5000, "string", None),
    "late": ([None] * 5000 + [True], "bool", None),
    "lists": ([[1, None], {"a": "é"}], "string", "[1, null]"),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_a_column_has_one_type(what: str, tmp_path: Path) -> None:
    cells, kind, first = COLUMNS[what]
    path = tmp_path / "made.parquet"
    format_of(path).write(lambda: ({"cell": cell} for cell in cells), path)
    read = pq.read_table(tmp_path / "made.parquet")
    assert (str(read.schema.field("cell").type), read["cell"][0].as_py()) == (
        kind,
        first,
    )
    assert read.num_rows == len(cells)


def test_columns_that_only_some_rows_have(tmp_path: Path) -> None:
    path = tmp_path / "made.parquet"
    format_of(path).write(lambda: [{"a": 1}, {"b": "x"}], path)
    assert pq.read_table(tmp_path / "made.parquet").to_pydict() == {
        "a": [1, None],
        "b": [None, "x"],
    }
    format_of(path).write(lambda: [], tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


# -- storage ----------------------------------------------------------------------------------------------------------


def put(address: str, content: bytes) -> str:
    with fsspec.open(address, "wb") as file:
        file.write(content)
    return address


def got(address: str) -> list[dict[str, Any]]:
    with fsspec.open(address) as file:
        return [json.loads(line) for line in file]


@pytest.fixture(params=["memory", "file"])
def bucket(request: Any, tmp_path: Path) -> str:
    """A storage of fsspec's, and one of Arrow's."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    return f"memory://{tmp_path.name}" if request.param == "memory" else folder.as_uri()


def test_rows_and_scores_in_a_storage(
    bucket: str, score: Any, rows_file: Rows, server: Any
) -> None:
    rows = put(f"{bucket}/rows.jsonl", rows_file(6).read_bytes())
    done = score(rows)
    assert (done.code, done.json["output"]) == (0, f"{bucket}/rows.scored.jsonl")
    assert len(got(f"{bucket}/rows.scored.jsonl")) == 6
    again = score(rows)
    assert (again.json["resumed"], again.json["calls"]) == (6, 0)
    assert score(rows, "-o", f"{bucket}/out.csv").code == 0
    assert len(got(f"{bucket}/out.csv.jsonl")) == 6
    with fsspec.open(f"{bucket}/out.csv") as file:
        assert b"judge_score" in file.readline()
    folder = storage.local_folder(f"{bucket}/out.csv")
    assert [
        path.name for path in folder.iterdir() if not path.name.startswith(".")
    ] == []  # nothing is left here


def test_what_was_judged_before_an_error_is_there(
    bucket: str, score: Any, rows_file: Rows, server: Any
) -> None:
    rows = put(f"{bucket}/rows.jsonl", rows_file(6).read_bytes())
    score(rows, "-o", f"{bucket}/out.jsonl", "--max-calls", 4).refused(
        "the budget of 4 calls is used up"
    )
    kept = len(got(f"{bucket}/out.jsonl"))
    assert kept >= 1
    assert score(rows, "-o", f"{bucket}/out.jsonl").json["resumed"] == kept


def test_a_dry_run_writes_nothing_into_a_storage(
    bucket: str, score: Any, rows_file: Rows
) -> None:
    rows = put(f"{bucket}/rows.jsonl", rows_file(6).read_bytes())
    assert score(rows, "-o", f"{bucket}/out.jsonl", "--dry-run").json["rows"] == 6
    assert storage.size_of(f"{bucket}/out.jsonl") == -1


def test_a_growing_output_is_copied_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "EVERY", 0.01)
    address = (tmp_path / "there.jsonl").as_uri()
    with storage.growing(address) as file:
        file.write_text("one\n")
        while storage.size_of(address) < 4:
            pass
        (tmp_path / "there.jsonl").unlink()
        file.write_text("one\ntwo\n")
    assert (tmp_path / "there.jsonl").read_text() == "one\ntwo\n"


WRONG = {
    "nowhere://b/rows.jsonl": "nowhere://b/rows.jsonl is not a storage address",
    "memory://none/rows.jsonl": "cannot be copied",
    "abfs://b/rows.jsonl": "abfs:// needs a package of fsspec",
}


@pytest.mark.parametrize("rows", WRONG)
def test_an_address_that_leads_nowhere_is_refused(rows: str, score: Any) -> None:
    score(rows, "-o", "out.jsonl").refused(WRONG[rows])


@pytest.mark.slow
def test_a_killed_run_goes_on_from_what_it_left_here(
    spawn: Any,
    score: Any,
    judge_file: Path,
    rows_file: Rows,
    server: Any,
    tmp_path: Path,
) -> None:
    address = (tmp_path / "out.jsonl").as_uri()
    rows, good = rows_file(40), server.answer
    asked = (
        "score",
        rows,
        "--judge",
        judge_file,
        "--api-base",
        server.base,
        "-o",
        address,
        "--concurrency",
        1,
    )
    process = spawn(*asked)
    while len(server.judged) < 12:
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait(HANG)
    server.answer = good
    assert not (tmp_path / "out.jsonl").exists()
    done = score(rows, "-o", address)
    assert done.json["rows"] == 40
    assert done.json["resumed"] >= 8
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 40
