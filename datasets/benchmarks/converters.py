"""The original files of benchmark sets into the one format of rows that `read_labels` reads.

Every converter takes the records of one original file and gives rows with `id`, `source`, `output`, `doc_id`, `scores`
and, where the set has them, `context`, `reference`, `system`, `group`, `zscores`; the card adds the `task`. Ids count
the rows of the whole file, so they are the same on every machine.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from judgesmith.datasets.benchmarks.registry import PREFIX, benchmarks
from judgesmith.errors import LabelsError

Raw: TypeAlias = Sequence[Mapping[str, Any]]
Rows: TypeAlias = list[dict[str, Any]]

_HUMAN_ANSWER = "Original Ground Truth"
_NEWSROOM_SYSTEMS = (
    "lede3",
    "fragments",
    "textrank",
    "abstractive",
    "pointer_c",
    "pointer_n",
    "pointer_s",
)
_PARAGRAPH = re.compile(r"(?:\s*</?p>\s*)+")


def convert(name: str, path: Path) -> Rows:
    """Return the rows of the original file of a set.

    Args:
        name: A key of CONVERTERS.
        path: The original file.

    Raises:
        LabelsError: If the file cannot be read or is not in the format of the set's origin.
    """
    task = benchmarks.get(PREFIX + name).task
    try:
        return [row | {"task": task} for row in CONVERTERS[name](_read(path))]
    except OSError as error:
        raise LabelsError(f"{path.name}: cannot be read ({error.strerror})") from None
    except (
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        csv.Error,
    ) as error:
        problem = f"{type(error).__name__}: {error}"
        raise LabelsError(
            f"{path.name}: not in the format of {name}'s origin ({problem}); fetch the file again"
        ) from None


def _read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as handle:
            records: Any = list(csv.DictReader(handle, strict=True))
    else:
        records = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(records, list) or not records:
        raise ValueError("a list of rows is needed")
    return records


def _scores(values: Mapping[str, Any]) -> dict[str, float]:
    return {aspect: float(value) for aspect, value in values.items()}


def _numbered(keys: Iterable[Any]) -> dict[Any, int]:
    """Every key with its place among the different ones, in the order of their first appearance."""
    return {key: place for place, key in enumerate(dict.fromkeys(keys))}


def _qags(raw: Raw, *, name: str, system: str) -> Rows:
    # The origin repeats the source as the reference, which would make every reference-based metric a wrong one.
    return [
        {
            "id": f"{name}-{index:03d}",
            "source": record["source"],
            "output": record["system_output"],
            "system": system,
            "doc_id": f"{name}-d{record['doc_id']:03d}",
            "scores": _scores(record["scores"]),
        }
        for index, record in enumerate(raw)
    ]


def _dialogue_acts(raw: Raw, *, name: str) -> Rows:
    # The origin gives every row a document of its own; equal dialogue acts are one input.
    documents = _numbered(record["source"] for record in raw)
    return [
        {
            "id": f"{name}-{index:04d}",
            "source": record["source"],
            "output": record["system_output"],
            "reference": record["reference"],
            "doc_id": f"{name}-m{documents[record['source']]:03d}",
            "scores": _scores(record["scores"]),
        }
        for index, record in enumerate(raw)
    ]


def _topical_chat(raw: Raw) -> Rows:
    keys = []
    answers = {}
    for record in raw:
        turns = map(str.strip, record["source"].strip().split("\n"))
        key = tuple(turns), record["context"].strip()
        keys.append(key)
        if record["system_id"] == _HUMAN_ANSWER:
            answers[key] = record["system_output"].strip()
    documents = _numbered(keys)
    conversation = _conversations([text for text, _ in documents])
    rows = []
    for index, (record, key) in enumerate(zip(raw, keys, strict=True)):
        source, context = key
        row: dict[str, Any] = {
            "id": f"topical_chat-{index:03d}",
            "source": "\n".join(source),
            "context": context,
            "output": record["system_output"].strip(),
            "reference": answers[key],
            "system": record["system_id"],
            "doc_id": f"topical_chat-c{documents[key]:02d}",
            "group": f"topical_chat-g{conversation[documents[key]]:02d}",
            "scores": _scores(record["scores"]),
        }
        rows.append(row)
    return rows


def _conversations(histories: Sequence[tuple[str, ...]]) -> list[int]:
    """Return for every history the first one of its conversation: one of the two begins with the other."""
    shortest: dict[int, int] = {}
    first: dict[int, int] = {}
    for index in sorted(range(len(histories)), key=lambda index: len(histories[index])):
        history = histories[index]
        begins = (
            root
            for root in shortest.values()
            if history[: len(histories[root])] == histories[root]
        )
        root = next(begins, index)
        shortest[index] = root
        first[root] = min(index, first.get(root, index))
    return [first[shortest[index]] for index in range(len(histories))]


def _newsroom(raw: Raw) -> Rows:
    # The origin names no system. Its rows stand in the same order in every document, so the place tells the system.
    sizes = Counter(record["doc_id"] for record in raw)
    seen: Counter[str] = Counter()
    rows: Rows = []
    for record in raw:
        document = f"newsroom-{record['doc_id']}"
        place = seen[document]
        seen[document] += 1
        row = {
            "id": f"{document}-{place}",
            "source": _plain_text(record["source"]),
            "output": _plain_text(record["system_output"]),
            "doc_id": document,
            "scores": _scores(record["scores"]),
        }
        if sizes[record["doc_id"]] == len(_NEWSROOM_SYSTEMS):
            row["system"] = _NEWSROOM_SYSTEMS[place]
            row["id"] = f"{document}-{row['system']}"
        rows.append(row)
    return rows


def _plain_text(marked_up: str) -> str:
    return html.unescape(_PARAGRAPH.sub("\n", marked_up)).strip()


def _hanna(raw: Raw) -> Rows:
    prompts = 96  # every system wrote one story for each of them, in this order
    return [
        {
            "id": f"hanna-{record['id']:04d}",
            "source": record["inputs"]["Writing Prompt"],
            "output": record["outputs"]["Story"],
            "system": record["system"],
            "doc_id": f"hanna-p{record['id'] % prompts:02d}",
            "scores": _scores(record["score"]),
        }
        for record in raw
    ]


def _wiki_da(raw: Raw) -> Rows:
    aspects = ("fluency", "meaning", "simplicity")
    rows: Rows = []
    for record in raw:
        document = f"wiki_da-{int(record['sent_id']):03d}"
        rows.append(
            {
                "id": f"{document}-{record['sys_name']}",
                "source": record["orig_sent"],
                "output": record["simp_sent"],
                "system": record["sys_name"],
                "doc_id": document,
                "scores": {aspect: float(record[aspect]) for aspect in aspects},
                "zscores": {
                    aspect: float(record[f"{aspect}_zscore"]) for aspect in aspects
                },
            }
        )
    return rows


CONVERTERS: dict[str, Callable[[Raw], Rows]] = {
    "qags_cnndm": partial(_qags, name="qags_cnndm", system="bottom-up"),
    "qags_xsum": partial(_qags, name="qags_xsum", system="bart"),
    "sfres": partial(_dialogue_acts, name="sfres"),
    "sfhot": partial(_dialogue_acts, name="sfhot"),
    "topical_chat": _topical_chat,
    "newsroom": _newsroom,
    "hanna": _hanna,
    "wiki_da": _wiki_da,
}
"""Set -> its converter, for every set that has an origin."""
