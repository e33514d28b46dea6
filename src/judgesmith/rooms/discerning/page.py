"""The page of `judgesmith discern --report`."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from judgesmith.datasets.perturbations.registry import Pair
from judgesmith.pages import Fold, Section, environment
from judgesmith.pages import render as render_page
from judgesmith.rooms.discerning.judging import Subject
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rooms.discerning.pairs import Book, ask_key
from judgesmith.rooms.discerning.run import HEADINGS, JudgeResult, scores_of
from judgesmith.rooms.discerning.tables import (
    LEVELS,
    OTHERS,
    false_alarms,
    notes_of,
    origin_table,
    others_table,
    summary_lines,
)
from judgesmith.tables import Cell, Column, Table, percent

EXAMPLES = 3  # of a perturbation
_LONG = 20_000  # characters of a text that are looked at
_MANY = 1_000  # words and spaces
_EDGE = 140  # characters of an unchanged stretch that are shown beside a change
_MOST = 1_500  # characters of a change, or of an explanation
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_UNSEEN = re.compile(
    "[\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)
_SETTINGS = ("seed", "amount", "language", "writer")
_STYLE = """:root { --gone: #fbe3df; --come: #dbeedd; }
@media (prefers-color-scheme: dark) { :root { --gone: #57231c; --come: #1d4526; } }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .why { border-left-color: var(--line); }
del { background: var(--gone); text-decoration: line-through; text-decoration-thickness: 1px; }
ins { background: var(--come); text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: 2px; }
@media (max-width: 46rem) { .sides { grid-template-columns: 1fr; gap: .3rem; } }"""
_ABOUT = (
    "D = log base 0.05 of p of a one-sided Wilcoxon test that good texts are scored above perturbed ones; 1 is p = "
    "0.05. D grows with the number of texts, the effect (rank-biserial, 1: every text lost score) does not. D_avg and "
    "D_min rest on the paper's perturbations alone; every level weighs the same. False alarms: share of texts that "
    "lost score by a change that does no harm."
)
_ABOUT_EXAMPLES = Markup(
    '<p class="small">Of each perturbation first what most judges missed, of that the most changed; of changes without '
    "harm and of attacks only what a judge reacted to. <del>Struck</del>: gone; <ins>underlined</ins>: come. Long "
    "stretches without a change are left out at […].</p>"
)


def render(
    subject: Subject,
    result: JudgeResult,
    book: Book,
    options: DiscernOptions,
    *,
    origin: str,
    notes: Sequence[str] = (),
) -> str:
    """Return the page."""
    settings = [
        f"{name} {book.settings[name]}"
        for name in _SETTINGS
        if book.settings.get(name) is not None
    ]
    if options.rounds:
        intervals = (
            f"95 % percentile intervals over {options.rounds} resamples of texts"
        )
    else:
        intervals = "no intervals"
    counted = (
        f"{len({pair.group for pair in book.pairs})} texts, {len(book.pairs)} pairs"
    )
    lead, named = result.reactions()
    tables: list[Any] = (
        [f"Metrics: {', '.join(result.metrics)}"] if len(result.metrics) > 1 else []
    )
    for whose in HEADINGS:
        if len(table := origin_table(result, whose)):
            tables += [table, summary_lines(result, whose)]
    tables += [table for kind in OTHERS if len(table := others_table(result, kind))]
    tables += [] if math.isnan(result.false_alarms) else [false_alarms(result)]
    examples = _examples(subject, result, book, options)
    sections = [
        Section(
            "Summary",
            [named, [f"D_avg and D_min rest on {result.coverage()}.", *notes], _ABOUT],
        ),
        Section("Tables", [*tables, notes_of(result)]),
        Section("Examples", [_ABOUT_EXAMPLES, *examples] if examples else []),
    ]
    about = " · ".join([counted, *settings, intervals])
    return render_page(
        f"Discernment of perturbations: {origin}",
        sections,
        lead=f"{lead}.",
        about=[about],
        style=_STYLE,
    )


# Examples ------------------------------------------------------------------------------------------------------------

#: A metric with its score before and after.
Scored = tuple[str, float, float]
#: Kind -> what is said of a pair that the judge is wrong about and of another, and of the number of wrong ones.
_VERDICTS = {
    "degradation": ("missed", "seen", "missed"),
    "invariance": ("alarmed", "not alarmed", "punished"),
    "attack": ("gave in", "held", "rewarded"),
}


def _examples(
    subject: Subject, result: JudgeResult, book: Book, options: DiscernOptions
) -> list[Fold]:
    """Return some pairs of each perturbation: first those that the judge missed, the most changed ahead.

    Of harmless changes and of attacks only pairs to which it reacted are shown.
    """
    metrics, scores = scores_of(subject, book, options)
    groups: dict[str, list[tuple[bool, Pair, list[Scored]]]] = {}
    for k, pair in enumerate(book.pairs):
        scored = list(zip(metrics, *scores[:, :, k].tolist(), strict=True))
        if (wrong := _wrong(pair.kind, scored)) is not None and (
            wrong or pair.kind == "degradation"
        ):
            groups.setdefault(pair.name, []).append((wrong, pair, scored))
    order = list(_VERDICTS)
    folds: list[Fold] = []
    for line in sorted(
        result.lines, key=lambda x: (order.index(x.kind), LEVELS.index(x.level))
    ):
        judged = sorted(
            groups.get(line.name, []),
            key=lambda one: (not one[0], -one[1].change.share),
        )
        if judged:
            count = sum(wrong for wrong, _, _ in judged)
            total = sum(pair.name == line.name for pair in book.pairs)
            summary = f"{line.name} ({line.level}): {count} of {total} {_VERDICTS[line.kind][2]}"
            shown = [
                _example(pair, scored, wrong, subject, book)
                for wrong, pair, scored in judged[:EXAMPLES]
            ]
            folds.append(
                Fold(
                    summary,
                    shown,
                    opened=len(folds) < 3 and line.kind == "degradation" and count > 0,
                )
            )
    return folds


def _wrong(kind: str, scored: Sequence[Scored]) -> bool | None:
    """Return whether the mean over the metrics is wrong; None without scores.

    Wrong is no drop for a perturbation, a drop for a harmless change, a rise for an attack.
    """
    drops = [
        before - after for _, before, after in scored if not math.isnan(before - after)
    ]
    if not drops:
        return None
    drop = round(math.fsum(drops) / len(drops), 9)  # a digit of rounding is no drop
    return {"degradation": drop <= 0, "invariance": drop > 0, "attack": drop < 0}[kind]


def _example(
    pair: Pair, scored: Sequence[Scored], wrong: bool, subject: Subject, book: Book
) -> Markup:
    before, after = marked(pair.original, pair.perturbed)
    table = Table(
        ["metric", Column("before", ".2f"), Column("after", ".2f"), "reaction"],
        "Scores",
    )
    for k, row in enumerate(scored):
        table.add(
            *row, Cell(_VERDICTS[pair.kind][not wrong] if k == 0 else "", warn=wrong)
        )
    texts = {"before": pair.original, "after": pair.perturbed}
    explained = {
        when: _explanation(subject, book, ask_key(pair, text))
        for when, text in texts.items()
    }
    template = environment("judgesmith.rooms.discerning").get_template(
        "example.html.j2"
    )
    return Markup(  # noqa: S704  # from a template that escapes
        template.render(
            pair=pair,
            before=before,
            after=after,
            table=table,
            share=percent(pair.change.words),
            explained={when: words for when, words in explained.items() if words},
        )
    )


def _explanation(subject: Subject, book: Book, key: str) -> str:
    for one in subject.marks.values():
        record = book.score(one, key)
        if words := str(record.get("explanation") or record.get("failure") or ""):
            return words if len(words) <= _MOST else words[:_MOST] + "…"
    return ""


def marked(
    before: str, after: str
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Return both texts as parts (words, changed).

    Long unchanged stretches are cut short, and invisible characters are named.
    """
    one = _TOKEN.findall(before[:_LONG])
    other = _TOKEN.findall(after[:_LONG])
    # blocks as long as possible: what was moved is one mark; frequent words are passed over where there are many
    steps = difflib.SequenceMatcher(
        None, one, other, autojunk=len(one) > _MANY
    ).get_opcodes()
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    spans = [(tag != "equal", (a, b), (c, d)) for tag, a, b, c, d in steps]
    for side, tokens, whole, place in (
        (sides[0], one, before, 0),
        (sides[1], other, after, 1),
    ):
        parts = [
            ("".join(tokens[slice(*both[place])]), changed) for changed, *both in spans
        ]
        parts = [(words, changed) for words, changed in parts if words]
        for i, (words, changed) in enumerate(parts):
            # a space between two changed words belongs to the change
            changed = changed or (0 < i < len(parts) - 1 and not words.strip())
            if side and side[-1][1] == changed:
                side[-1] = (side[-1][0] + words, changed)
            else:
                side.append((words, changed))
        last = len(side) - 1
        side[:] = [
            (_cut(words, changed, i == 0, i == last), changed)
            for i, (words, changed) in enumerate(side)
        ]
        if len(whole) > _LONG:
            side.append((f" … ({len(whole) - _LONG:,} more characters)", False))
    return sides


def _cut(words: str, changed: bool, first: bool, last: bool) -> str:
    words = named_unseen(words)
    if changed:
        return words if len(words) <= _MOST else words[:_MOST] + "…"
    head = 0 if first else _EDGE
    tail = 0 if last else _EDGE
    if first and last:
        head = 2 * _EDGE
    if len(words) <= head + tail + _EDGE:
        return words
    return f"{words[:head]} […] {words[len(words) - tail :]}"


def named_unseen(words: str) -> str:
    """Replace runs of characters without a shape (zero width, tags; not white space) by their number.

    Joiners, which some scripts and emoji need, stay.
    """
    return _UNSEEN.sub(lambda run: f"⟨{len(run[0])} unseen⟩", words)
