"""Synthetic examples are checked line by line before anything is trained on them."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgesmith.errors import LabelsError
from judgesmith.rooms.training.synthetic import read_synthetic

GOOD: dict[str, Any] = {
    "format": "judgesmith.synthetic/1",
    "id": "1",
    "source": "A source.",
    "output": "An output.",
    "doc_id": "d",
    "aspect": "fluency",
    "percent": 75.0,
    "judge": "abc",
    "messages": [
        {"role": "user", "content": "Rate it."},
        {"role": "assistant", "content": "Score: 4"},
    ],
}


def written(path: Path, *lines: Any) -> Path:
    file = path / "synthetic.jsonl"
    file.write_text(
        "".join(
            (line if isinstance(line, str) else json.dumps(line)) + "\n"
            for line in lines
        )
    )
    return file


def test_a_file_is_read_with_its_lines(tmp_path: Path) -> None:
    ((made, row),) = read_synthetic(written(tmp_path, GOOD))
    assert (made.percent, row.scores, row.doc_id, row.group, row.line) == (
        75.0,
        {"fluency": 75.0},
        "d",
        "d",
        1,
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            GOOD | {"id": "2", "percent": 4000.0},
            "percent: .*less than or equal to 100; scores are percent, 0 to 100",
        ),
        (GOOD | {"id": "2", "percent": "75"}, "percent: .*valid number"),
        (GOOD | {"id": "<script>alert(1)</script>"}, "id: .*pattern"),
        (GOOD | {"id": "2", "run": "import os"}, "run: .*not permitted"),
        (GOOD | {"id": "2", "output": ""}, "output: "),
        (GOOD | {"id": "2", "messages": [{"role": "tool", "content": ""}] * 2}, "role"),
        (GOOD, "the id '1' is also in line 1"),
        (
            json.dumps(GOOD | {"id": "2"}).replace("75.0", "NaN"),
            "percent: .*finite number",
        ),
        ("[" * 5000, "Invalid JSON: recursion limit"),
        ("not json", "Invalid JSON"),
        (GOOD | {"id": "2", "output": "x" * 5_000_000}, "more than 1,048,576 bytes"),
    ],
)
def test_a_poisoned_line_is_refused_by_its_number(
    line: Any, said: str, tmp_path: Path
) -> None:
    file = written(tmp_path, GOOD, line, GOOD | {"id": "3"})
    with pytest.raises(
        LabelsError, match=rf"synthetic\.jsonl, line 2: .*{said}"
    ) as caught:
        read_synthetic(file)
    assert len(caught.value.problems) == 1


def test_every_wrong_line_is_named_and_an_empty_file_is_none(tmp_path: Path) -> None:
    with pytest.raises(LabelsError) as caught:
        read_synthetic(written(tmp_path, "{", GOOD, "{"))
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "synthetic.jsonl, line 1",
        "synthetic.jsonl, line 3",
    ]
    with pytest.raises(LabelsError, match="no example in it"):
        read_synthetic(written(tmp_path))
