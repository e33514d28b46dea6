"""How far answers that are one of few texts agree: OpenVINO's and llama.cpp's, of the same model on the same rows.

    python experiments/bench/answer_agreement.py ask FOLDER --way openvino [--rows 64] [--sets …] [--kinds …]
    python experiments/bench/answer_agreement.py compare FOLDER [--save FOLDER]

`ask` keeps what local/qwen2.5-0.5b answers, without a cache. *direct*: the expected digit for the aspect that people
rated. *criteria*: the mean of the expected digits of three criteria in one answer. *pairs*: p(Better) - p(Worse) of a
row beside the one before it. `compare` shows Q = r + ρ + τ-b with the ratings (of pairs: with their differences), the
mean and the largest difference of a row (points of 100; of pairs, probability), and seconds of the process a row.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.reader_agreement import chosen
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.readings import agreement
from judgesmith.programs.active_critic.scoring import MultiCriteriaScorer, TaskContext
from judgesmith.programs.aspects import known_aspect
from judgesmith.programs.comparing.comparison import PairwiseComparer
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Criterion, Item

MODEL = "local/qwen2.5-0.5b"
#: What people rated, by the aspect library's name; and the criteria that are asked about together.
ASPECTS = {
    "wiki_da": ("meaning", "simplification/meaning preservation"),
    "sfres": ("informativeness", "data-to-text/informativeness"),
}
CRITERIA = [
    Criterion("Fluency", "Whether the output is grammatical and reads well."),
    Criterion("Faithfulness", "Whether the output says what the source says."),
    Criterion("Brevity", "Whether the output has no needless words."),
]
KINDS = ("direct", "criteria", "pairs")


def asked(
    kind: str, name: str, lm: LanguageModel
) -> Callable[[Item, Item], Awaitable[float]]:
    """What gives a number for a row and the one before it."""
    aspect = ASPECTS[name][1]
    about = known_aspect(aspect)[0]
    direct = DirectScorer(aspect)
    several = MultiCriteriaScorer("none", "expected")
    direct.choose(reading="expected")
    pairs = PairwiseComparer()

    async def number(item: Item, before: Item) -> float:
        if kind == "direct":
            return float((await direct.judge(item, lm)).percent)
        if kind == "criteria":
            answer = await several.ascore(item, TaskContext("", tuple(CRITERIA)), lm)
            scores = answer.read.values["criteria_scores"].values()
            return float(np.mean([one.score for one in scores]))
        about_aspect = {
            "aspect": f"{about.name}: {about.definition}",
            "name": about.name,
        }
        compared = await pairs.acompare(item, before.output, lm, **about_aspect)
        return compared.better - compared.worse

    return number


async def every(
    number: Callable[[Item, Item], Awaitable[float]],
    items: list[Item],
    lm: LanguageModel,
) -> list[float]:
    """The numbers of all rows, as many at once as the model takes."""
    limit = asyncio.Semaphore(1 if lm.one_by_one else lm.concurrency)

    async def one(place: int) -> float:
        async with limit:
            return await number(items[place], items[place - 1])

    return await asyncio.gather(*map(one, range(len(items))))


def ask(folder: Path, way: str, count: int, names: list[str], kinds: list[str]) -> None:
    """Collect the numbers of every set and kind by one reader, and keep them in a folder."""
    os.environ["JUDGESMITH_READER"] = way
    lm = language_model(MODEL, connection=Connection(cache=False))
    for name in names:
        rows = chosen(name, count)
        items = [
            Item(row["output"], row["source"] or "", row.get("context")) for row in rows
        ]
        for kind in kinds:
            started = time.process_time()
            found = engine.run(every(asked(kind, name, lm), items, lm))
            seconds = (time.process_time() - started) / len(items)
            kept = {"numbers": found, "seconds": seconds}
            (folder / f"{name}.{kind}.{way}.json").write_text(json.dumps(kept))
            print(name, kind, way, len(items), round(seconds, 3), flush=True)


def compare(folder: Path, target: Path | None) -> None:
    """Print the agreement of both readers' numbers with people, and save it on request."""
    lines = []
    for name, (aspect, _) in ASPECTS.items():
        for kind in KINDS:
            files = [
                folder / f"{name}.{kind}.{way}.json"
                for way in ("llama.cpp", "openvino")
            ]
            if not all(file.exists() for file in files):
                continue
            ways = [json.loads(file.read_text()) for file in files]
            slow, fast = (np.array(way["numbers"]) for way in ways)
            rows = chosen(name, len(slow))
            human = np.array([row["scores"][aspect] for row in rows], float)
            if kind == "pairs":
                human = human - np.roll(human, 1)
            qs = [round(agreement(scores, human), 3) for scores in (slow, fast)]
            apart = np.abs(slow - fast)
            seconds = [round(way["seconds"], 3) for way in ways]
            whole = [round(float(each), 3) for each in (apart.mean(), apart.max())]
            lines.append([f"{name}, {aspect}", kind, len(slow), *qs, *whole, *seconds])
            print(*lines[-1])
    columns: dict[str, Any] = {"set and aspect": "", "asked": "", "rows": "{:.0f}"}
    columns |= dict.fromkeys(("Q, llama.cpp", "Q, OpenVINO"), "{:.2f}")
    columns |= dict.fromkeys(("mean difference", "largest"), "{:.2f}")
    columns |= dict.fromkeys(("s a row, llama.cpp", "s a row, OpenVINO"), "{:.2f}")
    command = "python experiments/bench/answer_agreement.py"
    commands = [f"{command} ask FOLDER --way WAY", f"{command} compare FOLDER"]
    save(target, "answer-agreement", columns, lines, commands=commands)


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_subparsers(dest="action", required=True)
    asking = ways.add_parser("ask")
    comparing = ways.add_parser("compare")
    for one in (asking, comparing):
        one.add_argument("folder", type=Path)
    asking.add_argument("--way", choices=("openvino", "llama.cpp"), required=True)
    asking.add_argument("--rows", type=int, default=64)
    asking.add_argument("--sets", default=",".join(ASPECTS))
    asking.add_argument("--kinds", default=",".join(KINDS))
    comparing.add_argument("--save", type=Path)
    options = parser.parse_args()
    if options.action == "ask":
        options.folder.mkdir(parents=True, exist_ok=True)
        names = options.sets.split(",")
        kinds = options.kinds.split(",")
        ask(options.folder, options.way, options.rows, names, kinds)
    else:
        compare(options.folder, options.save)


if __name__ == "__main__":
    main()
