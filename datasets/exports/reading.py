"""Records of an annotation tool as plain records, whichever of the exports they are."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from judgesmith.datasets.exports import REASONS, Answer, Record, of_answers
from judgesmith.datasets.exports.cells import is_there, single
from judgesmith.datasets.preferences import Pairs, names_a_side, only_pair
from judgesmith.errors import LabelsError
from judgesmith.rows import as_text, folded_name

#: Why a rating is left out.
AGAIN = "which the same person replaced by a later one"
Reader: TypeAlias = Callable[[Mapping[str, Any]], tuple[Record, Iterable[Answer]]]


def recognised(head: Sequence[Mapping[str, Any]], origin: str) -> Export | None:
    """Return the tool that these records come from, None for plain ones.

    Raises:
        LabelsError: For an export that cannot be labels, such as one without texts.
    """
    if not head:
        return None
    shapes = of_answers()
    for refusal in (one for shape in shapes for one in shape.refused):
        if all(
            refusal.has <= record.keys() and not refusal.lacks & record.keys()
            for record in head
        ):
            raise LabelsError(f"{origin}: {refusal.problem}")
    for shape in shapes:
        if sum(map(shape.belongs, head)) > shape.share * len(head):
            return Export(shape.title, shape.read)
    return None


@dataclass
class Export:
    """A tool whose export was recognised.

    left: how many ratings were left out, by reason. roles: the columns of comparisons by role, as they were found;
    winners: the questions that compare two outputs.
    """

    tool: str
    read: Reader
    left: Counter[str] = field(default_factory=Counter)
    roles: dict[str, str] = field(default_factory=dict)
    winners: dict[str, None] = field(default_factory=dict)

    def records(self, rows: Sequence[Mapping[str, Any]], origin: str) -> list[Record]:
        """Return each record's `record`.

        Raises:
            LabelsError: With the row, for one that cannot be read.
        """
        return [
            self.record(row, f"{origin}, row {number}")
            for number, row in enumerate(rows, 1)
        ]

    def record(self, record: Mapping[str, Any], place: str = "") -> Record:
        """Return the texts of a record with human ratings, the last one of each person.

        Args:
            record: The record as the tool exports it.
            place: The file and its row, for messages.

        Raises:
            LabelsError: If the record lacks a field that the others of its tool have.
        """
        try:
            texts, answers = self.read(record)
        except KeyError as error:
            raise LabelsError(
                f"{place}: a record of {self.tool} without {error}; export it again, or leave the row out"
            ) from None
        pairs = Pairs.find([*texts], {}, decided=False)
        given = _Given()
        for answer in answers:
            given.take(answer, pairs, self.left)
        comparisons = self._comparisons(texts, given.choices)
        result = {**texts, **comparisons}
        if any(given.scores.values()) or not comparisons:
            rated = {name: by for name, by in given.scores.items() if by}
            result = {**texts, "scores": rated, **comparisons}
        reasons = {}
        for name, by in given.why.items():
            reasons[name] = list(itertools.chain(*by.values()))
        return result | ({"why": reasons} if reasons else {})

    def _comparisons(self, texts: Record, choices: Mapping[str, Any]) -> Record:
        compared = {name: by for name, by in choices.items() if by}
        if (
            compared
            and not self.roles
            and Pairs.find([*texts], {}, decided=False) is None
        ):
            sides = only_pair(
                [name for name, cell in texts.items() if as_text(cell) is not None]
            )
            self.roles = dict(zip(("output_a", "output_b"), sides, strict=False))
        winners = {}
        for name, by in compared.items():
            winners[name if name not in texts else f"{name} (winner)"] = by
        self.winners |= dict.fromkeys(winners)
        return winners

    def columns(self, chosen: Mapping[str, Any], origin: str) -> dict[str, Any]:
        """Return the columns that a user named, with those of the comparisons.

        Raises:
            LabelsError: If several questions compare the outputs, and none was named.
        """
        if not self.winners or "output" in chosen:
            return dict(chosen)
        if len(self.winners) > 1 and "winner" not in chosen:
            names = ", ".join(self.winners)
            raise LabelsError(
                f"{origin}: several questions compare two outputs ({names}); pass --columns winner=NAME"
            )
        return self.roles | {"winner": next(iter(self.winners))} | dict(chosen)

    def left_out(self) -> str:
        """Describe how many ratings were left out, with the reasons; "" if there are none."""
        return "".join(
            f"; {count} ratings were left out, {why}"
            for why, count in self.left.items()
            if count
        )


@dataclass
class _Given:
    """What people answered about one record, by question and person: ratings, choices between outputs, reasons."""

    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    choices: dict[str, dict[str, Any]] = field(default_factory=dict)
    why: dict[str, dict[str, list[Any]]] = field(default_factory=dict)

    def take(self, answer: Answer, pairs: Pairs | None, left: Counter[str]) -> None:
        """Take an answer in place of an earlier one of the same person, or count in `left` why it is none."""
        question = answer.question
        value = single(answer.value)
        reason = answer.reason
        if isinstance(value, str) and folded_name(str(question)) in REASONS:
            # A question that asks for a text.
            question = None
            reason = value
            value = None
        name = str(question or "rating")
        if answer.left:
            if value is not None:
                left[answer.left] += 1
            return
        compares = answer.compares or (pairs is not None and names_a_side(value, pairs))
        kind = self.choices if compares else self.scores
        cells = kind.setdefault(name, {})
        who = str(answer.rater) if is_there(answer.rater) else str(len(cells) + 1)
        # Rankings and spans are no ratings.
        if value is not None and not isinstance(value, Mapping | list):
            if who in cells:
                left[AGAIN] += 1
            cells[who] = value
            self.why.get(name, {}).pop(who, None)
        if is_there(reason):
            self.why.setdefault(name, {}).setdefault(who, []).append(reason)
