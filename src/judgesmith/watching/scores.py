"""`judgesmith diff` on the same rows: how alike two judges order them, what flips, and which rows moved most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..agreement.correlation import Vector, correlate
from ..agreement.resampling import Interval, Measure, bootstrap_q
from ..datasets.records import Row
from ..errors import LabelsError
from ..evaluating.sources import places
from ..programs.judge import Judge
from ..reports.rows import Mean, mean_of, read_scored
from ..running.console import Watch
from ..running.plain import finite
from ..scoring.scoring import item_of
from ..signatures.values import Verdict

#: Rows that are listed.
MOST_MOVED = 10


@dataclass(frozen=True, slots=True)
class Scores:
    """One judge's verdicts on some rows. score: NaN where `failure` says why. category: "" where there is none. scale:
    where it is known."""

    name: str
    rows: Sequence[Row]
    score: Vector
    category: Sequence[str]
    scale: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A row, with both scores and categories."""

    row: Row
    a: float
    b: float
    category_a: str
    category_b: str

    def to_dict(self) -> dict[str, Any]:
        data = {"id": self.row.id, "doc_id": self.row.doc_id, "a": self.a, "b": self.b, "difference": self.b - self.a}
        categories = {"category_a": self.category_a or None, "category_b": self.category_b or None}
        return data | categories | {"output": self.row.output}


@dataclass(frozen=True, slots=True)
class ScoreDiff:
    """Two judges on the same rows. n: rows that both scored, of `documents` documents; failed: rows without a score, by
    who failed. equal: rows with the same score. difference: mean of b less a, None where the scales differ. reversed:
    pairs of rows that the judges order the opposite way, of `pairs` that neither holds for equal. flips: rows with
    another category, of `n`, by (from, to); None where there are no categories. moved: the rows that moved most."""

    rows: int
    n: int
    documents: int
    failed: Mapping[str, int]
    equal: int
    spearman: Interval
    kendall: Interval
    difference: Mean | None
    reversed: int
    pairs: int
    flips: Mapping[tuple[str, str], int] | None
    moved: Sequence[Moved]
    notes: Sequence[str] = ()

    @property
    def same(self) -> bool:
        """Whether both gave every row the same score and category, or none."""
        return self.equal == self.n and not self.failed["a"] and not self.failed["b"] and not self.flips

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = finite(
            {
                "rows": self.rows, "n": self.n, "documents": self.documents, "failed": dict(self.failed),
                "equal": self.equal, "spearman": asdict(self.spearman), "kendall": asdict(self.kendall),
                "difference": self.difference and self.difference._asdict(),
                "order_flips": {"reversed": self.reversed, "pairs": self.pairs},
                "category_flips": None if self.flips is None else [
                    {"a": a, "b": b, "rows": count} for (a, b), count in self.flips.items()
                ],
                "moved": [row.to_dict() for row in self.moved], "notes": list(self.notes),
            }
        )  # fmt: skip
        return told


def read_scores(path: Path, columns: Mapping[str, str] | None = None) -> Scores:
    """What `judgesmith score` wrote. Raises LabelsError."""
    scored = read_scored(path, columns=columns)
    return Scores(
        path.name, [one.row for one in scored.rows], np.array([one.score for one in scored.rows]),
        [one.verdict.category or "" for one in scored.rows],
    )  # fmt: skip


def judge_rows(name: str, judge: Judge, rows: Sequence[Row], watch: Watch) -> Scores:
    """Let a judge score rows now. Raises ModelError, OutageError."""
    watch.stage(f"scoring with {name}", len(rows))
    verdicts: list[Verdict] = []
    for verdict in judge.score_many(map(item_of, rows), progress=False):
        verdicts.append(verdict)
        watch.step()
    return Scores(
        name, rows, np.array([verdict.score for verdict in verdicts]), [v.category or "" for v in verdicts],
        (judge.scale.low, judge.scale.high),
    )  # fmt: skip


def compare_scores(a: Scores, b: Scores, *, rounds: int = 2000, seed: int = 0) -> ScoreDiff:
    """Rows are joined by id. Raises LabelsError where none is in both, or an id holds another output."""
    pairs, notes = _joined(a, b)
    rows = [a.rows[i] for i, _ in pairs]
    x, y = (one.score[[pair[side] for pair in pairs]] for side, one in enumerate((a, b)))
    categories = [(a.category[i], b.category[j]) for i, j in pairs]
    both = ~(np.isnan(x) | np.isnan(y))
    known = [row for row, there in zip(rows, both, strict=True) if there]
    documents = [row.doc_id for row in known]
    result = {
        name: bootstrap_q(x[both], Measure(y[both], documents=documents, coefficient=name), rounds=rounds, seed=seed)
        for name in ("spearman", "kendall")
    }
    same_scale = a.scale == b.scale
    if not same_scale:
        notes.append("the scales differ, so that the scores themselves cannot be compared; their order can")
    turned, all_pairs = reversed_pairs(x[both], y[both])
    decided = [pair for pair, there in zip(categories, both, strict=True) if there and all(pair)]
    flips = Counter(pair for pair in decided if pair[0] != pair[1])
    return ScoreDiff(
        rows=len(rows), n=int(both.sum()), documents=len(set(documents)),
        failed={"a": int((np.isnan(x) & ~np.isnan(y)).sum()), "b": int((np.isnan(y) & ~np.isnan(x)).sum()),
                "both": int((np.isnan(x) & np.isnan(y)).sum())},
        equal=int(np.isclose(x[both], y[both], rtol=0, atol=1e-9).sum()),
        spearman=result["spearman"], kendall=result["kendall"],
        difference=mean_of((y - x)[both], documents) if same_scale else None,
        reversed=turned, pairs=all_pairs, flips=dict(flips.most_common()) if decided else None,
        moved=_moved(rows, x, y, categories), notes=notes,
    )  # fmt: skip


def _joined(a: Scores, b: Scores) -> tuple[list[tuple[int, int]], list[str]]:
    """Places of the same rows in both, and notes on the others."""
    if a.rows is b.rows:
        return [(i, i) for i in range(len(a.rows))], []
    here, there = places(a.name, a.rows), places(b.name, b.rows)
    shared = [(i, there[name]) for name, i in here.items() if name in there]
    if not shared:
        raise LabelsError(
            f"no id of {a.name} is in {b.name} ({next(iter(here), 'none')!r} here, {next(iter(there), 'none')!r} "
            "there); the files are joined by id"
        )
    for i, j in shared:
        if a.rows[i].output != b.rows[j].output:
            raise LabelsError(
                f"id {a.rows[i].id!r} is another output in {b.name} (row {b.rows[j].line}) than in {a.name} (row "
                f"{a.rows[i].line}); give two files of the same rows"
            )
    missing = [(x, len(x.rows) - len(shared)) for x in (a, b)]
    return shared, [f"{count} rows of {x.name} are not in the other file" for x, count in missing if count]


def _moved(rows: Sequence[Row], x: Vector, y: Vector, categories: Sequence[tuple[str, str]]) -> list[Moved]:
    """The rows whose ranks moved most among all, whatever the scales; rows that did not move are left out."""
    from scipy.stats import rankdata

    both = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    far = np.abs(rankdata(x[both]) - rankdata(y[both]))
    gap = np.abs(x[both] - y[both])
    order = [k for k in np.lexsort((-gap, -far)) if far[k] > 0 or gap[k] > 1e-9][:MOST_MOVED]
    return [Moved(rows[i], float(x[i]), float(y[i]), *categories[i]) for i in both[order]]


def reversed_pairs(x: Vector, y: Vector) -> tuple[int, int]:
    """(pairs of rows that x and y order the opposite way, pairs that both order), in O(n log n): tau-b has concordant
    less discordant pairs, and counting ties gives their sum."""
    n = len(x)
    if n < 2:
        return 0, 0
    tied = [_tied(counts) for counts in (x, y, np.stack([x, y]))]
    every = n * (n - 1) // 2
    ordered = every - tied[0] - tied[1] + tied[2]
    untied = math.sqrt(every - tied[0]) * math.sqrt(every - tied[1])
    tau = correlate(x, y, coefficient="kendall", level="pooled").value
    surplus = tau * untied if untied else 0.0
    return round((ordered - surplus) / 2), ordered


def _tied(values: Vector) -> int:
    counts = np.unique(values, axis=-1, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


__all__ = ["Moved", "ScoreDiff", "Scores", "compare_scores", "judge_rows", "read_scores", "reversed_pairs"]
