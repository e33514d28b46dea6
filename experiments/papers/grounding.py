"""How similar changed words must be to count as found: precision and recall of
`programs.openlgauge.grounding` by threshold.

    JUDGESMITH_DATA=… python -m judgesmith.experiments.papers.grounding [--rows 300] [--seed 0] [--json]

Spans that people marked as errors (RotoWire, and MQM annotations of TED talks in English and German) are changed as
models change what they copy, and looked for in their text. Spans of other texts, which do not stand in it, must not be
found. A span is found rightly if it covers an occurrence of the true words with an intersection over union of 0.5.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LabelsError
from ...programs.openlgauge import grounding
from ...programs.openlgauge.grounding import LEAST, SHORT, SHORT_THRESHOLD, THRESHOLD, fold, ground

Span = tuple[int, int]
Change = Callable[[str, np.random.Generator], str]
THRESHOLDS = (60.0, 65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0)
LENGTHS = (("under 12 letters", 0, SHORT), ("12 to 40", SHORT, 41), ("over 40", 41, 10**9))


# --- what people marked -----------------------------------------------------------------------------------------------


def marked(folder: Path, name: str) -> Iterator[tuple[str, list[Span]]]:
    """(text, marked spans in reading order) for every annotated text of a set."""
    rows = {row["id"]: row["output"] for row in _lines(folder / f"{name}.jsonl")}
    for entry in _lines(folder / f"{name}.spans.jsonl"):
        if "tokenized" in entry:
            text, spans = entry["tokenized"], _token_spans(entry)
        else:
            text = rows[entry["id"]]
            spans = [span for error in entry["errors"] if (span := _tag_span(error["target"], text)) is not None]
        spans = sorted({(a, b) for a, b in spans if text[a:b].strip()})
        if spans:
            yield text, spans


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except OSError as error:
        raise LabelsError(f"{path}: {error.strerror}; JUDGESMITH_DATA names the folder of the data sets") from error


def _token_spans(entry: dict[str, Any]) -> list[Span]:
    """Token numbers (from 1, the end included) as code points of the tokenised text."""
    places = [(m.start(), m.end()) for m in re.finditer(r"\S+", entry["tokenized"])]
    return [(places[e["start"] - 1][0], places[e["end"] - 1][1]) for e in entry["errors"]]


def _tag_span(target: str, text: str) -> Span | None:
    """The place of the one pair of tags in a text that is otherwise the output."""
    found = re.fullmatch(r"(.*)<v>(.+)</v>(.*)", target, re.DOTALL)
    if not found or "<v>" in found[1] + found[3] or "".join(found.groups()) != text:
        return None
    return len(found[1]), len(found[1]) + len(found[2])


# --- what models do to words that they copy ---------------------------------------------------------------------------


def _typo(words: str, rng: np.random.Generator) -> str:
    """One letter in about twelve is lost, doubled or swapped with the next one, and at least one."""
    letters = list(words)
    places = [i for i, c in enumerate(letters) if c.isalnum()]
    for place in rng.permutation(places)[: max(1, len(places) // 12)]:
        kind = rng.integers(3)
        if kind == 0:
            letters[place] = ""
        elif kind == 1:
            letters[place] *= 2
        elif place + 1 < len(letters):
            letters[place], letters[place + 1] = letters[place + 1], letters[place]
    return "".join(letters)


def _dropped(words: str, rng: np.random.Generator) -> str:
    """One word in five is left out, and at least one, if there are three."""
    parts = words.split()
    if len(parts) < 3:
        return words
    gone = set(rng.permutation(len(parts))[: max(1, len(parts) // 5)].tolist())
    return " ".join(part for i, part in enumerate(parts) if i not in gone)


def _replaced(words: str, rng: np.random.Generator) -> str:
    """One word in five is another one, and at least one, if there are three."""
    parts = words.split()
    if len(parts) < 3:
        return words
    others = ["really", "their", "people", "during", "new", "several", "shown", "which", "made", "place"]
    for place in rng.permutation(len(parts))[: max(1, len(parts) // 5)]:
        parts[place] = str(rng.choice(others))
    return " ".join(parts)


def _renumbered(words: str, rng: np.random.Generator) -> str:
    """Each number becomes another one of as many digits."""
    return re.sub(r"\d", lambda m: str((int(m[0]) + int(rng.integers(1, 10))) % 10), words)


def _restyled(words: str, rng: np.random.Generator) -> str:
    """Case, quotes, dashes and spaces as another typographer would set them."""
    words = words.upper() if rng.integers(2) else words.capitalize()
    closed = re.sub(r" ([-.,:)])", r"\1", words)
    return "“" + closed.replace("-", "–").replace("'", "’") + "”"


def _longer(words: str, rng: np.random.Generator) -> str:
    """With a word of the model's own before or after."""
    return f"also {words}" if rng.integers(2) else f"{words} here"


CHANGES: dict[str, Change] = {
    "none": lambda words, rng: words,
    "typography": _restyled,
    "typo": _typo,
    "word dropped": _dropped,
    "word replaced": _replaced,
    "number changed": _renumbered,
    "word added": _longer,
}


# --- the study --------------------------------------------------------------------------------------------------------


def _right(found: Span, text: str, words: str) -> bool:
    """Whether a span lies on any occurrence of the true words: which of several is another question."""
    start, end = found
    place = text.find(words, max(0, start - len(words)))
    while 0 <= place < end:
        inside = min(end, place + len(words)) - max(start, place)
        if inside > 0 and inside / (max(end, place + len(words)) - min(start, place)) >= 0.5:
            return True
        place = text.find(words, place + 1)
    return False


def trials(folder: Path, rows: int, seed: int) -> list[dict[str, Any]]:
    """One entry per changed or foreign span, with the outcome at every threshold: right, wrong, none."""
    rng = np.random.default_rng(seed)
    entries = []
    for name in ("rotowire_accuracy", "mqm_ted_ende", "mqm_ted_zhen"):
        texts = list(marked(folder, name))
        texts = [texts[int(i)] for i in rng.permutation(len(texts))[:rows]]
        for text, spans in texts:
            for place in rng.permutation(len(spans))[:4]:
                words = text[slice(*spans[place])]
                for change, function in CHANGES.items():
                    changed = function(words, rng)
                    if change == "none" or changed != words:
                        entries.append(_trial(changed, text, change, words))
            # Of the same set, so of the same subject and style; only what does not stand in this text, too.
            other, theirs = texts[int(rng.integers(len(texts)))]
            for place in rng.permutation(len(theirs))[:4]:
                words = other[slice(*theirs[place])]
                if fold(words).text.strip() not in fold(text).text:
                    entries.append(_trial(words, text, "foreign", ""))
    return entries


def _trial(words: str, text: str, change: str, truth: str) -> dict[str, Any]:
    outcome = {}
    for threshold in THRESHOLDS:
        found = ground(words, text, threshold=threshold)
        right = bool(found) and bool(truth) and _right((found[0].start, found[0].end), text, truth)
        outcome[threshold] = "right" if right else "wrong" if found else "none"
    return {"change": change, "letters": len(words), "outcome": outcome}


def occurrences(folder: Path, rows: int, seed: int) -> list[dict[str, Any]]:
    """Of marked words that stand several times in their text, how often the marked occurrence is chosen: always the
    first, the closest to the error told before, or the next one from there. Up to 8 errors a text, told in reading
    order or in any order."""
    rng = np.random.default_rng(seed)
    found = []
    for order in ("reading order", "any order"):
        right = {"first": 0, "closest": 0, "next": 0}
        total = 0
        for name in ("rotowire_accuracy", "mqm_ted_ende", "mqm_ted_zhen"):
            for text, spans in list(marked(folder, name))[:rows]:
                chosen = rng.permutation(len(spans))[:8]
                near = 0
                for index in chosen if order == "any order" else sorted(chosen):
                    start, end = spans[int(index)]
                    starts = sorted(g.start for g in ground(text[start:end], text))
                    if len(starts) > 1:
                        total += 1
                        right["first"] += starts[0] == start
                        right["closest"] += min((abs(s - near), s) for s in starts)[1] == start
                        right["next"] += next((s for s in starts if s >= near), starts[-1]) == start
                    near = end
        found.append({"order": order, "n": total} | {k: round(v / max(1, total), 3) for k, v in right.items()})
    return found


def table(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per threshold: recall (right of all changed spans), precision (right of all found, foreign ones included) and
    the share of foreign spans that are found."""
    rows = []
    for threshold in THRESHOLDS:
        ours = [e["outcome"][threshold] for e in entries if e["change"] != "foreign"]
        theirs = [e["outcome"][threshold] for e in entries if e["change"] == "foreign"]
        right = ours.count("right")
        found = len(ours) + len(theirs) - ours.count("none") - theirs.count("none")
        rows.append(
            {
                "threshold": threshold,
                "recall": right / max(1, len(ours)),
                "wrong": ours.count("wrong") / max(1, len(ours)),
                "foreign": 1 - theirs.count("none") / max(1, len(theirs)),
                "precision": right / max(1, found),
                "n": len(ours),
                "n_foreign": len(theirs),
            }
        )
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="annotated texts of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bare", action="store_true", help="without the higher threshold for few letters")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    given = parser.parse_args(arguments)
    folder = os.environ.get("JUDGESMITH_DATA")
    if not folder:
        sys.exit("JUDGESMITH_DATA is not set: the folder with rotowire_accuracy.jsonl and mqm_ted_*.jsonl")
    if given.bare:
        grounding.SHORT_THRESHOLD = 0.0
    try:
        entries = trials(Path(folder), given.rows, given.seed)
        chosen = occurrences(Path(folder), given.rows, given.seed)
    except LabelsError as error:
        sys.exit(str(error))
    tables = {"all": table(entries)}
    tables |= {name: table([e for e in entries if low <= e["letters"] < high]) for name, low, high in LENGTHS}
    by_change = {
        change: [round(sum(e["outcome"][t] == "right" for e in of) / len(of), 3) if of else None for t in THRESHOLDS]
        for change in CHANGES
        for of in [[e for e in entries if e["change"] == change]]
    }
    if given.json:
        print(json.dumps({"tables": tables, "recall_by_change": by_change, "occurrences": chosen, "seed": given.seed}))
        return
    least = "the same" if given.bare else f"{SHORT_THRESHOLD:g}"
    print(f"chosen: {THRESHOLD:g}; under {SHORT} letters at least {least}, under {LEAST} never approximately")
    for name, rows in tables.items():
        print(f"\n{name}: {rows[0]['n']} changed spans, {rows[0]['n_foreign']} foreign ones")
        print("threshold  recall  wrong place  foreign found  precision")
        for row in rows:
            print(
                f"{row['threshold']:9g}  {row['recall']:6.3f}  {row['wrong']:11.3f}  {row['foreign']:13.3f}"
                f"  {row['precision']:9.3f}"
            )
    print("\nrecall by change   " + "  ".join(f"{t:5g}" for t in THRESHOLDS))
    for change, values in by_change.items():
        print(f"{change:17}  " + "  ".join("    –" if v is None else f"{v:5.3f}" for v in values))
    print("\nmarked words that stand several times in their text: how often the marked occurrence is chosen")
    for row in chosen:
        print(f"{row['order']:13}  n {row['n']}  first {row['first']}  closest {row['closest']}  next {row['next']}")


if __name__ == "__main__":
    main()
