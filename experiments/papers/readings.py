"""What readings are worth on the benchmark sets: tables of what a model knows of each row, kept for later statistics.

    python -m judgesmith.experiments.papers.readings read FILE.jsonl MODEL.gguf --aspect A [--aspect B] [-o FOLDER]
    python -m judgesmith.experiments.papers.readings measure FOLDER/*.npz [--labels 40] [--draws 50] [-o found.json]

`read` takes about 150 rows (whole documents, in an order drawn with seed 11, as `judgesmith study readings` does) and
reads them with transformers (extra `torch`), which is faster here than llama.cpp. What was read is kept, so that the
same command resumes after Ctrl-C. The direct score is the expected digit under the model's exact probabilities, after
the direct judge's own prompt. `measure` is the study's statistics, without a model.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import OptionError
from ...optimizers.examples import examples_of, groups, humans, item_of
from ...programs.models.files import file_sha256
from ...programs.readings.bindings.torch_reader import TorchReader
from ...programs.readings.head import Readings, Vector
from ...programs.readings.judge import ReadingsJudge, table_of
from ...programs.readings.kinds import expected_digit
from ...programs.readings.passages import DIGITS, FORMS, Message, Question, rendered
from ...programs.readings.reader import KeptReader, Reader, default_store_path
from ...signatures.values import Item
from ..studies.readings import Draws, Found, Known, SetFound, gather, study_table

#: What 40 labels give, unless a size is named. told: the nested Q less that of fresh rows.
COLUMNS = (
    "task", "documents", "zero-shot", "log p, no label", "surface", "states", "weighed, 20 / 40 / 80", "below", "gap",
    "p", "r within documents", "r without length", "told", "unseen systems", "seen systems",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    read = commands.add_parser("read")
    read.set_defaults(run=_read)
    read.add_argument("file", type=Path)
    read.add_argument("model", type=Path)
    read.add_argument("--aspect", action="append", required=True)
    read.add_argument("--instruction", default="")
    read.add_argument("--rows", type=int, default=150)
    read.add_argument("--form", action="append", help="as in read_forms of the judge; its default where not given")
    read.add_argument("--threads", type=int)
    read.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    read.add_argument("-o", "--output", type=Path, default=Path("tables"))
    measure = commands.add_parser("measure")
    measure.set_defaults(run=_measure)
    measure.add_argument("tables", type=Path, nargs="+")
    measure.add_argument("--labels", type=int, action="append")
    measure.add_argument("--form", action="append", help="forms whose readings count; those of the judge by default")
    measure.add_argument("--draws", type=int, default=50)
    measure.add_argument("-o", "--output", type=Path, help="all figures as JSON")
    options = parser.parse_args()
    options.run(options)


def _read(options: argparse.Namespace) -> None:
    options.output.mkdir(parents=True, exist_ok=True)
    sets = gather([options.file], options.aspect, columns={}, rows=options.rows)
    plain = TorchReader(options.model, threads=options.threads, dtype=options.dtype)
    told = f"{file_sha256(options.model)} by torch in {options.dtype}"
    reader = KeptReader(plain, default_store_path(), model=told)
    for name, labels in sets:
        given = {"reading": "expected", "instruction": options.instruction, "read_forms": options.form}
        judge = ReadingsJudge.from_options({k: v for k, v in given.items() if v}, labels_aspect=labels.aspect)
        panel = judge.panel(reader)
        examples, started = examples_of(labels), time.monotonic()
        rows, direct, there = [], [], []
        for number, example in enumerate(examples):
            try:
                item = item_of(example)
                rows.append(panel.read(judge.text_of(item)))
                direct.append(_expected_digit(judge, reader, item))
                there.append(number)
            except OptionError as error:
                print(f"{name}, row {number + 1}: {error}", file=sys.stderr)
            if number % 10 == 9:
                took = time.monotonic() - started
                print(f"{name}: {number + 1} of {len(examples)} rows, {took:.0f} s", file=sys.stderr, flush=True)
        members, scores = groups(examples), humans(examples)
        known = Known(
            table_of(rows, direct, [str(members[i]) for i in there]),
            scores[there],
            tuple(labels.rows[i].system or "" for i in there),
            len(examples) - len(there),
        )
        save(options.output / f"{name.replace('/', '.')}.{options.model.stem}.npz", known)


def _expected_digit(judge: ReadingsJudge, reader: Reader, item: Item) -> float:
    """The direct judge's score in percent, from the probabilities of the digits 1 to 5 after its prompt."""
    turns = [Message(turn["role"], (turn["content"],)) for turn in judge.previews(item)["scorer"]]
    return 25.0 * (expected_digit(reader.answer(Question(rendered(reader.chat, turns), DIGITS))) - 1.0)


def save(path: Path, known: Known) -> None:
    """A table with its human scores, groups and systems; `load` gives it back."""
    table = known.table
    states = {f"states/{block}": values.astype(np.float16) for block, values in table.states.items()}
    kept: dict[str, Any] = {
        "names": np.array(table.names), "values": table.values, "groups": np.array([str(g) for g in table.groups]),
        "scores": known.scores, "systems": np.array(known.systems), "failed": known.failed, **states,
    }  # fmt: skip
    np.savez_compressed(path, **kept)


def load(path: Path) -> Known:
    """What `save` wrote."""
    with np.load(path, allow_pickle=False) as kept:
        states = {name.removeprefix("states/"): kept[name] for name in kept.files if name.startswith("states/")}
        scores: Vector = kept["scores"]
        table = Readings(tuple(kept["names"].tolist()), kept["values"], tuple(kept["groups"].tolist()), states)
        return Known(table, scores, tuple(kept["systems"].tolist()), int(kept["failed"]))


def of_forms(known: Known, forms: Sequence[str]) -> Known:
    """The table with the numbers of some forms alone, beside the direct score and the surface."""
    other = {*FORMS} - {*forms}
    left = [n for n in known.table.names if n.split(".")[0] not in other and ("bare" in forms or "lift" not in n)]
    return replace(known, table=replace(known.table, names=tuple(left), values=known.table.columns(left)))


def _measure(options: argparse.Namespace) -> None:
    sizes = options.labels or (20, 40, 80)
    forms = options.form or ReadingsJudge().read_forms
    found = []
    for path in options.tables:
        found.append(study_table(path.stem, of_forms(load(path), forms), sizes=sizes, draws=options.draws))
        print(f"{path.stem}: done", file=sys.stderr, flush=True)
    whole = Found(tuple(found), "")
    if options.output:
        options.output.write_text(json.dumps(whole.to_dict(), indent=1) + "\n")
    corrected = whole.p_values()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for one in found:
        if (main := one.at(40)) is not None:
            print(_line(one, main, corrected[one.name]))


def _line(one: SetFound, main: Draws, p: float) -> str:
    """A row of the table: what 40 labels give, and each reading's share of it."""

    def mean(name: str) -> str:
        return f"{main.each[name].mean():.2f}" if name in main.each else ""

    weighed = " / ".join(f"{size.chosen.mean():.2f} ± {size.chosen.std():.2f}" for size in one.draws)
    gap, of = main.gap, one.systems
    systems = ("", "") if of is None else (f"{of.zero_shot:.2f} → {of.unseen:.2f}", f"{of.seen:.2f}")
    cells = (
        one.name, str(one.groups), f"{main.zero_shot.mean():.2f}", mean("assistant.mean"), mean("surface"),
        mean("assistant layers"), weighed, f"{main.below:.0%}", f"{gap.value:+.2f} [{gap.low:.2f}, {gap.high:.2f}]",
        f"{p:.3f}", " → ".join(f"{r:.2f}" for r in main.within), " → ".join(f"{r:.2f}" for r in main.without_length),
    )  # fmt: skip
    return f"| {' | '.join((*cells, f'{main.told.mean():+.2f}', *systems))} |"


if __name__ == "__main__":
    main()
