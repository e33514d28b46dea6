"""The history of a watched judge: a file of JSON lines, one for each time that the sentinel rows were scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judgesmith.agreement.correlation import Vector
from judgesmith.errors import LabelsError
from judgesmith.running.journal import Journal

FORMAT: Literal["judgesmith.watch/1"] = "judgesmith.watch/1"
Short = Annotated[str, Field(max_length=400)]
Number = Annotated[float, Field(ge=-1e100, le=1e100)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Agreement(_Part):
    """Spearman's rho of the sentinels' scores with human ratings; None where it is undefined."""

    aspect: Short
    value: Number | None
    low: Number | None
    high: Number | None
    n: int


class TestedChange(_Part):
    """Result of a test; see `drift.TestedChange`.

    alarm: p is at most the look's threshold.
    """

    name: Short
    p: Number | None
    n: int
    before: Number | None
    now: Number | None
    alarm: bool


class Run(_Part):
    """One scoring of the sentinel rows.

    judge: its fingerprint. rows: that of the sentinel rows. restart: a new baseline begins here. baseline: later runs
    are compared with it. scores: None for a row without a score. words: number of words that the judge wrote on a row.
    failures: reasons by id, the first ones.
    """

    format: Literal["judgesmith.watch/1"] = FORMAT
    time: Short
    judge: Short
    model: Short
    rows: Short
    restart: bool = False
    baseline: bool = False
    ids: list[Short]
    scores: list[Number | None]
    words: list[Number]
    failures: dict[Short, Annotated[str, Field(max_length=2000)]] = {}
    agreement: Agreement | None = None
    traffic: Any = Field(
        default=None, exclude=True
    )  # of histories that watched new rows, too
    threshold: Number | None = None
    found: list[TestedChange] = []

    @property
    def alarms(self) -> list[str]:
        """Names of the tests that alarm."""
        return [one.name for one in self.found if one.alarm]

    def values(self) -> Vector:
        """Scores, NaN where there is none."""
        return np.array(
            [np.nan if score is None else score for score in self.scores],
            dtype=np.float64,
        )


def read(path: Path) -> list[Run]:
    """Return the runs in a history, [] where there is no file; an incomplete last line is ignored.

    Raises:
        LabelsError: If a line is malformed; the message has the first one's number.
    """
    if not path.exists():
        return []
    runs = []
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise LabelsError(
            f"{path.name}: cannot be read ({error.strerror or error})"
        ) from None
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            break
        try:
            run = Run.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise LabelsError(
                f"{path.name}, line {number}: {where[:80]}: {first['msg'][:200]}; this is not a history of `judgesmith "
                "watch`, name another with --history"
            ) from None
        if not len(run.ids) == len(run.scores) == len(run.words):
            raise LabelsError(
                f"{path.name}, line {number}: ids, scores and words are not of the same rows"
            )
        runs.append(run)
    return runs


def append(path: Path, run: Run) -> None:
    """Add a run: readers see it whole or not at all.

    Raises:
        OptionError: If the file cannot be written.
    """
    with Journal(path, kind="a history of `judgesmith watch`", durable=True) as journal:
        journal.write(run.model_dump(mode="json"))


def epoch(runs: Sequence[Run], judge: str, rows: str) -> list[Run]:
    """Return the last runs that are of this judge and these rows, since the baseline was last restarted."""
    result: list[Run] = []
    for run in reversed(runs):
        if (run.judge, run.rows) != (judge, rows):
            break
        result.append(run)
        if run.restart:
            break
    return result[::-1]
