"""Record what each form of a panel says of rows with human scores, so that choosing and averaging can be replayed.

    python experiments/bench/panels.py SET -o FOLDER --lm local/qwen2.5-1.5b [--forms …] [--rows 400] [--seconds 280]

It takes rows of a benchmark set, one document after the other, in an order drawn by seed 0, and appends each answer to
FOLDER/MODEL.jsonl. It ends after so many seconds, and the same command goes on there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.programs.aspects import known_aspect
from judgesmith.programs.models import engine, row_context
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.programs.panel.judge import Panel
from judgesmith.signatures.values import Item

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
        file = Path(os.environ["JUDGESMITH_DATA"], f"{self.name}.jsonl")
        found = list(map(json.loads, file.read_text(encoding="utf-8").splitlines()))
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
    "summeval": Asked("summeval", "coherence", "summarization/coherence", 8),
    "summeval-alone": Asked(
        "summeval", "coherence", "summarization/coherence", 4, source=False
    ),
    "sfres": Asked("sfres", "informativeness", "data-to-text/informativeness", 2),
    "openmeva_roc": Asked("openmeva_roc", "overall", "story generation/overall", 4),
}


class Table:
    """Answers by set, form and row, in a file of JSON lines that is continued."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.answers = [json.loads(line) for line in lines]
        self.there = {(one["set"], one["form"], one["id"]) for one in self.answers}

    def add(self, answer: dict[str, Any]) -> None:
        """Keep an answer."""
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps(answer, ensure_ascii=False), file=file)


async def answers(
    asked: Asked, form: str, rows: list[dict[str, Any]], lm: LanguageModel
) -> list[dict[str, Any]]:
    """Return a form's answers to rows."""
    method = Panel(known_aspect(asked.library)[0], forms=(form,))
    limit = asyncio.Semaphore(1 if lm.one_by_one else lm.concurrency)

    async def one(row: dict[str, Any]) -> dict[str, Any]:
        item = asked.item(row)
        async with limit:
            with row_context.judging(item):
                said = await method.judge(item, lm)
        number = None if said.failure else round(said.percent, 4)
        return {"id": row["id"], "percent": number, "text": said.raw[-1:]}

    return await asyncio.gather(*map(one, rows))


def ask(
    name: str, forms: list[str], lm: LanguageModel, table: Table, count: int
) -> Iterator[str]:
    """Ask every form of a few rows after the other, and yield a line after each."""
    asked = SETS[name]
    rows = asked.rows()[:count]
    for start in range(0, len(rows), AT_ONCE):
        block = rows[start : start + AT_ONCE]
        for form in forms:
            left = [row for row in block if (name, form, row["id"]) not in table.there]
            if not left:
                continue
            began = time.perf_counter()
            found = engine.run(answers(asked, form, left, lm))
            seconds = round((time.perf_counter() - began) / len(found), 3)
            for answer in found:
                table.add({"set": name, "form": form, **answer, "seconds": seconds})
            yield f"{name} {form}: {start + len(block)} of {len(rows)}, {seconds} s"


def main() -> None:
    """Ask until the time is over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--lm", default="local/qwen2.5-1.5b")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + given.seconds
    lm = language_model(given.lm)
    table = Table(given.output / f"{given.lm.rpartition('/')[2]}.jsonl")
    for line in ask(given.set, given.forms.split(","), lm, table, given.rows):
        print(line, flush=True)
        if time.monotonic() > ends:
            break


if __name__ == "__main__":
    main()
