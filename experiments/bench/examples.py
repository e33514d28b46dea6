"""Record what labelled examples change on real ratings: sets of several sizes, drawn, and with shuffled scores.

    python experiments/bench/examples.py SET -o FOLDER --lm local/qwen2.5-1.5b [--forms 0,8,16] [--rows 150]
        [--seconds 280]
    python experiments/bench/examples.py --table FOLDER [--save FOLDER]

Examples are turns with a bare score, as `js.DirectScorer` shows them, equally many of each fifth of the human scores.
Their documents are not judged. Answers are appended to FOLDER/MODEL.jsonl as by `panels.py`, and the same command goes
on there. `judgesmith study control MODEL` is the control: without it no figure here says anything.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.differences import Procedure, differences_within
from judgesmith.agreement.resampling import Agreement, Measure
from judgesmith.experiments.bench.panels import (
    SETS,
    Asked,
    Table,
    arguments,
    at_once,
    kept_at,
    print_for,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.active_critic.scoring import OverallScorer, TaskContext
from judgesmith.programs.aspects import known_aspect
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.signatures.values import Criterion, Item

#: Draws of the largest set; of the other sizes and of shuffled scores.
DRAWS = 8
FEWER = 2
SHUFFLED = "shuffled"


def forms_of(sizes: Sequence[int]) -> list[str]:
    """Return the cells, `SIZE right|shuffled DRAW`, those of one draw beside each other."""
    largest = max(sizes)
    found = ["0 right 0"]
    for draw in range(DRAWS):
        found.append(f"{largest} right {draw}")
        if draw < FEWER:
            found += [f"{size} right {draw}" for size in sizes if 0 < size < largest]
            found.append(f"{largest} {SHUFFLED} {draw}")
    return found


def parts(
    asked: Asked, judged: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows to judge, and those of other documents to draw from."""
    rows = asked.rows()
    documents = {row["doc_id"] for row in rows[:judged]}
    return rows[:judged], [row for row in rows if row["doc_id"] not in documents]


def examples(
    asked: Asked, pool: list[dict[str, Any]], form: str
) -> list[dict[str, Any]]:
    """Return the demonstrations of a cell, as many of each fifth of the pool's human scores."""
    size, labels, draw = form.split()
    rng = np.random.default_rng([int(draw), 11])
    scores = np.array([row["scores"][asked.aspect] for row in pool])
    order = np.argsort(scores + rng.uniform(0, 1e-6, len(scores)))
    fifths = [rng.permutation(part) for part in np.array_split(order, 5)]
    picked = [int(fifths[n % 5][n // 5]) for n in range(int(size))]
    shown = scores[picked]
    if labels == SHUFFLED:
        shown = rng.permutation(shown)
    percents = 100 * (shown - scores.min()) / (scores.max() - scores.min())
    found = []
    for place in rng.permutation(len(picked)):
        row = pool[picked[place]]
        source = row.get("source") if asked.source else None
        texts = {
            "source": source or "",
            "output": row["output"],
            "group": row["doc_id"],
        }
        score = {"score": float(percents[place]), "augmented": False, "gold": True}
        found.append(texts | score)
    return found


def context(asked: Asked) -> TaskContext:
    """Return what the prompt says of the task."""
    aspect, task = known_aspect(asked.library)
    criteria = (Criterion(aspect.name, aspect.definition),)
    return TaskContext(task.description if task else "", criteria, aspect.name)


def ask(
    name: str, sizes: list[int], lm: LanguageModel, table: Table, count: int
) -> Iterator[str]:
    """Ask every cell of all rows, and yield a line after each."""
    asked = SETS[name]
    judged, pool = parts(asked, count)
    about = context(asked)
    for form in forms_of(sizes):
        left = table.left(name, form, judged)
        if not left:
            continue
        scorer = OverallScorer("none", "expected")
        scorer.predict.demos = examples(asked, pool, form)

        async def one(item: Item, scorer: OverallScorer = scorer) -> Any:
            return await scorer.ascore(item, about, lm)

        for start in range(0, len(left), 32):
            rows = left[start : start + 32]
            began = time.perf_counter()
            found = engine.run(at_once(one, [asked.item(row) for row in rows], lm))
            seconds = round((time.perf_counter() - began) / len(rows), 3)
            for row, answer in zip(rows, found, strict=True):
                percent = round(answer.read.values["score"], 4)
                said = {"id": row["id"], "percent": percent, "seconds": seconds}
                table.add({"set": name, "form": form, **said})
            yield f"{name} {form}: {start + len(rows)} of {len(left)}, {seconds} s"


COLUMNS = {
    "model": "",
    "set": "",
    "examples": "{:.0f}",
    "scores": "",
    "sets": "{:.0f}",
    "rows": "{:.0f}",
    "Q, mean": "{:.2f}",
    "least, most": "{:.2f}, {:.2f}",
    "− none": "{:+.2f} [{:+.2f}, {:+.2f}]",
    "best − mean, chosen on other rows": "{:+.2f}",
}


def rows_of(path: Path) -> Iterator[list[Any]]:
    """Yield the table's rows for a model's answers; cells that are not complete are left out."""
    table = Table(path)
    for name in dict.fromkeys(one["set"] for one in table.answers):
        said: dict[str, dict[str, float]] = {}
        for one in table.answers:
            if one["set"] == name:
                said.setdefault(one["form"], {})[one["id"]] = one["percent"]
        most = max(len(cell) for cell in said.values())
        judged, _ = parts(SETS[name], most)
        whole = {form: cell for form, cell in said.items() if len(cell) == most}
        human = [row["scores"][SETS[name].aspect] for row in judged]
        measure = Measure(human, documents=[row["doc_id"] for row in judged])
        none = [whole["0 right 0"][row["id"]] for row in judged]
        for kind in dict.fromkeys(form.rpartition(" ")[0] for form in whole):
            draws = [
                [cell[row["id"]] for row in judged]
                for form, cell in whole.items()
                if form.rpartition(" ")[0] == kind
            ]
            size, labels = kind.split()
            row = [path.stem, name, int(size), labels if int(size) else "none"]
            yield [*row, len(draws), most, *_figures(draws, none, measure)]


def _figures(
    draws: list[list[float]], none: list[float], measure: Measure
) -> Iterator[Any]:
    agreement = Agreement.of([*draws, none], measure)
    values = [float(value) for value in agreement.values[:-1]]
    yield float(np.mean(values))
    yield [min(values), max(values)]
    weights = np.array([[1 / len(draws)] * len(draws) + [-1.0]])
    procedure = Procedure(rounds=2000, confidence=0.95, seed=0)
    (lead,) = differences_within(agreement, weights, procedure)
    yield (
        None
        if len(draws) == 1 and draws[0] == none
        else [lead.value, lead.low, lead.high]
    )
    yield None if len(draws) < 3 else _gain_of_choosing(np.array(draws), measure)


def _gain_of_choosing(draws: np.ndarray[Any, Any], measure: Measure) -> float:
    """Return what the set that is best on half of the documents gains on the others, on the mean set."""
    documents = np.array([str(one) for one in measure.documents or ()])
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(200):
        chosen = rng.permutation(np.unique(documents))[: len(set(documents)) // 2]
        seen = np.isin(documents, chosen)
        first = Agreement.of(list(draws[:, seen]), measure.only(seen)).values
        second = Agreement.of(list(draws[:, ~seen]), measure.only(~seen)).values
        gains.append(float(second[int(np.argmax(first))] - np.mean(second)))
    return float(np.mean(gains))


def tabulate() -> None:
    """Print or save the table of what was recorded."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    rows = [
        row for path in sorted(options.table.glob("*.jsonl")) for row in rows_of(path)
    ]
    for row in rows:
        print(*row, sep="\t")
    commands = ["python experiments/bench/examples.py SET -o FOLDER --lm MODEL"]
    save(options.save, "examples", COLUMNS, rows, commands=commands, seed=0)


def main() -> None:
    """Ask until the time is over, or tabulate."""
    if "--table" in sys.argv:
        tabulate()
        return
    options = arguments(__doc__, forms=("0", "8", "16"), rows=150)
    sizes = [int(size) for size in options.forms.split(",")]
    lines = ask(
        options.set, sizes, language_model(options.lm), kept_at(options), options.rows
    )
    print_for(options.seconds, lines)


if __name__ == "__main__":
    main()
