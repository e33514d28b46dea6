"""Ask for the own score behind a text that was read already, and measure what it is worth in a head.

    python experiments/bench/own_score.py ask FOLDER [--sets …] [--rows 64]
    python experiments/bench/own_score.py compare FOLDER [--save FOLDER]
    python experiments/bench/own_score.py worth TABLES [TABLES …] [--save FOLDER]

`ask` keeps the expected digit of local/qwen2.5-0.5b for rows that people judged: by a prompt of its own, as `compile`
asks; behind the passage that is read (instruction and source, output as the answer), with a short question or the whole
rules; and behind the passage's source alone, with rules and output. What is read already would cost nothing again.
`compare` shows the agreement of each with people, Q = r + ρ + τ-b.

`worth` takes tables of `judgesmith study experience` that have the own score. It fits heads to drawn labels with that
score, as `compile` does, and without it, from experience with the tables of other sets. Rows that were not drawn give
Q.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.reader_agreement import MODEL, SETS, chosen
from judgesmith.experiments.studies.experience import (
    Task,
    draw_labels,
    fit_experience,
    load,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.gaussian import gaussian
from judgesmith.optimizers.fitting.readings import agreement, weigh, without_own
from judgesmith.programs.aspects import Aspect, known_aspect
from judgesmith.programs.models import engine
from judgesmith.programs.models.files import model_path
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.readings.bindings.batches import Row
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.experience import Card, Experience
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.programs.readings.passages import (
    ASSISTANT_SYSTEM,
    INSTRUCTIONS,
    Message,
    Piece,
    Text,
    rendered,
)
from judgesmith.signatures.values import Item

#: The aspect library's names of what people rated.
ASPECTS = {
    "wiki_da": "simplification/meaning preservation",
    "sfres": "data-to-text/informativeness",
    "openmeva_roc": "story/overall",
    "personachat_usr": "dialogue/overall",
    "topical_chat": "dialogue/overall",
    "summeval": "summarization/coherence",
}
WAYS = {
    "direct": "its own prompt",
    "short": "behind the output, short",
    "full": "behind the output, whole rules",
    "source": "behind the source",
}
FORM = "Score: <number>\nwhere <number> is a digit from 1 (very poor) to 5 (excellent)."
LABELS = (8, 40, 98)
DRAWS = 8
#: The columns of what a head gains.
WORTH = {
    "labels": "{:.0f}",
    "tasks": "{:.0f}",
    "Q, may be asked": "{:.2f}",
    "Q, never asked": "{:.2f}",
    "a task loses at most": "{:.2f}",
    "gains at most": "{:.2f}",
    "heads with it": "{:.0f}",
    "of": "{:.0f}",
}
#: Rows of a task beside the labels, at least; groups of labels and rows that are measured, at least; and the share of
#: rows that may lack the own score.
LEFT = 30
FEWEST_GROUPS = 3
FEWEST_ROWS = 20
LACKING = 0.1


def item_of(row: dict[str, Any]) -> Item:
    """Return a row as judges see it."""
    return Item(row["output"], row["source"] or "", row.get("context"))


def behind(
    text: Text, about: Aspect, direct: DirectScorer
) -> Iterator[tuple[str, list[Message]]]:
    """Yield the ways to ask behind what is read, as conversations."""
    rules = direct.prompts(Item("O", "S"))["scorer"][0]["content"]
    first = rules.split("\n\n<task>")[0]
    criteria = rules[rules.index("<criteria>") :]
    criteria, question = criteria.split("</criteria>")
    whole = f"{first}\n\n{criteria}</criteria>\n\n{question.split('say.')[1].strip()}"
    user = f"{text.instruction}\n\n{text.material}"
    system = Message("system", (ASSISTANT_SYSTEM,))
    read = [system, Message("user", (user,)), Message("assistant", (text.judged,))]
    short = f"Rate {about.name} of your last message. {about.definition}"
    yield (
        "short",
        [*read, Message("user", (f"{short}\nAnswer with one line:\n{FORM}",))],
    )
    yield "full", [*read, Message("user", (whole,))]
    told = "\n\nThis was the task of a system, which wrote this:\n<output>\n"
    parts = (user, told, text.judged, f"\n</output>\n\n{whole}")
    yield "source", [system, Message("user", parts)]


def expected(reader: OpenVinoReader, messages: Sequence[Message]) -> float:
    """Return the expected digit of a conversation's answer, in percent."""
    digits = [reader.tokens(Piece(f"Score: {digit}")) for digit in range(1, 6)]
    pieces = rendered(reader.chat, messages)
    tokens = [*chain.from_iterable(map(reader.tokens, pieces)), *digits[0][:-1]]
    logp = reader.following([Row(tokens, len(tokens) - 1)])[0][-1]
    odds = np.exp(logp[[digit[-1] for digit in digits]].astype(float))
    return float(odds @ np.arange(5) / odds.sum() * 25)


def ask(folder: Path, names: list[str], count: int) -> None:
    """Ask in every way, and keep the scores in a folder; a run that was ended goes on."""
    lm = language_model(f"local/{MODEL}", connection=Connection(cache=False))
    reader = OpenVinoReader(model_path(MODEL))
    for name in names:
        about = known_aspect(ASPECTS[name])[0]
        direct = DirectScorer(ASPECTS[name])
        direct.choose(reading="expected")
        path = folder / f"{name}.own.json"
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        found |= json.loads(path.read_text()) if path.exists() else {}
        for row in chosen(name, count)[len(found["direct"]) :]:
            source = row["source"] or ""
            context = row.get("context") or ""
            text = Text(source, row["output"], context, INSTRUCTIONS[row["task"]])
            for way, messages in behind(text, about, direct):
                found[way].append(expected(reader, messages))
            verdict = engine.run(direct.judge(item_of(row), lm))
            found["direct"].append(float(verdict.percent))
            path.write_text(json.dumps(found))
        print(name, len(found["direct"]), flush=True)


def compare(folder: Path, target: Path | None) -> None:
    """Print the agreement of each way with people, and save it on request."""
    lines = list[list[Any]]()
    for name, aspect in SETS.items():
        path = folder / f"{name}.own.json"
        if not path.exists():
            continue
        found = json.loads(path.read_text())
        rows = chosen(name, len(found["direct"]))
        human = np.array([row["scores"][aspect] for row in rows], float)
        qs = list[float]()
        for way in WAYS:
            qs.append(round(agreement(np.array(found[way]), human), 3))
        lines.append([f"{name}, {aspect}", len(rows), *qs])
    counts = [line[1] for line in lines]
    table = [line[2:] for line in lines]
    means = np.mean(table, axis=0).round(3).tolist()
    lines.append(["mean", sum(counts), *means])
    for line in lines:
        print(*line)
    columns = {"set and aspect": "", "rows": "{:.0f}"}
    columns |= dict.fromkeys(WAYS.values(), "{:.2f}")
    command = "python experiments/bench/own_score.py"
    commands = [f"{command} ask FOLDER", f"{command} compare FOLDER"]
    save(target, "own-score", columns, lines, commands=commands)


def tasks_of(folders: Sequence[Path]) -> list[Task]:
    """Return the tables that have the own score."""
    tasks = list[Task]()
    for path in sorted(chain.from_iterable(of.glob("*.npz") for of in folders)):
        rows = load(path)
        (family, aspect) = path.name.split(".")[:2]
        if DIRECT not in rows.table.names:
            continue
        lacking = np.isnan(rows.table.columns([DIRECT])).mean()
        if lacking <= LACKING:
            name = f"{family}, {aspect}"
            tasks.append(Task(name, family, "", rows.table, rows.scores, rows.systems))
    return tasks


def fits(task: Task, experience: Experience, labels: int) -> Iterator[list[float]]:
    """Yield Q with the own score and without it, and 1 where a head kept it."""
    for draw in range(DRAWS):
        drawn, left = draw_labels(task.table.groups, labels, draw)
        some = task.table.rows(drawn)
        scores = task.scores[drawn]
        if len(set(some.groups)) < FEWEST_GROUPS or len(left) < FEWEST_ROWS:
            continue
        every = weigh(some, scores, experience).head
        free = gaussian(without_own(some), scores, experience, own=DIRECT).head
        rest = task.table.rows(left)
        human = task.scores[left]
        qs = [agreement(head(rest), human) for head in (every, free)]
        yield [*qs, float(DIRECT in every.weights)]


def worth(folders: Sequence[Path], target: Path | None) -> None:
    """Print what heads with the own score reach, and without it; save it on request."""
    tasks = tasks_of(folders)
    found: dict[int, list[Any]] = {labels: [] for labels in LABELS}
    for task in tasks:
        others = [other for other in tasks if other.family != task.family]
        experience = fit_experience(others, Card())
        for labels, of in found.items():
            if labels > len(task.scores) - LEFT:
                continue
            each = list(fits(task, experience, labels))
            if each:
                asked, free, kept = np.array(each).T
                of.append([asked.mean(), free.mean(), kept.sum(), len(each)])
                print(task.name, labels, *of[-1], flush=True)
    lines = list[list[Any]]()
    for labels, of in found.items():
        asked, free, kept, count = np.array(of).T
        gain = free - asked
        qs = [asked.mean(), free.mean(), -gain.min(), gain.max()]
        numbers = [round(float(q), 3) for q in qs]
        lines.append([labels, len(of), *numbers, int(kept.sum()), int(count.sum())])
    command = "python experiments/bench/own_score.py worth TABLES"
    save(target, "own-score-worth", WORTH, lines, commands=[command])


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_subparsers(dest="action", required=True)
    asking, comparing, weighing = map(ways.add_parser, ("ask", "compare", "worth"))
    for one in (asking, comparing):
        one.add_argument("folder", type=Path)
    weighing.add_argument("folders", type=Path, nargs="+")
    for one in (comparing, weighing):
        one.add_argument("--save", type=Path)
    asking.add_argument("--sets", default=",".join(ASPECTS))
    asking.add_argument("--rows", type=int, default=64)
    arguments = parser.parse_args()
    if arguments.action == "ask":
        ask(arguments.folder, arguments.sets.split(","), arguments.rows)
    elif arguments.action == "compare":
        compare(arguments.folder, arguments.save)
    else:
        worth(arguments.folders, arguments.save)


if __name__ == "__main__":
    main()
