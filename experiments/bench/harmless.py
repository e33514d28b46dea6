"""Measure false alarms: how often a change that harms no text lowers the score of a judge without labels, and by what.

    python experiments/bench/harmless.py counts [-o experiments/results/data]
    python experiments/bench/harmless.py read FOLDER [--lm local/qwen2.5-0.5b] [--seconds 280]
    python experiments/bench/harmless.py measure FOLDER TABLES... [-o experiments/results/data]

Changes are the harmless and the minor harmful ones of `datasets.perturbations`, made by rules, and numbers in another
spelling. The sets are those of JUDGESMITH_DATA, of each the better rated outputs of different documents. `counts` takes
counts of facts alone, in the weights that they have where facts are rated, with both sides in one spelling and as they
are written. `read` keeps readings of outputs and changed outputs in FOLDER, from which the same command goes on.
`measure` has the score by experience, the set's family left out; TABLES are folders that `judgesmith study experience`
kept.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.perturbations.registry import (
    PERTURBATIONS,
    Pair,
    Text,
    pairs_of,
)
from judgesmith.datasets.records import Labels
from judgesmith.experiments.bench.facts import read_pairs
from judgesmith.experiments.bench.sets import data_folder
from judgesmith.experiments.studies.experience import (
    RowTable,
    TaskSpec,
    chosen_rows,
    load,
    located,
    read_specs,
    whole_groups,
    without_family,
)
from judgesmith.experiments.studies.experience import save as save_table
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import examples_of, item_of
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.programs.readings import facts, passages
from judgesmith.programs.readings.experience import FACTS, FACTUAL
from judgesmith.programs.readings.head import LinearHead, Readings, Vector
from judgesmith.programs.readings.judge import ModelReadings, table_of
from judgesmith.programs.readings.kinds import RowReadings

COMMAND = "python experiments/bench/harmless.py"
HARMLESS = ("style", "case", "synonyms", "formatting")
HARMFUL = (
    "deletions",
    "typos",
    "word-deletion",
    "grammar-rules",
    "entities-rules",
    "numbers",
    "negation",
)
NUMBERS = "numbers, spelling"
ORIGINAL = "original"
#: Sets whose counts are taken, and how many rows of each are looked at, how many texts are changed.
COUNTED = (
    ("qags_cnndm.jsonl", "consistency"),
    ("summeval.jsonl", "consistency"),
    ("more/begin_grounding.jsonl", "groundedness"),
    ("more/rank19.jsonl", "consistency"),
    ("strong/faithbench.jsonl", "faithfulness"),
    ("more/webnlg2020.jsonl", "coverage"),
    ("wiki_da.jsonl", "meaning"),
)
ROWS = 300
TEXTS = 25
#: Sets that are read, with the number of their texts.
READ = {"wiki_da.meaning": 16, "topical_chat.overall": 10, "sfhot.naturalness": 12}
BETTER = 0.6
LOWER = 1e-9

_DIGITS = {"2": "two", "3": "three", "4": "four", "5": "five", "6": "six"}
_DIGITS |= {"7": "seven", "8": "eight", "9": "nine", "10": "ten"}
_SPELT = {word: digits for digits, word in _DIGITS.items()}
#: The ways to write a number otherwise, of which the first that changes a text is taken.
_WAYS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"(?<![\d.,])(\d{1,3}),(\d{3})(?![\d,])", lambda found: found[1] + found[2]),
    (r"(?<![\d.,:])[2-9]\d{4,5}(?![\d,.:])", lambda found: f"{int(found[0]):,}"),
    (
        r"(?<![\w.,:$£%-])(\d{1,2})(?![\w,.:%-])",
        lambda found: _DIGITS.get(found[1], found[1]),
    ),
    (rf"\b({'|'.join(_SPELT)})\b", lambda found: _SPELT[found[1]]),
)


def otherwise_spelt(text: str) -> str:
    """Return a text with its numbers written in another way; the text itself where none can be."""
    for pattern, other in _WAYS:
        if (changed := re.sub(pattern, other, text)) != text:
            return changed
    return text


@dataclass(frozen=True)
class Changed:
    """An output, or a changed one. row: the number of the output's row. change: its perturbation."""

    row: int
    change: str
    output: str


def good(labels: Labels, number: int) -> list[int]:
    """Return rows of outputs of different documents that are among the better rated."""
    scores = labels.scores
    enough = np.quantile(scores, BETTER)
    order = np.random.default_rng(7).permutation(len(scores)).tolist()
    found = dict[str, int]()
    for row in order:
        if scores[row] >= enough:
            found.setdefault(labels.rows[row].doc_id, row)
    return list(found.values())[:number]


def changed(labels: Labels, rows: Sequence[int]) -> Iterator[Changed]:
    """Yield outputs, and each of them in all ways in which it can be changed."""
    texts = list[Text]()
    for row in rows:
        of = labels.rows[row]
        texts.append(Text(str(row), of.output, of.source or "", of.context))
    for text in texts:
        yield Changed(int(text.id), ORIGINAL, text.text)
        if (other := otherwise_spelt(text.text)) != text.text:
            yield Changed(int(text.id), NUMBERS, other)
    for name in (*HARMLESS, *HARMFUL):
        pairs = pairs_of(PERTURBATIONS[name], texts, degrees=("only", "minor"))
        for pair in pairs:
            if isinstance(pair, Pair):
                yield Changed(int(pair.id), name, pair.perturbed)


# Counts ---------------------------------------------------------------------------------------------------------------


def counted(labels: Labels, one: Changed) -> float:
    """Return the score by counts of facts, in the weights that they have where facts are rated."""
    row = labels.rows[one.row]
    text = passages.Text(row.source, one.output, row.context or "")
    found = facts.facts(text)
    score = 0.0
    for name, (mean, spread, weight) in FACTUAL[0].items():
        value = found.get(name.removeprefix(FACTS), np.nan)
        if np.isfinite(value):
            score += weight * (value - mean) / spread
    return score


def falls(labels: Labels, texts: Sequence[Changed]) -> list[float]:
    """Return by how much the score of each changed output is below that of the output."""
    scores = [counted(labels, one) for one in texts]
    of_row = {
        one.row: score
        for one, score in zip(texts, scores, strict=True)
        if one.change == ORIGINAL
    }
    return [of_row[one.row] - score for one, score in zip(texts, scores, strict=True)]


def counts(output: Path | None) -> None:
    """Print and save how often counts of facts fall, by change."""
    names = list[str]()
    now = list[float]()
    before = list[float]()
    for file, aspect in COUNTED:
        labels = read_labels(located(file, None), aspect=aspect)
        labels = labels.subset(sorted(whole_groups(labels.groups, ROWS, 11)))
        texts = list(changed(labels, good(labels, TEXTS)))
        names += [one.change for one in texts]
        now += falls(labels, texts)
        with mock.patch.object(facts, "one_spelling", str):
            before += falls(labels, texts)
    rows = list[list[Any]]()
    every = (*HARMLESS, NUMBERS, *HARMFUL)
    for title, of in [*((name, (name,)) for name in every), ("all harmful", HARMFUL)]:
        at = np.isin(names, of)
        kind = "harmful" if set(of) <= set(HARMFUL) else "harmless"
        row: list[Any] = [title, kind, int(at.sum())]
        for fall in (np.array(before)[at], np.array(now)[at]):
            row += [float((fall > LOWER).mean()), float(fall.mean())]
        rows.append(row)
        print(*row)
    columns = {"change": "", "kind": "", "texts": "{}"}
    for way in ("as written", "one spelling"):
        columns |= {f"lower, {way}": "{:.0%}", f"mean fall, {way}": "{:+.2f}"}
    sets = ", ".join(Path(file).stem for file, _ in COUNTED)
    save(
        output,
        "harmless-counts",
        columns,
        rows,
        commands=[f"{COMMAND} counts -o experiments/results/data"],
        notes=f"better rated outputs of {sets}; falls in standard deviations of a score",
    )


# Readings -------------------------------------------------------------------------------------------------------------


def read(folder: Path, lm: str, seconds: float) -> None:
    """Read the outputs of each set and their changes, and keep a table a set."""
    model = language_model(lm)
    end = time.monotonic() + seconds
    specs = read_specs(None)
    for spec in (*specs.tasks, *specs.measured):
        name = f"{Path(spec.labels).stem}.{spec.aspect}"
        path = folder / f"{name}.npz"
        if name not in READ or path.exists() or time.monotonic() > end:
            continue
        kept = read_set(spec, READ[name], model)
        save_table(path, kept)
        print(name, len(kept.scores), flush=True)


def read_set(spec: TaskSpec, number: int, model: LanguageModel) -> RowTable:
    """Return the readings of outputs and their changes: groups are rows of the set, systems are changes."""
    labels = chosen_rows(spec, located(spec.labels, None))
    items = list(map(item_of, examples_of(labels)))
    options = {"instruction": spec.instruction} if spec.instruction else {}
    method = ModelReadings.from_options(
        options, labels_aspect=labels.aspect, library_aspect=None
    )
    every = changed(labels, good(labels, number))
    texts = [one for one in every if one.change != NUMBERS]
    rows = [replace(items[one.row], output=one.output) for one in texts]
    readings = list[RowReadings]()
    of_rows = list[int]()
    changes = list[str]()
    found = method.rows.read_many(rows, model, lambda: None)
    for one, of in zip(texts, found, strict=True):
        if of is not None:
            readings.append(of)
            of_rows.append(one.row)
            changes.append(one.change)
    table = table_of(readings, None, of_rows)
    return RowTable(table, np.zeros(len(readings)), tuple(changes))


def parts_of(head: LinearHead, table: Readings) -> dict[str, Vector]:
    """Return the whole score of each row and what states, likelihood and surface add to it."""
    added = head.contributions(table)
    parts = {"score": head(table)}
    for part in ("states", "likelihood", "surface"):
        parts[part] = np.zeros(len(table))
    for name, values in added.items():
        if name in table.states:
            parts["states"] += values
        elif name.startswith("surface."):
            parts["surface"] += values
        else:
            parts["likelihood"] += values
    return parts


def rows_of(name: str, head: LinearHead, kept: RowTable) -> Iterator[list[Any]]:
    """Yield a row for each harmless change of a set, and for all harmless and all harmful ones."""
    changes = np.array(kept.systems)
    groups = np.array(kept.table.groups)
    of_original = changes == ORIGINAL
    texts, row = np.unique(groups[of_original], return_index=True)
    base = np.flatnonzero(of_original)[row][np.searchsorted(texts, groups)]
    fallen = dict[str, Vector]()
    for part, values in parts_of(head, kept.table).items():
        fallen[part] = values[base] - values
    sides: list[tuple[str, tuple[str, ...]]] = [(one, (one,)) for one in HARMLESS]
    sides += [("all harmless", HARMLESS), ("all harmful", HARMFUL)]
    for title, of in sides:
        at = np.isin(changes, of)
        if at.any():
            score = fallen["score"][at]
            lower = float((score > LOWER).mean())
            by_part = [float(values[at].mean()) for values in fallen.values()]
            yield [name.replace(".", " "), title, int(at.sum()), lower, *by_part]


def measure(folder: Path, tables: Sequence[Path], output: Path | None) -> None:
    """Print and save how often scores by experience fall, by set and change."""
    pairs = list(read_pairs(tables))
    teachers = [pair.plain for pair in pairs if pair.teaches]
    families = {pair.plain.name: pair.plain.family for pair in pairs}
    rows = list[list[Any]]()
    for path in sorted(folder.glob("*.npz")):
        kept = load(path)
        experience = without_family(teachers, families[path.stem])
        head = experience.head(kept.table.names, kept.table.states)
        rows += rows_of(path.stem, head, kept)
    for row in rows:
        print(*row)
    columns = {"set": "", "change": "", "texts": "{}", "lower": "{:.0%}"}
    parts = ("score", "states", "likelihood", "surface")
    columns |= {f"mean fall, {part}": "{:+.1f}" for part in parts}
    save(
        output,
        "harmless-readings",
        columns,
        rows,
        commands=[f"{COMMAND} measure FOLDER TABLES -o experiments/results/data"],
        model="qwen2.5-coder-0.5b (Q4_K_M)",
        notes="no labels, each family left out of the experience; falls in points of 100",
    )


def main() -> None:
    """Run one of the three parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["counts", "read", "measure"])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--lm", default="local/qwen2.5-0.5b")
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    if options.what == "counts":
        counts(options.output)
    elif options.what == "read":
        read(options.folders[0], options.lm, options.seconds)
    else:
        measure(options.folders[0], options.folders[1:], options.output)


if __name__ == "__main__":
    main()
