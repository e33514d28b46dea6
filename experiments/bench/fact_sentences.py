"""Measure whether counts of facts tell which sentence of a text has an error.

    python experiments/bench/fact_sentences.py [-o experiments/results/data]

Texts and marked errors are those of rotowire_accuracy in JUDGESMITH_DATA: reports of games beside their box scores. AUC
of each count by sentence, over all sentences: of sentences with any error, and with one of a kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from judgesmith.experiments.bench.sets import read_set
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.readings.facts import (
    Sentence,
    beside,
    details_in,
    sentences_of,
    share,
)
from judgesmith.programs.readings.kinds import surface

KINDS = ("NAME", "NUMBER", "WORD")


@dataclass(frozen=True)
class Judged:
    """A sentence's counts, and the kinds of its errors."""

    counts: dict[str, float]
    kinds: frozenset[str]


def located(text: str, sentences: list[Sentence]) -> list[tuple[int, int]]:
    """Return where each sentence begins and ends among the characters of a text that are no spaces."""
    places, end = list[tuple[int, int]](), 0
    for sentence in sentences:
        first = text.index(sentence.text, end)
        end = first + len(sentence.text)
        begin = len("".join(text[:first].split()))
        places.append((begin, begin + len("".join(sentence.text.split()))))
    return places


def marked(
    tokens: list[str], errors: list[dict[str, Any]]
) -> Iterator[tuple[int, str]]:
    """Yield the character, spaces left out, at which each error begins, and its kind; tokens are numbered from 1."""
    starts = np.cumsum([0, *map(len, tokens)])
    for error in errors:
        yield int(starts[error["start"] - 1]), error["type"]


def judged(row: dict[str, Any], spans: dict[str, Any]) -> Iterator[Judged]:
    """Yield the sentences of a text; none if its tokens are not its own."""
    text, tokens = row["output"], spans["tokenized"].split(" ")
    if "".join(tokens) != "".join(text.split()):
        return
    sentences, of_source = sentences_of(text), sentences_of(row["source"])
    errors = list(marked(tokens, spans["errors"]))
    details = details_in(row["source"]) | set(row["source"].casefold().split())
    pairs = beside(sentences, of_source)
    supported = {sentence.text: found for sentence, _, found in pairs}
    places = located(text, sentences)
    for sentence, (first, end) in zip(sentences, places, strict=True):
        counts = {
            "words": surface(row["source"], sentence.text)["from_source"],
            "details": share(details_in(sentence.text), details),
            "supported": supported.get(sentence.text, np.nan),
        }
        kinds = frozenset(kind for at, kind in errors if first <= at < end)
        yield Judged(counts, kinds)


def auc(low: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    """Return how often a sentence with an error has less of a count than one without; gaps are left out."""
    present = np.isfinite(low)
    ranks, wrong = scipy.stats.rankdata(-low[present]), wrong[present]
    few, rest = wrong.sum(), (~wrong).sum()
    return float((ranks[wrong].sum() - few * (few + 1) / 2) / (few * rest))


def rows_of(found: list[Judged]) -> list[list[Any]]:
    """Return a row for each count, and one for the mean of two in units of their spread."""
    counts = pd.DataFrame([one.counts for one in found])
    scaled = (counts - counts.mean()) / counts.std()
    counts["details and supported"] = scaled[["details", "supported"]].sum(axis=1)
    rows = list[list[Any]]()
    for name in counts:
        column = counts[name].to_numpy(float)
        figures = [auc(column, with_error(found, kind)) for kind in ("", *KINDS)]
        rows.append([name, len(found), *figures])
    return rows


def with_error(found: list[Judged], kind: str) -> NDArray[np.bool_]:
    """Return which sentences have an error of a kind, or any if that is empty."""
    return np.array([kind in one.kinds if kind else bool(one.kinds) for one in found])


def main() -> None:
    """Measure each count, and save the table on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    spans = {one["id"]: one for one in read_set("rotowire_accuracy.spans")}
    found = list[Judged]()
    for text in read_set("rotowire_accuracy"):
        found += judged(text, spans[text["id"]])
    rows = rows_of(found)
    for row in rows:
        print(*row)
    share_wrong = with_error(found, "").mean()
    columns = {"count": "", "sentences": "{:,}"} | dict.fromkeys(
        ("any error", "name", "number", "word"), "{:.2f}"
    )
    save(
        options.output,
        "facts-sentences",
        columns,
        rows,
        commands=[
            "python experiments/bench/fact_sentences.py -o experiments/results/data"
        ],
        notes=f"rotowire_accuracy, AUC by sentence; {share_wrong:.0%} of the sentences have an error",
    )


if __name__ == "__main__":
    main()
