"""What readings of trajectories are worth with 40 labels, over draws of the labels: a model reads every row once.

    python experiments/bench/trajectories_draws.py rows.jsonl local/smollm2-135m [--whole] [--draws 20]

--whole: with the whole text read as the output, not the assistant's turns alone.
"""

import argparse
import json

import numpy as np

import judgesmith as js
from judgesmith.optimizers.fitting.readings import agreement, weigh
from judgesmith.programs.readings.judge import ReadingsJudge, table_of
from judgesmith.signatures.values import Item
from judgesmith.trajectories.value import Trajectory


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("model")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    if given.whole:
        Trajectory.sides = lambda self: None  # type: ignore[method-assign]
    labels = js.read_labels(given.file, scale=(1, 5)).grouped
    judge = ReadingsJudge("agent/task success", lm=given.model, scale=(1, 5))
    judge.keeps = True
    rows = judge.read_many([Item.of(row) for row in labels.rows], judge.lm, lambda: None)
    table, human = table_of(rows, None, labels.groups), labels.scores
    experience = judge.experience_with(judge.lm)
    made = {"mean log-probability": agreement(table.columns(["assistant.mean"])[:, 0], human)}
    if experience.numbers:
        made["experience alone"] = agreement(experience.head(rows[0].numbers, rows[0].states)(table), human)
    rng, learnt = np.random.default_rng(0), []
    for _ in range(given.draws):
        order = rng.permutation(len(human))
        train, rest = order[:40], order[40:]
        groups = {labels.groups[i] for i in train}
        rest = np.array([i for i in rest if labels.groups[i] not in groups])
        fitted = weigh(table.rows(train), (human[train] - 1) * 25, experience)
        learnt.append(agreement(fitted.head(table.rows(rest)), human[rest]))
    made |= {"40 labels": float(np.mean(learnt)), "SD over draws": float(np.std(learnt, ddof=1))}
    print(json.dumps({"model": given.model, "whole": given.whole, **made, "draws": learnt}))


if __name__ == "__main__":
    main()
