"""Rows whose texts are equal or nearly equal (`judgesmith.likeness`), found in time linear in the rows.

Single linkage is dangerous: where texts are made from templates, or where many documents got the same refusal, one text
leads to the next until everything is one group and nothing can be held out. So rows that share a group, a document or
both texts always stay together, while a source alone, or an output of more than a few words alone, puts no more than a
share of all documents into one group (`SHARE`, where none is stated). What would put more is no duplicate but a
template or a stock answer ("I cannot answer this question"): of a template only equal texts are joined, a stock answer
joins nothing, with a note. The same holds for rows whose two texts are both only nearly equal, where the file gives
each a document of its own. Prompts need no such limit: a demonstration that is like the judged row is always left out
(`programs.prompting.predict`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product
from operator import attrgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.row import Row
from judgesmith.likeness import COMPARED, Folded, alike, folded
from judgesmith.rows import DERIVED

Field = Literal["row", "source", "output"]
#: What a text alone may put into one group: this share of all documents by default, and `LEAST` in any case.
SHARE = 0.1
LEAST = 3
#: The fewest words of nearly equal texts that are not equal, since one may differ (`likeness.NEAR`).
NEAR_WORDS = 8
#: Bands of values of a MinHash over pairs of neighbouring words. Of texts of eight words that differ in one, which have
#: 7 of 11 pairs in common, 1 of 15,000 is missed.
BANDS = 32
WIDTH = 3
#: How many texts of one bucket a text is compared with: a bucket of a template may hold them all.
COMPARISONS = 4


@dataclass(frozen=True, slots=True)
class Link:
    """Two rows (numbers) that belong together for a text of theirs, or for both (row); `equal` or only nearly."""

    field: Field
    equal: bool
    one: int
    other: int


@dataclass(frozen=True, slots=True)
class _Class:
    """Rows (numbers) with one text, or with texts that lead to each other; `texts` are the rows of each of them.

    telling: whether the text alone puts rows into one group.
    """

    field: Field
    texts: tuple[tuple[int, ...], ...]
    links: tuple[Link, ...]
    telling: bool

    @property
    def rows(self) -> list[int]:
        return sorted(row for rows in self.texts for row in rows)

    def equal_ones(self) -> Iterator[_Class]:
        """Its texts one by one, where it has several."""
        if len(self.texts) > 1:
            for rows in self.texts:
                own = tuple(Link(self.field, True, rows[0], row) for row in rows[1:])
                yield _Class(self.field, (rows,), own, self.telling)


@dataclass(frozen=True)
class Merged:
    """Groups without duplicates across them.

    groups: the name of each row's group. links: the texts that joined documents. left: texts that would have joined too
    much, with the number of rows that have them, largest first. share: of all documents, which a text alone may join.
    """

    groups: tuple[str, ...]
    links: tuple[Link, ...] = ()
    left: tuple[tuple[Link, int], ...] = ()
    share: float = SHARE

    def applied(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """Return the rows in these groups."""
        return tuple(
            row
            if row.group == group
            else replace(row, group=group, own_group=row.own_group or row.group)
            for row, group in zip(rows, self.groups, strict=True)
        )

    def warnings(self, rows: Sequence[Row], origin: str) -> list[str]:
        """Describe for the user, in sentences, which groups were merged and which were not."""
        lines = []
        if self.links:
            lines.append(
                f"{origin}: near-duplicates ({_counted(self.links)}; case, white space, Unicode and punctuation are "
                f"ignored; first: {_pair(self.links[0], rows)}); they stay on one side of every split"
            )
        if self.left:
            link, count = self.left[0]
            more = ""
            if len(self.left) > 1:
                more = f", and {len(self.left) - 1} more such texts"
            text = f"{link.field}" if link.field != "row" else "texts"
            lines.append(
                f"{origin}: {count} rows of many documents have {'the same' if link.equal else 'nearly the same'}"
                f" {text} (first: {_pair(link, rows)}){more}; this was taken for a stock answer or a template, as more "
                f"than {100 * self.share:g}% of the documents have it, so that these rows may stand on both sides of a "
                "split, though never in each other's prompt"
            )
        if lines:
            lines[-1] += f"; the {len(rows)} rows are {len(set(self.groups))} groups"
        return lines


def _pair(link: Link, rows: Sequence[Row]) -> str:
    return f"rows {rows[link.one].id} and {rows[link.other].id}"


class _Groups:
    """Sets of rows that are joined step by step. size: what a root counts for."""

    def __init__(self, rows: int) -> None:
        self.parent = list(range(rows))
        self.size = [1] * rows

    def root(self, index: int) -> int:
        while self.parent[index] != index:
            self.parent[index] = self.parent[self.parent[index]]
            index = self.parent[index]
        return index

    def roots(self, rows: Iterable[int]) -> set[int]:
        return set(map(self.root, rows))

    def are_apart(self, link: Link) -> bool:
        """Return whether the rows of a link are in different sets."""
        return self.root(link.one) != self.root(link.other)

    def join(self, row: int, twin: int) -> None:
        # The earliest row stays the root and gives the name.
        first, second = sorted((self.root(row), self.root(twin)))
        if first != second:
            self.parent[second] = first
            self.size[first] += self.size[second]


def merge(rows: Sequence[Row], share: float = SHARE) -> Merged:
    """Join groups of rows wherever a document, a group or a text is shared.

    A joined group takes the name of its first row's. The module says which texts alone may join groups.

    Args:
        rows: The rows to group.
        share: The share of all documents above which nearly equal texts are a template, and no duplicates.
    """
    groups = _Groups(len(rows))
    sources = _classes("source", _folded(rows, "source"))
    outputs = _classes("output", _folded(rows, "output"))
    source_of = _class_of(sources)
    output_of = _class_of(outputs)
    first_with: dict[Hashable, int] = {}
    for index, row in enumerate(rows):
        groups.join(first_with.setdefault(("doc", row.doc_id), index), index)
    both: dict[Hashable, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        # Without a source the output stands alone: nearly equal ones may be made from one template.
        source = source_of[index] if index in source_of else folded(row.output).key
        if index in output_of:
            both[source, output_of[index]].append(index)
    every = range(len(rows))
    most = _most(len(set(map(groups.root, every))), share)
    links, apart = _join_rows(groups, rows, both.values(), most)
    # A group counts the documents in it, whatever joined them: what was merged once is then merged alike again.
    documents = set(map(groups.root, every))
    groups.size = [int(index in documents) for index in every]
    for index, row in enumerate(rows):
        groups.join(first_with.setdefault(("group", row.group), index), index)
    joined, left = _join(groups, [*sources, *outputs], _most(len(documents), share))
    names = tuple(rows[groups.root(index)].group for index in every)
    return Merged(names, (*links, *joined), (*apart, *left), share)


def _counted(links: Sequence[Link]) -> str:
    """Return the numbers of links of each kind: `2 equal sources, 1 nearly equal output`."""
    kinds = (
        f"{'equal' if link.equal else 'nearly equal'} {link.field}" for link in links
    )
    counts = sorted(Counter(kinds).items())
    return ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts)


def _class_of(classes: Sequence[_Class]) -> dict[int, int]:
    """Return the number of each row's class."""
    return {row: number for number, texts in enumerate(classes) for row in texts.rows}


def _join_rows(
    groups: _Groups, rows: Sequence[Row], alike: Iterable[list[int]], most: int
) -> tuple[list[Link], list[tuple[Link, int]]]:
    """Join rows with the same source and output; return the links, and those that would join too much."""
    links: list[Link] = []
    apart: list[tuple[Link, int]] = []
    for members in alike:
        first, *others = members
        stated = all(_is_stated(rows[index]) for index in members)
        if stated and len(set(map(groups.root, members))) > most:
            unlike = next((i for i in others if not _equal(rows[first], rows[i])), None)
            if unlike is not None:
                apart.append((Link("row", False, first, unlike), len(members)))
                links += _join_equal(groups, rows, members)
                continue
        links += _join_all(groups, rows, members)
    return links, apart


def _most(documents: int, share: float) -> int:
    """Return the number of documents that a text may put into one group."""
    return max(LEAST, int(share * documents))


def _is_stated(row: Row) -> bool:
    """Return True if the file states the document of the row."""
    return not row.doc_id.startswith(DERIVED)


def _equal(row: Row, twin: Row) -> bool:
    return all(folded(a).key == folded(b).key for a, b in _texts(row, twin))


def _join_all(
    groups: _Groups, rows: Sequence[Row], members: Sequence[int]
) -> list[Link]:
    links = []
    first = members[0]
    for index in members[1:]:
        if groups.root(first) != groups.root(index):
            links.append(Link("row", _equal(rows[first], rows[index]), first, index))
            groups.join(first, index)
    return links


def _join_equal(
    groups: _Groups, rows: Sequence[Row], members: Sequence[int]
) -> list[Link]:
    equal: dict[Hashable, list[int]] = defaultdict(list)
    for index in members:
        equal[folded(rows[index].source).key, folded(rows[index].output).key].append(
            index
        )
    return [
        link for several in equal.values() for link in _join_all(groups, rows, several)
    ]


def _texts(row: Row, twin: Row) -> tuple[tuple[str, str], ...]:
    return (row.source, twin.source), (row.output, twin.output)


@dataclass(frozen=True, slots=True)
class Shared:
    """Two rows (numbers) of two sets that belong to one group, and their `common` document or text."""

    one: int
    other: int
    common: str


def shared(
    rows: Sequence[Row], others: Sequence[Row], share: float = SHARE
) -> list[Shared]:
    """For each group of `merge` that rows of both sets are in, two of them, such as have a text in common first."""
    groups = merge([*rows, *others], share).groups
    members: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for number, group in enumerate(groups):
        late = number >= len(rows)
        members[group][late].append(number - late * len(rows))
    return [_nearest(rows, others, *sides) for sides in members.values() if all(sides)]


def _nearest(
    rows: Sequence[Row], others: Sequence[Row], ones: Sequence[int], twos: Sequence[int]
) -> Shared:
    best: tuple[str, ...] = ()
    pair = ones[0], twos[0]
    for row, twin in islice(product(ones, twos), 1000):
        texts = zip(("source", "output"), _texts(rows[row], others[twin]), strict=True)
        common = tuple(name for name, (a, b) in texts if alike(folded(a), folded(b)))
        if len(common) > len(best):
            best = common
            pair = (row, twin)
    return Shared(*pair, " and ".join(best) or "document, by way of other rows,")


def _join(
    groups: _Groups, classes: Sequence[_Class], limit: int
) -> tuple[list[Link], list[tuple[Link, int]]]:
    """Join what stays within the limit, what joins fewest documents first; of the rest the equal texts, likewise."""
    links: list[Link] = []
    left: list[tuple[Link, int]] = []

    def spread(texts: _Class) -> tuple[int, int]:
        return len(groups.roots(texts.rows)), texts.rows[0]

    while classes:
        rest: list[_Class] = []
        for texts in sorted(filter(attrgetter("telling"), classes), key=spread):
            roots = groups.roots(texts.rows)
            if len(roots) < 2:
                continue
            across = list(filter(groups.are_apart, texts.links))
            if sum(groups.size[root] for root in roots) > limit:
                left.append((across[0], len(texts.rows)))
                rest += texts.equal_ones()
                continue
            for link in across:
                groups.join(link.one, link.other)
            links += across
        classes = rest
    return links, sorted(left, key=lambda item: -item[1])


def _folded(rows: Sequence[Row], field: Field) -> list[Folded]:
    return [folded(getattr(row, field)) for row in rows]


def _classes(name: Field, texts: Sequence[Folded]) -> list[_Class]:
    """The classes of rows with equal or nearly equal texts, those of one row too; a row without the text is in none."""
    members: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(texts):
        if text.words:
            members[text.key].append(index)
    distinct = [tuple(rows) for rows in members.values()]
    joined = _Groups(len(distinct))
    pairs = list(near_pairs([texts[rows[0]] for rows in distinct]))
    for one, other in pairs:
        joined.join(one, other)
    links: dict[int, list[Link]] = defaultdict(list)
    parts: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for place, rows in enumerate(distinct):
        parts[joined.root(place)].append(rows)
        for row in rows[1:]:
            links[joined.root(place)].append(Link(name, True, rows[0], row))
    for one, other in pairs:
        first, second = sorted((distinct[one][0], distinct[other][0]))
        links[joined.root(one)].append(Link(name, False, first, second))
    classes = []
    for root, several in parts.items():
        telling = name == "source" or texts[several[0][0]].telling
        classes.append(_Class(name, tuple(several), tuple(links[root]), telling))
    return classes


def near_pairs(texts: Sequence[Folded]) -> Iterator[tuple[int, int]]:
    """Pairs (numbers) of different texts that are nearly equal, each once, the smaller number first.

    Candidates are texts that share a band of their MinHashes, each compared with the `COMPARISONS` before it in the
    order of their words, where templates with their difference at the end are neighbours: time is linear in the texts.
    """
    order = sorted(
        (i for i, t in enumerate(texts) if len(t.words) >= NEAR_WORDS),
        key=lambda i: texts[i].words,
    )
    if len(order) < 2:
        return
    signatures = minhashes([texts[i] for i in order], BANDS * WIDTH)
    done: set[tuple[int, int]] = set()
    for band in range(BANDS):
        buckets: dict[bytes, list[int]] = defaultdict(list)
        values = np.ascontiguousarray(signatures[:, band * WIDTH : (band + 1) * WIDTH])
        for place, value in enumerate(
            values.view(f"V{values.itemsize * WIDTH}").ravel().tolist()
        ):
            bucket = buckets[value]
            for other in bucket[-COMPARISONS:]:
                pair = (
                    min(order[other], order[place]),
                    max(order[other], order[place]),
                )
                if pair not in done:
                    done.add(pair)
                    if alike(texts[pair[0]], texts[pair[1]]):
                        yield pair
            bucket.append(place)


def minhashes(texts: Sequence[Folded], values: int) -> NDArray[np.uint32]:
    """MinHash of each text's pairs of neighbouring words, shape (texts, values)."""
    factors, summands = _permutations(values)
    result = np.empty((len(texts), values), dtype=np.uint32)
    for place, text in enumerate(texts):
        permuted = _mixed(_pairs(text))[:, None] * factors + summands
        result[place] = permuted.min(axis=0)
    return result


@cache
def _permutations(values: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the factors and summands of permutations of the numbers of 32 bits: an odd factor maps no two to one."""
    generator = np.random.RandomState(
        1
    )  # the artifacts' fingerprints rest on its numbers
    factors = generator.randint(0, 1 << 31, values, dtype=np.uint32)
    summands = generator.randint(0, 1 << 32, values, dtype=np.uint32)
    return factors * np.uint32(2) + np.uint32(1), summands


def _mixed(numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the numbers spread over all 32 bits, one to one. Source: MurmurHash3's finalizer."""
    numbers = (numbers ^ (numbers >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    numbers = (numbers ^ (numbers >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return numbers ^ (numbers >> np.uint32(16))


def _pairs(text: Folded) -> NDArray[np.uint32]:
    """Return 32 bits for each pair of neighbouring words, the ends of the text counting as words."""
    words = np.frombuffer(
        f"\0{text.words[:COMPARED]}\0".encode("utf-32-le"), dtype=np.uint32
    )
    return words[:-1] * np.uint32(0x9E3779B1) + words[1:] * np.uint32(0x85EBCA77)
