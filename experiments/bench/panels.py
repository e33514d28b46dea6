"""Record what each form of a panel says of rows with human scores, so that choosing and averaging can be replayed.

    python experiments/bench/panels.py SET -o FOLDER --lm local/qwen2.5-1.5b [--forms …] [--rows 400] [--seconds 280]

It takes rows of a benchmark set, one document after the other, in an order drawn by seed 0, and appends each answer to
FOLDER/MODEL.jsonl. It ends after these seconds, and the same command goes on there. What the answers say is in
`panel_gains.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.sets import read_set
from judgesmith.programs.models import engine, row_context
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.programs.panel.judge import Panel
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Criterion, Item

#: Rows that a form judges before the next form has its turn.
AT_ONCE = 16
FORMS = ("percent", "words", "questions", "criteria", "errors")


@dataclass(frozen=True)
class Asked:
    """A set of rows, and the aspect of the library that they are judged for.

    Args:
        name: The set's file in JUDGESMITH_DATA.
        aspect: Whose human scores the set has.
        library: The aspect's name in the library.
        a_document: Rows of a document at most.
        source: Whether the judge is shown the source.
    """

    name: str
    aspect: str
    library: str
    a_document: int
    source: bool = True

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows: documents in an order drawn by seed 0, a few rows of each."""
        found = read_set(self.name)
        rng = np.random.default_rng(0)
        documents: dict[str, list[dict[str, Any]]] = {}
        for place in rng.permutation(len(found)):
            documents.setdefault(found[place]["doc_id"], []).append(found[place])
        return [row for one in documents.values() for row in one[: self.a_document]]

    def item(self, row: dict[str, Any]) -> Item:
        """Return what a judge sees of a row."""
        source = row.get("source") if self.source else None
        return Item(row["output"], source or "", row.get("context"))


SETS = {
    "wiki_da": Asked("wiki_da", "meaning", "simplification/meaning preservation", 2),
    "wiki_da fluency": Asked(
        "wiki_da", "fluency", "simplification/fluency", 2, source=False
    ),
    "personachat": Asked("personachat_usr", "overall", "dialogue/overall", 5),
    "summeval": Asked(
        "summeval", "coherence", "summarization/coherence", 4, source=False
    ),
}

#: What a prompt may say of wiki_da's aspect, and of the ends of the scale; "short" is a positive control, which people
#: who rated by length alone would have meant.
DEFINITIONS = {
    "library": "Whether the simplified text still says what the original says. Dropping a detail for simplicity's sake "
    "matters less than changing, adding or losing something essential.",
    "asked": "The simplified sentence adequately expresses the meaning of the original, perhaps omitting the least "
    "important information.",
    "short": "How short the text is. The fewer words it has, the better it is; a long text is bad.",
}
ANCHORS = (
    " Worst: the text says something else than the original. Best: it says all that matters in the original, and "
    "nothing else."
)
TASK = "A system was given a text and wrote a simpler version of it."


def worded(wording: str) -> DirectScorer:
    """Return the judge of a wording: a definition, with or without anchors and the task (`library+anchors+task`)."""
    name, *more = wording.split("+")
    text = DEFINITIONS[name] + (ANCHORS if "anchors" in more else "")
    task = TASK if "task" in more else ""
    criterion = Criterion("meaning preservation", text)
    return DirectScorer("meaning preservation", criteria=[criterion], task=task)


class Table:
    """Answers by set, form and row, in a file of JSON lines that is continued."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.answers = [json.loads(line) for line in lines]
        self.there = {(one["set"], one["form"], one["id"]) for one in self.answers}

    def left(
        self, name: str, form: str, rows: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the rows of a set that a form was not asked for."""
        return [row for row in rows if (name, form, row["id"]) not in self.there]

    def add(self, answer: dict[str, Any]) -> None:
        """Keep an answer."""
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps(answer, ensure_ascii=False), file=file)


async def at_once(
    judge: Callable[[Item], Awaitable[Any]], items: list[Item], lm: LanguageModel
) -> list[Any]:
    """Return what is judged of items, as many under way as the model takes."""
    limit = asyncio.Semaphore(1 if lm.one_by_one else lm.concurrency)

    async def one(item: Item) -> Any:
        async with limit:
            with row_context.judging(item):
                return await judge(item)

    return await asyncio.gather(*map(one, items))


async def answers(
    asked: Asked, form: str, rows: list[dict[str, Any]], lm: LanguageModel
) -> list[dict[str, Any]]:
    """Return a form's answers to rows."""
    wording = form.partition("+")[0] in DEFINITIONS
    method = worded(form) if wording else Panel(asked.library, forms=(form,))
    await method.prepare(lm)
    found = []
    items = list(map(asked.item, rows))
    verdicts = await at_once(lambda item: method.judge(item, lm), items, lm)
    for row, verdict in zip(rows, verdicts, strict=True):
        number = None if verdict.failure else round(verdict.percent, 4)
        found.append({"id": row["id"], "percent": number, "text": verdict.raw[-1:]})
    return found


def ask(
    name: str, forms: list[str], lm: LanguageModel, table: Table, count: int
) -> Iterator[str]:
    """Ask every form of a few rows after the other, and yield a line after each."""
    asked = SETS[name]
    rows = asked.rows()[:count]
    for start in range(0, len(rows), AT_ONCE):
        block = rows[start : start + AT_ONCE]
        for form in forms:
            left = table.left(name, form, block)
            if not left:
                continue
            began = time.perf_counter()
            found = engine.run(answers(asked, form, left, lm))
            seconds = round((time.perf_counter() - began) / len(found), 3)
            for answer in found:
                table.add({"set": name, "form": form, **answer, "seconds": seconds})
            yield f"{name} {form}: {start + len(block)} of {len(rows)}, {seconds} s"


def arguments(
    description: str | None, *, forms: Sequence[str], rows: int
) -> argparse.Namespace:
    """Return the arguments of the command line, and make the output's folder.

    Args:
        description: Of the bench.
        forms: The forms by default.
        rows: The number of rows by default.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--lm", default="local/qwen2.5-1.5b")
    parser.add_argument("--forms", default=",".join(forms))
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def kept_at(options: argparse.Namespace) -> Table:
    """Return the table of the model's answers in the folder of the output."""
    return Table(options.output / f"{options.lm.rpartition('/')[2]}.jsonl")


def print_for(seconds: float, lines: Iterable[str]) -> None:
    """Print a line for each piece of work, until the time is over."""
    ends = time.monotonic() + seconds
    for line in lines:
        print(line, flush=True)
        if time.monotonic() > ends:
            break


def main() -> None:
    """Ask until the time is over."""
    options = arguments(__doc__, forms=FORMS, rows=400)
    lm = language_model(options.lm)
    forms = options.forms.split(",")
    lines = ask(options.set, forms, lm, kept_at(options), options.rows)
    print_for(options.seconds, lines)


if __name__ == "__main__":
    main()
