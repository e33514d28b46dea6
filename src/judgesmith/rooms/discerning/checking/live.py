"""Checks of a judge that is asked: the rows as they are and after each change, and what could not be changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import assert_never

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.errors import OptionError
from judgesmith.programs.baselines.metrics import PREFIX
from judgesmith.programs.comparing.comparison import Comparing, Order
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.provider import NO_MODEL, RECORDED
from judgesmith.rooms.discerning.checking.rows import (
    PLAIN,
    CheckOptions,
    Rows,
    is_english,
    item_of,
    leave_out,
    padded,
    row_key,
)
from judgesmith.rooms.discerning.checking.rubrics import reads_rubric, reworded
from judgesmith.rooms.discerning.checking.statistics import PADDED
from judgesmith.rooms.discerning.judging import Subject, Task, open_subject
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rooms.discerning.pairs import Book
from judgesmith.running.criteria import read_criteria_file
from judgesmith.signatures.values import Item


@dataclass
class Live:
    """A judge that is asked. items: by check the changed rows; None for one that could not be changed."""

    subject: Subject
    rows: Rows
    items: dict[str, list[Item | None]]
    left: dict[str, str]
    notes: list[str]

    @property
    def own(self) -> Judge:
        """The judge as it is."""
        judge: Judge = self.subject.scorers[PLAIN]
        return judge

    @property
    def models(self) -> list[LanguageModel]:
        """The models of all variants."""
        return [scorer.lm for scorer in self.subject.scorers.values()]

    def tasks(self, book: Book) -> list[Task]:
        """Return the tasks without a score."""
        result: list[Task] = []
        items_of = {PLAIN: list[Item | None]()}
        for check, items in self.items.items():
            scorer = check if check in self.subject.scorers else PLAIN
            items_of.setdefault(scorer, []).extend(items)
        for scorer, items in items_of.items():
            mark = self.subject.marks[scorer]
            wanted = {row_key(item): item for item in items if item is not None}
            missing = {
                key: item
                for key, item in wanted.items()
                if book.score(mark, key).get("score") is None
            }
            if missing:
                result.append((scorer, 0, missing))
        return result

    def scored(self, book: Book, check: str) -> tuple[Vector, list[str | None]]:
        """Return scores as shares of the scale, and the categories, of the rows after a change."""
        mark = self.subject.marks[check if check in self.subject.scorers else PLAIN]
        scale = self.own.scale
        values = np.full(len(self.rows.rows), math.nan)
        categories = list[str | None]()
        for place, item in enumerate(self.items[check]):
            record = {} if item is None else book.score(mark, row_key(item))
            if (score := record.get("score")) is not None:
                values[place] = scale.to_percent(score) / 100
            categories.append(record.get("category"))
        return values, categories


def open_live(
    target: str,
    lm: str | None,
    where: Connection,
    how: DiscernOptions,
    *,
    brief: bool,
) -> Subject:
    """Return the judge, asked as usual, and for `repeat` without the cache.

    Raises:
        OptionError: If checks cannot be made of the judge.
    """
    if target.startswith(PREFIX):
        raise OptionError(
            f"{target}: no check applies to a metric, which is not asked; leave --check out to test it on perturbations"
        )
    opened = [
        open_subject(target, lm, reach, how, brief=brief)
        for reach in (where, replace(where, cache=False))
    ]
    if len(opened[0].scorers) != 1:
        raise OptionError(
            f"{target}: checks are made of one judge, and --metrics names {len(opened[0].scorers)}; name one"
        )
    (plain, again) = [next(iter(one.scorers.values())) for one in opened]
    (mark, _) = [next(iter(one.marks.values())) for one in opened]
    return Subject(
        opened[0].name,
        {PLAIN: plain, "repeat": again},
        {PLAIN: mark, "repeat": f"{mark}:again"},
    )


def prepared(
    subject: Subject,
    rows: Rows,
    wanted: Mapping[str, bool],
    how: DiscernOptions,
    more: CheckOptions,
) -> Live:
    """Return the rows after every change that the judge and the rows allow.

    Raises:
        OptionError: If a check that was named itself cannot be made.
    """
    weighs = bool(subject.scorers[PLAIN].method.columns())
    plain = [
        item_of(row, how, record if weighs else {})
        for row, record in zip(rows.rows, rows.records, strict=True)
    ]
    scorers = dict(subject.scorers)
    marks = dict(subject.marks)
    live = Live(
        Subject(subject.name, scorers, marks), rows, {PLAIN: list(plain)}, {}, []
    )
    own = live.own
    for check, named in wanted.items():
        if check == "own":
            continue
        reason = _not_live(check, own)
        if reason is None and check in ("reworded", "swapped"):
            other, reason = _variant(check, own, plain[0], how, more)
            scorers[check], marks[check] = other, f"{marks[PLAIN]}:{check}"
            if check == "reworded":
                marks[check] += f":{_words_of(other)}"
        if reason is None:
            live.items[check] = list(plain)
            if check in PADDED:
                texts = padded(check, rows.rows, how)
                live.items[check] = [
                    None if text is None else replace(item, output=text)
                    for item, text in zip(plain, texts, strict=True)
                ]
                missing = sum(text is None for text in texts)
                reason = None if any(texts) else unchanged(check, how)
                if missing and reason is None:
                    live.notes.append(_unchanged_some(check, missing, len(texts)))
        if reason is not None:
            leave_out(check, reason, named=named, left=live.left)
            live.items.pop(check, None)
    return live


def _not_live(check: str, own: Judge) -> str | None:
    """Return why a check cannot be made of a judge, for any rows."""
    name = own.lm.name
    if name.startswith(RECORDED):
        return (
            "a recorded model repeats what stands in its file; name the column as the judge and those of its scores "
            "after a change with --recorded CHECK=COLUMN"
        )
    if name == NO_MODEL:
        return "this judge asks no model, so it says the same again; check the judge whose column it weighs"
    if check in PADDED and own.method.columns():
        names = ", ".join(column.name for column in own.method.columns())
        return f"this judge weighs the columns {names}, which say nothing of a changed text"
    return None


def _variant(
    check: str, own: Judge, item: Item, how: DiscernOptions, more: CheckOptions
) -> tuple[Judge, str | None]:
    """Return the judge with other words or another order, or why there is none."""
    match check:
        case "swapped":
            return _swapped(own)
        case "reworded":
            return _reworded(own, item, how, more)
        case _:
            raise OptionError(f"{check!r} changes neither words nor order of a judge")


def _swapped(own: Judge) -> tuple[Judge, str | None]:
    if not isinstance(own.method, Comparing):
        return own, "this judge reads one output at a time, so no order can matter"
    order: Order = own.method.options.order
    match order:
        case "both":
            why = "this judge asks in both orders already; set its option order"
            return own, why
        case "output-first":
            return own.with_(order="other-first"), None
        case "other-first":
            return own.with_(order="output-first"), None
        case _:
            assert_never(order)


def _reworded(
    own: Judge, item: Item, how: DiscernOptions, more: CheckOptions
) -> tuple[Judge, str | None]:
    if more.rubric is None and not is_english(how):
        return own, "the rules reword English; give other words with --rubric FILE"
    words = [] if more.rubric is None else read_criteria_file(more.rubric, "--rubric")
    other = reworded(own, words)
    if not reads_rubric(own, other, item):
        return own, "no prompt of this judge holds a task or criteria to be reworded"
    return other, None


def _words_of(other: Judge) -> str:
    knowledge = other.method.knowledge.dump_state()
    return sha256(str(knowledge).encode()).hexdigest()[:12]


def _unchanged_some(check: str, missing: int, rows: int) -> str:
    """Return the note on outputs that a check left out."""
    why = {
        "layout": "a list needs two sentences",
        "style": "they have none of the marks that are exchanged",
        "length": "they are empty",
    }[check]
    return f"{check}: {missing} of {rows} outputs were left out, since {why}"


def unchanged(check: str, how: DiscernOptions) -> str:
    """Return why no output was changed."""
    if check == "length" and not is_english(how):
        return f"the sentences that are added are English, and --language is {how.language}"
    return "no output of these rows could be changed so"
