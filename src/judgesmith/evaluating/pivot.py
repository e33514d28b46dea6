"""The agreement in one sentence and in tables of judges against aspects, with the best marked.

With one aspect, judges stand against coefficients. Terminal and page show the same tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judgesmith.agreement.coefficients import coefficient_of, decided, title_of
from judgesmith.agreement.levels import level_of
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of
from judgesmith.agreement.meta.inputs import AVERAGE
from judgesmith.agreement.meta.systems import SYSTEM_MEANS
from judgesmith.tables import Cell, interval, number, p_in_words, with_interval

if TYPE_CHECKING:
    import pandas as pd

#: Marks a judge that agrees less than the best one beyond chance.
BEHIND = "†"


def alpha(result: MetaEvaluation) -> float:
    """Return the p below which a difference is beyond chance: where its interval leaves 0 out."""
    return round(1 - float(result.settings["confidence"]), 12)


def behind_means(result: MetaEvaluation) -> str:
    """Return the legend of the mark."""
    return f"{BEHIND} below the best beyond chance (p < {alpha(result):g}, all pairs of judges tested together)"


def count(n: int, level: str) -> str:
    """Return the basis of a value of this level, such as `98 documents`."""
    unit = level_of(level).unit
    return f"{n} {unit}" if n != 1 else f"1 {unit[:-1]}"


@dataclass(frozen=True, slots=True)
class Line:
    """A judge in a pivot: rows, rows without a score, and a cell per column.

    A cell is None if there is none; it has the mark of a value that is lower than the best beyond chance, never without
    a test. The human ceiling and the systems' mean labels are lines, too. beside: True for these, which are not judges.
    """

    name: str
    rests: str
    failed: int
    entries: tuple[Cell | None, ...]
    human: bool = False
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Pivot:
    """Table of judges against aspects for one level and coefficient.

    With one aspect, judges stand against coefficients for one level, and `coefficient` is "". columns: titles. The best
    is first if `level` and `coefficient` are the headline's.
    """

    level: str
    coefficient: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    def title(self) -> str:
        """Return the title: coefficient and level."""
        level = level_of(self.level).title
        return f"{title_of(self.coefficient)}, {level}" if self.coefficient else level

    @property
    def marked(self) -> bool:
        """True if any cell has a mark."""
        return any(
            entry.mark
            for line in self.lines
            for entry in line.entries
            if entry is not None
        )


def main_coefficient(result: MetaEvaluation) -> str:
    """Return the coefficient that judges are compared by, if reported; else the first one reported."""
    names = distinct(rows_of(result.agreement), "coefficient")
    by = str(result.settings["compare_by"])
    return by if by in names else names[0]


def distinct(rows: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """Return the different values of a key, in the order of the rows."""
    return list(dict.fromkeys(row[key] for row in rows))


def pivots(result: MetaEvaluation) -> list[Pivot]:
    """Return the tables, those of the coefficient that judges are compared by first, in the order of the levels."""
    rows = rows_of(result.agreement)
    measured = {_place(row) for row in rows}
    tables = []
    for level, coefficient, places in _table_places(result, rows):
        present = [place for place in places if place in measured]
        if present:
            titles = tuple(
                aspect if coefficient else title_of(name) for aspect, _, name in present
            )
            lines = tuple(_lines(present, result))
            tables.append(Pivot(level, coefficient, titles, lines))
    return tables


def _table_places(
    result: MetaEvaluation, rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Yield each table's level, coefficient ("" if it has several), and the places of its columns."""
    levels = distinct(rows, "level")
    aspects = distinct(rows, "aspect")
    names = distinct(rows, "coefficient")
    names.sort(key=lambda name: name not in decided())  # decisions first
    if len(aspects) == 1:
        for level in levels:
            yield level, "", [(aspects[0], level, name) for name in names]
        return
    first = main_coefficient(result)
    for name in sorted(names, key=lambda name: name != first):
        for level in levels:
            yield level, name, [(aspect, level, name) for aspect in aspects]


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["aspect"], row["level"], row["coefficient"]


def _lines(
    places: Sequence[tuple[str, str, str]], result: MetaEvaluation
) -> list[Line]:
    rows = rows_of(result.agreement)
    judges = distinct(rows, "judge")
    rows_at = {(row["judge"], *_place(row)): row for row in rows}
    best = {place: _best_at(rows, place) for place in places}
    worse = _worse(result)
    lines = []
    for judge in judges:
        of_judge = [rows_at.get((judge, *place)) for place in places]
        cells: list[Cell | None] = []
        for place, row in zip(places, of_judge, strict=True):
            if row is None:
                cells.append(None)
                continue
            is_best = best[place] == judge and len(judges) > 1
            mark = BEHIND if judge in worse.get((best[place], *place), ()) else ""
            cells.append(Cell(row["value"], row["low"], row["high"], is_best, mark))
        measured = list(filter(None, of_judge))
        if measured:
            rests_on, failed = _rests_on(measured)
            lines.append(Line(judge, rests_on, failed, tuple(cells)))
    return [*lines, *_ceiling(places, result), *_system_means(places, result)]


def _cell(row: Mapping[str, Any]) -> Cell:
    return Cell(row["value"], row["low"], row["high"])


def _best_at(rows: Sequence[Mapping[str, Any]], place: tuple[str, str, str]) -> str:
    """Return the judge with the highest value at a place, "" if none has one."""
    best = ""
    highest = -math.inf
    for row in rows:
        if _place(row) == place and row["value"] > highest:
            best = row["judge"]
            highest = row["value"]
    return best


def _rests_on(rows: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the rows or documents that a judge's line rests on, in words, and the number of its failed rows."""
    fewest = min(rows, key=lambda row: row["n"])
    text = count(fewest["n"], fewest["level"])
    skipped = max(row["skipped"] for row in rows)
    if skipped and fewest["level"] == "sample":
        text = f"{text}, {skipped} skipped"
    return text, max(row["failed"] for row in rows)


def _defined(table: pd.DataFrame) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """Return the rows of a table by place, those without a value left out."""
    return {_place(row): row for row in rows_of(table) if not math.isnan(row["value"])}


def _cells_at(
    places: Sequence[tuple[str, str, str]],
    rows: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> tuple[Cell | None, ...]:
    return tuple(_cell(rows[place]) if place in rows else None for place in places)


def _ceiling(
    places: Sequence[tuple[str, str, str]], result: MetaEvaluation
) -> Iterator[Line]:
    rows = _defined(result.ceiling)
    raters = [rows[place]["raters"] for place in places if place in rows]
    if raters:
        cells = _cells_at(places, rows)
        rests_on = f"{raters[0]} raters"
        yield Line("human ceiling", rests_on, 0, cells, human=True, beside=True)


def _system_means(
    places: Sequence[tuple[str, str, str]], result: MetaEvaluation
) -> Iterator[Line]:
    rows = _defined(result.by_system)
    if any(place in rows for place in places):
        cells = _cells_at(places, rows)
        yield Line(SYSTEM_MEANS, "no text read", 0, cells, beside=True)


def _worse(result: MetaEvaluation) -> dict[tuple[str, str, str, str], set[str]]:
    """Return, by (judge, aspect, level, coefficient), the judges that agree less than it beyond chance."""
    results: dict[tuple[str, str, str, str], set[str]] = {}
    for row in rows_of(result.comparisons):
        if row["p"] < alpha(result):  # NaN is not
            if row["difference"] > 0:
                better = row["a"]
                other = row["b"]
            else:
                better = row["b"]
                other = row["a"]
            results.setdefault(
                (better, row["aspect"], row["level"], row["coefficient"]), set()
            ).add(other)
    return results


# The sentence --------------------------------------------------------------------------------------------------------


def headline(result: MetaEvaluation) -> str:
    """Return the result in a sentence: the best judge, its agreement and lead, and the agreement of people."""
    aspects = distinct(rows_of(result.agreement), "aspect")
    aspect = AVERAGE if AVERAGE in aspects else aspects[0]
    rows = rows_of(result.agreement[result.agreement["aspect"] == aspect])
    level, name = headline_place(result, rows)
    compared = [row for row in rows if _at(row, level, name)]
    defined = [row for row in compared if not math.isnan(row["value"])]
    ranked = sorted(defined, key=lambda row: -row["value"])
    if not ranked:
        reason = compared[0]["reason"] or "no score is there"
        return f"No judge has a defined agreement with the human ratings: {reason}."
    best = ranked[0]
    judged = [name for name in aspects if name != AVERAGE]
    over = _over(aspect, judged)
    missing = f", {best['failed']} without a score" if best["failed"] else ""
    where = f"({level}, {count(best['n'], level)}{missing})"
    preposition, value = _agreement_in_words(best)
    tested = judged if aspect == AVERAGE else [aspect]
    if apart := _disagreement(result, best, tested):
        return apart
    if len(ranked) == 1:
        sentences = [
            f"{best['judge']} agrees with the human ratings {preposition} {value}{over} {where}{_surely(best)}."
        ]
    else:
        sentences = [
            f"Of {len(compared)} judges, {best['judge']} agrees best with the human ratings: {value}{over} "
            f"{where}{_surely(best)}.",
            _lead(result, best, ranked[1], tested),
        ]
    sentences.append(_against_people(result, best, tested))
    return " ".join(filter(None, sentences))


def _at(row: Mapping[str, Any], level: str, coefficient: str) -> bool:
    return bool(row["level"] == level and row["coefficient"] == coefficient)


def headline_place(
    result: MetaEvaluation, rows: Sequence[Mapping[str, Any]]
) -> tuple[str, str]:
    """Return level and coefficient of the headline; decisions of people come before what judges are compared by."""
    level_of = {row["coefficient"]: row["level"] for row in reversed(rows)}
    main = main_coefficient(result)
    first = rows[0]["coefficient"]
    candidates = ["kappa", "accuracy", "pairwise", main, first]
    name = next(name for name in candidates if name in level_of)
    level = str(result.agreement["level"].iloc[0])
    if not any(_at(row, level, name) for row in rows):
        level = level_of[name]
    return level, name


def _over(aspect: str, judged: Sequence[str]) -> str:
    """Return the aspects that a headline is about, in words."""
    if aspect == AVERAGE:
        return f" on average over {len(judged)} aspects"
    return f" for {aspect}" if len(judged) > 1 else ""


def _agreement_in_words(best: Mapping[str, Any]) -> tuple[str, str]:
    """Return the preposition of an agreement, and its value with the interval."""
    if best["coefficient"] != "accuracy":
        value = with_interval(best["value"], best["low"], best["high"])
        return "at", f"{title_of(best['coefficient'])} {value}"
    limits = interval(100 * best["low"], 100 * best["high"], 0)
    return "on", f"{100 * best['value']:.0f}% {limits}".strip() + " of the rows"


def _surely(row: Mapping[str, Any]) -> str:
    chance = coefficient_of(row["coefficient"]).chance
    if chance is None or math.isnan(row["low"]):
        return ""
    if row["high"] < chance:
        return "; it runs against them"
    return "" if row["low"] > chance else "; that cannot be distinguished from chance"


def _lead(
    result: MetaEvaluation,
    best: Mapping[str, Any],
    second: Mapping[str, Any],
    aspects: Sequence[str],
) -> str:
    """Return the best judge's lead over the next, and the aspects on which it is more than chance."""
    ahead = best["value"] - second["value"]
    text = f"The next is {second['judge']}, {number(ahead, 2)} lower"
    pair = {best["judge"], second["judge"]}
    tested = {}
    for row in rows_of(result.comparisons):
        same_place = _at(row, best["level"], best["coefficient"])
        if {row["a"], row["b"]} == pair and same_place:
            tested[row["aspect"]] = row
    results = [tested[aspect] for aspect in aspects if aspect in tested]
    if not results or (len(aspects) == 1 and math.isnan(results[0]["p"])):
        return f"{text}; not tested."
    if len(aspects) == 1:
        return text + _lead_in_words(result, best, results[0], ahead)
    # Equal signs: a judge can lead on average and trail, beyond chance, on one aspect.
    leads = [
        row for row in results if (row["a"] == best["judge"]) == (row["difference"] > 0)
    ]
    ahead_on = [row["aspect"] for row in leads if row["p"] < alpha(result)]
    listed = f": {', '.join(ahead_on)}" if 0 < len(ahead_on) < len(results) else ""
    return f"{text}; the lead is beyond chance on {len(ahead_on)} of {len(results)} aspects{listed}."


def _lead_in_words(
    result: MetaEvaluation,
    best: Mapping[str, Any],
    row: Mapping[str, Any],
    ahead: float,
) -> str:
    """Return the interval and the test of the best judge's lead on one aspect.

    Args:
        result: The meta-evaluation.
        best: The best judge's row.
        row: The comparison with the next judge.
        ahead: The difference of both values, over all rows of each.
    """
    sign = 1 if row["a"] == best["judge"] else -1
    low, high = sorted((sign * row["low"], sign * row["high"]))
    lead = sign * row["difference"]
    text = ""
    if abs(lead - ahead) > 1e-9:  # one of them failed on rows that the other scored
        way = "lower" if lead >= 0 else "higher"
        text = f"; on the rows that both scored {number(abs(lead), 2)} {way}"
    beyond = row["p"] < alpha(result)
    sure = "a difference beyond chance" if beyond else "which may be chance"
    return f"{text} {interval(low, high)}, {sure} ({p_in_words(row['p'])})."


@dataclass(frozen=True)
class _People:
    """The ceiling at the headline's place: one rater with the mean of the others, averaged over aspects.

    apart: aspects on which raters do not agree beyond chance.
    """

    value: float
    low: float
    high: float
    apart: tuple[str, ...]
    words: str


def _people(
    result: MetaEvaluation, level: str, coefficient: str, aspects: Sequence[str]
) -> _People | None:
    """Return the ceiling at a place; None if an aspect has none there.

    Means of limits bound the mean of several aspects, however these go together.
    """
    rows = [
        row
        for row in rows_of(result.ceiling)
        if _at(row, level, coefficient) and row["aspect"] in aspects
    ]
    if len(rows) < len(aspects) or any(math.isnan(row["value"]) for row in rows):
        return None
    value, low, high = (
        math.fsum(row[end] for row in rows) / len(rows)
        for end in ("value", "low", "high")
    )
    apart = tuple(row["aspect"] for row in rows if not _lowest(row) > 0)
    words = f"{title_of(coefficient)} {with_interval(value, low, high)}"
    return _People(value, low, high, apart, words)


def _lowest(row: Mapping[str, Any]) -> float:
    """Return the lower end of an interval, or the value if there is none."""
    return float(row["value"] if math.isnan(row["low"]) else row["low"])


def disagreement(result: MetaEvaluation, aspects: Sequence[str]) -> str:
    """Return that raters do not agree beyond chance on any of these aspects; "" if they do, or nothing is known."""
    place = {
        "level": str(result.agreement["level"].iloc[0]),
        "coefficient": main_coefficient(result),
    }
    return _disagreement(result, place, aspects)


def _disagreement(
    result: MetaEvaluation, best: Mapping[str, Any], aspects: Sequence[str]
) -> str:
    """Return the headline where raters do not agree beyond chance on any aspect, "" if they do or nothing is known.

    Measures of decisions have no ceiling: that of the first coefficient over all rows is theirs.
    """
    level = best["level"]
    people = _people(result, level, best["coefficient"], aspects)
    people = people or _people(result, level, main_coefficient(result), aspects)
    if people is None or len(people.apart) < len(aspects):
        return ""
    return (
        f"The raters do not agree beyond chance (one with the mean of the others: {people.words}): nothing here says "
        "how good a judge is."
    )


def _against_people(
    result: MetaEvaluation, best: Mapping[str, Any], aspects: Sequence[str]
) -> str:
    """Return whether the best judge is above or below the ceiling, by a test.

    The interval of the difference comes from both intervals (Zou 2007). Judge and raters share documents, so that it is
    rather too wide.
    """
    people = _people(result, best["level"], best["coefficient"], aspects)
    if people is None:
        return ""
    ceiling = with_interval(people.value, people.low, people.high)
    text = f"the human ceiling of {ceiling}: one rater with the mean of the others."
    if people.apart:
        text += f" On {', '.join(people.apart)} the raters do not agree beyond chance."
    lead = best["value"] - people.value
    below = math.hypot(best["value"] - best["low"], people.high - people.value)
    above = math.hypot(best["high"] - best["value"], people.value - people.low)
    if math.isnan(below + above):
        place = "above" if lead > 0 else "below"
        return f"{best['judge']} is {place}, untested, {text}"
    if lead > below:
        return f"{best['judge']} is above {text}"
    if lead < -above:
        return f"{best['judge']} is below {text}"
    return f"{best['judge']} cannot be told from {text}"
