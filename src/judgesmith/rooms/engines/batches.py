"""A saved judge for engines that hand over rows in batches: Ray Data, Spark, Dask, `datasets`, Daft, Polars, pandas."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.datasets.columns import Columns
from judgesmith.errors import ArtifactError, LabelsError, OptionError
from judgesmith.extras import from_extra
from judgesmith.optimizers.examples import numbers_of
from judgesmith.programs import artifact, loading
from judgesmith.programs.artifact import Artifact
from judgesmith.programs.contract import Contract
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.provider import is_absent, is_local
from judgesmith.running.contracts import OF_ROWS
from judgesmith.running.opening import open_artifact, quiet
from judgesmith.running.plain import json_text
from judgesmith.running.trust import Trust
from judgesmith.signatures.values import Item, Verdict

if TYPE_CHECKING:
    import pyarrow as pa

#: What a batch gets beside its own columns; `name` and an underscore stand before each.
COLUMNS = ("score", "explanation", "failure", "verdict")
#: The batch in messages.
BATCH = "the batch"
Record = Mapping[str, Any]


@dataclass(frozen=True)
class BatchScorer:
    """A saved judge as a function from a batch of rows to the same batch with verdicts, for any engine.

    `scorer = BatchScorer("judge.json", lm=…, connection=…)`; `scorer(batch)` has the columns `judge_score` (null if
    there is none), `judge_explanation`, `judge_failure` (why there is no score) and `judge_verdict` (all of the
    verdict, as JSON) behind the batch's own, which stay as they are.

    A batch is an Arrow table or record batch, a DataFrame of pandas or Polars, or a mapping of columns (which gets
    lists). The scorer can be pickled and holds the judge itself, so that no other machine needs the file; each process
    opens its model once, when it first judges. If the file is there, too, and is another judge by then, the call raises
    ArtifactError. An `api_key` of the connection travels with the scorer; keys of the environment do not.

    Raises:
        ArtifactError: If the file is not a judge.
        OptionError: If the judge ranks whole documents.
    """

    judge: str | Path
    lm: str | None = None
    """Another model than the judge was compiled with: a name."""
    connection: Connection | None = None
    """How the model is reached; its limits are of each process."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Role -> column, for roles that columns of the batch do not show by their names or the judge's labels had not."""
    name: str = "judge"
    """How the new columns begin."""
    explain: bool = False
    """Have the model write why each output got its score: one more call a row."""
    fingerprint: str = field(init=False)
    """Of the judge, as its file has it."""
    content: str = field(init=False, repr=False)
    """The judge as JSON."""

    def __post_init__(self) -> None:
        if not isinstance(self.lm, str | None):
            raise OptionError(
                f"a BatchScorer takes the name of a model, which it opens in each process; got {self.lm}"
            )
        _arrow()
        read = artifact.read(self.judge)
        judge = loading.build(read)
        if judge.whole_documents:
            raise OptionError(
                f"a {judge.method.kind} judge ranks the outputs of a document; use `judgesmith score`"
            )
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(
            self, "fingerprint", artifact.digest(artifact.identity_of(read))
        )
        object.__setattr__(self, "content", json.dumps(read.to_dict(), sort_keys=True))

    @property
    def schema(self) -> pa.Schema:
        """The new columns, as Arrow's types."""
        pa = _arrow()
        text = pa.string()
        number = pa.float64()
        kinds = (number if column == "score" else text for column in COLUMNS)
        return pa.schema(list(zip(self._names(), kinds, strict=True)))

    def _names(self) -> list[str]:
        return [f"{self.name}_{column}" for column in COLUMNS]

    def __call__(self, batch: Any) -> Any:
        """Return the batch with the judge's columns.

        Raises OptionError for what is no batch, LabelsError for one without a column to judge, ModelError where the
        model cannot be used.
        """
        rows, names = _rows_of(batch)
        if taken := sorted(set(names) & set(self._names())):
            raise OptionError(
                f"{BATCH} has a column {taken[0]!r} already; give the scorer another name="
            )
        verdicts = list(self.verdicts(rows, names)) if rows else []
        return with_columns(batch, self.columns_of(verdicts))

    def columns_of(self, verdicts: Sequence[Verdict]) -> dict[str, pa.Array]:
        """Return the new columns. A verdict tells what its judge was measured on, as a row of `score` does."""
        told = self._told() if verdicts else {}
        values = {
            "score": [verdict.score for verdict in verdicts],
            "explanation": [_text(verdict.explanation) for verdict in verdicts],
            "failure": [_text(verdict.failure) for verdict in verdicts],
            "verdict": [
                _text(json_text(verdict.to_dict() | {OF_ROWS: told}))
                for verdict in verdicts
            ],
        }
        array = _arrow().array
        return {
            field.name: array(values[column], field.type, from_pandas=True)
            for column, field in zip(COLUMNS, self.schema, strict=True)
        }

    def _told(self) -> dict[str, Any]:
        return Trust.of(self.opened(), Path(self.judge).name).to_dict()

    def verdicts(
        self, rows: Iterable[Record], names: Sequence[str]
    ) -> Iterator[Verdict]:
        """Yield the verdict on each record, in order.

        A record that cannot be read has no score, and its failure says why; the others are judged.
        """
        judge = self.opened()
        columns = Columns.find(
            list(names), BATCH, chosen=self.roles(names), scores_needed=False
        )
        unread: dict[int, str] = {}

        def items() -> Iterator[Item]:
            for number, record in enumerate(rows, 1):
                try:
                    row, _ = columns.row(record, number)
                    numbers_of(judge, row, BATCH)
                    yield Item.of(row)
                except LabelsError as error:
                    unread[number] = str(error)
                    yield Item("")  # judged without a call

        for number, verdict in enumerate(judge.score_many(items(), progress=False), 1):
            yield Verdict.failed(unread[number]) if number in unread else verdict

    def opened(self) -> Judge:
        """Return the judge of this process.

        Raises:
            ArtifactError: If its file has changed.
        """
        with _opening:
            return _opened(
                str(self.judge), self.content, self.lm, self.connection, self.explain
            )

    @property
    def server(self) -> str:
        """Return a mark of the served model with its address, which is not kept; "" for one inside the process."""
        saved = json.loads(self.content)["lm"]
        name = self.lm or (saved["model"] if saved else "")
        if not name or is_local(name) or is_absent(name):
            return ""
        lm = language_model(name, connection=self.connection)
        return artifact.digest([lm.name, lm.identity])[:8]

    def roles(self, names: Sequence[str]) -> dict[str, str]:
        """Return role -> column, as the judge's labels had them, where these are there, and as they were chosen."""
        held = Contract.of(json.loads(self.content)["provenance"])
        return ({} if held is None else held.texts_in(names)) | dict(self.columns)


def _arrow() -> Any:
    return from_extra("tables", "a BatchScorer", "pyarrow")


def _is_arrow(batch: Any) -> bool:
    pa = _arrow()
    return isinstance(batch, pa.Table | pa.RecordBatch)


_opening = threading.Lock()


@lru_cache(maxsize=8)
def _opened(
    path: str,
    content: str,
    lm: str | None,
    connection: Connection | None,
    explains: bool,
) -> Judge:
    read = Artifact.of(json.loads(content))
    if Path(path).exists():
        ours, there = (
            artifact.digest(artifact.identity_of(one))
            for one in (read, artifact.read(path))
        )
        if ours != there:
            raise ArtifactError(
                f"{path} was judge {ours} when its BatchScorer was made and is {there} now; make the scorer again"
            )
    with quiet():
        judge = open_artifact(read, Path(path), lm, connection)
    judge.explains = explains
    return judge


def _after_fork() -> None:
    # A judge of the parent has connections that only the parent can use.
    global _opening
    _opening = threading.Lock()
    _opened.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _text(value: str | None) -> str | None:
    """A text as Arrow takes it: half a surrogate pair becomes JSON's own escape for it, no text is null."""
    return value.encode("utf-8", "backslashreplace").decode() if value else None


def _rows_of(batch: Any) -> tuple[list[Record], list[str]]:
    """The records of a batch, and the names of its columns. Raises OptionError for what is no batch."""
    if isinstance(batch, Mapping):
        return _records_of(batch), list(map(str, batch))
    if _is_arrow(batch):
        rows = batch.to_pylist()
        names = batch.schema.names
    elif hasattr(batch, "to_dicts"):  # Polars
        rows = batch.to_dicts()
        names = list(batch.columns)
    elif hasattr(batch, "iloc") and hasattr(batch, "columns"):  # pandas
        names = list(map(str, batch.columns))
        rows = [
            dict(zip(names, cells, strict=True))
            for cells in batch.itertuples(index=False, name=None)
        ]
    else:
        raise OptionError(
            f"a batch is an Arrow table, a DataFrame of pandas or Polars, or a mapping of columns; got {type(batch)}"
        )
    if len(set(names)) < len(names):
        raise OptionError(
            f"{BATCH} has two columns of the same name ({', '.join(names)}); rename one"
        )
    return rows, names


def _records_of(columns: Mapping[str, Any]) -> list[Record]:
    for name, cells in columns.items():
        if isinstance(cells, str | bytes | Mapping) or not hasattr(cells, "__len__"):
            raise OptionError(
                f"{name!r} is one cell, {type(cells).__name__}, not a column of a batch; in `datasets`, map with "
                "batched=True"
            )
    if len(lengths := {len(cells) for cells in columns.values()}) > 1:
        raise OptionError(
            f"the columns of a batch have one length; these have {', '.join(map(str, sorted(lengths)))}"
        )
    return [
        dict(zip(map(str, columns), row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def with_columns(batch: Any, made: Mapping[str, pa.Array]) -> Any:
    """Return a batch with further columns, as a batch of its own kind."""
    if isinstance(batch, Mapping):
        return {**batch, **{name: column.to_pylist() for name, column in made.items()}}
    if _is_arrow(batch):
        for name, column in made.items():
            batch = batch.append_column(name, column)
        return batch
    if hasattr(batch, "with_columns"):
        polars = import_module("polars")
        return batch.with_columns(
            [polars.Series(name, column) for name, column in made.items()]
        )
    return batch.assign(
        **{name: column.to_pandas().array for name, column in made.items()}
    )
