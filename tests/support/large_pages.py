"""Pages of many rows: as SummEval's (16 outputs of some 340 characters to a source of 2,200) and five judges, whose
texts are no easier to compress than a language is. `report` shows the judges as the annotators of one panel, each with
an explanation and an error; `evaluate` compares their scores of four aspects.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pages import error

from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.evaluating import page as evaluation
from judgesmith.evaluating.sources import Judged, read_file
from judgesmith.reports import spans
from judgesmith.reports.rows import read_scored

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
JUDGES = ("compiled", "zero-shot", "G-Eval", "panel", "length")
#: Consonants with a vowel, of which words are made.
SYLLABLES = [a + b for a in "bcdfghklmnprstvw" for b in "aeiou"]


def writer(chance: random.Random) -> Callable[[int], str]:
    """Texts of so many characters, of made-up words, rare and frequent ones as in a language (Zipf)."""
    words = ["".join(chance.choices(SYLLABLES, k=1 + k % 4)) for k in range(5000)]
    weights = list(itertools.accumulate(1 / (k + 2) for k in range(5000)))
    return lambda characters: " ".join(chance.choices(words, cum_weights=weights, k=characters // 3))[:characters]


def records(rows: int) -> list[dict[str, Any]]:
    """Rows that a panel of the judges scored. Half of an output is the source's words; a judge quotes and comments."""
    chance, made = random.Random(0), list[dict[str, Any]]()
    text = writer(chance)
    for k in range(rows):
        if k % 16 == 0:
            source, reference = text(2200), text(300)
        start = chance.randrange(len(source) - 170)
        output = f"{source[start : start + 170]} {text(169)}"
        human = {name: chance.randint(1, 5) for name in ASPECTS}
        reasons = [f"It is well, but “{output[k : k + 30]}”: {text(68)}" for k in range(9, 60, 9)]
        opinions: dict[str, Any] = {
            name: {"percent": chance.randint(0, 100), "explanation": reasons[i], "failure": None,
                   "errors": [error(output, 20 * i, 20 * i + 15, 1 + i, explanation=text(40), annotators=[name])]}
            for i, name in enumerate(JUDGES)
        }  # fmt: skip
        verdict = {"score": chance.randint(1, 5), "explanation": reasons[5], "failure": None,
                   "errors": [one["errors"][0] for one in opinions.values()], "opinions": opinions}  # fmt: skip
        made.append(
            {"id": f"dm-test-{k:040x}", "doc_id": f"d{k // 16}", "system": f"M{k % 16}", "source": source,
             "reference": reference, "output": output, "scores": human, "score": human["coherence"], "verdict": verdict}
        )  # fmt: skip
    return made


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def report_page(place: Path, rows: int) -> str:
    return spans.render(read_scored(write(place / "rows.scored.jsonl", records(rows))))


def evaluation_page(place: Path, rows: int) -> str:
    rng = np.random.default_rng(0)
    read = read_file(str(write(place / "rows.jsonl", records(rows))), {}, None).rows
    human = {name: np.array([row.scores[name] for row in read]) for name in ASPECTS}
    judges = {
        judge: {name: np.clip(y + rng.normal(0, 1 + k / 2, rows), 1, 5) for name, y in human.items()}
        for k, judge in enumerate(JUDGES)
    }
    data = Judged("rows.jsonl", read, human, judges)
    scale = dict.fromkeys(ASPECTS, (1.0, 5.0))
    found = meta_evaluate(
        judges, human, documents=data.documents, systems=data.systems, scale=scale, rounds=50, lengths=data.lengths
    )
    return evaluation.render(data, found, [])


PAGES = {"report": report_page, "evaluate": evaluation_page}
