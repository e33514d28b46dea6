"""Any tool whose ratings are objects that name what they rate: [{"aspect": "tone", "rating": 4}]."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from judgesmith.datasets.exports import REASONS, Answer, Answers, Record, exports
from judgesmith.datasets.exports.cells import first, listed
from judgesmith.datasets.meanings import by_machine, rater_in, rating_in
from judgesmith.datasets.statuses import (
    by_people,
    discounted,
    marked,
    not_of_people,
    sources_in,
)
from judgesmith.rows import folded_name, named_roles

#: What an object with a rating calls what is rated. A `name` is a rater's, unless a source is beside it.
_RATED = ("aspect", "criterion", "dimension", "attribute")
#: What LangSmith calls the same, beside a source.
_KEY = "key"
#: Of a finding at a place in the output, which is no rating of it.
_OF_FINDINGS = frozenset({"start", "end", "span", "location", "severity"})
#: Of a verdict that `judgesmith score` wrote, which is no person's rating.
_OF_VERDICTS = frozenset({"percent", "failure"})
#: Columns whose objects name aspects.
_BY_ASPECT = frozenset[str]().union(*named_roles("ratings")["scores"])


@exports.register
class Named(Answers):
    """Records with lists of objects that name what they rate."""

    name = "named"
    title = "a tool that names each rating"
    about = "lists of ratings that each name their aspect"
    turn = 1

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return any(itertools.starmap(_answers, record.items()))

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        texts: Record = {}
        answers: list[Answer] = []
        for name, cell in record.items():
            if named := _answers(name, cell):
                answers += named
            else:
                texts[name] = cell
        return texts, answers


def _answers(column: str, cell: Any) -> list[Answer]:
    """Return the ratings in a list of which every object says what it rates; none of anything else."""
    if by_machine(column):
        return []
    read = [_answer(column, rated) for rated in listed(cell)]
    answers = [answer for answer in read if answer is not None]
    return answers if len(answers) == len(read) else []


def _answer(column: str, rated: Any) -> Answer | None:
    """Return the rating in an object that says what it rates; None for anything else."""
    if not isinstance(rated, Mapping) or _OF_FINDINGS & rated.keys():
        return None
    if rated.keys() >= _OF_VERDICTS:
        return None
    sources = list(sources_in(rated))
    by_name = bool(sources) or folded_name(column) in _BY_ASPECT
    about = first(rated, (*_RATED, _KEY, "name") if by_name else _RATED)
    value = rating_in(rated)
    if not isinstance(about, str) or value is None:
        return None
    left = [not_of_people(source) for source, _ in sources if not by_people(source)]
    if why := discounted(rated):
        left.append(marked(why))
    people = [who for _, who in sources if who is not None]
    named = rater_in({key: rated[key] for key in rated if key != "name"})
    return Answer(
        about,
        named or next(iter(people), None),
        value,
        next(iter(left), ""),
        first(rated, sorted(REASONS)),
    )
