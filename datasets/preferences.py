"""Comparisons of two outputs (A, B or a tie) as labels: every output gets the share of its comparisons that it won."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesmith.conversation import judged, parsed
from judgesmith.datasets.marks import WORDS, unrated, word_set
from judgesmith.datasets.meanings import speaks_of_machine
from judgesmith.datasets.spreadsheets import NUMBER
from judgesmith.errors import LabelsError
from judgesmith.rows import ROLES
from judgesmith.wording import folded, spaced, words_of

#: Column names of the two sides, and what a winner is called.
_SIDE = re.compile(
    r"(?P<subject>.*?)_?(?P<side>a|b|1|2|left|right|links|rechts|first|second|chosen|rejected)"
)
_SIDES = {
    "a": 0,
    "1": 0,
    "left": 0,
    "links": 0,
    "first": 0,
    "chosen": 0,
    "b": 1,
    "2": 1,
    "right": 1,
    "rechts": 1,
    "second": 1,
    "rejected": 1,
}
_OPPOSITE = {
    "a": "b",
    "1": "2",
    "left": "right",
    "links": "rechts",
    "first": "second",
    "chosen": "rejected",
}
#: Names of a column of outputs; `text` may be the source of two outputs.
_OF_OUTPUT = frozenset[str]().union(*ROLES["output"]) - {"text"}
_OUTPUTS = word_set(WORDS["preferences"]["outputs"]) | {""}
_SYSTEMS = frozenset(
    {
        "model",
        "system",
        "model_name",
        "model_id",
        "version",
        "prompt_version",
        "variant",
    }
)
_WINNERS = tuple(WORDS["preferences"]["winners"])
#: Words of the winner's column where it has another name: "Which is better?".
_WINNER_WORDS = word_set("winner better best prefer preferred preference choice besser")
_TIES = word_set(WORDS["preferences"]["ties"], "|")
#: "A>>B", "A = B".
_RELATION = re.compile(r"\[*(a|b|1|2) ?(>+|<+|=+|≈|~)=? ?(a|b|1|2)\]*")
#: Words behind a side that say that it is the better one, by how much, or nothing.
_BETTER = word_set(
    "is was much slightly clearly strongly significantly somewhat marginally far way more better best wins won "
    "preferred stronger superior one"
)
_ARTICLE = re.compile(r"\ba (?=(?:bit|little|lot|tad)\b)(?:bit|little|lot|tad)\b")
#: Words before a side that say no more than that it is the better one. With any other word the cell may name the worse
#: one ("worse: A", "anything but B"), and is not read.
_BEFORE = (
    _BETTER
    | _WINNER_WORDS
    | {word for name in _OUTPUTS for word in name.split("_") if word}
    | word_set(
        "the my our i we it final overall human annotator rater verdict vote votes voted result rating label decision "
        "choose chose pick picks picked select selects selected selection prefers like liked likes favor favors favour "
        "favours win go goes with for definitely probably certainly maybe system story dialogue dialog article essay "
        "paragraph sentence variant version item number model prompt description passage code image"
    )
)
#: Both ends of a preference that is a number: all for output 1, and all for output 2.
_FIRST = 1.0
_SECOND = 2.0


@dataclass(frozen=True)
class Pairs:
    """The columns of a table of comparisons.

    They are those of both outputs, of the winner (None if the first output is the better one in every row, `chosen` and
    `rejected`), and of the systems.
    """

    outputs: tuple[str, str]
    winner: str | None
    systems: tuple[str, str] | None = None

    @classmethod
    def find(
        cls, names: Sequence[str], chosen: Mapping[str, str], *, decided: bool = True
    ) -> Pairs | None:
        """Find the columns of two outputs of which one is the better; None for another table.

        Args:
            names: The columns of the table.
            chosen: Columns by role: output_a, output_b, system_a, system_b, winner.
            decided: True if a column must state the better one.
        """
        both = {_plain(name): name for name in names}
        outputs = systems = None
        if "output_a" in chosen and "output_b" in chosen:
            outputs = (chosen["output_a"], chosen["output_b"])
        if "system_a" in chosen and "system_b" in chosen:
            systems = (chosen["system_a"], chosen["system_b"])
        for plain, name in both.items():
            match = _SIDE.fullmatch(plain)
            if match is None or match["side"] not in _OPPOSITE:
                continue
            subject = match["subject"]
            side = match["side"]
            other = both.get(plain[: len(plain) - len(side)] + _OPPOSITE[side])
            if other is None:
                continue
            if outputs is None and subject in _OUTPUTS:
                outputs = (name, other)
            elif systems is None and subject in _SYSTEMS:
                systems = (name, other)
        if outputs is None:
            return None
        winner = chosen.get("winner") or next(
            (both[word] for word in _WINNERS if word in both), None
        )
        winner = winner or next(
            (n for n in names if n not in outputs and words_of(n) & _WINNER_WORDS), None
        )
        pairs = cls(outputs, winner, systems)
        if pairs.decided:
            return pairs
        return None if decided or pairs._beside_output(both) else pairs

    def _beside_output(self, names: Iterable[str]) -> bool:
        """Return True if the columns bear the name of a side only, such as `a`, and another one is called output."""
        bare = set(map(_plain, self.outputs)) <= _SIDES.keys()
        return bare and not _OF_OUTPUT.isdisjoint(names)

    @property
    def decided(self) -> bool:
        """Return True if the rows state the better output."""
        return self.winner is not None or _plain(self.outputs[0]).endswith("chosen")

    def won(self, record: Mapping[str, Any]) -> float | None:
        """Return 1 if the first output is the better one, 0 if the second is, 0.5 for a tie, None if no rater answered.

        Several raters, and a weighted preference, give shares.

        Raises:
            ValueError: For a word that names neither.
        """
        shares = [share for _, share in self.choices(record)]
        return sum(shares) / len(shares) if shares else None

    def refuse_bits(self, records: Sequence[Mapping[str, Any]], origin: str) -> None:
        """Refuse choices that are 0 and 1: the numbers of the outputs, or 1 for the first.

        Raises:
            LabelsError: For such a column.
        """
        cells = {folded(record.get(self.winner)) for record in records if self.winner}
        numbers = {float(cell) for cell in cells if NUMBER.fullmatch(cell)}
        if {0.0, 1.0} <= numbers and max(numbers) == 1.0:
            raise LabelsError(
                f"{origin}, column {self.winner!r}: 0 and 1 may be the first and the second output, or the second and "
                "the first; write a and b"
            )

    def choices(self, record: Mapping[str, Any]) -> list[tuple[str, float]]:
        """Return (rater, `won`) for each rater of a row, "" for an unnamed one.

        Raises:
            ValueError: For a word that names neither output.
        """
        if self.winner is None:
            return [("", 1.0)]
        cell = parsed(record.get(self.winner))
        by = cell if isinstance(cell, Mapping) else {"": cell}
        return [
            (str(who), self.share(choice, record))
            for who, choice in by.items()
            if not unrated(choice)
        ]

    def judged_by(
        self, records: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> list[str]:
        """Return those of the columns in which a judge states the better output.

        Every cell names a side, and the column's name speaks of a choice or a machine, or a cell of more than a letter.
        """
        own = {*self.outputs, *(self.systems or ()), self.winner}
        return [
            name
            for name in names
            if name not in own and self._are_choices(name, records)
        ]

    def _are_choices(self, name: str, records: Sequence[Mapping[str, Any]]) -> bool:
        cells = list[str]()
        shares = set[float]()
        for record in records:
            cell = record.get(name)
            if unrated(cell):
                continue
            if not isinstance(cell, str) or NUMBER.fullmatch(cell.strip()):
                return False
            cells.append(cell)
            try:
                shares.add(self.share(cell, record))
            except ValueError:
                return False
        named = words_of(name) & (_WINNER_WORDS | set(_WINNERS))
        of_choice = bool(named) or speaks_of_machine(name)
        worded = of_choice or any(len(folded(cell)) > 1 for cell in cells)
        return len(shares) > 1 and worded

    def share(self, cell: Any, record: Mapping[str, Any]) -> float:
        """Return 1 if a cell names the first output, 0 for the second, 0.5 for a tie.

        Raises:
            ValueError: For any other cell.
        """
        word = folded(cell)
        if word.strip("[]") in _TIES:
            return 0.5
        if (weight := self._weight(word)) is not None:
            return _SECOND - weight
        for place, system in enumerate(self.systems or ()):
            if word == folded(record.get(system, "")):
                return 1.0 - place
        for place, column in enumerate(self.outputs):
            if word in (folded(column), _plain(column).replace("_", " ")):
                return 1.0 - place
        if (share := _share_in_words(word)) is not None:
            return share
        raise ValueError(
            f"{cell!r} names neither output; write A, B or tie, or remove the row"
        )

    def share_of_side(
        self, record: Mapping[str, Any], name: str, place: int
    ) -> float | None:
        """Return the share that the judge in column `name` gives one output: 1 for the better, None for no choice."""
        if unrated(record.get(name)):
            return None
        share = self.share(record[name], record)
        return share if place == 0 else 1.0 - share

    def _weight(self, word: str) -> float | None:
        """A preference between output 1 and output 2 as a number, 1.5 in the middle, as alpaca_eval writes them."""
        numbered = [_plain(column)[-1:] for column in self.outputs] == ["1", "2"]
        number = float(word) if numbered and NUMBER.fullmatch(word) else None
        return number if number is not None and _FIRST <= number <= _SECOND else None

    def sides(self, record: Mapping[str, Any], won: float) -> list[dict[str, Any]]:
        """Return the row as two, one for each output.

        Outputs that are conversations (`chosen`, `rejected`) give their last turn, and the turns before it as the
        source.
        """
        own = {*self.outputs, *(self.systems or ()), self.winner}
        shared = {name: value for name, value in record.items() if name not in own}
        rows = []
        for place, column in enumerate(self.outputs):
            cell = record.get(column)
            turns = judged(cell)
            row = {**shared, "output": cell if turns is None else turns.output}
            if (
                isinstance(details := _details(record), Mapping)
                and "ab"[place] in details
            ):
                row["verdict"] = details["ab"[place]]
            if turns is not None and turns.before:
                row.setdefault("source", turns.before)
            row["score"] = won if place == 0 else 1.0 - won
            if self.systems:
                row["system"] = record.get(self.systems[place])
            if "id" in row and not unrated(row["id"]):
                row["id"] = f"{row['id']}-{'ab'[place]}"
            rows.append(row)
        return rows


def is_side(name: str) -> bool:
    """Return True if a name is that of a side, such as a, 2, or left, and says nothing of what stands there."""
    return name.casefold() in _SIDES


def names_outputs(name: str) -> bool:
    """Return True if a name, with underscores between its words, is that of a column of outputs."""
    return name in _OF_OUTPUT or (bool(name) and name in _OUTPUTS)


def names_a_side(value: Any, pairs: Pairs) -> bool:
    """Return True if an answer is a word for the better one of two outputs, or for a tie."""
    if not isinstance(value, str) or NUMBER.fullmatch(value.strip()):
        return False
    try:
        return Pairs(pairs.outputs, "winner").won({"winner": value}) is not None
    except ValueError:
        return False


def only_pair(names: Sequence[str]) -> tuple[str, ...]:
    """Return the only two columns whose names differ in nothing but the side; none if there are several such pairs."""
    pairs = side_pairs(names)
    return pairs[0] if len(pairs) == 1 else ()


def side_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns whose names differ in nothing but the side."""
    words = {
        tuple(re.findall(r"[^\W\d_]+|\d+", spaced(name).casefold())): name
        for name in names
    }
    pairs = []
    for own, name in words.items():
        others = [
            (*own[:i], _OPPOSITE[word], *own[i + 1 :])
            for i, word in enumerate(own)
            if word in _OPPOSITE
        ]
        pairs += [(name, words[other]) for other in others if other in words]
    return pairs


def _details(record: Mapping[str, Any]) -> Any:
    """The verdicts on both outputs, where `judgesmith score` judged the row."""
    verdict = parsed(record.get("verdict"))
    return verdict.get("details") if isinstance(verdict, Mapping) else None


def _share_in_words(word: str) -> float | None:
    """Return the share of the first output by words such as `a`, "Response B", "A is much better" and "A>>B".

    None for words that name no output or both, and for others that may name the worse one or a tie.
    """
    if relation := _RELATION.fullmatch(word):
        first, sign, second = relation.groups()
        if first == second:
            return None
        share = {">": 1.0, "<": 0.0}.get(sign[0], 0.5)
        return share if _SIDES[first] == 0 else 1.0 - share
    words = re.findall(r"\w+", _ARTICLE.sub("", word))
    while words and words[-1] in _BETTER:
        words.pop()
    sides = {_SIDES[one] for one in words if one in _SIDES}
    if not words or words[-1] not in _SIDES or len(sides) > 1:
        return None
    if not _BEFORE.issuperset(words[:-1]):
        return None
    return 1.0 - _SIDES[words[-1]]


def _plain(name: str) -> str:
    return re.sub(r"[\s_.-]+", "_", name.strip().casefold())
