"""Labelled rows, and how a file was read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.duplicates import SHARE, merge
from judgesmith.datasets.marks import Kind
from judgesmith.datasets.problems import by_reason
from judgesmith.datasets.row import Row
from judgesmith.datasets.scales import infer_scale

#: The aspect of labels that have the scores of several, in percent, and their mean as this one.
TOGETHER = "all aspects"


@dataclass(frozen=True)
class Account:
    """Every row of a file, as a label or as `skipped` with its reason.

    rows: in the file, `labelled` of them with a rating that was taken. skipped: (row from 1, reason). raters: how many
    people rated. columns: role -> column, in words. unused: columns with texts that play no role. scale_from: where the
    scale stands, None where it was given or inferred. roles: the columns as `--columns` takes them, those of several
    raters apart. ids: of the rows that have one in the file, by number.
    """

    rows: int
    labelled: int
    skipped: tuple[tuple[int, str], ...] = ()
    raters: int = 1
    columns: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    scale_from: str | None = None
    roles: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    ids: Mapping[int, str] = field(default_factory=dict, repr=False)

    def reasons(self) -> dict[str, list[int]]:
        """Return the skipped rows by reason."""
        return by_reason(self.skipped)


@dataclass(frozen=True, repr=False)
class Labels:
    """Rows with human scores for one aspect. `scale` is (worst, best); `scale_given` is False where it was inferred.

    kind: what people gave: scores, ordered categories, pass or fail, or preferences between two outputs (whose scores
    are the share of comparisons won, and mean something within a document only). `categories` names the categories,
    worst first, and `levels` are their scores; both are empty for scores and preferences. `account` has every
    row of the file, read or skipped. `origin` is the file's name without its folder, or "<table>". `warnings` are
    sentences to show to the user. `template_share` is the share of all documents from which nearly equal texts are a
    template and no duplicates.
    """

    rows: tuple[Row, ...]
    aspect: str
    scale: tuple[float, float]
    scale_given: bool = True
    origin: str = "<table>"
    warnings: tuple[str, ...] = ()
    kind: Kind = "score"
    categories: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    account: Account | None = field(default=None, repr=False, compare=False)
    template_share: float = SHARE

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        low, high = self.scale
        return f"Labels({len(self)} rows of {self.origin}, {self.kind} {self.aspect!r} on {low:g}..{high:g})"

    @property
    def count(self) -> str:
        """How many labels there are, in words; two outputs share a preference."""
        if self.kind == "preference":
            given = len(self) // 2 if self.account is None else self.account.labelled
            return f"{given} preferences"
        return f"{len(self)} labels"

    def understood(self) -> dict[str, Any]:
        """Return the reading of the file, as JSON values.

        Every one of its `rows` is `labelled` or `skipped`; rows of several raters of one output are one of `outputs`.
        """
        account = self.account or Account(len(self), len(self))
        return {
            "rows": account.rows,
            "labelled": account.labelled,
            "skipped": len(account.skipped),
            "skipped_rows": [
                {"row": line, "reason": reason}
                | ({"id": account.ids[line]} if line in account.ids else {})
                for line, reason in account.skipped
            ],
            "outputs": len(self),
            "raters": account.raters,
            "kind": self.kind,
            "categories": list(self.categories),
            "aspect": self.aspect,
            "scale": list(self.scale),
            "scale_from": "inferred"
            if not self.scale_given
            else account.scale_from or "given",
            "columns": dict(account.columns),
            "unused": list(account.unused),
            "notes": list(self.warnings),
        }

    @property
    def scores(self) -> NDArray[np.float64]:
        """Return the human scores of the aspect, shape (rows,), on `scale`; NaN for a row without one."""
        return np.array(
            [row.scores.get(self.aspect, math.nan) for row in self.rows],
            dtype=np.float64,
        )

    @property
    def groups(self) -> list[str]:
        """Return the group of every row, in row order."""
        return [row.group for row in self.rows]

    @property
    def suggested(self) -> NDArray[np.bool_]:
        """Return a mask of the rows that `suggest` chose, so that what holds for them need not hold for others."""
        return np.array([row.suggested for row in self.rows], dtype=np.bool_)

    @cached_property
    def grouped(self) -> Labels:
        """Return the same rows in groups that share no document and no text (`duplicates`), worked out once."""
        rows = merge_groups(self.rows, self.template_share)
        return self if rows == self.rows else replace(self, rows=rows)

    def regrouped(self, share: float) -> Labels:
        """Return the same rows, the file's groups joined again; the notes list what was joined and what was not.

        Args:
            share: The share of all documents above which nearly equal texts are a template and no duplicates.
        """
        if share == self.template_share:
            return self
        rows = [replace(row, group=row.own_group or row.group) for row in self.rows]
        before = merge(rows, self.template_share).warnings(rows, self.origin)
        merged = merge(rows, share)
        own_warnings = (note for note in self.warnings if note not in before)
        notes = (*own_warnings, *merged.warnings(rows, self.origin))
        return replace(
            self, rows=merged.applied(rows), warnings=notes, template_share=share
        )

    def subset(self, indices: Iterable[int]) -> Labels:
        """Return these rows, in the order of `indices`, with everything else kept.

        Raises:
            IndexError: For an index beyond the rows.
        """
        return replace(self, rows=tuple(self.rows[int(index)] for index in indices))

    def fingerprint(self) -> str:
        """Sha256 (64 hex digits) over ids, texts, scores of the aspect, reasons, scale. The order of rows counts."""
        digest = hashlib.sha256(
            json.dumps([self.aspect, *map(float, self.scale)]).encode()
        )
        for row, score in zip(self.rows, self.scores.tolist(), strict=True):
            digest.update(b"\n")
            texts = [row.id, row.source, row.context, row.output, row.reference]
            digest.update(json.dumps([*texts, score, *row.why(self.aspect)]).encode())
        return digest.hexdigest()


def merge_groups(rows: Sequence[Row], share: float = SHARE) -> tuple[Row, ...]:
    """Join the groups that share a document or a text, equal or nearly so, so that no split can part duplicates.

    A joined group takes the name of its first row's group. `duplicates` says when texts are the same, and how much a
    text alone may join. Merging again changes nothing.
    """
    return merge(rows, share).applied(rows)


def on_one_scale(labels: Labels, heldout: Labels) -> tuple[Labels, Labels]:
    """Labels and held-out ones on one scale that holds the ratings of both, where one scale or both were inferred.

    A stated scale is a bound: an inferred one gives way to it, and is never widened for ratings outside it. As they are
    where both are stated, ratings lie outside, or the kinds differ.
    """
    if (labels.kind, labels.levels) != (
        heldout.kind,
        heldout.levels,
    ) or labels.scale == heldout.scale:
        return labels, heldout
    if labels.scale_given and heldout.scale_given:
        return labels, heldout
    stated = next((side.scale for side in (labels, heldout) if side.scale_given), None)
    low, high = stated or labels.scale
    values = np.array(
        [
            value
            for side in (labels, heldout)
            for row in side.rows
            for value in row.single(side.aspect)
        ]
    )
    if not (low <= values.min() and values.max() <= high):
        if stated:
            return labels, heldout
        low, high = infer_scale(values, len(labels))
    if labels.scale != (low, high):
        theirs = heldout.scores
        note = (
            f"{labels.origin}: the scale is {low:g}..{high:g}, as held-out scores lie between {theirs.min():g} and "
            f"{theirs.max():g}; pass --scale LOW HIGH if that is wrong"
        )
        labels = replace(labels, scale=(low, high), warnings=(*labels.warnings, note))
    return labels, replace(heldout, scale=(low, high))
