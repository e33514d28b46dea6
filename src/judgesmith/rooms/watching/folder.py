"""Contents of a folder for `judgesmith browse`.

Saved judges, watch histories, labels, scored files, studies, and files that cannot be read.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from judgesmith.datasets.formats import open_table
from judgesmith.errors import JudgesmithError, OptionError
from judgesmith.evaluating.sources import read_file
from judgesmith.programs import artifact
from judgesmith.programs.versions import Version
from judgesmith.reports.rows import Scored, read_scored, summarise
from judgesmith.rooms.watching import history
from judgesmith.rooms.watching.judges import JudgeDiff, compare_judges

#: Files that are looked at, and characters of one that are read to tell its kind.
MOST_FILES = 20_000
PEEKED = 65_536
#: Pairs of judges whose differences are shown.
MOST_DIFFS = 30
#: How a history of `judgesmith watch` begins.
WATCHED = '{"format": "judgesmith.watch/'


@dataclass(frozen=True, slots=True)
class SavedJudge:
    """A judge's file.

    path: relative to the folder. data: the file's content, of which the provenance may hold anything.
    """

    path: str
    read: artifact.Artifact
    version: Version
    data: Mapping[str, Any]

    @property
    def mark(self) -> str:
        """Its fingerprint."""
        return self.version.fingerprint

    def value(self, *path: str) -> Any:
        """Return a value of the file by its keys, None where there is none."""
        data: Any = self.data
        for key in path:
            data = data.get(key) if isinstance(data, Mapping) else None
        return data

    def agreement(self, which: str = "heldout") -> tuple[float, float, float]:
        """Value, low and high end on held-out rows, NaN where there are none."""
        of = self.value("provenance", which)
        read = [
            of.get(key) if isinstance(of, Mapping) else None
            for key in ("value", "low", "high")
        ]
        if read[0] is None and isinstance(of, Mapping):
            read[0] = of.get("q")
        value, low, high = (
            float(v) if isinstance(v, int | float) else math.nan for v in read
        )
        return value, low, high


@dataclass(frozen=True, slots=True)
class ScoredFile:
    """A scored file.

    page: its report, if it stands beside it. judges: fingerprints of those that judged its rows. spearman: with human
    ratings over `both` rows, NaN if there are none or they do not vary.
    """

    path: str
    page: str | None
    judges: tuple[str, ...]
    summary: Mapping[str, Any]
    spearman: float
    both: int


@dataclass(frozen=True, slots=True)
class LabelFile:
    """Labels: a store of `judgesmith label`, or a file that a judge here was compiled from.

    rows: id, text, and ratings, by rater or by aspect; source: the input that the output was made from.
    """

    path: str
    kind: str
    rows: tuple[tuple[str, str, str, Mapping[str, Any]], ...]

    @property
    def people(self) -> list[str]:
        """Raters, or aspects."""
        return list(
            dict.fromkeys(name for *_, ratings in self.rows for name in ratings)
        )


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """A study. arms: name -> (mean Q over its cells, cells, mean calls)."""

    path: str
    page: str | None
    arms: Mapping[str, tuple[float, int, float]]
    failed: int


@dataclass(frozen=True, slots=True)
class WatchedJudge:
    """A history that `judgesmith watch` keeps; the judge is that of the newest run."""

    path: str
    runs: tuple[history.Run, ...]

    @property
    def last(self) -> history.Run:
        """The newest run."""
        return self.runs[-1]

    @property
    def state(self) -> str:
        """State of the newest run: "alarm", "baseline" or "quiet"."""
        if self.last.alarms:
            return "alarm"
        return "baseline" if self.last.baseline else "quiet"


@dataclass(slots=True)
class Browsed:
    """Contents of a folder, by path.

    damaged: path and reason. notes: files left out.
    """

    folder: Path
    judges: list[SavedJudge] = field(default_factory=list)
    labels: list[LabelFile] = field(default_factory=list)
    scored: list[ScoredFile] = field(default_factory=list)
    studies: list[StudyFolder] = field(default_factory=list)
    watched: list[WatchedJudge] = field(default_factory=list)
    damaged: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def diffs(self) -> Iterator[tuple[SavedJudge, SavedJudge, JudgeDiff]]:
        """Yield the difference of each judge from the one before it of the same labels and aspect, by date."""
        groups: dict[tuple[str, str], list[SavedJudge]] = {}
        for judge in self.judges:
            labels = (
                str(judge.value("provenance", "labels", key))
                for key in ("fingerprint", "aspect")
            )
            groups.setdefault(tuple(labels), []).append(judge)  # type: ignore[arg-type]
        shown = 0
        for several in groups.values():
            several.sort(
                key=lambda one: (
                    str(one.value("provenance", "created") or ""),
                    one.path,
                )
            )
            for one, other in itertools.pairwise(several):
                if shown < MOST_DIFFS:
                    shown += 1
                    yield one, other, compare_judges(one.read, other.read)


def browse(folder: Path) -> Browsed:
    """Return everything in a folder and the folders in it but hidden ones; links to folders are not followed.

    Nothing is run, and no model is called.

    Raises:
        OptionError: If it is not a folder.
    """
    if not folder.is_dir():
        raise OptionError(
            f"{folder} is not a folder; name one with saved judges, watch histories, scored files or studies"
        )
    contents = Browsed(folder)
    files = list(itertools.islice(files_in(folder), MOST_FILES + 1))
    if len(files) > MOST_FILES:
        contents.notes.append(f"only the first {MOST_FILES:,} files were looked at")
    for take in (_take, _take_labels):  # which files hold labels is said by the judges
        for path in files[:MOST_FILES]:
            name = path.relative_to(folder).as_posix()
            try:
                take(contents, path, name)
            except (
                JudgesmithError,
                OSError,
                ValueError,
                RecursionError,
                sqlite3.Error,
            ) as error:
                contents.damaged.append(
                    (name, " ".join(str(error).split())[:500] or type(error).__name__)
                )
    return contents


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted, without hidden ones."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            Path(here) / name for name in sorted(names) if not name.startswith(".")
        )


def _take(contents: Browsed, path: Path, name: str) -> None:
    kind = path.suffix.lower()
    if kind not in (".json", ".jsonl", ".csv") or not path.is_file():
        return
    start = _start(path)
    if kind == ".json" and "judgesmith.judge" in start:
        read = artifact.read(path)
        contents.judges.append(SavedJudge(name, read, Version.of(read), read.to_dict()))
    elif path.name == "results.jsonl" and (path.parent / "config.yaml").exists():
        contents.studies.append(_study(path, name))
    elif kind == ".jsonl" and start.startswith(WATCHED):
        if runs := history.read(path):
            contents.watched.append(WatchedJudge(name, tuple(runs)))
    elif (kind == ".jsonl" and '"verdict"' in start) or (
        kind == ".csv" and _scored_csv(start)
    ):
        contents.scored.append(_scored(scored_rows(path), path, name))


def scored_rows(path: Path) -> Scored:
    """Return the rows of a scored file, read again only where it changed."""
    return _read(path, path.stat().st_mtime_ns, path.stat().st_size)


@lru_cache(maxsize=16)
def _read(path: Path, *_: int) -> Scored:
    return read_scored(path)


def _take_labels(contents: Browsed, path: Path, name: str) -> None:
    origins = {
        str(judge.value("provenance", "labels", "origin")) for judge in contents.judges
    }
    if path.suffix == ".sqlite" and (store := _store(path, name)):
        contents.labels.append(store)
    elif path.name in origins and name not in {
        *(one.path for one in contents.scored),
        *dict(contents.damaged),
    }:
        file = read_file(str(path), None)
        rows = tuple((row.id, row.source, row.output, row.scores) for row in file.rows)
        contents.labels.append(
            LabelFile(name, "preferences" if file.compared else "file of labels", rows)
        )


#: How a store of `judgesmith label` says that it is one.
_STORE = 0x6A6C6162
_STANDING = """SELECT unit, rater, action, body FROM events WHERE action != 'undo' AND turn = 0
    AND n NOT IN (SELECT undoes FROM events WHERE undoes IS NOT NULL) ORDER BY n"""


def _store(path: Path, name: str) -> LabelFile | None:
    """Return its rows with the answers that stand, the first time that they were shown; None for another database."""
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2)
    try:
        if db.execute("PRAGMA application_id").fetchone() != (_STORE,):
            return None
        store = db.execute(
            "SELECT key, body FROM units JOIN queue ON unit = key ORDER BY queue.place"
        ).fetchall()
        ratings: dict[str, dict[str, Any]] = {}
        for unit, rater, action, body in db.execute(_STANDING):
            if action == "skip":
                ratings.setdefault(unit, {})[rater] = "skipped"
            else:
                ratings.setdefault(unit, {})[rater] = _answer(json.loads(body))
        (task,) = db.execute(
            "SELECT value FROM meta WHERE name = 'task'"
        ).fetchone() or ("{}",)
    finally:
        db.close()
    rows = []
    for key, body in store:
        row = json.loads(body)["row"]
        text = row.get("output") or "\n—\n".join(
            str(row.get(f"output_{side}", "")) for side in "ab"
        )
        rows.append(
            (
                str(row.get("id", key)),
                str(row.get("source") or ""),
                text,
                ratings.get(key, {}),
            )
        )
    return LabelFile(
        name, f"store of label: {json.loads(task).get('kind', 'score')}", tuple(rows)
    )


def _answer(answer: dict[str, Any]) -> str:
    """Return an answer in a cell, with the reasons behind it."""
    why = answer.pop("why", {})
    return ", ".join(
        [*map(str, answer.values()), *(f"why: {text}" for text in why.values())]
    )


def _start(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(PEEKED).decode("utf-8", "replace")


def _scored_csv(start: str) -> bool:
    return "judge_score" in next(csv.reader(start.splitlines()[:1]), [])


def _scored(data: Scored, path: Path, name: str) -> ScoredFile:
    side = data.sides[0]
    both = ~(np.isnan(side.score) | np.isnan(side.human))
    x = side.score[both]
    y = side.human[both]
    varies = len(x) > 3 and np.ptp(x) > 0 and np.ptp(y) > 0
    spearman = float(scipy.stats.spearmanr(x, y).statistic) if varies else math.nan
    judges = tuple(dict.fromkeys(row.judge for row in data.rows if row.judge))
    if path.with_suffix(".html").exists():
        page = Path(name).with_suffix(".html").as_posix()
    else:
        page = None
    return ScoredFile(name, page, judges, summarise(data), spearman, int(both.sum()))


def _study(path: Path, name: str) -> StudyFolder:
    arms: dict[str, list[tuple[float, float]]] = {}
    failed = 0
    for record in open_table(path).records:
        if record.get("status") != "done":
            failed += 1
            continue
        keys = [key for key in ("arm", "model", "train") if key in record]
        title = " · ".join(str(record[key]) for key in keys)
        measured = (_number(record.get("q")), _number(record.get("calls")))
        arms.setdefault(title, []).append(measured)
    page = path.parent / "study.html"
    means = {}
    for title, seeds in arms.items():
        q, calls = np.mean(seeds, axis=0).tolist()
        means[title] = (q, len(seeds), calls)
    return StudyFolder(
        Path(name).parent.as_posix(),
        f"{Path(name).parent.as_posix()}/study.html" if page.exists() else None,
        means,
        failed,
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
