"""Do the words that a model expects least lie where people marked errors?

    JUDGESMITH_DATA=… python -m judgesmith.experiments.papers.surprise mqm_ted_zhen MODEL [--rows 150] [--instruction …]

Each token's surprise (-log p in nats, the output read as the assistant's turn) is laid on its characters. AUC: the
chance that a character inside an error is more surprising than one outside, in the same output; mean over the outputs
that have both. Beside it stands the mean of 200 shifts of the surprise round the output (what lies where is then
chance), and how well an output's mean surprise tells outputs with an error from those without.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

from ...agreement.decisions import auc
from ...datasets.loading import iter_rows
from ...datasets.spans import read_spans
from ...errors import OptionError
from ...programs.models.lm import language_model
from ...programs.readings.opening import open_reader
from ...programs.readings.passages import INSTRUCTIONS, Text, passage

SHIFTS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("model")
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--instruction", default="")
    options = parser.parse_args()
    folder = Path(os.environ["JUDGESMITH_DATA"])
    rows = {row.id: row for row, _ in iter_rows(folder / f"{options.set}.jsonl")}
    marked = read_spans(folder / f"{options.set}.spans.jsonl", {name: row.output for name, row in rows.items()})
    reader = open_reader("", language_model(options.model)).kept
    instruction = options.instruction or INSTRUCTIONS["translation"]
    order = np.random.default_rng(11).permutation(sorted(rows))
    found, by_chance, means, wrong = [], [], [], []
    for name in order[: options.rows]:
        row = rows[name]
        text = Text(row.source, row.output, row.context or "", instruction)
        try:
            read = reader.read(passage("assistant", text, reader.chat))
        except OptionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        surprise, starts = np.zeros(len(text.made)), (0, *read.ends)
        for start, end, logp in zip(starts, read.ends, read.logp, strict=False):
            surprise[start:end] = -logp
        inside = np.zeros(len(surprise), dtype=bool)
        for of_person in marked.people.values():
            for span in of_person.get(name, ()):
                if span.start is not None:
                    inside[span.start : span.end] = True
        means.append(float(-read.logp.mean()))
        wrong.append(bool(inside.any()))
        if inside.any() and not inside.all():
            found.append(auc(surprise, inside))
            shifts = np.random.default_rng(len(found)).integers(1, len(surprise), SHIFTS)
            by_chance.append(float(np.mean([auc(np.roll(surprise, shift), inside) for shift in shifts])))
    uncertain = float(np.std(found) / np.sqrt(len(found)))
    print(
        json.dumps(
            {
                "set": options.set,
                "model": options.model,
                "outputs": len(means),
                "with_spans": len(found),
                "auc": round(float(np.mean(found)), 3),
                "standard_error": round(uncertain, 3),
                "shifted": round(float(np.mean(by_chance)), 3),
                "auc_of_outputs": round(auc(np.array(means), np.array(wrong)), 3),
            }
        )
    )


if __name__ == "__main__":
    main()
