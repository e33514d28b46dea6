"""Annotations that do not count: rejected, skipped or not finished, or of no known person.

A status, a flag or a source is known by its column's or key's name. Their words are of `statuses.toml`: one that
rejects leaves the rating out, and a word that is not known is named. A source counts only if it is known as people's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, assert_never

from judgesmith.rows import is_missing
from judgesmith.wording import folded, words_of

#: What a column or key says of an annotation.
_Kind: TypeAlias = Literal["status", "flag", "done", "accepted", "source", "reviews"]

_WORDS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(
        files(__package__).joinpath("statuses.toml").read_text(encoding="utf-8")
    ).items()
}
_TOKEN = re.compile(r"[^\W\d_]+")
_SHARE = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
#: A column with more different words than these has no status.
_MOST = 20
_SHOWN = 4  # words in one message


@dataclass(frozen=True)
class Statuses:
    """The ratings of a file that do not count.

    left: the place of their records, with the reason. notes: on columns that may say so of further ones.
    """

    left: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, records: Sequence[Mapping[str, Any]], names: Sequence[str], origin: str
    ) -> Statuses:
        """Read the columns that have no other role.

        Args:
            records: The rows.
            names: The columns.
            origin: The file, for messages.
        """
        result = cls()
        unread = list[str]()
        for name in names:
            cells = _words_in(records, name)
            if len(cells) > 1 or _kind(name) is not None:
                result._read(records, name, cells, f"{origin}, column {name!r}")
            if _kind(name) is None and _are_yes_and_no(cells):
                unread.append(name)
            if note := _incomplete(records, name) or _trace(records, name):
                result.notes.append(f"{origin}, column {name!r}: {note}")
        if unread:
            result.notes.append(
                f"{origin}: {_listed(unread)} are not read; if they say which ratings count, remove the other rows"
            )
        return result

    def _read(
        self,
        records: Sequence[Mapping[str, Any]],
        name: str,
        cells: Sequence[str],
        place: str,
    ) -> None:
        kind = _kind(name)
        odd = _without_count(kind, name, cells)
        if kind == "accepted" or (kind is None and odd):
            if odd:
                self.notes.append(
                    f"{place}: ratings beside {_listed(odd)} count; if they were rejected or not finished, remove "
                    "these rows"
                )
            return
        if kind is None:
            return
        reasons = dict.fromkeys(odd, "marked")
        for number, record in enumerate(records):
            cell = record.get(name)
            if not is_missing(cell) and folded(cell) in reasons:
                self.left.setdefault(number, _reason(kind, cell))
        unknown = [word for word in cells if not _is_known(kind, word)]
        if unknown and kind in ("status", "source") and len(cells) > 1:
            self.notes.append(
                f"{place}: ratings beside {_listed(unknown)} count; if they were rejected or not finished, or no "
                "person gave them, remove these rows"
            )


def _incomplete(records: Sequence[Mapping[str, Any]], name: str) -> str | None:
    """Return a note on a column of shares: of a form that was filled in, of the trust in a worker."""
    words = words_of(name)
    beside = _WORDS["beside_shares"] | _WORDS["of_annotation"]
    if not words & _WORDS["shares"] or not words <= _WORDS["shares"] | beside:
        return None
    cells = (str(record.get(name)).strip().removesuffix("%") for record in records)
    shares = [float(cell) for cell in cells if _SHARE.fullmatch(cell)]
    whole = 1.0 if max(shares, default=0.0) <= 1 else 100.0
    part = [share for share in shares if share < whole]
    # From 1 to 10 are ratings.
    if not part or (whole > 1 and max(shares) <= 10):
        return None
    return (
        f"less than {whole:g} in {len(part)} of {len(records)} rows (lowest: {min(part):g}); their ratings count; if "
        "some were not finished or are not trusted, remove these rows"
    )


def _trace(records: Sequence[Mapping[str, Any]], name: str) -> str | None:
    """Return a note on a column that is filled where a rating was rejected: its time, its reason."""
    words = words_of(name)
    rejecting = _WORDS["rejections"] | _WORDS["flags"]
    beside = _WORDS["traces"] | _WORDS["of_annotation"]
    if not (
        words & rejecting and words & _WORDS["traces"] and words <= rejecting | beside
    ):
        return None
    filled = sum(not is_missing(record.get(name)) for record in records)
    if not filled:
        return None
    return f"filled in {filled} of {len(records)} rows; their ratings count; if they were rejected, remove these rows"


def _reason(kind: _Kind, cell: Any) -> str:
    return not_of_people(cell) if kind == "source" else f"marked {str(cell)!r}"


def not_of_people(source: Any) -> str:
    """Return the words for a rating that is left out because of its source."""
    return f"whose source {str(source)!r} is no known person's"


def by_people(source: Any) -> bool:
    """Return True if a source of ratings is known as people's: "ui", "HUMAN", "annotation queue"."""
    words = set(_TOKEN.findall(folded(source)))
    return bool(words & _WORDS["people"]) and words <= (
        _WORDS["people"] | _WORDS["beside_people"]
    )


def sources_in(rated: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the sources that an object with a rating names, each with its rater, None without one."""
    for key, value in rated.items():
        if is_missing(value) or not _is_source(str(key)):
            continue
        if not isinstance(value, Mapping):
            yield str(value), None
            continue
        parts = (value.get(part) for part in ("type", "source_type", "kind", "name"))
        named = next((str(part) for part in parts if not is_missing(part)), None)
        if named is not None:
            people = (value.get(part) for part in ("user_id", "user_name", "source_id"))
            yield named, next((who for who in people if not is_missing(who)), None)


def discounted(rated: Mapping[str, Any]) -> str | None:
    """Return how an object with a rating says that it does not count: `status: rejected`; None if it counts."""
    for key, value in rated.items():
        if is_missing(value):
            continue
        kind = _kind(str(key))
        match kind:
            case None | "source":
                pass
            case "reviews":
                if _declined(value):
                    return f"{key}: declined"
            case "status" | "flag" | "done" | "accepted":
                is_cell = not isinstance(value, Mapping | list)
                if is_cell and _rejects(kind, folded(value)):
                    return f"{key}: {value}"
            case _:
                assert_never(kind)
    return None


def marked(why: str) -> str:
    """Return the reason why a rating is left out whose object is `discounted`."""
    return f"which are marked {why}"


def _declined(reviews: Any) -> bool:
    """Return True if the last of an annotation's reviews turned it down."""
    if not isinstance(reviews, list) or not reviews:
        return False
    last = reviews[-1]
    if not isinstance(last, Mapping):
        return False
    score = last.get("score")
    below = isinstance(score, int | float) and score < 0
    return below or discounted(last) is not None


@lru_cache(maxsize=4096)
def _kind(name: str) -> _Kind | None:
    words = words_of(name)
    beside = _WORDS["of_annotation"] | _WORDS["beside_flags"]
    if words == {"reviews"}:
        return "reviews"
    if words & _WORDS["status"] and words <= _WORDS["status"] | _WORDS["of_annotation"]:
        return "status"
    if words & _WORDS["flags"] and words <= _WORDS["flags"] | beside:
        return "flag"
    if words & _WORDS["done"] and words <= _WORDS["done"] | beside:
        return "done"
    if words & _WORDS["accepted"] and words <= _WORDS["accepted"] | beside:
        return "done" if words & _WORDS["of_annotation"] else "accepted"
    of_raters = bool(words & _WORDS["of_raters"]) or "info" in words
    return "source" if of_raters and _is_source(name) else None


@lru_cache(maxsize=4096)
def _is_source(name: str) -> bool:
    words = words_of(name)
    types = {"source", "origin", "kind", "type", "info"}
    if not words <= types | _WORDS["of_raters"]:
        return False
    return "source" in words or bool(words & {"kind", "type"} and words - types)


def _without_count(kind: _Kind | None, name: str, cells: Sequence[str]) -> list[str]:
    """Return the words of a column beside which a rating does not count."""
    if kind == "source":
        people = any(map(by_people, cells))
        strict = people and "source" in words_of(name)
        return [
            word
            for word in cells
            if not by_people(word) and (strict or _names_a_machine(word))
        ]
    if kind in ("flag", "done", "accepted"):
        flags = _WORDS["true"] | _WORDS["false"]
        if not all(word in flags for word in cells):
            return []
    return [word for word in cells if _rejects(kind, word)]


def _are_yes_and_no(cells: Sequence[str]) -> bool:
    """Return True for the words yes and no, in any spelling; numbers say too much else."""
    yes = _WORDS["true"] - {"1"}
    no = _WORDS["false"] - {"0"}
    return len(cells) > 1 and {*cells} <= yes | no and bool(yes & {*cells})


def _names_a_machine(word: str) -> bool:
    return bool(set(_TOKEN.findall(word)) & _WORDS["machines"])


def _rejects(kind: _Kind | None, word: str) -> bool:
    """Return True if a word says that a rating does not count. Of other columns it is the whole cell."""
    tokens = _TOKEN.findall(word)
    match kind:
        case "flag":
            return word in _WORDS["true"]
        case "done" | "accepted":
            return word in _WORDS["false"]
        case None:
            alone = _WORDS["rejecting"] - {"test", "progress"}
            return len(tokens) == 1 and tokens[0] in alone
        case "status" | "source" | "reviews":
            turned = bool(_WORDS["turning"] & {*tokens})
            said = _WORDS["counting"] if turned else _WORDS["rejecting"]
            return bool(said & {*tokens})
        case _:
            assert_never(kind)


def _is_known(kind: _Kind, word: str) -> bool:
    if kind == "source":
        return by_people(word) or _names_a_machine(word)
    known = _WORDS["counting"] | _WORDS["rejecting"]
    return bool(set(_TOKEN.findall(word)) & known)


def _words_in(records: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """Return the different cells of a column as words, none where they are many or long."""
    cells: dict[Any, None] = {}
    for record in records:
        cell = record.get(name)
        if isinstance(cell, list | Mapping) or (
            isinstance(cell, str) and len(cell) > 40
        ):
            return []
        cells[cell] = None
        if len(cells) > _MOST:
            return []
    return list(dict.fromkeys(folded(cell) for cell in cells if not is_missing(cell)))


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(map(repr, words[:_SHOWN])) + more
