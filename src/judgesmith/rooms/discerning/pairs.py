"""Inputs of `judgesmith discern`: good texts of a file, pairs made of them, and scores, kept as they come in."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from judgesmith.datasets.perturbations.registry import (
    Amounts,
    Degree,
    Left,
    Pair,
    Perturbation,
    Text,
    pairs_of,
    sentences,
)
from judgesmith.datasets.row import Row
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.sources import read_file, references_beside, some
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rows import as_text
from judgesmith.running.journal import Journal, read_journal, replacing

FORMAT = "judgesmith.pairs/1"
_OURS = "an output of `judgesmith discern`"


# Texts ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Texts:
    """Good texts of a file.

    role: "reference" or "output", the column they are from. total: documents that have one. task: the paper's task for
    the task of the file, one of `dhp.TASKS`.
    """

    origin: str
    role: str
    texts: tuple[Text, ...]
    total: int
    notes: tuple[str, ...] = ()
    task: str = "summarization"

    @property
    def fingerprint(self) -> str:
        """16 hex digits over all that perturbing and judging depend on."""
        texts = [
            [t.id, t.text, t.source, t.context, list(t.references), t.group, t.wrong]
            for t in self.texts
        ]
        return sha256(json.dumps([self.role, texts]).encode()).hexdigest()[:16]


def read_texts(
    name: str,
    *,
    columns: Mapping[str, str] | None = None,
    n: int = 100,
    seed: int = 0,
    options: DiscernOptions | None = None,
) -> Texts:
    """Return one good text for each document of a file or `bench/NAME`, `n` of them drawn by `seed`.

    A document's text is its first reference (or the one with most sentences), if half of the file's rows have one, and
    else its first output; further references stay beside it. Texts are in the file's order. options: `good`, `pick`,
    `longer_than`, `language`.

    Raises:
        LabelsError: If the file has neither references nor outputs.
    """
    options = options or DiscernOptions()
    file = read_file(name, columns, None)
    more = references_beside(file)
    role: str = options.good
    if role == "auto":
        referenced = sum(bool((row.reference or "").strip()) for row in file.rows)
        role = "reference" if more or 2 * referenced >= len(file.rows) else "output"
    result: dict[str, Text] = {}
    for row, record in zip(file.rows, file.records, strict=True):
        if row.doc_id not in result:
            references = list(
                dict.fromkeys(
                    t
                    for t in [row.reference or "", *more.get(row.doc_id, [])]
                    if t.strip()
                )
            )
            if options.pick == "most-sentences":  # of equal ones the first
                references.sort(
                    key=lambda text: -len(sentences(text, options.language))
                )
            if (text := _text_of(row, record, role, references)) is not None:
                result[row.doc_id] = text
    texts = list(result.values())
    if not texts:
        raise LabelsError(f"{file.origin}: no row has a {role}")
    notes = []
    if len(texts) < n:
        notes.append(
            f"{file.origin} has {len(texts)} documents with {role}s; {n} were asked for"
        )
    texts, total = _long_enough(texts, n, options.longer_than, notes), len(texts)
    drawn = sorted(random.Random(seed).sample(range(len(texts)), min(n, len(texts))))
    task = as_text(file.records[0].get("task")) or ""
    return Texts(
        file.origin,
        role,
        tuple(texts[i] for i in drawn),
        total,
        tuple(notes),
        options.task(task),
    )


def _long_enough(
    texts: list[Text], n: int, longer_than: int, notes: list[str]
) -> list[Text]:
    """Return the texts that are longer than that, and where these are fewer than `n`, the longest of the others."""
    long = [text for text in texts if len(text.text) > longer_than]
    if len(long) >= n or len(long) == len(texts):
        return long
    places = sorted(range(len(texts)), key=lambda i: -len(texts[i].text))[:n]
    notes.append(
        f"{len(long)} texts have more than {longer_than} characters; the others of these {len(places)} are the next "
        f"longest, down to {len(texts[places[-1]].text)}"
    )
    return [texts[i] for i in sorted(places)]


def _text_of(
    row: Row, record: Mapping[str, Any], role: str, columns: Sequence[str]
) -> Text | None:
    """Return the good text of a row; None without one.

    columns: its references.
    """
    text = row.output
    others = columns
    if role != "output":
        text = next(iter(columns), "")
        others = columns[1:]
    if not text.strip():
        return None
    return Text(
        row.id,
        text,
        row.source,
        row.context,
        tuple(others),
        row.doc_id,
        as_text(record.get("wrong")),
    )


# Pairs and scores on disk --------------------------------------------------------------------------------------------


def ask_key(pair: Pair, text: str) -> str:
    """Return 16 hex digits of what is judged: the text with its source, context and references."""
    return sha256(
        json.dumps([pair.source, pair.context, list(pair.references), text]).encode()
    ).hexdigest()[:16]


@dataclass
class Book:
    """Pairs and the scores of their texts, kept in a JSONL file if there is a path.

    The file has a line with the settings, a line per pair or left-out text, then a line per score as it comes in. A
    score that exists is not asked for again.
    """

    settings: dict[str, Any]
    pairs: list[Pair] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    scores: dict[tuple[str, str, int], dict[str, Any]] = field(default_factory=dict)
    path: Path | None = None

    @classmethod
    def open(
        cls,
        path: Path | None,
        settings: dict[str, Any],
        make: Callable[[], Iterator[Pair | Left]],
        *,
        overwrite: bool,
    ) -> Book:
        """Resume a file that has these settings, or make the pairs.

        Raises:
            OptionError: If the file has other settings.
        """
        if path is not None and path.is_dir():
            raise OptionError(f"-o {path} is a folder; name a file in it")
        if path is not None and path.exists() and path.stat().st_size and not overwrite:
            return cls._read(path, settings)
        book = cls(settings, path=path)
        for outcome in make():
            if isinstance(outcome, Pair):
                book.pairs.append(outcome)
            else:
                book.left.append(outcome)
        if path is not None:
            with replacing(path) as journal:
                journal.write(
                    {"type": "settings", "format": FORMAT} | settings,
                    *({"type": "pair"} | pair.to_dict() for pair in book.pairs),
                    *({"type": "left"} | asdict(left) for left in book.left),
                )
        return book

    @classmethod
    def _read(cls, path: Path, settings: dict[str, Any]) -> Book:
        book = cls(settings, path=path)
        other = f"{path.name} is not {_OURS}; give another -o, or --overwrite"
        for number, record in read_journal(path, kind=_OURS):
            kind = record.pop("type", None)
            try:
                if number == 1:
                    if kind != "settings" or record.pop("format", None) != FORMAT:
                        raise OptionError(other)
                    changed = [
                        k
                        for k in {**settings, **record}
                        if record.get(k) != settings.get(k)
                    ]
                    if changed:
                        raise OptionError(
                            f"{path.name} was made with another {some(changed)} ({record.get(changed[0])!r} there, "
                            f"{settings.get(changed[0])!r} here); give another -o, or --overwrite"
                        )
                elif kind == "pair":
                    book.pairs.append(Pair.from_dict(record))
                elif kind == "left":
                    book.left.append(Left(**record))
                elif kind == "score":
                    book.scores[record["mark"], record["text"], record["repeat"]] = (
                        record
                    )
            except (KeyError, TypeError):
                raise OptionError(
                    f"{path.name}, line {number}: damaged; {other}"
                ) from None
        return book

    def score(self, mark: str, text: str, repeat: int = 0) -> Mapping[str, Any]:
        """Return the record of a text's score; {} where there is none."""
        return self.scores.get((mark, text, repeat)) or {}

    def add(self, record: dict[str, Any]) -> None:
        """Keep a score."""
        self.scores[record["mark"], record["text"], record["repeat"]] = record
        if self.path is not None:
            with Journal(self.path, kind=_OURS) as journal:
                journal.write({"type": "score"} | record)


def make_pairs(
    perturbations: Sequence[tuple[Perturbation, tuple[Degree, ...]]],
    texts: Texts,
    *,
    seed: int,
    amounts: Amounts,
    language: str,
) -> Iterator[Pair | Left]:
    """Yield pairs of original and perturbed texts, and texts that could not be perturbed."""
    for perturbation, degrees in perturbations:
        yield from pairs_of(
            perturbation,
            texts.texts,
            degrees=degrees,
            seed=seed,
            amounts=amounts,
            language=language,
        )
