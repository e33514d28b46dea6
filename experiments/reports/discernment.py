"""What `judgesmith discern` found as one HTML file: no network, no scripts, every text escaped."""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...datasets.perturbations.registry import Pair
from ...errors import OptionError
from ...programs.atomic import write_whole
from ..discernment.comparison import Comparison
from ..discernment.options import DiscernOptions
from ..discernment.pairs import Book, Contender, ask_key
from ..discernment.run import JudgeResult, Line, metric_values
from ..discernment.tables import SEES, difference_in_words, p_text, share_text
from ..evaluation.tables import plain_number
from ..plain import clean
from .page import INK, LINE, environment, inline_svg, own_ids

EXAMPLES = 3  # of a perturbation
_TALLEST = 8.0  # of the figure's axis, as in the figure of --plot
_LONG = 20_000  # characters of a text that are looked at
_MANY = 1_000  # words and spaces
_EDGE = 140  # characters of an unchanged stretch that stand beside a change
_JUDGES = 6  # colours
_MOST = 1_500  # characters of a change, or of an explanation
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_LEVELS = ("character", "word", "sentence")


def check_report(path: Path, source: Path, output: Path | None) -> None:
    """Before anything is spent. Raises OptionError for a file that is not HTML, or is another file of the command."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--report {path}: the report is HTML; name it .html")
    for other in (source, output):
        if other is not None and path.exists() and other.exists() and path.samefile(other):
            raise OptionError(f"--report {path} is another file of this command; name a new one")
    if path.is_dir():
        raise OptionError(f"--report {path} is a folder; name a file in it")


def write(path: Path, page: str) -> None:
    try:
        write_whole(path, page)
    except OSError as error:
        raise OptionError(f"--report {path} cannot be written: {error.strerror or error}") from None


def render(
    contenders: Sequence[Contender],
    results: Sequence[JudgeResult],
    comparisons: Sequence[Comparison],
    book: Book,
    how: DiscernOptions,
    *,
    origin: str,
    notes: Sequence[str] = (),
) -> str:
    """The page."""
    from ... import __version__

    drawn = _figure(results)
    return (
        environment()
        .get_template("discern.html.j2")
        .render(
            origin=origin,
            texts=len({pair.group for pair in book.pairs}),
            pairs=len(book.pairs),
            settings={name: value for name, value in book.settings.items() if name in _SHOWN and value is not None},
            rounds=how.rounds,
            notes=notes,
            judges=[_judge(result, i) for i, result in enumerate(results)],
            comparisons=[_comparison(one) for one in comparisons],
            figure=Markup(drawn) if drawn else None,  # noqa: S704  # our own figure, whose texts are outlines
            colours=_JUDGES,
            examples=_examples(contenders, results, book, how),
            version=__version__,
        )
    )


_SHOWN = ("seed", "amount", "language", "writer")


# Tables --------------------------------------------------------------------------------------------------------------


def _judge(result: JudgeResult, place: int) -> dict[str, Any]:
    several = len(result.metrics) > 1
    summaries = [("normalised", result.summary)]
    if several:
        summaries.append(("as the paper prints it, without 1/M", result.paper))
        summaries += [("with expert weights", result.expert)] if result.expert is not None else []
    kinds = {kind: [_line(line) for line in result.of(kind) if line.test.n] for kind in ("invariance", "attack")}
    harmful = sorted((x for x in result.of("damage") if x.test.n), key=lambda x: _LEVELS.index(x.level))
    return {
        "name": result.judge,
        "colour": place % _JUDGES + 1,
        "metrics": ", ".join(result.metrics) if several else "",
        "conclusion": result.conclusion(),
        "summaries": [
            {"how": how, "avg": plain_number(s.d_avg, 2), "min": plain_number(s.d_min, 2), "worst": s.worst}
            for how, s in summaries
        ],
        "alarms": share_text(result.false_alarms),
        "failed": result.failed,
        "levels": [(level, [_line(x) for x in harmful if x.level == level]) for level in _LEVELS
                   if any(x.level == level for x in harmful)],
        "several": several,
        "invariances": kinds["invariance"],
        "attacks": kinds["attack"],
    }  # fmt: skip


def _line(line: Line) -> dict[str, Any]:
    t = line.test
    return {
        "name": line.name,
        "ours": not line.paper,
        "n": t.n,
        "left": line.left or "",
        "d": plain_number(t.d, 2),
        "d_limits": _limits(t.low, t.high),
        "d_paper": plain_number(t.d_paper, 2),
        "d_expert": plain_number(t.d_expert, 2),
        "p": p_text(t.p),
        "p_holm": p_text(line.p_holm),
        "effect": plain_number(t.effect, 2),
        "effect_limits": _limits(t.effect_low, t.effect_high),
        "change": plain_number(t.drop),
        "share": share_text(t.dropped),
        "sees": line.sees,
        "sees_text": SEES[line.sees],
        "reacts_text": {"yes": "YES", "alone": "doubtful", "no": "no", "unknown": "too few"}[line.sees],
    }


def _limits(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"[{plain_number(low, 2)}, {plain_number(high, 2)}]"


def _comparison(one: Comparison) -> dict[str, Any]:
    g = one.gap
    return {
        "a": one.a, "b": one.b, "texts": g.texts, "value": plain_number(g.value, 2), "limits": _limits(g.low, g.high),
        "p": p_text(g.p), "p_holm": p_text(one.p_holm), "d": plain_number(g.d, 2), "words": difference_in_words(one),
    }  # fmt: skip


# The figure ----------------------------------------------------------------------------------------------------------


def _figure(results: Sequence[JudgeResult]) -> str:
    """Bars of D by perturbation with intervals, the judges of each side by side; "" where there is nothing to draw."""
    lines = sorted((x for r in results for x in r.of("damage") if x.enough), key=lambda x: _LEVELS.index(x.level))
    names = list(dict.fromkeys(line.name for line in lines))
    if not names:
        return ""
    levels = {line.name: line.level for line in lines}
    # Stand-ins for the page's colours, which matplotlib writes as they are.
    marks = [f"#0a0b{i + 1:02x}" for i in range(_JUDGES)]
    height = 0.8 / len(results)

    def draw(axes: Any) -> None:
        for j, result in enumerate(results):
            found = {line.name: line.test for line in result.of("damage") if line.enough}
            for i, name in enumerate(names):
                if name not in found or math.isnan(found[name].d):
                    continue
                t, y = found[name], i - 0.4 + (j + 0.5) * height
                length = min(t.d, _TALLEST)
                axes.barh(y, length, height * 0.92, color=marks[j % _JUDGES])
                if t.d > _TALLEST:
                    axes.text(_TALLEST * 1.01, y, f"{t.d:.1f}", va="center", fontsize=6.5)
                elif not math.isnan(t.low):
                    axes.plot([min(t.low, _TALLEST), min(t.high, _TALLEST)], [y, y], color=INK, linewidth=0.8)
        axes.axvline(1.0, color=INK, linewidth=1.0, linestyle="--")
        for i in range(1, len(names)):
            if levels[names[i]] != levels[names[i - 1]]:
                axes.axhline(i - 0.5, color=LINE, linewidth=0.6)
        axes.set_yticks(range(len(names)), [clean(name)[:28] for name in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(0, max(1.3, min(_TALLEST, max(x.test.d for x in lines if not math.isnan(x.test.d))) * 1.1))
        axes.set_xlabel("D = log p to the base 0.05; dashed: D = 1, p = 0.05")

    colours = {mark: f"var(--judge{i + 1})" for i, mark in enumerate(marks)}
    return own_ids(inline_svg(draw, 4.8, 0.9 + len(names) * max(0.2, 0.09 * len(results)), colours), 1)


# Examples ------------------------------------------------------------------------------------------------------------


def _examples(
    contenders: Sequence[Contender], results: Sequence[JudgeResult], book: Book, how: DiscernOptions
) -> list[dict[str, Any]]:
    """For each perturbation some pairs, first those that most judges missed, of these the most changed; of changes
    without harm and of attacks only pairs to which a judge reacted."""
    values = [metric_values(contender, book, how) for contender in contenders]
    groups: dict[str, list[Pair]] = {}
    for pair in book.pairs:
        groups.setdefault(pair.name, []).append(pair)
    lines = {line.name: line for result in results for line in result.lines}
    ordered = sorted(
        (lines[name] for name in groups if name in lines),
        key=lambda x: (("damage", "invariance", "attack").index(x.kind), _LEVELS.index(x.level)),
    )
    found = []
    for line in ordered:
        judged = [(pair, [_seen(pair, of) for of in values]) for pair in groups[line.name]]
        judged = [(pair, seen) for pair, seen in judged if any(s["wrong"] is not None for s in seen)]
        missed = {id(pair): sum(s["wrong"] is True for s in seen) for pair, seen in judged}
        if line.kind != "damage":
            judged = [(pair, seen) for pair, seen in judged if missed[id(pair)]]
        judged.sort(key=lambda one: (-missed[id(one[0])], -one[0].change.share))
        shown = [_example(pair, seen, contenders, results, book) for pair, seen in judged[:EXAMPLES]]
        if shown:
            wrong = sum(bool(missed[id(pair)]) for pair, _ in judged)
            found.append({"name": line.name, "kind": line.kind, "level": line.level, "pairs": shown, "wrong": wrong,
                          "n": len(groups[line.name])})  # fmt: skip
    return found


def _seen(pair: Pair, values: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """A judge's scores of a pair by metric, and whether its mean is wrong: no drop for a perturbation, a drop for a
    change without harm, a rise for an attack; None without scores."""
    scores = [
        (
            metric,
            by_key.get(ask_key(pair, pair.original), math.nan),
            by_key.get(ask_key(pair, pair.perturbed), math.nan),
        )
        for metric, by_key in values.items()
    ]
    drops = [before - after for _, before, after in scores if not math.isnan(before - after)]
    if not drops:
        return {"scores": scores, "wrong": None}
    # a digit of rounding is no drop
    drop = round(math.fsum(drops) / len(drops), 9)
    wrong = {"damage": drop <= 0, "invariance": drop > 0, "attack": drop < 0}[pair.kind]
    return {"scores": scores, "wrong": wrong}


def _example(
    pair: Pair,
    seen: Sequence[Mapping[str, Any]],
    contenders: Sequence[Contender],
    results: Sequence[JudgeResult],
    book: Book,
) -> dict[str, Any]:
    before, after = marked(pair.original, pair.perturbed)
    said = {
        "damage": ("missed", "seen"), "invariance": ("alarmed", "not alarmed"), "attack": ("gave in", "held"),
    }[pair.kind]  # fmt: skip
    judges = []
    for i, (contender, result, one) in enumerate(zip(contenders, results, seen, strict=True)):
        judges.append(
            {
                "name": result.judge,
                "colour": i % _JUDGES + 1,
                "wrong": one["wrong"],
                "verdict": "no score" if one["wrong"] is None else said[0] if one["wrong"] else said[1],
                "scores": [
                    {"metric": metric if len(one["scores"]) > 1 else "", "before": plain_number(b, 2),
                     "after": plain_number(a, 2)}
                    for metric, b, a in one["scores"]
                ],
                "explanations": [
                    (when, words)
                    for when, text in (("before", pair.original), ("after", pair.perturbed))
                    if (words := _explanation(contender, book, ask_key(pair, text)))
                ],
            }
        )  # fmt: skip
    return {"id": pair.id, "before": before, "after": after, "judges": judges, "words": share_text(pair.change.words),
            "metrics": any(len(one["scores"]) > 1 for one in seen), "notes": pair.notes}  # fmt: skip


def _explanation(contender: Contender, book: Book, key: str) -> str:
    for mark in contender.marks.values():
        record = book.scores.get((mark, key, 0)) or {}
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
    """Runs of characters without a shape (zero width, tags; not white space) by their number. Joiners between letters,
    which some scripts and emoji need, stay."""
    made, run = [], 0
    for i, character in enumerate(words):
        joins = character in "\u200c\u200d" and 0 < i < len(words) - 1 and not run and not words[i - 1].isspace()
        if unicodedata.category(character) == "Cf" and not joins:
            run += 1
            continue
        if run:
            made.append(f"⟨{run} unseen⟩")
            run = 0
        made.append(character)
    if run:
        made.append(f"⟨{run} unseen⟩")
    return "".join(made)
