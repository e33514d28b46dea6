"""The page of `judgesmith discern --report`."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from ..datasets.perturbations.registry import Pair
from ..pages import Fold, Section, environment
from ..pages import render as render_page
from ..tables import Cell, Column, Table, percent
from .options import DiscernOptions
from .pairs import Book, Contender, ask_key
from .run import HEADINGS, JudgeResult, scores_of
from .tables import (
    LEVELS,
    OTHERS,
    false_alarms,
    notes_of,
    origin_table,
    others_table,
    summary_lines,
)  # fmt: skip

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
    contenders: Sequence[Contender],
    results: Sequence[JudgeResult],
    book: Book,
    how: DiscernOptions,
    *,
    origin: str,
    notes: Sequence[str] = (),
) -> str:
    """The page."""
    settings = [f"{name} {book.settings[name]}" for name in _SETTINGS if book.settings.get(name) is not None]
    intervals = f"95 % intervals over {how.rounds} resamples of the texts" if how.rounds else "no intervals"
    counted = f"{len({pair.group for pair in book.pairs})} texts, {len(book.pairs)} pairs"
    rests = list(dict.fromkeys(f"D_avg and D_min rest on {result.coverage()}." for result in results))
    examples = _examples(contenders, results, book, how)
    sections = [
        Section("Summary", [_summary(results), *map(_counted, results), [*rests, *notes], _ABOUT]),
        *map(_judge, results),
        Section("Examples", [_ABOUT_EXAMPLES, *examples] if examples else []),
    ]  # fmt: skip
    about = " · ".join([counted, *settings, intervals])
    return render_page(f"Discernment of perturbations: {origin}", sections, about=[about], style=_STYLE)


def _summary(results: Sequence[JudgeResult]) -> Table:
    numbers = (Column("D_avg", ".2f"), Column("D_min", ".2f"))
    made = Table(["judge", *numbers, "least seen", Column("false alarms", ".0%"), Column("texts without score", "d")])
    for result in results:
        s = result.summary
        made.add(result.judge, s.d_avg, s.d_min, s.worst, result.false_alarms, result.failed)
    return made


def _counted(result: JudgeResult) -> Fold:
    """What a judge sees, counted, and the names behind each number."""
    parts = {
        "not seen": result.named("degradation", "no"),
        "doubtful": result.named("degradation", "alone"),
        "too few texts to tell": result.named("degradation", "unknown"),
        "lowers its score without need for": result.named("invariance", "yes"),
        "gives in to": result.named("attack", "yes"),
    }
    seen, harmful = result.named("degradation", "yes"), [x for x in result.of("degradation") if x.test.n]
    counts = "".join(f"; {title} {len(names)}" for title, names in parts.items() if names)
    listed = [f"{title.capitalize()}: {', '.join(names)}" for title, names in parts.items() if names]
    return Fold(f"{result.judge}: sees {len(seen)} of {len(harmful)} perturbations{counts}", [listed] if listed else [])


def _judge(result: JudgeResult) -> Section:
    parts: list[Any] = [f"Metrics: {', '.join(result.metrics)}"] if len(result.metrics) > 1 else []
    for origin in HEADINGS:
        if len(table := origin_table(result, origin)):
            parts += [table, summary_lines(result, origin)]
    parts += [table for kind in OTHERS if len(table := others_table(result, kind))]
    parts += [] if math.isnan(result.false_alarms) else [false_alarms(result)]
    return Section(result.judge, [*parts, notes_of(result)])


# Examples ------------------------------------------------------------------------------------------------------------

#: A metric with its score before and after.
Scored = tuple[str, float, float]
_VERDICTS = {"degradation": ("missed", "seen"), "invariance": ("alarmed", "not alarmed"), "attack": ("gave in", "held")}


def _examples(
    contenders: Sequence[Contender], results: Sequence[JudgeResult], book: Book, how: DiscernOptions
) -> list[Fold]:
    """For each perturbation some pairs, first those that most judges missed, of these the most changed; of changes
    without harm and of attacks only pairs to which a judge reacted."""
    tables = [scores_of(contender, book, how) for contender in contenders]
    groups: dict[str, list[tuple[Pair, list[list[Scored]]]]] = {}
    for k, pair in enumerate(book.pairs):
        several = [list(zip(metrics, *scores[:, :, k].tolist(), strict=True)) for metrics, scores in tables]
        groups.setdefault(pair.name, []).append((pair, several))
    lines = {line.name: line for result in results for line in result.lines}
    ordered = sorted(
        (lines[name] for name in groups if name in lines),
        key=lambda x: (list(_VERDICTS).index(x.kind), LEVELS.index(x.level)),
    )
    made: list[Fold] = []
    for line in ordered:
        judged = groups[line.name]
        wrong = {id(pair): [_wrong(pair.kind, scores) for scores in several] for pair, several in judged}
        judged = [(pair, scores) for pair, scores in judged if any(one is not None for one in wrong[id(pair)])]
        missed = {id(pair): sum(one is True for one in wrong[id(pair)]) for pair, _ in judged}
        if line.kind != "degradation":
            judged = [(pair, scores) for pair, scores in judged if missed[id(pair)]]
        judged.sort(key=lambda one: (-missed[id(one[0])], -one[0].change.share))
        shown = [_example(pair, scores, wrong[id(pair)], contenders, book) for pair, scores in judged[:EXAMPLES]]
        if shown:
            count = sum(bool(missed[id(pair)]) for pair, _ in judged)
            what, done = {
                "degradation": (line.level, "missed"), "invariance": ("without harm", "punished"),
                "attack": ("attack", "rewarded"),
            }[line.kind]  # fmt: skip
            summary = f"{line.name} ({what}): {count} of {len(groups[line.name])} {done}"
            summary += " by at least one judge" if len(results) > 1 else ""
            made.append(Fold(summary, shown, opened=len(made) < 3 and line.kind == "degradation" and count > 0))
    return made


def _wrong(kind: str, scores: Sequence[Scored]) -> bool | None:
    """Whether the mean over the metrics is wrong: no drop for a perturbation, a drop for a change without harm, a rise
    for an attack; None without scores."""
    drops = [before - after for _, before, after in scores if not math.isnan(before - after)]
    if not drops:
        return None
    drop = round(math.fsum(drops) / len(drops), 9)  # a digit of rounding is no drop
    return {"degradation": drop <= 0, "invariance": drop > 0, "attack": drop < 0}[kind]


def _example(
    pair: Pair, seen: Sequence[Sequence[Scored]], wrong: Sequence[bool | None],
    contenders: Sequence[Contender], book: Book,
) -> Markup:  # fmt: skip
    before, after = marked(pair.original, pair.perturbed)
    metrics = ["metric"] if any(len(scores) > 1 for scores in seen) else []
    table = Table(["judge", *metrics, Column("before", ".2f"), Column("after", ".2f"), "reaction"], "Scores")
    explained = []
    for contender, scores, missed in zip(contenders, seen, wrong, strict=True):
        verdict = "no score" if missed is None else _VERDICTS[pair.kind][0 if missed else 1]
        for k, (metric, *both) in enumerate(scores):
            name, reaction = (contender.name, verdict) if k == 0 else ("", "")
            table.add(name, *([metric] if metrics else []), *both, Cell(reaction, warn=missed is True))
        texts = {"before": pair.original, "after": pair.perturbed}
        explanations = {when: _explanation(contender, book, ask_key(pair, text)) for when, text in texts.items()}
        explained.append((contender.name, [(when, words) for when, words in explanations.items() if words]))
    template = environment("judgesmith.discerning").get_template("example.html.j2")
    return Markup(  # noqa: S704  # from a template that escapes
        template.render(pair=pair, before=before, after=after, table=table, explained=explained,
                        share=percent(pair.change.words))
    )  # fmt: skip


def _explanation(contender: Contender, book: Book, key: str) -> str:
    for one in contender.marks.values():
        record = book.scores.get((one, key, 0)) or {}
        if words := str(record.get("explanation") or record.get("failure") or ""):
            return words if len(words) <= _MOST else words[:_MOST] + "…"
    return ""


def marked(before: str, after: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts as parts (words, changed); long unchanged stretches are cut short, and characters that no one sees are
    named."""
    one, other = _TOKEN.findall(before[:_LONG]), _TOKEN.findall(after[:_LONG])
    # blocks as long as possible: what was moved is one mark; frequent words are passed over where there are many
    steps = difflib.SequenceMatcher(None, one, other, autojunk=len(one) > _MANY).get_opcodes()
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    spans = [(tag != "equal", (a, b), (c, d)) for tag, a, b, c, d in steps]
    for side, tokens, whole, place in ((sides[0], one, before, 0), (sides[1], other, after, 1)):
        parts = [("".join(tokens[slice(*both[place])]), changed) for changed, *both in spans]
        parts = [(words, changed) for words, changed in parts if words]
        for i, (words, changed) in enumerate(parts):
            # a space between two changed words belongs to the change
            changed = changed or (0 < i < len(parts) - 1 and not words.strip())
            if side and side[-1][1] == changed:
                side[-1] = (side[-1][0] + words, changed)
            else:
                side.append((words, changed))
        last = len(side) - 1
        side[:] = [(_cut(words, changed, i == 0, i == last), changed) for i, (words, changed) in enumerate(side)]
        if len(whole) > _LONG:
            side.append((f" … ({len(whole) - _LONG:,} more characters)", False))
    return sides


def _cut(words: str, changed: bool, first: bool, last: bool) -> str:
    words = named_unseen(words)
    if changed:
        return words if len(words) <= _MOST else words[:_MOST] + "…"
    head, tail = (0 if first else _EDGE), (0 if last else _EDGE)
    if first and last:
        head = 2 * _EDGE
    if len(words) <= head + tail + _EDGE:
        return words
    return f"{words[:head]} […] {words[len(words) - tail :]}"


def named_unseen(words: str) -> str:
    """Runs of characters without a shape (zero width, tags; not white space) by their number. Joiners, which some
    scripts and emoji need, stay."""
    return _UNSEEN.sub(lambda run: f"⟨{len(run[0])} unseen⟩", words)
