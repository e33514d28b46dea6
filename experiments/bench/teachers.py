"""Record scores with demonstrations whose explanations come from a stronger model, from the judge itself, or from none.

    python experiments/bench/teachers.py -o FOLDER --reasons FILE [--lm local/qwen2.5-0.5b] [--arms …] [--rows 80]
        [--seconds 280]

Rows are SummEval's, judged for coherence without the source. Four demonstrations in a prompt are rows of other
documents, one of each quarter of the human scores, in sets drawn by seeds; all show people's score, the explanation
behind it. FILE has the stronger model's: JSON lines of `id` and `explanation`, such as GPT-4's recorded reasons of
github.com/DAMO-NLP-SG/LLM_summeval. "length" is a positive control: its demonstrations are scored by how short they
are. Answers are appended to FOLDER/MODEL.jsonl as by `panels.py`, and `panel_gains.py` says what they say.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.errors import CallError
from judgesmith.experiments.bench.panels import (
    AT_ONCE,
    SETS,
    Table,
    at_once,
    kept_at,
    print_for,
)
from judgesmith.programs.active_critic.scoring import OverallScorer, TaskContext
from judgesmith.programs.aspects import known_aspect
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.programs.prompting.layouts import OverallLayout
from judgesmith.signatures.values import Criterion, Item

NAME, SHOWN, DRAWS = "summeval", 4, 3
ARMS = ("labels", "own", "teacher", "length")
#: Rows at the end of the set's order that demonstrations are drawn from.
POOL = 160


def context() -> TaskContext:
    """Return what the prompt says of the task."""
    aspect, task = known_aspect(SETS[NAME].library)
    criteria = (Criterion(aspect.name, aspect.definition),)
    return TaskContext(task.description if task else "", criteria, aspect.name)


def shown_rows(number: int, reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows of a set of demonstrations: one of each quarter of the human scores."""
    pool = [row for row in SETS[NAME].rows()[-POOL:] if row["id"] in reasons]
    pool.sort(key=lambda row: row["scores"][SETS[NAME].aspect])
    rng = np.random.default_rng([number, 7])
    quarters = np.array_split(np.arange(len(pool)), SHOWN)
    rows = [pool[int(rng.choice(quarter))] for quarter in quarters]
    return [rows[place] for place in rng.permutation(SHOWN)]


def demonstration(row: Mapping[str, Any], arm: str, why: str) -> dict[str, Any]:
    """Return a row as a demonstration, which shows its score and perhaps an explanation."""
    percent = 25.0 * (row["scores"][SETS[NAME].aspect] - 1)
    if arm == "length":
        percent = float(np.clip(150 - 2 * len(row["output"].split()), 0, 100))
    texts = {"source": "", "output": row["output"], "group": row["doc_id"]}
    more = {"explanation": why, "augmented": True, "gold": True}
    return {**texts, "score": percent, **more}


def own_reasons(
    rows: list[dict[str, Any]], lm: LanguageModel, file: Path
) -> Mapping[str, str]:
    """Return the judge's own explanations of rows, which are kept in a file; "" where it gives none to read."""
    reasons: dict[str, str] = {}
    if file.exists():
        reasons = json.loads(file.read_text(encoding="utf-8"))
    scorer = OverallScorer("before", "said")
    for row in rows:
        if row["id"] not in reasons:
            asked = scorer.ascore(SETS[NAME].item(row), context(), lm)
            try:
                values = engine.run(asked).read.values
            except CallError:
                values = {"explanation": ""}
            reasons[row["id"]] = values["explanation"]
    file.write_text(json.dumps(reasons, ensure_ascii=False), encoding="utf-8")
    return reasons


def scorer_of(demos: list[dict[str, Any]]) -> OverallScorer:
    """Return a scorer that reads the score by probabilities, before any explanation, with these demonstrations."""
    scorer = OverallScorer("after", "expected")
    scorer.predict.layout = OverallLayout("after", "expected", brief=True)
    scorer.predict.demos = demos
    return scorer


def scorers(
    lm: LanguageModel, asked: Sequence[str], reasons: Path, own: Path
) -> dict[str, OverallScorer]:
    """Return the scorers of arms: one without demonstrations, and one for each set of them."""
    lines = reasons.read_text(encoding="utf-8").splitlines()
    teacher = {one["id"]: one["explanation"] for one in map(json.loads, lines)}
    arms = {"demos none": scorer_of([])}
    for number in range(DRAWS):
        rows = shown_rows(number, teacher)
        reasons_of: dict[str, Mapping[str, str]] = {"teacher": teacher}
        if "own" in asked:
            reasons_of["own"] = own_reasons(rows, lm, own)
        for arm in asked:
            whys = reasons_of.get(arm, {})
            demos = []
            for row in rows:
                demos.append(demonstration(row, arm, whys.get(row["id"], "")))
            arms[f"demos {arm} {number}"] = scorer_of(demos)
    return arms


def ask(
    lm: LanguageModel, table: Table, count: int, arms: Mapping[str, OverallScorer]
) -> Iterator[str]:
    """Ask every arm of a few rows after the other, and yield a line after each."""
    rows = SETS[NAME].rows()[:count]
    for start in range(0, len(rows), AT_ONCE):
        for form, scorer in arms.items():
            left = table.left(NAME, form, rows[start : start + AT_ONCE])
            if left:

                async def asked(item: Item, scorer: OverallScorer = scorer) -> Any:
                    return await scorer.ascore(item, context(), lm)

                began = time.perf_counter()
                found = engine.run(at_once(asked, list(map(SETS[NAME].item, left)), lm))
                seconds = round((time.perf_counter() - began) / len(left), 3)
                for row, answer in zip(left, found, strict=True):
                    percent = round(answer.read.values["score"], 4)
                    table.add(
                        {
                            "set": NAME,
                            "form": form,
                            "id": row["id"],
                            "percent": percent,
                            "text": answer.raw[-1:],
                            "seconds": seconds,
                        }
                    )
                yield f"{form}: {start + len(left)} of {len(rows)}, {seconds} s"


def main() -> None:
    """Ask until the time is over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lm", default="local/qwen2.5-0.5b")
    parser.add_argument("--reasons", type=Path, required=True)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    lm, model = language_model(options.lm), options.lm.rpartition("/")[2]
    own = options.output / f"own-{model}.json"
    arms = scorers(lm, options.arms.split(","), options.reasons, own)
    lines = ask(lm, kept_at(options), options.rows, arms)
    print_for(options.seconds, lines)


if __name__ == "__main__":
    main()
