"""Scoring by methods that rank the outputs of a document against each other.

All rows are read first, document by document, and verdicts come in the order of the rows. A document with suspicious
rows is ranked twice, as it is and without the sentences that address a judge. A suspicious row has the lower of its two
ranks, so that no such sentence helps it. The others have the higher one, so that none takes a place from them.
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
from judgesmith.programs.prompting.suspicion import Suspicion, guarded, marked, weighed
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
    safe: dict[int, tuple[Item, Suspicion]] = {}
    documents: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):
        item = Item.of(row)
        documents.setdefault(_document(row, item, place), []).append(place)
        items.append(item)
        cut, suspicion = guarded(item)
        if suspicion is not None:
            safe[place] = (cut if cut.output.strip() else item), suspicion
    in_flight = concurrency or (1 if lm.one_by_one else lm.concurrency)
    slots = asyncio.Semaphore(in_flight)

    async def document(places: list[int]) -> list[Verdict]:
        as_they_are = [items[place] for place in places]
        cut = [safe[place][0] if place in safe else items[place] for place in places]
        verdicts = await ranks(as_they_are)
        others = verdicts if cut == as_they_are else await ranks(cut)
        return [
            _counting(safe.get(place), items[place], first, second)
            for place, first, second in zip(places, verdicts, others, strict=True)
        ]

    async def ranks(of: list[Item]) -> list[Verdict]:
        return [
            outcome(verdict, item) if verdict.failure is None else verdict
            for item, verdict in zip(of, await method.rank(of, lm, slots), strict=True)
        ]

    judged: dict[int, Verdict] = {}
    following = 0
    rankings = engine.ordered_map(document, documents.values(), in_flight=in_flight)
    with counting(progress, "judging", items) as finished:
        for places, verdicts in zip(documents.values(), rankings, strict=True):
            for place, verdict in zip(places, verdicts, strict=True):
                judged[place] = verdict
            while following in judged:
                yield judged.pop(following)
                following += 1
                finished(following)


def _counting(
    found: tuple[Item, Suspicion] | None, item: Item, first: Verdict, second: Verdict
) -> Verdict:
    """Return the verdict of a row that counts, of two rankings of its document, or of the same one twice.

    Args:
        found: The row without the sentences that address a judge, and the suspicion; None for an unsuspicious row.
        item: The row as it is.
        first: Its verdict in the ranking of the texts as they are.
        second: Its verdict in the other one.
    """
    if found is not None:
        cut, suspicion = found
        if cut == item and first is second:
            return marked(first, suspicion)
        return weighed(first, second, suspicion, item.output)
    if first is second:
        return first
    counts = second if second.percent > first.percent else first
    return counts.model_copy(update={"usage": first.usage + second.usage})


def _document(row: Any, item: Item, place: int) -> tuple[str, ...]:
    """Return what outputs have in common that may be ranked against each other.

    The texts come first: a group may hold several documents, and a comparison's prompt shows one.
    """
    if item.source.strip() or (item.context or "").strip():
        return "texts", item.source, item.context or ""
    if isinstance(row, Mapping):
        named = row.get("doc_id")
    else:
        named = getattr(row, "doc_id", None)
    name = item.group or (str(named) if isinstance(named, str | int) else "")
    return ("name", name) if name else ("row", str(place))
