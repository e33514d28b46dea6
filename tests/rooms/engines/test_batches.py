"""`BatchScorer`: a saved judge as a function from batches to batches, wherever an engine calls it."""

import json
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from patience import HANG
from processes import scores_of

import judgesmith as js
from judgesmith.errors import ArtifactError
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.rooms.engines.batches import BatchScorer
from judgesmith.testing.fake import Fault

NEW = ["judge_score", "judge_explanation", "judge_failure", "judge_verdict"]
ROWS = [
    {"id": "a", "source": "s", "output": "r000", "score": 4.5, "note": None},
    {"id": "b", "source": "s", "output": None, "score": 1.0, "note": "seen"},
    {"id": "c", "source": "s", "output": "r002", "score": None, "note": None},
]
TABLE = pa.Table.from_pylist(ROWS)
COLUMNS = {name: TABLE[name].to_pylist() for name in TABLE.column_names}


@pytest.fixture
def scorer(judge_file: Path, server: Any) -> BatchScorer:
    return BatchScorer(judge_file, connection=js.Connection(server.base))


def polars(rows: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


#: Each kind of batch, and how its columns are read again.
KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], dict[str, list[Any]]]]] = {
    "table": (lambda: TABLE, lambda made: made.to_pydict()),
    "record batch": (lambda: TABLE.to_batches()[0], lambda made: made.to_pydict()),
    "pandas": (
        lambda: pd.DataFrame(ROWS, index=[7, 7, 9]),
        lambda made: pa.Table.from_pandas(made).to_pydict(),
    ),
    "polars": (lambda: polars(ROWS), lambda made: made.to_arrow().to_pydict()),
    "lists": (lambda: COLUMNS, dict),
    "arrays": (
        lambda: {
            name: np.array(cells, dtype=object) for name, cells in COLUMNS.items()
        },
        dict,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_any_kind_gets_the_judges_columns(
    kind: str, scorer: BatchScorer, server: Any
) -> None:
    make, read = KINDS[kind]
    batch = make()
    made = scorer(batch)
    assert isinstance(made, type(batch))
    columns = read(made)
    # r000 and r002 have four characters, which the server's model gives as the score.
    assert columns["judge_score"] == [4.0, None, 4.0]
    assert columns["judge_failure"] == [None, "the output is empty", None]
    assert columns["judge_explanation"] == ["It says r000.", None, "It says r002."]
    verdicts = [json.loads(text) for text in columns["judge_verdict"]]
    assert [verdict["score"] for verdict in verdicts] == [4.0, None, 4.0]
    for verdict in verdicts:
        assert verdict["contract"]["judge"] == Path(scorer.judge).name
        assert verdict["contract"]["model"] == "openai/fake"
    assert list(columns["score"])[:2] == [4.5, 1.0]
    assert [name for name in columns if name in (*COLUMNS, *NEW)] == [*COLUMNS, *NEW]
    assert len(server.judged) == 2


def test_the_scores_are_those_of_the_judge_itself(
    scorer: BatchScorer, judge_file: Path, server: Any
) -> None:
    rows = [{"source": f"s{n}", "output": f"r{n:03d}" + "x" * n} for n in range(30)]
    judge = js.load(judge_file, connection=js.Connection(server.base))
    direct = [verdict.score for verdict in judge.score_many(rows)]
    assert scorer(pa.Table.from_pylist(rows))["judge_score"].to_pylist() == direct
    assert len(set(direct)) > 10


def test_a_column_that_only_failed_has_its_type(scorer: BatchScorer) -> None:
    made = scorer(pa.table({"output": ["", " "]}))
    assert made.schema.field("judge_score").type == pa.float64()
    assert made.select(NEW).schema == scorer.schema
    assert made["judge_score"].null_count == 2


def test_an_empty_batch_asks_nothing_and_has_the_columns(
    scorer: BatchScorer, server: Any
) -> None:
    assert scorer(TABLE.slice(0, 0)).select(NEW).schema == scorer.schema
    meta = scorer(pd.DataFrame(ROWS).head(0))
    assert meta.dtypes["judge_score"] == np.float64
    assert scorer({"output": []})["judge_score"] == []
    assert server.asks == []


def test_a_call_that_fails_is_null_with_its_reason(
    scorer: BatchScorer, server: Any, fake: Any
) -> None:
    good = fake.judging(lambda ask: 50)
    server.answer = lambda ask: (
        Fault(400, "too odd")
        if ask.step == "score" and ask.mark == "r001"
        else good(ask)
    )
    made = scorer(pa.table({"output": ["r000", "r001"]}))
    assert made["judge_score"].to_pylist() == [50.0, None]
    assert "too odd" in made["judge_failure"][1].as_py()


def test_one_record_that_cannot_be_read_is_its_own_trouble(
    scorer: BatchScorer,
) -> None:
    made = scorer({"output": ["r000", {1, 2}, "r002"]})
    assert made["judge_score"] == [4.0, None, 4.0]
    assert "column 'output' must be a text" in made["judge_failure"][1]


def test_half_a_surrogate_pair_is_kept_readable(
    scorer: BatchScorer, judge_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def judged(*_: Any, **__: Any) -> js.Verdict:
        return js.Verdict(50.0, "It says \ud800.")

    monkeypatch.setattr(js.Judge, "judged", judged)
    made = scorer(pa.table({"output": ["r000"]}))
    assert made["judge_explanation"].to_pylist() == ["It says \\ud800."]
    assert json.loads(made["judge_verdict"][0].as_py())["score"] == 50.0


# -- columns ----------------------------------------------------------------------------------------------------------


def test_columns_by_a_mapping(judge_file: Path, server: Any) -> None:
    chosen = BatchScorer(
        judge_file,
        connection=js.Connection(server.base),
        columns={"output": "text"},
        name="fluency",
    )
    made = chosen(pa.table({"text": ["r000"], "output": ["not this one"]}))
    assert made["fluency_score"].to_pylist() == [4.0]
    with pytest.raises(
        js.LabelsError,
        match="there is no column 'text' for the output; the columns are: output",
    ):
        chosen(pa.table({"output": ["r000"]}))


def test_columns_by_what_the_judge_was_compiled_from(
    judge_file: Path, server: Any, tmp_path: Path
) -> None:
    data = json.loads(judge_file.read_text())
    data["provenance"]["labels"] = {
        "columns": {"output": "what they wrote", "score": "stars"}
    }
    own = tmp_path / "own.json"
    own.write_text(json.dumps(data))
    scorer = BatchScorer(own, connection=js.Connection(server.base))
    assert scorer(pa.table({"what they wrote": ["r000"]}))[
        "judge_score"
    ].to_pylist() == [4.0]
    assert scorer(pa.table({"output": ["r000"]}))["judge_score"].to_pylist() == [4.0]


REFUSED = {
    "no column to judge": (
        {"a": ["x"], "b": ["y"]},
        "no column for the output text; the columns are: a, b",
    ),
    "scored before": (
        {"output": ["x"], "judge_score": [1.0]},
        "has a column 'judge_score' already",
    ),
    "one row": ({"output": "x"}, "'output' is one cell, str, not a column of a batch"),
    "columns of two lengths": (
        {"output": ["x", "y"], "source": ["s"]},
        "these have 1, 2",
    ),
    "a list of rows": ([{"output": "x"}], "a batch is an Arrow table"),
    "a name twice": (
        pd.DataFrame([["x", "y"]], columns=["output", "output"]),
        "two columns of the same name",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_batch_is_refused(
    what: str, scorer: BatchScorer, server: Any
) -> None:
    batch, message = REFUSED[what]
    with pytest.raises(js.JudgesmithError, match=message):
        scorer(batch)
    assert server.judged == []


def test_judges_and_models_that_no_batch_can_have_are_refused(
    tmp_path: Path, judge_file: Path
) -> None:
    js.Judge(PairS("fluency"), lm="openai/fake").save(tmp_path / "pairs.json")
    with pytest.raises(js.OptionError, match="ranks the outputs of a document"):
        BatchScorer(tmp_path / "pairs.json")
    with pytest.raises(js.OptionError, match="takes the name of a model"):
        BatchScorer(judge_file, lm=js.language_model("openai/fake"))  # type: ignore[arg-type]
    with pytest.raises(ArtifactError, match="no such file"):
        BatchScorer(tmp_path / "none.json")


# -- processes and threads --------------------------------------------------------------------------------------------


def test_it_travels_with_its_judge(scorer: BatchScorer, judge_file: Path) -> None:
    sent = pickle.dumps(scorer)
    judge_file.unlink()
    there = pickle.loads(sent)
    assert there == scorer
    assert there(TABLE)["judge_score"].to_pylist() == [4.0, None, 4.0]


def test_a_judge_that_has_changed_is_noticed(
    scorer: BatchScorer, judge_file: Path, server: Any
) -> None:
    js.Judge(js.DirectScorer("fluency", reading="said"), lm="openai/fake").save(
        judge_file
    )
    with pytest.raises(
        ArtifactError,
        match=f"was judge {scorer.fingerprint} when .* make the scorer again",
    ):
        scorer(TABLE)
    again = BatchScorer(judge_file, connection=js.Connection(server.base))
    assert again.fingerprint != scorer.fingerprint
    assert pickle.dumps(again) != pickle.dumps(
        scorer
    )  # by which engines know what they computed before
    assert again(TABLE)["judge_score"].null_count == 1


def test_the_same_judge_has_the_same_pickle(
    scorer: BatchScorer, judge_file: Path, server: Any
) -> None:
    again = BatchScorer(judge_file, connection=js.Connection(server.base))
    assert again == scorer
    assert pickle.dumps(again) == pickle.dumps(scorer)


def test_threads_share_one_judge_and_its_limit(judge_file: Path, server: Any) -> None:
    scorer = BatchScorer(
        judge_file, connection=js.Connection(server.base, concurrency=2, cache=False)
    )
    batches = [pa.table({"output": [f"r{n:03d}"] * 4}) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(scorer, batches))
    assert [batch["judge_score"].to_pylist() for batch in made] == [[4.0] * 4] * 8
    assert len({id(scorer.opened()) for _ in range(3)}) == 1
    assert (
        sum(ask.step == "probe" for ask in server.asks) <= 2
    )  # one model was opened, and probed


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        way
        for way in ("fork", "spawn")
        if way in multiprocessing.get_all_start_methods()
    ],
)
def test_it_judges_in_processes_and_again_in_their_parent(
    way: str, judge_file: Path, server: Any
) -> None:
    scorer = BatchScorer(judge_file, connection=js.Connection(server.base, cache=False))
    expected = scorer(TABLE)["judge_score"].to_pylist()
    context: Any = multiprocessing.get_context(way)
    answers = context.Queue()
    started = [
        context.Process(target=scores_of, args=(scorer, TABLE, answers))
        for _ in range(2)
    ]
    for process in started:
        process.start()
    assert [answers.get(timeout=HANG) for _ in started] == [expected] * 2
    for process in started:
        process.join(HANG)
    with ThreadPoolExecutor(
        1
    ) as pool:  # a forked process once took the parent's connections from its loop
        assert (
            pool.submit(scorer, TABLE).result(HANG)["judge_score"].to_pylist()
            == expected
        )


ENGINES = ("ray", "pyspark", "dask", "datasets", "daft", "polars")


@pytest.mark.slow
def test_no_engine_is_imported() -> None:
    code = "import sys, judgesmith.rooms.engines.batches, judgesmith.cli.main; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert [name for name in ENGINES if f"'{name}'" in done.stdout] == []
