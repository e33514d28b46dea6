"""A report of many rows, scored by a panel of five judges.

Rows are as SummEval's (16 outputs of some 340 characters to a source of 2,200), each with an explanation and an error.
The texts are no easier to compress than a language is.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from json_lines import write
from pages import ASPECTS, error

from judgesmith.reports import spans
from judgesmith.reports.rows import read_scored

JUDGES = ("compiled", "zero-shot", "G-Eval", "panel", "length")
#: Consonants with a vowel, of which words are made.
SYLLABLES = [a + b for a in "bcdfghklmnprstvw" for b in "aeiou"]


def writer(chance: random.Random) -> Callable[[int], str]:
    """Texts of so many characters, of made-up words, rare and frequent ones as in a language (Zipf)."""
    words = ["".join(chance.choices(SYLLABLES, k=1 + k % 4)) for k in range(5000)]
    weights = list(itertools.accumulate(1 / (k + 2) for k in range(5000)))
    return lambda characters: " ".join(
        chance.choices(words, cum_weights=weights, k=characters // 3)
    )[:characters]


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
        reasons = [
            f"It is well, but “{output[k : k + 30]}”: {text(68)}"
            for k in range(9, 60, 9)
        ]
        opinions: dict[str, Any] = {
            name: {
                "percent": chance.randint(0, 100),
                "explanation": reasons[i],
                "failure": None,
                "errors": [
                    error(
                        output,
                        20 * i,
                        20 * i + 15,
                        1 + i,
                        explanation=text(40),
                        annotators=[name],
                    )
                ],
            }
            for i, name in enumerate(JUDGES)
        }
        verdict = {
            "score": chance.randint(1, 5),
            "explanation": reasons[5],
            "failure": None,
            "errors": [one["errors"][0] for one in opinions.values()],
            "opinions": opinions,
        }
        made.append(
            {
                "id": f"dm-test-{k:040x}",
                "doc_id": f"d{k // 16}",
                "system": f"M{k % 16}",
                "source": source,
                "reference": reference,
                "output": output,
                "scores": human,
                "score": human["coherence"],
                "verdict": verdict,
            }
        )
    return made


def large_report(place: Path, rows: int) -> str:
    return spans.render(read_scored(write(place / "rows.scored.jsonl", records(rows))))
