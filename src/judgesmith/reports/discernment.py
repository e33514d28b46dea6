"""What `judgesmith discern` found as one HTML file: no network, no scripts, every text escaped."""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..datasets.perturbations.registry import Pair
from ..discerning.comparison import Comparison
from ..discerning.options import DiscernOptions
from ..discerning.pairs import Book, Contender, ask_key
from ..discerning.plots import LEVELS, mark
from ..discerning.run import HEADINGS, JudgeResult, Line, metric_values
from ..discerning.tables import SEES, difference_in_words, p_text, share_text, summaries
from ..errors import OptionError
from ..evaluating.pivot import plain_number
from ..programs.atomic import write_whole
from .page import environment

EXAMPLES = 3  # of a perturbation
_LONG = 20_000  # characters of a text that are looked at
_MANY = 1_000  # words and spaces
_EDGE = 140  # characters of an unchanged stretch that are shown beside a change
_JUDGES = 6  # colours
_MOST = 1_500  # characters of a change, or of an explanation
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


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
    from .. import __version__

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
            heat=_heat(results),
            counted=[_counted(result) for result in results],
            examples=_examples(contenders, results, book, how),
            version=__version__,
        )
    )


_SHOWN = ("seed", "amount", "language", "writer")


# Tables --------------------------------------------------------------------------------------------------------------


def _judge(result: JudgeResult, place: int) -> dict[str, Any]:
    kinds = {
        kind: [_line(line, result) for line in result.of(kind) if line.test.n] for kind in ("invariance", "attack")
    }
    s = result.summary
    return {
        "name": result.judge,
        "colour": place % _JUDGES + 1,
        "metrics": ", ".join(result.metrics) if len(result.metrics) > 1 else "",
        "conclusion": result.conclusion(),
        "avg": plain_number(s.d_avg, 2), "min": plain_number(s.d_min, 2), "worst": s.worst,
        "rests_on": result.coverage(),
        "alarms": share_text(result.false_alarms),
        "failed": result.failed,
        "origins": _origins(result),
        "several": len(result.metrics) > 1,
        "other_form": "1/M" if result.form == "paper" else "paper",
        "invariances": kinds["invariance"],
        "attacks": kinds["attack"],
    }  # fmt: skip


def _origins(result: JudgeResult) -> list[dict[str, Any]]:
    """The perturbations of each origin by level, with D_avg and D_min over them alone."""
    found = []
    for origin, heading in HEADINGS.items():
        harmful = [line for line in result.of("degradation", origin) if line.test.n]
        by_level = [(level, [_line(x, result) for x in harmful if x.level == level]) for level in LEVELS]
        if harmful:
            found.append({
                "name": origin, "heading": heading, "levels": [(level, lines) for level, lines in by_level if lines],
                "summaries": [
                    {"how": how, "avg": avg, "min": least, "worst": worst, "note": note}
                    for how, avg, least, worst, note in summaries(result, origin)
                ],
            })  # fmt: skip
    return found


def _line(line: Line, result: JudgeResult) -> dict[str, Any]:
    t = line.test
    return {
        "name": line.name,
        "n": t.n,
        "left": line.left or "",
        "d": plain_number(t.d, 2),
        "d_limits": _limits(t.low, t.high),
        "d_other": plain_number(t.d_normalised if result.form == "paper" else t.d_paper, 2),
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
        "over": "the paper's perturbations" if one.of_paper else "all perturbations",
    }  # fmt: skip


# The heat map --------------------------------------------------------------------------------------------------------

_KINDS = {
    "degradation": "", "invariance": "changes without harm: a good judge does not react",
    "attack": "attacks: a good judge does not give in",
}  # fmt: skip
_SIGNS = {"yes": "✓", "alone": "?", "no": "✗", "unknown": "–"}


def _heat(results: Sequence[JudgeResult]) -> list[dict[str, Any]]:
    """Groups of perturbations with a cell for each judge: the effect in words and in colour."""
    lines = [line for result in results for line in result.lines if line.test.n]
    groups: dict[tuple[int, int, int], dict[str, Any]] = {}
    for line in lines:
        harms = line.kind == "degradation"
        within = (list(HEADINGS).index(line.origin), LEVELS.index(line.level)) if harms else (0, 0)
        place = (list(_KINDS).index(line.kind), *within)
        title = _KINDS[line.kind] or f"{line.level}s{mark(line)}"
        groups.setdefault(place, {"title": title, "kind": line.kind, "names": {}})["names"].setdefault(line.name)
    found = {(line.judge, line.name): line for line in lines}
    made = []
    for _, group in sorted(groups.items()):
        rows = [
            {"name": name, "cells": [_heat_cell(found.get((result.judge, name))) for result in results]}
            for name in group["names"]
        ]
        made.append({"title": group["title"], "kind": group["kind"], "rows": rows})
    return made


def _heat_cell(line: Line | None) -> dict[str, Any]:
    if line is None or math.isnan(line.test.effect):
        return {"sign": "–", "effect": "", "d": "", "heat": 0, "told": "no scores", "sees": "unknown"}
    return {
        "sign": _SIGNS[line.sees], "effect": plain_number(line.test.effect, 2), "d": plain_number(line.test.d, 1),
        "heat": round(max(0.0, min(1.0, line.test.effect)), 2), "told": _reaction(line), "sees": line.sees,
    }  # fmt: skip


def _reaction(line: Line) -> str:
    if line.kind == "degradation":
        return {"yes": "seen", "alone": "doubtful", "no": "not seen", "unknown": "too few texts"}[line.sees]
    return {"yes": "reacts", "alone": "doubtful", "no": "does not react", "unknown": "too few texts"}[line.sees]


def _counted(result: JudgeResult) -> dict[str, Any]:
    """What a judge sees, counted, and the names behind each number."""
    harmful = [line for line in result.of("degradation") if line.test.n]
    parts = [
        ("not seen", [line.name for line in harmful if line.sees == "no"]),
        ("doubtful", [line.name for line in harmful if line.sees == "alone"]),
        ("too few texts to tell", [line.name for line in harmful if line.sees == "unknown"]),
        ("lowers its score without need for", [x.name for x in result.of("invariance") if x.sees == "yes"]),
        ("gives in to", [x.name for x in result.of("attack") if x.sees == "yes"]),
    ]
    return {
        "judge": result.judge, "seen": sum(line.sees == "yes" for line in harmful), "of": len(harmful),
        "parts": [(title, names) for title, names in parts if names],
    }  # fmt: skip


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
        key=lambda x: (("degradation", "invariance", "attack").index(x.kind), LEVELS.index(x.level)),
    )
    found = []
    for line in ordered:
        judged = [(pair, [_seen(pair, of) for of in values]) for pair in groups[line.name]]
        judged = [(pair, seen) for pair, seen in judged if any(s["wrong"] is not None for s in seen)]
        missed = {id(pair): sum(s["wrong"] is True for s in seen) for pair, seen in judged}
        if line.kind != "degradation":
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
    wrong = {"degradation": drop <= 0, "invariance": drop > 0, "attack": drop < 0}[pair.kind]
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
        "degradation": ("missed", "seen"), "invariance": ("alarmed", "not alarmed"), "attack": ("gave in", "held"),
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
