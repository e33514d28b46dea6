"""Scoring by methods that rank the outputs of a document against each other.

All rows are read first, document by document, and verdicts come in the order of the rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from judgesmith.programs.capabilities import RanksDocuments
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.outcome import Outcome
from judgesmith.programs.progress import counting
from judgesmith.programs.prompting.suspicion import guarded
from judgesmith.signatures.values import Item, Verdict


def ranked(
    method: RanksDocuments,
    outcome: Outcome,
    rows: Iterable[Any],
    lm: LanguageModel,
    *,
    concurrency: int | None = None,
    progress: bool | Callable[[int], None] | None = None,
) -> Iterator[Verdict]:
    """Rank the outputs of each document among `rows`; verdicts come in the order of the rows.

    Rows of one document have the same source and context; rows without either have the same `group` (`doc_id` where
    there is none). All rows are read, and their texts held, before the first comparison.

    Args:
        method: The method.
        outcome: The outcome.
        rows: The rows.
        lm: A model that the method was prepared for.
        concurrency: Comparisons under way at once; by default the model's limit.
        progress: As for every judge.
    """
    items: list[Item] = []
    suspicious: list[str | None] = []
    documents: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):
        item = Item.of(row)
        documents.setdefault(_document(row, item, place), []).append(place)
        item, suspicion = guarded(item)
        items.append(item)
        suspicious.append(None if suspicion is None else f"{suspicion}; judged without")
    in_flight = concurrency or (1 if lm.one_by_one else lm.concurrency)
    slots = asyncio.Semaphore(in_flight)

    async def document(places: list[int]) -> list[Verdict]:
        verdicts = await method.rank([items[place] for place in places], lm, slots)
        return [
            outcome(verdict) if verdict.failure is None else verdict
            for verdict in verdicts
        ]

    judged: dict[int, Verdict] = {}
    following = 0
    rankings = engine.ordered_map(document, documents.values(), in_flight=in_flight)
    with counting(progress, "judging", items) as finished:
        for places, verdicts in zip(documents.values(), rankings, strict=True):
            for place, verdict in zip(places, verdicts, strict=True):
                judged[place] = verdict.model_copy(
                    update={"suspicious": suspicious[place]}
                )
            while following in judged:
                yield judged.pop(following)
                following += 1
                finished(following)


def _document(row: Any, item: Item, place: int) -> tuple[str, ...]:
    """Return what outputs have in common that may be ranked against each other.

    The texts come first: a group may hold several documents, and a comparison's prompt shows one.
    """
    if item.source.strip() or (item.context or "").strip():
        return "texts", item.source, item.context or ""
    named = (
        row.get("doc_id") if isinstance(row, Mapping) else getattr(row, "doc_id", None)
    )
    name = item.group or (str(named) if isinstance(named, str | int) else "")
    return ("name", name) if name else ("row", str(place))
