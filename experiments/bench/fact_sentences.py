"""Measure whether counts of facts, and likelihood, tell which sentence of a text has an error.

    python experiments/bench/fact_sentences.py read FILE.json --lm local/qwen2.5-0.5b [--texts 12]
    python experiments/bench/fact_sentences.py measure FILE.json --tables FOLDER... [-o experiments/results/data]

Sets are those of JUDGESMITH_DATA. Of rotowire_accuracy people marked errors in reports of games, beside box scores. Of
qags_cnndm those summaries count on which all raters agree that every sentence is right, or none. Of faithbench the
summaries without an error and those with an unwanted one, and of the MQM sets the translations without an error and
with one of accuracy, are taken whole: no sentences of the first are marked, and the others have one. AUC is how often a
text with an error has less of a count, with a 95 % interval by resampling documents.

`read` keeps the likelihood of each sentence of some texts of rotowire_accuracy behind the three sentences of its source
that have most of its telling words. FOLDERs are those of tables that `judgesmith study experience` kept: likelihood of
whole outputs.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from judgesmith.experiments.bench.facts import read_pairs
from judgesmith.experiments.bench.rated_facts import MORE
from judgesmith.experiments.bench.sets import read_set
from judgesmith.experiments.studies.experience import Specs, read_specs
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.models.lm import language_model
from judgesmith.programs.readings.facts import (
    Sentence,
    beside,
    details_in,
    found_in,
    sentences_of,
    share,
    words_in,
)
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.programs.readings.spellings import one_spelling
from judgesmith.signatures.values import Item

KINDS = ("NAME", "NUMBER", "WORD")
COMMAND = "python experiments/bench/fact_sentences.py"
#: How many sentences of the source stand before a sentence whose likelihood is read.
PASSAGES = 3
ROUNDS = 1000
LIKELIHOOD = "assistant.mean"


@dataclass(frozen=True)
class Judged:
    """A text that has an error or none: a sentence, or a whole output.

    document: the text that it is from. kinds: of its errors.
    """

    document: str
    counts: dict[str, float]
    kinds: frozenset[str]


# Counts ---------------------------------------------------------------------------------------------------------------


def counts_of(text: str, source: str) -> dict[str, float]:
    """Return the counts of a text beside its source."""
    text = one_spelling(text)
    source = one_spelling(source)
    words = words_in(text)
    there = words_in(source)
    found = [
        overlap for _, _, overlap in beside(sentences_of(text), sentences_of(source))
    ]
    return {
        "words": found_in(words, there, 1),
        "pairs": found_in(words, there, 2),
        "details": share(details_in(text), {*there, *details_in(source)}),
        "supported": float(np.mean(found)) if found else np.nan,
    }


def places_of(text: str, sentences: list[Sentence]) -> list[tuple[int, int]]:
    """Return where each sentence begins and ends among the characters of a text that are no spaces."""
    places = list[tuple[int, int]]()
    end = 0
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


# Sets -----------------------------------------------------------------------------------------------------------------


def rotowire(kept: dict[str, list[float]]) -> Iterator[Judged]:
    """Yield the sentences of reports of games. kept: likelihoods of the sentences of some texts."""
    spans = {one["id"]: one for one in read_set("rotowire_accuracy.spans")}
    for row in read_set("rotowire_accuracy"):
        text = row["output"]
        tokens = spans[row["id"]]["tokenized"].split(" ")
        if "".join(tokens) != "".join(text.split()):
            continue
        sentences = sentences_of(text)
        errors = list(marked(tokens, spans[row["id"]]["errors"]))
        read = kept.get(row["id"], [np.nan] * len(sentences))
        places = places_of(text, sentences)
        for sentence, (first, end), likelihood in zip(
            sentences, places, read, strict=True
        ):
            counts = counts_of(sentence.text, row["source"])
            kinds = frozenset(kind for at, kind in errors if first <= at < end)
            yield Judged(row["id"], counts | {"likelihood": likelihood}, kinds)


def of_summaries() -> Iterator[Judged]:
    """Yield the sentences of summaries on which all raters agree."""
    for row in read_set("qags_cnndm"):
        score = row["scores"]["consistency"]
        if score in (0.0, 1.0):
            kinds = frozenset({"any"} if score == 0 else ())
            for sentence in sentences_of(row["output"]):
                yield Judged(row["id"], counts_of(sentence.text, row["source"]), kinds)


def whole(
    name: str, errors: dict[str, bool], likelihood: dict[str, float]
) -> Iterator[Judged]:
    """Yield whole outputs. errors, likelihood: of the output of each id."""
    for row in read_set(name):
        if row["id"] in errors:
            counts = counts_of(row["output"], row["source"])
            counts["likelihood"] = likelihood.get(row["id"], np.nan)
            kinds = frozenset({"any"} if errors[row["id"]] else ())
            yield Judged(row["doc_id"], counts, kinds)


def translations(name: str) -> dict[str, bool]:
    """Return of each translation if it has an error of accuracy; those with other errors alone are left out."""
    errors = defaultdict[str, list[str]](list)
    for one in read_set(f"{name}.spans"):
        errors[one["id"]] += [error["category"] for error in one["errors"]]
    found = dict[str, bool]()
    for row in read_set(name):
        kinds = errors[row["id"]]
        of_accuracy = any(kind.startswith("Accuracy") for kind in kinds)
        if of_accuracy or not kinds:
            found[row["id"]] = of_accuracy
    return found


def unfaithful() -> dict[str, bool]:
    """Return of each summary of faithbench if it has an unwanted error; doubtful ones are left out."""
    scores = {row["id"]: row["scores"] for row in read_set("strong/faithbench")}
    grades = {id: score["faithfulness"] for id, score in scores.items()}
    return {id: grade == 0 for id, grade in grades.items() if grade in (0, 3)}


# Likelihood -----------------------------------------------------------------------------------------------------------


def passages_of(sentence: Sentence, source: Sequence[Sentence]) -> str:
    """Return the sentences of a source that have most of a sentence's telling words, in their order."""
    shared = [len(sentence.telling & of.telling) for of in source]
    best = sorted(range(len(source)), key=lambda place: (-shared[place], place))
    return "\n".join(source[place].text for place in sorted(best[:PASSAGES]))


def read(file: Path, lm: str, texts: int) -> None:
    """Read the likelihood of each sentence of some texts, and keep it; texts that are kept are left out."""
    method = ModelReadings.from_options(
        {"instruction": "Report on this game."},
        labels_aspect="accuracy",
        library_aspect=None,
    )
    model = language_model(lm)
    kept = dict[str, list[float]]()
    if file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))
    rows = read_set("rotowire_accuracy")[:texts]
    for row in [row for row in rows if row["id"] not in kept]:
        source = sentences_of(row["source"])
        items = [
            Item(passages_of(sentence, source), sentence.text)
            for sentence in sentences_of(row["output"])
        ]
        found = method.rows.read_many(items, model, lambda: None)
        kept[row["id"]] = [
            of.numbers[LIKELIHOOD] if of is not None else np.nan for of in found
        ]
        file.write_text(json.dumps(kept), encoding="utf-8")
        print(row["id"], len(items), flush=True)


def likelihoods(folders: Sequence[Path]) -> dict[str, float]:
    """Return the likelihood of whole outputs by id, from tables that were kept."""
    own = read_specs(None)
    more = read_specs(MORE)
    measured = [*own.measured, *more.measured]
    wanted = [
        spec for spec in measured if "mqm" in spec.labels or "faith" in spec.labels
    ]
    found = dict[str, float]()
    for pair in read_pairs(folders, Specs(tasks=tuple(wanted)), teaching=False):
        values = pair.plain.table.columns([LIKELIHOOD])[:, 0].tolist()
        found |= dict(zip([row.id for row in pair.rows], values, strict=True))
    return found


# The table ------------------------------------------------------------------------------------------------------------


def auc(low: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    """Return how often a text with an error has less of a count than one without; gaps are left out."""
    present = np.isfinite(low)
    ranks = scipy.stats.rankdata(-low[present])
    wrong = wrong[present]
    few = wrong.sum()
    rest = (~wrong).sum()
    if not few or not rest:
        return np.nan
    return float((ranks[wrong].sum() - few * (few + 1) / 2) / (few * rest))


def with_interval(
    low: NDArray[np.float64], wrong: NDArray[np.bool_], documents: NDArray[np.intp]
) -> list[float]:
    """Return an AUC with the ends of its 95 % interval, by resampling documents."""
    rng = np.random.default_rng(0)
    members = range(int(documents.max()) + 1)
    rows = [np.flatnonzero(documents == document) for document in members]
    drawn = list[float]()
    for _ in range(ROUNDS):
        at = np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))])
        drawn.append(auc(low[at], wrong[at]))
    low_end, high_end = np.nanpercentile(drawn, (2.5, 97.5))
    return [auc(low, wrong), float(low_end), float(high_end)]


def with_error(found: Sequence[Judged], kind: str) -> NDArray[np.bool_]:
    """Return which texts have an error of a kind, or any if that is empty."""
    return np.array([kind in one.kinds if kind else bool(one.kinds) for one in found])


def together(counts: pd.DataFrame) -> pd.Series:
    """Return the mean of two counts in units of their spread; where one is missing, the other."""
    both = counts[["details", "supported"]]
    return ((both - both.mean()) / both.std()).mean(axis=1)


def rows_of(name: str, found: Sequence[Judged]) -> list[list[Any]]:
    """Return a row for each count of a set."""
    counts = pd.DataFrame([one.counts for one in found])
    counts["details and supported"] = together(counts)
    documents = np.unique([one.document for one in found], return_inverse=True)[1]
    rows = list[list[Any]]()
    for count in counts:
        column = counts[count].to_numpy(float)
        present = np.isfinite(column)
        if not present.any():
            continue
        wrong = with_error(found, "")
        figures = with_interval(column, wrong, documents)
        kinds = [auc(column, with_error(found, kind)) for kind in KINDS]
        share_wrong = float(wrong[present].mean())
        rows.append([name, count, int(present.sum()), share_wrong, figures, *kinds])
        print(*rows[-1], flush=True)
    return rows


def measure(kept: Path, folders: Sequence[Path], output: Path | None) -> None:
    """Measure each count in each set, and save the table on request."""
    read_before = json.loads(kept.read_text(encoding="utf-8"))
    of_whole = likelihoods(folders)
    sets = {
        "rotowire_accuracy, sentences": rotowire(read_before),
        "qags_cnndm, sentences": of_summaries(),
        "faithbench, summaries": whole("strong/faithbench", unfaithful(), of_whole),
    }
    for name in ("mqm_ted_ende", "mqm_ted_zhen"):
        sets[f"{name}, accuracy"] = whole(name, translations(name), of_whole)
    rows = list[list[Any]]()
    for name, found in sets.items():
        rows += rows_of(name, list(found))
    columns = {"set": "", "count": "", "texts": "{:,}", "with an error": "{:.0%}"}
    columns |= {"any error": "{:.2f} [{:.2f}, {:.2f}]"}
    columns |= dict.fromkeys(("name", "number", "word"), "{:.2f}")
    save(
        output,
        "facts-sentences",
        columns,
        rows,
        commands=[
            f"{COMMAND} read FILE.json",
            f"{COMMAND} measure FILE.json --tables TABLES -o experiments/results/data",
        ],
        model="likelihood: qwen2.5-coder-0.5b (Q4_K_M)",
        notes=f"AUC by text, 95 % by documents ({ROUNDS:,} resamples)",
    )


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["read", "measure"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--lm", default="local/qwen2.5-0.5b")
    parser.add_argument("--texts", type=int, default=12)
    parser.add_argument("--tables", nargs="*", type=Path, default=[])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.what == "read":
        read(options.file, options.lm, options.texts)
    else:
        measure(options.file, options.tables, options.output)


if __name__ == "__main__":
    main()
