"""The mark of a run on an engine: what it compares when it resumes follows from the options' declarations."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import judgesmith as js
from judgesmith.cli.commands import flag
from judgesmith.errors import OptionError
from judgesmith.parts import Effect
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.rooms.engines.batches import BatchScorer
from judgesmith.rooms.engines.folder import Output, opened_rows
from judgesmith.running.settings import RAY
from judgesmith.scoring.command import Score


class Tagged(Score):
    tag: str | None = flag(None, "A tag.", effect=Effect("value", (RAY,)))


@pytest.fixture
def begin(tmp_path: Path) -> Any:
    """Opens the folder of a run, and returns its mark."""
    rows = tmp_path / "rows.parquet"
    judge = tmp_path / "judge.json"
    parquet.write_table(pa.table({"id": ["a", "b"], "output": ["x", "y"]}), rows)
    js.Judge(DirectScorer("fluency")).save(judge)

    def run(**chosen: Any) -> dict[str, Any]:
        command = Tagged(
            rows=str(rows),
            judge=judge,
            lm="none",
            output=str(tmp_path / "out"),
            **chosen,
        )
        scorer = BatchScorer(judge, "none", explain=command.explain)
        opened_rows(command, Output(str(tmp_path / "out")), scorer)
        mark: dict[str, Any] = json.loads((tmp_path / "out/run.json").read_text())
        return mark

    return run


def test_options_that_need_no_value_of_theirs_are_not_in_it(begin: Any) -> None:
    mark = begin(tag="a", concurrency=3, max_calls=5)
    own = {"judge", "lm", "server", "rows"}
    assert mark.keys() == own | {"--columns", "--limit", "--explain", "--tag"}
    assert begin(tag="a", workers=2)["--tag"] == "a"


@pytest.mark.parametrize(
    ("first", "then", "name"),
    [
        ({"tag": "a"}, {"tag": "b"}, "--tag"),
        ({"tag": "a"}, {}, "--tag"),
        ({}, {"explain": True}, "--explain"),
        ({}, {"columns": ["reference=output"]}, "--columns"),
    ],
)
def test_a_folder_of_other_values_is_refused(
    first: dict[str, Any], then: dict[str, Any], name: str, begin: Any
) -> None:
    begin(**first)
    with pytest.raises(OptionError, match=f"was written with {name}"):
        begin(**then)


def test_an_option_that_came_later_was_not_set_before(
    begin: Any, tmp_path: Path
) -> None:
    mark = begin()
    del mark["--tag"]
    (tmp_path / "out/run.json").write_text(json.dumps(mark))
    assert begin()["--tag"] is None
    (tmp_path / "out/run.json").write_text(json.dumps(mark))
    with pytest.raises(OptionError, match="was written with --tag None, this is a"):
        begin(tag="a")
