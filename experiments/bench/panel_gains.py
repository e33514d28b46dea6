"""Tell from recorded answers of a small model what a panel of forms gains, and what a search over wordings finds.

    python experiments/bench/panel_gains.py FOLDER [--save FOLDER]

FOLDER has the tables of `panels.py`. Only rows that every form, or every wording, was asked for count. In each of some
draws half of the documents are labelled and the rest held out; the first 20, 40 or 100 labelled rows choose one by Q,
or standardise and weigh a panel as `compile` does. Intervals are 95 %: documents are drawn again, with some draws of
labels in each, so that they are those of the mean over labels, for other documents. The least difference that such a
study finds with 80 % power is 2.8 standard errors. The positive control is a search on labels that are the shortness of
the text: one of the wordings asks for that.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judgesmith.experiments.bench.panels import DEFINITIONS, SETS
from judgesmith.experiments.studies.replay import agreements
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.panel.averaging import (
    OF_PROMPTS,
    averaged,
    correlation,
    standardised,
    standings_of,
    weights_by_labels,
    worth_asking,
)
from judgesmith.programs.readings.head import Matrix, Vector

SIZES = (20, 40, 100)
#: Resamples of documents, and draws of labels in each; and draws for the values themselves.
RESAMPLES = 200
DRAWS = 5
MANY = 100
#: Standard errors that a difference needs to be found with 80 % power at 5 %.
POWER = 2.8
#: The wording that is the product's own, and that of the positive control.
OWN = "library+task"
CONTROL = "short"
FORMS = "forms"
WORDINGS = "wordings"
INTERVAL = "{:+.2f} [{:+.2f}, {:+.2f}]"
# Columns of the tables.
TITLE = {"model, set and aspect": ""}
ALONE = {
    "rows": "{:.0f}",
    "failed": "{:.0%}",
    "different scores": "{:.0f}",
    "Q": "{:.2f}",
    "correlation with": "",
}
SIZED = {
    "labels": "{:.0f}",
    "rows": "{:.0f}",
    "documents": "{:.0f}",
}
CONTROLLED = {
    **TITLE,
    **SIZED,
    "own wording": "{:.2f}",
    "chosen by Q": "{:.2f}",
    "the control was chosen": "{:.0%}",
    "gain": INTERVAL,
}


def around(value: float, error: float) -> list[float]:
    """Return a value with the ends of its 95 % interval; error: its standard error."""
    return [value, value - 1.96 * error, value + 1.96 * error]


@dataclass(frozen=True)
class Answers:
    """What the forms, or wordings, of one model said of rows: a column each, NaN where it gave no score."""

    model: str
    name: str
    kind: str
    forms: tuple[str, ...]
    percents: Matrix
    human: Vector
    documents: Sequence[str]
    words: Vector

    @property
    def title(self) -> str:
        """The model, the set and its aspect."""
        asked = SETS[self.name]
        return f"{self.model}, {asked.name} {asked.aspect}"

    def rows_by_document(self) -> list[NDArray[Any]]:
        """Return the places of the rows of each document."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, document in enumerate(self.documents):
            places[document].append(place)
        return [np.array(some) for some in places.values()]

    def by_length(self) -> Answers:
        """Return the same answers with the shortness of the texts as labels."""
        return replace(self, human=-self.words)


def tables(folder: Path) -> Iterator[Answers]:
    """Yield the answers of each model, set and kind of a folder."""
    for file in sorted(folder.glob("*.jsonl")):
        parts: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            parts[line["set"], kind_of(line["form"])].append(line)
        for (name, kind), lines in parts.items():
            yield table(file.stem, name, kind, lines)


def kind_of(form: str) -> str:
    """Return what a recorded form is one of."""
    return WORDINGS if form.partition("+")[0] in DEFINITIONS else FORMS


def table(model: str, name: str, kind: str, lines: Sequence[dict[str, Any]]) -> Answers:
    """Return the rows that every form was asked for."""
    percents_of: dict[str, dict[str, float]] = defaultdict(dict)
    for line in lines:
        percent = line["percent"]
        percents_of[line["id"]][line["form"]] = np.nan if percent is None else percent
    forms = tuple(dict.fromkeys(line["form"] for line in lines))
    rows = SETS[name].rows()
    rows = [row for row in rows if len(percents_of.get(row["id"], {})) == len(forms)]
    percents = []
    for row in rows:
        percents.append([percents_of[row["id"]][form] for form in forms])
    human = [row["scores"][SETS[name].aspect] for row in rows]
    return Answers(
        *(model, name, kind, forms, np.array(percents, float)),
        human=np.array(human, float),
        documents=[row["doc_id"] for row in rows],
        words=np.array([len(row["output"].split()) for row in rows], float),
    )


# One draw


def played(
    answers: Answers, labelled: NDArray[Any], heldout: NDArray[Any]
) -> dict[str, float]:
    """Return the held-out Q of every rule by some labelled rows, and whether the control's wording was chosen."""
    train = answers.percents[labelled]
    rest = answers.percents[heldout]
    human = answers.human[labelled]
    count = len(answers.forms)
    chosen = int(agreements(train, human).sum(axis=0).argmax())
    columns = [*rest.T, compiled(train, rest, human)]
    sizes = sorted({2, 3, count}) if answers.kind == FORMS else []
    several: dict[int, list[int]] = {}
    for size in sizes:
        several[size] = []
        for some in map(list, itertools.combinations(range(count), size)):
            several[size].append(len(columns))
            columns.append(averaged(rest[:, some], standings_of(train[:, some])))
    held = answers.human[heldout]
    q = agreements(np.stack(columns, axis=1), held).sum(axis=0)
    found = {
        "chosen by Q": float(q[chosen]),
        "one at random": float(q[:count].mean()),
        "best in hindsight": float(q[:count].max()),
        "panel as compiled": float(q[count]),
    }
    for size, places in several.items():
        name = "panel of all" if size == count else f"panel of {size}"
        found[name] = float(q[places].mean())
    if answers.kind == WORDINGS:
        found["own wording"] = float(q[answers.forms.index(OWN)])
        found["control chosen"] = float(answers.forms[chosen] == CONTROL)
    return found


def compiled(train: Matrix, rest: Matrix, human: Vector) -> Vector:
    """Return what a panel of all forms says, of which compiling leaves some out and weighs the others."""
    kept = worth_asking(train)
    standings = standings_of(train[:, kept])
    z = standardised(train[:, kept], standings)
    weighed = []
    weights = weights_by_labels(z, human, OF_PROMPTS).tolist()
    for one, weight in zip(standings, weights, strict=True):
        weighed.append(one.model_copy(update={"weight": weight}))
    return averaged(rest[:, kept], weighed)


# Over draws and documents


#: What labelled and held-out rows of answers come to, by rule.
Play: TypeAlias = Callable[[Answers, NDArray[Any], NDArray[Any]], dict[str, float]]
#: How many documents, in the order in which they were drawn, labels are taken from: by their rows, and the labels.
Inside: TypeAlias = Callable[[NDArray[Any], int], int]


def half(counts: NDArray[Any], size: int) -> int:
    """Return half of the documents."""
    return len(counts) // 2


@dataclass(frozen=True)
class Draws:
    """How labels are drawn: `many` times from the rows as they are, and `few` times from each resample of documents."""

    play: Play = played
    inside: Inside = half
    many: int = MANY
    resamples: int = RESAMPLES
    few: int = DRAWS

    def mean(
        self,
        answers: Answers,
        size: int,
        documents: Sequence[NDArray[Any]],
        seed: Sequence[int],
        draws: int,
    ) -> dict[str, float]:
        """Return each rule's held-out Q as the mean over draws of labels; documents: the rows of each."""
        totals: dict[str, list[float]] = defaultdict(list)
        rng = np.random.default_rng(seed)
        counts = np.array(list(map(len, documents)))
        for _ in range(draws):
            order = rng.permutation(len(documents))
            first = self.inside(counts[order], size)
            inside = np.concatenate([documents[place] for place in order[:first]])
            heldout = np.concatenate([documents[place] for place in order[first:]])
            labelled = rng.permutation(inside)[:size]
            for rule, value in self.play(answers, labelled, heldout).items():
                totals[rule].append(value)
        return {rule: float(np.mean(values)) for rule, values in totals.items()}

    def gains(
        self, answers: Answers, size: int
    ) -> tuple[dict[str, float], dict[str, Vector]]:
        """Return each rule's Q on the rows as they are, and over resamples of their documents.

        A document that is drawn twice stands on one side of a split: copies of a row are never on both.
        """
        documents = answers.rows_by_document()
        plain = self.mean(answers, size, documents, [size, 0], self.many)
        found: dict[str, list[float]] = defaultdict(list)
        rng = np.random.default_rng([size, 1])
        for number in range(self.resamples):
            again: dict[int, int] = defaultdict(int)
            for one in rng.integers(len(documents), size=len(documents)).tolist():
                again[one] += 1
            copies = [np.tile(documents[one], count) for one, count in again.items()]
            means = self.mean(answers, size, copies, [size, 2, number], self.few)
            for rule, value in means.items():
                found[rule].append(value)
        return plain, {rule: np.array(values) for rule, values in found.items()}


HALVES = Draws()


Pairs = Sequence[tuple[str, str]]
OF_FORMS: Pairs = (
    ("panel of all", "chosen by Q"),
    ("panel as compiled", "chosen by Q"),
    ("chosen by Q", "one at random"),
    ("panel of 2", "one at random"),
    ("panel of all", "one at random"),
    ("panel of all", "best in hindsight"),
)
OF_WORDINGS: Pairs = (
    ("chosen by Q", "own wording"),
    ("chosen by Q", "one at random"),
    ("best in hindsight", "own wording"),
)


def differences(
    answers: Answers, size: int, levels: Sequence[str], pairs: Pairs
) -> list[Any]:
    """Return a row: the rules' levels, their differences with intervals, and the least of the first that is found."""
    plain, spread = HALVES.gains(answers, size)
    row = [plain[rule] for rule in levels]
    errors = []
    cells: list[Any] = []
    for one, other in pairs:
        errors.append(float((spread[one] - spread[other]).std()))
        cells.append(around(plain[one] - plain[other], errors[-1]))
    return [*row, *cells, POWER * errors[0]]


def sizes_of(answers: Answers) -> list[int]:
    """Return the numbers of labels that half of the documents have rows for."""
    return [size for size in SIZES if 2.4 * size <= len(answers.human)]


def about(answers: Answers, size: int) -> list[Any]:
    """Return a row's first cells."""
    rows = len(answers.human)
    documents = len(set(answers.documents))
    return [answers.title, size, rows, documents]


def members_of(answers: Answers) -> Iterator[list[Any]]:
    """Yield a row for each form: its failures, its Q over all rows, and its correlation with each other form."""
    q = agreements(answers.percents, answers.human).sum(axis=0).tolist()
    for place, form in enumerate(answers.forms):
        column = answers.percents[:, place]
        others = []
        for at, other in enumerate(answers.forms):
            if at != place:
                r = correlation(column, answers.percents[:, at])
                others.append(f"{other} {r:.2f}" if np.isfinite(r) else f"{other} –")
        failed = float(np.isnan(column).mean())
        values = len(np.unique(column[np.isfinite(column)]))
        seen = [answers.title, form, len(column), failed, values, q[place]]
        yield [*seen, ", ".join(others)]


def main() -> None:
    """Print the tables, and save them on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    every = list(tables(options.folder))
    forms = [one for one in every if one.kind == FORMS]
    wordings = [one for one in every if one.kind == WORDINGS]

    def kept(name: str, columns: Mapping[str, str], rows: list[list[Any]]) -> None:
        commands = [
            "python experiments/bench/panels.py SET -o FOLDER",
            "python experiments/bench/panel_gains.py FOLDER",
        ]
        for row in rows:
            print(name, json.dumps(row), flush=True)
        if rows:
            save(options.save, name, columns, rows, commands=commands, seed=0)

    members = [row for one in forms for row in members_of(one)]
    kept("panel-members", {**TITLE, "form": "", **ALONE}, members)
    for name, some, levels, pairs in (
        ("panel-gains", forms, ("one at random", "chosen by Q"), OF_FORMS),
        ("wordings-gains", wordings, ("own wording", "chosen by Q"), OF_WORDINGS),
    ):
        rows = []
        for one in some:
            for size in sizes_of(one):
                rows.append(about(one, size) + differences(one, size, levels, pairs))
        columns = {**TITLE, **SIZED, **dict.fromkeys(levels, "{:.2f}")}
        columns |= {f"{one} − {other}": INTERVAL for one, other in pairs}
        columns["least of the first that is found"] = "{:.2f}"
        kept(name, columns, rows)
    control = []
    shown = ("own wording", "chosen by Q", "control chosen")
    for one in wordings:
        for size in sizes_of(one):
            found = differences(one.by_length(), size, shown, OF_WORDINGS[:1])
            control.append(about(one, size) + found[:-1])
    kept("wordings-control", CONTROLLED, control)
    each = [row for one in wordings for row in members_of(one)]
    kept("wordings", {**TITLE, "wording": "", **ALONE}, each)


if __name__ == "__main__":
    main()
