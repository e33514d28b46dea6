"""The rows that checks are made of, what is done to their texts, and what the user chooses."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from judgesmith.datasets.perturbations.registry import (
    PERTURBATIONS,
    Left,
    Pair,
    Text,
    pairs_of,
    sentences,
)
from judgesmith.datasets.row import Row
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import OptionError
from judgesmith.evaluating.sources import FileRows
from judgesmith.parts import Options, option
from judgesmith.programs.baselines.metrics import PREFIX
from judgesmith.programs.registry import methods
from judgesmith.rooms.discerning.checking.statistics import CHECKS
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.signatures.values import Item

#: Said behind an output, in this order; none of them adds or takes back anything.
FILLERS = (
    "That is what there is to say about it.",
    "It can be put in other words, but it comes to the same.",
    "It is worth keeping this in mind.",
    "All of this is meant just as it stands here.",
)
#: The scorer and the scores of the rows as they are.
PLAIN = "score"


class CheckOptions(Options):
    """Options of `judgesmith discern --check`."""

    recorded: tuple[str, ...] = option(
        (),
        "CHECK=COLUMN: recorded scores of the judge after the change (repeat=gpt4_again). own=COLUMN: scores of "
        "another judge, whose preference for these systems is subtracted. Separate several by commas.",
    )
    own: tuple[str, ...] = option(
        (),
        "Systems that the judge's own model wrote. Default: those with a name of its model family.",
    )
    rubric: Path | None = option(
        None,
        "File with the criteria in other words, lines `name: definition`. Default: reworded by rules.",
    )
    bar: float | None = option(
        None,
        "Lowest passing score. Default: the judge's own decision, else its median score.",
    )


def recorded_columns(more: CheckOptions) -> dict[str, str]:
    """Check -> column, as `--recorded` has them. Raises OptionError."""
    result = {}
    for text in more.recorded:
        check, _, column = text.partition("=")
        if check not in CHECKS or not column.strip():
            raise OptionError(
                f"--recorded {text}: write CHECK=COLUMN, with one of {', '.join(CHECKS)}"
            )
        result[check] = column.strip()
    return result


def leave_out(check: str, reason: str, *, named: bool, left: dict[str, str]) -> None:
    """Note why a check is left out. Raises OptionError for one that was named itself."""
    if named:
        raise OptionError(f"--check {check}: {reason}")
    left[check] = reason


@dataclass
class Rows(FileRows):
    """The rows of a run, whole documents. records: what stands in the file."""

    records: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def named(self) -> list[str]:
        """The system of each row, "" where it has none."""
        return [str(row.system or "") for row in self.rows]


def is_column(target: str) -> bool:
    """Return whether JUDGE is not a file, method or metric, so that it must be a column of the rows."""
    return not (
        Path(target).exists()
        or target.endswith(".json")
        or target.startswith(PREFIX)
        or target.partition("@")[0] in methods.names()
    )


def read_rows(file: File, n: int | None, seed: int) -> Rows:
    """Rows of whole documents in a random order, `n` at most but for the first document; all where n is None."""
    documents = FileRows(file.origin, list(file.rows)).documents
    sizes = Counter(documents)
    order = list(sizes)
    if n is not None and n < len(file.rows):
        random.Random(seed).shuffle(order)
    taken = set[str]()
    count = 0
    for name in order:
        if n is None or not taken or count + sizes[name] <= n:
            taken.add(name)
            count += sizes[name]
    places = [i for i, name in enumerate(documents) if name in taken]
    records = [file.records[i] for i in places]
    return Rows(file.origin, [file.rows[i] for i in places], records=records)


def row_key(item: Item) -> str:
    """Return 16 hex digits of what is judged: the texts, and the columns if the judge weighs any."""
    texts = [item.source, item.context, item.reference, item.output]
    if item.columns:
        texts.append(json.dumps(item.columns, sort_keys=True, default=str))
    joined = "\x1f".join(text or "" for text in texts)
    return sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def item_of(row: Row, how: DiscernOptions, record: Mapping[str, Any]) -> Item:
    """Return a row as an item to judge. record: the columns that the judge weighs."""
    reference = row.reference if how.show_reference else None
    return Item(
        row.output, row.source, row.context, reference, row.group, columns=record
    )


def padded(check: str, rows: Sequence[Row], how: DiscernOptions) -> list[str | None]:
    """Return the outputs after a change of length, style or layout; None where one cannot be changed so."""
    outputs = [row.output for row in rows]
    if check == "length":
        english = is_english(how)
        return [
            _longer(output, how.language) if english else None for output in outputs
        ]
    texts = [Text(str(place), output) for place, output in enumerate(outputs)]
    perturbation = PERTURBATIONS["formatting" if check == "layout" else check]
    pairs: Iterator[Pair | Left] = pairs_of(
        perturbation, texts, seed=how.seed, language=how.language
    )
    changed: list[str | None] = [None] * len(outputs)
    for one in pairs:
        if isinstance(one, Pair):
            changed[int(one.id)] = one.perturbed
    return changed


def is_english(how: DiscernOptions) -> bool:
    """Return True if the texts are English, in which fillers and the rules for rubrics are written."""
    return how.language.lower().startswith("en")


def _longer(text: str, language: str) -> str | None:
    """Return an output with a filler for every second sentence, one at least; None without a text."""
    if not text.strip():
        return None
    count = min(len(FILLERS), max(1, len(sentences(text, language)) // 2))
    return " ".join([text.rstrip(), *FILLERS[:count]])
